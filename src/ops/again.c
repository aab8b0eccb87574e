/* again.c - runs an op that was launched on one device once more on another, to find how wrong the
 * first result was. Rows are never packed on the way: a matmul packs its plain input itself, as its
 * own device needs it. */
#include "ops/ops.h"

#include "device/kernel.h"
#include "ops/again.h"
#include "ops/params.h"

static const struct device_view *given(const struct device_view *view)
{
    return view->buffer.index ? view : NULL;
}

/* ---- Which operands matter ------------------------------------------------------------------ */

bool ops_packing_operands(enum ops_op op, uint8_t *ret_plain, uint8_t *ret_packed)
{
    static const struct {
        enum ops_op op;
        uint8_t plain, packed;
    } rows[] = { { OPS_RMS_NORM, RMS_NORM_OUT, RMS_NORM_PACKED },
                 { OPS_LAYER_NORM, LAYER_NORM_OUT, LAYER_NORM_PACKED },
                 { OPS_ACT_PACK, ACT_PACK_X, ACT_PACK_PACKED },
                 { OPS_ATTENTION, ATTENTION_OUT, ATTENTION_PACKED },
                 { OPS_SWIGLU, SWIGLU_OUT, SWIGLU_PACKED },
                 { OPS_GELU, GELU_OUT, GELU_PACKED },
                 { OPS_GATE_EXPERTS, GATE_EXPERTS_OUT, GATE_EXPERTS_PACKED } };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (rows[i].op == op) {
            *ret_plain = rows[i].plain;
            *ret_packed = rows[i].packed;
            return true;
        }
    return false;
}

bool ops_packed_input(enum ops_op op, uint8_t *ret_packed)
{
    *ret_packed = op == OPS_MATMUL         ? MATMUL_PACKED
                  : op == OPS_MATMUL_GROUP ? MATMUL_GROUP_PACKED
                                           : MATMUL_EXPERTS_PACKED;
    return op == OPS_MATMUL || op == OPS_MATMUL_GROUP || op == OPS_MATMUL_EXPERTS;
}

bool ops_can_run_again(enum ops_op op)
{
    return op != OPS_ACT_PACK && op != OPS_TOP_K && op != OPS_REPACK;
}

/* ---- Running -------------------------------------------------------------------------------- */

static enum status multiply(const struct ops_target *target, const struct device_view *plain,
                            struct device_view packed, const struct device_view *weights,
                            const struct device_view *bias, const struct device_view *out,
                            struct error *err)
{
    uint64_t k = plain->shape.dims[0], tokens = plain->shape.dims[1];
    uint64_t dims[2] = { ops_packed_row_bytes(target->ops, weights->dtype, k, tokens), tokens };
    packed.dtype = DTYPE_I8;
    packed.shape = shape_make(2, dims);
    packed.row_stride_bytes = 0;
    TRY(ops_act_pack(target, plain, &packed, weights->dtype, err));
    return ops_matmul_group(target, 1, &weights, &packed, &bias, &out, err);
}

static enum status multiply_group(const struct ops_target *target, const struct device_view *o,
                                  const struct device_view *plain, struct error *err)
{
    for (size_t i = 0; i < OPS_GROUP_LIMIT; i++)
        if (given(&o[MATMUL_GROUP_WEIGHTS + i]))
            TRY(multiply(target, plain, o[MATMUL_GROUP_PACKED], &o[MATMUL_GROUP_WEIGHTS + i],
                         given(&o[MATMUL_GROUP_BIASES + i]), &o[MATMUL_GROUP_OUTS + i], err));
    return STATUS_OK;
}

static enum status multiply_experts(const struct ops_target *target, const struct device_view *o,
                                    const struct device_view *plain, struct error *err)
{
    const struct device_view *weights = &o[MATMUL_EXPERTS_WEIGHTS];
    struct device_view packed = o[MATMUL_EXPERTS_PACKED];
    uint64_t dims[2] = { ops_expert_row_bytes(target->ops, weights->dtype, plain->shape.dims[0]),
                         plain->shape.dims[1] };
    packed.dtype = DTYPE_I8;
    packed.shape = shape_make(2, dims);
    packed.row_stride_bytes = 0;
    TRY(ops_pack_for_experts(target, plain, &packed, weights->dtype, err));
    return ops_matmul_experts(target, weights, &packed, given(&o[MATMUL_EXPERTS_BIAS]),
                              &o[MATMUL_EXPERTS_IDS], &o[MATMUL_EXPERTS_OUT], err);
}

/* The ops of experts but their matmul. */
static enum status run_experts(const struct ops_target *target, enum ops_op op, const void *params,
                               const struct device_view *o, struct error *err)
{
    const struct params_route_experts *route = params;
    const struct params_gate_experts *gate = params;
    if (op == OPS_ROUTE_EXPERTS) {
        struct ops_routing routing = { .score = route->sigmoid ? OPS_SCORE_SIGMOID
                                                               : OPS_SCORE_SOFTMAX,
                                       .normalise = route->normalise != 0,
                                       .weight_scale = route->weight_scale,
                                       .group_count = route->group_count,
                                       .groups_used = route->groups_used };
        return ops_route_experts(target, &o[ROUTE_EXPERTS_LOGITS], given(&o[ROUTE_EXPERTS_BIAS]),
                                 &o[ROUTE_EXPERTS_IDS], &o[ROUTE_EXPERTS_WEIGHTS], &routing, err);
    }
    if (op == OPS_GATE_EXPERTS)
        return ops_gate_experts(target, &o[GATE_EXPERTS_GATE], &o[GATE_EXPERTS_UP],
                                given(&o[GATE_EXPERTS_WEIGHTS]), &o[GATE_EXPERTS_OUT], NULL,
                                &(struct ops_expert_gate){ gate->limit, gate->alpha }, err);
    return ops_sum_experts(target, &o[SUM_EXPERTS_X], given(&o[SUM_EXPERTS_WEIGHTS]),
                           given(&o[SUM_EXPERTS_SHARED]), given(&o[SUM_EXPERTS_SHARED_GATE]),
                           &o[SUM_EXPERTS_OUT], err);
}

static enum status make_rope_table(const struct ops_target *target, const struct device_view *o,
                                   const struct params_rope_table *p, struct error *err)
{
    struct ops_rope_settings settings = { .base = p->base,
                                          .frequency_scale = p->frequency_scale,
                                          .attention_factor = p->attention_factor,
                                          .ext_factor = p->ext_factor,
                                          .beta_fast = p->beta_fast,
                                          .beta_slow = p->beta_slow,
                                          .log_multiplier = p->log_multiplier,
                                          .original_context_length = p->original_context_length,
                                          .yarn = p->yarn != 0,
                                          .temperature_scale = p->temperature_scale,
                                          .temperature_length = p->temperature_length };
    return ops_rope_table(target, given(&o[ROPE_TABLE_FACTORS]), &o[ROPE_TABLE_TABLE], &settings,
                          err);
}

static enum status normalise_layer(const struct ops_target *target, const struct device_view *o,
                                   const struct params_layer_norm *p, struct error *err)
{
    struct ops_layer_norm_settings settings = { .epsilon = p->epsilon, .group = p->group };
    return ops_layer_norm(target, &o[LAYER_NORM_X], given(&o[LAYER_NORM_ADDED]),
                          &o[LAYER_NORM_WEIGHT], given(&o[LAYER_NORM_BIAS]), &o[LAYER_NORM_OUT],
                          NULL, &settings, err);
}

static enum status attend(const struct ops_target *target, const struct device_view *o,
                          const struct params_attention *p, struct error *err)
{
    struct ops_attention_settings settings = { .head_dim = p->head_dim,
                                               .scale = p->scale,
                                               .same_sequence = p->same_sequence != 0,
                                               .window = p->window,
                                               .cap = p->cap,
                                               .sinks = given(&o[ATTENTION_SINKS]) };
    return ops_attention(target, &o[ATTENTION_Q], &o[ATTENTION_KEYS], &o[ATTENTION_VALUES],
                         &o[ATTENTION_STARTS], &o[ATTENTION_POSITIONS], &o[ATTENTION_OUT], NULL,
                         &settings, err);
}

enum status ops_run_again(const struct ops_target *target, enum ops_op op, const void *params,
                          const struct device_view *o, const struct device_view *plain,
                          struct error *err)
{
    const struct params_norm *norm = params;
    const struct params_rope *rope = params;
    const struct params_scale *scale = params;
    switch (op) {
    case OPS_EMBED:
        return ops_embed(target, &o[EMBED_TABLE], &o[EMBED_IDS], &o[EMBED_OUT], err);
    case OPS_RMS_NORM:
        return ops_rms_norm(target, &o[RMS_NORM_X], given(&o[RMS_NORM_ADDED]), &o[RMS_NORM_WEIGHT],
                            &o[RMS_NORM_OUT], NULL, norm->epsilon, err);
    case OPS_HEAD_NORM:
        return ops_head_norm(target, &o[HEAD_NORM_X], &o[HEAD_NORM_WEIGHT], norm->epsilon, err);
    case OPS_LAYER_NORM:
        return normalise_layer(target, o, params, err);
    case OPS_MATMUL:
        return multiply(target, plain, o[MATMUL_PACKED], &o[MATMUL_WEIGHTS], given(&o[MATMUL_BIAS]),
                        &o[MATMUL_OUT], err);
    case OPS_MATMUL_GROUP:
        return multiply_group(target, o, plain, err);
    case OPS_ROPE_TABLE:
        return make_rope_table(target, o, params, err);
    case OPS_ROPE:
        return ops_rope(target, &o[ROPE_X], given(&o[ROPE_ALSO]), &o[ROPE_POSITIONS],
                        &o[ROPE_TABLE], rope->head_dim, rope->adjacent != 0, err);
    case OPS_KV_APPEND:
        return ops_kv_append(target, &o[KV_APPEND_K], &o[KV_APPEND_V], &o[KV_APPEND_SLOTS],
                             &o[KV_APPEND_KEYS], &o[KV_APPEND_VALUES], err);
    case OPS_ATTENTION:
        return attend(target, o, params, err);
    case OPS_SWIGLU:
        return ops_swiglu(target, &o[SWIGLU_GATE], &o[SWIGLU_UP], &o[SWIGLU_OUT], NULL, err);
    case OPS_GELU:
        return ops_gelu(target, &o[GELU_X], given(&o[GELU_UP]), &o[GELU_OUT], NULL, err);
    case OPS_SCALE:
        return ops_scale(target, &o[SCALE_X], scale->factor, scale->cap, err);
    case OPS_ADD:
        return ops_add(target, &o[ADD_X], &o[ADD_ADDED], err);
    case OPS_GATHER_ROWS:
        return ops_gather_rows(target, &o[GATHER_ROWS_X], &o[GATHER_ROWS_ROWS], &o[GATHER_ROWS_OUT],
                               err);
    case OPS_ARGMAX:
        return ops_argmax(target, &o[ARGMAX_LOGITS], &o[ARGMAX_IDS], given(&o[ARGMAX_NEXT]), err);
    case OPS_MATMUL_EXPERTS:
        return multiply_experts(target, o, plain, err);
    case OPS_ROUTE_EXPERTS:
    case OPS_GATE_EXPERTS:
    case OPS_SUM_EXPERTS:
        return run_experts(target, op, params, o, err);
    case OPS_ACT_PACK:
    case OPS_TOP_K:
    case OPS_REPACK:
    case OPS_COUNT:
        break;
    }
    return error_set(err, STATUS_UNSUPPORTED, "%s: cannot be run again on another device",
                     op < OPS_COUNT ? ops_contract(op)->name : "?");
}

/* ---- How far two devices may differ --------------------------------------------------------- */

/* Matmul: activations are rounded on their way in, on each device in its own way (docs/ops.md): to
 * 8 bits for some types, to 11 for others in large batches. */
static double matmul_tolerance(enum dtype weights)
{
    switch (weights) {
    case DTYPE_F32:
        return 1e-4;
    case DTYPE_F16:
    case DTYPE_Q4_1:
    case DTYPE_Q5_0:
    case DTYPE_Q5_1:
    case DTYPE_Q2_K:
    case DTYPE_Q3_K:
    case DTYPE_IQ4_NL:
    case DTYPE_IQ4_XS:
    case DTYPE_MXFP4:
        return 1e-2;
    default: /* 8-bit activations, and bf16's */
        return 4e-2;
    }
}

double ops_tolerance(enum ops_op op, enum dtype dtype)
{
    switch (op) {
    case OPS_MATMUL:
    case OPS_MATMUL_GROUP:
    case OPS_MATMUL_EXPERTS:
        return matmul_tolerance(dtype);
    case OPS_KV_APPEND: /* a quant of a block may be rounded the other way */
        return dtype == DTYPE_Q8_0 ? 1e-2 : 0;
    case OPS_ROPE_TABLE: /* of large angles */
        return 1e-3;
    case OPS_ATTENTION: /* matrix units take queries and weights of values as halves */
        return 1e-2;
    case OPS_RMS_NORM:
    case OPS_HEAD_NORM:
    case OPS_LAYER_NORM:
    case OPS_ROPE:
    case OPS_SWIGLU:
    case OPS_GELU:
    case OPS_SCALE:
        return 2e-5;
    default: /* the same bits, route_experts too (ops/routing.h) */
        return 0;
    }
}
