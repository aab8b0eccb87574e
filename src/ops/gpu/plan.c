/* plan.c - how each op is done on a GPU: which kernel, how many blocks, how much shared memory. The
 * kernels' files say what a block does. Attention is in plan_attention.c, matmuls are in
 * plan_matmul.c and the files it names. */
#include "ops/gpu/gpu.h"

#include "base/size.h"

#include "ops/contract.h"
#include "ops/gpu/packing.h"
#include "ops/gpu/plan.h"
#include "ops/gpu/plan_impl.h"
#include "ops/gpu/tiling.h"
#include "ops/params.h"

static const char *const kernel_names[] = {
#define GPU_KERNEL(name, arguments, operands) #name,
#include "ops/gpu/kernels.def"
#undef GPU_KERNEL
};

/* The device layer's kernels have no operands. */
#define DEVICE_OPERAND_COUNT 0

const struct plan_kernel plan_kernels[KERNEL_COUNT] = {
#define GPU_KERNEL(name, arguments, operands) { ARGS_##arguments, operands##_OPERAND_COUNT },
#include "ops/gpu/kernels.def"
#undef GPU_KERNEL
};

#define GPU_KERNEL(name, arguments, operands)                                                      \
    _Static_assert(operands##_OPERAND_COUNT <= GPU_OPERAND_LIMIT, #name ": too many operands");
#include "ops/gpu/kernels.def"
#undef GPU_KERNEL

uint32_t plan_values(enum gpu_kernel kernel, uint64_t width, uint64_t rows,
                     struct device_gpu_step *steps)
{
    if (width == 0 || rows == 0)
        return 0;
    ASSERT(rows <= GRID_Y_LIMIT);
    steps[0] = step_of(kernel, divide_up(width, VALUE_THREADS), rows, VALUE_THREADS);
    return 1;
}

static uint32_t plan_embed(const struct device_gpu_request *request, struct device_gpu_step *steps)
{
    const struct device_host_operand *out = &request->operands[EMBED_OUT];
    return plan_values(KERNEL_embed, width_of(out), rows_of(out), steps);
}

static uint32_t plan_gather_rows(const struct device_gpu_request *request,
                                 struct device_gpu_step *steps)
{
    const struct device_host_operand *out = &request->operands[GATHER_ROWS_OUT];
    return plan_values(KERNEL_gather_rows, width_of(out), rows_of(out), steps);
}

static uint32_t plan_add(const struct device_gpu_request *request, struct device_gpu_step *steps)
{
    const struct device_host_operand *x = &request->operands[ADD_X];
    return plan_values(KERNEL_add, width_of(x), rows_of(x), steps);
}

struct device_gpu_step plan_halves(uint8_t x, uint8_t packed, uint32_t format, uint64_t rows)
{
    struct device_gpu_step step = step_of(KERNEL_pack_halves, rows, 1, VALUE_THREADS);
    step.operands[ACT_PACK_X] = x;
    step.operands[ACT_PACK_PACKED] = packed;
    set_pack_halves_args(&step, (struct pack_halves_args){ .format = format });
    step.shared_bytes = WARP * sizeof(float);
    return step;
}

static uint32_t plan_swiglu(const struct device_gpu_request *request, struct device_gpu_step *steps)
{
    const struct device_host_operand *out = &request->operands[SWIGLU_OUT];
    const struct params_swiglu *params = request->params;
    uint32_t count = plan_values(KERNEL_swiglu, width_of(out), rows_of(out), steps);
    if (!count || !request->operands[SWIGLU_PACKED].data || !pack_is_halves(params->packing.format))
        return count;
    bool by_four = width_of(out) % 4 == 0;
    for (uint32_t i = 0; i < SWIGLU_OPERAND_COUNT; i++)
        by_four = by_four && is_aligned(&request->operands[i]);
    if (by_four) {
        steps[0] = step_of(KERNEL_swiglu_halves, rows_of(out), 1,
                           min_u64(request->chip->thread_limit, 512));
        set_pack_halves_args(&steps[0],
                             (struct pack_halves_args){ .format = params->packing.format });
        steps[0].shared_bytes = WARP * sizeof(float);
        return 1;
    }
    steps[0].operands[SWIGLU_PACKED] = DEVICE_GPU_ABSENT;
    steps[1] = plan_halves(SWIGLU_OUT, SWIGLU_PACKED, params->packing.format, rows_of(out));
    return 2;
}

static uint32_t plan_gelu(const struct device_gpu_request *request, struct device_gpu_step *steps)
{
    const struct device_host_operand *out = &request->operands[GELU_OUT];
    const struct params_swiglu *params = request->params;
    uint32_t count = plan_values(KERNEL_gelu, width_of(out), rows_of(out), steps);
    if (!count || !request->operands[GELU_PACKED].data || !pack_is_halves(params->packing.format))
        return count;
    steps[0].operands[GELU_PACKED] = DEVICE_GPU_ABSENT;
    steps[1] = plan_halves(GELU_OUT, GELU_PACKED, params->packing.format, rows_of(out));
    return 2;
}

static uint32_t plan_scale(const struct device_gpu_request *request, struct device_gpu_step *steps)
{
    const struct device_host_operand *x = &request->operands[SCALE_X];
    return plan_values(KERNEL_scale, width_of(x), rows_of(x), steps);
}

static uint32_t plan_act_pack(const struct device_gpu_request *request,
                              struct device_gpu_step *steps)
{
    const struct device_host_operand *x = &request->operands[ACT_PACK_X];
    const struct params_act_pack *params = request->params;
    if (pack_is_halves(params->format)) {
        steps[0] = plan_halves(ACT_PACK_X, ACT_PACK_PACKED, params->format, rows_of(x));
        return rows_of(x) > 0;
    }
    return plan_values(KERNEL_act_pack, width_of(x), rows_of(x), steps);
}

uint32_t plan_kv_append(const struct device_gpu_request *request, struct device_gpu_step *steps)
{
    const struct device_host_operand *k = &request->operands[KV_APPEND_K];
    return plan_values(KERNEL_kv_append, width_of(k), rows_of(k), steps);
}

static uint32_t plan_rms_norm(const struct device_gpu_request *request,
                              struct device_gpu_step *steps)
{
    const struct device_host_operand *x = &request->operands[RMS_NORM_X];
    const struct params_norm *params = request->params;
    bool halves = request->operands[RMS_NORM_PACKED].data && pack_is_halves(params->packing.format);
    if (rows_of(x) == 0)
        return 0;
    bool by_four = width_of(x) % 4 == 0;
    for (uint32_t i = 0; i < RMS_NORM_OPERAND_COUNT; i++)
        by_four = by_four && is_aligned(&request->operands[i]);
    if (halves && by_four) {
        steps[0] = step_of(KERNEL_rms_norm_halves, rows_of(x), 1, VALUE_THREADS);
        set_pack_halves_args(&steps[0],
                             (struct pack_halves_args){ .format = params->packing.format });
        steps[0].shared_bytes = WARP * sizeof(float);
        return 1;
    }
    /* By four, each thread has two fours: so small a block shares an SM with one of a matmul. */
    uint64_t threads = divide_up(width_of(x), by_four ? 8 * WARP : WARP) * WARP;
    uint32_t most = request->chip->thread_limit;
    steps[0] = step_of(by_four ? KERNEL_rms_norm_by_four : KERNEL_rms_norm, rows_of(x), 1,
                       threads < most ? (uint32_t)threads : most);
    steps[0].shared_bytes = WARP * sizeof(float);
    if (!halves)
        return 1;
    steps[0].operands[RMS_NORM_PACKED] = DEVICE_GPU_ABSENT;
    steps[1] = plan_halves(RMS_NORM_OUT, RMS_NORM_PACKED, params->packing.format, rows_of(x));
    return 2;
}

static uint32_t plan_head_norm(const struct device_gpu_request *request,
                               struct device_gpu_step *steps)
{
    const struct device_host_operand *x = &request->operands[HEAD_NORM_X];
    uint64_t heads = width_of(x) / width_of(&request->operands[HEAD_NORM_WEIGHT]);
    if (rows_of(x) == 0)
        return 0;
    ASSERT(rows_of(x) <= GRID_Y_LIMIT);
    steps[0] = step_of(KERNEL_head_norm, divide_up(heads, WARPS_OF_VALUES), rows_of(x),
                       VALUE_THREADS);
    return 1;
}

static uint32_t plan_layer_norm(const struct device_gpu_request *request,
                                struct device_gpu_step *steps)
{
    const struct device_host_operand *x = &request->operands[LAYER_NORM_X];
    const struct params_layer_norm *params = request->params;
    uint64_t group = params->group ? params->group : width_of(x);
    if (rows_of(x) == 0 || group == 0)
        return 0;
    uint64_t groups = width_of(x) / group, threads = divide_up(group, WARP) * WARP;
    ASSERT(groups <= GRID_Y_LIMIT);
    steps[0] = step_of(KERNEL_layer_norm, rows_of(x), groups,
                       threads < VALUE_THREADS ? (uint32_t)threads : VALUE_THREADS);
    steps[0].shared_bytes = WARP * sizeof(float);
    if (!request->operands[LAYER_NORM_PACKED].data || !pack_is_halves(params->packing.format))
        return 1;
    steps[0].operands[LAYER_NORM_PACKED] = DEVICE_GPU_ABSENT;
    steps[1] = plan_halves(LAYER_NORM_OUT, LAYER_NORM_PACKED, params->packing.format, rows_of(x));
    return 2;
}

static uint32_t plan_rope_table(const struct device_gpu_request *request,
                                struct device_gpu_step *steps)
{
    const struct device_host_operand *table = &request->operands[ROPE_TABLE_TABLE];
    uint64_t pairs = width_of(table) / 2, tiles = divide_up(rows_of(table), TILE_POSITIONS);
    if (pairs == 0 || tiles == 0)
        return 0;
    ASSERT(tiles <= GRID_Y_LIMIT);
    steps[0] = step_of(KERNEL_rope_table, divide_up(pairs, VALUE_THREADS), tiles, VALUE_THREADS);
    return 1;
}

uint32_t plan_rope(const struct device_gpu_request *request, struct device_gpu_step *steps)
{
    const struct params_rope *params = request->params;
    const struct device_host_operand *x = &request->operands[ROPE_X],
                                     *also = &request->operands[ROPE_ALSO];
    uint64_t heads = width_of(x) / params->head_dim;
    if (also->data)
        heads += width_of(also) / params->head_dim;
    return plan_values(KERNEL_rope, heads * (width_of(&request->operands[ROPE_TABLE]) / 2),
                       rows_of(x), steps);
}

/* Values worth a block, and blocks of a row. */
#define ARGMAX_BLOCK_VALUES 2048u
#define ARGMAX_BLOCKS_MOST 64u

static uint32_t plan_argmax(const struct device_gpu_request *request, struct device_gpu_step *steps)
{
    const struct device_host_operand *logits = &request->operands[ARGMAX_LOGITS];
    uint64_t rows = rows_of(logits);
    ASSERT(rows <= GRID_Y_LIMIT);
    uint64_t blocks = divide_up(width_of(logits), ARGMAX_BLOCK_VALUES);
    steps[0] = step_of(KERNEL_argmax, min_u64(blocks, ARGMAX_BLOCKS_MOST), rows, VALUE_THREADS);
    steps[0].shared_bytes = WARP * sizeof(uint64_t);
    return rows > 0 && blocks > 0;
}

static uint32_t plan_top_k(const struct device_gpu_request *request, struct device_gpu_step *steps)
{
    steps[0] = step_of(KERNEL_top_k, rows_of(&request->operands[TOP_K_LOGITS]), 1,
                       request->chip->thread_limit);
    steps[0].shared_bytes = WARP * sizeof(uint64_t);
    return steps[0].grid_x > 0;
}

static uint32_t plan_repack(const struct device_gpu_request *request, struct device_gpu_step *steps)
{
    const struct device_host_operand *target = &request->operands[REPACK_TARGET];
    uint64_t rows = rows_of(target);
    if (rows == 0 || width_of(target) == 0)
        return 0;
    uint64_t grid_y = min_u64(rows, GRID_Y_LIMIT);
    steps[0] = step_of(KERNEL_repack, divide_up(target->row_stride_bytes, 2 * VALUE_THREADS),
                       grid_y, VALUE_THREADS);
    set_repack_args(&steps[0], (struct repack_args){ .row_step = (uint32_t)grid_y });
    return 1;
}

/* ---- The image ------------------------------------------------------------------------------ */

static const struct device_gpu_entry entries[] = {
    { &ops_contracts[OPS_EMBED], plan_embed },
    { &ops_contracts[OPS_RMS_NORM], plan_rms_norm },
    { &ops_contracts[OPS_HEAD_NORM], plan_head_norm },
    { &ops_contracts[OPS_LAYER_NORM], plan_layer_norm },
    { &ops_contracts[OPS_ACT_PACK], plan_act_pack },
    { &ops_contracts[OPS_MATMUL], plan_matmul },
    { &ops_contracts[OPS_MATMUL_GROUP], plan_matmul_group },
    { &ops_contracts[OPS_ROPE_TABLE], plan_rope_table },
    { &ops_contracts[OPS_ROPE], plan_rope },
    { &ops_contracts[OPS_KV_APPEND], plan_kv_append },
    { &ops_contracts[OPS_ATTENTION], plan_attention },
    { &ops_contracts[OPS_SWIGLU], plan_swiglu },
    { &ops_contracts[OPS_GELU], plan_gelu },
    { &ops_contracts[OPS_SCALE], plan_scale },
    { &ops_contracts[OPS_ADD], plan_add },
    { &ops_contracts[OPS_GATHER_ROWS], plan_gather_rows },
    { &ops_contracts[OPS_ARGMAX], plan_argmax },
    { &ops_contracts[OPS_TOP_K], plan_top_k },
    { &ops_contracts[OPS_REPACK], plan_repack },
    { &ops_contracts[OPS_ROUTE_EXPERTS], plan_route_experts },
    { &ops_contracts[OPS_MATMUL_EXPERTS], plan_matmul_experts },
    { &ops_contracts[OPS_GATE_EXPERTS], plan_gate_experts },
    { &ops_contracts[OPS_SUM_EXPERTS], plan_sum_experts },
};

const struct device_gpu_image *gpu_kernels_image(void)
{
    static const struct device_gpu_image image = {
        .entries = entries,
        .count = COUNT_OF(entries),
        .codes = gpu_codes,
        .kernels = kernel_names,
        .kernel_count = COUNT_OF(kernel_names),
        .join = plan_join,
    };
    return &image;
}
