/* gpu_many_test.c - what a GPU does in other ways for many tokens than for a few: rows packed as
 * halves, products and attention on matrix units. Against sums of f64; outputs are poisoned first,
 * guards stand beside every operand, and two runs give the same bits. The device is the first
 * argument. */
#include "ops_lab.h"

static struct lab gpu;

/* ---- Products ------------------------------------------------------------------------------- */

struct product {
    enum dtype dtype;
    uint64_t k, rows, tokens;
};

static uint8_t *random_rows(enum dtype dtype, uint64_t k, uint64_t rows, float *decoded)
{
    uint64_t row_bytes = 0;
    assert_true(dtype_row_bytes(dtype, k, &row_bytes));
    uint8_t *bytes = malloc(row_bytes * rows);
    assert_non_null(bytes);
    for (size_t i = 0; i < k * rows; i++)
        decoded[i] = lab_random(&gpu) * 0.1f;
    quant_encode_row(dtype, decoded, k * rows, bytes);
    quant_decode_row(dtype, bytes, k * rows, decoded);
    return bytes;
}

/* Lays weights out as an engine does. A buffer is gone at once, whatever is queued: the kernel that
 * reads it is waited for. */
static void hold_as_engine(struct device_view *weights)
{
    uint64_t k = weights->shape.dims[0], rows = weights->shape.dims[1];
    enum dtype held = ops_weight_dtype(&gpu.ops, weights->dtype, k);
    if (held == weights->dtype)
        return;
    struct device_view relaid = lab_view(&gpu, held, k, rows);
    LAB_OK(&gpu, ops_relay(&gpu.target, weights, &relaid, &gpu.err));
    LAB_OK(&gpu, device_stream_sync(gpu.device, gpu.target.stream, DEVICE_HERE, &gpu.err));
    lab_drop(&gpu, *weights);
    *weights = relaid;
}

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

static void check_product(const struct product *p, double tolerance)
{
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
    uint8_t *bytes = random_rows(p->dtype, p->k, p->rows, decoded);
    struct device_view weights = lab_put_new(&gpu, p->dtype, p->k, p->rows, bytes);
    struct device_view bias = lab_put_new(&gpu, DTYPE_F32, p->rows, 1, bias_values);
    struct device_view input = lab_put_new(&gpu, DTYPE_F32, p->k, p->tokens, x);
    hold_as_engine(&weights);
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
        error /= powers[t]; /* of products, not of sums, which may be near 0 */
        if (!(error < tolerance))
            fail_msg("%s: token %zu: normalised error %g", name, t, error);
    }
    if (memcmp(out, again, count * sizeof(float)) != 0)
        fail_msg("%s: two runs give other bits", name);
    lab_drop(&gpu, weights);
    lab_drop(&gpu, bias);
    lab_drop(&gpu, input);
    free(bytes);
    free(powers);
    free(wanted);
    free(again);
    free(out);
    free(bias_values);
    free(x);
    free(decoded);
}

/* Halves have 11 bits, bf16 8, levels of activations, which chips take for a few tokens, 7: a
 * product of random numbers keeps about so much. */
#define F16_TOLERANCE 1e-6
#define BF16_TOLERANCE 2e-5
#define FEW_TOLERANCE 1e-4

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
    };
    for (size_t i = 0; i < COUNT_OF(products); i++)
        check_product(&products[i], F16_TOLERANCE);
    static const struct product rounded[] = {
        { DTYPE_BF16, 64, 3, 9 },
        { DTYPE_BF16, 1600, 131, 65 },
        { DTYPE_BF16, 448, 300, 389 },
    };
    for (size_t i = 0; i < COUNT_OF(rounded); i++)
        check_product(&rounded[i], BF16_TOLERANCE);
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
        uint8_t *bytes = random_rows(types[part], k, rows[part], decoded[part]);
        weights[part] = lab_put_new(&gpu, types[part], k, rows[part], bytes);
        hold_as_engine(&weights[part]);
        outs[part] = lab_view(&gpu, DTYPE_F32, rows[part], tokens);
        weight_list[part] = &weights[part];
        out_list[part] = &outs[part];
        free(bytes);
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
        double *wanted = calloc(count, sizeof(double));
        assert_true(found && wanted);
        lab_get(&gpu, &outs[part], found);
        for (size_t t = 0; t < tokens; t++)
            for (size_t r = 0; r < rows[part]; r++) {
                double *sum = &wanted[t * rows[part] + r];
                *sum = part == 1 ? (double)bias_values[r] : 0;
                for (size_t i = 0; i < k; i++)
                    *sum += (double)decoded[part][r * k + i] * (double)x[t * k + i];
            }
        double error = normalised_error(found, wanted, count);
        if (!(error < 1e-6))
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

/* Products of levels: one share of k and two, splits, shares with nothing to do, rows that fill no
 * team (too few for one: done otherwise), no warpgroup, no tile, one beyond each; fewer tokens than
 * other kernels take, and more. */
static void test_levels(void **state)
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
        check_product(&products[i], products[i].tokens > 8 ? F16_TOLERANCE : FEW_TOLERANCE);
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
    uint8_t *bytes = random_rows(DTYPE_Q8_0, K, ROWS, decoded);
    struct device_view weights = lab_put_new(&gpu, DTYPE_Q8_0, K, ROWS, bytes);
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
    free(bytes);
    free(x);
}

/* ---- Packing -------------------------------------------------------------------------------- */

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

static void check_packing(uint64_t k)
{
    enum { TOKENS = 9 };
    float *values = lab_floats(&gpu, k * TOKENS), *ones = lab_floats(&gpu, k * TOKENS);
    float *result = malloc(k * TOKENS * sizeof(float));
    assert_non_null(result);
    for (size_t i = 0; i < k; i++)
        values[i] *= i < 64 ? 1e-30f : 1e20f;
    struct device_view x = lab_put_new(&gpu, DTYPE_F32, k, TOKENS, values);
    struct device_view weight = lab_put_new(&gpu, DTYPE_F32, k, 1, ones);
    struct device_view up = lab_put_new(&gpu, DTYPE_F32, k, TOKENS, ones);
    struct device_view out = lab_view(&gpu, DTYPE_F32, k, TOKENS);
    struct device_view packed = lab_view(
        &gpu, DTYPE_I8, ops_packed_row_bytes(&gpu.ops, DTYPE_Q8_0, k, TOKENS), TOKENS);
    struct ops_packing packing = { &packed, DTYPE_Q8_0 };
    LAB_OK(&gpu, ops_act_pack(&gpu.target, &x, &packed, DTYPE_Q8_0, &gpu.err));
    check_packed("act_pack", &packed, values, k, TOKENS);
    LAB_OK(&gpu, ops_swiglu(&gpu.target, &x, &up, &out, &packing, &gpu.err));
    lab_get(&gpu, &out, result);
    check_packed("swiglu", &packed, result, k, TOKENS);
    LAB_OK(&gpu, ops_rms_norm(&gpu.target, &x, &up, &weight, &out, &packing, 1e-5f, &gpu.err));
    lab_get(&gpu, &out, result);
    check_packed("rms_norm", &packed, result, k, TOKENS);
    packing.weight_dtype = DTYPE_Q8_0_X8; /* in another order, where the chip has lanes for it */
    LAB_OK(&gpu, ops_swiglu(&gpu.target, &x, &up, &out, &packing, &gpu.err));
    check_same_packing("swiglu", &out, &packed, packing.weight_dtype);
    LAB_OK(&gpu, ops_rms_norm(&gpu.target, &x, &up, &weight, &out, &packing, 1e-5f, &gpu.err));
    check_same_packing("rms_norm", &out, &packed, packing.weight_dtype);
    lab_drop(&gpu, x);
    lab_drop(&gpu, weight);
    lab_drop(&gpu, up);
    lab_drop(&gpu, out);
    lab_drop(&gpu, packed);
    free(result);
    free(ones);
    free(values);
}

static void test_packing(void **state)
{
    (void)state;
    check_packing(64);
    check_packing(4160);
    check_packing(20480); /* longer than what threads keep */
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

static void check_attention(const struct scene *scene, bool together)
{
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
                                   (uint32_t)scene->head_dim, 0.2f, together, &gpu.err));
        lab_get(&gpu, &out, run ? again : out_values);
    }
    check_close(name, out_values, wanted, count, 2e-3);
    double error = normalised_error(out_values, wanted, count);
    if (!(error < 1e-6))
        fail_msg("%s: normalised error %g", name, error);
    if (memcmp(out_values, again, count * sizeof(float)) != 0)
        fail_msg("%s: two runs give other bits", name);
    if (scene->tokens > 8) { /* packed as halves */
        struct device_view packed = lab_view(
            &gpu, DTYPE_I8, ops_packed_row_bytes(&gpu.ops, DTYPE_Q8_0, width, scene->tokens),
            scene->tokens);
        struct ops_packing packing = { &packed, DTYPE_Q8_0 };
        LAB_OK(&gpu, ops_attention(&gpu.target, &q, &keys, &keys, &start, &position, &out, &packing,
                                   (uint32_t)scene->head_dim, 0.2f, together, &gpu.err));
        check_packed(name, &packed, out_values, width, scene->tokens);
        packing.weight_dtype = DTYPE_Q8_0_X8;
        LAB_OK(&gpu, ops_attention(&gpu.target, &q, &keys, &keys, &start, &position, &out, &packing,
                                   (uint32_t)scene->head_dim, 0.2f, together, &gpu.err));
        check_same_packing(name, &out, &packed, packing.weight_dtype);
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

/* Tokens that are each of another sequence, or nearly: few slots and many, fewer than teams, one
 * past a team's, groups that fill no product. */
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
static void check_bad_indices(bool together)
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
    LAB_OK(&gpu, ops_attention(&gpu.target, &q, &keys, &keys, &start, &position, &out, NULL, HEAD,
                               0.1f, together, &gpu.err));
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
        cmocka_unit_test(test_products),        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_groups),          cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_packing),         cmocka_unit_test(test_attention),
        cmocka_unit_test(test_attention_apart), cmocka_unit_test(test_bad_indices),
    };
    return cmocka_run_group_tests(tests, open_lab, close_lab);
}
