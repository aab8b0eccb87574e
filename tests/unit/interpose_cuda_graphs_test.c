/* interpose_cuda_graphs_test.c - launches and graphs of the CUDA driver as events: the pointers
 * among a kernel's parameters, what a capture recorded, nodes added by hand. */
#include "interpose_cuda.h"

/* ---- Launches ------------------------------------------------------------------------------- */

static void test_launches(void **state)
{
    (void)state;
    uint64_t target = DEVICE, source = OTHER;
    int count = 16;
    void *parameters[] = { &target, &source, &count };
    uint64_t function = kernel_of_driver(add_name);
    struct args_launch launch = {
        function, { 4, 1, 1 }, { 32, 1, 1 }, 0, STREAM, parameters, NULL
    };
    static const uint32_t ids[] = { 307, 442, 477, 478 };
    for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
        tell_named(ids[i], &launch, 0, add_name);
        struct event event = only();
        check_pointers(&event);
    }
    struct cuda_launch_config config = { { 4, 1, 1 }, { 32, 1, 1 }, 0, STREAM };
    struct args_launch_ex extended = { &config, function, parameters, NULL };
    tell_named(652, &extended, 0, add_name);
    struct event event = only();
    check_pointers(&event);

    /* All parameters in one buffer, whose size is known where the driver knows the kernel's or not.
     */
    uint64_t packed[] = { DEVICE, OTHER };
    size_t bytes = sizeof(packed);
    void *extra[] = { (void *)1, packed, (void *)2, &bytes, NULL };
    struct args_launch buffered = { 0x7777, { 1, 1, 1 }, { 1, 1, 1 }, 0, STREAM, NULL, extra };
    tell_named(307, &buffered, 0, "plain");
    event = only();
    assert_string_equal(event.op, "plain");
    assert_int_equal(event.access_count, 2);
    bytes = 0;
    tell_named(307, &buffered, 0, "plain");
    assert_int_equal(only().access_count, 0);
}

/* What the driver says of parameters. A handle may be of a kernel or of a function. */
static int32_t asked_function_code;
static unsigned asked_count;

static int32_t function_info(uint64_t function, size_t index, size_t *offset, size_t *size)
{
    asked_count++;
    *offset = 0;
    *size = function == 0x8003 ? 1 << 20 : 8;
    return asked_function_code ? asked_function_code : index >= 1;
}

static int32_t kernel_info(uint64_t kernel, size_t index, size_t *offset, size_t *size)
{
    *offset = 0;
    *size = 8;
    return kernel == 0x8001 || kernel == 0x8004 ? index >= 1 : 400;
}

static struct event launch_of(uint64_t function)
{
    uint64_t target = DEVICE;
    void *parameters[] = { &target };
    struct args_launch launch = { function, { 1, 1, 1 }, { 1, 1, 1 }, 0, STREAM, parameters, NULL };
    tell_named(307, &launch, 0, "kernel");
    return only();
}

static void test_sizes_of_parameters(void **state)
{
    (void)state;
    struct cuda_driver real = cuda_driver;
    cuda_driver.func_get_param_info = function_info;
    cuda_driver.kernel_get_param_info = kernel_info;

    /* Asked once for each. */
    asked_count = 0;
    assert_int_equal(launch_of(0x8000).access_count, 1);
    unsigned first = asked_count;
    assert_int_equal(launch_of(0x8000).access_count, 1);
    assert_int_equal(asked_count, first);
    /* A module that went took its kernels: the handle may be another kernel's now. */
    uint64_t module = 0x1234;
    tell_named(22, &module, 0, NULL);
    nothing_reported();
    launch_of(0x8000);
    assert_true(asked_count > first);

    /* A kernel, not a function; then an unknown one, one that makes no sense, and a driver too old
     * to be asked: the recording says that pointers may be missing. */
    asked_function_code = 400;
    assert_false(launch_of(0x8001).flags & EVENT_PARTIAL);
    assert_true(launch_of(0x8002).flags & EVENT_PARTIAL);
    asked_function_code = 0;
    assert_true(launch_of(0x8003).flags & EVENT_PARTIAL);
    cuda_driver.func_get_param_info = NULL;
    cuda_driver.kernel_get_param_info = NULL;
    assert_true(launch_of(0x8005).flags & EVENT_PARTIAL);
    cuda_driver = real;
}

/* ---- Graphs --------------------------------------------------------------------------------- */

static uint64_t launch_graph(uint64_t executable)
{
    struct args_pair launch = { executable, STREAM };
    struct event event = tell(514, &launch, 0);
    assert_int_equal(event.kind, EVENT_GRAPH_REPLAY);
    assert_int_equal(event.graph.handle, executable);
    return event.cause_id;
}

static void instantiate(uint64_t graph, uint64_t executable)
{
    struct args_instantiate arguments = { &executable, graph };
    tell_named(643, &arguments, 0, NULL);
    nothing_reported();
}

static void test_capture(void **state)
{
    (void)state;
    uint64_t stream = STREAM, graph = 0xA100, executable = 0xA200;
    struct event event = tell(539, &stream, 0);
    assert_int_equal(event.kind, EVENT_GRAPH_BEGIN);
    uint64_t begin = event.id;
    struct args_fill fill = { DEVICE, 0, 16, STREAM };
    assert_int_equal(tell(216, &fill, 0).copy.graph_id, begin); /* recorded, not run */
    struct args_given given = { STREAM, &graph };
    event = tell(497, &given, 0);
    assert_int_equal(event.kind, EVENT_GRAPH_END);
    assert_int_equal(event.graph.handle, graph);
    assert_int_equal(tell(216, &fill, 0).copy.graph_id, 0);
    instantiate(graph, executable);
    assert_int_equal(launch_graph(executable), begin);

    /* Its nodes were replaced: what it does now is not known. */
    uint64_t changed[4] = { executable };
    tell_named(696, changed, 0, NULL);
    nothing_reported();
    assert_int_equal(launch_graph(executable), 0);
    /* The template goes with the last that stands for it. */
    tell_named(516, &executable, 0, NULL);
    nothing_reported();
    event = tell(517, &graph, 0);
    assert_int_equal(event.kind, EVENT_GRAPH_DESTROY);
    assert_int_equal(event.cause_id, begin);

    /* A capture that was spoilt ends, and leaves nothing. */
    tell(539, &stream, 0);
    event = tell(497, &given, 901);
    assert_int_equal(event.outcome, EVENT_FAILED);
    assert_int_equal(tell(216, &fill, 0).copy.graph_id, 0);
}

static void test_capture_into_graph(void **state)
{
    (void)state;
    uint64_t graph = 0xA300, executable = 0xA400;
    struct args_pair into = { STREAM, graph };
    tell_named(720, &into, 1, NULL);
    assert_int_equal(only().outcome, EVENT_FAILED);
    struct event event = tell(720, &into, 0);
    assert_int_equal(event.kind, EVENT_GRAPH_BEGIN);
    struct args_fill fill = { DEVICE, 0, 16, STREAM };
    assert_int_equal(tell(216, &fill, 0).copy.graph_id, event.id);
    struct args_given given = { STREAM, &graph };
    assert_int_equal(tell(497, &given, 0).kind, EVENT_GRAPH_END);
    instantiate(graph, executable);
    assert_true(launch_graph(executable) != 0);
    tell_named(516, &executable, 0, NULL);
    tell(517, &graph, 0);
}

/* The node, and the graph it is the first of, which gets its event with it. */
static uint64_t first_node(struct event *ret_node)
{
    assert_true(next(ret_node));
    struct event begin = only();
    assert_int_equal(begin.kind, EVENT_GRAPH_BEGIN);
    assert_int_equal(event_graph_id(ret_node), begin.id);
    return begin.id;
}

/* Nodes added by hand are recorded as the calls they stand for, of the graph. */
static void test_nodes(void **state)
{
    (void)state;
    uint64_t graph = 0xB100, executable = 0xB200, node;
    struct cuda_copy_3d copy = {
        .source = { .memory = CUDA_MEMORY_DEVICE, .device = DEVICE },
        .target = { .memory = CUDA_MEMORY_DEVICE, .device = OTHER },
        .width = 64,
        .height = 1,
        .depth = 1,
    };
    struct args_graph_node add = { &node, graph, NULL, 0, &copy };
    tell_named(504, &add, 0, NULL);
    struct event event;
    uint64_t begin = first_node(&event);
    assert_int_equal(event.kind, EVENT_COPY_WITHIN);
    struct cuda_fill_node fill = { DEVICE, 64, 0, 4, 8, 2 };
    add.parameters = &fill;
    event = tell(506, &add, 0);
    assert_int_equal(event.kind, EVENT_FILL);
    assert_int_equal(event_graph_id(&event), begin);
    assert_int_equal(event.accesses[0].bytes, 64 + 32);

    uint64_t target = DEVICE, source = OTHER;
    int count = 1;
    void *parameters[] = { &target, &source, &count };
    struct cuda_kernel_node kernel = { .function = kernel_of_driver(add_name),
                                       .grid = { 1, 1, 1 },
                                       .block = { 1, 1, 1 },
                                       .parameters = parameters };
    add.parameters = &kernel;
    tell_named(502, &add, 0, add_name);
    event = only();
    check_pointers(&event);
    assert_int_equal(event_graph_id(&event), begin);

    instantiate(graph, executable);
    assert_int_equal(launch_graph(executable), begin);
    /* Any graph may be the one whose node was changed. */
    uint64_t some_node[4] = { node };
    tell_named(521, some_node, 0, NULL);
    instantiate(graph, executable);
    assert_int_equal(launch_graph(executable), 0);
    tell_named(516, &executable, 0, NULL);
    tell(517, &graph, 0);
}

/* A kernel's node may name a kernel where a function would stand. */
static void test_kernel_nodes(void **state)
{
    (void)state;
    struct cuda_driver real = cuda_driver;
    cuda_driver.func_get_param_info = function_info;
    cuda_driver.kernel_get_param_info = kernel_info;
    asked_function_code = 400;
    uint64_t graph = 0xB300, target = DEVICE, node;
    void *parameters[] = { &target };
    struct cuda_kernel_node kernel = { .kernel = 0x8004, .parameters = parameters };
    struct args_graph_node add = { &node, graph, NULL, 0, &kernel };
    tell_named(689, &add, 0, NULL);
    struct event event;
    first_node(&event);
    assert_int_equal(event.kind, EVENT_LAUNCH);
    assert_int_equal(event.access_count, 1);
    assert_false(event.flags & EVENT_PARTIAL);
    /* The older struct ends before: nothing after it is read. */
    tell_named(502, &add, 0, NULL);
    assert_true(only().flags & EVENT_PARTIAL);
    asked_function_code = 0;
    cuda_driver = real;
    tell(517, &graph, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCENE(test_launches), IN_SCENE(test_sizes_of_parameters),
        IN_SCENE(test_capture),  IN_SCENE(test_capture_into_graph),
        IN_SCENE(test_nodes),    IN_SCENE(test_kernel_nodes),
    };
    return cmocka_run_group_tests(tests, open_recording, close_recording);
}
