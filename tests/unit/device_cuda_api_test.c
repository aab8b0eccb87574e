/* device_cuda_api_test.c - our declarations of CUDA's driver interface against the vendor's header,
 * where that is installed: every function's type, every number, every struct's size and offsets. */
#if defined(GRETA_HAS_CUDA_H)
#define GRETA_CUDA_VENDOR_TYPES
#include <cuda.h>
#endif

#include "device/cuda/cuda_api.h"
#include "test.h"

#if defined(GRETA_HAS_CUDA_H)

/* With the vendor's types the table must have the vendor's functions. */
#define CUDA_CALL(name, parameters)                                                                \
    _Static_assert(                                                                                \
        __builtin_types_compatible_p(__typeof__(&name), __typeof__(((struct cuda_api *)0)->name)), \
        #name " is as in cuda.h");
#if CUDA_VERSION >= 13000
#define CUDA_OLD(name, parameters)
#else
#define CUDA_OLD CUDA_CALL
#endif
#include "device/cuda/cuda_api.def"
#undef CUDA_OLD
#undef CUDA_CALL

#define CUDA_NUMBER(ours, vendors, value)                                                          \
    _Static_assert((int)(vendors) == (value), #vendors " is as in cuda.h");
CUDA_NUMBERS(CUDA_NUMBER)
#undef CUDA_NUMBER

/* The structs as we declare them, under other names. */
#define CUresult our_CUresult
#define CUdevice our_CUdevice
#define CUdeviceptr our_CUdeviceptr
#define CUmemGenericAllocationHandle our_CUmemGenericAllocationHandle
#define cuuint64_t our_cuuint64_t
#define CUdevice_attribute our_CUdevice_attribute
#define CUfunction_attribute our_CUfunction_attribute
#define CUpointer_attribute our_CUpointer_attribute
#define CUmemAllocationGranularity_flags our_CUmemAllocationGranularity_flags
#define CUstreamCaptureMode our_CUstreamCaptureMode
#define CUstreamCaptureStatus our_CUstreamCaptureStatus
#define CUcontext our_CUcontext
#define CUmodule our_CUmodule
#define CUfunction our_CUfunction
#define CUstream our_CUstream
#define CUevent our_CUevent
#define CUgraph our_CUgraph
#define CUgraphExec our_CUgraphExec
#define CUgraphNode our_CUgraphNode
#define CUmemLocation our_CUmemLocation
#define CUmemAllocationProp our_CUmemAllocationProp
#define CUmemAccessDesc our_CUmemAccessDesc
#define CUlaunchAttribute our_CUlaunchAttribute
#define CUlaunchConfig our_CUlaunchConfig
#define CUDA_KERNEL_NODE_PARAMS_v2 our_CUDA_KERNEL_NODE_PARAMS_v2
#include "device/cuda/cuda_types.h"
#undef CUresult
#undef CUdevice
#undef CUdeviceptr
#undef CUmemAllocationProp
#undef CUmemAccessDesc
#undef CUlaunchAttribute
#undef CUlaunchConfig
#undef CUDA_KERNEL_NODE_PARAMS_v2

#define SAME_SIZE(type) _Static_assert(sizeof(type) == sizeof(our_##type), #type " has its size")
#define SAME_PLACE(type, member)                                                                   \
    _Static_assert(offsetof(type, member) == offsetof(our_##type, member), #member " is in place")
SAME_SIZE(CUresult);
SAME_SIZE(CUdevice);
SAME_SIZE(CUdeviceptr);
SAME_SIZE(CUmemAllocationProp);
SAME_SIZE(CUmemAccessDesc);
SAME_SIZE(CUlaunchAttribute);
SAME_SIZE(CUlaunchConfig);
SAME_SIZE(CUDA_KERNEL_NODE_PARAMS_v2);
SAME_PLACE(CUmemAllocationProp, location);
SAME_PLACE(CUmemAllocationProp, allocFlags);
SAME_PLACE(CUmemAccessDesc, flags);
SAME_PLACE(CUlaunchAttribute, value);
SAME_PLACE(CUlaunchConfig, hStream);
SAME_PLACE(CUlaunchConfig, attrs);
SAME_PLACE(CUlaunchConfig, numAttrs);
SAME_PLACE(CUDA_KERNEL_NODE_PARAMS_v2, sharedMemBytes);
SAME_PLACE(CUDA_KERNEL_NODE_PARAMS_v2, kernelParams);

static void test_header(void **state)
{
    (void)state; /* held by the compiler, above */
}

#else

static void test_header(void **state)
{
    (void)state;
    print_message("skipped: cuda.h is not installed\n");
    skip();
}

#endif

/* Opening says why there is none, or gives every function. */
static void test_open(void **state)
{
    (void)state;
    struct cuda_api api = { 0 };
    struct dynlib *library;
    struct error err;
    if (cuda_api_open(&api, &library, &err)) {
        check_contains("why", err.text, "libcuda.so.1");
        return;
    }
#define CUDA_CALL(name, parameters) assert_true(api.name != NULL);
#define CUDA_OLD CUDA_CALL
#include "device/cuda/cuda_api.def"
#undef CUDA_OLD
#undef CUDA_CALL
    dynlib_close(library);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_header),
                                        cmocka_unit_test(test_open) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
