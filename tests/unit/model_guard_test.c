/* model_guard_test.c - the guard rail: models with one thing wrong, and what is said of them. */
#include "model_file.h"

static void check_runs(const char *name, const struct model_file *model)
{
    if (model->report.problem_count)
        fail_msg("%s: %s", name, model->report.problems[0].text);
    assert_true(model->report.config_known);
    assert_false(model_report_refuses(&model->report, false));
}

static void test_unchanged_models_run(void **state)
{
    (void)state;
    static const struct {
        enum model_arch arch;
        size_t tensor_count;
        enum model_rope_kind rope_kind;
    } rows[] = {
        { MODEL_ARCH_LLAMA, 3 + 2 * 9, MODEL_ROPE_ADJACENT },
        { MODEL_ARCH_QWEN2, 3 + 2 * 12, MODEL_ROPE_SPLIT_HALF },
        { MODEL_ARCH_QWEN3, 3 + 2 * 11, MODEL_ROPE_SPLIT_HALF },
        { MODEL_ARCH_GEMMA2, 2 + 2 * 11, MODEL_ROPE_SPLIT_HALF },
        { MODEL_ARCH_GEMMA3, 3 + 2 * 13, MODEL_ROPE_SPLIT_HALF },
        { MODEL_ARCH_GEMMA4, 3 + 2 * 12, MODEL_ROPE_SPLIT_HALF },
        { MODEL_ARCH_PHI3, 3 + 2 * 8, MODEL_ROPE_SPLIT_HALF },
        { MODEL_ARCH_MISTRAL3, 3 + 2 * 9, MODEL_ROPE_ADJACENT },
        { MODEL_ARCH_GLM4, 3 + 2 * 10, MODEL_ROPE_ADJACENT },
        { MODEL_ARCH_GRANITE, 3 + 2 * 9, MODEL_ROPE_ADJACENT },
        { MODEL_ARCH_OLMO2, 3 + 2 * 11, MODEL_ROPE_SPLIT_HALF },
        { MODEL_ARCH_SMOLLM3, 3 + 2 * 9, MODEL_ROPE_ADJACENT },
        { MODEL_ARCH_COMMAND_R, 2 + 2 * 8, MODEL_ROPE_ADJACENT },
        { MODEL_ARCH_COHERE2, 2 + 2 * 8, MODEL_ROPE_ADJACENT },
        { MODEL_ARCH_STARCODER2, 4 + 2 * 16, MODEL_ROPE_SPLIT_HALF },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        static struct model_file model;
        model_file_init(&model, rows[i].arch, NULL);
        check_runs(model_arch_info(rows[i].arch)->name, &model);
        assert_int_equal(gguf_tensor_count(model.file), rows[i].tensor_count);
        assert_int_equal(model.report.config.rope.kind, rows[i].rope_kind);
        assert_int_equal(model.report.weight_bytes, model.report.parameter_count * 4);
        model_file_release(&model);
    }
}

/* Unusual, and fine. */
static void test_allowed_variants(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum model_arch arch;
        struct model_edit edits[8];
    } rows[] = {
        { "tied embeddings", MODEL_ARCH_LLAMA, { DROP_TENSOR("output.weight") } },
        { "frequency factors",
          MODEL_ARCH_LLAMA,
          { PUT_VECTOR("rope_freqs.weight", DTYPE_F32, 8) } },
        { "biases in every layer",
          MODEL_ARCH_LLAMA,
          { PUT_VECTOR("blk.0.attn_q.bias", DTYPE_F32, 64),
            PUT_VECTOR("blk.1.attn_q.bias", DTYPE_F32, 64) } },
        { "output bias", MODEL_ARCH_QWEN2, { PUT_VECTOR("output.bias", DTYPE_F32, 8) } },
        { "quantized", MODEL_ARCH_LLAMA, { PUT_MATRIX("token_embd.weight", DTYPE_Q8_0, 64, 8) } },
        { "norm as a column",
          MODEL_ARCH_LLAMA,
          { PUT_MATRIX("output_norm.weight", DTYPE_F32, 64, 1) } },
        { "no tokenizer", MODEL_ARCH_LLAMA, { DROP_KEY("tokenizer.ggml.tokens") } },
        { "no bos", MODEL_ARCH_LLAMA, { PUT_I32("tokenizer.ggml.bos_token_id", -1) } },
        { "last id", MODEL_ARCH_LLAMA, { PUT_U32("tokenizer.ggml.eos_token_id", 7) } },
        { "scores and types",
          MODEL_ARCH_LLAMA,
          { PUT_ARRAY("tokenizer.ggml.scores", BUILD_F32, 8, 0),
            PUT_ARRAY("tokenizer.ggml.token_type", BUILD_I32, 8, 0) } },
        { "part of a head rotated",
          MODEL_ARCH_QWEN3,
          { PUT_U32("qwen3.rope.dimension_count", 8) } },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        static struct model_file model;
        model_file_init(&model, rows[i].arch, rows[i].edits);
        check_runs(rows[i].name, &model);
        model_file_release(&model);
    }
}

/* ---- Damage --------------------------------------------------------------------------------- */

#define LLAMA MODEL_ARCH_LLAMA
#define QWEN2 MODEL_ARCH_QWEN2
#define QWEN3 MODEL_ARCH_QWEN3
#define SCORES "tokenizer.ggml.scores"
#define TYPES "tokenizer.ggml.token_type"

static const struct {
    const char *name;
    enum model_arch arch;
    struct model_edit edits[4];
    const char *words[5]; /* of one problem: what, expected, found, what to do */
} damages[] = {
    { "unknown architecture",
      LLAMA,
      { PUT_TEXT("general.architecture", "mamba") },
      { "general.architecture", "expected one of llama, qwen2, qwen3, gemma2", "found 'mamba'",
        "cannot run" } },
    { "architecture of evil bytes",
      LLAMA,
      { PUT_TEXT("general.architecture", "\x1B[2J") },
      { "found '\\x1B[2J'" } },
    { "no architecture",
      LLAMA,
      { DROP_KEY("general.architecture") },
      { "general.architecture: expected a string", "found no such key", "not a model file" } },
    { "architecture a number",
      LLAMA,
      { PUT_U32("general.architecture", 1) },
      { "general.architecture: expected a string" } },
    { "another architecture's keys",
      LLAMA,
      { PUT_TEXT("general.architecture", "qwen2") },
      { "qwen2.context_length", "found no such key" } },

    { "missing tensor",
      LLAMA,
      { DROP_TENSOR("blk.1.ffn_up.weight") },
      { "blk.1.ffn_up.weight", "expected a tensor of shape [64, 96]", "found none",
        "incomplete" } },
    { "missing in all layers",
      LLAMA,
      { DROP_TENSOR("blk.0.attn_q.weight"), DROP_TENSOR("blk.1.attn_q.weight") },
      { "attn_q.weight: missing in 2 of 2 layers" } },
    { "missing embedding",
      LLAMA,
      { DROP_TENSOR("token_embd.weight") },
      { "token_embd.weight", "found none" } },
    { "missing norm of heads",
      QWEN3,
      { DROP_TENSOR("blk.0.attn_k_norm.weight") },
      { "blk.0.attn_k_norm.weight", "[16]", "found none" } },
    { "missing bias",
      QWEN2,
      { DROP_TENSOR("blk.1.attn_v.bias") },
      { "blk.1.attn_v.bias", "[32]", "found none" } },
    { "bias in some layers only",
      LLAMA,
      { PUT_VECTOR("blk.0.attn_q.bias", DTYPE_F32, 64) },
      { "blk.1.attn_q.bias", "expected in all 2 layers or in none", "found in 1", "incomplete" } },

    { "surplus tensor",
      LLAMA,
      { PUT_VECTOR("blk.0.attn_sinks.weight", DTYPE_F32, 4) },
      { "blk.0.attn_sinks.weight", "expected no such tensor in a llama model of 2 layers",
        "found one of shape [4]", "wrong" } },
    { "layer too many",
      LLAMA,
      { PUT_VECTOR("blk.2.attn_norm.weight", DTYPE_F32, 64) },
      { "blk.2.attn_norm.weight: expected no such tensor" } },
    { "two of them",
      LLAMA,
      { PUT_VECTOR("a", DTYPE_F32, 4), PUT_VECTOR("b", DTYPE_F32, 4) },
      { "surplus tensors: expected none, found 2" } },
    { "layer with leading zero",
      LLAMA,
      { PUT_VECTOR("blk.00.attn_norm.weight", DTYPE_F32, 64) },
      { "blk.00.attn_norm.weight: expected no such tensor" } },
    { "layer without number",
      LLAMA,
      { PUT_VECTOR("blk..attn_norm.weight", DTYPE_F32, 64) },
      { "blk..attn_norm.weight: expected no such tensor" } },
    { "huge layer number",
      LLAMA,
      { PUT_VECTOR("blk.18446744073709551617.attn_norm.weight", DTYPE_F32, 64) },
      { "expected no such tensor" } },
    { "layer's name outside of layers",
      LLAMA,
      { PUT_VECTOR("attn_norm.weight", DTYPE_F32, 64) },
      { "attn_norm.weight: expected no such tensor" } },
    { "frequency factors",
      QWEN2,
      { PUT_VECTOR("rope_freqs.weight", DTYPE_F32, 8) },
      { "rope_freqs.weight: expected no such tensor in a qwen2 model" } },
    { "fused attention in one layer",
      LLAMA,
      { PUT_MATRIX("blk.0.attn_qkv.weight", DTYPE_F32, 64, 128) },
      { "blk.1.attn_qkv.weight: expected a tensor of shape [64, 128], found none" } },
    { "fused attention and separate",
      LLAMA,
      { PUT_MATRIX("blk.0.attn_qkv.weight", DTYPE_F32, 64, 128) },
      { "blk.0.attn_q.weight: expected no such tensor" } },
    { "router of experts",
      LLAMA,
      { PUT_MATRIX("blk.0.ffn_gate_inp.weight", DTYPE_F32, 64, 8) },
      { "ffn_gate_inp.weight: expected no such tensor" } },

    { "wrong shape",
      LLAMA,
      { PUT_MATRIX("blk.0.ffn_down.weight", DTYPE_F32, 64, 96) },
      { "blk.0.ffn_down.weight", "expected shape [96, 64]", "found [64, 96]",
        "do not belong together" } },
    { "keys of all heads",
      LLAMA,
      { PUT_MATRIX("blk.1.attn_k.weight", DTYPE_F32, 64, 64) },
      { "blk.1.attn_k.weight", "expected shape [64, 32]", "found [64, 64]" } },
    { "wrong norm",
      LLAMA,
      { PUT_VECTOR("output_norm.weight", DTYPE_F32, 65) },
      { "output_norm.weight", "[64]", "found [65]" } },
    { "metadata of a wider model",
      LLAMA,
      { PUT_U32("llama.feed_forward_length", 128) },
      { "ffn_gate.weight", "expected shape [64, 128]", "found [64, 96]" } },
    { "frequency factors too many",
      LLAMA,
      { PUT_VECTOR("rope_freqs.weight", DTYPE_F32, 16) },
      { "rope_freqs.weight", "expected shape [8]", "found [16]" } },
    { "rank 3",
      LLAMA,
      { { .kind = EDIT_TENSOR,
          .name = "output.weight",
          .dtype = DTYPE_F32,
          .shape = { 3, { 64, 8, 2, 1 } } } },
      { "output.weight", "found [64, 8, 2]" } },

    { "norm in F16",
      LLAMA,
      { PUT_VECTOR("blk.0.attn_norm.weight", DTYPE_F16, 64) },
      { "blk.0.attn_norm.weight", "expected F32", "found F16", "greta quantize" } },
    { "bias in BF16",
      QWEN2,
      { PUT_VECTOR("blk.1.attn_q.bias", DTYPE_BF16, 64) },
      { "blk.1.attn_q.bias", "expected F32", "found BF16", "greta quantize" } },
    { "matrix of integers",
      LLAMA,
      { PUT_MATRIX("blk.0.attn_q.weight", DTYPE_I32, 64, 64) },
      { "blk.0.attn_q.weight", "expected a type greta can decode", "found I32", "get the model" } },
    { "type that cannot be decoded",
      LLAMA,
      { PUT_U32("llama.feed_forward_length", 256),
        PUT_MATRIX("blk.0.ffn_down.weight", DTYPE_IQ2_XXS, 256, 64) },
      { "blk.0.ffn_down.weight", "expected a type greta can decode", "found IQ2_XXS" } },

    { "vocabulary larger than the embedding",
      LLAMA,
      { PUT_MATRIX("token_embd.weight", DTYPE_F32, 64, 6) },
      { "token_embd.weight", "[64, 8]", "found [64, 6]", "its own tokenizer" } },
    { "vocab_size is not the tokens",
      LLAMA,
      { PUT_U32("llama.vocab_size", 9) },
      { "tokenizer.ggml.tokens", "expected 9 tokens", "found 8", "do not belong together" } },
    { "tokens are numbers",
      LLAMA,
      { PUT_ARRAY("tokenizer.ggml.tokens", BUILD_U32, 8, 1) },
      { "tokenizer.ggml.tokens: expected an array of strings", "found an array of u32" } },
    { "tokens are one string",
      LLAMA,
      { PUT_TEXT("tokenizer.ggml.tokens", "abc") },
      { "tokenizer.ggml.tokens: expected an array of strings", "found string" } },
    { "bos beyond the vocabulary",
      LLAMA,
      { PUT_U32("tokenizer.ggml.bos_token_id", 8) },
      { "bos_token_id", "below the vocabulary size 8", "found 8", "damaged" } },
    { "eos beyond the vocabulary",
      LLAMA,
      { PUT_U32("tokenizer.ggml.eos_token_id", 128009) },
      { "eos_token_id", "found 128009" } },
    { "infill token beyond it",
      LLAMA,
      { PUT_U32("tokenizer.ggml.fim_sep_token_id", 99) },
      { "fim_sep_token_id", "found 99" } },
    { "separator beyond it",
      LLAMA,
      { PUT_U32("tokenizer.ggml.seperator_token_id", 99) },
      { "seperator_token_id", "found 99" } },
    { "negative id",
      LLAMA,
      { PUT_I32("tokenizer.ggml.eos_token_id", -2) },
      { "eos_token_id: expected a token id" } },
    { "id as text",
      LLAMA,
      { PUT_TEXT("tokenizer.ggml.eos_token_id", "</s>") },
      { "eos_token_id: expected a token id", "found string" } },
    { "ids as an array",
      LLAMA,
      { PUT_ARRAY("tokenizer.ggml.eos_token_id", BUILD_I32, 2, -1, 2) },
      { "eos_token_id: expected a token id", "found array" } },
    { "scores too few",
      LLAMA,
      { PUT_ARRAY(SCORES, BUILD_F32, 7, 0) },
      { SCORES, "expected an array of 8 numbers", "found 7", "convert" } },
    { "types too many",
      LLAMA,
      { PUT_ARRAY(TYPES, BUILD_I32, 9, 1) },
      { TYPES, "expected an array of 8", "found 9" } },
    { "types are flags",
      LLAMA,
      { PUT_ARRAY(TYPES, BUILD_BOOL, 8, 1) },
      { TYPES, "expected an array of 8 numbers", "type bool" } },
    { "scores are one number", LLAMA, { PUT_F32(SCORES, 1) }, { SCORES, "found 1 of type f32" } },
};

static void test_damage(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(damages); i++) {
        static struct model_file model;
        model_file_init(&model, damages[i].arch, damages[i].edits);
        if (!model_report_refuses(&model.report, false))
            fail_msg("%s: taken for a good model", damages[i].name);
        /* Only a pin may be waved through. */
        assert_true(model_report_refuses(&model.report, true));
        if (!model_report_says(&model.report, damages[i].words))
            fail_msg("%s: found \"%s\"", damages[i].name, model.report.problems[0].text);
        model_file_release(&model);
    }
}

/* One run tells everything that is wrong. */
static void test_all_problems_at_once(void **state)
{
    (void)state;
    static const struct model_edit edits[] = {
        DROP_TENSOR("blk.1.ffn_up.weight"),
        PUT_VECTOR("output_norm.weight", DTYPE_F16, 64),
        PUT_U32("tokenizer.ggml.eos_token_id", 8),
        PUT_VECTOR("extra.weight", DTYPE_F32, 1),
        { 0 },
    };
    static struct model_file model;
    model_file_init(&model, MODEL_ARCH_LLAMA, edits);
    assert_int_equal(model.report.problem_count, 4);
    model_file_release(&model);

    static const struct model_edit keys[] = { DROP_KEY("llama.block_count"),
                                              DROP_KEY("llama.embedding_length"),
                                              PUT_F32("llama.rope.freq_base", -1),
                                              PUT_U32("llama.expert_count", 8),
                                              { 0 } };
    model_file_init(&model, MODEL_ARCH_LLAMA, keys);
    assert_true(model.report.problem_count >= 4);
    model_file_release(&model);
}

static void test_pin_on_a_real_file(void **state)
{
    (void)state;
    static struct model_file model;
    model_file_init(&model, MODEL_ARCH_LLAMA, NULL);
    model_check(model.file, model_shape_find("llama2-7b"), &model.report);
    static const char *const words[] = { "feed_forward_length: expected 11008, found 96", NULL };
    assert_true(model_report_says(&model.report, words));
    assert_true(model_report_refuses(&model.report, false));
    assert_false(model_report_refuses(&model.report, true));
    model_file_release(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unchanged_models_run),
        cmocka_unit_test(test_allowed_variants),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_all_problems_at_once),
        cmocka_unit_test(test_pin_on_a_real_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
