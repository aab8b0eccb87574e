/* fuzz_code_object.c - AMD code objects and bundles of them, as foreign programs carry them. */
#include "interpose/hip/code_object.h"

#include <stdlib.h>
#include <string.h>

struct input {
    const uint8_t *bytes;
    size_t size;
};

static bool read_input(void *context, uint64_t offset, void *to, size_t bytes)
{
    const struct input *input = context;
    if (offset > input->size || bytes > input->size - offset)
        return false;
    memcpy(to, input->bytes + offset, bytes);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = { data, size };
    struct code_source source = { read_input, &input };
    struct code_object object;
    struct error err;
    if (code_object_read(&source, &object, &err))
        return 0;
    for (size_t i = 0; i < object.kernel_count; i++) {
        const struct code_kernel *kernel = &object.kernels[i];
        uint64_t bytes = 0;
        for (uint32_t j = 0; j < kernel->argument_count; j++)
            bytes += kernel->arguments[j].bytes;
        if (!code_object_find(&object, kernel->name) || bytes == UINT64_MAX)
            abort();
    }
    code_object_release(&object);
    return 0;
}
