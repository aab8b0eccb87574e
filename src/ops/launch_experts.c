/* launch_experts.c - launches of the ops of experts: see launch.c. */
#include "ops/backend.h"
#include "ops/launch.h"

/* ---- Routing -------------------------------------------------------------------------------- */

enum status ops_route_experts(const struct ops_target *target, const struct device_view *logits,
                              const struct device_view *bias, const struct device_view *ids,
                              const struct device_view *weights, const struct ops_routing *routing,
                              struct error *err)
{
    const struct device_view *operands[ROUTE_EXPERTS_OPERAND_COUNT] = {
        [ROUTE_EXPERTS_LOGITS] = logits,
        [ROUTE_EXPERTS_BIAS] = bias,
        [ROUTE_EXPERTS_IDS] = ids,
        [ROUTE_EXPERTS_WEIGHTS] = weights
    };
    bool groups = routing->group_count > 1;
    struct params_route_experts params = { .sigmoid = routing->score == OPS_SCORE_SIGMOID,
                                           .normalise = routing->normalise,
                                           .weight_scale = routing->weight_scale,
                                           .group_count = groups ? routing->group_count : 1,
                                           .groups_used = groups ? routing->groups_used : 1 };
    return ops_launch(target, OPS_ROUTE_EXPERTS, &params, operands,
                      ops_tiles(logits->shape.dims[1], TILE_TOKENS), err);
}

/* ---- Matmul --------------------------------------------------------------------------------- */

/* However many there are, rows for experts are packed as one token is. */
#define FORMAT_TOKENS 1u

uint64_t ops_expert_row_bytes(const struct ops *ops, enum dtype weight_dtype, uint64_t k)
{
    return ops_packed_row_bytes(ops, weight_dtype, k, FORMAT_TOKENS);
}

bool ops_same_expert_packing(const struct ops *ops, enum dtype one, enum dtype other, uint64_t k)
{
    return ops_same_packing(ops, one, other, k, FORMAT_TOKENS);
}

static struct params_act_pack expert_packing(const struct ops *ops, enum dtype weight_dtype,
                                             const struct device_view *x)
{
    struct device_view one = *x;
    one.shape.dims[1] = FORMAT_TOKENS;
    return ops_packing_params(ops, weight_dtype, &one);
}

enum status ops_pack_for_experts(const struct ops_target *target, const struct device_view *x,
                                 const struct device_view *packed, enum dtype weight_dtype,
                                 struct error *err)
{
    const struct device_view *operands[ACT_PACK_OPERAND_COUNT] = {
        [ACT_PACK_X] = x, [ACT_PACK_PACKED] = packed
    };
    struct params_act_pack params = expert_packing(target->ops, weight_dtype, x);
    return ops_launch(target, OPS_ACT_PACK, &params, operands,
                      ops_tiles(x->shape.dims[1], TILE_TOKENS), err);
}

enum status ops_matmul_experts(const struct ops_target *target, const struct device_view *weights,
                               const struct device_view *packed, const struct device_view *bias,
                               const struct device_view *ids, const struct device_view *out,
                               struct error *err)
{
    const struct device_view *operands[MATMUL_EXPERTS_OPERAND_COUNT] = {
        [MATMUL_EXPERTS_PACKED] = packed,
        [MATMUL_EXPERTS_WEIGHTS] = weights,
        [MATMUL_EXPERTS_BIAS] = bias,
        [MATMUL_EXPERTS_IDS] = ids,
        [MATMUL_EXPERTS_OUT] = out
    };
    const struct ops_backend *backend = target->ops->backend;
    uint64_t k = weights->shape.dims[0], rows = out->shape.dims[0], slots = out->shape.dims[1];
    uint64_t experts = rows ? weights->shape.dims[1] / rows : 0; /* 0: refused */
    /* With more slots than experts, some share one: then a tile does all slots of an expert. */
    bool by_expert = slots > experts;
    struct params_matmul one = backend->cut_matmul(target->ops, weights->dtype, k, FORMAT_TOKENS);
    struct params_matmul_experts params = { .cut = one, .by_expert = by_expert };
    if (by_expert) {
        params.cut = backend->cut_matmul(target->ops, weights->dtype, k, UINT32_MAX);
        params.cut.packed_row_bytes = one.packed_row_bytes;
    }
    uint64_t tile_count = ops_tiles(rows, params.cut.tile_rows) * (by_expert ? experts : slots);
    return ops_launch(target, OPS_MATMUL_EXPERTS, &params, operands, tile_count, err);
}

/* ---- Before and after ----------------------------------------------------------------------- */

enum status ops_gate_experts(const struct ops_target *target, const struct device_view *gate,
                             const struct device_view *up, const struct device_view *weights,
                             const struct device_view *out, const struct ops_packing *packing,
                             const struct ops_expert_gate *settings, struct error *err)
{
    const struct device_view *operands[GATE_EXPERTS_OPERAND_COUNT] = {
        [GATE_EXPERTS_GATE] = gate,
        [GATE_EXPERTS_UP] = up,
        [GATE_EXPERTS_WEIGHTS] = weights,
        [GATE_EXPERTS_OUT] = out,
        [GATE_EXPERTS_PACKED] = packing ? packing->packed : NULL
    };
    struct params_gate_experts params = { .limit = settings->limit, .alpha = settings->alpha };
    if (packing)
        params.packing = expert_packing(target->ops, packing->weight_dtype, out);
    return ops_launch(target, OPS_GATE_EXPERTS, &params, operands,
                      ops_tiles(out->shape.dims[1], TILE_TOKENS), err);
}

enum status ops_sum_experts(const struct ops_target *target, const struct device_view *x,
                            const struct device_view *weights, const struct device_view *shared,
                            const struct device_view *shared_gate, const struct device_view *out,
                            struct error *err)
{
    const struct device_view *operands[SUM_EXPERTS_OPERAND_COUNT] = {
        [SUM_EXPERTS_X] = x,
        [SUM_EXPERTS_WEIGHTS] = weights,
        [SUM_EXPERTS_SHARED] = shared,
        [SUM_EXPERTS_SHARED_GATE] = shared_gate,
        [SUM_EXPERTS_OUT] = out
    };
    return ops_launch(target, OPS_SUM_EXPERTS, NULL, operands,
                      ops_tiles(out->shape.dims[1], TILE_TOKENS), err);
}
