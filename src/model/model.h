/* model.h - what a GGUF file is as a model: its configuration, the tensors it must have, and
 * whether greta can run it.
 *
 * This is the guard rail. model_check reads a file and lists every reason why it cannot run; a
 * model with a problem never reaches a device. No shape is hard-coded: a known shape is a name for
 * people and, with --expect, a pin. */
#ifndef GRETA_MODEL_MODEL_H
#define GRETA_MODEL_MODEL_H

#include "base/progress.h"
#include "base/status.h"
#include "gguf/gguf.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Architectures -------------------------------------------------------------------------- */

enum model_arch {
    MODEL_ARCH_LLAMA,
    MODEL_ARCH_QWEN2,
    MODEL_ARCH_QWEN3,
    MODEL_ARCH_GEMMA2,
    MODEL_ARCH_GEMMA3,
    MODEL_ARCH_GEMMA4,
    MODEL_ARCH_PHI3,
    MODEL_ARCH_MISTRAL3,
    MODEL_ARCH_GLM4,
    MODEL_ARCH_GRANITE,
    MODEL_ARCH_OLMO2,
    MODEL_ARCH_SMOLLM3,
    MODEL_ARCH_COMMAND_R,
    MODEL_ARCH_COHERE2,
    MODEL_ARCH_STARCODER2,
    MODEL_ARCH_QWEN2MOE,
    MODEL_ARCH_QWEN3MOE,
    MODEL_ARCH_GRANITEMOE,
    MODEL_ARCH_GPT_OSS,
    MODEL_ARCH_LLAMA4,
    MODEL_ARCH_DEEPSEEK2,
    MODEL_ARCH_COUNT
};

/* Which pairs of a head's values RoPE rotates. */
enum model_rope_kind {
    MODEL_ROPE_ADJACENT,   /* (2k, 2k + 1) */
    MODEL_ROPE_SPLIT_HALF, /* (k, k + n/2) */
};

enum model_norm_kind {
    MODEL_NORM_RMS,
    MODEL_NORM_LAYER, /* minus the mean; with a bias where the model has one */
};

/* How queries and keys are normalised before they are rotated, where the model has weights for it.
 */
enum model_head_norm {
    MODEL_HEAD_NORM_EACH, /* RMS of each head, all by the same weights */
    MODEL_HEAD_NORM_ROW,  /* RMS of all heads as one row */
    MODEL_HEAD_NORM_OWN,  /* layer norm of each head, by weights of its own */
};

enum model_activation {
    MODEL_ACTIVATION_SILU,
    MODEL_ACTIVATION_GELU, /* by tanh */
};

/* How layers with a window rotate. */
enum model_local_rope {
    MODEL_LOCAL_ROPE_SAME,     /* as the others do */
    MODEL_LOCAL_ROPE_OWN_BASE, /* with a base of their own, and no scaling */
    MODEL_LOCAL_ROPE_UNSCALED, /* with the base of the others, and no scaling */
    MODEL_LOCAL_ROPE_ONLY,     /* the others do not rotate */
};

/* What models of an architecture have in common. What only some of them have, their tensors and
 * keys say. */
struct model_arch_info {
    const char *name; /* as in general.architecture */
    enum model_rope_kind rope_kind;
    bool rope_covers_head; /* rope.dimension_count must be the whole head */
    enum model_norm_kind norm;
    enum model_head_norm head_norm;
    enum model_activation activation;
    bool is_parallel;         /* attention and feed-forward read the same normed rows */
    uint32_t unrotated_every; /* of so many layers the last one does not rotate; 0: all rotate */
    enum model_local_rope local_rope;
    uint32_t window_period;  /* of so many layers the last one has no window; 0: there are none */
    uint32_t window_default; /* tokens; 0: as the file says */
    float attention_cap, logit_cap; /* where the file does not say it */
    uint32_t reads;                 /* keys that other architectures do not read */
    /* Models of exactly so many layers divide scores by the root of embedding_length / head_count
     * in place of that of the head dimension; no key says so. */
    uint32_t width_scaled_blocks;
    const char *ffn_norm; /* its tensor, where that is not ffn_norm.weight */
    /* Layers that rotate see the tokens of their own chunk of so many; 0: all. At position p those
     * that do not rotate multiply queries by 1 + resting_temperature ln(1 + floor((p + 1) /
     * chunk)).
     */
    uint32_t chunk;
    float resting_temperature;
    bool is_latent;     /* keys and values are made of one short row: struct model_latent */
    bool reads_routing; /* keys that say how experts are chosen and weighed */
};

enum model_reads {
    MODEL_READS_WINDOW = 1 << 0,
    MODEL_READS_ATTENTION_CAP = 1 << 1,
    MODEL_READS_LOGIT_CAP = 1 << 2,
    MODEL_READS_YARN = 1 << 3,        /* yarn_beta_fast, yarn_beta_slow, yarn_log_multiplier */
    MODEL_READS_LONGROPE = 1 << 4,    /* rope.scaling.type may be longrope */
    MODEL_READS_SCALES = 1 << 5,      /* of embedding, residual stream and attention */
    MODEL_MULTIPLIES_LOGITS = 1 << 6, /* by logit_scale */
    MODEL_DIVIDES_LOGITS = 1 << 7,
    MODEL_SCALES_EMBEDDING = 1 << 8,  /* by the root of its length */
    MODEL_READS_TEMPERATURE = 1 << 9, /* of attention, by position */
    MODEL_SKIPS_PREDICTION = 1 << 10, /* the last nextn_predict_layers blocks are left out */
    MODEL_READS_SECTIONS = 1 << 11,   /* with rope.dimension_sections pairs are split halves */
    MODEL_IGNORES_ATTENTION_CAP = 1 << 12,
    MODEL_NEEDS_WINDOW = 1 << 13,
    MODEL_NEEDS_LOGIT_SCALE = 1 << 14,
    MODEL_MAY_NOT_ROTATE = 1 << 15, /* where rope.scaling.finetuned is false */
    MODEL_LAYERS_DIFFER =
        1 << 16, /* in the size of heads, in their number, in feed_forward_length */
    MODEL_NORMS_VALUES = 1 << 17, /* each head of the values, without weights */
    MODEL_UNSCALED_SCORES = 1 << 18,
    MODEL_MAY_HAVE_EXPERTS = 1 << 19,
    MODEL_MUST_HAVE_EXPERTS = 1 << 20,
    MODEL_NORMALISES_EXPERTS = 1 << 21, /* their weights are divided by their sum */
    MODEL_EXPERTS_OWN_LENGTH = 1 << 22, /* expert_feed_forward_length; else feed_forward_length */
    MODEL_MAY_SHARE_EXPERT = 1 << 23,   /* one more that every token uses, as a key says */
    MODEL_MUST_SHARE_EXPERT = 1 << 24,
    MODEL_CLAMPS_EXPERTS = 1 << 25, /* gate and up, and the gate is wider: ops_gate_experts */
    /* The sigmoid of its logit weighs what an expert reads, in place of what it gives. */
    MODEL_WEIGHS_EXPERT_INPUT = 1 << 26,
    MODEL_EXPERTS_BY_STEP = 1 << 27,    /* every interleave_moe_layer_step-th layer has experts */
    MODEL_SHARES_LIKE_EXPERT = 1 << 28, /* the shared one is as long as the others */
    MODEL_NORMS_ROTATED = 1 << 29,      /* queries and keys after rotation, without weights */
    MODEL_KEEPS_DENSE = 1 << 30, /* layers with experts have a feed-forward of their own too */
};

const struct model_arch_info *model_arch_info(enum model_arch arch);

/* ---- Configuration -------------------------------------------------------------------------- */

enum model_rope_scaling {
    MODEL_ROPE_SCALING_NONE,
    MODEL_ROPE_SCALING_LINEAR,
    MODEL_ROPE_SCALING_YARN,
    MODEL_ROPE_SCALING_LONG, /* by factors that the file has as tensors */
    MODEL_ROPE_SCALING_COUNT
};

const char *model_rope_scaling_name(enum model_rope_scaling scaling);

struct model_rope {
    enum model_rope_kind kind;
    uint32_t dimension_count; /* rotated values of a head; even */
    float base;
    enum model_rope_scaling scaling;
    float scaling_factor; /* 1 without scaling */
    uint32_t original_context_length;
    float attention_factor;
    float yarn_ext_factor; /* 1 under YaRN, else 0 */
    float yarn_beta_fast;
    float yarn_beta_slow;
    float yarn_log_multiplier;
};

/* A number beyond these is a damaged file, not a model. */
#define MODEL_BLOCK_LIMIT 4096u
/* Layers of a model that may differ in a number. */
#define MODEL_UNLIKE_LIMIT 256u
#define MODEL_EXPERT_LIMIT 1024u
#define MODEL_EXPERT_USED_LIMIT 64u

/* Attention to short rows: of a token one row of `rank` values is cached, and one key part of
 * rope.dimension_count values that rotates, which all heads share. A head has matrices that make
 * its key and its value of the row. */
struct model_latent {
    uint32_t rank;         /* 0: the model has ordinary heads */
    uint32_t query_rank;   /* of the short row that queries are made of; 0: there is none */
    uint32_t key_length;   /* values of a head's key that do not rotate */
    uint32_t value_length; /* values of a head's value */
};

/* Feed-forward networks of which each token uses some. */
struct model_experts {
    uint32_t count; /* of a layer; 0: the model has none */
    uint32_t used;  /* by a token */
    uint32_t feed_length;
    uint32_t shared_feed_length; /* of the one that every token uses; 0: there is none */
    uint32_t step;               /* of so many layers the last one has experts; 0: all have */
    uint32_t first;              /* layers before this one have no experts */
    bool sigmoid;                /* scores are the sigmoid of logits, not their softmax */
    bool weighs_input;           /* MODEL_WEIGHS_EXPERT_INPUT */
    bool fused;                  /* ffn_gate_up_exps in place of ffn_gate_exps and ffn_up_exps */
    bool clamped;                /* their gate and up */
    bool normalised;             /* weights of the used ones are divided by their sum */
    float weight_scale;
    uint32_t group_count, groups_used; /* group_count 1: no groups */
};

struct model_config {
    enum model_arch arch;
    uint32_t context_length; /* tokens the model was trained for */
    uint32_t embedding_length;
    uint32_t block_count;         /* layers */
    uint32_t skipped_block_count; /* layers of the file after these, which are not used */
    uint32_t feed_forward_length;
    uint32_t head_count;
    uint32_t head_count_kv; /* divides head_count */
    uint32_t head_dim;      /* values of a query, key or value head */
    uint32_t vocab_size;
    float rms_epsilon;     /* of every norm */
    float attention_scale; /* of q.k before the softmax */
    float attention_cap;   /* c: a score s becomes c tanh(s / c); 0: none */
    float embedding_scale, residual_scale, logit_scale; /* factors; 1: none */
    float logit_cap;                                    /* as attention_cap */
    /* At position p queries are multiplied by 1 + temperature_scale ln(1 + floor(p /
     * temperature_length)). */
    float temperature_scale;
    uint32_t temperature_length;
    uint32_t chunk;     /* of layers that rotate; 0: none */
    bool norms_rotated; /* queries and keys of layers that rotate */
    struct model_rope rope;
    struct model_rope local_rope; /* of layers with a window, where has_local_rope */
    bool has_local_rope;
    bool is_unrotated; /* no layer rotates */
    uint32_t window; /* a token of a local layer sees so many, itself included; 0: none is local */
    uint64_t local_layers[MODEL_BLOCK_LIMIT / 64]; /* a bit for each layer */
    /* Where layers differ (MODEL_LAYERS_DIFFER); the numbers above are then the largest. */
    uint32_t local_head_dim; /* of layers with a window; 0: head_dim */
    uint32_t kv_heads_of_layer[MODEL_UNLIKE_LIMIT], feed_of_layer[MODEL_UNLIKE_LIMIT]; /* or 0 */
    uint32_t shared_kv_count;    /* the last layers, which look at keys and values of others */
    uint32_t layer_input_length; /* values of each token that each layer has of its own; 0: none */
    bool tied_embeddings;        /* no output.weight: token_embd is used instead */
    bool has_rope_freqs;
    bool has_rope_factors; /* for short and for long contexts */
    bool has_fused_qkv;    /* attn_qkv in place of attn_q, attn_k and attn_v */
    bool has_fused_qkv_bias;
    struct model_experts experts;
    struct model_latent latent;
};

enum model_layer_rope { MODEL_LAYER_UNROTATED, MODEL_LAYER_ROPE, MODEL_LAYER_LOCAL_ROPE };

/* What layers differ in. */
struct model_layer {
    uint32_t window; /* 0: none */
    uint32_t chunk;  /* 0: none */
    enum model_layer_rope rope;
    uint32_t head_dim, head_count_kv, feed_forward_length;
    uint32_t cache; /* the layer whose keys and values it looks at: itself or an earlier one */
    bool has_experts;
};

struct model_layer model_layer(const struct model_config *config, uint32_t layer);

/* Bytes of keys and values for token_count tokens of one sequence. dtype: F32, F16 or Q8_0. */
uint64_t model_kv_bytes(const struct model_config *config, uint64_t token_count, enum dtype dtype);

/* ---- Tensor table --------------------------------------------------------------------------- */

enum model_role {
    MODEL_TOKEN_EMBD,
    MODEL_OUTPUT_NORM,
    MODEL_OUTPUT,
    MODEL_OUTPUT_BIAS,
    MODEL_LAYER_TOKEN_EMBD, /* what each layer has of its own for a token */
    MODEL_LAYER_PROJ,       /* the same from the token's embedding */
    MODEL_LAYER_PROJ_NORM,
    MODEL_OUTPUT_NORM_BIAS,
    MODEL_ROPE_FREQS,
    MODEL_ROPE_FACTORS_SHORT,
    MODEL_ROPE_FACTORS_LONG,
    MODEL_ATTN_NORM,
    MODEL_ATTN_NORM_BIAS,
    MODEL_ATTN_Q,
    MODEL_ATTN_K,
    MODEL_ATTN_V,
    MODEL_ATTN_Q_BIAS,
    MODEL_ATTN_K_BIAS,
    MODEL_ATTN_V_BIAS,
    MODEL_ATTN_QKV, /* the rows of q, k and v */
    MODEL_ATTN_QKV_BIAS,
    MODEL_ATTN_Q_A, /* struct model_latent: queries by a short row, in two steps */
    MODEL_ATTN_Q_A_NORM,
    MODEL_ATTN_Q_B,
    MODEL_ATTN_KV_A, /* the row that is cached, then the part of the key that rotates */
    MODEL_ATTN_KV_A_NORM,
    MODEL_ATTN_K_B, /* of each head, its key to the row */
    MODEL_ATTN_V_B, /* of each head, the row to its value */
    MODEL_ATTN_Q_NORM,
    MODEL_ATTN_K_NORM,
    MODEL_ATTN_OUTPUT,
    MODEL_ATTN_OUTPUT_BIAS,
    MODEL_ATTN_POST_NORM,
    MODEL_ATTN_SINKS, /* of each head, a score that takes its part of the softmax and has no value
                       */
    MODEL_FFN_NORM,
    MODEL_FFN_NORM_BIAS,
    MODEL_FFN_GATE,
    MODEL_FFN_UP,
    MODEL_FFN_UP_BIAS,
    MODEL_FFN_GATE_UP, /* the rows of gate, then those of up */
    MODEL_FFN_DOWN,
    MODEL_FFN_DOWN_BIAS,
    MODEL_FFN_POST_NORM,
    MODEL_LAYER_INPUT_GATE,
    MODEL_LAYER_INPUT_PROJ,
    MODEL_LAYER_INPUT_NORM,
    MODEL_LAYER_OUTPUT_SCALE,
    MODEL_FFN_ROUTER,
    MODEL_FFN_ROUTER_BIAS,
    MODEL_FFN_CHOICE_BIAS,  /* of scores, for the choice alone */
    MODEL_FFN_GATE_EXPERTS, /* those of all experts, one after the other */
    MODEL_FFN_UP_EXPERTS,
    MODEL_FFN_DOWN_EXPERTS,
    MODEL_FFN_GATE_UP_EXPERTS, /* of each expert the rows of gate, then those of up */
    MODEL_FFN_ROUTER_SCALE,    /* of what the router reads */
    MODEL_FFN_EXPERTS_SCALE,   /* of what each expert gives */
    MODEL_FFN_EXPERTS_NORM,    /* where they have norms of their own */
    MODEL_FFN_EXPERTS_POST_NORM,
    MODEL_FFN_DENSE_POST_NORM,
    MODEL_FFN_GATE_EXPERTS_BIAS,
    MODEL_FFN_UP_EXPERTS_BIAS,
    MODEL_FFN_DOWN_EXPERTS_BIAS,
    MODEL_FFN_SHARED_ROUTER, /* how much of the shared expert a token uses */
    MODEL_FFN_SHARED_GATE,
    MODEL_FFN_SHARED_UP,
    MODEL_FFN_SHARED_DOWN,
    MODEL_ROLE_COUNT
};

enum model_presence { MODEL_ABSENT, MODEL_OPTIONAL, MODEL_REQUIRED };

/* Room for "blk.4294967295.attn_output.weight". */
#define MODEL_TENSOR_NAME_BYTES 64

struct model_tensor {
    char name[MODEL_TENSOR_NAME_BYTES];
    struct shape shape;
    enum model_presence presence;
    bool is_matrix; /* a weight matrix, which may be quantized; else F32 */
};

bool model_role_is_per_layer(enum model_role role);

/* What the table says of a tensor; layer is ignored if the role is not per layer. */
struct model_tensor model_tensor(const struct model_config *config, enum model_role role,
                                 uint32_t layer);

/* True if the table allows the type for such a tensor. */
bool model_dtype_allowed(bool is_matrix, enum dtype dtype);

/* ---- Known shapes --------------------------------------------------------------------------- */

struct model_shape {
    const char *slug;  /* "llama2-7b" */
    const char *title; /* "Llama-2-7B" */
    enum model_arch arch;
    uint32_t embedding_length, block_count, feed_forward_length;
    uint32_t head_count, head_count_kv, head_dim;
    uint32_t vocab_size, context_length;
    float rope_base, rms_epsilon;
    bool tied_embeddings;
    float rope_freqs_factor; /* Llama 3.1 and later scale low frequencies by this; 0: no such tensor
                              */
    /* What only some architectures have; 0: none, or as the architecture says. */
    uint32_t rope_dimensions; /* rotated values of a head */
    enum model_rope_scaling rope_scaling;
    float rope_scaling_factor;
    uint32_t rope_original_context;
    float rope_attention_factor; /* with MODEL_ROPE_SCALING_LONG */
    uint32_t window;
    float embedding_scale, residual_scale, attention_scale, logit_scale;
    float temperature_scale;
    bool has_fused_qkv;
    bool has_qkv_biases, has_head_norms; /* where they are optional */
    /* With MODEL_LAYERS_DIFFER, where every other layer has a window. */
    uint32_t local_head_dim, shared_kv_count, layer_input_length;
    struct model_experts experts; /* only the numbers that files say */
    struct model_latent latent;
};

size_t model_shape_count(void);
const struct model_shape *model_shape_at(size_t index);
/* Finds a shape by slug; case, dots, dashes and underscores do not matter. NULL if unknown. */
const struct model_shape *model_shape_find(const char *name);
/* The shape that matches a configuration; NULL if none. *ret_exact: the vocabulary agrees too. */
const struct model_shape *model_shape_of(const struct model_config *config, bool *ret_exact);

/* ---- The guard rail ------------------------------------------------------------------------- */

#define MODEL_PROBLEM_LIMIT 24
#define MODEL_PROBLEM_BYTES 384

enum model_problem_kind {
    MODEL_PROBLEM_CANNOT_RUN,  /* never to be overridden */
    MODEL_PROBLEM_EXPECTATION, /* not the model that --expect pins */
};

struct model_problem {
    enum model_problem_kind kind;
    char text[MODEL_PROBLEM_BYTES]; /* what, expected, found, what to do */
};

struct model_report {
    bool config_known; /* config is complete; false if metadata is missing or absurd */
    struct model_config config;
    uint64_t parameter_count; /* of all tensors but rope_freqs */
    uint64_t weight_bytes;    /* of all tensors, as in the file */
    struct model_problem problems[MODEL_PROBLEM_LIMIT];
    size_t problem_count; /* number of entries in problems */
    size_t unkept_count;  /* problems beyond the limit */
};

/* Reads configuration and directory, but no tensor data, and lists every problem. expected may be
 * NULL. */
void model_check(const struct gguf_file *file, const struct model_shape *expected,
                 struct model_report *ret_report);

/* Checks every value of every tensor: STATUS_REFUSED names the first tensor with NaN or infinity.
 * Reads the whole file. progress may be NULL. */
MUST_CHECK enum status model_check_values(const struct gguf_file *file,
                                          const struct progress *progress, struct error *err);

/* True if some problem forbids running. With ignore_expectations (GRETA_DISABLE_GUARD_RAIL) a
 * problem that only says "not the pinned model" does not. */
bool model_report_refuses(const struct model_report *report, bool ignore_expectations);

#endif
