/* shadow.h - every op of a device once more on the host, with the device's own inputs: which op
 * gives something else than it should?
 *
 * Looks at each launch through ops_watch: before it, what it reads is copied out; after it, what it
 * wrote. The host's portable kernels compute the same from the same inputs, so that an error does
 * not travel: an op that is right on wrong inputs is right. Weights are the file's own, in the
 * file's layout; packed rows that a matmul reads are replaced by the rows
 * they were packed from.
 *
 * Runs op by op and waits at each one. One thread. */
#ifndef GRETA_CAMPAIGN_SHADOW_H
#define GRETA_CAMPAIGN_SHADOW_H

#include "engine/engine.h"
#include "ops/again.h"
#include "ops/ops.h"
#include "report/report.h"

#define SHADOW_ROW_LIMIT 64u

/* An error that is no number: NaN or infinity where the host has a finite value. */
#define SHADOW_NOT_FINITE REPORT_COMPARE_NOT_FINITE

/* One value of one launch. */
struct shadow_place {
    struct event_scope scope;
    const char *file; /* of the call; static */
    uint32_t line;
    const char *operand;   /* static */
    const char *packed_by; /* op that packed the input, which is not compared; static; NULL: none */
    uint64_t row, column;
    double device, host; /* values */
    double error;        /* |device - host| relative to the largest of the row */
};

/* An op; a matmul has a row for each type of weights. */
struct shadow_row {
    enum ops_op op;
    enum dtype dtype; /* of the weights, or of the cache; DTYPE_F32 of others */
    uint64_t launches, outside;
    double tolerance;
    struct shadow_place worst; /* largest error, of all launches */
};

struct shadow_result {
    struct shadow_row rows[SHADOW_ROW_LIMIT];
    size_t row_count;
    uint64_t launches;     /* compared */
    uint64_t not_compared; /* launches there was nothing to compare of */
    int first;             /* row of the first launch that was outside; -1: none */
    struct shadow_place first_place;
};

/* The value as reports have it: SHADOW_NOT_FINITE stands for NaN and bounds the magnitude of all
 * others. */
double shadow_number(double value);

struct shadow;

/* device: the one to look at; opened already. threads: of the host's kernels, 0: all. */
MUST_CHECK enum status shadow_create(struct device *device, uint32_t threads,
                                     struct shadow **ret_shadow, struct error *err);
void shadow_destroy(struct shadow *shadow); /* NULL is fine */
/* For struct ops, before the first launch. Lives as long as the shadow. */
const struct ops_watch *shadow_watch(struct shadow *shadow);
/* From now on weights are the file's, which must outlive the shadow. */
MUST_CHECK enum status shadow_set_weights(struct shadow *shadow, const struct engine *engine,
                                          const struct gguf_file *file, struct error *err);
const struct shadow_result *shadow_result(const struct shadow *shadow);

#endif
