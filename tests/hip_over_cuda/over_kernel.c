/* over_kernel.c - code objects, launches, graphs. */
#include "over.h"

#include "ops/gpu/plan.h"

#include <string.h>

#define CHIP "gfx942"

/* ---- Code ----------------------------------------------------------------------------------- */

/* True if the image is this code, byte for byte. An image has no length: the first byte that
 * differs ends the comparison. The zero that the build appends to all code is not part of it. */
static bool is_code(const char *image, const struct device_gpu_code *code)
{
    for (const char *byte = code->bytes; byte + 1 < code->end; byte++)
        if (*image++ != *byte)
            return false;
    return true;
}

static bool is_ours(const void *image)
{
    for (size_t i = 0; gpu_codes[i].vendor; i++)
        if (strcmp(gpu_codes[i].chip, CHIP) == 0 && is_code(image, &gpu_codes[i]))
            return true;
    return false;
}

/* A code object of this build for the chip that is played stands for the same kernels in the code
 * that the GPU below takes; any other is for another chip. */
hipError_t hipModuleLoadData(hipModule_t *module, const void *image)
{
    const struct over_api *api = over_enter();
    CUresult code = OVER_NO_BINARY;
    if (!api)
        return over_end(OVER_NO_DEVICE);
    if (!module || !image || !is_ours(image))
        return over_end(code);
    for (size_t i = 0; gpu_codes[i].vendor && code; i++)
        if (strcmp(gpu_codes[i].vendor, "cuda") == 0)
            code = api->calls.cuModuleLoadData((CUmodule *)(void *)module, gpu_codes[i].bytes);
    return over_end(code);
}

hipError_t hipModuleUnload(hipModule_t module)
{
    OVER_CALL(cuModuleUnload, (CUmodule)(void *)module);
}

/* HIP's kernels may use all the shared memory of a block without setting an attribute. */
hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t module, const char *name)
{
    CUfunction found = NULL;
    const struct over_api *api = over_enter();
    CUresult code = api ? api->calls.cuModuleGetFunction(&found, (CUmodule)(void *)module, name)
                        : OVER_NO_DEVICE;
    if (!code)
        code = api->calls.cuFuncSetAttribute(found, CUDA_FUNCTION_SHARED, OVER_SHARED_BYTES);
    if (!code)
        *function = (hipFunction_t)(void *)found;
    return over_end(code);
}

hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned int grid_x, unsigned int grid_y,
                                 unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                 unsigned int block_z, unsigned int shared_bytes,
                                 hipStream_t stream, void **params, void **extra)
{
    CUlaunchConfig config = { .gridDimX = grid_x,
                              .gridDimY = grid_y,
                              .gridDimZ = grid_z,
                              .blockDimX = block_x,
                              .blockDimY = block_y,
                              .blockDimZ = block_z,
                              .sharedMemBytes = shared_bytes,
                              .hStream = (CUstream)(void *)stream };
    OVER_CALL(cuLaunchKernelEx, &config, (CUfunction)(void *)function, params, extra);
}

/* ---- Graphs --------------------------------------------------------------------------------- */

hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode)
{
    OVER_CALL(cuStreamBeginCapture_v2, (CUstream)(void *)stream, mode);
}

hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t *graph)
{
    OVER_CALL(cuStreamEndCapture, (CUstream)(void *)stream, (CUgraph *)(void *)graph);
}

hipError_t hipStreamGetCaptureInfo_v2(hipStream_t stream, hipStreamCaptureStatus *status,
                                      unsigned long long *id, hipGraph_t *graph,
                                      const hipGraphNode_t **dependencies, size_t *dependency_count)
{
    OVER_CALL(cuStreamGetCaptureInfo_v2, (CUstream)(void *)stream, status, (cuuint64_t *)id,
              (CUgraph *)(void *)graph, (const CUgraphNode **)(void *)dependencies,
              dependency_count);
}

hipError_t hipGraphInstantiate(hipGraphExec_t *exec, hipGraph_t graph, hipGraphNode_t *node,
                               char *log, size_t log_bytes)
{
    (void)node;
    (void)log;
    (void)log_bytes;
    OVER_CALL(cuGraphInstantiateWithFlags, (CUgraphExec *)(void *)exec, (CUgraph)(void *)graph, 0);
}

hipError_t hipGraphExecKernelNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                           const hipKernelNodeParams *params)
{
    CUDA_KERNEL_NODE_PARAMS_v2 cuda = { .func = params->func,
                                        .gridDimX = params->gridDim.x,
                                        .gridDimY = params->gridDim.y,
                                        .gridDimZ = params->gridDim.z,
                                        .blockDimX = params->blockDim.x,
                                        .blockDimY = params->blockDim.y,
                                        .blockDimZ = params->blockDim.z,
                                        .sharedMemBytes = params->sharedMemBytes,
                                        .kernelParams = params->kernelParams,
                                        .extra = params->extra };
    OVER_CALL(cuGraphExecKernelNodeSetParams_v2, (CUgraphExec)(void *)exec,
              (CUgraphNode)(void *)node, &cuda);
}

hipError_t hipGraphLaunch(hipGraphExec_t exec, hipStream_t stream)
{
    OVER_CALL(cuGraphLaunch, (CUgraphExec)(void *)exec, (CUstream)(void *)stream);
}

hipError_t hipGraphExecDestroy(hipGraphExec_t exec)
{
    OVER_CALL(cuGraphExecDestroy, (CUgraphExec)(void *)exec);
}

hipError_t hipGraphDestroy(hipGraph_t graph)
{
    OVER_CALL(cuGraphDestroy, (CUgraph)(void *)graph);
}
