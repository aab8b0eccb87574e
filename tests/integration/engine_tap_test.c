/* engine_tap_test.c - taps: the values are those of their moment, and only what was chosen. */
#include "test.h"

#include "engine_scene.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- What came out -------------------------------------------------------------------------- */

#define KEPT_LIMIT 512

struct kept {
    struct tap_record records[KEPT_LIMIT];
    float *values[KEPT_LIMIT];
    size_t count;
    size_t stop_after; /* the sink says no after this many; 0: never */
};

static enum status keep(void *context, const struct tap_record *record, const float *values,
                        struct error *err)
{
    struct kept *kept = context;
    assert_true(kept->count < KEPT_LIMIT);
    if (kept->stop_after && kept->count == kept->stop_after)
        return error_set(err, STATUS_LIMIT, "enough");
    size_t bytes = (size_t)record->stats.count * sizeof(float);
    kept->records[kept->count] = *record;
    kept->values[kept->count] = malloc(bytes);
    assert_non_null(kept->values[kept->count]);
    memcpy(kept->values[kept->count++], values, bytes);
    return STATUS_OK;
}

static void forget(struct kept *kept)
{
    for (size_t i = 0; i < kept->count; i++)
        free(kept->values[i]);
    kept->count = 0;
}

/* Number of the tap of that name, or fails. */
static size_t find(const struct kept *kept, const char *tensor, int32_t layer, int32_t step)
{
    for (size_t i = 0; i < kept->count; i++) {
        const struct tap_place *place = &kept->records[i].place;
        if (strcmp(place->tensor, tensor) == 0 && place->layer == layer && place->step == step)
            return i;
    }
    fail_msg("no tap %s of layer %d", tensor, layer);
    return 0;
}

static struct engine_tap_choice parse(const char *text)
{
    struct engine_tap_choice choice;
    struct error err;
    CHECK_OK(engine_tap_parse(text, &choice, &err), &err);
    return choice;
}

static void set_taps(struct scene *scene, struct kept *kept, size_t count, const char *const *texts)
{
    struct engine_tap_choice choices[4];
    for (size_t i = 0; i < count; i++)
        choices[i] = parse(texts[i]);
    CHECK_OK(engine_tap_set(scene->engine, choices, count, keep, kept, &scene->err), &scene->err);
}

static void forward(struct scene *scene, uint32_t sequence, const int32_t *ids, size_t count)
{
    struct engine_token tokens[8];
    for (size_t i = 0; i < count; i++)
        tokens[i] = (struct engine_token){ ids[i], sequence, i + 1 == count };
    CHECK_OK(engine_forward(scene->engine, tokens, count, &scene->err), &scene->err);
}

static const int32_t ids[] = { 1, 300, 7, 45, 260 };

/* ---- Moments -------------------------------------------------------------------------------- */

static void check_sum(const struct kept *kept, size_t sum, size_t one, size_t other)
{
    for (uint64_t i = 0; i < kept->records[sum].stats.count; i++)
        assert_true(kept->values[sum][i] == kept->values[one][i] + kept->values[other][i]);
}

static void check_near(const float *found, const double *wanted, uint64_t count)
{
    double error = 0, power = 1e-30;
    for (uint64_t i = 0; i < count; i++) {
        error += ((double)found[i] - wanted[i]) * ((double)found[i] - wanted[i]);
        power += wanted[i] * wanted[i];
    }
    if (!(error / power < 1e-10))
        fail_msg("normalised error %g", error / power);
}

static void check_norm(const struct scene *scene, const struct kept *kept, const char *name,
                       int32_t layer)
{
    char tensor[32];
    snprintf(tensor, sizeof(tensor), "%s.in", name);
    size_t in = find(kept, tensor, layer, 0);
    snprintf(tensor, sizeof(tensor), "%s.out", name);
    size_t out = find(kept, tensor, layer, 0);
    snprintf(tensor, sizeof(tensor), "%s.weight", name);
    size_t weight = find(kept, tensor, layer, 0);
    size_t width = scene->report.config.embedding_length;
    double *wanted = malloc(width * sizeof(*wanted));
    assert_non_null(wanted);
    for (size_t t = 0; t < COUNT_OF(ids); t++) {
        const float *row = kept->values[in] + t * width;
        double sum = 0;
        for (size_t i = 0; i < width; i++)
            sum += (double)row[i] * (double)row[i];
        for (size_t i = 0; i < width; i++)
            wanted[i] = (double)row[i] * (double)kept->values[weight][i] /
                        sqrt(sum / (double)width + (double)scene->report.config.rms_epsilon);
        check_near(kept->values[out] + t * width, wanted, width);
    }
    free(wanted);
}

/* Buffers are used again within a layer: a copy of the wrong moment breaks one of the sums. */
static void test_moments(void **state)
{
    (void)state;
    struct scene scene;
    struct kept *kept = calloc(1, sizeof(*kept));
    struct model_shape shape = scene_shape(MODEL_ARCH_QWEN3);
    assert_non_null(kept);
    scene_write(&scene, &shape, CONVERT_F32);
    scene_start(&scene, CPU_PATH_COUNT, 2, (struct engine_options){ .kv_dtype = DTYPE_F16 });
    set_taps(&scene, kept, 2, (const char *const[]){ "hidden", "norm" });
    forward(&scene, 0, ids, COUNT_OF(ids));
    int32_t layers = (int32_t)shape.block_count;
    for (int32_t layer = 0; layer < layers; layer++) {
        bool last = layer + 1 == layers;
        size_t in = find(kept, "attn_norm.in", layer, 0), wo = find(kept, "wo", layer, 0);
        size_t middle = find(kept, "ffn_norm.in", layer, 0);
        size_t down = find(kept, "ffn_down", layer, 0);
        size_t next = last ? find(kept, "output_norm.in", -1, 0)
                           : find(kept, "attn_norm.in", layer + 1, 0);
        check_sum(kept, middle, in, wo);
        check_sum(kept, next, middle, down);
        size_t gate = find(kept, "ffn_gate", layer, 0), up = find(kept, "ffn_up", layer, 0);
        size_t gated = find(kept, "ffn_swiglu", layer, 0);
        uint64_t count = kept->records[gate].stats.count;
        double *wanted = malloc(count * sizeof(*wanted));
        assert_non_null(wanted);
        for (uint64_t i = 0; i < count; i++) {
            double value = (double)kept->values[gate][i];
            wanted[i] = value / (1 + exp(-value)) * (double)kept->values[up][i];
        }
        check_near(kept->values[gated], wanted, count);
        free(wanted);
        check_norm(&scene, kept, "attn_norm", layer);
        check_norm(&scene, kept, "ffn_norm", layer);
    }
    check_norm(&scene, kept, "output_norm", -1);
    size_t embedded = find(kept, "token_embd", -1, 0), first = find(kept, "attn_norm.in", 0, 0);
    assert_memory_equal(kept->values[embedded], kept->values[first],
                        kept->records[first].stats.count * sizeof(float));
    float *logits = malloc(shape.vocab_size * sizeof(*logits));
    assert_non_null(logits);
    CHECK_OK(engine_logits(scene.engine, 0, logits, &scene.err), &scene.err);
    assert_memory_equal(kept->values[find(kept, "logits", -1, 0)], logits,
                        shape.vocab_size * sizeof(*logits));
    /* Nothing twice, though two choices cover it. */
    for (size_t i = 0; i < kept->count; i++)
        for (size_t j = 0; j < i; j++)
            assert_false(tap_place_equal(&kept->records[i].place, &kept->records[j].place));
    free(logits);
    forget(kept);
    free(kept);
    scene_stop(&scene);
    scene_end(&scene);
}

/* ---- Attention and the cache ---------------------------------------------------------------- */

/* One head's result is what its query, keys and values give. */
static void check_attention(const struct scene *scene, const struct kept *kept, int32_t layer,
                            int32_t step, size_t rows, size_t length)
{
    size_t q = find(kept, "attn.q", layer, step), k = find(kept, "attn.k", layer, step);
    size_t v = find(kept, "attn.v", layer, step), out = find(kept, "attn.out", layer, step);
    size_t dim = scene->report.config.head_dim;
    assert_int_equal(kept->records[q].stats.count, dim * rows);
    assert_int_equal(kept->records[k].stats.count, dim * length);
    for (size_t t = 0; t < rows; t++) {
        size_t seen = length - rows + t + 1;
        double scores[16], wanted[256] = { 0 }, sum = 0;
        for (size_t s = 0; s < seen; s++) {
            scores[s] = 0;
            for (size_t i = 0; i < dim; i++)
                scores[s] += (double)kept->values[q][t * dim + i] *
                             (double)kept->values[k][s * dim + i];
            sum += scores[s] = exp(scores[s] * (double)scene->report.config.attention_scale);
        }
        for (size_t s = 0; s < seen; s++)
            for (size_t i = 0; i < dim; i++)
                wanted[i] += scores[s] / sum * (double)kept->values[v][s * dim + i];
        check_near(kept->values[out] + t * dim, wanted, dim);
    }
}

static void test_attention(void **state)
{
    (void)state;
    static const enum dtype types[] = { DTYPE_F32, DTYPE_F16, DTYPE_Q8_0 };
    struct kept *kept = calloc(1, sizeof(*kept));
    assert_non_null(kept);
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        struct scene scene;
        struct model_shape shape = scene_shape(MODEL_ARCH_LLAMA);
        scene_write(&scene, &shape, CONVERT_F16);
        scene_start(&scene, CPU_PATH_COUNT, 1, (struct engine_options){ .kv_dtype = types[i] });
        set_taps(&scene, kept, 3,
                 (const char *const[]){ "attn@layer=1,head=3", "kv@layer=1-2",
                                        "attn@layer=0-1,step=0,head=3" });
        forward(&scene, 0, ids, COUNT_OF(ids));
        forward(&scene, 0, ids, 2);
        assert_int_equal(kept->count, 2 * (4 + 4) + 4);
        check_attention(&scene, kept, 1, 0, 5, 5);
        check_attention(&scene, kept, 1, 1, 2, 7);
        /* Head 3 of 4 shares the second of two key heads. */
        size_t dim = shape.head_dim, keys = find(kept, "kv.keys", 1, 1);
        size_t head = find(kept, "attn.k", 1, 1);
        assert_int_equal(kept->records[head].place.head, 3);
        assert_int_equal(kept->records[head].place.sequence, 0);
        assert_int_equal(kept->records[keys].source_dtype, types[i]);
        for (size_t s = 0; s < 7; s++)
            assert_memory_equal(kept->values[head] + s * dim,
                                kept->values[keys] + (2 * s + 1) * dim, dim * sizeof(float));
        forget(kept);
        scene_stop(&scene);
        scene_end(&scene);
    }
    free(kept);
}

/* ---- Choosing ------------------------------------------------------------------------------- */

static void test_choices(void **state)
{
    (void)state;
    struct scene scene;
    struct kept *kept = calloc(1, sizeof(*kept));
    struct model_shape shape = scene_shape(MODEL_ARCH_LLAMA);
    assert_non_null(kept);
    scene_write(&scene, &shape, CONVERT_Q8_0);
    struct engine_options options = { .kv_dtype = DTYPE_F16, .sequence_limit = 3 };
    scene_start(&scene, CPU_PATH_COUNT, 1, options);
    static const struct {
        const char *text;
        size_t count; /* of three steps with one, one and two sequences */
    } rows[] = {
        { "wo", 9 },
        { "wo@layer=1", 3 },
        { "wo@layer=0-1,step=2", 2 },
        { "logits", 3 },
        { "logits@step=1", 1 },
        { "norm@layer=2,step=0", 6 },
        { "norm", 3 * 21 },
        { "mlp@layer=0,step=1", 6 },
        { "kv@layer=0", 2 + 2 + 4 },
        { "attn@layer=2", 4 + 4 + 6 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        scene_stop(&scene);
        scene_start(&scene, CPU_PATH_COUNT, 1, options);
        set_taps(&scene, kept, 1, &rows[i].text);
        forward(&scene, 0, ids, 3);
        forward(&scene, 2, ids, 2);
        struct engine_token both[] = { { 5, 2, true }, { 6, 0, true } };
        CHECK_OK(engine_forward(scene.engine, both, 2, &scene.err), &scene.err);
        if (kept->count != rows[i].count)
            fail_msg("%s: %zu taps, expected %zu", rows[i].text, kept->count, rows[i].count);
        forget(kept);
    }
    /* None any more; then a sink that ends the batch: the sequence has not grown. */
    CHECK_OK(engine_tap_set(scene.engine, NULL, 0, NULL, NULL, &scene.err), &scene.err);
    forward(&scene, 0, ids, 1);
    assert_int_equal(kept->count, 0);
    set_taps(&scene, kept, 1, (const char *const[]){ "wo" });
    kept->stop_after = 1;
    struct engine_token token = { 5, 0, true };
    uint32_t length = engine_length(scene.engine, 0);
    CHECK_FAILS(engine_forward(scene.engine, &token, 1, &scene.err), STATUS_LIMIT, &scene.err);
    assert_int_equal(engine_length(scene.engine, 0), length);
    forget(kept);
    struct engine_tap_choice choice = parse("wo@layer=3");
    CHECK_FAILS(engine_tap_set(scene.engine, &choice, 1, keep, kept, &scene.err), STATUS_USAGE,
                &scene.err);
    check_contains("layer", scene.err.text, "below the model's 3, found 3");
    choice = parse("attn@head=4");
    CHECK_FAILS(engine_tap_set(scene.engine, &choice, 1, keep, kept, &scene.err), STATUS_USAGE,
                &scene.err);
    free(kept);
    scene_stop(&scene);
    scene_end(&scene);
}

static void test_parse(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        "w",
        "wo@",
        "wo@layer",
        "wo@layer=",
        "wo@layer=x",
        "wo@layer=-1",
        "wo@layer=3-1",
        "wo@layer=1-2-3",
        "wo@layer=1,",
        "wo@head=1-2",
        "wo@step=1 ",
        "WO",
        "wo@layer=1;step=2",
        "wo@layer=4294967296",
    };
    struct engine_tap_choice choice;
    struct error err;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        CHECK_FAILS(engine_tap_parse(wrong[i], &choice, &err), STATUS_USAGE, &err);
        check_contains(wrong[i], err.text, "tap: expected KIND");
    }
    choice = parse("attn@layer=3-5,step=7,head=2");
    assert_int_equal(choice.kinds, ENGINE_TAP_ATTN);
    assert_int_equal(choice.first_layer, 3);
    assert_int_equal(choice.last_layer, 5);
    assert_int_equal(choice.first_step, 7);
    assert_int_equal(choice.last_step, 7);
    assert_int_equal(choice.head, 2);
}

/* Nothing is found in a healthy model, and the sequence goes on as if nothing had been. */
static void test_find_nothing(void **state)
{
    (void)state;
    struct scene scene;
    struct model_shape shape = scene_shape(MODEL_ARCH_LLAMA);
    scene_write(&scene, &shape, CONVERT_Q4_K_M);
    struct engine_options options = { .kv_dtype = DTYPE_F16, .batch_limit = 2 };
    scene_start(&scene, CPU_PATH_COUNT, 2, options);
    for (size_t i = 0; i < 4; i++)
        forward(&scene, 0, ids + i, 1);
    bool found = true;
    struct tap_record record;
    uint32_t position;
    float *logits = calloc(2 * (size_t)scene.report.config.vocab_size, sizeof(*logits));
    float *again = logits + scene.report.config.vocab_size;
    assert_non_null(logits);
    CHECK_OK(engine_find_bad(scene.engine, 0, &found, &record, &position, &scene.err), &scene.err);
    assert_false(found);
    assert_int_equal(engine_length(scene.engine, 0), 4);
    forward(&scene, 0, ids + 4, 1);
    CHECK_OK(engine_logits(scene.engine, 0, logits, &scene.err), &scene.err);
    engine_rewind(scene.engine, 0, 0);
    for (size_t i = 0; i < 5; i++)
        forward(&scene, 0, ids + i, 1);
    CHECK_OK(engine_logits(scene.engine, 0, again, &scene.err), &scene.err);
    assert_memory_equal(logits, again, scene.report.config.vocab_size * sizeof(*logits));
    free(logits);
    scene_stop(&scene);
    scene_end(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moments),      cmocka_unit_test(test_attention),
        cmocka_unit_test(test_choices),      cmocka_unit_test(test_parse),
        cmocka_unit_test(test_find_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
