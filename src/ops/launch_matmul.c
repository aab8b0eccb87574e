/* launch_matmul.c - launches of matmuls, and what prepares their operands: see launch.c. */
#include "ops/backend.h"
#include "ops/launch.h"

/* ---- Matmul --------------------------------------------------------------------------------- */

enum status ops_act_pack(const struct ops_target *target, const struct device_view *x,
                         const struct device_view *packed, enum dtype weight_dtype,
                         struct error *err)
{
    const struct device_view *operands[ACT_PACK_OPERAND_COUNT] = {
        [ACT_PACK_X] = x, [ACT_PACK_PACKED] = packed
    };
    struct params_act_pack params = ops_packing_params(target->ops, weight_dtype, x);
    return ops_launch(target, OPS_ACT_PACK, &params, operands,
                      ops_tiles(x->shape.dims[1], TILE_TOKENS), err);
}

static struct params_matmul cut_matmul(const struct ops *ops, const struct device_view *weights,
                                       uint64_t tokens)
{
    return ops->backend->cut_matmul(ops, weights->dtype, weights->shape.dims[0], tokens);
}

static uint64_t matmul_tiles(const struct params_matmul *params, const struct device_view *out)
{
    return ops_tiles(out->shape.dims[0], params->tile_rows) *
           ops_tiles(out->shape.dims[1], params->tile_tokens);
}

enum status ops_matmul(const struct ops_target *target, const struct device_view *weights,
                       const struct device_view *packed, const struct device_view *bias,
                       const struct device_view *out, struct error *err)
{
    const struct device_view *operands[MATMUL_OPERAND_COUNT] = { [MATMUL_WEIGHTS] = weights,
                                                                 [MATMUL_PACKED] = packed,
                                                                 [MATMUL_BIAS] = bias,
                                                                 [MATMUL_OUT] = out };
    struct params_matmul params = cut_matmul(target->ops, weights, out->shape.dims[1]);
    return ops_launch(target, OPS_MATMUL, &params, operands, matmul_tiles(&params, out), err);
}

enum status ops_matmul_group(const struct ops_target *target, size_t count,
                             const struct device_view *const *weights,
                             const struct device_view *packed,
                             const struct device_view *const *biases,
                             const struct device_view *const *outs, struct error *err)
{
    ASSERT(count > 0 && count <= OPS_GROUP_LIMIT);
    const struct device_view *operands[MATMUL_GROUP_OPERAND_COUNT] = { [MATMUL_GROUP_PACKED] =
                                                                           packed };
    struct params_matmul_group params = { 0 };
    uint64_t tile_count = 0;
    for (size_t i = 0; i < count; i++) {
        operands[MATMUL_GROUP_WEIGHTS + i] = weights[i];
        operands[MATMUL_GROUP_BIASES + i] = biases ? biases[i] : NULL;
        operands[MATMUL_GROUP_OUTS + i] = outs[i];
        params.parts[i] = cut_matmul(target->ops, weights[i], outs[i]->shape.dims[1]);
        tile_count += matmul_tiles(&params.parts[i], outs[i]);
    }
    return ops_launch(target, OPS_MATMUL_GROUP, &params, operands, tile_count, err);
}

/* ---- Weights -------------------------------------------------------------------------------- */

enum dtype ops_weight_dtype(const struct ops *ops, enum dtype dtype, uint64_t k)
{
    return ops->backend->weight_dtype(dtype, k);
}

enum status ops_repack(const struct ops_target *target, const struct device_view *source,
                       const struct device_view *repacked, struct error *err)
{
    const struct device_view *operands[REPACK_OPERAND_COUNT] = {
        [REPACK_SOURCE] = source, [REPACK_TARGET] = repacked
    };
    return ops_launch(target, OPS_REPACK, NULL, operands, source->shape.dims[1], err);
}
