/* choose.c - argmax and top_k: comparisons only, so the result is the same on every path.
 *
 * -0 equals +0; equals come in the order of their ids. argmax refuses a row that is not all finite;
 * for top_k a NaN is smaller than every number and equal to every NaN. */
#include "ops/host/kernels.h"

#include "ops/host/rows.h"

#include <math.h>

/* Values compared side by side: loops of this length become vector code. */
#define LANES 16

/* The largest of the values; NaN if one of them is NaN or infinite. */
static float largest_if_finite(const float *values, uint64_t count)
{
    float lanes[LANES], zeros[LANES]; /* largest so far; NaN once a value was not finite, else 0 */
    for (size_t l = 0; l < LANES; l++) {
        lanes[l] = -INFINITY;
        zeros[l] = 0;
    }
    uint64_t whole = count - count % LANES;
    for (uint64_t i = 0; i < whole; i += LANES) {
        for (size_t l = 0; l < LANES; l++) {
            lanes[l] = values[i + l] > lanes[l] ? values[i + l] : lanes[l];
            zeros[l] += values[i + l] * 0;
        }
    }
    float largest = -INFINITY, zero = 0;
    for (uint64_t i = whole; i < count; i++) {
        largest = values[i] > largest ? values[i] : largest;
        zero += values[i] * 0;
    }
    for (size_t l = 0; l < LANES; l++) {
        largest = lanes[l] > largest ? lanes[l] : largest;
        zero += zeros[l];
    }
    return zero == 0 ? largest : NAN;
}

void host_argmax_tile(const struct device_host_call *call, uint64_t tile)
{
    const struct device_host_operand *logits = &call->operands[ARGMAX_LOGITS]; /* [vocab, rows] */
    int32_t *ids = call->operands[ARGMAX_IDS].data;                            /* [rows] */
    int32_t *next = call->operands[ARGMAX_NEXT].data; /* the same, or NULL */
    const float *row = row_f32(logits, tile);
    uint64_t vocab = logits->shape.dims[0], best = 0;
    float largest = largest_if_finite(row, vocab);
    while (best < vocab && row[best] != largest)
        best++;
    ids[tile] = best < vocab ? (int32_t)best : -1; /* nothing equals a NaN */
    if (next)
        next[tile] = best < vocab ? (int32_t)best : 0;
}

/* ---- top_k: a heap with the worst of the best so far at its root ---------------------------- */

static bool is_larger(float a, float b)
{
    return a > b || (isnan(b) && !isnan(a));
}

/* Is one of LANES values larger? bound is no NaN. */
static bool has_larger(const float *values, float bound)
{
    int found = 0;
    for (size_t l = 0; l < LANES; l++)
        found |= values[l] > bound;
    return found;
}

/* Lives in the output rows. Invariant: every place comes after the two places below it. */
struct heap {
    float *values; /* [count] */
    int32_t *ids;  /* [count] */
    uint64_t count;
};

/* Does the value at place come before this one in the result? */
static bool comes_before(const struct heap *heap, uint64_t place, float value, int32_t id)
{
    if (is_larger(heap->values[place], value))
        return true;
    return !is_larger(value, heap->values[place]) && heap->ids[place] < id;
}

static void heap_put(struct heap *heap, uint64_t place, float value, int32_t id)
{
    heap->values[place] = value;
    heap->ids[place] = id;
}

/* Puts the value at place, or below it if it would break the invariant there. */
static void heap_sink(struct heap *heap, uint64_t place, float value, int32_t id)
{
    for (;;) {
        uint64_t child = 2 * place + 1;
        if (child >= heap->count)
            break;
        if (child + 1 < heap->count &&
            comes_before(heap, child, heap->values[child + 1], heap->ids[child + 1]))
            child++;
        if (comes_before(heap, child, value, id))
            break;
        heap_put(heap, place, heap->values[child], heap->ids[child]);
        place = child;
    }
    heap_put(heap, place, value, id);
}

static void heap_fill(struct heap *heap, const float *row)
{
    for (uint64_t i = 0; i < heap->count; i++)
        heap_put(heap, i, row[i], (int32_t)i);
    for (uint64_t place = heap->count / 2; place-- > 0;)
        heap_sink(heap, place, heap->values[place], heap->ids[place]);
}

/* Offers the values after the first ones to the heap. A later id loses against an equal value, so
 * only a larger value gets in. Most do not, and whole vectors of them are skipped at once. */
static void heap_feed(struct heap *heap, const float *row, uint64_t count)
{
    for (uint64_t i = heap->count; i < count;) {
        if (i + LANES <= count && !isnan(heap->values[0]) &&
            !has_larger(row + i, heap->values[0])) {
            i += LANES;
            continue;
        }
        if (is_larger(row[i], heap->values[0]))
            heap_sink(heap, 0, row[i], (int32_t)i);
        i++;
    }
}

/* Takes the worst off the root until none is left: the best ends up first. */
static void heap_sort(struct heap *heap)
{
    while (heap->count > 1) {
        uint64_t last = heap->count - 1;
        float value = heap->values[last];
        int32_t id = heap->ids[last];
        heap_put(heap, last, heap->values[0], heap->ids[0]);
        heap->count = last;
        heap_sink(heap, 0, value, id);
    }
}

void host_top_k_tile(const struct device_host_call *call, uint64_t tile)
{
    const struct device_host_operand *logits = &call->operands[TOP_K_LOGITS]; /* [vocab, rows] */
    const struct device_host_operand *values = &call->operands[TOP_K_VALUES]; /* [k, rows] */
    const struct device_host_operand *ids = &call->operands[TOP_K_IDS];       /* [k, rows] */
    const float *row = row_f32(logits, tile);
    struct heap heap = { .values = row_f32(values, tile),
                         .ids = (int32_t *)(void *)row_bytes(ids, tile),
                         .count = values->shape.dims[0] };
    heap_fill(&heap, row);
    heap_feed(&heap, row, logits->shape.dims[0]);
    heap_sort(&heap);
}
