/* matmul.c - products of weights with few rows of activations: each weight is read once.
 *
 * A team takes a few rows of weights at a time and streams their bytes through a ring of its own in
 * shared memory: enough is on its way at any time to fill the memory's pipe, whatever the format
 * and however its blocks lie. From there each lane takes units of neighbouring weights and
 * multiplies them with up to eight rows of activations, which stay in the processor's cache.
 *
 * Order of a sum: a lane adds its units in increasing order, then the lanes are added by halves. It
 * depends on the type and k alone. The first bytes of weights are asked for before the kernel that
 * makes the activations has ended: weights do not change. */
#include "ops/gpu/kernels/decode.h"
#include "ops/gpu/packing.h"
#include "ops/gpu/tiling.h"

#define STAGES MATMUL_STAGES
#define ROWS MATMUL_ROWS
#define TOKENS_MOST MATMUL_TOKENS

/* Operands: packed, three weights, three biases, three outputs. words[0]: bytes of a row in a stage
 * of the ring. */
struct cursor {
    uint32_t group; /* of rows, over all parts */
    uint32_t part;
    uint32_t first_row;
    uint32_t offset; /* in the rows, bytes */
    uint32_t row_bytes;
    uint32_t chunk_bytes;
    bool aligned;
    const GLOBAL uint8_t *rows[ROWS];
};

INLINE uint32_t groups_of(const struct gpu_operand *weights)
{
    return weights->address ? ((uint32_t)weights->rows + ROWS - 1) / ROWS : 0;
}

INLINE void seek(const struct gpu_call *call, struct cursor *cursor, uint32_t group)
{
    uint32_t in_first = groups_of(&call->operands[1]), in_second = groups_of(&call->operands[2]);
    cursor->group = group;
    cursor->offset = 0;
    cursor->part = group < in_first ? 0 : group < in_first + in_second ? 1 : 2;
    uint32_t before = cursor->part == 0 ? 0 : cursor->part == 1 ? in_first : in_first + in_second;
    const struct gpu_operand *weights = &call->operands[1 + cursor->part];
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
INLINE bool advance(const struct gpu_call *call, struct cursor *cursor, uint32_t step,
                    uint32_t group_count)
{
    cursor->offset += cursor->chunk_bytes;
    if (cursor->offset < cursor->row_bytes)
        return false;
    cursor->group += step;
    if (cursor->group < group_count)
        seek(call, cursor, cursor->group);
    return true;
}

INLINE void fetch(const struct cursor *cursor, SHARED uint8_t *stage, uint32_t stage_bytes)
{
    uint32_t left = cursor->row_bytes - cursor->offset;
    uint32_t bytes = left < cursor->chunk_bytes ? left : cursor->chunk_bytes;
    UNROLL
    for (uint32_t r = 0; r < ROWS; r++) {
        const GLOBAL uint8_t *source = cursor->rows[r] + cursor->offset;
        SHARED uint8_t *target = stage + r * stage_bytes;
        if (cursor->aligned) {
            for (uint32_t i = lane_index() * 16; i < bytes; i += TEAM * 16)
                copy_async(target + i, source + i);
        } else {
            for (uint32_t i = lane_index() * 2; i < bytes; i += TEAM * 2)
                *(SHARED uint16_t *)(target + i) = *(const GLOBAL uint16_t *)(source + i);
        }
    }
}

/* ---- Units ---------------------------------------------------------------------------------- */

/* What a chunk is multiplied with, and where the sums go. */
struct work {
    const SHARED uint8_t *stage;
    uint32_t stage_bytes;
    uint32_t first; /* weight of the row that the chunk begins with */
    uint32_t count; /* weights in the chunk */
    uint32_t k;
    const GLOBAL uint8_t *acts[TOKENS_MOST]; /* packed rows */
};

/* Four bytes at an even address. */
INLINE uint32_t load_word(const SHARED uint8_t *at)
{
    const SHARED uint16_t *halves = (const SHARED uint16_t *)at;
    return halves[0] | (uint32_t)halves[1] << 16;
}
INLINE float load_half(const SHARED uint8_t *at)
{
    return f16_value(*(const SHARED uint16_t *)at);
}
INLINE words4 acts_words4(const GLOBAL uint8_t *acts, uint32_t at)
{
    return *(const GLOBAL words4 *)(acts + at);
}
/* {scale, scaled sum} of the block of 32 that weight `at` is in. */
INLINE floats2 acts_scale(const GLOBAL uint8_t *acts, uint32_t k, uint32_t at)
{
    return *(const GLOBAL floats2 *)(acts + k + at / 32 * 8);
}

/* Scales and mins of groups 2 p and 2 p + 1 of a K block, in the bytes of two words. */
INLINE void unpack_scales(words4 head, uint32_t p, uint32_t *scales, uint32_t *mins)
{
    uint32_t shift = 16 * (p & 1);
    uint32_t a = head[1] >> shift, b = head[2] >> shift, c = head[3] >> shift;
    *scales = p < 2 ? a & 0x3F3Fu : (c & 0x0F0Fu) | (a >> 2 & 0x3030u);
    *mins = p < 2 ? b & 0x3F3Fu : (c >> 4 & 0x0F0Fu) | (b >> 2 & 0x3030u);
}

/* Q4_K and Q5_K: a unit is 16 nibble bytes: 16 weights each of two neighbouring groups. */
INLINE void add_k(const struct work *work, uint32_t tokens, bool fifth,
                  float sums[ROWS][TOKENS_MOST])
{
    const uint32_t block_bytes = fifth ? 176 : 144, nibbles_at = fifth ? 48 : 16;
    for (uint32_t u = lane_index(); u < work->count / 32; u += TEAM) {
        uint32_t s = u % 8, p = s / 2, half = s % 2;
        uint32_t low[ROWS][4], high[ROWS][4];
        float scale_low[ROWS], scale_high[ROWS], min[ROWS];
        UNROLL
        for (uint32_t r = 0; r < ROWS; r++) {
            const SHARED uint8_t *block = work->stage + r * work->stage_bytes + u / 8 * block_bytes;
            words4 head = *(const SHARED words4 *)block;
            words4 nibbles = *(const SHARED words4 *)(block + nibbles_at + 16 * s);
            words4 fifths = { 0 };
            if (fifth)
                fifths = *(const SHARED words4 *)(block + 16 + 16 * half);
            uint32_t scales, mins;
            unpack_scales(head, p, &scales, &mins);
            float d = f16_value((uint16_t)head[0]), dmin = f16_value((uint16_t)(head[0] >> 16));
            scale_low[r] = d * (float)(scales & 255u);
            scale_high[r] = d * (float)(scales >> 8);
            min[r] = dmin * (float)(half ? mins >> 8 : mins & 255u);
            UNROLL
            for (uint32_t i = 0; i < 4; i++) {
                low[r][i] = nibbles[i] & 0x0F0F0F0Fu;
                high[r][i] = nibbles[i] >> 4 & 0x0F0F0F0Fu;
                if (fifth) {
                    low[r][i] |= (fifths[i] >> (2 * p) & 0x01010101u) << 4;
                    high[r][i] |= (fifths[i] >> (2 * p + 1) & 0x01010101u) << 4;
                }
            }
        }
        uint32_t at = work->first + u / 8 * 256 + 64 * p;
        UNROLL
        for (uint32_t t = 0; t < tokens; t++) {
            words4 first = acts_words4(work->acts[t], at + 16 * half);
            words4 second = acts_words4(work->acts[t], at + 32 + 16 * half);
            floats4 pairs = *(const GLOBAL floats4 *)(work->acts[t] + work->k + at / 32 * 8);
            UNROLL
            for (uint32_t r = 0; r < ROWS; r++) {
                int32_t dot_low = 0, dot_high = 0;
                UNROLL
                for (uint32_t i = 0; i < 4; i++) {
                    dot_low = dot4(low[r][i], first[i], dot_low);
                    dot_high = dot4(high[r][i], second[i], dot_high);
                }
                sums[r][t] += scale_low[r] * pairs[0] * (float)dot_low +
                              scale_high[r] * pairs[2] * (float)dot_high -
                              min[r] * (half ? pairs[3] : pairs[1]);
            }
        }
    }
}

/* Q6_K: a unit is eight columns of a half block: eight weights each of four groups of 32. */
INLINE void add_q6_k(const struct work *work, uint32_t tokens, float sums[ROWS][TOKENS_MOST])
{
    for (uint32_t u = lane_index(); u < work->count / 32; u += TEAM) {
        uint32_t half = u % 8 / 4, column = 8 * (u % 4);
        uint32_t levels[ROWS][4][2];
        float scales[ROWS][4];
        UNROLL
        for (uint32_t r = 0; r < ROWS; r++) {
            const SHARED uint8_t *block = work->stage + r * work->stage_bytes + u / 8 * 210;
            const SHARED uint8_t *low = block + 64 * half + column;
            const SHARED uint8_t *high = block + 128 + 32 * half + column;
            const SHARED uint8_t *scale = block + 192 + 8 * half + column / 16;
            float d = load_half(block + 208);
            UNROLL
            for (uint32_t w = 0; w < 2; w++) {
                uint32_t even = load_word(low + 4 * w), odd = load_word(low + 32 + 4 * w);
                uint32_t top = load_word(high + 4 * w);
                uint32_t level[4] = { (even & 0x0F0F0F0Fu) | (top << 4 & 0x30303030u),
                                      (odd & 0x0F0F0F0Fu) | (top << 2 & 0x30303030u),
                                      (even >> 4 & 0x0F0F0F0Fu) | (top & 0x30303030u),
                                      (odd >> 4 & 0x0F0F0F0Fu) | (top >> 2 & 0x30303030u) };
                UNROLL
                for (uint32_t g = 0; g < 4; g++) /* minus 32 in each byte */
                    levels[r][g][w] = (level[g] + 0x60606060u) ^ 0x80808080u;
            }
            UNROLL
            for (uint32_t g = 0; g < 4; g++)
                scales[r][g] = d * (float)(int8_t)scale[2 * g];
        }
        uint32_t at = work->first + u / 8 * 256 + 128 * half;
        UNROLL
        for (uint32_t t = 0; t < tokens; t++) {
            UNROLL
            for (uint32_t g = 0; g < 4; g++) {
                words2 acts = *(const GLOBAL words2 *)(work->acts[t] + at + 32 * g + column);
                float scale = acts_scale(work->acts[t], work->k, at + 32 * g)[0];
                UNROLL
                for (uint32_t r = 0; r < ROWS; r++) {
                    int32_t dot = dot4(levels[r][g][0], acts[0], 0);
                    dot = dot4(levels[r][g][1], acts[1], dot);
                    sums[r][t] += scales[r][g] * scale * (float)dot;
                }
            }
        }
    }
}

/* Q8_0 and Q4_0: a unit is a block. */
INLINE void add_blocks(const struct work *work, uint32_t tokens, bool nibbles,
                       float sums[ROWS][TOKENS_MOST])
{
    const uint32_t block_bytes = nibbles ? 18 : 34;
    for (uint32_t u = lane_index(); u < work->count / 32; u += TEAM) {
        uint32_t levels[ROWS][8];
        float d[ROWS];
        UNROLL
        for (uint32_t r = 0; r < ROWS; r++) {
            const SHARED uint8_t *block = work->stage + r * work->stage_bytes + u * block_bytes;
            d[r] = load_half(block);
            UNROLL
            for (uint32_t i = 0; i < (nibbles ? 4 : 8); i++) {
                uint32_t word = load_word(block + 2 + 4 * i);
                if (nibbles) { /* minus 8 in each byte */
                    levels[r][i] = ((word & 0x0F0F0F0Fu) + 0x78787878u) ^ 0x80808080u;
                    levels[r][4 + i] = ((word >> 4 & 0x0F0F0F0Fu) + 0x78787878u) ^ 0x80808080u;
                } else {
                    levels[r][i] = word;
                }
            }
        }
        uint32_t at = work->first + 32 * u;
        UNROLL
        for (uint32_t t = 0; t < tokens; t++) {
            words4 first = acts_words4(work->acts[t], at);
            words4 second = acts_words4(work->acts[t], at + 16);
            float scale = acts_scale(work->acts[t], work->k, at)[0];
            UNROLL
            for (uint32_t r = 0; r < ROWS; r++) {
                int32_t dot = 0;
                UNROLL
                for (uint32_t i = 0; i < 4; i++) {
                    dot = dot4(levels[r][i], first[i], dot);
                    dot = dot4(levels[r][4 + i], second[i], dot);
                }
                sums[r][t] += d[r] * scale * (float)dot;
            }
        }
    }
}

/* F16 and BF16: a unit is eight weights. */
INLINE void add_halves(const struct work *work, uint32_t tokens, bool is_f16,
                       float sums[ROWS][TOKENS_MOST])
{
    for (uint32_t u = lane_index(); u < work->count / 8; u += TEAM) {
        float weights[ROWS][8];
        UNROLL
        for (uint32_t r = 0; r < ROWS; r++) {
            words4 words = *(const SHARED words4 *)(work->stage + r * work->stage_bytes + 16 * u);
            UNROLL
            for (uint32_t i = 0; i < 4; i++) {
                weights[r][2 * i] = is_f16 ? f16_value((uint16_t)words[i])
                                           : float_of(words[i] << 16);
                weights[r][2 * i + 1] = is_f16 ? f16_value((uint16_t)(words[i] >> 16))
                                               : float_of(words[i] & 0xFFFF0000u);
            }
        }
        UNROLL
        for (uint32_t t = 0; t < tokens; t++) {
            const GLOBAL floats4 *acts = (const GLOBAL floats4 *)(work->acts[t] +
                                                                  4 * (work->first + 8 * u));
            floats4 first = acts[0], second = acts[1];
            UNROLL
            for (uint32_t r = 0; r < ROWS; r++) {
                UNROLL
                for (uint32_t i = 0; i < 4; i++) {
                    sums[r][t] = __builtin_fmaf(weights[r][i], first[i], sums[r][t]);
                    sums[r][t] = __builtin_fmaf(weights[r][4 + i], second[i], sums[r][t]);
                }
            }
        }
    }
}

INLINE void add_f32(const struct work *work, uint32_t tokens, float sums[ROWS][TOKENS_MOST])
{
    for (uint32_t u = lane_index(); u < work->count / 4; u += TEAM) {
        floats4 weights[ROWS];
        UNROLL
        for (uint32_t r = 0; r < ROWS; r++)
            weights[r] = *(const SHARED floats4 *)(work->stage + r * work->stage_bytes + 16 * u);
        UNROLL
        for (uint32_t t = 0; t < tokens; t++) {
            floats4 acts = *(const GLOBAL floats4 *)(work->acts[t] + 4 * (work->first + 4 * u));
            UNROLL
            for (uint32_t r = 0; r < ROWS; r++) {
                UNROLL
                for (uint32_t i = 0; i < 4; i++)
                    sums[r][t] = __builtin_fmaf(weights[r][i], acts[i], sums[r][t]);
            }
        }
    }
}

/* ---- The loop ------------------------------------------------------------------------------- */

INLINE void store_sums(const struct gpu_call *call, const struct cursor *cursor, uint32_t tokens,
                       uint32_t first_token, uint32_t token_count, float sums[ROWS][TOKENS_MOST])
{
    const struct gpu_operand *bias = &call->operands[4 + cursor->part];
    const struct gpu_operand *out = &call->operands[7 + cursor->part];
    UNROLL
    for (uint32_t r = 0; r < ROWS; r++) {
        UNROLL
        for (uint32_t t = 0; t < tokens; t++) {
            float sum = team_sum(sums[r][t], TEAM);
            uint32_t row = cursor->first_row + r;
            if (lane_index() == r * tokens + t && row < out->width && t < token_count) {
                if (bias->address)
                    sum += row_f32(bias, 0)[row];
                row_f32(out, first_token + t)[row] = sum;
            }
            sums[r][t] = 0;
        }
    }
}

INLINE void add_chunk(const struct work *work, uint32_t dtype, bool levels, uint32_t tokens,
                      float sums[ROWS][TOKENS_MOST])
{
    if (levels) {
        if (dtype == DTYPE_Q4_K)
            add_k(work, tokens, false, sums);
        else if (dtype == DTYPE_Q6_K)
            add_q6_k(work, tokens, sums);
        else if (dtype == DTYPE_Q8_0)
            add_blocks(work, tokens, false, sums);
        else if (dtype == DTYPE_Q5_K)
            add_k(work, tokens, true, sums);
        else
            add_blocks(work, tokens, true, sums);
    } else {
        if (dtype == DTYPE_F32)
            add_f32(work, tokens, sums);
        else
            add_halves(work, tokens, dtype == DTYPE_F16, sums);
    }
}

/* levels: packed as PACK_LEVELS, else as PACK_F32. */
INLINE void multiply(const struct gpu_call *call, bool levels, uint32_t tokens)
{
    const struct gpu_operand *packed = &call->operands[0];
    uint32_t stage_bytes = call->words[0];
    uint32_t teams = thread_count() / TEAM;
    uint32_t group_count = groups_of(&call->operands[1]) + groups_of(&call->operands[2]) +
                           groups_of(&call->operands[3]);
    uint32_t group = block_x() * teams + team_index(), step = block_count_x() * teams;
    SHARED uint8_t *ring = shared_memory() + team_index() * (STAGES * ROWS * stage_bytes);
    struct cursor ahead = { .group = group }, now = { .group = group };
    early_allow();
    if (group < group_count) {
        seek(call, &ahead, group);
        now = ahead;
    }
    UNROLL
    for (uint32_t s = 0; s < STAGES - 1; s++) {
        if (ahead.group < group_count) {
            fetch(&ahead, ring + s * ROWS * stage_bytes, stage_bytes);
            advance(call, &ahead, step, group_count);
        }
        copy_commit();
    }
    early_wait();
    leave_crumbs(call);
    uint32_t first_token = block_y() * tokens;
    uint32_t left = (uint32_t)packed->rows - first_token;
    uint32_t token_count = left < tokens ? left : tokens;
    struct work work = { .stage_bytes = stage_bytes, .k = (uint32_t)call->operands[1].width };
    float sums[ROWS][TOKENS_MOST];
    UNROLL
    for (uint32_t t = 0; t < tokens; t++) {
        work.acts[t] = row_at(packed, first_token + (t < token_count ? t : 0));
        UNROLL
        for (uint32_t r = 0; r < ROWS; r++)
            sums[r][t] = 0;
    }
    uint32_t stage = 0;
    while (now.group < group_count) {
        copy_wait(STAGES - 2);
        team_sync();
        if (ahead.group < group_count) {
            uint32_t free_stage = (stage + STAGES - 1) % STAGES;
            fetch(&ahead, ring + free_stage * ROWS * stage_bytes, stage_bytes);
            advance(call, &ahead, step, group_count);
        }
        copy_commit();
        uint32_t dtype = call->operands[1 + now.part].dtype;
        uint32_t weights = matmul_chunk_weights(dtype);
        work.stage = ring + stage * ROWS * stage_bytes;
        work.first = now.offset / now.chunk_bytes * weights;
        work.count = work.k - work.first < weights ? work.k - work.first : weights;
        add_chunk(&work, dtype, levels, tokens, sums);
        struct cursor done = now;
        if (advance(call, &now, step, group_count))
            store_sums(call, &done, tokens, first_token, token_count, sums);
        stage = (stage + 1) % STAGES;
    }
}

KERNEL(matmul_levels_1)
{
    multiply(&call, true, 1);
}
KERNEL(matmul_levels_2)
{
    multiply(&call, true, 2);
}
KERNEL(matmul_levels_4)
{
    multiply(&call, true, 4);
}
KERNEL(matmul_levels_8)
{
    multiply(&call, true, 8);
}
KERNEL(matmul_floats_1)
{
    multiply(&call, false, 1);
}
KERNEL(matmul_floats_2)
{
    multiply(&call, false, 2);
}
KERNEL(matmul_floats_4)
{
    multiply(&call, false, 4);
}
KERNEL(matmul_floats_8)
{
    multiply(&call, false, 8);
}

/* ---- Any other type ------------------------------------------------------------------------- */

/* A team for each row, value by value; for types and sizes nobody has asked to be fast. */
KERNEL(matmul_decoded)
{
    ENTER(call);
    uint32_t part = call.words[1];
    const struct gpu_operand *weights = &call.operands[1 + part];
    const struct gpu_operand *bias = &call.operands[4 + part], *out = &call.operands[7 + part];
    uint32_t row = block_x() * (thread_count() / TEAM) + team_index();
    if (row >= weights->rows)
        return;
    uint32_t first_token = block_y() * DECODED_TOKENS;
    uint32_t left = (uint32_t)call.operands[0].rows - first_token;
    uint32_t count = left < DECODED_TOKENS ? left : DECODED_TOKENS;
    float sums[DECODED_TOKENS] = { 0 };
    const GLOBAL float *acts[DECODED_TOKENS];
    UNROLL
    for (uint32_t t = 0; t < DECODED_TOKENS; t++)
        acts[t] = row_f32(&call.operands[0], first_token + (t < count ? t : 0));
    for (uint32_t i = lane_index(); i < weights->width; i += TEAM) {
        float value = decode_value(weights->dtype, row_at(weights, row), i);
        UNROLL
        for (uint32_t t = 0; t < DECODED_TOKENS; t++)
            sums[t] = __builtin_fmaf(value, acts[t][i], sums[t]);
    }
    UNROLL
    for (uint32_t t = 0; t < DECODED_TOKENS; t++) {
        float sum = team_sum(sums[t], TEAM);
        if (lane_index() == 0 && t < count)
            row_f32(out, first_token + t)[row] = sum +
                                                 (bias->address ? row_f32(bias, 0)[row] : 0.0f);
    }
}
