/* model_families_test.c - the keys that only some architectures have: windows, caps, scales; and
 * what the guard rail says of a file that lacks one of them or has it wrong. */
#include "model_file.h"

#include <math.h>

static const struct model_config *open_config(struct model_file *model, enum model_arch arch,
                                              const struct model_edit *edits)
{
    model_file_init(model, arch, edits);
    for (size_t i = 0; i < model->report.problem_count; i++)
        if (!model->report.config_known)
            fail_msg("%s", model->report.problems[i].text);
    assert_true(model->report.config_known);
    return &model->report.config;
}

static void check_says(enum model_arch arch, const struct model_edit *edits, const char *words)
{
    static struct model_file model;
    model_file_init(&model, arch, edits);
    const char *const all[] = { words, NULL };
    if (!model_report_says(&model.report, all))
        fail_msg("expected \"%s\", found %s", words,
                 model.report.problem_count ? model.report.problems[0].text : "nothing");
    assert_true(model_report_refuses(&model.report, true));
    model_file_release(&model);
}

/* ---- Windows -------------------------------------------------------------------------------- */

static void test_windows(void **state)
{
    (void)state;
    static struct model_file model;
    static const struct model_edit eight[] = { PUT_U32("gemma3.block_count", 8),
                                               PUT_U32("gemma3.attention.sliding_window", 9),
                                               { 0 } };
    const struct model_config *config = open_config(&model, MODEL_ARCH_GEMMA2, NULL);
    assert_int_equal(model_layer(config, 0).window, 4096); /* even layers, if no key says it */
    assert_int_equal(model_layer(config, 1).window, 0);
    model_file_release(&model);
    config = open_config(&model, MODEL_ARCH_GEMMA3, eight);
    for (uint32_t layer = 0; layer < 8; layer++) {
        struct model_layer found = model_layer(config, layer);
        assert_int_equal(found.window, layer == 5 ? 0 : 9);
        assert_int_equal(found.rope, layer == 5 ? MODEL_LAYER_ROPE : MODEL_LAYER_LOCAL_ROPE);
    }
    assert_true(config->local_rope.base == 10000);
    model_file_release(&model);
    config = open_config(&model, MODEL_ARCH_GEMMA3, NULL); /* no key: no windows */
    assert_int_equal(model_layer(config, 0).window, 0);
    assert_int_equal(model_layer(config, 0).rope, MODEL_LAYER_ROPE);
    model_file_release(&model);
    static const struct model_edit four[] = { PUT_U32("cohere2.block_count", 4), { 0 } };
    config = open_config(&model, MODEL_ARCH_COHERE2, four);
    assert_int_equal(model_layer(config, 2).rope, MODEL_LAYER_ROPE);
    assert_int_equal(model_layer(config, 3).rope, MODEL_LAYER_UNROTATED);
    model_file_release(&model);
    config = open_config(&model, MODEL_ARCH_SMOLLM3, NULL);
    assert_int_equal(model_layer(config, 2).rope, MODEL_LAYER_ROPE);
    assert_int_equal(model_layer(config, 3).rope, MODEL_LAYER_UNROTATED);
    model_file_release(&model);
    static const struct model_edit ignored[] = { PUT_U32("phi3.attention.sliding_window", 9),
                                                 { 0 } };
    config = open_config(&model, MODEL_ARCH_PHI3, ignored);
    assert_int_equal(model_layer(config, 0).window, 0);
    model_file_release(&model);
}

static void test_patterns(void **state)
{
    (void)state;
    static struct model_file model;
    static const struct model_edit flags[] = {
        PUT_U32("olmo2.attention.sliding_window", 7),
        PUT_ARRAY("olmo2.attention.sliding_window_pattern", BUILD_BOOL, 2, 0, 1),
        PUT_TEXT("olmo2.rope.scaling.type", "yarn"),
        PUT_F32("olmo2.rope.scaling.factor", 8),
        { 0 },
    };
    const struct model_config *config = open_config(&model, MODEL_ARCH_OLMO2, flags);
    assert_int_equal(model_layer(config, 0).window, 0);
    assert_int_equal(model_layer(config, 0).rope, MODEL_LAYER_ROPE);
    assert_int_equal(model_layer(config, 1).window, 7);
    assert_int_equal(model_layer(config, 1).rope, MODEL_LAYER_LOCAL_ROPE);
    assert_true(config->local_rope.scaling_factor == 1 && config->rope.scaling_factor == 8);
    assert_int_equal(config->local_rope.scaling, MODEL_ROPE_SCALING_NONE);
    model_file_release(&model);
    static const struct model_edit few[] = {
        PUT_U32("olmo2.attention.sliding_window", 7),
        PUT_ARRAY("olmo2.attention.sliding_window_pattern", BUILD_BOOL, 1, 1),
        { 0 },
    };
    check_says(MODEL_ARCH_OLMO2, few, "a flag for each of 2 layers, found 1");
    static const struct model_edit numbers[] = {
        PUT_U32("olmo2.attention.sliding_window", 7),
        PUT_ARRAY("olmo2.attention.sliding_window_pattern", BUILD_I32, 2, 1, 7),
        { 0 },
    };
    check_says(MODEL_ARCH_OLMO2, numbers, "expected a bool for each layer");
    static const struct model_edit all[] = { PUT_U32("gemma2.attention.sliding_window_pattern", 0),
                                             { 0 } };
    config = open_config(&model, MODEL_ARCH_GEMMA2, all);
    assert_int_equal(model_layer(config, 1).window, 4096);
    model_file_release(&model);
}

/* ---- Layers that differ --------------------------------------------------------------------- */

#define GEMMA4_LAYERS                                                                              \
    PUT_U32("gemma4.block_count", 6), PUT_U32("gemma4.attention.key_length_swa", 8),               \
        PUT_ARRAY("gemma4.attention.sliding_window_pattern", BUILD_BOOL, 6, 1, 1, 0, 1, 0, 1)

static void test_unlike_layers(void **state)
{
    (void)state;
    static struct model_file model;
    static const struct model_edit edits[] = {
        GEMMA4_LAYERS,
        PUT_ARRAY("gemma4.attention.head_count_kv", BUILD_I32, 6, 4, 4, 2, 4, 1, 4),
        PUT_ARRAY("gemma4.feed_forward_length", BUILD_I32, 6, 8, 16, 24, 32, 40, 96),
        PUT_U32("gemma4.embedding_length_per_layer_input", 8),
        PUT_U32("gemma4.attention.shared_kv_layers", 1),
        { 0 },
    };
    const struct model_config *config = open_config(&model, MODEL_ARCH_GEMMA4, edits);
    struct model_layer local = model_layer(config, 1), full = model_layer(config, 4),
                       shared = model_layer(config, 5);
    assert_int_equal(local.head_dim, 8);
    assert_int_equal(full.head_dim, 16);
    assert_int_equal(local.head_count_kv, 4);
    assert_int_equal(full.head_count_kv, 1);
    assert_int_equal(full.feed_forward_length, 40);
    assert_int_equal(full.cache, 4);
    assert_int_equal(shared.cache, 3); /* the last one with a window */
    assert_int_equal(local.rope, MODEL_LAYER_LOCAL_ROPE);
    assert_int_equal(model_tensor(config, MODEL_ATTN_K, 4).presence, MODEL_REQUIRED);
    assert_int_equal(model_tensor(config, MODEL_ATTN_K, 5).presence, MODEL_ABSENT);
    assert_int_equal(model_tensor(config, MODEL_ATTN_V, 4).presence, MODEL_OPTIONAL);
    assert_int_equal(model_tensor(config, MODEL_ATTN_Q, 1).shape.dims[1], 32);
    assert_int_equal(model_tensor(config, MODEL_FFN_UP, 4).shape.dims[1], 40);
    assert_int_equal(model_tensor(config, MODEL_LAYER_TOKEN_EMBD, 0).shape.dims[0], 48);
    assert_int_equal(model_tensor(config, MODEL_LAYER_INPUT_GATE, 0).presence, MODEL_REQUIRED);
    assert_true(config->attention_scale == 1 && config->logit_cap == 30);
    /* Keys and values of five layers: 4 * 8, 4 * 8, 2 * 16, 4 * 8 and 16 values. */
    assert_int_equal(model_kv_bytes(config, 1, DTYPE_F32), 2 * 4 * (32 + 32 + 32 + 32 + 16));
    model_file_release(&model);
    static const struct model_edit uncapped[] = { PUT_F32("gemma4.final_logit_softcapping", 0),
                                                  { 0 } };
    config = open_config(&model, MODEL_ARCH_GEMMA4, uncapped);
    assert_true(config->logit_cap == 0);
    assert_int_equal(model_tensor(config, MODEL_LAYER_INPUT_GATE, 0).presence, MODEL_ABSENT);
    model_file_release(&model);
}

static void test_bad_unlike_layers(void **state)
{
    (void)state;
    static const struct {
        struct model_edit edits[5];
        const char *words;
    } rows[] = {
        { { GEMMA4_LAYERS, PUT_ARRAY("gemma4.feed_forward_length", BUILD_I32, 2, 8, 8) },
          "feed_forward_length: expected 6 numbers" },
        { { GEMMA4_LAYERS,
            PUT_ARRAY("gemma4.attention.head_count_kv", BUILD_I32, 6, 4, 4, 3, 4, 4, 4) },
          "expected a divisor of head_count" },
        { { GEMMA4_LAYERS, PUT_U32("gemma4.attention.shared_kv_layers", 2) },
          "attention.shared_kv_layers: expected a number that leaves" },
        { { GEMMA4_LAYERS, PUT_U32("gemma4.attention.shared_kv_layers", 6) },
          "attention.shared_kv_layers: expected 0 to 5" },
        { { GEMMA4_LAYERS, PUT_U32("gemma4.attention.value_length_swa", 16) },
          "attention.value_length_swa" },
        { { GEMMA4_LAYERS, PUT_U32("gemma4.rope.dimension_count_swa", 16) },
          "rope.dimension_count_swa" },
        { { GEMMA4_LAYERS, PUT_U32("gemma4.embedding_length_per_layer_input", 9) },
          "embedding_length_per_layer_input" },
        { { DROP_KEY("gemma4.attention.sliding_window_pattern") },
          "attention.sliding_window_pattern: expected a bool for each layer" },
        { { PUT_U32("gemma4.expert_count", 4) }, "gemma4.expert_used_count: expected a whole" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        check_says(MODEL_ARCH_GEMMA4, rows[i].edits, rows[i].words);
}

/* ---- Numbers -------------------------------------------------------------------------------- */

#define FIELD(field) offsetof(struct model_config, field)

static const struct {
    enum model_arch arch;
    struct model_edit edits[4];
    size_t offset;
    double value;
} numbers[] = {
    { MODEL_ARCH_GEMMA2, { { 0 } }, FIELD(attention_cap), 50 },
    { MODEL_ARCH_GEMMA2, { { 0 } }, FIELD(logit_cap), 30 },
    { MODEL_ARCH_GEMMA2, { { 0 } }, FIELD(embedding_scale), 8 },
    { MODEL_ARCH_GEMMA2, { PUT_F32("gemma2.attn_logit_softcapping", 4) }, FIELD(attention_cap), 4 },
    { MODEL_ARCH_GEMMA2,
      { PUT_U32("gemma2.attention.key_length", 64) },
      FIELD(attention_scale),
      0.125 },
    { MODEL_ARCH_GEMMA2,
      { PUT_U32("gemma2.attention.key_length", 64), PUT_U32("gemma2.block_count", 46) },
      FIELD(attention_scale),
      0.25 },
    { MODEL_ARCH_GEMMA3, { { 0 } }, FIELD(logit_cap), 0 },
    { MODEL_ARCH_GEMMA3,
      { PUT_F32("gemma3.attn_logit_softcapping", 50) },
      FIELD(attention_cap),
      0 },
    { MODEL_ARCH_GRANITE, { { 0 } }, FIELD(logit_scale), 2 },
    { MODEL_ARCH_GRANITE, { PUT_F32("granite.residual_scale", 0) }, FIELD(residual_scale), 1 },
    { MODEL_ARCH_GRANITE,
      { PUT_F32("granite.residual_scale", 0.25) },
      FIELD(residual_scale),
      0.25 },
    { MODEL_ARCH_GRANITE,
      { PUT_F32("granite.attention.scale", 0.5) },
      FIELD(attention_scale),
      0.5 },
    { MODEL_ARCH_COHERE2, { { 0 } }, FIELD(logit_scale), 0.5 },
    { MODEL_ARCH_COMMAND_R, { { 0 } }, FIELD(logit_scale), 1 },
    { MODEL_ARCH_MISTRAL3,
      { PUT_F32("mistral3.rope.scaling.yarn_log_multiplier", 1) },
      FIELD(rope.yarn_log_multiplier),
      1 },
    { MODEL_ARCH_MISTRAL3,
      { PUT_F32("mistral3.attention.temperature_scale", 0.5),
        PUT_U32("mistral3.rope.scaling.original_context_length", 16) },
      FIELD(temperature_scale),
      0.5 },
};

static void test_numbers(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        static struct model_file model;
        const struct model_config *config = open_config(&model, numbers[i].arch, numbers[i].edits);
        float found = *(const float *)(const void *)((const char *)config + numbers[i].offset);
        if ((double)found != numbers[i].value)
            fail_msg("row %zu: expected %g, found %g", i, numbers[i].value, (double)found);
        model_file_release(&model);
    }
}

static void test_switches(void **state)
{
    (void)state;
    static struct model_file model;
    static const struct model_edit sections[] = {
        PUT_ARRAY("glm4.rope.dimension_sections", BUILD_I32, 4, 4, 2, 2, 0), { 0 }
    };
    const struct model_config *config = open_config(&model, MODEL_ARCH_GLM4, sections);
    assert_int_equal(config->rope.kind, MODEL_ROPE_SPLIT_HALF);
    model_file_release(&model);
    static const struct model_edit unrotated[] = {
        { .kind = EDIT_KEY, .name = "granite.rope.scaling.finetuned", .type = BUILD_BOOL }, { 0 }
    };
    config = open_config(&model, MODEL_ARCH_GRANITE, unrotated);
    assert_int_equal(model_layer(config, 0).rope, MODEL_LAYER_UNROTATED);
    model_file_release(&model);
    /* The last block is there and not used. */
    static const struct model_edit predicts[] = { PUT_U32("glm4.block_count", 3),
                                                  PUT_U32("glm4.nextn_predict_layers", 1),
                                                  PUT_VECTOR("blk.2.nextn.enorm.weight", DTYPE_F32,
                                                             64),
                                                  { 0 } };
    config = open_config(&model, MODEL_ARCH_GLM4, predicts);
    assert_int_equal(config->block_count, 2);
    assert_int_equal(model.report.problem_count, 0);
    model_file_release(&model);
    static const struct model_edit all[] = { PUT_U32("glm4.nextn_predict_layers", 2), { 0 } };
    check_says(MODEL_ARCH_GLM4, all, "nextn_predict_layers: expected 0 to 1, found 2");
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        enum model_arch arch;
        struct model_edit edits[3];
        const char *words;
    } rows[] = {
        { MODEL_ARCH_GRANITE, { DROP_KEY("granite.logit_scale") }, "granite.logit_scale" },
        { MODEL_ARCH_GEMMA2,
          { PUT_U32("gemma2.expert_count", 4) },
          "greta cannot run gemma2 models with mixture of experts" },
        { MODEL_ARCH_COHERE2, { DROP_KEY("cohere2.logit_scale") }, "cohere2.logit_scale" },
        { MODEL_ARCH_COHERE2,
          { DROP_KEY("cohere2.attention.sliding_window") },
          "cohere2.attention.sliding_window" },
        { MODEL_ARCH_COHERE2, { PUT_U32("cohere2.attention.sliding_window", 0) }, "found 0" },
        { MODEL_ARCH_MISTRAL3,
          { PUT_F32("mistral3.attention.temperature_scale", 0.5) },
          "expected the length that attention.temperature_scale counts in" },
        { MODEL_ARCH_LLAMA,
          { PUT_F32("llama.attention.temperature_scale", 0.5) },
          "attention temperature by position" },
        { MODEL_ARCH_LLAMA,
          { PUT_TEXT("llama.rope.scaling.type", "longrope") },
          "expected none, linear or yarn, found 'longrope'" },
        { MODEL_ARCH_PHI3,
          { PUT_VECTOR("rope_factors_long.weight", DTYPE_F32, 8) },
          "rope_factors_short.weight: expected a tensor of shape [8], found none" },
        { MODEL_ARCH_OLMO2, { DROP_TENSOR("output.weight") }, "output.weight: expected a tensor" },
        { MODEL_ARCH_GEMMA2,
          { PUT_MATRIX("output.weight", DTYPE_F32, 64, 8) },
          "output.weight: expected no such tensor" },
        { MODEL_ARCH_STARCODER2,
          { DROP_TENSOR("blk.1.ffn_down.bias") },
          "blk.1.ffn_down.bias: expected a tensor" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        check_says(rows[i].arch, rows[i].edits, rows[i].words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows),       cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_unlike_layers), cmocka_unit_test(test_bad_unlike_layers),
        cmocka_unit_test(test_numbers),       cmocka_unit_test(test_switches),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
