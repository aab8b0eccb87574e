/* event_flight_pack_test.c - a recording that was packed reads like the original; of one in which
 * all was analysed only the newest events stay; a damaged one is refused. */
#include "test.h"

#include "base/compress.h"
#include "event/flight.h"
#include "event/flight_layout.h"
#include "temp_folder.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORDS 256u

struct scene {
    struct temp_folder folder;
    struct temp_path plain, packed;
    struct error err;
};

static void scene_init(struct scene *scene)
{
    temp_folder_init(&scene->folder);
    scene->plain = temp_folder_path(&scene->folder, "flight");
    scene->packed = temp_folder_path(&scene->folder, "flight.zst");
}

/* `count` launches, then the file is closed unless the process "died". */
static void record(struct scene *scene, uint64_t count, uint64_t analysed_id, bool closed)
{
    struct flight_options options = { .record_count = RECORDS,
                                      .allocation_count = 4,
                                      .graph_record_count = 4,
                                      .device = "a device",
                                      .command = "a command" };
    struct flight *flight;
    CHECK_OK(flight_create(scene->plain.text, &options, &flight, &scene->err), &scene->err);
    struct event_observer observer = flight_observer(flight);
    for (uint64_t id = 1; id <= count; id++) {
        struct event event = { .id = id,
                               .kind = EVENT_LAUNCH,
                               .phase = EVENT_END,
                               .outcome = EVENT_DONE,
                               .begin_ns = id,
                               .end_ns = id + 1,
                               .launch.ordinal = 3 * id };
        observer.notify(observer.context, &event);
    }
    if (analysed_id)
        flight_checkpoint(flight, analysed_id, "state", 5);
    flight_close(flight);
    if (closed)
        return;
    /* As a killed process leaves it. */
    struct text text;
    text_init(&text);
    temp_folder_read(&scene->folder, "flight", &text);
    memset(text.bytes + FLIGHT_COUNTERS_OFFSET + offsetof(struct flight_counters, closed), 0, 8);
    temp_folder_write(&scene->folder, "flight", text.bytes, text.length);
    text_release(&text);
}

static void check_packed(struct scene *scene, uint64_t keep, uint64_t first, uint64_t last,
                         uint64_t left_out)
{
    struct flight_reader *reader;
    struct event event;
    const void *saved;
    size_t saved_count;
    CHECK_OK(flight_pack(scene->plain.text, scene->packed.text, keep, &scene->err), &scene->err);
    CHECK_OK(flight_open(scene->packed.text, &reader, &scene->err), &scene->err);
    const struct flight_info *info = flight_info(reader);
    assert_int_equal(info->first_id, first);
    assert_int_equal(info->last_id, last);
    assert_int_equal(info->left_out_count, left_out);
    assert_int_equal(info->damaged_count, 0);
    assert_int_equal(info->lost_count,
                     first > info->analysed_id + 1 ? first - info->analysed_id - 1 : 0);
    assert_string_equal(info->command, "a command");
    uint64_t expected = first;
    for (uint64_t id = 0; flight_next(reader, &id, &event); expected++) {
        assert_int_equal(event.id, expected);
        assert_int_equal(event.launch.ordinal, 3 * expected);
    }
    assert_int_equal(expected, last + 1);
    if (info->analysed_id) {
        assert_true(flight_last_checkpoint(reader, &saved, &saved_count));
        assert_memory_equal(saved, "state", 5);
    }
    flight_reader_close(reader);
}

static void test_packed(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t count, analysed_id;
        bool closed;
        uint64_t keep, first, left_out;
    } rows[] = {
        { "all is kept", 100, 100, true, 0, 1, 0 },
        { "the newest are kept", 100, 100, true, 10, 91, 90 },
        { "a wrapped ring", 1000, 1000, true, 10, 991, 246 },
        { "a wrapped ring, all of it", 1000, 1000, true, 0, 745, 0 },
        { "more is wanted than there is", 100, 100, true, 5000, 1, 0 },
        { "as many as there are", 100, 100, true, 100, 1, 0 },
        { "what is left out was analysed", 100, 90, true, 10, 91, 90 },
        { "what would be left out was not", 100, 89, true, 10, 1, 0 },
        { "nothing was analysed", 100, 0, true, 10, 1, 0 },
        { "events were lost", 1000, 500, true, 10, 745, 0 },
        { "the process died", 100, 100, false, 10, 1, 0 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct scene scene;
        scene_init(&scene);
        record(&scene, rows[i].count, rows[i].analysed_id, rows[i].closed);
        print_message("%s\n", rows[i].name);
        check_packed(&scene, rows[i].keep, rows[i].first, rows[i].count, rows[i].left_out);
        temp_folder_release(&scene.folder);
    }
}

/* zstd -d gives the original, byte for byte, where all is kept. */
static void test_same_bytes(void **state)
{
    (void)state;
    struct scene scene;
    struct text plain, frame;
    struct stat info;
    uint8_t *expanded;
    uint64_t count;
    scene_init(&scene);
    record(&scene, 700, 700, true);
    CHECK_OK(flight_pack(scene.plain.text, scene.packed.text, 0, &scene.err), &scene.err);
    text_init(&plain);
    text_init(&frame);
    temp_folder_read(&scene.folder, "flight", &plain);
    temp_folder_read(&scene.folder, "flight.zst", &frame);
    assert_true(frame.length * 4 < plain.length);
    CHECK_OK(compress_expand(frame.bytes, frame.length, plain.length, "x", &expanded, &count,
                             &scene.err),
             &scene.err);
    assert_int_equal(count, plain.length);
    assert_memory_equal(expanded, plain.bytes, plain.length);
    free(expanded);
    assert_int_equal(stat(scene.packed.text, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
    /* Packing is not for what is packed. */
    struct temp_path again = temp_folder_path(&scene.folder, "again");
    CHECK_FAILS(flight_pack(scene.packed.text, again.text, 0, &scene.err), STATUS_BAD_FILE,
                &scene.err);
    assert_false(temp_folder_has(&scene.folder, "again"));
    text_release(&plain);
    text_release(&frame);
    temp_folder_release(&scene.folder);
}

static void test_damaged(void **state)
{
    (void)state;
    struct scene scene;
    struct text frame;
    struct flight_reader *reader;
    scene_init(&scene);
    record(&scene, 300, 300, true);
    CHECK_OK(flight_pack(scene.plain.text, scene.packed.text, 100, &scene.err), &scene.err);
    text_init(&frame);
    temp_folder_read(&scene.folder, "flight.zst", &frame);
    static const size_t cuts[] = { 0, 3, 4, 12, 100, 1000 };
    for (size_t i = 0; i < COUNT_OF(cuts); i++) {
        temp_folder_write(&scene.folder, "flight.zst", frame.bytes, cuts[i]);
        assert_true(flight_open(scene.packed.text, &reader, &scene.err) != STATUS_OK);
        check_contains("the error", scene.err.text, "flight.zst");
    }
    frame.bytes[frame.length / 2] ^= 1;
    temp_folder_write(&scene.folder, "flight.zst", frame.bytes, frame.length);
    CHECK_FAILS(flight_open(scene.packed.text, &reader, &scene.err), STATUS_BAD_FILE, &scene.err);
    text_release(&frame);
    temp_folder_release(&scene.folder);
}

/* A first event to keep that the file does not have hides nothing and breaks nothing. */
static void test_planted_first(void **state)
{
    (void)state;
    static const uint64_t planted[] = { 0, 1, 50, 100, 101, UINT64_MAX };
    for (size_t i = 0; i < COUNT_OF(planted); i++) {
        struct scene scene;
        struct text text;
        struct flight_reader *reader;
        scene_init(&scene);
        record(&scene, 100, 100, true);
        text_init(&text);
        temp_folder_read(&scene.folder, "flight", &text);
        memcpy(text.bytes + FLIGHT_COUNTERS_OFFSET +
                   offsetof(struct flight_counters, first_kept_id),
               &planted[i], 8);
        CHECK_OK(flight_open_memory(text.bytes, text.length, "x", &reader, &scene.err), &scene.err);
        uint64_t first = planted[i] > 1 && planted[i] <= 100 ? planted[i] : 1;
        assert_int_equal(flight_info(reader)->first_id, first);
        assert_int_equal(flight_info(reader)->left_out_count, first - 1);
        flight_reader_close(reader);
        text_release(&text);
        temp_folder_release(&scene.folder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packed),
        cmocka_unit_test(test_same_bytes),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_planted_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
