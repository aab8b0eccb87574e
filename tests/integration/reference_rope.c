/* reference_rope.c - see reference_rope.h. */
#include "reference_rope.h"

#include <math.h>

/* The pair that turns so often within the original context. */
static double pair_of_turns(const struct model_rope *rope, double turns)
{
    const double pi = 3.14159265358979323846;
    return rope->dimension_count * log(rope->original_context_length / (2 * pi * turns)) /
           (2 * log((double)rope->base));
}

/* 1 for pairs that turn as without scaling, 0 for those that are slowed down in full. */
static double kept_share(const struct model_rope *rope, size_t pair)
{
    double low = fmax(0, floor(pair_of_turns(rope, (double)rope->yarn_beta_fast)));
    double high = fmin(rope->dimension_count - 1.0,
                       ceil(pair_of_turns(rope, (double)rope->yarn_beta_slow)));
    double along = ((double)pair - low) / fmax(0.001, high - low);
    return 1 - fmin(1, fmax(0, along));
}

static double magnitude(const struct model_rope *rope)
{
    double times = (double)rope->attention_factor, factor = (double)rope->scaling_factor;
    if (rope->scaling != MODEL_ROPE_SCALING_YARN || factor <= 1)
        return times;
    return times * (1 + 0.1 * log(factor)) /
           (1 + 0.1 * (double)rope->yarn_log_multiplier * log(factor));
}

void reference_rotate(const struct model_rope *rope, const double *factors, size_t position,
                      double size, double *head)
{
    size_t pairs = rope->dimension_count / 2;
    size *= magnitude(rope);
    for (size_t p = 0; p < pairs; p++) {
        double angle = (double)position *
                       pow((double)rope->base, -2.0 * (double)p / rope->dimension_count) /
                       (factors ? factors[p] : 1);
        double slowed = angle / (double)rope->scaling_factor;
        if (rope->scaling == MODEL_ROPE_SCALING_YARN) {
            double kept = kept_share(rope, p);
            slowed = angle * kept + slowed * (1 - kept);
        }
        bool adjacent = rope->kind == MODEL_ROPE_ADJACENT;
        size_t a = adjacent ? 2 * p : p, b = adjacent ? 2 * p + 1 : p + pairs;
        double first = head[a], second = head[b];
        head[a] = size * (first * cos(slowed) - second * sin(slowed));
        head[b] = size * (first * sin(slowed) + second * cos(slowed));
    }
}
