/* types.h - the types of the HIP runtime that calls.def names: our own declarations of a public
 * interface. Handles are plain pointers here and enumerations unsigned int, which is what they are
 * in the library's calls; a test compares every call with the vendor's header where that is
 * installed. */
#ifndef GRETA_INTERPOSE_HIP_TYPES_H
#define GRETA_INTERPOSE_HIP_TYPES_H

#include <stddef.h>
#include <stdint.h>

typedef unsigned int hipError_t;
typedef unsigned int hipMemcpyKind;
typedef unsigned int hipStreamCaptureMode;
typedef unsigned int hipJitOption;
typedef unsigned int hipGraphExecUpdateResult;
typedef void *hipDeviceptr_t;
typedef void *hipStream_t;
typedef void *hipEvent_t;
typedef void *hipModule_t;
typedef void *hipFunction_t;
typedef void *hipGraph_t;
typedef void *hipGraphNode_t;
typedef void *hipGraphExec_t;
typedef void *hipMemPool_t;
typedef void *hipMemGenericAllocationHandle_t;
typedef void *hipExternalSemaphore_t;
typedef void hipArray;
typedef const void *hipArray_const_t;
typedef void (*hipStreamCallback_t)(hipStream_t stream, hipError_t status, void *data);
typedef void (*hipHostFn_t)(void *data);
typedef struct hipExternalSemaphoreWaitParams hipExternalSemaphoreWaitParams;
typedef struct hipExternalSemaphoreSignalParams hipExternalSemaphoreSignalParams;
typedef struct HIP_MEMCPY3D HIP_MEMCPY3D;
typedef struct hipIpcMemHandle_st hipIpcMemHandle_t;
typedef struct hipIpcEventHandle_st hipIpcEventHandle_t;

typedef struct {
    uint32_t x, y, z;
} dim3;

typedef struct {
    void *ptr;
    size_t pitch, xsize, ysize;
} hipPitchedPtr;

typedef struct {
    size_t width, height, depth;
} hipExtent;

typedef struct {
    size_t x, y, z;
} hipPos;

typedef struct hipMemcpy3DParms {
    void *srcArray;
    hipPos srcPos;
    hipPitchedPtr srcPtr;
    void *dstArray;
    hipPos dstPos;
    hipPitchedPtr dstPtr;
    hipExtent extent;
    hipMemcpyKind kind;
} hipMemcpy3DParms;

typedef struct {
    size_t srcXInBytes, srcY;
    unsigned int srcMemoryType;
    const void *srcHost;
    void *srcDevice, *srcArray;
    size_t srcPitch;
    size_t dstXInBytes, dstY;
    unsigned int dstMemoryType;
    void *dstHost;
    void *dstDevice, *dstArray;
    size_t dstPitch;
    size_t WidthInBytes, Height;
} hip_Memcpy2D;

typedef struct {
    void *dst;
    unsigned int elementSize;
    size_t height, pitch;
    unsigned int value;
    size_t width;
} hipMemsetParams;

typedef struct {
    dim3 blockDim;
    void **extra;
    void *func;
    dim3 gridDim;
    void **kernelParams;
    unsigned int sharedMemBytes;
} hipKernelNodeParams;

typedef struct hipLaunchParams_t {
    void *func;
    dim3 gridDim, blockDim;
    void **args;
    size_t sharedMem;
    hipStream_t stream;
} hipLaunchParams;

/* From newer versions, laid out as CUDA's. */
typedef struct {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    hipStream_t stream;
    void *attrs;
    unsigned int numAttrs;
} hipLaunchConfig_t;

typedef struct {
    unsigned int gridDimX, gridDimY, gridDimZ;
    unsigned int blockDimX, blockDimY, blockDimZ;
    unsigned int sharedMemBytes;
    hipStream_t hStream;
    void *attrs;
    unsigned int numAttrs;
} HIP_LAUNCH_CONFIG;

#endif
