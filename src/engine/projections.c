/* projections.c - the matrices that a layer's rows are multiplied with, whether a file has a tensor
 * for each or one for several: attn_qkv has the rows of q, k and v, ffn_up those of gate and up in
 * architectures that say so. */
#include "engine/engine_impl.h"

/* Takes `count` rows of a matrix and of its bias from row *next on. */
static struct engine_projection take_rows(const struct device_view *weights,
                                          const struct device_view *bias, uint64_t *next,
                                          uint64_t count)
{
    struct engine_projection part = { .weights = *weights };
    uint64_t row_bytes = 0;
    ASSERT(dtype_row_bytes(weights->dtype, weights->shape.dims[0], &row_bytes));
    part.weights.shape.dims[1] = count;
    part.weights.offset_bytes += *next * row_bytes;
    if (engine_has(bias)) {
        part.bias = *bias;
        part.bias.shape.dims[0] = count;
        part.bias.offset_bytes += *next * sizeof(float);
    }
    *next += count;
    return part;
}

static struct engine_projection whole(const struct engine_layer *layer, enum model_role weights,
                                      enum model_role bias)
{
    return (struct engine_projection){ layer->weights[weights], layer->weights[bias] };
}

static void find_qkv(const struct model_config *config, struct engine_layer *layer)
{
    /* Fused heads are for architectures whose layers are alike. */
    const struct device_view *fused = &layer->weights[MODEL_ATTN_QKV];
    uint64_t next = 0, query = (uint64_t)config->head_count * config->head_dim,
             kv = (uint64_t)config->head_count_kv * config->head_dim;
    layer->q = whole(layer, MODEL_ATTN_Q, MODEL_ATTN_Q_BIAS);
    layer->k = whole(layer, MODEL_ATTN_K, MODEL_ATTN_K_BIAS);
    layer->v = whole(layer, MODEL_ATTN_V, MODEL_ATTN_V_BIAS);
    if (config->latent.query_rank)
        layer->q = whole(layer, MODEL_ATTN_Q_A, MODEL_ATTN_Q_BIAS);
    if (engine_has(&layer->k.weights) && !engine_has(&layer->v.weights))
        layer->v = layer->k; /* values are what keys were before their norm */
    if (!engine_has(fused))
        return;
    struct engine_projection apart[] = { layer->q, layer->k, layer->v };
    const struct device_view *bias = &layer->weights[MODEL_ATTN_QKV_BIAS];
    layer->q = take_rows(fused, bias, &next, query);
    layer->k = take_rows(fused, bias, &next, kv);
    layer->v = take_rows(fused, bias, &next, kv);
    if (engine_has(bias))
        return;
    layer->q.bias = apart[0].bias;
    layer->k.bias = apart[1].bias;
    layer->v.bias = apart[2].bias;
}

void engine_find_projections(struct engine *engine)
{
    static const struct device_view no_bias = { 0 };
    uint64_t feed = engine->config.feed_forward_length;
    for (uint32_t i = 0; i < engine->config.block_count; i++) {
        struct engine_layer *layer = &engine->layers[i];
        const struct device_view *fused = &layer->weights[MODEL_FFN_GATE_UP];
        uint64_t next = 0;
        find_qkv(&engine->config, layer);
        layer->gate = (struct engine_projection){ .weights = layer->weights[MODEL_FFN_GATE] };
        layer->up = whole(layer, MODEL_FFN_UP, MODEL_FFN_UP_BIAS);
        if (!engine_has(fused))
            continue;
        layer->gate = take_rows(fused, &no_bias, &next, feed);
        layer->up = take_rows(fused, &no_bias, &next, feed);
    }
}
