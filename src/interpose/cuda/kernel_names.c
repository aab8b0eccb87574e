/* kernel_names.c - the names that a program passed to get its kernels: for drivers before
 * CUDA 12.3, which cannot be asked for the name of a kernel. */
#include "interpose/cuda/cuda.h"

#include <pthread.h>
#include <string.h>

/* Large libraries have some ten thousand kernels, programs launch some hundred. */
#define NAME_LIMIT 8192u /* a power of two */
#define PROBE_LIMIT 32u

/* By hash of the kernel, under the lock. A name is never freed: another thread may be reading it.
 */
static struct {
    pthread_mutex_t lock;
    struct {
        uint64_t kernel;
        const char *name;
    } list[NAME_LIMIT];
} names = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Its place, or a free one; NAME_LIMIT: neither. */
static size_t place_of(uint64_t kernel)
{
    size_t first = (size_t)(kernel * UINT64_C(0x9E3779B97F4A7C15) >> 51);
    for (size_t i = 0; i < PROBE_LIMIT; i++) {
        size_t place = (first + i) & (NAME_LIMIT - 1);
        if (names.list[place].kernel == kernel || !names.list[place].kernel)
            return place;
    }
    return NAME_LIMIT;
}

void cuda_kernel_named(uint64_t kernel, const char *name)
{
    if (!kernel || !name || cuda_driver.func_get_name)
        return;
    pthread_mutex_lock(&names.lock);
    size_t place = place_of(kernel);
    bool same = place < NAME_LIMIT && names.list[place].name &&
                strcmp(names.list[place].name, name) == 0;
    if (place < NAME_LIMIT && !same) {
        names.list[place].kernel = kernel;
        names.list[place].name = strdup(name);
    }
    pthread_mutex_unlock(&names.lock);
}

const char *cuda_kernel_name(uint64_t kernel)
{
    pthread_mutex_lock(&names.lock);
    size_t place = place_of(kernel);
    const char *name = place < NAME_LIMIT ? names.list[place].name : NULL;
    pthread_mutex_unlock(&names.lock);
    return name;
}
