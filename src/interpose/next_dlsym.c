/* next_dlsym.c - see next_dlsym.h. */
#define _GNU_SOURCE /* RTLD_NEXT, dlvsym */
#include "interpose/next_dlsym.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>

interpose_dlsym interpose_next_dlsym(void)
{
    /* By version: dlsym itself would find the caller's own. */
    static const char *const versions[] = { "GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17" };
    static _Atomic(interpose_dlsym) found;
    interpose_dlsym function = atomic_load_explicit(&found, memory_order_acquire);
    if (function)
        return function;
    for (size_t i = 0; !function && i < sizeof(versions) / sizeof(versions[0]); i++)
        *(void **)&function = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    atomic_store_explicit(&found, function, memory_order_release);
    return function;
}
