/* encode_simple.c - plain element types, the blocks of 32 values with linear quants, and MXFP4.
 *
 * Rounding is that of the usual quantizers, so that files are equal byte for byte: quants are
 * computed with the f32 scale, before it is rounded to f16. Two cases differ: a scale too large for
 * f16 becomes the largest f16, and quants then saturate; and if the inverse of a scale overflows it
 * counts as 0, because such a scale is 0 in f16. */
#include "tensor/quant_impl.h"

#include "base/status.h"

#include <math.h>

#define HALF_BLOCK (SMALL_BLOCK / 2)

/* From here on f16_from_f32 gives infinity. */
#define F16_OVERFLOW 65520.0f

void quant_encode_f32(const float *values, size_t block_count, uint8_t *blocks)
{
    for (size_t i = 0; i < block_count; i++)
        store_u32(blocks + 4 * i, f32_bits(values[i]));
}

static float cut_to_f16(float value)
{
    if (fabsf(value) < F16_OVERFLOW)
        return value;
    return copysignf(F16_LIMIT, value);
}

void quant_encode_f16(const float *values, size_t block_count, uint8_t *blocks)
{
    for (size_t i = 0; i < block_count; i++)
        store_f16(blocks + 2 * i, cut_to_f16(values[i]));
}

void quant_encode_bf16(const float *values, size_t block_count, uint8_t *blocks)
{
    for (size_t i = 0; i < block_count; i++) {
        uint16_t bits = bf16_from_f32(values[i]);
        /* The last values below 2^128 would round up to infinity. */
        if ((bits & 0x7FFFu) == 0x7F80u)
            bits--;
        store_u16(blocks + 2 * i, bits);
    }
}

static float inverse_or_zero(float scale)
{
    float inverse = scale == 0 ? 0 : 1 / scale;
    return isfinite(inverse) ? inverse : 0;
}

static float clamp(float value, float low, float high)
{
    value = value < low ? low : value;
    return value > high ? high : value;
}

/* roundf, half away from zero, for |value| < 2^31; unlike roundf it becomes vector code. */
static int round_half_away(float value)
{
    int whole = (int)value;
    float rest = value - (float)whole;
    return whole + (rest >= 0.5f) - (rest <= -0.5f);
}

void quant_encode_q8_0(const float *values, size_t block_count, uint8_t *blocks)
{
    for (size_t b = 0; b < block_count; b++, blocks += 34, values += SMALL_BLOCK) {
        float largest = 0;
        for (size_t i = 0; i < SMALL_BLOCK; i++) {
            float magnitude = fabsf(values[i]);
            largest = magnitude > largest ? magnitude : largest;
        }
        float d = cut_to_f16(largest / 127);
        float inverse = inverse_or_zero(d);
        store_f16(blocks, d);
        for (size_t i = 0; i < SMALL_BLOCK; i++) {
            int quant = round_half_away(clamp(values[i] * inverse, -127, 127));
            blocks[2 + i] = (uint8_t)quant;
        }
    }
}

/* The value of largest magnitude with its sign; the first one if several are as large. */
static float find_peak(const float *values)
{
    float peak = 0;
    for (size_t i = 0; i < SMALL_BLOCK; i++) {
        if (fabsf(values[i]) > fabsf(peak))
            peak = values[i];
    }
    return peak;
}

/* quants[i] = nearest whole number to (values[i] - start) * inverse + middle, in 0..limit.
 * Finite for all finite input: inverse is at most F32 maximum and |start| at most F16_LIMIT. */
static void find_quants(const float *values, float start, float inverse, float middle, float limit,
                        uint8_t *quants)
{
    for (size_t i = 0; i < SMALL_BLOCK; i++) {
        float quant = (values[i] - start) * inverse + (middle + 0.5f);
        quants[i] = (uint8_t)(int)clamp(quant, 0, limit);
    }
}

static void pack_nibbles(const uint8_t *quants, uint8_t *bytes)
{
    for (size_t k = 0; k < HALF_BLOCK; k++)
        bytes[k] = (uint8_t)((quants[k] & 15) | (quants[k + HALF_BLOCK] & 15) << 4);
}

static uint32_t fifth_bits(const uint8_t *quants)
{
    uint32_t bits = 0;
    for (size_t i = 0; i < SMALL_BLOCK; i++)
        bits |= (uint32_t)(quants[i] >> 4) << i;
    return bits;
}

/* Quants around zero: the peak becomes the lowest quant, which has no positive counterpart, so that
 * all quants are used. middle is 8 or 16. Writes d and returns the quants. */
static void encode_symmetric(const float *values, float middle, uint8_t *d_bytes, uint8_t *quants)
{
    float d = cut_to_f16(find_peak(values) / -middle);
    store_f16(d_bytes, d);
    find_quants(values, 0, inverse_or_zero(d), middle, 2 * middle - 1, quants);
}

/* Quants from the smallest value up. limit is 15 or 31. Writes d and m and returns the quants. */
static void encode_from_min(const float *values, float limit, uint8_t *d_bytes, uint8_t *quants)
{
    float min = values[0];
    float max = values[0];
    for (size_t i = 1; i < SMALL_BLOCK; i++) {
        min = values[i] < min ? values[i] : min;
        max = values[i] > max ? values[i] : max;
    }
    float d = cut_to_f16((max - min) / limit);
    float start = cut_to_f16(min);
    store_f16(d_bytes, d);
    store_f16(d_bytes + 2, start);
    find_quants(values, start, inverse_or_zero(d), 0, limit, quants);
}

void quant_encode_q4_0(const float *values, size_t block_count, uint8_t *blocks)
{
    for (size_t b = 0; b < block_count; b++, blocks += 18, values += SMALL_BLOCK) {
        uint8_t quants[SMALL_BLOCK];
        encode_symmetric(values, 8, blocks, quants);
        pack_nibbles(quants, blocks + 2);
    }
}

void quant_encode_q4_1(const float *values, size_t block_count, uint8_t *blocks)
{
    for (size_t b = 0; b < block_count; b++, blocks += 20, values += SMALL_BLOCK) {
        uint8_t quants[SMALL_BLOCK];
        encode_from_min(values, 15, blocks, quants);
        pack_nibbles(quants, blocks + 4);
    }
}

void quant_encode_q5_0(const float *values, size_t block_count, uint8_t *blocks)
{
    for (size_t b = 0; b < block_count; b++, blocks += 22, values += SMALL_BLOCK) {
        uint8_t quants[SMALL_BLOCK];
        encode_symmetric(values, 16, blocks, quants);
        store_u32(blocks + 2, fifth_bits(quants));
        pack_nibbles(quants, blocks + 6);
    }
}

void quant_encode_q5_1(const float *values, size_t block_count, uint8_t *blocks)
{
    for (size_t b = 0; b < block_count; b++, blocks += 24, values += SMALL_BLOCK) {
        uint8_t quants[SMALL_BLOCK];
        encode_from_min(values, 31, blocks, quants);
        store_u32(blocks + 4, fifth_bits(quants));
        pack_nibbles(quants, blocks + 8);
    }
}

/* The exponent for which the largest magnitude is at most twice the largest code, 4 of 0.5 to 6:
 * what does not fit saturates. */
static uint8_t e8m0_for(float largest)
{
    int exponent = 0;
    if (largest == 0)
        return 0;
    frexpf(largest, &exponent); /* largest is below 2^exponent, and not below half of that */
    int e = exponent - 1 - 2 + 127;
    return (uint8_t)(e < 0 ? 0 : e);
}

/* The nearest of 0, 0.5, 1, 1.5, 2, 3, 4, 6; the smaller of two that are as near. */
static uint8_t e2m1_code(float value)
{
    static const float bounds[] = { 0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f };
    uint8_t code = 0;
    for (size_t i = 0; i < COUNT_OF(bounds); i++)
        code = (uint8_t)(code + (fabsf(value) > bounds[i]));
    return code && value < 0 ? code | 8 : code;
}

void quant_encode_mxfp4(const float *values, size_t block_count, uint8_t *blocks)
{
    for (size_t b = 0; b < block_count; b++, blocks += 17, values += SMALL_BLOCK) {
        uint8_t codes[SMALL_BLOCK];
        blocks[0] = e8m0_for(fabsf(find_peak(values)));
        float inverse = ldexpf(1, 127 - (int)blocks[0]); /* exact: products are, too */
        for (size_t i = 0; i < SMALL_BLOCK; i++)
            codes[i] = e2m1_code(values[i] * inverse);
        pack_nibbles(codes, blocks + 1);
    }
}
