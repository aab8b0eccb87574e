/* events.h - printers of single events, one per format.
 *
 * An event printer adds to `out`, which the driver empties into the sink: memory does not grow with
 * the file. Times are shown since the recording began. */
#ifndef GRETA_REPORT_EVENTS_H
#define GRETA_REPORT_EVENTS_H

#include "base/text.h"
#include "report/export.h"
#include "report/report.h"

/* ns since the recording began; 0 for times before it, which only a damaged file has. */
uint64_t events_since(const struct flight_info *info, uint64_t time_ns);
uint64_t events_duration(const struct event *event);
bool events_match(const struct flight_info *info, const struct report_filter *filter,
                  const struct event *event);
/* False for what happens once, without a beginning: a completion, trap, fault, ... */
bool events_is_call(const struct event *event);
/* Work that a stream does. */
bool events_is_stream_work(const struct event *event);
/* The op, or the kind where there is none. */
const char *events_name(const struct event *event);

/* events_text.c, events_jsonl.c: a line. */
void events_print_text(const struct flight_info *info, const struct event *event, struct text *out);
void events_print_jsonl(const struct flight_info *info, const struct event *event,
                        struct text *out);

/* events_chrome.c: a document, printed event by event. */
struct events_chrome;
/* NULL without memory. Looks through the reader once to see which streams tell completions. */
struct events_chrome *events_chrome_create(const struct flight_reader *reader);
void events_chrome_destroy(struct events_chrome *chrome); /* NULL is fine */
void events_chrome_begin(struct events_chrome *chrome, struct text *out);
/* wanted: the filter takes it; others are only remembered, since later ones refer to them. */
void events_chrome_add(struct events_chrome *chrome, const struct event *event, bool wanted,
                       struct text *out);
void events_chrome_end(struct events_chrome *chrome, struct text *out);

/* ---- Fields of one kind --------------------------------------------------------------------- */

enum events_form {
    EVENTS_NUMBER,
    EVENTS_SIGNED, /* its bits are those of an int64_t */
    EVENTS_ADDRESS,
    EVENTS_HASH,
    EVENTS_STATE, /* these three: a word, by events_field_word */
    EVENTS_KNOWN,
    EVENTS_WHEN,
    EVENTS_TRAPS /* enum event_traps */
};

struct events_field {
    const char *name;
    enum events_form form;
    uint64_t value;
};

#define EVENTS_FIELD_LIMIT 8

/* What only events of this kind have; returns how many. */
size_t events_fields(const struct event *event, struct events_field fields[EVENTS_FIELD_LIMIT]);
/* NULL for a number. */
const char *events_field_word(const struct events_field *field);

#endif
