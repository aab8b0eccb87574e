/* evaluate_impl.h - what the files of evaluate/ share. */
#ifndef GRETA_EVALUATE_EVALUATE_IMPL_H
#define GRETA_EVALUATE_EVALUATE_IMPL_H

#include "base/outfile.h"
#include "evaluate/evaluate.h"

/* ---- statistics.c --------------------------------------------------------------------------- */

/* Mean and spread of a stream of numbers, without keeping them (Welford). */
struct evaluate_moments {
    uint64_t count;
    double mean, squares; /* squares: sum of squared distances from the mean */
};

void evaluate_moments_add(struct evaluate_moments *moments, double value);
struct evaluate_mean evaluate_moments_mean(const struct evaluate_moments *moments);

/* The value below which `share` (0 to 1) of count > 0 ascending values lie, interpolated between
 * two neighbours. */
double evaluate_percentile(const float *sorted, size_t count, double share);

/* ---- row.c ---------------------------------------------------------------------------------- */

/* What one row of logits says about the token that follows. */
struct evaluate_row {
    double nats; /* surprise at the token that follows */
    bool finite; /* else nothing here means anything */
    /* Compared with the base's row. */
    double base_nats, divergence;
    bool same_top, identical;
};

/* base: NULL, or the base's row of the same length. */
void evaluate_row_score(const float *logits, const float *base, uint32_t vocab_size,
                        uint32_t target, struct evaluate_row *ret);

/* ---- recording.c ---------------------------------------------------------------------------- */

/* Row `row` of all scored tokens; borrowed. */
const float *evaluate_recording_row(const struct evaluate_recording *recording, uint64_t row);

/* Opens out for a recording and writes its header; rows follow with outfile_write. */
MUST_CHECK enum status evaluate_recording_begin(struct outfile *out, const char *path, bool replace,
                                                const struct evaluate_recording_info *info,
                                                struct error *err);

#endif
