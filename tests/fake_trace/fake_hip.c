/* fake_hip.c - a libamdhip64 for the test of the preload library: every call that is wrapped is
 * there, does nothing and gives the answer that was asked for. Built once more as an older runtime,
 * which has few of them. */
#include "interpose/hip/hip.h"

#include "fake_hip.h"

static hipError_t answer;
static unsigned calls;

void fake_hip_answer(hipError_t code)
{
    answer = code;
}

unsigned fake_hip_count(void)
{
    return calls;
}

static hipError_t reply(void)
{
    calls++;
    return answer;
}

#ifdef FAKE_HIP_OLD
hipError_t hipInit(unsigned int flags)
{
    (void)flags;
    return reply();
}
#else
/* All of them are the one function, whatever they are called with. */
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wattribute-alias"
#endif
#define HIP_ROW(name, parameters, ...) hipError_t name parameters __attribute__((alias("reply")));
#include "interpose/hip/rows.def"
#undef HIP_ROW

hipError_t hipGetProcAddress(const char *name, void **function, int version, uint64_t flags,
                             void *status)
{
    hipError_t (*found)(void *) = hipFree;
    (void)name;
    (void)version;
    (void)flags;
    (void)status;
    if (answer == 0)
        *function = *(void **)&found;
    return reply();
}

static void *registered;

void **__hipRegisterFatBinary(const void *data)
{
    (void)data;
    return &registered;
}

void __hipRegisterFunction(void **handle, const void *function, char *device_function,
                           const char *device_name, unsigned int thread_limit, void *thread,
                           void *block, void *block_size, void *grid_size, int *wave_size)
{
    (void)handle;
    (void)function;
    (void)device_function;
    (void)device_name;
    (void)thread_limit;
    (void)thread;
    (void)block;
    (void)block_size;
    (void)grid_size;
    (void)wave_size;
    calls++;
}
#endif
