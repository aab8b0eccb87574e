/* event_flight_old_damaged_test.c - what was damaged in a file of version 2 or 3 stays damaged,
 * hostile numbers are refused, and such a file is kept only as one of this version. */
#include "event_flight_old.h"

#include "temp_folder.h"

static void test_damage(void **state)
{
    (void)state;
    struct old events[4] = { 0 };
    for (size_t i = 0; i < COUNT_OF(events); i++)
        events[i] = (struct old){ .kind = EVENT_LAUNCH, .outcome = EVENT_DONE };
    uint8_t *file = old_file(3, "a device", events, COUNT_OF(events));
    uint8_t *ring = file + OLD_RING;
    put(ring + 512 * 2, 0, 8, UINT64_MAX); /* was being written */
    ring[512 * 3 + 16 + 100] ^= 1;         /* does not match its checksum */
    file[OLD_ENTRY + 1] ^= 1;
    struct flight_reader *reader = old_open(file);
    assert_int_equal(flight_info(reader)->damaged_count, 3);
    assert_int_equal(flight_allocation_count(reader), 0);
    struct event event;
    uint64_t at = 2;
    assert_true(flight_next(reader, &at, &event));
    assert_int_equal(event.id, 4);
    flight_reader_close(reader);
    free(file);
}

static void test_hostile(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t offset, bytes;
        uint64_t value;
        const char *words;
    } rows[] = {
        { "version 1", 8, 4, 1, "version" },
        { "record size", 16, 4, 8, "record_bytes" },
        { "event size", 20, 4, 504, "event_bytes" },
        { "allocation size", 24, 4, 0, "allocation_bytes" },
        { "checkpoint size", 28, 4, 1, "checkpoint_bytes" },
        { "no records", 32, 4, 0, "record_count" },
        { "many records", 32, 4, UINT32_MAX, "file_bytes" },
        { "many graph records", 40, 4, UINT32_MAX, "ring_offset" },
        { "no such tables", 44, 4, 2, "call_tables" },
        { "ring elsewhere", 80, 8, 64, "ring_offset" },
        { "another size", 88, 8, 64, "file_bytes" },
        { "another name", 376, 1, 'x', "checksum" },
    };
    struct old launch = { .kind = EVENT_LAUNCH, .outcome = EVENT_DONE };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        uint8_t *file = old_file(3, "a device", &launch, 1);
        struct flight_reader *reader;
        struct error err;
        put(file, rows[i].offset, rows[i].bytes, rows[i].value);
        enum status status = flight_open_memory(file, OLD_FILE_BYTES, "old", &reader, &err);
        if (!status || !strstr(err.text, rows[i].words))
            fail_msg("%s: expected \"%s\", found %d: %s", rows[i].name, rows[i].words, status,
                     status ? err.text : "it opened");
        free(file);
    }
    uint8_t *file = old_file(3, "a device", &launch, 1);
    struct flight_reader *reader;
    struct error err;
    for (uint64_t size = 0; size < OLD_FILE_BYTES; size += size < 700 ? 1 : 4999)
        assert_int_not_equal(flight_open_memory(file, size, "old", &reader, &err), STATUS_OK);
    uint8_t *good = malloc(OLD_FILE_BYTES);
    assert_non_null(good);
    memcpy(good, file, OLD_FILE_BYTES);
    uint64_t random = 1;
    for (int round = 0; round < 100; round++) {
        for (int change = 0; change < 20; change++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            file[(random >> 20) % OLD_FILE_BYTES] = (uint8_t)(random >> 56);
        }
        if (!flight_open_memory(file, OLD_FILE_BYTES, "old", &reader, &err)) {
            struct event event;
            for (uint64_t id = 0; flight_next(reader, &id, &event);)
                assert_true(event.kind < EVENT_KIND_COUNT &&
                            event.domain < EVENT_ERROR_DOMAIN_COUNT);
            flight_reader_close(reader);
        }
        memcpy(file, good, OLD_FILE_BYTES);
    }
    free(good);
    free(file);
}

/* Kept as a file of this version; not written to by a process of this one. */
static void test_pack_and_attach(void **state)
{
    (void)state;
    struct old launch = { .kind = EVENT_LAUNCH, .outcome = EVENT_DONE, .bytes = 12 };
    uint8_t *file = old_file(2, "a device", &launch, 1);
    struct temp_folder folder;
    struct flight_reader *reader;
    struct flight *flight;
    struct error err;
    temp_folder_init(&folder);
    temp_folder_write(&folder, "old.flight", file, OLD_FILE_BYTES);
    struct temp_path plain = temp_folder_path(&folder, "old.flight");
    struct temp_path packed = temp_folder_path(&folder, "old.flight.zst");
    CHECK_OK(flight_pack(plain.text, packed.text, 0, &err), &err);
    CHECK_OK(flight_open(packed.text, &reader, &err), &err);
    assert_int_equal(flight_info(reader)->version, FLIGHT_VERSION);
    assert_int_equal(old_event_at(reader, 1).launch.ordinal, 12);
    flight_reader_close(reader);
    CHECK_FAILS(flight_attach(plain.text, &flight, &err), STATUS_UNSUPPORTED, &err);
    temp_folder_release(&folder);
    free(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_pack_and_attach),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
