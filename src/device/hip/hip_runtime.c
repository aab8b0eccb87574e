/* hip_runtime.c - the calls of device/gpu/gpu.h over the HIP runtime's module API. What CUDA does
 * in the same way is in device/gpu/runtime_calls.h. */
#include "device/hip/hip.h"

#include "device/gpu/gpu.h"
#include "device/hip/hip_api.h"
#include "device/hip/hip_fault.h"
#include "device/hip/hip_names.h"

#include <stdio.h>
#include <stdlib.h>

/* The members of hipMemAllocationProp stood in another order before this version. */
#define RANGES_MINIMUM 50300000

struct runtime {
    struct hip_api api;
    struct dynlib *library;
    int device;
    int driver_version;
};

static const struct hip_api *api_of(void *self)
{
    return &((struct runtime *)self)->api;
}

/* ---- Device --------------------------------------------------------------------------------- */

static void close_runtime(void *self)
{
    struct runtime *hip = self;
    dynlib_close(hip->library);
    free(hip);
}

static uint32_t attribute(const struct runtime *hip, hipDeviceAttribute_t number)
{
    int value = 0;
    hip->api.hipDeviceGetAttribute(&value, number, hip->device);
    return value > 0 ? (uint32_t)value : 0;
}

static void get_facts(void *self, struct gpu_facts *ret_facts)
{
    const struct runtime *hip = self;
    size_t bytes = 0;
    char name[64] = "AMD GPU";
    hip->api.hipDeviceGetName(name, sizeof(name), hip->device);
    hip->api.hipDeviceTotalMem(&bytes, hip->device);
    uint32_t shared = attribute(hip, HIP_BLOCK_SHARED);
    *ret_facts = (struct gpu_facts){
        .memory_bytes = bytes,
        .chip = { .sm_count = attribute(hip, HIP_PROCESSOR_COUNT),
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

static int enter(void *self)
{
    return (int)api_of(self)->hipSetDevice(((struct runtime *)self)->device);
}

static bool find_fault(void *self, uint64_t *ret_address, char *reason, size_t reason_bytes)
{
    (void)self;
    return hip_fault_find(ret_address, reason, reason_bytes);
}

static int ask_pointer(void *self, uint64_t address, struct gpu_pointer *ret_pointer)
{
    const struct hip_api *api = api_of(self);
    hipPointerAttribute_t attributes = { .device = -1 };
    void *start = NULL, *pointer = (void *)(uintptr_t)address;
    size_t bytes = 0;
    /* HIP reports an unknown address as an error, which is an answer here. */
    if (api->hipPointerGetAttributes(&attributes, pointer) || !attributes.devicePointer) {
        *ret_pointer = (struct gpu_pointer){ .words = "an address it knows nothing of" };
        return 0;
    }
    bool here = attributes.device == ((struct runtime *)self)->device;
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

static bool has_ranges(const struct runtime *hip)
{
    const struct hip_api *api = &hip->api;
    return hip->driver_version >= RANGES_MINIMUM && api->hipMemGetAllocationGranularity &&
           api->hipMemAddressReserve && api->hipMemAddressFree && api->hipMemCreate &&
           api->hipMemRelease && api->hipMemMap && api->hipMemUnmap && api->hipMemSetAccess;
}

/* ---- Kernels -------------------------------------------------------------------------------- */

/* The chip's name is only in a struct whose layout differs between versions of HIP. So this loads
 * the code to find out, which involves no compilation. */
static bool code_fits(void *self, const struct device_gpu_code *code)
{
    hipModule_t module = NULL;
    if (api_of(self)->hipModuleLoadData(&module, code->bytes))
        return false;
    api_of(self)->hipModuleUnload(module);
    return true;
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

/* ---- Opening -------------------------------------------------------------------------------- */

static enum status open_library(struct runtime *hip, int *ret_count, struct error *err)
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

#define RUNTIME_KIND "hip"
#define RUNTIME_TITLE "HIP"
/* Coherent: what a kernel wrote can be read while it runs, and after it faulted. */
#define RUNTIME_PINNED (HIP_HOST_PORTABLE | HIP_HOST_MAPPED | HIP_HOST_COHERENT)
#include "device/gpu/runtime_calls.h"

static int get_granularity_if_any(void *self, uint64_t *ret_bytes)
{
    return has_ranges(self) ? get_granularity(self, ret_bytes) : HIP_NOT_SUPPORTED;
}

enum status hip_device_count(uint32_t *ret_count, struct error *err)
{
    return count_devices(ret_count, err);
}

enum status hip_device_open(uint32_t index, const struct device_options *options,
                            struct device **ret_device, struct error *err)
{
    struct runtime *hip;
    TRY(open_runtime_of(index, &hip, err));
    hip->device = (int)index;
    char unused[256]; /* without it an address may still be in the kernel's log */
    hip_fault_listen(unused, sizeof(unused));
    struct gpu_runtime runtime = runtime_calls;
    runtime.granularity = get_granularity_if_any;
    runtime.self = hip;
    return gpu_device_open(&runtime, options, ret_device, err);
}
