/* walk_attention.h - rope, kv_append and attention of one token in a walk: attention_step.c, whose
 * blocks are units of work here: heads first, so that those of few parts are shared out evenly.
 * The first WALK_ATTENTION_THREADS threads of a block do it.
 *
 * Few blocks have something to do here, and what they do is one wait for memory after the other. So
 * all that does not depend on the token's own query is asked for before: lists and angles are kept
 * from the first layer on, lines of the cache are asked for while the blocks meet, keys come with
 * the query, values with the scores. Query and key are rotated for attention alone and stay as they
 * are in memory: nothing behind it reads them. */
#ifndef GRETA_OPS_GPU_KERNELS_WALK_ATTENTION_H
#define GRETA_OPS_GPU_KERNELS_WALK_ATTENTION_H

#include "ops/gpu/kernels/walk_cells.h"

#if HAS_BULK

INLINE void walk_part_sync(void)
{
    part_sync(WALK_ATTENTION_THREADS);
}

/* ---- What is known before ------------------------------------------------------------------- */

/* The block's memory, as attention_step.c has it. */
struct walk_heads {
    struct places places;
    SHARED float *query;
    SHARED float *raw; /* query, key and value as they came: where totals are later */
    SHARED uint32_t *flag;
};

INLINE struct walk_heads walk_heads(const struct walk *walk, uint32_t head_dim)
{
    SHARED float *memory = (SHARED float *)walk_place(walk, WALK_AT_SCRATCH);
    SHARED float *query = memory + CHUNK + 12 + TEAMS * head_dim;
    return (struct walk_heads){ .places = { .scores = memory,
                                            .maxima = memory + CHUNK,
                                            .sums = memory + CHUNK + 4,
                                            .factors = memory + CHUNK + 8,
                                            .totals = memory + CHUNK + 12,
                                            .fresh_key = query + head_dim,
                                            .fresh_value = query + 2 * head_dim },
                                .query = query,
                                .raw = memory + CHUNK + 12,
                                .flag = (SHARED uint32_t *)(query + 3 * head_dim) };
}

INLINE SHARED struct walk_lists *walk_lists(const struct walk *walk)
{
    return &walk_state(walk)->lists;
}

/* The operands that they are read from. */
INLINE uint32_t walk_list_operand(uint32_t n)
{
    return n == 0 ? 3 : n == 1 ? 4 : n == 2 ? 9 : 10;
}
INLINE bool walk_knows_lists(const struct walk *walk, const struct gpu_call *call)
{
    bool same = true;
    UNROLL
    for (uint32_t n = 0; n < 4; n++)
        same = same && walk_lists(walk)->from[n] == call->operands[walk_list_operand(n)].address;
    return same;
}

/* As find_share: false for a bad index. */
INLINE bool walk_find_share(const struct gpu_call *call, uint32_t unit, uint64_t start,
                            uint64_t position, struct share *share)
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
                             .parts = 1,
                             .counter = head,
                             .fresh = NOT_FRESH };
    if (start >= keys->rows || position >= keys->rows - start)
        return false;
    uint64_t count = position + 1, worth = (count + PART_SLOTS - 1) / PART_SLOTS;
    share->parts = worth < parts ? (uint32_t)worth : parts;
    uint64_t each = (count + share->parts - 1) / share->parts;
    each = (each + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE * ROWS_AT_ONCE;
    share->start = start;
    share->first = share->part * each < count ? share->part * each : count;
    share->end = share->first + each < count ? share->first + each : count;
    return true;
}

/* Traps, by one thread: those of rope, kv_append and attention. */
INLINE void walk_check_lists(const struct gpu_call *call, uint64_t start, uint64_t position,
                             uint64_t slot)
{
    uint64_t rows = call->operands[1].rows;
    index_ok(call, 1, position, call->operands[10].rows);
    index_of_ok(call, call->more_trap_ids[0], 2, slot, rows);
    if (index_of_ok(call, call->more_trap_ids[1], 3, start, rows))
        index_of_ok(call, call->more_trap_ids[1], 4, position, rows - start);
}

/* Lists and angles to the block's memory, unless they are there; each under the name of the launch
 * whose it is. */
INLINE void walk_read_lists(const struct walk *walk, const struct gpu_call *call)
{
    const struct gpu_operand *table = &call->operands[10];
    SHARED struct walk_lists *lists = walk_lists(walk);
    uint32_t i = thread_index();
    if (walk_knows_lists(walk, call))
        return;
    uint64_t position = list_index(&call->operands[4], 0);
    if (position < table->rows && i < table->width)
        lists->angles[i] = row_f32(table, position)[i];
    walk_part_sync(); /* all have looked */
    walk_name(call, 1);
    if (i == 0)
        lists->slot = list_index(&call->operands[9], 0);
    walk_name(call, 2);
    if (i == 0) {
        lists->start = list_index(&call->operands[3], 0);
        lists->position = position;
    }
    if (i < 4)
        lists->from[i] = call->operands[walk_list_operand(i)].address;
    walk_part_sync();
    walk_name(call, 0);
}

/* Before the query is waited for: the lines of the first unit's keys and values, if it is
 * known which they are. */
INLINE void walk_attention_ask(const struct walk *walk, const struct gpu_call *call)
{
    const SHARED struct walk_lists *lists = walk_lists(walk);
    struct share share;
    if (block_x() >= call->words[WALK_ATTENTION_UNITS] || !walk_knows_lists(walk, call) ||
        !walk_find_share(call, block_x(), lists->start, lists->position, &share) ||
        share.part >= share.parts)
        return;
    /* A cache row of a head is 256 bytes or fewer. */
    for (uint64_t n = thread_index(); n < 4 * (share.end - share.first); n += WALK_THREADS) {
        uint64_t row = share.start + share.first + n / 4;
        uint32_t at = 2 * share.kv_head * share.head_dim + (n & 2 ? share.head_dim : 0);
        ask_line(row_at(&call->operands[1 + n % 2], row) + at);
    }
}

/* ---- The cache ------------------------------------------------------------------------------ */

/* Rows of the cache that a thread has on their way together. */
#define WALK_CACHED 2u
#define WALK_CACHED_SLOTS (WALK_CACHED * ROWS_AT_ONCE)

struct walk_cached {
    words4 words[WALK_CACHED][2];
};

/* Where a thread is among those that share a row, and which row it has of ROWS_AT_ONCE. */
struct walk_seat {
    uint32_t lane, row;
};

INLINE struct walk_seat walk_seat(void)
{
    uint32_t thread = from_here(thread_index());
    return (struct walk_seat){ .lane = thread % ROW_LANES, .row = thread / ROW_LANES };
}

/* Of slots from `first` on, those before `end`; there is one. */
INLINE void walk_load_cached(const struct gpu_operand *cache, const struct share *share,
                             struct walk_seat seat, uint32_t first, uint32_t end,
                             struct walk_cached *cached)
{
    const GLOBAL uint8_t *rows = row_at(cache, share->start) +
                                 2 * (share->kv_head * share->head_dim + 8 * seat.lane);
    uint64_t stride = cache->row_stride_bytes;
    UNROLL
    for (uint32_t n = 0; n < WALK_CACHED; n++) {
        uint32_t slot = first + n * ROWS_AT_ONCE + seat.row;
        const GLOBAL words4 *row = (const GLOBAL words4 *)(rows +
                                                           (slot < end ? slot : end - 1) * stride);
        UNROLL
        for (uint32_t p = 0; p < 2; p++) {
            const words4 none = { 0 };
            bool there = 8 * (seat.lane + ROW_LANES * p) < share->head_dim;
            cached->words[n][p] = there ? row[ROW_LANES * p] : none;
        }
    }
}

/* As load_cached. */
INLINE void walk_values(words4 words, bool is_fresh, const SHARED float *fresh, float values[8])
{
    UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        values[2 * i] = f16_value((uint16_t)words[i]);
        values[2 * i + 1] = f16_value((uint16_t)(words[i] >> 16));
    }
    if (!is_fresh)
        return;
    UNROLL
    for (uint32_t i = 0; i < 8; i++)
        values[i] = fresh[i];
}

/* As score_chunk, for one head and the keys that were loaded. scores: of slot `first` on. */
INLINE void walk_score(float scale, const struct share *share, const struct places *places,
                       struct walk_seat seat, const struct walk_cached *keys, const float q[16],
                       uint32_t first, uint32_t end, SHARED float *scores)
{
    UNROLL
    for (uint32_t n = 0; n < WALK_CACHED; n++) {
        if (first + n * ROWS_AT_ONCE >= end)
            break;
        uint32_t slot = first + n * ROWS_AT_ONCE + seat.row;
        float dot = 0;
        UNROLL
        for (uint32_t p = 0; p < 2; p++) {
            uint32_t at = 8 * (seat.lane + ROW_LANES * p);
            float values[8];
            if (at < share->head_dim) {
                walk_values(keys->words[n][p], slot == share->fresh, places->fresh_key + at,
                            values);
                UNROLL
                for (uint32_t i = 0; i < 8; i++)
                    dot += q[8 * p + i] * values[i];
            }
        }
        dot = team_sum(dot, ROW_LANES) * scale;
        if (seat.lane == 0 && slot < end)
            scores[slot - first] = dot;
    }
}

/* As gather_chunk. */
INLINE void walk_gather(const struct share *share, const struct places *places,
                        struct walk_seat seat, const struct walk_cached *cached, uint32_t first,
                        uint32_t end, const SHARED float *scores, float totals[16])
{
    UNROLL
    for (uint32_t n = 0; n < WALK_CACHED; n++) {
        uint32_t slot = first + n * ROWS_AT_ONCE + seat.row;
        if (slot >= end)
            break;
        float weight = scores[slot - first];
        UNROLL
        for (uint32_t p = 0; p < 2; p++) {
            uint32_t at = 8 * (seat.lane + ROW_LANES * p);
            float values[8];
            if (at < share->head_dim) {
                walk_values(cached->words[n][p], slot == share->fresh, places->fresh_value + at,
                            values);
                UNROLL
                for (uint32_t i = 0; i < 8; i++)
                    totals[8 * p + i] += weight * values[i];
            }
        }
    }
}

/* As store_totals. */
INLINE void walk_store_totals(const struct share *share, const struct places *places,
                              struct walk_seat seat, const float totals[16])
{
    uint32_t rows = TEAM / ROW_LANES; /* of a team */
    SHARED float *target = places->totals + seat.row / rows * share->head_dim + 8 * seat.lane;
    UNROLL
    for (uint32_t i = 0; i < 16; i++) {
        uint32_t at = 8 * ROW_LANES * (i / 8) + i % 8;
        float sum = totals[i];
        sum += team_swap_float(sum, 8);
        sum += team_swap_float(sum, 16);
        if (seat.row % rows == 0 && 8 * seat.lane + at < share->head_dim)
            target[at] = sum;
    }
}

/* As attend_share, for one head. loaded: keys of the first slots. */
INLINE void walk_attend(const struct gpu_call *call, const struct share *share,
                        const struct places *places, struct walk_seat seat,
                        struct walk_cached *loaded, const float q[16])
{
    const struct params_attention *params = (const void *)call->params;
    const struct gpu_operand *keys = &call->operands[1], *values = &call->operands[2];
    const uint32_t begin = (uint32_t)share->first, behind = (uint32_t)share->end;
    float totals[16];
    UNROLL
    for (uint32_t i = 0; i < 16; i++)
        totals[i] = 0;
    for (uint32_t first = begin; first < behind; first += CHUNK) {
        uint32_t end = first + CHUNK < behind ? first + CHUNK : behind;
        for (uint32_t at = first; at < end; at += WALK_CACHED_SLOTS) {
            if (at > begin)
                walk_load_cached(keys, share, seat, at, end, loaded);
            walk_score(params->scale, share, places, seat, loaded, q, at, end,
                       places->scores + (at - first));
        }
        walk_load_cached(values, share, seat, first, end, loaded);
        walk_part_sync();
        weigh_chunk(places, 1, end - first);
        walk_part_sync();
        float factor = places->factors[0];
        UNROLL
        for (uint32_t i = 0; i < 16; i++)
            totals[i] *= factor;
        for (uint32_t at = first; at < end; at += WALK_CACHED_SLOTS) {
            if (at > first)
                walk_load_cached(values, share, seat, at, end, loaded);
            walk_gather(share, places, seat, loaded, at, end, places->scores + (at - first),
                        totals);
        }
        walk_part_sync();
    }
    walk_store_totals(share, places, seat, totals);
    walk_part_sync();
}

/* ---- A head --------------------------------------------------------------------------------- */

/* Value i of a head, rotated, as step_rotated does; angles 0: not rotated. */
INLINE float walk_rotated(const struct gpu_call *call, const SHARED float *angles,
                          const SHARED float *head, uint32_t i)
{
    uint32_t pairs = (uint32_t)call->operands[10].width / 2;
    bool adjacent = call->words[3];
    if (!angles || i >= 2 * pairs)
        return head[i];
    bool second = adjacent ? i % 2 : i >= pairs;
    uint32_t k = adjacent ? i / 2 : i % pairs, distance = adjacent ? 1 : pairs;
    float cosine = angles[k], sine = angles[pairs + k];
    float x0 = head[second ? i - distance : i], x1 = head[second ? i : i + distance];
    return second ? x0 * sine + x1 * cosine : x0 * cosine - x1 * sine;
}

/* Query, key and value of the unit's head, as the product before left them, to the block's memory:
 * where totals are later. */
INLINE void walk_take_heads(const struct walk *walk, const struct gpu_call *call, uint32_t unit)
{
    const struct params_attention *params = (const void *)call->params;
    const GLOBAL uint64_t *cells = walk_cells(walk, call->words[WALK_SOURCE]);
    uint32_t tag = walk_state(walk)->tag, head_dim = params->head_dim;
    uint32_t queries = (uint32_t)call->operands[0].width, keys = (uint32_t)call->operands[1].width;
    uint32_t head = unit % (queries / head_dim), kv_head = head / (queries / keys);
    SHARED float *raw = walk_heads(walk, head_dim).raw;
    for (uint32_t i = from_here(thread_index()); i < 3 * head_dim; i += WALK_ATTENTION_THREADS) {
        uint32_t which = i / head_dim, n = i % head_dim;
        uint32_t first = which == 0   ? head * head_dim
                         : which == 1 ? queries + kv_head * head_dim
                                      : queries + keys + kv_head * head_dim;
        raw[i] = float_of(walk_take_cell(walk, cells + first + n, tag));
    }
    walk_part_sync();
}

/* The same rotated, as the cache has them; key and value to the cache. */
INLINE void walk_turn_heads(const struct gpu_call *call, const struct share *share,
                            const struct walk_heads *heads, const SHARED float *angles,
                            uint64_t slot)
{
    const struct gpu_operand *keys = &call->operands[1], *values = &call->operands[2];
    uint32_t i = from_here(thread_index()), head_dim = share->head_dim;
    if (i < head_dim)
        heads->query[i] = walk_rotated(call, angles, heads->raw, i);
    walk_name(call, 1); /* the row stands for three launches */
    uint32_t n = i - WALK_ATTENTION_THREADS / 2;
    if (i < WALK_ATTENTION_THREADS / 2 || n >= head_dim)
        return;
    uint32_t at = share->kv_head * head_dim;
    uint32_t group = (uint32_t)(call->operands[0].width / keys->width);
    uint16_t key = f16_bits(walk_rotated(call, angles, heads->raw + head_dim, n));
    uint16_t value = f16_bits(heads->raw[2 * head_dim + n]);
    heads->places.fresh_key[n] = f16_value(key);
    heads->places.fresh_value[n] = f16_value(value);
    if (slot < keys->rows && share->part == 0 && share->first_head == share->kv_head * group) {
        ((GLOBAL uint16_t *)row_at(keys, slot))[at + n] = key;
        ((GLOBAL uint16_t *)row_at(values, slot))[at + n] = value;
    }
}

/* As store_out, and to cells for the product behind. Whole teams, of 32 neighbours each. */
INLINE void walk_store_out(const struct walk *walk, const struct gpu_call *call,
                           const struct share *share, uint32_t at, float value)
{
    const struct params_attention *params = (const void *)call->params;
    uint32_t i = share->first_head * share->head_dim + at;
    uint32_t width = (uint32_t)call->operands[5].width;
    row_f32(&call->operands[5], 0)[i] = value;
    walk_put_packed(walk, call->words[2] ? params->packing.format : PACK_F32,
                    call->words[2] ? row_at(&call->operands[6], 0) : 0, call->words[WALK_TARGET],
                    width, i, value);
}

/* As finish: the parts of a head meet in the workspace. */
INLINE void walk_finish(const struct walk *walk, const struct gpu_call *call,
                        const struct share *share, const struct places *places,
                        SHARED uint32_t *flag)
{
    uint32_t at = thread_index();
    if (at < share->head_dim) { /* whole teams */
        float total = sum_of_teams(share, places, 1, 0, at);
        if (share->parts == 1) {
            walk_store_out(walk, call, share, at, total / places->sums[0]);
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
    fence_counter();
    walk_part_sync();
    if (at == 0) {
        GLOBAL uint32_t *counter = (GLOBAL uint32_t *)call->workspace + share->counter;
        *flag = __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED) == share->parts - 1;
        if (*flag)
            *counter = 0;
    }
    walk_part_sync();
    fence_counter();
    if (*flag && at < share->head_dim)
        walk_store_out(walk, call, share, at, joined_value(call, share, 1, 0, at));
}

INLINE void walk_attention_unit(const struct walk *walk, const struct gpu_call *call, uint32_t unit)
{
    walk_take_heads(walk, call, unit);
    walk_name(call, 0);
    walk_read_lists(walk, call);
    unit = from_here(unit);
    const struct gpu_operand *keys = &call->operands[1];
    uint64_t start = walk_lists(walk)->start, position = walk_lists(walk)->position;
    uint64_t slot = walk_lists(walk)->slot;
    struct share share;
    bool valid = walk_find_share(call, unit, start, position, &share);
    if (share.part >= share.parts)
        return;
    uint32_t head_dim = share.head_dim;
    struct walk_heads heads = walk_heads(walk, head_dim);
    const struct places *places = &heads.places;
    if (unit == 0 && thread_index() == 0)
        walk_check_lists(call, start, position, slot);
    struct walk_seat seat = walk_seat();
    struct walk_cached loaded;
    if (share.first < share.end)
        walk_load_cached(keys, &share, seat, (uint32_t)share.first, (uint32_t)share.end, &loaded);
    walk_turn_heads(call, &share, &heads,
                    position < call->operands[10].rows ? walk_lists(walk)->angles : 0, slot);
    if (thread_index() == 0) {
        places->maxima[0] = -F32_INFINITY;
        places->sums[0] = 0;
    }
    walk_part_sync();
    if (!valid) {
        if (thread_index() < head_dim)
            walk_store_out(walk, call, &share, thread_index(), 0);
        return;
    }
    if (slot < keys->rows && slot >= start)
        share.fresh = slot - start;
    float q[16];
    UNROLL
    for (uint32_t n = 0; n < 16; n++) {
        uint32_t at = 8 * (seat.lane + ROW_LANES * (n / 8)) + n % 8;
        q[n] = at < head_dim ? heads.query[at] : 0.0f;
    }
    walk_name(call, 2);
    walk_attend(call, &share, places, seat, &loaded, q);
    walk_finish(walk, call, &share, places, heads.flag);
}

INLINE void walk_attention(const struct walk *walk, const struct gpu_call *call)
{
    uint32_t units = call->words[WALK_ATTENTION_UNITS];
    if (thread_index() >= WALK_ATTENTION_THREADS || block_x() >= units)
        return;
    for (uint32_t unit = block_x(); unit < units; unit += block_count_x()) {
        walk_attention_unit(walk, call, unit);
        walk_part_sync(); /* its memory is the next one's */
    }
}

#endif
#endif
