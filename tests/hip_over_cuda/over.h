/* over.h - what the files of the HIP library over CUDA share.
 *
 * A libamdhip64.so for tests: the calls of hip_api.def, and those more.def adds for programs, over
 * the driver API of whichever libcuda.so.1 is found: an NVIDIA GPU's, or the emulated one of
 * tests/fake_gpu. Greta's HIP backend runs on it unchanged. It plays a gfx942: code objects of this
 * build for that chip are accepted and the same kernels are loaded as NVIDIA's code.
 *
 * HIP's own headers map HIP onto CUDA too, but onto CUDA's runtime library and not its driver, for
 * compilers only (static functions), and those of HIP 5.2 do not compile with CUDA 13. The numbers
 * of errors are the same in both interfaces (device_hip_api_test.c compares ours with HIP's
 * header). */
#ifndef GRETA_TESTS_HIP_OVER_CUDA_OVER_H
#define GRETA_TESTS_HIP_OVER_CUDA_OVER_H

#include "device/cuda/cuda_api.h"
#include "device/hip/hip_api.h"

/* What programs call beyond greta. */
typedef unsigned int hipMemcpyKind;

#define EXPORT __attribute__((visibility("default")))
#define HIP_CALL(name, parameters) EXPORT hipError_t name parameters;
#define HIP_OPTIONAL HIP_CALL
#include "device/hip/hip_api.def"
#include "more.def"
#undef HIP_OPTIONAL
#undef HIP_CALL
EXPORT const char *hipGetErrorName(hipError_t error);
EXPORT const char *hipGetErrorString(hipError_t error);

enum over_number {
    OVER_INVALID_VALUE = 1,
    OVER_NOT_INITIALISED = 3,
    OVER_INVALID_DIRECTION = 21,
    OVER_NO_DEVICE = 100,
    OVER_INVALID_DEVICE = 101,
    OVER_NO_BINARY = 209,
    OVER_COPY_HOST_HOST = 0,
    OVER_COPY_IN = 1,
    OVER_COPY_OUT = 2,
    OVER_COPY_WITHIN = 3,
    OVER_SHARED_BYTES = 65536, /* what a block of a gfx942 has */
};

struct over_api {
    struct cuda_api calls;
    CUresult (*cuCtxSynchronize)(void);
};

/* The driver, with a device current in the calling thread (device 0 unless hipSetDevice said
 * otherwise); NULL where there is none: hipErrorNoDevice. */
const struct over_api *over_enter(void);

/* A call's result, kept for hipGetLastError. */
hipError_t over_end(CUresult code);

#define OVER_CALL(name, ...)                                                                       \
    do {                                                                                           \
        const struct over_api *api = over_enter();                                                 \
        return over_end(api ? api->calls.name(__VA_ARGS__) : OVER_NO_DEVICE);                      \
    } while (0)

static inline CUdeviceptr over_address(const void *pointer)
{
    return (CUdeviceptr)(uintptr_t)pointer;
}

#endif
