/* model_config_test.c - metadata keys to configuration: defaults and every key. */
#include "model_file.h"

static void test_defaults(void **state)
{
    (void)state;
    static const struct model_edit edits[] = { DROP_KEY("llama.attention.head_count_kv"), { 0 } };
    static struct model_file model;
    model_file_init(&model, MODEL_ARCH_LLAMA, edits);
    const struct model_config *config = &model.report.config;
    assert_true(model.report.config_known);
    assert_int_equal(config->arch, MODEL_ARCH_LLAMA);
    assert_int_equal(config->head_count_kv, 4); /* as many as heads */
    assert_int_equal(config->head_dim, 16);     /* embedding_length / head_count */
    assert_int_equal(config->vocab_size, 8);    /* tokens */
    assert_true(config->attention_scale == 0.25f);
    assert_true(config->rms_epsilon == 1e-5f);
    assert_int_equal(config->rope.kind, MODEL_ROPE_ADJACENT);
    assert_int_equal(config->rope.dimension_count, 16);
    assert_true(config->rope.base == 10000.0f);
    assert_int_equal(config->rope.scaling, MODEL_ROPE_SCALING_NONE);
    assert_true(config->rope.scaling_factor == 1.0f);
    assert_int_equal(config->rope.original_context_length, 128);
    assert_true(config->rope.attention_factor == 1.0f);
    assert_true(config->rope.yarn_ext_factor == 0.0f);
    assert_true(config->rope.yarn_beta_fast == 32.0f);
    assert_true(config->rope.yarn_beta_slow == 1.0f);
    assert_true(config->rope.yarn_log_multiplier == 0.0f);
    assert_false(config->tied_embeddings);
    assert_false(config->has_rope_freqs);
    model_file_release(&model);
}

/* ---- One key at a time ---------------------------------------------------------------------- */

#define WHOLE(field) false, offsetof(struct model_config, field)
#define REAL(field) true, offsetof(struct model_config, field)

/* A key of the metadata, and the value that the configuration then has. */
static const struct {
    const char *name;
    struct model_edit edits[5];
    bool is_real;
    size_t offset;
    double value;
} keys[] = {
    { "context", { PUT_U32("llama.context_length", 4096) }, WHOLE(context_length), 4096 },
    { "width", { PUT_U32("llama.embedding_length", 128) }, WHOLE(embedding_length), 128 },
    { "layers", { PUT_U32("llama.block_count", 7) }, WHOLE(block_count), 7 },
    { "feed", { PUT_U32("llama.feed_forward_length", 33) }, WHOLE(feed_forward_length), 33 },
    { "heads", { PUT_U32("llama.attention.head_count", 2) }, WHOLE(head_count), 2 },
    { "kv heads", { PUT_U32("llama.attention.head_count_kv", 1) }, WHOLE(head_count_kv), 1 },
    { "key length", { PUT_U32("llama.attention.key_length", 24) }, WHOLE(head_dim), 24 },
    { "epsilon",
      { PUT_F32("llama.attention.layer_norm_rms_epsilon", 0.5) },
      REAL(rms_epsilon),
      0.5 },
    { "scale is not read",
      { PUT_F32("llama.attention.scale", 0.125) },
      REAL(attention_scale),
      0.25 },
    { "base", { PUT_F32("llama.rope.freq_base", 500000) }, REAL(rope.base), 500000 },
    { "base, whole number", { PUT_U32("llama.rope.freq_base", 10) }, REAL(rope.base), 10 },
    { "rotated part of a head",
      { PUT_TEXT("general.architecture", "qwen2"), PUT_U32("qwen2.context_length", 1),
        PUT_U32("qwen2.rope.dimension_count", 8) },
      WHOLE(rope.dimension_count),
      8 },
    { "vocab_size", { PUT_U32("llama.vocab_size", 9) }, WHOLE(vocab_size), 9 },
    { "linear scaling",
      { PUT_F32("llama.rope.scaling.factor", 4) },
      WHOLE(rope.scaling),
      MODEL_ROPE_SCALING_LINEAR },
    { "old linear key", { PUT_F32("llama.rope.scale_linear", 2) }, REAL(rope.scaling_factor), 2 },
    { "newer key counts",
      { PUT_F32("llama.rope.scale_linear", 2), PUT_F32("llama.rope.scaling.factor", 8) },
      REAL(rope.scaling_factor),
      8 },
    { "scaling none forgets the factor",
      { PUT_F32("llama.rope.scaling.factor", 4), PUT_TEXT("llama.rope.scaling.type", "none") },
      REAL(rope.scaling_factor),
      1 },
    { "original context",
      { PUT_U32("llama.rope.scaling.original_context_length", 77) },
      WHOLE(rope.original_context_length),
      77 },
    { "attention factor",
      { PUT_F32("llama.rope.scaling.attn_factor", 1.5) },
      REAL(rope.attention_factor),
      1.5 },
    { "yarn",
      { PUT_TEXT("llama.rope.scaling.type", "yarn"), PUT_F32("llama.rope.scaling.factor", 4) },
      WHOLE(rope.scaling),
      MODEL_ROPE_SCALING_YARN },
    { "yarn switches extrapolation on",
      { PUT_TEXT("llama.rope.scaling.type", "yarn") },
      REAL(rope.yarn_ext_factor),
      1 },
    { "yarn_ext_factor is not read",
      { PUT_TEXT("llama.rope.scaling.type", "yarn"),
        PUT_F32("llama.rope.scaling.yarn_ext_factor", 0.5) },
      REAL(rope.yarn_ext_factor),
      1 },
    { "yarn_attn_factor is not read",
      { PUT_TEXT("llama.rope.scaling.type", "yarn"), PUT_F32("llama.rope.scaling.factor", 8),
        PUT_F32("llama.rope.scaling.yarn_attn_factor", 1.2079f) },
      REAL(rope.attention_factor),
      1 },
    { "yarn_attn_factor is not read where the other name is there",
      { PUT_TEXT("llama.rope.scaling.type", "yarn"), PUT_F32("llama.rope.scaling.attn_factor", 3),
        PUT_F32("llama.rope.scaling.yarn_attn_factor", 1.5) },
      REAL(rope.attention_factor),
      3 },
    { "yarn_beta_fast is not read",
      { PUT_F32("llama.rope.scaling.yarn_beta_fast", 16) },
      REAL(rope.yarn_beta_fast),
      32 },
    { "yarn_beta_slow is not read",
      { PUT_F32("llama.rope.scaling.yarn_beta_slow", 2) },
      REAL(rope.yarn_beta_slow),
      1 },
    { "yarn_log_multiplier is not read",
      { PUT_F32("llama.rope.scaling.yarn_log_multiplier", 0.1f) },
      REAL(rope.yarn_log_multiplier),
      0 },
};

static void test_each_key(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        static struct model_file model;
        model_file_init(&model, MODEL_ARCH_LLAMA, keys[i].edits);
        const char *field = (const char *)&model.report.config + keys[i].offset;
        double value = keys[i].is_real ? *(const float *)(const void *)field
                                       : *(const uint32_t *)field;
        if (value != keys[i].value)
            fail_msg("%s: expected %g, found %g", keys[i].name, keys[i].value, value);
        model_file_release(&model);
    }
}

/* Converters have written these keys in many types. */
static void test_integer_widths(void **state)
{
    (void)state;
    static const uint32_t types[] = { BUILD_U8,  BUILD_I8,  BUILD_U16, BUILD_I16,
                                      BUILD_U32, BUILD_I32, BUILD_U64, BUILD_I64 };
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        const struct model_edit edits[] = {
            { .kind = EDIT_KEY, .name = "llama.block_count", .type = types[i], .number = 2 }, { 0 }
        };
        static struct model_file model;
        model_file_init(&model, MODEL_ARCH_LLAMA, edits);
        if (model.report.problem_count)
            fail_msg("type %u: %s", types[i], model.report.problems[0].text);
        assert_int_equal(model.report.config.block_count, 2);
        model_file_release(&model);
    }
}

static void test_per_layer_arrays(void **state)
{
    (void)state;
    static const struct model_edit edits[] = {
        PUT_ARRAY("llama.feed_forward_length", BUILD_I32, 2, 96, 96),
        PUT_ARRAY("llama.attention.head_count", BUILD_U32, 2, 4, 4),
        PUT_ARRAY("llama.attention.head_count_kv", BUILD_U64, 2, 2, 2),
        { 0 },
    };
    static struct model_file model;
    model_file_init(&model, MODEL_ARCH_LLAMA, edits);
    assert_int_equal(model.report.problem_count, 0);
    assert_int_equal(model.report.config.feed_forward_length, 96);
    assert_int_equal(model.report.config.head_count_kv, 2);
    model_file_release(&model);
}

/* ---- Absurd values -------------------------------------------------------------------------- */

static void test_kv_bytes(void **state)
{
    (void)state;
    struct model_config llama3 = { .block_count = 32, .head_count_kv = 8, .head_dim = 128 };
    assert_int_equal(model_kv_bytes(&llama3, 1, DTYPE_F16), 131072);
    assert_int_equal(model_kv_bytes(&llama3, 8192, DTYPE_F16), 1ull << 30);
    assert_int_equal(model_kv_bytes(&llama3, 1, DTYPE_F32), 262144);
    assert_int_equal(model_kv_bytes(&llama3, 1, DTYPE_Q8_0), 2 * 32 * 1024 / 32 * 34);
    assert_int_equal(model_kv_bytes(&llama3, 0, DTYPE_F16), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),       cmocka_unit_test(test_each_key),
        cmocka_unit_test(test_integer_widths), cmocka_unit_test(test_per_layer_arrays),
        cmocka_unit_test(test_kv_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
