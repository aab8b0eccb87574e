/* heads.c - the queries, keys and values of a layer: multiplied, normed, rotated, and the latter
 * two put into the cache. */
#include "engine/pass.h"

/* Queries or keys, or values, by weights that are all 1. */
static enum status normalise_plainly(struct pass *pass, const struct device_view *x)
{
    struct device_view ones = pass->engine->scratch.ones;
    ones.shape.dims[0] = pass->layer.head_dim;
    return ops_head_norm(&pass->target, x, &ones, pass->engine->config.rms_epsilon, pass->err);
}

static enum status normalise_heads(struct pass *pass, const struct device_view *x,
                                   const struct device_view *weight)
{
    const struct model_config *config = &pass->engine->config;
    float epsilon = config->rms_epsilon;
    struct device_view row = *weight;
    uint64_t count = row.shape.dims[0] * row.shape.dims[1];
    row.shape = shape_make(1, &count);
    switch (pass->arch->head_norm) {
    case MODEL_HEAD_NORM_ROW:
        return ops_rms_norm(&pass->target, x, NULL, weight, x, NULL, epsilon, pass->err);
    case MODEL_HEAD_NORM_OWN:
        return ops_layer_norm(&pass->target, x, NULL, &row, NULL, x, NULL,
                              &(struct ops_layer_norm_settings){ epsilon, pass->layer.head_dim },
                              pass->err);
    case MODEL_HEAD_NORM_EACH:
        break;
    }
    return ops_head_norm(&pass->target, x, weight, epsilon, pass->err);
}

/* Queries have a table of their own where they have a temperature: all of them, or those of layers
 * that do not rotate. */
static enum status rotate(struct pass *pass, int32_t index, const struct device_view *also)
{
    enum model_layer_rope rope = pass->layer.rope;
    uint32_t head_dim = pass->layer.head_dim;
    const struct engine_scratch *scratch = &pass->engine->scratch;
    bool adjacent = pass->engine->config.rope.kind == MODEL_ROPE_ADJACENT;
    bool rests = rope == MODEL_LAYER_UNROTATED, warms_at_rest = pass->arch->resting_temperature > 0;
    bool apart = engine_has(&scratch->rope_table_q) && rests == warms_at_rest;
    const struct device_view *table = rope == MODEL_LAYER_LOCAL_ROPE ? &scratch->rope_table_local
                                                                     : &scratch->rope_table;
    if (rests && !warms_at_rest)
        return STATUS_OK;
    pass_label(pass, index, "rope_qk", DEVICE_HERE);
    if (!apart)
        return ops_rope(&pass->target, &pass->q, also, &pass->positions, table, head_dim, adjacent,
                        pass->err);
    TRY(ops_rope(&pass->target, &pass->q, NULL, &pass->positions, &scratch->rope_table_q, head_dim,
                 adjacent, pass->err));
    return also && !rests ? ops_rope(&pass->target, also, NULL, &pass->positions, table, head_dim,
                                     adjacent, pass->err)
                          : STATUS_OK;
}

enum status pass_make_heads(struct pass *pass, int32_t index)
{
    struct engine_layer *layer = &pass->engine->layers[index];
    const struct device_view *weights = layer->weights;
    const struct device_view *inputs[] = { &layer->q.weights, &layer->k.weights,
                                           &layer->v.weights };
    const struct device_view *biases[] = { pass_optional(&layer->q.bias),
                                           pass_optional(&layer->k.bias),
                                           pass_optional(&layer->v.bias) };
    const struct device_view *outs[] = { &pass->q, &pass->k, &pass->v };
    bool owns = pass->layer.cache == (uint32_t)index; /* else keys and values are there already */
    pass_label(pass, index, "attn_qkv", DEVICE_HERE);
    TRY(pass_multiply(pass, pass->input, pass->is_packed, owns ? 3 : 1, inputs, biases, outs));
    TRY(pass_reach(pass, ENGINE_QKV_MULTIPLIED, index));
    if (engine_has(&weights[MODEL_ATTN_Q_NORM])) {
        pass_label(pass, index, "attn_head_norm", DEVICE_HERE);
        TRY(normalise_heads(pass, &pass->q, &weights[MODEL_ATTN_Q_NORM]));
        if (owns)
            TRY(normalise_heads(pass, &pass->k, &weights[MODEL_ATTN_K_NORM]));
    }
    if (owns && pass->arch->reads & MODEL_NORMS_VALUES)
        TRY(normalise_plainly(pass, &pass->v));
    TRY(rotate(pass, index, owns ? &pass->k : NULL));
    if (pass->engine->config.norms_rotated && pass->layer.rope != MODEL_LAYER_UNROTATED) {
        pass_label(pass, index, "attn_head_norm", DEVICE_HERE);
        TRY(normalise_plainly(pass, &pass->q));
        TRY(normalise_plainly(pass, &pass->k));
    }
    TRY(pass_reach(pass, ENGINE_HEADS_READY, index));
    if (!owns)
        return pass_reach(pass, ENGINE_KV_APPENDED, index);
    pass_label(pass, index, "kv_append", DEVICE_HERE);
    TRY(ops_kv_append(&pass->target, &pass->k, &pass->v, &pass->slots, &layer->keys, &layer->values,
                      pass->err));
    return pass_reach(pass, ENGINE_KV_APPENDED, index);
}
