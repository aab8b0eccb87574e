/* report_timeline_test.c - events of a flight file as a timeline: calls, queues and the launches in
 * them. */
#include "report/export.h"
#include "report_events.h"

static const char *text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static size_t count_entries(const json_t *entries, const char *phase, int process, const char *name)
{
    size_t i, count = 0;
    json_t *entry;
    json_array_foreach (entries, i, entry)
        count += strcmp(text_at(entry, "ph"), phase) == 0 &&
                 (!process || json_integer_value(json_object_get(entry, "pid")) == process) &&
                 (!name || strcmp(text_at(entry, "name"), name) == 0);
    return count;
}

static void test_timeline(void **state)
{
    (void)state;
    struct temp_folder folder;
    struct capture capture;
    temp_folder_init(&folder);
    struct flight_reader *reader = open_specimen(&folder);
    print_events(reader, &everything, REPORT_EVENT_CHROME, &capture);
    json_t *root = parse_timeline(&capture), *entries = json_object_get(root, "traceEvents");
    /* 100 events less 8 completions are calls of the host; every launch that was completed is a
     * slice of its stream. */
    assert_int_equal(count_entries(entries, "X", 1, NULL), 92);
    assert_int_equal(count_entries(entries, "X", 2, NULL), 8);
    assert_int_equal(count_entries(entries, "f", 2, "work"), 8);
    assert_true(count_entries(entries, "s", 1, "work") >= 8);
    /* Marks and tickets: an arrow for each that was recorded or copied before. */
    assert_int_equal(count_entries(entries, "f", 1, "mark"), 8);
    assert_int_equal(count_entries(entries, "f", 1, "ticket"), 8);
    /* The crumbs say where stream 1 stopped. */
    assert_int_equal(count_entries(entries, "i", 2, "entered, not finished"), 1);
    assert_int_equal(count_entries(entries, "M", 0, "thread_name"), 4);
    json_decref(root);
    text_release(&capture.text);
    flight_reader_close(reader);
    temp_folder_release(&folder);
}

/* Without completions the call itself is drawn, and says so. */
static void test_timeline_of_calls(void **state)
{
    (void)state;
    struct temp_folder folder;
    struct capture capture;
    struct flight *flight;
    struct flight_reader *reader;
    struct error err;
    struct flight_options options = { .record_count = 16, .device = "d", .command = "c" };
    temp_folder_init(&folder);
    CHECK_OK(flight_create(temp_folder_path(&folder, "flight").text, &options, &flight, &err),
             &err);
    uint64_t start_ns = clock_ns();
    for (uint64_t id = 1; id <= 5; id++)
        specimen_tell(flight, specimen_event(start_ns, id, EVENT_LAUNCH, "rope"));
    flight_close(flight);
    CHECK_OK(flight_open(temp_folder_path(&folder, "flight").text, &reader, &err), &err);
    print_events(reader, &everything, REPORT_EVENT_CHROME, &capture);
    json_t *root = parse_timeline(&capture), *entries = json_object_get(root, "traceEvents");
    assert_int_equal(count_entries(entries, "X", 2, "rope"), 5);
    check_contains("note", text_get(&capture.text), "completions were not recorded");
    json_decref(root);
    text_release(&capture.text);
    flight_reader_close(reader);
    temp_folder_release(&folder);
}

static json_t *find_slice(const json_t *entries, int process, const char *name)
{
    size_t i;
    json_t *entry;
    json_array_foreach (entries, i, entry)
        if (strcmp(text_at(entry, "ph"), "X") == 0 && strcmp(text_at(entry, "name"), name) == 0 &&
            json_integer_value(json_object_get(entry, "pid")) == process)
            return entry;
    fail_msg("no slice %s", name);
    return NULL;
}

/* Two launches queued at once: the second begins when the first has ended, not when it was asked
 * for. */
static void test_timeline_of_a_queue(void **state)
{
    (void)state;
    struct temp_folder folder;
    struct capture capture;
    struct flight *flight;
    struct flight_reader *reader;
    struct error err;
    struct flight_options options = { .record_count = 16, .device = "d", .command = "c" };
    temp_folder_init(&folder);
    CHECK_OK(flight_create(temp_folder_path(&folder, "flight").text, &options, &flight, &err),
             &err);
    uint64_t start_ns = clock_ns();
    for (uint64_t id = 1; id <= 4; id++) {
        struct event event = specimen_event(start_ns, id, id < 3 ? EVENT_LAUNCH : EVENT_COMPLETION,
                                            id == 1 ? "first" : "second");
        event.stream_index = 0;
        event.cause_id = id < 3 ? 0 : id - 2;
        if (id >= 3) {
            event.begin_ns = start_ns + id * 1000000;
            event.end_ns = event.begin_ns;
        }
        specimen_tell(flight, event);
    }
    flight_close(flight);
    CHECK_OK(flight_open(temp_folder_path(&folder, "flight").text, &reader, &err), &err);
    print_events(reader, &everything, REPORT_EVENT_CHROME, &capture);
    json_t *root = parse_timeline(&capture), *entries = json_object_get(root, "traceEvents");
    json_t *first = find_slice(entries, 2, "first"), *second = find_slice(entries, 2, "second");
    double first_end = json_number_value(json_object_get(first, "ts")) +
                       json_number_value(json_object_get(first, "dur"));
    assert_true(json_number_value(json_object_get(second, "ts")) > first_end - 0.01);
    assert_true(json_number_value(json_object_get(second, "ts")) < first_end + 0.01);
    assert_true(json_number_value(json_object_get(second, "dur")) > 999.0);
    json_decref(root);
    text_release(&capture.text);
    flight_reader_close(reader);
    temp_folder_release(&folder);
}

/* Work on stream 0 of each of two devices, at the same time: two tracks. */
static void test_timeline_of_two_devices(void **state)
{
    (void)state;
    struct temp_folder folder;
    struct capture capture;
    struct flight *flight;
    struct flight_reader *reader;
    struct error err;
    struct flight_options options = {
        .record_count = 16, .device_count = 2, .device = "d", .command = "c"
    };
    temp_folder_init(&folder);
    CHECK_OK(flight_create(temp_folder_path(&folder, "flight").text, &options, &flight, &err),
             &err);
    uint64_t start_ns = clock_ns();
    for (uint64_t id = 1; id <= 4; id++) {
        struct event event = specimen_event(start_ns, id, id < 3 ? EVENT_LAUNCH : EVENT_COMPLETION,
                                            id == 1 ? "first" : "second");
        event.device_index = (uint16_t)((id - 1) % 2);
        event.stream_index = 0;
        event.cause_id = id < 3 ? 0 : id - 2;
        if (id >= 3) {
            event.begin_ns = start_ns + id * 1000000;
            event.end_ns = event.begin_ns;
        }
        specimen_tell(flight, event);
    }
    flight_close(flight);
    CHECK_OK(flight_open(temp_folder_path(&folder, "flight").text, &reader, &err), &err);
    print_events(reader, &everything, REPORT_EVENT_CHROME, &capture);
    json_t *root = parse_timeline(&capture), *entries = json_object_get(root, "traceEvents");
    json_t *first = find_slice(entries, 2, "first"), *second = find_slice(entries, 3, "second");
    /* The second does not wait for the first. */
    assert_true(json_number_value(json_object_get(second, "ts")) <
                json_number_value(json_object_get(first, "ts")) +
                    json_number_value(json_object_get(first, "dur")));
    json_decref(root);
    text_release(&capture.text);
    flight_reader_close(reader);
    temp_folder_release(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timeline),
        cmocka_unit_test(test_timeline_of_calls),
        cmocka_unit_test(test_timeline_of_a_queue),
        cmocka_unit_test(test_timeline_of_two_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
