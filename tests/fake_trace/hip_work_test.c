/* hip_work_test.c - work that is given to a stream through HIP is the right event: waits, launches
 * and graphs, from a program that is started with the preload library. */
#include "hip_recording.h"

static void test_waits(void **state)
{
    (void)state;
    char mark;
    hipStream_t made = &mark;
    assert_int_equal(hipStreamCreateWithFlags(&made, HIP_STREAM_APART), 0);
    nothing_reported();
    struct event event = TOLD(hipMemsetAsync(memory, 0, 16, made));
    assert_false(event.flags & EVENT_BLOCKING);
    assert_true(TOLD(hipMemset_spt(memory, 0, 16)).flags & EVENT_BLOCKING);
    assert_true(TOLD(hipMemset(memory, 0, 16)).flags & EVENT_LEGACY_STREAM);
    assert_int_equal(TOLD(hipEventRecord(&mark, stream)).kind, EVENT_MARK_RECORD);
    assert_int_equal(TOLD(hipStreamWaitEvent(made, &mark, 0)).kind, EVENT_MARK_WAIT);
    assert_int_equal(TOLD(hipEventSynchronize(&mark)).kind, EVENT_MARK_SYNC);
    fake_hip_answer(HIP_NOT_READY);
    assert_int_equal(hipEventQuery(&mark), HIP_NOT_READY);
    nothing_reported();
    fake_hip_answer(0);
    assert_int_equal(TOLD(hipEventQuery(&mark)).kind, EVENT_MARK_SYNC);
    assert_int_equal(TOLD(hipLaunchHostFunc(stream, NULL, NULL)).kind, EVENT_HIDDEN_ORDER);
    assert_int_equal(TOLD(hipStreamWriteValue32(stream, NULL, 1, 0)).kind, EVENT_HIDDEN_ORDER);
    assert_int_equal(TOLD(hipStreamDestroy(made)).kind, EVENT_STREAM_DESTROY);
    assert_int_equal(TOLD(hipStreamSynchronize(made)).check, EVENT_CHECK_HANDLE);
    assert_true(TOLD(hipDeviceSynchronize()).flags & EVENT_ALL_STREAMS);
}

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
    nothing_reported();
    event = TOLD(hipLaunchByPtr(&function));
    assert_int_equal(event.kind, EVENT_LAUNCH);
    assert_true(event.flags & EVENT_PARTIAL);
    /* Several at once. */
    hipLaunchParams several[2] = { { &function, one, one, parameters, 0, stream },
                                   { &function, one, one, parameters, 0, stream } };
    assert_int_equal(hipExtLaunchMultiKernelMultiDevice(several, 2, 0), 0);
    assert_true(next_event(&event));
    assert_int_equal(event.kind, EVENT_LAUNCH);
    assert_int_equal(only_event().kind, EVENT_LAUNCH);
    assert_int_equal(hipLaunchCooperativeKernelMultiDevice(several, -1, 0), 0);
    nothing_reported();
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
    nothing_reported();
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
    assert_true(next_event(&event));
    uint64_t begin = event_graph_id(&event);
    assert_int_equal(only_event().kind, EVENT_GRAPH_BEGIN);
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
    nothing_reported();
    assert_true(
        TOLD(hipModuleLaunchKernel(&function, 1, 1, 1, 32, 1, 1, 0, stream, NULL, extra)).flags &
        EVENT_MAY_TELL);
    assert_false(TOLD(hipMemcpyDtoDAsync(memory, other, 64, stream)).flags & EVENT_MAY_TELL);
    hipIpcGetEventHandle(NULL, NULL);
    nothing_reported();
    assert_true(TOLD(hipMemcpyDtoDAsync(memory, other, 64, stream)).flags & EVENT_MAY_TELL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCENE(test_waits),   IN_SCENE(test_launches), cmocka_unit_test(test_registered_kernels),
        IN_SCENE(test_capture), IN_SCENE(test_nodes),    IN_SCENE(test_given_away),
    };
    return cmocka_run_group_tests(tests, open_recording, close_recording);
}
