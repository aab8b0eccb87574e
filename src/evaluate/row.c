/* row.c - one row of logits, in double precision: a large vocabulary is a sum of many small
 * numbers. */
#include "evaluate/evaluate_impl.h"

#include <math.h>
#include <string.h>

/* The logarithm of the sum of exp(logits), and where the largest logit is. The result is NaN or
 * infinite if the row has such a value. */
static double log_sum(const float *logits, uint32_t count, uint32_t *ret_best)
{
    uint32_t best = 0;
    double sum = 0;
    ASSERT(count > 0);
    for (uint32_t i = 1; i < count; i++)
        if (logits[i] > logits[best])
            best = i;
    for (uint32_t i = 0; i < count; i++)
        sum += exp((double)logits[i] - logits[best]);
    *ret_best = best;
    return logits[best] + log(sum);
}

void evaluate_row_score(const float *logits, const float *base, uint32_t vocab_size,
                        uint32_t target, struct evaluate_row *ret)
{
    uint32_t best, base_best;
    double whole = log_sum(logits, vocab_size, &best);
    *ret = (struct evaluate_row){ .nats = whole - logits[target], .finite = isfinite(whole) };
    if (!base)
        return;
    double base_whole = log_sum(base, vocab_size, &base_best), divergence = 0;
    for (uint32_t i = 0; i < vocab_size; i++) {
        double base_log = base[i] - base_whole;
        divergence += exp(base_log) * (base_log - (logits[i] - whole));
    }
    ret->finite = ret->finite && isfinite(base_whole);
    ret->base_nats = base_whole - base[target];
    ret->divergence = divergence > 0 ? divergence : 0; /* below 0 only by rounding */
    ret->same_top = best == base_best;
    ret->identical = memcmp(logits, base, vocab_size * sizeof(*logits)) == 0;
}
