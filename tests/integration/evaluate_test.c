/* evaluate_test.c - perplexity, bits per byte and divergences of small models against the same
 * worked out from float64 logits; the same result however the work is cut. */
#include "evaluate_scene.h"

#include <math.h>
#include <stdlib.h>

static void scene_refer(struct scene *scene)
{
    for (unsigned chunk = 0; chunk < CHUNKS; chunk++) {
        int32_t ids[CONTEXT];
        for (unsigned i = 0; i < CONTEXT; i++)
            ids[i] = (int32_t)scene->ids[chunk * CONTEXT + i];
        if (tokenizer_info(scene->tokenizer)->add_bos)
            ids[0] = (int32_t)tokenizer_special_id(scene->tokenizer, TOKENIZER_BOS);
        reference_logits(scene->file, &scene->report.config, NULL, ids, CONTEXT,
                         scene->logits[chunk][0]);
    }
}

static void check_near(const char *what, double found, double wanted, double tolerance)
{
    if (!(fabs(found - wanted) <= tolerance * (1 + fabs(wanted))))
        fail_msg("%s: expected %.10g, found %.10g", what, wanted, found);
}

/* ln p of token id after `position` of a chunk, by the reference. */
static double log_probability(const struct scene *scene, unsigned chunk, unsigned position,
                              uint32_t id)
{
    double sum = 0;
    const double *row = scene->logits[chunk][position];
    for (unsigned i = 0; i < VOCAB; i++)
        sum += exp(row[i] - row[id]);
    return -log(sum);
}

static void check_against_reference(enum model_arch arch)
{
    struct scene *scene = malloc(sizeof(*scene));
    assert_non_null(scene);
    scene_begin(scene, arch, CONVERT_F32);
    scene_refer(scene);
    double nats = 0, squares = 0, count = CHUNKS * SCORED;
    size_t bytes = 0;
    struct text text;
    text_init(&text);
    for (unsigned chunk = 0; chunk < CHUNKS; chunk++)
        for (unsigned at = CONTEXT / 2; at + 1 < CONTEXT; at++) {
            uint32_t next = scene->ids[chunk * CONTEXT + at + 1];
            double value = -log_probability(scene, chunk, at, next);
            nats += value;
            squares += value * value;
            text_clear(&text);
            tokenizer_token_bytes(scene->tokenizer, next, TOKENIZER_RAW, &text);
            bytes += text.length;
        }
    text_release(&text);
    double mean = nats / count;
    double error = sqrt((squares / count - mean * mean) / (count - 1));
    scene_start(scene, 2, 0, SCORED);
    struct evaluate_options options = { .context = CONTEXT };
    struct evaluate_result result = scene_run(scene, &options);
    assert_int_equal(result.chunk_count, CHUNKS);
    assert_int_equal(result.scored_tokens, CHUNKS * SCORED);
    assert_int_equal(result.scored_bytes, bytes);
    assert_true(bytes > 0 && !result.compared);
    check_near("nats", result.nats.value, mean, 1e-5);
    check_near("error", result.nats.error, error, 1e-4);
    check_near("perplexity", result.perplexity.value, exp(mean), 1e-4);
    check_near("its error", result.perplexity.error, exp(mean) * error, 1e-3);
    check_near("bits per byte", result.bits_per_byte.value, nats / log(2) / (double)bytes, 1e-5);
    scene_stop(scene);
    scene_end(scene);
    free(scene);
}

static void test_against_reference(void **state)
{
    (void)state;
    check_against_reference(MODEL_ARCH_LLAMA); /* with a begin token */
    check_against_reference(MODEL_ARCH_QWEN2); /* without */
}

/* The recording of one run, and runs cut in other ways, have the same bits. */
static void test_same_however_cut(void **state)
{
    (void)state;
    struct scene *scene = malloc(sizeof(*scene));
    assert_non_null(scene);
    scene_begin(scene, MODEL_ARCH_LLAMA, CONVERT_Q8_0);
    struct temp_path path = temp_folder_path(&scene->folder, "logits");
    struct evaluate_options options = { .context = CONTEXT, .save_path = path.text };
    scene_start(scene, 1, 0, SCORED);
    struct evaluate_result first = scene_run(scene, &options), result;
    CHECK_FAILS(evaluate_run(scene->engine, scene->tokenizer, scene->ids, TOKENS, &options, &result,
                             &scene->err),
                STATUS_EXISTS, &scene->err);
    scene_stop(scene);
    options = (struct evaluate_options){ .context = CONTEXT };
    CHECK_OK(evaluate_recording_open(path.text, &options.base, &scene->err), &scene->err);
    static const struct {
        uint32_t threads, batch, rows;
    } cuts[] = { { 1, 0, SCORED }, { 3, 1, 1 }, { 2, 5, 2 }, { 2, 9, 7 }, { 1, 16, 3 } };
    for (size_t i = 0; i < COUNT_OF(cuts); i++) {
        scene_start(scene, cuts[i].threads, cuts[i].batch, cuts[i].rows);
        result = scene_run(scene, &options);
        assert_true(result.compared);
        assert_true(result.nats.value == first.nats.value);
        assert_true(result.nats.error == first.nats.error);
        assert_int_equal(result.comparison.identical, CHUNKS * SCORED);
        assert_true(result.comparison.divergence_max == 0);
        assert_true(result.comparison.same_top.value == 1);
        assert_true(result.comparison.log_ratio.value == 0);
        check_near("base", result.comparison.base_perplexity, first.perplexity.value, 1e-12);
        scene_stop(scene);
    }
    evaluate_recording_close(options.base);
    scene_end(scene);
    free(scene);
}

static double divergence_at(const struct scene *base, const struct scene *other, unsigned chunk,
                            unsigned at)
{
    double divergence = 0;
    for (unsigned i = 0; i < VOCAB; i++) {
        double base_log = log_probability(base, chunk, at, i);
        divergence += exp(base_log) * (base_log - log_probability(other, chunk, at, i));
    }
    return divergence;
}

static unsigned best_at(const struct scene *scene, unsigned chunk, unsigned at)
{
    unsigned best = 0;
    for (unsigned i = 0; i < VOCAB; i++)
        if (scene->logits[chunk][at][i] > scene->logits[chunk][at][best])
            best = i;
    return best;
}

/* A model of another type against the reference's logits of the first, by hand. */
static void test_divergence(void **state)
{
    (void)state;
    struct scene *base = malloc(sizeof(*base)), *other = malloc(sizeof(*other));
    assert_true(base && other);
    scene_begin(base, MODEL_ARCH_LLAMA, CONVERT_F32);
    scene_begin(other, MODEL_ARCH_LLAMA, CONVERT_Q4_0);
    scene_refer(base);
    struct temp_path path = temp_folder_path(&base->folder, "logits");
    struct evaluate_options options = { .context = CONTEXT, .save_path = path.text };
    scene_start(base, 2, 0, SCORED);
    struct evaluate_result first = scene_run(base, &options);
    scene_stop(base);

    /* What the other model says, through the engine; the sums are the test's own. */
    double sum = 0, largest = 0;
    unsigned same = 0;
    scene_start(other, 2, 0, CONTEXT);
    for (unsigned chunk = 0; chunk < CHUNKS; chunk++) {
        struct engine_token tokens[CONTEXT];
        for (unsigned i = 0; i < CONTEXT; i++)
            tokens[i] = (struct engine_token){ (int32_t)other->ids[chunk * CONTEXT + i], 0, true };
        tokens[0].id = (int32_t)tokenizer_special_id(other->tokenizer, TOKENIZER_BOS);
        engine_rewind(other->engine, 0, 0);
        CHECK_OK(engine_forward(other->engine, tokens, CONTEXT, &other->err), &other->err);
        for (uint32_t at = 0; at < CONTEXT; at++) {
            float row[VOCAB];
            CHECK_OK(engine_logits(other->engine, at, row, &other->err), &other->err);
            for (unsigned i = 0; i < VOCAB; i++)
                other->logits[chunk][at][i] = row[i];
        }
        for (unsigned at = CONTEXT / 2; at + 1 < CONTEXT; at++) {
            double divergence = divergence_at(base, other, chunk, at);
            sum += divergence;
            largest = divergence > largest ? divergence : largest;
            same += best_at(base, chunk, at) == best_at(other, chunk, at);
        }
    }
    scene_stop(other);

    options = (struct evaluate_options){ .context = CONTEXT };
    CHECK_OK(evaluate_recording_open(path.text, &options.base, &other->err), &other->err);
    scene_start(other, 2, 0, SCORED);
    struct evaluate_result result = scene_run(other, &options);
    const struct evaluate_comparison *found = &result.comparison;
    assert_true(sum > 1e-3); /* else nothing was compared */
    check_near("mean", found->divergence.value, sum / (CHUNKS * SCORED), 1e-4);
    check_near("max", found->divergence_max, largest, 1e-4);
    check_near("same top", found->same_top.value, (double)same / (CHUNKS * SCORED), 1e-12);
    check_near("ratio", found->log_ratio.value, result.nats.value - first.nats.value, 1e-12);
    check_near("base", found->base_perplexity, first.perplexity.value, 1e-12);
    assert_true(found->divergence_median <= found->divergence_90 &&
                found->divergence_90 <= found->divergence_95 &&
                found->divergence_95 <= found->divergence_99 &&
                found->divergence_99 <= found->divergence_999 &&
                found->divergence_999 <= found->divergence_max);
    assert_int_equal(found->identical, 0);
    scene_stop(other);
    evaluate_recording_close(options.base);
    scene_end(base);
    scene_end(other);
    free(base);
    free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_reference),
        cmocka_unit_test(test_same_however_cut),
        cmocka_unit_test(test_divergence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
