/* decode.h - one value of a row of any weight type, exact as tensor/quant.h gives it. Blocks have
 * no alignment but that of a half, and MXFP4's not even that. */
#ifndef GRETA_OPS_GPU_KERNELS_DECODE_H
#define GRETA_OPS_GPU_KERNELS_DECODE_H

#include "ops/gpu/kernels/portable.h"
#include "tensor/dtype.h"

typedef const GLOBAL uint8_t *block_pointer;

INLINE uint32_t load_half_bits(block_pointer at)
{
    return *(const GLOBAL uint16_t *)at;
}
INLINE float load_f16(block_pointer at)
{
    return f16_value(*(const GLOBAL uint16_t *)at);
}

/* Element k of 16 nibble bytes: the low nibbles come first. */
INLINE uint32_t nibble_of(block_pointer nibbles, uint32_t k)
{
    return nibbles[k % 16] >> (k / 16 * 4) & 15u;
}

/* Quants of IQ4_NL and IQ4_XS, eight to a word, from code 0 on. */
INLINE float iq4_quant(uint32_t code)
{
    uint64_t quants = code < 8 ? UINT64_C(0xF6EADDCFBFAD9881) : UINT64_C(0x7159453526190D01);
    return (float)(int8_t)(quants >> (8 * (code % 8)));
}

/* Twice the E2M1 values. */
INLINE float e2m1_doubled(uint32_t code)
{
    float magnitude = (float)(UINT64_C(0x0C08060403020100) >> (8 * (code % 8)) & 255u);
    return code < 8 ? magnitude : 0.0f - magnitude;
}

INLINE void scale_min(block_pointer scales, uint32_t j, float *scale, float *min)
{
    if (j < 4) {
        *scale = (float)(scales[j] & 63);
        *min = (float)(scales[j + 4] & 63);
    } else {
        *scale = (float)((scales[j + 4] & 15) | (scales[j - 4] >> 6) << 4);
        *min = (float)((scales[j + 4] >> 4) | (scales[j] >> 6) << 4);
    }
}

INLINE float value_q2_k(block_pointer b, uint32_t i)
{
    uint32_t s = i / 16, k = i % 16;
    uint32_t quant = b[16 + 32 * (s / 8) + 16 * (s % 2) + k] >> (2 * (s % 8 / 2)) & 3u;
    float scale = load_f16(b + 80) * (float)(b[s] & 15);
    float min = load_f16(b + 82) * (float)(b[s] >> 4);
    return scale * (float)quant - min;
}

INLINE float value_q3_k(block_pointer b, uint32_t i)
{
    uint32_t s = i / 16, k = i % 16;
    block_pointer scales = b + 96;
    uint32_t low = s < 8 ? scales[s] & 15u : (uint32_t)scales[s - 8] >> 4;
    uint32_t high = scales[8 + s % 4] >> (2 * (s / 4)) & 3u;
    float scale = load_f16(b + 108) * (float)((int)(low | high << 4) - 32);
    uint32_t quant = b[32 + 32 * (s / 8) + 16 * (s % 2) + k] >> (2 * (s % 8 / 2)) & 3u;
    quant |= (b[16 * (s % 2) + k] >> (s / 2) & 1u) << 2;
    return scale * (float)((int)quant - 4);
}

INLINE float value_q4_k(block_pointer b, uint32_t i)
{
    uint32_t j = i / 32, k = i % 32;
    float scale, min;
    scale_min(b + 4, j, &scale, &min);
    uint32_t quant = b[16 + 32 * (j / 2) + k] >> (4 * (j % 2)) & 15u;
    return scale * load_f16(b) * (float)quant - min * load_f16(b + 2);
}

INLINE float value_q5_k(block_pointer b, uint32_t i)
{
    uint32_t j = i / 32, k = i % 32;
    float scale, min;
    scale_min(b + 4, j, &scale, &min);
    uint32_t quant = b[48 + 32 * (j / 2) + k] >> (4 * (j % 2)) & 15u;
    quant |= (b[16 + k] >> j & 1u) << 4;
    return scale * load_f16(b) * (float)quant - min * load_f16(b + 2);
}

INLINE float value_q6_k(block_pointer b, uint32_t i)
{
    uint32_t s = i / 16, half = s / 8, group = s % 8 / 2, k = 16 * (s % 2) + i % 16;
    uint32_t quant = b[64 * half + 32 * (group % 2) + k] >> (4 * (group / 2)) & 15u;
    quant |= (b[128 + 32 * half + k] >> (2 * group) & 3u) << 4;
    return load_f16(b + 208) * (float)(int8_t)b[192 + s] * (float)((int)quant - 32);
}

INLINE float value_iq4_xs(block_pointer b, uint32_t i)
{
    uint32_t g = i / 32;
    uint32_t low = b[4 + g / 2] >> (4 * (g % 2)) & 15u;
    uint32_t high = load_half_bits(b + 2) >> (2 * g) & 3u;
    float scale = load_f16(b) * (float)((int)(low | high << 4) - 32);
    return scale * iq4_quant(nibble_of(b + 8 + 16 * g, i % 32));
}

INLINE float value_mxfp4(block_pointer b, uint32_t i)
{
    uint32_t e = b[0];
    float scale = float_of(e < 2 ? 0x00200000u << e : (e - 1) << 23);
    return scale * e2m1_doubled(nibble_of(b + 1, i));
}

INLINE float value_q5_0(block_pointer b, uint32_t i)
{
    uint32_t high = load_half_bits(b + 2) | load_half_bits(b + 4) << 16;
    return load_f16(b) * (float)((int)(nibble_of(b + 6, i) | (high >> i & 1u) << 4) - 16);
}

INLINE float value_q5_1(block_pointer b, uint32_t i)
{
    uint32_t high = load_half_bits(b + 4) | load_half_bits(b + 6) << 16;
    return load_f16(b) * (float)(nibble_of(b + 8, i) | (high >> i & 1u) << 4) + load_f16(b + 2);
}

/* Eight Q8_0 blocks: their quants, then their scales. */
INLINE float value_q8_0_x8(block_pointer b, uint32_t i)
{
    return load_f16(b + 256 + 2 * (i / 32)) * (float)(int8_t)b[i];
}

/* Eight Q6_K blocks: their nibbles, upper bits, scales, d. */
INLINE float value_q6_k_x8(block_pointer b, uint32_t i)
{
    uint32_t block = i / 256, s = i % 256 / 16;
    uint32_t half = s / 8, group = s % 8 / 2, k = 16 * (s % 2) + i % 16;
    uint32_t quant = b[128 * block + 64 * half + 32 * (group % 2) + k] >> (4 * (group / 2)) & 15u;
    quant |= (b[1024 + 64 * block + 32 * half + k] >> (2 * group) & 3u) << 4;
    float scale = load_f16(b + 1664 + 2 * block) * (float)(int8_t)b[1536 + 16 * block + s];
    return scale * (float)((int)quant - 32);
}

/* Value i of a row. */
INLINE float decode_value(uint32_t dtype, block_pointer row, uint64_t i)
{
    uint32_t in32 = (uint32_t)(i % 32), in256 = (uint32_t)(i % 256);
    uint64_t block32 = i / 32, block256 = i / 256;
    switch (dtype) {
    case DTYPE_F32:
        return ((const GLOBAL float *)row)[i];
    case DTYPE_F16:
        return load_f16(row + 2 * i);
    case DTYPE_BF16:
        return float_of(load_half_bits(row + 2 * i) << 16);
    case DTYPE_Q8_0:
        return load_f16(row + 34 * block32) * (float)(int8_t)row[34 * block32 + 2 + in32];
    case DTYPE_Q4_0:
        return load_f16(row + 18 * block32) *
               (float)((int)nibble_of(row + 18 * block32 + 2, in32) - 8);
    case DTYPE_Q4_1:
        return load_f16(row + 20 * block32) * (float)nibble_of(row + 20 * block32 + 4, in32) +
               load_f16(row + 20 * block32 + 2);
    case DTYPE_Q5_0:
        return value_q5_0(row + 22 * block32, in32);
    case DTYPE_Q5_1:
        return value_q5_1(row + 24 * block32, in32);
    case DTYPE_Q2_K:
        return value_q2_k(row + 84 * block256, in256);
    case DTYPE_Q3_K:
        return value_q3_k(row + 110 * block256, in256);
    case DTYPE_Q4_K:
        return value_q4_k(row + 144 * block256, in256);
    case DTYPE_Q5_K:
        return value_q5_k(row + 176 * block256, in256);
    case DTYPE_Q6_K:
        return value_q6_k(row + 210 * block256, in256);
    case DTYPE_IQ4_NL:
        return load_f16(row + 18 * block32) * iq4_quant(nibble_of(row + 18 * block32 + 2, in32));
    case DTYPE_IQ4_XS:
        return value_iq4_xs(row + 136 * block256, in256);
    case DTYPE_Q8_0_X8:
        return value_q8_0_x8(row + 272 * block256, in256);
    case DTYPE_Q6_K_X8:
        return value_q6_k_x8(row + 1680 * (i / 2048), (uint32_t)(i % 2048));
    case DTYPE_MXFP4:
        return value_mxfp4(row + 17 * block32, in32);
    }
    return 0.0f;
}

/* A whole number below 2^23, without the slow conversion. */
INLINE float small_float(uint32_t quant)
{
    return float_of(quant | 0x4B000000u) - 8388608.0f;
}

/* 2^23 and a byte of a word. */
INLINE float byte_float(uint32_t word, uint32_t index)
{
    return float_of(pick_bytes(word, 0x4B000000u, byte_selector(index, 4, 5, 7)));
}

#endif
