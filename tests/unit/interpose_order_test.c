/* interpose_order_test.c - what orders the calls of a foreign program, and what shows that it was
 * missing: streams, captures, sources that are rewritten or vanish, the stacks of calls. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "interpose_translate.h"

#include <string.h>
#include <sys/mman.h>

static void fixture_sync(struct fixture *fixture, const struct interpose_stream *stream,
                         int32_t code)
{
    interpose_sync_begin(fixture->door, &fixture->call, "cuStreamSynchronize", stream);
    interpose_end(fixture->door, &fixture->call, code);
}

static void test_streams(void **state)
{
    (void)state;
    struct fixture fixture = fixture_begin();
    struct interpose_stream legacy = { 1, INTERPOSE_STREAM_LEGACY };
    struct interpose_stream own = { 1, INTERPOSE_STREAM_PER_THREAD };
    interpose_stream_created(fixture.door, "cuStreamCreate", &two, false);
    fixture_sync(&fixture, &one, 0);
    fixture_sync(&fixture, &two, 0);
    fixture_sync(&fixture, &legacy, 0);
    fixture_sync(&fixture, &own, 0);
    fixture_sync(&fixture, &one, 0);
    fixture_sync(&fixture, NULL, 700);
    interpose_stream_destroy_begin(fixture.door, &fixture.call, "cuStreamDestroy_v2", &two);
    interpose_end(fixture.door, &fixture.call, 0);
    fixture_sync(&fixture, &two, 0);
    interpose_stream_created(fixture.door, "cuStreamCreate", &two, true);
    fixture_sync(&fixture, &two, 0);
    fixture_stop(&fixture);
    assert_int_equal(fixture_event(&fixture, 1).stream_index, 0);
    assert_int_equal(fixture_event(&fixture, 1).flags, EVENT_FOREIGN | EVENT_BLOCKING);
    assert_int_equal(fixture_event(&fixture, 2).flags, EVENT_FOREIGN);
    assert_int_equal(fixture_event(&fixture, 3).flags, EVENT_FOREIGN | EVENT_LEGACY_STREAM);
    assert_int_equal(fixture_event(&fixture, 4).stream_index, 3);
    assert_int_equal(fixture_event(&fixture, 5).stream_index, 0);
    struct event lost = fixture_event(&fixture, 6);
    assert_int_equal(lost.check, EVENT_CHECK_LOST);
    assert_true(lost.flags & EVENT_ALL_STREAMS);
    assert_int_equal(fixture_event(&fixture, 7).kind, EVENT_FAULT);
    assert_int_equal(fixture_event(&fixture, 9).check, EVENT_CHECK_HANDLE);
    assert_int_equal(fixture_event(&fixture, 10).check, EVENT_CHECK_NONE);
    assert_int_equal(fixture_event(&fixture, 10).flags, EVENT_FOREIGN | EVENT_BLOCKING);
    fixture_end(&fixture);
}

static void test_capture(void **state)
{
    (void)state;
    struct fixture fixture = fixture_begin();
    uint64_t nothing = 0;
    interpose_capture_begin(fixture.door, &fixture.call, "cuStreamBeginCapture_v2", &one);
    interpose_end(fixture.door, &fixture.call, 0);
    struct event event = fixture_launch(&fixture, &nothing, sizeof(nothing));
    assert_int_equal(event.launch.graph_id, 1);
    assert_int_equal(event.launch.ordinal, 0); /* was not run */
    /* The second stream joins by the mark. */
    interpose_record_begin(fixture.door, &fixture.call, "cuEventRecord", 9, &one);
    interpose_end(fixture.door, &fixture.call, 0);
    interpose_wait_begin(fixture.door, &fixture.call, "cuStreamWaitEvent", 9, &two);
    interpose_end(fixture.door, &fixture.call, 0);
    struct interpose_fill fill = { .target = DEVICE, .bytes = 4, .stream = &two };
    interpose_fill_begin(fixture.door, &fixture.call, "cuMemsetD8Async", &fill);
    assert_int_equal(fixture.call.event.copy.graph_id, 1);
    interpose_end(fixture.door, &fixture.call, 0);
    interpose_capture_end(fixture.door, &fixture.call, "cuStreamEndCapture", &one);
    interpose_capture_gave(fixture.door, &fixture.call, 0x6000);
    interpose_end(fixture.door, &fixture.call, 0);
    interpose_graph_instantiated(fixture.door, 0x6000, 0x6100);
    interpose_graph_launch_begin(fixture.door, &fixture.call, "cuGraphLaunch", 0x6100, &one);
    assert_int_equal(fixture.call.event.cause_id, 1);
    assert_int_equal(fixture.call.event.graph.epoch, 1);
    interpose_end(fixture.door, &fixture.call, 0);
    event = fixture_launch(&fixture, &nothing, sizeof(nothing));
    assert_int_equal(event.launch.graph_id, 0);
    interpose_graph_changed(fixture.door, 0x6100);
    interpose_graph_launch_begin(fixture.door, &fixture.call, "cuGraphLaunch", 0x6100, &one);
    assert_int_equal(fixture.call.event.cause_id, 0);
    interpose_end(fixture.door, &fixture.call, 0);
    interpose_graph_destroyed(fixture.door, 0x6100);
    interpose_graph_destroyed(fixture.door, 0x6000);
    fixture_stop(&fixture);
    uint64_t last = flight_info(fixture.reader)->last_id;
    assert_int_equal(fixture_event(&fixture, last).kind, EVENT_GRAPH_DESTROY);
    assert_int_equal(fixture_event(&fixture, last).cause_id, 1);
    fixture_end(&fixture);
}

/* A pinned source that is rewritten before anybody waits; after the wait it may be. */
static void test_rewritten(void **state)
{
    (void)state;
    static unsigned char host[100000];
    struct fixture fixture = fixture_begin();
    uint64_t address = (uint64_t)(uintptr_t)host;
    fixture_alloc(&fixture, INTERPOSE_DEVICE, DEVICE, sizeof(host));
    fixture_alloc(&fixture, INTERPOSE_PINNED, address, sizeof(host));
    struct interpose_copy asked = { .direction = INTERPOSE_TO_DEVICE,
                                    .source = address,
                                    .target = DEVICE,
                                    .bytes = sizeof(host),
                                    .async = true,
                                    .stream = &one };
    fixture_copy(&fixture, &asked, 0);
    fixture_sync(&fixture, &one, 0);
    memset(host, 1, sizeof(host));
    fixture_sync(&fixture, &one, 0); /* not before this one: it was done */
    fixture_copy(&fixture, &asked, 0);
    memset(host, 2, sizeof(host));
    fixture_sync(&fixture, &two, 0); /* another stream says nothing of it */
    fixture_sync(&fixture, &one, 0);
    fixture_stop(&fixture);
    uint64_t changed = 0, count = 0;
    struct event event;
    for (uint64_t id = 0; flight_next(fixture.reader, &id, &event);)
        if (event.kind == EVENT_SOURCE_CHANGED) {
            changed = event.cause_id;
            count++;
        }
    assert_int_equal(count, 1);
    assert_int_equal(changed, 6);
    fixture_end(&fixture);
}

/* Registered memory that was unmapped without a call: it is recorded, and reading it is harmless.
 */
static void test_vanished(void **state)
{
    (void)state;
    struct fixture fixture = fixture_begin();
    size_t bytes = 1 << 16;
    void *host = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(host != MAP_FAILED);
    fixture_alloc(&fixture, INTERPOSE_DEVICE, DEVICE, bytes);
    fixture_alloc(&fixture, INTERPOSE_REGISTERED, (uint64_t)(uintptr_t)host, bytes);
    struct interpose_copy asked = { .direction = INTERPOSE_TO_DEVICE,
                                    .source = (uint64_t)(uintptr_t)host,
                                    .target = DEVICE,
                                    .bytes = bytes,
                                    .async = true,
                                    .stream = &one };
    fixture_copy(&fixture, &asked, 0);
    munmap(host, bytes);
    fixture_sync(&fixture, &one, 0);
    fixture_stop(&fixture);
    struct event changed = fixture_event(&fixture, 5);
    assert_int_equal(changed.kind, EVENT_SOURCE_CHANGED);
    assert_int_equal(changed.cause_id, 3);
    assert_int_equal(changed.source_change.digest_now, 0);
    fixture_end(&fixture);
}

/* The same place gives the same stack, another place another one; and functions can be found. */
static __attribute__((noinline)) void call_here(struct fixture *fixture)
{
    fixture_sync(fixture, &one, 0);
    __asm__ volatile(""); /* no tail call: the frame is part of the stack */
}

static void test_stacks(void **state)
{
    (void)state;
    struct fixture fixture = fixture_begin();
    volatile int times = 3; /* one place, three times: not unrolled */
    for (int i = 0; i < times; i++)
        call_here(&fixture);
    call_here(&fixture);
    fixture_stop(&fixture);
    uint32_t first = fixture_event(&fixture, 1).stack_index;
    assert_int_not_equal(first, 0);
    assert_int_equal(fixture_event(&fixture, 2).stack_index, first);
    assert_int_equal(fixture_event(&fixture, 3).stack_index, first);
    assert_int_not_equal(fixture_event(&fixture, 4).stack_index, first);
    uint64_t frames[FLIGHT_STACK_FRAMES];
    size_t count;
    assert_true(flight_stack(fixture.reader, first, frames, &count));
    uint64_t here = (uint64_t)(uintptr_t)call_here;
    bool found = false;
    for (size_t i = 0; i < count; i++)
        found = found || frames[i] - here < 256;
    assert_true(found);
    struct flight_module module;
    assert_true(flight_module_at(fixture.reader, 0, &module));
    fixture_end(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streams),   cmocka_unit_test(test_capture),
        cmocka_unit_test(test_rewritten), cmocka_unit_test(test_vanished),
        cmocka_unit_test(test_stacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
