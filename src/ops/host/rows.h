/* rows.h - how kernels find the rows of their operands and of their tile. */
#ifndef GRETA_OPS_HOST_ROWS_H
#define GRETA_OPS_HOST_ROWS_H

#include "device/kernel.h"
#include "ops/params.h"

#include <stddef.h>
#include <stdint.h>

struct row_range {
    uint64_t first, end;
};

/* The rows of a tile of rows_per_tile. */
static inline struct row_range tile_range(uint64_t tile, uint64_t rows_per_tile, uint64_t row_count)
{
    struct row_range range = { tile * rows_per_tile, (tile + 1) * rows_per_tile };
    range.end = range.end < row_count ? range.end : row_count;
    return range;
}

/* The token rows of a tile; tokens has one row per token. */
static inline struct row_range tile_tokens(uint64_t tile, const struct device_host_operand *tokens)
{
    return tile_range(tile, TILE_TOKENS, tokens->shape.dims[1]);
}

static inline uint8_t *row_bytes(const struct device_host_operand *operand, uint64_t row)
{
    return (uint8_t *)operand->data + row * operand->row_stride_bytes;
}

static inline float *row_f32(const struct device_host_operand *operand, uint64_t row)
{
    return (float *)(void *)row_bytes(operand, row);
}

/* Number place of a list of I32. */
static inline int32_t list_i32(const struct device_host_operand *operand, uint64_t place)
{
    return ((const int32_t *)operand->data)[place];
}

/* As an index for device_index_ok: a negative one becomes larger than any bound. */
static inline uint64_t list_index(const struct device_host_operand *operand, uint64_t place)
{
    return (uint64_t)(int64_t)list_i32(operand, place);
}

#endif
