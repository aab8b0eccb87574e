/* parameters.c - a kernel's name, and the bytes of its parameters: the call says where they are;
 * how many there are, and the name if the call does not have it, is asked of the driver once for
 * each kernel. */
#include "interpose/cuda/cuda.h"

#include <pthread.h>
#include <string.h>

#define PARAMETER_LIMIT 96u
#define KERNEL_CACHE 2048u
/* The entries of `extra`, as the driver defines them. */
enum { EXTRA_END = 0, EXTRA_POINTER = 1, EXTRA_SIZE = 2, EXTRA_WORDS = 6 };

struct kernel_facts {
    uint64_t function;
    const char *name; /* lives as long as the kernel is loaded; NULL: not known */
    const struct kernel_uses *uses;
    uint16_t count;
    bool known; /* the sizes are */
    uint16_t sizes[PARAMETER_LIMIT], offsets[PARAMETER_LIMIT];
};

/* By hash of the function; under the lock. */
static struct {
    pthread_mutex_t lock;
    struct kernel_facts kernels[KERNEL_CACHE];
} cache = { .lock = PTHREAD_MUTEX_INITIALIZER };

void cuda_parameters_forget(void)
{
    pthread_mutex_lock(&cache.lock);
    memset(cache.kernels, 0, sizeof(cache.kernels));
    pthread_mutex_unlock(&cache.lock);
}

static bool ask(int32_t (*info)(uint64_t, size_t, size_t *, size_t *), struct kernel_facts *kernel)
{
    size_t offset, size;
    if (!info)
        return false;
    kernel->count = 0;
    while (kernel->count < PARAMETER_LIMIT) {
        int32_t code = info(kernel->function, kernel->count, &offset, &size);
        /* Past the last one the driver says "invalid value"; a handle it does not know is another
         * error, or the same at the first. */
        if (code)
            return code == 1 && kernel->count > 0;
        if (size > UINT16_MAX || offset > UINT16_MAX)
            return false;
        kernel->offsets[kernel->count] = (uint16_t)offset;
        kernel->sizes[kernel->count++] = (uint16_t)size;
    }
    return true;
}

static const char *name_of(uint64_t function)
{
    const char *name = NULL;
    if (cuda_driver.func_get_name && cuda_driver.func_get_name(&name, function) == 0 && name)
        return name;
    name = NULL;
    if (cuda_driver.kernel_get_name && cuda_driver.kernel_get_name(&name, function) == 0)
        return name;
    return cuda_kernel_name(function);
}

static struct kernel_facts facts_of(uint64_t function)
{
    uint64_t hash = function * UINT64_C(0x9E3779B97F4A7C15);
    struct kernel_facts *cached = &cache.kernels[hash >> 53 & (KERNEL_CACHE - 1)];
    struct kernel_facts kernel = { .function = function };
    pthread_mutex_lock(&cache.lock);
    bool hit = cached->function == function && function != 0;
    if (hit)
        kernel = *cached;
    pthread_mutex_unlock(&cache.lock);
    if (hit)
        return kernel;
    kernel.known = ask(cuda_driver.func_get_param_info, &kernel) ||
                   ask(cuda_driver.kernel_get_param_info, &kernel);
    if (!kernel.known)
        kernel.count = 0;
    kernel.name = name_of(function);
    kernel.uses = cuda_uses_of(function);
    pthread_mutex_lock(&cache.lock);
    *cached = kernel;
    pthread_mutex_unlock(&cache.lock);
    return kernel;
}

/* All of them in one buffer, laid out as for the kernel. */
static bool from_extra(void *const *extra, struct interpose_parameter *ret)
{
    *ret = (struct interpose_parameter){ NULL, 0, 0 };
    for (size_t i = 0; extra && i + 1 < EXTRA_WORDS; i += 2) {
        uintptr_t tag = (uintptr_t)extra[i];
        if (tag == EXTRA_END)
            break;
        if (tag == EXTRA_POINTER)
            ret->bytes = extra[i + 1];
        if (tag == EXTRA_SIZE && extra[i + 1])
            ret->count = *(const size_t *)extra[i + 1];
    }
    return ret->bytes && ret->count;
}

/* Cut as the kernel declares them: what lies between them is nothing. False: the buffer ends before
 * they do. */
static bool cut(const struct interpose_parameter *buffer, const struct kernel_facts *kernel,
                struct interpose_parameter *ret)
{
    for (uint16_t i = 0; i < kernel->count; i++)
        if ((size_t)kernel->offsets[i] + kernel->sizes[i] > buffer->count)
            return false;
    const uint8_t *bytes = buffer->bytes;
    for (uint16_t i = 0; i < kernel->count; i++)
        ret[i] = (struct interpose_parameter){ bytes + kernel->offsets[i], kernel->sizes[i],
                                               kernel->offsets[i] };
    return true;
}

void cuda_tell_launch(struct cuda_call *call, struct interpose_launch *launch,
                      void *const *parameters, void *const *extra)
{
    struct interpose_parameter list[PARAMETER_LIMIT];
    struct interpose_parameter buffer;
    struct kernel_facts kernel = { .name = NULL };
    launch->parameters = list;
    if (launch->function && (parameters || !call->kernel))
        kernel = facts_of(launch->function);
    launch->kernel = call->kernel ? call->kernel : kernel.name;
    if (parameters) {
        launch->parameters_unknown = !kernel.known;
        launch->uses = kernel.uses;
        for (uint16_t i = 0; i < kernel.count; i++)
            list[i] = (struct interpose_parameter){ parameters[i], kernel.sizes[i],
                                                    kernel.offsets[i] };
        launch->parameter_count = kernel.count;
    } else if (from_extra(extra, &buffer)) {
        bool whole = kernel.known && cut(&buffer, &kernel, list);
        list[0] = whole ? list[0] : buffer;
        launch->parameter_count = whole ? kernel.count : 1;
    }
    launch->context = cuda_context(call);
    interpose_launch_begin(call->trace, &call->call, call->entry->name, launch);
}
