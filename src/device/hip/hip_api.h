/* hip_api.h - libamdhip64 as a table of typed functions, and the numbers of its interface that are
 * used. */
#ifndef GRETA_DEVICE_HIP_HIP_API_H
#define GRETA_DEVICE_HIP_HIP_API_H

#include "base/dynlib.h"

#ifndef GRETA_HIP_VENDOR_TYPES /* the test has the vendor's */
#include "device/hip/hip_types.h"
#endif

struct hip_api {
#define HIP_CALL(name, parameters) hipError_t(*name) parameters;
#define HIP_OPTIONAL HIP_CALL
#include "device/hip/hip_api.def"
#undef HIP_OPTIONAL
#undef HIP_CALL
    const char *(*hipGetErrorName)(hipError_t error);
};

/* Numbers of the interface: HIP_NUMBER(ours, the vendor's name, value). */
#define HIP_NUMBERS(HIP_NUMBER)                                                                    \
    HIP_NUMBER(HIP_NO_MEMORY, hipErrorOutOfMemory, 2)                                              \
    HIP_NUMBER(HIP_NO_DEVICE, hipErrorNoDevice, 100)                                               \
    HIP_NUMBER(HIP_INVALID_DEVICE, hipErrorInvalidDevice, 101)                                     \
    HIP_NUMBER(HIP_NOT_READY, hipErrorNotReady, 600)                                               \
    HIP_NUMBER(HIP_ILLEGAL_ADDRESS, hipErrorIllegalAddress, 700)                                   \
    HIP_NUMBER(HIP_LAUNCH_TIMEOUT, hipErrorLaunchTimeOut, 702)                                     \
    HIP_NUMBER(HIP_CONTEXT_IS_DESTROYED, hipErrorContextIsDestroyed, 709)                          \
    HIP_NUMBER(HIP_ASSERT, hipErrorAssert, 710)                                                    \
    HIP_NUMBER(HIP_LAUNCH_FAILURE, hipErrorLaunchFailure, 719)                                     \
    HIP_NUMBER(HIP_NOT_SUPPORTED, hipErrorNotSupported, 801)                                       \
    HIP_NUMBER(HIP_UNKNOWN, hipErrorUnknown, 999)                                                  \
    HIP_NUMBER(HIP_PROCESSOR_COUNT, hipDeviceAttributeMultiprocessorCount, 63)                     \
    HIP_NUMBER(HIP_BLOCK_SHARED, hipDeviceAttributeMaxSharedMemoryPerBlock, 74)                    \
    HIP_NUMBER(HIP_HOST_PORTABLE, hipHostMallocPortable, 1)                                        \
    HIP_NUMBER(HIP_HOST_MAPPED, hipHostMallocMapped, 2)                                            \
    HIP_NUMBER(HIP_HOST_COHERENT, hipHostMallocCoherent, 0x40000000)                               \
    HIP_NUMBER(HIP_REGISTER_MAPPED, hipHostRegisterMapped, 2)                                      \
    HIP_NUMBER(HIP_STREAM_NON_BLOCKING, hipStreamNonBlocking, 1)                                   \
    HIP_NUMBER(HIP_EVENT_BLOCKING, hipEventBlockingSync, 1)                                        \
    HIP_NUMBER(HIP_EVENT_NO_TIMING, hipEventDisableTiming, 2)                                      \
    HIP_NUMBER(HIP_MEMORY_PINNED, hipMemAllocationTypePinned, 1)                                   \
    HIP_NUMBER(HIP_LOCATION_DEVICE, hipMemLocationTypeDevice, 1)                                   \
    HIP_NUMBER(HIP_ACCESS_READ_WRITE, hipMemAccessFlagsProtReadWrite, 3)                           \
    HIP_NUMBER(HIP_GRANULARITY_MINIMUM, hipMemAllocationGranularityMinimum, 0)                     \
    HIP_NUMBER(HIP_CAPTURE_THREAD, hipStreamCaptureModeThreadLocal, 1)

enum hip_number {
#define HIP_NUMBER(ours, vendors, value) ours = value,
    HIP_NUMBERS(HIP_NUMBER)
#undef HIP_NUMBER
};

/* Opens libamdhip64 and finds its functions. */
MUST_CHECK enum status hip_api_open(struct hip_api *api, struct dynlib **ret_library,
                                    struct error *err);

#endif
