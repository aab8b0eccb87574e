/* size.h - arithmetic of sizes. Functions that could wrap return false instead, and leave *ret alone
 * then. */
#ifndef GRETA_BASE_SIZE_H
#define GRETA_BASE_SIZE_H

#include <stdbool.h>
#include <stdint.h>

/* Also for smaller unsigned types, whose values the result has. */
static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static inline bool size_add(uint64_t a, uint64_t b, uint64_t *ret)
{
    uint64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return false;
    *ret = sum;
    return true;
}

static inline bool size_mul(uint64_t a, uint64_t b, uint64_t *ret)
{
    uint64_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return false;
    *ret = product;
    return true;
}

static inline bool size_is_power_of_two(uint64_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

/* alignment must be a power of two. */
static inline bool size_align_up(uint64_t value, uint64_t alignment, uint64_t *ret)
{
    uint64_t sum;
    if (!size_add(value, alignment - 1, &sum))
        return false;
    *ret = sum & ~(alignment - 1);
    return true;
}

/* True if [offset, offset + bytes) lies in [0, whole_bytes). */
static inline bool size_range_inside(uint64_t offset, uint64_t bytes, uint64_t whole_bytes)
{
    return offset <= whole_bytes && bytes <= whole_bytes - offset;
}

#endif
