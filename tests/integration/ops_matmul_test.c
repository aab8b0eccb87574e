/* ops_matmul_test.c - matmul through a device, for every weight type and path: right
 * within the rounding of its activations, and the same bits however it is cut. */
#include "ops_weights.h"

/* out [rows, tokens] for x [k, tokens]; as given to the caller's memory. */
static void multiply(struct lab *lab, const struct device_view *weights, const float *x, size_t k,
                     size_t tokens, const struct device_view *bias, float *out)
{
    size_t rows = (size_t)weights->shape.dims[1];
    struct device_view input = lab_put_new(lab, DTYPE_F32, k, tokens, x);
    struct device_view packed = lab_view(
        lab, DTYPE_I8, ops_packed_row_bytes(&lab->ops, weights->dtype, k, tokens), tokens);
    struct device_view result = lab_view(lab, DTYPE_F32, rows, tokens);
    LAB_OK(lab, ops_act_pack(&lab->target, &input, &packed, weights->dtype, &lab->err));
    LAB_OK(lab, ops_matmul(&lab->target, weights, &packed, bias, &result, &lab->err));
    lab_get(lab, &result, out);
    lab_drop(lab, input);
    lab_drop(lab, packed);
    lab_drop(lab, result);
}

#define TOKENS 37u

/* Few tokens have kernels of their own. Those that read what a token by itself is packed as differ
 * from it by how sums are rounded. wanted: of TOKENS. */
static void check_few(struct lab *lab, const char *name, const struct device_view *weights,
                      const float *x, const double *wanted, const float *bias_values)
{
    static const size_t counts[] = { 1, 2, 3, 4, 5, 8, 9, TOKENS };
    size_t k = weights->shape.dims[0], rows = weights->shape.dims[1];
    uint64_t packed_alone = ops_packed_row_bytes(&lab->ops, weights->dtype, k, 1);
    float *out = malloc(rows * TOKENS * sizeof(float)),
          *again = malloc(rows * TOKENS * sizeof(float));
    double *alone = malloc(rows * TOKENS * sizeof(double));
    struct device_view bias = lab_put_new(lab, DTYPE_F32, rows, 1, bias_values);
    assert_true(out && again && alone);
    for (size_t t = 0; t < 8; t++) {
        multiply(lab, weights, x + t * k, k, 1, &bias, out);
        for (size_t r = 0; r < rows; r++)
            alone[t * rows + r] = (double)out[r];
    }
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        size_t few = counts[i];
        multiply(lab, weights, x, k, few, &bias, out);
        double error = normalised_error(out, wanted, rows * few);
        if (!(error < 1e-4))
            fail_msg("%s, as %s, %zu tokens: normalised error %g", name, dtype_name(weights->dtype),
                     few, error);
        multiply(lab, weights, x, k, few, &bias, again);
        if (memcmp(out, again, rows * few * sizeof(float)) != 0)
            fail_msg("%s, as %s, %zu tokens: two runs give other bits", name,
                     dtype_name(weights->dtype), few);
        if (few > 8 || ops_packed_row_bytes(&lab->ops, weights->dtype, k, few) != packed_alone)
            continue;
        error = normalised_error(out, alone, rows * few);
        if (!(error < 1e-11))
            fail_msg("%s, as %s, %zu tokens: by %g not what each is alone", name,
                     dtype_name(weights->dtype), few, error);
    }
    lab_drop(lab, bias);
    free(alone);
    free(again);
    free(out);
}

static void check_type(struct lab *lab, struct lab *other, enum dtype dtype, size_t k, size_t rows)
{
    char name[96];
    snprintf(name, sizeof(name), "%s, %s, k %zu, %zu rows", cpu_path_name(lab->ops.host_path),
             dtype_name(dtype), k, rows);
    float *decoded = malloc(k * rows * sizeof(float));
    float *x = lab_floats(lab, k * TOKENS), *bias_values = lab_floats(lab, rows);
    float *out = malloc(rows * TOKENS * sizeof(float)),
          *again = malloc(rows * TOKENS * sizeof(float));
    double *wanted = malloc(rows * TOKENS * sizeof(double));
    assert_true(decoded && out && again && wanted);
    uint8_t *bytes = lab_weights(lab, dtype, k, rows, decoded);
    struct device_view weights = lab_put_new(lab, dtype, k, rows, bytes);
    struct device_view bias = lab_put_new(lab, DTYPE_F32, rows, 1, bias_values);
    multiply(lab, &weights, x, k, TOKENS, &bias, out);
    multiply_exactly(decoded, x, bias_values, k, rows, TOKENS, wanted);
    double error = normalised_error(out, wanted, rows * TOKENS);
    if (!(error < 1e-4))
        fail_msg("%s: normalised error %g", name, error);
    if (!lab_is_host()) {
        check_few(lab, name, &weights, x, wanted, bias_values);
        enum dtype held = ops_weight_dtype(&lab->ops, dtype, k);
        if (held != dtype) { /* as an engine holds them */
            struct device_view repacked = lab_view(lab, held, k, rows);
            LAB_OK(lab, ops_repack(&lab->target, &weights, &repacked, &lab->err));
            check_few(lab, name, &repacked, x, wanted, bias_values);
            lab_drop(lab, repacked);
        }
        goto done;
    }
    /* One token at a time, then two uneven batches, then other threads: the same bits. */
    for (size_t t = 0; t < TOKENS; t++)
        multiply(lab, &weights, x + t * k, k, 1, &bias, again + t * rows);
    if (memcmp(out, again, rows * TOKENS * sizeof(float)) != 0)
        fail_msg("%s: token by token gives other bits", name);
    multiply(lab, &weights, x, k, 20, &bias, again);
    multiply(lab, &weights, x + 20 * k, k, TOKENS - 20, &bias, again + 20 * rows);
    if (memcmp(out, again, rows * TOKENS * sizeof(float)) != 0)
        fail_msg("%s: two batches give other bits", name);
    struct device_view weights_there = lab_put_new(other, dtype, k, rows, bytes);
    struct device_view bias_there = lab_put_new(other, DTYPE_F32, rows, 1, bias_values);
    multiply(other, &weights_there, x, k, TOKENS, &bias_there, again);
    if (memcmp(out, again, rows * TOKENS * sizeof(float)) != 0)
        fail_msg("%s: three threads give other bits than one", name);
    lab_drop(other, weights_there);
    lab_drop(other, bias_there);
done:
    lab_drop(lab, weights);
    lab_drop(lab, bias);
    free(bytes);
    free(wanted);
    free(again);
    free(out);
    free(bias_values);
    free(x);
    free(decoded);
}

static void test_every_type_and_path(void **state)
{
    (void)state;
    for (int path = 0; path < CPU_PATH_COUNT; path++) {
        if (!lab_has_path((enum cpu_path)path)) {
            print_message("skipped: this processor has no %s\n",
                          cpu_path_name((enum cpu_path)path));
            continue;
        }
        struct lab one, three;
        lab_open(&one, (enum cpu_path)path, 1);
        lab_open(&three, (enum cpu_path)path, 3);
        for (int i = 0; i < DTYPE_COUNT; i++) {
            enum dtype dtype = (enum dtype)i;
            /* What only GPUs hold is laid out from the others there. */
            if (!contract_allows(OPS_MATMUL, 0, i) || !quant_can_decode(dtype))
                continue;
            check_type(&one, &three, dtype, 256, 67);
            check_type(&one, &three, dtype, 1280, 17);
            if (!lab_is_host()) {
                check_type(&one, &three, dtype, 4096, 9);
                if (dtype == DTYPE_Q4_K || dtype == DTYPE_Q6_K || dtype == DTYPE_Q8_0)
                    check_type(&one, &three, dtype, 10240, 33); /* k is cut */
            }
            if (dtype_info(dtype)->block_elements <= 32)
                check_type(&one, &three, dtype, 96, 5);
        }
        lab_close(&one);
        lab_close(&three);
    }
}

/* What a matmul in a launch of several gives, against the same alone: the same bits, but for
 * several tokens on a GPU, which cuts k, and takes a kernel, by what there is in all. */
static void check_grouped(const float *grouped, const float *separate, size_t count, bool bits)
{
    double *wanted = malloc(count * sizeof(double));
    assert_non_null(wanted);
    for (size_t i = 0; i < count; i++)
        wanted[i] = (double)separate[i];
    if (bits)
        assert_memory_equal(grouped, separate, count * sizeof(float));
    /* 2,048 terms in another order: their rounding is of the sum of magnitudes, 0.25 each, compared
     * with which a result of about 15 is small. */
    check_close("grouped", grouped, wanted, count, 2e-5);
    free(wanted);
}

static void test_group(void **state)
{
    (void)state;
    static const struct part {
        enum dtype dtype;
        uint64_t rows;
    } small_batch_parts[] = { { DTYPE_Q4_K, 96 }, { DTYPE_Q6_K, 40 }, { DTYPE_Q8_0, 7 } },
      many_parts[] = { { DTYPE_Q4_K, 96 }, { DTYPE_Q5_K, 40 }, { DTYPE_Q4_K, 7 } };
    static const uint64_t tokens[] = { 1, 2, 3, 8, 40 };
    for (int path = 0; path < CPU_PATH_COUNT; path++) {
        if (!lab_has_path((enum cpu_path)path))
            continue;
        struct lab lab;
        lab_open(&lab, (enum cpu_path)path, 2);
        for (size_t n = 0; n < COUNT_OF(tokens); n++) {
            bool few = lab_is_host() || tokens[n] <= 8; /* one packing for all types */
            const size_t k = few ? 2048 : 512;
            const struct part *parts = few ? small_batch_parts : many_parts;
            float *x = lab_floats(&lab, k * tokens[n]), *decoded = malloc(k * 96 * sizeof(float));
            struct device_view weights[3], bias, outs[3];
            const struct device_view *weight_list[3], *bias_list[3] = { NULL }, *out_list[3];
            struct device_view input = lab_put_new(&lab, DTYPE_F32, k, tokens[n], x);
            struct device_view packed = lab_view(
                &lab, DTYPE_I8, ops_packed_row_bytes(&lab.ops, DTYPE_Q4_K, k, tokens[n]),
                tokens[n]);
            float *separate[3], *grouped = malloc(96 * tokens[n] * sizeof(float));
            float *bias_values = lab_floats(&lab, 40);
            assert_true(decoded && grouped);
            bias = lab_put_new(&lab, DTYPE_F32, 40, 1, bias_values);
            bias_list[1] = &bias;
            for (size_t i = 0; i < 3; i++) {
                uint8_t *bytes = lab_weights(&lab, parts[i].dtype, k, parts[i].rows, decoded);
                weights[i] = lab_put_new(&lab, parts[i].dtype, k, parts[i].rows, bytes);
                enum dtype held = ops_weight_dtype(&lab.ops, parts[i].dtype, k);
                if (held != parts[i].dtype) { /* as an engine holds them */
                    struct device_view repacked = lab_view(&lab, held, k, parts[i].rows);
                    LAB_OK(&lab, ops_repack(&lab.target, &weights[i], &repacked, &lab.err));
                    weights[i] = repacked;
                }
                outs[i] = lab_view(&lab, DTYPE_F32, parts[i].rows, tokens[n]);
                weight_list[i] = &weights[i];
                out_list[i] = &outs[i];
                separate[i] = malloc(parts[i].rows * tokens[n] * sizeof(float));
                assert_non_null(separate[i]);
                multiply(&lab, &weights[i], x, k, tokens[n], bias_list[i], separate[i]);
                free(bytes);
            }
            for (size_t i = 1; i < 3; i++)
                assert_true(
                    ops_same_packing(&lab.ops, weights[0].dtype, weights[i].dtype, k, tokens[n]));
            LAB_OK(&lab, ops_act_pack(&lab.target, &input, &packed, DTYPE_Q4_K, &lab.err));
            for (size_t count = 1; count <= 3; count++) {
                LAB_OK(&lab, ops_matmul_group(&lab.target, count, weight_list, &packed, bias_list,
                                              out_list, &lab.err));
                lab_get(&lab, &outs[count - 1], grouped);
                check_grouped(grouped, separate[count - 1], parts[count - 1].rows * tokens[n],
                              lab_is_host() || tokens[n] == 1);
            }
            for (size_t i = 0; i < 3; i++)
                free(separate[i]);
            free(bias_values);
            free(grouped);
            free(decoded);
            free(x);
        }
        lab_close(&lab);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab, CPU_PATH_COUNT, 1);
    struct device_view weights = lab_view(&lab, DTYPE_Q8_0, 64, 8);
    struct device_view packed = lab_view(&lab, DTYPE_I8,
                                         ops_packed_row_bytes(&lab.ops, DTYPE_Q8_0, 64, 3), 3);
    struct device_view out = lab_view(&lab, DTYPE_F32, 8, 3), wrong = out;
    struct device_view short_packed = packed;
    short_packed.shape.dims[0] -= 64;
    CHECK_FAILS(ops_matmul(&lab.target, &weights, &short_packed, NULL, &out, &lab.err),
                STATUS_REFUSED, &lab.err);
    check_contains("short rows", lab.err.text, "matmul");
    wrong.shape.dims[0] = 7;
    CHECK_FAILS(ops_matmul(&lab.target, &weights, &packed, NULL, &wrong, &lab.err), STATUS_REFUSED,
                &lab.err);
    check_contains("rows", lab.err.text, "expected rows = 8");
    wrong = out;
    wrong.shape.dims[1] = 2;
    CHECK_FAILS(ops_matmul(&lab.target, &weights, &packed, NULL, &wrong, &lab.err), STATUS_REFUSED,
                &lab.err);
    check_contains("tokens", lab.err.text, "tokens");
    CHECK_FAILS(ops_matmul(&lab.target, &out, &packed, NULL, &out, &lab.err), STATUS_REFUSED,
                &lab.err);
    /* Kernels read packed rows 16 bytes at a time. */
    struct device_view odd = lab_view(&lab, DTYPE_I8, packed.shape.dims[0], 4);
    odd.shape.dims[1] = 3;
    odd.offset_bytes = 8;
    CHECK_FAILS(ops_matmul(&lab.target, &weights, &odd, NULL, &out, &lab.err), STATUS_REFUSED,
                &lab.err);
    check_contains("misaligned", lab.err.text, "operand packed: expected an offset and stride");
    struct device_view rows = lab_view(&lab, DTYPE_F32, 64, 3);
    CHECK_FAILS(ops_act_pack(&lab.target, &rows, &odd, DTYPE_Q8_0, &lab.err), STATUS_REFUSED,
                &lab.err);
    check_contains("misaligned", lab.err.text, "multiples of 16");
    /* What was sealed is only read. */
    CHECK_OK(device_buffer_seal(lab.device, out.buffer, &lab.err), &lab.err);
    CHECK_FAILS(ops_matmul(&lab.target, &weights, &packed, NULL, &out, &lab.err), STATUS_REFUSED,
                &lab.err);
    check_contains("sealed", lab.err.text, "expected memory that may be written");
    lab_close(&lab);
}

int main(int argument_count, char **arguments)
{
    if (!lab_choose(argument_count, arguments))
        return LAB_SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_type_and_path),
        cmocka_unit_test(test_group),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
