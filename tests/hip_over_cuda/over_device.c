/* over_device.c - the driver, its devices, errors. */
#define _GNU_SOURCE
#include "over.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#define DEVICE_LIMIT 16

static struct over_api driver;
static CUresult opened; /* 0, or why there is no driver */
static CUcontext contexts[DEVICE_LIMIT];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards contexts */

static _Thread_local int device_now;
static _Thread_local bool entered;
static _Thread_local hipError_t last;

/* Every row has its function: without, this library does not link. */
__attribute__((used)) static void (*const exported[])(void) = {
#define HIP_CALL(name, parameters) (void (*)(void)) name,
#define HIP_OPTIONAL HIP_CALL
#include "device/hip/hip_api.def"
#include "more.def"
#undef HIP_OPTIONAL
#undef HIP_CALL
};

static void open_driver(void)
{
    static const struct {
        const char *name;
        size_t offset;
    } symbols[] = {
#define CUDA_CALL(name, parameters) { #name, offsetof(struct over_api, calls.name) },
#define CUDA_OLD CUDA_CALL
#include "device/cuda/cuda_api.def"
#undef CUDA_OLD
#undef CUDA_CALL
        { "cuCtxSynchronize", offsetof(struct over_api, cuCtxSynchronize) },
    };
    opened = OVER_NO_DEVICE;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return;
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *found = dlsym(library, symbols[i].name);
        if (!found)
            return;
        *(void **)(void *)((char *)&driver + symbols[i].offset) = found;
    }
    opened = driver.calls.cuInit(0);
}

static const struct over_api *open_once(void)
{
    pthread_once(&once, open_driver);
    return opened ? NULL : &driver;
}

static CUresult use_device(int number)
{
    CUresult code = 0;
    if (number < 0 || number >= DEVICE_LIMIT)
        return OVER_INVALID_DEVICE;
    pthread_mutex_lock(&lock);
    if (!contexts[number]) {
        CUdevice device;
        code = driver.calls.cuDeviceGet(&device, number);
        if (!code)
            code = driver.calls.cuDevicePrimaryCtxRetain(&contexts[number], device);
    }
    CUcontext context = contexts[number];
    pthread_mutex_unlock(&lock);
    if (!code)
        code = driver.calls.cuCtxSetCurrent(context);
    if (!code) {
        device_now = number;
        entered = true;
    }
    return code;
}

const struct over_api *over_enter(void)
{
    if (!open_once() || (!entered && use_device(device_now)))
        return NULL;
    return &driver;
}

hipError_t over_end(CUresult code)
{
    if (code)
        last = code;
    return code;
}

/* ---- Devices -------------------------------------------------------------------------------- */

hipError_t hipInit(unsigned int flags)
{
    return over_end(flags ? OVER_INVALID_VALUE : open_once() ? 0 : opened);
}

/* The version of HIP's interface, not of the driver below. */
hipError_t hipDriverGetVersion(int *version)
{
    *version = 60000000;
    return over_end(0);
}

hipError_t hipGetDeviceCount(int *count)
{
    *count = 0;
    CUresult code = open_once() ? driver.calls.cuDeviceGetCount(count) : opened;
    return over_end(!code && *count == 0 ? OVER_NO_DEVICE : code);
}

hipError_t hipSetDevice(int device)
{
    if (entered && device == device_now)
        return over_end(0);
    return over_end(open_once() ? use_device(device) : opened);
}

hipError_t hipGetDevice(int *device)
{
    *device = device_now;
    return over_end(open_once() ? 0 : opened);
}

hipError_t hipDeviceGetName(char *name, int length, hipDevice_t device)
{
    OVER_CALL(cuDeviceGetName, name, length, device);
}

hipError_t hipDeviceTotalMem(size_t *bytes, hipDevice_t device)
{
    OVER_CALL(cuDeviceTotalMem_v2, bytes, device);
}

hipError_t hipDeviceGetAttribute(int *value, hipDeviceAttribute_t attribute, int device)
{
    switch (attribute) {
    case HIP_PROCESSOR_COUNT:
        OVER_CALL(cuDeviceGetAttribute, value, CUDA_PROCESSOR_COUNT, device);
    case HIP_BLOCK_SHARED:
        *value = OVER_SHARED_BYTES;
        return over_end(0);
    default:
        return over_end(OVER_INVALID_VALUE);
    }
}

hipError_t hipDeviceSynchronize(void)
{
    const struct over_api *cuda = over_enter();
    return over_end(cuda ? cuda->cuCtxSynchronize() : OVER_NO_DEVICE);
}

/* ---- Errors --------------------------------------------------------------------------------- */

hipError_t hipGetLastError(void)
{
    hipError_t error = last;
    last = 0;
    return error;
}

hipError_t hipPeekAtLastError(void)
{
    return last;
}

const char *hipGetErrorName(hipError_t error)
{
    static const struct {
        hipError_t code;
        const char *name;
    } names[] = {
        { 0, "hipSuccess" },
        { OVER_INVALID_VALUE, "hipErrorInvalidValue" },
        { HIP_NO_MEMORY, "hipErrorOutOfMemory" },
        { OVER_NOT_INITIALISED, "hipErrorNotInitialized" },
        { OVER_INVALID_DIRECTION, "hipErrorInvalidMemcpyDirection" },
        { OVER_NO_DEVICE, "hipErrorNoDevice" },
        { OVER_INVALID_DEVICE, "hipErrorInvalidDevice" },
        { OVER_NO_BINARY, "hipErrorNoBinaryForGpu" },
        { HIP_NOT_READY, "hipErrorNotReady" },
        { HIP_ILLEGAL_ADDRESS, "hipErrorIllegalAddress" },
        { HIP_LAUNCH_TIMEOUT, "hipErrorLaunchTimeOut" },
        { HIP_CONTEXT_IS_DESTROYED, "hipErrorContextIsDestroyed" },
        { HIP_ASSERT, "hipErrorAssert" },
        { HIP_LAUNCH_FAILURE, "hipErrorLaunchFailure" },
        { HIP_NOT_SUPPORTED, "hipErrorNotSupported" },
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].code == error)
            return names[i].name;
    return "hipErrorUnknown";
}

const char *hipGetErrorString(hipError_t error)
{
    return hipGetErrorName(error);
}
