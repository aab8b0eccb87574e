/* model_tensor_test.c - which tensors a model has, and that real models come out of it exactly. */
#include "model_file.h"

#include "model/model_impl.h"

/* ---- The table------------------------------------------------------------------------------ */

/* Sets of architectures. */
#define LLAMA (1u << MODEL_ARCH_LLAMA | 1u << MODEL_ARCH_LLAMA4)
#define GPT_OSS (1u << MODEL_ARCH_GPT_OSS)
#define QWEN2 (1u << MODEL_ARCH_QWEN2 | 1u << MODEL_ARCH_QWEN2MOE | GPT_OSS)
#define QWEN3 (1u << MODEL_ARCH_QWEN3 | 1u << MODEL_ARCH_QWEN3MOE)
#define GEMMA2 (1u << MODEL_ARCH_GEMMA2)
#define GEMMA3 (1u << MODEL_ARCH_GEMMA3)
#define GEMMA4 (1u << MODEL_ARCH_GEMMA4)
#define PHI3 (1u << MODEL_ARCH_PHI3)
#define MISTRAL3 (1u << MODEL_ARCH_MISTRAL3)
#define GLM4 (1u << MODEL_ARCH_GLM4)
#define GRANITE (1u << MODEL_ARCH_GRANITE | 1u << MODEL_ARCH_GRANITEMOE)
#define OLMO2 (1u << MODEL_ARCH_OLMO2)
#define SMOLLM3 (1u << MODEL_ARCH_SMOLLM3)
#define COMMAND_R (1u << MODEL_ARCH_COMMAND_R)
#define COHERE2 (1u << MODEL_ARCH_COHERE2)
#define STARCODER2 (1u << MODEL_ARCH_STARCODER2)
#define DEEPSEEK2 (1u << MODEL_ARCH_DEEPSEEK2)
/* Biases of queries, keys and values; norms after blocks. */
#define MAY_BE_BIASED (EVERY & ~(QWEN2 | QWEN3 | STARCODER2 | GEMMA4 | DEEPSEEK2))
#define POST_NORMED (GEMMA2 | GEMMA3 | GEMMA4 | GLM4 | OLMO2)
#define EVERY ((1u << MODEL_ARCH_COUNT) - 1)

/* Layer 1 of the model in model_file.h: width 64, 4 * 16 queries, 2 * 16 keys, feed 96, 8 tokens;
 * shapes are llama's. Architectures named in neither set have no such tensor; without experts none
 * has theirs, and they have no shape. */
static const struct {
    enum model_role role;
    const char *name;
    const char *shape;
    bool is_matrix;
    uint32_t required, optional;
} table[] = {
    { MODEL_TOKEN_EMBD, "token_embd.weight", "[64, 8]", true, EVERY, 0 },
    { MODEL_OUTPUT_NORM, "output_norm.weight", "[64]", false, EVERY, 0 },
    { MODEL_OUTPUT_NORM_BIAS, "output_norm.bias", "[64]", false, STARCODER2, 0 },
    { MODEL_OUTPUT, "output.weight", "[64, 8]", true, OLMO2,
      EVERY & ~(OLMO2 | GEMMA2 | COMMAND_R | COHERE2) },
    { MODEL_OUTPUT_BIAS, "output.bias", "[8]", false, 0, QWEN2 },
    { MODEL_LAYER_TOKEN_EMBD, "per_layer_token_embd.weight", "[0, 8]", true, 0, 0 },
    { MODEL_LAYER_PROJ, "per_layer_model_proj.weight", "[64]", true, 0, 0 },
    { MODEL_LAYER_PROJ_NORM, "per_layer_proj_norm.weight", "[0]", false, 0, 0 },
    { MODEL_ROPE_FREQS, "rope_freqs.weight", "[8]", false, 0, LLAMA | MISTRAL3 | GRANITE | GEMMA4 },
    { MODEL_ROPE_FACTORS_SHORT, "rope_factors_short.weight", "[8]", false, 0, PHI3 | MISTRAL3 },
    { MODEL_ROPE_FACTORS_LONG, "rope_factors_long.weight", "[8]", false, 0, PHI3 | MISTRAL3 },
    { MODEL_ATTN_NORM, "blk.1.attn_norm.weight", "[64]", false, EVERY & ~OLMO2, 0 },
    { MODEL_ATTN_NORM_BIAS, "blk.1.attn_norm.bias", "[64]", false, STARCODER2, 0 },
    { MODEL_ATTN_Q, "blk.1.attn_q.weight", "[64, 64]", true, EVERY, 0 },
    { MODEL_ATTN_K, "blk.1.attn_k.weight", "[64, 32]", true, EVERY & ~DEEPSEEK2, 0 },
    { MODEL_ATTN_V, "blk.1.attn_v.weight", "[64, 32]", true, EVERY & ~(GEMMA4 | DEEPSEEK2),
      GEMMA4 },
    { MODEL_ATTN_Q_BIAS, "blk.1.attn_q.bias", "[64]", false, QWEN2 | STARCODER2, MAY_BE_BIASED },
    { MODEL_ATTN_K_BIAS, "blk.1.attn_k.bias", "[32]", false, QWEN2 | STARCODER2, MAY_BE_BIASED },
    { MODEL_ATTN_V_BIAS, "blk.1.attn_v.bias", "[32]", false, QWEN2 | STARCODER2, MAY_BE_BIASED },
    { MODEL_ATTN_QKV, "blk.1.attn_qkv.weight", "[64, 128]", true, 0, 0 },
    { MODEL_ATTN_QKV_BIAS, "blk.1.attn_qkv.bias", "[128]", false, 0, 0 },
    { MODEL_ATTN_Q_A, "blk.1.attn_q_a.weight", NULL, true, 0, 0 },
    { MODEL_ATTN_Q_A_NORM, "blk.1.attn_q_a_norm.weight", NULL, false, 0, 0 },
    { MODEL_ATTN_Q_B, "blk.1.attn_q_b.weight", NULL, true, 0, 0 },
    { MODEL_ATTN_KV_A, "blk.1.attn_kv_a_mqa.weight", NULL, true, DEEPSEEK2, 0 },
    { MODEL_ATTN_KV_A_NORM, "blk.1.attn_kv_a_norm.weight", NULL, false, DEEPSEEK2, 0 },
    { MODEL_ATTN_K_B, "blk.1.attn_k_b.weight", NULL, true, DEEPSEEK2, 0 },
    { MODEL_ATTN_V_B, "blk.1.attn_v_b.weight", NULL, true, DEEPSEEK2, 0 },
    { MODEL_ATTN_Q_NORM, "blk.1.attn_q_norm.weight", "[16]", false, QWEN3 | GEMMA3 | GEMMA4 | OLMO2,
      COMMAND_R },
    { MODEL_ATTN_K_NORM, "blk.1.attn_k_norm.weight", "[16]", false, QWEN3 | GEMMA3 | GEMMA4 | OLMO2,
      COMMAND_R },
    { MODEL_ATTN_OUTPUT, "blk.1.attn_output.weight", "[64, 64]", true, EVERY, 0 },
    { MODEL_ATTN_OUTPUT_BIAS, "blk.1.attn_output.bias", "[64]", false, STARCODER2 | GPT_OSS,
      LLAMA | MISTRAL3 | GRANITE },
    { MODEL_ATTN_POST_NORM, "blk.1.post_attention_norm.weight", "[64]", false, POST_NORMED, 0 },
    { MODEL_ATTN_SINKS, "blk.1.attn_sinks.weight", "[4]", false, GPT_OSS, 0 },
    { MODEL_FFN_NORM, "blk.1.ffn_norm.weight", "[64]", false,
      EVERY & ~(OLMO2 | COMMAND_R | COHERE2), 0 },
    { MODEL_FFN_NORM_BIAS, "blk.1.ffn_norm.bias", "[64]", false, STARCODER2, 0 },
    { MODEL_FFN_GATE, "blk.1.ffn_gate.weight", "[64, 96]", true,
      EVERY & ~(PHI3 | GLM4 | STARCODER2), 0 },
    { MODEL_FFN_UP, "blk.1.ffn_up.weight", "[64, 96]", true, EVERY & ~(PHI3 | GLM4), 0 },
    { MODEL_FFN_UP_BIAS, "blk.1.ffn_up.bias", "[96]", false, STARCODER2, 0 },
    { MODEL_FFN_GATE_UP, "blk.1.ffn_up.weight", "[64, 192]", true, PHI3 | GLM4, 0 },
    { MODEL_FFN_DOWN, "blk.1.ffn_down.weight", "[96, 64]", true, EVERY, 0 },
    { MODEL_FFN_DOWN_BIAS, "blk.1.ffn_down.bias", "[64]", false, STARCODER2, 0 },
    { MODEL_FFN_POST_NORM, "blk.1.post_ffw_norm.weight", "[64]", false, POST_NORMED, 0 },
    { MODEL_LAYER_INPUT_GATE, "blk.1.inp_gate.weight", "[64]", true, 0, 0 },
    { MODEL_LAYER_INPUT_PROJ, "blk.1.proj.weight", "[0, 64]", true, 0, 0 },
    { MODEL_LAYER_INPUT_NORM, "blk.1.post_norm.weight", "[64]", false, 0, 0 },
    { MODEL_LAYER_OUTPUT_SCALE, "blk.1.layer_output_scale.weight", "[1]", false, 0, GEMMA4 },
    { MODEL_FFN_ROUTER, "blk.1.ffn_gate_inp.weight", NULL, true, 0, 0 },
    { MODEL_FFN_ROUTER_BIAS, "blk.1.ffn_gate_inp.bias", NULL, false, 0, 0 },
    { MODEL_FFN_CHOICE_BIAS, "blk.1.exp_probs_b.bias", NULL, false, 0, 0 },
    { MODEL_FFN_GATE_EXPERTS, "blk.1.ffn_gate_exps.weight", NULL, true, 0, 0 },
    { MODEL_FFN_UP_EXPERTS, "blk.1.ffn_up_exps.weight", NULL, true, 0, 0 },
    { MODEL_FFN_DOWN_EXPERTS, "blk.1.ffn_down_exps.weight", NULL, true, 0, 0 },
    { MODEL_FFN_GATE_UP_EXPERTS, "blk.1.ffn_gate_up_exps.weight", NULL, true, 0, 0 },
    { MODEL_FFN_ROUTER_SCALE, "blk.1.ffn_gate_inp.scale", NULL, false, 0, 0 },
    { MODEL_FFN_EXPERTS_SCALE, "blk.1.ffn_down_exps.scale", NULL, false, 0, 0 },
    { MODEL_FFN_EXPERTS_NORM, "blk.1.pre_ffw_norm_2.weight", NULL, false, 0, 0 },
    { MODEL_FFN_EXPERTS_POST_NORM, "blk.1.post_ffw_norm_2.weight", NULL, false, 0, 0 },
    { MODEL_FFN_DENSE_POST_NORM, "blk.1.post_ffw_norm_1.weight", NULL, false, 0, 0 },
    { MODEL_FFN_GATE_EXPERTS_BIAS, "blk.1.ffn_gate_exps.bias", NULL, false, 0, 0 },
    { MODEL_FFN_UP_EXPERTS_BIAS, "blk.1.ffn_up_exps.bias", NULL, false, 0, 0 },
    { MODEL_FFN_DOWN_EXPERTS_BIAS, "blk.1.ffn_down_exps.bias", NULL, false, 0, 0 },
    { MODEL_FFN_SHARED_ROUTER, "blk.1.ffn_gate_inp_shexp.weight", NULL, false, 0, 0 },
    { MODEL_FFN_SHARED_GATE, "blk.1.ffn_gate_shexp.weight", NULL, true, 0, 0 },
    { MODEL_FFN_SHARED_UP, "blk.1.ffn_up_shexp.weight", NULL, true, 0, 0 },
    { MODEL_FFN_SHARED_DOWN, "blk.1.ffn_down_shexp.weight", NULL, true, 0, 0 },
};
_Static_assert(COUNT_OF(table) == MODEL_ROLE_COUNT, "every role is in the table");

static enum model_presence presence_of(size_t row, int arch)
{
    return table[row].required >> arch & 1   ? MODEL_REQUIRED
           : table[row].optional >> arch & 1 ? MODEL_OPTIONAL
                                             : MODEL_ABSENT;
}

static void test_plan(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        for (int arch = 0; arch < MODEL_ARCH_COUNT; arch++) {
            struct model_config config = model_file_config((enum model_arch)arch);
            struct model_tensor expected = model_tensor(&config, table[i].role, 1);
            char shape[SHAPE_TEXT_BYTES];
            bool other = table[i].role == MODEL_FFN_NORM && arch == MODEL_ARCH_GPT_OSS;
            assert_string_equal(expected.name,
                                other ? "blk.1.post_attention_norm.weight" : table[i].name);
            if (arch == MODEL_ARCH_LLAMA && table[i].shape)
                assert_string_equal(shape_text(&expected.shape, shape), table[i].shape);
            assert_int_equal(expected.is_matrix, table[i].is_matrix);
            if (expected.presence != presence_of(i, arch))
                fail_msg("%s in %s", table[i].name, model_arch_info((enum model_arch)arch)->name);
        }
        assert_int_equal(model_role_is_per_layer(table[i].role),
                         strncmp(table[i].name, "blk.", 4) == 0);
    }
}

/* What norms of queries and keys have weights for. */
static void test_head_norms(void **state)
{
    (void)state;
    static const struct {
        enum model_arch arch;
        const char *q, *k;
    } rows[] = { { MODEL_ARCH_GEMMA3, "[16]", "[16]" },
                 { MODEL_ARCH_OLMO2, "[64]", "[32]" },
                 { MODEL_ARCH_COMMAND_R, "[16, 4]", "[16, 2]" } };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct model_config config = model_file_config(rows[i].arch);
        char shape[SHAPE_TEXT_BYTES];
        struct model_tensor q = model_tensor(&config, MODEL_ATTN_Q_NORM, 0),
                            k = model_tensor(&config, MODEL_ATTN_K_NORM, 0);
        assert_string_equal(shape_text(&q.shape, shape), rows[i].q);
        assert_string_equal(shape_text(&k.shape, shape), rows[i].k);
        assert_false(q.is_matrix);
    }
}

/* One tensor in place of three, and its bias in place of theirs. */
static void test_fused_heads(void **state)
{
    (void)state;
    struct model_config config = model_file_config(MODEL_ARCH_QWEN2);
    config.has_fused_qkv = true;
    assert_int_equal(model_tensor(&config, MODEL_ATTN_QKV, 0).presence, MODEL_REQUIRED);
    assert_int_equal(model_tensor(&config, MODEL_ATTN_K, 0).presence, MODEL_ABSENT);
    assert_int_equal(model_tensor(&config, MODEL_ATTN_K_BIAS, 0).presence, MODEL_REQUIRED);
    config.has_fused_qkv_bias = true;
    assert_int_equal(model_tensor(&config, MODEL_ATTN_QKV_BIAS, 0).presence, MODEL_REQUIRED);
    assert_int_equal(model_tensor(&config, MODEL_ATTN_K_BIAS, 0).presence, MODEL_ABSENT);
}

/* With experts a layer has theirs in place of the one feed-forward; with a shared one that too. */
static void test_experts(void **state)
{
    (void)state;
    static const struct {
        enum model_role role;
        const char *shape;
        uint32_t required; /* in architectures of this set */
        bool shared;
    } rows[] = {
        { MODEL_FFN_GATE, "[64, 96]", GEMMA4, false },
        { MODEL_FFN_UP, "[64, 96]", GEMMA4, false },
        { MODEL_FFN_DOWN, "[96, 64]", GEMMA4, false },
        { MODEL_FFN_ROUTER_SCALE, "[64]", GEMMA4, false },
        { MODEL_FFN_EXPERTS_SCALE, "[8]", GEMMA4, false },
        { MODEL_FFN_EXPERTS_NORM, "[64]", GEMMA4, false },
        { MODEL_FFN_EXPERTS_POST_NORM, "[64]", GEMMA4, false },
        { MODEL_FFN_DENSE_POST_NORM, "[64]", GEMMA4, false },
        { MODEL_FFN_GATE_UP_EXPERTS, NULL, 0, false },
        { MODEL_FFN_ROUTER, "[64, 8]", EVERY, false },
        { MODEL_FFN_GATE_EXPERTS, "[64, 40, 8]", EVERY, false },
        { MODEL_FFN_UP_EXPERTS, "[64, 40, 8]", EVERY, false },
        { MODEL_FFN_DOWN_EXPERTS, "[40, 64, 8]", EVERY, false },
        { MODEL_FFN_ROUTER_BIAS, "[8]", GPT_OSS, false },
        { MODEL_FFN_GATE_EXPERTS_BIAS, "[40, 8]", GPT_OSS, false },
        { MODEL_FFN_UP_EXPERTS_BIAS, "[40, 8]", GPT_OSS, false },
        { MODEL_FFN_DOWN_EXPERTS_BIAS, "[64, 8]", GPT_OSS, false },
        { MODEL_FFN_SHARED_ROUTER, "[64]", 1u << MODEL_ARCH_QWEN2MOE, true },
        { MODEL_FFN_SHARED_GATE, "[64, 24]", EVERY, true },
        { MODEL_FFN_SHARED_UP, "[64, 24]", EVERY, true },
        { MODEL_FFN_SHARED_DOWN, "[24, 64]", EVERY, true },
    };
    for (size_t i = 0; i < COUNT_OF(rows) * MODEL_ARCH_COUNT * 2; i++) {
        enum model_arch arch = (enum model_arch)(i % MODEL_ARCH_COUNT);
        size_t row = i / MODEL_ARCH_COUNT % COUNT_OF(rows);
        bool shared = i / MODEL_ARCH_COUNT / COUNT_OF(rows);
        struct model_config config = model_file_config(arch);
        config.experts = (struct model_experts){
            .count = 8, .used = 2, .feed_length = 40, .shared_feed_length = shared ? 24 : 0
        };
        struct model_tensor expected = model_tensor(&config, rows[row].role, 1);
        char shape[SHAPE_TEXT_BYTES];
        bool there = (rows[row].required >> arch & 1) && (shared || !rows[row].shared);
        assert_int_equal(expected.presence, there ? MODEL_REQUIRED : MODEL_ABSENT);
        if (there)
            assert_string_equal(shape_text(&expected.shape, shape), rows[row].shape);
    }
}

/* Shapes that short rows have, and queries by one of them or not. */
static void test_latent_heads(void **state)
{
    (void)state;
    static const struct {
        enum model_role role;
        const char *direct, *by_row; /* NULL: absent */
    } rows[] = {
        { MODEL_ATTN_Q, "[64, 96]", NULL },
        { MODEL_ATTN_Q_A, NULL, "[64, 40]" },
        { MODEL_ATTN_Q_A_NORM, NULL, "[40]" },
        { MODEL_ATTN_Q_B, NULL, "[40, 96]" },
        { MODEL_ATTN_KV_A, "[64, 56]", "[64, 56]" },
        { MODEL_ATTN_KV_A_NORM, "[48]", "[48]" },
        { MODEL_ATTN_K_B, "[16, 48, 4]", "[16, 48, 4]" },
        { MODEL_ATTN_V_B, "[48, 24, 4]", "[48, 24, 4]" },
        { MODEL_ATTN_OUTPUT, "[96, 64]", "[96, 64]" },
    };
    for (size_t i = 0; i < 2 * COUNT_OF(rows); i++) {
        struct model_config config = model_file_config(MODEL_ARCH_DEEPSEEK2);
        bool by_row = i % 2;
        const char *wanted = by_row ? rows[i / 2].by_row : rows[i / 2].direct;
        config.rope.dimension_count = 8;
        config.latent = (struct model_latent){ 48, by_row ? 40 : 0, 16, 24 };
        struct model_tensor found = model_tensor(&config, rows[i / 2].role, 1);
        char shape[SHAPE_TEXT_BYTES];
        assert_int_equal(found.presence, wanted ? MODEL_REQUIRED : MODEL_ABSENT);
        if (wanted)
            assert_string_equal(shape_text(&found.shape, shape), wanted);
    }
}

/* Gate and up of an expert in one matrix, in place of one for each. */
static void test_fused_experts(void **state)
{
    (void)state;
    struct model_config config = model_file_config(MODEL_ARCH_GEMMA4);
    config.experts = (struct model_experts){ .count = 8, .used = 2, .feed_length = 40 };
    config.experts.fused = true;
    struct model_tensor fused = model_tensor(&config, MODEL_FFN_GATE_UP_EXPERTS, 1);
    char shape[SHAPE_TEXT_BYTES];
    assert_int_equal(fused.presence, MODEL_REQUIRED);
    assert_string_equal(shape_text(&fused.shape, shape), "[64, 80, 8]");
    assert_int_equal(model_tensor(&config, MODEL_FFN_GATE_EXPERTS, 1).presence, MODEL_ABSENT);
    assert_int_equal(model_tensor(&config, MODEL_FFN_UP_EXPERTS, 1).presence, MODEL_ABSENT);
}

/* Qwen3's heads are not width / heads: the query matrix is not square. */
static void test_heads_wider_than_the_stream(void **state)
{
    (void)state;
    struct model_config config = model_file_config(MODEL_ARCH_QWEN3);
    config.head_dim = 32;
    char shape[SHAPE_TEXT_BYTES];
    struct model_tensor expected = model_tensor(&config, MODEL_ATTN_Q, 0);
    assert_string_equal(shape_text(&expected.shape, shape), "[64, 128]");
    expected = model_tensor(&config, MODEL_ATTN_OUTPUT, 0);
    assert_string_equal(shape_text(&expected.shape, shape), "[128, 64]");
    expected = model_tensor(&config, MODEL_FFN_GATE, UINT32_MAX);
    assert_string_equal(expected.name, "blk.4294967295.ffn_gate.weight");
}

static void test_types_allowed(void **state)
{
    (void)state;
    assert_true(model_dtype_allowed(false, DTYPE_F32));
    assert_false(model_dtype_allowed(false, DTYPE_F16));
    assert_true(model_dtype_allowed(true, DTYPE_Q4_K));
    assert_true(model_dtype_allowed(true, DTYPE_BF16));
    assert_false(model_dtype_allowed(true, DTYPE_IQ2_XXS));
    assert_false(model_dtype_allowed(true, DTYPE_I32));
}

/* ---- Known shapes --------------------------------------------------------------------------- */

static struct model_config config_of(const struct model_shape *shape)
{
    assert_non_null(shape);
    return (struct model_config){ .arch = shape->arch,
                                  .embedding_length = shape->embedding_length,
                                  .block_count = shape->block_count,
                                  .feed_forward_length = shape->feed_forward_length,
                                  .head_count = shape->head_count,
                                  .head_count_kv = shape->head_count_kv,
                                  .head_dim = shape->head_dim,
                                  .vocab_size = shape->vocab_size,
                                  .rope = { .dimension_count = shape->head_dim },
                                  .has_rope_factors = shape->rope_scaling ==
                                                      MODEL_ROPE_SCALING_LONG,
                                  .has_fused_qkv = shape->has_fused_qkv,
                                  .experts = shape->experts,
                                  .latent = shape->latent };
}

static uint64_t parameter_count(const struct model_shape *shape)
{
    struct model_config config = config_of(shape);
    uint64_t sum = 0;
    for (size_t i = 0; i < MODEL_ROLE_COUNT; i++) {
        enum model_role role = (enum model_role)i;
        struct model_tensor expected = model_tensor(&config, role, 0);
        bool factors = role == MODEL_ROPE_FACTORS_SHORT || role == MODEL_ROPE_FACTORS_LONG;
        bool wanted = (expected.presence == MODEL_REQUIRED && !factors) ||
                      (role == MODEL_OUTPUT && !shape->tied_embeddings) ||
                      (shape->has_qkv_biases &&
                       (role == MODEL_ATTN_Q_BIAS || role == MODEL_ATTN_K_BIAS ||
                        role == MODEL_ATTN_V_BIAS));
        uint64_t count;
        assert_true(shape_element_count(&expected.shape, &count));
        sum += !wanted ? 0 : model_role_is_per_layer(role) ? count * config.block_count : count;
    }
    return sum;
}

/* As the authors of the models count them. */
static void test_parameter_counts(void **state)
{
    (void)state;
    static const struct {
        const char *slug;
        uint64_t count;
    } rows[] = {
        { "stories260k", 292800 },        { "tinyllama", 1100048384 },
        { "llama2-7b", 6738415616 },      { "llama2-13b", 13015864320 },
        { "llama2-70b", 68976648192 },    { "llama3-1b", 1235814400 },
        { "llama3-3b", 3212749824 },      { "llama3-8b", 8030261248 },
        { "llama3-70b", 70553706496 },    { "mistral-7b", 7241732096 },
        { "mistral-7b-v3", 7248023552 },  { "mistral-nemo", 12247782400 },
        { "qwen2-0.5b", 494032768 },      { "qwen2-1.5b", 1543714304 },
        { "qwen2-3b", 3085938688 },       { "qwen2-7b", 7615616512 },
        { "qwen2-14b", 14770033664 },     { "qwen2-32b", 32763876352 },
        { "qwen2-72b", 72706203648 },     { "qwen3-0.6b", 596049920 },
        { "qwen3-1.7b", 1720574976 },     { "qwen3-4b", 4022468096 },
        { "qwen3-8b", 8190735360 },       { "qwen3-14b", 14768307200 },
        { "qwen3-32b", 32762123264 },     { "gemma2-2b", 2614341888 },
        { "mixtral-8x7b", 46702792704 },  { "qwen1.5-moe", 14315784192 },
        { "qwen3-30b-a3b", 30532122624 }, { "gpt-oss-20b", 20914757184 },
        { "llama4-scout", 107769861120 }, { "gemma2-9b", 9241705984 },
        { "gemma3-1b", 999885952 },       { "phi3-mini", 3821079552 },
        { "phi4-mini", 3836021760 },      { "glm4-9b", 9400279040 },
        { "olmo2-7b", 7298617344 },       { "smollm3-3b", 3075098624 },
        { "command-r", 34980831232 },     { "command-r7b", 8028033024 },
        { "starcoder2-3b", 3030371328 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct model_shape *shape = model_shape_find(rows[i].slug);
        if (!shape)
            fail_msg("%s: unknown", rows[i].slug);
        if (parameter_count(shape) != rows[i].count)
            fail_msg("%s: expected %llu, found %llu", rows[i].slug,
                     (unsigned long long)rows[i].count, (unsigned long long)parameter_count(shape));
    }
}

static void test_shapes_are_consistent(void **state)
{
    (void)state;
    for (size_t i = 0; i < model_shape_count(); i++) {
        const struct model_shape *shape = model_shape_at(i);
        struct model_config config = config_of(shape);
        bool exact;
        if (model_shape_find(shape->slug) != shape || model_shape_find(shape->title) != shape)
            fail_msg("%s: its names find another", shape->slug);
        if (model_shape_of(&config, &exact) != shape || !exact)
            fail_msg("%s: its dimensions find another", shape->slug);
        if (shape->head_count % shape->head_count_kv || shape->head_dim % 8)
            fail_msg("%s: not a model", shape->slug);
    }
}

static void test_names_are_forgiving(void **state)
{
    (void)state;
    const struct model_shape *shape = model_shape_find("llama2-7b");
    assert_non_null(shape);
    assert_ptr_equal(model_shape_find("LLaMA_2.7B"), shape);
    assert_ptr_equal(model_shape_find("Llama-2-7B"), shape);
    assert_null(model_shape_find("llama2-7"));
    assert_null(model_shape_find("llama2-7bb"));
    assert_null(model_shape_find(""));
    assert_null(model_shape_find("--"));
}

static void test_other_vocabulary_is_alike(void **state)
{
    (void)state;
    struct model_config config = config_of(model_shape_find("llama3-8b"));
    bool exact;
    config.vocab_size = 1234;
    assert_string_equal(model_shape_of(&config, &exact)->slug, "llama3-8b");
    assert_false(exact);
    config.vocab_size = 32000; /* Mistral differs in nothing else */
    assert_string_equal(model_shape_of(&config, &exact)->slug, "mistral-7b");
    assert_true(exact);
    config.head_dim = 64;
    assert_null(model_shape_of(&config, &exact));
}

/* ---- Pins ----------------------------------------------------------------------------------- */

static void test_expectation(void **state)
{
    (void)state;
    const struct model_shape *expected = model_shape_find("llama2-7b");
    static struct model_report report;
    report = (struct model_report){ .config_known = true, .config = config_of(expected) };
    model_expectation_check(expected, &report);
    assert_int_equal(report.problem_count, 0);

    report.config = config_of(model_shape_find("llama3-8b"));
    model_expectation_check(expected, &report);
    assert_int_equal(report.problem_count, 3);
    static const char *const texts[] = { "feed_forward_length: expected 11008, found 14336",
                                         "head_count_kv: expected 32, found 8",
                                         "vocab_size: expected 32000, found 128256" };
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        check_contains("problem", report.problems[i].text, texts[i]);
        check_contains("problem", report.problems[i].text, "llama2-7b");
        check_contains("problem", report.problems[i].text, "--expect");
        assert_int_equal(report.problems[i].kind, MODEL_PROBLEM_EXPECTATION);
    }
    /* A pin is the only kind of problem that may be waved through. */
    assert_true(model_report_refuses(&report, false));
    assert_false(model_report_refuses(&report, true));
    model_problem_add(&report, MODEL_PROBLEM_CANNOT_RUN, "broken");
    assert_true(model_report_refuses(&report, true));

    report = (struct model_report){ .config = config_of(model_shape_find("qwen2-7b")) };
    model_expectation_check(expected, &report);
    check_contains("arch", report.problems[0].text, "architecture: expected llama, found qwen2");
}

static void test_problems_beyond_the_limit_count(void **state)
{
    (void)state;
    static struct model_report report;
    report = (struct model_report){ .config_known = true };
    for (int i = 0; i < MODEL_PROBLEM_LIMIT + 3; i++)
        model_problem_add(&report, MODEL_PROBLEM_EXPECTATION, "problem %d", i);
    assert_int_equal(report.problem_count, MODEL_PROBLEM_LIMIT);
    assert_int_equal(report.unkept_count, 3);
    assert_true(model_report_refuses(&report, true)); /* what was not kept may be anything */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_fused_heads),
        cmocka_unit_test(test_head_norms),
        cmocka_unit_test(test_experts),
        cmocka_unit_test(test_fused_experts),
        cmocka_unit_test(test_latent_heads),
        cmocka_unit_test(test_heads_wider_than_the_stream),
        cmocka_unit_test(test_types_allowed),
        cmocka_unit_test(test_parameter_counts),
        cmocka_unit_test(test_shapes_are_consistent),
        cmocka_unit_test(test_names_are_forgiving),
        cmocka_unit_test(test_other_vocabulary_is_alike),
        cmocka_unit_test(test_expectation),
        cmocka_unit_test(test_problems_beyond_the_limit_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
