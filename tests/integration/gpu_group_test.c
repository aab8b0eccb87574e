/* gpu_group_test.c - products of one token in one launch, of parts whose types and heights differ,
 * against each by itself. The device is the first argument. */
#include "ops_lab.h"

static struct lab gpu;

struct part {
    enum dtype dtype;
    uint64_t rows;
};

/* Laid out as an engine has them. */
static struct device_view make_weights(const struct part *part, uint64_t k)
{
    uint64_t row_bytes = 0;
    assert_true(dtype_row_bytes(part->dtype, k, &row_bytes));
    float *values = lab_floats(&gpu, k * part->rows);
    uint8_t *bytes = malloc(row_bytes * part->rows);
    assert_non_null(bytes);
    quant_encode_row(part->dtype, values, k * part->rows, bytes);
    struct device_view weights = lab_put_new(&gpu, part->dtype, k, part->rows, bytes);
    enum dtype held = ops_weight_dtype(&gpu.ops, part->dtype, k);
    if (held != part->dtype) {
        struct device_view relaid = lab_view(&gpu, held, k, part->rows);
        LAB_OK(&gpu, ops_relay(&gpu.target, &weights, &relaid, &gpu.err));
        LAB_OK(&gpu, device_stream_sync(gpu.device, gpu.target.stream, DEVICE_HERE, &gpu.err));
        lab_drop(&gpu, weights);
        weights = relaid;
    }
    free(bytes);
    free(values);
    return weights;
}

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

/* A row's bits depend on its type and k alone: those of a group are those of each part. */
static void check_group(uint64_t k, const struct part *parts, size_t count)
{
    float *x = lab_floats(&gpu, k), *bias_values = lab_floats(&gpu, parts[0].rows);
    struct device_view weights[3], outs[3], alone[3];
    const struct device_view *weight_list[3], *out_list[3], *bias_list[3] = { NULL };
    struct device_view input = lab_put_new(&gpu, DTYPE_F32, k, 1, x);
    struct device_view bias = lab_put_new(&gpu, DTYPE_F32, parts[0].rows, 1, bias_values);
    struct device_view packed = lab_view(&gpu, DTYPE_I8,
                                         ops_packed_row_bytes(&gpu.ops, parts[0].dtype, k, 1), 1);
    bias_list[0] = &bias;
    LAB_OK(&gpu, ops_act_pack(&gpu.target, &input, &packed, parts[0].dtype, &gpu.err));
    for (size_t i = 0; i < count; i++) {
        weights[i] = make_weights(&parts[i], k);
        outs[i] = lab_view(&gpu, DTYPE_F32, parts[i].rows, 1);
        alone[i] = lab_view(&gpu, DTYPE_F32, parts[i].rows, 1);
        weight_list[i] = &weights[i];
        out_list[i] = &outs[i];
        LAB_OK(&gpu,
               ops_matmul(&gpu.target, &weights[i], &packed, bias_list[i], &alone[i], &gpu.err));
    }
    LAB_OK(&gpu, ops_matmul_group(&gpu.target, count, weight_list, &packed, bias_list, out_list,
                                  &gpu.err));
    for (size_t i = 0; i < count; i++) {
        char name[96];
        snprintf(name, sizeof(name), "part %d of k %d: %s, %d rows", (int)i, (int)k,
                 dtype_name(parts[i].dtype), (int)parts[i].rows);
        check_same(name, &alone[i], &outs[i]);
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
    for (size_t i = 0; i < COUNT_OF(groups); i++)
        check_group(groups[i].k, groups[i].parts, groups[i].count);
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
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_groups) };
    return cmocka_run_group_tests(tests, open_lab, close_lab);
}
