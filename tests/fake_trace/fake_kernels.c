/* fake_kernels.c - the emulated driver's kernels and their launches. */
#include "fake_driver.h"

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
};

EXPORT result cuModuleLoadData(void **module, const void *image)
{
    *module = (void *)(uintptr_t)image; /* any handle */
    return image ? OK : INVALID_VALUE;
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
    *offset = 0;
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

/* The error is returned by a later copy or wait; launches after the faulty one are queued before
 * anybody knows. */
static result launch(const struct fake_kernel *kernel, stream on, void *const *parameters)
{
    if (on && on->capturing)
        return OK;
    if (strcmp(kernel->name, "out_of_bounds") == 0)
        fake_lost = 1;
    if (strcmp(kernel->name, "fill_late") == 0 && parameters)
        fake_late_fill(*(const address *)parameters[0], 4096, on);
    return OK;
}

struct launch {
    function kernel;
    unsigned int grid[3], block[3], shared_bytes;
    stream on;
    void **parameters, **extra;
};

static result tell_launch(uint32_t id, const char *name, const struct launch *arguments)
{
    const char *kernel = arguments->kernel->name;
    result code = OK;
    fake_tell(0, id, name, arguments, &code, kernel);
    code = launch(arguments->kernel, arguments->on, arguments->parameters);
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
