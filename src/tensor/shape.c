/* shape.c - products of dimensions that cannot wrap, and the text of a shape.
 *
 * Invariant: dims[rank..] are 1, so that products can run over all SHAPE_RANK_LIMIT entries. */
#include "tensor/shape.h"

#include "base/size.h"
#include "base/status.h"

#include <inttypes.h>
#include <stdio.h>

struct shape shape_make(uint32_t rank, const uint64_t *dims)
{
    ASSERT(rank <= SHAPE_RANK_LIMIT);
    struct shape shape = { .rank = rank };
    for (uint32_t i = 0; i < SHAPE_RANK_LIMIT; i++)
        shape.dims[i] = i < rank ? dims[i] : 1;
    return shape;
}

/* An empty tensor has 0 elements however large its other dimensions are, in whatever order they
 * come: zeros are looked for before anything can overflow. */
static bool product(const uint64_t *factors, uint32_t factor_count, uint64_t *ret_product)
{
    uint64_t result = 1;
    for (uint32_t i = 0; i < factor_count; i++) {
        if (factors[i] == 0) {
            *ret_product = 0;
            return true;
        }
    }
    for (uint32_t i = 0; i < factor_count; i++) {
        if (!size_mul(result, factors[i], &result))
            return false;
    }
    *ret_product = result;
    return true;
}

bool shape_element_count(const struct shape *shape, uint64_t *ret_count)
{
    return product(shape->dims, SHAPE_RANK_LIMIT, ret_count);
}

bool shape_row_count(const struct shape *shape, uint64_t *ret_count)
{
    return product(shape->dims + 1, SHAPE_RANK_LIMIT - 1, ret_count);
}

bool shape_bytes(const struct shape *shape, enum dtype dtype, uint64_t *ret_bytes)
{
    uint64_t factors[SHAPE_RANK_LIMIT];
    if (!dtype_row_bytes(dtype, shape->dims[0], &factors[0]))
        return false;
    for (uint32_t i = 1; i < SHAPE_RANK_LIMIT; i++)
        factors[i] = shape->dims[i];
    return product(factors, SHAPE_RANK_LIMIT, ret_bytes);
}

bool shape_equal(const struct shape *a, const struct shape *b)
{
    for (uint32_t i = 0; i < SHAPE_RANK_LIMIT; i++) {
        if (a->dims[i] != b->dims[i])
            return false;
    }
    return true;
}

const char *shape_text(const struct shape *shape, char *text)
{
    /* 4 numbers of at most 20 digits, 3 separators, 2 brackets, the end. */
    _Static_assert(SHAPE_RANK_LIMIT * 20 + (SHAPE_RANK_LIMIT - 1) * 2 + 2 + 1 <= SHAPE_TEXT_BYTES,
                   "the longest shape fits");
    ASSERT(shape->rank <= SHAPE_RANK_LIMIT);
    size_t used = 0;
    text[used++] = '[';
    for (uint32_t i = 0; i < shape->rank; i++) {
        const char *separator = i == 0 ? "" : ", ";
        used += (size_t)snprintf(text + used, SHAPE_TEXT_BYTES - used, "%s%" PRIu64, separator,
                                 shape->dims[i]);
    }
    text[used++] = ']';
    text[used] = '\0';
    return text;
}
