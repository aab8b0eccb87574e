/* event_flight_launches_test.c - shape and arguments of launches in a flight file: found by their
 * event, gone when a newer launch takes their place or when damaged; those of graphs stay. */
#include "test.h"

#include "event/flight.h"
#include "event/flight_layout.h"
#include "temp_folder.h"

#include <string.h>

enum { KEPT = 8, OF_GRAPHS = 3 };

static struct flight *create(const struct temp_folder *folder, uint32_t launch_count)
{
    struct temp_path path = temp_folder_path(folder, "launches.flight");
    struct flight_options options = { .record_count = 16,
                                      .allocation_count = 4,
                                      .graph_record_count = OF_GRAPHS,
                                      .call_tables = true,
                                      .launch_count = launch_count };
    struct flight *flight;
    struct error err;
    CHECK_OK(flight_create(path.text, &options, &flight, &err), &err);
    return flight;
}

static void read_back(const struct temp_folder *folder, struct text *bytes,
                      struct flight_reader **ret_reader)
{
    struct error err;
    text_init(bytes);
    temp_folder_read(folder, "launches.flight", bytes);
    CHECK_OK(flight_open_memory(bytes->bytes, bytes->length, "memory", ret_reader, &err), &err);
}

static struct flight_launch launch_of(uint64_t event_id)
{
    return (struct flight_launch){ .event_id = event_id,
                                   .number_least = event_id,
                                   .number_most = UINT64_MAX,
                                   .grid = { 4, 2, 1 },
                                   .block = { 32, 1, 1 },
                                   .range_count = 1,
                                   .argument_bytes = 8,
                                   .ranges = { { 0, 8 } } };
}

static void test_places(void **state)
{
    (void)state;
    struct temp_folder folder;
    struct text bytes;
    struct flight_reader *reader;
    struct flight_launch found;
    temp_folder_init(&folder);
    struct flight *flight = create(&folder, KEPT);
    for (uint64_t id = 1; id <= KEPT + 2; id++) {
        struct flight_launch launch = launch_of(id);
        flight_set_launch(flight, flight_launch_place(flight, id, false), &launch);
    }
    uint32_t places[OF_GRAPHS + 1];
    for (unsigned i = 0; i < COUNT_OF(places); i++) {
        struct flight_launch launch = launch_of(100 + i);
        places[i] = flight_launch_place(flight, 0, true);
        flight_set_launch(flight, places[i], &launch);
    }
    assert_int_equal(places[OF_GRAPHS], 0); /* no room */
    struct flight_launch changed = launch_of(10);
    changed.number_most = 12;
    flight_set_launch(flight, flight_launch_place(flight, 10, false), &changed);
    flight_set_launch(flight, KEPT + OF_GRAPHS + 1, &changed); /* nowhere */
    uint32_t overwritten = flight_launch_place(flight, 1, false),
             kept = flight_launch_place(flight, 10, false);
    flight_close(flight);

    read_back(&folder, &bytes, &reader);
    assert_int_equal(flight_info(reader)->damaged_count, 0);
    assert_false(flight_launch_at(reader, overwritten, 1, &found));
    assert_true(flight_launch_at(reader, overwritten, 9, &found));
    assert_true(flight_launch_at(reader, kept, 10, &found));
    assert_int_equal(found.number_most, 12);
    assert_int_equal(found.grid[1], 2);
    assert_int_equal(found.ranges[0].bytes, 8);
    for (unsigned i = 0; i < OF_GRAPHS; i++)
        assert_true(flight_launch_at(reader, places[i], 100 + i, &found));
    assert_false(flight_launch_at(reader, 0, 10, &found));
    assert_false(flight_launch_at(reader, KEPT + OF_GRAPHS + 1, 10, &found));
    assert_false(flight_launch_at(reader, UINT32_MAX, 10, &found));
    flight_reader_close(reader);
    text_release(&bytes);
    temp_folder_release(&folder);
}

static void test_damaged(void **state)
{
    (void)state;
    struct temp_folder folder;
    struct text bytes;
    struct flight_reader *reader;
    struct flight_launch found, many = launch_of(2);
    temp_folder_init(&folder);
    struct flight *flight = create(&folder, KEPT);
    struct flight_launch launch = launch_of(1);
    many.range_count = FLIGHT_RANGE_LIMIT + 1; /* more than it has room for */
    flight_set_launch(flight, 1, &launch);
    flight_set_launch(flight, 2, &many);
    flight_close(flight);
    read_back(&folder, &bytes, &reader);
    assert_true(flight_launch_at(reader, 1, 1, &found));
    assert_false(flight_launch_at(reader, 2, 2, &found));
    assert_false(flight_launch_at(reader, 3, 0, &found)); /* never written */
    struct flight_layout layout = flight_layout_of(16, 4, OF_GRAPHS, true, 1, KEPT);
    bytes.bytes[layout.launch_offset + 40] ^= 1;
    assert_false(flight_launch_at(reader, 1, 1, &found));
    flight_reader_close(reader);
    text_release(&bytes);
    temp_folder_release(&folder);
}

/* A file of version 4 is the same without the table. */
static void test_before(void **state)
{
    (void)state;
    struct temp_folder folder;
    struct text bytes;
    struct flight_reader *reader;
    struct flight_launch found;
    struct error err;
    temp_folder_init(&folder);
    struct flight *flight = create(&folder, 0);
    assert_int_equal(flight_launch_place(flight, 1, false), 0);
    assert_int_equal(flight_launch_place(flight, 1, true), 0);
    flight_close(flight);
    text_init(&bytes);
    temp_folder_read(&folder, "launches.flight", &bytes);
    struct flight_header *header = (struct flight_header *)bytes.bytes;
    header->version = 4;
    header->checksum = flight_header_checksum(header);
    CHECK_OK(flight_open_memory(bytes.bytes, bytes.length, "memory", &reader, &err), &err);
    assert_int_equal(flight_info(reader)->version, 4);
    assert_false(flight_launch_at(reader, 1, 1, &found));
    flight_reader_close(reader);
    header->launch_count = 1;
    header->checksum = flight_header_checksum(header);
    assert_int_equal(flight_open_memory(bytes.bytes, bytes.length, "memory", &reader, &err),
                     STATUS_BAD_FILE);
    assert_non_null(strstr(err.text, "launch_count: expected 0, found 1"));
    text_release(&bytes);
    temp_folder_release(&folder);
}

static void test_hash(void **state)
{
    (void)state;
    static const char bytes[] = "the bytes of some arguments";
    const struct flight_piece whole[] = { { bytes, sizeof(bytes) } },
                              cut[] = { { bytes, 5 }, { bytes + 5, sizeof(bytes) - 5 } },
                              other[] = { { bytes, sizeof(bytes) - 1 } };
    assert_int_equal(flight_hash_pieces(whole, 1), flight_hash_pieces(cut, 2));
    assert_int_not_equal(flight_hash_pieces(whole, 1), flight_hash_pieces(other, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_before),
        cmocka_unit_test(test_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
