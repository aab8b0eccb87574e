/* matmul_1tok_dot.h - what a lane of matmul_1tok.c does with its slice: activations to registers,
 * and their dot product with a slice of a row in shared memory, for each type. */
#ifndef GRETA_OPS_GPU_KERNELS_MATMUL_1TOK_DOT_H
#define GRETA_OPS_GPU_KERNELS_MATMUL_1TOK_DOT_H

#include "ops/gpu/kernels/decode.h"
#include "ops/gpu/kernels/kernel_call.h"
#include "ops/gpu/tiling.h"

/* A lane's activations. Quants: 64 columns, and of the blocks they are in {scale, scaled sum} or
 * scales. Floats: 32 of them. */
struct one_acts {
    uint32_t lane; /* whose they are */
    words4 words[8];
    floats4 scales;
    floats4 below; /* of Q4_K: what 2^23 too much in a scale or min amounts to */
    /* Q6_K: what a group's dot product begins with. It is the bits of 1.5 * 2^23, in whose low
     * bits a sum becomes a float, less 32 times the activations: weights are stored 32 too large.
     */
    int32_t excess[4];
};

/* What a warp does. */
struct one_work {
    const struct gpu_call *call;
    uint32_t k;               /* its columns */
    uint32_t members, member; /* warps of a row, and which of them this is */
    uint32_t slots;           /* groups of rows that the block does at once */
    uint32_t first, end;      /* groups of the block, counted over all parts */
    uint32_t counts[3];       /* groups of each part */
    SHARED uint8_t *ring;
    SHARED float *sums; /* [groups of the block][ONE_ROWS_MOST][members] */
};

/* ---- Activations to registers --------------------------------------------------------------- */

INLINE words4 one_words(const GLOBAL uint8_t *at)
{
    return *(const GLOBAL words4 *)at;
}

INLINE void one_load_acts(const struct one_work *work, uint32_t dtype, struct one_acts *acts)
{
    const GLOBAL uint8_t *row = row_at(&work->call->operands[MATMUL_GROUP_PACKED], 0);
    uint32_t k = work->k;
    uint32_t lane = acts->lane, column = work->member * one_columns(dtype);
    if (dtype == DTYPE_BF16 || dtype == DTYPE_F16) {
        UNROLL
        for (uint32_t j = 0; j < 4; j++) {
            uint32_t at = column + 256 * j + 8 * lane;
            at = at < k ? at : 0;
            acts->words[2 * j] = one_words(row + 4 * at);
            acts->words[2 * j + 1] = one_words(row + 4 * at + 16);
        }
        return;
    }
    column += 64 * lane;
    column = column < k ? column : 0; /* a lane without weights reads the first */
    const GLOBAL float *scales = (const GLOBAL float *)(row + k) + column / 32 * 2;
    if (dtype == DTYPE_Q4_K) {
        UNROLL
        for (uint32_t j = 0; j < 4; j++)
            acts->words[j] = one_words(row + column + 16 * j);
        acts->scales = *(const GLOBAL floats4 *)scales;
        acts->scales[2] *= 0.0625f; /* upper nibbles are taken sixteenfold */
        acts->below = acts->scales * -0x1p23f;
    } else if (dtype == DTYPE_Q8_0_X8) {
        /* Lanes of an odd pair take the second block first: no two read one bank. */
        uint32_t other = lane & 2;
        UNROLL
        for (uint32_t j = 0; j < 4; j++)
            acts->words[j] = one_words(row + column + 16 * (j ^ other));
        acts->scales[0] = scales[other];
        acts->scales[1] = scales[other ^ 2];
    } else {
        uint32_t side = lane % 2;
        column -= 64 * side;
        scales -= 4 * side;
        UNROLL
        for (uint32_t g = 0; g < 4; g++) {
            acts->words[g] = one_words(row + column + 32 * g + 16 * side);
            acts->scales[g] = scales[2 * g] * (g < 2 ? 1.0f : 0.0625f);
            int32_t sum = 0;
            UNROLL
            for (uint32_t i = 0; i < 4; i++)
                sum = dot4(0x01010101u, acts->words[g][i], sum);
            acts->excess[g] = 0x4B400000 - 32 * sum * (g < 2 ? 1 : 16);
        }
    }
}

/* ---- A slice of a row ----------------------------------------------------------------------- */

/* Four lanes for each block, 32 columns of two groups for each lane. */
INLINE float one_dot_q4_k(const SHARED uint8_t *row, const struct one_acts *acts)
{
    uint32_t lane = acts->lane, p = lane % 4, odd = 2 * (p % 2);
    const SHARED uint8_t *block = row + 144 * (lane / 4);
    words4 head = load_shared(block);
    words4 nibbles[2] = { load_shared(block + 16 + 32 * p), load_shared(block + 32 + 32 * p) };
    /* An integer added to the mantissa of 2^23 (signed: of 1.5 * 2^23) makes a float that much too
     * large; to subtract that replaces a conversion, and conversions wait for each other. The same
     * bits as with them, for activations below 2^111, whose scales can be taken 2^23 times. */
    int32_t low = 0x4B400000, high = 0x4B400000;
    UNROLL
    for (uint32_t j = 0; j < 2; j++) {
        UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            low = dot4(nibbles[j][i] & 0x0F0F0F0Fu, acts->words[j][i], low);
            high = dot4_upper(nibbles[j][i], acts->words[2 + j][i], high);
        }
    }
    /* Bytes: two scales, two mins. Neighbouring lanes have different p: masks instead of a choice
     * keep them together. */
    uint32_t from = byte_selector(odd, odd + 1, odd + 4, odd + 5);
    uint32_t front = p < 2 ? 0xFFFFFFFFu : 0;
    uint32_t a = pick_bytes(head[1], head[2], from);
    uint32_t c = pick_bytes(head[3], head[3] >> 4, from);
    uint32_t bytes = (a & front & 0x3F3F3F3Fu) |
                     (~front & ((c & 0x0F0F0F0Fu) | (a >> 2 & 0x30303030u)));
    float d = f16_value((uint16_t)head[0]), dmin = f16_value((uint16_t)(head[0] >> 16));
    /* Scales and mins by the activations'. */
    float first = __builtin_fmaf(acts->scales[0], byte_float(bytes, 0), acts->below[0]);
    float second = __builtin_fmaf(acts->scales[2], byte_float(bytes, 1), acts->below[2]);
    float min = __builtin_fmaf(acts->scales[1], byte_float(bytes, 2), acts->below[1]);
    min = __builtin_fmaf(acts->scales[3], byte_float(bytes, 3) - 0x1p23f, min);
    float sum = first * (float_of((uint32_t)low) - 0x1.8p23f);
    sum = __builtin_fmaf(second, float_of((uint32_t)high) - 0x1.8p23f, sum);
    return __builtin_fmaf(d, sum, -(dmin * min));
}

/* Eight blocks side by side: 1024 bytes of nibbles, 512 of upper bits, 128 of scales, 16 of d. Four
 * lanes for each block, sixteen columns of four groups for each lane. */
INLINE float one_dot_q6_k(const SHARED uint8_t *row, const struct one_acts *acts)
{
    uint32_t lane = acts->lane, block = lane / 4, half = lane % 4 / 2, side = lane % 2;
    const SHARED uint8_t *nibbles = row + 128 * block + 64 * half + 16 * side;
    words4 low[2] = { load_shared(nibbles), load_shared(nibbles + 32) };
    words4 top = load_shared(row + 1024 + 64 * block + 32 * half + 16 * side);
    words2 scales = *(const SHARED words2 *)(row + 1536 + 16 * block + 8 * half);
    float d = f16_value(*(const SHARED uint16_t *)(row + 1664 + 2 * block));
    float sum = 0;
    /* Nibbles and top bits are multiplied in place, unshifted: to bring them together would keep
     * the unit that does logic busy. Top bits of group g count 4^g there; a factor makes that 16,
     * or 256 for groups 2 and 3, whose nibbles are the upper ones: these groups come out
     * sixteenfold, as their scales are a sixteenth. Whole numbers become floats as in Q4_K; scales
     * are signed bytes, so 128 is added first and subtracted with the rest. */
    uint32_t more[2] = { scales[0] ^ 0x80808080u, scales[1] ^ 0x80808080u };
    UNROLL
    for (uint32_t g = 0; g < 4; g++) {
        int32_t lower = acts->excess[g], upper = 0;
        UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            uint32_t quants = low[g % 2][i], bits = top[i] & (0x03030303u << (2 * g));
            lower = g < 2 ? dot4(quants & 0x0F0F0F0Fu, acts->words[g][i], lower)
                          : dot4_upper(quants, acts->words[g][i], lower);
            upper = g < 3 ? dot4(bits, acts->words[g][i], upper)
                          : dot4_unsigned(bits, acts->words[g][i], upper);
        }
        float dot = float_of((uint32_t)(lower + upper * (g % 2 ? 4 : 16))) - 0x1.8p23f;
        float scale = byte_float(more[g / 2], 2 * (g % 2) + side) - (0x1p23f + 128.0f);
        sum = __builtin_fmaf(acts->scales[g], scale * dot, sum);
    }
    return d * sum;
}

/* Eight times 256 quants and their eight scales. Four lanes for each, two blocks for each lane. */
INLINE float one_dot_q8_0(const SHARED uint8_t *row, const struct one_acts *acts)
{
    uint32_t lane = acts->lane, q = lane % 4, other = lane & 2;
    const SHARED uint8_t *block = row + 272 * (lane / 4);
    const SHARED uint16_t *d = (const SHARED uint16_t *)(block + 256) + 2 * q;
    int32_t dots[2] = { 0, 0 };
    UNROLL
    for (uint32_t j = 0; j < 4; j++) {
        words4 quants = load_shared(block + 64 * q + 16 * (j ^ other));
        UNROLL
        for (uint32_t i = 0; i < 4; i++)
            dots[j / 2] = dot4(quants[i], acts->words[j][i], dots[j / 2]);
    }
    float sum = f16_value(d[other / 2]) * acts->scales[0] * (float)dots[0];
    return __builtin_fmaf(f16_value(d[other / 2 ^ 1]) * acts->scales[1], (float)dots[1], sum);
}

/* left: columns of the slice. */
INLINE float one_dot_halves(const SHARED uint8_t *row, bool is_f16, uint32_t left,
                            const struct one_acts *acts)
{
    float sums[2] = { 0, 0 };
    UNROLL
    for (uint32_t j = 0; j < 4; j++) {
        words4 words = load_shared(row + 512 * j + 16 * acts->lane);
        if (256 * j >= left)
            words = (words4){ 0, 0, 0, 0 };
        UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            float low = is_f16 ? f16_value((uint16_t)words[i]) : float_of(words[i] << 16);
            float high = is_f16 ? f16_value((uint16_t)(words[i] >> 16))
                                : float_of(words[i] & 0xFFFF0000u);
            words4 acts_now = acts->words[2 * j + i / 2];
            sums[0] = __builtin_fmaf(low, float_of(acts_now[2 * (i % 2)]), sums[0]);
            sums[1] = __builtin_fmaf(high, float_of(acts_now[2 * (i % 2) + 1]), sums[1]);
        }
    }
    return sums[0] + sums[1];
}

/* left: columns of the slice that are there. */
INLINE float one_dot(uint32_t dtype, const SHARED uint8_t *row, uint32_t left,
                     const struct one_acts *acts)
{
    if (dtype == DTYPE_BF16 || dtype == DTYPE_F16)
        return one_dot_halves(row, dtype == DTYPE_F16, left, acts);
    float dot = dtype == DTYPE_Q4_K      ? one_dot_q4_k(row, acts)
                : dtype == DTYPE_Q8_0_X8 ? one_dot_q8_0(row, acts)
                                         : one_dot_q6_k(row, acts);
    return 64 * acts->lane < left ? dot : 0.0f;
}

#endif
