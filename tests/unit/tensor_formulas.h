/* tensor_formulas.h - the block formats a second time: the value of one element of a block,
 * straight from the definition of its format, in code that shares nothing with the decoders. */
#ifndef GRETA_TESTS_TENSOR_FORMULAS_H
#define GRETA_TESTS_TENSOR_FORMULAS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline float f16_at(const uint8_t *bytes)
{
    unsigned bits = bytes[0] | (unsigned)bytes[1] << 8;
    int exponent = (int)(bits >> 10 & 31);
    float mantissa = (float)(bits & 1023);
    float magnitude = exponent == 0 ? ldexpf(mantissa, -24)
                                    : ldexpf(1024 + mantissa, exponent - 25);
    return bits & 0x8000 ? -magnitude : magnitude;
}

static inline uint32_t u32_at(const uint8_t *bytes)
{
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

/* The formulas: value of element i of the block b. Sums and differences are separate statements, so
 * that no compiler fuses them with the product before. */
static inline float formula_f32(const uint8_t *b, int i)
{
    (void)i;
    uint32_t bits = u32_at(b);
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline float formula_f16(const uint8_t *b, int i)
{
    (void)i;
    return f16_at(b);
}

static inline float formula_bf16(const uint8_t *b, int i)
{
    (void)i;
    uint8_t wide[4] = { 0, 0, b[0], b[1] };
    return formula_f32(wide, 0);
}

static inline float formula_q8_0(const uint8_t *b, int i)
{
    int q = b[2 + i];
    return f16_at(b) * (float)(q >= 128 ? q - 256 : q);
}

static inline float formula_q4_0(const uint8_t *b, int i)
{
    int q = b[2 + i % 16] >> (4 * (i / 16)) & 15;
    return f16_at(b) * (float)(q - 8);
}

static inline float formula_q4_1(const uint8_t *b, int i)
{
    int q = b[4 + i % 16] >> (4 * (i / 16)) & 15;
    float product = f16_at(b) * (float)q;
    return product + f16_at(b + 2);
}

static inline float formula_q5_0(const uint8_t *b, int i)
{
    int q = (b[6 + i % 16] >> (4 * (i / 16)) & 15) | (int)(u32_at(b + 2) >> i & 1) << 4;
    return f16_at(b) * (float)(q - 16);
}

static inline float formula_q5_1(const uint8_t *b, int i)
{
    int q = (b[8 + i % 16] >> (4 * (i / 16)) & 15) | (int)(u32_at(b + 4) >> i & 1) << 4;
    float product = f16_at(b) * (float)q;
    return product + f16_at(b + 2);
}

static inline float formula_q2_k(const uint8_t *b, int i)
{
    int sc = b[i / 16];
    int q = b[16 + 32 * (i / 128) + i % 32] >> (2 * (i % 128 / 32)) & 3;
    float scaled = f16_at(b + 80) * (float)(sc & 15) * (float)q;
    float min = f16_at(b + 82) * (float)(sc >> 4);
    return scaled - min;
}

static inline float formula_q3_k(const uint8_t *b, int i)
{
    int s = i / 16;
    int sc = (s < 8 ? b[96 + s] & 15 : b[96 + s - 8] >> 4) | (b[104 + s % 4] >> (2 * (s / 4)) & 3)
                                                                 << 4;
    int q = (b[32 + 32 * (i / 128) + i % 32] >> (2 * (i % 128 / 32)) & 3) -
            (b[i % 32] >> (i / 32) & 1 ? 0 : 4);
    return f16_at(b + 108) * (float)(sc - 32) * (float)q;
}

static inline int k_scale(const uint8_t *s, int j)
{
    return j < 4 ? s[j] & 63 : (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
}

static inline int k_min(const uint8_t *s, int j)
{
    return j < 4 ? s[j + 4] & 63 : (s[j + 4] >> 4) | (s[j] >> 6) << 4;
}

static inline float k_value(const uint8_t *b, int i, int q)
{
    float scaled = f16_at(b) * (float)k_scale(b + 4, i / 32) * (float)q;
    float min = f16_at(b + 2) * (float)k_min(b + 4, i / 32);
    return scaled - min;
}

static inline float formula_q4_k(const uint8_t *b, int i)
{
    return k_value(b, i, b[16 + 32 * (i / 64) + i % 32] >> (4 * (i / 32 % 2)) & 15);
}

static inline float formula_q5_k(const uint8_t *b, int i)
{
    int q = (b[48 + 32 * (i / 64) + i % 32] >> (4 * (i / 32 % 2)) & 15) |
            (b[16 + i % 32] >> (i / 32) & 1) << 4;
    return k_value(b, i, q);
}

static inline float formula_q6_k(const uint8_t *b, int i)
{
    int n = i / 128, l = i % 32, g = i % 128 / 32;
    int q = (b[64 * n + l + 32 * (g % 2)] >> (4 * (g / 2)) & 15) |
            (b[128 + 32 * n + l] >> (2 * g) & 3) << 4;
    int sc = b[192 + i / 16];
    return f16_at(b + 208) * (float)(sc >= 128 ? sc - 256 : sc) * (float)(q - 32);
}

static const float iq4_quants[16] = { -127, -104, -83, -65, -49, -35, -22, -10,
                                      1,    13,   25,  38,  53,  69,  89,  113 };

static inline float formula_iq4_nl(const uint8_t *b, int i)
{
    return f16_at(b) * iq4_quants[b[2 + i % 16] >> (4 * (i / 16)) & 15];
}

static inline float formula_iq4_xs(const uint8_t *b, int i)
{
    int g = i / 32;
    int high = b[2] | b[3] << 8;
    int sc = (b[4 + g / 2] >> (4 * (g % 2)) & 15) | (high >> (2 * g) & 3) << 4;
    float quant = iq4_quants[b[8 + 16 * g + i % 16] >> (4 * (i % 32 / 16)) & 15];
    return f16_at(b) * (float)(sc - 32) * quant;
}

static inline float formula_mxfp4(const uint8_t *b, int i)
{
    static const double e2m1[16] = {
        0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6
    };
    return (float)ldexp(e2m1[b[1 + i % 16] >> (4 * (i / 16)) & 15], b[0] - 127);
}

#endif
