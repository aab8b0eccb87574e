/* tensor_encode_test.c - how much each encoder loses on data like weights, with upper bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/status.h"
#include "tensor/quant.h"
#include "tensor_random.h"
#include "tensor_round_trip.h"

#include <math.h>
#include <stdlib.h>

/* A multiple of every block size; large enough for errors to repeat to three digits. */
#define SAMPLE_COUNT ((size_t)256 * 512)

struct encoder_row {
    enum dtype dtype;
    /* Upper bounds of the root mean square error, relative to that of the data. */
    double gaussian;
    double outliers; /* 1 in 100 values ten times as large */
    double shifted;  /* mean 4, variance 1: nearly all positive */
    double uneven;   /* runs of 16 values of magnitudes 1 to 1/1000; error relative to each run */
};

/* The bounds are 2 to 4 percent above what was measured when they were set. */
static const struct encoder_row encoder_rows[] = {
    { DTYPE_F32, 0, 0, 0, 0 },
    { DTYPE_F16, 0.000214, 0.000214, 0.000220, 0.00021 },
    { DTYPE_BF16, 0.00171, 0.00172, 0.00177, 0.00168 },
    { DTYPE_Q4_0, 0.0880, 0.152, 0.0540, 0.341 },
    { DTYPE_Q4_1, 0.0800, 0.104, 0.0195, 1.40 },
    { DTYPE_Q5_0, 0.0437, 0.0773, 0.0270, 0.253 },
    { DTYPE_Q5_1, 0.0388, 0.0500, 0.00945, 0.690 },
    { DTYPE_Q8_0, 0.0055, 0.0099, 0.0034, 0.0830 },
    { DTYPE_Q4_K, 0.0710, 0.0940, 0.0260, 0.550 },
    { DTYPE_Q5_K, 0.0352, 0.0465, 0.0128, 0.348 },
    { DTYPE_Q6_K, 0.0169, 0.0275, 0.0109, 0.0297 },
    { DTYPE_MXFP4, 0.118, 0.161, 0.114, 0.330 },
};

#define RUN_LENGTH 16

/* The mean over runs of the error of each relative to its own size. An error over all values would
 * not see runs of small values that are lost entirely. */
static double mean_run_error(const float *values, const float *decoded, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i += RUN_LENGTH)
        sum += relative_rms_error(values + i, decoded + i, RUN_LENGTH);
    return sum / (double)(count / RUN_LENGTH);
}

enum sample { SAMPLE_GAUSSIAN, SAMPLE_OUTLIERS, SAMPLE_SHIFTED, SAMPLE_UNEVEN };

/* Destroy with free. SAMPLE_COUNT values. */
static float *sample_create(enum sample sample)
{
    struct random_state random = { 2024 };
    float *values = malloc(SAMPLE_COUNT * sizeof(*values));
    double magnitude = 1;
    assert_non_null(values);
    for (size_t i = 0; i < SAMPLE_COUNT; i++) {
        values[i] = random_gaussian(&random);
        if (sample == SAMPLE_UNEVEN && i % RUN_LENGTH == 0)
            magnitude = pow(10, -3 * random_unit(&random));
        values[i] *= (float)magnitude;
        if (sample == SAMPLE_OUTLIERS && random_unit(&random) < 0.01)
            values[i] *= 10;
        if (sample == SAMPLE_SHIFTED)
            values[i] += 4;
    }
    return values;
}

static double sample_limit(const struct encoder_row *row, enum sample sample)
{
    switch (sample) {
    case SAMPLE_GAUSSIAN:
        return row->gaussian;
    case SAMPLE_OUTLIERS:
        return row->outliers;
    case SAMPLE_SHIFTED:
        return row->shifted;
    case SAMPLE_UNEVEN:
        return row->uneven;
    }
    return 0;
}

static void check_sample(enum sample sample, const char *name)
{
    float *values = sample_create(sample);
    float *decoded = malloc(SAMPLE_COUNT * sizeof(*decoded));
    size_t exceeded = 0;
    assert_non_null(decoded);
    for (size_t r = 0; r < COUNT_OF(encoder_rows); r++) {
        const struct encoder_row *row = &encoder_rows[r];
        double limit = sample_limit(row, sample);
        assert_true(round_trip(row->dtype, values, SAMPLE_COUNT, decoded));
        double error = sample == SAMPLE_UNEVEN ? mean_run_error(values, decoded, SAMPLE_COUNT)
                                               : relative_rms_error(values, decoded, SAMPLE_COUNT);
        print_message("%-10s %-5s error %.6f, limit %.6f\n", name, dtype_name(row->dtype), error,
                      limit);
        exceeded += !(error <= limit);
    }
    free(decoded);
    free(values);
    assert_int_equal(exceeded, 0);
}

static void test_gaussian(void **state)
{
    (void)state;
    check_sample(SAMPLE_GAUSSIAN, "gaussian");
}

static void test_outliers(void **state)
{
    (void)state;
    check_sample(SAMPLE_OUTLIERS, "outliers");
}

static void test_shifted(void **state)
{
    (void)state;
    check_sample(SAMPLE_SHIFTED, "shifted");
}

static void test_uneven(void **state)
{
    (void)state;
    check_sample(SAMPLE_UNEVEN, "uneven");
}

/* Weights of any usual size lose the same, also where scales are subnormal in f16. */
static void test_magnitudes(void **state)
{
    (void)state;
    static const struct {
        float factor;
        double allowance; /* times the limit for variance 1 */
    } rows[] = { { 1e-3f, 1.05 }, { 1e-2f, 1.02 }, { 100.0f, 1.02 }, { 1e4f, 1.02 } };
    float *values = sample_create(SAMPLE_GAUSSIAN);
    float *scaled = malloc(SAMPLE_COUNT * sizeof(*scaled));
    float *decoded = malloc(SAMPLE_COUNT * sizeof(*decoded));
    assert_non_null(scaled);
    assert_non_null(decoded);
    for (size_t m = 0; m < COUNT_OF(rows); m++) {
        for (size_t i = 0; i < SAMPLE_COUNT; i++)
            scaled[i] = values[i] * rows[m].factor;
        for (size_t r = 0; r < COUNT_OF(encoder_rows); r++) {
            assert_true(round_trip(encoder_rows[r].dtype, scaled, SAMPLE_COUNT, decoded));
            double error = relative_rms_error(scaled, decoded, SAMPLE_COUNT);
            if (error > encoder_rows[r].gaussian * rows[m].allowance)
                fail_msg("%s times %g: error %g", dtype_name(encoder_rows[r].dtype),
                         (double)rows[m].factor, error);
        }
    }
    free(decoded);
    free(scaled);
    free(values);
}

/* Encoding what was decoded changes nothing any more. */
static void test_q8_0_stable(void **state)
{
    (void)state;
    float *values = sample_create(SAMPLE_OUTLIERS);
    float *once = malloc(SAMPLE_COUNT * sizeof(*once));
    float *twice = malloc(SAMPLE_COUNT * sizeof(*twice));
    assert_non_null(once);
    assert_non_null(twice);
    assert_true(round_trip(DTYPE_Q8_0, values, SAMPLE_COUNT, once));
    assert_true(round_trip(DTYPE_Q8_0, once, SAMPLE_COUNT, twice));
    assert_memory_equal(once, twice, SAMPLE_COUNT * sizeof(*once));
    free(twice);
    free(once);
    free(values);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gaussian),   cmocka_unit_test(test_outliers),
        cmocka_unit_test(test_shifted),    cmocka_unit_test(test_uneven),
        cmocka_unit_test(test_magnitudes), cmocka_unit_test(test_q8_0_stable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
