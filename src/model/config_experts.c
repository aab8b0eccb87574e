/* config_experts.c - the experts of a model: how many there are, how many a token uses, and how
 * they are chosen. */
#include "model/keys.h"

#include <inttypes.h>
#include <stdio.h>

static void refuse(struct model_keys *keys, const char *key, const char *expected, uint32_t found)
{
    model_problem_add(keys->report, MODEL_PROBLEM_CANNOT_RUN,
                      "%s.%s: expected %s, found %" PRIu32
                      "; the file is damaged, get or convert it again",
                      keys->arch, key, expected, found);
    keys->complete = false;
}

/* Groups are of equal size, and those a token may use have enough experts for it. */
static void read_groups(struct model_keys *keys, struct model_experts *experts)
{
    static const uint32_t none = 0;
    experts->group_count = model_keys_whole(keys, "expert_group_count", 0, experts->count, &none);
    uint32_t used = model_keys_whole(keys, "expert_group_used_count", 0, experts->count, &none);
    experts->groups_used = used;
    if (experts->group_count <= 1) {
        experts->group_count = experts->groups_used = 1;
        return;
    }
    if (experts->count % experts->group_count)
        refuse(keys, "expert_group_count", "a divisor of expert_count", experts->group_count);
    else if (used == 0 || used > experts->group_count ||
             experts->count / experts->group_count * used < experts->used)
        refuse(keys, "expert_group_used_count", "groups with as many experts as a token uses",
               used);
}

/* The first layer with experts says it for all. */
static bool are_fused(const struct model_keys *keys, const struct model_config *config)
{
    char name[MODEL_TENSOR_NAME_BYTES];
    uint32_t layer = 0;
    while (layer < config->block_count && !model_layer_has_experts(config, layer))
        layer++;
    snprintf(name, sizeof(name), "blk.%" PRIu32 ".ffn_gate_up_exps.weight", layer);
    return gguf_tensor_find(keys->file, name);
}

static void read_lengths(struct model_keys *keys, const struct model_config *config,
                         struct model_experts *experts)
{
    uint32_t reads = model_arch_info(config->arch)->reads;
    uint32_t feed = config->feed_forward_length, part = feed / experts->used, none = 0;
    experts->feed_length = feed;
    if (reads & MODEL_EXPERTS_OWN_LENGTH)
        experts->feed_length = model_keys_whole(keys, "expert_feed_forward_length", 1,
                                                MODEL_WIDTH_LIMIT, part ? &part : NULL);
    if (reads & (MODEL_MAY_SHARE_EXPERT | MODEL_MUST_SHARE_EXPERT))
        experts->shared_feed_length = model_keys_whole(
            keys, "expert_shared_feed_forward_length", reads & MODEL_MUST_SHARE_EXPERT ? 1 : 0,
            MODEL_WIDTH_LIMIT, reads & MODEL_MUST_SHARE_EXPERT ? &feed : &none);
    if (reads & MODEL_SHARES_LIKE_EXPERT)
        experts->shared_feed_length = experts->feed_length;
}

/* How experts are chosen and weighed, where files say it. */
static void read_routing(struct model_keys *keys, struct model_config *config)
{
    struct model_experts *experts = &config->experts;
    const uint32_t none = 0, softmax = 1;
    char key[128];
    bool normalised = false;
    struct error err;
    experts->first = model_keys_whole(keys, "leading_dense_block_count", 0, config->block_count,
                                      &none);
    float scale = model_keys_real(keys, "expert_weights_scale", -1e-30, 1e6, 0.0f);
    experts->weight_scale = scale > 0 ? scale : 1.0f;
    model_keys_full(keys, "expert_weights_norm", key, sizeof(key));
    experts->normalised = !gguf_get_flag(keys->file, key, &normalised, &err) && normalised;
    uint32_t function = model_keys_whole(keys, "expert_gating_func", 0, 2, &softmax);
    experts->sigmoid = function == 2;
    uint32_t shared = model_keys_whole(keys, "expert_shared_count", 0, MODEL_EXPERT_LIMIT, NULL);
    uint64_t length = (uint64_t)shared * experts->feed_length;
    if (length > MODEL_WIDTH_LIMIT)
        refuse(keys, "expert_shared_count", "fewer shared experts", shared);
    else
        experts->shared_feed_length = (uint32_t)length;
}

void model_experts_read(struct model_keys *keys, struct model_config *config)
{
    uint32_t reads = model_arch_info(config->arch)->reads, none = 0;
    bool must = reads & MODEL_MUST_HAVE_EXPERTS;
    struct model_experts *experts = &config->experts;
    if (!must && !(reads & MODEL_MAY_HAVE_EXPERTS))
        return;
    experts->count = model_keys_whole(keys, "expert_count", must, MODEL_EXPERT_LIMIT,
                                      must ? NULL : &none);
    if (experts->count == 0)
        return;
    experts->used = model_keys_whole(keys, "expert_used_count", 1, MODEL_EXPERT_USED_LIMIT, NULL);
    if (experts->used > experts->count)
        refuse(keys, "expert_used_count", "at most expert_count", experts->used);
    experts->clamped = reads & MODEL_CLAMPS_EXPERTS;
    experts->normalised = reads & MODEL_NORMALISES_EXPERTS;
    experts->weighs_input = reads & MODEL_WEIGHS_EXPERT_INPUT;
    if (reads & MODEL_EXPERTS_BY_STEP)
        experts->step = model_keys_whole(keys, "interleave_moe_layer_step", 1, MODEL_BLOCK_LIMIT,
                                         NULL);
    experts->weight_scale = 1.0f;
    read_groups(keys, experts);
    read_lengths(keys, config, experts);
    if (model_arch_info(config->arch)->reads_routing)
        read_routing(keys, config);
    experts->fused = are_fused(keys, config);
}

bool model_layer_has_experts(const struct model_config *config, uint32_t layer)
{
    uint32_t step = config->experts.step;
    return config->experts.count > 0 && layer < config->block_count &&
           layer >= config->experts.first && (step == 0 || (layer + 1) % step == 0);
}
