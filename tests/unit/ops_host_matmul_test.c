/* ops_host_matmul_test.c - the host kernels of matmul: every dtype on every path this
 * processor has, against float64; their bits against each other, however the work is cut; and that
 * they touch no byte outside of what they were given. */
#include "ops_host_matmul_product.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rounding errors are at most in proportion to the sum of magnitudes: rounding_limit counts them in
 * half units of the last place of that. */
static void check_against_doubles(const struct product *product, const float *output,
                                  double rounding_limit)
{
    const struct host_matmul_task *task = &product->task;
    float *weights = malloc(task->k * sizeof(float));
    double *values = malloc(task->k * task->activation_rows * sizeof(double));
    for (size_t a = 0; a < task->activation_rows; a++)
        unpack_activations(product->kernel->act_format,
                           task->activations + a * task->activation_row_bytes, task->k,
                           values + a * task->k);
    for (size_t o = 0; o < task->weight_rows; o++) {
        quant_decode_row(task->dtype, task->weights + o * task->weight_row_bytes, task->k, weights);
        for (size_t a = 0; a < task->activation_rows; a++) {
            double sum = 0;
            double magnitude = 0;
            for (size_t i = 0; i < task->k; i++) {
                double term = (double)weights[i] * values[a * task->k + i];
                sum += term;
                magnitude += fabs(term);
            }
            double found = (double)output[MARGIN + a * (task->weight_rows + MARGIN) + o];
            double allowed = magnitude * 0x1p-24 * rounding_limit;
            if (!(fabs(found - sum) <= allowed))
                fail_msg("%s: output %zu of row %zu: expected %.9g, found %.9g, allowed %.3g",
                         product->name, o, a, sum, found, allowed);
        }
    }
    free(values);
    free(weights);
}

static void check_same(const struct product *product, const char *how, const float *a,
                       const float *b)
{
    size_t stride = product->task.weight_rows + MARGIN;
    for (size_t i = 0; i < stride * product->task.activation_rows + MARGIN; i++) {
        if (memcmp(&a[i], &b[i], sizeof(float)) != 0)
            fail_msg("%s: %s: row %zu output %zu: %.9g is not %.9g", product->name, how, i / stride,
                     i % stride - MARGIN, (double)b[i], (double)a[i]);
    }
}

/* Parts of 1, 2, 3, 5, 7, 16, 17, 1, ... rows. */
static size_t next_piece(size_t *state)
{
    static const size_t pieces[] = { 1, 2, 3, 5, 7, 16, 17 };
    return pieces[(*state)++ % COUNT_OF(pieces)];
}

static void compute_in_pieces(const struct product *product, size_t state, float *output)
{
    size_t rows = product->task.activation_rows;
    size_t outputs = product->task.weight_rows;
    for (size_t a = 0; a < rows;) {
        size_t a_end = a + next_piece(&state);
        a_end = a_end < rows ? a_end : rows;
        for (size_t o = 0; o < outputs;) {
            size_t o_end = o + next_piece(&state);
            o_end = o_end < outputs ? o_end : outputs;
            compute(product, NULL, o, o_end, a, a_end, output);
            o = o_end;
        }
        a = a_end;
    }
}

static void check_product(enum cpu_path path, size_t dtype_row, size_t k, size_t weight_rows,
                          size_t activation_rows)
{
    struct product product;
    product_init(&product, path, dtype_row, k, weight_rows, activation_rows);
    float *many = output_create(&product);
    float *few = output_create(&product);
    compute_all(&product, product.kernel->many_rows, many);
    /* Errors of either sign mostly cancel. */
    check_against_doubles(&product, many, 8 + sqrt((double)k) / 4);
    compute_all(&product, product.kernel->few_rows, few);
    check_same(&product, "few rows at a time", many, few);
    for (size_t state = 0; state < 3; state++) {
        float *pieces = output_create(&product);
        compute_in_pieces(&product, state, pieces);
        check_same(&product, "in parts", many, pieces);
        free(pieces);
    }
    if (!margins_are_untouched(&product, many) || !margins_are_untouched(&product, few))
        fail_msg("%s: wrote outside the output", product.name);
    free(many);
    free(few);
    product_release(&product);
}

/* Sizes that hurt: below, at and above the widths of tiles, groups and chunks. */
static const struct {
    size_t k;
    size_t weight_rows;
    size_t activation_rows;
} shapes[] = {
    { 1, 1, 1 },     { 7, 5, 3 },     { 31, 17, 4 },    { 33, 4, 5 },     { 32, 1, 1 },
    { 32, 16, 16 },  { 64, 15, 7 },   { 96, 17, 5 },    { 96, 33, 33 },   { 160, 31, 17 },
    { 256, 1, 33 },  { 256, 33, 1 },  { 256, 16, 2 },   { 512, 31, 3 },   { 512, 3, 16 },
    { 768, 18, 70 }, { 1056, 6, 6 },  { 1100, 19, 9 },  { 2304, 17, 7 },  { 4352, 16, 9 },
    { 4352, 33, 2 }, { 11008, 5, 3 }, { 11008, 17, 1 }, { 14336, 2, 17 },
};

static void check_path(enum cpu_path path)
{
    if (!cpu_path_is_supported(path))
        skip();
    for (size_t d = 0; d < COUNT_OF(dtype_rows); d++) {
        size_t block = dtype_info(dtype_rows[d].dtype)->block_elements;
        for (size_t s = 0; s < COUNT_OF(shapes); s++) {
            if (shapes[s].k % block == 0)
                check_product(path, d, shapes[s].k, shapes[s].weight_rows,
                              shapes[s].activation_rows);
        }
    }
}

static void test_portable(void **state)
{
    (void)state;
    check_path(CPU_PATH_PORTABLE);
}

static void test_avx2(void **state)
{
    (void)state;
    check_path(CPU_PATH_AVX2);
}

static void test_avx512(void **state)
{
    (void)state;
    check_path(CPU_PATH_AVX512);
}

/* Every level at an end of its range, all activations at one: sums are as large as they can be, and
 * no step in between may overflow. Rounding errors all go one way. */
static void check_extreme_levels(enum cpu_path path, size_t d, uint8_t byte, float activation)
{
    enum { K = 512, OUTPUTS = 17, ROWS = 9 };
    struct random_state random = { .counter = 3 };
    struct product product;
    product_init(&product, path, d, K, OUTPUTS, ROWS);
    size_t bytes = OUTPUTS * product.task.weight_row_bytes;
    memset(product.weights.bytes, byte, bytes);
    fill_scales(d, product.weights.bytes, bytes, &random);
    float values[K];
    for (size_t i = 0; i < K; i++)
        values[i] = activation;
    for (size_t a = 0; a < ROWS; a++)
        host_act_pack(path, product.kernel->act_format, values, K,
                      product.activations.bytes + a * product.task.activation_row_bytes);
    float *output = output_create(&product);
    compute_all(&product, product.kernel->many_rows, output);
    check_against_doubles(&product, output, 8 + K / 8);
    compute_all(&product, product.kernel->few_rows, output);
    check_against_doubles(&product, output, 8 + K / 8);
    free(output);
    product_release(&product);
}

static void test_extreme_levels(void **state)
{
    (void)state;
    static const uint8_t bytes[] = { 0x00, 0x0F, 0x7F, 0x80, 0xF0, 0xFF };
    for (int path = 0; path < CPU_PATH_COUNT; path++) {
        for (size_t d = 0; d < COUNT_OF(dtype_rows); d++) {
            if (!cpu_path_is_supported((enum cpu_path)path) ||
                dtype_info(dtype_rows[d].dtype)->block_elements == 1)
                continue;
            for (size_t b = 0; b < COUNT_OF(bytes); b++) {
                check_extreme_levels((enum cpu_path)path, d, bytes[b], 1.0f);
                check_extreme_levels((enum cpu_path)path, d, bytes[b], -1.0f);
            }
        }
    }
}

/* AVX2 and AVX-512 have one order for everything but BF16, whose activations AVX-512 rounds. */
static void test_avx2_gives_the_bits_of_avx512(void **state)
{
    (void)state;
    enum { OUTPUTS = 19, ROWS = 5 };
    static const size_t lengths[] = { 96, 256, 1056, 1100, 2304 };
    if (!cpu_path_is_supported(CPU_PATH_AVX2) || !cpu_path_is_supported(CPU_PATH_AVX512))
        skip();
    for (size_t d = 0; d < COUNT_OF(dtype_rows); d++) {
        for (size_t n = 0; n < COUNT_OF(lengths); n++) {
            struct product products[2];
            float *outputs[2];
            if (lengths[n] % dtype_info(dtype_rows[d].dtype)->block_elements != 0 ||
                dtype_rows[d].dtype == DTYPE_BF16)
                continue;
            for (size_t i = 0; i < 2; i++) {
                product_init(&products[i], i == 0 ? CPU_PATH_AVX2 : CPU_PATH_AVX512, d, lengths[n],
                             OUTPUTS, ROWS);
                outputs[i] = output_create(&products[i]);
                compute_all(&products[i], products[i].kernel->many_rows, outputs[i]);
            }
            check_same(&products[0], "AVX-512", outputs[0], outputs[1]);
            for (size_t i = 0; i < 2; i++) {
                free(outputs[i]);
                product_release(&products[i]);
            }
        }
    }
}

/* Every dtype that can be decoded can be multiplied, on every path; no other can. */
static void test_kernel_for_each_dtype(void **state)
{
    (void)state;
    for (int path = 0; path < CPU_PATH_COUNT; path++) {
        for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
            bool found = host_matmul_kernel((enum cpu_path)path, (enum dtype)dtype) != NULL;
            assert_int_equal(found, quant_can_decode((enum dtype)dtype));
        }
    }
}

/* No row on either side, and an empty product of rows. */
static void test_nothing_to_do(void **state)
{
    (void)state;
    for (int path = 0; path < CPU_PATH_COUNT; path++) {
        if (!cpu_path_is_supported((enum cpu_path)path))
            continue;
        for (size_t d = 0; d < COUNT_OF(dtype_rows); d++) {
            struct product product;
            product_init(&product, (enum cpu_path)path, d, 256, 4, 4);
            float *output = output_create(&product);
            compute(&product, product.kernel->many_rows, 2, 2, 0, 4, output);
            compute(&product, product.kernel->few_rows, 2, 2, 0, 4, output);
            compute(&product, product.kernel->many_rows, 0, 4, 1, 1, output);
            compute(&product, product.kernel->few_rows, 0, 4, 1, 1, output);
            for (size_t i = 0; i < 4 * (4 + MARGIN) + MARGIN; i++)
                assert_true(output[i] == UNTOUCHED);
            free(output);
            product_release(&product);
        }
    }
}

/* Values a bad model could bring. found: what the outputs of such a row are. */
static const struct {
    const char *name;
    float value;
    enum { FINITE, NOT_A_NUMBER, NOT_FINITE } found;
} odd_values[] = {
    { "NaN", NAN, NOT_A_NUMBER },
    { "infinity", INFINITY, NOT_FINITE },
    { "minus infinity", -INFINITY, NOT_FINITE },
    { "large", 1e30f, FINITE },
    { "subnormal", 1e-42f, FINITE },
    { "smallest", 1.4e-45f, FINITE },
    { "zero", 0.0f, FINITE },
};

/* Row 1 of 5 has one odd value (or, if everywhere, nothing else). */
static void check_odd_value(enum cpu_path path, size_t d, size_t v, bool everywhere)
{
    enum { K = 512, OUTPUTS = 19, ROWS = 5 };
    struct product product;
    product_init(&product, path, d, K, OUTPUTS, ROWS);
    float values[K];
    for (size_t i = 0; i < K; i++)
        values[i] = everywhere || i == 100 ? odd_values[v].value : 0.5f;
    size_t row_bytes = product.task.activation_row_bytes;
    host_act_pack(path, product.kernel->act_format, values, K,
                  product.activations.bytes + row_bytes);
    float *many = output_create(&product);
    float *few = output_create(&product);
    compute_all(&product, product.kernel->many_rows, many);
    compute_all(&product, product.kernel->few_rows, few);
    for (size_t a = 0; a < ROWS; a++) {
        for (size_t o = 0; o < OUTPUTS; o++) {
            float found = many[MARGIN + a * (OUTPUTS + MARGIN) + o];
            float other = few[MARGIN + a * (OUTPUTS + MARGIN) + o];
            bool right = a != 1 || odd_values[v].found == FINITE ? isfinite(found)
                         : odd_values[v].found == NOT_A_NUMBER   ? isnan(found)
                                                                 : !isfinite(found);
            bool same = isnan(found) ? isnan(other) : memcmp(&found, &other, sizeof(found)) == 0;
            if (!right || !same)
                fail_msg("%s: %s: row %zu output %zu is %g, few rows: %g", product.name,
                         odd_values[v].name, a, o, (double)found, (double)other);
        }
    }
    free(many);
    free(few);
    product_release(&product);
}

static void test_odd_values(void **state)
{
    (void)state;
    for (int path = 0; path < CPU_PATH_COUNT; path++) {
        if (!cpu_path_is_supported((enum cpu_path)path))
            continue;
        for (size_t d = 0; d < COUNT_OF(dtype_rows); d++) {
            for (size_t v = 0; v < COUNT_OF(odd_values); v++) {
                check_odd_value((enum cpu_path)path, d, v, false);
                check_odd_value((enum cpu_path)path, d, v, true);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel_for_each_dtype),
        cmocka_unit_test(test_nothing_to_do),
        cmocka_unit_test(test_odd_values),
        cmocka_unit_test(test_extreme_levels),
        cmocka_unit_test(test_portable),
        cmocka_unit_test(test_avx2),
        cmocka_unit_test(test_avx512),
        cmocka_unit_test(test_avx2_gives_the_bits_of_avx512),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
