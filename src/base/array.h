/* array.h - arrays that grow. */
#ifndef GRETA_BASE_ARRAY_H
#define GRETA_BASE_ARRAY_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Makes room for one more item after the first `count`. Returns items, or a larger copy of it with
 * *capacity doubled. Returns NULL if there is no memory; items is untouched then. */
/* Always inline, so that a failing allocation has the caller's place: debuggers and tests/faults/
 * look for it there. */
__attribute__((always_inline)) static inline void *
array_reserve(void *items, size_t count, size_t *capacity, size_t item_bytes)
{
    if (count < *capacity)
        return items;
    size_t wanted = *capacity ? *capacity * 2 : 64;
    if (wanted > SIZE_MAX / item_bytes)
        return NULL;
    void *larger = realloc(items, wanted * item_bytes);
    if (larger)
        *capacity = wanted;
    return larger;
}

#endif
