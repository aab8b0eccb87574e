/* plan_join.c - which launches that follow each other in a graph become one kernel. */
#include "ops/gpu/plan_impl.h"

#include "base/size.h"
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
    return rows_of(&attention[ATTENTION_Q]) == 1 && rows_of(&rope[ROPE_X]) == 1 &&
           rows_of(&append[KV_APPEND_K]) == 1 && is_same(&rope[ROPE_X], &attention[ATTENTION_Q]) &&
           is_same(&rope[ROPE_ALSO], &append[KV_APPEND_K]) &&
           is_same(&rope[ROPE_POSITIONS], &attention[ATTENTION_POSITIONS]) &&
           is_same(&append[KV_APPEND_KEYS], &attention[ATTENTION_KEYS]) &&
           is_same(&append[KV_APPEND_VALUES], &attention[ATTENTION_VALUES]) &&
           !plan_is_masked(&requests[2]) && turn->head_dim == params->head_dim &&
           params->head_dim <= STEP_HEAD_MOST && params->head_dim % WARP == 0 &&
           width_of(&attention[ATTENTION_Q]) / width_of(&attention[ATTENTION_KEYS]) <=
               STEP_GROUP_MOST;
}

static uint32_t join_attention(const struct device_gpu_request *requests,
                               struct device_gpu_step *steps)
{
    if (plan_attention(&requests[2], steps) != 1 || steps[0].kernel != KERNEL_attention_1_head_f16)
        return 0;
    const struct params_rope *turn = requests[0].params;
    const struct params_attention *params = requests[2].params;
    uint8_t append = requests[0].operand_count, attention = append + requests[1].operand_count;
    struct attention_step_args args = { .share = get_attention_share_args(&steps[0]),
                                        .adjacent = turn->adjacent };
    /* All blocks at once, one for each processor: those of a second round would begin when the
     * first ones have ended, with nothing read early. */
    args.heads = (uint32_t)(width_of(&requests[2].operands[ATTENTION_Q]) / params->head_dim);
    uint32_t most = requests[2].chip->sm_count / args.heads;
    if (args.share.parts >= most)
        args.share.parts = max_u64(most, 1);
    steps[0] = step_of(KERNEL_attention_step, args.share.parts * args.heads, 1, ATTENTION_THREADS);
    set_attention_step_args(&steps[0], args);
    steps[0].shared_bytes = STEP_SHARED_BYTES;
    steps[0].early_operands = 1u << ATTENTION_KEYS | 1u << ATTENTION_VALUES |
                              1u << ATTENTION_STARTS | 1u << ATTENTION_POSITIONS |
                              1u << ATTENTION_STEP_SLOTS | 1u << ATTENTION_STEP_TABLE;
    steps[0].params_of = 2;
    for (uint32_t i = 0; i < ATTENTION_STEP_K; i++)
        steps[0].operands[i] = (uint8_t)(attention + i);
    steps[0].operands[ATTENTION_STEP_K] = append + KV_APPEND_K;
    steps[0].operands[ATTENTION_STEP_V] = append + KV_APPEND_V;
    steps[0].operands[ATTENTION_STEP_SLOTS] = append + KV_APPEND_SLOTS;
    steps[0].operands[ATTENTION_STEP_TABLE] = ROPE_TABLE;
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
