/* experts.c - the feed-forward block of a layer with experts: the router chooses some for each
 * token, they and the shared one (where there is one) are computed, and their results are added up.
 * A slot is one choice of a token: ops/ops.h. */
#include "engine/pass.h"

#include <math.h>

/* Rows of slots of a scratch buffer. */
static struct device_view slot_rows(const struct pass *pass, const struct device_view *view)
{
    return engine_rows(view, pass->tokens * pass->engine->config.experts.used);
}

/* A list with an entry for each slot: the same bytes as [used, tokens]. */
static struct device_view slot_list(const struct pass *pass, const struct device_view *view)
{
    struct device_view list = *view;
    uint64_t slots = pass->tokens * pass->engine->config.experts.used;
    list.shape = shape_make(1, &slots);
    return list;
}

enum status pass_route(struct pass *pass, int32_t index)
{
    const struct model_experts *experts = &pass->engine->config.experts;
    const struct device_view *weights = pass->engine->layers[index].weights;
    const struct engine_scratch *scratch = &pass->engine->scratch;
    struct device_view logits = engine_rows(&scratch->router_logits, pass->tokens);
    struct device_view ids = engine_rows(&scratch->expert_ids, pass->tokens);
    struct device_view chosen = engine_rows(&scratch->expert_weights, pass->tokens);
    struct ops_routing routing = { .score = experts->weighs_input || experts->sigmoid
                                                ? OPS_SCORE_SIGMOID
                                                : OPS_SCORE_SOFTMAX,
                                   .normalise = experts->normalised,
                                   .weight_scale = experts->weight_scale,
                                   .group_count = experts->group_count,
                                   .groups_used = experts->groups_used };
    pass_label(pass, index, "ffn_router", DEVICE_HERE);
    TRY(pass_multiply_one(pass, pass->input, pass->is_packed, &weights[MODEL_FFN_ROUTER],
                          pass_optional(&weights[MODEL_FFN_ROUTER_BIAS]), &logits));
    if (engine_has(&weights[MODEL_FFN_ROUTER_SCALE]))
        TRY(ops_scale(&pass->target, &logits,
                      1 / sqrtf((float)pass->engine->config.embedding_length), 0, pass->err));
    pass_label(pass, index, "ffn_route", DEVICE_HERE);
    TRY(ops_route_experts(&pass->target, &logits, pass_optional(&weights[MODEL_FFN_CHOICE_BIAS]),
                          &ids, &chosen, &routing, pass->err));
    return pass_reach(pass, ENGINE_ROUTED, index);
}

/* ---- Routed experts ------------------------------------------------------------------------- */

/* Room for rows of [k, inputs], packed for experts with such weights. */
static struct device_view packed_rows(const struct pass *pass, const struct device_view *room,
                                      const struct device_view *weights, uint64_t inputs)
{
    struct device_view packed = engine_rows(room, inputs);
    packed.shape.dims[0] = ops_expert_row_bytes(pass->engine->ops, weights->dtype,
                                                weights->shape.dims[0]);
    return packed;
}

/* Where gate and up are clamped; no file says it. */
#define CLAMP_LIMIT 7.0f
#define CLAMP_ALPHA 1.702f

/* gate and up, of the experts that each slot chose, as one row. */
static enum status open_both(struct pass *pass, int32_t index)
{
    const struct engine_scratch *scratch = &pass->engine->scratch;
    const struct device_view *weights = pass->engine->layers[index].weights;
    const struct device_view *matrix = &weights[MODEL_FFN_GATE_UP_EXPERTS];
    struct device_view ids = slot_list(pass, &scratch->expert_ids);
    struct device_view packed = packed_rows(pass, &scratch->packed, matrix, pass->tokens);
    struct device_view out = slot_rows(pass, &scratch->expert_gate_up);
    pass_label(pass, index, "ffn_experts_gate_up", DEVICE_HERE);
    TRY(ops_pack_for_experts(&pass->target, pass->input, &packed, matrix->dtype, pass->err));
    TRY(ops_matmul_experts(&pass->target, matrix, &packed, NULL, &ids, &out, pass->err));
    return pass_reach(pass, ENGINE_EXPERTS_OPENED, index);
}

/* The same, a row each. */
static enum status open_up(struct pass *pass, int32_t index)
{
    const struct device_view *weights = pass->engine->layers[index].weights;
    const struct engine_scratch *scratch = &pass->engine->scratch;
    struct device_view ids = slot_list(pass, &scratch->expert_ids);
    static const enum model_role roles[] = { MODEL_FFN_GATE_EXPERTS, MODEL_FFN_UP_EXPERTS };
    static const enum model_role biases[] = { MODEL_FFN_GATE_EXPERTS_BIAS,
                                              MODEL_FFN_UP_EXPERTS_BIAS };
    const struct device_view *outs[] = { &scratch->expert_gate, &scratch->expert_up };
    pass_label(pass, index, "ffn_experts_gate_up", DEVICE_HERE);
    for (size_t i = 0; i < COUNT_OF(roles); i++) {
        const struct device_view *matrix = &weights[roles[i]];
        struct device_view packed = packed_rows(pass, &scratch->packed, matrix, pass->tokens);
        struct device_view out = slot_rows(pass, outs[i]);
        if (i == 0 || !ops_same_expert_packing(pass->engine->ops, weights[roles[0]].dtype,
                                               matrix->dtype, matrix->shape.dims[0]))
            TRY(ops_pack_for_experts(&pass->target, pass->input, &packed, matrix->dtype,
                                     pass->err));
        TRY(ops_matmul_experts(&pass->target, matrix, &packed, pass_optional(&weights[biases[i]]),
                               &ids, &out, pass->err));
    }
    return pass_reach(pass, ENGINE_EXPERTS_OPENED, index);
}

/* The gate's rows by the activation, times those of up, as rows and packed. */
static enum status gate_experts(struct pass *pass, struct device_view *gate,
                                const struct ops_packing *packing)
{
    const struct engine_scratch *scratch = &pass->engine->scratch;
    const struct model_experts *experts = &pass->engine->config.experts;
    struct device_view up = slot_rows(pass, &scratch->expert_up), from = *gate;
    struct device_view input_weights = slot_list(pass, &scratch->expert_weights);
    struct ops_expert_gate settings = { 0 };
    if (experts->clamped)
        settings = (struct ops_expert_gate){ .limit = CLAMP_LIMIT, .alpha = CLAMP_ALPHA };
    if (experts->fused) {
        from = up = slot_rows(pass, &scratch->expert_gate_up);
        from.row_stride_bytes = up.row_stride_bytes = up.shape.dims[0] * sizeof(float);
        from.shape.dims[0] = up.shape.dims[0] = experts->feed_length;
        up.offset_bytes += experts->feed_length * sizeof(float);
    }
    if (pass->arch->activation == MODEL_ACTIVATION_SILU)
        return ops_gate_experts(&pass->target, &from, &up,
                                experts->weighs_input ? &input_weights : NULL, gate, packing,
                                &settings, pass->err);
    TRY(ops_gelu(&pass->target, &from, &up, gate, NULL, pass->err));
    return ops_pack_for_experts(&pass->target, gate, packing->packed, packing->weight_dtype,
                                pass->err);
}

static enum status close_down(struct pass *pass, int32_t index)
{
    const struct engine_scratch *scratch = &pass->engine->scratch;
    const struct device_view *weights = pass->engine->layers[index].weights;
    const struct device_view *down = &weights[MODEL_FFN_DOWN_EXPERTS];
    struct device_view gate = slot_rows(pass, &scratch->expert_gate);
    struct device_view out = slot_rows(pass, &scratch->expert_out);
    struct device_view ids = slot_list(pass, &scratch->expert_ids);
    struct device_view packed = packed_rows(pass, &scratch->expert_packed, down, out.shape.dims[1]);
    struct ops_packing packing = { &packed, down->dtype };
    pass_label(pass, index, "ffn_experts_gated", DEVICE_HERE);
    TRY(gate_experts(pass, &gate, &packing));
    TRY(pass_reach(pass, ENGINE_EXPERTS_GATED, index));
    pass_label(pass, index, "ffn_experts_down", DEVICE_HERE);
    TRY(ops_matmul_experts(&pass->target, down, &packed,
                           pass_optional(&weights[MODEL_FFN_DOWN_EXPERTS_BIAS]), &ids, &out,
                           pass->err));
    return pass_reach(pass, ENGINE_EXPERTS_CLOSED, index);
}

/* ---- The shared expert ---------------------------------------------------------------------- */

static enum status run_shared(struct pass *pass, int32_t index, struct device_view *ret_gate)
{
    const struct device_view *weights = pass->engine->layers[index].weights;
    const struct engine_scratch *scratch = &pass->engine->scratch;
    const struct device_view *inputs[] = { &weights[MODEL_FFN_SHARED_GATE],
                                           &weights[MODEL_FFN_SHARED_UP] };
    const struct device_view *biases[] = { NULL, NULL };
    struct device_view router = weights[MODEL_FFN_SHARED_ROUTER];
    struct device_view shared = engine_rows(&scratch->shared, pass->tokens);
    struct device_view gate = pass->gate, up = pass->up, packed;
    gate.shape.dims[0] = up.shape.dims[0] = inputs[0]->shape.dims[1];
    const struct device_view *outs[] = { &gate, &up };
    pass_label(pass, index, "ffn_shared_gate_up", DEVICE_HERE);
    TRY(pass_multiply(pass, pass->input, false, 2, inputs, biases, outs));
    struct ops_packing packing = pass_packing(&packed, pass, &weights[MODEL_FFN_SHARED_DOWN]);
    pass_label(pass, index, "ffn_shared_swiglu", DEVICE_HERE);
    TRY(ops_swiglu(&pass->target, &gate, &up, &gate, &packing, pass->err));
    pass_label(pass, index, "ffn_shared_down", DEVICE_HERE);
    TRY(pass_multiply_one(pass, &gate, true, &weights[MODEL_FFN_SHARED_DOWN], NULL, &shared));
    *ret_gate = (struct device_view){ 0 };
    if (!engine_has(&router))
        return STATUS_OK;
    router.shape = shape_make(2, (uint64_t[]){ router.shape.dims[0], 1 });
    *ret_gate = engine_rows(&scratch->shared_gate, pass->tokens);
    pass_label(pass, index, "ffn_shared_router", DEVICE_HERE);
    TRY(pass_multiply_one(pass, pass->input, false, &router, NULL, ret_gate));
    ret_gate->shape = shape_make(1, &pass->tokens);
    return STATUS_OK;
}

/* ---- The sum -------------------------------------------------------------------------------- */

/* Weights of the slots, times a scale of each expert. */
static enum status scale_weights(struct pass *pass, int32_t index, struct device_view *weights)
{
    const struct engine_scratch *scratch = &pass->engine->scratch;
    struct device_view table = pass->engine->layers[index].weights[MODEL_FFN_EXPERTS_SCALE];
    struct device_view ids = slot_list(pass, &scratch->expert_ids);
    struct device_view scales = slot_list(pass, &scratch->expert_scales);
    struct device_view scaled = slot_list(pass, &scratch->expert_scaled);
    struct device_view columns[] = { scales, *weights, scaled }; /* rows of one value */
    for (size_t i = 0; i < COUNT_OF(columns); i++)
        columns[i].shape = shape_make(2, (uint64_t[]){ 1, scales.shape.dims[0] });
    table.shape = shape_make(2, (uint64_t[]){ 1, table.shape.dims[0] });
    pass_label(pass, index, "ffn_experts_scale", DEVICE_HERE);
    TRY(ops_embed(&pass->target, &table, &ids, &columns[0], pass->err));
    TRY(ops_sum_experts(&pass->target, &columns[1], &scales, NULL, NULL, &columns[2], pass->err));
    *weights = scaled;
    return STATUS_OK;
}

enum status pass_run_experts(struct pass *pass, int32_t index, const struct device_view *sum)
{
    const struct engine_scratch *scratch = &pass->engine->scratch;
    const struct model_experts *experts = &pass->engine->config.experts;
    const struct device_view *layer = pass->engine->layers[index].weights;
    bool has_shared = engine_has(&layer[MODEL_FFN_SHARED_DOWN]);
    struct device_view shared = engine_rows(&scratch->shared, pass->tokens);
    struct device_view weights = slot_list(pass, &scratch->expert_weights);
    struct device_view out = slot_rows(pass, &scratch->expert_out), gate = { 0 };
    TRY(experts->fused ? open_both(pass, index) : open_up(pass, index));
    TRY(close_down(pass, index));
    if (engine_has(&layer[MODEL_FFN_EXPERTS_SCALE]))
        TRY(scale_weights(pass, index, &weights));
    if (has_shared)
        TRY(run_shared(pass, index, &gate));
    pass_label(pass, index, "ffn_experts_sum", DEVICE_HERE);
    return ops_sum_experts(&pass->target, &out, experts->weighs_input ? NULL : &weights,
                           has_shared ? &shared : NULL, pass_optional(&gate), sum, pass->err);
}

enum status pass_feed_experts(struct pass *pass, int32_t index)
{
    TRY(pass_route(pass, index));
    return pass_run_experts(pass, index, &pass->added);
}
