/* launch.c - turns views and settings into launches: each op's parameters and how many tiles it
 * has. backend.h has what differs between the host and GPUs. */
#include "ops/ops.h"

#include "device/kernel.h"
#include "ops/again.h"
#include "ops/backend.h"
#include "ops/gpu/gpu.h"
#include "ops/host/kernels.h"
#include "ops/launch.h"
#include "ops/params.h"

/* ---- Loading -------------------------------------------------------------------------------- */

struct ops ops_for_budget(enum cpu_path host_path)
{
    return (struct ops){ .host_path = host_path, .backend = &ops_host_backend };
}

enum status ops_load(struct ops *ops, struct device *device, enum cpu_path host_path,
                     struct error *err)
{
    enum cpu_path path = host_path == CPU_PATH_COUNT ? cpu_path_best() : host_path;
    if (device_info(device)->is_gpu) {
        TRY(device_gpu_module_load(device, gpu_kernels_image(), DEVICE_HERE, err));
        *ops = (struct ops){ .device = device, .on_gpu = true, .backend = &ops_gpu_backend };
        return STATUS_OK;
    }
    if (!cpu_path_is_supported(path))
        return error_set(err, STATUS_UNSUPPORTED,
                         "kernels: expected a path this processor has, found %s",
                         cpu_path_name(path));
    TRY(device_module_load(device, host_kernels_image(path), DEVICE_HERE, err));
    *ops = ops_for_budget(path);
    ops->device = device;
    return STATUS_OK;
}

const struct device_gpu_image *ops_gpu_image(void)
{
    return gpu_kernels_image();
}

static uint32_t pack_format(const struct ops *ops, enum dtype weight_dtype, uint64_t k,
                            uint64_t tokens)
{
    return ops->backend->pack_format(ops, weight_dtype, k, tokens);
}

uint64_t ops_packed_row_bytes(const struct ops *ops, enum dtype weight_dtype, uint64_t k,
                              uint64_t tokens)
{
    return ops->backend->packed_row_bytes(pack_format(ops, weight_dtype, k, tokens), k);
}

bool ops_same_packing(const struct ops *ops, enum dtype one, enum dtype other, uint64_t k,
                      uint64_t tokens)
{
    return pack_format(ops, one, k, tokens) == pack_format(ops, other, k, tokens);
}

/* ---- Launching ------------------------------------------------------------------------------ */

enum status ops_launch(const struct ops_target *target, enum ops_op op, const void *params,
                       const struct device_view *const *operands, uint64_t tile_count,
                       struct error *err)
{
    const struct device_contract *contract = ops_contract(op);
    struct device_launch request; /* not cleared: only as many operands as it has are looked at */
    request.contract = contract;
    request.params = params;
    request.operand_count = contract->operand_count;
    request.tile_count = tile_count;
    for (uint8_t i = 0; i < contract->operand_count; i++)
        /* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Branch): as many as it has */
        request.operands[i] = operands[i] ? *operands[i] : (struct device_view){ 0 };
    const struct ops_watch *watch = target->ops->watch;
    if (watch)
        TRY(watch->before(watch->context, target, op, &request, err));
    TRY(device_launch(target->ops->device, target->stream, &request, target->site, err));
    return watch ? watch->after(watch->context, target, op, &request, err) : STATUS_OK;
}

static uint64_t token_tiles(const struct device_view *rows)
{
    return ops_tiles(rows->shape.dims[1], TILE_TOKENS);
}

enum status ops_embed(const struct ops_target *target, const struct device_view *table,
                      const struct device_view *ids, const struct device_view *out,
                      struct error *err)
{
    const struct device_view *operands[EMBED_OPERAND_COUNT] = {
        [EMBED_TABLE] = table, [EMBED_IDS] = ids, [EMBED_OUT] = out
    };
    return ops_launch(target, OPS_EMBED, NULL, operands, token_tiles(out), err);
}

struct params_act_pack ops_packing_params(const struct ops *ops, enum dtype weight_dtype,
                                          const struct device_view *x)
{
    uint64_t k = x->shape.dims[0], tokens = x->shape.dims[1];
    return (struct params_act_pack){ pack_format(ops, weight_dtype, k, tokens),
                                     (uint32_t)ops_packed_row_bytes(ops, weight_dtype, k, tokens) };
}

enum status ops_rms_norm(const struct ops_target *target, const struct device_view *x,
                         const struct device_view *added, const struct device_view *weight,
                         const struct device_view *out, const struct ops_packing *packing,
                         float epsilon, struct error *err)
{
    const struct device_view *operands[RMS_NORM_OPERAND_COUNT] = {
        [RMS_NORM_X] = x,
        [RMS_NORM_ADDED] = added,
        [RMS_NORM_WEIGHT] = weight,
        [RMS_NORM_OUT] = out,
        [RMS_NORM_PACKED] = packing ? packing->packed : NULL
    };
    struct params_norm params = { .epsilon = epsilon };
    if (packing)
        params.packing = ops_packing_params(target->ops, packing->weight_dtype, x);
    return ops_launch(target, OPS_RMS_NORM, &params, operands, token_tiles(x), err);
}

enum status ops_head_norm(const struct ops_target *target, const struct device_view *x,
                          const struct device_view *weight, float epsilon, struct error *err)
{
    const struct device_view *operands[HEAD_NORM_OPERAND_COUNT] = {
        [HEAD_NORM_X] = x, [HEAD_NORM_WEIGHT] = weight
    };
    struct params_norm params = { .epsilon = epsilon };
    return ops_launch(target, OPS_HEAD_NORM, &params, operands, token_tiles(x), err);
}

enum status ops_layer_norm(const struct ops_target *target, const struct device_view *x,
                           const struct device_view *added, const struct device_view *weight,
                           const struct device_view *bias, const struct device_view *out,
                           const struct ops_packing *packing,
                           const struct ops_layer_norm_settings *settings, struct error *err)
{
    const struct device_view *operands[LAYER_NORM_OPERAND_COUNT] = {
        [LAYER_NORM_X] = x,           [LAYER_NORM_ADDED] = added,
        [LAYER_NORM_WEIGHT] = weight, [LAYER_NORM_BIAS] = bias,
        [LAYER_NORM_OUT] = out,       [LAYER_NORM_PACKED] = packing ? packing->packed : NULL
    };
    struct params_layer_norm params = { .epsilon = settings->epsilon, .group = settings->group };
    if (packing)
        params.packing = ops_packing_params(target->ops, packing->weight_dtype, x);
    return ops_launch(target, OPS_LAYER_NORM, &params, operands, token_tiles(x), err);
}

enum status ops_add(const struct ops_target *target, const struct device_view *x,
                    const struct device_view *added, struct error *err)
{
    const struct device_view *operands[ADD_OPERAND_COUNT] = { [ADD_X] = x, [ADD_ADDED] = added };
    return ops_launch(target, OPS_ADD, NULL, operands, token_tiles(x), err);
}

/* A few rows are cut too, so that one token gives work to all threads. */
#define FEW_TILE_COLUMNS (8 * TILE_COLUMN_UNIT)

/* Columns of a tile of such rows, 0: all; and how many tiles the rows make. */
static uint32_t cut_columns(const struct device_view *rows, uint64_t *ret_tiles)
{
    bool few = rows->shape.dims[1] <= TILE_TOKENS && rows->shape.dims[0] > FEW_TILE_COLUMNS;
    *ret_tiles = token_tiles(rows) * (few ? ops_tiles(rows->shape.dims[0], FEW_TILE_COLUMNS) : 1);
    return few ? FEW_TILE_COLUMNS : 0;
}

enum status ops_scale(const struct ops_target *target, const struct device_view *x, float factor,
                      float cap, struct error *err)
{
    const struct device_view *operands[SCALE_OPERAND_COUNT] = { [SCALE_X] = x };
    uint64_t tile_count;
    struct params_scale params = { factor, cap, cut_columns(x, &tile_count) };
    return ops_launch(target, OPS_SCALE, &params, operands, tile_count, err);
}

/* swiglu and gelu. */
static enum status activate(const struct ops_target *target, enum ops_op op,
                            const struct device_view *const *operands,
                            const struct device_view *out, const struct ops_packing *packing,
                            struct error *err)
{
    uint64_t tile_count;
    struct params_swiglu params = { .tile_columns = cut_columns(out, &tile_count) };
    if (packing)
        params.packing = ops_packing_params(target->ops, packing->weight_dtype, out);
    return ops_launch(target, op, &params, operands, tile_count, err);
}

enum status ops_swiglu(const struct ops_target *target, const struct device_view *gate,
                       const struct device_view *up, const struct device_view *out,
                       const struct ops_packing *packing, struct error *err)
{
    const struct device_view *operands[SWIGLU_OPERAND_COUNT] = {
        [SWIGLU_GATE] = gate,
        [SWIGLU_UP] = up,
        [SWIGLU_OUT] = out,
        [SWIGLU_PACKED] = packing ? packing->packed : NULL
    };
    return activate(target, OPS_SWIGLU, operands, out, packing, err);
}

enum status ops_gelu(const struct ops_target *target, const struct device_view *x,
                     const struct device_view *up, const struct device_view *out,
                     const struct ops_packing *packing, struct error *err)
{
    const struct device_view *operands[GELU_OPERAND_COUNT] = { [GELU_X] = x,
                                                               [GELU_UP] = up,
                                                               [GELU_OUT] = out,
                                                               [GELU_PACKED] = packing
                                                                                   ? packing->packed
                                                                                   : NULL };
    return activate(target, OPS_GELU, operands, out, packing, err);
}

enum status ops_gather_rows(const struct ops_target *target, const struct device_view *x,
                            const struct device_view *rows, const struct device_view *out,
                            struct error *err)
{
    const struct device_view *operands[GATHER_ROWS_OPERAND_COUNT] = {
        [GATHER_ROWS_X] = x, [GATHER_ROWS_ROWS] = rows, [GATHER_ROWS_OUT] = out
    };
    return ops_launch(target, OPS_GATHER_ROWS, NULL, operands, token_tiles(out), err);
}

/* ---- Attention ------------------------------------------------------------------------------ */

enum status ops_rope_table(const struct ops_target *target, const struct device_view *factors,
                           const struct device_view *table,
                           const struct ops_rope_settings *settings, struct error *err)
{
    const struct device_view *operands[ROPE_TABLE_OPERAND_COUNT] = {
        [ROPE_TABLE_FACTORS] = factors, [ROPE_TABLE_TABLE] = table
    };
    struct params_rope_table params = { .base = settings->base,
                                        .frequency_scale = settings->frequency_scale,
                                        .attention_factor = settings->attention_factor,
                                        .ext_factor = settings->ext_factor,
                                        .beta_fast = settings->beta_fast,
                                        .beta_slow = settings->beta_slow,
                                        .log_multiplier = settings->log_multiplier,
                                        .original_context_length =
                                            settings->original_context_length,
                                        .yarn = settings->yarn,
                                        .temperature_scale = settings->temperature_scale,
                                        .temperature_length = settings->temperature_length };
    return ops_launch(target, OPS_ROPE_TABLE, &params, operands,
                      ops_tiles(table->shape.dims[1], TILE_POSITIONS), err);
}

enum status ops_rope(const struct ops_target *target, const struct device_view *x,
                     const struct device_view *also, const struct device_view *positions,
                     const struct device_view *table, uint32_t head_dim, bool adjacent,
                     struct error *err)
{
    const struct device_view *operands[ROPE_OPERAND_COUNT] = {
        [ROPE_X] = x, [ROPE_POSITIONS] = positions, [ROPE_TABLE] = table, [ROPE_ALSO] = also
    };
    struct params_rope params = { head_dim, adjacent };
    return ops_launch(target, OPS_ROPE, &params, operands, token_tiles(x), err);
}

enum status ops_kv_append(const struct ops_target *target, const struct device_view *k,
                          const struct device_view *v, const struct device_view *slots,
                          const struct device_view *keys, const struct device_view *values,
                          struct error *err)
{
    const struct device_view *operands[KV_APPEND_OPERAND_COUNT] = { [KV_APPEND_K] = k,
                                                                    [KV_APPEND_V] = v,
                                                                    [KV_APPEND_SLOTS] = slots,
                                                                    [KV_APPEND_KEYS] = keys,
                                                                    [KV_APPEND_VALUES] = values };
    return ops_launch(target, OPS_KV_APPEND, NULL, operands, token_tiles(k), err);
}

enum status ops_attention(const struct ops_target *target, const struct device_view *q,
                          const struct device_view *keys, const struct device_view *values,
                          const struct device_view *starts, const struct device_view *positions,
                          const struct device_view *out, const struct ops_packing *packing,
                          const struct ops_attention_settings *settings, struct error *err)
{
    uint64_t width = q->shape.dims[0], kv_dim = keys->shape.dims[0];
    uint64_t kv_heads = settings->head_dim ? kv_dim / settings->head_dim : 0; /* 0: refused */
    struct params_attention params = { .head_dim = settings->head_dim,
                                       .scale = settings->scale,
                                       .same_sequence = settings->same_sequence,
                                       .window = settings->window,
                                       .cap = settings->cap };
    const struct device_view *packed = NULL;
    if (packing) {
        params.packing = ops_packing_params(target->ops, packing->weight_dtype, q);
        uint64_t group_width = kv_dim ? width / kv_dim * settings->head_dim : 0;
        if (target->ops->backend->attention_packs(params.packing.format, group_width))
            packed = packing->packed;
    }
    const struct device_view *operands[ATTENTION_OPERAND_COUNT] = {
        [ATTENTION_Q] = q,
        [ATTENTION_KEYS] = keys,
        [ATTENTION_VALUES] = values,
        [ATTENTION_STARTS] = starts,
        [ATTENTION_POSITIONS] = positions,
        [ATTENTION_OUT] = out,
        [ATTENTION_PACKED] = packed,
        [ATTENTION_SINKS] = settings->sinks
    };
    uint64_t token_tiles = ops_tiles(q->shape.dims[1], attention_tile_tokens(&params));
    TRY(ops_launch(target, OPS_ATTENTION, &params, operands, token_tiles * kv_heads, err));
    return packing && !packed
               ? ops_act_pack(target, out, packing->packed, packing->weight_dtype, err)
               : STATUS_OK;
}

/* ---- Choosing ------------------------------------------------------------------------------- */

enum status ops_argmax(const struct ops_target *target, const struct device_view *logits,
                       const struct device_view *ids, const struct device_view *next,
                       struct error *err)
{
    const struct device_view *operands[ARGMAX_OPERAND_COUNT] = {
        [ARGMAX_LOGITS] = logits, [ARGMAX_IDS] = ids, [ARGMAX_NEXT] = next
    };
    return ops_launch(target, OPS_ARGMAX, NULL, operands, logits->shape.dims[1], err);
}

enum status ops_top_k(const struct ops_target *target, const struct device_view *logits,
                      const struct device_view *values, const struct device_view *ids,
                      struct error *err)
{
    const struct device_view *operands[TOP_K_OPERAND_COUNT] = {
        [TOP_K_LOGITS] = logits, [TOP_K_VALUES] = values, [TOP_K_IDS] = ids
    };
    return ops_launch(target, OPS_TOP_K, NULL, operands, logits->shape.dims[1], err);
}
