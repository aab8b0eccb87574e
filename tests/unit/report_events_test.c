/* report_events_test.c - events of a flight file as text and JSON lines: filters, the sink, hostile
 * names, damaged files. */
#include "report_events.h"

#include <stdlib.h>

static size_t count_lines(const char *text)
{
    size_t count = 0;
    for (; *text; text++)
        count += *text == '\n';
    return count;
}

static void check_printable(const char *text)
{
    for (; *text; text++)
        assert_true((unsigned char)*text >= 0x20 || *text == '\n');
}

/* ---- Lines ---------------------------------------------------------------------------------- */

static void test_text(void **state)
{
    (void)state;
    struct temp_folder folder;
    struct capture capture;
    temp_folder_init(&folder);
    struct flight_reader *reader = open_specimen(&folder);
    print_events(reader, &everything, REPORT_EVENT_TEXT, &capture);
    assert_int_equal(count_lines(text_get(&capture.text)), 100);
    check_printable(text_get(&capture.text));
    check_contains("text", text_get(&capture.text), "refused by lost expected 0 found 0");
    check_contains("text", text_get(&capture.text), "one\\x0Atwo");
    check_contains("text", text_get(&capture.text), "#61      launch         matmul  stream 1");
    check_contains("text", text_get(&capture.text), "rw:0x7f000003d000+4096");
    check_contains("text", text_get(&capture.text), "pending");
    text_release(&capture.text);
    flight_reader_close(reader);
    temp_folder_release(&folder);
}

static void test_json_lines(void **state)
{
    (void)state;
    struct temp_folder folder;
    struct capture capture;
    temp_folder_init(&folder);
    struct flight_reader *reader = open_specimen(&folder);
    print_events(reader, &everything, REPORT_EVENT_JSONL, &capture);
    size_t count = 0;
    for (char *line = capture.text.bytes, *end; (end = strchr(line, '\n')) != NULL;
         line = end + 1) {
        json_error_t problem;
        *end = '\0';
        json_t *event = json_loads(line, JSON_REJECT_DUPLICATES, &problem);
        if (!event)
            fail_msg("%s: %s", problem.text, line);
        assert_int_equal(json_integer_value(json_object_get(event, "id")), ++count);
        assert_true(json_is_string(json_object_get(event, "kind")));
        assert_true(json_is_integer(json_object_get(event, "time_ns")));
        json_decref(event);
    }
    assert_int_equal(count, 100);
    text_release(&capture.text);
    flight_reader_close(reader);
    temp_folder_release(&folder);
}

static void test_filters(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct report_filter filter;
        size_t count;
    } rows[] = {
        { "everything", { .stream = -1, .layer = -1, .step = -1 }, 100 },
        { "a stream", { .stream = 2, .layer = -1, .step = -1 }, 26 },
        { "no such stream", { .stream = 9, .layer = -1, .step = -1 }, 0 },
        { "a layer", { .stream = -1, .layer = 17, .step = -1 }, 4 },
        { "a step", { .stream = -1, .layer = -1, .step = 2 }, 25 },
        { "layer and step", { .stream = -1, .layer = 17, .step = 3 }, 1 },
        { "a tensor", { .stream = -1, .layer = -1, .step = -1, .tensor = "kv.keys" }, 4 },
        { "an op", { .stream = -1, .layer = -1, .step = -1, .op = "rope" }, 16 },
        { "a kind", { .stream = -1, .layer = -1, .step = -1, .op = "buffer-create" }, 20 },
        { "failures", { .stream = -1, .layer = -1, .step = -1, .failures_only = true }, 3 },
        { "later", { .stream = -1, .layer = -1, .step = -1, .from_ns = 1000000000000 }, 0 },
        { "until now", { .stream = -1, .layer = -1, .step = -1, .to_ns = 1 }, 0 },
    };
    struct temp_folder folder;
    temp_folder_init(&folder);
    struct flight_reader *reader = open_specimen(&folder);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct capture capture;
        print_events(reader, &rows[i].filter, REPORT_EVENT_TEXT, &capture);
        size_t count = count_lines(text_get(&capture.text));
        if (count != rows[i].count)
            fail_msg("%s: expected %zu lines, found %zu", rows[i].name, rows[i].count, count);
        text_release(&capture.text);
    }
    flight_reader_close(reader);
    temp_folder_release(&folder);
}

/* ---- The sink ------------------------------------------------------------------------------- */

static void fill_ring(struct flight *flight, uint64_t count)
{
    for (uint64_t id = 1; id <= count; id++)
        specimen_tell(flight, specimen_event(clock_ns(), id, EVENT_LAUNCH, "matmul"));
}

/* However many events: chunks of bounded size; the sink's error comes back and ends it. */
static void test_sink(void **state)
{
    (void)state;
    struct temp_folder folder;
    struct capture capture;
    struct flight *flight;
    struct flight_reader *reader;
    struct error err;
    struct flight_options options = { .record_count = 8192, .device = "d", .command = "c" };
    temp_folder_init(&folder);
    CHECK_OK(flight_create(temp_folder_path(&folder, "flight").text, &options, &flight, &err),
             &err);
    fill_ring(flight, 8000);
    flight_close(flight);
    CHECK_OK(flight_open(temp_folder_path(&folder, "flight").text, &reader, &err), &err);
    for (int format = REPORT_EVENT_TEXT; format <= REPORT_EVENT_CHROME; format++) {
        struct report_sink sink = { capture_keep, &capture };
        print_events(reader, &everything, (enum report_event_format)format, &capture);
        assert_true(capture.calls > 5);
        assert_true(capture.largest < 80000);
        text_release(&capture.text);
        capture = (struct capture){ .fail_at = 3 };
        CHECK_FAILS(
            report_events(reader, &everything, (enum report_event_format)format, &sink, &err),
            STATUS_IO, &err);
        assert_int_equal(capture.calls, 3);
        text_release(&capture.text);
    }
    flight_reader_close(reader);
    temp_folder_release(&folder);
}

/* ---- Damage --------------------------------------------------------------------------------- */

/* A file with bytes changed at random either does not open, or prints: whole records only, no
 * control characters, valid JSON. Checksums capture_keep most of it out; what they let through must
 * hold.
 */
static void test_damaged(void **state)
{
    (void)state;
    struct temp_folder folder;
    struct text bytes;
    uint64_t random = 88172645463325252u;
    temp_folder_init(&folder);
    flight_reader_close(open_specimen(&folder));
    text_init(&bytes);
    temp_folder_read(&folder, "flight", &bytes);
    char *copy = aligned_alloc(64, (bytes.length + 63) / 64 * 64);
    assert_non_null(copy);
    for (size_t round = 0; round < 60; round++) {
        memcpy(copy, bytes.bytes, bytes.length);
        for (size_t i = 0; i < 400; i++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            /* Past the header: a file that does not open is tested elsewhere. */
            copy[4096 + (size_t)(random >> 8) % (bytes.length - 4096)] = (char)random;
        }
        struct flight_reader *reader;
        struct error err;
        CHECK_OK(flight_open_memory(copy, bytes.length, "damaged", &reader, &err), &err);
        struct capture capture;
        print_events(reader, &everything, REPORT_EVENT_TEXT, &capture);
        check_printable(text_get(&capture.text));
        text_release(&capture.text);
        print_events(reader, &everything, REPORT_EVENT_CHROME, &capture);
        json_decref(parse_timeline(&capture));
        text_release(&capture.text);
        flight_reader_close(reader);
    }
    free(copy);
    text_release(&bytes);
    temp_folder_release(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),    cmocka_unit_test(test_json_lines),
        cmocka_unit_test(test_filters), cmocka_unit_test(test_sink),
        cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
