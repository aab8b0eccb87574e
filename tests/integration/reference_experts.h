/* reference_experts.h - the feed-forward of a layer with experts in float64, for reference_model.c.
 */
#ifndef GRETA_TESTS_REFERENCE_EXPERTS_H
#define GRETA_TESTS_REFERENCE_EXPERTS_H

#include "model/model.h"

#include <stddef.h>

/* How the layer's matrices are multiplied: out[rows] = those rows of the named matrix [k, ...] that
 * follow the first `skipped`, times the input, + their bias. The input is row `slot` of the `slots`
 * that a token has under input_name. A matrix that is a vector has one row. */
struct reference_multiplier {
    const struct model_config *config;
    void (*multiply)(void *context, int layer, const char *name, size_t skipped,
                     const char *input_name, size_t slots, size_t slot, const double *input,
                     size_t k, size_t rows, double *out);
    void *context;
    int layer;
};

/* h [width]: what enters the block; routed_by [width]: what the router reads; bias [experts]: of
 * scores for the choice, or NULL; scales [experts]: of what they give, or NULL; added [width]: what
 * the block gives. */
void reference_feed_experts(const struct reference_multiplier *by, const double *h,
                            const double *routed_by, const double *bias, const double *scales,
                            double *added);

#endif
