/* cuda_types.c - our own types (src/interpose/cuda/types.h) are as wide as the toolkit's. */
#include "cuda_types.h"
#include "interpose/cuda/types.h"

#include <stdio.h>

static const struct type_shape own_types[TYPE_COUNT] = { PASSED_BY_VALUE };

int main(void)
{
    int differences = 0;
    for (size_t i = 0; i < TYPE_COUNT; i++)
        if (own_types[i].bytes != toolkit_types[i].bytes ||
            own_types[i].alignment != toolkit_types[i].alignment) {
            printf("%s: expected %zu bytes, found %zu\n", own_types[i].name, toolkit_types[i].bytes,
                   own_types[i].bytes);
            differences++;
        }
    if (!differences)
        puts("signatures and types are those of the toolkit");
    return differences != 0;
}
