/* walk_cells.h - how the blocks of a walk wait for each other: by the cells (walking.h) that one
 * fills and others look at until they have come. A cell holds what is wanted and says so itself, so
 * that nothing need be ordered before it, and nobody waits for more than what he reads.
 *
 * Every row has cells of its own, and every cell is filled once in a replay. */
#ifndef GRETA_OPS_GPU_KERNELS_WALK_CELLS_H
#define GRETA_OPS_GPU_KERNELS_WALK_CELLS_H

#include "ops/gpu/kernels/bulk.h"
#include "ops/gpu/kernels/pack.h"
#include "ops/gpu/walking.h"

#if HAS_BULK

struct walk {
    const struct gpu_call *call; /* of the walk itself */
};

INLINE SHARED uint8_t *walk_place(const struct walk *walk, enum walk_word word)
{
    return shared_memory() + walk->call->words[word];
}

INLINE SHARED struct walk_state *walk_state(const struct walk *walk)
{
    return (SHARED struct walk_state *)walk_place(walk, WALK_AT_STATE);
}

/* Which launch of a row is at it, for a fault: by the first block, once it has what the row reads
 * of others. Then no block is at a row before it. */
INLINE void walk_name(const struct gpu_call *call, uint32_t launch)
{
    if (block_x() == 0 && thread_index() == 0 && call->crumbs)
        store_crumb(call->crumbs + GPU_CRUMB_NODE, call->node + launch);
}

/* ---- Waits ---------------------------------------------------------------------------------- */

#define WALK_POLLS 256u

/* A thread that waits calls this each time it has not seen what it waits for. */
INLINE void walk_poll(const struct walk *walk, uint32_t *polls, uint64_t *since)
{
    pause_here();
    if (++*polls % WALK_POLLS)
        return;
    uint64_t now = clock_ns();
    if (*since == 0)
        *since = now;
    if (now - *since < (uint64_t)walk->call->words[WALK_LIMIT_MS] * 1000000u)
        return;
    /* The row at hand is what the failed kernel is named by. */
    if (walk->call->crumbs)
        store_crumb(walk->call->crumbs + GPU_CRUMB_NODE, walk_state(walk)->node);
    fence_system();
    give_up();
}

INLINE GLOBAL uint64_t *walk_memory(const struct walk *walk)
{
    return (GLOBAL uint64_t *)walk->call->operands[1].address;
}

/* The replay's number: every block reads it before the first one can come to its end. */
INLINE void walk_begin(const struct walk *walk)
{
    if (thread_index() == 0) {
        walk_state(walk)->tag = (uint32_t)walk_memory(walk)[WALK_REPLAYS] + 1;
        walk_state(walk)->node = walk->call->node;
        walk_state(walk)->lists.from[0] = 0;
        counter_add(walk_memory(walk) + WALK_BEGUN);
    }
}
INLINE void walk_end(const struct walk *walk)
{
    if (block_x() != 0 || thread_index() != 0)
        return;
    uint32_t polls = 0;
    uint64_t since = 0, replays = walk_memory(walk)[WALK_REPLAYS] + 1;
    while (counter_load(walk_memory(walk) + WALK_BEGUN) < replays * block_count_x())
        walk_poll(walk, &polls, &since);
    walk_memory(walk)[WALK_REPLAYS] = replays;
}

/* ---- Cells ---------------------------------------------------------------------------------- */

INLINE GLOBAL uint64_t *walk_cells(const struct walk *walk, uint32_t first)
{
    return walk_memory(walk) + WALK_FIRST_CELL + first;
}

INLINE bool walk_has_come(uint64_t cell, uint32_t tag)
{
    return (uint32_t)(cell >> 32) == tag;
}

INLINE uint32_t walk_take_cell(const struct walk *walk, const GLOBAL uint64_t *cell, uint32_t tag)
{
    uint32_t polls = 0;
    uint64_t since = 0, found = cell_load(cell);
    while (!walk_has_come(found, tag)) {
        walk_poll(walk, &polls, &since);
        found = cell_load(cell);
    }
    return (uint32_t)found;
}

/* Pairs of neighbouring cells that a thread takes together: from first on `together` of them, again
 * from first + step on, ...; those from `end` on are not looked at. */
#define WALK_PAIRS 4u
INLINE void walk_take_pairs(const struct walk *walk, const GLOBAL uint64_t *cells, uint32_t first,
                            uint32_t together, uint32_t step, uint32_t end, uint32_t tag,
                            words2 values[WALK_PAIRS])
{
    uint32_t polls = 0;
    uint64_t since = 0;
    for (;;) {
        uint32_t others = 0; /* not 0: a cell has not come */
        struct cells found[WALK_PAIRS];
        UNROLL
        for (uint32_t n = 0; n < WALK_PAIRS; n++) {
            uint32_t at = first + n / together * step + 2 * (n % together);
            const struct cells none = { (uint64_t)tag << 32, (uint64_t)tag << 32 };
            found[n] = at < end ? cells_load(cells + at) : none;
        }
        UNROLL
        for (uint32_t n = 0; n < WALK_PAIRS; n++) {
            others |= (uint32_t)(found[n].first >> 32) ^ tag;
            others |= (uint32_t)(found[n].second >> 32) ^ tag;
            values[n] = (words2){ (uint32_t)found[n].first, (uint32_t)found[n].second };
        }
        if (others == 0)
            return;
        walk_poll(walk, &polls, &since);
    }
}

/* Before a team takes cells: lets one lane in eight look whether they have come, so that waiting
 * does not take the memory's time. wanted: the lane has one. */
#ifndef WALK_LOOKERS
#define WALK_LOOKERS 8u
#endif
INLINE void walk_look(const struct walk *walk, const GLOBAL uint64_t *cell, bool wanted,
                      uint32_t tag)
{
    if (wanted && lane_index() % WALK_LOOKERS == 0)
        walk_take_cell(walk, cell, tag);
    team_sync();
}

/* Words that came through cells to the block's memory. */
INLINE void walk_take_words(const struct walk *walk, const GLOBAL uint64_t *cells, uint32_t count,
                            SHARED uint32_t *target)
{
    uint32_t tag = walk_state(walk)->tag, mine = 2 * from_here(thread_index());
    const uint32_t step = 2 * WALK_THREADS;
    walk_look(walk, cells + mine, mine < count, tag);
    for (uint32_t first = mine; first < count; first += WALK_PAIRS * step) {
        words2 values[WALK_PAIRS];
        walk_take_pairs(walk, cells, first, 1, step, count, tag, values);
        UNROLL
        for (uint32_t n = 0; n < WALK_PAIRS; n++)
            if (first + n * step < count)
                *(SHARED words2 *)(target + first + n * step) = values[n];
    }
}

/* Value i of a row that the next product multiplies, packed: to the operand, and to cells as the
 * words of it (packing.h). As pack_value. */
INLINE void walk_put_packed(const struct walk *walk, uint32_t format, GLOBAL uint8_t *packed,
                            uint32_t target, uint32_t k, uint32_t i, float value)
{
    GLOBAL uint64_t *cells = walk_cells(walk, target);
    uint32_t tag = walk_state(walk)->tag, lane = lane_index();
    if (i >= k)
        return;
    if (format == PACK_F32) {
        cell_store(cells + i, bits_of(value), tag);
        if (packed)
            ((GLOBAL float *)packed)[i] = value;
        return;
    }
    floats2 pair;
    int32_t level = pack_level(value, &pair);
    uint32_t word = ((uint32_t)level & 255u) << (8 * (lane % 4));
    word |= team_swap(word, 1);
    word |= team_swap(word, 2);
    uint32_t block = i / 32; /* levels of four values are a word; behind them two for each block */
    if (lane % 4 == 0)
        cell_store(cells + i / 4, word, tag);
    else if (lane % 16 == 1)
        cell_store(cells + k / 4 + 2 * block + lane / 16, bits_of(lane < 16 ? pair[0] : pair[1]),
                   tag);
    if (packed) {
        ((GLOBAL int8_t *)packed)[i] = (int8_t)level;
        if (lane == 0)
            *(GLOBAL floats2 *)(packed + k + 8 * block) = pair;
    }
}

#endif
#endif
