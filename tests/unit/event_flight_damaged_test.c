/* event_flight_damaged_test.c - a flight file comes from a dying process or from anybody: whatever
 * its bytes, the reader says what is wrong or passes over it; it never believes. */
#include "test.h"

#include "event/flight.h"
#include "event/flight_layout.h"
#include "temp_folder.h"

#include <stdlib.h>
#include <string.h>

/* A small good file, as bytes. */
static uint8_t *good_file(size_t *ret_size)
{
    struct temp_folder folder;
    temp_folder_init(&folder);
    struct flight_options options = { .record_count = 16,
                                      .allocation_count = 4,
                                      .graph_record_count = 2 };
    struct flight *flight;
    struct error err;
    CHECK_OK(flight_create(temp_folder_path(&folder, "f").text, &options, &flight, &err), &err);
    struct event_observer observer = flight_observer(flight);
    for (uint64_t id = 1; id <= 20; id++) {
        struct event event = { .id = id,
                               .kind = id == 3 ? EVENT_BUFFER_CREATE : EVENT_LAUNCH,
                               .phase = EVENT_END,
                               .outcome = EVENT_DONE,
                               .access_count = 1 };
        observer.notify(observer.context, &event);
    }
    flight_checkpoint(flight, 3, "abc", 3);
    flight_close(flight);
    struct text text;
    text_init(&text);
    temp_folder_read(&folder, "f", &text);
    temp_folder_release(&folder);
    uint8_t *bytes = malloc(text.length);
    assert_non_null(bytes);
    memcpy(bytes, text.bytes, text.length);
    *ret_size = text.length;
    text_release(&text);
    return bytes;
}

/* Reads everything a reader offers; returns how many events there were. */
static size_t walk(const uint8_t *bytes, size_t size, enum status *ret_status, struct error *err)
{
    struct flight_reader *reader;
    *ret_status = flight_open_memory(bytes, size, "the file", &reader, err);
    if (*ret_status)
        return 0;
    size_t count = 0;
    uint64_t next = 0;
    struct event event;
    while (flight_next(reader, &next, &event)) {
        assert_true(event.kind < EVENT_KIND_COUNT && event.access_count <= EVENT_ACCESS_LIMIT);
        assert_non_null(memchr(event.op, 0, sizeof(event.op)));
        count++;
    }
    for (size_t i = 0; i < flight_graph_launch_count(reader); i++)
        flight_graph_launch(reader, i, &event);
    assert_false(flight_graph_launch(reader, flight_graph_launch_count(reader), &event));
    for (size_t i = 0; i < flight_allocation_count(reader); i++)
        assert_non_null(memchr(flight_allocation_at(reader, i)->name, 0, EVENT_TENSOR_BYTES));
    const void *checkpoint;
    size_t checkpoint_bytes;
    if (flight_last_checkpoint(reader, &checkpoint, &checkpoint_bytes))
        assert_true(checkpoint_bytes <= FLIGHT_CHECKPOINT_BYTES);
    flight_reader_close(reader);
    return count;
}

#define AT(field) offsetof(struct flight_header, field)

static void test_header(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t offset;
        size_t bytes;
        uint64_t value;
        const char *words;
    } rows[] = {
        { "magic", 0, 1, 'X', "magic" },
        { "an earlier version", AT(version), 4, 1, "version" },
        { "a later version", AT(version), 4, FLIGHT_VERSION + 1, "version" },
        { "header size", AT(header_bytes), 4, 0, "header_bytes" },
        { "record size", AT(record_bytes), 4, 12, "record_bytes" },
        { "event size", AT(event_bytes), 4, UINT32_MAX, "event_bytes" },
        { "allocation size", AT(allocation_bytes), 4, 1, "allocation_bytes" },
        { "checkpoint size", AT(checkpoint_bytes), 4, 1, "checkpoint_bytes" },
        { "no records", AT(record_count), 4, 0, "record_count" },
        { "many records", AT(record_count), 4, UINT32_MAX, "file_bytes" },
        { "many allocations", AT(allocation_count), 4, UINT32_MAX, "ring_offset" },
        { "no devices", AT(device_count), 4, 0, "device_count" },
        { "many devices", AT(device_count), 4, FLIGHT_DEVICE_LIMIT + 1, "device_count" },
        { "another device", AT(device_count), 4, 2, "ring_offset" },
        { "tables that are not there", AT(call_tables), 4, 1, "ring_offset" },
        { "no such tables", AT(call_tables), 4, 2, "call_tables" },
        { "ring elsewhere", AT(ring_offset), 8, 1, "ring_offset" },
        { "another size", AT(file_bytes), 8, UINT64_MAX, "file_bytes" },
        { "another name", AT(command), 1, 'x', "checksum" },
        { "checksum", AT(checksum), 8, 0, "checksum" },
    };
    size_t size;
    uint8_t *bytes = good_file(&size);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        uint8_t saved[8];
        struct error err;
        enum status status;
        memcpy(saved, bytes + rows[i].offset, rows[i].bytes);
        memcpy(bytes + rows[i].offset, &rows[i].value, rows[i].bytes);
        walk(bytes, size, &status, &err);
        if (status != STATUS_BAD_FILE && status != STATUS_UNSUPPORTED)
            fail_msg("%s: status %s", rows[i].name, status_name(status));
        check_contains(rows[i].name, err.text, rows[i].words);
        check_contains(rows[i].name, err.text, "the file");
        memcpy(bytes + rows[i].offset, saved, rows[i].bytes);
    }
    free(bytes);
}

static void test_cut_short(void **state)
{
    (void)state;
    size_t size;
    uint8_t *bytes = good_file(&size);
    for (size_t length = 0; length < size; length += length < 700 ? 1 : 997) {
        uint8_t *copy = malloc(length + 1); /* so that a sanitizer sees the end */
        struct error err;
        enum status status;
        memcpy(copy, bytes, length);
        walk(copy, length, &status, &err);
        assert_int_equal(status, STATUS_BAD_FILE);
        free(copy);
    }
    free(bytes);
}

static void test_damaged_records(void **state)
{
    (void)state;
    size_t size;
    uint8_t *bytes = good_file(&size);
    struct error err;
    enum status status;
    assert_int_equal(walk(bytes, size, &status, &err), 16);
    struct flight_layout layout = flight_layout_of(16, 4, 2, false, 1, 0);
    struct flight_record *ring = (struct flight_record *)(bytes + layout.ring_offset);
    ring[6].event.begin_ns ^= 1;           /* the beginning does not match its checksum */
    ring[7].event.outcome = EVENT_REFUSED; /* nor the end */
    ring[8].event.id = FLIGHT_BUSY;        /* being written when the process died */
    ring[9].event.kind = EVENT_KIND_COUNT; /* right checksum, no such kind */
    ring[9].begin_checksum = flight_begin_checksum(&ring[9].event);
    ring[10].event.id = 1000 * 16 + 3; /* an id that does not belong there */
    assert_int_equal(walk(bytes, size, &status, &err), 11);
    struct flight_reader *reader;
    CHECK_OK(flight_open_memory(bytes, size, "the file", &reader, &err), &err);
    assert_int_equal(flight_info(reader)->damaged_count, 5);
    flight_reader_close(reader);
    free(bytes);
}

static void test_random_damage(void **state)
{
    (void)state;
    size_t size;
    uint8_t *good = good_file(&size), *bytes = malloc(size);
    assert_non_null(bytes);
    uint64_t random = 1;
    for (int round = 0; round < 300; round++) {
        memcpy(bytes, good, size);
        for (int i = 0; i < 1 + round % 40; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            bytes[(random >> 20) % size] = (uint8_t)(random >> 56);
        }
        struct error err;
        enum status status;
        walk(bytes, size, &status, &err);
    }
    free(bytes);
    free(good);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_header),
        cmocka_unit_test(test_cut_short),
        cmocka_unit_test(test_damaged_records),
        cmocka_unit_test(test_random_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
