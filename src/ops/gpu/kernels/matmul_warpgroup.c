/* matmul_warpgroup.c - products of halves with many rows of activations on the matrix units of
 * sm_90a. A block does 128 tokens times 256 rows of weights: two warpgroups, each with 64 tokens.
 * Both operands pass through a ring of stages in shared memory, 64 values of k a stage, by
 * background copies of all threads; the products of one stage run while those of the next are
 * given.
 *
 * Order of a sum: k in steps of 16, each as the matrix unit adds it, accumulated in f32. It depends
 * on k alone.
 *
 * Operands: enum matmul_warpgroup_operand, packed as PACK_F16 or PACK_BF16. Arguments: struct
 * matmul_warpgroup_args. x counts tiles of tokens, then of rows. */
#include "ops/gpu/kernels/kernel_call.h"
#include "ops/gpu/kernels/warpgroup.h"
#include "ops/gpu/packing.h"
#include "ops/gpu/tiling.h"

#if HAS_WARPGROUPS

#define THREADS_HERE 256u
/* Rows of a panel that the threads copy at once, eight threads a row. */
#define ROWS_A_COPY (THREADS_HERE / 8)
#define PANEL_COPIES(rows) ((rows) / ROWS_A_COPY)
#define TOKEN_COPIES PANEL_COPIES(WARPGROUP_TOKENS)
#define WEIGHT_COPIES PANEL_COPIES(WARPGROUP_WEIGHTS)
#define TOKEN_PANEL_BYTES (WARPGROUP_TOKENS * 128u)

/* Where a thread's copies come from. Rows that are not there are read as the last: their sums go
 * nowhere. */
struct sources {
    const GLOBAL uint8_t *tokens, *weights;
    uint32_t token_at[TOKEN_COPIES], weight_at[WEIGHT_COPIES];
};

INLINE void copy_stage(const struct sources *sources, uint32_t at, SHARED uint8_t *stage)
{
    UNROLL
    for (uint32_t i = 0; i < TOKEN_COPIES; i++)
        copy_async(stage + i * ROWS_A_COPY * 128, sources->tokens + sources->token_at[i] + at);
    UNROLL
    for (uint32_t i = 0; i < WEIGHT_COPIES; i++)
        copy_async(stage + TOKEN_PANEL_BYTES + i * ROWS_A_COPY * 128,
                   sources->weights + sources->weight_at[i] + at);
}

struct warpgroup_tile {
    uint32_t first_token, tokens, first_row, rows; /* what there is of it */
};

INLINE void find_sources(const struct gpu_call *call, const struct warpgroup_tile *tile,
                         struct sources *sources)
{
    const struct gpu_operand *packed = &call->operands[MATMUL_WARPGROUP_PACKED],
                             *weights = &call->operands[MATMUL_WARPGROUP_WEIGHTS];
    uint32_t row = thread_index() / 8, segment = thread_index() % 8 * 16;
    const struct matmul_warpgroup_args *args = matmul_warpgroup_args_of(call);
    bool unpacked = args->unpacked;
    uint32_t stride = unpacked ? 2 * (uint32_t)weights->width : (uint32_t)weights->row_stride_bytes;
    uint64_t first = unpacked ? call->workspace + GPU_COUNTER_BYTES
                              : weights->address + (uint64_t)args->first_row * stride;
    sources->tokens = row_at(packed, tile->first_token) + segment;
    sources->weights = (const GLOBAL uint8_t *)(first + (uint64_t)tile->first_row * stride) +
                       segment;
    UNROLL
    for (uint32_t i = 0; i < TOKEN_COPIES; i++) {
        uint32_t token = row + i * ROWS_A_COPY;
        token = token < tile->tokens ? token : tile->tokens - 1;
        sources->token_at[i] = token * (uint32_t)packed->row_stride_bytes;
    }
    UNROLL
    for (uint32_t i = 0; i < WEIGHT_COPIES; i++) {
        uint32_t weight = row + i * ROWS_A_COPY;
        weight = weight < tile->rows ? weight : tile->rows - 1;
        sources->weight_at[i] = weight * stride;
    }
}

/* What a packed row is to be multiplied with. */
INLINE float row_scale(const struct gpu_operand *packed, uint64_t k, bool is_bf16, uint32_t token)
{
    return is_bf16 ? 1.0f : *(const GLOBAL float *)(row_at(packed, token) + 2 * k);
}

INLINE void store_tile(const struct gpu_call *call, const struct warpgroup_tile *tile, bool is_bf16,
                       const float sums[WARPGROUP_SUMS])
{
    const struct gpu_operand *bias = &call->operands[MATMUL_WARPGROUP_BIAS],
                             *out = &call->operands[MATMUL_WARPGROUP_OUT];
    const struct matmul_warpgroup_args *args = matmul_warpgroup_args_of(call);
    uint32_t lane = lane_index();
    UNROLL
    for (uint32_t half = 0; half < 2; half++) {
        uint32_t token = 16 * warp_index() + lane / 4 + 8 * half;
        if (token >= tile->tokens)
            continue;
        token += tile->first_token;
        float scale = row_scale(&call->operands[MATMUL_WARPGROUP_PACKED],
                                call->operands[MATMUL_WARPGROUP_WEIGHTS].width, is_bf16, token);
        uint32_t first = args->first_row + tile->first_row;
        GLOBAL float *row = row_f32(out, token) + first;
        const GLOBAL float *added = bias->address ? row_f32(bias, 0) + first : 0;
        UNROLL
        for (uint32_t j = 0; j < WARPGROUP_SUMS / 4; j++) {
            uint32_t at = 8 * j + 2 * (lane % 4);
            float low = sums[4 * j + 2 * half] * scale, high = sums[4 * j + 2 * half + 1] * scale;
            if (at >= tile->rows)
                break;
            if (added) {
                low += added[at];
                high += at + 1 < tile->rows ? added[at + 1] : 0.0f;
            }
            if (at + 1 < tile->rows && args->stores_pairs) {
                floats2 both = { low, high };
                *(GLOBAL floats2 *)(row + at) = both;
            } else {
                row[at] = low;
                if (at + 1 < tile->rows)
                    row[at + 1] = high;
            }
        }
    }
}

INLINE void multiply_halves(const struct gpu_call *call, bool is_bf16)
{
    SHARED uint8_t *memory = shared_memory();
    const struct matmul_warpgroup_args *args = matmul_warpgroup_args_of(call);
    uint32_t token_tile = block_x() % args->token_tiles, row_tile = block_x() / args->token_tiles;
    struct warpgroup_tile tile = { token_tile * WARPGROUP_TOKENS, WARPGROUP_TOKENS,
                                   row_tile * WARPGROUP_WEIGHTS, WARPGROUP_WEIGHTS };
    uint32_t tokens_left = (uint32_t)call->operands[MATMUL_WARPGROUP_PACKED].rows -
                           tile.first_token;
    uint32_t rows_left = args->rows - tile.first_row;
    tile.tokens = tokens_left < tile.tokens ? tokens_left : tile.tokens;
    tile.rows = rows_left < tile.rows ? rows_left : tile.rows;
    struct sources sources;
    find_sources(call, &tile, &sources);
    uint32_t count = (uint32_t)call->operands[MATMUL_WARPGROUP_WEIGHTS].width / 64;
    uint32_t row = thread_index() / 8;
    SHARED uint8_t *mine = memory + row * 128 + ((thread_index() ^ row) % 8) * 16;
    const SHARED uint8_t *my_tokens = memory + thread_index() / WARPGROUP * WARPGROUP_ROWS * 128;
    float sums[WARPGROUP_SUMS];
    UNROLL
    for (uint32_t i = 0; i < WARPGROUP_SUMS; i++)
        sums[i] = 0;
    UNROLL
    for (uint32_t s = 0; s < WARPGROUP_STAGES - 2; s++) {
        if (s < count)
            copy_stage(&sources, s * 128, mine + s * WARPGROUP_STAGE_BYTES);
        copy_commit();
    }
    uint32_t full = 0, empty = (WARPGROUP_STAGES - 2) * WARPGROUP_STAGE_BYTES;
    for (uint32_t step = 0; step < count; step++) {
        copy_wait(WARPGROUP_STAGES - 3);
        warpgroup_publish();
        block_sync();
        /* All have waited for the products of two steps ago: their stage is free. */
        if (step + WARPGROUP_STAGES - 2 < count)
            copy_stage(&sources, (step + WARPGROUP_STAGES - 2) * 128, mine + empty);
        copy_commit();
        warpgroup_multiply(is_bf16, sums, my_tokens + full, memory + full + TOKEN_PANEL_BYTES);
        warpgroup_wait(1);
        full = full + WARPGROUP_STAGE_BYTES < WARPGROUP_STAGES * WARPGROUP_STAGE_BYTES
                   ? full + WARPGROUP_STAGE_BYTES
                   : 0;
        empty = empty + WARPGROUP_STAGE_BYTES < WARPGROUP_STAGES * WARPGROUP_STAGE_BYTES
                    ? empty + WARPGROUP_STAGE_BYTES
                    : 0;
    }
    warpgroup_wait(0);
    store_tile(call, &tile, is_bf16, sums);
}

KERNEL(matmul_warpgroup_f16)
{
    ENTER(call);
    multiply_halves(&call, false);
}
KERNEL(matmul_warpgroup_bf16)
{
    ENTER(call);
    multiply_halves(&call, true);
}

#else

/* Never planned on these chips; the image has all names. */
KERNEL(matmul_warpgroup_f16)
{
    ENTER(call);
}
KERNEL(matmul_warpgroup_bf16)
{
    ENTER(call);
}

#endif
