/* attention_share.h - what blocks of attention.c and attention_step.c have in common: which share
 * of the work is theirs, and how parts that several blocks did become one.
 *
 * A block does one token, some query heads that share a kv head, and one part of the token's cache
 * slots; x counts parts, then sets of heads, then kv heads; y counts tokens. The parts' results
 * meet in the workspace, where the block that comes last joins them in the order of the parts, so
 * that the bits do not depend on who was last.
 *
 * A token's slots are those of its window, where there is one.
 *
 * Operands: those of attention. Arguments: struct attention_share_args. */
#ifndef GRETA_OPS_GPU_KERNELS_ATTENTION_SHARE_H
#define GRETA_OPS_GPU_KERNELS_ATTENTION_SHARE_H

#include "ops/gpu/kernels/kernel_call.h"
#include "ops/gpu/kernels/pack.h"
#include "ops/gpu/tiling.h"
#include "ops/params.h"

/* Parts have whole rounds of so many slots: what a block of attention.c takes at a time. */
#define SHARE_ROUND 32u

/* A block's share of the work. */
struct share {
    uint32_t head_dim, kv_head, first_head, heads; /* heads: what there is of them */
    uint64_t start, first, end;                    /* slots [first, end), counted from start */
    uint32_t token, part, parts, counter;
};

/* heads_most: of a block. part_slots: worth a block of their own. window: slots that a token sees,
 * 0: all. False: the token's slots are not all in the cache. */
INLINE bool find_share(const struct gpu_call *call, uint32_t heads_most, uint64_t part_slots,
                       uint64_t window, struct share *share)
{
    const struct params_attention *params = (const void *)call->params;
    const struct gpu_operand *q = &call->operands[ATTENTION_Q],
                             *keys = &call->operands[ATTENTION_KEYS];
    const struct attention_share_args *args = attention_share_args_of(call);
    uint32_t parts = args->parts, sets = args->sets;
    uint32_t group = (uint32_t)(q->width / keys->width);
    uint32_t set = block_x() / parts % sets;
    share->token = block_y();
    share->head_dim = params->head_dim;
    share->parts = parts;
    share->part = block_x() % parts;
    share->kv_head = block_x() / parts / sets;
    share->first_head = share->kv_head * group + set * heads_most;
    share->heads = group - set * heads_most < heads_most ? group - set * heads_most : heads_most;
    share->counter =
        (uint32_t)(share->token * (keys->width / share->head_dim) + share->kv_head) * sets + set;
    uint64_t start = list_index(&call->operands[ATTENTION_STARTS], share->token);
    uint64_t position = list_index(&call->operands[ATTENTION_POSITIONS], share->token);
    if (start >= keys->rows || position >= keys->rows - start)
        return false;
    uint64_t count = position + 1;
    if (window != 0 && count > window) {
        start += count - window;
        count = window;
    }
    /* Few slots have fewer parts: joining parts would cost more than reading the slots. */
    uint64_t worth = (count + part_slots - 1) / part_slots;
    share->parts = worth < parts ? (uint32_t)worth : parts;
    uint64_t each = (count + share->parts - 1) / share->parts;
    each = (each + SHARE_ROUND - 1) / SHARE_ROUND * SHARE_ROUND;
    share->start = start;
    share->first = share->part * each < count ? share->part * each : count;
    share->end = share->first + each < count ? share->first + each : count;
    return true;
}

/* Says why find_share was false, once for a token. launch: the one that the trap names. */
INLINE void trap_share(const struct gpu_call *call, uint64_t launch)
{
    if (block_x() != 0 || thread_index() != 0)
        return;
    uint64_t start = list_index(&call->operands[ATTENTION_STARTS], block_y()),
             rows = call->operands[ATTENTION_KEYS].rows;
    if (index_of_ok(call, launch, ATTENTION_STARTS, start, rows))
        index_of_ok(call, launch, ATTENTION_POSITIONS,
                    list_index(&call->operands[ATTENTION_POSITIONS], block_y()), rows - start);
}

/* A part in the workspace: for each head its maximum, its sum, its totals. */
INLINE GLOBAL float *part_at(const struct gpu_call *call, const struct share *share, uint32_t part,
                             uint32_t heads, uint32_t h)
{
    uint64_t index =
        ((uint64_t)share->counter * attention_share_args_of(call)->parts + part) * heads + h;
    return (GLOBAL float *)(call->workspace + GPU_COUNTER_BYTES) + index * (share->head_dim + 2);
}

/* Value `at` of the block's heads, plain and, if the arguments say so, packed: then whole warps
 * are here, with 32 neighbouring values. */
INLINE void store_out(const struct gpu_call *call, const struct share *share, uint32_t at,
                      float value)
{
    const struct params_attention *params = (const void *)call->params;
    uint32_t i = share->first_head * share->head_dim + at;
    row_f32(&call->operands[ATTENTION_OUT], share->token)[i] = value;
    if (attention_share_args_of(call)->packs)
        pack_value(params->packing.format, row_at(&call->operands[ATTENTION_PACKED], share->token),
                   call->operands[ATTENTION_OUT].width, i, value);
}

/* Value d of head h, from all parts; all blocks have stored theirs. */
INLINE float joined_value(const struct gpu_call *call, const struct share *share, uint32_t heads,
                          uint32_t h, uint32_t d)
{
    float largest = -F32_INFINITY, sum = 0, total = 0;
    for (uint32_t part = 0; part < share->parts; part++) {
        float maximum = *(volatile GLOBAL float *)part_at(call, share, part, heads, h);
        largest = maximum > largest ? maximum : largest;
    }
    for (uint32_t part = 0; part < share->parts; part++) {
        volatile GLOBAL float *stored = part_at(call, share, part, heads, h);
        float part_sum = stored[1];
        if (part_sum == 0.0f)
            continue; /* no slots */
        float factor = exp_value(stored[0] - largest);
        sum += part_sum * factor;
        total += stored[2 + d] * factor;
    }
    return total / sum;
}

INLINE void join_parts(const struct gpu_call *call, const struct share *share, uint32_t heads)
{
    for (uint32_t at = thread_index(); at < share->heads * share->head_dim; at += ATTENTION_THREADS)
        store_out(call, share, at,
                  joined_value(call, share, heads, at / share->head_dim, at % share->head_dim));
}

/* Whether this block is the last of its parts to come here. */
INLINE bool is_last(const struct gpu_call *call, const struct share *share)
{
    return block_is_last((GLOBAL uint32_t *)call->workspace + share->counter, share->parts,
                         (SHARED uint32_t *)shared_memory());
}

INLINE void clear_heads(const struct gpu_call *call, const struct share *share)
{
    for (uint32_t at = thread_index(); at < share->heads * share->head_dim; at += ATTENTION_THREADS)
        store_out(call, share, at, 0);
}

#endif
