/* device_hip_api_test.c - our declarations of the HIP runtime's interface against the vendor's
 * header, where that is installed: every function's type, every number, every struct's size and
 * offsets. */
#if defined(GRETA_HAS_HIP_H)
#define GRETA_HIP_VENDOR_TYPES
#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>
#endif

#include "device/hip/hip_api.h"
#include "hip_header.h"

#if defined(GRETA_HAS_HIP_H)

/* With the vendor's types the table must have the vendor's functions. */
#define HIP_CALL(name, parameters)                                                                 \
    _Static_assert(                                                                                \
        __builtin_types_compatible_p(__typeof__(&name), __typeof__(((struct hip_api *)0)->name)),  \
        #name " is as in hip_runtime_api.h");
#define HIP_OPTIONAL HIP_CALL
#include "device/hip/hip_api.def"
#undef HIP_OPTIONAL
HIP_CALL(hipGetErrorName, )
#undef HIP_CALL

/* What the library over CUDA has beyond the table. */
#define HIP_CALL(name, parameters)                                                                 \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&name), hipError_t(*) parameters),      \
                   #name " is as in hip_runtime_api.h");
#include "hip_over_cuda/more.def"
#undef HIP_CALL

#define HIP_NUMBER(ours, vendors, value)                                                           \
    _Static_assert((int)(vendors) == (value), #vendors " is as in hip_runtime_api.h");
HIP_NUMBERS(HIP_NUMBER)
#undef HIP_NUMBER

/* The structs as we declare them, under other names. */
#define hipError_t our_hipError_t
#define hipDevice_t our_hipDevice_t
#define hipDeviceAttribute_t our_hipDeviceAttribute_t
#define hipMemAllocationGranularity_flags our_hipMemAllocationGranularity_flags
#define hipStreamCaptureMode our_hipStreamCaptureMode
#define hipStreamCaptureStatus our_hipStreamCaptureStatus
#define hipStream_t our_hipStream_t
#define hipEvent_t our_hipEvent_t
#define hipModule_t our_hipModule_t
#define hipFunction_t our_hipFunction_t
#define hipGraph_t our_hipGraph_t
#define hipGraphNode_t our_hipGraphNode_t
#define hipGraphExec_t our_hipGraphExec_t
#define hipMemGenericAllocationHandle_t our_hipMemGenericAllocationHandle_t
#define hipMemLocation our_hipMemLocation
#define hipMemAllocationProp our_hipMemAllocationProp
#define hipMemAccessDesc our_hipMemAccessDesc
#define hipPointerAttribute_t our_hipPointerAttribute_t
#define hipKernelNodeParams our_hipKernelNodeParams
#define hipPointerAttribute_t our_hipPointerAttribute_t
#include "device/hip/hip_types.h"
#undef hipError_t
#undef hipDevice_t
#undef hipDeviceAttribute_t
#undef hipMemAllocationGranularity_flags
#undef hipStreamCaptureMode
#undef hipStreamCaptureStatus
#undef hipMemAllocationProp
#undef hipMemAccessDesc
#undef hipPointerAttribute_t
#undef hipKernelNodeParams
#undef hipPointerAttribute_t

SAME_SIZE(hipError_t);
SAME_SIZE(hipDevice_t);
SAME_SIZE(hipDeviceAttribute_t);
SAME_SIZE(hipMemAllocationGranularity_flags);
SAME_SIZE(hipStreamCaptureMode);
SAME_SIZE(hipStreamCaptureStatus);
SAME_SIZE(hipMemAccessDesc);
SAME_SIZE(hipPointerAttribute_t);
SAME_PLACE(hipPointerAttribute_t, devicePointer);
SAME_PLACE(hipPointerAttribute_t, hostPointer);
SAME_SIZE(hipKernelNodeParams);
SAME_SIZE(hipPointerAttribute_t);
SAME_PLACE(hipPointerAttribute_t, device);
SAME_PLACE(hipPointerAttribute_t, devicePointer);
SAME_PLACE(hipPointerAttribute_t, allocationFlags);
#if HIP_VERSION >= 50300000 /* with an older runtime the backend does without ranges */
SAME_SIZE(hipMemAllocationProp);
SAME_PLACE(hipMemAllocationProp, location);
SAME_PLACE(hipMemAllocationProp, allocFlags);
#endif
SAME_PLACE(hipMemAccessDesc, flags);
SAME_PLACE(hipKernelNodeParams, blockDim);
SAME_PLACE(hipKernelNodeParams, func);
SAME_PLACE(hipKernelNodeParams, gridDim);
SAME_PLACE(hipKernelNodeParams, kernelParams);
SAME_PLACE(hipKernelNodeParams, sharedMemBytes);

#endif

/* Opening says why there is none, or gives every function that is not optional. */
static void test_open(void **state)
{
    (void)state;
    struct hip_api api = { 0 };
    struct dynlib *library;
    struct error err;
    if (hip_api_open(&api, &library, &err)) {
        check_contains("why", err.text, "libamdhip64");
        return;
    }
#define HIP_CALL(name, parameters) assert_true(api.name != NULL);
#define HIP_OPTIONAL(name, parameters)
#include "device/hip/hip_api.def"
#undef HIP_OPTIONAL
#undef HIP_CALL
    assert_true(api.hipGetErrorName != NULL);
    dynlib_close(library);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_header),
                                        cmocka_unit_test(test_open) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
