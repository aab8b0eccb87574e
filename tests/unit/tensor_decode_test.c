/* tensor_decode_test.c - every decoder against fixed vectors, and bit for bit against the formulas
 * of the formats, written a second time: one element at a time, straight from their definition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/status.h"
#include "tensor/quant.h"
#include "tensor_random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_ELEMENTS_LIMIT 256
#define BLOCK_BYTES_LIMIT 256
#define RANDOM_BLOCKS 500
#define NO_FIELD (-1)

static float f16_at(const uint8_t *bytes)
{
    unsigned bits = bytes[0] | (unsigned)bytes[1] << 8;
    int exponent = (int)(bits >> 10 & 31);
    float mantissa = (float)(bits & 1023);
    float magnitude = exponent == 0 ? ldexpf(mantissa, -24)
                                    : ldexpf(1024 + mantissa, exponent - 25);
    return bits & 0x8000 ? -magnitude : magnitude;
}

static uint32_t u32_at(const uint8_t *bytes)
{
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

/* The formulas: value of element i of the block b. Sums and differences are separate statements, so
 * that no compiler fuses them with the product before. */
static float formula_f32(const uint8_t *b, int i)
{
    (void)i;
    uint32_t bits = u32_at(b);
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static float formula_f16(const uint8_t *b, int i)
{
    (void)i;
    return f16_at(b);
}

static float formula_bf16(const uint8_t *b, int i)
{
    (void)i;
    uint8_t wide[4] = { 0, 0, b[0], b[1] };
    return formula_f32(wide, 0);
}

static float formula_q8_0(const uint8_t *b, int i)
{
    int q = b[2 + i];
    return f16_at(b) * (float)(q >= 128 ? q - 256 : q);
}

static float formula_q4_0(const uint8_t *b, int i)
{
    int q = b[2 + i % 16] >> (4 * (i / 16)) & 15;
    return f16_at(b) * (float)(q - 8);
}

static float formula_q4_1(const uint8_t *b, int i)
{
    int q = b[4 + i % 16] >> (4 * (i / 16)) & 15;
    float product = f16_at(b) * (float)q;
    return product + f16_at(b + 2);
}

static float formula_q5_0(const uint8_t *b, int i)
{
    int q = (b[6 + i % 16] >> (4 * (i / 16)) & 15) | (int)(u32_at(b + 2) >> i & 1) << 4;
    return f16_at(b) * (float)(q - 16);
}

static float formula_q5_1(const uint8_t *b, int i)
{
    int q = (b[8 + i % 16] >> (4 * (i / 16)) & 15) | (int)(u32_at(b + 4) >> i & 1) << 4;
    float product = f16_at(b) * (float)q;
    return product + f16_at(b + 2);
}

static float formula_q2_k(const uint8_t *b, int i)
{
    int sc = b[i / 16];
    int q = b[16 + 32 * (i / 128) + i % 32] >> (2 * (i % 128 / 32)) & 3;
    float scaled = f16_at(b + 80) * (float)(sc & 15) * (float)q;
    float min = f16_at(b + 82) * (float)(sc >> 4);
    return scaled - min;
}

static float formula_q3_k(const uint8_t *b, int i)
{
    int s = i / 16;
    int sc = (s < 8 ? b[96 + s] & 15 : b[96 + s - 8] >> 4) | (b[104 + s % 4] >> (2 * (s / 4)) & 3)
                                                                 << 4;
    int q = (b[32 + 32 * (i / 128) + i % 32] >> (2 * (i % 128 / 32)) & 3) -
            (b[i % 32] >> (i / 32) & 1 ? 0 : 4);
    return f16_at(b + 108) * (float)(sc - 32) * (float)q;
}

static int k_scale(const uint8_t *s, int j)
{
    return j < 4 ? s[j] & 63 : (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
}

static int k_min(const uint8_t *s, int j)
{
    return j < 4 ? s[j + 4] & 63 : (s[j + 4] >> 4) | (s[j] >> 6) << 4;
}

static float k_value(const uint8_t *b, int i, int q)
{
    float scaled = f16_at(b) * (float)k_scale(b + 4, i / 32) * (float)q;
    float min = f16_at(b + 2) * (float)k_min(b + 4, i / 32);
    return scaled - min;
}

static float formula_q4_k(const uint8_t *b, int i)
{
    return k_value(b, i, b[16 + 32 * (i / 64) + i % 32] >> (4 * (i / 32 % 2)) & 15);
}

static float formula_q5_k(const uint8_t *b, int i)
{
    int q = (b[48 + 32 * (i / 64) + i % 32] >> (4 * (i / 32 % 2)) & 15) |
            (b[16 + i % 32] >> (i / 32) & 1) << 4;
    return k_value(b, i, q);
}

static float formula_q6_k(const uint8_t *b, int i)
{
    int n = i / 128, l = i % 32, g = i % 128 / 32;
    int q = (b[64 * n + l + 32 * (g % 2)] >> (4 * (g / 2)) & 15) |
            (b[128 + 32 * n + l] >> (2 * g) & 3) << 4;
    int sc = b[192 + i / 16];
    return f16_at(b + 208) * (float)(sc >= 128 ? sc - 256 : sc) * (float)(q - 32);
}

static const float iq4_levels[16] = { -127, -104, -83, -65, -49, -35, -22, -10,
                                      1,    13,   25,  38,  53,  69,  89,  113 };

static float formula_iq4_nl(const uint8_t *b, int i)
{
    return f16_at(b) * iq4_levels[b[2 + i % 16] >> (4 * (i / 16)) & 15];
}

static float formula_iq4_xs(const uint8_t *b, int i)
{
    int g = i / 32;
    int high = b[2] | b[3] << 8;
    int sc = (b[4 + g / 2] >> (4 * (g % 2)) & 15) | (high >> (2 * g) & 3) << 4;
    float level = iq4_levels[b[8 + 16 * g + i % 16] >> (4 * (i % 32 / 16)) & 15];
    return f16_at(b) * (float)(sc - 32) * level;
}

static float formula_mxfp4(const uint8_t *b, int i)
{
    static const double e2m1[16] = {
        0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6
    };
    return (float)ldexp(e2m1[b[1 + i % 16] >> (4 * (i / 16)) & 15], b[0] - 127);
}

struct decoder_row {
    enum dtype dtype;
    float (*formula)(const uint8_t *block, int i);
    int f16_fields[2]; /* offsets of d and of m or dmin; NO_FIELD if there is none */
    /* Values of the block b[k] = (37 k + 11) mod 256 with d = 1 and m or dmin = 0.5; MXFP4: b[0] =
     * 128. Nothing is given for types with one element per block. */
    double first[4];
    double last[2];
    double sum;
    double weighted_sum; /* of (i + 1) * value i */
};

static const struct decoder_row decoder_rows[] = {
    { DTYPE_F32, formula_f32, { NO_FIELD, NO_FIELD }, { 0 }, { 0 }, 0, 0 },
    { DTYPE_F16, formula_f16, { 0, NO_FIELD }, { 0 }, { 0 }, 0, 0 },
    { DTYPE_BF16, formula_bf16, { NO_FIELD, NO_FIELD }, { 0 }, { 0 }, 0, 0 },
    { DTYPE_Q4_0, formula_q4_0, { 0, NO_FIELD }, { -3, 2, 7, -4 }, { -3, 0 }, -21, -518 },
    { DTYPE_Q4_1, formula_q4_1, { 0, 2 }, { 15.5, 4.5, 9.5, 14.5 }, { 10.5, 12.5 }, 261, 4247 },
    { DTYPE_Q5_0, formula_q5_0, { 0, NO_FIELD }, { 9, -2, 3, -8 }, { 14, 1 }, 15, 112 },
    { DTYPE_Q5_1, formula_q5_1, { 0, 2 }, { 19.5, 24.5, 29.5, 18.5 }, { 3.5, 5.5 }, 521, 8165 },
    { DTYPE_Q8_0, formula_q8_0, { 0, NO_FIELD }, { 85, 122, -97, -60 }, { -85, -48 }, -176, -8080 },
    { DTYPE_MXFP4, formula_mxfp4, { NO_FIELD, NO_FIELD }, { 0, 6, -2, -12 }, { 3, 6 }, 25, 638 },
    { DTYPE_Q2_K, formula_q2_k, { 80, 82 }, { 33, 0, 11, 22 }, { 4.5, 4.5 }, 2059, 243130 },
    { DTYPE_Q3_K,
      formula_q3_k,
      { 108, NO_FIELD },
      { 81, -108, 27, -54 },
      { -28, 42 },
      958,
      177145 },
    { DTYPE_Q4_K,
      formula_q4_k,
      { 0, 2 },
      { 315.5, -25.5, 129.5, 284.5 },
      { 36.5, 48.5 },
      54440,
      7572840 },
    { DTYPE_Q5_K,
      formula_q5_k,
      { 0, 2 },
      { 811.5, -25.5, 625.5, 284.5 },
      { 96.5, 108.5 },
      116216,
      16027448 },
    { DTYPE_Q6_K,
      formula_q6_k,
      { 208, NO_FIELD },
      { -1431, 1696, 583, -530 },
      { -40, -60 },
      4612,
      784420 },
    { DTYPE_IQ4_NL,
      formula_iq4_nl,
      { 0, NO_FIELD },
      { -35, 25, 113, -49 },
      { -35, 1 },
      -257,
      -6919 },
    { DTYPE_IQ4_XS,
      formula_iq4_xs,
      { 0, NO_FIELD },
      { 65, -1, -69, 83 },
      { 352, -16 },
      -11005,
      -2091134 },
};

static void set_field(uint8_t *block, int offset, unsigned bits)
{
    if (offset == NO_FIELD)
        return;
    block[offset] = (uint8_t)bits;
    block[offset + 1] = (uint8_t)(bits >> 8);
}

static void test_vectors(void **state)
{
    (void)state;
    for (size_t r = 0; r < COUNT_OF(decoder_rows); r++) {
        const struct decoder_row *row = &decoder_rows[r];
        const struct dtype_info *info = dtype_info(row->dtype);
        size_t count = info->block_elements;
        uint8_t block[BLOCK_BYTES_LIMIT];
        float values[BLOCK_ELEMENTS_LIMIT];
        double sum = 0;
        double weighted_sum = 0;
        if (count == 1)
            continue;
        for (size_t k = 0; k < info->block_bytes; k++)
            block[k] = (uint8_t)(37 * k + 11);
        set_field(block, row->f16_fields[0], 0x3C00);
        set_field(block, row->f16_fields[1], 0x3800);
        if (row->dtype == DTYPE_MXFP4)
            block[0] = 128;
        quant_decode_row(row->dtype, block, count, values);
        for (size_t i = 0; i < count; i++) {
            sum += (double)values[i];
            weighted_sum += (double)(i + 1) * (double)values[i];
        }
        for (size_t i = 0; i < 4; i++) {
            if ((double)values[i] != row->first[i])
                fail_msg("%s: value %zu is %g", info->name, i, (double)values[i]);
        }
        for (size_t i = 0; i < 2; i++) {
            if ((double)values[count - 2 + i] != row->last[i])
                fail_msg("%s: value %zu is %g", info->name, count - 2 + i,
                         (double)values[count - 2 + i]);
        }
        if (sum != row->sum || weighted_sum != row->weighted_sum)
            fail_msg("%s: sum %g, weighted sum %g", info->name, sum, weighted_sum);
    }
}

/* Scales that are NaN or infinite become finite: what they give is not defined. */
static void make_finite(const struct decoder_row *row, uint8_t *block)
{
    for (size_t f = 0; f < 2; f++) {
        int high = row->f16_fields[f] + 1;
        if (row->f16_fields[f] != NO_FIELD && (block[high] & 0x7C) == 0x7C)
            block[high] ^= 0x40;
    }
    if (row->dtype == DTYPE_F32)
        block[3] &= 0xBF;
    if (row->dtype == DTYPE_BF16)
        block[1] &= 0xBF;
}

/* A row of blocks at an odd address, in a heap block that ends where the row does, so that the
 * address sanitizer sees every byte too many; the guard after the values is for other builds. */
static void test_formulas(void **state)
{
    (void)state;
    struct random_state random = { 5 };
    for (size_t r = 0; r < COUNT_OF(decoder_rows); r++) {
        const struct decoder_row *row = &decoder_rows[r];
        const struct dtype_info *info = dtype_info(row->dtype);
        size_t count = info->block_elements;
        size_t bytes = 1 + (size_t)RANDOM_BLOCKS * info->block_bytes;
        uint8_t *storage = malloc(bytes);
        float *values = malloc((RANDOM_BLOCKS * count + 1) * sizeof(*values));
        const float guard = 12345.0f;
        assert_non_null(storage);
        assert_non_null(values);
        values[RANDOM_BLOCKS * count] = guard;
        for (size_t k = 0; k < bytes; k++)
            storage[k] = (uint8_t)random_u64(&random);
        for (size_t b = 0; b < RANDOM_BLOCKS; b++)
            make_finite(row, storage + 1 + b * info->block_bytes);
        quant_decode_row(row->dtype, storage + 1, RANDOM_BLOCKS * count, values);
        for (size_t i = 0; i < RANDOM_BLOCKS * count; i++) {
            const uint8_t *block = storage + 1 + i / count * info->block_bytes;
            float expected = row->formula(block, (int)(i % count));
            if (memcmp(&values[i], &expected, sizeof(expected)) != 0)
                fail_msg("%s: element %zu of block %zu is %a, the formula says %a", info->name,
                         i % count, i / count, (double)values[i], (double)expected);
        }
        assert_true(values[RANDOM_BLOCKS * count] == guard);
        free(values);
        free(storage);
    }
}

/* All 256 exponent bytes: the ends are a subnormal and, with small codes, still finite. */
static void test_mxfp4_exponents(void **state)
{
    (void)state;
    for (unsigned e = 0; e < 256; e++) {
        uint8_t block[17] = { (uint8_t)e, 0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE };
        float values[32];
        quant_decode_row(DTYPE_MXFP4, block, 32, values);
        for (int i = 0; i < 32; i++) {
            float expected = formula_mxfp4(block, i);
            assert_memory_equal(&values[i], &expected, sizeof(expected));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_formulas),
        cmocka_unit_test(test_mxfp4_exponents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
