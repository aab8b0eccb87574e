/* cuda_api.h - libcuda as a table of typed functions, and the numbers of its interface that are
 * used. */
#ifndef GRETA_DEVICE_CUDA_CUDA_API_H
#define GRETA_DEVICE_CUDA_CUDA_API_H

#include "base/dynlib.h"

#ifndef GRETA_CUDA_VENDOR_TYPES /* the test has the vendor's */
#include "device/cuda/cuda_types.h"
#endif

struct cuda_api {
#define CUDA_CALL(name, parameters) CUresult(*name) parameters;
#define CUDA_OLD CUDA_CALL
#include "device/cuda/cuda_api.def"
#undef CUDA_OLD
#undef CUDA_CALL
};

/* Numbers of the interface: CUDA_NUMBER(ours, the vendor's name, value). */
#define CUDA_NUMBERS(CUDA_NUMBER)                                                                  \
    CUDA_NUMBER(CUDA_NO_MEMORY, CUDA_ERROR_OUT_OF_MEMORY, 2)                                       \
    CUDA_NUMBER(CUDA_NO_DEVICE, CUDA_ERROR_NO_DEVICE, 100)                                         \
    CUDA_NUMBER(CUDA_NOT_READY, CUDA_ERROR_NOT_READY, 600)                                         \
    CUDA_NUMBER(CUDA_ILLEGAL_ADDRESS, CUDA_ERROR_ILLEGAL_ADDRESS, 700)                             \
    CUDA_NUMBER(CUDA_LAUNCH_TIMEOUT, CUDA_ERROR_LAUNCH_TIMEOUT, 702)                               \
    CUDA_NUMBER(CUDA_CONTEXT_IS_DESTROYED, CUDA_ERROR_CONTEXT_IS_DESTROYED, 709)                   \
    CUDA_NUMBER(CUDA_ASSERT, CUDA_ERROR_ASSERT, 710)                                               \
    CUDA_NUMBER(CUDA_HARDWARE_STACK_ERROR, CUDA_ERROR_HARDWARE_STACK_ERROR, 714)                   \
    CUDA_NUMBER(CUDA_LAUNCH_FAILED, CUDA_ERROR_LAUNCH_FAILED, 719)                                 \
    CUDA_NUMBER(CUDA_PROCESSOR_COUNT, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)                \
    CUDA_NUMBER(CUDA_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)                      \
    CUDA_NUMBER(CUDA_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)                      \
    CUDA_NUMBER(CUDA_PROCESSOR_SHARED, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,   \
                81)                                                                                \
    CUDA_NUMBER(CUDA_BLOCK_SHARED, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97)      \
    CUDA_NUMBER(CUDA_FUNCTION_SHARED, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)          \
    CUDA_NUMBER(CUDA_FUNCTION_CARVEOUT, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 9)     \
    CUDA_NUMBER(CUDA_HOST_PORTABLE, CU_MEMHOSTALLOC_PORTABLE, 1)                                   \
    CUDA_NUMBER(CUDA_HOST_MAPPED, CU_MEMHOSTALLOC_DEVICEMAP, 2)                                    \
    CUDA_NUMBER(CUDA_REGISTER_MAPPED, CU_MEMHOSTREGISTER_DEVICEMAP, 2)                             \
    CUDA_NUMBER(CUDA_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING, 1)                               \
    CUDA_NUMBER(CUDA_EVENT_BLOCKING, CU_EVENT_BLOCKING_SYNC, 1)                                    \
    CUDA_NUMBER(CUDA_EVENT_NO_TIMING, CU_EVENT_DISABLE_TIMING, 2)                                  \
    CUDA_NUMBER(CUDA_MEMORY_PINNED, CU_MEM_ALLOCATION_TYPE_PINNED, 1)                              \
    CUDA_NUMBER(CUDA_LOCATION_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE, 1)                              \
    CUDA_NUMBER(CUDA_ACCESS_READ_WRITE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, 3)                     \
    CUDA_NUMBER(CUDA_GRANULARITY_MINIMUM, CU_MEM_ALLOC_GRANULARITY_MINIMUM, 0)                     \
    CUDA_NUMBER(CUDA_CAPTURE_THREAD, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 1)                       \
    CUDA_NUMBER(CUDA_POINTER_TYPE, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 2)                            \
    CUDA_NUMBER(CUDA_POINTER_DEVICE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 9)                       \
    CUDA_NUMBER(CUDA_POINTER_START, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, 11)                     \
    CUDA_NUMBER(CUDA_POINTER_BYTES, CU_POINTER_ATTRIBUTE_RANGE_SIZE, 12)                           \
    CUDA_NUMBER(CUDA_POINTER_MAPPED, CU_POINTER_ATTRIBUTE_MAPPED, 13)                              \
    CUDA_NUMBER(CUDA_TYPE_HOST, CU_MEMORYTYPE_HOST, 1)                                             \
    CUDA_NUMBER(CUDA_TYPE_DEVICE, CU_MEMORYTYPE_DEVICE, 2)                                         \
    CUDA_NUMBER(CUDA_EARLY_START, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 6)

enum cuda_number {
#define CUDA_NUMBER(ours, vendors, value) ours = value,
    CUDA_NUMBERS(CUDA_NUMBER)
#undef CUDA_NUMBER
};

/* Opens libcuda and finds every function. */
MUST_CHECK enum status cuda_api_open(struct cuda_api *api, struct dynlib **ret_library,
                                     struct error *err);

#endif
