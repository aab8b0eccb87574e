/* gpu_many_test.c - matmul of many tokens, which a GPU does on matrix units, over rows packed as
 * halves or quants. Against sums of f64; outputs are poisoned first, guards stand next to every
 * operand, and two runs give the same bits. The device is the first argument. */
#include "ops_weights.h"

static struct lab gpu;

/* ---- Matmul --------------------------------------------------------------------------------- */

struct product {
    enum dtype dtype;
    uint64_t k, rows, tokens;
};

static void multiply(const struct device_view *weights, const struct device_view *input,
                     const struct device_view *bias, float *out)
{
    uint64_t k = weights->shape.dims[0], rows = weights->shape.dims[1];
    uint64_t tokens = input->shape.dims[1];
    struct device_view packed = lab_view(
        &gpu, DTYPE_I8, ops_packed_row_bytes(&gpu.ops, weights->dtype, k, tokens), tokens);
    struct device_view result = lab_view(&gpu, DTYPE_F32, rows, tokens);
    LAB_OK(&gpu, ops_act_pack(&gpu.target, input, &packed, weights->dtype, &gpu.err));
    LAB_OK(&gpu, ops_matmul(&gpu.target, weights, &packed, bias, &result, &gpu.err));
    lab_get(&gpu, &result, out);
    lab_drop(&gpu, packed);
    lab_drop(&gpu, result);
}

/* How much a product of random numbers keeps: halves have 11 bits, bf16 8, quants of activations,
 * which chips take for a few tokens, 7. Tiles of types that have a minimum round it and the scale
 * to halves before the one is taken from the other's multiple, which is larger than what is left;
 * and 32 values share these errors, so that a token whose values do not cancel out has several
 * times those of others. */
static double tolerance_of(enum dtype dtype, uint64_t tokens)
{
    if (tokens <= 8)
        return 1e-4;
    switch (dtype) {
    case DTYPE_BF16:
        return 2e-5;
    case DTYPE_Q4_K:
    case DTYPE_Q5_K:
        return 4e-6;
    default:
        return 1e-6;
    }
}

/* Weights as they are; check_held: as an engine holds them. */
static void check_product(const struct product *p)
{
    double tolerance = tolerance_of(p->dtype, p->tokens);
    char name[96];
    snprintf(name, sizeof(name), "%s, k %d, %d rows, %d tokens", dtype_name(p->dtype), (int)p->k,
             (int)p->rows, (int)p->tokens);
    size_t count = p->rows * p->tokens;
    float *decoded = malloc(p->k * p->rows * sizeof(float));
    float *x = lab_floats(&gpu, p->k * p->tokens), *bias_values = lab_floats(&gpu, p->rows);
    float *out = malloc(count * sizeof(float)), *again = malloc(count * sizeof(float));
    double *wanted = malloc(count * sizeof(double)), *powers = calloc(p->tokens, sizeof(double));
    assert_true(decoded && out && again && wanted && powers);
    for (size_t t = 0; t < p->tokens; t++) /* magnitudes that f16 has not, either way */
        for (size_t i = 0; i < p->k && t % 5 < 2; i++)
            x[t * p->k + i] *= t % 5 ? 1e7f : 1e-9f;
    struct device_view weights = lab_put_weights(&gpu, p->dtype, p->k, p->rows, decoded);
    struct device_view bias = lab_put_new(&gpu, DTYPE_F32, p->rows, 1, bias_values);
    struct device_view input = lab_put_new(&gpu, DTYPE_F32, p->k, p->tokens, x);
    for (size_t t = 0; t < p->tokens; t++)
        for (size_t r = 0; r < p->rows; r++) {
            double sum = (double)bias_values[r];
            powers[t] += sum * sum * 1e-7; /* what adding it may round off */
            for (size_t i = 0; i < p->k; i++) {
                double product = (double)decoded[r * p->k + i] * (double)x[t * p->k + i];
                sum += product;
                powers[t] += product * product;
            }
            wanted[t * p->rows + r] = sum;
        }
    multiply(&weights, &input, &bias, out);
    multiply(&weights, &input, &bias, again);
    for (size_t t = 0; t < p->tokens; t++) { /* each on its own: their magnitudes differ */
        double error = 0;
        for (size_t i = t * p->rows; i < (t + 1) * p->rows; i++)
            error += ((double)out[i] - wanted[i]) * ((double)out[i] - wanted[i]);
        error /= powers[t]; /* of the terms, not of their sums, which may be near 0 */
        if (!(error < tolerance))
            fail_msg("%s: token %zu: normalised error %g", name, t, error);
    }
    if (memcmp(out, again, count * sizeof(float)) != 0)
        fail_msg("%s: two runs give other bits", name);
    lab_drop(&gpu, weights);
    lab_drop(&gpu, bias);
    lab_drop(&gpu, input);
    free(powers);
    free(wanted);
    free(again);
    free(out);
    free(bias_values);
    free(x);
    free(decoded);
}

static void check_held(const struct product *product)
{
    struct product held = *product;
    held.dtype = ops_weight_dtype(&gpu.ops, product->dtype, product->k);
    check_product(&held);
}

static void test_products(void **state)
{
    (void)state;
    static const struct product products[] = {
        /* tiles: odd numbers, one past a tile, splits of k */
        { DTYPE_Q4_K, 256, 1, 9 },
        { DTYPE_Q4_K, 2048, 129, 65 },
        { DTYPE_Q5_K, 768, 67, 64 },
        { DTYPE_Q6_K, 2048, 33, 10 },
        { DTYPE_Q6_K, 4096, 129, 17 },
        { DTYPE_Q8_0, 512, 131, 66 },
        { DTYPE_F16, 64, 3, 9 },
        { DTYPE_F16, 1088, 130, 70 },
        { DTYPE_Q4_0, 192, 37, 19 },
        /* warpgroups: the same */
        { DTYPE_Q4_K, 512, 257, 769 },
        { DTYPE_Q6_K, 2048, 5, 832 },
        { DTYPE_Q8_0, 256, 256, 833 },
        { DTYPE_Q4_0, 64, 100, 384 },
        { DTYPE_F16, 320, 259, 400 },
        /* both */
        { DTYPE_BF16, 64, 3, 9 },
        { DTYPE_BF16, 1600, 131, 65 },
        { DTYPE_BF16, 448, 300, 389 },
    };
    for (size_t i = 0; i < COUNT_OF(products); i++)
        check_held(&products[i]);
}

/* Every type, with as few tokens as tiles take, and with as many as are worth unpacking first. */
static void test_every_type(void **state)
{
    (void)state;
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        if (!contract_allows(OPS_MATMUL, 0, dtype))
            continue;
        uint64_t k = lab_weight_k((enum dtype)dtype);
        check_product(&(struct product){ (enum dtype)dtype, k, 33, 12 });
        check_product(&(struct product){ (enum dtype)dtype, k, 33, 390 });
    }
}

/* Three products of the same tokens in one launch, of types and heights that do not match. */
static void check_group(uint64_t k, const enum dtype types[3], const uint64_t rows[3],
                        uint64_t tokens)
{
    struct device_view weights[3], outs[3], bias = { 0 };
    const struct device_view *weight_list[3], *out_list[3], *bias_list[3] = { NULL, NULL, NULL };
    float *decoded[3], *x = lab_floats(&gpu, k * tokens), *bias_values = lab_floats(&gpu, rows[1]);
    struct device_view input = lab_put_new(&gpu, DTYPE_F32, k, tokens, x);
    for (size_t part = 0; part < 3; part++) {
        decoded[part] = malloc(k * rows[part] * sizeof(float));
        assert_non_null(decoded[part]);
        weights[part] = lab_put_weights(&gpu, ops_weight_dtype(&gpu.ops, types[part], k), k,
                                        rows[part], decoded[part]);
        outs[part] = lab_view(&gpu, DTYPE_F32, rows[part], tokens);
        weight_list[part] = &weights[part];
        out_list[part] = &outs[part];
    }
    bias = lab_put_new(&gpu, DTYPE_F32, rows[1], 1, bias_values);
    bias_list[1] = &bias;
    struct device_view packed = lab_view(
        &gpu, DTYPE_I8, ops_packed_row_bytes(&gpu.ops, weights[0].dtype, k, tokens), tokens);
    LAB_OK(&gpu, ops_act_pack(&gpu.target, &input, &packed, weights[0].dtype, &gpu.err));
    LAB_OK(&gpu,
           ops_matmul_group(&gpu.target, 3, weight_list, &packed, bias_list, out_list, &gpu.err));
    for (size_t part = 0; part < 3; part++) {
        size_t count = rows[part] * tokens;
        float *found = malloc(count * sizeof(float));
        double *wanted = malloc(count * sizeof(double));
        assert_true(found && wanted);
        lab_get(&gpu, &outs[part], found);
        multiply_exactly(decoded[part], x, part == 1 ? bias_values : NULL, k, rows[part], tokens,
                         wanted);
        double error = normalised_error(found, wanted, count);
        if (!(error < tolerance_of(types[part], tokens)))
            fail_msg("group, part %zu (%s): normalised error %g", part, dtype_name(types[part]),
                     error);
        free(found);
        free(wanted);
        free(decoded[part]);
        lab_drop(&gpu, weights[part]);
        lab_drop(&gpu, outs[part]);
    }
    lab_drop(&gpu, bias);
    lab_drop(&gpu, input);
    lab_drop(&gpu, packed);
    free(bias_values);
    free(x);
}

static void test_groups(void **state)
{
    (void)state;
    check_group(2048, (enum dtype[]){ DTYPE_Q4_K, DTYPE_Q4_K, DTYPE_Q6_K },
                (uint64_t[]){ 200, 70, 33 }, 11);
    check_group(512, (enum dtype[]){ DTYPE_Q8_0, DTYPE_Q5_K, DTYPE_Q4_K },
                (uint64_t[]){ 16, 130, 5 }, 64);
    check_group(256, (enum dtype[]){ DTYPE_Q4_K, DTYPE_Q4_K, DTYPE_Q4_K },
                (uint64_t[]){ 257, 64, 31 }, 67);
}

/* Products of quants: one share of k and two, splits, shares with nothing to do, rows that fill no
 * warp (too few for one: done otherwise), no warpgroup, no tile, one beyond each; fewer tokens than
 * other kernels take, and more. */
static void test_quants(void **state)
{
    (void)state;
    static const struct product products[] = {
        { DTYPE_Q4_K, 256, 16, 9 },     { DTYPE_Q4_K, 256, 17, 64 },   { DTYPE_Q4_K, 1280, 63, 33 },
        { DTYPE_Q4_K, 4096, 65, 64 },   { DTYPE_Q4_K, 1792, 300, 12 }, { DTYPE_Q4_K, 768, 513, 10 },
        { DTYPE_Q5_K, 2816, 30, 12 },   { DTYPE_Q5_K, 1024, 257, 65 }, { DTYPE_Q6_K, 2048, 16, 64 },
        { DTYPE_Q6_K, 6144, 79, 10 },   { DTYPE_Q8_0, 256, 47, 64 },   { DTYPE_Q8_0, 3328, 19, 9 },
        { DTYPE_Q8_0, 1024, 256, 128 }, { DTYPE_Q4_K, 8192, 16, 9 },   { DTYPE_Q4_K, 512, 80, 5 },
        { DTYPE_Q6_K, 2048, 70, 8 },    { DTYPE_Q8_0, 512, 33, 6 },    { DTYPE_Q5_K, 256, 15, 7 },
        { DTYPE_Q4_K, 256, 70, 768 },   { DTYPE_Q8_0, 256, 3, 40 },
    };
    for (size_t i = 0; i < COUNT_OF(products); i++)
        check_held(&products[i]);
}

/* A NaN, an infinity: the row has no numbers, its neighbours have theirs. */
static void test_not_finite(void **state)
{
    (void)state;
    enum { K = 256, ROWS = 6, TOKENS = 12 };
    float decoded[K * ROWS], *x = lab_floats(&gpu, K * TOKENS), out[ROWS * TOKENS];
    for (size_t i = 0; i < K; i++)
        x[5 * K + i] = 0;
    x[3 * K + 7] = NAN;
    x[9 * K + 200] = INFINITY;
    struct device_view weights = lab_put_weights(&gpu, DTYPE_Q8_0, K, ROWS, decoded);
    struct device_view input = lab_put_new(&gpu, DTYPE_F32, K, TOKENS, x);
    multiply(&weights, &input, NULL, out);
    for (size_t t = 0; t < TOKENS; t++)
        for (size_t r = 0; r < ROWS; r++) {
            float value = out[t * ROWS + r];
            if (t == 3 || t == 9)
                assert_true(isnan(value));
            else
                assert_true(t == 5 ? value == 0.0f : isfinite(value));
        }
    lab_drop(&gpu, weights);
    lab_drop(&gpu, input);
    free(x);
}

static int open_lab(void **state)
{
    (void)state;
    lab_open(&gpu, CPU_PATH_COUNT, 0);
    return 0;
}

static int close_lab(void **state)
{
    (void)state;
    lab_close(&gpu);
    return 0;
}

int main(int argument_count, char **arguments)
{
    if (!lab_choose_named(argument_count, arguments))
        return LAB_SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),   cmocka_unit_test(test_every_type),
        cmocka_unit_test(test_quants),     cmocka_unit_test(test_groups),
        cmocka_unit_test(test_not_finite),
    };
    return cmocka_run_group_tests(tests, open_lab, close_lab);
}
