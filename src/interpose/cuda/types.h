/* types.h - the types of the CUDA driver that signatures.def names: our own declarations of a
 * public interface. A wrapper only passes its arguments on, so handles are pointers to nothing
 * known, enumerations are as wide as the compiler makes them, and structs that are passed by
 * address stay unknown. tests/tools/cupti_layout_test.c compares sizes and signatures with the
 * toolkit's. */
#ifndef GRETA_INTERPOSE_CUDA_TYPES_H
#define GRETA_INTERPOSE_CUDA_TYPES_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef unsigned long long CUdeviceptr;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;
typedef int CUdevice;
typedef unsigned int CUmemAllocationHandleType;
typedef unsigned int CUmemRangeHandleType;
typedef unsigned int CUtensorMapDataType;
typedef unsigned int CUtensorMapInterleave;
typedef unsigned int CUtensorMapSwizzle;
typedef unsigned int CUtensorMapL2promotion;
typedef unsigned int CUtensorMapFloatOOBfill;
typedef unsigned int CUpointer_attribute;
typedef unsigned int CUstreamCaptureMode;
typedef unsigned int CUdriverProcAddressQueryResult;
typedef unsigned int CUgraphExecUpdateResult;
typedef unsigned int CUjit_option;
typedef unsigned int CUlibraryOption;

/* Handles */
typedef struct CUarray_st *CUarray;
typedef struct CUctx_st *CUcontext;
typedef struct CUevent_st *CUevent;
typedef struct CUextSemaphore_st *CUexternalSemaphore;
typedef struct CUfunc_st *CUfunction;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUkern_st *CUkernel;
typedef struct CUlib_st *CUlibrary;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUmod_st *CUmodule;
typedef struct CUstream_st *CUstream;

typedef void (*CUhostFn)(void *data);
typedef void (*CUstreamCallback)(CUstream stream, CUresult status, void *data);

/* Structs that are passed by value */
typedef struct {
    char reserved[64];
} CUipcEventHandle;
typedef struct {
    char reserved[64];
} CUipcMemHandle;

/* Structs that are passed by address */
typedef struct CUDA_BATCH_MEM_OP_NODE_PARAMS CUDA_BATCH_MEM_OP_NODE_PARAMS;
typedef struct CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS;
typedef struct CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS;
typedef struct CUDA_EXT_SEM_SIGNAL_NODE_PARAMS CUDA_EXT_SEM_SIGNAL_NODE_PARAMS;
typedef struct CUDA_EXT_SEM_WAIT_NODE_PARAMS CUDA_EXT_SEM_WAIT_NODE_PARAMS;
typedef struct CUDA_GRAPH_INSTANTIATE_PARAMS CUDA_GRAPH_INSTANTIATE_PARAMS;
typedef struct CUDA_HOST_NODE_PARAMS CUDA_HOST_NODE_PARAMS;
typedef struct CUDA_KERNEL_NODE_PARAMS_v1 CUDA_KERNEL_NODE_PARAMS_v1;
typedef struct CUDA_KERNEL_NODE_PARAMS_v2 CUDA_KERNEL_NODE_PARAMS_v2;
typedef struct CUDA_LAUNCH_PARAMS CUDA_LAUNCH_PARAMS;
typedef struct CUDA_MEMCPY2D CUDA_MEMCPY2D;
typedef struct CUDA_MEMCPY3D CUDA_MEMCPY3D;
typedef struct CUDA_MEMCPY3D_BATCH_OP CUDA_MEMCPY3D_BATCH_OP;
typedef struct CUDA_MEMCPY3D_PEER CUDA_MEMCPY3D_PEER;
typedef struct CUDA_MEMSET_NODE_PARAMS CUDA_MEMSET_NODE_PARAMS;
typedef struct CUDA_MEM_ALLOC_NODE_PARAMS CUDA_MEM_ALLOC_NODE_PARAMS;
typedef struct CUgraphEdgeData CUgraphEdgeData;
typedef struct CUgraphExecUpdateResultInfo CUgraphExecUpdateResultInfo;
typedef struct CUgraphNodeParams CUgraphNodeParams;
typedef struct CUlaunchConfig CUlaunchConfig;
typedef struct CUmemPoolPtrExportData CUmemPoolPtrExportData;
typedef struct CUmemcpyAttributes CUmemcpyAttributes;
typedef struct CUstreamBatchMemOpParams CUstreamBatchMemOpParams;
typedef struct CUtensorMap CUtensorMap;

#endif
