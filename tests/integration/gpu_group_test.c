/* gpu_group_test.c - products of one token and of a few in one launch, of parts whose types and
 * heights differ, against sums of f64 and, of one token, each by itself. The device is the first
 * argument. */
#include "ops_weights.h"

static struct lab gpu;

struct part {
    enum dtype dtype;
    uint64_t rows;
};

static void check_same(const char *name, const struct device_view *wanted_view,
                       const struct device_view *found_view)
{
    uint64_t bytes = 0;
    assert_true(shape_bytes(&wanted_view->shape, wanted_view->dtype, &bytes));
    uint8_t *wanted = malloc(bytes), *found = malloc(bytes);
    assert_true(wanted && found);
    lab_get(&gpu, wanted_view, wanted);
    lab_get(&gpu, found_view, found);
    if (memcmp(wanted, found, bytes) != 0)
        fail_msg("%s: other bits in a group than alone", name);
    free(found);
    free(wanted);
}

/* Within what levels of activations, or halves, keep. */
static void check_near(const char *name, const struct device_view *found_view, const float *decoded,
                       const float *x, const float *bias, uint64_t k)
{
    uint64_t rows = found_view->shape.dims[0], tokens = found_view->shape.dims[1];
    float *found = malloc(rows * tokens * sizeof(float));
    double *wanted = malloc(rows * tokens * sizeof(double));
    assert_true(found && wanted);
    lab_get(&gpu, found_view, found);
    multiply_exactly(decoded, x, bias, k, rows, tokens, wanted);
    /* One of few sums may be near 0: they are compared with all of what they are made of. */
    double error = 0, power = 0;
    for (size_t i = 0; i < rows * tokens; i++) {
        error += ((double)found[i] - wanted[i]) * ((double)found[i] - wanted[i]);
        for (size_t n = 0; n < k; n++) {
            double product = (double)decoded[i % rows * k + n] * (double)x[i / rows * k + n];
            power += product * product;
        }
    }
    /* Levels of activations leave 1.6e-5 of it on average; a single sum may be five times as far
     * off as usual, which is 25 times that, many together hardly. */
    double limit = 1e-4 + 4e-4 / (double)(rows * tokens);
    if (!(error < limit * power))
        fail_msg("%s: normalised error %g", name, error / power);
    free(wanted);
    free(found);
}

/* With one token, a row's bits depend on its type and k alone, where all parts are types that are
 * read as an engine holds them (`bits`): those of a group are those of each part. Otherwise a
 * kernel is taken, and k is cut, by what there is in all. */
static void check_group(uint64_t k, const struct part *parts, size_t count, uint64_t tokens,
                        bool bits)
{
    float *x = lab_floats(&gpu, k * tokens), *bias_values = lab_floats(&gpu, parts[0].rows);
    float *decoded[3];
    struct device_view weights[3], outs[3], alone[3];
    const struct device_view *weight_list[3], *out_list[3], *bias_list[3] = { NULL };
    struct device_view input = lab_put_new(&gpu, DTYPE_F32, k, tokens, x);
    struct device_view bias = lab_put_new(&gpu, DTYPE_F32, parts[0].rows, 1, bias_values);
    struct device_view packed = lab_view(
        &gpu, DTYPE_I8, ops_packed_row_bytes(&gpu.ops, parts[0].dtype, k, tokens), tokens);
    bias_list[0] = &bias;
    LAB_OK(&gpu, ops_act_pack(&gpu.target, &input, &packed, parts[0].dtype, &gpu.err));
    for (size_t i = 0; i < count; i++) {
        assert_true(ops_same_packing(&gpu.ops, parts[0].dtype, parts[i].dtype, k, tokens));
        decoded[i] = malloc(k * parts[i].rows * sizeof(float));
        assert_non_null(decoded[i]);
        weights[i] = lab_put_weights(&gpu, parts[i].dtype, k, parts[i].rows, decoded[i]);
        outs[i] = lab_view(&gpu, DTYPE_F32, parts[i].rows, tokens);
        alone[i] = lab_view(&gpu, DTYPE_F32, parts[i].rows, tokens);
        weight_list[i] = &weights[i];
        out_list[i] = &outs[i];
        LAB_OK(&gpu,
               ops_matmul(&gpu.target, &weights[i], &packed, bias_list[i], &alone[i], &gpu.err));
    }
    LAB_OK(&gpu, ops_matmul_group(&gpu.target, count, weight_list, &packed, bias_list, out_list,
                                  &gpu.err));
    for (size_t i = 0; i < count; i++) {
        char name[96];
        snprintf(name, sizeof(name), "part %d of k %d: %s, %d rows, %d tokens", (int)i, (int)k,
                 dtype_name(parts[i].dtype), (int)parts[i].rows, (int)tokens);
        check_near(name, &outs[i], decoded[i], x, i == 0 ? bias_values : NULL, k);
        if (bits)
            check_same(name, &alone[i], &outs[i]);
        free(decoded[i]);
        lab_drop(&gpu, weights[i]);
        lab_drop(&gpu, outs[i]);
        lab_drop(&gpu, alone[i]);
    }
    lab_drop(&gpu, input);
    lab_drop(&gpu, bias);
    lab_drop(&gpu, packed);
    free(bias_values);
    free(x);
}

/* The parts with the types an engine has them in. */
static void hold_as_engine(uint64_t k, const struct part *parts, size_t count, struct part *held)
{
    for (size_t i = 0; i < count; i++)
        held[i] = (struct part){ ops_weight_dtype(&gpu.ops, parts[i].dtype, k), parts[i].rows };
}

static void test_groups(void **state)
{
    (void)state;
    static const struct {
        uint64_t k;
        struct part parts[3];
        size_t count;
    } groups[] = {
        { 256, { { DTYPE_Q4_K, 1 }, { DTYPE_Q6_K, 1 }, { DTYPE_Q8_0, 1 } }, 3 },
        { 512, { { DTYPE_Q6_K, 1 }, { DTYPE_Q4_K, 3 } }, 2 },
        { 2048, { { DTYPE_Q4_K, 257 }, { DTYPE_Q4_K, 65 }, { DTYPE_Q6_K, 64 } }, 3 },
        { 2304, { { DTYPE_Q8_0, 33 }, { DTYPE_Q4_K, 2 }, { DTYPE_Q6_K, 131 } }, 3 },
        { 256, { { DTYPE_Q6_K, 1 }, { DTYPE_Q4_K, 2001 }, { DTYPE_Q8_0, 1 } }, 3 },
        { 4096, { { DTYPE_Q4_K, 1 }, { DTYPE_Q8_0, 2 }, { DTYPE_Q4_K, 301 } }, 3 },
        /* one part in another way */
        { 1024, { { DTYPE_Q4_K, 40 }, { DTYPE_Q4_0, 17 }, { DTYPE_Q6_K, 9 } }, 3 },
        { 1024, { { DTYPE_Q4_0, 40 }, { DTYPE_Q8_0, 19 }, { DTYPE_Q6_K, 31 } }, 3 },
    };
    for (size_t i = 0; i < COUNT_OF(groups); i++) {
        struct part held[3];
        hold_as_engine(groups[i].k, groups[i].parts, groups[i].count, held);
        check_group(groups[i].k, held, groups[i].count, 1, true);
    }
}

/* Another type that can be in a group with this one, the next in order; itself if there is none. */
static enum dtype find_partner(enum dtype dtype, uint64_t k, uint64_t tokens)
{
    for (int i = 1; i < DTYPE_COUNT; i++) {
        int other = ((int)dtype + i) % DTYPE_COUNT;
        if (contract_allows(OPS_MATMUL_GROUP, 2, other) &&
            k % lab_weight_k((enum dtype)other) == 0 &&
            ops_same_packing(&gpu.ops, dtype, (enum dtype)other, k, tokens))
            return (enum dtype)other;
    }
    return dtype;
}

/* Every type in every place; heights of which one is too low for some kernels. */
static void test_every_type(void **state)
{
    (void)state;
    static const uint64_t token_counts[] = { 1, 2, 3, 6, 12 };
    for (int i = 0; i < DTYPE_COUNT; i++) {
        bool allowed = contract_allows(OPS_MATMUL_GROUP, 1, i);
        assert_int_equal(allowed, contract_allows(OPS_MATMUL_GROUP, 2, i));
        assert_int_equal(allowed, contract_allows(OPS_MATMUL_GROUP, 3, i));
        for (size_t n = 0; allowed && n < COUNT_OF(token_counts); n++) {
            enum dtype dtype = (enum dtype)i;
            uint64_t tokens = token_counts[n], k = lab_weight_k(dtype);
            enum dtype other = find_partner(dtype, k, tokens);
            check_group(k, (struct part[]){ { dtype, 19 }, { other, 33 }, { dtype, 3 } }, 3, tokens,
                        false);
            check_group(k, (struct part[]){ { other, 5 }, { dtype, 40 } }, 2, tokens, false);
        }
    }
}

/* Products of levels with a few tokens: many rows, so that every stage of a warp's ring is filled
 * again and again; rows that are cut into shares; types that can be done together, and those whose
 * rows are too long for it. */
static void test_few(void **state)
{
    (void)state;
    static const struct {
        uint64_t k, tokens;
        struct part parts[3];
        size_t count;
    } groups[] = {
        { 2048, 8, { { DTYPE_Q4_K, 700 } }, 1 },
        { 2048, 3, { { DTYPE_Q6_K, 700 } }, 1 },
        { 2048, 2, { { DTYPE_Q8_0, 700 } }, 1 },
        { 256, 4, { { DTYPE_Q4_K, 3000 } }, 1 },
        { 14336, 5, { { DTYPE_Q4_K, 130 } }, 1 },
        { 14336, 3, { { DTYPE_Q6_K, 66 } }, 1 },
        { 14336, 8, { { DTYPE_Q8_0, 66 } }, 1 },
        { 6144, 3, { { DTYPE_Q4_K, 100 }, { DTYPE_Q4_K, 20 }, { DTYPE_Q6_K, 20 } }, 3 },
        { 10240, 4, { { DTYPE_Q4_K, 40 }, { DTYPE_Q8_0, 17 }, { DTYPE_Q6_K, 9 } }, 3 },
        { 34816, 5, { { DTYPE_Q4_K, 7 } }, 1 },
    };
    for (size_t i = 0; i < COUNT_OF(groups); i++) {
        struct part held[3];
        hold_as_engine(groups[i].k, groups[i].parts, groups[i].count, held);
        check_group(groups[i].k, held, groups[i].count, groups[i].tokens, false);
    }
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
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_groups),
                                        cmocka_unit_test(test_every_type),
                                        cmocka_unit_test(test_few) };
    return cmocka_run_group_tests(tests, open_lab, close_lab);
}
