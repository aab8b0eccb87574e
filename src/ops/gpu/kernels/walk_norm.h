/* walk_norm.h - rms_norm in a walk: the sums of rms_norm_by_four, thread by thread.
 *
 * In front of a product every block does all of it for itself: it packs the row into its shared
 * memory, and stores its share of the outputs. The stream x is read by all blocks, so that what was
 * added to it may be stored only when they have met again. Otherwise the first block does it. */
#ifndef GRETA_OPS_GPU_KERNELS_WALK_NORM_H
#define GRETA_OPS_GPU_KERNELS_WALK_NORM_H

#include "ops/gpu/kernels/pack.h"
#include "ops/gpu/kernels/walk_stream.h"
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
    bool there = 4 * i < width, everywhere = call->words[WALK_NORM_EVERYWHERE];
    SHARED uint8_t *kept = walk_place(walk, WALK_AT_PACKED);
    GLOBAL uint8_t *packed = row_at(&call->operands[4], 0);
    if (params->packing.format == PACK_F32) {
        if (there && everywhere)
            ((SHARED floats4 *)kept)[i] = values;
        if (there && mine)
            ((GLOBAL floats4 *)packed)[i] = values;
        return;
    }
    floats2 pair;
    uint32_t levels = four_levels(values, &pair);
    if (there && everywhere) {
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

INLINE void walk_norm(const struct walk *walk, const struct gpu_call *call)
{
    const struct params_norm *params = (const void *)call->params;
    uint32_t width = (uint32_t)call->operands[0].width, fours = width / 4;
    uint32_t step = call->words[WALK_NORM_THREADS];
    bool everywhere = call->words[WALK_NORM_EVERYWHERE], has_added = call->operands[1].address;
    if (!everywhere && block_x() != 0)
        return;
    GLOBAL floats4 *x = (GLOBAL floats4 *)row_at(&call->operands[0], 0);
    const GLOBAL floats4 *added = (const GLOBAL floats4 *)row_at(&call->operands[1], 0);
    const GLOBAL floats4 *weight = (const GLOBAL floats4 *)row_at(&call->operands[2], 0);
    GLOBAL floats4 *out = (GLOBAL floats4 *)row_at(&call->operands[3], 0);
    uint32_t first = everywhere ? fours * block_x() / block_count_x() : 0;
    uint32_t end = everywhere ? fours * (block_x() + 1) / block_count_x() : fours;
    const floats4 zero = { 0 };
    floats4 values[WALK_FOURS], more[WALK_FOURS], weights[WALK_FOURS], squares = zero;
    UNROLL
    for (uint32_t n = 0; n < WALK_FOURS; n++) {
        uint32_t i = n * step + thread_index();
        bool there = thread_index() < step && i < fours;
        weights[n] = there ? weight[i] : zero;
        values[n] = there ? x[i] : zero;
        more[n] = there && has_added ? added[i] : zero;
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
    SHARED floats4 *kept = (SHARED floats4 *)walk_place(walk, WALK_AT_KEPT);
    UNROLL
    for (uint32_t n = 0; n < WALK_FOURS; n++) {
        uint32_t i = n * step + thread_index();
        bool mine = thread_index() < step && i >= first && i < end;
        floats4 value = values[n] * scale * weights[n];
        if (mine)
            out[i] = value;
        if (mine && has_added) {
            if (everywhere)
                kept[i - first] = values[n];
            else
                x[i] = values[n];
        }
        /* Whole teams: step is a multiple of TEAM, as the row's fours need not be. */
        if (call->operands[4].address && thread_index() < step)
            walk_pack(walk, call, i, mine, value);
    }
    if (everywhere && has_added && thread_index() == 0) {
        walk_state(walk)->kept_at = (uint64_t)(x + first);
        walk_state(walk)->kept_count = end - first;
    }
}

/* Behind the meeting that follows. */
INLINE void walk_store_kept(const struct walk *walk)
{
    uint32_t count = walk_state(walk)->kept_count;
    if (count == 0)
        return;
    const SHARED floats4 *kept = (const SHARED floats4 *)walk_place(walk, WALK_AT_KEPT);
    GLOBAL floats4 *target = (GLOBAL floats4 *)walk_state(walk)->kept_at;
    for (uint32_t i = thread_index(); i < count; i += thread_count())
        target[i] = kept[i];
    block_sync(); /* all have read the count */
    if (thread_index() == 0)
        walk_state(walk)->kept_count = 0;
}

/* What the next row reads and no row writes: asked for while the block waits. */
INLINE void walk_norm_ask(const struct gpu_call *call)
{
    const GLOBAL uint8_t *weight = row_at(&call->operands[2], 0);
    uint64_t bytes = call->operands[2].width * sizeof(float);
    if (call->words[WALK_NORM_EVERYWHERE] && block_x() != 0)
        return; /* the cache is everybody's */
    for (uint32_t at = 128 * thread_index(); at < bytes; at += 128 * thread_count())
        ask_line(weight + at);
}

#endif
#endif
