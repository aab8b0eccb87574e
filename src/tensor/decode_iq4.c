/* decode_iq4.c - 4-bit codes that index a table of values: IQ4_NL, IQ4_XS and MXFP4. */
#include "tensor/quant_impl.h"

#define HALF_BLOCK (SMALL_BLOCK / 2)

/* Values of IQ4_NL and IQ4_XS: denser near zero, where most weights are. */
static const int8_t iq4_quants[16] = {
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113,
};

/* Twice the E2M1 values, so that they are integers. The scale is halved in turn, which keeps it
 * finite for every exponent byte. Code 8 would be -0 and is +0 here. */
static const int8_t e2m1_doubled[16] = {
    0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12,
};

/* codes: 16 bytes; byte k has the codes of elements k (low) and k + 16 (high). */
static void decode_codes(const uint8_t *codes, const int8_t *quants, float scale, float *values)
{
    for (size_t k = 0; k < HALF_BLOCK; k++) {
        values[k] = scale * (float)quants[codes[k] & 15];
        values[k + HALF_BLOCK] = scale * (float)quants[codes[k] >> 4];
    }
}

/* d f16, 16 code bytes */
void quant_decode_iq4_nl(const uint8_t *blocks, size_t block_count, float *values)
{
    for (size_t b = 0; b < block_count; b++, blocks += 18, values += SMALL_BLOCK)
        decode_codes(blocks + 2, iq4_quants, load_f16(blocks), values);
}

/* d f16, upper 2 bits of 8 scales u16, lower 4 bits of 8 scales in 4 bytes, 128 code bytes */
void quant_decode_iq4_xs(const uint8_t *blocks, size_t block_count, float *values)
{
    for (size_t b = 0; b < block_count; b++, blocks += 136, values += K_BLOCK) {
        float d = load_f16(blocks);
        uint32_t scales_high = load_u16(blocks + 2);
        for (size_t g = 0; g < K_BLOCK / SMALL_BLOCK; g++) {
            uint32_t low = blocks[4 + g / 2] >> (4 * (g % 2)) & 15u;
            uint32_t high = scales_high >> (2 * g) & 3u;
            int scale = (int)(low | high << 4) - 32;
            decode_codes(blocks + 8 + HALF_BLOCK * g, iq4_quants, d * (float)scale,
                         values + SMALL_BLOCK * g);
        }
    }
}

/* 2^(e - 128), half of what the E8M0 byte e says. The two smallest are f32 subnormals. */
static float e8m0_halved(uint8_t e)
{
    return f32_from_bits(e < 2 ? 0x00200000u << e : (uint32_t)(e - 1) << 23);
}

/* e E8M0, 16 code bytes */
void quant_decode_mxfp4(const uint8_t *blocks, size_t block_count, float *values)
{
    for (size_t b = 0; b < block_count; b++, blocks += 17, values += SMALL_BLOCK)
        decode_codes(blocks + 1, e2m1_doubled, e8m0_halved(blocks[0]), values);
}
