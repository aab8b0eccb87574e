/* verdict.h - the verdict on one hypothesis, for the verdict on an audit. */
#ifndef GRETA_ANALYZE_VERDICT_H
#define GRETA_ANALYZE_VERDICT_H

#include "analyze/analyze.h"

void verdict_decide_one(const struct verdict_input *input, enum hypothesis hypothesis,
                        struct hypothesis_verdict *verdict);

/* True if reruns with one thing changed proved the hypothesis, both ways. */
bool verdict_is_proved(const struct verdict_input *input, enum hypothesis hypothesis);

/* 3/n, and 1 for so few trials that they exclude nothing. */
double verdict_bound(uint64_t trial_count);

#endif
