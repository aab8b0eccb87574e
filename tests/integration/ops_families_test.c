/* ops_families_test.c - the ops that not every architecture needs, against float64 on every path:
 * gelu, scale and caps, layer norms, attention with windows, caps and sinks, temperature by
 * position. The device is the first argument, else the host. */
#include "ops_lab.h"

#include "tensor/quant.h"

/* ---- Values --------------------------------------------------------------------------------- */

/* x / 2 (1 + tanh(u)), without the bits that 1 + tanh(u) loses far below 0. */
static double gelu_of(double x)
{
    double u = sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x);
    return x / (1 + exp(-2 * u));
}

/* Each value within `tolerance` of itself, or where it is next to nothing, of the smallest normal
 * number. */
static void check_each(const char *name, const float *found, const double *wanted, size_t count,
                       double tolerance)
{
    for (size_t i = 0; i < count; i++)
        if (!(fabs((double)found[i] - wanted[i]) <= tolerance * fabs(wanted[i]) + 1e-37))
            fail_msg("%s: value %zu: expected %.9g, found %.9g", name, i, wanted[i],
                     (double)found[i]);
}

/* Values of every size around those that are drawn. */
static float *make_values(struct lab *lab, size_t count)
{
    float *values = lab_floats(lab, count);
    for (size_t i = 0; i < count; i++)
        values[i] *= (float)ldexp(1, (int)(i % 14) - 9);
    return values;
}

static void check_gelu(struct lab *lab, uint64_t width, uint64_t tokens, bool gated)
{
    size_t count = (size_t)(width * tokens);
    float *x = make_values(lab, count), *up = lab_floats(lab, count);
    float *found = malloc(count * sizeof(*found));
    double *wanted = malloc(count * sizeof(*wanted));
    assert_true(found && wanted);
    struct device_view in = lab_put_new(lab, DTYPE_F32, width, tokens, x);
    struct device_view times = lab_put_new(lab, DTYPE_F32, width, tokens, up);
    struct device_view out = lab_view(lab, DTYPE_F32, width, tokens);
    for (size_t i = 0; i < count; i++)
        wanted[i] = gelu_of((double)x[i]) * (gated ? (double)up[i] : 1);
    LAB_OK(lab, ops_gelu(&lab->target, &in, gated ? &times : NULL, &out, NULL, &lab->err));
    lab_get(lab, &out, found);
    check_close("gelu", found, wanted, count, 3e-7);
    check_each("gelu", found, wanted, count, 3e-5); /* far below 0 it is a small exponential */
    LAB_OK(lab, ops_gelu(&lab->target, &in, gated ? &times : NULL, &in, NULL, &lab->err));
    float *again = malloc(count * sizeof(*again));
    assert_non_null(again);
    lab_get(lab, &in, again);
    assert_memory_equal(again, found, count * sizeof(*again)); /* in place */
    struct device_view all[] = { in, times, out };
    for (size_t i = 0; i < COUNT_OF(all); i++)
        lab_drop(lab, all[i]);
    free(again);
    free(wanted);
    free(found);
    free(up);
    free(x);
}

static void check_scale(struct lab *lab, uint64_t width, uint64_t tokens, float factor, float cap)
{
    size_t count = (size_t)(width * tokens);
    float *x = make_values(lab, count), *found = malloc(count * sizeof(*found));
    double *wanted = malloc(count * sizeof(*wanted));
    assert_true(found && wanted);
    struct device_view view = lab_put_new(lab, DTYPE_F32, width, tokens, x);
    for (size_t i = 0; i < count; i++) {
        wanted[i] = (double)x[i] * (double)factor;
        if (cap > 0)
            wanted[i] = (double)cap * tanh(wanted[i] / (double)cap);
    }
    LAB_OK(lab, ops_scale(&lab->target, &view, factor, cap, &lab->err));
    lab_get(lab, &view, found);
    check_each("scale", found, wanted, count, 6e-7);
    lab_drop(lab, view);
    free(wanted);
    free(found);
    free(x);
}

static const uint64_t value_shapes[][2] = {
    { 1, 1 }, { 7, 5 }, { 33, 2 }, { 1100, 3 }, { 2500, 9 }
};

static void test_values(void **state)
{
    (void)state;
    for (int path = 0; path < CPU_PATH_COUNT; path++) {
        if (!lab_has_path((enum cpu_path)path))
            continue;
        struct lab lab;
        lab_open(&lab, (enum cpu_path)path, 2);
        for (size_t i = 0; i < COUNT_OF(value_shapes); i++) {
            check_gelu(&lab, value_shapes[i][0], value_shapes[i][1], true);
            check_gelu(&lab, value_shapes[i][0], value_shapes[i][1], false);
            check_scale(&lab, value_shapes[i][0], value_shapes[i][1], 0.3f, 0);
            check_scale(&lab, value_shapes[i][0], value_shapes[i][1], 4.5f, 2.5f);
        }
        lab_close(&lab);
    }
}

/* Nothing that is not a number becomes one, and a cap bounds infinity. */
static void test_not_finite(void **state)
{
    (void)state;
    for (int path = 0; path < CPU_PATH_COUNT; path++) {
        if (!lab_has_path((enum cpu_path)path))
            continue;
        struct lab lab;
        lab_open(&lab, (enum cpu_path)path, 1);
        float x[4] = { NAN, INFINITY, -INFINITY, 1 }, found[4];
        struct device_view view = lab_put_new(&lab, DTYPE_F32, 4, 1, x);
        struct device_view out = lab_view(&lab, DTYPE_F32, 4, 1);
        LAB_OK(&lab, ops_gelu(&lab.target, &view, NULL, &out, NULL, &lab.err));
        lab_get(&lab, &out, found);
        assert_true(isnan(found[0]) && found[1] == INFINITY && isfinite(found[3]));
        LAB_OK(&lab, ops_scale(&lab.target, &view, 1, 30, &lab.err));
        lab_get(&lab, &view, found);
        assert_true(isnan(found[0]) && found[1] == 30 && found[2] == -30);
        lab_close(&lab);
    }
}

/* ---- Layer norm ----------------------------------------------------------------------------- */

static void normalise_group(const float *x, const float *weight, const float *bias, size_t count,
                            double *wanted)
{
    double mean = 0, variance = 0;
    for (size_t i = 0; i < count; i++)
        mean += (double)x[i] / (double)count;
    for (size_t i = 0; i < count; i++)
        variance += ((double)x[i] - mean) * ((double)x[i] - mean) / (double)count;
    for (size_t i = 0; i < count; i++)
        wanted[i] = ((double)x[i] - mean) / sqrt(variance + 1e-5) * (double)weight[i] +
                    (bias ? (double)bias[i] : 0);
}

static void check_layer_norm(struct lab *lab, uint64_t width, uint32_t group, bool with_added,
                             bool with_bias)
{
    enum { TOKENS = 5 };
    size_t count = (size_t)width * TOKENS, step = group ? group : (size_t)width;
    float *x = lab_floats(lab, count), *more = lab_floats(lab, count);
    float *weight = lab_floats(lab, (size_t)width), *bias = lab_floats(lab, (size_t)width);
    float *found = malloc(count * sizeof(*found));
    double *wanted = malloc(count * sizeof(*wanted));
    assert_true(found && wanted);
    for (size_t i = 0; i < count; i++)
        x[i] += 3; /* a mean that counts */
    struct device_view in = lab_put_new(lab, DTYPE_F32, width, TOKENS, x);
    struct device_view added = lab_put_new(lab, DTYPE_F32, width, TOKENS, more);
    struct device_view weights = lab_put_new(lab, DTYPE_F32, width, 1, weight);
    struct device_view biases = lab_put_new(lab, DTYPE_F32, width, 1, bias);
    struct device_view out = lab_view(lab, DTYPE_F32, width, TOKENS);
    for (size_t i = 0; with_added && i < count; i++)
        x[i] += more[i];
    for (size_t i = 0; i < count; i += step)
        normalise_group(x + i, weight + i % width, with_bias ? bias + i % width : NULL, step,
                        wanted + i);
    struct ops_layer_norm_settings settings = { .epsilon = 1e-5f, .group = group };
    LAB_OK(lab, ops_layer_norm(&lab->target, &in, with_added ? &added : NULL, &weights,
                               with_bias ? &biases : NULL, &out, NULL, &settings, &lab->err));
    lab_get(lab, &out, found);
    check_close("layer_norm", found, wanted, count, 3e-6);
    lab_get(lab, &in, found);
    assert_memory_equal(found, x, count * sizeof(*x)); /* the sum, and nothing else */
    LAB_OK(lab, ops_layer_norm(&lab->target, &in, NULL, &weights, with_bias ? &biases : NULL, &in,
                               NULL, &settings, &lab->err));
    lab_get(lab, &in, found);
    check_close("layer_norm in place", found, wanted, count, 3e-6);
    struct device_view all[] = { in, added, weights, biases, out };
    for (size_t i = 0; i < COUNT_OF(all); i++)
        lab_drop(lab, all[i]);
    free(wanted);
    free(found);
    free(bias);
    free(weight);
    free(more);
    free(x);
}

static void test_layer_norm(void **state)
{
    (void)state;
    for (int path = 0; path < CPU_PATH_COUNT; path++) {
        if (!lab_has_path((enum cpu_path)path))
            continue;
        struct lab lab;
        lab_open(&lab, (enum cpu_path)path, 2);
        check_layer_norm(&lab, 1, 0, false, false);
        check_layer_norm(&lab, 40, 0, true, true);
        check_layer_norm(&lab, 1037, 0, true, false);
        check_layer_norm(&lab, 96, 24, false, false);
        check_layer_norm(&lab, 96, 32, true, true);
        float ones[64] = { 0 };
        struct device_view x = lab_put_new(&lab, DTYPE_F32, 64, 1, ones);
        struct device_view weight = lab_put_new(&lab, DTYPE_F32, 64, 1, ones);
        struct ops_layer_norm_settings settings = { .epsilon = 1e-5f, .group = 24 };
        CHECK_FAILS(
            ops_layer_norm(&lab.target, &x, NULL, &weight, NULL, &x, NULL, &settings, &lab.err),
            STATUS_REFUSED, &lab.err);
        lab_close(&lab);
    }
}

/* ---- Attention ------------------------------------------------------------------------------ */

#define TOKENS 11u
#define SLOTS 900u

/* Around chunks and windows; neighbours of one sequence, and of several. */
static const int32_t starts[TOKENS] = { 0, 0, 0, 0, 0, 0, 300, 300, 300, 800, 899 };
static const int32_t positions[TOKENS] = { 296, 297, 298, 299, 0, 3, 4, 5, 599, 99, 0 };

struct shape_of_heads {
    uint32_t head_dim, kv_heads, group;
    enum dtype cache;
};

struct attention {
    struct shape_of_heads heads;
    float *q, *keys, *values, *sinks; /* as the caches have them */
    struct ops_attention_settings settings;
};

static void attend_one(const struct attention *attention, size_t token, uint32_t head,
                       double *wanted)
{
    const struct shape_of_heads *heads = &attention->heads;
    const struct ops_attention_settings *settings = &attention->settings;
    size_t dim = heads->head_dim, kv_dim = dim * heads->kv_heads;
    const float *q = attention->q + (token * heads->kv_heads * heads->group + head) * dim;
    size_t end = (size_t)positions[token] + 1, first = 0;
    double scores[SLOTS], largest = attention->sinks ? (double)attention->sinks[head] : -INFINITY;
    double sum = 0;
    if (settings->window && end > settings->window)
        first = end - settings->window;
    for (size_t s = first; s < end; s++) {
        const float *key = attention->keys + ((size_t)starts[token] + s) * kv_dim +
                           head / heads->group * dim;
        scores[s] = 0;
        for (size_t d = 0; d < dim; d++)
            scores[s] += (double)q[d] * (double)key[d];
        scores[s] *= (double)settings->scale;
        if (settings->cap > 0)
            scores[s] = (double)settings->cap * tanh(scores[s] / (double)settings->cap);
        largest = fmax(largest, scores[s]);
    }
    if (attention->sinks)
        sum = exp((double)attention->sinks[head] - largest);
    for (size_t s = first; s < end; s++)
        sum += exp(scores[s] - largest);
    for (size_t d = 0; d < dim; d++) {
        wanted[d] = 0;
        for (size_t s = first; s < end; s++)
            wanted[d] += exp(scores[s] - largest) / sum *
                         (double)attention->values[((size_t)starts[token] + s) * kv_dim +
                                                   head / heads->group * dim + d];
    }
}

/* A cache of the type, and the values that it holds. */
static float *make_cache(struct lab *lab, enum dtype dtype, size_t kv_dim,
                         struct device_view *ret_view)
{
    float *values = lab_floats(lab, kv_dim * SLOTS);
    uint64_t row_bytes = 0;
    assert_true(dtype_row_bytes(dtype, kv_dim, &row_bytes));
    uint8_t *bytes = malloc(row_bytes * SLOTS);
    assert_non_null(bytes);
    for (size_t s = 0; s < SLOTS; s++) {
        quant_encode_row(dtype, values + s * kv_dim, kv_dim, bytes + s * row_bytes);
        quant_decode_row(dtype, bytes + s * row_bytes, kv_dim, values + s * kv_dim);
    }
    *ret_view = lab_put_new(lab, dtype, kv_dim, SLOTS, bytes);
    free(bytes);
    return values;
}

/* All tokens at once and one by one. */
static void run_attention(struct lab *lab, const struct attention *attention,
                          const struct device_view *keys, const struct device_view *values,
                          size_t at_once, float *found)
{
    size_t width = (size_t)attention->heads.head_dim * attention->heads.kv_heads *
                   attention->heads.group;
    struct ops_attention_settings settings = attention->settings;
    settings.same_sequence = at_once > 1;
    for (size_t first = 0; first < TOKENS; first += at_once) {
        struct device_view q = lab_put_new(lab, DTYPE_F32, width, at_once,
                                           attention->q + first * width);
        struct device_view out = lab_view(lab, DTYPE_F32, width, at_once);
        struct device_view start = lab_put_new(lab, DTYPE_I32, at_once, 1, starts + first);
        struct device_view position = lab_put_new(lab, DTYPE_I32, at_once, 1, positions + first);
        LAB_OK(lab, ops_attention(&lab->target, &q, keys, values, &start, &position, &out, NULL,
                                  &settings, &lab->err));
        lab_get(lab, &out, found + first * width);
        struct device_view all[] = { q, out, start, position };
        for (size_t i = 0; i < COUNT_OF(all); i++)
            lab_drop(lab, all[i]);
    }
}

static void check_attention(struct lab *lab, struct shape_of_heads heads, uint32_t window,
                            float cap, bool with_sinks)
{
    size_t kv_dim = (size_t)heads.head_dim * heads.kv_heads, width = kv_dim * heads.group;
    uint32_t head_count = heads.kv_heads * heads.group;
    char name[128];
    snprintf(name, sizeof(name), "head %u, %u x %u, cache %s, window %u, cap %g%s", heads.head_dim,
             heads.kv_heads, heads.group, dtype_name(heads.cache), window, (double)cap,
             with_sinks ? ", sinks" : "");
    struct device_view keys, values, sinks;
    struct attention attention = { .heads = heads, .q = lab_floats(lab, width * TOKENS) };
    float *sink_values = lab_floats(lab, head_count),
          *found = malloc(width * TOKENS * sizeof(float));
    float *alone = malloc(width * TOKENS * sizeof(float));
    double *wanted = malloc(width * TOKENS * sizeof(double));
    assert_true(found && alone && wanted);
    attention.keys = make_cache(lab, heads.cache, kv_dim, &keys);
    attention.values = make_cache(lab, heads.cache, kv_dim, &values);
    sinks = lab_put_new(lab, DTYPE_F32, head_count, 1, sink_values);
    attention.sinks = with_sinks ? sink_values : NULL;
    attention.settings = (struct ops_attention_settings){ .head_dim = heads.head_dim,
                                                          .scale = 0.7f,
                                                          .window = window,
                                                          .cap = cap,
                                                          .sinks = with_sinks ? &sinks : NULL };
    for (size_t t = 0; t < TOKENS; t++)
        for (uint32_t h = 0; h < head_count; h++)
            attend_one(&attention, t, h, wanted + t * width + (size_t)h * heads.head_dim);
    run_attention(lab, &attention, &keys, &values, TOKENS, found);
    check_close(name, found, wanted, width * TOKENS, 1e-5);
    run_attention(lab, &attention, &keys, &values, 1, alone);
    check_close(name, alone, wanted, width * TOKENS, 1e-5);
    if (lab_is_host())
        assert_memory_equal(alone, found, width * TOKENS * sizeof(float));
    struct device_view all[] = { keys, values, sinks };
    for (size_t i = 0; i < COUNT_OF(all); i++)
        lab_drop(lab, all[i]);
    free(wanted);
    free(alone);
    free(found);
    free(sink_values);
    free(attention.keys);
    free(attention.values);
    free(attention.q);
}

static void test_attention(void **state)
{
    (void)state;
    for (int path = 0; path < CPU_PATH_COUNT; path++) {
        if (!lab_has_path((enum cpu_path)path))
            continue;
        struct lab lab;
        lab_open(&lab, (enum cpu_path)path, 2);
        struct shape_of_heads small = { 64, 2, 3, DTYPE_F16 }, plain = { 40, 1, 2, DTYPE_F32 };
        struct shape_of_heads wide = { 256, 1, 2, DTYPE_F16 }, widest = { 320, 1, 1, DTYPE_F32 };
        check_attention(&lab, small, 1, 0, false);
        check_attention(&lab, small, 4, 0, false);
        check_attention(&lab, small, 5, 0.8f, true);
        check_attention(&lab, small, 257, 0, false);
        check_attention(&lab, small, 0, 2, false);
        check_attention(&lab, small, 0, 0, true);
        check_attention(&lab, plain, 298, 1, true);
        check_attention(&lab, (struct shape_of_heads){ 32, 2, 1, DTYPE_Q8_0 }, 260, 0, true);
        check_attention(&lab, wide, 64, 3, false);
        check_attention(&lab, wide, 0, 0, false);
        check_attention(&lab, (struct shape_of_heads){ 256, 1, 1, DTYPE_Q8_0 }, 100, 0, false);
        check_attention(&lab, widest, 33, 3, true);
        lab_close(&lab);
    }
}

/* A bad position leaves a trap, with a window as without; sinks are one for each head. */
static void test_bad_attention(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab, CPU_PATH_COUNT, 1);
    float values[64] = { 0 };
    int32_t bad = 7;
    struct device_view q = lab_put_new(&lab, DTYPE_F32, 32, 1, values);
    struct device_view cache = lab_put_new(&lab, DTYPE_F32, 32, 2, values);
    struct device_view zero = lab_put_new(&lab, DTYPE_I32, 1, 1, values);
    struct device_view position = lab_put_new(&lab, DTYPE_I32, 1, 1, &bad);
    struct device_view sinks = lab_put_new(&lab, DTYPE_F32, 3, 1, values);
    struct ops_attention_settings settings = { .head_dim = 16, .scale = 1, .window = 1 };
    struct ops_attention_settings wrong = { .head_dim = 16, .scale = 1, .sinks = &sinks };
    CHECK_FAILS(
        ops_attention(&lab.target, &q, &cache, &cache, &zero, &zero, &q, NULL, &wrong, &lab.err),
        STATUS_REFUSED, &lab.err);
    LAB_OK(&lab, ops_attention(&lab.target, &q, &cache, &cache, &zero, &position, &q, NULL,
                               &settings, &lab.err));
    LAB_OK(&lab, device_stream_sync(lab.device, lab.target.stream, DEVICE_HERE, &lab.err));
    assert_true(lab.trap_count >= 1);
    lab_close(&lab);
}

/* ---- Temperature ---------------------------------------------------------------------------- */

static void test_temperature(void **state)
{
    (void)state;
    enum { DIMENSIONS = 8, POSITIONS = 200 };
    static float found[DIMENSIONS * POSITIONS];
    static double wanted[DIMENSIONS * POSITIONS];
    struct lab lab;
    lab_open(&lab, CPU_PATH_COUNT, 1);
    struct ops_rope_settings settings = { .base = 100,
                                          .frequency_scale = 1,
                                          .attention_factor = 1,
                                          .temperature_scale = 0.3f,
                                          .temperature_length = 17 };
    struct device_view table = lab_view(&lab, DTYPE_F32, DIMENSIONS, POSITIONS);
    LAB_OK(&lab, ops_rope_table(&lab.target, NULL, &table, &settings, &lab.err));
    lab_get(&lab, &table, found);
    for (size_t p = 0; p < POSITIONS; p++)
        for (size_t k = 0; k < DIMENSIONS / 2; k++) {
            double angle = (double)p * pow(100, -2.0 * (double)k / DIMENSIONS);
            double size = 1 + 0.3f * log(1 + floor((double)p / 17));
            wanted[p * DIMENSIONS + k] = size * cos(angle);
            wanted[p * DIMENSIONS + DIMENSIONS / 2 + k] = size * sin(angle);
        }
    check_close("rope_table", found, wanted, COUNT_OF(found), 1e-6);
    settings.temperature_length = 0;
    CHECK_FAILS(ops_rope_table(&lab.target, NULL, &table, &settings, &lab.err), STATUS_REFUSED,
                &lab.err);
    lab_close(&lab);
}

int main(int argument_count, char **arguments)
{
    if (!lab_choose(argument_count, arguments))
        return LAB_SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_layer_norm),    cmocka_unit_test(test_attention),
        cmocka_unit_test(test_bad_attention), cmocka_unit_test(test_temperature),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
