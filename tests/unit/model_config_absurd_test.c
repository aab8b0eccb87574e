/* model_config_absurd_test.c - every absurd value of a metadata key is refused; a feature that is
 * switched off is not. */
#include "model_file.h"

#include <math.h>

#define FEED "llama.feed_forward_length"
#define HEADS "llama.attention.head_count"
#define KV_HEADS "llama.attention.head_count_kv"
#define EPSILON "llama.attention.layer_norm_rms_epsilon"

/* Values that are refused, and words of the problem that says so. */
static const struct {
    const char *name;
    struct model_edit edits[4];
    const char *words[4]; /* of one problem */
} absurd[] = {
    { "no layers",
      { PUT_U32("llama.block_count", 0) },
      { "block_count: expected 1 to 4096", "found 0" } },
    { "a billion layers",
      { PUT_U32("llama.block_count", 1e9) },
      { "block_count", "found 1000000000", "damaged" } },
    { "negative layers",
      { PUT_I32("llama.block_count", -1) },
      { "block_count", "found -1 (i32)" } },
    { "layers as text",
      { PUT_TEXT("llama.block_count", "32") },
      { "block_count: expected a whole number", "found string" } },
    { "layers as float",
      { PUT_F32("llama.block_count", 2) },
      { "block_count: expected a whole number", "found f32" } },
    { "layers missing",
      { DROP_KEY("llama.block_count") },
      { "llama.block_count", "found no such key", "convert" } },
    { "context missing",
      { DROP_KEY("llama.context_length") },
      { "llama.context_length", "no such key" } },
    { "context 0", { PUT_U32("llama.context_length", 0) }, { "context_length", "found 0" } },
    { "width missing",
      { DROP_KEY("llama.embedding_length") },
      { "llama.embedding_length", "no such key" } },
    { "width 0", { PUT_U32("llama.embedding_length", 0) }, { "embedding_length", "found 0" } },
    { "width of 2^25",
      { PUT_U32("llama.embedding_length", 1 << 25) },
      { "embedding_length", "found 33554432" } },
    { "feed missing", { DROP_KEY(FEED) }, { FEED, "no such key" } },
    { "feed 0", { PUT_U32(FEED, 0) }, { FEED, "found 0" } },
    { "feed differs by layer",
      { PUT_ARRAY(FEED, BUILD_U32, 2, 96, 64) },
      { FEED ": expected one value for all layers", "96 for layer 0 and 64 for layer 1",
        "cannot run" } },
    { "feed as floats",
      { PUT_ARRAY(FEED, BUILD_F32, 2, 96, 96) },
      { FEED ": expected whole numbers", "array of f32" } },
    { "feed by layer, none",
      { PUT_ARRAY(FEED, BUILD_U32, 0, 0) },
      { FEED ": expected", "empty array" } },
    { "no heads", { PUT_U32(HEADS, 0) }, { HEADS, "found 0" } },
    { "heads missing", { DROP_KEY(HEADS) }, { HEADS, "no such key" } },
    { "no kv heads", { PUT_U32(KV_HEADS, 0) }, { KV_HEADS, "found 0" } },
    { "kv heads no divisor",
      { PUT_U32(KV_HEADS, 3) },
      { KV_HEADS ": expected a divisor of head_count 4", "found 3" } },
    { "more kv heads than heads", { PUT_U32(KV_HEADS, 8) }, { KV_HEADS, "found 8" } },
    { "odd head dimension",
      { PUT_U32("llama.attention.key_length", 15) },
      { "head dimension", "multiple of 8, found 15", "odd" } },
    { "head dimension of 4",
      { PUT_U32("llama.attention.key_length", 4) },
      { "head dimension", "found 4", "cannot run" } },
    { "more heads than width", { PUT_U32(HEADS, 128) }, { "head dimension", "found 0" } },
    { "value length differs",
      { PUT_U32("llama.attention.value_length", 8) },
      { "value_length: expected the key_length 16", "found 8" } },
    { "epsilon missing", { DROP_KEY(EPSILON) }, { EPSILON, "no such key", "convert" } },
    { "epsilon NaN", { PUT_F32(EPSILON, NAN) }, { EPSILON, "found nan" } },
    { "epsilon negative", { PUT_F32(EPSILON, -1e-5) }, { EPSILON, "found -1e-05" } },
    { "epsilon 0", { PUT_F32(EPSILON, 0) }, { EPSILON ": expected a number above 0", "found 0" } },
    { "epsilon 2", { PUT_F32(EPSILON, 2) }, { EPSILON, "at most 1, found 2" } },
    { "epsilon as text",
      { PUT_TEXT(EPSILON, "1e-5") },
      { EPSILON ": expected a number", "found string" } },
    { "rope base 0", { PUT_F32("llama.rope.freq_base", 0) }, { "freq_base", "found 0" } },
    { "rope base NaN", { PUT_F32("llama.rope.freq_base", NAN) }, { "freq_base", "found nan" } },
    { "rope base infinite",
      { PUT_F32("llama.rope.freq_base", INFINITY) },
      { "freq_base", "found inf" } },
    { "negative scaling factor",
      { PUT_F32("llama.rope.scaling.factor", -1) },
      { "rope.scaling.factor", "found -1" } },
    { "longrope",
      { PUT_TEXT("llama.rope.scaling.type", "longrope") },
      { "expected none, linear or yarn", "found 'longrope'" } },
    { "scaling type a number",
      { PUT_U32("llama.rope.scaling.type", 1) },
      { "rope.scaling.type: expected a string" } },
    { "part of a head rotated",
      { PUT_U32("llama.rope.dimension_count", 8) },
      { "rope.dimension_count: expected the head dimension 16, found 8" } },
    { "vocab_size 0",
      { PUT_U32("llama.vocab_size", 0) },
      { "vocab_size: expected 1 to", "found 0" } },
    { "vocab_size of 2^27",
      { PUT_U32("llama.vocab_size", 1 << 27) },
      { "vocab_size", "found 134217728" } },
    { "nothing says how many tokens",
      { DROP_KEY("tokenizer.ggml.tokens"), DROP_TENSOR("token_embd.weight") },
      { "vocabulary: expected 1 to", "found 0" } },
    { "experts of which none is used",
      { PUT_U32("llama.expert_count", 8) },
      { "llama.expert_used_count" } },
    { "more experts used than there are",
      { PUT_U32("llama.expert_count", 8), PUT_U32("llama.expert_used_count", 9) },
      { "expert_used_count: expected at most expert_count", "found 9" } },
    { "too many experts",
      { PUT_U32("llama.expert_count", 1025), PUT_U32("llama.expert_used_count", 2) },
      { "llama.expert_count", "found 1025" } },
    { "too many experts used",
      { PUT_U32("llama.expert_count", 128), PUT_U32("llama.expert_used_count", 65) },
      { "llama.expert_used_count", "found 65" } },
    { "uneven groups of experts",
      { PUT_U32("llama.expert_count", 8), PUT_U32("llama.expert_used_count", 2),
        PUT_U32("llama.expert_group_count", 3), PUT_U32("llama.expert_group_used_count", 1) },
      { "expert_group_count: expected a divisor of expert_count", "found 3" } },
    { "too few groups of experts",
      { PUT_U32("llama.expert_count", 8), PUT_U32("llama.expert_used_count", 3),
        PUT_U32("llama.expert_group_count", 4), PUT_U32("llama.expert_group_used_count", 1) },
      { "expert_group_used_count", "found 1" } },
    { "experts in which layers",
      { PUT_TEXT("general.architecture", "llama4") },
      { "llama4.interleave_moe_layer_step" } },
    { "keys and values that are not made of one row",
      { PUT_TEXT("general.architecture", "deepseek2"),
        PUT_U32("deepseek2.attention.head_count_kv", 2) },
      { "deepseek2.attention.head_count_kv: expected 1", "found 2" } },
    { "latent heads of the old form",
      { PUT_TEXT("general.architecture", "deepseek2") },
      { "deepseek2.attention.key_length_mla", "no such key" } },
    { "no chunks",
      { PUT_TEXT("general.architecture", "llama4"), PUT_U32("llama4.attention.sliding_window", 0) },
      { "llama4.attention.sliding_window: expected 8192", "found 0" } },
    { "attention softcap",
      { PUT_F32("llama.attn_logit_softcapping", 50) },
      { "attn_logit_softcapping", "found 50" } },
    { "logit softcap",
      { PUT_F32("llama.final_logit_softcapping", 30) },
      { "final_logit_softcapping", "found 30" } },
    { "softcap in the second layer only",
      { PUT_ARRAY("llama.final_logit_softcapping", BUILD_F32, 2, 0, 30) },
      { "final_logit_softcapping", "found 30" } },
    { "softcap NaN",
      { PUT_F32("llama.final_logit_softcapping", NAN) },
      { "final_logit_softcapping", "found nan" } },
    { "temperature by position",
      { PUT_F32("llama.attention.temperature_scale", 0.1) },
      { "attention.temperature_scale" } },
    { "several tokens at once",
      { PUT_U32("llama.nextn_predict_layers", 1) },
      { "nextn_predict_layers", "found 1" } },
};

static void test_absurd_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(absurd); i++) {
        static struct model_file model;
        model_file_init(&model, MODEL_ARCH_LLAMA, absurd[i].edits);
        if (model.report.config_known)
            fail_msg("%s: taken for a good configuration", absurd[i].name);
        if (!model_report_says(&model.report, absurd[i].words))
            fail_msg("%s: found \"%s\"", absurd[i].name, model.report.problems[0].text);
        assert_true(model_report_refuses(&model.report, true));
        model_file_release(&model);
    }
}

/* Switched off is as good as absent. */
static void test_features_that_are_off(void **state)
{
    (void)state;
    static const struct model_edit edits[] = {
        PUT_U32("llama.expert_count", 0),
        PUT_F32("llama.final_logit_softcapping", 0),
        PUT_ARRAY("llama.nextn_predict_layers", BUILD_U32, 2, 0, 0),
        { 0 },
    };
    static struct model_file model;
    model_file_init(&model, MODEL_ARCH_LLAMA, edits);
    assert_int_equal(model.report.problem_count, 0);
    model_file_release(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_absurd_values),
        cmocka_unit_test(test_features_that_are_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
