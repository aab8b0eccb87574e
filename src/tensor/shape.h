/* shape.h - dimensions of a tensor, the fastest-varying first, as in a GGUF file: a linear weight
 * is [in, out], out rows of in contiguous values. */
#ifndef GRETA_TENSOR_SHAPE_H
#define GRETA_TENSOR_SHAPE_H

#include "tensor/dtype.h"

#include <stdbool.h>
#include <stdint.h>

#define SHAPE_RANK_LIMIT 4

/* Unused trailing dimensions are 1. Rank 0 is a scalar. */
struct shape {
    uint32_t rank;
    uint64_t dims[SHAPE_RANK_LIMIT];
};

/* "[4096, 32000]" needs at most this, with the end. */
#define SHAPE_TEXT_BYTES 96

/* rank <= SHAPE_RANK_LIMIT; dims has rank entries. */
struct shape shape_make(uint32_t rank, const uint64_t *dims);

/* False if the product does not fit 64 bits. */
bool shape_element_count(const struct shape *shape, uint64_t *ret_count);

/* dims[1] * dims[2] * dims[3]: rows of dims[0] values. False if it does not fit. */
bool shape_row_count(const struct shape *shape, uint64_t *ret_count);

/* False if a row is not a whole number of blocks or the product does not fit 64 bits. */
bool shape_bytes(const struct shape *shape, enum dtype dtype, uint64_t *ret_bytes);

/* Equal dimensions; [n] equals [n, 1]. */
bool shape_equal(const struct shape *a, const struct shape *b);

/* Writes "[4096, 32000]" and returns text, which has SHAPE_TEXT_BYTES bytes. */
const char *shape_text(const struct shape *shape, char *text);

#endif
