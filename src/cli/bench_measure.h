/* bench_measure.h - what greta bench does with a model to measure it: the runs of one test, timed.
 */
#ifndef GRETA_CLI_BENCH_MEASURE_H
#define GRETA_CLI_BENCH_MEASURE_H

#include "cli/bench_tests.h"

#include "base/progress.h"
#include "session/session.h"

struct bench_measure {
    /* The caller's, the same for all tests; borrowed. */
    struct engine *engine;
    uint32_t vocab_size;
    uint32_t sequences; /* that are run at once; the engine has as many */
    uint32_t repeats;   /* timed runs of each test */
    bool no_warmup;
    const struct progress *progress; /* watches the timed runs; may be NULL */
    uint64_t run_count;              /* timed runs of all tests */
    /* Its own. */
    uint32_t *ids;       /* of a prompt; the engine's context */
    uint32_t next_id;    /* state of the arbitrary ids */
    uint64_t runs_begun; /* of run_count */
};

/* When the caller's part is set. Release it whatever the outcome. */
MUST_CHECK enum status bench_measure_init(struct bench_measure *measure, struct error *err);
void bench_measure_release(struct bench_measure *measure); /* one that is all zeros is fine */

/* Runs a test `repeats` times: the nanoseconds of each run. Reading the depth and warming up come
 * before and are not timed. */
MUST_CHECK enum status bench_measure_run(struct bench_measure *measure,
                                         const struct bench_test *test, double *samples_ns,
                                         struct error *err);

#endif
