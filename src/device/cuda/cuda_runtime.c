/* cuda_runtime.c - the calls of device/gpu/gpu.h over CUDA's driver API. What HIP does in the same
 * way is in device/gpu/runtime_calls.h. */
#include "device/cuda/cuda.h"

#include "device/cuda/cuda_api.h"
#include "device/cuda/cuda_coredump.h"
#include "device/gpu/gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Dependent launches, which the kernels are written for, came with this version. */
#define DRIVER_MINIMUM 12000

struct runtime {
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
    return &((struct runtime *)self)->api;
}

/* ---- Device --------------------------------------------------------------------------------- */

static void close_runtime(void *self)
{
    struct runtime *cuda = self;
    if (cuda->context)
        cuda->api.cuDevicePrimaryCtxRelease_v2(cuda->device);
    dynlib_close(cuda->library);
    free(cuda);
}

static int attribute(const struct runtime *cuda, enum cuda_number number)
{
    int value = 0;
    cuda->api.cuDeviceGetAttribute(&value, (CUdevice_attribute)number, cuda->device);
    return value;
}

static void get_facts(void *self, struct gpu_facts *ret_facts)
{
    const struct runtime *cuda = self;
    size_t bytes = 0;
    char name[64] = "NVIDIA GPU";
    cuda->api.cuDeviceGetName(name, sizeof(name), cuda->device);
    cuda->api.cuDeviceTotalMem_v2(&bytes, cuda->device);
    *ret_facts = (struct gpu_facts){
        .memory_bytes = bytes,
        .chip = { .sm_count = (uint32_t)attribute(cuda, CUDA_PROCESSOR_COUNT),
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

static int enter(void *self)
{
    return (int)api_of(self)->cuCtxSetCurrent(((struct runtime *)self)->context);
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
    bool here = ordinal == ((struct runtime *)self)->device;
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

/* ---- Kernels -------------------------------------------------------------------------------- */

/* PTX runs on the capability it was made for and on later ones, that of sm_90a, of which there may
 * be machine code as well, on that one alone. */
static bool code_fits(void *self, const struct device_gpu_code *code)
{
    const struct runtime *cuda = self;
    int here = attribute(cuda, CUDA_MAJOR) * 10 + attribute(cuda, CUDA_MINOR);
    static const char prefix[] = "sm_";
    if (strncmp(code->chip, prefix, sizeof(prefix) - 1) != 0)
        return false;
    char *suffix;
    long made_for = strtol(code->chip + sizeof(prefix) - 1, &suffix, 10);
    return *suffix ? here == made_for : here >= made_for;
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
    struct runtime *cuda = self;
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
    ((struct runtime *)self)->capturing_first = true;
    return (int)api_of(self)->cuStreamBeginCapture_v2(stream, CUDA_CAPTURE_THREAD);
}

static int end_capture(void *self, void *stream, void **ret_graph, void **ret_exec)
{
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    ((struct runtime *)self)->capturing_first = false;
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
    ((struct runtime *)self)->capturing_first = false;
    int code = (int)api_of(self)->cuStreamGetCaptureInfo_v2(stream, &status, NULL, NULL, &nodes,
                                                            &count);
    *ret_node = !code && count ? nodes[0] : NULL;
    return code;
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

/* ---- Opening -------------------------------------------------------------------------------- */

static enum status open_library(struct runtime *cuda, int *ret_count, struct error *err)
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

#define RUNTIME_KIND "cuda"
#define RUNTIME_TITLE "CUDA"
#define RUNTIME_PINNED (CUDA_HOST_PORTABLE | CUDA_HOST_MAPPED)
#include "device/gpu/runtime_calls.h"

enum status cuda_device_count(uint32_t *ret_count, struct error *err)
{
    return count_devices(ret_count, err);
}

enum status cuda_device_open(uint32_t index, const struct device_options *options,
                             struct device **ret_device, struct error *err)
{
    struct runtime *cuda;
    TRY(open_runtime_of(index, &cuda, err));
    if (options->coredump)
        (void)cuda_coredump_arm(cuda->library, options->coredump);
    int code = (int)cuda->api.cuDeviceGet(&cuda->device, (int)index);
    if (!code)
        code = (int)cuda->api.cuDevicePrimaryCtxRetain(&cuda->context, cuda->device);
    struct gpu_runtime runtime = runtime_calls;
    runtime.self = cuda;
    if (code) {
        enum status status = gpu_open_failed(&runtime, "its context", code, err);
        close_runtime(cuda);
        return status;
    }
    cuda->early_start = attribute(cuda, CUDA_MAJOR) >= 9;
    return gpu_device_open(&runtime, options, ret_device, err);
}
