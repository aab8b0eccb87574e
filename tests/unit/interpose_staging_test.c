/* interpose_staging_test.c - pinned memory that changes while a copy from it is queued: reported
 * where the program did not know the copy was done, and not where it may change rightly. */
#include "test.h"

#include "event/flight.h"
#include "interpose/interpose.h"
#include "temp_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BYTES 4096u
#define DEVICE_BASE UINT64_C(0x700000000000)

static bool never_fatal(int32_t code)
{
    (void)code;
    return false;
}

static int32_t nothing_to_wait_for(void)
{
    return 0;
}

static const struct interpose_backend backend = { "test", INTERPOSE_CUDA, never_fatal,
                                                  nothing_to_wait_for, NULL };

/* Streams that do not wait for the default stream, one that does, and the default stream. */
static const struct interpose_stream first = { 0, 0x100 }, second = { 0, 0x200 },
                                     blocking = { 0, 0x300 },
                                     legacy = { 0, INTERPOSE_STREAM_LEGACY };

static struct interpose *trace;
static uint8_t memory[32][BYTES]; /* "pinned", one for each row */
static uint8_t *pinned;
static uint64_t device;

static void allocate(uint64_t address, enum interpose_memory kind)
{
    struct interpose_call call;
    interpose_alloc_begin(trace, &call, "alloc", kind, BYTES, NULL);
    interpose_alloc_end(trace, &call, address, 0);
}

static void copy(enum interpose_direction direction, uint64_t target, uint64_t source,
                 const struct interpose_stream *stream)
{
    struct interpose_call call;
    struct interpose_copy what = { .direction = direction,
                                   .source = source,
                                   .target = target,
                                   .bytes = BYTES,
                                   .async = true,
                                   .stream = stream };
    interpose_copy_begin(trace, &call, "copy", &what);
    interpose_end(trace, &call, 0);
}

static void upload(const struct interpose_stream *stream)
{
    copy(INTERPOSE_TO_DEVICE, device, (uintptr_t)pinned, stream);
}

static void launch(const struct interpose_stream *stream, const void *pointer)
{
    struct interpose_call call;
    struct interpose_parameter parameter = { &pointer, sizeof(pointer), 0 };
    struct interpose_launch what = { .kernel = "kernel",
                                     .function = 7,
                                     .parameters = &parameter,
                                     .parameter_count = 1,
                                     .stream = stream };
    interpose_launch_begin(trace, &call, "launch", &what);
    interpose_end(trace, &call, 0);
}

static void synchronise(const struct interpose_stream *stream)
{
    struct interpose_call call;
    interpose_sync_begin(trace, &call, "sync", stream);
    interpose_end(trace, &call, 0);
}

/* `to` goes on only after what `from` was given so far. */
static void hand_over(const struct interpose_stream *from, const struct interpose_stream *to)
{
    struct interpose_call call;
    interpose_record_begin(trace, &call, "record", 0x9000, from);
    interpose_end(trace, &call, 0);
    interpose_wait_begin(trace, &call, "wait", 0x9000, to);
    interpose_end(trace, &call, 0);
}

static void rewrite(void)
{
    memset(pinned, pinned[0] + 1, BYTES);
}

static void rewritten(void)
{
    upload(&first);
    rewrite();
    synchronise(&first);
}

static void rewritten_after_wait(void)
{
    upload(&first);
    synchronise(&first);
    rewrite();
    synchronise(&first);
}

static void rewritten_after_other_wait(void)
{
    upload(&first);
    synchronise(&second);
    rewrite();
    synchronise(&first);
}

static void rewritten_after_query(void)
{
    upload(&first);
    interpose_query_done(trace, "query", 0, &first);
    rewrite();
    synchronise(&first);
}

static void handed_over_and_waited_for(void)
{
    upload(&first);
    hand_over(&first, &second);
    synchronise(&second);
    rewrite();
    synchronise(&first);
}

static void handed_over_and_rewritten(void)
{
    upload(&first);
    hand_over(&first, &second);
    rewrite();
    synchronise(&second);
}

static void handed_over_before(void)
{
    hand_over(&first, &second);
    upload(&first);
    synchronise(&second);
    rewrite();
    synchronise(&first);
}

static void default_stream_waited_for(void)
{
    upload(&blocking);
    launch(&legacy, NULL);
    synchronise(&legacy);
    rewrite();
    synchronise(&blocking);
}

static void default_stream_and_one_that_does_not_wait(void)
{
    upload(&first);
    launch(&legacy, NULL);
    synchronise(&legacy);
    rewrite();
    synchronise(&first);
}

static void host_function_first(void)
{
    interpose_hidden_order(trace, "host function", &first);
    upload(&first);
    rewrite();
    synchronise(&first);
}

static void copy_out_first(void)
{
    copy(INTERPOSE_TO_HOST, (uintptr_t)pinned, device, &second);
    upload(&first);
    rewrite();
    synchronise(&first);
}

static void copy_out_behind(void)
{
    upload(&first);
    copy(INTERPOSE_TO_HOST, (uintptr_t)pinned, device, &first);
    rewrite();
    synchronise(&first);
}

static void copy_out_behind_too_late(void)
{
    upload(&first);
    rewrite();
    copy(INTERPOSE_TO_HOST, (uintptr_t)pinned, device, &first);
    synchronise(&first);
}

static void copy_out_done_before(void)
{
    copy(INTERPOSE_TO_HOST, (uintptr_t)pinned, device, &second);
    synchronise(&second);
    rewritten();
}

static void kernel_first(void)
{
    launch(&second, pinned);
    upload(&first);
    rewrite();
    synchronise(&first);
}

static void graph_first(void)
{
    struct interpose_call call;
    interpose_graph_launch_begin(trace, &call, "graph", 0x8000, &second);
    interpose_end(trace, &call, 0);
    upload(&first);
    rewrite();
    synchronise(&first);
}

/* More writes than can be kept: silence, not an accusation; and all is well after a whole wait. */
static void too_many_writes(void)
{
    for (uint64_t i = 0; i < 1000; i++)
        copy(INTERPOSE_TO_HOST, (uintptr_t)pinned + i, device, &second);
    rewritten();
}

static void too_many_copies(void)
{
    for (int i = 0; i < 1000; i++)
        upload(&first);
    rewrite();
    synchronise(&first);
}

static uint8_t flag[BYTES]; /* "mapped" memory, that a kernel writes and the host reads */

static void flag_behind(void)
{
    upload(&first);
    launch(&first, flag);
    rewrite();
    synchronise(&first);
}

static void flag_behind_rewritten_before(void)
{
    upload(&first);
    rewrite();
    launch(&first, flag);
    synchronise(&first);
}

static void flag_of_another_stream(void)
{
    upload(&first);
    launch(&second, flag);
    rewrite();
    synchronise(&first);
    synchronise(&second);
}

static void flag_first(void)
{
    launch(&first, flag);
    upload(&first);
    rewrite();
    synchronise(&first);
}

static void flag_first_waited_for(void)
{
    launch(&first, flag);
    synchronise(&first);
    rewritten();
}

static void flag_first_elsewhere(void)
{
    launch(&second, flag);
    hand_over(&second, &first);
    upload(&first);
    rewrite();
    synchronise(&first);
}

static void other_kernel_behind(void)
{
    upload(&first);
    launch(&first, (const void *)(uintptr_t)device);
    rewrite();
    synchronise(&first);
}

static void may_wait_behind(void)
{
    upload(&first);
    copy(INTERPOSE_TO_HOST, UINT64_C(0x5000), device, &first); /* pageable */
    rewrite();
    synchronise(&first);
}

/* Whether it is reported, and how: CERTAIN, or with the host perhaps knowing that the copy was
 * done. */
enum reported { SILENT, CERTAIN, PERHAPS };

static const struct {
    const char *name;
    void (*run)(void);
    enum reported reported;
} rows[] = {
    { "rewritten", rewritten, CERTAIN },
    { "rewritten after the wait", rewritten_after_wait, SILENT },
    { "rewritten after another wait", rewritten_after_other_wait, CERTAIN },
    { "rewritten after a query", rewritten_after_query, SILENT },
    { "handed over, waited for there", handed_over_and_waited_for, SILENT },
    { "handed over, rewritten before", handed_over_and_rewritten, CERTAIN },
    { "handed over before the copy", handed_over_before, CERTAIN },
    { "default stream waited for", default_stream_waited_for, SILENT },
    { "default stream, no wait", default_stream_and_one_that_does_not_wait, CERTAIN },
    { "host function first", host_function_first, SILENT },
    { "copy out first", copy_out_first, SILENT },
    { "copy out first, waited for", copy_out_done_before, CERTAIN },
    { "copy out after it", copy_out_behind, SILENT },
    { "copy out after it, rewritten", copy_out_behind_too_late, CERTAIN },
    { "kernel first", kernel_first, SILENT },
    { "graph first", graph_first, SILENT },
    { "too many writes", too_many_writes, SILENT },
    { "after too many writes", rewritten, CERTAIN },
    { "too many copies", too_many_copies, CERTAIN },
    { "flag after it", flag_behind, PERHAPS },
    { "flag after it, rewritten before", flag_behind_rewritten_before, CERTAIN },
    { "flag of another stream", flag_of_another_stream, CERTAIN },
    { "flag first", flag_first, PERHAPS },
    { "flag first, waited for", flag_first_waited_for, CERTAIN },
    { "flag first, elsewhere", flag_first_elsewhere, PERHAPS },
    { "another kernel after it", other_kernel_behind, CERTAIN },
    { "a call that may wait after it", may_wait_behind, PERHAPS },
};
#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

/* How each row's memory was reported to have changed, the most certain of several. */
static void read_reported(const struct temp_folder *folder, enum reported ret_reported[ROW_COUNT])
{
    char name[64];
    struct flight_reader *reader;
    struct error err;
    struct event event;
    uint64_t id = 0;
    snprintf(name, sizeof(name), "%ld.test.flight", (long)getpid());
    CHECK_OK(flight_open(temp_folder_path(folder, name).text, &reader, &err), &err);
    while (flight_next(reader, &id, &event))
        for (size_t i = 0; i < ROW_COUNT; i++)
            if (event.kind == EVENT_SOURCE_CHANGED && event.phase == EVENT_END &&
                event.source_change.address == (uintptr_t)memory[i] && ret_reported[i] != CERTAIN)
                ret_reported[i] = event.flags & EVENT_MAY_TELL ? PERHAPS : CERTAIN;
    flight_reader_close(reader);
}

static void test_rows(void **state)
{
    (void)state;
    struct temp_folder folder;
    enum reported reported[ROW_COUNT] = { SILENT };
    temp_folder_init(&folder);
    assert_int_equal(setenv(INTERPOSE_VARIABLE_FOLDER, folder.path, 1), 0);
    assert_int_equal(setenv(INTERPOSE_VARIABLE_RECORDS, "16384", 1), 0);
    trace = interpose_start(&backend, "a device");
    assert_non_null(trace);
    interpose_stream_created(trace, "create", &first, false);
    interpose_stream_created(trace, "create", &second, false);
    interpose_stream_created(trace, "create", &blocking, true);
    allocate((uintptr_t)flag, INTERPOSE_PINNED);
    for (size_t i = 0; i < ROW_COUNT; i++) {
        pinned = memory[i];
        device = DEVICE_BASE + i * BYTES;
        allocate((uintptr_t)pinned, INTERPOSE_PINNED);
        allocate(device, INTERPOSE_DEVICE);
        rows[i].run();
        synchronise(NULL);
    }
    interpose_stop(trace);
    read_reported(&folder, reported);
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (reported[i] != rows[i].reported)
            fail_msg("%s: expected %d, found %d", rows[i].name, rows[i].reported, reported[i]);
    temp_folder_release(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_rows) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
