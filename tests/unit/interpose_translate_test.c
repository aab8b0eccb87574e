/* interpose_translate_test.c - calls of a foreign program become events: which ranges of which
 * memory, on which stream, and what is said of a call that is wrong. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "test.h"

#include "event/flight.h"
#include "interpose/interpose_impl.h"
#include "temp_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static bool is_fatal(int32_t code)
{
    return code == 700;
}

static int32_t sync_code;
static unsigned sync_count;
static int32_t synchronise(void)
{
    sync_count++;
    return sync_code;
}

static const struct interpose_backend backend = { "test", INTERPOSE_CUDA, is_fatal, synchronise };

struct fixture {
    struct temp_folder folder;
    struct interpose *door;
    struct interpose_call call;
    struct flight_reader *reader;
};

static struct fixture begin(void)
{
    struct fixture fixture = { .reader = NULL };
    temp_folder_init(&fixture.folder);
    fixture.door = interpose_open(&backend, fixture.folder.path, "test", 1024);
    assert_non_null(fixture.door);
    return fixture;
}

/* The recording is over: its events can be read. */
static void stop(struct fixture *fixture)
{
    char path[512];
    struct error err;
    interpose_close(fixture->door);
    fixture->door = NULL;
    snprintf(path, sizeof(path), "%s/%ld.test.flight", fixture->folder.path, (long)getpid());
    CHECK_OK(flight_open(path, &fixture->reader, &err), &err);
}

static struct event event_at(const struct fixture *fixture, uint64_t id)
{
    struct event event = { 0 };
    uint64_t at = id;
    assert_true(flight_next(fixture->reader, &at, &event));
    assert_int_equal(event.id, id);
    return event;
}

static void end(struct fixture *fixture)
{
    flight_reader_close(fixture->reader);
    temp_folder_release(&fixture->folder);
}

static void alloc(struct fixture *fixture, enum interpose_memory memory, uint64_t address,
                  uint64_t bytes)
{
    interpose_alloc_begin(fixture->door, &fixture->call, "cuMemAlloc_v2", memory, bytes, NULL);
    interpose_alloc_end(fixture->door, &fixture->call, address, 0);
}

static void copy(struct fixture *fixture, const struct interpose_copy *asked, int32_t code)
{
    interpose_copy_begin(fixture->door, &fixture->call, "cuMemcpyHtoDAsync_v2_ptsz", asked);
    interpose_end(fixture->door, &fixture->call, code);
}

enum { DEVICE = 0x100000, MORE = 0x200000 };
static const struct interpose_stream one = { 1, 0x51 }, two = { 1, 0x52 };

/* ---- Memory and copies ---------------------------------------------------------------------- */

static void test_copy(void **state)
{
    (void)state;
    struct fixture fixture = begin();
    static unsigned char host[64];
    uint64_t address = (uint64_t)(uintptr_t)host;
    alloc(&fixture, INTERPOSE_DEVICE, DEVICE, 4096);
    alloc(&fixture, INTERPOSE_PINNED, address, sizeof(host));
    struct interpose_copy asked = { .direction = INTERPOSE_TO_DEVICE,
                                    .source = address,
                                    .target = DEVICE + 16,
                                    .bytes = 64,
                                    .async = true,
                                    .stream = &one };
    copy(&fixture, &asked, 0);
    asked.source = 0x7000; /* in no allocation: pageable */
    copy(&fixture, &asked, 0);
    stop(&fixture);
    struct event event = event_at(&fixture, 1);
    assert_int_equal(event.kind, EVENT_BUFFER_CREATE);
    assert_string_equal(event.op, "cuMemAlloc");
    assert_string_equal(event.scope.tensor, "cuMemAlloc#1");
    assert_int_equal(event.accesses[0].address, DEVICE);
    event = event_at(&fixture, 3);
    assert_int_equal(event.kind, EVENT_COPY_IN);
    assert_string_equal(event.op, "cuMemcpyHtoDAsync");
    assert_int_equal(event.flags, EVENT_FOREIGN | EVENT_BLOCKING);
    assert_int_equal(event.access_count, 2);
    assert_int_equal(event.accesses[0].buffer_index, 1);
    assert_int_equal(event.accesses[0].address, DEVICE + 16);
    assert_int_equal(event.accesses[0].mode, EVENT_WRITE);
    assert_int_equal(event.accesses[1].buffer_index, 2);
    assert_int_equal(event.accesses[1].mode, EVENT_READ);
    assert_int_equal(event.check, EVENT_CHECK_NONE);
    event = event_at(&fixture, 4);
    assert_true(event.flags & EVENT_PAGEABLE);
    assert_int_equal(event.access_count, 1);
    end(&fixture);
}

struct wrong_row {
    struct interpose_copy copy;
    enum event_check check;
    uint64_t expected, found;
};

static void test_wrong_copies(void **state)
{
    (void)state;
    static const struct wrong_row rows[] = {
        { { .direction = INTERPOSE_TO_HOST, .source = DEVICE + 100, .target = 1, .bytes = 4096 },
          EVENT_CHECK_VIEW_END,
          4096,
          4196 },
        { { .direction = INTERPOSE_TO_HOST, .source = DEVICE, .target = 1, .bytes = UINT64_MAX },
          EVENT_CHECK_VIEW_END,
          4096,
          UINT64_MAX },
        { { .direction = INTERPOSE_WITHIN, .source = DEVICE, .target = MORE, .bytes = 1 },
          EVENT_CHECK_GENERATION,
          1,
          2 },
        { { .direction = INTERPOSE_TO_DEVICE, .source = DEVICE, .target = 0x9000, .bytes = 8 },
          EVENT_CHECK_DIRECTION,
          EVENT_SIDE_HOST,
          EVENT_SIDE_DEVICE },
        { { .direction = INTERPOSE_TO_HOST, .source = 0x9000, .target = DEVICE, .bytes = 8 },
          EVENT_CHECK_DIRECTION,
          EVENT_SIDE_HOST,
          EVENT_SIDE_DEVICE },
        /* Rows with a pitch: the last byte of the last one. */
        { { .direction = INTERPOSE_TO_HOST,
            .source = DEVICE,
            .target = 1,
            .bytes = 10,
            .rows = 9,
            .source_pitch = 512,
            .target_pitch = 10 },
          EVENT_CHECK_VIEW_END,
          4096,
          4106 },
        { { .direction = INTERPOSE_TO_HOST,
            .source = DEVICE,
            .target = 1,
            .bytes = 10,
            .rows = 8,
            .source_pitch = 512,
            .target_pitch = 10 },
          EVENT_CHECK_NONE,
          0,
          0 },
        { { .direction = INTERPOSE_ANY, .source = DEVICE, .target = 0x9000, .bytes = 4096 },
          EVENT_CHECK_NONE,
          0,
          0 },
    };
    struct fixture fixture = begin();
    alloc(&fixture, INTERPOSE_DEVICE, DEVICE, 4096);
    alloc(&fixture, INTERPOSE_DEVICE, MORE, 4096);
    interpose_free_begin(fixture.door, &fixture.call, "cuMemFree_v2", INTERPOSE_DEVICE, MORE, 0,
                         NULL);
    interpose_end(fixture.door, &fixture.call, 0);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        copy(&fixture, &rows[i].copy, 1);
    stop(&fixture);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct event event = event_at(&fixture, 4 + i);
        assert_int_equal(event.check, rows[i].check);
        assert_int_equal(event.expected, rows[i].expected);
        assert_int_equal(event.found, rows[i].found);
        assert_int_equal(event.outcome, EVENT_FAILED);
    }
    assert_int_equal(event_at(&fixture, 4 + COUNT_OF(rows) - 1).kind, EVENT_COPY_OUT);
    end(&fixture);
}

static void test_frees(void **state)
{
    (void)state;
    struct fixture fixture = begin();
    alloc(&fixture, INTERPOSE_DEVICE, DEVICE, 4096);
    static const struct {
        uint64_t address;
        int32_t code;
        enum event_check check;
    } rows[] = {
        { DEVICE + 8, 1, EVENT_CHECK_ALIGNMENT }, { 0x5000, 1, EVENT_CHECK_HANDLE },
        { DEVICE, 1, EVENT_CHECK_NONE }, /* the runtime refused: it is still there */
        { DEVICE, 0, EVENT_CHECK_NONE },          { DEVICE, 1, EVENT_CHECK_GENERATION },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        interpose_free_begin(fixture.door, &fixture.call, "cuMemFree_v2", INTERPOSE_DEVICE,
                             rows[i].address, 0, NULL);
        interpose_end(fixture.door, &fixture.call, rows[i].code);
    }
    /* Allocated again over memory whose free was not seen: that is recorded. */
    alloc(&fixture, INTERPOSE_DEVICE, DEVICE, 64);
    alloc(&fixture, INTERPOSE_DEVICE, DEVICE - 32, 64);
    stop(&fixture);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_int_equal(event_at(&fixture, 2 + i).check, rows[i].check);
    struct event unseen = event_at(&fixture, 9);
    assert_int_equal(unseen.kind, EVENT_BUFFER_DESTROY);
    assert_int_equal(unseen.accesses[0].buffer_index, 2);
    end(&fixture);
}

/* Mappings side by side are one range of memory; allocations are not. */
static void test_neighbours(void **state)
{
    (void)state;
    struct fixture fixture = begin();
    alloc(&fixture, INTERPOSE_MAPPED, DEVICE, 4096);
    alloc(&fixture, INTERPOSE_MAPPED, DEVICE + 4096, 4096);
    alloc(&fixture, INTERPOSE_DEVICE, MORE, 4096);
    alloc(&fixture, INTERPOSE_DEVICE, MORE + 4096, 4096);
    struct interpose_copy asked = {
        .direction = INTERPOSE_TO_HOST, .source = DEVICE, .target = 1, .bytes = 8192
    };
    copy(&fixture, &asked, 0);
    asked.bytes++;
    copy(&fixture, &asked, 0);
    asked = (struct interpose_copy){
        .direction = INTERPOSE_TO_HOST, .source = MORE, .target = 1, .bytes = 4097
    };
    copy(&fixture, &asked, 0);
    /* One unmap of both. */
    interpose_free_begin(fixture.door, &fixture.call, "cuMemUnmap", INTERPOSE_MAPPED, DEVICE, 8192,
                         NULL);
    interpose_end(fixture.door, &fixture.call, 0);
    asked.source = DEVICE + 4096;
    asked.bytes = 1;
    copy(&fixture, &asked, 0);
    stop(&fixture);
    assert_int_equal(event_at(&fixture, 5).check, EVENT_CHECK_NONE);
    assert_int_equal(event_at(&fixture, 6).check, EVENT_CHECK_VIEW_END);
    assert_int_equal(event_at(&fixture, 7).check, EVENT_CHECK_VIEW_END);
    uint64_t last = flight_info(fixture.reader)->last_id;
    assert_int_equal(event_at(&fixture, last).check, EVENT_CHECK_GENERATION);
    end(&fixture);
}

/* ---- Launches ------------------------------------------------------------------------------- */

static struct event launch(struct fixture *fixture, const void *bytes, size_t count)
{
    struct interpose_parameter parameter = { bytes, count };
    struct interpose_launch asked = { .kernel = "_ZN2at6native18elementwise_kernelILi4EEEvi",
                                      .function = 77,
                                      .parameters = &parameter,
                                      .parameter_count = 1,
                                      .stream = &one };
    interpose_launch_begin(fixture->door, &fixture->call, "cuLaunchKernel", &asked);
    struct event event = fixture->call.event;
    interpose_end(fixture->door, &fixture->call, 0);
    return event;
}

static void test_pointers(void **state)
{
    (void)state;
    struct fixture fixture = begin();
    alloc(&fixture, INTERPOSE_DEVICE, DEVICE, 65536);
    struct {
        uint32_t number, other;
        uint64_t pointer, nothing, inside;
        uint32_t tail; /* too short for a pointer */
    } parameters = { 1, 2, DEVICE, 12345, DEVICE + 4096, 3 };
    struct event event = launch(&fixture, &parameters, sizeof(parameters) - 4);
    assert_int_equal(event.access_count, 2);
    assert_int_equal(event.accesses[0].address, DEVICE);
    assert_int_equal(event.accesses[0].bytes, 65536);
    assert_int_equal(event.accesses[0].mode, EVENT_UPDATE | EVENT_MAYBE);
    /* From now on it is known that the allocation is cut into parts. */
    assert_int_equal(event.accesses[1].address, DEVICE + 4096);
    assert_int_equal(event.accesses[1].bytes, 256);
    event = launch(&fixture, &parameters, sizeof(parameters));
    assert_int_equal(event.accesses[0].bytes, 256);
    assert_string_equal(event.op, "elementwise_kernel");
    assert_int_equal(event.launch.ordinal, 2);
    uint64_t many[20];
    for (size_t i = 0; i < COUNT_OF(many); i++)
        many[i] = DEVICE + 512 * i;
    event = launch(&fixture, many, sizeof(many));
    assert_int_equal(event.access_count, EVENT_ACCESS_LIMIT);
    assert_true(event.flags & EVENT_PARTIAL);
    stop(&fixture);
    char name[FLIGHT_NAME_BYTES];
    assert_true(flight_name(fixture.reader, event.launch.name_index, name));
    assert_string_equal(name, "_ZN2at6native18elementwise_kernelILi4EEEvi");
    end(&fixture);
}

static void test_names(void **state)
{
    (void)state;
    static const struct {
        const char *name, *shown;
    } rows[] = {
        { "plain", "plain" },
        { "_Z3addPfPKfi", "add" },
        { "_ZN2at6native18elementwise_kernelILi4EEEvi", "elementwise_kernel" },
        { "_ZN12_GLOBAL__N_13runEv", "run" },
        { "_Z", "_Z" },
        { "_Z99999999999999999999x", "_Z99999999999999999999x" },
        { "_Z5ab", "_Z5ab" },
        { "_ZN5ab", "_ZN5ab" },
        { "a_name_that_is_far_longer_than_the_field_it_goes_to", "a_name_that_is_far_long" },
        { "", "" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char op[EVENT_OP_BYTES];
        name_shorten(rows[i].name, op);
        assert_string_equal(op, rows[i].shown);
    }
}

/* A rerun waits after the launches of its window, and knows whose fault it is. */
static void test_narrow(void **state)
{
    (void)state;
    setenv(INTERPOSE_VARIABLE_NARROW, "2-3", 1);
    struct fixture fixture = begin();
    unsetenv(INTERPOSE_VARIABLE_NARROW);
    uint64_t nothing = 0;
    sync_count = 0;
    sync_code = 0;
    launch(&fixture, &nothing, sizeof(nothing));
    launch(&fixture, &nothing, sizeof(nothing));
    sync_code = 700;
    launch(&fixture, &nothing, sizeof(nothing));
    launch(&fixture, &nothing, sizeof(nothing));
    assert_int_equal(sync_count, 2);
    stop(&fixture);
    struct event fault = event_at(&fixture, 4);
    assert_int_equal(fault.kind, EVENT_FAULT);
    assert_int_equal(fault.cause_id, 3);
    assert_true(fault.flags & EVENT_CAUGHT);
    end(&fixture);
}

/* With the launch of another thread in between it may be either's. */
static void test_narrow_with_threads(void **state)
{
    (void)state;
    setenv(INTERPOSE_VARIABLE_NARROW, "1-3", 1);
    struct fixture fixture = begin();
    unsetenv(INTERPOSE_VARIABLE_NARROW);
    uint64_t nothing = 0;
    struct interpose_call other;
    struct interpose_launch asked = { .kernel = "other", .function = 9, .stream = &one };
    sync_code = 0;
    launch(&fixture, &nothing, sizeof(nothing));
    interpose_launch_begin(fixture.door, &other, "cuLaunchKernel", &asked);
    sync_code = 700;
    launch(&fixture, &nothing, sizeof(nothing));
    stop(&fixture);
    struct event fault = event_at(&fixture, 4);
    assert_int_equal(fault.kind, EVENT_FAULT);
    assert_int_equal(fault.cause_id, 0);
    assert_false(fault.flags & EVENT_CAUGHT);
    end(&fixture);
}

/* ---- Order ---------------------------------------------------------------------------------- */

static void sync_stream(struct fixture *fixture, const struct interpose_stream *stream,
                        int32_t code)
{
    interpose_sync_begin(fixture->door, &fixture->call, "cuStreamSynchronize", stream);
    interpose_end(fixture->door, &fixture->call, code);
}

static void test_streams(void **state)
{
    (void)state;
    struct fixture fixture = begin();
    struct interpose_stream legacy = { 1, INTERPOSE_STREAM_LEGACY };
    struct interpose_stream own = { 1, INTERPOSE_STREAM_PER_THREAD };
    interpose_stream_created(fixture.door, "cuStreamCreate", &two, false);
    sync_stream(&fixture, &one, 0);
    sync_stream(&fixture, &two, 0);
    sync_stream(&fixture, &legacy, 0);
    sync_stream(&fixture, &own, 0);
    sync_stream(&fixture, &one, 0);
    sync_stream(&fixture, NULL, 700);
    interpose_stream_destroy_begin(fixture.door, &fixture.call, "cuStreamDestroy_v2", &two);
    interpose_end(fixture.door, &fixture.call, 0);
    sync_stream(&fixture, &two, 0);
    interpose_stream_created(fixture.door, "cuStreamCreate", &two, true);
    sync_stream(&fixture, &two, 0);
    stop(&fixture);
    assert_int_equal(event_at(&fixture, 1).stream_index, 0);
    assert_int_equal(event_at(&fixture, 1).flags, EVENT_FOREIGN | EVENT_BLOCKING);
    assert_int_equal(event_at(&fixture, 2).flags, EVENT_FOREIGN);
    assert_int_equal(event_at(&fixture, 3).flags, EVENT_FOREIGN | EVENT_LEGACY_STREAM);
    assert_int_equal(event_at(&fixture, 4).stream_index, 3);
    assert_int_equal(event_at(&fixture, 5).stream_index, 0);
    struct event lost = event_at(&fixture, 6);
    assert_int_equal(lost.check, EVENT_CHECK_LOST);
    assert_true(lost.flags & EVENT_ALL_STREAMS);
    assert_int_equal(event_at(&fixture, 7).kind, EVENT_FAULT);
    assert_int_equal(event_at(&fixture, 9).check, EVENT_CHECK_HANDLE);
    assert_int_equal(event_at(&fixture, 10).check, EVENT_CHECK_NONE);
    assert_int_equal(event_at(&fixture, 10).flags, EVENT_FOREIGN | EVENT_BLOCKING);
    end(&fixture);
}

static void test_capture(void **state)
{
    (void)state;
    struct fixture fixture = begin();
    uint64_t nothing = 0;
    interpose_capture_begin(fixture.door, &fixture.call, "cuStreamBeginCapture_v2", &one);
    interpose_end(fixture.door, &fixture.call, 0);
    struct event event = launch(&fixture, &nothing, sizeof(nothing));
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
    event = launch(&fixture, &nothing, sizeof(nothing));
    assert_int_equal(event.launch.graph_id, 0);
    interpose_graph_changed(fixture.door, 0x6100);
    interpose_graph_launch_begin(fixture.door, &fixture.call, "cuGraphLaunch", 0x6100, &one);
    assert_int_equal(fixture.call.event.cause_id, 0);
    interpose_end(fixture.door, &fixture.call, 0);
    interpose_graph_destroyed(fixture.door, 0x6100);
    interpose_graph_destroyed(fixture.door, 0x6000);
    stop(&fixture);
    uint64_t last = flight_info(fixture.reader)->last_id;
    assert_int_equal(event_at(&fixture, last).kind, EVENT_GRAPH_DESTROY);
    assert_int_equal(event_at(&fixture, last).cause_id, 1);
    end(&fixture);
}

/* A pinned source that is rewritten before anybody waits; after the wait it may be. */
static void test_rewritten(void **state)
{
    (void)state;
    static unsigned char host[100000];
    struct fixture fixture = begin();
    uint64_t address = (uint64_t)(uintptr_t)host;
    alloc(&fixture, INTERPOSE_DEVICE, DEVICE, sizeof(host));
    alloc(&fixture, INTERPOSE_PINNED, address, sizeof(host));
    struct interpose_copy asked = { .direction = INTERPOSE_TO_DEVICE,
                                    .source = address,
                                    .target = DEVICE,
                                    .bytes = sizeof(host),
                                    .async = true,
                                    .stream = &one };
    copy(&fixture, &asked, 0);
    sync_stream(&fixture, &one, 0);
    memset(host, 1, sizeof(host));
    sync_stream(&fixture, &one, 0); /* not before this one: it was done */
    copy(&fixture, &asked, 0);
    memset(host, 2, sizeof(host));
    sync_stream(&fixture, &two, 0); /* another stream says nothing of it */
    sync_stream(&fixture, &one, 0);
    stop(&fixture);
    uint64_t changed = 0, count = 0;
    struct event event;
    for (uint64_t id = 0; flight_next(fixture.reader, &id, &event);)
        if (event.kind == EVENT_SOURCE_CHANGED) {
            changed = event.cause_id;
            count++;
        }
    assert_int_equal(count, 1);
    assert_int_equal(changed, 6);
    end(&fixture);
}

/* Registered memory that was unmapped without a call: it is recorded, and reading it is harmless.
 */
static void test_vanished(void **state)
{
    (void)state;
    struct fixture fixture = begin();
    size_t bytes = 1 << 16;
    void *host = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(host != MAP_FAILED);
    alloc(&fixture, INTERPOSE_DEVICE, DEVICE, bytes);
    alloc(&fixture, INTERPOSE_REGISTERED, (uint64_t)(uintptr_t)host, bytes);
    struct interpose_copy asked = { .direction = INTERPOSE_TO_DEVICE,
                                    .source = (uint64_t)(uintptr_t)host,
                                    .target = DEVICE,
                                    .bytes = bytes,
                                    .async = true,
                                    .stream = &one };
    copy(&fixture, &asked, 0);
    munmap(host, bytes);
    sync_stream(&fixture, &one, 0);
    stop(&fixture);
    struct event changed = event_at(&fixture, 5);
    assert_int_equal(changed.kind, EVENT_SOURCE_CHANGED);
    assert_int_equal(changed.cause_id, 3);
    assert_int_equal(changed.source_change.digest_now, 0);
    end(&fixture);
}

/* The same place gives the same stack, another place another one; and functions can be found. */
static __attribute__((noinline)) void call_here(struct fixture *fixture)
{
    sync_stream(fixture, &one, 0);
    __asm__ volatile(""); /* no tail call: the frame is part of the stack */
}

static void test_stacks(void **state)
{
    (void)state;
    struct fixture fixture = begin();
    volatile int times = 3; /* one place, three times: not unrolled */
    for (int i = 0; i < times; i++)
        call_here(&fixture);
    call_here(&fixture);
    stop(&fixture);
    uint32_t first = event_at(&fixture, 1).stack_index;
    assert_int_not_equal(first, 0);
    assert_int_equal(event_at(&fixture, 2).stack_index, first);
    assert_int_equal(event_at(&fixture, 3).stack_index, first);
    assert_int_not_equal(event_at(&fixture, 4).stack_index, first);
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
    end(&fixture);
}

static void test_nobody(void **state)
{
    (void)state;
    struct interpose_call call;
    struct interpose_copy asked = { .bytes = 1 };
    interpose_copy_begin(NULL, &call, "cuMemcpy", &asked);
    interpose_end(NULL, &call, 0);
    interpose_stop(NULL);
    unsetenv(INTERPOSE_VARIABLE_FOLDER);
    assert_null(interpose_start(&backend, "test"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copy),      cmocka_unit_test(test_wrong_copies),
        cmocka_unit_test(test_frees),     cmocka_unit_test(test_neighbours),
        cmocka_unit_test(test_pointers),  cmocka_unit_test(test_names),
        cmocka_unit_test(test_narrow),    cmocka_unit_test(test_narrow_with_threads),
        cmocka_unit_test(test_streams),   cmocka_unit_test(test_capture),
        cmocka_unit_test(test_rewritten), cmocka_unit_test(test_vanished),
        cmocka_unit_test(test_stacks),    cmocka_unit_test(test_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
