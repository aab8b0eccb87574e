/* tensor_encode_edge_test.c - the encoders on data where scales vanish or overflow, and the exact
 * rounding of the simple formats. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/status.h"
#include "tensor/quant.h"
#include "tensor_random.h"
#include "tensor_round_trip.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* A multiple of every block size. */
#define BLOCK_ELEMENTS 256

struct encoder_row {
    enum dtype dtype;
    /* Upper bound of the relative error of a block of one repeated value: the rounding of f16
     * scales, and of integer scales where there are any. */
    double constant;
};

static const struct encoder_row encoder_rows[] = {
    { DTYPE_F32, 0 },       { DTYPE_F16, 0.0005 },  { DTYPE_BF16, 0.004 },  { DTYPE_Q4_0, 0.0005 },
    { DTYPE_Q4_1, 0.0005 }, { DTYPE_Q5_0, 0.0005 }, { DTYPE_Q5_1, 0.0005 }, { DTYPE_Q8_0, 0.0005 },
    { DTYPE_Q4_K, 0.002 },  { DTYPE_Q5_K, 0.002 },  { DTYPE_Q6_K, 0.001 },  { DTYPE_MXFP4, 0.25 },
};

static void fill(float *values, float value)
{
    for (size_t i = 0; i < BLOCK_ELEMENTS; i++)
        values[i] = value;
}

static void test_zeros(void **state)
{
    (void)state;
    static const float zeros[] = { 0.0f, -0.0f };
    for (size_t r = 0; r < COUNT_OF(encoder_rows); r++) {
        for (size_t z = 0; z < COUNT_OF(zeros); z++) {
            float values[BLOCK_ELEMENTS], decoded[BLOCK_ELEMENTS];
            fill(values, zeros[z]);
            assert_true(round_trip(encoder_rows[r].dtype, values, BLOCK_ELEMENTS, decoded));
            for (size_t i = 0; i < BLOCK_ELEMENTS; i++)
                assert_true(decoded[i] == 0);
        }
    }
}

static void test_constants(void **state)
{
    (void)state;
    static const float constants[] = { 1, -1, 0.3f, -0.3f, 17.77f, -1234.5f, 30000, -30000 };
    for (size_t r = 0; r < COUNT_OF(encoder_rows); r++) {
        for (size_t c = 0; c < COUNT_OF(constants); c++) {
            float values[BLOCK_ELEMENTS], decoded[BLOCK_ELEMENTS];
            fill(values, constants[c]);
            assert_true(round_trip(encoder_rows[r].dtype, values, BLOCK_ELEMENTS, decoded));
            for (size_t i = 0; i < BLOCK_ELEMENTS; i++) {
                double error = fabs((double)decoded[i] / (double)constants[c] - 1);
                if (!(error <= encoder_rows[r].constant))
                    fail_msg("%s of %g: %g", dtype_name(encoder_rows[r].dtype),
                             (double)constants[c], (double)decoded[i]);
            }
        }
    }
}

/* What is too small for a scale becomes 0 or nearly so; it never grows or becomes NaN. */
static void test_tiny(void **state)
{
    (void)state;
    static const float sizes[] = { 1e-5f, 1e-6f, 1e-7f, 1e-8f, 1e-12f, 1e-20f, 1e-38f, 1e-45f };
    const double f16_step = 0x1p-24;
    for (size_t r = 0; r < COUNT_OF(encoder_rows); r++) {
        for (size_t s = 0; s < COUNT_OF(sizes); s++) {
            float values[BLOCK_ELEMENTS], decoded[BLOCK_ELEMENTS];
            for (size_t i = 0; i < BLOCK_ELEMENTS; i++)
                values[i] = sizes[s] * (i % 3 == 0 ? -1.0f : 1.0f) * (float)(1 + i % 7) / 7;
            assert_true(round_trip(encoder_rows[r].dtype, values, BLOCK_ELEMENTS, decoded));
            for (size_t i = 0; i < BLOCK_ELEMENTS; i++) {
                /* An f16 scale is off by half a step at most, a quant by as much times 127. */
                double allowed = (double)sizes[s] / 8 + 64 * f16_step;
                if (!(fabs((double)decoded[i] - (double)values[i]) <= allowed))
                    fail_msg("%s of %g: %g", dtype_name(encoder_rows[r].dtype), (double)values[i],
                             (double)decoded[i]);
            }
        }
    }
}

/* Q4_K, Q5_K and Q6_K choose integer scales for the f16 scale they got, so that values far below
 * the smallest normal f16 survive. */
static void test_tiny_k(void **state)
{
    (void)state;
    static const enum dtype dtypes[] = { DTYPE_Q4_K, DTYPE_Q5_K, DTYPE_Q6_K };
    struct random_state random = { 77 };
    for (size_t t = 0; t < COUNT_OF(dtypes); t++) {
        float values[BLOCK_ELEMENTS], decoded[BLOCK_ELEMENTS];
        for (size_t i = 0; i < BLOCK_ELEMENTS; i++)
            values[i] = 2e-6f * random_gaussian(&random);
        assert_true(round_trip(dtypes[t], values, BLOCK_ELEMENTS, decoded));
        assert_true(relative_rms_error(values, decoded, BLOCK_ELEMENTS) < 0.15);
    }
}

/* Scales that f16 cannot hold: values saturate, keep their sign and stay finite. */
static void test_huge(void **state)
{
    (void)state;
    static const float sizes[] = { 7e4f, 1e6f, 1e7f, 1e9f, 1e30f, FLT_MAX };
    for (size_t r = 0; r < COUNT_OF(encoder_rows); r++) {
        for (size_t s = 0; s < COUNT_OF(sizes); s++) {
            for (int pattern = 0; pattern < 4; pattern++) {
                float values[BLOCK_ELEMENTS], decoded[BLOCK_ELEMENTS];
                for (size_t i = 0; i < BLOCK_ELEMENTS; i++) {
                    float sign = pattern == 0 ? 1.0f : pattern == 1 ? -1.0f : i % 2 ? 1.0f : -1.0f;
                    values[i] = sign * sizes[s] / (pattern == 3 ? (float)(1 + i % 16) : 1.0f);
                }
                if (!round_trip(encoder_rows[r].dtype, values, BLOCK_ELEMENTS, decoded))
                    fail_msg("%s of %g: not finite", dtype_name(encoder_rows[r].dtype),
                             (double)sizes[s]);
                for (size_t i = 0; pattern < 3 && i < BLOCK_ELEMENTS; i++) {
                    if (!(decoded[i] * values[i] > 0 || isinf(decoded[i] * values[i])) ||
                        fabsf(decoded[i]) < 60000)
                        fail_msg("%s of %g: %g", dtype_name(encoder_rows[r].dtype),
                                 (double)values[i], (double)decoded[i]);
                }
            }
        }
    }
}

/* Blocks of arbitrary finite bit patterns: no encoder may overflow on the way, whatever it is
 * given. The undefined behaviour sanitizer sees conversions that do not fit. */
static void test_any_finite(void **state)
{
    (void)state;
    struct random_state random = { 99 };
    for (size_t b = 0; b < 2000; b++) {
        float values[BLOCK_ELEMENTS], decoded[BLOCK_ELEMENTS];
        /* Exponents from a window of random width, so that blocks of similar values come up too. */
        unsigned start = (unsigned)(random_u64(&random) % 255);
        unsigned width = 1 + (unsigned)(random_u64(&random) % (255 - start));
        for (size_t i = 0; i < BLOCK_ELEMENTS; i++) {
            uint64_t entropy = random_u64(&random);
            uint32_t exponent = start + (uint32_t)(entropy >> 32) % width;
            uint32_t bits = ((uint32_t)entropy & 0x807FFFFFu) | exponent << 23;
            memcpy(&values[i], &bits, sizeof(bits));
        }
        assert_int_equal(quant_first_bad(values, BLOCK_ELEMENTS), BLOCK_ELEMENTS);
        for (size_t r = 0; r < COUNT_OF(encoder_rows); r++) {
            if (!round_trip(encoder_rows[r].dtype, values, BLOCK_ELEMENTS, decoded))
                fail_msg("%s: block %zu is not finite", dtype_name(encoder_rows[r].dtype), b);
        }
    }
}

/* One large value among small ones, at each place of a block. */
static void test_single_outlier(void **state)
{
    (void)state;
    static const float outliers[] = { 100, -100, 50000, -50000 };
    for (size_t r = 0; r < COUNT_OF(encoder_rows); r++) {
        for (size_t place = 0; place < BLOCK_ELEMENTS; place++) {
            for (size_t o = 0; o < COUNT_OF(outliers); o++) {
                struct random_state random = { place };
                float values[BLOCK_ELEMENTS], decoded[BLOCK_ELEMENTS];
                for (size_t i = 0; i < BLOCK_ELEMENTS; i++)
                    values[i] = 0.01f * random_gaussian(&random);
                values[place] = outliers[o];
                assert_true(round_trip(encoder_rows[r].dtype, values, BLOCK_ELEMENTS, decoded));
                double error = fabs((double)decoded[place] / (double)outliers[o] - 1);
                /* Codes of one value each are as far apart as one value repeated shows. */
                if (error > fmax(0.005, encoder_rows[r].constant))
                    fail_msg("%s: %g at %zu became %g", dtype_name(encoder_rows[r].dtype),
                             (double)outliers[o], place, (double)decoded[place]);
            }
        }
    }
}

/* The rounding of the simple formats, written a second time with the functions of the library. */
static void expect_simple(enum dtype dtype, const float *x, float *expected)
{
    float peak = 0, min = x[0], max = x[0];
    for (size_t i = 0; i < 32; i++) {
        peak = fabsf(x[i]) > fabsf(peak) ? x[i] : peak;
        min = fminf(min, x[i]);
        max = fmaxf(max, x[i]);
    }
    float d = dtype == DTYPE_Q8_0   ? fabsf(peak) / 127
              : dtype == DTYPE_Q4_0 ? peak / -8
              : dtype == DTYPE_Q5_0 ? peak / -16
              : dtype == DTYPE_Q4_1 ? (max - min) / 15
                                    : (max - min) / 31;
    float inverse = d != 0 ? 1 / d : 0;
    float d_stored = f16_to_f32(f16_from_f32(d));
    float m_stored = f16_to_f32(f16_from_f32(min));
    for (size_t i = 0; i < 32; i++) {
        float scaled = x[i] * inverse;
        float raised = (x[i] - min) * inverse;
        if (dtype == DTYPE_Q8_0)
            expected[i] = d_stored * roundf(scaled);
        else if (dtype == DTYPE_Q4_0)
            expected[i] = d_stored * (fminf(15, truncf(scaled + 8.5f)) - 8);
        else if (dtype == DTYPE_Q5_0)
            expected[i] = d_stored * (fminf(31, truncf(scaled + 16.5f)) - 16);
        else
            expected[i] = d_stored * fminf(dtype == DTYPE_Q4_1 ? 15 : 31, truncf(raised + 0.5f)) +
                          m_stored;
    }
}

static void test_simple_rounding(void **state)
{
    (void)state;
    static const enum dtype dtypes[] = { DTYPE_Q8_0, DTYPE_Q4_0, DTYPE_Q4_1, DTYPE_Q5_0,
                                         DTYPE_Q5_1 };
    struct random_state random = { 8 };
    for (size_t t = 0; t < COUNT_OF(dtypes); t++) {
        for (size_t b = 0; b < 5000; b++) {
            float values[32], decoded[32], expected[32];
            /* Every second block has whole numbers, which make ties and equal peaks. */
            for (size_t i = 0; i < 32; i++)
                values[i] = b % 2 ? random_gaussian(&random)
                                  : 0.5f * (float)((int)(random_u64(&random) % 129) - 64);
            assert_true(round_trip(dtypes[t], values, 32, decoded));
            expect_simple(dtypes[t], values, expected);
            for (size_t i = 0; i < 32; i++) {
                if (decoded[i] != expected[i])
                    fail_msg("%s: %a became %a, expected %a", dtype_name(dtypes[t]),
                             (double)values[i], (double)decoded[i], (double)expected[i]);
            }
        }
    }
}

/* The nearest code, the first of two that are as near, under the exponent that the largest value
 * has less two. */
static void test_mxfp4_rounding(void **state)
{
    (void)state;
    static const float codes[] = {
        0, 0.5f, 1, 1.5f, 2, 3, 4, 6, 0, -0.5f, -1, -1.5f, -2, -3, -4, -6
    };
    struct random_state random = { 8 };
    for (size_t b = 0; b < 20000; b++) {
        float values[32], decoded[32], largest = 0, size = ldexpf(1, (int)(b % 250) - 125);
        /* Every second block has quarters, which make ties. */
        for (size_t i = 0; i < 32; i++) {
            values[i] = b % 2 ? random_gaussian(&random)
                              : 0.25f * (float)((int)(random_u64(&random) % 65) - 32);
            values[i] *= size;
            largest = fmaxf(largest, fabsf(values[i]));
        }
        assert_true(round_trip(DTYPE_MXFP4, values, 32, decoded));
        int power = largest > 0 ? (int)floor(log2((double)largest)) - 2 : -127;
        double scale = ldexp(1, power < -127 ? -127 : power);
        for (size_t i = 0; i < 32; i++) {
            size_t best = 0;
            for (size_t c = 1; c < COUNT_OF(codes); c++)
                if (fabs((double)values[i] - scale * (double)codes[c]) <
                    fabs((double)values[i] - scale * (double)codes[best]))
                    best = c;
            if ((double)decoded[i] != scale * (double)codes[best])
                fail_msg("%a under %a became %a", (double)values[i], scale, (double)decoded[i]);
        }
    }
}

static void test_q8_0_ties(void **state)
{
    (void)state;
    static const struct {
        float value;
        float decoded;
    } rows[] = {
        { 127, 127 }, { -127, -127 },     { 2.5f, 3 },         { -2.5f, -3 },
        { 3.5f, 4 },  { 0.49999997f, 0 }, { 0.5f, 1 },         { -0.5f, -1 },
        { 1.49f, 1 }, { -126.5f, -127 },  { -0.49999997f, 0 },
    };
    float values[32] = { 0 };
    float decoded[32];
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        values[i] = rows[i].value;
    assert_true(round_trip(DTYPE_Q8_0, values, 32, decoded));
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_true(decoded[i] == rows[i].decoded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zeros),          cmocka_unit_test(test_constants),
        cmocka_unit_test(test_tiny),           cmocka_unit_test(test_tiny_k),
        cmocka_unit_test(test_huge),           cmocka_unit_test(test_any_finite),
        cmocka_unit_test(test_single_outlier), cmocka_unit_test(test_simple_rounding),
        cmocka_unit_test(test_mxfp4_rounding), cmocka_unit_test(test_q8_0_ties),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
