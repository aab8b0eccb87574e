/* hip_runtime.c - the calls of device/gpu/gpu.h over the HIP runtime's module API. */
#include "device/hip/hip.h"

#include "device/gpu/gpu.h"
#include "device/hip/hip_api.h"
#include "device/hip/hip_fault.h"

#include <stdio.h>
#include <stdlib.h>

/* The members of hipMemAllocationProp stood in another order before this version. */
#define RANGES_MINIMUM 50300000

struct hip {
    struct hip_api api;
    struct dynlib *library;
    int device;
    int driver_version;
};

static const struct hip_api *api_of(void *self)
{
    return &((struct hip *)self)->api;
}

static void *pointer(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

/* ---- Device --------------------------------------------------------------------------------- */

static void close_runtime(void *self)
{
    struct hip *hip = self;
    dynlib_close(hip->library);
    free(hip);
}

static uint32_t attribute(const struct hip *hip, hipDeviceAttribute_t number)
{
    int value = 0;
    hip->api.hipDeviceGetAttribute(&value, number, hip->device);
    return value > 0 ? (uint32_t)value : 0;
}

static void get_facts(void *self, struct gpu_facts *ret_facts)
{
    const struct hip *hip = self;
    size_t bytes = 0;
    char name[64] = "AMD GPU";
    hip->api.hipDeviceGetName(name, sizeof(name), hip->device);
    hip->api.hipDeviceTotalMem(&bytes, hip->device);
    uint32_t shared = attribute(hip, HIP_BLOCK_SHARED);
    *ret_facts = (struct gpu_facts){
        .memory_bytes = bytes,
        .chip = { .processor_count = attribute(hip, HIP_PROCESSOR_COUNT),
                  .shared_bytes = shared,
                  .processor_shared_bytes = shared,
                  .thread_limit = 256 },
    };
    snprintf(ret_facts->name, sizeof(ret_facts->name), "%s", name);
    snprintf(ret_facts->driver, sizeof(ret_facts->driver), "HIP %d", hip->driver_version);
}

static const char *error_name(void *self, int code)
{
    const char *name = api_of(self)->hipGetErrorName((hipError_t)code);
    return name ? name : "unknown error";
}

static bool is_fault(int code)
{
    return code == HIP_ILLEGAL_ADDRESS || code == HIP_LAUNCH_TIMEOUT ||
           code == HIP_CONTEXT_IS_DESTROYED || code == HIP_ASSERT || code == HIP_LAUNCH_FAILURE ||
           code == HIP_UNKNOWN;
}

static bool is_no_memory(int code)
{
    return code == HIP_NO_MEMORY;
}

static int enter(void *self)
{
    return (int)api_of(self)->hipSetDevice(((struct hip *)self)->device);
}

static bool find_fault(void *self, uint64_t *ret_address, char *reason, size_t reason_bytes)
{
    (void)self;
    return hip_fault_find(ret_address, reason, reason_bytes);
}

/* ---- Memory --------------------------------------------------------------------------------- */

static int create_memory(void *self, uint64_t bytes, uint64_t *ret_address)
{
    void *address = NULL;
    int code = (int)api_of(self)->hipMalloc(&address, (size_t)bytes);
    *ret_address = (uint64_t)(uintptr_t)address;
    return code;
}

static int destroy_memory(void *self, uint64_t address)
{
    return (int)api_of(self)->hipFree(pointer(address));
}

static int find_address(void *self, void *memory, uint64_t *ret_address)
{
    void *address = NULL;
    int code = (int)api_of(self)->hipHostGetDevicePointer(&address, memory, 0);
    *ret_address = (uint64_t)(uintptr_t)address;
    return code;
}

static int create_pinned(void *self, uint64_t bytes, void **ret_memory, uint64_t *ret_address)
{
    /* Coherent: what a kernel wrote can be read while it runs, and after it faulted. */
    int code = (int)api_of(self)->hipHostMalloc(
        ret_memory, (size_t)bytes, HIP_HOST_PORTABLE | HIP_HOST_MAPPED | HIP_HOST_COHERENT);
    if (code)
        return code;
    code = find_address(self, *ret_memory, ret_address);
    if (code) {
        api_of(self)->hipHostFree(*ret_memory);
        *ret_memory = NULL;
    }
    return code;
}

static int destroy_pinned(void *self, void *memory)
{
    return (int)api_of(self)->hipHostFree(memory);
}

static int pin(void *self, void *memory, uint64_t bytes, uint64_t *ret_address)
{
    int code = (int)api_of(self)->hipHostRegister(memory, (size_t)bytes, HIP_REGISTER_MAPPED);
    if (code)
        return code;
    code = find_address(self, memory, ret_address);
    if (code)
        api_of(self)->hipHostUnregister(memory);
    return code;
}

static int unpin(void *self, void *memory)
{
    return (int)api_of(self)->hipHostUnregister(memory);
}

static int ask_pointer(void *self, uint64_t address, struct gpu_pointer *ret_pointer)
{
    const struct hip_api *api = api_of(self);
    hipPointerAttribute_t attributes = { .device = -1 };
    void *start = NULL, *pointer = (void *)(uintptr_t)address;
    size_t bytes = 0;
    /* Of an address it does not know it says that with an error, which is no failure of ours. */
    if (api->hipPointerGetAttributes(&attributes, pointer) || !attributes.devicePointer) {
        *ret_pointer = (struct gpu_pointer){ .words = "an address it knows nothing of" };
        return 0;
    }
    bool here = attributes.device == ((struct hip *)self)->device;
    if (api->hipMemGetAddressRange(&start, &bytes, pointer))
        bytes = 0;
    *ret_pointer = (struct gpu_pointer){
        .is_memory = here && !attributes.hostPointer,
        .words = attributes.hostPointer ? "memory of the host" : "memory of another device",
        .range_start = bytes ? (uint64_t)(uintptr_t)start : 0,
        .range_bytes = bytes,
    };
    return 0;
}

/* ---- Ranges: not in every runtime ----------------------------------------------------------- */

static bool has_ranges(const struct hip *hip)
{
    const struct hip_api *api = &hip->api;
    return hip->driver_version >= RANGES_MINIMUM && api->hipMemGetAllocationGranularity &&
           api->hipMemAddressReserve && api->hipMemAddressFree && api->hipMemCreate &&
           api->hipMemRelease && api->hipMemMap && api->hipMemUnmap && api->hipMemSetAccess;
}

static hipMemAllocationProp properties_of(const struct hip *hip)
{
    return (hipMemAllocationProp){ .type = HIP_MEMORY_PINNED,
                                   .location = { HIP_LOCATION_DEVICE, hip->device } };
}

static int get_granularity(void *self, uint64_t *ret_bytes)
{
    hipMemAllocationProp properties = properties_of(self);
    size_t bytes = 0;
    if (!has_ranges(self))
        return HIP_NOT_SUPPORTED;
    int code = (int)api_of(self)->hipMemGetAllocationGranularity(&bytes, &properties,
                                                                 HIP_GRANULARITY_MINIMUM);
    *ret_bytes = bytes;
    return code;
}

static int create_range(void *self, uint64_t bytes, uint64_t *ret_address)
{
    void *address = NULL;
    int code = (int)api_of(self)->hipMemAddressReserve(&address, (size_t)bytes, 0, NULL, 0);
    *ret_address = (uint64_t)(uintptr_t)address;
    return code;
}

static int destroy_range(void *self, uint64_t address, uint64_t bytes)
{
    return (int)api_of(self)->hipMemAddressFree(pointer(address), (size_t)bytes);
}

static int map_range(void *self, uint64_t address, uint64_t bytes, uint64_t *ret_memory)
{
    const struct hip_api *api = api_of(self);
    hipMemAllocationProp properties = properties_of(self);
    hipMemAccessDesc access = { properties.location, HIP_ACCESS_READ_WRITE };
    hipMemGenericAllocationHandle_t memory = NULL;
    int code = (int)api->hipMemCreate(&memory, (size_t)bytes, &properties, 0);
    if (code)
        return code;
    code = (int)api->hipMemMap(pointer(address), (size_t)bytes, 0, memory, 0);
    if (!code) {
        code = (int)api->hipMemSetAccess(pointer(address), (size_t)bytes, &access, 1);
        if (code)
            api->hipMemUnmap(pointer(address), (size_t)bytes);
    }
    if (code)
        api->hipMemRelease(memory);
    *ret_memory = (uint64_t)(uintptr_t)memory;
    return code;
}

static int unmap_range(void *self, uint64_t address, uint64_t bytes, uint64_t memory)
{
    int code = (int)api_of(self)->hipMemUnmap(pointer(address), (size_t)bytes);
    int released = (int)api_of(self)->hipMemRelease(pointer(memory));
    return code ? code : released;
}

/* ---- Streams and events --------------------------------------------------------------------- */

static int create_stream(void *self, void **ret_stream)
{
    hipStream_t stream = NULL;
    int code = (int)api_of(self)->hipStreamCreateWithFlags(&stream, HIP_STREAM_NON_BLOCKING);
    *ret_stream = stream;
    return code;
}

static int destroy_stream(void *self, void *stream)
{
    return (int)api_of(self)->hipStreamDestroy(stream);
}

static int sync_stream(void *self, void *stream)
{
    return (int)api_of(self)->hipStreamSynchronize(stream);
}

static int create_event(void *self, bool idle, void **ret_event)
{
    hipEvent_t event = NULL;
    int code = (int)api_of(self)->hipEventCreateWithFlags(
        &event, HIP_EVENT_NO_TIMING | (idle ? HIP_EVENT_BLOCKING : 0));
    *ret_event = event;
    return code;
}

static int destroy_event(void *self, void *event)
{
    return (int)api_of(self)->hipEventDestroy(event);
}

static int record_event(void *self, void *event, void *stream)
{
    return (int)api_of(self)->hipEventRecord(event, stream);
}

static int wait_event(void *self, void *event, void *stream)
{
    return (int)api_of(self)->hipStreamWaitEvent(stream, event, 0);
}

static int sync_event(void *self, void *event)
{
    return (int)api_of(self)->hipEventSynchronize(event);
}

static int query_stream(void *self, void *stream)
{
    int code = (int)api_of(self)->hipStreamQuery(stream);
    return code == HIP_NOT_READY ? 0 : code;
}

static int query_event(void *self, void *event, bool *ret_passed)
{
    int code = (int)api_of(self)->hipEventQuery(event);
    *ret_passed = code == 0;
    return code == HIP_NOT_READY ? 0 : code;
}

/* ---- Bytes ---------------------------------------------------------------------------------- */

static int copy_in(void *self, uint64_t target, const void *source, uint64_t bytes, void *stream)
{
    return (int)api_of(self)->hipMemcpyHtoDAsync(pointer(target), (void *)(uintptr_t)source,
                                                 (size_t)bytes, stream);
}

static int copy_out(void *self, void *target, uint64_t source, uint64_t bytes, void *stream)
{
    return (int)api_of(self)->hipMemcpyDtoHAsync(target, pointer(source), (size_t)bytes, stream);
}

static int copy_within(void *self, uint64_t target, uint64_t source, uint64_t bytes, void *stream)
{
    return (int)api_of(self)->hipMemcpyDtoDAsync(pointer(target), pointer(source), (size_t)bytes,
                                                 stream);
}

static int fill(void *self, uint64_t target, uint8_t byte, uint64_t bytes, void *stream)
{
    return (int)api_of(self)->hipMemsetD8Async(pointer(target), byte, (size_t)bytes, stream);
}

/* ---- Kernels -------------------------------------------------------------------------------- */

static int load_module(void *self, const void *code, void **ret_module)
{
    hipModule_t module = NULL;
    int result = (int)api_of(self)->hipModuleLoadData(&module, code);
    *ret_module = result ? NULL : module;
    return result;
}

/* What chip it is stands only in a struct whose layout differs between versions of HIP; so the
 * runtime is asked by loading the code, which needs no compiling. */
static bool code_fits(void *self, const struct device_gpu_code *code)
{
    void *module;
    if (load_module(self, code->bytes, &module))
        return false;
    api_of(self)->hipModuleUnload(module);
    return true;
}

static int unload_module(void *self, void *module)
{
    return (int)api_of(self)->hipModuleUnload(module);
}

static int find_function(void *self, void *module, const char *name, void **ret_function)
{
    hipFunction_t function = NULL;
    int code = (int)api_of(self)->hipModuleGetFunction(&function, module, name);
    *ret_function = function;
    return code;
}

/* All that a block can have is allowed from the start. */
static int allow_shared(void *self, void *function, uint32_t bytes)
{
    (void)self;
    (void)function;
    (void)bytes;
    return 0;
}

static int launch(void *self, void *function, const struct gpu_grid *grid, void *stream,
                  struct gpu_call *call)
{
    void *params[] = { call };
    return (int)api_of(self)->hipModuleLaunchKernel(function, grid->x, grid->y, 1, grid->threads, 1,
                                                    1, grid->shared_bytes, stream, params, NULL);
}

/* ---- Graphs: not in every runtime ----------------------------------------------------------- */

static bool has_graphs(const struct hip_api *api)
{
    return api->hipStreamBeginCapture && api->hipStreamEndCapture &&
           api->hipStreamGetCaptureInfo_v2 && api->hipGraphInstantiate &&
           api->hipGraphExecKernelNodeSetParams && api->hipGraphLaunch &&
           api->hipGraphExecDestroy && api->hipGraphDestroy;
}

static int begin_capture(void *self, void *stream)
{
    if (!has_graphs(api_of(self)))
        return HIP_NOT_SUPPORTED;
    return (int)api_of(self)->hipStreamBeginCapture(stream, HIP_CAPTURE_THREAD);
}

static int end_capture(void *self, void *stream, void **ret_graph, void **ret_exec)
{
    hipGraph_t graph = NULL;
    hipGraphExec_t exec = NULL;
    int code = (int)api_of(self)->hipStreamEndCapture(stream, &graph);
    if (!code)
        code = (int)api_of(self)->hipGraphInstantiate(&exec, graph, NULL, NULL, 0);
    *ret_graph = graph;
    *ret_exec = exec;
    return code;
}

static int find_captured(void *self, void *stream, void **ret_node)
{
    hipStreamCaptureStatus status;
    unsigned long long id;
    hipGraph_t graph;
    const hipGraphNode_t *nodes = NULL;
    size_t count = 0;
    int code = (int)api_of(self)->hipStreamGetCaptureInfo_v2(stream, &status, &id, &graph, &nodes,
                                                             &count);
    *ret_node = !code && count ? nodes[0] : NULL;
    return code;
}

static int destroy_graph(void *self, void *graph, void *exec)
{
    int code = exec ? (int)api_of(self)->hipGraphExecDestroy(exec) : 0;
    int second = graph ? (int)api_of(self)->hipGraphDestroy(graph) : 0;
    return code ? code : second;
}

static int set_call(void *self, void *exec, void *node, void *function, const struct gpu_grid *grid,
                    struct gpu_call *call)
{
    void *list[] = { call };
    hipKernelNodeParams params = { .blockDim = { grid->threads, 1, 1 },
                                   .func = function,
                                   .gridDim = { grid->x, grid->y, 1 },
                                   .kernelParams = list,
                                   .sharedMemBytes = grid->shared_bytes };
    return (int)api_of(self)->hipGraphExecKernelNodeSetParams(exec, node, &params);
}

static int launch_graph(void *self, void *exec, void *stream)
{
    return (int)api_of(self)->hipGraphLaunch(exec, stream);
}

/* ---- Opening -------------------------------------------------------------------------------- */

static const struct gpu_runtime hip_runtime = {
    .kind = "hip",
    .title = "HIP",
    .close = close_runtime,
    .facts = get_facts,
    .error_name = error_name,
    .is_fault = is_fault,
    .is_no_memory = is_no_memory,
    .enter = enter,
    .fault_find = find_fault,
    .memory_create = create_memory,
    .memory_destroy = destroy_memory,
    .pointer_ask = ask_pointer,
    .pinned_create = create_pinned,
    .pinned_destroy = destroy_pinned,
    .pin = pin,
    .unpin = unpin,
    .granularity = get_granularity,
    .range_create = create_range,
    .range_destroy = destroy_range,
    .range_map = map_range,
    .range_unmap = unmap_range,
    .stream_create = create_stream,
    .stream_destroy = destroy_stream,
    .stream_sync = sync_stream,
    .stream_query = query_stream,
    .event_create = create_event,
    .event_destroy = destroy_event,
    .event_record = record_event,
    .event_wait = wait_event,
    .event_sync = sync_event,
    .event_query = query_event,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .copy_within = copy_within,
    .fill = fill,
    .code_fits = code_fits,
    .module_load = load_module,
    .module_unload = unload_module,
    .function_find = find_function,
    .function_allow_shared = allow_shared,
    .launch = launch,
    .capture_begin = begin_capture,
    .capture_end = end_capture,
    .capture_node = find_captured,
    .graph_destroy = destroy_graph,
    .graph_set_call = set_call,
    .graph_launch = launch_graph,
};

static enum status open_library(struct hip *hip, int *ret_count, struct error *err)
{
    TRY(hip_api_open(&hip->api, &hip->library, err));
    int code = (int)hip->api.hipInit(0);
    if (!code)
        code = (int)hip->api.hipDriverGetVersion(&hip->driver_version);
    if (!code)
        code = (int)hip->api.hipGetDeviceCount(ret_count);
    /* Without a GPU versions of it say either. */
    if (code == HIP_NO_DEVICE || code == HIP_INVALID_DEVICE || (!code && *ret_count <= 0))
        return error_set(err, STATUS_NOT_FOUND, "expected an AMD GPU, found none");
    if (code)
        return error_set(err, STATUS_NOT_FOUND,
                         "expected the HIP runtime to start, found error %d (%s)", code,
                         error_name(hip, code));
    return STATUS_OK;
}

static enum status open_hip(struct hip **ret_hip, int *ret_count, struct error *err)
{
    struct hip *hip = calloc(1, sizeof(*hip));
    if (!hip)
        return error_set(err, STATUS_NO_MEMORY, "no memory for HIP");
    enum status status = open_library(hip, ret_count, err);
    if (status)
        close_runtime(hip);
    else
        *ret_hip = hip;
    return status;
}

enum status hip_device_count(uint32_t *ret_count, struct error *err)
{
    struct hip *hip;
    int count;
    TRY(open_hip(&hip, &count, err));
    close_runtime(hip);
    *ret_count = (uint32_t)count;
    return STATUS_OK;
}

enum status hip_device_open(uint32_t index, const struct device_options *options,
                            struct device **ret_device, struct error *err)
{
    struct hip *hip;
    int count;
    TRY(open_hip(&hip, &count, err));
    if (index >= (uint32_t)count) {
        close_runtime(hip);
        return error_set(err, STATUS_NOT_FOUND, "expected a device below hip:%d, found hip:%u",
                         count, index);
    }
    hip->device = (int)index;
    char unused[256]; /* without it an address may still be in the kernel's log */
    hip_fault_listen(unused, sizeof(unused));
    struct gpu_runtime runtime = hip_runtime;
    runtime.self = hip;
    return gpu_device_open(&runtime, options, ret_device, err);
}
