/* fake_hip.h - what a test says to the emulated HIP runtime. */
#ifndef GRETA_TESTS_FAKE_HIP_H
#define GRETA_TESTS_FAKE_HIP_H

#include "interpose/hip/types.h"

#define FAKE_EXPORT __attribute__((visibility("default")))

/* What every call returns from now on. */
FAKE_EXPORT void fake_hip_answer(hipError_t code);
/* How many calls there were. */
FAKE_EXPORT unsigned fake_hip_count(void);

/* Not in calls.def. */
FAKE_EXPORT hipError_t hipGetProcAddress(const char *name, void **function, int version,
                                         uint64_t flags, void *status);
FAKE_EXPORT void **__hipRegisterFatBinary(const void *data);
FAKE_EXPORT void __hipRegisterFunction(void **handle, const void *function, char *device_function,
                                       const char *device_name, unsigned int thread_limit,
                                       void *thread, void *block, void *block_size, void *grid_size,
                                       int *wave_size);

#endif
