/* attention.h - attention on the host: one driver (attention.c), and for each path the inner
 * functions it is driven with.
 *
 * Order. For a token and a query head, cache slots are taken in chunks of ATTENTION_CHUNK, in
 * increasing order, with a running maximum, a running sum of weights and running totals:
 *     score[s]  = dot(q, key[s]) * scale, with a cap: cap * tanh(that / cap)
 *     maximum'  = max(maximum, scores of the chunk);  factor = expf(maximum - maximum')
 *     weight[s] = exp(score[s] - maximum')
 *     sum       = sum * factor + (weights of the chunk)
 *     total[d]  = total[d] * factor + (sum over s of weight[s] * value[s][d], s in order from 0)
 * and in the end out[d] = total[d] / sum. The first chunk has factor 0; with a sink the maximum
 * begins as that and the sum as 1. With a window the chunks begin at the first slot in it. The path
 * decides the order inside dot and inside the sum of a chunk's weights, whether products are fused,
 * and its exp. F16 and Q8_0 values are decoded to f32, which is exact; so a cache of any type gives
 * the bits that an f32 cache with the same values would give.
 *
 * A NaN among the scores of a head makes its whole output NaN.
 *
 * Memory. All vectors here live in scratch, 64-byte aligned, dims = head_dim rounded up to a
 * multiple of ATTENTION_LANES, with zeros after head_dim: no inner loop but decode has a tail. */
#ifndef GRETA_OPS_HOST_ATTENTION_H
#define GRETA_OPS_HOST_ATTENTION_H

#include "device/kernel.h"
#include "ops/operands.h"
#include "ops/params.h"

#include <stddef.h>
#include <stdint.h>

/* A multiple of the width of every path's vectors. */
#define ATTENTION_LANES 16u
/* Cache rows decoded and used at a time; does not affect results. */
#define ATTENTION_ROWS 4u
/* Distance between the scores of two heads. Not a power of two, or all heads would map to the same
 * few cache sets. */
#define ATTENTION_SCORES (ATTENTION_CHUNK + ATTENTION_LANES)

_Static_assert(ATTENTION_CHUNK % ATTENTION_LANES == 0, "a chunk is whole vectors");
_Static_assert(ATTENTION_CHUNK % ATTENTION_ROWS == 0, "a chunk is whole groups of rows");

/* Heads of one group, of one token or of several, side by side. */
struct attention_heads {
    size_t count;
    size_t dims;
    float *queries; /* [count][dims] */
    float *scores;  /* [count][ATTENTION_SCORES], then weights */
    float *chunk;   /* [count][dims]: sums of the weighted values of this chunk */
};

struct attention_methods {
    /* Values first .. first + count - 1 of a cache row; both are multiples of 8. */
    void (*decode)(enum dtype dtype, const uint8_t *row, size_t first, size_t count, float *values);
    /* scores[head][slot + r] = dot(queries[head], rows[r]) * scale for the ATTENTION_ROWS rows. */
    void (*score)(const struct attention_heads *heads, const float *rows, size_t slot, float scale);
    /* scores[i] = cap * tanh(scores[i] / cap) for count scores, a multiple of ATTENTION_LANES. */
    void (*limit)(float *scores, size_t count, float cap);
    /* The largest of count scores, a multiple of ATTENTION_LANES; any value if one is NaN. */
    float (*largest)(const float *scores, size_t count);
    /* scores[i] = exp(scores[i] - maximum) for count values, a multiple of ATTENTION_LANES; their
     * sum. */
    float (*weigh)(float *scores, size_t count, float maximum);
    /* chunk[head] += weights[head][slot + r] * rows[r], r = 0 .. row_count - 1 in order. */
    void (*gather)(const struct attention_heads *heads, const float *rows, size_t row_count,
                   size_t slot);
};

void host_attention_tile(const struct device_host_call *call, uint64_t tile,
                         const struct attention_methods *methods);

#endif
