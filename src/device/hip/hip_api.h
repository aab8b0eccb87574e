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

enum hip_number {
    HIP_NO_MEMORY = 2,
    HIP_NOT_READY = 600,
    HIP_ILLEGAL_ADDRESS = 700,
    HIP_LAUNCH_TIMEOUT = 702,
    HIP_CONTEXT_IS_DESTROYED = 709,
    HIP_ASSERT = 710,
    HIP_LAUNCH_FAILURE = 719,
    HIP_NOT_SUPPORTED = 801,
    HIP_UNKNOWN = 999,
    HIP_HOST_PORTABLE = 1,
    HIP_HOST_MAPPED = 2,
    HIP_HOST_COHERENT = 0x40000000,
    HIP_STREAM_NON_BLOCKING = 1,
    HIP_EVENT_BLOCKING = 1,
    HIP_EVENT_NO_TIMING = 2,
    HIP_MEMORY_PINNED = 1,
    HIP_LOCATION_DEVICE = 1,
    HIP_ACCESS_READ_WRITE = 3,
    HIP_GRANULARITY_MINIMUM = 0,
    HIP_CAPTURE_THREAD = 1,
};

/* Opens libamdhip64 and finds its functions. */
MUST_CHECK enum status hip_api_open(struct hip_api *api, struct dynlib **ret_library,
                                    struct error *err);

#endif
