/* decode_k.c - the K formats: blocks of 256 values. Groups of 16 or 32 values have small integer
 * scales under one f16 scale for the block.
 *
 * The product of d and a scale is exact in f32 (11 bits times at most 8), so that each term is
 * rounded once, and the difference of two terms once more. A fused multiply-add would skip the
 * first rounding and give other bits: this module is compiled with -ffp-contract=off. */
#include "tensor/quant_impl.h"

/* 16 bytes of scale (low nibble) and min (high nibble) of 16 values each, 64 bytes of 2-bit quants,
 * d f16, dmin f16. Quant byte k of a half block has elements k, k + 32, k + 64 and k + 96. */
void quant_decode_q2_k(const uint8_t *blocks, size_t block_count, float *values)
{
    for (size_t b = 0; b < block_count; b++, blocks += 84, values += K_BLOCK) {
        float d = load_f16(blocks + 80);
        float dmin = load_f16(blocks + 82);
        for (size_t s = 0; s < 16; s++) {
            const uint8_t *quants = blocks + 16 + 32 * (s / 8) + 16 * (s % 2);
            unsigned shift = 2 * (s % 8 / 2);
            float scale = d * (float)(blocks[s] & 15);
            float min = dmin * (float)(blocks[s] >> 4);
            for (size_t k = 0; k < 16; k++)
                values[16 * s + k] = scale * (float)(quants[k] >> shift & 3) - min;
        }
    }
}

/* 16 scales of 6 bits: 8 bytes with the low nibbles of s and s + 8, 4 bytes with the upper bits of
 * s, s + 4, s + 8 and s + 12. The result is -32..31. */
static int q3_k_scale(const uint8_t *scales, size_t s)
{
    uint32_t low = s < 8 ? scales[s] & 15u : (uint32_t)scales[s - 8] >> 4;
    uint32_t high = scales[8 + s % 4] >> (2 * (s / 4)) & 3u;
    return (int)(low | high << 4) - 32;
}

/* 32 bytes of third bits (bit g of byte k: element 32 g + k), 64 bytes of 2-bit quants as in Q2_K,
 * 12 bytes of scales of 16 values each, d f16. A third bit that is not set means minus 4. */
void quant_decode_q3_k(const uint8_t *blocks, size_t block_count, float *values)
{
    for (size_t b = 0; b < block_count; b++, blocks += 110, values += K_BLOCK) {
        float d = load_f16(blocks + 108);
        for (size_t s = 0; s < 16; s++) {
            const uint8_t *high = blocks + 16 * (s % 2);
            const uint8_t *quants = blocks + 32 + 32 * (s / 8) + 16 * (s % 2);
            unsigned shift = 2 * (s % 8 / 2);
            float scale = d * (float)q3_k_scale(blocks + 96, s);
            for (size_t k = 0; k < 16; k++) {
                int quant = (quants[k] >> shift & 3) | (high[k] >> (s / 2) & 1) << 2;
                values[16 * s + k] = scale * (float)(quant - 4);
            }
        }
    }
}

/* Scale and min, 0..63 each, of group j of 8: the first four have a byte each, whose upper two bits
 * belong to the last four. */
static void unpack_scale_min(const uint8_t *scales, size_t j, float *ret_scale, float *ret_min)
{
    if (j < 4) {
        *ret_scale = (float)(scales[j] & 63);
        *ret_min = (float)(scales[j + 4] & 63);
    } else {
        *ret_scale = (float)((scales[j + 4] & 15) | (scales[j - 4] >> 6) << 4);
        *ret_min = (float)((scales[j + 4] >> 4) | (scales[j] >> 6) << 4);
    }
}

/* d f16, dmin f16, 12 bytes of scales and mins of 32 values each, 128 nibble bytes. Each 32 of
 * those hold one group in their low nibbles and the next in their high ones. */
void quant_decode_q4_k(const uint8_t *blocks, size_t block_count, float *values)
{
    for (size_t b = 0; b < block_count; b++, blocks += 144, values += K_BLOCK) {
        float d = load_f16(blocks);
        float dmin = load_f16(blocks + 2);
        for (size_t j = 0; j < 8; j++) {
            const uint8_t *nibbles = blocks + 16 + 32 * (j / 2);
            unsigned shift = 4 * (j % 2);
            float scale, min;
            unpack_scale_min(blocks + 4, j, &scale, &min);
            scale *= d;
            min *= dmin;
            for (size_t k = 0; k < 32; k++)
                values[32 * j + k] = scale * (float)(nibbles[k] >> shift & 15) - min;
        }
    }
}

/* As Q4_K, with 32 bytes of fifth bits before the nibbles: bit j of byte k: element 32 j + k. */
void quant_decode_q5_k(const uint8_t *blocks, size_t block_count, float *values)
{
    for (size_t b = 0; b < block_count; b++, blocks += 176, values += K_BLOCK) {
        float d = load_f16(blocks);
        float dmin = load_f16(blocks + 2);
        const uint8_t *high = blocks + 16;
        for (size_t j = 0; j < 8; j++) {
            const uint8_t *nibbles = blocks + 48 + 32 * (j / 2);
            unsigned shift = 4 * (j % 2);
            float scale, min;
            unpack_scale_min(blocks + 4, j, &scale, &min);
            scale *= d;
            min *= dmin;
            for (size_t k = 0; k < 32; k++) {
                int quant = (nibbles[k] >> shift & 15) | (high[k] >> j & 1) << 4;
                values[32 * j + k] = scale * (float)quant - min;
            }
        }
    }
}

/* 128 nibble bytes, 64 bytes of upper 2 bits, 16 scales i8 of 16 values each, d f16. In a half
 * block of 4 groups of 32, nibble byte k has groups 0 (low) and 2 (high), byte k + 32 groups 1 and
 * 3; the byte of upper bits has group g at bit 2 g. */
void quant_decode_q6_k(const uint8_t *blocks, size_t block_count, float *values)
{
    for (size_t b = 0; b < block_count; b++, blocks += 210, values += K_BLOCK) {
        float d = load_f16(blocks + 208);
        for (size_t s = 0; s < 16; s++) {
            size_t half = s / 8;
            size_t group = s % 8 / 2;
            size_t start = 16 * (s % 2);
            const uint8_t *nibbles = blocks + 64 * half + 32 * (group % 2) + start;
            const uint8_t *high = blocks + 128 + 32 * half + start;
            float scale = d * (float)(int8_t)blocks[192 + s];
            for (size_t k = 0; k < 16; k++) {
                int quant = (nibbles[k] >> (4 * (group / 2)) & 15) | (high[k] >> (2 * group) & 3)
                                                                         << 4;
                values[16 * s + k] = scale * (float)(quant - 32);
            }
        }
    }
}
