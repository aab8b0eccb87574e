/* attention_chunks.h - attention over the cache, in shares of attention_share.h.
 *
 * A block does up to `heads` query heads, as its kernel is made for. Eight lanes share a cache row,
 * each with `eights` groups of eight values. Slots are taken in chunks of ATTENTION_CHUNK with a
 * running maximum. masked: the kernel knows windows, caps and sinks; a constant, so that those that
 * do not have no code for it. */
#ifndef GRETA_OPS_GPU_KERNELS_ATTENTION_CHUNKS_H
#define GRETA_OPS_GPU_KERNELS_ATTENTION_CHUNKS_H

#include "ops/gpu/kernels/attention_share.h"
#include "tensor/dtype.h"

#define PART_SLOTS 128u
#define ROW_LANES 8u
#define EIGHTS_MOST 8
#define ROWS_AT_ONCE (ATTENTION_THREADS / ROW_LANES)
_Static_assert(ROWS_AT_ONCE == SHARE_ROUND, "parts have whole rounds");

/* A cache of F16 whose rows lie at multiples of 16 bytes. */
#define ALIGNED_F16 DTYPE_COUNT

/* Eight values of a cache row from value `first` on, a multiple of 8. */
INLINE void load8(uint32_t dtype, const GLOBAL uint8_t *row, uint32_t first, float values[8])
{
    if (dtype == ALIGNED_F16) {
        words4 words = *(const GLOBAL words4 *)(row + 2 * first);
        UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            values[2 * i] = f16_value((uint16_t)words[i]);
            values[2 * i + 1] = f16_value((uint16_t)(words[i] >> 16));
        }
    } else if (dtype == DTYPE_F16) {
        const GLOBAL uint8_t *at = row + 2 * first;
        words4 words = { 0 };
        if (((uint64_t)(uintptr_t)at & 15) == 0) {
            words = *(const GLOBAL words4 *)at;
        } else {
            UNROLL
            for (uint32_t i = 0; i < 4; i++)
                words[i] = ((const GLOBAL uint16_t *)at)[2 * i] |
                           (uint32_t)((const GLOBAL uint16_t *)at)[2 * i + 1] << 16;
        }
        UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            values[2 * i] = f16_value((uint16_t)words[i]);
            values[2 * i + 1] = f16_value((uint16_t)(words[i] >> 16));
        }
    } else if (dtype == DTYPE_Q8_0) {
        const GLOBAL uint8_t *block = row + first / 32 * 34;
        float scale = f16_value(*(const GLOBAL uint16_t *)block);
        const GLOBAL uint16_t *quants = (const GLOBAL uint16_t *)(block + 2 + first % 32);
        UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            values[2 * i] = scale * (float)(int8_t)quants[i];
            values[2 * i + 1] = scale * (float)(int8_t)(quants[i] >> 8);
        }
    } else {
        const GLOBAL float *at = (const GLOBAL float *)row + first;
        UNROLL
        for (uint32_t i = 0; i < 8; i++)
            values[i] = at[i];
    }
}

/* Shared memory, in floats. */
struct places {
    SHARED float *scores;                  /* [heads][ATTENTION_CHUNK] */
    SHARED float *maxima, *sums, *factors; /* [heads] */
    SHARED float *totals;                  /* [ATTENTION_WARPS][heads][head_dim] */
};

INLINE void score_chunk(const struct gpu_call *call, const struct share *share,
                        const struct places *places, uint32_t heads, uint32_t eights,
                        uint32_t dtype, bool masked, float q[ATTENTION_HEADS_MOST][8 * EIGHTS_MOST],
                        uint64_t first, uint64_t end)
{
    const struct params_attention *params = (const void *)call->params;
    const struct gpu_operand *keys = &call->operands[ATTENTION_KEYS];
    uint32_t lane = thread_index() % ROW_LANES;
    for (uint64_t base = first; base < end; base += ROWS_AT_ONCE) {
        uint64_t slot = base + thread_index() / ROW_LANES;
        bool valid = slot < end;
        const GLOBAL uint8_t *row = row_at(keys, share->start + (valid ? slot : end - 1));
        float dots[ATTENTION_HEADS_MOST];
        UNROLL
        for (uint32_t h = 0; h < heads; h++)
            dots[h] = 0;
        UNROLL
        for (uint32_t p = 0; p < eights; p++) {
            uint32_t at = 8 * (lane + ROW_LANES * p);
            float values[8];
            if (at < share->head_dim) {
                load8(dtype, row, share->kv_head * share->head_dim + at, values);
                UNROLL
                for (uint32_t h = 0; h < heads; h++) {
                    UNROLL
                    for (uint32_t i = 0; i < 8; i++)
                        dots[h] += q[h][8 * p + i] * values[i];
                }
            }
        }
        UNROLL
        for (uint32_t h = 0; h < heads; h++) {
            float dot = warp_sum(dots[h], ROW_LANES) * params->scale;
            if (masked && params->cap != 0)
                dot = params->cap * tanh_value(dot * reciprocal_fast(params->cap));
            if (lane == 0 && valid)
                places->scores[h * ATTENTION_CHUNK + (uint32_t)(slot - first)] = dot;
        }
    }
}

/* Warp h turns the scores of head h into weights, and says by how much what came before shrinks. */
INLINE void weigh_chunk(const struct places *places, uint32_t heads, uint32_t count)
{
    uint32_t h = warp_index();
    if (h >= heads)
        return;
    SHARED float *scores = places->scores + h * ATTENTION_CHUNK;
    float before = places->maxima[h], largest = before;
    for (uint32_t i = lane_index(); i < count; i += WARP)
        largest = scores[i] > largest ? scores[i] : largest;
    largest = warp_max(largest, WARP);
    float sum = 0;
    for (uint32_t i = lane_index(); i < count; i += WARP) {
        float weight = exp_value(scores[i] - largest);
        scores[i] = weight;
        sum += weight;
    }
    sum = warp_sum(sum, WARP);
    warp_sync();
    if (lane_index() == 0) {
        float factor = exp_value(before - largest);
        places->factors[h] = factor;
        places->sums[h] = places->sums[h] * factor + sum;
        places->maxima[h] = largest;
    }
}

INLINE void gather_chunk(const struct gpu_call *call, const struct share *share,
                         const struct places *places, uint32_t heads, uint32_t eights,
                         uint32_t dtype, float totals[ATTENTION_HEADS_MOST][8 * EIGHTS_MOST],
                         uint64_t first, uint64_t end)
{
    const struct gpu_operand *values_of = &call->operands[ATTENTION_VALUES];
    uint32_t lane = thread_index() % ROW_LANES;
    if (dtype != ALIGNED_F16)
        dtype = values_of->dtype; /* keys may have another */
    UNROLL
    for (uint32_t h = 0; h < heads; h++) {
        float factor = places->factors[h];
        UNROLL
        for (uint32_t i = 0; i < 8 * eights; i++)
            totals[h][i] *= factor;
    }
    for (uint64_t slot = first + thread_index() / ROW_LANES; slot < end; slot += ROWS_AT_ONCE) {
        const GLOBAL uint8_t *row = row_at(values_of, share->start + slot);
        UNROLL
        for (uint32_t p = 0; p < eights; p++) {
            uint32_t at = 8 * (lane + ROW_LANES * p);
            float values[8];
            if (at < share->head_dim) {
                load8(dtype, row, share->kv_head * share->head_dim + at, values);
                UNROLL
                for (uint32_t h = 0; h < heads; h++) {
                    float weight = places->scores[h * ATTENTION_CHUNK + (uint32_t)(slot - first)];
                    UNROLL
                    for (uint32_t i = 0; i < 8; i++)
                        totals[h][8 * p + i] += weight * values[i];
                }
            }
        }
    }
}

/* The sums of all rows' lanes, to places->totals of each warp. */
INLINE void store_totals(const struct share *share, const struct places *places, uint32_t heads,
                         uint32_t eights, float totals[ATTENTION_HEADS_MOST][8 * EIGHTS_MOST])
{
    uint32_t lane = thread_index() % ROW_LANES;
    UNROLL
    for (uint32_t h = 0; h < heads; h++) {
        UNROLL
        for (uint32_t i = 0; i < 8 * eights; i++) {
            float sum = totals[h][i];
            sum += warp_swap_float(sum, 8);
            sum += warp_swap_float(sum, 16);
            uint32_t at = 8 * (lane + ROW_LANES * (i / 8)) + i % 8;
            if (lane_index() < ROW_LANES && at < share->head_dim)
                places->totals[(warp_index() * heads + h) * share->head_dim + at] = sum;
        }
    }
}

INLINE float sum_of_warps(const struct share *share, const struct places *places, uint32_t heads,
                          uint32_t h, uint32_t d)
{
    float sum = 0;
    for (uint32_t warp = 0; warp < ATTENTION_WARPS; warp++)
        sum += places->totals[(warp * heads + h) * share->head_dim + d];
    return sum;
}

INLINE void finish(const struct gpu_call *call, const struct share *share,
                   const struct places *places, uint32_t heads)
{
    for (uint32_t at = thread_index(); at < share->heads * share->head_dim;
         at += ATTENTION_THREADS) {
        uint32_t h = at / share->head_dim, d = at % share->head_dim;
        float total = sum_of_warps(share, places, heads, h, d);
        if (share->parts == 1) {
            store_out(call, share, at, total / places->sums[h]);
        } else {
            GLOBAL float *part = part_at(call, share, share->part, heads, h);
            part[2 + d] = total;
            if (d == 0) {
                part[0] = places->maxima[h];
                part[1] = places->sums[h];
            }
        }
    }
    if (share->parts > 1 && is_last(call, share))
        join_parts(call, share, heads);
}

INLINE struct places make_places(uint32_t heads)
{
    SHARED float *memory = (SHARED float *)shared_memory();
    return (struct places){ .scores = memory,
                            .maxima = memory + heads * ATTENTION_CHUNK,
                            .sums = memory + heads * ATTENTION_CHUNK + ATTENTION_HEADS_MOST,
                            .factors = memory + heads * ATTENTION_CHUNK + 2 * ATTENTION_HEADS_MOST,
                            .totals = memory + heads * ATTENTION_CHUNK + 3 * ATTENTION_HEADS_MOST };
}

/* q: what this thread needs of the queries. */
INLINE void attend_share(const struct gpu_call *call, const struct share *share,
                         const struct places *places, uint32_t heads, uint32_t eights,
                         uint32_t dtype, bool masked,
                         float q[ATTENTION_HEADS_MOST][8 * EIGHTS_MOST])
{
    float totals[ATTENTION_HEADS_MOST][8 * EIGHTS_MOST];
    UNROLL
    for (uint32_t h = 0; h < heads; h++) {
        UNROLL
        for (uint32_t i = 0; i < 8 * eights; i++)
            totals[h][i] = 0;
    }
    if (thread_index() < heads) {
        places->maxima[thread_index()] = -F32_INFINITY;
        places->sums[thread_index()] = 0;
        /* A sink is a score that came before all others. */
        if (masked && share->part == 0 && thread_index() < share->heads &&
            call->operands[ATTENTION_SINKS].address) {
            places->maxima[thread_index()] = row_f32(&call->operands[ATTENTION_SINKS],
                                                     0)[share->first_head + thread_index()];
            places->sums[thread_index()] = 1;
        }
    }
    block_sync();
    for (uint64_t first = share->first; first < share->end; first += ATTENTION_CHUNK) {
        uint64_t end = first + ATTENTION_CHUNK < share->end ? first + ATTENTION_CHUNK : share->end;
        score_chunk(call, share, places, heads, eights, dtype, masked, q, first, end);
        block_sync();
        weigh_chunk(places, heads, (uint32_t)(end - first));
        block_sync();
        gather_chunk(call, share, places, heads, eights, dtype, totals, first, end);
        block_sync();
    }
    store_totals(share, places, heads, eights, totals);
    block_sync();
    finish(call, share, places, heads);
}

INLINE void attend(const struct gpu_call *call, uint32_t heads, uint32_t eights, uint32_t dtype,
                   bool masked)
{
    const struct params_attention *params = (const void *)call->params;
    struct share share;
    if (!find_share(call, heads, PART_SLOTS, masked ? params->window : 0, &share)) {
        trap_share(call, call->trap_id);
        if (share.part == 0)
            clear_heads(call, &share);
        return;
    }
    if (share.part >= share.parts)
        return;
    struct places places = make_places(heads);
    float q[ATTENTION_HEADS_MOST][8 * EIGHTS_MOST];
    const GLOBAL float *queries = row_f32(&call->operands[ATTENTION_Q], share.token);
    UNROLL
    for (uint32_t h = 0; h < heads; h++) {
        UNROLL
        for (uint32_t i = 0; i < 8 * eights; i++) {
            uint32_t at = 8 * (thread_index() % ROW_LANES + ROW_LANES * (i / 8)) + i % 8;
            q[h][i] = h < share.heads && at < share.head_dim
                          ? queries[(share.first_head + h) * share.head_dim + at]
                          : 0.0f;
        }
    }
    attend_share(call, &share, &places, heads, eights, dtype, masked, q);
}

#endif
