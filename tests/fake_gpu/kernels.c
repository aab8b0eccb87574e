/* kernels.c - the kernels, compiled for the emulator, and a table of their names. */
#include "ops/gpu/kernels/image.c"

#include "fake.h"

static struct fake_kernel kernels[] = {
#define GPU_KERNEL(name, arguments, operands) { #name, emulated_##name, 0, 0 },
#include "ops/gpu/kernels.def"
#undef GPU_KERNEL
};

struct fake_kernel *fake_kernel_find(const char *name)
{
    for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
        if (strcmp(kernels[i].name, name) == 0)
            return &kernels[i];
    return NULL;
}
