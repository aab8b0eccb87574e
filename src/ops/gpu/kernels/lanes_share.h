/* lanes_share.h - which part of a matmul of matmul_lanes.c each warpgroup does: which rows, which
 * tokens, which part of k. */
#ifndef GRETA_OPS_GPU_KERNELS_LANES_SHARE_H
#define GRETA_OPS_GPU_KERNELS_LANES_SHARE_H

#include "ops/gpu/kernels/lane_quants.h"
#include "ops/gpu/kernels/tile_part.h"
#include "ops/gpu/kernels/warpgroup.h"

#if HAS_WARPGROUPS

/* What a warpgroup does. */
struct lanes_share {
    uint32_t columns; /* tokens of a tile, as the kernel is made for */
    const struct gpu_operand *weights, *bias, *out;
    uint32_t tile, split, splits;
    uint32_t shares, share, unit;                  /* unit: which rows of the tile */
    uint32_t first_row, rows, first_token, tokens; /* what there is of it */
    uint32_t warp_row; /* the first of 16 that the warp reads: the part's last where it has fewer */
    uint32_t blocks, stages; /* blocks of 256 values of this share; stages of activations of all */
};

INLINE void find_lanes_rows(const struct gpu_call *call, struct lanes_share *share)
{
    uint32_t tile_rows = LANES_GROUPS * LANES_ROWS / share->shares, tile;
    uint32_t part = part_of_tile(call, share->tile, tile_rows, &tile);
    share->weights = &call->operands[MATMUL_GROUP_WEIGHTS + part];
    share->bias = &call->operands[MATMUL_GROUP_BIASES + part];
    share->out = &call->operands[MATMUL_GROUP_OUTS + part];
    share->first_row = tile * tile_rows + share->unit * LANES_ROWS;
    uint32_t all = (uint32_t)share->weights->rows;
    uint32_t left = share->first_row < all ? all - share->first_row : 0;
    share->rows = left < LANES_ROWS ? left : LANES_ROWS;
    share->warp_row = share->first_row + warp_index() % 4 * 16;
    share->warp_row = share->warp_row + 16 < all ? share->warp_row : all - 16;
}

INLINE struct lanes_share find_lanes(const struct gpu_call *call, uint32_t columns)
{
    const struct matmul_lanes_args *args = matmul_lanes_args_of(call);
    struct lanes_share share = { .columns = columns,
                                 .splits = args->splits,
                                 .shares = args->shares };
    /* The same for the whole warp, and said so that the assembler knows: what follows from it is
     * kept once for all lanes. */
    uint32_t group = warp_pick(thread_index() / WARPGROUP, 0), units = LANES_GROUPS / share.shares;
    share.split = block_x() % share.splits;
    share.tile = block_x() / share.splits;
    share.share = group / units;
    share.unit = group % units;
    find_lanes_rows(call, &share);
    share.first_token = block_y() * columns;
    uint32_t left = (uint32_t)call->operands[MATMUL_GROUP_PACKED].rows - share.first_token;
    share.tokens = left < columns ? left : columns;
    return share;
}

/* ---- Shares of k ---------------------------------------------------------------------------- */

/* Goes around in a range from somewhere on, in steps that end at its end. Tiles begin at different
 * places, so that they do not all ask the same part of the cache for the same activations. */
struct lanes_place {
    uint32_t at, begin, end;
};

INLINE void advance_lanes(struct lanes_place *place, uint32_t step)
{
    place->at += step;
    if (place->at == place->end)
        place->at = place->begin;
}

/* The blocks of 256 values that share `which` of the split has, *ret_count of them. Where k ends
 * before the share these are none, and the range is of one block whose sums are not used. */
INLINE struct lanes_place find_lanes_blocks(const struct gpu_call *call,
                                            const struct lanes_share *share, uint32_t which,
                                            uint32_t *ret_count)
{
    uint32_t each = matmul_lanes_args_of(call)->each, all = (uint32_t)share->weights->width / 256;
    uint32_t first = (share->split * share->shares + which) * each;
    uint32_t left = first < all ? all - first : 0, count = left < each ? left : each;
    *ret_count = count;
    if (count == 0)
        return (struct lanes_place){ 0, 0, 1 };
    return (struct lanes_place){ first + share->tile % count, first, first + count };
}

#endif
#endif
