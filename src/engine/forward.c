/* forward.c - the forward pass as a list of op calls. Architectures differ in which weights exist
 * (biases, norms of heads) and in the configuration (which pairs RoPE rotates); the order of ops is
 * the same for all of them. */
#include "engine/engine_impl.h"

/* A batch while it goes through the layers. */
struct pass {
    struct engine *engine;
    struct ops_target target;
    uint64_t tokens;
    struct device_view x, normed, q, attn_out, k, v, added, gate, up; /* [.., tokens] */
    struct device_view ids, positions, starts, slots;                 /* I32 [tokens] */
    struct error *err;
};

/* Names the next calls for the device's observer: layer, tensor, and the line that makes them. */
static void label(struct pass *pass, int32_t layer, const char *tensor, struct device_site site)
{
    pass->target.site = site;
    struct event_scope *scope = &pass->engine->scope;
    *scope = (struct event_scope){ .step = pass->engine->step, .layer = layer };
    event_set_text(scope->tensor, sizeof(scope->tensor), tensor);
    device_scope_set(pass->engine->device, pass->engine->stream, scope);
}

/* Taps what was just computed, before its buffer is reused. */
static enum status reach(struct pass *pass, enum engine_moment moment, int32_t layer)
{
    if (!pass->engine->taps)
        return STATUS_OK;
    return engine_tap_moment(pass->engine, moment, layer, pass->tokens, pass->err);
}

static const struct device_view *optional(const struct device_view *view)
{
    return engine_has(view) ? view : NULL;
}

/* ---- Matmuls -------------------------------------------------------------------------------- */

static struct device_view packed_view(const struct pass *pass, enum dtype weight_dtype, uint64_t k)
{
    struct device_view packed = engine_rows(&pass->engine->scratch.packed, pass->tokens);
    packed.shape.dims[0] = ops_packed_row_bytes(pass->engine->ops, weight_dtype, k, pass->tokens);
    return packed;
}

/* The op that computes the input of a matmul also packs it, for the first of the weights. */
static struct ops_packing packing_for(struct device_view *ret_packed, const struct pass *pass,
                                      const struct device_view *weights)
{
    *ret_packed = packed_view(pass, weights->dtype, weights->shape.dims[0]);
    return (struct ops_packing){ ret_packed, weights->dtype };
}

/* out = weights x input for up to three weights. is_packed: the input is packed for the first
 * weights already. It is packed again for each type that needs another packing. */
static enum status multiply(struct pass *pass, const struct device_view *input, bool is_packed,
                            size_t count, const struct device_view *const *weights,
                            const struct device_view *const *biases,
                            const struct device_view *const *outs)
{
    size_t done = 0;
    while (done < count) {
        enum dtype dtype = weights[done]->dtype;
        size_t run = 1;
        while (done + run < count &&
               ops_same_packing(pass->engine->ops, dtype, weights[done + run]->dtype,
                                input->shape.dims[0], pass->tokens))
            run++;
        struct device_view packed = packed_view(pass, dtype, input->shape.dims[0]);
        if (done > 0 || !is_packed)
            TRY(ops_act_pack(&pass->target, input, &packed, dtype, pass->err));
        TRY(ops_matmul_group(&pass->target, run, weights + done, &packed, biases + done,
                             outs + done, pass->err));
        done += run;
    }
    return STATUS_OK;
}

static enum status multiply_one(struct pass *pass, const struct device_view *input, bool is_packed,
                                const struct device_view *weights, const struct device_view *bias,
                                const struct device_view *out)
{
    return multiply(pass, input, is_packed, 1, &weights, &bias, &out);
}

/* ---- A layer -------------------------------------------------------------------------------- */

static enum status attend(struct pass *pass, int32_t index)
{
    struct engine *engine = pass->engine;
    const struct model_config *config = &engine->config;
    struct engine_layer *layer = &engine->layers[index];
    const struct device_view *weights = layer->weights;
    const struct device_view *inputs[] = { &weights[MODEL_ATTN_Q], &weights[MODEL_ATTN_K],
                                           &weights[MODEL_ATTN_V] };
    const struct device_view *biases[] = { optional(&weights[MODEL_ATTN_Q_BIAS]),
                                           optional(&weights[MODEL_ATTN_K_BIAS]),
                                           optional(&weights[MODEL_ATTN_V_BIAS]) };
    const struct device_view *outs[] = { &pass->q, &pass->k, &pass->v };
    bool adjacent = config->rope.kind == MODEL_ROPE_ADJACENT;
    label(pass, index, "attn_qkv", DEVICE_HERE);
    TRY(multiply(pass, &pass->normed, true, 3, inputs, biases, outs));
    TRY(reach(pass, ENGINE_QKV_MULTIPLIED, index));
    if (engine_has(&weights[MODEL_ATTN_Q_NORM])) {
        label(pass, index, "attn_head_norm", DEVICE_HERE);
        TRY(ops_head_norm(&pass->target, &pass->q, &weights[MODEL_ATTN_Q_NORM], config->rms_epsilon,
                          pass->err));
        TRY(ops_head_norm(&pass->target, &pass->k, &weights[MODEL_ATTN_K_NORM], config->rms_epsilon,
                          pass->err));
    }
    label(pass, index, "rope_qk", DEVICE_HERE);
    TRY(ops_rope(&pass->target, &pass->q, &pass->k, &pass->positions, &engine->scratch.rope_table,
                 config->head_dim, adjacent, pass->err));
    TRY(reach(pass, ENGINE_HEADS_READY, index));
    label(pass, index, "kv_append", DEVICE_HERE);
    TRY(ops_kv_append(&pass->target, &pass->k, &pass->v, &pass->slots, &layer->keys, &layer->values,
                      pass->err));
    TRY(reach(pass, ENGINE_KV_APPENDED, index));
    label(pass, index, "attention", DEVICE_HERE);
    struct device_view packed;
    struct ops_packing packing = packing_for(&packed, pass, &weights[MODEL_ATTN_OUTPUT]);
    struct ops_attention_settings settings = { .head_dim = config->head_dim,
                                               .scale = config->attention_scale,
                                               .same_sequence = engine->same_sequence };
    TRY(ops_attention(&pass->target, &pass->q, &layer->keys, &layer->values, &pass->starts,
                      &pass->positions, &pass->attn_out, &packing, &settings, pass->err));
    TRY(reach(pass, ENGINE_ATTENDED, index));
    label(pass, index, "attn_output", DEVICE_HERE);
    TRY(multiply_one(pass, &pass->attn_out, true, &weights[MODEL_ATTN_OUTPUT],
                     optional(&weights[MODEL_ATTN_OUTPUT_BIAS]), &pass->added));
    return reach(pass, ENGINE_WO_MULTIPLIED, index);
}

static enum status feed(struct pass *pass, int32_t index)
{
    const struct device_view *weights = pass->engine->layers[index].weights;
    const struct device_view *inputs[] = { &weights[MODEL_FFN_GATE], &weights[MODEL_FFN_UP] };
    const struct device_view *biases[] = { NULL, NULL };
    const struct device_view *outs[] = { &pass->gate, &pass->up };
    label(pass, index, "ffn_gate_up", DEVICE_HERE);
    TRY(multiply(pass, &pass->normed, true, 2, inputs, biases, outs));
    TRY(reach(pass, ENGINE_GATE_UP_MULTIPLIED, index));
    label(pass, index, "ffn_swiglu", DEVICE_HERE);
    struct device_view packed;
    struct ops_packing packing = packing_for(&packed, pass, &weights[MODEL_FFN_DOWN]);
    TRY(ops_swiglu(&pass->target, &pass->gate, &pass->up, &pass->gate, &packing, pass->err));
    TRY(reach(pass, ENGINE_GATED, index));
    label(pass, index, "ffn_down", DEVICE_HERE);
    TRY(multiply_one(pass, &pass->gate, true, &weights[MODEL_FFN_DOWN], NULL, &pass->added));
    return reach(pass, ENGINE_DOWN_MULTIPLIED, index);
}

/* Adds the previous block's output to the residual stream (not before the first block), normalises
 * the sum, and packs it for the matmul with `next` (or NULL). */
static enum status normalise(struct pass *pass, bool first, const struct device_view *weight,
                             const struct device_view *next)
{
    struct device_view packed;
    struct ops_packing packing;
    if (next)
        packing = packing_for(&packed, pass, next);
    return ops_rms_norm(&pass->target, &pass->x, first ? NULL : &pass->added, weight, &pass->normed,
                        next ? &packing : NULL, pass->engine->config.rms_epsilon, pass->err);
}

/* ---- Logits --------------------------------------------------------------------------------- */

static enum status compute_logits(struct pass *pass, uint64_t count)
{
    struct engine *engine = pass->engine;
    struct engine_scratch *scratch = &engine->scratch;
    const struct device_view *output = &engine->globals[MODEL_OUTPUT];
    if (!engine_has(output))
        output = &engine->globals[MODEL_TOKEN_EMBD];
    struct device_view rows = scratch->indices;
    rows.shape = shape_make(1, &count);
    rows.offset_bytes = 4 * pass->tokens * sizeof(int32_t);
    bool all = count == pass->tokens; /* in order already: nothing to gather */
    struct device_view gathered = all ? pass->normed : engine_rows(&scratch->gathered, count);
    struct device_view logits = engine_rows(&engine->scratch.logits_buffer[engine->logits_index],
                                            count);
    label(pass, -1, "output_norm", DEVICE_HERE);
    TRY(normalise(pass, false, &engine->globals[MODEL_OUTPUT_NORM], all ? output : NULL));
    TRY(reach(pass, ENGINE_OUTPUT_NORMED, -1));
    if (!all)
        TRY(ops_gather_rows(&pass->target, &pass->normed, &rows, &gathered, pass->err));
    label(pass, -1, "logits", DEVICE_HERE);
    pass->tokens = count;
    TRY(multiply_one(pass, &gathered, all, output, optional(&engine->globals[MODEL_OUTPUT_BIAS]),
                     &logits));
    return reach(pass, ENGINE_LOGITS_READY, -1);
}

/* ---- A batch -------------------------------------------------------------------------------- */

static struct device_view index_view(const struct pass *pass, uint64_t list)
{
    struct device_view view = pass->engine->scratch.indices;
    view.shape = shape_make(1, &pass->tokens);
    view.offset_bytes = list * pass->tokens * sizeof(int32_t);
    return view;
}

enum status engine_run(struct engine *engine, uint64_t token_count, uint64_t logits_count,
                       struct error *err)
{
    struct engine_scratch *scratch = &engine->scratch;
    struct pass pass = { .engine = engine,
                         .target = { .ops = engine->ops, .stream = engine->stream },
                         .tokens = token_count,
                         .x = engine_rows(&scratch->x, token_count),
                         .normed = engine_rows(&scratch->normed, token_count),
                         .q = engine_rows(&scratch->q, token_count),
                         .attn_out = engine_rows(&scratch->attn_out, token_count),
                         .k = engine_rows(&scratch->k, token_count),
                         .v = engine_rows(&scratch->v, token_count),
                         .added = engine_rows(&scratch->added, token_count),
                         .gate = engine_rows(&scratch->gate, token_count),
                         .up = engine_rows(&scratch->up, token_count),
                         .err = err };
    pass.ids = index_view(&pass, 0);
    pass.positions = index_view(&pass, 1);
    pass.starts = index_view(&pass, 2);
    pass.slots = index_view(&pass, 3);
    label(&pass, -1, "token_embd", DEVICE_HERE);
    TRY(ops_embed(&pass.target, &engine->globals[MODEL_TOKEN_EMBD], &pass.ids, &pass.x, err));
    TRY(reach(&pass, ENGINE_EMBEDDED, -1));
    for (uint32_t i = 0; i < engine->config.block_count; i++) {
        const struct device_view *weights = engine->layers[i].weights;
        label(&pass, (int32_t)i, "attn_norm", DEVICE_HERE);
        TRY(normalise(&pass, i == 0, &weights[MODEL_ATTN_NORM], &weights[MODEL_ATTN_Q]));
        TRY(reach(&pass, ENGINE_ATTN_NORMED, (int32_t)i));
        TRY(attend(&pass, (int32_t)i));
        label(&pass, (int32_t)i, "ffn_norm", DEVICE_HERE);
        TRY(normalise(&pass, false, &weights[MODEL_FFN_NORM], &weights[MODEL_FFN_GATE]));
        TRY(reach(&pass, ENGINE_FFN_NORMED, (int32_t)i));
        TRY(feed(&pass, (int32_t)i));
    }
    return logits_count ? compute_logits(&pass, logits_count) : STATUS_OK;
}
