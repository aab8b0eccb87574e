/* plan_join_many.c - launches of a graph that become one kernel where there are several tokens. */
#include "ops/gpu/plan_impl.h"
#include "ops/params.h"

static bool is_rope_append(const struct device_gpu_request *requests, const device_gpu_plan *plans)
{
    const struct device_host_operand *rope = requests[0].operands, *append = requests[1].operands;
    if (plans[0] != plan_rope || plans[1] != plan_kv_append)
        return false;
    const struct params_rope *params = requests[0].params;
    uint64_t width = width_of(&append[0]);
    return rows_of(&rope[0]) > 1 && rope[3].data && rope[3].data == append[0].data &&
           rope[3].row_stride_bytes == append[0].row_stride_bytes &&
           rows_of(&rope[0]) == rows_of(&append[0]) && append[3].dtype == DTYPE_F16 &&
           append[4].dtype == DTYPE_F16 && width == width_of(&append[4]) &&
           width_of(&rope[2]) == params->head_dim && params->head_dim % 2 == 0;
}

uint32_t plan_join_many(const struct device_gpu_request *requests, const device_gpu_plan *plans,
                        uint32_t count, struct device_gpu_step *steps, uint32_t *ret_taken)
{
    if (count < 2 || !is_rope_append(requests, plans))
        return 0;
    const struct device_host_operand *rope = requests[0].operands;
    uint64_t pairs = width_of(&rope[0]) / 2 + width_of(&rope[3]);
    uint8_t append = requests[0].operand_count;
    ASSERT(rows_of(&rope[0]) <= GRID_Y_LIMIT);
    steps[0] = step_of(KERNEL_rope_append, divide_up(pairs, VALUE_THREADS), rows_of(&rope[0]),
                       VALUE_THREADS);
    for (uint8_t i = 4; i < 8; i++)
        steps[0].operands[i] = (uint8_t)(append + i - 3);
    for (uint32_t i = 8; i < GPU_OPERAND_LIMIT; i++)
        steps[0].operands[i] = DEVICE_GPU_ABSENT;
    *ret_taken = 2;
    return 1;
}
