/* tile_multiply.h - matmuls of large batches on the matrix units every chip has, as
 * matmul_quant_tiles.c and matmul_half_tiles.c do them: a block's tile, the multiplication of
 * panels, and what is done with the sums.
 *
 * A block does TILE_TOKENS_WIDE tokens times `tile_rows` rows of weights, over all of k or a part
 * of it (a split). Each weight is read once for TILE_TOKENS_WIDE tokens.
 *
 * Order of a sum: k in steps of 16, each as the matrix unit adds it, accumulated in f32, from a
 * place on that depends on the tile and around to it; then the splits in their order. It depends on
 * type and k, on the row, and on how many rows and tokens the matmul has, by the number of splits.
 *
 * Operands: those of matmul_group, packed as PACK_F16, or PACK_BF16 for BF16. Arguments: struct
 * matmul_tiles_args. x counts splits, then tiles of rows of all parts; y tiles of tokens. */
#ifndef GRETA_OPS_GPU_KERNELS_TILE_PRODUCTS_H
#define GRETA_OPS_GPU_KERNELS_TILE_PRODUCTS_H

#include "ops/gpu/kernels/kernel_call.h"
#include "ops/gpu/kernels/matrix.h"
#include "ops/gpu/kernels/tile_part.h"
#include "ops/gpu/tiling.h"
#include "tensor/dtype.h"

#define TILE_WAVES (TILE_THREADS / MATRIX_LANES)
/* How waves share a tile: 32 rows each (or 64 where waves are few), then tokens. */
#define WAVE_ROWS_OF(tile_rows) ((tile_rows) == 128 && TILE_WAVES == 4 ? 64u : 32u)
#define WAVE_TOKENS_OF(tile_rows)                                                                  \
    (TILE_TOKENS_WIDE * (tile_rows) / WAVE_ROWS_OF(tile_rows) / TILE_WAVES)
#define WAVE_ROW_BLOCKS_MOST 4
#define WAVE_TOKEN_BLOCKS_MOST 2

/* A block's share of the work. */
struct tile_share {
    const struct gpu_operand *weights, *bias, *out;
    uint32_t tile;                                 /* over all parts */
    uint32_t first_row, rows, first_token, tokens; /* what there is of it */
    uint32_t split, first_k, k;                    /* values of k of the split */
};

INLINE void find_tile(const struct gpu_call *call, uint32_t tile_rows, struct tile_share *share)
{
    const struct matmul_tiles_args *args = matmul_tiles_args_of(call);
    uint32_t splits = args->splits, tile;
    share->split = block_x() % splits;
    share->tile = block_x() / splits;
    uint32_t part = part_of_tile(call, share->tile, tile_rows, &tile);
    share->weights = &call->operands[MATMUL_GROUP_WEIGHTS + part];
    share->bias = &call->operands[MATMUL_GROUP_BIASES + part];
    share->out = &call->operands[MATMUL_GROUP_OUTS + part];
    share->first_row = tile * tile_rows;
    uint32_t all_rows = args->rows ? args->rows : (uint32_t)share->weights->rows;
    uint32_t left = all_rows - share->first_row;
    share->rows = left < tile_rows ? left : tile_rows;
    share->first_token = block_y() * TILE_TOKENS_WIDE;
    left = (uint32_t)call->operands[MATMUL_GROUP_PACKED].rows - share->first_token;
    share->tokens = left < TILE_TOKENS_WIDE ? left : TILE_TOKENS_WIDE;
    uint32_t k = (uint32_t)share->weights->width;
    share->first_k = share->split * args->split_k;
    left = share->first_k < k ? k - share->first_k : 0;
    share->k = left < args->split_k ? left : args->split_k;
}

/* ---- Products of panels --------------------------------------------------------------------- */

struct tile_sums {
    struct matrix_sums values[WAVE_TOKEN_BLOCKS_MOST][WAVE_ROW_BLOCKS_MOST];
};

/* Which rows and tokens of the tile this wave has. */
INLINE uint32_t wave_row(uint32_t tile_rows)
{
    uint32_t wave = thread_index() / MATRIX_LANES;
    return wave % (tile_rows / WAVE_ROWS_OF(tile_rows)) * WAVE_ROWS_OF(tile_rows);
}
INLINE uint32_t wave_token(uint32_t tile_rows)
{
    uint32_t wave = thread_index() / MATRIX_LANES;
    return wave / (tile_rows / WAVE_ROWS_OF(tile_rows)) * WAVE_TOKENS_OF(tile_rows);
}

INLINE void clear_sums(struct tile_sums *sums)
{
    UNROLL
    for (uint32_t t = 0; t < WAVE_TOKEN_BLOCKS_MOST; t++) {
        UNROLL
        for (uint32_t r = 0; r < WAVE_ROW_BLOCKS_MOST; r++) {
            UNROLL
            for (uint32_t i = 0; i < MATRIX_SUMS; i++)
                sums->values[t][r].values[i] = 0;
        }
    }
}

/* 64 values of k. */
INLINE void multiply_panels(bool is_bf16, uint32_t tile_rows, const SHARED uint8_t *tokens,
                            const SHARED uint8_t *rows, struct tile_sums *sums)
{
    UNROLL
    for (uint32_t segment = 0; segment < 8; segment += 2) {
        struct matrix_rows a[WAVE_TOKEN_BLOCKS_MOST];
        UNROLL
        for (uint32_t t = 0; t < WAVE_TOKENS_OF(tile_rows) / 16; t++)
            a[t] = matrix_load(tokens, wave_token(tile_rows) + 16 * t, segment);
        UNROLL
        for (uint32_t r = 0; r < WAVE_ROWS_OF(tile_rows) / 16; r++) {
            struct matrix_rows b = matrix_load(rows, wave_row(tile_rows) + 16 * r, segment);
            UNROLL
            for (uint32_t t = 0; t < WAVE_TOKENS_OF(tile_rows) / 16; t++)
                matrix_multiply(is_bf16, &sums->values[t][r], &a[t], &b);
        }
    }
}

/* ---- Results -------------------------------------------------------------------------------- */

INLINE void store_result(const struct gpu_call *call, const struct tile_share *share, uint32_t row,
                         uint32_t token, float sum)
{
    const struct gpu_operand *packed = &call->operands[MATMUL_GROUP_PACKED];
    token += share->first_token;
    row += share->first_row + matmul_tiles_args_of(call)->first_row;
    if (share->weights->dtype != DTYPE_BF16)
        sum *= *(const GLOBAL float *)(row_at(packed, token) + 2 * share->weights->width);
    if (share->bias->address)
        sum += row_f32(share->bias, 0)[row];
    row_f32(share->out, token)[row] = sum;
}

/* Sums of a tile in the workspace, one split after the other. */
INLINE GLOBAL float *split_at(const struct gpu_call *call, const struct tile_share *share,
                              uint32_t tile_rows, uint32_t split)
{
    const struct matmul_tiles_args *args = matmul_tiles_args_of(call);
    uint64_t tiles_x = block_count_x() / args->splits;
    uint64_t tile = share->tile + tiles_x * block_y();
    return (GLOBAL float *)(call->workspace + GPU_COUNTER_BYTES) +
           (tile * args->splits + split) * tile_rows * TILE_TOKENS_WIDE;
}

#define JOINED_AT_ONCE 8

/* Adds the splits of a tile, in their order; the block that comes last does it. */
INLINE void join_splits(const struct gpu_call *call, const struct tile_share *share,
                        uint32_t tile_rows)
{
    SHARED uint32_t *flag = (SHARED uint32_t *)shared_memory();
    const struct matmul_tiles_args *args = matmul_tiles_args_of(call);
    uint32_t tiles_x = block_count_x() / args->splits;
    GLOBAL uint32_t *counter = (GLOBAL uint32_t *)call->workspace + share->tile +
                               tiles_x * block_y();
    if (!block_is_last(counter, args->splits, flag))
        return;
    const uint64_t apart = (uint64_t)tile_rows * TILE_TOKENS_WIDE / 4;
    volatile GLOBAL floats4 *first = (volatile GLOBAL floats4 *)split_at(call, share, tile_rows, 0);
    for (uint32_t i = thread_index(); i < apart; i += TILE_THREADS) {
        uint32_t token = 4 * i / tile_rows, row = 4 * i % tile_rows;
        floats4 sum = { 0 }, parts[JOINED_AT_ONCE];
        for (uint32_t split = 0; split < args->splits; split += JOINED_AT_ONCE) {
            /* Loaded together: one after the other would take longer than the matmul. */
            UNROLL
            for (uint32_t n = 0; n < JOINED_AT_ONCE; n++)
                parts[n] = first[i + apart * (split + n < args->splits ? split + n : split)];
            UNROLL
            for (uint32_t n = 0; n < JOINED_AT_ONCE; n++)
                if (split + n < args->splits)
                    sum += parts[n];
        }
        UNROLL
        for (uint32_t n = 0; n < 4; n++)
            if (token < share->tokens && row + n < share->rows)
                store_result(call, share, row + n, token, sum[n]);
    }
}

/* A sum of the tile: the result, or one of the split. */
INLINE void store_sum(const struct gpu_call *call, const struct tile_share *share,
                      uint32_t tile_rows, GLOBAL float *split, uint32_t row, uint32_t token,
                      float sum)
{
    if (token >= share->tokens || row >= share->rows)
        return;
    if (matmul_tiles_args_of(call)->splits == 1)
        store_result(call, share, row, token, sum);
    else
        split[token * tile_rows + row] = sum;
}

INLINE void store_sums_of_tile(const struct gpu_call *call, const struct tile_share *share,
                               uint32_t tile_rows, const struct tile_sums *sums)
{
    GLOBAL float *split = split_at(call, share, tile_rows, share->split);
    UNROLL
    for (uint32_t t = 0; t < WAVE_TOKENS_OF(tile_rows) / 16; t++) {
        UNROLL
        for (uint32_t r = 0; r < WAVE_ROWS_OF(tile_rows) / 16; r++) {
            UNROLL
            for (uint32_t i = 0; i < MATRIX_SUMS; i++)
                store_sum(
                    call, share, tile_rows, split, wave_row(tile_rows) + 16 * r + matrix_column(i),
                    wave_token(tile_rows) + 16 * t + matrix_row(i), sums->values[t][r].values[i]);
        }
    }
    if (matmul_tiles_args_of(call)->splits > 1)
        join_splits(call, share, tile_rows);
}

/* ---- Copies --------------------------------------------------------------------------------- */

/* Asks for a panel: `rows` rows of 64 halves from byte `at` of each on. Rows that are not there are
 * read as the last. */
INLINE void copy_panel(SHARED uint8_t *panel, const GLOBAL uint8_t *first, uint64_t stride_bytes,
                       uint32_t rows, uint32_t there, uint32_t at)
{
    UNROLL
    for (uint32_t i = 0; i < rows; i += TILE_THREADS / 8) {
        uint32_t row = i + thread_index() / 8, segment = thread_index() % 8;
        uint32_t from = row < there ? row : there - 1;
        copy_async(panel + panel_segment(row, segment),
                   first + from * stride_bytes + at + segment * 16);
    }
}

/* Where a tile is in its k at a step. Tiles begin at different places, so that they do not all ask
 * the same part of the cache for the same activations. */
INLINE uint32_t turned(uint32_t step, uint32_t start, uint32_t count)
{
    return step + start < count ? step + start : step + start - count;
}

#endif
