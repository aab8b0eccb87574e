/* fuzz_cuda_image.c - images that programs give to the CUDA driver: PTX and fat binaries. */
#include "interpose/cuda/images.h"
#include "interpose/cuda/ptx.h"

#include <stdlib.h>
#include <string.h>

#define BASE UINT64_C(0x10000)

struct input {
    const uint8_t *bytes;
    size_t size;
};

static bool read_input(void *context, uint64_t address, void *to, size_t bytes)
{
    const struct input *input = context;
    uint64_t offset = address - BASE;
    if (address < BASE || offset > input->size || bytes > input->size - offset)
        return false;
    memcpy(to, input->bytes + offset, bytes);
    return true;
}

static void on_kernel(void *context, const char *name, size_t name_bytes,
                      const struct kernel_uses *uses)
{
    (void)context;
    size_t words = 0;
    for (uint16_t i = 0; i < uses->parameter_count; i++) {
        if (uses->words[i] != words)
            abort();
        words += (uses->sizes[i] + 7u) / 8;
    }
    if (words > KERNEL_WORD_LIMIT || uses->parameter_count > KERNEL_PARAMETER_LIMIT ||
        name_bytes == 0 || name[0] == '\0')
        abort();
}

static void on_text(void *context, const char *text, size_t bytes)
{
    (void)context;
    ptx_read(text, bytes, on_kernel, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = { data, size };
    const struct image_reader reader = { read_input, &input };
    uint8_t expanded[256];
    lz4_expand(data, size, expanded, sizeof(expanded));
    on_text(NULL, (const char *)data, size);
    image_read(&reader, BASE, on_text, NULL);
    return 0;
}
