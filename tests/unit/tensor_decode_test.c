/* tensor_decode_test.c - every decoder against fixed vectors, and bit for bit against the formulas
 * of the formats, written a second time: one element at a time, straight from their definition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/status.h"
#include "tensor/quant.h"
#include "tensor_formulas.h"
#include "tensor_random.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_ELEMENTS_LIMIT 256
#define BLOCK_BYTES_LIMIT 256
#define RANDOM_BLOCKS 500
#define NO_FIELD (-1)

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
