/* cuda_runtime.c - the calls of device/gpu/gpu.h over CUDA's driver API. */
#include "device/cuda/cuda.h"

#include "device/cuda/cuda_api.h"
#include "device/gpu/gpu.h"

#include <stdio.h>
#include <stdlib.h>

/* Dependent launches, which the kernels are written for, came with this version. */
#define DRIVER_MINIMUM 12000

struct cuda {
    struct cuda_api api;
    struct dynlib *library;
    CUdevice device;
    CUcontext context;
    int driver_version;
    bool early_start;     /* a kernel may begin before the one before it has ended */
    bool capturing_first; /* nothing was captured yet: there is nothing to overlap with */
};

static const struct cuda_api *api_of(void *self)
{
    return &((struct cuda *)self)->api;
}

/* ---- Device --------------------------------------------------------------------------------- */

static void close_runtime(void *self)
{
    struct cuda *cuda = self;
    if (cuda->context)
        cuda->api.cuDevicePrimaryCtxRelease_v2(cuda->device);
    dynlib_close(cuda->library);
    free(cuda);
}

static int attribute(const struct cuda *cuda, enum cuda_number number)
{
    int value = 0;
    cuda->api.cuDeviceGetAttribute(&value, (CUdevice_attribute)number, cuda->device);
    return value;
}

static void get_facts(void *self, struct gpu_facts *ret_facts)
{
    const struct cuda *cuda = self;
    size_t bytes = 0;
    char name[64] = "NVIDIA GPU";
    cuda->api.cuDeviceGetName(name, sizeof(name), cuda->device);
    cuda->api.cuDeviceTotalMem_v2(&bytes, cuda->device);
    *ret_facts = (struct gpu_facts){
        .memory_bytes = bytes,
        .chip = { .processor_count = (uint32_t)attribute(cuda, CUDA_PROCESSOR_COUNT),
                  .shared_bytes = (uint32_t)attribute(cuda, CUDA_BLOCK_SHARED),
                  .processor_shared_bytes = (uint64_t)attribute(cuda, CUDA_PROCESSOR_SHARED),
                  .thread_limit = 1024 },
        .early_start = cuda->early_start,
    };
    snprintf(ret_facts->name, sizeof(ret_facts->name), "%s (sm_%d%d)", name,
             attribute(cuda, CUDA_MAJOR), attribute(cuda, CUDA_MINOR));
    snprintf(ret_facts->driver, sizeof(ret_facts->driver), "CUDA %d.%d",
             cuda->driver_version / 1000, cuda->driver_version % 1000 / 10);
}

static const char *error_name(void *self, int code)
{
    const char *name = NULL;
    if (api_of(self)->cuGetErrorName((CUresult)code, &name) || !name)
        return "unknown error";
    return name;
}

static bool is_fault(int code)
{
    return code == CUDA_CONTEXT_IS_DESTROYED || code == CUDA_ASSERT ||
           code == CUDA_LAUNCH_TIMEOUT || code == CUDA_ILLEGAL_ADDRESS ||
           (code >= CUDA_HARDWARE_STACK_ERROR && code <= CUDA_LAUNCH_FAILED);
}

static bool is_no_memory(int code)
{
    return code == CUDA_NO_MEMORY;
}

static int enter(void *self)
{
    return (int)api_of(self)->cuCtxSetCurrent(((struct cuda *)self)->context);
}

/* The driver tells the number of an error and no more. */
static bool find_fault(void *self, uint64_t *ret_address, char *reason, size_t reason_bytes)
{
    (void)self;
    (void)ret_address;
    (void)reason;
    (void)reason_bytes;
    return false;
}

/* ---- Memory --------------------------------------------------------------------------------- */

static int create_memory(void *self, uint64_t bytes, uint64_t *ret_address)
{
    CUdeviceptr address = 0;
    int code = (int)api_of(self)->cuMemAlloc_v2(&address, (size_t)bytes);
    *ret_address = address;
    return code;
}

static int destroy_memory(void *self, uint64_t address)
{
    return (int)api_of(self)->cuMemFree_v2(address);
}

static int find_address(void *self, void *memory, uint64_t *ret_address)
{
    CUdeviceptr address = 0;
    int code = (int)api_of(self)->cuMemHostGetDevicePointer_v2(&address, memory, 0);
    *ret_address = address;
    return code;
}

static int create_pinned(void *self, uint64_t bytes, void **ret_memory, uint64_t *ret_address)
{
    int code = (int)api_of(self)->cuMemHostAlloc(ret_memory, (size_t)bytes,
                                                 CUDA_HOST_PORTABLE | CUDA_HOST_MAPPED);
    if (code)
        return code;
    code = find_address(self, *ret_memory, ret_address);
    if (code) {
        api_of(self)->cuMemFreeHost(*ret_memory);
        *ret_memory = NULL;
    }
    return code;
}

static int destroy_pinned(void *self, void *memory)
{
    return (int)api_of(self)->cuMemFreeHost(memory);
}

static int pin(void *self, void *memory, uint64_t bytes, uint64_t *ret_address)
{
    int code = (int)api_of(self)->cuMemHostRegister_v2(memory, (size_t)bytes, CUDA_REGISTER_MAPPED);
    if (code)
        return code;
    code = find_address(self, memory, ret_address);
    if (code)
        api_of(self)->cuMemHostUnregister(memory);
    return code;
}

static int unpin(void *self, void *memory)
{
    return (int)api_of(self)->cuMemHostUnregister(memory);
}

static int ask_pointer(void *self, uint64_t address, struct gpu_pointer *ret_pointer)
{
    unsigned int type = 0, mapped = 0;
    int ordinal = -1;
    CUdeviceptr start = 0;
    size_t bytes = 0;
    CUpointer_attribute attributes[] = { CUDA_POINTER_TYPE, CUDA_POINTER_DEVICE, CUDA_POINTER_START,
                                         CUDA_POINTER_BYTES, CUDA_POINTER_MAPPED };
    void *data[] = { &type, &ordinal, &start, &bytes, &mapped };
    int code = (int)api_of(self)->cuPointerGetAttributes(COUNT_OF(attributes), attributes, data,
                                                         address);
    if (code)
        return code;
    bool here = ordinal == ((struct cuda *)self)->device;
    *ret_pointer = (struct gpu_pointer){
        .is_memory = type == CUDA_TYPE_DEVICE && here && mapped,
        .words = type == CUDA_TYPE_HOST                ? "memory of the host"
                 : type != CUDA_TYPE_DEVICE && !mapped ? "an address it knows nothing of"
                 : type == CUDA_TYPE_DEVICE && !here   ? "memory of another device"
                                                       : "a reserved address with no memory",
        .range_start = start,
        .range_bytes = bytes,
    };
    return 0;
}

/* ---- Ranges --------------------------------------------------------------------------------- */

static CUmemAllocationProp properties_of(const struct cuda *cuda)
{
    return (CUmemAllocationProp){ .type = CUDA_MEMORY_PINNED,
                                  .location = { CUDA_LOCATION_DEVICE, cuda->device } };
}

static int get_granularity(void *self, uint64_t *ret_bytes)
{
    CUmemAllocationProp properties = properties_of(self);
    size_t bytes = 0;
    int code = (int)api_of(self)->cuMemGetAllocationGranularity(&bytes, &properties,
                                                                CUDA_GRANULARITY_MINIMUM);
    *ret_bytes = bytes;
    return code;
}

static int create_range(void *self, uint64_t bytes, uint64_t *ret_address)
{
    CUdeviceptr address = 0;
    int code = (int)api_of(self)->cuMemAddressReserve(&address, (size_t)bytes, 0, 0, 0);
    *ret_address = address;
    return code;
}

static int destroy_range(void *self, uint64_t address, uint64_t bytes)
{
    return (int)api_of(self)->cuMemAddressFree(address, (size_t)bytes);
}

static int map_range(void *self, uint64_t address, uint64_t bytes, uint64_t *ret_memory)
{
    const struct cuda_api *api = api_of(self);
    CUmemAllocationProp properties = properties_of(self);
    CUmemAccessDesc access = { properties.location, CUDA_ACCESS_READ_WRITE };
    CUmemGenericAllocationHandle memory;
    int code = (int)api->cuMemCreate(&memory, (size_t)bytes, &properties, 0);
    if (code)
        return code;
    code = (int)api->cuMemMap(address, (size_t)bytes, 0, memory, 0);
    if (!code) {
        code = (int)api->cuMemSetAccess(address, (size_t)bytes, &access, 1);
        if (code)
            api->cuMemUnmap(address, (size_t)bytes);
    }
    if (code)
        api->cuMemRelease(memory);
    *ret_memory = memory;
    return code;
}

static int unmap_range(void *self, uint64_t address, uint64_t bytes, uint64_t memory)
{
    int code = (int)api_of(self)->cuMemUnmap(address, (size_t)bytes);
    int released = (int)api_of(self)->cuMemRelease(memory);
    return code ? code : released;
}

/* ---- Streams and events --------------------------------------------------------------------- */

static int create_stream(void *self, void **ret_stream)
{
    CUstream stream = NULL;
    int code = (int)api_of(self)->cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING);
    *ret_stream = stream;
    return code;
}

static int destroy_stream(void *self, void *stream)
{
    return (int)api_of(self)->cuStreamDestroy_v2(stream);
}

static int sync_stream(void *self, void *stream)
{
    return (int)api_of(self)->cuStreamSynchronize(stream);
}

static int create_event(void *self, bool idle, void **ret_event)
{
    CUevent event = NULL;
    int code = (int)api_of(self)->cuEventCreate(&event, CUDA_EVENT_NO_TIMING |
                                                            (idle ? CUDA_EVENT_BLOCKING : 0));
    *ret_event = event;
    return code;
}

static int destroy_event(void *self, void *event)
{
    return (int)api_of(self)->cuEventDestroy_v2(event);
}

static int record_event(void *self, void *event, void *stream)
{
    return (int)api_of(self)->cuEventRecord(event, stream);
}

static int wait_event(void *self, void *event, void *stream)
{
    return (int)api_of(self)->cuStreamWaitEvent(stream, event, 0);
}

static int sync_event(void *self, void *event)
{
    return (int)api_of(self)->cuEventSynchronize(event);
}

static int query_stream(void *self, void *stream)
{
    int code = (int)api_of(self)->cuStreamQuery(stream);
    return code == CUDA_NOT_READY ? 0 : code;
}

static int query_event(void *self, void *event, bool *ret_passed)
{
    int code = (int)api_of(self)->cuEventQuery(event);
    *ret_passed = code == 0;
    return code == CUDA_NOT_READY ? 0 : code;
}

/* ---- Bytes ---------------------------------------------------------------------------------- */

static int copy_in(void *self, uint64_t target, const void *source, uint64_t bytes, void *stream)
{
    return (int)api_of(self)->cuMemcpyHtoDAsync_v2(target, source, (size_t)bytes, stream);
}

static int copy_out(void *self, void *target, uint64_t source, uint64_t bytes, void *stream)
{
    return (int)api_of(self)->cuMemcpyDtoHAsync_v2(target, source, (size_t)bytes, stream);
}

static int copy_within(void *self, uint64_t target, uint64_t source, uint64_t bytes, void *stream)
{
    return (int)api_of(self)->cuMemcpyDtoDAsync_v2(target, source, (size_t)bytes, stream);
}

static int fill(void *self, uint64_t target, uint8_t byte, uint64_t bytes, void *stream)
{
    return (int)api_of(self)->cuMemsetD8Async(target, byte, (size_t)bytes, stream);
}

/* ---- Kernels -------------------------------------------------------------------------------- */

/* PTX runs on the capability it was made for and on later ones, that of sm_90a, of which there may
 * be machine code as well, on that one alone. */
static bool code_fits(void *self, const struct device_gpu_code *code)
{
    const struct cuda *cuda = self;
    int here = attribute(cuda, CUDA_MAJOR) * 10 + attribute(cuda, CUDA_MINOR), made_for = 0;
    int length = 0;
    if (sscanf(code->chip, "sm_%d%n", &made_for, &length) != 1)
        return false;
    return code->chip[length] ? here == made_for : here >= made_for;
}

static int load_module(void *self, const void *code, void **ret_module)
{
    CUmodule module = NULL;
    int result = (int)api_of(self)->cuModuleLoadData(&module, code);
    *ret_module = result ? NULL : module;
    return result;
}

static int unload_module(void *self, void *module)
{
    return (int)api_of(self)->cuModuleUnload(module);
}

static int find_function(void *self, void *module, const char *name, void **ret_function)
{
    CUfunction function = NULL;
    int code = (int)api_of(self)->cuModuleGetFunction(&function, module, name);
    *ret_function = function;
    return code;
}

/* A processor changes how much of its cache is shared memory only when it is idle. Kernels that all
 * want as much as there is can follow each other without that, and stand side by side. */
static int allow_shared(void *self, void *function, uint32_t bytes)
{
    const struct cuda_api *api = api_of(self);
    int code = (int)api->cuFuncSetAttribute(function, CUDA_FUNCTION_SHARED, (int)bytes);
    return code ? code : (int)api->cuFuncSetAttribute(function, CUDA_FUNCTION_CARVEOUT, 100);
}

static int launch(void *self, void *function, const struct gpu_grid *grid, void *stream,
                  struct gpu_call *call)
{
    struct cuda *cuda = self;
    void *params[] = { call };
    CUlaunchAttribute early = { .id = CUDA_EARLY_START,
                                .value = { .programmaticStreamSerializationAllowed = 1 } };
    CUlaunchConfig config = { .gridDimX = grid->x,
                              .gridDimY = grid->y,
                              .gridDimZ = 1,
                              .blockDimX = grid->threads,
                              .blockDimY = 1,
                              .blockDimZ = 1,
                              .sharedMemBytes = grid->shared_bytes,
                              .hStream = stream,
                              .attrs = &early,
                              .numAttrs = cuda->early_start && !cuda->capturing_first };
    return (int)cuda->api.cuLaunchKernelEx(&config, function, params, NULL);
}

/* ---- Graphs --------------------------------------------------------------------------------- */

static int begin_capture(void *self, void *stream)
{
    ((struct cuda *)self)->capturing_first = true;
    return (int)api_of(self)->cuStreamBeginCapture_v2(stream, CUDA_CAPTURE_THREAD);
}

static int end_capture(void *self, void *stream, void **ret_graph, void **ret_exec)
{
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    ((struct cuda *)self)->capturing_first = false;
    int code = (int)api_of(self)->cuStreamEndCapture(stream, &graph);
    if (!code)
        code = (int)api_of(self)->cuGraphInstantiateWithFlags(&exec, graph, 0);
    *ret_graph = graph;
    *ret_exec = exec;
    return code;
}

static int find_captured(void *self, void *stream, void **ret_node)
{
    CUstreamCaptureStatus status;
    const CUgraphNode *nodes = NULL;
    size_t count = 0;
    ((struct cuda *)self)->capturing_first = false;
    int code = (int)api_of(self)->cuStreamGetCaptureInfo_v2(stream, &status, NULL, NULL, &nodes,
                                                            &count);
    *ret_node = !code && count ? nodes[0] : NULL;
    return code;
}

static int destroy_graph(void *self, void *graph, void *exec)
{
    int code = exec ? (int)api_of(self)->cuGraphExecDestroy(exec) : 0;
    int second = graph ? (int)api_of(self)->cuGraphDestroy(graph) : 0;
    return code ? code : second;
}

static int set_call(void *self, void *exec, void *node, void *function, const struct gpu_grid *grid,
                    struct gpu_call *call)
{
    void *list[] = { call };
    CUDA_KERNEL_NODE_PARAMS_v2 params = { .func = function,
                                          .gridDimX = grid->x,
                                          .gridDimY = grid->y,
                                          .gridDimZ = 1,
                                          .blockDimX = grid->threads,
                                          .blockDimY = 1,
                                          .blockDimZ = 1,
                                          .sharedMemBytes = grid->shared_bytes,
                                          .kernelParams = list };
    return (int)api_of(self)->cuGraphExecKernelNodeSetParams_v2(exec, node, &params);
}

static int launch_graph(void *self, void *exec, void *stream)
{
    return (int)api_of(self)->cuGraphLaunch(exec, stream);
}

/* ---- Opening -------------------------------------------------------------------------------- */

static const struct gpu_runtime cuda_runtime = {
    .kind = "cuda",
    .title = "CUDA",
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

static enum status open_library(struct cuda *cuda, int *ret_count, struct error *err)
{
    TRY(cuda_api_open(&cuda->api, &cuda->library, err));
    int code = (int)cuda->api.cuInit(0);
    if (!code)
        code = (int)cuda->api.cuDriverGetVersion(&cuda->driver_version);
    if (!code)
        code = (int)cuda->api.cuDeviceGetCount(ret_count);
    if (code == CUDA_NO_DEVICE || (!code && *ret_count <= 0))
        return error_set(err, STATUS_NOT_FOUND, "expected an NVIDIA GPU, found none");
    if (code)
        return error_set(err, STATUS_NOT_FOUND,
                         "expected CUDA's driver to start, found error %d (%s)", code,
                         error_name(cuda, code));
    if (cuda->driver_version < DRIVER_MINIMUM)
        return error_set(err, STATUS_UNSUPPORTED,
                         "expected a driver for CUDA %d.0 or later, found one for %d.%d",
                         DRIVER_MINIMUM / 1000, cuda->driver_version / 1000,
                         cuda->driver_version % 1000 / 10);
    return STATUS_OK;
}

static enum status open_cuda(struct cuda **ret_cuda, int *ret_count, struct error *err)
{
    struct cuda *cuda = calloc(1, sizeof(*cuda));
    if (!cuda)
        return error_set(err, STATUS_NO_MEMORY, "no memory for CUDA");
    enum status status = open_library(cuda, ret_count, err);
    if (status)
        close_runtime(cuda);
    else
        *ret_cuda = cuda;
    return status;
}

enum status cuda_device_count(uint32_t *ret_count, struct error *err)
{
    struct cuda *cuda;
    int count;
    TRY(open_cuda(&cuda, &count, err));
    close_runtime(cuda);
    *ret_count = (uint32_t)count;
    return STATUS_OK;
}

enum status cuda_device_open(uint32_t index, const struct device_options *options,
                             struct device **ret_device, struct error *err)
{
    struct cuda *cuda;
    int count;
    TRY(open_cuda(&cuda, &count, err));
    if (index >= (uint32_t)count) {
        close_runtime(cuda);
        return error_set(err, STATUS_NOT_FOUND, "expected a device below cuda:%d, found cuda:%u",
                         count, index);
    }
    int code = (int)cuda->api.cuDeviceGet(&cuda->device, (int)index);
    if (!code)
        code = (int)cuda->api.cuDevicePrimaryCtxRetain(&cuda->context, cuda->device);
    struct gpu_runtime runtime = cuda_runtime;
    runtime.self = cuda;
    if (code) {
        enum status status = gpu_open_failed(&runtime, "its context", code, err);
        close_runtime(cuda);
        return status;
    }
    cuda->early_start = attribute(cuda, CUDA_MAJOR) >= 9;
    return gpu_device_open(&runtime, options, ret_device, err);
}
