/* hip_calls_test.c - each call of HIP through the preload library is the right event: the program
 * is this test, started with the library, and the runtime below does nothing.
 *
 * hip_calls_test old: over a runtime that has next to no functions. */
#include "interpose/hip/hip.h"

#include "event/flight.h"
#include "fake_hip.h"
#include "temp_folder.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct temp_folder folder;
static struct flight *flight;
static uint64_t last_id;

static bool next(struct event *ret_event)
{
    if (flight_peek(flight, last_id + 1, ret_event) != FLIGHT_WHOLE)
        return false;
    last_id++;
    return true;
}

static void nothing_told(void)
{
    struct event event;
    assert_false(next(&event));
}

static struct event only(void)
{
    struct event event = { 0 };
    assert_true(next(&event));
    nothing_told();
    return event;
}

/* The one event of a call that succeeds. */
#define TOLD(call) (assert_int_equal((call), 0), only())

/* ---- Every call ----------------------------------------------------------------------------- */

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
            nothing_told(); /* it launches nothing yet; it was given no launches */
            continue;
        }
        struct event event = only();
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
    nothing_told();
}

/* ---- Memory --------------------------------------------------------------------------------- */

enum { BYTES = 4096 };
static unsigned char memory[2 * BYTES], other[BYTES], pinned[BYTES];
static char stream_place;
static void *const stream = &stream_place;

/* Where the emulated runtime leaves the result pointer alone, so the address is the test's. */
static void make(void *address)
{
    void *result = address;
    struct event event = TOLD(hipMalloc(&result, BYTES));
    assert_int_equal(event.kind, EVENT_BUFFER_CREATE);
    assert_int_equal(event.accesses[0].address, (uint64_t)(uintptr_t)address);
}

static int set_up(void **state)
{
    (void)state;
    void *host = pinned;
    make(memory);
    make(other);
    assert_int_equal(TOLD(hipHostMalloc(&host, BYTES, 0)).kind, EVENT_BUFFER_CREATE);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    assert_int_equal(TOLD(hipFree(memory)).check, EVENT_CHECK_NONE);
    assert_int_equal(TOLD(hipFree(other)).check, EVENT_CHECK_NONE);
    assert_int_equal(TOLD(hipHostFree(pinned)).check, EVENT_CHECK_NONE);
    return 0;
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
    nothing_told();
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
    assert_true(next(&event));
    assert_int_equal(event.kind, EVENT_STREAM_SYNC);
    event = only();
    assert_int_equal(event.kind, EVENT_BUFFER_DESTROY);
    assert_string_equal(event.op, "hipDeviceReset");
    assert_int_equal(event.accesses[0].address, (uint64_t)(uintptr_t)other);
    assert_int_equal(hipSetDevice(0), 0);
    assert_int_equal(TOLD(hipFree(memory)).check, EVENT_CHECK_NONE);
}

/* ---- Copies and fills ----------------------------------------------------------------------- */

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

/* ---- Streams -------------------------------------------------------------------------------- */

static void test_waits(void **state)
{
    (void)state;
    char mark;
    hipStream_t made = &mark;
    assert_int_equal(hipStreamCreateWithFlags(&made, HIP_STREAM_APART), 0);
    nothing_told();
    struct event event = TOLD(hipMemsetAsync(memory, 0, 16, made));
    assert_false(event.flags & EVENT_BLOCKING);
    assert_true(TOLD(hipMemset_spt(memory, 0, 16)).flags & EVENT_BLOCKING);
    assert_true(TOLD(hipMemset(memory, 0, 16)).flags & EVENT_LEGACY_STREAM);
    assert_int_equal(TOLD(hipEventRecord(&mark, stream)).kind, EVENT_MARK_RECORD);
    assert_int_equal(TOLD(hipStreamWaitEvent(made, &mark, 0)).kind, EVENT_MARK_WAIT);
    assert_int_equal(TOLD(hipEventSynchronize(&mark)).kind, EVENT_MARK_SYNC);
    fake_hip_answer(HIP_NOT_READY);
    assert_int_equal(hipEventQuery(&mark), HIP_NOT_READY);
    nothing_told();
    fake_hip_answer(0);
    assert_int_equal(TOLD(hipEventQuery(&mark)).kind, EVENT_MARK_SYNC);
    assert_int_equal(TOLD(hipLaunchHostFunc(stream, NULL, NULL)).kind, EVENT_HIDDEN_ORDER);
    assert_int_equal(TOLD(hipStreamWriteValue32(stream, NULL, 1, 0)).kind, EVENT_HIDDEN_ORDER);
    assert_int_equal(TOLD(hipStreamDestroy(made)).kind, EVENT_STREAM_DESTROY);
    assert_int_equal(TOLD(hipStreamSynchronize(made)).check, EVENT_CHECK_HANDLE);
    assert_true(TOLD(hipDeviceSynchronize()).flags & EVENT_ALL_STREAMS);
}

/* ---- Launches ------------------------------------------------------------------------------- */

static void test_launches(void **state)
{
    (void)state;
    void *packed[] = { memory, other };
    size_t bytes = sizeof(packed);
    void *extra[] = { (void *)1, packed, (void *)2, &bytes, (void *)3 };
    void *no_size[] = { (void *)1, packed, (void *)2, NULL, (void *)3 };
    const dim3 one = { 1, 1, 1 };
    char function;
    struct event event = TOLD(
        hipModuleLaunchKernel(&function, 1, 1, 1, 32, 1, 1, 0, stream, NULL, extra));
    assert_int_equal(event.kind, EVENT_LAUNCH);
    assert_int_equal(event.access_count, 2);
    event = TOLD(hipModuleLaunchKernel(&function, 1, 1, 1, 32, 1, 1, 0, stream, NULL, no_size));
    assert_int_equal(event.access_count, 0);
    /* The arguments of a kernel that was never registered are not known. */
    void *parameters[] = { &packed[0] };
    assert_true(TOLD(hipLaunchKernel(&function, one, one, parameters, 0, stream)).flags &
                EVENT_PARTIAL);
    hipLaunchConfig_t config = { .gridDim = one, .blockDim = one, .stream = stream };
    assert_int_equal(TOLD(hipLaunchKernelExC(&config, &function, parameters)).kind, EVENT_LAUNCH);
    HIP_LAUNCH_CONFIG driver = { 1, 1, 1, 1, 1, 1, 0, stream, NULL, 0 };
    event = TOLD(hipDrvLaunchKernelEx(&driver, &function, NULL, extra));
    assert_int_equal(event.access_count, 2);
    event = TOLD(hipExtModuleLaunchKernel(&function, 33, 1, 1, 32, 1, 1, 0, stream, NULL, extra,
                                          NULL, NULL, 0));
    assert_int_equal(event.access_count, 2);

    /* In two steps, as the oldest compilers did. */
    assert_int_equal(hipConfigureCall(one, one, 0, stream), 0);
    nothing_told();
    event = TOLD(hipLaunchByPtr(&function));
    assert_int_equal(event.kind, EVENT_LAUNCH);
    assert_true(event.flags & EVENT_PARTIAL);
    /* Several at once. */
    hipLaunchParams several[2] = { { &function, one, one, parameters, 0, stream },
                                   { &function, one, one, parameters, 0, stream } };
    assert_int_equal(hipExtLaunchMultiKernelMultiDevice(several, 2, 0), 0);
    assert_true(next(&event));
    assert_int_equal(event.kind, EVENT_LAUNCH);
    assert_int_equal(only().kind, EVENT_LAUNCH);
    assert_int_equal(hipLaunchCooperativeKernelMultiDevice(several, -1, 0), 0);
    nothing_told();
}

/* The compiler registers a program's own kernels with the runtime; their names are known from
 * there. */
static void test_registered_kernels(void **state)
{
    (void)state;
    struct {
        uint32_t magic, version;
        const void *bundle, *unused;
    } wrapper = { 0x48495046, 1, "no code object at all", NULL };
    char function;
    void **handle = __hipRegisterFatBinary(&wrapper);
    assert_non_null(handle);
    unsigned before = fake_hip_count();
    __hipRegisterFunction(handle, &function, NULL, "_Z5scalePf", 0, NULL, NULL, NULL, NULL, NULL);
    assert_int_equal(fake_hip_count(), before + 1);
    const dim3 one = { 1, 1, 1 };
    void *parameters[] = { &handle };
    struct event event = TOLD(hipLaunchKernel(&function, one, one, parameters, 0, stream));
    assert_string_equal(event.op, "scale");
    assert_true(event.flags & EVENT_PARTIAL); /* the bundle says nothing of its arguments */

    /* A function asked for by name is the wrapper. */
    void *found = NULL;
    assert_int_equal(hipGetProcAddress("hipFree", &found, 0, 0, NULL), 0);
    make(memory);
    hipError_t (*free_it)(void *);
    *(void **)&free_it = found;
    assert_int_equal(TOLD(free_it(memory)).kind, EVENT_BUFFER_DESTROY);
}

/* ---- Graphs --------------------------------------------------------------------------------- */

static void test_capture(void **state)
{
    (void)state;
    char graph_place, executable_place;
    hipGraph_t graph = &graph_place;
    hipGraphExec_t executable = &executable_place;
    struct event event = TOLD(hipStreamBeginCapture(stream, 0));
    assert_int_equal(event.kind, EVENT_GRAPH_BEGIN);
    uint64_t begin = event.id;
    assert_int_equal(TOLD(hipMemsetAsync(memory, 0, 16, stream)).copy.graph_id, begin);
    assert_int_equal(TOLD(hipStreamEndCapture(stream, &graph)).kind, EVENT_GRAPH_END);
    assert_int_equal(hipGraphInstantiateWithFlags(&executable, graph, 0), 0);
    nothing_told();
    assert_int_equal(TOLD(hipGraphLaunch(executable, stream)).cause_id, begin);
    assert_int_equal(hipGraphExecUpdate(executable, graph, NULL, NULL), 0);
    assert_int_equal(TOLD(hipGraphLaunch(executable, stream)).cause_id, 0);
    assert_int_equal(hipGraphExecDestroy(executable), 0);
    assert_int_equal(TOLD(hipGraphDestroy(graph)).kind, EVENT_GRAPH_DESTROY);
}

/* Nodes added by hand; the first brings the event of its graph with it. */
static void test_nodes(void **state)
{
    (void)state;
    char graph_place;
    hipGraph_t graph = &graph_place;
    hipGraphNode_t node;
    struct event event;
    assert_int_equal(
        hipGraphAddMemcpyNode1D(&node, graph, NULL, 0, memory, pinned, 64, HIP_COPY_IN), 0);
    assert_true(next(&event));
    uint64_t begin = event_graph_id(&event);
    assert_int_equal(only().kind, EVENT_GRAPH_BEGIN);
    hipMemsetParams fill = { memory, 4, 2, 64, 0, 8 };
    event = TOLD(hipGraphAddMemsetNode(&node, graph, NULL, 0, &fill));
    assert_int_equal(event.kind, EVENT_FILL);
    assert_int_equal(event_graph_id(&event), begin);
    assert_int_equal(event.accesses[0].bytes, 64 + 32);
    hipKernelNodeParams kernel = { .func = &graph_place };
    event = TOLD(hipGraphAddKernelNode(&node, graph, NULL, 0, &kernel));
    assert_int_equal(event.kind, EVENT_LAUNCH);
    assert_int_equal(event_graph_id(&event), begin);
    hipMemcpy3DParms copy = { .srcPtr = { memory, 64, 64, 1 },
                              .dstPtr = { other, 64, 64, 1 },
                              .extent = { 64, 1, 1 },
                              .kind = HIP_COPY_WITHIN };
    event = TOLD(hipGraphAddMemcpyNode(&node, graph, NULL, 0, &copy));
    assert_int_equal(event_graph_id(&event), begin);
    assert_int_equal(event.access_count, 2);
    assert_int_equal(TOLD(hipGraphDestroy(graph)).kind, EVENT_GRAPH_DESTROY);
}

/* ---- All of it ------------------------------------------------------------------------------ */

static int open_recording(void **state)
{
    (void)state;
    char path[600];
    struct error err;
    temp_folder_init(&folder);
    setenv(INTERPOSE_VARIABLE_FOLDER, folder.path, 1);
    setenv(INTERPOSE_VARIABLE_RECORDS, "4096", 1);
    assert_int_equal(hipInit(0), 0);
    snprintf(path, sizeof(path), "%s/%ld.hip.flight", folder.path, (long)getpid());
    CHECK_OK(flight_attach(path, &flight, &err), &err);
    return 0;
}

static int close_recording(void **state)
{
    (void)state;
    flight_close(flight);
    temp_folder_release(&folder);
    return 0;
}

/* A call that gives pointers away is not recorded itself: from then on work may tell the host of
 * what is before it. To be run last. */
static void test_given_away(void **state)
{
    (void)state;
    void *packed[] = { memory };
    size_t bytes = sizeof(packed);
    void *extra[] = { (void *)1, packed, (void *)2, &bytes, (void *)3 };
    char function;
    hipHostGetDevicePointer(NULL, NULL, 0);
    nothing_told();
    assert_true(
        TOLD(hipModuleLaunchKernel(&function, 1, 1, 1, 32, 1, 1, 0, stream, NULL, extra)).flags &
        EVENT_MAY_TELL);
    assert_false(TOLD(hipMemcpyDtoDAsync(memory, other, 64, stream)).flags & EVENT_MAY_TELL);
    hipIpcGetEventHandle(NULL, NULL);
    nothing_told();
    assert_true(TOLD(hipMemcpyDtoDAsync(memory, other, 64, stream)).flags & EVENT_MAY_TELL);
}

#define IN_SCENE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_rows_of_memory),
        cmocka_unit_test(test_reset),
        IN_SCENE(test_copies),
        IN_SCENE(test_planes),
        IN_SCENE(test_fills),
        IN_SCENE(test_waits),
        IN_SCENE(test_launches),
        cmocka_unit_test(test_registered_kernels),
        IN_SCENE(test_capture),
        IN_SCENE(test_nodes),
        IN_SCENE(test_given_away),
    };
    const struct CMUnitTest old[] = { cmocka_unit_test(test_old_runtime) };
    if (count > 1 && strcmp(arguments[1], "old") == 0)
        return cmocka_run_group_tests(old, open_recording, close_recording);
    return cmocka_run_group_tests(tests, open_recording, close_recording);
}
