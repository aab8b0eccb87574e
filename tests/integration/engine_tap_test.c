/* engine_tap_test.c - taps: the values are those of their moment. */
#include "engine_taps.h"

#include <math.h>
#include <stdio.h>

/* ---- What came out -------------------------------------------------------------------------- */

/* Number of the tap of that name, or fails. */
static size_t taps_find(const struct kept *kept, const char *tensor, int32_t layer, int32_t step)
{
    for (size_t i = 0; i < kept->count; i++) {
        const struct tap_place *place = &kept->records[i].place;
        if (strcmp(place->tensor, tensor) == 0 && place->layer == layer && place->step == step)
            return i;
    }
    fail_msg("no tap %s of layer %d", tensor, layer);
    return 0;
}

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
    size_t in = taps_find(kept, tensor, layer, 0);
    snprintf(tensor, sizeof(tensor), "%s.out", name);
    size_t out = taps_find(kept, tensor, layer, 0);
    snprintf(tensor, sizeof(tensor), "%s.weight", name);
    size_t weight = taps_find(kept, tensor, layer, 0);
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
static bool place_equal(const struct tap_place *a, const struct tap_place *b)
{
    return a->layer == b->layer && a->step == b->step && a->sequence == b->sequence &&
           a->head == b->head && strcmp(a->tensor, b->tensor) == 0;
}

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
    forward_ids(&scene, 0, ids, COUNT_OF(ids));
    int32_t layers = (int32_t)shape.block_count;
    for (int32_t layer = 0; layer < layers; layer++) {
        bool last = layer + 1 == layers;
        size_t in = taps_find(kept, "attn_norm.in", layer, 0), wo = taps_find(kept, "wo", layer, 0);
        size_t middle = taps_find(kept, "ffn_norm.in", layer, 0);
        size_t down = taps_find(kept, "ffn_down", layer, 0);
        size_t next = last ? taps_find(kept, "output_norm.in", -1, 0)
                           : taps_find(kept, "attn_norm.in", layer + 1, 0);
        check_sum(kept, middle, in, wo);
        check_sum(kept, next, middle, down);
        size_t gate = taps_find(kept, "ffn_gate", layer, 0),
               up = taps_find(kept, "ffn_up", layer, 0);
        size_t gated = taps_find(kept, "ffn_swiglu", layer, 0);
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
    size_t embedded = taps_find(kept, "token_embd", -1, 0),
           first = taps_find(kept, "attn_norm.in", 0, 0);
    assert_memory_equal(kept->values[embedded], kept->values[first],
                        kept->records[first].stats.count * sizeof(float));
    float *logits = malloc(shape.vocab_size * sizeof(*logits));
    assert_non_null(logits);
    CHECK_OK(engine_logits(scene.engine, 0, logits, &scene.err), &scene.err);
    assert_memory_equal(kept->values[taps_find(kept, "logits", -1, 0)], logits,
                        shape.vocab_size * sizeof(*logits));
    /* Nothing twice, though two choices cover it. */
    for (size_t i = 0; i < kept->count; i++)
        for (size_t j = 0; j < i; j++)
            assert_false(place_equal(&kept->records[i].place, &kept->records[j].place));
    free(logits);
    taps_forget(kept);
    free(kept);
    scene_stop(&scene);
    scene_end(&scene);
}

/* ---- Attention and the cache ---------------------------------------------------------------- */

/* One head's result is what its query, keys and values give. */
static void check_attention(const struct scene *scene, const struct kept *kept, int32_t layer,
                            int32_t step, size_t rows, size_t length)
{
    size_t q = taps_find(kept, "attn.q", layer, step), k = taps_find(kept, "attn.k", layer, step);
    size_t v = taps_find(kept, "attn.v", layer, step),
           out = taps_find(kept, "attn.out", layer, step);
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
        forward_ids(&scene, 0, ids, COUNT_OF(ids));
        forward_ids(&scene, 0, ids, 2);
        assert_int_equal(kept->count, 2 * (4 + 4) + 4);
        check_attention(&scene, kept, 1, 0, 5, 5);
        check_attention(&scene, kept, 1, 1, 2, 7);
        /* Head 3 of 4 shares the second of two key heads. */
        size_t dim = shape.head_dim, keys = taps_find(kept, "kv.keys", 1, 1);
        size_t head = taps_find(kept, "attn.k", 1, 1);
        assert_int_equal(kept->records[head].place.head, 3);
        assert_int_equal(kept->records[head].place.sequence, 0);
        assert_int_equal(kept->records[keys].source_dtype, types[i]);
        for (size_t s = 0; s < 7; s++)
            assert_memory_equal(kept->values[head] + s * dim,
                                kept->values[keys] + (2 * s + 1) * dim, dim * sizeof(float));
        taps_forget(kept);
        scene_stop(&scene);
        scene_end(&scene);
    }
    free(kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moments),
        cmocka_unit_test(test_attention),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
