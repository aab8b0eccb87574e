/* matmul_unit.h - what a lane does at a time in matmul.c: a unit, 16 bytes or more of neighbouring
 * weights, taken out of the ring and multiplied with its activations. */
#ifndef GRETA_OPS_GPU_KERNELS_MATMUL_UNIT_H
#define GRETA_OPS_GPU_KERNELS_MATMUL_UNIT_H

#include "ops/gpu/kernels/decode.h"
#include "ops/gpu/tiling.h"

#define ROWS MATMUL_ROWS
#define TOKENS_MOST MATMUL_TOKENS

/* What a lane takes of one row for one unit; a type uses what it needs of it. */
struct unit {
    words4 bytes[3];
    words2 scales;
    uint32_t d; /* f16 */
};

/* Units of a chunk that a lane has. */
INLINE uint32_t job_of(uint32_t dtype)
{
    switch (dtype) {
    case DTYPE_Q6_K_X8:
        return 1;
    case DTYPE_Q4_K:
    case DTYPE_Q5_K:
        return 2;
    default:
        return 4;
    }
}

INLINE uint32_t unit_weights(uint32_t dtype)
{
    switch (dtype) {
    case DTYPE_Q6_K_X8:
        return 64;
    case DTYPE_Q4_K:
    case DTYPE_Q5_K:
        return 32;
    case DTYPE_Q8_0_X8:
        return 16;
    case DTYPE_F32:
        return 4;
    default:
        return 8;
    }
}

/* Bytes of WARP units, and of the part of a row before a lane's first unit. */
INLINE uint32_t warp_bytes(uint32_t dtype)
{
    switch (dtype) {
    case DTYPE_Q6_K_X8:
        return 1680;
    case DTYPE_Q4_K:
        return 4 * 144;
    case DTYPE_Q5_K:
        return 4 * 176;
    case DTYPE_Q8_0_X8:
        return 2 * 272;
    default:
        return WARP * 16;
    }
}

INLINE uint32_t lane_bytes(uint32_t dtype)
{
    uint32_t lane = lane_index();
    switch (dtype) {
    case DTYPE_Q6_K_X8:
        return 0;
    case DTYPE_Q4_K:
        return lane / 8 * 144;
    case DTYPE_Q5_K:
        return lane / 8 * 176;
    case DTYPE_Q8_0_X8:
        return lane / 16 * 272;
    default:
        return lane * 16;
    }
}

INLINE words4 load_words4(const SHARED uint8_t *at)
{
    return *(const SHARED words4 *)at;
}

/* at: the row's bytes, moved by lane_bytes and whole warps' units. */
INLINE void load_unit(uint32_t dtype, const SHARED uint8_t *at, struct unit *unit)
{
    uint32_t lane = lane_index();
    if (dtype == DTYPE_Q4_K) {
        unit->bytes[0] = load_words4(at);
        unit->bytes[1] = load_words4(at + 16 + 16 * (lane % 8));
    } else if (dtype == DTYPE_Q5_K) {
        unit->bytes[0] = load_words4(at);
        unit->bytes[1] = load_words4(at + 48 + 16 * (lane % 8));
        unit->bytes[2] = load_words4(at + 16 + 16 * (lane % 2));
    } else if (dtype == DTYPE_Q6_K_X8) {
        /* Eight blocks side by side: 1024 bytes of nibbles, 512 of upper bits, 128 of scales, 16 of
         * d. Four lanes for each block, sixteen columns of a half for each lane. */
        uint32_t block = lane / 4, half = lane % 4 / 2, side = lane % 2;
        unit->bytes[0] = load_words4(at + 128 * block + 64 * half + 16 * side);
        unit->bytes[1] = load_words4(at + 128 * block + 64 * half + 32 + 16 * side);
        unit->bytes[2] = load_words4(at + 1024 + 64 * block + 32 * half + 16 * side);
        unit->scales = *(const SHARED words2 *)(at + 1536 + 16 * block + 8 * half);
        unit->d = *(const SHARED uint16_t *)(at + 1664 + 2 * block);
    } else if (dtype == DTYPE_Q8_0_X8) {
        /* 256 quants, then eight scales. */
        unit->bytes[0] = load_words4(at + 16 * (lane % 16));
        unit->d = *(const SHARED uint16_t *)(at + 256 + 2 * (lane % 16 / 2));
    } else {
        unit->bytes[0] = load_words4(at);
    }
}

/* ---- Units times activations ---------------------------------------------------------------- */

/* Packed rows of the tokens, at multiples of 16 bytes. One that is not there is read as the last.
 */
struct inputs {
    const GLOBAL uint8_t *acts;
    uint32_t tokens;               /* of the kernel, known to the compiler */
    uint32_t stride, last;         /* between rows, in 16 bytes; the last token that is there */
    uint32_t offsets[TOKENS_MOST]; /* of each, in 16 bytes */
    uint32_t k;
};

/* Where a token's row is. Kernels of floats keep each row's offset in a register. Those of quants
 * have none left for eight offsets, nor for four, and compute them again for each unit (not_known);
 * with up to two tokens they keep what they can of the stride. */
INLINE const GLOBAL uint8_t *find_row(uint32_t dtype, const struct inputs *inputs, uint32_t t)
{
    bool floats = dtype == DTYPE_BF16 || dtype == DTYPE_F16 || dtype == DTYPE_F32;
    uint32_t last = not_known(inputs->last), token = t < last ? t : last;
    uint32_t stride = inputs->tokens > 2 ? not_known(inputs->stride) : inputs->stride;
    uint32_t place = floats ? inputs->offsets[t] : token * stride;
    return inputs->acts + (uint64_t)place * 16;
}

/* What one unit is multiplied with, of one token: quants or floats, and scales of blocks of 32. */
struct acts {
    words4 words[4];
    floats4 scales;
};

/* at: weight that the units of the whole warp begin with. A lane that has none reads the first: a
 * load under a condition would take more registers. */
INLINE void load_acts(uint32_t dtype, const struct inputs *inputs, uint32_t t, uint32_t at,
                      struct acts *acts)
{
    const GLOBAL uint8_t *row = find_row(dtype, inputs, t), *scales = row + inputs->k;
    uint32_t lane = lane_index();
    if (at + lane * unit_weights(dtype) >= inputs->k)
        at = lane = 0;
    if (dtype == DTYPE_Q4_K || dtype == DTYPE_Q5_K) {
        at += 256 * (lane / 8) + 64 * (lane % 8 / 2);
        acts->words[0] = *(const GLOBAL words4 *)(row + at + 16 * (lane % 2));
        acts->words[1] = *(const GLOBAL words4 *)(row + at + 32 + 16 * (lane % 2));
        acts->scales = *(const GLOBAL floats4 *)(scales + at / 32 * 8); /* with their sums */
    } else if (dtype == DTYPE_Q6_K_X8) {
        at += 128 * (lane / 2);
        UNROLL
        for (uint32_t g = 0; g < 4; g++) {
            acts->words[g] = *(const GLOBAL words4 *)(row + at + 32 * g + 16 * (lane % 2));
            acts->scales[g] = *(const GLOBAL float *)(scales + (at / 32 + g) * 8);
        }
    } else if (dtype == DTYPE_Q8_0_X8) {
        at += 16 * lane;
        acts->words[0] = *(const GLOBAL words4 *)(row + at);
        acts->scales[0] = *(const GLOBAL float *)(scales + at / 32 * 8);
    } else if (dtype == DTYPE_F32) {
        acts->words[0] = *(const GLOBAL words4 *)(row + 4 * (at + 4 * lane));
    } else {
        acts->words[0] = *(const GLOBAL words4 *)(row + 4 * (at + 8 * lane));
        acts->words[1] = *(const GLOBAL words4 *)(row + 4 * (at + 8 * lane) + 16);
    }
}

/* Scales and mins of groups 2 p and 2 p + 1 of a K block, in the bytes of two words. Neighbouring
 * lanes have different p: masks instead of a choice keep them together. */
INLINE void unpack_scales(words4 head, uint32_t p, uint32_t *scales, uint32_t *mins)
{
    uint32_t first_half = p < 2 ? 0xFFFFFFFFu : 0;
    uint32_t whole = first_half & 0x3F3Fu, low = ~first_half & 0x0F0Fu, top = ~first_half & 0x3030u;
    uint32_t shift = 16 * (p & 1);
    uint32_t a = head[1] >> shift, b = head[2] >> shift, c = head[3] >> shift;
    *scales = (a & whole) | (c & low) | (a >> 2 & top);
    *mins = (b & whole) | (c >> 4 & low) | (b >> 2 & top);
}

/* Q4_K and Q5_K: 16 weights each of two neighbouring groups. */
INLINE float dot_k(const struct unit *unit, bool fifth, const struct acts *acts)
{
    uint32_t s = lane_index() % 8, p = s / 2, half = s % 2;
    uint32_t scales, mins;
    int32_t dot_low = 0, dot_high = 0;
    unpack_scales(unit->bytes[0], p, &scales, &mins);
    UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t low = unit->bytes[1][i] & 0x0F0F0F0Fu;
        uint32_t high = unit->bytes[1][i] >> 4 & 0x0F0F0F0Fu;
        if (fifth) {
            low |= (unit->bytes[2][i] >> (2 * p) & 0x01010101u) << 4;
            high |= (unit->bytes[2][i] >> (2 * p + 1) & 0x01010101u) << 4;
        }
        dot_low = dot4(low, acts->words[0][i], dot_low);
        dot_high = dot4(high, acts->words[1][i], dot_high);
    }
    uint32_t head = unit->bytes[0][0];
    float d = f16_value((uint16_t)head), dmin = f16_value((uint16_t)(head >> 16));
    float min = dmin * (float)(int32_t)(mins >> (8 * half) & 255u);
    float scaled = acts->scales[0] * (float)((int32_t)(scales & 255u) * dot_low);
    scaled = __builtin_fmaf(acts->scales[2], (float)((int32_t)(scales >> 8) * dot_high), scaled);
    return __builtin_fmaf(d, scaled, -min * (half ? acts->scales[3] : acts->scales[1]));
}

/* Q6_K: 16 weights each of four groups of 32. */
INLINE float dot_q6_k(const struct unit *unit, const struct acts *acts)
{
    uint32_t side = lane_index() % 2;
    float sum = 0;
    UNROLL
    for (uint32_t g = 0; g < 4; g++) {
        int32_t scale = (int8_t)(unit->scales[g / 2] >> (8 * (2 * (g % 2) + side)));
        int32_t dot = 0;
        UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            uint32_t low = unit->bytes[g % 2][i] >> (4 * (g / 2)) & 0x0F0F0F0Fu;
            uint32_t top = unit->bytes[2][i];
            top = (g == 0 ? top << 4 : g == 1 ? top << 2 : g == 2 ? top : top >> 2) & 0x30303030u;
            /* minus 32 in each byte */
            dot = dot4(((low | top) + 0x60606060u) ^ 0x80808080u, acts->words[g][i], dot);
        }
        sum = __builtin_fmaf(acts->scales[g], (float)(scale * dot), sum);
    }
    return f16_value((uint16_t)unit->d) * sum;
}

/* Q8_0: 16 weights of a block of 32. */
INLINE float dot_q8_0(const struct unit *unit, const struct acts *acts)
{
    int32_t dot = 0;
    UNROLL
    for (uint32_t i = 0; i < 4; i++)
        dot = dot4(unit->bytes[0][i], acts->words[0][i], dot);
    return f16_value((uint16_t)unit->d) * acts->scales[0] * (float)dot;
}

/* F16 and BF16: eight weights. */
INLINE float dot_halves(const struct unit *unit, bool is_f16, const struct acts *acts)
{
    float sum = 0;
    UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t word = unit->bytes[0][i];
        float low = is_f16 ? f16_value((uint16_t)word) : float_of(word << 16);
        float high = is_f16 ? f16_value((uint16_t)(word >> 16)) : float_of(word & 0xFFFF0000u);
        sum = __builtin_fmaf(low, float_of(acts->words[i / 2][2 * (i % 2)]), sum);
        sum = __builtin_fmaf(high, float_of(acts->words[i / 2][2 * (i % 2) + 1]), sum);
    }
    return sum;
}

INLINE float dot_f32(const struct unit *unit, const struct acts *acts)
{
    float sum = 0;
    UNROLL
    for (uint32_t i = 0; i < 4; i++)
        sum = __builtin_fmaf(float_of(unit->bytes[0][i]), float_of(acts->words[0][i]), sum);
    return sum;
}

INLINE float dot_unit(uint32_t dtype, const struct unit *unit, const struct acts *acts)
{
    if (dtype == DTYPE_Q4_K || dtype == DTYPE_Q5_K)
        return dot_k(unit, dtype == DTYPE_Q5_K, acts);
    if (dtype == DTYPE_Q6_K_X8)
        return dot_q6_k(unit, acts);
    if (dtype == DTYPE_Q8_0_X8)
        return dot_q8_0(unit, acts);
    return dtype == DTYPE_F32 ? dot_f32(unit, acts) : dot_halves(unit, dtype == DTYPE_F16, acts);
}

#endif
