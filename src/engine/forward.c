/* forward.c - the forward pass as a list of op calls, one page for all architectures. They differ
 * in which weights exist (biases, norms before and after a block, a gate), in the configuration
 * (windows, caps, scales) and in what model_arch_info says (kinds of norm and activation, whether
 * attention and feed-forward are parallel). What a block adds to the residual stream is added by
 * the norm that comes next, if there is one: that is a saving, never a difference. */
#include "engine/pass.h"

/* ---- The residual stream -------------------------------------------------------------------- */

/* A norm before a block: weight, bias (or absent), and what it does is called. */
struct norm {
    const char *label;
    const struct device_view *weight, *bias;
};

/* What enters a block: the residual stream, normed if there is such a norm and then packed for the
 * matmul with `next` (or NULL). */
static enum status enter(struct pass *pass, int32_t layer, struct norm norm,
                         const struct device_view *next)
{
    struct device_view packed;
    struct ops_packing packing;
    const struct device_view *added = pass->is_pending ? &pass->added : NULL;
    float epsilon = pass->engine->config.rms_epsilon;
    pass_label(pass, layer, norm.label, DEVICE_HERE);
    pass->is_packed = engine_has(norm.weight) && next;
    pass->input = engine_has(norm.weight) ? &pass->normed : &pass->x;
    if (!engine_has(norm.weight))
        return pass_settle(pass);
    pass->is_pending = false;
    if (next)
        packing = pass_packing(&packed, pass, next);
    if (pass->arch->norm == MODEL_NORM_RMS)
        return ops_rms_norm(&pass->target, &pass->x, added, norm.weight, &pass->normed,
                            next ? &packing : NULL, epsilon, pass->err);
    return ops_layer_norm(&pass->target, &pass->x, added, norm.weight, pass_optional(norm.bias),
                          &pass->normed, next ? &packing : NULL,
                          &(struct ops_layer_norm_settings){ .epsilon = epsilon }, pass->err);
}

/* A block's rows are in `added`: normed and scaled where the model does that, then to be added. */
static enum status leave(struct pass *pass, int32_t layer, const struct device_view *post_norm,
                         const char *norm_label, const char *scale_label)
{
    const struct model_config *config = &pass->engine->config;
    if (engine_has(post_norm)) {
        pass_label(pass, layer, norm_label, DEVICE_HERE);
        TRY(ops_rms_norm(&pass->target, &pass->added, NULL, post_norm, &pass->added, NULL,
                         config->rms_epsilon, pass->err));
    }
    if (config->residual_scale != 1) {
        pass_label(pass, layer, scale_label, DEVICE_HERE);
        TRY(ops_scale(&pass->target, &pass->added, config->residual_scale, 0, pass->err));
    }
    pass->is_pending = true;
    return STATUS_OK;
}

/* ---- Attention ------------------------------------------------------------------------------ */

static enum status attend(struct pass *pass, int32_t index)
{
    struct engine *engine = pass->engine;
    const struct model_config *config = &engine->config;
    const struct device_view *weights = engine->layers[index].weights;
    const struct engine_layer *cache = &engine->layers[pass->layer.cache];
    uint32_t window = pass->layer.window;
    bool latent = pass->arch->is_latent;
    struct device_view values = engine_rows(&engine->scratch.latent_values, pass->tokens);
    bool chunked = pass->layer.chunk && engine_has_chunks(engine);
    struct ops_attention_settings settings = {
        .head_dim = pass->layer.head_dim,
        .scale = config->attention_scale,
        .same_sequence = engine->same_sequence,
        .window = window < engine->budget.options.context ? window : 0,
        .cap = config->attention_cap,
        .sinks = pass_optional(&weights[MODEL_ATTN_SINKS]),
    };
    TRY(latent ? pass_make_latent_heads(pass, index) : pass_make_heads(pass, index));
    pass_label(pass, index, "attention", DEVICE_HERE);
    struct device_view packed;
    struct ops_packing packing = pass_packing(&packed, pass, &weights[MODEL_ATTN_OUTPUT]);
    TRY(ops_attention(&pass->target, &pass->q, &cache->keys, &cache->values,
                      chunked ? &pass->chunk_starts : &pass->starts,
                      chunked ? &pass->chunk_positions : &pass->positions, &pass->attn_out,
                      latent ? NULL : &packing, &settings, pass->err));
    TRY(pass_reach(pass, ENGINE_ATTENDED, index));
    if (latent)
        TRY(pass_make_latent_values(pass, index));
    pass_label(pass, index, "attn_output", DEVICE_HERE);
    TRY(pass_multiply_one(pass, latent ? &values : &pass->attn_out, !latent,
                          &weights[MODEL_ATTN_OUTPUT],
                          pass_optional(&weights[MODEL_ATTN_OUTPUT_BIAS]), &pass->added));
    TRY(pass_reach(pass, ENGINE_WO_MULTIPLIED, index));
    TRY(leave(pass, index, &weights[MODEL_ATTN_POST_NORM], "attn_post_norm", "attn_scale"));
    return pass_reach(pass, ENGINE_ATTN_POST_NORMED, index);
}

/* ---- Feed-forward --------------------------------------------------------------------------- */

/* Into `gate`: the gate's rows by the activation, times those of up; without a gate, up's alone. */
static enum status activate(struct pass *pass, int32_t index, bool has_gate)
{
    const struct device_view *down = &pass->engine->layers[index].weights[MODEL_FFN_DOWN];
    struct device_view packed;
    struct ops_packing packing = pass_packing(&packed, pass, down);
    bool silu = pass->arch->activation == MODEL_ACTIVATION_SILU;
    pass_label(pass, index, silu ? "ffn_swiglu" : "ffn_gelu", DEVICE_HERE);
    if (silu)
        return ops_swiglu(&pass->target, &pass->gate, &pass->up, &pass->gate, &packing, pass->err);
    return ops_gelu(&pass->target, has_gate ? &pass->gate : &pass->up, has_gate ? &pass->up : NULL,
                    &pass->gate, &packing, pass->err);
}

static enum status feed_dense(struct pass *pass, int32_t index)
{
    const struct engine_layer *layer = &pass->engine->layers[index];
    const struct device_view *weights = layer->weights;
    bool has_gate = engine_has(&layer->gate.weights);
    size_t first = has_gate ? 0 : 1;
    const struct device_view *inputs[] = { &layer->gate.weights, &layer->up.weights };
    const struct device_view *biases[] = { NULL, pass_optional(&layer->up.bias) };
    const struct device_view *outs[] = { &pass->gate, &pass->up };
    pass_label(pass, index, "ffn_gate_up", DEVICE_HERE);
    TRY(pass_multiply(pass, pass->input, pass->is_packed, 2 - first, inputs + first, biases + first,
                      outs + first));
    TRY(pass_reach(pass, ENGINE_GATE_UP_MULTIPLIED, index));
    TRY(activate(pass, index, has_gate));
    TRY(pass_reach(pass, ENGINE_GATED, index));
    pass_label(pass, index, "ffn_down", DEVICE_HERE);
    return pass_multiply_one(pass, &pass->gate, true, &weights[MODEL_FFN_DOWN],
                             pass_optional(&weights[MODEL_FFN_DOWN_BIAS]), &pass->added);
}

/* Experts, and a feed-forward that is not one of them. */
static bool has_both(const struct pass *pass, int32_t index)
{
    const struct device_view *weights = pass->engine->layers[index].weights;
    return engine_has(&weights[MODEL_FFN_ROUTER]) && pass->arch->reads & MODEL_KEEPS_DENSE;
}

static enum status feed(struct pass *pass, int32_t index)
{
    const struct device_view *weights = pass->engine->layers[index].weights;
    bool experts = engine_has(&weights[MODEL_FFN_ROUTER]), both = has_both(pass, index);
    if (!experts || both)
        TRY(feed_dense(pass, index));
    if (experts)
        TRY(both ? pass_add_experts(pass, index) : pass_feed_experts(pass, index));
    TRY(pass_reach(pass, ENGINE_DOWN_MULTIPLIED, index));
    TRY(leave(pass, index, &weights[MODEL_FFN_POST_NORM], "ffn_post_norm", "ffn_scale"));
    return pass_reach(pass, ENGINE_FFN_POST_NORMED, index);
}

/* ---- A layer -------------------------------------------------------------------------------- */

/* Rows as wide as they are in this layer. */
static void shape_rows(struct pass *pass, int32_t index)
{
    uint64_t dim;
    pass->layer = model_layer(&pass->engine->config, (uint32_t)index);
    dim = pass->layer.head_dim;
    pass->q.shape.dims[0] = pass->attn_out.shape.dims[0] = pass->engine->config.head_count * dim;
    pass->k.shape.dims[0] = pass->v.shape.dims[0] = pass->layer.head_count_kv * dim;
    pass->gate.shape.dims[0] = pass->up.shape.dims[0] = pass->layer.feed_forward_length;
}

static enum status run_layer(struct pass *pass, int32_t index)
{
    const struct engine_layer *layer = &pass->engine->layers[index];
    const struct device_view *weights = layer->weights;
    bool routed = engine_has(&weights[MODEL_FFN_ROUTER]) && !has_both(pass, index);
    const struct device_view *first = routed ? &weights[MODEL_FFN_ROUTER]
                                      : engine_has(&layer->gate.weights) ? &layer->gate.weights
                                                                         : &layer->up.weights;
    shape_rows(pass, index);
    TRY(enter(
        pass, index,
        (struct norm){ "attn_norm", &weights[MODEL_ATTN_NORM], &weights[MODEL_ATTN_NORM_BIAS] },
        &layer->q.weights));
    TRY(pass_reach(pass, ENGINE_ATTN_NORMED, index));
    TRY(attend(pass, index));
    if (pass->arch->is_parallel) { /* with the input that attention had */
        pass_label(pass, index, "attn_add", DEVICE_HERE);
        TRY(pass_settle(pass));
        pass->is_packed = false;
    } else {
        TRY(enter(
            pass, index,
            (struct norm){ "ffn_norm", &weights[MODEL_FFN_NORM], &weights[MODEL_FFN_NORM_BIAS] },
            first));
    }
    TRY(pass_reach(pass, ENGINE_FFN_NORMED, index));
    TRY(feed(pass, index));
    if (engine_has(&weights[MODEL_LAYER_INPUT_GATE]))
        TRY(layer_input_add(pass, index));
    if (layer->output_scale == 1)
        return STATUS_OK;
    pass_label(pass, index, "layer_scale", DEVICE_HERE);
    TRY(pass_settle(pass));
    return ops_scale(&pass->target, &pass->x, layer->output_scale, 0, pass->err);
}

/* ---- Logits --------------------------------------------------------------------------------- */

static enum status compute_logits(struct pass *pass, uint64_t count)
{
    struct engine *engine = pass->engine;
    struct engine_scratch *scratch = &engine->scratch;
    const struct model_config *config = &engine->config;
    const struct device_view *output = &engine->globals[MODEL_OUTPUT];
    if (!engine_has(output))
        output = &engine->globals[MODEL_TOKEN_EMBD];
    struct device_view rows = scratch->indices;
    rows.shape = shape_make(1, &count);
    rows.offset_bytes = engine_list_count(engine) * pass->tokens * sizeof(int32_t);
    bool all = count == pass->tokens; /* in order already: nothing to gather */
    struct device_view gathered = all ? pass->normed : engine_rows(&scratch->gathered, count);
    struct device_view logits = engine_rows(&engine->scratch.logits_buffer[engine->logits_index],
                                            count);
    TRY(enter(pass, -1,
              (struct norm){ "output_norm", &engine->globals[MODEL_OUTPUT_NORM],
                             &engine->globals[MODEL_OUTPUT_NORM_BIAS] },
              all ? output : NULL));
    TRY(pass_reach(pass, ENGINE_OUTPUT_NORMED, -1));
    if (!all)
        TRY(ops_gather_rows(&pass->target, &pass->normed, &rows, &gathered, pass->err));
    pass_label(pass, -1, "logits", DEVICE_HERE);
    pass->tokens = count;
    TRY(pass_multiply_one(pass, &gathered, all, output,
                          pass_optional(&engine->globals[MODEL_OUTPUT_BIAS]), &logits));
    if (config->logit_scale != 1 || config->logit_cap != 0) {
        pass_label(pass, -1, "logits_scale", DEVICE_HERE);
        TRY(ops_scale(&pass->target, &logits, config->logit_scale, config->logit_cap, pass->err));
    }
    return pass_reach(pass, ENGINE_LOGITS_READY, -1);
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
                         .arch = model_arch_info(engine->config.arch),
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
    pass.chunk_positions = index_view(&pass, 4);
    pass.chunk_starts = index_view(&pass, 5);
    pass_label(&pass, -1, "token_embd", DEVICE_HERE);
    TRY(ops_embed(&pass.target, &engine->globals[MODEL_TOKEN_EMBD], &pass.ids, &pass.x, err));
    if (engine->config.embedding_scale != 1) {
        pass_label(&pass, -1, "embd_scale", DEVICE_HERE);
        TRY(ops_scale(&pass.target, &pass.x, engine->config.embedding_scale, 0, err));
    }
    TRY(pass_reach(&pass, ENGINE_EMBEDDED, -1));
    if (engine_has(&engine->globals[MODEL_LAYER_TOKEN_EMBD]))
        TRY(layer_inputs_make(&pass));
    for (uint32_t i = 0; i < engine->config.block_count; i++)
        TRY(run_layer(&pass, (int32_t)i));
    return logits_count ? compute_logits(&pass, logits_count) : STATUS_OK;
}
