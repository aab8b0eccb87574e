/* engine_test.c - whole models: logits against float64 for every architecture and kind of type, the
 * same bits however tokens are batched, sequences that fork and rewind, limits that are reported.
 */
#include "test.h"

#include "engine_scene.h"
#include "reference_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOKENS 21u
static const int32_t ids[TOKENS] = { 1,  300, 7,  45, 260, 319, 88, 3,   3,   3, 120,
                                     99, 0,   17, 64, 201, 150, 31, 272, 233, 12 };

/* Runs ids in chunks of `chunk` tokens; logits of all of them. */
static void run_chunks(struct scene *scene, uint32_t sequence, size_t chunk, float *logits)
{
    size_t vocab = scene->report.config.vocab_size;
    for (size_t first = 0; first < TOKENS; first += chunk) {
        size_t count = TOKENS - first < chunk ? TOKENS - first : chunk;
        struct engine_token tokens[TOKENS];
        for (size_t i = 0; i < count; i++)
            tokens[i] = (struct engine_token){ ids[first + i], sequence, true };
        CHECK_OK(engine_forward(scene->engine, tokens, count, &scene->err), &scene->err);
        assert_int_equal(engine_logits_count(scene->engine), count);
        for (uint32_t i = 0; i < count; i++)
            CHECK_OK(engine_logits(scene->engine, i, logits + (first + i) * vocab, &scene->err),
                     &scene->err);
    }
}

/* ---- The engine's own rows ------------------------------------------------------------------ */

#define ROWS_LIMIT 300

struct rows {
    struct tap_place places[ROWS_LIMIT];
    float *values[ROWS_LIMIT];
    size_t count;
};

static enum status keep_rows(void *context, const struct tap_record *record, const float *values,
                             struct error *err)
{
    struct rows *rows = context;
    (void)err;
    assert_true(rows->count < ROWS_LIMIT);
    float *copy = malloc((size_t)record->stats.count * sizeof(*copy));
    assert_non_null(copy);
    memcpy(copy, values, (size_t)record->stats.count * sizeof(*copy));
    rows->places[rows->count] = record->place;
    rows->values[rows->count++] = copy;
    return STATUS_OK;
}

static const float *find_rows(void *context, const char *tensor, int layer)
{
    const struct rows *rows = context;
    for (size_t i = 0; i < rows->count; i++)
        if (rows->places[i].layer == layer && strcmp(rows->places[i].tensor, tensor) == 0)
            return rows->values[i];
    fail_msg("no rows %s of layer %d", tensor, layer);
    return NULL;
}

/* Against a reference that rounds what this path rounds, nothing but f32's own rounding is left. */
static void check_alike(struct scene *scene, enum cpu_path path, enum dtype kv, const float *logits)
{
    struct rows rows = { .count = 0 };
    struct reference_rounding rounding = { .q8_rows = true,
                                           .bf16_rows = path == CPU_PATH_AVX512,
                                           .kv = kv,
                                           .witness = find_rows,
                                           .context = &rows };
    struct engine_tap_choice hidden;
    size_t count = TOKENS * (size_t)scene->report.config.vocab_size;
    double *wanted = malloc(count * sizeof(*wanted));
    float *again = malloc(count * sizeof(*again));
    assert_true(wanted && again);
    CHECK_OK(engine_tap_parse("hidden", &hidden, &scene->err), &scene->err);
    CHECK_OK(engine_tap_set(scene->engine, &hidden, 1, keep_rows, &rows, &scene->err), &scene->err);
    engine_rewind(scene->engine, 0, 0);
    run_chunks(scene, 0, TOKENS, again);
    CHECK_OK(engine_tap_set(scene->engine, NULL, 0, NULL, NULL, &scene->err), &scene->err);
    assert_memory_equal(again, logits, count * sizeof(*again)); /* looking changes nothing */
    reference_logits(scene->file, &scene->report.config, &rounding, ids, TOKENS, wanted);
    double error = normalised_error(logits, wanted, count);
    print_message("    against one that rounds alike: %.2e\n", error);
    if (!(error < 1e-10))
        fail_msg("normalised error %g against a reference that rounds alike", error);
    for (size_t i = 0; i < rows.count; i++)
        free(rows.values[i]);
    free(wanted);
    free(again);
}

/* ---- Tests ---------------------------------------------------------------------------------- */

/* How closely a model must follow the reference. */
static const struct reference {
    enum model_arch arch;
    enum convert_type type;
    enum dtype kv;
    double limit;
} references[] = {
    { MODEL_ARCH_LLAMA, CONVERT_F32, DTYPE_F32, 1e-9 },
    { MODEL_ARCH_QWEN2, CONVERT_F32, DTYPE_F32, 1e-9 },
    { MODEL_ARCH_QWEN3, CONVERT_F32, DTYPE_F32, 1e-9 },
    { MODEL_ARCH_GEMMA2, CONVERT_F32, DTYPE_F32, 1e-9 },
    { MODEL_ARCH_GEMMA3, CONVERT_F32, DTYPE_F32, 1e-9 },
    { MODEL_ARCH_GEMMA4, CONVERT_F32, DTYPE_F32, 1e-9 },
    { MODEL_ARCH_PHI3, CONVERT_F32, DTYPE_F32, 1e-9 },
    { MODEL_ARCH_MISTRAL3, CONVERT_F32, DTYPE_F32, 1e-9 },
    { MODEL_ARCH_GLM4, CONVERT_F32, DTYPE_F32, 1e-9 },
    { MODEL_ARCH_GRANITE, CONVERT_F32, DTYPE_F32, 1e-9 },
    { MODEL_ARCH_OLMO2, CONVERT_F32, DTYPE_F32, 1e-9 },
    { MODEL_ARCH_SMOLLM3, CONVERT_F32, DTYPE_F32, 1e-9 },
    { MODEL_ARCH_COMMAND_R, CONVERT_F32, DTYPE_F32, 1e-9 },
    { MODEL_ARCH_COHERE2, CONVERT_F32, DTYPE_F32, 1e-9 },
    { MODEL_ARCH_STARCODER2, CONVERT_F32, DTYPE_F32, 1e-9 },
    { MODEL_ARCH_QWEN2MOE, CONVERT_F32, DTYPE_F32, 1e-9 },
    { MODEL_ARCH_QWEN3MOE, CONVERT_F32, DTYPE_F32, 1e-9 },
    { MODEL_ARCH_GRANITEMOE, CONVERT_F32, DTYPE_F32, 1e-9 },
    { MODEL_ARCH_GPT_OSS, CONVERT_F32, DTYPE_F32, 1e-9 },
    { MODEL_ARCH_LLAMA4, CONVERT_F32, DTYPE_F32, 1e-9 },
    { MODEL_ARCH_LLAMA4, CONVERT_F16, DTYPE_F16, 1e-4 },
    { MODEL_ARCH_DEEPSEEK2, CONVERT_F32, DTYPE_F32, 1e-9 },
    { MODEL_ARCH_GPT_OSS, CONVERT_MXFP4, DTYPE_F16, 1e-3 },
    { MODEL_ARCH_QWEN3MOE, CONVERT_Q4_K_M, DTYPE_F16, 1e-3 },
    { MODEL_ARCH_GEMMA2, CONVERT_Q4_K_M, DTYPE_F16, 1e-3 },
    { MODEL_ARCH_PHI3, CONVERT_Q8_0, DTYPE_Q8_0, 1e-3 },
    { MODEL_ARCH_COHERE2, CONVERT_Q8_0, DTYPE_F16, 1e-3 },
    { MODEL_ARCH_STARCODER2, CONVERT_Q4_0, DTYPE_F16, 1e-3 },
    { MODEL_ARCH_LLAMA, CONVERT_F16, DTYPE_F32, 1e-4 },
    { MODEL_ARCH_QWEN3, CONVERT_BF16, DTYPE_F16, 1e-4 },
    { MODEL_ARCH_LLAMA, CONVERT_Q8_0, DTYPE_F16, 1e-3 },
    { MODEL_ARCH_QWEN2, CONVERT_Q8_0, DTYPE_Q8_0, 1e-3 },
    { MODEL_ARCH_QWEN3, CONVERT_Q4_0, DTYPE_F16, 1e-3 },
    { MODEL_ARCH_LLAMA, CONVERT_Q4_K_M, DTYPE_F16, 1e-3 },
    { MODEL_ARCH_QWEN3, CONVERT_Q5_K_M, DTYPE_F16, 1e-3 },
    { MODEL_ARCH_LLAMA, CONVERT_Q6_K, DTYPE_Q8_0, 1e-3 },
};

/* experts: the model has some, where it may have them. */
static void check_reference(const struct reference *reference, bool experts)
{
    struct scene scene;
    struct model_shape shape = scene_shape(reference->arch);
    if (experts)
        scene_give_experts(&shape);
    scene_write(&scene, &shape, reference->type);
    size_t vocab = scene.report.config.vocab_size, count = TOKENS * vocab;
    double *wanted = malloc(count * sizeof(*wanted));
    float *logits = malloc(count * sizeof(*logits)), *again = malloc(count * sizeof(*again));
    assert_true(wanted && logits && again);
    reference_logits(scene.file, &scene.report.config, NULL, ids, TOKENS, wanted);
    for (int path = 0; path < CPU_PATH_COUNT; path++) {
        if (!cpu_path_is_supported((enum cpu_path)path))
            continue;
        struct engine_options options = { .kv_dtype = reference->kv, .logits_limit = TOKENS };
        scene_start(&scene, (enum cpu_path)path, 1, options);
        run_chunks(&scene, 0, TOKENS, logits);
        double error = normalised_error(logits, wanted, count);
        print_message("%s %s, %s cache, %s: normalised error %.2e\n",
                      model_arch_info(reference->arch)->name, convert_type_name(reference->type),
                      dtype_name(reference->kv), cpu_path_name((enum cpu_path)path), error);
        if (!(error < reference->limit))
            fail_msg("normalised error %g, at most %g", error, reference->limit);
        check_alike(&scene, (enum cpu_path)path, reference->kv, logits);
        /* Other chunks, other threads: the same bits. */
        engine_rewind(scene.engine, 0, 0);
        run_chunks(&scene, 0, 1, again);
        assert_memory_equal(logits, again, count * sizeof(*logits));
        scene_stop(&scene);
        scene_start(&scene, (enum cpu_path)path, 3, options);
        run_chunks(&scene, 0, 8, again);
        assert_memory_equal(logits, again, count * sizeof(*logits));
        scene_stop(&scene);
    }
    free(wanted);
    free(logits);
    free(again);
    scene_end(&scene);
}

static void test_against_reference(void **state)
{
    (void)state;
    for (size_t row = 0; row < COUNT_OF(references); row++)
        check_reference(&references[row], false);
}

static void test_optional_experts(void **state)
{
    static const struct reference rows[] = {
        { MODEL_ARCH_LLAMA, CONVERT_F32, DTYPE_F32, 1e-9 },
        { MODEL_ARCH_GEMMA4, CONVERT_F32, DTYPE_F32, 1e-9 },
        { MODEL_ARCH_GEMMA4, CONVERT_F16, DTYPE_F32, 1e-4 },
    };
    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++)
        check_reference(&rows[row], true);
}

/* Three sequences in one batch give the bits each gives alone. */
static void test_batch_composition(void **state)
{
    (void)state;
    struct scene scene;
    struct model_shape shape = scene_shape(MODEL_ARCH_LLAMA);
    scene_write(&scene, &shape, CONVERT_Q4_K_M);
    size_t vocab = scene.report.config.vocab_size;
    struct engine_options options = { .kv_dtype = DTYPE_F16,
                                      .sequence_limit = 3,
                                      .logits_limit = 3 * TOKENS };
    scene_start(&scene, CPU_PATH_COUNT, 2, options);
    float *alone = malloc(TOKENS * vocab * sizeof(float)), *row = malloc(vocab * sizeof(float));
    assert_true(alone && row);
    run_chunks(&scene, 0, TOKENS, alone);
    engine_rewind(scene.engine, 0, 0);
    /* One token of each sequence, interleaved; the third is one late. */
    for (size_t t = 0; t < TOKENS; t++) {
        struct engine_token tokens[3] = { { ids[t], 2, true },
                                          { ids[t], 0, true },
                                          { 0, 0, false } };
        size_t count = 2;
        if (t >= 4)
            tokens[count++] = (struct engine_token){ ids[t - 4], 1, true };
        CHECK_OK(engine_forward(scene.engine, tokens, count, &scene.err), &scene.err);
        for (uint32_t i = 0; i < count; i++) {
            CHECK_OK(engine_logits(scene.engine, i, row, &scene.err), &scene.err);
            assert_memory_equal(row, alone + (i == 2 ? t - 4 : t) * vocab, vocab * sizeof(float));
        }
    }
    assert_int_equal(engine_length(scene.engine, 0), TOKENS);
    assert_int_equal(engine_length(scene.engine, 1), TOKENS - 4);
    free(alone);
    free(row);
    scene_stop(&scene);
    scene_end(&scene);
}

static void test_fork_and_rewind(void **state)
{
    (void)state;
    struct scene scene;
    struct model_shape shape = scene_shape(MODEL_ARCH_QWEN3);
    scene_write(&scene, &shape, CONVERT_Q8_0);
    size_t vocab = scene.report.config.vocab_size;
    struct engine_options options = { .kv_dtype = DTYPE_Q8_0,
                                      .sequence_limit = 2,
                                      .logits_limit = TOKENS };
    scene_start(&scene, CPU_PATH_COUNT, 2, options);
    float *first = malloc(TOKENS * vocab * sizeof(float)), *row = malloc(vocab * sizeof(float));
    assert_true(first && row);
    run_chunks(&scene, 0, TOKENS, first);
    CHECK_OK(engine_fork(scene.engine, 0, 1, &scene.err), &scene.err);
    engine_rewind(scene.engine, 1, 10);
    struct engine_token token = { ids[10], 1, true };
    CHECK_OK(engine_forward(scene.engine, &token, 1, &scene.err), &scene.err);
    CHECK_OK(engine_logits(scene.engine, 0, row, &scene.err), &scene.err);
    assert_memory_equal(row, first + 10 * vocab, vocab * sizeof(float));
    int32_t best;
    CHECK_OK(engine_argmax(scene.engine, &best, &scene.err), &scene.err);
    for (size_t i = 0; i < vocab; i++)
        assert_true(row[i] <= row[best]);
    free(first);
    free(row);
    scene_stop(&scene);
    scene_end(&scene);
}

static void test_limits(void **state)
{
    (void)state;
    struct scene scene;
    struct model_shape shape = scene_shape(MODEL_ARCH_LLAMA);
    scene_write(&scene, &shape, CONVERT_Q8_0);
    struct engine_options options = { .kv_dtype = DTYPE_F16, .context = 4, .batch_limit = 8 };
    scene_start(&scene, CPU_PATH_COUNT, 1, options);
    struct engine_token tokens[9];
    for (size_t i = 0; i < COUNT_OF(tokens); i++)
        tokens[i] = (struct engine_token){ 5, 0, i == 8 };
    CHECK_FAILS(engine_forward(scene.engine, tokens, 9, &scene.err), STATUS_LIMIT, &scene.err);
    check_contains("batch", scene.err.text, "1 to 8 tokens, found 9");
    CHECK_FAILS(engine_forward(scene.engine, tokens, 5, &scene.err), STATUS_LIMIT, &scene.err);
    check_contains("context", scene.err.text, "at most the 4 tokens");
    assert_int_equal(engine_length(scene.engine, 0), 0);
    CHECK_OK(engine_forward(scene.engine, tokens, 4, &scene.err), &scene.err);
    CHECK_FAILS(engine_forward(scene.engine, tokens, 1, &scene.err), STATUS_LIMIT, &scene.err);
    struct engine_budget budget;
    struct engine_options absurd = { .kv_dtype = DTYPE_F16,
                                     .context = 1u << 30,
                                     .sequence_limit = 9 };
    CHECK_FAILS(engine_budget_make(&scene.report, &scene.ops, &absurd, &budget, &scene.err),
                STATUS_USAGE, &scene.err);
    struct engine *engine;
    struct engine_options large = { .kv_dtype = DTYPE_F32, .context = 1u << 30 };
    CHECK_FAILS(engine_open(&scene.ops, scene.file, &scene.report, &large, &engine, &scene.err),
                STATUS_NO_MEMORY, &scene.err);
    check_contains("memory", scene.err.text, "found a need of");
    scene_stop(&scene);
    scene_end(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_reference),
        cmocka_unit_test(test_optional_experts),
        cmocka_unit_test(test_batch_composition),
        cmocka_unit_test(test_fork_and_rewind),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
