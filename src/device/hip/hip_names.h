/* hip_names.h - maps CUDA's names to HIP's, so that device/gpu/runtime_calls.h
 * serves both. Only hip_runtime.c includes it. */
#ifndef GRETA_DEVICE_HIP_HIP_NAMES_H
#define GRETA_DEVICE_HIP_HIP_NAMES_H

#include "device/hip/hip_api.h"

typedef void *CUdeviceptr;
typedef hipStream_t CUstream;
typedef hipEvent_t CUevent;
typedef hipModule_t CUmodule;
typedef hipFunction_t CUfunction;
typedef hipMemGenericAllocationHandle_t CUmemGenericAllocationHandle;
typedef hipMemAllocationProp CUmemAllocationProp;
typedef hipMemAccessDesc CUmemAccessDesc;

#define CUDA_NO_MEMORY HIP_NO_MEMORY
#define CUDA_NOT_READY HIP_NOT_READY
#define CUDA_REGISTER_MAPPED HIP_REGISTER_MAPPED
#define CUDA_MEMORY_PINNED HIP_MEMORY_PINNED
#define CUDA_LOCATION_DEVICE HIP_LOCATION_DEVICE
#define CUDA_ACCESS_READ_WRITE HIP_ACCESS_READ_WRITE
#define CUDA_GRANULARITY_MINIMUM HIP_GRANULARITY_MINIMUM
#define CUDA_STREAM_NON_BLOCKING HIP_STREAM_NON_BLOCKING
#define CUDA_EVENT_NO_TIMING HIP_EVENT_NO_TIMING
#define CUDA_EVENT_BLOCKING HIP_EVENT_BLOCKING

#define cuMemAlloc_v2 hipMalloc
#define cuMemFree_v2 hipFree
#define cuMemHostAlloc hipHostMalloc
#define cuMemFreeHost hipHostFree
#define cuMemHostGetDevicePointer_v2 hipHostGetDevicePointer
#define cuMemHostRegister_v2 hipHostRegister
#define cuMemHostUnregister hipHostUnregister
#define cuMemGetAllocationGranularity hipMemGetAllocationGranularity
#define cuMemAddressReserve hipMemAddressReserve
#define cuMemAddressFree hipMemAddressFree
#define cuMemCreate hipMemCreate
#define cuMemRelease hipMemRelease
#define cuMemMap hipMemMap
#define cuMemUnmap hipMemUnmap
#define cuMemSetAccess hipMemSetAccess
#define cuStreamCreate hipStreamCreateWithFlags
#define cuStreamDestroy_v2 hipStreamDestroy
#define cuStreamSynchronize hipStreamSynchronize
#define cuStreamQuery hipStreamQuery
#define cuStreamWaitEvent hipStreamWaitEvent
#define cuEventCreate hipEventCreateWithFlags
#define cuEventDestroy_v2 hipEventDestroy
#define cuEventRecord hipEventRecord
#define cuEventSynchronize hipEventSynchronize
#define cuEventQuery hipEventQuery
#define cuMemcpyHtoDAsync_v2 hipMemcpyHtoDAsync
#define cuMemcpyDtoHAsync_v2 hipMemcpyDtoHAsync
#define cuMemcpyDtoDAsync_v2 hipMemcpyDtoDAsync
#define cuMemsetD8Async hipMemsetD8Async
#define cuModuleLoadData hipModuleLoadData
#define cuModuleUnload hipModuleUnload
#define cuModuleGetFunction hipModuleGetFunction
#define cuGraphExecDestroy hipGraphExecDestroy
#define cuGraphDestroy hipGraphDestroy
#define cuGraphLaunch hipGraphLaunch

#endif
