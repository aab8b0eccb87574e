/* tensor_table.c - the tensors of a model: names, shapes and types, by architecture. The engine
 * binds its weights by the same rows, and a file is checked against them (tensor_check.c). */
#include "model/model_impl.h"

#include "tensor/quant.h"

#include <inttypes.h>
#include <stdio.h>

/* Sizes a shape formula may name. */
enum extent {
    NOTHING, /* no such dimension */
    WIDTH,   /* embedding_length */
    VOCAB,
    QUERY,   /* head_count * head_dim */
    KEY,     /* head_count_kv * head_dim */
    QKV,     /* all rows of these three */
    FEED,    /* feed_forward_length */
    GATE_UP, /* twice that */
    PAIRS,   /* rope.dimension_count / 2 */
    Q_NORM,  /* what a norm of queries has weights for */
    K_NORM,
    ONE,
    LAYER_INPUT,  /* layer_input_length */
    LAYER_INPUTS, /* that of all layers */
    Q_NORM_HEADS, /* heads with weights of their own; else there is no such dimension */
    K_NORM_HEADS,
    HEADS,
    EXPERTS,
    ATTENDED,    /* what attention gives for all heads */
    LATENT,      /* latent.rank */
    LATENT_KV,   /* with the part of the key that rotates */
    Q_LATENT,    /* latent.query_rank */
    K_LATENT,    /* latent.key_length */
    V_LATENT,    /* latent.value_length */
    EXPERT_FEED, /* experts.feed_length */
    EXPERT_PAIR, /* twice that */
    SHARED_FEED, /* experts.shared_feed_length */
};

static uint64_t norm_extent(const struct model_config *config, uint64_t heads, uint64_t head_dim)
{
    bool is_row = model_arch_info(config->arch)->head_norm == MODEL_HEAD_NORM_ROW;
    return is_row ? heads * head_dim : head_dim;
}

static uint64_t extent_of_heads(const struct model_config *config, const struct model_layer *layer,
                                enum extent extent)
{
    uint64_t heads = config->head_count, kv_heads = layer->head_count_kv, dim = layer->head_dim;
    bool own = model_arch_info(config->arch)->head_norm == MODEL_HEAD_NORM_OWN;
    const struct model_latent *latent = &config->latent;
    uint64_t rotated = config->rope.dimension_count;
    switch (extent) {
    case QUERY:
        return heads * (latent->rank ? latent->key_length + rotated : dim);
    case ATTENDED:
        return heads * (latent->rank ? latent->value_length : dim);
    case LATENT:
        return latent->rank;
    case LATENT_KV:
        return latent->rank + rotated;
    case Q_LATENT:
        return latent->query_rank;
    case K_LATENT:
        return latent->key_length;
    case V_LATENT:
        return latent->value_length;
    case KEY:
        return kv_heads * dim;
    case QKV:
        return (heads + 2 * kv_heads) * dim;
    case Q_NORM:
        return norm_extent(config, heads, dim);
    case K_NORM:
        return norm_extent(config, kv_heads, dim);
    case Q_NORM_HEADS:
        return own ? heads : 0;
    case K_NORM_HEADS:
        return own ? kv_heads : 0;
    case HEADS:
        return heads;
    default:
        return 0;
    }
}

/* 0: there is no such dimension. */
static uint64_t extent_of(const struct model_config *config, const struct model_layer *layer,
                          enum extent extent)
{
    switch (extent) {
    case WIDTH:
        return config->embedding_length;
    case VOCAB:
        return config->vocab_size;
    case FEED:
        return layer->feed_forward_length;
    case GATE_UP:
        return 2 * (uint64_t)layer->feed_forward_length;
    case PAIRS:
        return config->rope.dimension_count / 2;
    case ONE:
        return 1;
    case LAYER_INPUT:
        return config->layer_input_length;
    case LAYER_INPUTS:
        return (uint64_t)config->layer_input_length * config->block_count;
    case EXPERTS:
        return config->experts.count;
    case EXPERT_FEED:
        return config->experts.feed_length;
    case EXPERT_PAIR:
        return 2 * (uint64_t)config->experts.feed_length;
    case SHARED_FEED:
        return config->experts.shared_feed_length;
    default:
        return extent_of_heads(config, layer, extent);
    }
}

/* Sets of architectures; one with experts has the tensors of its dense relative but for the
 * feed-forward, and for what names it below. */
#define GPT_OSS (1u << MODEL_ARCH_GPT_OSS)
#define LLAMA (1u << MODEL_ARCH_LLAMA | 1u << MODEL_ARCH_LLAMA4)
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
#define DEEPSEEK2 (1u << MODEL_ARCH_DEEPSEEK2)
#define SMOLLM3 (1u << MODEL_ARCH_SMOLLM3 | DEEPSEEK2)
#define COMMAND_R (1u << MODEL_ARCH_COMMAND_R)
#define COHERE2 (1u << MODEL_ARCH_COHERE2)
#define STARCODER2 (1u << MODEL_ARCH_STARCODER2)
#define QWEN2MOE (1u << MODEL_ARCH_QWEN2MOE)
#define EVERY ((1u << MODEL_ARCH_COUNT) - 1)
#define NONE 0u

/* Which architectures must have the tensor, may have it, and have none. Each one is named exactly
 * once, or this does not compile. */
#define PRESENCE(must_set, may_set, no_set)                                                        \
    .must = (must_set),                                                                            \
    .may = (may_set) + 0 * sizeof(char[((must_set) ^ (may_set) ^ (no_set)) == EVERY &&             \
                                               ((must_set) & (may_set)) == 0 &&                    \
                                               (((must_set) | (may_set)) & (no_set)) == 0          \
                                           ? 1                                                     \
                                           : -1])

/* Where the model has such inputs at all. */
#define OF_LAYER_INPUTS PRESENCE(NONE, GEMMA4, EVERY & ~GEMMA4)

/* Where keys and values are made of short rows. */
#define OF_LATENT PRESENCE(DEEPSEEK2, NONE, EVERY & ~DEEPSEEK2)

/* Where layers have a feed-forward and experts. */
#define OF_DENSE_AND_EXPERTS PRESENCE(GEMMA4, NONE, EVERY & ~GEMMA4)

/* A matrix [in, out] has any type that can be decoded; a vector (norm, bias, frequencies) is F32.
 */
enum kind { VECTOR, MATRIX };

/* Where a layer has it: always, without experts (or with them too: MODEL_KEEPS_DENSE), only with
 * experts, only with a shared one. */
enum part { ALWAYS, DENSE, EXPERT, SHARED };

/* clang-format off */
static const struct row {
    const char *name;
    bool per_layer;
    enum kind kind;
    enum extent shape[3];
    uint32_t must, may;
    enum part part;
} rows[] = {
    [MODEL_TOKEN_EMBD] = { "token_embd.weight", false, MATRIX, { WIDTH, VOCAB },
        PRESENCE(EVERY, NONE, NONE) },
    [MODEL_OUTPUT_NORM] = { "output_norm.weight", false, VECTOR, { WIDTH },
        PRESENCE(EVERY, NONE, NONE) },
    [MODEL_OUTPUT_NORM_BIAS] = { "output_norm.bias", false, VECTOR, { WIDTH },
        PRESENCE(STARCODER2, NONE, LLAMA | QWEN2 | QWEN3 | GEMMA2 | GEMMA3 | GEMMA4 | PHI3 |
            MISTRAL3 | GLM4 | GRANITE | OLMO2 | SMOLLM3 | COMMAND_R | COHERE2) },
    [MODEL_OUTPUT] = { "output.weight", false, MATRIX, { WIDTH, VOCAB },
        PRESENCE(OLMO2, LLAMA | QWEN2 | QWEN3 | GEMMA3 | GEMMA4 | PHI3 | MISTRAL3 | GLM4 |
            GRANITE | SMOLLM3 | STARCODER2, GEMMA2 | COMMAND_R | COHERE2) },
    [MODEL_OUTPUT_BIAS] = { "output.bias", false, VECTOR, { VOCAB },
        PRESENCE(NONE, QWEN2, LLAMA | QWEN3 | GEMMA2 | GEMMA3 | GEMMA4 | PHI3 | MISTRAL3 | GLM4 |
            GRANITE | OLMO2 | SMOLLM3 | COMMAND_R | COHERE2 | STARCODER2) },
    [MODEL_LAYER_TOKEN_EMBD] = { "per_layer_token_embd.weight", false, MATRIX,
        { LAYER_INPUTS, VOCAB }, OF_LAYER_INPUTS },
    [MODEL_LAYER_PROJ] = { "per_layer_model_proj.weight", false, MATRIX, { WIDTH, LAYER_INPUTS },
        OF_LAYER_INPUTS },
    [MODEL_LAYER_PROJ_NORM] = { "per_layer_proj_norm.weight", false, VECTOR, { LAYER_INPUT },
        OF_LAYER_INPUTS },
    [MODEL_ROPE_FREQS] = { "rope_freqs.weight", false, VECTOR, { PAIRS },
        PRESENCE(NONE, LLAMA | MISTRAL3 | GRANITE | GEMMA4, QWEN2 | QWEN3 | GEMMA2 | GEMMA3 |
            PHI3 | GLM4 | OLMO2 | SMOLLM3 | COMMAND_R | COHERE2 | STARCODER2) },
    [MODEL_ROPE_FACTORS_SHORT] = { "rope_factors_short.weight", false, VECTOR, { PAIRS },
        PRESENCE(NONE, PHI3 | MISTRAL3, LLAMA | QWEN2 | QWEN3 | GEMMA2 | GEMMA3 | GEMMA4 | GLM4 |
            GRANITE | OLMO2 | SMOLLM3 | COMMAND_R | COHERE2 | STARCODER2) },
    [MODEL_ROPE_FACTORS_LONG] = { "rope_factors_long.weight", false, VECTOR, { PAIRS },
        PRESENCE(NONE, PHI3 | MISTRAL3, LLAMA | QWEN2 | QWEN3 | GEMMA2 | GEMMA3 | GEMMA4 | GLM4 |
            GRANITE | OLMO2 | SMOLLM3 | COMMAND_R | COHERE2 | STARCODER2) },
    [MODEL_ATTN_NORM] = { "attn_norm.weight", true, VECTOR, { WIDTH },
        PRESENCE(LLAMA | QWEN2 | QWEN3 | GEMMA2 | GEMMA3 | GEMMA4 | PHI3 | MISTRAL3 | GLM4 |
            GRANITE | SMOLLM3 | COMMAND_R | COHERE2 | STARCODER2, NONE, OLMO2) },
    [MODEL_ATTN_NORM_BIAS] = { "attn_norm.bias", true, VECTOR, { WIDTH },
        PRESENCE(STARCODER2, NONE, LLAMA | QWEN2 | QWEN3 | GEMMA2 | GEMMA3 | GEMMA4 | PHI3 |
            MISTRAL3 | GLM4 | GRANITE | OLMO2 | SMOLLM3 | COMMAND_R | COHERE2) },
    [MODEL_ATTN_Q] = { "attn_q.weight", true, MATRIX, { WIDTH, QUERY },
        PRESENCE(EVERY, NONE, NONE) },
    [MODEL_ATTN_K] = { "attn_k.weight", true, MATRIX, { WIDTH, KEY },
        PRESENCE(EVERY, NONE, NONE) },
    [MODEL_ATTN_V] = { "attn_v.weight", true, MATRIX, { WIDTH, KEY },
        PRESENCE(EVERY & ~GEMMA4, GEMMA4, NONE) },
    [MODEL_ATTN_Q_BIAS] = { "attn_q.bias", true, VECTOR, { QUERY },
        PRESENCE(QWEN2 | STARCODER2, LLAMA | GEMMA2 | GEMMA3 | PHI3 | MISTRAL3 | GLM4 | GRANITE |
            OLMO2 | SMOLLM3 | COMMAND_R | COHERE2, QWEN3 | GEMMA4) },
    [MODEL_ATTN_K_BIAS] = { "attn_k.bias", true, VECTOR, { KEY },
        PRESENCE(QWEN2 | STARCODER2, LLAMA | GEMMA2 | GEMMA3 | PHI3 | MISTRAL3 | GLM4 | GRANITE |
            OLMO2 | SMOLLM3 | COMMAND_R | COHERE2, QWEN3 | GEMMA4) },
    [MODEL_ATTN_V_BIAS] = { "attn_v.bias", true, VECTOR, { KEY },
        PRESENCE(QWEN2 | STARCODER2, LLAMA | GEMMA2 | GEMMA3 | PHI3 | MISTRAL3 | GLM4 | GRANITE |
            OLMO2 | SMOLLM3 | COMMAND_R | COHERE2, QWEN3 | GEMMA4) },
    /* These two in place of the six before them. */
    [MODEL_ATTN_QKV] = { "attn_qkv.weight", true, MATRIX, { WIDTH, QKV },
        PRESENCE(NONE, EVERY & ~GEMMA4, GEMMA4) },
    [MODEL_ATTN_QKV_BIAS] = { "attn_qkv.bias", true, VECTOR, { QKV },
        PRESENCE(NONE, EVERY & ~GEMMA4, GEMMA4) },
    [MODEL_ATTN_Q_A] = { "attn_q_a.weight", true, MATRIX, { WIDTH, Q_LATENT }, OF_LATENT },
    [MODEL_ATTN_Q_A_NORM] = { "attn_q_a_norm.weight", true, VECTOR, { Q_LATENT }, OF_LATENT },
    [MODEL_ATTN_Q_B] = { "attn_q_b.weight", true, MATRIX, { Q_LATENT, QUERY }, OF_LATENT },
    [MODEL_ATTN_KV_A] = { "attn_kv_a_mqa.weight", true, MATRIX, { WIDTH, LATENT_KV }, OF_LATENT },
    [MODEL_ATTN_KV_A_NORM] = { "attn_kv_a_norm.weight", true, VECTOR, { LATENT }, OF_LATENT },
    [MODEL_ATTN_K_B] = { "attn_k_b.weight", true, MATRIX, { K_LATENT, LATENT, HEADS }, OF_LATENT },
    [MODEL_ATTN_V_B] = { "attn_v_b.weight", true, MATRIX, { LATENT, V_LATENT, HEADS }, OF_LATENT },
    [MODEL_ATTN_Q_NORM] = { "attn_q_norm.weight", true, VECTOR, { Q_NORM, Q_NORM_HEADS },
        PRESENCE(QWEN3 | GEMMA3 | GEMMA4 | OLMO2, COMMAND_R, LLAMA | QWEN2 | GEMMA2 | PHI3 |
            MISTRAL3 | GLM4 | GRANITE | SMOLLM3 | COHERE2 | STARCODER2) },
    [MODEL_ATTN_K_NORM] = { "attn_k_norm.weight", true, VECTOR, { K_NORM, K_NORM_HEADS },
        PRESENCE(QWEN3 | GEMMA3 | GEMMA4 | OLMO2, COMMAND_R, LLAMA | QWEN2 | GEMMA2 | PHI3 |
            MISTRAL3 | GLM4 | GRANITE | SMOLLM3 | COHERE2 | STARCODER2) },
    [MODEL_ATTN_OUTPUT] = { "attn_output.weight", true, MATRIX, { ATTENDED, WIDTH },
        PRESENCE(EVERY, NONE, NONE) },
    [MODEL_ATTN_OUTPUT_BIAS] = { "attn_output.bias", true, VECTOR, { WIDTH },
        PRESENCE(STARCODER2 | GPT_OSS, LLAMA | MISTRAL3 | GRANITE, (QWEN2 & ~GPT_OSS) | QWEN3 |
            GEMMA2 | GEMMA3 | GEMMA4 | PHI3 | GLM4 | OLMO2 | SMOLLM3 | COMMAND_R | COHERE2) },
    [MODEL_ATTN_POST_NORM] = { "post_attention_norm.weight", true, VECTOR, { WIDTH },
        PRESENCE(GEMMA2 | GEMMA3 | GEMMA4 | GLM4 | OLMO2, NONE, LLAMA | QWEN2 | QWEN3 | PHI3 |
            MISTRAL3 | GRANITE | SMOLLM3 | COMMAND_R | COHERE2 | STARCODER2) },
    [MODEL_ATTN_SINKS] = { "attn_sinks.weight", true, VECTOR, { HEADS },
        PRESENCE(GPT_OSS, NONE, EVERY & ~GPT_OSS) },
    [MODEL_FFN_NORM] = { "ffn_norm.weight", true, VECTOR, { WIDTH },
        PRESENCE(LLAMA | QWEN2 | QWEN3 | GEMMA2 | GEMMA3 | GEMMA4 | PHI3 | MISTRAL3 | GLM4 |
            GRANITE | SMOLLM3 | STARCODER2, NONE, OLMO2 | COMMAND_R | COHERE2) },
    [MODEL_FFN_NORM_BIAS] = { "ffn_norm.bias", true, VECTOR, { WIDTH },
        PRESENCE(STARCODER2, NONE, LLAMA | QWEN2 | QWEN3 | GEMMA2 | GEMMA3 | GEMMA4 | PHI3 |
            MISTRAL3 | GLM4 | GRANITE | OLMO2 | SMOLLM3 | COMMAND_R | COHERE2) },
    [MODEL_FFN_GATE] = { "ffn_gate.weight", true, MATRIX, { WIDTH, FEED },
        PRESENCE(LLAMA | QWEN2 | QWEN3 | GEMMA2 | GEMMA3 | GEMMA4 | MISTRAL3 | GRANITE | OLMO2 |
            SMOLLM3 | COMMAND_R | COHERE2, NONE, PHI3 | GLM4 | STARCODER2), .part = DENSE },
    [MODEL_FFN_UP] = { "ffn_up.weight", true, MATRIX, { WIDTH, FEED },
        PRESENCE(LLAMA | QWEN2 | QWEN3 | GEMMA2 | GEMMA3 | GEMMA4 | MISTRAL3 | GRANITE | OLMO2 |
            SMOLLM3 | COMMAND_R | COHERE2 | STARCODER2, NONE, PHI3 | GLM4), .part = DENSE },
    [MODEL_FFN_UP_BIAS] = { "ffn_up.bias", true, VECTOR, { FEED },
        PRESENCE(STARCODER2, NONE, LLAMA | QWEN2 | QWEN3 | GEMMA2 | GEMMA3 | GEMMA4 | PHI3 |
            MISTRAL3 | GLM4 | GRANITE | OLMO2 | SMOLLM3 | COMMAND_R | COHERE2), .part = DENSE },
    [MODEL_FFN_GATE_UP] = { "ffn_up.weight", true, MATRIX, { WIDTH, GATE_UP },
        PRESENCE(PHI3 | GLM4, NONE, LLAMA | QWEN2 | QWEN3 | GEMMA2 | GEMMA3 | GEMMA4 | MISTRAL3 |
            GRANITE | OLMO2 | SMOLLM3 | COMMAND_R | COHERE2 | STARCODER2), .part = DENSE },
    [MODEL_FFN_DOWN] = { "ffn_down.weight", true, MATRIX, { FEED, WIDTH },
        PRESENCE(EVERY, NONE, NONE), .part = DENSE },
    [MODEL_FFN_DOWN_BIAS] = { "ffn_down.bias", true, VECTOR, { WIDTH },
        PRESENCE(STARCODER2, NONE, LLAMA | QWEN2 | QWEN3 | GEMMA2 | GEMMA3 | GEMMA4 | PHI3 |
            MISTRAL3 | GLM4 | GRANITE | OLMO2 | SMOLLM3 | COMMAND_R | COHERE2), .part = DENSE },
    [MODEL_FFN_POST_NORM] = { "post_ffw_norm.weight", true, VECTOR, { WIDTH },
        PRESENCE(GEMMA2 | GEMMA3 | GEMMA4 | GLM4 | OLMO2, NONE, LLAMA | QWEN2 | QWEN3 | PHI3 |
            MISTRAL3 | GRANITE | SMOLLM3 | COMMAND_R | COHERE2 | STARCODER2) },
    [MODEL_LAYER_INPUT_GATE] = { "inp_gate.weight", true, MATRIX, { WIDTH, LAYER_INPUT },
        OF_LAYER_INPUTS },
    [MODEL_LAYER_INPUT_PROJ] = { "proj.weight", true, MATRIX, { LAYER_INPUT, WIDTH },
        OF_LAYER_INPUTS },
    [MODEL_LAYER_INPUT_NORM] = { "post_norm.weight", true, VECTOR, { WIDTH }, OF_LAYER_INPUTS },
    [MODEL_LAYER_OUTPUT_SCALE] = { "layer_output_scale.weight", true, VECTOR, { ONE },
        PRESENCE(NONE, GEMMA4, EVERY & ~GEMMA4) },
    [MODEL_FFN_ROUTER] = { "ffn_gate_inp.weight", true, MATRIX, { WIDTH, EXPERTS },
        PRESENCE(EVERY, NONE, NONE), .part = EXPERT },
    [MODEL_FFN_ROUTER_BIAS] = { "ffn_gate_inp.bias", true, VECTOR, { EXPERTS },
        PRESENCE(GPT_OSS, NONE, EVERY & ~GPT_OSS), .part = EXPERT },
    [MODEL_FFN_CHOICE_BIAS] = { "exp_probs_b.bias", true, VECTOR, { EXPERTS },
        PRESENCE(NONE, DEEPSEEK2, EVERY & ~DEEPSEEK2), .part = EXPERT },
    [MODEL_FFN_GATE_EXPERTS] = { "ffn_gate_exps.weight", true, MATRIX,
        { WIDTH, EXPERT_FEED, EXPERTS }, PRESENCE(EVERY, NONE, NONE), .part = EXPERT },
    [MODEL_FFN_UP_EXPERTS] = { "ffn_up_exps.weight", true, MATRIX,
        { WIDTH, EXPERT_FEED, EXPERTS }, PRESENCE(EVERY, NONE, NONE), .part = EXPERT },
    [MODEL_FFN_DOWN_EXPERTS] = { "ffn_down_exps.weight", true, MATRIX,
        { EXPERT_FEED, WIDTH, EXPERTS }, PRESENCE(EVERY, NONE, NONE), .part = EXPERT },
    [MODEL_FFN_GATE_UP_EXPERTS] = { "ffn_gate_up_exps.weight", true, MATRIX,
        { WIDTH, EXPERT_PAIR, EXPERTS }, PRESENCE(EVERY, NONE, NONE), .part = EXPERT },
    [MODEL_FFN_ROUTER_SCALE] = { "ffn_gate_inp.scale", true, VECTOR, { WIDTH },
        OF_DENSE_AND_EXPERTS, .part = EXPERT },
    [MODEL_FFN_EXPERTS_SCALE] = { "ffn_down_exps.scale", true, VECTOR, { EXPERTS },
        OF_DENSE_AND_EXPERTS, .part = EXPERT },
    [MODEL_FFN_EXPERTS_NORM] = { "pre_ffw_norm_2.weight", true, VECTOR, { WIDTH },
        OF_DENSE_AND_EXPERTS, .part = EXPERT },
    [MODEL_FFN_EXPERTS_POST_NORM] = { "post_ffw_norm_2.weight", true, VECTOR, { WIDTH },
        OF_DENSE_AND_EXPERTS, .part = EXPERT },
    [MODEL_FFN_DENSE_POST_NORM] = { "post_ffw_norm_1.weight", true, VECTOR, { WIDTH },
        OF_DENSE_AND_EXPERTS, .part = EXPERT },
    [MODEL_FFN_GATE_EXPERTS_BIAS] = { "ffn_gate_exps.bias", true, VECTOR, { EXPERT_FEED, EXPERTS },
        PRESENCE(GPT_OSS, NONE, EVERY & ~GPT_OSS), .part = EXPERT },
    [MODEL_FFN_UP_EXPERTS_BIAS] = { "ffn_up_exps.bias", true, VECTOR, { EXPERT_FEED, EXPERTS },
        PRESENCE(GPT_OSS, NONE, EVERY & ~GPT_OSS), .part = EXPERT },
    [MODEL_FFN_DOWN_EXPERTS_BIAS] = { "ffn_down_exps.bias", true, VECTOR, { WIDTH, EXPERTS },
        PRESENCE(GPT_OSS, NONE, EVERY & ~GPT_OSS), .part = EXPERT },
    [MODEL_FFN_SHARED_ROUTER] = { "ffn_gate_inp_shexp.weight", true, VECTOR, { WIDTH },
        PRESENCE(QWEN2MOE, NONE, EVERY & ~QWEN2MOE), .part = SHARED },
    [MODEL_FFN_SHARED_GATE] = { "ffn_gate_shexp.weight", true, MATRIX, { WIDTH, SHARED_FEED },
        PRESENCE(EVERY, NONE, NONE), .part = SHARED },
    [MODEL_FFN_SHARED_UP] = { "ffn_up_shexp.weight", true, MATRIX, { WIDTH, SHARED_FEED },
        PRESENCE(EVERY, NONE, NONE), .part = SHARED },
    [MODEL_FFN_SHARED_DOWN] = { "ffn_down_shexp.weight", true, MATRIX, { SHARED_FEED, WIDTH },
        PRESENCE(EVERY, NONE, NONE), .part = SHARED },
};
/* clang-format on */
_Static_assert(COUNT_OF(rows) == MODEL_ROLE_COUNT, "every role has a row");

static bool is_of_kv(enum model_role role)
{
    return role == MODEL_ATTN_K || role == MODEL_ATTN_V || role == MODEL_ATTN_K_BIAS ||
           role == MODEL_ATTN_V_BIAS || role == MODEL_ATTN_K_NORM;
}

static bool is_of_layer_inputs(enum model_role role)
{
    return role == MODEL_LAYER_TOKEN_EMBD || role == MODEL_LAYER_PROJ ||
           role == MODEL_LAYER_PROJ_NORM || role == MODEL_LAYER_INPUT_GATE ||
           role == MODEL_LAYER_INPUT_PROJ || role == MODEL_LAYER_INPUT_NORM;
}

static bool layer_has_part(const struct model_config *config, enum part part, uint32_t layer)
{
    bool experts = model_layer_has_experts(config, layer);
    bool dense = !experts || model_arch_info(config->arch)->reads & MODEL_KEEPS_DENSE;
    return part == ALWAYS || (part == DENSE && dense) || (part == EXPERT && experts) ||
           (part == SHARED && experts && config->experts.shared_feed_length > 0);
}

/* A weight of queries, keys or values is a tensor of its own, or rows of attn_qkv; so is a bias. */
static enum model_presence presence_of_heads(const struct model_config *config,
                                             enum model_role role)
{
    bool weight = role == MODEL_ATTN_Q || role == MODEL_ATTN_K || role == MODEL_ATTN_V;
    bool bias = role == MODEL_ATTN_Q_BIAS || role == MODEL_ATTN_K_BIAS || role == MODEL_ATTN_V_BIAS;
    if ((weight && config->has_fused_qkv) || (bias && config->has_fused_qkv_bias) ||
        (role == MODEL_ATTN_QKV && !config->has_fused_qkv) ||
        (role == MODEL_ATTN_QKV_BIAS && !config->has_fused_qkv_bias))
        return MODEL_ABSENT;
    return role == MODEL_ATTN_QKV || role == MODEL_ATTN_QKV_BIAS ? MODEL_REQUIRED : MODEL_OPTIONAL;
}

/* Queries by a short row or not, and no weights of ordinary keys and values. */
static bool latent_lacks(const struct model_config *config, enum model_role role)
{
    bool by_row = config->latent.query_rank > 0;
    if (!model_arch_info(config->arch)->is_latent)
        return false;
    if (role == MODEL_ATTN_Q)
        return by_row;
    if (role == MODEL_ATTN_Q_A || role == MODEL_ATTN_Q_A_NORM || role == MODEL_ATTN_Q_B)
        return !by_row;
    return role >= MODEL_ATTN_K && role <= MODEL_ATTN_QKV_BIAS;
}

static enum model_presence presence_of(const struct model_config *config, enum model_role role,
                                       uint32_t layer, bool owns_cache)
{
    bool fused = role == MODEL_FFN_GATE_UP_EXPERTS,
         apart = role == MODEL_FFN_GATE_EXPERTS || role == MODEL_FFN_UP_EXPERTS;
    if (!layer_has_part(config, rows[role].part, layer) || latent_lacks(config, role) ||
        (config->experts.fused ? apart : fused))
        return MODEL_ABSENT;
    bool may = rows[role].may >> config->arch & 1, must = rows[role].must >> config->arch & 1;
    enum model_presence heads = presence_of_heads(config, role);
    if ((!may && !must) || heads == MODEL_ABSENT || (is_of_kv(role) && !owns_cache))
        return MODEL_ABSENT;
    bool factors = role == MODEL_ROPE_FACTORS_SHORT || role == MODEL_ROPE_FACTORS_LONG;
    if (heads == MODEL_REQUIRED || (factors && config->has_rope_factors)) /* both or none */
        return MODEL_REQUIRED;
    if (is_of_layer_inputs(role))
        return config->layer_input_length ? MODEL_REQUIRED : MODEL_ABSENT;
    return must ? MODEL_REQUIRED : MODEL_OPTIONAL;
}

bool model_role_is_per_layer(enum model_role role)
{
    return rows[role].per_layer;
}

const char *model_role_name(const struct model_config *config, enum model_role role)
{
    const char *ffn_norm = model_arch_info(config->arch)->ffn_norm;
    return role == MODEL_FFN_NORM && ffn_norm ? ffn_norm : rows[role].name;
}

struct model_tensor model_tensor(const struct model_config *config, enum model_role role,
                                 uint32_t layer)
{
    const struct row *row = &rows[role];
    uint32_t of = row->per_layer && layer < config->block_count ? layer : 0;
    struct model_layer numbers = model_layer(config, of);
    struct model_tensor wanted = { .presence = presence_of(config, role, of, numbers.cache == of),
                                   .is_matrix = row->kind == MATRIX };
    if (row->per_layer)
        snprintf(wanted.name, sizeof(wanted.name), "blk.%" PRIu32 ".%s", layer,
                 model_role_name(config, role));
    else
        snprintf(wanted.name, sizeof(wanted.name), "%s", model_role_name(config, role));
    uint64_t dims[COUNT_OF(row->shape)];
    uint32_t rank = 1;
    for (size_t i = 0; i < COUNT_OF(dims); i++) {
        dims[i] = extent_of(config, &numbers, row->shape[i]);
        if (dims[i])
            rank = (uint32_t)i + 1;
    }
    wanted.shape = shape_make(rank, dims);
    return wanted;
}

bool model_dtype_allowed(bool is_matrix, enum dtype dtype)
{
    return is_matrix ? quant_can_decode(dtype) : dtype == DTYPE_F32;
}
