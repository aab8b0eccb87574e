/* routes.c - for a program that is not linked with the driver: the driver's functions by name, each
 * found in its first call the way that FAKE_ROUTE says.
 *
 *     dlsym    each by its symbol
 *     older    by cuGetProcAddress, found by its symbol
 *     nested   as the CUDA runtime does: dlsym gives cuGetProcAddress_v2, that gives
 *              cuGetProcAddress, and that everything else
 *     threads  the same, where default streams are those of threads */
#include "interpose/cuda/arguments.h"
#include "interpose/cuda/types.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef CUresult (*get_function)(const char *, void **, int, cuuint64_t);
typedef CUresult (*get_function_v2)(const char *, void **, int, cuuint64_t,
                                    CUdriverProcAddressQueryResult *);

enum { OK = 0, WITH_QUERY = 12000, PER_THREAD = 2, FIRST_WITH_THREADS = 7000 };

static void *checked(void *found, const char *name)
{
    if (!found) {
        fprintf(stderr, "not found: %s\n", name);
        exit(90);
    }
    return found;
}

static void *find_older(void *driver, const char *name, int version)
{
    get_function get;
    void *found = NULL;
    *(void **)&get = checked(dlsym(driver, "cuGetProcAddress"), "cuGetProcAddress");
    return get(name, &found, version, 0) == OK ? found : NULL;
}

static void *find_nested(void *driver, const char *name, int version, cuuint64_t flags)
{
    get_function_v2 first, second;
    CUdriverProcAddressQueryResult query;
    void *found = NULL;
    *(void **)&first = checked(dlsym(driver, "cuGetProcAddress_v2"), "cuGetProcAddress_v2");
    if (first("cuGetProcAddress", &found, WITH_QUERY, flags, NULL) != OK)
        return NULL;
    *(void **)&second = found;
    return second(name, &found, version, flags, &query) == OK && query == OK ? found : NULL;
}

/* entry: the symbol; name and version: as cuGetProcAddress has it. */
static void *find(const char *entry, const char *name, int version)
{
    const char *route = getenv("FAKE_ROUTE");
    void *driver = checked(dlopen("libcuda.so.1", RTLD_NOW), "libcuda.so.1");
    void *found = NULL;
    if (route && strcmp(route, "dlsym") == 0)
        found = dlsym(driver, entry);
    else if (route && strcmp(route, "older") == 0)
        found = find_older(driver, name, version);
    else if (route && strcmp(route, "nested") == 0)
        found = find_nested(driver, name, version, 0);
    else if (route && strcmp(route, "threads") == 0)
        found = find_nested(
            driver, name, version < FIRST_WITH_THREADS ? FIRST_WITH_THREADS : version, PER_THREAD);
    return checked(found, entry);
}

#define ROUTE(entry, name, version, ...)                                                           \
    CUresult entry(ARGUMENTS_DECLARED(__VA_ARGS__));                                               \
    CUresult entry(ARGUMENTS_DECLARED(__VA_ARGS__))                                                \
    {                                                                                              \
        typedef CUresult (*function)(__VA_ARGS__);                                                 \
        static _Atomic(function) known;                                                            \
        function real = known;                                                                     \
        if (!real)                                                                                 \
            *(void **)&real = find(#entry, #name, version);                                        \
        known = real;                                                                              \
        return real(ARGUMENTS_NAMES(__VA_ARGS__));                                                 \
    }
#define CUDA_ROW(entry, name, version, suffix, ...) ROUTE(entry, name, version, __VA_ARGS__)
#define CUDA_BY_HAND(...)
#include "interpose/cuda/signatures.def"
#undef CUDA_BY_HAND
#undef CUDA_ROW

ROUTE(cuInit, cuInit, 2000, unsigned int)
ROUTE(cuEventCreate, cuEventCreate, 2000, CUevent *, unsigned int)
ROUTE(cuModuleLoadData, cuModuleLoadData, 2000, CUmodule *, const void *)
ROUTE(cuModuleGetFunction, cuModuleGetFunction, 2000, CUfunction *, CUmodule, const char *)
ROUTE(cuMemAddressReserve, cuMemAddressReserve, 10020, CUdeviceptr *, size_t, size_t, CUdeviceptr,
      unsigned long long)
ROUTE(cuCtxGetCurrent, cuCtxGetCurrent, 4000, CUcontext *)
ROUTE(cuCtxSetCurrent, cuCtxSetCurrent, 4000, CUcontext)
ROUTE(cuCtxCreate_v2, cuCtxCreate, 3020, CUcontext *, unsigned int, CUdevice)
ROUTE(cuGraphCreate, cuGraphCreate, 10000, CUgraph *, unsigned int)

CUresult cuCtxSynchronize(void);

CUresult cuCtxSynchronize(void)
{
    CUresult (*real)(void);
    *(void **)&real = find("cuCtxSynchronize", "cuCtxSynchronize", 2000);
    return real();
}
