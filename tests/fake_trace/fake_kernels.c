/* fake_kernels.c - the emulated driver's kernels and their launches. */
#include "fake_driver.h"

#include <stdlib.h>
#include <string.h>

struct fake_kernel {
    const char *name;
    size_t sizes[4], count;
};

static struct fake_kernel kernels[] = {
    { "_ZN4demo3addEPfPKfi", { 8, 8, 4 }, 3 },
    { "_ZN4demo6packedENS_4packE", { 32 }, 1 },
    { "out_of_bounds", { 8 }, 1 },
    { "fill_late", { 8, 8, 4 }, 3 },
    { "third_time", { 8 }, 1 },          /* is, the third time it runs */
    { "_Z4nestPfPKfi", { 8, 8, 4 }, 3 }, /* is, if the source is no device memory */
};

EXPORT result cuModuleLoadData(void **module, const void *image)
{
    *module = (void *)(uintptr_t)image; /* any handle */
    return image ? OK : INVALID_VALUE;
}

/* As a compiler lays them out. */
static size_t offset_of(const struct fake_kernel *kernel, size_t index)
{
    size_t at = 0;
    for (size_t i = 0; i <= index; i++) {
        size_t align = kernel->sizes[i] % 8 == 0 ? 8 : 4;
        at = (at + align - 1) / align * align;
        if (i < index)
            at += kernel->sizes[i];
    }
    return at;
}

EXPORT result cuModuleGetFunction(function *kernel, void *module, const char *name)
{
    (void)module;
    for (size_t i = 0; i < sizeof(kernels) / sizeof(*kernels); i++)
        if (strcmp(kernels[i].name, name) == 0) {
            *kernel = &kernels[i];
            return OK;
        }
    return INVALID_VALUE;
}

EXPORT result cuFuncGetParamInfo(function kernel, size_t index, size_t *offset, size_t *size)
{
    if (index >= kernel->count)
        return INVALID_VALUE;
    *offset = offset_of(kernel, index);
    *size = kernel->sizes[index];
    return OK;
}

#ifndef FAKE_OLD /* from CUDA 12.3 on */
EXPORT result cuFuncGetName(const char **name, function kernel)
{
    for (size_t i = 0; i < sizeof(kernels) / sizeof(*kernels); i++)
        if (kernel == &kernels[i]) {
            *name = kernels[i].name;
            return OK;
        }
    return INVALID_HANDLE;
}
#endif

struct launch {
    function kernel;
    unsigned int grid[3], block[3], shared_bytes;
    stream on;
    void **parameters, **extra;
};

static struct fake_launch launch_of(const struct launch *call)
{
    struct fake_launch launch = { .kernel = call->kernel, .name = call->kernel->name };
    memcpy(launch.grid, call->grid, sizeof(launch.grid));
    memcpy(launch.block, call->block, sizeof(launch.block));
    memset(launch.arguments, 0xA5, sizeof(launch.arguments)); /* between them stands anything */
    for (size_t i = 0; i < call->kernel->count; i++) {
        size_t at = offset_of(call->kernel, i);
        memcpy(launch.arguments + at, call->parameters[i], call->kernel->sizes[i]);
        launch.argument_bytes = at + call->kernel->sizes[i];
    }
    return launch;
}

static int is_bad(const struct fake_launch *launch)
{
    static int times;
    address source;
    memcpy(&source, launch->arguments + 8, sizeof(source));
    if (strcmp(launch->name, "third_time") == 0)
        return ++times == 3;
    return strcmp(launch->name, "out_of_bounds") == 0 ||
           (strcmp(launch->name, "_Z4nestPfPKfi") == 0 && !fake_is_device(source, 4));
}

void fake_run(const struct fake_launch *launch)
{
    fake_note_launch(launch);
    if (!fake_lost && is_bad(launch))
        fake_fail(launch);
}

static result record(stream on, const struct fake_launch *launch)
{
    struct fake_graph *into = &on->captured;
    struct fake_launch *nodes = realloc(into->nodes, (into->count + 1) * sizeof(*nodes));
    if (!nodes)
        return INVALID_VALUE;
    into->nodes = nodes;
    nodes[into->count++] = *launch;
    return OK;
}

/* The error is returned by a later copy or wait; launches after the faulty one are queued before
 * anybody knows. */
static result launch(const struct launch *call)
{
    struct fake_launch launch = launch_of(call);
    if (call->on && call->on->capturing)
        return record(call->on, &launch);
    launch.number = fake_next_grid();
    fake_run(&launch);
    if (strcmp(launch.name, "fill_late") == 0)
        fake_late_fill(*(const address *)call->parameters[0], 4096, call->on);
    return OK;
}

static result tell_launch(uint32_t id, const char *name, const struct launch *arguments)
{
    const char *kernel = arguments->kernel->name;
    result code = OK;
    fake_tell(0, id, name, arguments, &code, kernel);
    fake_lock();
    code = launch(arguments);
    fake_unlock();
    fake_tell(1, id, name, arguments, &code, kernel);
    return code;
}

EXPORT result cuLaunchKernel(function kernel, unsigned int grid_x, unsigned int grid_y,
                             unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                             unsigned int block_z, unsigned int shared_bytes, stream on,
                             void **parameters, void **extra)
{
    struct launch arguments = { kernel,
                                { grid_x, grid_y, grid_z },
                                { block_x, block_y, block_z },
                                shared_bytes,
                                on,
                                parameters,
                                extra };
    return tell_launch(307, "cuLaunchKernel", &arguments);
}

EXPORT result cuLaunchKernel_ptsz(function kernel, unsigned int grid_x, unsigned int grid_y,
                                  unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                  unsigned int block_z, unsigned int shared_bytes, stream on,
                                  void **parameters, void **extra)
{
    struct launch arguments = { kernel,
                                { grid_x, grid_y, grid_z },
                                { block_x, block_y, block_z },
                                shared_bytes,
                                on,
                                parameters,
                                extra };
    return tell_launch(442, "cuLaunchKernel_ptsz", &arguments);
}
