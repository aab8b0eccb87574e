/* fuzz_npy.c - any bytes as a NumPy array: what is read lies within them. */
#include "tensor/npy.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A copy of exactly that size, so that a byte too much is noticed. */
    uint8_t *bytes = malloc(size ? size : 1);
    struct npy npy;
    struct error err;
    ASSERT(bytes);
    if (size)
        memcpy(bytes, data, size);
    if (!npy_read(&npy, bytes, size, "input", &err)) {
        volatile float last = 0;
        for (uint64_t i = 0; i < npy.count; i++)
            last = npy.values[i];
        (void)last;
        ASSERT((const uint8_t *)(npy.values + npy.count) == bytes + size);
    }
    free(bytes);
    return 0;
}
