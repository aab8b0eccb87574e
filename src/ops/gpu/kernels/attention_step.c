/* attention_step.c - rope, kv_append and attention of one token as one kernel, for a cache of
 * aligned F16 and heads of up to 128 values: what joined launches of a graph become.
 *
 * A block does a head and a part of the slots, as in attention.c. It rotates its query and the new
 * key itself, and takes the new key and value from its own memory, as the cache would have them; so
 * no block waits for another's. One block of each kv head writes them to the cache. Query and key
 * are rotated in place by the block of the kv head that read them last.
 *
 * Operands: those of attention, then k, v, slots, table. words: those of attention; words[3]: pairs
 * are neighbours. */
#include "ops/gpu/kernels/portable.h"
#include "ops/params.h"
#include "tensor/dtype.h"

/* Query heads of a kv head, at most. */
#define STEP_GROUP_MOST 8u

struct step_turn {
    const GLOBAL float *angles; /* 0: not rotated */
    uint32_t pairs;
    bool adjacent;
};

/* Value i of a head, rotated; the same operations as rotate_pair of rope.c. */
INLINE float step_rotated(const struct step_turn *turn, const GLOBAL float *head, uint32_t i)
{
    if (!turn->angles || i >= 2 * turn->pairs)
        return head[i];
    bool second = turn->adjacent ? i % 2 : i >= turn->pairs;
    uint32_t k = turn->adjacent ? i / 2 : i % turn->pairs;
    uint32_t distance = turn->adjacent ? 1 : turn->pairs;
    float cosine = turn->angles[k], sine = turn->angles[turn->pairs + k];
    float x0 = head[second ? i - distance : i], x1 = head[second ? i : i + distance];
    return second ? x0 * sine + x1 * cosine : x0 * cosine - x1 * sine;
}

INLINE struct step_turn step_find_turn(const struct gpu_call *call)
{
    const struct gpu_operand *table = &call->operands[10];
    uint64_t position = list_index(&call->operands[4], 0);
    struct step_turn turn = { .pairs = (uint32_t)table->width / 2, .adjacent = call->words[3] };
    if (position < table->rows)
        turn.angles = row_f32(table, position);
    else if (block_x() == 0 && thread_index() == 0)
        index_ok(call, 1, position, table->rows);
    return turn;
}

/* Rotates the queries of a kv head and its key in place; every block has read them. */
INLINE void step_rotate_all(const struct gpu_call *call, const struct step_turn *turn,
                            uint32_t head_dim, uint32_t kv_head)
{
    uint32_t group = (uint32_t)(call->operands[0].width / call->operands[1].width);
    uint32_t i = thread_index();
    GLOBAL float *q = row_f32(&call->operands[0], 0) + kv_head * group * head_dim;
    GLOBAL float *k = row_f32(&call->operands[7], 0) + kv_head * head_dim;
    float values[STEP_GROUP_MOST], key = 0;
    if (i < head_dim) {
        key = step_rotated(turn, k, i);
        UNROLL
        for (uint32_t h = 0; h < STEP_GROUP_MOST; h++)
            values[h] = h < group ? step_rotated(turn, q + h * head_dim, i) : 0;
    }
    block_sync(); /* all are read before the first is stored */
    if (i < head_dim) {
        k[i] = key;
        UNROLL
        for (uint32_t h = 0; h < STEP_GROUP_MOST; h++)
            if (h < group)
                q[h * head_dim + i] = values[h];
    }
}

/* Whether this block is the last of its kv head to have read queries and key. */
INLINE bool step_read_last(const struct gpu_call *call, const struct share *share, uint32_t blocks,
                           SHARED uint32_t *flag)
{
    uint32_t heads = (uint32_t)(call->operands[0].width / share->head_dim);
    GLOBAL uint32_t *counter = (GLOBAL uint32_t *)call->workspace + heads + share->kv_head;
    block_sync();
    if (thread_index() == 0) {
        uint32_t before = __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
        *flag = before == blocks - 1;
        if (*flag)
            *counter = 0;
    }
    block_sync();
    return *flag != 0;
}

KERNEL(attention_step)
{
    ENTER(call);
    const struct gpu_operand *keys = &call.operands[1], *values = &call.operands[2];
    struct share share;
    bool valid = find_share(&call, call.more_trap_ids[1], 1, &share);
    uint32_t parts = valid ? share.parts : 1, i = thread_index(), head_dim = share.head_dim;
    if (share.part >= parts)
        return;
    struct places places = make_places(1);
    SHARED float *query = places.totals + TEAMS * head_dim;
    places.fresh_key = query + head_dim;
    places.fresh_value = places.fresh_key + head_dim;
    SHARED uint32_t *flag = (SHARED uint32_t *)(places.fresh_value + head_dim);
    struct step_turn turn = step_find_turn(&call);
    uint64_t slot = list_index(&call.operands[9], 0);
    bool slot_ok = slot < keys->rows;
    if (!slot_ok && block_x() == 0 && i == 0)
        index_of_ok(&call, call.more_trap_ids[0], 2, slot, keys->rows);
    if (i < head_dim) {
        query[i] = step_rotated(&turn, row_f32(&call.operands[0], 0) + share.first_head * head_dim,
                                i);
    } else if (i >= THREADS / 2 && i - THREADS / 2 < head_dim) {
        uint32_t at = share.kv_head * head_dim, n = i - THREADS / 2;
        uint16_t key = f16_bits(step_rotated(&turn, row_f32(&call.operands[7], 0) + at, n));
        uint16_t value = f16_bits(row_f32(&call.operands[8], 0)[at + n]);
        places.fresh_key[n] = f16_value(key);
        places.fresh_value[n] = f16_value(value);
        uint32_t group = (uint32_t)(call.operands[0].width / keys->width);
        if (slot_ok && share.part == 0 && share.first_head == share.kv_head * group) {
            ((GLOBAL uint16_t *)row_at(keys, slot))[at + n] = key;
            ((GLOBAL uint16_t *)row_at(values, slot))[at + n] = value;
        }
    }
    if (step_read_last(&call, &share, parts * call.words[1], flag) && turn.angles)
        step_rotate_all(&call, &turn, head_dim, share.kv_head);
    if (!valid) {
        clear_heads(&call, &share);
        return;
    }
    if (slot_ok && slot >= share.start)
        share.fresh = slot - share.start;
    float q[HEADS_MOST][8 * PIECES_MOST];
    UNROLL
    for (uint32_t n = 0; n < 16; n++) {
        uint32_t at = 8 * (i % ROW_LANES + ROW_LANES * (n / 8)) + n % 8;
        q[0][n] = at < head_dim ? query[at] : 0.0f;
    }
    attend_share(&call, &share, &places, 1, 2, ALIGNED_F16, q);
}
