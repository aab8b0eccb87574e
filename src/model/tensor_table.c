/* tensor_table.c - the tensors of a model: names, shapes and types, by architecture; and the check
 * of a file's directory against them. The engine binds its weights by the same rows. */
#include "model/model_impl.h"

#include "tensor/quant.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    Q_NORM_HEADS, /* heads with weights of their own; else there is no such dimension */
    K_NORM_HEADS,
};

static uint64_t norm_extent(const struct model_config *config, uint64_t heads)
{
    bool is_row = model_arch_info(config->arch)->head_norm == MODEL_HEAD_NORM_ROW;
    return is_row ? heads * config->head_dim : config->head_dim;
}

/* 0: there is no such dimension. */
static uint64_t extent_of(const struct model_config *config, enum extent extent)
{
    uint64_t heads = config->head_count, kv_heads = config->head_count_kv;
    bool own = model_arch_info(config->arch)->head_norm == MODEL_HEAD_NORM_OWN;
    switch (extent) {
    case WIDTH:
        return config->embedding_length;
    case VOCAB:
        return config->vocab_size;
    case QUERY:
        return heads * config->head_dim;
    case KEY:
        return kv_heads * config->head_dim;
    case QKV:
        return (heads + 2 * kv_heads) * config->head_dim;
    case FEED:
        return config->feed_forward_length;
    case GATE_UP:
        return 2 * (uint64_t)config->feed_forward_length;
    case PAIRS:
        return config->rope.dimension_count / 2;
    case Q_NORM:
        return norm_extent(config, heads);
    case K_NORM:
        return norm_extent(config, kv_heads);
    case Q_NORM_HEADS:
        return own ? heads : 0;
    case K_NORM_HEADS:
        return own ? kv_heads : 0;
    case NOTHING:
        break;
    }
    return 0;
}

/* Sets of architectures. */
#define LLAMA (1u << MODEL_ARCH_LLAMA)
#define QWEN2 (1u << MODEL_ARCH_QWEN2)
#define QWEN3 (1u << MODEL_ARCH_QWEN3)
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

/* A matrix [in, out] has any type that can be decoded; a vector (norm, bias, frequencies) is F32.
 */
enum kind { VECTOR, MATRIX };

/* clang-format off */
static const struct row {
    const char *name;
    bool per_layer;
    enum kind kind;
    enum extent shape[2];
    uint32_t must, may;
} rows[] = {
    [MODEL_TOKEN_EMBD] = { "token_embd.weight", false, MATRIX, { WIDTH, VOCAB },
        PRESENCE(EVERY, NONE, NONE) },
    [MODEL_OUTPUT_NORM] = { "output_norm.weight", false, VECTOR, { WIDTH },
        PRESENCE(EVERY, NONE, NONE) },
    [MODEL_OUTPUT_NORM_BIAS] = { "output_norm.bias", false, VECTOR, { WIDTH },
        PRESENCE(NONE, NONE, LLAMA | QWEN2 | QWEN3) },
    [MODEL_OUTPUT] = { "output.weight", false, MATRIX, { WIDTH, VOCAB },
        PRESENCE(NONE, LLAMA | QWEN2 | QWEN3, NONE) },
    [MODEL_OUTPUT_BIAS] = { "output.bias", false, VECTOR, { VOCAB },
        PRESENCE(NONE, QWEN2, LLAMA | QWEN3) },
    [MODEL_ROPE_FREQS] = { "rope_freqs.weight", false, VECTOR, { PAIRS },
        PRESENCE(NONE, LLAMA, QWEN2 | QWEN3) },
    [MODEL_ROPE_FACTORS_SHORT] = { "rope_factors_short.weight", false, VECTOR, { PAIRS },
        PRESENCE(NONE, NONE, LLAMA | QWEN2 | QWEN3) },
    [MODEL_ROPE_FACTORS_LONG] = { "rope_factors_long.weight", false, VECTOR, { PAIRS },
        PRESENCE(NONE, NONE, LLAMA | QWEN2 | QWEN3) },
    [MODEL_ATTN_NORM] = { "attn_norm.weight", true, VECTOR, { WIDTH },
        PRESENCE(LLAMA | QWEN2 | QWEN3, NONE, NONE) },
    [MODEL_ATTN_NORM_BIAS] = { "attn_norm.bias", true, VECTOR, { WIDTH },
        PRESENCE(NONE, NONE, LLAMA | QWEN2 | QWEN3) },
    [MODEL_ATTN_Q] = { "attn_q.weight", true, MATRIX, { WIDTH, QUERY },
        PRESENCE(EVERY, NONE, NONE) },
    [MODEL_ATTN_K] = { "attn_k.weight", true, MATRIX, { WIDTH, KEY },
        PRESENCE(EVERY, NONE, NONE) },
    [MODEL_ATTN_V] = { "attn_v.weight", true, MATRIX, { WIDTH, KEY },
        PRESENCE(EVERY, NONE, NONE) },
    [MODEL_ATTN_Q_BIAS] = { "attn_q.bias", true, VECTOR, { QUERY },
        PRESENCE(QWEN2, LLAMA, QWEN3) },
    [MODEL_ATTN_K_BIAS] = { "attn_k.bias", true, VECTOR, { KEY },
        PRESENCE(QWEN2, LLAMA, QWEN3) },
    [MODEL_ATTN_V_BIAS] = { "attn_v.bias", true, VECTOR, { KEY },
        PRESENCE(QWEN2, LLAMA, QWEN3) },
    /* These two in place of the six before them. */
    [MODEL_ATTN_QKV] = { "attn_qkv.weight", true, MATRIX, { WIDTH, QKV },
        PRESENCE(NONE, EVERY, NONE) },
    [MODEL_ATTN_QKV_BIAS] = { "attn_qkv.bias", true, VECTOR, { QKV },
        PRESENCE(NONE, EVERY, NONE) },
    [MODEL_ATTN_Q_NORM] = { "attn_q_norm.weight", true, VECTOR, { Q_NORM, Q_NORM_HEADS },
        PRESENCE(QWEN3, NONE, LLAMA | QWEN2) },
    [MODEL_ATTN_K_NORM] = { "attn_k_norm.weight", true, VECTOR, { K_NORM, K_NORM_HEADS },
        PRESENCE(QWEN3, NONE, LLAMA | QWEN2) },
    [MODEL_ATTN_OUTPUT] = { "attn_output.weight", true, MATRIX, { QUERY, WIDTH },
        PRESENCE(EVERY, NONE, NONE) },
    [MODEL_ATTN_OUTPUT_BIAS] = { "attn_output.bias", true, VECTOR, { WIDTH },
        PRESENCE(NONE, LLAMA, QWEN2 | QWEN3) },
    [MODEL_ATTN_POST_NORM] = { "post_attention_norm.weight", true, VECTOR, { WIDTH },
        PRESENCE(NONE, NONE, LLAMA | QWEN2 | QWEN3) },
    [MODEL_FFN_NORM] = { "ffn_norm.weight", true, VECTOR, { WIDTH },
        PRESENCE(LLAMA | QWEN2 | QWEN3, NONE, NONE) },
    [MODEL_FFN_NORM_BIAS] = { "ffn_norm.bias", true, VECTOR, { WIDTH },
        PRESENCE(NONE, NONE, LLAMA | QWEN2 | QWEN3) },
    [MODEL_FFN_GATE] = { "ffn_gate.weight", true, MATRIX, { WIDTH, FEED },
        PRESENCE(LLAMA | QWEN2 | QWEN3, NONE, NONE) },
    [MODEL_FFN_UP] = { "ffn_up.weight", true, MATRIX, { WIDTH, FEED },
        PRESENCE(LLAMA | QWEN2 | QWEN3, NONE, NONE) },
    [MODEL_FFN_UP_BIAS] = { "ffn_up.bias", true, VECTOR, { FEED },
        PRESENCE(NONE, NONE, LLAMA | QWEN2 | QWEN3) },
    [MODEL_FFN_GATE_UP] = { "ffn_up.weight", true, MATRIX, { WIDTH, GATE_UP },
        PRESENCE(NONE, NONE, LLAMA | QWEN2 | QWEN3) },
    [MODEL_FFN_DOWN] = { "ffn_down.weight", true, MATRIX, { FEED, WIDTH },
        PRESENCE(EVERY, NONE, NONE) },
    [MODEL_FFN_DOWN_BIAS] = { "ffn_down.bias", true, VECTOR, { WIDTH },
        PRESENCE(NONE, NONE, LLAMA | QWEN2 | QWEN3) },
    [MODEL_FFN_POST_NORM] = { "post_ffw_norm.weight", true, VECTOR, { WIDTH },
        PRESENCE(NONE, NONE, LLAMA | QWEN2 | QWEN3) },
};
/* clang-format on */
_Static_assert(COUNT_OF(rows) == MODEL_ROLE_COUNT, "every role has a row");

/* A weight of queries, keys or values is a tensor of its own, or rows of attn_qkv; so is a bias. */
static enum model_presence presence_of(const struct model_config *config, enum model_role role)
{
    bool weight = role == MODEL_ATTN_Q || role == MODEL_ATTN_K || role == MODEL_ATTN_V;
    bool bias = role == MODEL_ATTN_Q_BIAS || role == MODEL_ATTN_K_BIAS || role == MODEL_ATTN_V_BIAS;
    if ((weight && config->has_fused_qkv) || (bias && config->has_fused_qkv_bias) ||
        (role == MODEL_ATTN_QKV && !config->has_fused_qkv) ||
        (role == MODEL_ATTN_QKV_BIAS && !config->has_fused_qkv_bias))
        return MODEL_ABSENT;
    if (role == MODEL_ATTN_QKV || role == MODEL_ATTN_QKV_BIAS)
        return MODEL_REQUIRED;
    return rows[role].must >> config->arch & 1  ? MODEL_REQUIRED
           : rows[role].may >> config->arch & 1 ? MODEL_OPTIONAL
                                                : MODEL_ABSENT;
}

bool model_role_is_per_layer(enum model_role role)
{
    return rows[role].per_layer;
}

struct model_tensor model_tensor(const struct model_config *config, enum model_role role,
                                 uint32_t layer)
{
    const struct row *row = &rows[role];
    struct model_tensor wanted = { .presence = presence_of(config, role),
                                   .is_matrix = row->kind == MATRIX };
    if (row->per_layer)
        snprintf(wanted.name, sizeof(wanted.name), "blk.%" PRIu32 ".%s", layer, row->name);
    else
        snprintf(wanted.name, sizeof(wanted.name), "%s", row->name);
    uint64_t dims[2] = { extent_of(config, row->shape[0]), extent_of(config, row->shape[1]) };
    wanted.shape = shape_make(dims[1] ? 2 : 1, dims);
    return wanted;
}

bool model_dtype_allowed(bool is_matrix, enum dtype dtype)
{
    return is_matrix ? quant_can_decode(dtype) : dtype == DTYPE_F32;
}

/* ---- A file against the table --------------------------------------------------------------- */

static void check_one(const struct gguf_tensor *tensor, const struct model_tensor *wanted,
                      struct model_report *report)
{
    char expected[SHAPE_TEXT_BYTES], found[SHAPE_TEXT_BYTES];
    if (!shape_equal(&tensor->shape, &wanted->shape)) {
        bool vocabulary = wanted->is_matrix && tensor->shape.dims[0] == wanted->shape.dims[0] &&
                          wanted->shape.dims[1] == report->config.vocab_size &&
                          strncmp(wanted->name, "blk.", 4) != 0;
        model_problem_add(
            report, MODEL_PROBLEM_CANNOT_RUN, "%s: expected shape %s, found %s; %s", wanted->name,
            shape_text(&wanted->shape, expected), shape_text(&tensor->shape, found),
            vocabulary ? "vocabulary and embedding do not match, convert the model "
                         "again with its own tokenizer"
                       : "metadata and tensors do not belong together, get or convert "
                         "the model again");
    }
    if (!model_dtype_allowed(wanted->is_matrix, tensor->dtype))
        model_problem_add(
            report, MODEL_PROBLEM_CANNOT_RUN, "%s: expected %s, found %s; %s", wanted->name,
            wanted->is_matrix ? "a type greta can decode (F32 F16 BF16 Q8_0 Q4_0 Q4_1 "
                                "Q5_0 Q5_1 Q2_K to Q6_K IQ4_NL IQ4_XS MXFP4)"
                              : "F32",
            dtype_name(tensor->dtype),
            quant_can_decode(tensor->dtype) ? "greta quantize writes it as F32"
                                            : "get the model in one of these types");
}

/* An optional tensor is present in all layers or in none. */
static void check_optional_layers(const struct gguf_file *file, enum model_role role,
                                  uint32_t present_count, struct model_report *report)
{
    uint32_t layers = report->config.block_count;
    if (present_count == 0 || present_count == layers)
        return;
    for (uint32_t layer = 0; layer < layers; layer++) {
        struct model_tensor wanted = model_tensor(&report->config, role, layer);
        if (gguf_tensor_find(file, wanted.name))
            continue;
        model_problem_add(report, MODEL_PROBLEM_CANNOT_RUN,
                          "%s: expected in all %" PRIu32 " layers or in none, found in %" PRIu32
                          "; the file is incomplete, get or convert it again",
                          wanted.name, layers, present_count);
        return;
    }
}

static void check_role(const struct gguf_file *file, enum model_role role,
                       struct model_report *report)
{
    const struct row *row = &rows[role];
    uint32_t layers = row->per_layer ? report->config.block_count : 1;
    uint32_t present_count = 0, missing_count = 0;
    for (uint32_t layer = 0; layer < layers; layer++) {
        struct model_tensor wanted = model_tensor(&report->config, role, layer);
        const struct gguf_tensor *tensor = gguf_tensor_find(file, wanted.name);
        if (tensor && wanted.presence != MODEL_ABSENT) {
            present_count++;
            check_one(tensor, &wanted, report);
        } else if (!tensor && wanted.presence == MODEL_REQUIRED && missing_count++ == 0) {
            char shape[SHAPE_TEXT_BYTES];
            model_problem_add(report, MODEL_PROBLEM_CANNOT_RUN,
                              "%s: expected a tensor of shape %s, found none; the file is "
                              "incomplete, get or convert it again",
                              wanted.name, shape_text(&wanted.shape, shape));
        }
    }
    if (missing_count > 1)
        model_problem_add(report, MODEL_PROBLEM_CANNOT_RUN,
                          "%s: missing in %" PRIu32 " of %" PRIu32 " layers", row->name,
                          missing_count, layers);
    if (row->per_layer && presence_of(&report->config, role) == MODEL_OPTIONAL)
        check_optional_layers(file, role, present_count, report);
}

/* The part after "blk.N." of a layer's tensor; false for other names. N must have no leading zeros.
 */
static bool split_layer_name(struct text_view name, uint64_t *ret_layer, struct text_view *ret_rest)
{
    if (name.length < 5 || memcmp(name.bytes, "blk.", 4) != 0)
        return false;
    size_t at = 4;
    uint64_t layer = 0;
    while (at < name.length && name.bytes[at] >= '0' && name.bytes[at] <= '9' && at < 14)
        layer = layer * 10 + (uint64_t)(name.bytes[at++] - '0');
    if (at == 4 || at >= name.length || name.bytes[at] != '.' || (name.bytes[4] == '0' && at > 5))
        return false;
    *ret_layer = layer;
    *ret_rest = (struct text_view){ name.bytes + at + 1, name.length - at - 1 };
    return true;
}

static bool is_in_table(const struct model_config *config, struct text_view name)
{
    uint64_t layer = 0;
    struct text_view rest = name;
    bool in_layer = split_layer_name(name, &layer, &rest);
    for (size_t i = 0; i < MODEL_ROLE_COUNT; i++)
        if (rows[i].per_layer == in_layer &&
            presence_of(config, (enum model_role)i) != MODEL_ABSENT &&
            text_view_is(rest, rows[i].name))
            return !in_layer || layer < config->block_count;
    return in_layer && layer >= config->block_count &&
           layer < (uint64_t)config->block_count + config->skipped_block_count;
}

static void check_surplus(const struct gguf_file *file, struct model_report *report)
{
    size_t surplus_count = 0;
    for (size_t i = 0; i < gguf_tensor_count(file); i++) {
        const struct gguf_tensor *tensor = gguf_tensor_at(file, i);
        if (is_in_table(&report->config, tensor->name) || surplus_count++ > 0)
            continue;
        char shown[96], shape[SHAPE_TEXT_BYTES];
        model_problem_add(report, MODEL_PROBLEM_CANNOT_RUN,
                          "%s: expected no such tensor in a %s model of %" PRIu32
                          " layers, found one of shape %s; greta would have to ignore it, and the "
                          "result would be wrong",
                          text_printable(tensor->name, shown, sizeof(shown)),
                          model_arch_info(report->config.arch)->name, report->config.block_count,
                          shape_text(&tensor->shape, shape));
    }
    if (surplus_count > 1)
        model_problem_add(report, MODEL_PROBLEM_CANNOT_RUN,
                          "surplus tensors: expected none, found %zu", surplus_count);
}

void model_tensors_check(const struct gguf_file *file, struct model_report *report)
{
    if (gguf_tensor_count(file) == 0) {
        model_problem_add(report, MODEL_PROBLEM_CANNOT_RUN,
                          "tensors: expected those of a %s model of %" PRIu32
                          " layers, found none: the file holds a vocabulary only; name the model "
                          "itself",
                          model_arch_info(report->config.arch)->name, report->config.block_count);
        return;
    }
    for (size_t role = 0; role < MODEL_ROLE_COUNT; role++)
        check_role(file, (enum model_role)role, report);
    check_surplus(file, report);
}
