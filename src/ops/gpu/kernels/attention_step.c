/* attention_step.c - rope, kv_append and attention of one token as one kernel, for a cache of
 * aligned F16 and heads of up to 128 values: what joined launches of a graph become.
 *
 * A block does a head and a part of the slots (attention_share.h). All but the queries, the new key
 * and the new value is known before the kernel that makes those has ended: the first rows of the
 * cache are in registers by then, and the angles. (Unless the call says wait_first.) What is left
 * then is one load, a dot product with each row that is there, and one meeting of the block's
 * warps: each weighs the rows it has by itself.
 *
 * The block rotates the queries of its kv head and the new key itself, and takes the new key and
 * value from its own memory, as the cache would have them; so no block waits for another's. One
 * block of each kv head writes them to the cache. Queries and key are rotated in place by the block
 * of the kv head that read them last; every block has them ready.
 *
 * Operands: enum attention_step_operand. Arguments: struct attention_step_args. */
#include "ops/gpu/kernels/attention_share.h"
#include "ops/gpu/kernels/attention_step_rows.h"
#include "ops/gpu/kernels/kernel_call.h"
#include "ops/gpu/kernels/rotate.h"

/* Slots that are worth a block of their own. */
#define STEP_PART_SLOTS 256u
/* Pairs of queries that a thread rotates, at most. */
#define STEP_PAIRS 2u
_Static_assert(2 * STEP_PAIRS * ATTENTION_THREADS >= STEP_GROUP_MOST * STEP_HEAD_MOST,
               "all queries");

/* ---- Rotation ------------------------------------------------------------------------------- */

/* Two values of a head that are rotated together, or stay as they are. */
struct step_pair {
    uint32_t first, second; /* where they are in the head */
    bool turned;
    float cosine, sine;
};

/* Pair j of head_dim / 2. angles: 0 where nothing is rotated. */
INLINE struct step_pair step_find_pair(const struct gpu_call *call, const GLOBAL float *angles,
                                       uint32_t j)
{
    uint32_t pairs = (uint32_t)call->operands[ATTENTION_STEP_TABLE].width / 2;
    struct step_pair pair = { 2 * j, 2 * j + 1, angles && j < pairs, 0.0f, 0.0f };
    if (j < pairs && !attention_step_args_of(call)->adjacent) {
        pair.first = j;
        pair.second = j + pairs;
    }
    if (pair.turned) {
        pair.cosine = angles[j];
        pair.sine = angles[pairs + j];
    }
    return pair;
}

INLINE floats2 step_rotate(const struct step_pair *pair, floats2 x)
{
    float first = x[0], second = x[1];
    rotate(&first, &second, pair->cosine, pair->sine);
    floats2 turned = { first, second };
    return pair->turned ? turned : x;
}

/* 0: the position is past the end of the table. */
INLINE const GLOBAL float *step_find_angles(const struct gpu_call *call)
{
    const struct gpu_operand *table = &call->operands[ATTENTION_STEP_TABLE];
    uint64_t position = list_index(&call->operands[ATTENTION_POSITIONS], 0);
    return position < table->rows ? row_f32(table, position) : 0;
}

/* ---- The kernel ----------------------------------------------------------------------------- */

/* Value d of the head, from all warps: to the output, or to the part's place. */
INLINE void step_finish(const struct gpu_call *call, const struct share *share,
                        const struct step_places *places, uint32_t d)
{
    float largest = -F32_INFINITY, sum = 0, total = 0;
    UNROLL
    for (uint32_t t = 0; t < ATTENTION_WARPS; t++)
        largest = places->maxima[t] > largest ? places->maxima[t] : largest;
    float base = largest > -F32_INFINITY ? largest : 0.0f;
    UNROLL
    for (uint32_t t = 0; t < ATTENTION_WARPS; t++) {
        float factor = exp_value(places->maxima[t] - base);
        sum = __builtin_fmaf(factor, places->sums[t], sum);
        total = __builtin_fmaf(factor, places->totals[t * STEP_HEAD_MOST + d], total);
    }
    if (share->parts == 1) {
        /* sum is at least 1: the largest score has weight 1. */
        float inverse = reciprocal_fast(sum);
        inverse = __builtin_fmaf(inverse, __builtin_fmaf(-sum, inverse, 1.0f), inverse);
        store_out(call, share, d, total * inverse);
        return;
    }
    GLOBAL float *part = part_at(call, share, share->part, 1, 0);
    part[2 + d] = total;
    if (d == 0) {
        part[0] = largest;
        part[1] = sum;
    }
}

/* What a block does, known before the kernel before it has ended. */
struct step_work {
    struct share share;
    bool valid;                 /* the token's slots are in the cache */
    const GLOBAL float *angles; /* 0: nothing is rotated */
    uint64_t slot;              /* of the new row, in the cache */
    bool slot_ok;
    struct step_slots slots;
    uint32_t group, own; /* heads of the kv head; which of them is the block's */
    GLOBAL float *q, *k; /* of the kv head: [group][head_dim], [head_dim] */
    const GLOBAL float *v;
};

INLINE struct step_work step_find_work(const struct gpu_call *call)
{
    const struct gpu_operand *keys = &call->operands[ATTENTION_KEYS];
    struct step_work work = { .slot = list_index(&call->operands[ATTENTION_STEP_SLOTS], 0) };
    struct share *share = &work.share;
    work.valid = find_share(call, 1, STEP_PART_SLOTS, 0, share);
    share->parts = work.valid ? share->parts : 1;
    work.angles = step_find_angles(call);
    work.slot_ok = work.slot < keys->rows;
    uint32_t at = share->kv_head * share->head_dim;
    work.slots = (struct step_slots){ (uint32_t)share->start, (uint32_t)share->first,
                                      (uint32_t)share->end, UINT32_MAX, at };
    if (work.slot_ok && work.slot >= share->start)
        work.slots.fresh = (uint32_t)(work.slot - share->start);
    work.group = (uint32_t)(call->operands[ATTENTION_Q].width / keys->width);
    work.own = share->first_head - share->kv_head * work.group;
    work.q = row_f32(&call->operands[ATTENTION_Q], 0) + at * work.group;
    work.k = row_f32(&call->operands[ATTENTION_STEP_K], 0) + at;
    work.v = row_f32(&call->operands[ATTENTION_STEP_V], 0) + at;
    return work;
}

/* The traps of the three launches, in their order. */
INLINE void step_trap(const struct gpu_call *call, const struct step_work *work)
{
    bool first_thread = block_x() == 0 && thread_index() == 0;
    if (!work->angles && first_thread)
        index_ok(call, ROPE_POSITIONS, list_index(&call->operands[ATTENTION_POSITIONS], 0),
                 call->operands[ATTENTION_STEP_TABLE].rows);
    if (!work->slot_ok && first_thread)
        index_of_ok(call, call->more_trap_ids[0], KV_APPEND_SLOTS, work->slot,
                    call->operands[ATTENTION_KEYS].rows);
    if (!work->valid)
        trap_share(call, call->more_trap_ids[1]);
}

/* The new key's pair: rotated, to the block's memory as float and as the cache has it. */
INLINE void step_store_key(const struct gpu_call *call, const struct step_work *work,
                           const struct step_places *places, const struct step_pair *pair,
                           floats2 x, bool writes)
{
    SHARED float *key = places->queries + work->group * work->share.head_dim;
    x = step_rotate(pair, x);
    uint16_t first = f16_bits(x[0]), second = f16_bits(x[1]);
    key[pair->first] = x[0];
    key[pair->second] = x[1];
    places->key[pair->first] = first;
    places->key[pair->second] = second;
    if (writes) {
        GLOBAL uint16_t *row = (GLOBAL uint16_t *)row_at(&call->operands[ATTENTION_KEYS],
                                                         work->slot);
        row[work->slots.value + pair->first] = first;
        row[work->slots.value + pair->second] = second;
    }
}

/* Values `at` and at + 1 of the new value row. */
INLINE void step_store_value(const struct gpu_call *call, const struct step_work *work,
                             const struct step_places *places, uint32_t at, floats2 x, bool writes)
{
    uint32_t two = two_halves(x[0], x[1]);
    *(SHARED uint32_t *)(places->value + at) = two;
    if (writes)
        *(GLOBAL uint32_t *)(row_at(&call->operands[ATTENTION_VALUES], work->slot) +
                             2 * (work->slots.value + at)) = two;
}

/* Queries, key and value of the kv head to the block's memory: every thread has pairs of queries,
 * some also one of the key, or two values. All are asked for before the first is used. */
INLINE void step_take(const struct gpu_call *call, const struct step_work *work,
                      const struct step_places *places, const struct step_pair pairs[STEP_PAIRS])
{
    uint32_t i = thread_index(), head_dim = work->share.head_dim, half = head_dim / 2;
    bool has_key = i < half,
         has_value = i >= ATTENTION_THREADS / 2 && i - ATTENTION_THREADS / 2 < half;
    uint32_t value_at = 2 * (i - ATTENTION_THREADS / 2);
    floats2 x[STEP_PAIRS], also = { 0, 0 };
    UNROLL
    for (uint32_t n = 0; n < STEP_PAIRS; n++) {
        uint32_t t = i + n * ATTENTION_THREADS;
        const GLOBAL float *head = work->q + t / half * head_dim;
        x[n] = (floats2){ 0, 0 };
        if (t < work->group * half)
            x[n] = (floats2){ head[pairs[n].first], head[pairs[n].second] };
    }
    if (has_key)
        also = (floats2){ work->k[pairs[0].first], work->k[pairs[0].second] };
    else if (has_value)
        also = (floats2){ work->v[value_at], work->v[value_at + 1] };
    UNROLL
    for (uint32_t n = 0; n < STEP_PAIRS; n++) {
        uint32_t t = i + n * ATTENTION_THREADS;
        SHARED float *head = places->queries + t / half * head_dim;
        if (t < work->group * half) {
            x[n] = step_rotate(&pairs[n], x[n]);
            head[pairs[n].first] = x[n][0];
            head[pairs[n].second] = x[n][1];
        }
    }
    bool writes = work->slot_ok && work->share.part == 0 && work->own == 0;
    if (has_key)
        step_store_key(call, work, places, &pairs[0], also, writes);
    else if (has_value)
        step_store_value(call, work, places, value_at, also, writes);
}

/* The block's rows, the new one among them: those in registers, then chunk for chunk. */
INLINE void step_attend(const struct gpu_call *call, const struct step_work *work,
                        const struct step_places *places, struct step_rows *keys,
                        struct step_rows *values)
{
    uint32_t head_dim = work->share.head_dim;
    const struct step_slots *slots = &work->slots;
    struct step_sums sums = { .largest = -F32_INFINITY };
    float q[8];
    step_load_query(places->queries + work->own * head_dim, head_dim, q);
    for (uint32_t first = slots->first; first < slots->end;) {
        float scores[STEP_ROWS];
        step_take_new(places, head_dim, slots, first, keys, values);
        step_score(call, q, slots, first, keys, scores);
        step_add(values, scores, &sums);
        first += STEP_CHUNK;
        if (first < slots->end) {
            step_fetch(&call->operands[ATTENTION_KEYS], head_dim, slots, first, keys);
            step_fetch(&call->operands[ATTENTION_VALUES], head_dim, slots, first, values);
        }
    }
    step_store_sums(head_dim, places, &sums);
}

/* Queries and key, rotated, to where they were read: by the last block to have read them. */
INLINE void step_put_back(const struct step_work *work, const struct step_places *places)
{
    uint32_t head_dim = work->share.head_dim, q_values = work->group * head_dim;
    for (uint32_t n = thread_index(); n < q_values + head_dim; n += ATTENTION_THREADS)
        *(n < q_values ? work->q + n : work->k + (n - q_values)) = places->queries[n];
}

KERNEL(attention_step)
{
    early_allow();
    if (call.wait_first)
        early_wait();
    struct step_work work = step_find_work(&call);
    uint32_t i = thread_index(), head_dim = work.share.head_dim;
    if (work.share.part >= work.share.parts)
        return;
    struct step_rows keys, values;
    step_fetch(&call.operands[ATTENTION_KEYS], head_dim, &work.slots, work.slots.first, &keys);
    step_fetch(&call.operands[ATTENTION_VALUES], head_dim, &work.slots, work.slots.first, &values);
    struct step_pair pairs[STEP_PAIRS];
    UNROLL
    for (uint32_t n = 0; n < STEP_PAIRS; n++)
        pairs[n] = step_find_pair(&call, work.angles, (i + n * ATTENTION_THREADS) % (head_dim / 2));
    early_wait();
    leave_crumbs(&call);
    step_trap(&call, &work);
    struct step_places places = step_make_places();
    step_take(&call, &work, &places, pairs);
    block_sync();
    /* Counts the kv head's blocks that have read queries and key; the answer has time. */
    GLOBAL uint32_t *counter = (GLOBAL uint32_t *)call.workspace +
                               attention_step_args_of(&call)->heads + work.share.kv_head;
    uint32_t before = 0;
    if (i == 0)
        before = __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
    step_attend(&call, &work, &places, &keys, &values);
    if (i == 0) {
        *places.flag = before == work.share.parts * work.group - 1;
        if (*places.flag)
            *counter = 0;
    }
    block_sync();
    if (*places.flag && work.angles)
        step_put_back(&work, &places);
    if (!work.valid) {
        clear_heads(&call, &work.share);
        return;
    }
    if (i < head_dim)
        step_finish(&call, &work.share, &places, i);
    if (work.share.parts > 1 && is_last(&call, &work.share))
        join_parts(&call, &work.share, 1);
}
