/* attention_step_rows.h - what threads of attention_step.c do with rows of the cache: eights of
 * keys and values in registers, scores, and sums of values with their weights. */
#ifndef GRETA_OPS_GPU_KERNELS_ATTENTION_STEP_ROWS_H
#define GRETA_OPS_GPU_KERNELS_ATTENTION_STEP_ROWS_H

#include "ops/gpu/kernels/attention_share.h"
#include "ops/gpu/tiling.h"
#include "ops/params.h"

/* Lanes of a row of the cache, each with eight values. */
#define STEP_LANES 16u
/* Rows of a pass over the block's threads, and passes of a chunk: what a thread's registers hold of
 * keys and values at a time. */
#define STEP_ROWS_AT_ONCE (ATTENTION_THREADS / STEP_LANES)
#define STEP_ROWS 7u
#define STEP_CHUNK (STEP_ROWS * STEP_ROWS_AT_ONCE)
_Static_assert(STEP_LANES * 8 >= STEP_HEAD_MOST, "a row");

/* What a thread has of a chunk, of keys or values. */
struct step_rows {
    words4 eights[STEP_ROWS];
};

/* Shared memory. */
struct step_places {
    SHARED float *queries;        /* [heads of the kv head][head_dim], rotated, then the new key */
    SHARED float *totals;         /* [ATTENTION_WARPS][STEP_HEAD_MOST] */
    SHARED uint16_t *key, *value; /* [head_dim], F16: the new ones */
    SHARED float *maxima, *sums;  /* [ATTENTION_WARPS] */
    SHARED uint32_t *flag;
};

/* The same places for all shapes: their addresses take no registers. */
INLINE struct step_places step_make_places(void)
{
    SHARED float *memory = (SHARED float *)shared_memory();
    struct step_places places = { .queries = memory };
    places.totals = places.queries + (STEP_GROUP_MOST + 1) * STEP_HEAD_MOST;
    places.maxima = places.totals + ATTENTION_WARPS * STEP_HEAD_MOST;
    places.sums = places.maxima + ATTENTION_WARPS;
    places.flag = (SHARED uint32_t *)(places.sums + ATTENTION_WARPS);
    places.key = (SHARED uint16_t *)(places.flag + 4);
    places.value = places.key + STEP_HEAD_MOST;
    return places;
}

/* ---- The cache ------------------------------------------------------------------------------ */

/* Slots of the block's part, counted from the sequence's first, which is `start`, and the new one,
 * which may be elsewhere; UINT32_MAX: before `start`, or nowhere. */
struct step_slots {
    uint32_t start, first, end, fresh;
    uint32_t value; /* of a row: the head's first */
};

/* The slot of row r of a chunk. */
INLINE uint32_t step_slot(uint32_t first, uint32_t r)
{
    return first + r * STEP_ROWS_AT_ONCE + thread_index() / STEP_LANES;
}

/* The thread's place in a row. */
INLINE uint32_t step_at(void)
{
    return 8 * (thread_index() % STEP_LANES);
}

/* A thread's eight values of each row of a chunk: zeros for rows past the end, and for the new row,
 * which step_take_new puts in its place. */
INLINE void step_fetch(const struct gpu_operand *cache, uint32_t head_dim,
                       const struct step_slots *slots, uint32_t first, struct step_rows *rows)
{
    uint32_t slot = step_slot(first, 0);
    uint64_t stride_bytes = cache->row_stride_bytes;
    const GLOBAL uint8_t *row = row_at(cache, slots->start + slot) + 2 * (slots->value + step_at());
    UNROLL
    for (uint32_t r = 0; r < STEP_ROWS; r++) {
        bool there = slot < slots->end && slot != slots->fresh && step_at() < head_dim;
        rows->eights[r] = load_if(there, row);
        row += STEP_ROWS_AT_ONCE * stride_bytes;
        slot += STEP_ROWS_AT_ONCE;
    }
}

INLINE float step_half(words4 eight, uint32_t i)
{
    return f16_value((uint16_t)(eight[i / 2] >> (16 * (i % 2))));
}

INLINE float step_dot(const float q[8], words4 eight)
{
    float sum = 0;
    UNROLL
    for (uint32_t i = 0; i < 8; i++)
        sum = __builtin_fmaf(q[i], step_half(eight, i), sum);
    return sum;
}

/* What the thread multiplies of the query. */
INLINE void step_load_query(const SHARED float *query, uint32_t head_dim, float q[8])
{
    bool there = step_at() < head_dim;
    UNROLL
    for (uint32_t i = 0; i < 8; i++)
        q[i] = there ? query[step_at() + i] : 0.0f;
}

/* The new row, if it is in the chunk, to whose registers it belongs. */
INLINE void step_take_new(const struct step_places *places, uint32_t head_dim,
                          const struct step_slots *slots, uint32_t first, struct step_rows *keys,
                          struct step_rows *values)
{
    uint32_t distance = slots->fresh - step_slot(first, 0);
    if (distance >= STEP_CHUNK || distance % STEP_ROWS_AT_ONCE || step_at() >= head_dim)
        return;
    UNROLL
    for (uint32_t r = 0; r < STEP_ROWS; r++) {
        bool here = distance == r * STEP_ROWS_AT_ONCE;
        load_shared_if(here, (const SHARED uint8_t *)(places->key + step_at()), &keys->eights[r]);
        load_shared_if(here, (const SHARED uint8_t *)(places->value + step_at()),
                       &values->eights[r]);
    }
}

/* Scores of the chunk's rows; all lanes of a row have them. */
INLINE void step_score(const struct gpu_call *call, const float q[8],
                       const struct step_slots *slots, uint32_t first, const struct step_rows *keys,
                       float scores[STEP_ROWS])
{
    const struct params_attention *params = (const void *)call->params;
    UNROLL
    for (uint32_t r = 0; r < STEP_ROWS; r++)
        scores[r] = step_dot(q, keys->eights[r]);
    UNROLL
    for (uint32_t r = 0; r < STEP_ROWS; r++)
        scores[r] = warp_sum(scores[r], STEP_LANES) * params->scale;
    UNROLL
    for (uint32_t r = 0; r < STEP_ROWS; r++) {
        scores[r] = step_slot(first, r) < slots->end ? scores[r] : -F32_INFINITY;
    }
}

/* What a warp has of its rows: the largest score, the sum of weights of the lanes' own rows, and
 * the values with their weights. */
struct step_sums {
    float largest, sum;
    float totals[8];
};

/* Takes a new largest score: what was added so far shrinks. Returns what scores are measured from.
 */
INLINE float step_raise(float largest, struct step_sums *sums)
{
    float other = warp_swap_float(largest, STEP_LANES);
    largest = other > largest ? other : largest;
    largest = sums->largest > largest ? sums->largest : largest;
    float base = largest > -F32_INFINITY ? largest : 0.0f;
    float factor = exp_value(sums->largest - base);
    sums->largest = largest;
    sums->sum *= factor;
    UNROLL
    for (uint32_t i = 0; i < 8; i++)
        sums->totals[i] *= factor;
    return base;
}

INLINE void step_add_row(float weight, words4 eight, struct step_sums *sums)
{
    sums->sum += weight;
    UNROLL
    for (uint32_t i = 0; i < 8; i++)
        sums->totals[i] = __builtin_fmaf(weight, step_half(eight, i), sums->totals[i]);
}

INLINE void step_add(const struct step_rows *values, const float scores[STEP_ROWS],
                     struct step_sums *sums)
{
    float largest = scores[0];
    UNROLL
    for (uint32_t r = 1; r < STEP_ROWS; r++)
        largest = scores[r] > largest ? scores[r] : largest;
    float base = step_raise(largest, sums);
    UNROLL
    for (uint32_t r = 0; r < STEP_ROWS; r++)
        step_add_row(exp_value(scores[r] - base), values->eights[r], sums);
}

/* Both rows of the warp together, to its place. */
INLINE void step_store_sums(uint32_t head_dim, const struct step_places *places,
                            const struct step_sums *sums)
{
    float sum = sums->sum + warp_swap_float(sums->sum, STEP_LANES), totals[8];
    UNROLL
    for (uint32_t i = 0; i < 8; i++)
        totals[i] = sums->totals[i] + warp_swap_float(sums->totals[i], STEP_LANES);
    if (lane_index() < STEP_LANES && step_at() < head_dim) {
        SHARED floats4 *place = (SHARED floats4 *)(places->totals + warp_index() * STEP_HEAD_MOST +
                                                   step_at());
        place[0] = (floats4){ totals[0], totals[1], totals[2], totals[3] };
        place[1] = (floats4){ totals[4], totals[5], totals[6], totals[7] };
    }
    if (lane_index() == 0) {
        places->maxima[warp_index()] = sums->largest;
        places->sums[warp_index()] = sum;
    }
}

#endif
