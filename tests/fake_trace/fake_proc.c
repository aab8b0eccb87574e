/* fake_proc.c - how the emulated driver hands out its functions by name. It is the real driver's
 * way: of the versions of a function the newest that the caller knows, and with the flag for
 * default streams of threads the function that uses those, where there is one. */
#include "fake_driver.h"

#include <stdlib.h>
#include <string.h>

enum { NOT_FOUND = 500, PER_THREAD = 2, NOT_THERE = 1, NEWER = 2 };

/* The driver's functions that this one has no more than a name for are NULL. */
#define CUDA_ROW(entry, name, version, suffix, ...)                                                \
    extern int weak_##entry(void) __asm__(#entry) __attribute__((weak));
#define CUDA_BY_HAND(entry, name, version, ...) CUDA_ROW(entry, name, version, , __VA_ARGS__)
#include "interpose/cuda/signatures.def"
#undef CUDA_BY_HAND
#undef CUDA_ROW
#define OTHERS                                                                                     \
    OTHER(cuEventCreate)                                                                           \
    OTHER(cuModuleGetFunction)                                                                     \
    OTHER(cuFuncGetParamInfo)                                                                      \
    OTHER(cuFuncGetName)                                                                           \
    OTHER(cuCtxGetDevice)                                                                          \
    OTHER(cuCtxGetCurrent)                                                                         \
    OTHER(cuMemAddressReserve)                                                                     \
    OTHER(cuGraphCreate)
#define OTHER(entry) extern int weak_##entry(void) __asm__(#entry) __attribute__((weak));
OTHERS
#undef OTHER

static const struct {
    const char *name;
    int version, per_thread;
    int (*entry)(void);
} functions[] = {
#define CUDA_ROW(entry, name, version, suffix, ...)                                                \
    { #name, version, sizeof(#suffix) > 1, weak_##entry },
#define CUDA_BY_HAND(entry, name, version, ...) CUDA_ROW(entry, name, version, , __VA_ARGS__)
#include "interpose/cuda/signatures.def"
#undef CUDA_BY_HAND
#undef CUDA_ROW
#define OTHER(entry) { #entry, 2000, 0, weak_##entry },
    OTHERS
#undef OTHER
};

EXPORT result cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags,
                                  int *query)
{
    int best = -1, known = 0;
    for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
        if (!functions[i].entry || strcmp(functions[i].name, name) != 0 ||
            (functions[i].per_thread && !(flags & PER_THREAD)))
            continue;
        known = 1;
        if (functions[i].version > version)
            continue;
        if (best < 0 || functions[i].per_thread > functions[best].per_thread ||
            (functions[i].per_thread == functions[best].per_thread &&
             functions[i].version >= functions[best].version))
            best = (int)i;
    }
    if (query)
        *query = best >= 0 ? OK : known ? NEWER : NOT_THERE;
    *found = NULL;
    if (best < 0)
        return NOT_FOUND;
    memcpy(found, &functions[best].entry, sizeof(*found));
    return OK;
}

EXPORT result cuGetProcAddress(const char *name, void **found, int version, uint64_t flags)
{
    return cuGetProcAddress_v2(name, found, version, flags, NULL);
}
