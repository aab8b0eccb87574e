/* config_layers.c - what only some architectures have: windows, caps and scales. model_layer says
 * which layer has what. */
#include "model/keys.h"

#include <inttypes.h>
#include <math.h>

/* ---- Windows -------------------------------------------------------------------------------- */

static void set_local(struct model_config *config, uint32_t layer)
{
    config->local_layers[layer / 64] |= UINT64_C(1) << layer % 64;
}

static bool is_local(const struct model_config *config, uint32_t layer)
{
    return config->window && config->local_layers[layer / 64] >> layer % 64 & 1;
}

/* A flag for each layer: true where it has a window. */
static void read_flags(struct model_keys *keys, struct model_config *config, const char *key,
                       const struct gguf_value *value)
{
    if (value->count < config->block_count) {
        model_problem_add(keys->report, MODEL_PROBLEM_CANNOT_RUN,
                          "%s: expected a flag for each of %" PRIu32 " layers, found %" PRIu64
                          "; convert the model again",
                          key, config->block_count, value->count);
        keys->complete = false;
        return;
    }
    for (uint32_t layer = 0; layer < config->block_count; layer++) {
        uint64_t number = value->element_type == GGUF_BOOL ? value->data[layer] : 2;
        if (number > 1) {
            model_problem_add(
                keys->report, MODEL_PROBLEM_CANNOT_RUN,
                "%s: expected a bool for each layer, found an array of %s; convert the "
                "model again",
                key, gguf_type_name(value->element_type));
            keys->complete = false;
            return;
        }
        if (number)
            set_local(config, layer);
    }
}

static void bad_layers(struct model_keys *keys, const char *key, const char *expected,
                       uint32_t found)
{
    model_problem_add(keys->report, MODEL_PROBLEM_CANNOT_RUN,
                      "%s.%s: expected %s, found %" PRIu32 "; greta cannot run such models",
                      keys->arch, key, expected, found);
    keys->complete = false;
}

static void read_windows(struct model_keys *keys, struct model_config *config)
{
    const struct model_arch_info *info = model_arch_info(config->arch);
    char key[128];
    bool needed = info->reads & MODEL_NEEDS_WINDOW;
    config->window = model_keys_whole(keys, "attention.sliding_window", needed, MODEL_CONTEXT_LIMIT,
                                      needed ? NULL : &info->window_default);
    if (!config->window)
        return;
    model_keys_full(keys, "attention.sliding_window_pattern", key, sizeof(key));
    const struct gguf_value *value = gguf_find(keys->file, key);
    if (value && value->type == GGUF_ARRAY) {
        read_flags(keys, config, key, value);
        return;
    }
    if (model_arch_info(config->arch)->reads & MODEL_LAYERS_DIFFER) {
        bad_layers(keys, "attention.sliding_window_pattern", "a bool for each layer", 0);
        return;
    }
    uint32_t period = model_keys_whole(keys, "attention.sliding_window_pattern", 0,
                                       MODEL_BLOCK_LIMIT, &info->window_period);
    for (uint32_t layer = 0; layer < config->block_count; layer++)
        if (period == 0 || layer % period < period - 1)
            set_local(config, layer);
}

/* Layers with a window rotate in another way where the architecture says so. */
static void read_local_rope(struct model_keys *keys, struct model_config *config)
{
    enum model_local_rope kind = model_arch_info(config->arch)->local_rope;
    bool own_base = kind == MODEL_LOCAL_ROPE_OWN_BASE;
    if (!config->window || (!own_base && kind != MODEL_LOCAL_ROPE_UNSCALED))
        return;
    struct model_rope *rope = &config->local_rope;
    config->has_local_rope = true;
    *rope = config->rope;
    rope->scaling = MODEL_ROPE_SCALING_NONE;
    rope->scaling_factor = 1.0f;
    rope->attention_factor = 1.0f;
    rope->yarn_ext_factor = 0.0f;
    if (config->local_head_dim)
        rope->dimension_count = model_keys_whole(keys, "rope.dimension_count_swa", 1,
                                                 MODEL_HEAD_LIMIT, &config->local_head_dim);
    uint32_t most = config->local_head_dim ? config->local_head_dim : config->head_dim;
    if (rope->dimension_count > most || rope->dimension_count % 2)
        bad_layers(keys, "rope.dimension_count_swa", "an even number up to the head dimension",
                   rope->dimension_count);
    if (own_base)
        rope->base = model_keys_real(keys, "rope.freq_base_swa", 0, 1e12, 10000.0f);
}

struct model_layer model_layer(const struct model_config *config, uint32_t layer)
{
    const struct model_arch_info *info = model_arch_info(config->arch);
    bool local = is_local(config, layer);
    bool rests = info->unrotated_every && (layer + 1) % info->unrotated_every == 0;
    if (info->local_rope == MODEL_LOCAL_ROPE_ONLY && !local)
        rests = true;
    bool unlike = layer < MODEL_UNLIKE_LIMIT;
    uint32_t kv_heads = unlike ? config->kv_heads_of_layer[layer] : 0,
             feed = unlike ? config->feed_of_layer[layer] : 0;
    uint32_t owners = config->block_count - config->shared_kv_count;
    return (struct model_layer){ .head_dim = local && config->local_head_dim
                                                 ? config->local_head_dim
                                                 : config->head_dim,
                                 .head_count_kv = kv_heads ? kv_heads : config->head_count_kv,
                                 .feed_forward_length = feed ? feed : config->feed_forward_length,
                                 .cache = layer < owners ? layer : owners - (local ? 2 : 1),
                                 .window = local ? config->window : 0,
                                 .chunk = rests ? 0 : config->chunk,
                                 .has_experts = model_layer_has_experts(config, layer),
                                 .rope = rests || config->is_unrotated     ? MODEL_LAYER_UNROTATED
                                         : local && config->has_local_rope ? MODEL_LAYER_LOCAL_ROPE
                                                                           : MODEL_LAYER_ROPE };
}

/* ---- Caps and scales ------------------------------------------------------------------------ */

static float attention_scale(const struct model_config *config)
{
    uint32_t width = config->head_dim;
    if (config->block_count == model_arch_info(config->arch)->width_scaled_blocks)
        width = config->embedding_length / config->head_count;
    return 1.0f / sqrtf((float)(width ? width : 1));
}

/* 0 or no such key: the fallback. */
static float read_factor(struct model_keys *keys, const char *key, float fallback)
{
    float factor = model_keys_real(keys, key, -1e-30, 1e6, 0.0f);
    return factor > 0 ? factor : fallback;
}

static void read_scales(struct model_keys *keys, struct model_config *config)
{
    const struct model_arch_info *info = model_arch_info(config->arch);
    uint32_t reads = info->reads;
    config->attention_scale = attention_scale(config);
    config->embedding_scale = config->residual_scale = config->logit_scale = 1.0f;
    config->attention_cap = info->attention_cap;
    config->logit_cap = info->logit_cap;
    if (reads & MODEL_READS_ATTENTION_CAP)
        config->attention_cap = read_factor(keys, "attn_logit_softcapping", info->attention_cap);
    if (reads & MODEL_READS_LOGIT_CAP) /* 0 is no cap, whatever the default */
        config->logit_cap = model_keys_real(keys, "final_logit_softcapping", -1e-30, 1e6,
                                            info->logit_cap);
    if (reads & MODEL_UNSCALED_SCORES)
        config->attention_scale = 1.0f;
    if (reads & MODEL_SCALES_EMBEDDING)
        config->embedding_scale = sqrtf((float)config->embedding_length);
    if (reads & MODEL_READS_SCALES) {
        config->embedding_scale = read_factor(keys, "embedding_scale", 1.0f);
        config->residual_scale = read_factor(keys, "residual_scale", 1.0f);
        config->attention_scale = read_factor(keys, "attention.scale", config->attention_scale);
    }
    if (reads & (MODEL_MULTIPLIES_LOGITS | MODEL_DIVIDES_LOGITS))
        config->logit_scale = reads & MODEL_NEEDS_LOGIT_SCALE
                                  ? model_keys_real(keys, "logit_scale", 0, 1e6, NAN)
                                  : read_factor(keys, "logit_scale", 1.0f);
    if (reads & MODEL_DIVIDES_LOGITS)
        config->logit_scale = 1.0f / config->logit_scale;
}

static void read_temperature(struct model_keys *keys, struct model_config *config)
{
    char key[128];
    config->temperature_scale = read_factor(keys, "attention.temperature_scale", 0.0f);
    config->temperature_length = config->rope.original_context_length;
    model_keys_full(keys, "rope.scaling.original_context_length", key, sizeof(key));
    if (config->temperature_scale == 0 || gguf_find(keys->file, key))
        return;
    model_problem_add(
        keys->report, MODEL_PROBLEM_CANNOT_RUN,
        "%s: expected the length that attention.temperature_scale counts in, found no "
        "such key; convert the model again",
        key);
    keys->complete = false;
}

/* The length of a chunk is fixed; a file may only say that there are none. */
static void read_chunks(struct model_keys *keys, struct model_config *config)
{
    const struct model_arch_info *info = model_arch_info(config->arch);
    if (model_keys_whole(keys, "attention.sliding_window", 0, MODEL_CONTEXT_LIMIT, &info->chunk) ==
        0)
        bad_layers(keys, "attention.sliding_window", "8192 or no such key", 0);
    config->chunk = config->temperature_length = info->chunk;
    config->temperature_scale = info->resting_temperature;
}

/* Models with so many experts do not norm queries and keys; no key says so. */
#define EXPERTS_WITHOUT_NORM 128u

/* ---- Layers that differ --------------------------------------------------------------------- */

/* The last layers look at the cache of the last one with a window, or of the last one without. */
static void read_shared(struct model_keys *keys, struct model_config *config)
{
    uint32_t none = 0, most = config->block_count - 1;
    uint32_t count = model_keys_whole(keys, "attention.shared_kv_layers", 0, most, &none);
    uint32_t owners = config->block_count - count;
    if (count && (owners < 2 || !is_local(config, owners - 2) || is_local(config, owners - 1))) {
        bad_layers(keys, "attention.shared_kv_layers",
                   "a number that leaves a layer with a window and one without before it", count);
        return;
    }
    config->shared_kv_count = count;
}

static void read_unlike(struct model_keys *keys, struct model_config *config)
{
    uint32_t none = 0;
    uint32_t dim = model_keys_whole(keys, "attention.key_length_swa", 1, MODEL_HEAD_LIMIT,
                                    &config->head_dim);
    uint32_t value_dim = model_keys_whole(keys, "attention.value_length_swa", 1, MODEL_HEAD_LIMIT,
                                          &dim);
    if (dim % 8 || dim != value_dim)
        bad_layers(keys, "attention.value_length_swa", "the key_length_swa, a multiple of 8",
                   value_dim);
    config->local_head_dim = dim;
    config->layer_input_length = model_keys_whole(keys, "embedding_length_per_layer_input", 0,
                                                  MODEL_HEAD_LIMIT, &none);
    if (config->layer_input_length % 8)
        bad_layers(keys, "embedding_length_per_layer_input", "a multiple of 8",
                   config->layer_input_length);
    read_shared(keys, config);
}

void model_layers_read(struct model_keys *keys, struct model_config *config)
{
    uint32_t reads = model_arch_info(config->arch)->reads;
    if (reads & MODEL_READS_WINDOW)
        read_windows(keys, config);
    if (reads & MODEL_LAYERS_DIFFER)
        read_unlike(keys, config);
    read_local_rope(keys, config);
    read_scales(keys, config);
    model_experts_read(keys, config);
    if (model_arch_info(config->arch)->is_latent)
        model_latent_read(keys, config);
    if (reads & MODEL_READS_TEMPERATURE)
        read_temperature(keys, config);
    if (model_arch_info(config->arch)->chunk)
        read_chunks(keys, config);
    config->norms_rotated = reads & MODEL_NORMS_ROTATED &&
                            config->experts.count != EXPERTS_WITHOUT_NORM;
}
