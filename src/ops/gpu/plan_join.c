/* plan_join.c - which launches that follow each other in a graph become one kernel. */
#include "ops/gpu/plan_impl.h"
#include "ops/gpu/tiling.h"
#include "ops/params.h"

static bool is_same(const struct device_host_operand *one, const struct device_host_operand *other)
{
    return one->data && one->data == other->data;
}

/* rope, kv_append and attention of one token. */
static bool is_attention_step(const struct device_gpu_request *requests,
                              const device_gpu_plan *plans)
{
    const struct device_host_operand *rope = requests[0].operands, *append = requests[1].operands,
                                     *attention = requests[2].operands;
    if (plans[0] != plan_rope || plans[1] != plan_kv_append || plans[2] != plan_attention)
        return false;
    const struct params_rope *turn = requests[0].params;
    const struct params_attention *params = requests[2].params;
    return rows_of(&attention[0]) == 1 && rows_of(&rope[0]) == 1 && rows_of(&append[0]) == 1 &&
           is_same(&rope[0], &attention[0]) && is_same(&rope[3], &append[0]) &&
           is_same(&rope[1], &attention[4]) && is_same(&append[3], &attention[1]) &&
           is_same(&append[4], &attention[2]) && turn->head_dim == params->head_dim &&
           params->head_dim <= STEP_HEAD_MOST && params->head_dim % TEAM == 0 &&
           width_of(&attention[0]) / width_of(&attention[1]) <= STEP_GROUP_MOST;
}

static uint32_t join_attention(const struct device_gpu_request *requests,
                               struct device_gpu_step *steps)
{
    if (plan_attention(&requests[2], steps) != 1 || steps[0].kernel != KERNEL_attention_1_head_f16)
        return 0;
    const struct params_rope *turn = requests[0].params;
    const struct params_attention *params = requests[2].params;
    uint8_t append = requests[0].operand_count, attention = append + requests[1].operand_count;
    steps[0].kernel = KERNEL_attention_step;
    steps[0].words[3] = turn->adjacent;
    /* All blocks at once, one for each processor: those of a second round would begin when the
     * first ones have ended, with nothing read early. */
    uint32_t heads = (uint32_t)(width_of(&requests[2].operands[0]) / params->head_dim);
    uint32_t most = requests[2].chip->processor_count / heads;
    uint32_t parts = steps[0].words[0];
    parts = parts < most ? parts : most > 1 ? most : 1;
    steps[0].grid_x = parts * heads;
    steps[0].words[0] = parts;
    steps[0].words[4] = heads;
    steps[0].shared_bytes = STEP_SHARED_BYTES;
    /* keys, values, starts, positions, slots, table. */
    steps[0].early_operands = 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4 | 1u << 9 | 1u << 10;
    steps[0].params_of = 2;
    for (uint8_t i = 0; i < 7; i++)
        steps[0].operands[i] = attention + i;
    steps[0].operands[7] = append;
    steps[0].operands[8] = append + 1;
    steps[0].operands[9] = append + 2;
    steps[0].operands[10] = 2; /* rope's table */
    for (uint32_t i = 11; i < GPU_OPERAND_LIMIT; i++)
        steps[0].operands[i] = DEVICE_GPU_ABSENT;
    return 1;
}

uint32_t plan_join(const struct device_gpu_request *requests, const device_gpu_plan *plans,
                   uint32_t count, struct device_gpu_step *steps, uint32_t *ret_taken)
{
    uint32_t several = plan_join_many(requests, plans, count, steps, ret_taken);
    if (several)
        return several;
    if (count < 3 || !is_attention_step(requests, plans))
        return 0;
    *ret_taken = 3;
    return join_attention(requests, steps);
}
