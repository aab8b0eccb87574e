/* kernels.c - which kernel a launch means, and what its arguments are.
 *
 * Modules are read when they are loaded: the program may give their bytes back. A program's own
 * kernels come in bundles that stay in memory; one is read at the first launch of a kernel of it,
 * since programs carry thousands and run few. Entries are never given back, only replaced: what was
 * found once may be in use by another thread. */
#define _GNU_SOURCE
#include "interpose/hip/hip.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* A module or a bundle. */
struct image {
    const void *handle;
    const void *bundle; /* to be read; NULL: it was read, or could not be */
    struct code_object object;
    struct image *next;
};

struct entry {
    const void *function;
    struct image *image; /* NULL: unloaded */
    char *name;
    struct entry *next;
};

#define BUCKET_COUNT 4096u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards everything below */
static struct image *images;
static struct entry *buckets[BUCKET_COUNT];

static struct entry **bucket_of(const void *function)
{
    return &buckets[(hip_number(function) >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> 52];
}

/* ---- Bytes ---------------------------------------------------------------------------------- */

/* By the kernel, which says no where a plain load would end the program. */
static bool read_memory(void *context, uint64_t offset, void *to, size_t bytes)
{
    struct iovec here = { to, bytes };
    struct iovec there = { (void *)((uintptr_t)context + offset), bytes };
    return bytes == 0 || process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)bytes;
}

struct code_source hip_memory_source(const void *memory)
{
    return (struct code_source){ read_memory, (void *)(uintptr_t)memory };
}

static bool read_file(void *context, uint64_t offset, void *to, size_t bytes)
{
    return offset <= INT64_MAX &&
           pread(*(const int *)context, to, bytes, (off_t)offset) == (ssize_t)bytes;
}

/* ---- Images --------------------------------------------------------------------------------- */

static struct image *find_image(const void *handle)
{
    struct image *image = images;
    while (image && image->handle != handle)
        image = image->next;
    return image;
}

static struct image *add_image(const void *handle)
{
    struct image *image = calloc(1, sizeof(*image));
    if (image) {
        image->handle = handle;
        image->next = images;
        images = image;
    }
    return image;
}

void hip_module_add(const void *module, const struct code_source *source)
{
    struct code_object object = { 0 };
    struct error err;
    if (code_object_read(source, &object, &err))
        object = (struct code_object){ 0 }; /* its kernels are known by name alone */
    pthread_mutex_lock(&lock);
    struct image *image = add_image(module);
    if (image)
        image->object = object;
    pthread_mutex_unlock(&lock);
    if (!image)
        code_object_release(&object);
}

void hip_module_add_file(const void *module, const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    struct code_source source = { read_file, &file };
    hip_module_add(module, &source); /* also where there is no file any more */
    if (file >= 0)
        close(file);
}

void hip_module_remove(const void *module)
{
    pthread_mutex_lock(&lock);
    struct image **place = &images;
    while (*place && (*place)->handle != module)
        place = &(*place)->next;
    struct image *image = *place;
    if (image) {
        *place = image->next;
        for (size_t i = 0; i < BUCKET_COUNT; i++)
            for (struct entry *entry = buckets[i]; entry; entry = entry->next)
                if (entry->image == image)
                    entry->image = NULL;
        code_object_release(&image->object);
        free(image);
    }
    pthread_mutex_unlock(&lock);
}

void hip_bundle_add(const void *handle, const void *bundle)
{
    pthread_mutex_lock(&lock);
    struct image *image = add_image(handle);
    if (image)
        image->bundle = bundle;
    pthread_mutex_unlock(&lock);
}

/* ---- Functions ------------------------------------------------------------------------------ */

/* Out of its bucket: one for this function and name, or a new one. NULL: no memory. */
static struct entry *take_entry(struct entry **bucket, const void *function, const char *name)
{
    while (*bucket && ((*bucket)->function != function || strcmp((*bucket)->name, name) != 0))
        bucket = &(*bucket)->next;
    struct entry *entry = *bucket;
    if (entry) {
        *bucket = entry->next;
        return entry;
    }
    entry = calloc(1, sizeof(*entry));
    if (entry && !(entry->name = strdup(name))) {
        free(entry);
        return NULL;
    }
    if (entry)
        entry->function = function;
    return entry;
}

static void add_function(const void *handle, const void *function, const char *name)
{
    pthread_mutex_lock(&lock);
    struct entry **bucket = bucket_of(function);
    struct entry *entry = take_entry(bucket, function, name);
    if (entry) {
        entry->image = find_image(handle);
        entry->next = *bucket; /* in front: the newest entry of a handle counts */
        *bucket = entry;
    }
    pthread_mutex_unlock(&lock);
}

void hip_module_function(const void *module, const void *function, const char *name)
{
    add_function(module, function, name);
}

void hip_bundle_function(const void *handle, const void *function, const char *name)
{
    add_function(handle, function, name);
}

static void read_bundle(struct image *image)
{
    struct code_source source = hip_memory_source(image->bundle);
    struct error err;
    image->bundle = NULL;
    if (code_object_read(&source, &image->object, &err))
        image->object = (struct code_object){ 0 };
}

void hip_kernel_find(const void *function, struct hip_kernel *ret_kernel)
{
    ret_kernel->name = NULL;
    ret_kernel->known = false;
    ret_kernel->argument_count = 0;
    pthread_mutex_lock(&lock);
    struct entry *entry = *bucket_of(function);
    while (entry && entry->function != function)
        entry = entry->next;
    if (entry)
        ret_kernel->name = entry->name;
    if (entry && entry->image) {
        if (entry->image->bundle)
            read_bundle(entry->image);
        const struct code_kernel *kernel = code_object_find(&entry->image->object, entry->name);
        if (kernel && kernel->argument_count <= HIP_ARGUMENT_LIMIT) {
            ret_kernel->known = true;
            ret_kernel->argument_count = kernel->argument_count;
            for (uint32_t i = 0; i < kernel->argument_count; i++)
                ret_kernel->arguments[i] = kernel->arguments[i];
        }
    }
    pthread_mutex_unlock(&lock);
}

/* ---- Launches ------------------------------------------------------------------------------- */

/* Arguments as one block of bytes: a list of keys and values. False: no such block. */
static bool block_of(void *const *extra, struct interpose_parameter *ret_block)
{
    enum { POINTER = 1, SIZE = 2, PAIR_LIMIT = 8 };
    *ret_block = (struct interpose_parameter){ 0 };
    for (size_t i = 0; i < PAIR_LIMIT; i++) {
        uintptr_t key = (uintptr_t)extra[2 * i];
        if (key == POINTER)
            ret_block->bytes = extra[2 * i + 1];
        else if (key == SIZE && extra[2 * i + 1])
            ret_block->count = *(const size_t *)extra[2 * i + 1];
        else
            break;
    }
    return ret_block->bytes && ret_block->count;
}

/* False if there are more than fit: then any of them may be written through. */
static bool uses_of(const struct hip_kernel *kernel, struct kernel_uses *ret_uses)
{
    uint32_t words = 0;
    memset(ret_uses, 0, sizeof(*ret_uses));
    for (uint32_t i = 0; i < kernel->argument_count; i++) {
        const struct code_argument *argument = &kernel->arguments[i];
        uint32_t end = words + (argument->bytes + 7) / 8;
        if (i == KERNEL_PARAMETER_LIMIT || argument->bytes > UINT16_MAX || end > KERNEL_WORD_LIMIT)
            return false;
        ret_uses->sizes[i] = (uint16_t)argument->bytes;
        ret_uses->words[i] = (uint16_t)words;
        while (words < end)
            ret_uses->uses[words++] = argument->reads_only ? KERNEL_READS
                                                           : KERNEL_READS | KERNEL_WRITES;
        ret_uses->parameter_count++;
    }
    return true;
}

void hip_launch_begin(struct interpose *trace, struct interpose_call *call, const char *name,
                      const struct hip_launch *launch)
{
    struct hip_kernel kernel;
    struct kernel_uses uses;
    struct interpose_parameter parameters[HIP_ARGUMENT_LIMIT];
    hip_kernel_find(launch->function, &kernel);
    struct interpose_launch reported = {
        .kernel = kernel.name,
        .function = hip_number(launch->function),
        .grid = { launch->grid.x, launch->grid.y, launch->grid.z },
        .block = { launch->block.x, launch->block.y, launch->block.z },
        .shared_bytes = (uint32_t)launch->shared_bytes,
        .parameters = parameters,
        .stream = launch->stream,
        .graph = hip_number(launch->graph),
    };
    if (launch->extra && block_of(launch->extra, &parameters[0]))
        reported.parameter_count = 1;
    else if (kernel.known && (launch->params || kernel.argument_count == 0)) {
        reported.parameter_count = kernel.argument_count;
        reported.uses = uses_of(&kernel, &uses) ? &uses : NULL;
        for (uint32_t i = 0; i < kernel.argument_count; i++)
            parameters[i] = (struct interpose_parameter){ launch->params[i],
                                                          kernel.arguments[i].bytes,
                                                          kernel.arguments[i].offset };
    } else
        reported.parameters_unknown = true;
    interpose_launch_begin(trace, call, name, &reported);
}
