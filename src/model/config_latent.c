/* config_latent.c - models whose keys and values are made of one short row of each token. Files of
 * the old form, with attn_kv_b, lack keys that are needed here and are refused. */
#include "model/keys.h"

#include <inttypes.h>
#include <math.h>

static void refuse(struct model_keys *keys, const char *key, const char *expected, uint32_t found)
{
    model_problem_add(keys->report, MODEL_PROBLEM_CANNOT_RUN,
                      "%s.%s: expected %s, found %" PRIu32
                      "; the file is damaged, get or convert it again",
                      keys->arch, key, expected, found);
    keys->complete = false;
}

/* The multiplier of YaRN is in the scale of scores here, and the rotation keeps its magnitude; a
 * file without one has it in both. */
static void read_scale(struct model_keys *keys, struct model_config *config)
{
    struct model_rope *rope = &config->rope;
    double length = (double)config->latent.key_length + rope->dimension_count, times = 1;
    float multiplier = model_keys_real(keys, "rope.scaling.yarn_log_multiplier", -1e-30, 1e6, 0.0f);
    if (rope->scaling == MODEL_ROPE_SCALING_YARN && rope->scaling_factor > 1) {
        double share = multiplier > 0 ? (double)multiplier : 0.1;
        times = 1 + share * log((double)rope->scaling_factor);
        rope->yarn_log_multiplier = multiplier > 0 ? 1.0f : 0.0f;
    }
    config->attention_scale = (float)(times * times / sqrt(length > 0 ? length : 1));
}

void model_latent_read(struct model_keys *keys, struct model_config *config)
{
    struct model_latent *latent = &config->latent;
    uint32_t rotated = config->rope.dimension_count;
    latent->rank = model_keys_whole(keys, "attention.kv_lora_rank", 1, MODEL_HEAD_LIMIT, NULL);
    uint32_t length = model_keys_whole(keys, "attention.key_length_mla", 1, MODEL_HEAD_LIMIT, NULL);
    latent->value_length = model_keys_whole(keys, "attention.value_length_mla", 1, MODEL_HEAD_LIMIT,
                                            NULL);
    if (gguf_tensor_find(keys->file, "blk.0.attn_q_a.weight"))
        latent->query_rank = model_keys_whole(keys, "attention.q_lora_rank", 1, MODEL_WIDTH_LIMIT,
                                              NULL);
    latent->key_length = length > rotated ? length - rotated : 0;
    if (config->head_count_kv != 1)
        refuse(keys, "attention.head_count_kv", "1", config->head_count_kv);
    if (config->head_dim != (uint64_t)latent->rank + rotated)
        refuse(keys, "attention.key_length", "kv_lora_rank and rope.dimension_count together",
               config->head_dim);
    if (latent->key_length == 0 || rotated % 8)
        refuse(keys, "rope.dimension_count", "a multiple of 8, less than key_length_mla", rotated);
    read_scale(keys, config);
}
