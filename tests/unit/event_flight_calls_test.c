/* event_flight_calls_test.c - stacks, names and modules of a foreign program in a flight file:
 * there afterwards, gone if damaged, never more than there is room for; and a file that another
 * process reads while it is written. */
#include "test.h"

#include "event/flight.h"
#include "event/flight_layout.h"
#include "temp_folder.h"

#include <stdlib.h>
#include <string.h>

static struct flight *create(const struct temp_folder *folder, bool call_tables)
{
    struct temp_path path = temp_folder_path(folder, "calls.flight");
    struct flight_options options = { .record_count = 16,
                                      .allocation_count = 4,
                                      .graph_record_count = 4,
                                      .device = "foreign",
                                      .command = "program",
                                      .call_tables = call_tables };
    struct flight *flight;
    struct error err;
    CHECK_OK(flight_create(path.text, &options, &flight, &err), &err);
    return flight;
}

static struct flight_reader *open_reader(const struct temp_folder *folder)
{
    struct temp_path path = temp_folder_path(folder, "calls.flight");
    struct flight_reader *reader;
    struct error err;
    CHECK_OK(flight_open(path.text, &reader, &err), &err);
    return reader;
}

static void test_tables(void **state)
{
    (void)state;
    struct temp_folder folder;
    temp_folder_init(&folder);
    struct flight *flight = create(&folder, true);
    uint64_t frames[FLIGHT_STACK_FRAMES + 5];
    for (size_t i = 0; i < COUNT_OF(frames); i++)
        frames[i] = 1000 + i;
    assert_int_equal(flight_add_stack(flight, frames, 3), 1);
    assert_int_equal(flight_add_stack(flight, frames, COUNT_OF(frames)), 2);
    assert_int_equal(flight_add_stack(flight, frames, 0), 0);
    char longer[FLIGHT_NAME_BYTES * 2];
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    assert_int_equal(flight_add_name(flight, "kernel"), 1);
    assert_int_equal(flight_add_name(flight, longer), 2);
    struct flight_module module = { .start = 10, .end = 20, .bias = 5, .path = "/bin/program" };
    flight_add_module(flight, &module);
    flight_add_cost(flight, 500, 16);
    flight_close(flight);

    struct flight_reader *reader = open_reader(&folder);
    assert_true(flight_info(reader)->foreign);
    assert_int_equal(flight_info(reader)->observed_ns, 500);
    assert_int_equal(flight_info(reader)->observed_count, 16);
    uint64_t found[FLIGHT_STACK_FRAMES];
    size_t count;
    assert_true(flight_stack(reader, 1, found, &count));
    assert_int_equal(count, 3);
    assert_memory_equal(found, frames, 3 * sizeof(*frames));
    assert_true(flight_stack(reader, 2, found, &count));
    assert_int_equal(count, FLIGHT_STACK_FRAMES);
    static const uint32_t absent[] = { 0, 3, FLIGHT_STACK_COUNT, FLIGHT_STACK_COUNT + 1,
                                       UINT32_MAX };
    char name[FLIGHT_NAME_BYTES];
    for (size_t i = 0; i < COUNT_OF(absent); i++) {
        assert_false(flight_stack(reader, absent[i], found, &count));
        assert_false(flight_name(reader, absent[i], name));
    }
    assert_true(flight_name(reader, 1, name));
    assert_string_equal(name, "kernel");
    assert_true(flight_name(reader, 2, name));
    assert_int_equal(strlen(name), FLIGHT_NAME_BYTES - 1);
    assert_true(flight_module_at(reader, 0, &module));
    assert_string_equal(module.path, "/bin/program");
    assert_false(flight_module_at(reader, 1, &module));
    flight_reader_close(reader);
    temp_folder_release(&folder);
}

static void test_without_tables(void **state)
{
    (void)state;
    struct temp_folder folder;
    temp_folder_init(&folder);
    struct flight *flight = create(&folder, false);
    uint64_t frame = 1;
    assert_int_equal(flight_add_stack(flight, &frame, 1), 0);
    assert_int_equal(flight_add_name(flight, "kernel"), 0);
    flight_close(flight);
    struct flight_reader *reader = open_reader(&folder);
    struct flight_module module;
    char name[FLIGHT_NAME_BYTES];
    assert_false(flight_info(reader)->foreign);
    assert_false(flight_name(reader, 1, name));
    assert_false(flight_module_at(reader, 0, &module));
    flight_reader_close(reader);
    temp_folder_release(&folder);
}

static void test_full(void **state)
{
    (void)state;
    struct temp_folder folder;
    temp_folder_init(&folder);
    struct flight *flight = create(&folder, true);
    for (uint32_t i = 0; i < FLIGHT_NAME_COUNT; i++)
        assert_int_equal(flight_add_name(flight, "kernel"), i + 1);
    assert_int_equal(flight_add_name(flight, "one more"), 0);
    flight_close(flight);
    temp_folder_release(&folder);
}

/* An entry with a wrong byte is not there; a module's place stays, empty. */
static void test_damaged(void **state)
{
    (void)state;
    struct temp_folder folder;
    struct text bytes;
    temp_folder_init(&folder);
    struct flight *flight = create(&folder, true);
    uint64_t frame = 7;
    struct flight_module module = { .start = 10, .end = 20, .path = "/bin/program" };
    flight_add_stack(flight, &frame, 1);
    flight_add_name(flight, "kernel");
    flight_add_module(flight, &module);
    flight_close(flight);
    text_init(&bytes);
    temp_folder_read(&folder, "calls.flight", &bytes);
    struct flight_layout layout = flight_layout_of(16, 4, 4, true, 1, 0);
    bytes.bytes[layout.stack_offset] ^= 1;
    bytes.bytes[layout.name_offset + 2] ^= 1;
    bytes.bytes[layout.module_offset + 8] ^= 1;
    struct flight_reader *reader;
    struct error err;
    CHECK_OK(flight_open_memory(bytes.bytes, bytes.length, "memory", &reader, &err), &err);
    uint64_t found[FLIGHT_STACK_FRAMES];
    size_t count;
    char name[FLIGHT_NAME_BYTES];
    assert_false(flight_stack(reader, 1, found, &count));
    assert_false(flight_name(reader, 1, name));
    assert_true(flight_module_at(reader, 0, &module));
    assert_string_equal(module.path, "");
    flight_reader_close(reader);
    text_release(&bytes);
    temp_folder_release(&folder);
}

static struct event make_event(uint64_t id, bool ended)
{
    return (struct event){ .id = id,
                           .kind = EVENT_COPY_OUT,
                           .flags = EVENT_FOREIGN,
                           .check = EVENT_CHECK_VIEW_END,
                           .operand = 1,
                           .phase = ended ? EVENT_END : EVENT_BEGIN,
                           .outcome = ended ? EVENT_DONE : EVENT_PENDING };
}

static void test_attach(void **state)
{
    (void)state;
    struct temp_folder folder;
    struct temp_path path;
    struct flight *attached;
    struct error err;
    temp_folder_init(&folder);
    path = temp_folder_path(&folder, "calls.flight");
    struct flight *flight = create(&folder, true);
    CHECK_OK(flight_attach(path.text, &attached, &err), &err);
    assert_true(flight_is_attached(attached));
    assert_false(flight_is_attached(flight));
    struct event_observer observer = flight_observer(flight);
    struct event event = make_event(1, false), seen;
    observer.notify(observer.context, &event);
    assert_int_equal(flight_peek(attached, 1, &seen), FLIGHT_OPEN);
    /* What a call will not pass is known before its end. */
    assert_int_equal(seen.check, EVENT_CHECK_VIEW_END);
    assert_int_equal(seen.operand, 1);
    event = make_event(1, true);
    observer.notify(observer.context, &event);
    assert_int_equal(flight_peek(attached, 1, &seen), FLIGHT_WHOLE);
    flight_checkpoint(attached, 1, "abc", 3);
    flight_close(attached);
    struct flight_reader *reader = open_reader(&folder);
    assert_false(flight_info(reader)->closed); /* letting go is not closing */
    assert_int_equal(flight_info(reader)->analysed_id, 1);
    flight_reader_close(reader);
    flight_close(flight);
    temp_folder_write(&folder, "other", "no flight file", 14);
    path = temp_folder_path(&folder, "other");
    CHECK_FAILS(flight_attach(path.text, &attached, &err), STATUS_BAD_FILE, &err);
    path = temp_folder_path(&folder, "nothing");
    CHECK_FAILS(flight_attach(path.text, &attached, &err), STATUS_NOT_FOUND, &err);
    temp_folder_release(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables), cmocka_unit_test(test_without_tables),
        cmocka_unit_test(test_full),   cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_attach),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
