/* tile_part.h - which part a tile belongs to: matmuls of up to three parts are cut into tiles of
 * rows, numbered over all parts. */
#ifndef GRETA_OPS_GPU_KERNELS_TILE_PART_H
#define GRETA_OPS_GPU_KERNELS_TILE_PART_H

#include "ops/gpu/kernels/portable.h"

/* Operands: packed, three weights, ... *ret_tile: which of the part's tiles it is. */
INLINE uint32_t part_of_tile(const struct gpu_call *call, uint32_t tile, uint32_t tile_rows,
                             uint32_t *ret_tile)
{
    uint32_t part = 0;
    for (; part < 2; part++) {
        const struct gpu_operand *weights = &call->operands[MATMUL_GROUP_WEIGHTS + part];
        uint32_t rows = weights->address ? (uint32_t)weights->rows : 0;
        uint32_t tiles = (rows + tile_rows - 1) / tile_rows;
        if (tile < tiles)
            break;
        tile -= tiles;
    }
    *ret_tile = tile;
    return part;
}

#endif
