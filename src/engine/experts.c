/* experts.c - the feed-forward block of a layer with experts: the router chooses some for each
 * token, they and the shared one (where there is one) are computed, and their results are added up.
 * A slot is one choice of a token: ops/ops.h. */
#include "engine/pass.h"

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

static enum status route(struct pass *pass, int32_t index)
{
    const struct model_experts *experts = &pass->engine->config.experts;
    const struct device_view *weights = pass->engine->layers[index].weights;
    const struct engine_scratch *scratch = &pass->engine->scratch;
    struct device_view logits = engine_rows(&scratch->router_logits, pass->tokens);
    struct device_view ids = engine_rows(&scratch->expert_ids, pass->tokens);
    struct device_view chosen = engine_rows(&scratch->expert_weights, pass->tokens);
    struct ops_routing routing = { .score = experts->weighs_input ? OPS_SCORE_SIGMOID
                                                                  : OPS_SCORE_SOFTMAX,
                                   .normalise = experts->normalised,
                                   .weight_scale = experts->weight_scale,
                                   .group_count = experts->group_count,
                                   .groups_used = experts->groups_used };
    pass_label(pass, index, "ffn_router", DEVICE_HERE);
    TRY(pass_multiply_one(pass, pass->input, pass->is_packed, &weights[MODEL_FFN_ROUTER],
                          pass_optional(&weights[MODEL_FFN_ROUTER_BIAS]), &logits));
    pass_label(pass, index, "ffn_route", DEVICE_HERE);
    TRY(ops_route_experts(&pass->target, &logits, NULL, &ids, &chosen, &routing, pass->err));
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

/* gate and up, of the experts that each slot chose. */
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

static enum status close_down(struct pass *pass, int32_t index)
{
    const struct engine_scratch *scratch = &pass->engine->scratch;
    const struct device_view *weights = pass->engine->layers[index].weights;
    const struct device_view *down = &weights[MODEL_FFN_DOWN_EXPERTS];
    struct device_view gate = slot_rows(pass, &scratch->expert_gate);
    struct device_view up = slot_rows(pass, &scratch->expert_up);
    struct device_view out = slot_rows(pass, &scratch->expert_out);
    struct device_view ids = slot_list(pass, &scratch->expert_ids);
    struct device_view packed = packed_rows(pass, &scratch->expert_packed, down, out.shape.dims[1]);
    struct ops_packing packing = { &packed, down->dtype };
    struct device_view input_weights = slot_list(pass, &scratch->expert_weights);
    struct ops_expert_gate settings = { 0 };
    bool weighs_input = pass->engine->config.experts.weighs_input;
    if (pass->engine->config.experts.clamped)
        settings = (struct ops_expert_gate){ .limit = CLAMP_LIMIT, .alpha = CLAMP_ALPHA };
    pass_label(pass, index, "ffn_experts_gated", DEVICE_HERE);
    TRY(ops_gate_experts(&pass->target, &gate, &up, weighs_input ? &input_weights : NULL, &gate,
                         &packing, &settings, pass->err));
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

enum status pass_feed_experts(struct pass *pass, int32_t index)
{
    const struct engine_scratch *scratch = &pass->engine->scratch;
    bool has_shared = engine_has(&pass->engine->layers[index].weights[MODEL_FFN_SHARED_DOWN]);
    struct device_view shared = engine_rows(&scratch->shared, pass->tokens);
    struct device_view weights = slot_list(pass, &scratch->expert_weights);
    bool weighs_input = pass->engine->config.experts.weighs_input;
    struct device_view out = slot_rows(pass, &scratch->expert_out), gate = { 0 };
    TRY(route(pass, index));
    TRY(open_up(pass, index));
    TRY(close_down(pass, index));
    if (has_shared)
        TRY(run_shared(pass, index, &gate));
    pass_label(pass, index, "ffn_experts_sum", DEVICE_HERE);
    return ops_sum_experts(&pass->target, &out, weighs_input ? NULL : &weights,
                           has_shared ? &shared : NULL, pass_optional(&gate), &pass->added,
                           pass->err);
}
