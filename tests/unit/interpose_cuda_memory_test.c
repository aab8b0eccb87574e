/* interpose_cuda_memory_test.c - calls of the CUDA driver that allocate, map and register memory,
 * as events. */
#include "interpose_cuda.h"

static void test_memory(void **state)
{
    (void)state;
    static const struct {
        uint32_t make, drop;
        uint16_t made, dropped; /* flags besides EVENT_FOREIGN */
        const char *name;
    } rows[] = {
        { 243, 245, 0, EVENT_SYNCHRONOUS, "cuMemAlloc" },
        { 371, 245, 0, EVENT_SYNCHRONOUS, "cuMemAllocManaged" },
        /* No document says whether frees of pinned memory wait. */
        { 294, 38, EVENT_HOST_MEMORY, EVENT_HOST_MEMORY | EVENT_MAY_WAIT, "cuMemAllocHost" },
        { 39, 38, EVENT_HOST_MEMORY, EVENT_HOST_MEMORY | EVENT_MAY_WAIT, "cuMemHostAlloc" },
        { 271, 38, EVENT_HOST_MEMORY, EVENT_HOST_MEMORY | EVENT_MAY_WAIT, "cuMemHostAlloc" },
        { 598, 600, EVENT_STREAM_ORDERED | EVENT_BLOCKING, EVENT_STREAM_ORDERED | EVENT_BLOCKING,
          "cuMemAllocAsync" },
        { 599, 601, EVENT_STREAM_ORDERED | EVENT_BLOCKING, EVENT_STREAM_ORDERED | EVENT_BLOCKING,
          "cuMemAllocAsync" },
        /* Memory of a pool that a plain free gives back: that free does not wait. */
        { 598, 245, EVENT_STREAM_ORDERED | EVENT_BLOCKING, 0, "cuMemAllocAsync" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        uint64_t address = 0x700000;
        struct args_alloc asked = { &address, 640, STREAM };
        struct event event = tell(rows[i].make, &asked, 0);
        assert_int_equal(event.kind, EVENT_BUFFER_CREATE);
        assert_string_equal(event.op, rows[i].name);
        assert_int_equal(event_bytes(&event), 640);
        assert_int_equal(event.accesses[0].address, 0x700000);
        bool unknown = strstr(rows[i].name, "Managed") || strstr(rows[i].name, "Host");
        assert_int_equal(event.flags, EVENT_FOREIGN | rows[i].made | (unknown ? 0 : EVENT_FRESH));
        struct args_pair freed = { address, STREAM };
        event = tell(rows[i].drop, &freed, 0);
        assert_int_equal(event.kind, EVENT_BUFFER_DESTROY);
        assert_int_equal(event.check, EVENT_CHECK_NONE);
        assert_int_equal(event_bytes(&event), 640);
        assert_int_equal(event.flags, EVENT_FOREIGN | rows[i].dropped);
    }
}

static void test_more_memory(void **state)
{
    (void)state;
    uint64_t address = 0x800000, null = 0;
    size_t pitch = 512;
    struct args_alloc_pool pooled = { &address, 100, 0x9000, STREAM };
    struct event event = tell(611, &pooled, 0);
    assert_string_equal(event.op, "cuMemAllocFromPoolAsync");
    assert_true(event.flags & EVENT_STREAM_ORDERED);
    drop(600, address);
    /* The rows take what the driver says, not what was asked for. */
    struct args_alloc_pitch pitched = { &address, &pitch, 500, 10, 4 };
    event = tell(244, &pitched, 0);
    assert_int_equal(event_bytes(&event), 5120);
    drop(FREE, address);
    pitch = SIZE_MAX; /* makes no sense: what was asked for stands */
    event = tell(244, &pitched, 0);
    assert_int_equal(event_bytes(&event), 5000);
    drop(FREE, address);
    /* An allocation that failed is no memory. */
    struct args_alloc failing = { &address, 64, 0 };
    event = tell(ALLOC, &failing, 2);
    assert_int_equal(event.outcome, EVENT_FAILED);
    assert_int_equal(event.access_count, 0);
    event = tell(FREE, &address, 1);
    assert_int_equal(event.check, EVENT_CHECK_GENERATION); /* the one that was there before */
    /* Nothing is freed at address 0. */
    tell_named(FREE, &null, 0, NULL);
    nothing_reported();
}

/* Two mappings side by side are one memory for a copy; an unmap may name both. */
static void test_mappings(void **state)
{
    (void)state;
    enum { MAP = 551, UNMAP = 552, AT = 0x900000 };
    struct args_range first = { AT, 4096 }, second = { AT + 4096, 4096 }, both = { AT, 8192 };
    assert_int_equal(tell(MAP, &first, 0).accesses[0].address, AT);
    assert_int_equal(tell(MAP, &second, 0).buffer.bytes, 4096);
    struct args_copy across = { host_address(), AT + 2048, 4096, 0 };
    assert_int_equal(tell(278, &across, 0).check, EVENT_CHECK_NONE);
    tell_named(UNMAP, &both, 0, NULL);
    struct event event;
    uint64_t bytes = 0;
    while (next(&event)) {
        assert_int_equal(event.kind, EVENT_BUFFER_DESTROY);
        assert_int_equal(event.check, EVENT_CHECK_NONE);
        bytes += event.accesses[0].bytes;
    }
    assert_int_equal(bytes, 8192);
    assert_int_equal(tell(278, &across, 1).check, EVENT_CHECK_GENERATION);
}

/* Memory of the program's own, registered: twice is refused, and no sign of a lost device. */
static void test_registered(void **state)
{
    (void)state;
    static unsigned char memory[256];
    enum { REGISTER = 379, UNREGISTER = 302, ALREADY = 712, NOT_THERE = 713 };
    struct args_range range = { (uint64_t)(uintptr_t)memory, sizeof(memory) };
    struct event event = tell(REGISTER, &range, 0);
    assert_int_equal(event.kind, EVENT_BUFFER_CREATE);
    assert_true(event.flags & EVENT_HOST_MEMORY);
    event = tell(REGISTER, &range, ALREADY);
    assert_int_equal(event.outcome, EVENT_FAILED);
    assert_int_equal(event.check, EVENT_CHECK_NONE);
    event = tell(UNREGISTER, &range, 0);
    assert_int_equal(event.check, EVENT_CHECK_NONE);
    event = tell(UNREGISTER, &range, NOT_THERE);
    assert_int_equal(event.check, EVENT_CHECK_GENERATION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_more_memory),
        IN_SCENE(test_mappings),
        cmocka_unit_test(test_registered),
    };
    return cmocka_run_group_tests(tests, open_recording, close_recording);
}
