/* report_events.h - prints the events of a flight file into memory: what the tests of its formats
 * share. */
#ifndef GRETA_TESTS_REPORT_EVENTS_H
#define GRETA_TESTS_REPORT_EVENTS_H

#include "test.h"

#include "base/text.h"
#include "report/export.h"
#include "report_recording.h"
#include "temp_folder.h"

#include <jansson.h>

struct capture {
    struct text text;
    size_t calls, largest;
    size_t fail_at; /* which call fails; 0: none */
};

static inline enum status capture_keep(void *context, const char *bytes, size_t count,
                                       struct error *err)
{
    struct capture *capture = context;
    if (++capture->calls == capture->fail_at)
        return error_set(err, STATUS_IO, "no room");
    if (count > capture->largest)
        capture->largest = count;
    text_add_bytes(&capture->text, bytes, count);
    return STATUS_OK;
}

static const struct report_filter everything = { .stream = -1, .layer = -1, .step = -1 };

static inline void print_events(const struct flight_reader *reader,
                                const struct report_filter *filter, enum report_event_format format,
                                struct capture *capture)
{
    struct report_sink sink = { capture_keep, capture };
    struct error err;
    *capture = (struct capture){ 0 };
    CHECK_OK(report_events(reader, filter, format, &sink, &err), &err);
    assert_false(capture->text.failed);
}

static inline struct flight_reader *open_specimen(const struct temp_folder *folder)
{
    struct flight_reader *reader;
    struct error err;
    specimen_flight(temp_folder_path(folder, "flight").text);
    CHECK_OK(flight_open(temp_folder_path(folder, "flight").text, &reader, &err), &err);
    return reader;
}

static inline json_t *parse_timeline(const struct capture *capture)
{
    json_error_t problem;
    json_t *root = json_loads(text_get(&capture->text), JSON_REJECT_DUPLICATES, &problem);
    if (!root)
        fail_msg("line %d: %s", problem.line, problem.text);
    return root;
}

#endif
