/* hip_calls_test.c - each call of HIP through the preload library is the right event: the program
 * is this test, started with the library. Every call that fails, memory, copies and fills; what is
 * launched is in hip_work_test.c.
 *
 * hip_calls_test old: over a runtime that has next to no functions. */
#include "hip_recording.h"

#include <string.h>

/* Whatever its parameters are: nothing is given for all of them. */
typedef hipError_t (*any_call)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                               uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                               uint64_t, uint64_t);

static const struct {
    const char *name;
    hip_function call;
} all_calls[] = {
#define HIP_ROW(name, ...) { #name, (hip_function)name },
#include "interpose/hip/rows.def"
#undef HIP_ROW
};

static hipError_t call_with_nothing(size_t index)
{
    any_call call = (any_call)all_calls[index].call;
    return call(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

/* The program gets the runtime's answer, and a failure is recorded with the call's name. */
static void test_failures(void **state)
{
    (void)state;
    fake_hip_answer(1);
    for (size_t i = 0; i < HIP_INDEX_COUNT; i++) {
        unsigned before = fake_hip_count();
        assert_int_equal(call_with_nothing(i), 1);
        assert_int_equal(fake_hip_count(), before + 1);
        const char *name = all_calls[i].name;
        if (strcmp(name, "hipConfigureCall") == 0 || strstr(name, "MultiDevice")) {
            nothing_reported(); /* it launches nothing yet; it was given no launches */
            continue;
        }
        struct event event = only_event();
        assert_int_equal(event.outcome, EVENT_FAILED);
        assert_int_equal(event.code, 1);
        if (event.kind != EVENT_LAUNCH)
            assert_memory_equal(event.op, name, strnlen(event.op, EVENT_OP_BYTES - 1));
    }
    fake_hip_answer(0);
}

/* A runtime that does not have the function: the program gets an error, and nothing is recorded. */
static void test_old_runtime(void **state)
{
    (void)state;
    void *function = NULL;
    for (size_t i = 0; i < HIP_INDEX_COUNT; i++) {
        bool there = i == HIP_INDEX_hipInit;
        assert_int_equal(call_with_nothing(i), there ? 0 : HIP_NOT_FOUND);
    }
    assert_int_equal(hipGetProcAddress("hipFree", &function, 0, 0, NULL), HIP_NOT_FOUND);
    assert_null(__hipRegisterFatBinary(NULL));
    __hipRegisterFunction(NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL);
    nothing_reported();
}

static void test_rows_of_memory(void **state)
{
    (void)state;
    void *address = memory;
    size_t pitch = 512;
    assert_int_equal(TOLD(hipMallocPitch(&address, &pitch, 500, 4)).buffer.bytes, 2048);
    assert_int_equal(TOLD(hipFree(memory)).buffer.bytes, 2048);
    assert_int_equal(TOLD(hipMemAllocPitch(&address, &pitch, 500, 3, 4)).buffer.bytes, 1536);
    TOLD(hipFree(memory));
    hipPitchedPtr planes = { memory, 256, 200, 4 };
    assert_int_equal(TOLD(hipMalloc3D(&planes, (hipExtent){ 200, 4, 2 })).buffer.bytes, 2048);
    TOLD(hipFree(memory));
    assert_int_equal(hipFree(NULL), 0);
    nothing_reported();
}

/* A device that is reset takes its memory along, that of another device stays. */
static void test_reset(void **state)
{
    (void)state;
    make(memory);
    assert_int_equal(hipSetDevice(1), 0);
    make(other);
    assert_int_equal(hipDeviceReset(), 0);
    struct event event;
    assert_true(next_event(&event));
    assert_int_equal(event.kind, EVENT_STREAM_SYNC);
    event = only_event();
    assert_int_equal(event.kind, EVENT_BUFFER_DESTROY);
    assert_string_equal(event.op, "hipDeviceReset");
    assert_int_equal(event.accesses[0].address, (uint64_t)(uintptr_t)other);
    assert_int_equal(hipSetDevice(0), 0);
    assert_int_equal(TOLD(hipFree(memory)).check, EVENT_CHECK_NONE);
}

static void test_copies(void **state)
{
    (void)state;
    struct event event = TOLD(hipMemcpy2D(memory, 256, pinned, 64, 64, 4, HIP_COPY_IN));
    assert_int_equal(event.kind, EVENT_COPY_IN);
    assert_int_equal(event_bytes(&event), 256);
    assert_int_equal(event.accesses[0].bytes, 3 * 256 + 64);
    assert_true(event.flags & EVENT_SYNCHRONOUS);
    event = TOLD(hipMemcpy2DAsync(memory, 256, pinned, 64, 64, 17, HIP_COPY_IN, stream));
    assert_int_equal(event.check, EVENT_CHECK_VIEW_END); /* 17 rows of 16 */
    event = TOLD(hipMemcpy2D(memory, 256, pinned, 64, 64, 0, HIP_COPY_IN));
    assert_int_equal(event_bytes(&event), 0);
    /* Symbols and arrays have no address. */
    event = TOLD(hipMemcpyToSymbol(&stream_place, pinned, 64, 0, HIP_COPY_IN));
    assert_int_equal(event.kind, EVENT_COPY_IN);
    assert_int_equal(event.access_count, 1);
    event = TOLD(hipMemcpyFromSymbolAsync(pinned, &stream_place, 64, 0, HIP_COPY_OUT, stream));
    assert_int_equal(event.kind, EVENT_COPY_OUT);
    assert_int_equal(event.access_count, 1);
    assert_int_equal(TOLD(hipMemcpyHtoA(&stream_place, 0, pinned, 64)).access_count, 1);
    assert_int_equal(TOLD(hipMemcpyAtoH(pinned, &stream_place, 0, 64)).access_count, 1);
    event = TOLD(hipMemcpy(memory, other, 64, 4 /* as the addresses say */));
    assert_int_equal(event.kind, EVENT_COPY_WITHIN);
}

static void test_planes(void **state)
{
    (void)state;
    hipMemcpy3DParms copy = { .srcPtr = { pinned, 32, 32, 4 },
                              .dstPtr = { memory, 64, 64, 8 },
                              .dstPos = { 8, 0, 1 },
                              .extent = { 32, 4, 3 },
                              .kind = HIP_COPY_IN };
    struct event event = TOLD(hipMemcpy3DAsync(&copy, stream));
    assert_int_equal(event.kind, EVENT_COPY_IN);
    assert_int_equal(event.accesses[0].address, (uint64_t)(uintptr_t)memory + 512 + 8);
    assert_int_equal(event.accesses[0].bytes, 2 * 512 + 3 * 64 + 32);
    copy.extent.depth = 9;
    assert_int_equal(TOLD(hipMemcpy3D(&copy)).check, EVENT_CHECK_VIEW_END);
    copy.srcArray = &stream_place; /* widths are in elements of it: no bytes are known */
    assert_int_equal(TOLD(hipMemcpy3D(&copy)).access_count, 0);

    hip_Memcpy2D rows = { .srcDevice = memory,
                          .srcPitch = 256,
                          .srcY = 1,
                          .dstHost = pinned,
                          .dstPitch = 64,
                          .WidthInBytes = 64,
                          .Height = 2 };
    event = TOLD(hipMemcpyParam2D(&rows));
    assert_int_equal(event.kind, EVENT_COPY_OUT);
    assert_int_equal(event.accesses[0].address, (uint64_t)(uintptr_t)memory + 256);
    rows.srcHost = pinned; /* two that could be meant */
    assert_int_equal(TOLD(hipMemcpyParam2DAsync(&rows, stream)).access_count, 1);
}

static void test_fills(void **state)
{
    (void)state;
    assert_int_equal(TOLD(hipMemset(memory, 0, BYTES)).accesses[0].bytes, BYTES);
    assert_int_equal(TOLD(hipMemsetD16(memory, 0, BYTES / 2)).accesses[0].bytes, BYTES);
    assert_int_equal(TOLD(hipMemsetD32Async(memory, 0, BYTES / 4 + 1, stream)).check,
                     EVENT_CHECK_VIEW_END);
    struct event event = TOLD(hipMemset2DAsync(memory, 256, 0, 128, 16, stream));
    assert_int_equal(event.accesses[0].bytes, 15 * 256 + 128);
    hipPitchedPtr planes = { memory, 64, 64, 8 };
    /* Whole planes are one range; of parts only the first is known to be filled. */
    event = TOLD(hipMemset3D(planes, 0, (hipExtent){ 64, 8, 4 }));
    assert_int_equal(event.accesses[0].bytes, 64 * 8 * 4);
    event = TOLD(hipMemset3DAsync(planes, 0, (hipExtent){ 64, 4, 4 }, stream));
    assert_int_equal(event.accesses[0].bytes, 64 * 4);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failures), cmocka_unit_test(test_rows_of_memory),
        cmocka_unit_test(test_reset),    IN_SCENE(test_copies),
        IN_SCENE(test_planes),           IN_SCENE(test_fills),
    };
    const struct CMUnitTest old[] = { cmocka_unit_test(test_old_runtime) };
    if (count > 1 && strcmp(arguments[1], "old") == 0)
        return cmocka_run_group_tests(old, open_recording, close_recording);
    return cmocka_run_group_tests(tests, open_recording, close_recording);
}
