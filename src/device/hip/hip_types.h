/* hip_types.h - the types of the HIP runtime that hip_api.def names: our own declarations of a
 * public interface, so that building needs no ROCm. Enumerations are unsigned int here, which is
 * what they are in the library's calls; a test compares every size, offset and number with the
 * vendor's header where that is installed. */
#ifndef GRETA_DEVICE_HIP_HIP_TYPES_H
#define GRETA_DEVICE_HIP_HIP_TYPES_H

#include <stddef.h>
#include <stdint.h>

typedef unsigned int hipError_t;
typedef int hipDevice_t;
typedef unsigned int hipDeviceAttribute_t;
typedef unsigned int hipMemAllocationGranularity_flags;
typedef unsigned int hipStreamCaptureMode;
typedef unsigned int hipStreamCaptureStatus;

typedef struct ihipStream_t *hipStream_t;
typedef struct ihipEvent_t *hipEvent_t;
typedef struct ihipModule_t *hipModule_t;
typedef struct ihipModuleSymbol_t *hipFunction_t;
typedef struct ihipGraph *hipGraph_t;
typedef struct hipGraphNode *hipGraphNode_t;
typedef struct hipGraphExec *hipGraphExec_t;
typedef struct ihipMemGenericAllocationHandle *hipMemGenericAllocationHandle_t;

typedef struct {
    unsigned int type;
    int id;
} hipMemLocation;

typedef struct {
    unsigned int type;
    unsigned int requestedHandleType;
    hipMemLocation location;
    void *win32HandleMetaData;
    unsigned char allocFlags[8];
} hipMemAllocationProp;

typedef struct {
    hipMemLocation location;
    unsigned int flags;
} hipMemAccessDesc;

/* What the first field means has changed between versions; it is not used. */
typedef struct {
    unsigned int type;
    int device;
    void *devicePointer;
    void *hostPointer;
    int isManaged;
    unsigned int allocationFlags;
} hipPointerAttribute_t;

typedef struct {
    uint32_t x, y, z;
} hip_dim3;

typedef struct {
    hip_dim3 blockDim;
    void **extra;
    void *func;
    hip_dim3 gridDim;
    void **kernelParams;
    unsigned int sharedMemBytes;
} hipKernelNodeParams;

#endif
