/* matmul_ring.c - as matmul.c, for types whose blocks have no alignment: Q8_0, Q4_0 and Q6_K as
 * they are in a file.
 *
 * A warp takes a few rows of weights at a time and streams their bytes, 16 at a time, through a
 * ring of its own in shared memory, where any two bytes can be read. Order of a sum and
 * operands as in matmul.c. Arguments: struct matmul_ring_args. */
#include "ops/gpu/kernels/decode.h"
#include "ops/gpu/kernels/kernel_call.h"
#include "ops/gpu/packing.h"
#include "ops/gpu/tiling.h"

#define STAGES MATMUL_STAGES
#define ROWS MATMUL_ROWS
#define TOKENS_MOST MATMUL_TOKENS

struct ring_cursor {
    uint32_t group; /* of rows, over all parts */
    uint32_t part;
    uint32_t first_row;
    uint32_t offset; /* in the rows, bytes */
    uint32_t row_bytes;
    uint32_t chunk_bytes;
    bool aligned;
    const GLOBAL uint8_t *rows[ROWS];
};

INLINE uint32_t ring_groups_of(const struct gpu_operand *weights)
{
    return weights->address ? ((uint32_t)weights->rows + ROWS - 1) / ROWS : 0;
}

INLINE void ring_seek(const struct gpu_call *call, struct ring_cursor *cursor, uint32_t group)
{
    uint32_t in_first = ring_groups_of(&call->operands[MATMUL_GROUP_WEIGHTS]),
             in_second = ring_groups_of(&call->operands[MATMUL_GROUP_WEIGHTS + 1]);
    cursor->group = group;
    cursor->offset = 0;
    cursor->part = group < in_first ? 0 : group < in_first + in_second ? 1 : 2;
    uint32_t before = cursor->part == 0 ? 0 : cursor->part == 1 ? in_first : in_first + in_second;
    const struct gpu_operand *weights = &call->operands[MATMUL_GROUP_WEIGHTS + cursor->part];
    cursor->first_row = (group - before) * ROWS;
    cursor->row_bytes = (uint32_t)weights->row_stride_bytes;
    cursor->chunk_bytes = matmul_chunk_bytes(weights->dtype);
    cursor->aligned = ((weights->address | weights->row_stride_bytes) & 15) == 0;
    UNROLL
    for (uint32_t r = 0; r < ROWS; r++) /* a row that is not there is read as the first */
        cursor->rows[r] = row_at(weights, cursor->first_row +
                                              (cursor->first_row + r < weights->rows ? r : 0));
}

/* To the next chunk; true at the end of the rows. */
INLINE bool ring_advance(const struct gpu_call *call, struct ring_cursor *cursor, uint32_t step,
                         uint32_t group_count)
{
    cursor->offset += cursor->chunk_bytes;
    if (cursor->offset < cursor->row_bytes)
        return false;
    cursor->group += step;
    if (cursor->group < group_count)
        ring_seek(call, cursor, cursor->group);
    return true;
}

INLINE void ring_fetch(const struct ring_cursor *cursor, SHARED uint8_t *stage,
                       uint32_t stage_bytes)
{
    uint32_t left = cursor->row_bytes - cursor->offset;
    uint32_t bytes = left < cursor->chunk_bytes ? left : cursor->chunk_bytes;
    UNROLL
    for (uint32_t r = 0; r < ROWS; r++) {
        const GLOBAL uint8_t *source = cursor->rows[r] + cursor->offset;
        SHARED uint8_t *target = stage + r * stage_bytes;
        if (cursor->aligned) {
            for (uint32_t i = lane_index() * 16; i < bytes; i += WARP * 16)
                copy_async(target + i, source + i);
        } else {
            for (uint32_t i = lane_index() * 2; i < bytes; i += WARP * 2)
                *(SHARED uint16_t *)(target + i) = *(const GLOBAL uint16_t *)(source + i);
        }
    }
}

/* ---- Units ---------------------------------------------------------------------------------- */

/* What a chunk is multiplied with, and where the sums go. */
struct ring_work {
    const SHARED uint8_t *stage;
    uint32_t stage_bytes;
    uint32_t first; /* weight of the row that the chunk begins with */
    uint32_t count; /* weights in the chunk */
    uint32_t k;
    const GLOBAL uint8_t *acts; /* the first token's packed row */
    uint64_t stride_bytes;      /* to the next one's */
    uint32_t last;              /* token */
};

/* A token's packed row; tokens past the last have the last one's. It is found again each time:
 * there are no registers for eight. */
INLINE const GLOBAL uint8_t *ring_acts(const struct ring_work *work, uint32_t t)
{
    uint32_t last = not_known(work->last);
    return work->acts + (t < last ? t : last) * work->stride_bytes;
}

/* Four bytes at an even address. */
INLINE uint32_t ring_load_word(const SHARED uint8_t *at)
{
    const SHARED uint16_t *halves = (const SHARED uint16_t *)at;
    return halves[0] | (uint32_t)halves[1] << 16;
}
INLINE float ring_load_half(const SHARED uint8_t *at)
{
    return f16_value(*(const SHARED uint16_t *)at);
}
INLINE words4 ring_acts_words4(const GLOBAL uint8_t *acts, uint32_t at)
{
    return *(const GLOBAL words4 *)(acts + at);
}
/* {scale, scaled sum} of the block of 32 that weight `at` is in. */
INLINE floats2 ring_acts_scale(const GLOBAL uint8_t *acts, uint32_t k, uint32_t at)
{
    return *(const GLOBAL floats2 *)(acts + k + at / 32 * 8);
}

/* Q6_K: a unit is eight columns of a half block: eight weights each of four groups of 32. */
INLINE void ring_add_q6_k(const struct ring_work *work, uint32_t tokens,
                          float sums[ROWS][TOKENS_MOST])
{
    for (uint32_t u = lane_index(); u < work->count / 32; u += WARP) {
        uint32_t half = u % 8 / 4, column = 8 * (u % 4);
        uint32_t quants[ROWS][4][2];
        float scales[ROWS][4];
        UNROLL
        for (uint32_t r = 0; r < ROWS; r++) {
            const SHARED uint8_t *block = work->stage + r * work->stage_bytes + u / 8 * 210;
            const SHARED uint8_t *low = block + 64 * half + column;
            const SHARED uint8_t *high = block + 128 + 32 * half + column;
            const SHARED uint8_t *scale = block + 192 + 8 * half + column / 16;
            float d = ring_load_half(block + 208);
            UNROLL
            for (uint32_t w = 0; w < 2; w++) {
                uint32_t even = ring_load_word(low + 4 * w), odd = ring_load_word(low + 32 + 4 * w);
                uint32_t top = ring_load_word(high + 4 * w);
                uint32_t quant[4] = { (even & 0x0F0F0F0Fu) | (top << 4 & 0x30303030u),
                                      (odd & 0x0F0F0F0Fu) | (top << 2 & 0x30303030u),
                                      (even >> 4 & 0x0F0F0F0Fu) | (top & 0x30303030u),
                                      (odd >> 4 & 0x0F0F0F0Fu) | (top >> 2 & 0x30303030u) };
                UNROLL
                for (uint32_t g = 0; g < 4; g++) /* minus 32 in each byte */
                    quants[r][g][w] = (quant[g] + 0x60606060u) ^ 0x80808080u;
            }
            UNROLL
            for (uint32_t g = 0; g < 4; g++)
                scales[r][g] = d * (float)(int8_t)scale[2 * g];
        }
        uint32_t at = work->first + u / 8 * 256 + 128 * half;
        UNROLL
        for (uint32_t t = 0; t < tokens; t++) {
            const GLOBAL uint8_t *row = ring_acts(work, t);
            UNROLL
            for (uint32_t g = 0; g < 4; g++) {
                words2 acts = *(const GLOBAL words2 *)(row + at + 32 * g + column);
                float scale = ring_acts_scale(row, work->k, at + 32 * g)[0];
                UNROLL
                for (uint32_t r = 0; r < ROWS; r++) {
                    int32_t dot = dot4(quants[r][g][0], acts[0], 0);
                    dot = dot4(quants[r][g][1], acts[1], dot);
                    sums[r][t] += scales[r][g] * scale * (float)dot;
                }
            }
        }
    }
}

/* Q8_0 and Q4_0: a unit is a block. */
INLINE void ring_add_blocks(const struct ring_work *work, uint32_t tokens, bool nibbles,
                            float sums[ROWS][TOKENS_MOST])
{
    const uint32_t block_bytes = nibbles ? 18 : 34;
    for (uint32_t u = lane_index(); u < work->count / 32; u += WARP) {
        uint32_t quants[ROWS][8];
        float d[ROWS];
        UNROLL
        for (uint32_t r = 0; r < ROWS; r++) {
            const SHARED uint8_t *block = work->stage + r * work->stage_bytes + u * block_bytes;
            d[r] = ring_load_half(block);
            UNROLL
            for (uint32_t i = 0; i < (nibbles ? 4 : 8); i++) {
                uint32_t word = ring_load_word(block + 2 + 4 * i);
                if (nibbles) { /* minus 8 in each byte */
                    quants[r][i] = ((word & 0x0F0F0F0Fu) + 0x78787878u) ^ 0x80808080u;
                    quants[r][4 + i] = ((word >> 4 & 0x0F0F0F0Fu) + 0x78787878u) ^ 0x80808080u;
                } else {
                    quants[r][i] = word;
                }
            }
        }
        uint32_t at = work->first + 32 * u;
        UNROLL
        for (uint32_t t = 0; t < tokens; t++) {
            const GLOBAL uint8_t *row = ring_acts(work, t);
            words4 first = ring_acts_words4(row, at);
            words4 second = ring_acts_words4(row, at + 16);
            float scale = ring_acts_scale(row, work->k, at)[0];
            UNROLL
            for (uint32_t r = 0; r < ROWS; r++) {
                int32_t dot = 0;
                UNROLL
                for (uint32_t i = 0; i < 4; i++) {
                    dot = dot4(quants[r][i], first[i], dot);
                    dot = dot4(quants[r][4 + i], second[i], dot);
                }
                sums[r][t] += d[r] * scale * (float)dot;
            }
        }
    }
}

/* ---- The loop ------------------------------------------------------------------------------- */

INLINE void ring_store_sums(const struct gpu_call *call, const struct ring_cursor *cursor,
                            uint32_t tokens, uint32_t first_token, uint32_t token_count,
                            float sums[ROWS][TOKENS_MOST])
{
    const struct gpu_operand *bias = &call->operands[MATMUL_GROUP_BIASES + cursor->part];
    const struct gpu_operand *out = &call->operands[MATMUL_GROUP_OUTS + cursor->part];
    UNROLL
    for (uint32_t r = 0; r < ROWS; r++) {
        UNROLL
        for (uint32_t t = 0; t < tokens; t++) {
            float sum = warp_sum(sums[r][t], WARP);
            uint32_t row = cursor->first_row + r;
            if (lane_index() == r * tokens + t && row < out->width && t < token_count)
                store_product(bias, out, first_token + t, row, sum);
            sums[r][t] = 0;
        }
    }
}

INLINE void ring_add_chunk(const struct ring_work *work, uint32_t dtype, uint32_t tokens,
                           float sums[ROWS][TOKENS_MOST])
{
    if (dtype == DTYPE_Q6_K)
        ring_add_q6_k(work, tokens, sums);
    else if (dtype == DTYPE_Q4_0)
        ring_add_blocks(work, tokens, true, sums);
    else
        ring_add_blocks(work, tokens, false, sums);
}

INLINE void ring_multiply(const struct gpu_call *call, uint32_t tokens)
{
    const struct gpu_operand *packed = &call->operands[MATMUL_GROUP_PACKED];
    uint32_t stage_bytes = matmul_ring_args_of(call)->row_bytes;
    uint32_t warps = thread_count() / WARP;
    uint32_t group_count = ring_groups_of(&call->operands[MATMUL_GROUP_WEIGHTS]) +
                           ring_groups_of(&call->operands[MATMUL_GROUP_WEIGHTS + 1]) +
                           ring_groups_of(&call->operands[MATMUL_GROUP_WEIGHTS + 2]);
    uint32_t group = block_x() * warps + warp_index(), step = block_count_x() * warps;
    SHARED uint8_t *ring = shared_memory() + warp_index() * (STAGES * ROWS * stage_bytes);
    struct ring_cursor ahead = { .group = group }, now = { .group = group };
    early_allow();
    if (group < group_count) {
        ring_seek(call, &ahead, group);
        now = ahead;
    }
    UNROLL
    for (uint32_t s = 0; s < STAGES - 1; s++) {
        if (ahead.group < group_count) {
            ring_fetch(&ahead, ring + s * ROWS * stage_bytes, stage_bytes);
            ring_advance(call, &ahead, step, group_count);
        }
        copy_commit();
    }
    early_wait();
    leave_crumbs(call);
    uint32_t first_token = block_y() * tokens;
    uint32_t left = (uint32_t)packed->rows - first_token;
    uint32_t token_count = left < tokens ? left : tokens;
    /* The same for every part; some may be absent. */
    uint32_t k = (uint32_t)(call->operands[MATMUL_GROUP_WEIGHTS].width |
                            call->operands[MATMUL_GROUP_WEIGHTS + 1].width |
                            call->operands[MATMUL_GROUP_WEIGHTS + 2].width);
    struct ring_work work = { .stage_bytes = stage_bytes,
                              .k = k,
                              .acts = row_at(packed, first_token),
                              .stride_bytes = packed->row_stride_bytes,
                              .last = token_count - 1 };
    float sums[ROWS][TOKENS_MOST];
    UNROLL
    for (uint32_t t = 0; t < tokens; t++) {
        UNROLL
        for (uint32_t r = 0; r < ROWS; r++)
            sums[r][t] = 0;
    }
    uint32_t stage = 0;
    while (now.group < group_count) {
        copy_wait(STAGES - 2);
        warp_sync();
        if (ahead.group < group_count) {
            uint32_t free_stage = (stage + STAGES - 1) % STAGES;
            ring_fetch(&ahead, ring + free_stage * ROWS * stage_bytes, stage_bytes);
            ring_advance(call, &ahead, step, group_count);
        }
        copy_commit();
        uint32_t dtype = call->operands[MATMUL_GROUP_WEIGHTS + now.part].dtype;
        uint32_t weights = matmul_chunk_weights(dtype);
        work.stage = ring + stage * ROWS * stage_bytes;
        work.first = now.offset / now.chunk_bytes * weights;
        work.count = work.k - work.first < weights ? work.k - work.first : weights;
        ring_add_chunk(&work, dtype, tokens, sums);
        struct ring_cursor done = now;
        if (ring_advance(call, &now, step, group_count))
            ring_store_sums(call, &done, tokens, first_token, token_count, sums);
        stage = (stage + 1) % STAGES;
    }
}

KERNEL(matmul_ring_1)
{
    ring_multiply(&call, 1);
}
KERNEL(matmul_ring_8)
{
    ring_multiply(&call, 8);
}
