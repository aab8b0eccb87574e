/* preload.c - the runtime's own functions, and the ways by which programs find them.
 *
 * A program that is linked with libamdhip64, or loads a library that is, finds the wrappers first.
 * One that opens it by hand asks dlsym or hipGetProcAddress: those give the wrapper too, where the
 * runtime has the function. */
#define _GNU_SOURCE
#include "interpose/hip/hip.h"
#include "interpose/next_dlsym.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* ---- Finding -------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    hip_function wrapper;
} wrappers[] = {
#define HIP_ROW(name, ...) { #name, (hip_function)name },
#include "interpose/hip/rows.def"
#undef HIP_ROW
};
_Static_assert(sizeof(wrappers) / sizeof(wrappers[0]) == HIP_INDEX_COUNT, "one for each row");

static _Atomic(hip_function) reals[HIP_INDEX_COUNT];

struct library_search {
    char path[4096];
};

static int look_at_library(struct dl_phdr_info *info, size_t bytes, void *context)
{
    struct library_search *search = context;
    (void)bytes;
    const char *slash = strrchr(info->dlpi_name, '/');
    if (strncmp(slash ? slash + 1 : info->dlpi_name, "libamdhip64.so", 14) != 0)
        return 0;
    snprintf(search->path, sizeof(search->path), "%s", info->dlpi_name);
    return 1;
}

/* The runtime may be out of reach of RTLD_NEXT: it came with a library that was opened for itself
 * alone. */
hip_function hip_real_named(const char *name)
{
    interpose_dlsym find = interpose_next_dlsym();
    struct library_search search = { "" };
    hip_function function = NULL;
    if (!find)
        return NULL;
    if (dl_iterate_phdr(look_at_library, &search)) {
        void *library = dlopen(search.path, RTLD_LAZY | RTLD_NOLOAD);
        if (library) {
            *(void **)&function = find(library, name);
            dlclose(library); /* it stays: it was there before */
        }
    }
    if (!function)
        *(void **)&function = find(RTLD_NEXT, name);
    return function;
}

hip_function hip_real(enum hip_index index)
{
    hip_function function = atomic_load_explicit(&reals[index], memory_order_acquire);
    if (!function) {
        function = hip_real_named(wrappers[index].name);
        atomic_store_explicit(&reals[index], function, memory_order_release);
    }
    return function;
}

/* The wrapper of a function that was found, or the function itself. NULL: only the wrapper was
 * found, because all libraries were searched and there is no runtime among them. */
static hip_function wrapper_of(const char *name, hip_function found)
{
    for (size_t i = 0; found && i < HIP_INDEX_COUNT; i++)
        if (strcmp(wrappers[i].name, name) == 0) {
            hip_function none = NULL;
            if (found != wrappers[i].wrapper)
                atomic_compare_exchange_strong(&reals[i], &none, found);
            return found != wrappers[i].wrapper || hip_real((enum hip_index)i) ? wrappers[i].wrapper
                                                                               : NULL;
        }
    return found;
}

EXPORT void *traced_dlsym(void *restrict library, const char *restrict name);
INTERPOSE_EXPORT_DLSYM(traced_dlsym);

void *traced_dlsym(void *restrict library, const char *restrict name)
{
    interpose_dlsym find = interpose_next_dlsym();
    if (!find)
        return NULL;
    /* The last thing done, so that the C library sees the program as its caller (RTLD_NEXT). */
    if (library == RTLD_NEXT || strncmp(name, "hip", 3) != 0)
        return find(library, name);
    hip_function found;
    *(void **)&found = find(library, name);
    found = wrapper_of(name, found);
    return *(void **)&found;
}

EXPORT hipError_t hipGetProcAddress(const char *name, void **function, int version, uint64_t flags,
                                    void *status);

hipError_t hipGetProcAddress(const char *name, void **function, int version, uint64_t flags,
                             void *status)
{
    typedef hipError_t (*get_function)(const char *, void **, int, uint64_t, void *);
    get_function real = (get_function)hip_real_named("hipGetProcAddress");
    if (!real)
        return HIP_NOT_FOUND;
    hipError_t code = real(name, function, version, flags, status);
    if (code == 0 && name && function) {
        hip_function found;
        *(void **)&found = *function;
        found = wrapper_of(name, found);
        *function = *(void **)&found;
    }
    return code;
}

/* ---- A program's own kernels ---------------------------------------------------------------- */

#define BUNDLE_MAGIC 0x48495046u /* "HIPF" */

struct bundle_wrapper {
    uint32_t magic, version;
    const void *bundle;
    const void *unused;
};

EXPORT void **__hipRegisterFatBinary(const void *data);
EXPORT void __hipRegisterFunction(void **handle, const void *function, char *device_function,
                                  const char *device_name, unsigned int thread_limit, void *thread,
                                  void *block, void *block_size, void *grid_size, int *wave_size);

void **__hipRegisterFatBinary(const void *data)
{
    typedef void **(*register_function)(const void *);
    register_function real = (register_function)hip_real_named("__hipRegisterFatBinary");
    if (!real)
        return NULL;
    void **handle = real(data);
    const struct bundle_wrapper *wrapper = data;
    if (handle && wrapper && wrapper->magic == BUNDLE_MAGIC)
        hip_bundle_add(handle, wrapper->bundle);
    return handle;
}

void __hipRegisterFunction(void **handle, const void *function, char *device_function,
                           const char *device_name, unsigned int thread_limit, void *thread,
                           void *block, void *block_size, void *grid_size, int *wave_size)
{
    typedef void (*register_function)(void **, const void *, char *, const char *, unsigned int,
                                      void *, void *, void *, void *, int *);
    register_function real = (register_function)hip_real_named("__hipRegisterFunction");
    if (device_name)
        hip_bundle_function(handle, function, device_name);
    if (real)
        real(handle, function, device_function, device_name, thread_limit, thread, block,
             block_size, grid_size, wave_size);
}

/* ---- The recording -------------------------------------------------------------------------- */

static struct interpose *trace;
static pthread_once_t started = PTHREAD_ONCE_INIT;
static _Thread_local uint32_t depth; /* of calls that the runtime makes to itself */
static _Thread_local int device_now;

static bool is_fatal(int32_t code)
{
    static const int32_t codes[] = {
        214, /* memory error that could not be corrected */
        700, /* illegal address */
        702, /* launch timed out */
        709, /* context destroyed */
        710, /* assert */
        719, /* launch failure */
    };
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (codes[i] == code)
            return true;
    return false;
}

static int32_t synchronise(void)
{
    hipError_t (*real)(void) = (hipError_t(*)(void))hip_real(HIP_INDEX_hipDeviceSynchronize);
    return real ? (int32_t)real() : 0;
}

static bool is_inside(void)
{
    return depth > 0;
}

static const struct interpose_backend backend = {
    "hip", INTERPOSE_HIP, is_fatal, synchronise, is_inside,
};

static void start(void)
{
    trace = interpose_start(&backend, "AMD");
}

struct interpose *hip_enter(void)
{
    pthread_once(&started, start);
    if (!trace || depth)
        return NULL;
    depth++;
    return trace;
}

void hip_leave(void)
{
    depth--;
}

void hip_device_set(int device)
{
    device_now = device;
}

uint64_t hip_device_get(void)
{
    return (uint64_t)(uint32_t)device_now;
}

__attribute__((destructor)) static void stop(void)
{
    interpose_stop(trace);
}
