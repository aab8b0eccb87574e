/* plan_experts.c - how the ops of experts are done on a GPU. */
#include "base/size.h"

#include "ops/gpu/gpu.h"
#include "ops/gpu/plan_impl.h"
#include "ops/gpu/tiling.h"

uint32_t plan_route_experts(const struct device_gpu_request *request, struct device_gpu_step *steps)
{
    const struct device_host_operand *logits = &request->operands[ROUTE_EXPERTS_LOGITS];
    const struct params_route_experts *params = request->params;
    steps[0] = step_of(KERNEL_route_experts, rows_of(logits), 1, WARP);
    steps[0].shared_bytes = (uint32_t)width_of(logits) *
                                (uint32_t)(sizeof(uint64_t) + sizeof(float)) +
                            params->group_count * (uint32_t)sizeof(uint64_t);
    return rows_of(logits) > 0;
}

/* A thread for each value of a row. Where there are more rows than the grid's second dimension can
 * count, a row of blocks does several. */
static uint32_t plan_rows(enum gpu_kernel kernel, const struct device_host_operand *out,
                          struct device_gpu_step *steps)
{
    if (width_of(out) == 0 || rows_of(out) == 0)
        return 0;
    uint64_t grid_y = min_u64(rows_of(out), GRID_Y_LIMIT);
    steps[0] = step_of(kernel, divide_up(width_of(out), VALUE_THREADS), grid_y, VALUE_THREADS);
    set_experts_args(&steps[0], (struct experts_args){ .row_step = (uint32_t)grid_y });
    return 1;
}

uint32_t plan_gate_experts(const struct device_gpu_request *request, struct device_gpu_step *steps)
{
    return plan_rows(KERNEL_gate_experts, &request->operands[GATE_EXPERTS_OUT], steps);
}

uint32_t plan_sum_experts(const struct device_gpu_request *request, struct device_gpu_step *steps)
{
    return plan_rows(KERNEL_sum_experts, &request->operands[SUM_EXPERTS_OUT], steps);
}

/* ---- Matmul --------------------------------------------------------------------------------- */

/* Rows of weights that a warp does one after the other, at least, so that its ring is of use. */
#define GROUPS_OF_WARP 2u

uint32_t plan_matmul_experts(const struct device_gpu_request *request,
                             struct device_gpu_step *steps)
{
    const struct device_host_operand *weights = &request->operands[MATMUL_EXPERTS_WEIGHTS],
                                     *out = &request->operands[MATMUL_EXPERTS_OUT];
    const struct device_gpu_chip *chip = request->chip;
    uint64_t rows = width_of(out), slots = rows_of(out);
    uint32_t dtype = (uint32_t)weights->dtype;
    if (rows == 0 || slots == 0)
        return 0;
    struct matmul_experts_args args = { .format = gpu_pack_format(chip->features, weights->dtype,
                                                                  width_of(weights), 1) };
    ASSERT(args.format == PACK_F32 || args.format == PACK_QUANTS);
    uint64_t blocks = divide_up(rows, WARPS_OF_VALUES);
    enum gpu_kernel kernel = KERNEL_matmul_experts_decoded;
    uint32_t warps = WARPS_OF_VALUES;
    if (matmul_is_direct(dtype) && is_aligned(weights) && width_of(weights) < UINT32_MAX / 4) {
        kernel = args.format == PACK_QUANTS ? KERNEL_matmul_experts_quants
                                            : KERNEL_matmul_experts_floats;
        args.ring_bytes = MATMUL_STAGES * MATMUL_ROWS * matmul_direct_bytes(dtype);
        warps = plan_ring_warps(chip, args.ring_bytes);
        blocks = divide_up(divide_up(rows, MATMUL_ROWS), (uint64_t)warps * GROUPS_OF_WARP);
    }
    ASSERT(slots <= INT32_MAX / blocks); /* what one dimension of a grid can count */
    args.blocks = (uint32_t)blocks;
    steps[0] = step_of(kernel, blocks * slots, 1, warps * WARP);
    steps[0].shared_bytes = warps * args.ring_bytes;
    set_matmul_experts_args(&steps[0], args);
    return 1;
}
