/* interpose_cuda_copies_test.c - copies and fills of the CUDA driver as events: their ranges, also
 * of rows, planes and arrays. */
#include "interpose_cuda.h"

enum { PLAIN = EVENT_LEGACY_STREAM, THREAD = EVENT_BLOCKING };

static void test_lines(void **state)
{
    (void)state;
    static const struct {
        uint32_t id;
        enum event_kind kind;
        uint16_t flags; /* of stream 0, and whether the host waits */
    } rows[] = {
        { 276, EVENT_COPY_IN, PLAIN | EVENT_SYNCHRONOUS },
        { 397, EVENT_COPY_IN, THREAD | EVENT_SYNCHRONOUS },
        { 277, EVENT_COPY_IN, PLAIN },
        { 421, EVENT_COPY_IN, THREAD },
        { 278, EVENT_COPY_OUT, PLAIN | EVENT_SYNCHRONOUS | EVENT_MAY_TELL },
        { 398, EVENT_COPY_OUT, THREAD | EVENT_SYNCHRONOUS | EVENT_MAY_TELL },
        { 279, EVENT_COPY_OUT, PLAIN | EVENT_MAY_TELL },
        { 422, EVENT_COPY_OUT, THREAD | EVENT_MAY_TELL },
        /* Within the device the host waits for nothing, whatever the name says. */
        { 280, EVENT_COPY_WITHIN, PLAIN },
        { 399, EVENT_COPY_WITHIN, THREAD },
        { 281, EVENT_COPY_WITHIN, PLAIN },
        { 423, EVENT_COPY_WITHIN, THREAD },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct args_copy copy = { DEVICE + 64, OTHER, 128, 0 };
        if (rows[i].kind == EVENT_COPY_IN)
            copy.source = host_address();
        if (rows[i].kind == EVENT_COPY_OUT)
            copy.target = host_address();
        struct event event = tell(rows[i].id, &copy, 0);
        assert_int_equal(event.kind, rows[i].kind);
        assert_int_equal(event_bytes(&event), 128);
        assert_int_equal(event.flags & ~EVENT_HOST_SOURCE, EVENT_FOREIGN | rows[i].flags);
        assert_int_equal(event.access_count, 2);
        assert_int_equal(event.check, EVENT_CHECK_NONE);
    }
}

/* Copies that leave it to the addresses which way they go. */
static void test_any_way(void **state)
{
    (void)state;
    static unsigned char pageable[128];
    uint64_t host = (uint64_t)(uintptr_t)pageable;
    const struct {
        uint64_t target, source;
        enum event_kind kind;
    } rows[] = {
        { DEVICE, host, EVENT_COPY_IN },
        { host, DEVICE, EVENT_COPY_OUT },
        { DEVICE, OTHER, EVENT_COPY_WITHIN },
        { host, host + 64, EVENT_COPY_WITHIN },
    };
    static const uint32_t ids[] = { 305, 408, 306, 418 };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        for (size_t j = 0; j < sizeof(ids) / sizeof(*ids); j++) {
            struct args_copy copy = { rows[i].target, rows[i].source, 64, STREAM };
            assert_int_equal(tell(ids[j], &copy, 0).kind, rows[i].kind);
        }
    static const uint32_t peers[] = { 318, 409, 319, 426 };
    for (size_t j = 0; j < sizeof(peers) / sizeof(*peers); j++) {
        struct args_copy_peer copy = { DEVICE, 1, OTHER, 2, 256, STREAM };
        struct event event = tell(peers[j], &copy, 0);
        assert_int_equal(event.kind, EVENT_COPY_WITHIN);
        assert_int_equal(event.accesses[0].address, DEVICE);
        assert_int_equal(event.accesses[1].address, OTHER);
        assert_int_equal(event.accesses[1].bytes, 256);
        /* Without "Async" in its name it is in order with all streams, and waits for none. */
        assert_int_equal(event.flags & (EVENT_ALL_STREAMS | EVENT_SYNCHRONOUS),
                         peers[j] == 318 || peers[j] == 409 ? EVENT_ALL_STREAMS : 0);
        copy.bytes = BYTES + 1;
        assert_int_equal(tell(peers[j], &copy, 1).check, EVENT_CHECK_VIEW_END);
    }
}

/* Arrays have no address; the host waits for them as for other memory of the device. */
static void test_arrays(void **state)
{
    (void)state;
    static const uint32_t out[] = { 282, 403, 283, 420 }, in[] = { 292, 402, 293, 419 };
    for (size_t i = 0; i < 4; i++) {
        bool waits = i < 2;
        struct args_from_array from = { host_address(), 0xa000, 16, 128, STREAM };
        struct event event = tell(out[i], &from, 0);
        assert_int_equal(event.kind, EVENT_COPY_OUT);
        assert_int_equal(event.accesses[0].address, host_address());
        assert_int_equal(event_bytes(&event), 128);
        assert_int_equal((event.flags & EVENT_SYNCHRONOUS) != 0, waits);
        struct args_to_array to = { 0xa000, 16, host_address(), 128, STREAM };
        event = tell(in[i], &to, 0);
        assert_int_equal(event.kind, EVENT_COPY_IN);
        assert_int_equal(event.accesses[0].address, host_address());
        assert_int_equal((event.flags & EVENT_SYNCHRONOUS) != 0, waits);
    }
}

/* Rows: from the first byte of the first to the last of the last, and a byte more is one too many.
 */
static void test_rows(void **state)
{
    (void)state;
    static const uint32_t ids[] = { 287, 405, 288, 406, 289, 424 };
    struct cuda_copy_2d copy = {
        .source = { .x = 16, .y = 2, .memory = CUDA_MEMORY_DEVICE, .device = DEVICE, .pitch = 256 },
        .target = { .memory = CUDA_MEMORY_HOST, .host = host_address() },
        .width = 64,
        .height = 4,
    };
    struct args_copy_pitched arguments = { &copy, STREAM };
    for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
        copy.source.y = 2;
        struct event event = tell(ids[i], &arguments, 0);
        assert_int_equal(event.kind, EVENT_COPY_OUT);
        assert_int_equal(event_bytes(&event), 256);
        assert_int_equal(event.accesses[0].address, DEVICE + 2 * 256 + 16);
        assert_int_equal(event.accesses[0].bytes, 3 * 256 + 64);
        assert_int_equal(event.accesses[0].mode, EVENT_READ | EVENT_MAYBE); /* gaps */
        assert_int_equal(event.accesses[1].bytes, 256);                     /* no pitch: none */
        assert_int_equal(event.accesses[1].mode, EVENT_WRITE);
        copy.source.y = 13; /* rows 13 to 16 of 16 */
        event = tell(ids[i], &arguments, 1);
        assert_int_equal(event.check, EVENT_CHECK_VIEW_END);
        assert_int_equal(event.found, 16 * 256 + 16 + 64);
    }
    copy.source.y = 0;
    copy.height = SIZE_MAX / 2; /* no sensible number of bytes: nothing is said of them */
    assert_int_equal(tell(287, &arguments, 1).access_count, 0);
}

static void test_planes(void **state)
{
    (void)state;
    static const uint32_t ids[] = { 290, 407, 291, 425 };
    struct cuda_copy_3d copy = {
        .source = { .memory = CUDA_MEMORY_HOST, .host = host_address() },
        .target = { .x = 8,
                    .z = 1,
                    .memory = CUDA_MEMORY_DEVICE,
                    .device = DEVICE,
                    .pitch = 64,
                    .height = 8 },
        .width = 32,
        .height = 4,
        .depth = 3,
    };
    struct args_copy_pitched arguments = { &copy, STREAM };
    for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
        struct event event = tell(ids[i], &arguments, 0);
        assert_int_equal(event.kind, EVENT_COPY_IN);
        assert_int_equal(event_bytes(&event), 32 * 4 * 3);
        assert_int_equal(event.accesses[0].address, DEVICE + 512 + 8);
        assert_int_equal(event.accesses[0].bytes, 2 * 512 + 3 * 64 + 32);
        assert_int_equal(event.accesses[1].bytes, 32 * 4 * 3); /* packed */
    }
    copy.depth = 9; /* planes 1 to 9 of 8 */
    assert_int_equal(tell(290, &arguments, 1).check, EVENT_CHECK_VIEW_END);
    copy.depth = SIZE_MAX / 2;
    assert_int_equal(tell(290, &arguments, 1).access_count, 0);
}

/* Arrays have no addresses, unified ones say themselves what they are. */
static void test_kinds_of_ends(void **state)
{
    (void)state;
    static const struct {
        uint32_t source, target;
        enum event_kind kind;
        uint8_t access_count;
    } rows[] = {
        { CUDA_MEMORY_ARRAY, CUDA_MEMORY_HOST, EVENT_COPY_OUT, 1 },
        { CUDA_MEMORY_HOST, CUDA_MEMORY_ARRAY, EVENT_COPY_IN, 1 },
        { CUDA_MEMORY_ARRAY, CUDA_MEMORY_DEVICE, EVENT_COPY_WITHIN, 1 },
        { CUDA_MEMORY_ARRAY, CUDA_MEMORY_ARRAY, EVENT_COPY_WITHIN, 0 },
        { CUDA_MEMORY_UNIFIED, CUDA_MEMORY_UNIFIED, EVENT_COPY_WITHIN, 2 },
        { CUDA_MEMORY_UNIFIED, CUDA_MEMORY_HOST, EVENT_COPY_OUT, 2 },
        { CUDA_MEMORY_HOST, CUDA_MEMORY_HOST, EVENT_COPY_WITHIN, 2 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct cuda_copy_2d copy = {
            .source = { .memory = rows[i].source, .host = host_address(), .device = DEVICE },
            .target = { .memory = rows[i].target, .host = host_address(), .device = OTHER },
            .width = 64,
            .height = 2,
        };
        struct args_copy_pitched arguments = { &copy, 0 };
        struct event event = tell(287, &arguments, 0);
        assert_int_equal(event.kind, rows[i].kind);
        assert_int_equal(event.access_count, rows[i].access_count);
        assert_int_equal(event.check, EVENT_CHECK_NONE);
    }
}

static void test_fills(void **state)
{
    (void)state;
    static const struct {
        uint32_t id, element;
    } lines[] = { { 249, 1 }, { 411, 1 }, { 216, 1 }, { 428, 1 }, { 250, 2 }, { 412, 2 },
                  { 218, 2 }, { 429, 2 }, { 251, 4 }, { 413, 4 }, { 220, 4 }, { 430, 4 } },
      rows[] = { { 252, 1 }, { 414, 1 }, { 222, 1 }, { 431, 1 }, { 253, 2 }, { 415, 2 },
                 { 224, 2 }, { 432, 2 }, { 254, 4 }, { 416, 4 }, { 226, 4 }, { 433, 4 } };
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        struct args_fill fill = { DEVICE, 7, BYTES / lines[i].element, STREAM };
        struct event event = tell(lines[i].id, &fill, 0);
        assert_int_equal(event.kind, EVENT_FILL);
        assert_int_equal(event.accesses[0].bytes, BYTES);
        assert_int_equal(event.accesses[0].mode, EVENT_WRITE);
        assert_int_equal(event.check, EVENT_CHECK_NONE);
        fill.count++;
        assert_int_equal(tell(lines[i].id, &fill, 1).check, EVENT_CHECK_VIEW_END);
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct args_fill_2d fill = { DEVICE, 256, 7, 128 / rows[i].element, 16, STREAM };
        struct event event = tell(rows[i].id, &fill, 0);
        assert_int_equal(event.kind, EVENT_FILL);
        assert_int_equal(event_bytes(&event), 128 * 16);
        assert_int_equal(event.accesses[0].bytes, 15 * 256 + 128);
        assert_int_equal(event.accesses[0].mode, EVENT_WRITE | EVENT_MAYBE);
        fill.height = 17;
        assert_int_equal(tell(rows[i].id, &fill, 1).check, EVENT_CHECK_VIEW_END);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCENE(test_lines),  IN_SCENE(test_any_way),       IN_SCENE(test_rows),
        IN_SCENE(test_planes), IN_SCENE(test_kinds_of_ends), IN_SCENE(test_fills),
        IN_SCENE(test_arrays),
    };
    return cmocka_run_group_tests(tests, open_recording, close_recording);
}
