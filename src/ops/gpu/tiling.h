/* tiling.h - how matmuls and attention are cut; shared by the plans and the kernels. */
#ifndef GRETA_OPS_GPU_TILING_H
#define GRETA_OPS_GPU_TILING_H

#include "ops/params.h"
#include "tensor/dtype.h"

#include <stdbool.h>
#include <stdint.h>

/* Neighbouring threads that work together: kernels/portable.h says why so many. */
#define WARP 32u

/* Rows of weights a warp takes at a time. */
#define MATMUL_ROWS 2u
/* Chunks of them that are in its ring, all but one on their way. */
#define MATMUL_STAGES 3u
/* Tokens of the widest kernel. */
#define MATMUL_TOKENS 8u
/* Tokens at a time where weights are decoded one by one. */
#define DECODED_TOKENS 4u

/* Matmuls on sm_90a's matrix units: tokens and rows of weights of a block, and the ring of stages,
 * each 64 values of k of both. */
#define WARPGROUP_TOKENS 128u
#define WARPGROUP_WEIGHTS 256u
#define WARPGROUP_STAGES 4u
#define WARPGROUP_STAGE_BYTES ((WARPGROUP_TOKENS + WARPGROUP_WEIGHTS) * 128u)

/* Weights that a thread unpacks to halves: a unit, which lies together in the file. */
#define UNPACK_UNIT(dtype)                                                                         \
    ((dtype) == DTYPE_Q6_K_X8 ? 32 : (dtype) == DTYPE_Q4_K || (dtype) == DTYPE_Q8_0_X8 ? 16 : 8)

/* Matmuls on the matrix units all chips have: tokens of a tile, bytes of 64 values of k of them,
 * and how many of those are in the ring. */
#define TILE_THREADS 256u
#define TILE_TOKENS_WIDE 64u
#define TILE_ACT_BYTES (TILE_TOKENS_WIDE * 128u)
#define TILE_ACT_STAGES 3u
#define TILE_HALF_STAGES 3u

/* Types that are unpacked as they are multiplied there: bytes of 256 values of a row in shared
 * memory; 0 for others. */
static inline uint32_t tile_raw_bytes(uint32_t dtype)
{
    switch (dtype) {
    case DTYPE_Q4_K:
        return 144;
    case DTYPE_Q5_K:
        return 176;
    case DTYPE_Q6_K_X8:
        return 224; /* nibbles, upper bits, scales, and d of eight blocks */
    case DTYPE_Q8_0_X8:
        return 272;
    default:
        return 0;
    }
}

/* Matmuls whose weights stay in registers (matmul_lanes.c): threads and warpgroups of a block,
 * rows of a warpgroup, tokens of a tile (two kinds of kernels); bytes of the tokens' factors and a
 * flag. */
#define LANES_THREADS 512u
#define LANES_GROUPS 4u
#define LANES_ROWS 64u
#define LANES_TOKENS 64u
#define LANES_TOKENS_32 32u
#define LANES_EXTRA_BYTES (LANES_TOKENS * 4u + 16u)

/* A panel is 64 values of k of all tokens of a tile, a stage two of them. */
static inline uint32_t lanes_panel_bytes(uint32_t tokens)
{
    return tokens * 128;
}
static inline uint32_t lanes_stage_bytes(uint32_t tokens)
{
    return 2 * lanes_panel_bytes(tokens);
}

/* Blocks of 256 values of weights in a ring, and stages of activations that are on their way; two
 * more are being multiplied. The weights of a round must be requested no later than the activations
 * of its first stage, of which a block has two: rounds <= 2 * (rounds - 1). */
static inline uint32_t lanes_rounds(uint32_t dtype)
{
    return dtype == DTYPE_Q4_K ? 3 : 2;
}
/* Bytes of 256 values of a row there: lane_quants.h has the layout. */
static inline uint32_t lanes_raw_bytes(uint32_t dtype)
{
    switch (dtype) {
    case DTYPE_Q4_K:
        return 160 + 16;
    case DTYPE_Q5_K:
        return 160 + 16 + 32;
    case DTYPE_Q6_K_X8:
        return 160 + 16 + 16 + 96;
    case DTYPE_Q8_0_X8:
        return 288 + 16;
    default:
        return 0;
    }
}
static inline uint32_t lanes_shared_bytes(uint32_t dtype, uint32_t tokens)
{
    return (lanes_rounds(dtype) + 2) * lanes_stage_bytes(tokens) + LANES_EXTRA_BYTES +
           lanes_rounds(dtype) * LANES_GROUPS * LANES_ROWS * lanes_raw_bytes(dtype);
}

/* Attention: threads of a block. Without matrix units it weighs ATTENTION_CHUNK slots at a time. */
#define ATTENTION_THREADS 256u
#define ATTENTION_WARPS (ATTENTION_THREADS / WARP)

/* Shared memory of that: scores of a chunk, then maxima, sums and factors, for each head; then each
 * warp's totals. */
#define ATTENTION_HEADS_MOST 4u
static inline uint32_t attention_shared_floats(uint32_t heads, uint32_t head_dim)
{
    return heads * ATTENTION_CHUNK + 3 * ATTENTION_HEADS_MOST + ATTENTION_WARPS * heads * head_dim;
}

/* Attention of tokens that are each of another sequence: query heads that share a kv head, at
 * most, and shared memory of a warp: maximum and sum of each head, and its totals. */
#define APART_GROUP_MOST 8u
static inline uint32_t apart_warp_floats(uint32_t head_dim)
{
    return 2 * APART_GROUP_MOST + APART_GROUP_MOST * head_dim;
}

/* Attention on matrix units: rows (tokens times heads that share a kv head) of a block, and
 * slots of the cache it takes at a time. */
#define ATTENTION_ROWS 128u
#define ATTENTION_SLOTS 64u

/* Attention as one kernel with what comes before it: values of a head and heads of a kv head, at
 * most, and shared memory: queries and the key, what each warp has, the new key and value. */
#define STEP_HEAD_MOST 128u
#define STEP_GROUP_MOST 8u
#define STEP_SHARED_BYTES                                                                          \
    ((STEP_GROUP_MOST + 1 + ATTENTION_WARPS + 1) * STEP_HEAD_MOST * 4u +                           \
     (2 * ATTENTION_WARPS + 4) * 4u)

/* Types whose blocks lie at multiples of 16 bytes are read straight to registers. */
static inline bool matmul_is_direct(uint32_t dtype)
{
    return dtype == DTYPE_F32 || dtype == DTYPE_F16 || dtype == DTYPE_BF16 || dtype == DTYPE_Q4_K ||
           dtype == DTYPE_Q5_K || dtype == DTYPE_Q8_0_X8 || dtype == DTYPE_Q6_K_X8;
}

/* Bytes of a chunk of a row of such a type. */
static inline uint32_t matmul_direct_bytes(uint32_t dtype)
{
    switch (dtype) {
    case DTYPE_Q4_K:
        return 8 * 144;
    case DTYPE_Q5_K:
        return 8 * 176;
    case DTYPE_Q6_K_X8:
        return 1680;
    case DTYPE_Q8_0_X8:
        return 8 * 272;
    default:
        return 2048;
    }
}

/* For types that go through the other ring: weights of a chunk of a row, whose bytes are a multiple
 * of 16 and about a thousand; 0 for others. */
static inline uint32_t matmul_chunk_weights(uint32_t dtype)
{
    switch (dtype) {
    case DTYPE_Q8_0:
        return 1024;
    case DTYPE_Q4_0:
    case DTYPE_Q6_K:
        return 2048;
    default:
        return 0;
    }
}

static inline uint32_t matmul_chunk_bytes(uint32_t dtype)
{
    switch (dtype) {
    case DTYPE_Q8_0:
        return 1024 / 32 * 34;
    case DTYPE_Q4_0:
        return 2048 / 32 * 18;
    case DTYPE_Q6_K:
        return 2048 / 256 * 210;
    default:
        return 0;
    }
}

/* ---- One token ------------------------------------------------------------------------------ */

/* Groups of rows in a warp's ring, all but one on their way. */
#define ONE_STAGES 5u
#define ONE_ROWS_MOST 2u
#define ONE_SLICE_MOST 2176u

/* Columns of a warp's slice. */
static inline uint32_t one_columns(uint32_t dtype)
{
    return dtype == DTYPE_BF16 || dtype == DTYPE_F16 ? 1024 : 2048;
}

/* Bytes of a slice of a row; 0 for types that are done otherwise. */
static inline uint32_t one_slice_bytes(uint32_t dtype)
{
    switch (dtype) {
    case DTYPE_Q4_K:
        return 8 * 144;
    case DTYPE_Q6_K_X8:
        return 1680;
    case DTYPE_Q8_0_X8:
        return 8 * 272;
    case DTYPE_BF16:
    case DTYPE_F16:
        return 2048;
    default:
        return 0;
    }
}

/* Rows that a warp takes together. */
static inline uint32_t one_rows(uint32_t dtype)
{
    return dtype == DTYPE_Q4_K ? 2 : 1;
}

/* ---- A few tokens --------------------------------------------------------------------------- */

/* Rows and tokens of what a warp multiplies at once, and blocks of 256 columns that are its own. */
#define SMALL_BATCH_ROWS 16u
#define SMALL_BATCH_TOKENS 8u
#define SMALL_BATCH_BLOCKS 2u
/* Sums of a warp; tokens lie one float more than the rows apart, so that no two share a bank. */
#define SMALL_BATCH_SUMS_APART (SMALL_BATCH_ROWS + 1)
#define SMALL_BATCH_SUMS_BYTES (SMALL_BATCH_TOKENS * SMALL_BATCH_SUMS_APART * 4)
/* Segments of 16 bytes of a row's block of 256 columns; 0 for types that are done otherwise. */
static inline uint32_t small_batch_segments(uint32_t dtype)
{
    return dtype == DTYPE_Q5_K ? 0 : tile_raw_bytes(dtype) / 16;
}

/* Bytes between rows in a stage: eight rows meet different banks. */
static inline uint32_t small_batch_row_bytes(uint32_t dtype)
{
    return dtype == DTYPE_Q6_K_X8 ? 240 : 16 * small_batch_segments(dtype);
}

/* Blocks of 16 rows in a warp's ring, all but one on their way. */
static inline uint32_t small_batch_stages(uint32_t dtype)
{
    return dtype == DTYPE_Q4_K ? 5 : 3;
}

static inline uint32_t small_batch_ring_bytes(uint32_t dtype)
{
    return small_batch_stages(dtype) * SMALL_BATCH_ROWS * small_batch_row_bytes(dtype);
}

/* Floats for each 32 columns of a token: its scale, and of Q4_K what 2^23 too much amounts to. */
static inline uint32_t small_batch_scale_floats(uint32_t dtype)
{
    return dtype == DTYPE_Q4_K ? 2 : 1;
}

static inline uint32_t small_batch_scales_bytes(uint32_t dtype)
{
    return SMALL_BATCH_BLOCKS * 8 * SMALL_BATCH_TOKENS * small_batch_scale_floats(dtype) * 4;
}

/* Sets of a warp's sums: with two, no warp waits until the sums before are added up. */
static inline uint32_t small_batch_sum_sets(uint32_t dtype)
{
    return dtype == DTYPE_Q8_0_X8 ? 1 : 2;
}

/* Shared memory of a warp: its ring, its scales, its sums. */
static inline uint32_t small_batch_warp_bytes(uint32_t dtype)
{
    return small_batch_ring_bytes(dtype) + small_batch_scales_bytes(dtype) +
           small_batch_sum_sets(dtype) * SMALL_BATCH_SUMS_BYTES;
}

#endif
