/* cupti.c - finds libcupti. It belongs to the CUDA toolkit, not to the driver, and is in a
 * different place for every way to install CUDA. */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "interpose/cuda/cuda.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = { "libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8",
                                     "libcupti.so" };
#define NAME_COUNT (sizeof(names) / sizeof(*names))

static void *complete(void *library)
{
    if (library && dlsym(library, "cuptiSubscribe") && dlsym(library, "cuptiEnableCallback"))
        return library;
    if (library)
        dlclose(library);
    return NULL;
}

static void *open_in(const char *folder)
{
    char path[PATH_MAX];
    for (size_t i = 0; i < NAME_COUNT; i++) {
        int length = snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        if (length < 0 || (size_t)length >= sizeof(path))
            continue;
        void *library = complete(dlopen(path, RTLD_NOW | RTLD_LOCAL));
        if (library)
            return library;
    }
    return NULL;
}

static void *open_under(const char *folder, const char *rest)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof(path), "%s/%s", folder, rest);
    return length > 0 && (size_t)length < sizeof(path) ? open_in(path) : NULL;
}

/* Looks in a toolkit's folder. */
static void *open_toolkit(const char *root)
{
    static const char *const rest[] = { "extras/CUPTI/lib64", "lib64", "lib",
                                        "targets/x86_64-linux/lib", "targets/sbsa-linux/lib" };
    void *library = NULL;
    for (size_t i = 0; root && !library && i < sizeof(rest) / sizeof(*rest); i++)
        library = open_under(root, rest[i]);
    return library;
}

/* Looks next to the CUDA runtime or the framework that the program has loaded: its own CUPTI fits
 * best. */
static int look_beside(struct dl_phdr_info *info, size_t size, void *context)
{
    static const struct {
        const char *file, *rest;
    } places[] = {
        { "/libcudart.so", "." },
        { "/libcudart.so", "../../cuda_cupti/lib" },
        { "/libcudart.so", "../extras/CUPTI/lib64" },
        { "/libc10_cuda.so", "../../nvidia/cu13/lib" },
        { "/libc10_cuda.so", "../../nvidia/cuda_cupti/lib" },
        { "/libc10_cuda.so", "." },
    };
    void **library = context;
    char folder[PATH_MAX];
    (void)size;
    for (size_t i = 0; !*library && info->dlpi_name && i < sizeof(places) / sizeof(*places); i++) {
        const char *slash = strrchr(info->dlpi_name, '/');
        if (!slash || strncmp(slash, places[i].file, strlen(places[i].file)) != 0)
            continue;
        snprintf(folder, sizeof(folder), "%.*s", (int)(slash - info->dlpi_name), info->dlpi_name);
        *library = open_under(folder, places[i].rest);
    }
    return *library != NULL;
}

void *cuda_open_cupti(const char **ret_slug, const char **ret_detail)
{
    void *library = NULL;
    const char *named = getenv(INTERPOSE_VARIABLE_CUPTI);
    if (named) {
        library = complete(dlopen(named, RTLD_NOW | RTLD_LOCAL));
        *ret_slug = INTERPOSE_NOTE_BAD_CUPTI;
        *ret_detail = named;
        return library;
    }
    /* One that is loaded already must be the one that is used. */
    for (size_t i = 0; !library && i < NAME_COUNT; i++)
        library = complete(dlopen(names[i], RTLD_NOW | RTLD_NOLOAD));
    if (!library)
        dl_iterate_phdr(look_beside, &library);
    if (!library)
        library = open_toolkit(getenv("CUDA_PATH"));
    if (!library)
        library = open_toolkit(getenv("CUDA_HOME"));
    for (size_t i = 0; !library && i < NAME_COUNT; i++)
        library = complete(dlopen(names[i], RTLD_NOW | RTLD_LOCAL));
    if (!library)
        library = open_toolkit("/usr/local/cuda");
    *ret_slug = INTERPOSE_NOTE_NO_CUPTI;
    *ret_detail = "";
    return library;
}
