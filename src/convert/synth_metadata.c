/* synth_metadata.c - the keys of a synthetic model: those that a converter writes for its
 * architecture, with the numbers of its shape. */
#include "convert/convert_impl.h"

#include <inttypes.h>
#include <stdio.h>

struct metadata {
    struct gguf_writer *writer;
    const struct model_shape *shape;
    const struct model_config *config;
};

static void put_u32(struct metadata *metadata, const char *key, uint32_t value)
{
    char full[96];
    snprintf(full, sizeof(full), "%s.%s", model_arch_info(metadata->shape->arch)->name, key);
    gguf_writer_put_u32(metadata->writer, full, value);
}

static void put_f32(struct metadata *metadata, const char *key, float value)
{
    char full[96];
    snprintf(full, sizeof(full), "%s.%s", model_arch_info(metadata->shape->arch)->name, key);
    gguf_writer_put_f32(metadata->writer, full, value);
}

static void put_rope(struct metadata *metadata)
{
    const struct model_shape *shape = metadata->shape;
    put_u32(metadata, "rope.dimension_count", metadata->config->rope.dimension_count);
    put_f32(metadata, "rope.freq_base", shape->rope_base);
    if (shape->rope_scaling == MODEL_ROPE_SCALING_LINEAR ||
        shape->rope_scaling == MODEL_ROPE_SCALING_YARN) {
        char key[96];
        snprintf(key, sizeof(key), "%s.rope.scaling.type", model_arch_info(shape->arch)->name);
        gguf_writer_put_text(metadata->writer, key, model_rope_scaling_name(shape->rope_scaling));
        put_f32(metadata, "rope.scaling.factor", shape->rope_scaling_factor);
    }
    if (shape->rope_original_context)
        put_u32(metadata, "rope.scaling.original_context_length", shape->rope_original_context);
    if (shape->rope_attention_factor > 0)
        put_f32(metadata, "rope.scaling.attn_factor", shape->rope_attention_factor);
    if (model_arch_info(shape->arch)->reads & MODEL_READS_YARN)
        put_f32(metadata, "rope.scaling.yarn_log_multiplier", 1);
}

/* Windows, caps and scales, where the architecture has them. */
static void put_form(struct metadata *metadata)
{
    const struct model_shape *shape = metadata->shape;
    const struct model_arch_info *info = model_arch_info(shape->arch);
    const struct {
        const char *key;
        float value;
        uint32_t reads;
    } numbers[] = {
        { "attn_logit_softcapping", info->attention_cap, MODEL_READS_ATTENTION_CAP },
        { "final_logit_softcapping", info->logit_cap, MODEL_READS_LOGIT_CAP },
        { "embedding_scale", shape->embedding_scale, MODEL_READS_SCALES },
        { "residual_scale", shape->residual_scale, MODEL_READS_SCALES },
        { "attention.scale", shape->attention_scale, MODEL_READS_SCALES },
        { "logit_scale", shape->logit_scale > 0 ? shape->logit_scale : 1,
          MODEL_MULTIPLIES_LOGITS | MODEL_DIVIDES_LOGITS },
        { "attention.temperature_scale", shape->temperature_scale, MODEL_READS_TEMPERATURE },
    };
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        if (info->reads & numbers[i].reads && numbers[i].value > 0)
            put_f32(metadata, numbers[i].key, numbers[i].value);
    uint32_t window = shape->window;
    if (!window && info->reads & MODEL_NEEDS_WINDOW)
        window = shape->context_length;
    if (info->reads & MODEL_READS_WINDOW && window)
        put_u32(metadata, "attention.sliding_window", window);
}

void convert_unlike_layers(const struct model_shape *shape, struct model_config *config)
{
    if (!(model_arch_info(shape->arch)->reads & MODEL_LAYERS_DIFFER))
        return;
    config->window = shape->window ? shape->window : shape->context_length;
    config->local_head_dim = shape->local_head_dim ? shape->local_head_dim : shape->head_dim;
    config->shared_kv_count = shape->shared_kv_count;
    config->layer_input_length = shape->layer_input_length;
    for (uint32_t layer = 0; layer < config->block_count; layer += 2)
        config->local_layers[layer / 64] |= UINT64_C(1) << layer % 64;
}

static void put_unlike_layers(struct metadata *metadata)
{
    const struct model_config *config = metadata->config;
    uint8_t flags[MODEL_BLOCK_LIMIT];
    char key[96];
    if (!(model_arch_info(config->arch)->reads & MODEL_LAYERS_DIFFER))
        return;
    for (uint32_t layer = 0; layer < config->block_count; layer++)
        flags[layer] = model_layer(config, layer).window > 0;
    snprintf(key, sizeof(key), "%s.attention.sliding_window_pattern",
             model_arch_info(config->arch)->name);
    gguf_writer_put_array(metadata->writer, key, GGUF_BOOL, flags, config->block_count);
    put_u32(metadata, "attention.key_length_swa", config->local_head_dim);
    put_u32(metadata, "attention.value_length_swa", config->local_head_dim);
    put_u32(metadata, "rope.dimension_count_swa", config->local_head_dim);
    put_u32(metadata, "attention.shared_kv_layers", config->shared_kv_count);
    put_u32(metadata, "embedding_length_per_layer_input", config->layer_input_length);
}

/* Experts where an architecture must have them and the shape has none. */
#define EXPERTS_DEFAULT 8u
#define EXPERTS_USED_DEFAULT 2u

void convert_complete_experts(struct model_shape *shape)
{
    uint32_t reads = model_arch_info(shape->arch)->reads;
    struct model_experts *experts = &shape->experts;
    if (experts->count == 0 && reads & MODEL_MUST_HAVE_EXPERTS)
        experts->count = EXPERTS_DEFAULT;
    if (experts->count == 0)
        return;
    if (experts->used == 0)
        experts->used = experts->count < EXPERTS_USED_DEFAULT ? experts->count
                                                              : EXPERTS_USED_DEFAULT;
    if (experts->feed_length == 0 || !(reads & MODEL_EXPERTS_OWN_LENGTH))
        experts->feed_length = shape->feed_forward_length;
    if (experts->shared_feed_length == 0 && reads & MODEL_MUST_SHARE_EXPERT)
        experts->shared_feed_length = shape->feed_forward_length;
    if (reads & MODEL_SHARES_LIKE_EXPERT)
        experts->shared_feed_length = experts->feed_length;
    experts->fused = reads & MODEL_KEEPS_DENSE;
    if (experts->step == 0 && reads & MODEL_EXPERTS_BY_STEP)
        experts->step = 1;
}

/* Heads by a short row where the shape has none: half of a head rotates. */
void convert_complete_latent(struct model_shape *shape)
{
    struct model_latent *latent = &shape->latent;
    if (!model_arch_info(shape->arch)->is_latent)
        return;
    shape->head_count_kv = 1;
    if (latent->rank == 0) {
        uint32_t rotated = shape->head_dim / 16 * 8;
        *latent = (struct model_latent){ .rank = shape->head_dim,
                                         .key_length = shape->head_dim,
                                         .value_length = shape->head_dim };
        shape->rope_dimensions = rotated > 0 ? rotated : 8;
    }
    shape->head_dim = latent->rank + shape->rope_dimensions;
}

static void put_latent(struct metadata *metadata)
{
    const struct model_latent *latent = &metadata->shape->latent;
    if (latent->rank == 0)
        return;
    put_u32(metadata, "attention.kv_lora_rank", latent->rank);
    put_u32(metadata, "attention.key_length_mla",
            latent->key_length + metadata->config->rope.dimension_count);
    put_u32(metadata, "attention.value_length_mla", latent->value_length);
    if (latent->query_rank)
        put_u32(metadata, "attention.q_lora_rank", latent->query_rank);
    if (metadata->shape->rope_scaling == MODEL_ROPE_SCALING_YARN)
        put_f32(metadata, "rope.scaling.yarn_log_multiplier", 0.0707f);
}

static void put_experts(struct metadata *metadata)
{
    const struct model_experts *experts = &metadata->shape->experts;
    uint32_t reads = model_arch_info(metadata->shape->arch)->reads;
    if (experts->count == 0)
        return;
    put_u32(metadata, "expert_count", experts->count);
    put_u32(metadata, "expert_used_count", experts->used);
    if (reads & MODEL_EXPERTS_OWN_LENGTH)
        put_u32(metadata, "expert_feed_forward_length", experts->feed_length);
    if (model_arch_info(metadata->shape->arch)->reads_routing) {
        put_u32(metadata, "leading_dense_block_count", experts->first);
        put_u32(metadata, "expert_gating_func", experts->sigmoid ? 2 : 1);
        put_u32(metadata, "expert_shared_count",
                experts->shared_feed_length / experts->feed_length);
        put_f32(metadata, "expert_weights_scale",
                experts->weight_scale > 0 ? experts->weight_scale : 1);
        if (experts->group_count > 1) {
            put_u32(metadata, "expert_group_count", experts->group_count);
            put_u32(metadata, "expert_group_used_count", experts->groups_used);
        }
    }
    if (experts->step)
        put_u32(metadata, "interleave_moe_layer_step", experts->step);
    if (reads & (MODEL_MAY_SHARE_EXPERT | MODEL_MUST_SHARE_EXPERT) && experts->shared_feed_length)
        put_u32(metadata, "expert_shared_feed_forward_length", experts->shared_feed_length);
}

enum status convert_put_metadata(struct gguf_writer *writer, const struct convert_synth *request,
                                 const struct model_config *config, struct error *err)
{
    const struct model_shape *shape = &request->shape;
    struct metadata all = { writer, shape, config }, *metadata = &all;
    char name[128];
    snprintf(name, sizeof(name), "%s synthetic, seed %" PRIu64, shape->title, request->seed);
    gguf_writer_put_text(writer, "general.architecture", model_arch_info(shape->arch)->name);
    gguf_writer_put_text(writer, "general.type", "model");
    gguf_writer_put_text(writer, "general.name", name);
    gguf_writer_put_u32(writer, "general.file_type", convert_file_type(request->type));
    gguf_writer_put_u32(writer, "general.quantization_version", 2);
    put_u32(metadata, "context_length", shape->context_length);
    put_u32(metadata, "embedding_length", shape->embedding_length);
    put_u32(metadata, "block_count", shape->block_count);
    put_u32(metadata, "feed_forward_length", shape->feed_forward_length);
    put_u32(metadata, "attention.head_count", shape->head_count);
    put_u32(metadata, "attention.head_count_kv", shape->head_count_kv);
    put_u32(metadata, "attention.key_length", shape->head_dim);
    put_u32(metadata, "attention.value_length", shape->head_dim);
    put_latent(metadata);
    put_f32(metadata,
            model_arch_info(shape->arch)->norm == MODEL_NORM_RMS
                ? "attention.layer_norm_rms_epsilon"
                : "attention.layer_norm_epsilon",
            shape->rms_epsilon);
    put_rope(metadata);
    put_form(metadata);
    put_unlike_layers(metadata);
    put_experts(metadata);
    put_u32(metadata, "vocab_size", shape->vocab_size);
    return convert_put_vocabulary(writer, shape, err);
}
