/* walk_norm.h - rms_norm in a walk: the sums of rms_norm_by_four, thread by thread.
 *
 * Every block does all of it for itself: it has the stream x in its shared memory, adds to it what
 * came of the product before, packs the row for the product behind it, and stores its share of the
 * outputs. */
#ifndef GRETA_OPS_GPU_KERNELS_WALK_NORM_H
#define GRETA_OPS_GPU_KERNELS_WALK_NORM_H

#include "ops/gpu/kernels/walk_cells.h"
#include "ops/params.h"

#if HAS_BULK

#define WALK_FOURS 2

/* Four i of a row, packed, to the block's memory and, if it is the block's to store, to the
 * output. All lanes of a team are here together. */
INLINE void walk_pack(const struct walk *walk, const struct gpu_call *call, uint32_t i, bool mine,
                      floats4 values)
{
    const struct params_norm *params = (const void *)call->params;
    uint32_t width = (uint32_t)call->operands[0].width;
    bool there = 4 * i < width;
    SHARED uint8_t *kept = walk_place(walk, WALK_AT_PACKED);
    GLOBAL uint8_t *packed = row_at(&call->operands[4], 0);
    if (params->packing.format == PACK_F32) {
        if (there)
            ((SHARED floats4 *)kept)[i] = values;
        if (there && mine)
            ((GLOBAL floats4 *)packed)[i] = values;
        return;
    }
    floats2 pair;
    uint32_t levels = four_levels(values, &pair);
    if (there) {
        ((SHARED uint32_t *)kept)[i] = levels;
        if (i % 8 == 0)
            *(SHARED floats2 *)(kept + width + i / 8 * 8) = pair;
    }
    if (there && mine) {
        ((GLOBAL uint32_t *)packed)[i] = levels;
        if (i % 8 == 0)
            *(GLOBAL floats2 *)(packed + width + i / 8 * 8) = pair;
    }
}

/* What the product before made, for the thread's fours. All lanes of a team are here together. */
INLINE void walk_take_added(const struct walk *walk, const struct gpu_call *call, uint32_t fours,
                            floats4 more[WALK_FOURS])
{
    uint32_t tag = walk_state(walk)->tag, step = call->words[WALK_NORM_THREADS];
    uint32_t thread = from_here(thread_index());
    const GLOBAL uint64_t *cells = walk_cells(walk, call->words[WALK_SOURCE]);
    bool here = thread < step && thread < fours;
    walk_look(walk, cells + 4 * thread, here, tag);
    if (!here)
        return;
    words2 values[WALK_PAIRS]; /* low and high pairs of a four are neighbours */
    walk_take_pairs(walk, cells, 4 * thread, 2, 4 * step, 4 * fours, tag, values);
    UNROLL
    for (uint32_t n = 0; n < WALK_FOURS; n++)
        more[n] = (floats4){ float_of(values[2 * n][0]), float_of(values[2 * n][1]),
                             float_of(values[2 * n + 1][0]), float_of(values[2 * n + 1][1]) };
}

INLINE void walk_norm(const struct walk *walk, const struct gpu_call *call)
{
    const struct params_norm *params = (const void *)call->params;
    uint32_t width = (uint32_t)call->operands[0].width, fours = width / 4;
    uint32_t step = call->words[WALK_NORM_THREADS];
    bool has_added = call->words[WALK_SOURCE] != WALK_NOWHERE;
    SHARED floats4 *stream = (SHARED floats4 *)walk_place(walk, WALK_AT_STREAM);
    GLOBAL floats4 *x = (GLOBAL floats4 *)row_at(&call->operands[0], 0);
    const GLOBAL floats4 *weight = (const GLOBAL floats4 *)row_at(&call->operands[2], 0);
    GLOBAL floats4 *out = (GLOBAL floats4 *)row_at(&call->operands[3], 0);
    uint32_t thread = from_here(thread_index());
    uint32_t first = fours * block_x() / block_count_x();
    uint32_t end = fours * (block_x() + 1) / block_count_x();
    const floats4 zero = { 0 };
    floats4 values[WALK_FOURS], more[WALK_FOURS] = { zero, zero }, weights[WALK_FOURS];
    floats4 squares = zero;
    if (has_added)
        walk_take_added(walk, call, fours, more);
    walk_name(call, 0);
    UNROLL
    for (uint32_t n = 0; n < WALK_FOURS; n++) {
        uint32_t i = n * step + thread;
        bool there = thread < step && i < fours;
        weights[n] = there ? weight[i] : zero;
        values[n] = there ? stream[i] : zero;
    }
    UNROLL
    for (uint32_t n = 0; n < WALK_FOURS; n++) {
        values[n] += more[n];
        squares += values[n] * values[n];
    }
    float mean = block_sum(squares[0] + squares[1] + squares[2] + squares[3],
                           (SHARED float *)walk_place(walk, WALK_AT_SCRATCH)) /
                 (float)width;
    float scale = 1.0f / __builtin_sqrtf(mean + params->epsilon);
    UNROLL
    for (uint32_t n = 0; n < WALK_FOURS; n++) {
        uint32_t i = n * step + thread;
        bool there = thread < step && i < fours;
        bool mine = thread < step && i >= first && i < end;
        floats4 value = values[n] * scale * weights[n];
        if (there && has_added)
            stream[i] = values[n];
        if (mine) {
            out[i] = value;
            if (has_added)
                x[i] = values[n];
        }
        /* Whole teams: step is a multiple of TEAM, as the row's fours need not be. */
        if (thread < step)
            walk_pack(walk, call, i, mine, value);
    }
}

/* What the next row reads and no row writes: asked for before others' work is waited for. */
INLINE void walk_norm_ask(const struct gpu_call *call)
{
    const GLOBAL uint8_t *weight = row_at(&call->operands[2], 0);
    uint64_t bytes = call->operands[2].width * sizeof(float);
    if (block_x() != 0)
        return; /* the cache is everybody's */
    for (uint32_t at = 128 * thread_index(); at < bytes; at += 128 * thread_count())
        ask_line(weight + at);
}

#endif
#endif
