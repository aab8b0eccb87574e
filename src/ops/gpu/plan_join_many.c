/* plan_join_many.c - launches of a graph that become one kernel where there are several tokens. */
#include "ops/gpu/plan_impl.h"
#include "ops/params.h"

static bool is_rope_append(const struct device_gpu_request *requests, const device_gpu_plan *plans)
{
    const struct device_host_operand *rope = requests[0].operands, *append = requests[1].operands;
    if (plans[0] != plan_rope || plans[1] != plan_kv_append)
        return false;
    const struct params_rope *params = requests[0].params;
    uint64_t width = width_of(&append[KV_APPEND_K]);
    return rows_of(&rope[ROPE_X]) > 1 && rope[ROPE_ALSO].data &&
           rope[ROPE_ALSO].data == append[KV_APPEND_K].data &&
           rope[ROPE_ALSO].row_stride_bytes == append[KV_APPEND_K].row_stride_bytes &&
           rows_of(&rope[ROPE_X]) == rows_of(&append[KV_APPEND_K]) &&
           append[KV_APPEND_KEYS].dtype == DTYPE_F16 &&
           append[KV_APPEND_VALUES].dtype == DTYPE_F16 &&
           width == width_of(&append[KV_APPEND_VALUES]) &&
           width_of(&rope[ROPE_TABLE]) == params->head_dim && params->head_dim % 2 == 0;
}

uint32_t plan_join_many(const struct device_gpu_request *requests, const device_gpu_plan *plans,
                        uint32_t count, struct device_gpu_step *steps, uint32_t *ret_taken)
{
    if (count < 2 || !is_rope_append(requests, plans))
        return 0;
    const struct device_host_operand *rope = requests[0].operands;
    uint64_t pairs = width_of(&rope[ROPE_X]) / 2 + width_of(&rope[ROPE_ALSO]);
    uint8_t append = requests[0].operand_count;
    ASSERT(rows_of(&rope[ROPE_X]) <= GRID_Y_LIMIT);
    steps[0] = step_of(KERNEL_rope_append, divide_up(pairs, VALUE_THREADS), rows_of(&rope[ROPE_X]),
                       VALUE_THREADS);
    steps[0].operands[ROPE_APPEND_V] = append + KV_APPEND_V;
    steps[0].operands[ROPE_APPEND_SLOTS] = append + KV_APPEND_SLOTS;
    steps[0].operands[ROPE_APPEND_KEYS] = append + KV_APPEND_KEYS;
    steps[0].operands[ROPE_APPEND_VALUES] = append + KV_APPEND_VALUES;
    *ret_taken = 2;
    return 1;
}
