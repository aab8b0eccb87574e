/* config.c - reads metadata keys into the configuration.
 *
 * Every number is checked against a range before it is used. A missing or absurd key is a problem
 * in the report and makes the configuration unknown. Reading goes on, so that one run reports
 * everything that is wrong. */
#include "model/keys.h"

#include "base/size.h"

#include <inttypes.h>
#include <math.h>

/* ---- Features that would silently give wrong results ---------------------------------------- */

/* True if the value is zero, or an array of zeros; otherwise *ret_number is the value. */
static bool is_zero(const struct gguf_value *value, double *ret_number)
{
    *ret_number = 0;
    for (uint64_t i = 0; i < value->count; i++)
        if (!gguf_value_f64(value, i, ret_number) || *ret_number != 0)
            return false;
    return true;
}

/* Keys that must be absent or zero: the engine has no code for what they switch on. */
static void refuse_features(struct model_keys *keys)
{
    static const struct {
        const char *key, *what;
        uint32_t reads; /* an architecture that has one of these bits knows the key */
    } features[] = {
        { "expert_count", "mixture of experts", MODEL_MAY_HAVE_EXPERTS | MODEL_MUST_HAVE_EXPERTS },
        { "attn_logit_softcapping", "capped attention logits",
          MODEL_READS_ATTENTION_CAP | MODEL_IGNORES_ATTENTION_CAP },
        { "final_logit_softcapping", "capped logits", MODEL_READS_LOGIT_CAP },
        { "attention.temperature_scale", "attention temperature by position",
          MODEL_READS_TEMPERATURE },
        { "nextn_predict_layers", "layers that predict several tokens", MODEL_SKIPS_PREDICTION },
    };
    for (size_t i = 0; i < COUNT_OF(features); i++) {
        char key[128];
        if (model_arch_info(keys->report->config.arch)->reads & features[i].reads)
            continue;
        model_keys_full(keys, features[i].key, key, sizeof(key));
        const struct gguf_value *value = gguf_find(keys->file, key);
        double number;
        if (!value || is_zero(value, &number))
            continue;
        model_problem_add(
            keys->report, MODEL_PROBLEM_CANNOT_RUN,
            "%s: expected 0 or no such key, found %g; greta cannot run %s models with %s", key,
            number, model_arch_info(keys->report->config.arch)->name, features[i].what);
        keys->complete = false;
    }
}

/* ---- Heads ---------------------------------------------------------------------------------- */

/* One number, or one for each layer where the architecture allows it. */
static uint32_t read_by_layer(struct model_keys *keys, struct model_config *config, const char *key,
                              uint32_t most, const uint32_t *fallback,
                              uint32_t numbers[MODEL_UNLIKE_LIMIT])
{
    if (model_arch_info(config->arch)->reads & MODEL_LAYERS_DIFFER)
        return model_keys_by_layer(keys, key, 1, most, fallback, config->block_count, numbers);
    return model_keys_whole(keys, key, 1, most, fallback);
}

static void read_heads(struct model_keys *keys, struct model_config *config)
{
    config->head_count = model_keys_whole(keys, "attention.head_count", 1, MODEL_HEAD_LIMIT, NULL);
    config->head_count_kv = read_by_layer(keys, config, "attention.head_count_kv", MODEL_HEAD_LIMIT,
                                          &config->head_count, config->kv_heads_of_layer);
    bool divides = config->head_count % config->head_count_kv == 0;
    for (uint32_t i = 0; i < MODEL_UNLIKE_LIMIT; i++)
        divides = divides && (!config->kv_heads_of_layer[i] ||
                              config->head_count % config->kv_heads_of_layer[i] == 0);
    if (!divides) {
        model_problem_add(keys->report, MODEL_PROBLEM_CANNOT_RUN,
                          "%s.attention.head_count_kv: expected a divisor of head_count %" PRIu32
                          ", found %" PRIu32 "; the file is damaged, get or convert it again",
                          keys->arch, config->head_count, config->head_count_kv);
        keys->complete = false;
    }
    uint32_t derived = config->embedding_length / config->head_count;
    config->head_dim = model_keys_whole(keys, "attention.key_length", 1, MODEL_HEAD_LIMIT,
                                        &derived);
    uint32_t value_length = model_keys_whole(keys, "attention.value_length", 1, MODEL_HEAD_LIMIT,
                                             &config->head_dim);
    if (value_length != config->head_dim && !model_arch_info(config->arch)->is_latent) {
        model_problem_add(keys->report, MODEL_PROBLEM_CANNOT_RUN,
                          "%s.attention.value_length: expected the key_length %" PRIu32
                          ", found %" PRIu32 "; greta cannot run models where they differ",
                          keys->arch, config->head_dim, value_length);
        keys->complete = false;
    }
    /* RoPE rotates pairs, and attention reads the values of a head in eights. */
    if (config->head_dim == 0 || config->head_dim % 8) {
        model_problem_add(keys->report, MODEL_PROBLEM_CANNOT_RUN,
                          "head dimension: expected a multiple of 8, found %" PRIu32
                          " (%s.attention.key_length, or embedding_length / head_count)%s",
                          config->head_dim, keys->arch,
                          config->head_dim % 2 ? "; an odd one cannot be rotated in pairs"
                                               : "; greta cannot run such models");
        keys->complete = false;
    }
}

/* ---- RoPE ----------------------------------------------------------------------------------- */

static const char *const scaling_names[] = {
    [MODEL_ROPE_SCALING_NONE] = "none",
    [MODEL_ROPE_SCALING_LINEAR] = "linear",
    [MODEL_ROPE_SCALING_YARN] = "yarn",
    [MODEL_ROPE_SCALING_LONG] = "longrope",
};
_Static_assert(COUNT_OF(scaling_names) == MODEL_ROPE_SCALING_COUNT, "every scaling has a name");

const char *model_rope_scaling_name(enum model_rope_scaling scaling)
{
    ASSERT((unsigned)scaling < MODEL_ROPE_SCALING_COUNT);
    return scaling_names[scaling];
}

static void read_scaling(struct model_keys *keys, struct model_config *config)
{
    struct model_rope *rope = &config->rope;
    /* The old key means linear scaling; if both are there, the newer one counts. */
    float old_factor = model_keys_real(keys, "rope.scale_linear", -1e-30, 1e6, 1.0f);
    rope->scaling_factor = model_keys_real(keys, "rope.scaling.factor", -1e-30, 1e6, old_factor);
    if (rope->scaling_factor == 0.0f)
        rope->scaling_factor = 1.0f; /* some files write 0 for no scaling */
    rope->scaling = rope->scaling_factor != 1.0f ? MODEL_ROPE_SCALING_LINEAR
                                                 : MODEL_ROPE_SCALING_NONE;
    char key[128];
    model_keys_full(keys, "rope.scaling.type", key, sizeof(key));
    if (!gguf_find(keys->file, key))
        return;
    struct text_view type;
    struct error err;
    if (gguf_get_text(keys->file, key, &type, &err)) {
        model_keys_problem(keys, &err);
        return;
    }
    bool knows_long = model_arch_info(config->arch)->reads & MODEL_READS_LONGROPE;
    for (size_t i = 0; i < MODEL_ROPE_SCALING_COUNT; i++) {
        if (text_view_is(type, scaling_names[i]) && (i != MODEL_ROPE_SCALING_LONG || knows_long)) {
            rope->scaling = (enum model_rope_scaling)i;
            return;
        }
    }
    char shown[64];
    model_problem_add(keys->report, MODEL_PROBLEM_CANNOT_RUN,
                      "%s: expected none, linear or yarn, found '%s'; greta cannot run models with "
                      "this scaling",
                      key, text_printable(type, shown, sizeof(shown)));
    keys->complete = false;
}

static void read_yarn(struct model_keys *keys, struct model_rope *rope)
{
    rope->yarn_beta_fast = model_keys_real(keys, "rope.scaling.yarn_beta_fast", 0, 1e6, 32.0f);
    rope->yarn_beta_slow = model_keys_real(keys, "rope.scaling.yarn_beta_slow", 0, 1e6, 1.0f);
    rope->yarn_log_multiplier = model_keys_real(keys, "rope.scaling.yarn_log_multiplier", -1e-30,
                                                1e6, 0.0f);
}

/* Models whose positions have several sections turn other pairs; text has one position for all. */
static bool has_sections(const struct model_keys *keys)
{
    char key[128];
    uint64_t first, second;
    const struct gguf_value *value = gguf_find(
        keys->file, model_keys_full(keys, "rope.dimension_sections", key, sizeof(key)));
    return value && gguf_value_u64(value, 0, &first) && gguf_value_u64(value, 1, &second) &&
           first > 0 && second > 0;
}

static bool says_unrotated(const struct model_keys *keys)
{
    char key[128];
    bool rotated;
    struct error err;
    model_keys_full(keys, "rope.scaling.finetuned", key, sizeof(key));
    return !gguf_get_flag(keys->file, key, &rotated, &err) && !rotated;
}

static void read_rope(struct model_keys *keys, struct model_config *config)
{
    const struct model_arch_info *info = model_arch_info(config->arch);
    struct model_rope *rope = &config->rope;
    rope->kind = info->rope_kind;
    if (info->reads & MODEL_READS_SECTIONS && has_sections(keys))
        rope->kind = MODEL_ROPE_SPLIT_HALF;
    config->is_unrotated = info->reads & MODEL_MAY_NOT_ROTATE && says_unrotated(keys);
    rope->dimension_count = model_keys_whole(keys, "rope.dimension_count", 1, MODEL_HEAD_LIMIT,
                                             &config->head_dim);
    rope->base = model_keys_real(keys, "rope.freq_base", 0, 1e12, 10000.0f);
    read_scaling(keys, config);
    if (rope->scaling == MODEL_ROPE_SCALING_NONE || rope->scaling == MODEL_ROPE_SCALING_LONG)
        rope->scaling_factor = 1.0f;
    rope->original_context_length = model_keys_whole(keys, "rope.scaling.original_context_length",
                                                     1, MODEL_CONTEXT_LIMIT,
                                                     &config->context_length);
    /* Converters also write yarn_attn_factor and yarn_ext_factor, which no architecture reads: an
     * attention factor that both names give would count twice. */
    rope->attention_factor = model_keys_real(keys, "rope.scaling.attn_factor", 0, 1e6, 1.0f);
    rope->yarn_ext_factor = rope->scaling == MODEL_ROPE_SCALING_YARN ? 1.0f : 0.0f;
    rope->yarn_beta_fast = 32.0f;
    rope->yarn_beta_slow = 1.0f;
    rope->yarn_log_multiplier = 0.0f;
    if (info->reads & MODEL_READS_YARN)
        read_yarn(keys, rope);

    uint32_t most = config->head_dim;
    bool wrong = info->rope_covers_head ? rope->dimension_count != most
                                        : rope->dimension_count > most;
    if (wrong || rope->dimension_count % 2) {
        model_problem_add(keys->report, MODEL_PROBLEM_CANNOT_RUN,
                          "%s.rope.dimension_count: expected %s%" PRIu32 ", found %" PRIu32
                          "; the file is damaged, get or convert it again",
                          keys->arch,
                          info->rope_covers_head ? "the head dimension "
                                                 : "an even number up to the head dimension ",
                          most, rope->dimension_count);
        keys->complete = false;
    }
}

/* ---- Vocabulary size ------------------------------------------------------------------------ */

/* The number of tokens of the tokenizer; without one, what the key or the embedding says. */
static void read_vocab_size(struct model_keys *keys, struct model_config *config)
{
    const struct gguf_value *tokens = gguf_find(keys->file, "tokenizer.ggml.tokens");
    const struct gguf_tensor *embedding = gguf_tensor_find(keys->file, "token_embd.weight");
    if (tokens && tokens->element_type != GGUF_STRING)
        tokens = NULL; /* reported by the vocabulary check */
    uint64_t count = tokens ? tokens->count : embedding ? embedding->shape.dims[1] : 0;
    uint32_t fallback = count > MODEL_VOCAB_LIMIT ? MODEL_VOCAB_LIMIT + 1 : (uint32_t)count;
    config->vocab_size = model_keys_whole(keys, "vocab_size", 1, MODEL_VOCAB_LIMIT, &fallback);
    if (config->vocab_size == 0 || config->vocab_size > MODEL_VOCAB_LIMIT) {
        model_problem_add(keys->report, MODEL_PROBLEM_CANNOT_RUN,
                          "vocabulary: expected 1 to %u tokens, found %" PRIu64
                          "; the file is damaged or not a model, get or convert it again",
                          MODEL_VOCAB_LIMIT, count);
        keys->complete = false;
    }
}

/* ---- All of it ------------------------------------------------------------------------------ */

static bool read_arch(const struct gguf_file *file, struct model_report *report)
{
    struct text_view name;
    struct error err;
    if (gguf_get_text(file, "general.architecture", &name, &err)) {
        model_problem_add(report, MODEL_PROBLEM_CANNOT_RUN,
                          "%s; this is not a model file, or it must be converted again", err.text);
        return false;
    }
    if (model_arch_find(name, &report->config.arch))
        return true;
    char shown[64];
    model_problem_add(report, MODEL_PROBLEM_CANNOT_RUN,
                      "general.architecture: expected one of %s, found '%s'; greta cannot run this "
                      "architecture",
                      model_arch_list(), text_printable(name, shown, sizeof(shown)));
    return false;
}

/* The last blocks predict further tokens and are not part of the pass. */
static void skip_prediction(struct model_keys *keys, struct model_config *config)
{
    uint32_t none = 0;
    config->skipped_block_count = model_keys_whole(keys, "nextn_predict_layers", 0,
                                                   config->block_count - 1, &none);
    config->block_count -= config->skipped_block_count;
}

void model_config_read(const struct gguf_file *file, struct model_report *report)
{
    if (!read_arch(file, report))
        return;
    struct model_config *config = &report->config;
    struct model_keys keys = { file, report, model_arch_info(config->arch)->name, true };
    config->context_length = model_keys_whole(&keys, "context_length", 1, MODEL_CONTEXT_LIMIT,
                                              NULL);
    config->embedding_length = model_keys_whole(&keys, "embedding_length", 1, MODEL_WIDTH_LIMIT,
                                                NULL);
    config->block_count = model_keys_whole(&keys, "block_count", 1, MODEL_BLOCK_LIMIT, NULL);
    if (model_arch_info(config->arch)->reads & MODEL_SKIPS_PREDICTION)
        skip_prediction(&keys, config);
    config->feed_forward_length = read_by_layer(&keys, config, "feed_forward_length",
                                                MODEL_WIDTH_LIMIT, NULL, config->feed_of_layer);
    read_heads(&keys, config);
    bool rms = model_arch_info(config->arch)->norm == MODEL_NORM_RMS;
    config->rms_epsilon = model_keys_real(
        &keys, rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon", 0, 1,
        NAN);
    read_rope(&keys, config);
    model_layers_read(&keys, config);
    read_vocab_size(&keys, config);
    refuse_features(&keys);
    config->tied_embeddings = !gguf_tensor_find(file, "output.weight");
    config->has_rope_freqs = gguf_tensor_find(file, "rope_freqs.weight") != NULL;
    config->has_rope_factors = gguf_tensor_find(file, "rope_factors_long.weight") ||
                               gguf_tensor_find(file, "rope_factors_short.weight");
    config->has_fused_qkv = gguf_tensor_find(file, "blk.0.attn_qkv.weight") != NULL;
    config->has_fused_qkv_bias = config->has_fused_qkv &&
                                 gguf_tensor_find(file, "blk.0.attn_qkv.bias") != NULL;
    report->config_known = keys.complete;
}

uint64_t model_kv_bytes(const struct model_config *config, uint64_t token_count, enum dtype dtype)
{
    const struct dtype_info *info = dtype_info(dtype);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < config->block_count; i++) {
        struct model_layer layer = model_layer(config, i);
        uint64_t row = (uint64_t)layer.head_count_kv * layer.head_dim;
        uint64_t blocks = (row + info->block_elements - 1) / info->block_elements;
        bytes += layer.cache == i ? 2 * blocks * info->block_bytes : 0;
    }
    return size_mul(bytes, token_count, &bytes) ? bytes : UINT64_MAX;
}
