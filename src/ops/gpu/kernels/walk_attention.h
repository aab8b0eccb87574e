/* walk_attention.h - rope, kv_append and attention of one token in a walk: attention_step.c, whose
 * blocks are units of work here: heads first, so that those of few parts are shared out evenly.
 * The first WALK_ATTENTION_THREADS threads of a block do it. */
#ifndef GRETA_OPS_GPU_KERNELS_WALK_ATTENTION_H
#define GRETA_OPS_GPU_KERNELS_WALK_ATTENTION_H

#include "ops/gpu/kernels/walk_stream.h"

#if HAS_BULK

INLINE void walk_part_sync(void)
{
    part_sync(WALK_ATTENTION_THREADS);
}

/* As find_share: false for a bad index. */
INLINE bool walk_find_share(const struct gpu_call *call, uint32_t unit, struct share *share)
{
    const struct params_attention *params = (const void *)call->params;
    const struct gpu_operand *q = &call->operands[0], *keys = &call->operands[1];
    uint32_t parts = call->words[0], heads = (uint32_t)q->width / params->head_dim;
    uint32_t head = unit % heads;
    *share = (struct share){ .head_dim = params->head_dim,
                             .kv_head = head / (uint32_t)(q->width / keys->width),
                             .first_head = head,
                             .heads = 1,
                             .part = unit / heads,
                             .parts = parts,
                             .counter = head,
                             .fresh = NOT_FRESH };
    uint64_t start = list_index(&call->operands[3], 0);
    uint64_t position = list_index(&call->operands[4], 0);
    bool first_thread = unit == 0 && thread_index() == 0;
    if (start >= keys->rows) {
        if (first_thread)
            index_of_ok(call, call->more_trap_ids[1], 3, start, keys->rows);
        return false;
    }
    if (position >= keys->rows - start) {
        if (first_thread)
            index_of_ok(call, call->more_trap_ids[1], 4, position, keys->rows - start);
        return false;
    }
    uint64_t count = position + 1, worth = (count + PART_SLOTS - 1) / PART_SLOTS;
    share->parts = worth < parts ? (uint32_t)worth : parts;
    uint64_t each = (count + share->parts - 1) / share->parts;
    each = (each + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE * ROWS_AT_ONCE;
    share->start = start;
    share->first = share->part * each < count ? share->part * each : count;
    share->end = share->first + each < count ? share->first + each : count;
    return true;
}

/* Counts up to `count` of those who come here; true for the last, which leaves 0. */
INLINE bool walk_is_last(GLOBAL uint32_t *counter, uint32_t count, SHARED uint32_t *flag)
{
    walk_part_sync();
    if (thread_index() == 0) {
        *flag = __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED) == count - 1;
        if (*flag)
            *counter = 0;
    }
    walk_part_sync();
    return *flag != 0; /* all pass another barrier before the next one writes it */
}

/* As step_rotate_all: every unit has read the queries and the key of the kv head. */
INLINE void walk_rotate(const struct gpu_call *call, const struct step_turn *turn,
                        const struct share *share)
{
    struct params_rope params = { .head_dim = share->head_dim, .adjacent = turn->adjacent };
    uint32_t group = (uint32_t)(call->operands[0].width / call->operands[1].width);
    GLOBAL float *q = row_f32(&call->operands[0], 0) + share->kv_head * group * share->head_dim;
    GLOBAL float *k = row_f32(&call->operands[7], 0) + share->kv_head * share->head_dim;
    uint32_t pairs = turn->pairs;
    for (uint32_t i = thread_index(); i < (group + 1) * pairs; i += WALK_ATTENTION_THREADS) {
        if (i < group * pairs)
            rotate_pair(&params, q, turn->angles, pairs, i);
        else
            rotate_pair(&params, k, turn->angles, pairs, i - group * pairs);
    }
}

/* As finish: the parts of a head meet in the workspace. */
INLINE void walk_finish(const struct gpu_call *call, const struct share *share,
                        const struct places *places, SHARED uint32_t *flag)
{
    uint32_t at = thread_index();
    if (at < share->head_dim) { /* whole teams */
        float total = sum_of_teams(share, places, 1, 0, at);
        if (share->parts == 1) {
            store_out(call, share, at, total / places->sums[0]);
        } else {
            GLOBAL float *part = part_at(call, share, share->part, 1, 0);
            part[2 + at] = total;
            if (at == 0) {
                part[0] = places->maxima[0];
                part[1] = places->sums[0];
            }
        }
    }
    if (share->parts == 1)
        return;
    fence_device();
    bool last = walk_is_last((GLOBAL uint32_t *)call->workspace + share->counter, share->parts,
                             flag);
    fence_device();
    if (last)
        join_parts(call, share, 1);
}

/* As attend_share, for one head. */
INLINE void walk_attend(const struct gpu_call *call, const struct share *share,
                        const struct places *places, float q[HEADS_MOST][8 * PIECES_MOST])
{
    float totals[HEADS_MOST][8 * PIECES_MOST];
    UNROLL
    for (uint32_t i = 0; i < 16; i++)
        totals[0][i] = 0;
    if (thread_index() == 0) {
        places->maxima[0] = -F32_INFINITY;
        places->sums[0] = 0;
    }
    walk_part_sync();
    for (uint64_t first = share->first; first < share->end; first += CHUNK) {
        uint64_t end = first + CHUNK < share->end ? first + CHUNK : share->end;
        score_chunk(call, share, places, 1, 2, ALIGNED_F16, q, first, end);
        walk_part_sync();
        weigh_chunk(places, 1, (uint32_t)(end - first));
        walk_part_sync();
        gather_chunk(call, share, places, 1, 2, ALIGNED_F16, totals, first, end);
        walk_part_sync();
    }
    store_totals(share, places, 1, 2, totals);
    walk_part_sync();
}

INLINE struct step_turn walk_find_turn(const struct gpu_call *call)
{
    const struct gpu_operand *table = &call->operands[10];
    uint64_t position = list_index(&call->operands[4], 0);
    struct step_turn turn = { .pairs = (uint32_t)table->width / 2, .adjacent = call->words[3] };
    if (position < table->rows)
        turn.angles = row_f32(table, position);
    return turn;
}

/* Query, key and value of the unit's head to the block's memory; key and value to the cache. */
INLINE void walk_take_heads(const struct gpu_call *call, const struct share *share,
                            const struct step_turn *turn, const struct places *places,
                            SHARED float *query, uint64_t slot)
{
    const struct gpu_operand *keys = &call->operands[1], *values = &call->operands[2];
    uint32_t i = thread_index(), head_dim = share->head_dim;
    if (i < head_dim)
        query[i] = step_rotated(turn, row_f32(&call->operands[0], 0) + share->first_head * head_dim,
                                i);
    walk_name(call, 1); /* the row stands for three launches */
    uint32_t n = i - WALK_ATTENTION_THREADS / 2;
    if (i < WALK_ATTENTION_THREADS / 2 || n >= head_dim)
        return;
    uint32_t at = share->kv_head * head_dim;
    uint32_t group = (uint32_t)(call->operands[0].width / keys->width);
    uint16_t key = f16_bits(step_rotated(turn, row_f32(&call->operands[7], 0) + at, n));
    uint16_t value = f16_bits(row_f32(&call->operands[8], 0)[at + n]);
    places->fresh_key[n] = f16_value(key);
    places->fresh_value[n] = f16_value(value);
    if (slot < keys->rows && share->part == 0 && share->first_head == share->kv_head * group) {
        ((GLOBAL uint16_t *)row_at(keys, slot))[at + n] = key;
        ((GLOBAL uint16_t *)row_at(values, slot))[at + n] = value;
    }
}

INLINE void walk_attention_unit(const struct walk *walk, const struct gpu_call *call, uint32_t unit)
{
    const struct gpu_operand *keys = &call->operands[1];
    struct share share;
    bool valid = walk_find_share(call, unit, &share);
    if (share.part >= (valid ? share.parts : 1))
        return;
    uint32_t parts = valid ? share.parts : 1, head_dim = share.head_dim;
    SHARED float *memory = (SHARED float *)walk_place(walk, WALK_AT_SCRATCH);
    struct places places = { .scores = memory,
                             .maxima = memory + CHUNK,
                             .sums = memory + CHUNK + 4,
                             .factors = memory + CHUNK + 8,
                             .totals = memory + CHUNK + 12 };
    SHARED float *query = places.totals + TEAMS * head_dim;
    places.fresh_key = query + head_dim;
    places.fresh_value = places.fresh_key + head_dim;
    SHARED uint32_t *flag = (SHARED uint32_t *)(places.fresh_value + head_dim);
    struct step_turn turn = walk_find_turn(call);
    uint64_t slot = list_index(&call->operands[9], 0);
    if (unit == 0 && thread_index() == 0) {
        index_ok(call, 1, list_index(&call->operands[4], 0), call->operands[10].rows);
        index_of_ok(call, call->more_trap_ids[0], 2, slot, keys->rows);
    }
    walk_take_heads(call, &share, &turn, &places, query, slot);
    if (valid && slot < keys->rows && slot >= share.start)
        share.fresh = slot - share.start;
    GLOBAL uint32_t *readers = (GLOBAL uint32_t *)call->workspace +
                               call->operands[0].width / head_dim + share.kv_head;
    if (walk_is_last(readers, parts * call->words[1], flag) && turn.angles)
        walk_rotate(call, &turn, &share);
    if (!valid) {
        if (thread_index() < head_dim)
            store_out(call, &share, thread_index(), 0);
        return;
    }
    float q[HEADS_MOST][8 * PIECES_MOST];
    UNROLL
    for (uint32_t n = 0; n < 16; n++) {
        uint32_t at = 8 * (thread_index() % ROW_LANES + ROW_LANES * (n / 8)) + n % 8;
        q[0][n] = at < head_dim ? query[at] : 0.0f;
    }
    walk_name(call, 2);
    walk_attend(call, &share, &places, q);
    walk_finish(call, &share, &places, flag);
}

INLINE void walk_attention(const struct walk *walk, const struct gpu_call *call)
{
    if (thread_index() >= WALK_ATTENTION_THREADS)
        return;
    for (uint32_t unit = block_x(); unit < call->words[WALK_ATTENTION_UNITS];
         unit += block_count_x()) {
        walk_name(call, 0);
        walk_attention_unit(walk, call, unit);
        walk_part_sync(); /* its memory is the next one's */
    }
}

#endif
#endif
