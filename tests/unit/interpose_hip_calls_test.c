/* interpose_hip_calls_test.c - the calls that are wrapped against the vendor's header, where that
 * is installed: every function's type, every struct's size and offsets. */
#include "hip_header.h"

#if defined(GRETA_HAS_HIP_H)

#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>

/* Needs the types of the one above. */
#include <hip/amd_detail/amd_hip_runtime_pt_api.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#define HIP_AS_IN_HEADER
#define HIP_ROW(name, parameters, ...)                                                             \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&name), hipError_t(*) parameters),      \
                   #name " is as in hip_runtime_api.h");
#include "interpose/hip/rows.def"
#undef HIP_ROW

/* The structs as we declare them, under other names. */
#define hipError_t our_hipError_t
#define hipMemcpyKind our_hipMemcpyKind
#define hipStreamCaptureMode our_hipStreamCaptureMode
#define hipJitOption our_hipJitOption
#define hipGraphExecUpdateResult our_hipGraphExecUpdateResult
#define hipDeviceptr_t our_hipDeviceptr_t
#define hipStream_t our_hipStream_t
#define hipEvent_t our_hipEvent_t
#define hipModule_t our_hipModule_t
#define hipFunction_t our_hipFunction_t
#define hipGraph_t our_hipGraph_t
#define hipGraphNode_t our_hipGraphNode_t
#define hipGraphExec_t our_hipGraphExec_t
#define hipMemPool_t our_hipMemPool_t
#define hipMemGenericAllocationHandle_t our_hipMemGenericAllocationHandle_t
#define hipExternalSemaphore_t our_hipExternalSemaphore_t
#define hipArray our_hipArray
#define hipArray_const_t our_hipArray_const_t
#define hipStreamCallback_t our_hipStreamCallback_t
#define hipHostFn_t our_hipHostFn_t
#define hipExternalSemaphoreWaitParams our_hipExternalSemaphoreWaitParams
#define hipExternalSemaphoreSignalParams our_hipExternalSemaphoreSignalParams
#define HIP_MEMCPY3D our_HIP_MEMCPY3D
#define dim3 our_dim3
#define hipPitchedPtr our_hipPitchedPtr
#define hipExtent our_hipExtent
#define hipPos our_hipPos
#define hipMemcpy3DParms our_hipMemcpy3DParms
#define hip_Memcpy2D our_hip_Memcpy2D
#define hipMemsetParams our_hipMemsetParams
#define hipKernelNodeParams our_hipKernelNodeParams
#define hipLaunchParams_t our_hipLaunchParams_t
#define hipLaunchParams our_hipLaunchParams
#define hipLaunchConfig_t our_hipLaunchConfig_t
#define HIP_LAUNCH_CONFIG our_HIP_LAUNCH_CONFIG
#include "interpose/hip/types.h"
#undef hipError_t
#undef hipMemcpyKind
#undef dim3
#undef hipPitchedPtr
#undef hipExtent
#undef hipPos
#undef hipMemcpy3DParms
#undef hip_Memcpy2D
#undef hipMemsetParams
#undef hipKernelNodeParams
#undef hipLaunchParams

SAME_SIZE(hipError_t);
SAME_SIZE(hipMemcpyKind);
SAME_SIZE(dim3);
SAME_SIZE(hipPitchedPtr);
SAME_PLACE(hipPitchedPtr, pitch);
SAME_PLACE(hipPitchedPtr, ysize);
SAME_SIZE(hipExtent);
SAME_PLACE(hipExtent, depth);
SAME_SIZE(hipPos);
SAME_SIZE(hipMemcpy3DParms);
SAME_PLACE(hipMemcpy3DParms, srcPtr);
SAME_PLACE(hipMemcpy3DParms, dstArray);
SAME_PLACE(hipMemcpy3DParms, dstPtr);
SAME_PLACE(hipMemcpy3DParms, extent);
SAME_PLACE(hipMemcpy3DParms, kind);
SAME_SIZE(hip_Memcpy2D);
SAME_PLACE(hip_Memcpy2D, srcHost);
SAME_PLACE(hip_Memcpy2D, srcPitch);
SAME_PLACE(hip_Memcpy2D, dstDevice);
SAME_PLACE(hip_Memcpy2D, WidthInBytes);
SAME_SIZE(hipMemsetParams);
SAME_PLACE(hipMemsetParams, elementSize);
SAME_PLACE(hipMemsetParams, pitch);
SAME_PLACE(hipMemsetParams, width);
SAME_SIZE(hipKernelNodeParams);
SAME_PLACE(hipKernelNodeParams, extra);
SAME_PLACE(hipKernelNodeParams, func);
SAME_PLACE(hipKernelNodeParams, kernelParams);
SAME_SIZE(hipLaunchParams);
SAME_PLACE(hipLaunchParams, args);
SAME_PLACE(hipLaunchParams, stream);

#endif

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_header) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
