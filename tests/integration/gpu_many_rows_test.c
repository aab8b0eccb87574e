/* gpu_many_rows_test.c - what a GPU does in other ways for many tokens than for a few, except
 * matmul (gpu_many_test.c): rows packed as halves, against the same rows and those of the host;
 * attention on matrix units, against sums of f64. Outputs are poisoned first, guards stand next to
 * every operand, and two runs give the same bits. The device is the first argument. */
#include "ops_both.h"

/* ---- Packing -------------------------------------------------------------------------------- */

/* Rounded as the host rounds: to the nearest, of two the even one. */
static void check_packed_bf16(const char *name, const struct device_view *packed,
                              const float *values, uint64_t k, uint64_t tokens)
{
    uint16_t *found = malloc(2 * k * tokens);
    assert_non_null(found);
    assert_int_equal(packed->shape.dims[0], 2 * k);
    lab_get(&gpu, packed, found);
    for (uint64_t i = 0; i < k * tokens; i++)
        if (found[i] != bf16_from_f32(values[i]))
            fail_msg("%s: token %d, value %d: expected bf16 %04x of %a, found %04x", name,
                     (int)(i / k), (int)(i % k), bf16_from_f32(values[i]), (double)values[i],
                     found[i]);
    free(found);
}

static void check_packed(const char *name, const struct device_view *packed, const float *values,
                         uint64_t k, uint64_t tokens)
{
    uint64_t row_bytes = packed->shape.dims[0];
    uint8_t *bytes = malloc(row_bytes * tokens);
    assert_non_null(bytes);
    lab_get(&gpu, packed, bytes);
    for (uint64_t t = 0; t < tokens; t++) {
        float factor;
        double largest = 0;
        memcpy(&factor, bytes + t * row_bytes + 2 * k, sizeof(factor));
        for (uint64_t i = 0; i < k; i++)
            largest = fmax(largest, fabs((double)values[t * k + i]));
        for (uint64_t i = 0; i < k; i++) {
            float half, wanted = values[t * k + i];
            quant_decode_row(DTYPE_F16, bytes + t * row_bytes + 2 * i, 1, &half);
            double found = (double)half * (double)factor;
            double allowed = fabs((double)wanted) * 0x1p-11 + largest * 0x1p-37;
            if (!(fabs(found - (double)wanted) <= allowed))
                fail_msg("%s: token %d, value %d: expected %g, found %g", name, (int)t, (int)i,
                         (double)wanted, found);
        }
    }
    free(bytes);
}

/* What packs rows as it gives them packs them as act_pack does: the same bytes, in any order. */
static void check_same_packing(const char *name, const struct device_view *rows,
                               const struct device_view *packed, enum dtype dtype)
{
    uint64_t bytes = packed->shape.dims[0] * packed->shape.dims[1];
    struct device_view again = lab_view(&gpu, DTYPE_I8, packed->shape.dims[0],
                                        packed->shape.dims[1]);
    uint8_t *found = malloc(bytes), *wanted = malloc(bytes);
    assert_true(found && wanted);
    LAB_OK(&gpu, ops_act_pack(&gpu.target, rows, &again, dtype, &gpu.err));
    lab_get(&gpu, packed, found);
    lab_get(&gpu, &again, wanted);
    if (memcmp(found, wanted, bytes) != 0)
        fail_msg("%s, %s: other bytes than act_pack's", name, dtype_name(dtype));
    lab_drop(&gpu, again);
    free(found);
    free(wanted);
}

/* Each row as the host's, relative to its own largest. */
static void compare_rows(const char *name, struct device_view views[2], double tolerance)
{
    uint64_t width = views[0].shape.dims[0], rows = views[0].shape.dims[1];
    float *wanted = malloc(width * rows * sizeof(float));
    float *found = malloc(width * rows * sizeof(float));
    double *exact = malloc(width * sizeof(double));
    assert_true(wanted && found && exact);
    lab_get(&host, &views[0], wanted);
    lab_get(&gpu, &views[1], found);
    for (uint64_t row = 0; row < rows; row++) {
        for (uint64_t i = 0; i < width; i++)
            exact[i] = (double)wanted[row * width + i];
        check_close(name, found + row * width, exact, width, tolerance);
    }
    free(exact);
    free(found);
    free(wanted);
}

/* How rows are packed for weights of a type. */
typedef void (*packing_check)(const char *name, const struct device_view *packed,
                              const float *values, uint64_t k, uint64_t tokens);

static void check_packing(uint64_t k, enum dtype weight_dtype, packing_check check)
{
    enum { TOKENS = 9 };
    float *values = lab_floats(&gpu, k * TOKENS), *ones = lab_floats(&gpu, k * TOKENS);
    float *result = malloc(k * TOKENS * sizeof(float));
    assert_non_null(result);
    for (size_t i = 0; i < k; i++)
        values[i] *= i < 64 ? 1e-30f : 1e15f; /* squares that f32 can add up */
    struct device_view x[2], weight[2], up[2], out[2];
    both(x, DTYPE_F32, k, TOKENS, values);
    both(weight, DTYPE_F32, k, 1, ones);
    both(up, DTYPE_F32, k, TOKENS, ones);
    both(out, DTYPE_F32, k, TOKENS, NULL);
    struct device_view packed = lab_view(
        &gpu, DTYPE_I8, ops_packed_row_bytes(&gpu.ops, weight_dtype, k, TOKENS), TOKENS);
    struct ops_packing packing = { &packed, weight_dtype };
    LAB_OK(&gpu, ops_act_pack(&gpu.target, &x[1], &packed, weight_dtype, &gpu.err));
    check("act_pack", &packed, values, k, TOKENS);
    BOTH_OK(ops_swiglu(&lab->target, &x[side], &up[side], &out[side], side ? &packing : NULL,
                       &lab->err));
    lab_get(&gpu, &out[1], result);
    check("swiglu", &packed, result, k, TOKENS);
    compare_rows("swiglu", out, 2e-6);
    BOTH_OK(ops_rms_norm(&lab->target, &x[side], &up[side], &weight[side], &out[side],
                         side ? &packing : NULL, 1e-5f, &lab->err));
    lab_get(&gpu, &out[1], result);
    check("rms_norm", &packed, result, k, TOKENS);
    compare_rows("rms_norm", out, 2e-6);
    compare("x of rms_norm", x, 0);
    packing.weight_dtype = DTYPE_Q8_0_X8; /* in another order, where the chip has lanes for it */
    if (weight_dtype == DTYPE_Q8_0) {
        LAB_OK(&gpu, ops_swiglu(&gpu.target, &x[1], &up[1], &out[1], &packing, &gpu.err));
        check_same_packing("swiglu", &out[1], &packed, packing.weight_dtype);
        LAB_OK(&gpu, ops_rms_norm(&gpu.target, &x[1], &up[1], &weight[1], &out[1], &packing, 1e-5f,
                                  &gpu.err));
        check_same_packing("rms_norm", &out[1], &packed, packing.weight_dtype);
    }
    drop_both(x);
    drop_both(weight);
    drop_both(up);
    drop_both(out);
    lab_drop(&gpu, packed);
    free(result);
    free(ones);
    free(values);
}

static void test_packing(void **state)
{
    (void)state;
    static const uint64_t widths[] = { 64, 4160, 20480 }; /* longer than what threads keep */
    for (size_t i = 0; i < COUNT_OF(widths); i++) {
        check_packing(widths[i], DTYPE_Q8_0, check_packed);
        check_packing(widths[i], DTYPE_BF16, check_packed_bf16);
    }
}

/* ---- Attention ------------------------------------------------------------------------------ */

struct scene {
    uint64_t head_dim, kv_heads, group, slots, tokens;
    uint32_t sequences;
};

/* Tokens of a sequence lie together; the last ones are the end of it. */
static void place_tokens(const struct scene *scene, int32_t *starts, int32_t *positions)
{
    uint64_t each = scene->tokens / scene->sequences, room = scene->slots / scene->sequences;
    for (uint64_t t = 0; t < scene->tokens; t++) {
        uint64_t sequence = t / each < scene->sequences ? t / each : scene->sequences - 1;
        uint64_t last = sequence + 1 == scene->sequences ? scene->tokens : (sequence + 1) * each;
        starts[t] = (int32_t)(sequence * room);
        positions[t] = (int32_t)(room - (last - t));
    }
}

static void attend(const struct scene *scene, const float *q, const float *cache,
                   const int32_t *starts, const int32_t *positions, double *out)
{
    uint64_t d = scene->head_dim, kv_dim = d * scene->kv_heads;
    double *weights = malloc(scene->slots * sizeof(double));
    assert_non_null(weights);
    for (uint64_t t = 0; t < scene->tokens; t++)
        for (uint64_t h = 0; h < scene->kv_heads * scene->group; h++) {
            const float *query = q + (t * scene->kv_heads * scene->group + h) * d;
            const float *keys = cache + (uint64_t)starts[t] * kv_dim + h / scene->group * d;
            double largest = -INFINITY, sum = 0;
            double *result = out + (t * scene->kv_heads * scene->group + h) * d;
            for (int32_t s = 0; s <= positions[t]; s++) {
                weights[s] = 0;
                for (uint64_t i = 0; i < d; i++)
                    weights[s] += (double)query[i] * (double)keys[(uint64_t)s * kv_dim + i] * 0.2;
                largest = fmax(largest, weights[s]);
            }
            memset(result, 0, d * sizeof(double));
            for (int32_t s = 0; s <= positions[t]; s++) {
                double weight = exp(weights[s] - largest);
                sum += weight;
                for (uint64_t i = 0; i < d; i++)
                    result[i] += weight * (double)keys[(uint64_t)s * kv_dim + i];
            }
            for (uint64_t i = 0; i < d; i++)
                result[i] /= sum;
        }
    free(weights);
}

static void check_attention(const struct scene *scene, bool same_sequence)
{
    static const enum dtype packings[] = { DTYPE_Q8_0, DTYPE_Q8_0_X8, DTYPE_BF16 };
    const struct ops_attention_settings settings = { .head_dim = (uint32_t)scene->head_dim,
                                                     .scale = 0.2f,
                                                     .same_sequence = same_sequence };
    char name[96];
    uint64_t kv_dim = scene->head_dim * scene->kv_heads, width = kv_dim * scene->group;
    size_t count = width * scene->tokens;
    snprintf(name, sizeof(name), "attention, head %d, %d kv heads x %d, %d slots, %d tokens of %d",
             (int)scene->head_dim, (int)scene->kv_heads, (int)scene->group, (int)scene->slots,
             (int)scene->tokens, (int)scene->sequences);
    float *q_values = lab_floats(&gpu, count), *cache = lab_floats(&gpu, kv_dim * scene->slots);
    uint8_t *halves = malloc(2 * kv_dim * scene->slots);
    float *out_values = malloc(count * sizeof(float)), *again = malloc(count * sizeof(float));
    double *wanted = malloc(count * sizeof(double));
    int32_t *lists = malloc(2 * scene->tokens * sizeof(int32_t));
    assert_true(halves && out_values && again && wanted && lists);
    quant_encode_row(DTYPE_F16, cache, kv_dim * scene->slots, halves);
    quant_decode_row(DTYPE_F16, halves, kv_dim * scene->slots, cache);
    place_tokens(scene, lists, lists + scene->tokens);
    struct device_view keys = lab_put_new(&gpu, DTYPE_F16, kv_dim, scene->slots, halves);
    struct device_view q = lab_put_new(&gpu, DTYPE_F32, width, scene->tokens, q_values);
    struct device_view start = lab_put_new(&gpu, DTYPE_I32, scene->tokens, 1, lists);
    struct device_view position = lab_put_new(&gpu, DTYPE_I32, scene->tokens, 1,
                                              lists + scene->tokens);
    struct device_view out = lab_view(&gpu, DTYPE_F32, width, scene->tokens);
    attend(scene, q_values, cache, lists, lists + scene->tokens, wanted);
    for (int run = 0; run < 2; run++) {
        LAB_OK(&gpu, ops_attention(&gpu.target, &q, &keys, &keys, &start, &position, &out, NULL,
                                   &settings, &gpu.err));
        lab_get(&gpu, &out, run ? again : out_values);
    }
    check_close(name, out_values, wanted, count, 2e-3);
    double error = normalised_error(out_values, wanted, count);
    if (!(error < 1e-6))
        fail_msg("%s: normalised error %g", name, error);
    if (memcmp(out_values, again, count * sizeof(float)) != 0)
        fail_msg("%s: two runs give other bits", name);
    for (size_t i = 0; i < COUNT_OF(packings) && scene->tokens > 8; i++) { /* packed as halves */
        enum dtype dtype = packings[i];
        struct device_view packed = lab_view(
            &gpu, DTYPE_I8, ops_packed_row_bytes(&gpu.ops, dtype, width, scene->tokens),
            scene->tokens);
        struct ops_packing packing = { &packed, dtype };
        LAB_OK(&gpu, ops_attention(&gpu.target, &q, &keys, &keys, &start, &position, &out, &packing,
                                   &settings, &gpu.err));
        lab_get(&gpu, &out, again);
        if (dtype == DTYPE_Q8_0)
            check_packed(name, &packed, out_values, width, scene->tokens);
        else if (dtype == DTYPE_BF16)
            check_packed_bf16(name, &packed, again, width, scene->tokens);
        else
            check_same_packing(name, &out, &packed, dtype);
        lab_drop(&gpu, packed);
    }
    lab_drop(&gpu, keys);
    lab_drop(&gpu, q);
    lab_drop(&gpu, start);
    lab_drop(&gpu, position);
    lab_drop(&gpu, out);
    free(lists);
    free(wanted);
    free(again);
    free(out_values);
    free(halves);
    free(cache);
    free(q_values);
}

static void test_attention(void **state)
{
    (void)state;
    static const struct scene scenes[] = {
        { 128, 2, 4, 64, 64, 1 },    { 128, 1, 4, 200, 65, 1 }, { 64, 2, 1, 257, 256, 1 },
        { 128, 1, 7, 70, 70, 1 },    { 64, 1, 8, 130, 33, 1 },  { 128, 1, 4, 300, 101, 3 },
        { 64, 1, 2, 1600, 150, 40 },
    };
    for (size_t i = 0; i < COUNT_OF(scenes); i++)
        check_attention(&scenes[i], true);
}

/* Tokens that are each of another sequence, or nearly: few slots and many, fewer than warps, one
 * past a warp's, groups that fill no tile. */
static void test_attention_apart(void **state)
{
    (void)state;
    static const struct scene scenes[] = {
        { 128, 2, 4, 64, 64, 64 },     { 128, 8, 4, 17 * 40, 40, 40 },
        { 64, 2, 1, 200 * 9, 9, 9 },   { 128, 1, 7, 333 * 5, 5, 5 },
        { 64, 3, 8, 65 * 3, 3, 3 },    { 128, 2, 3, 16 * 21, 21, 21 },
        { 128, 1, 8, 2 * 1030, 2, 2 }, { 64, 8, 2, 300, 12, 4 },
    };
    for (size_t i = 0; i < COUNT_OF(scenes); i++)
        check_attention(&scenes[i], false);
}

/* A bad start or position: a trap each, zeros for the token, and the others as they are. */
static void check_bad_indices(bool same_sequence)
{
    enum { HEAD = 64, GROUP = 4, SLOTS = 80, TOKENS = 70, WIDTH = HEAD * GROUP };
    float *q_values = lab_floats(&gpu, (size_t)WIDTH * TOKENS), *out_values;
    uint16_t halves[HEAD * SLOTS];
    int32_t starts[TOKENS] = { 0 }, positions[TOKENS];
    out_values = malloc((size_t)WIDTH * TOKENS * sizeof(float));
    assert_non_null(out_values);
    for (size_t i = 0; i < HEAD * SLOTS; i++)
        halves[i] = 0x3C00; /* 1 */
    for (int32_t t = 0; t < TOKENS; t++)
        positions[t] = t;
    starts[40] = SLOTS;
    positions[69] = SLOTS;
    struct device_view keys = lab_put_new(&gpu, DTYPE_F16, HEAD, SLOTS, halves);
    struct device_view q = lab_put_new(&gpu, DTYPE_F32, WIDTH, TOKENS, q_values);
    struct device_view start = lab_put_new(&gpu, DTYPE_I32, TOKENS, 1, starts);
    struct device_view position = lab_put_new(&gpu, DTYPE_I32, TOKENS, 1, positions);
    struct device_view out = lab_view(&gpu, DTYPE_F32, WIDTH, TOKENS);
    uint64_t before = gpu.trap_count;
    LAB_OK(&gpu,
           ops_attention(&gpu.target, &q, &keys, &keys, &start, &position, &out, NULL,
                         &(struct ops_attention_settings){
                             .head_dim = HEAD, .scale = 0.1f, .same_sequence = same_sequence },
                         &gpu.err));
    lab_get(&gpu, &out, out_values);
    LAB_OK(&gpu, device_stream_sync(gpu.device, gpu.target.stream, DEVICE_HERE, &gpu.err));
    assert_int_equal(gpu.trap_count - before, 2);
    for (size_t t = 0; t < TOKENS; t++)
        for (size_t i = 0; i < WIDTH; i++) {
            double wanted = t == 40 || t == 69 ? 0.0 : 1.0;
            assert_true(fabs((double)out_values[t * WIDTH + i] - wanted) < 1e-3);
        }
    lab_drop(&gpu, keys);
    lab_drop(&gpu, q);
    lab_drop(&gpu, start);
    lab_drop(&gpu, position);
    lab_drop(&gpu, out);
    free(out_values);
    free(q_values);
}

static void test_bad_indices(void **state)
{
    (void)state;
    check_bad_indices(true);
    check_bad_indices(false);
}

int main(int argument_count, char **arguments)
{
    if (!lab_choose_named(argument_count, arguments))
        return LAB_SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packing),
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_attention_apart),
        cmocka_unit_test(test_bad_indices),
    };
    return cmocka_run_group_tests(tests, open_labs, close_labs);
}
