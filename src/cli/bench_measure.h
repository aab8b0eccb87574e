/* bench_measure.h - the timed runs of one test of greta bench. */
#ifndef GRETA_CLI_BENCH_MEASURE_H
#define GRETA_CLI_BENCH_MEASURE_H

#include "cli/bench_tests.h"

#include "base/progress.h"
#include "session/session.h"

struct bench_measure {
    /* Set by the caller, the same for all tests; borrowed. */
    struct engine *engine;
    uint32_t vocab_size;
    uint32_t sequences; /* decoded at once; the engine has as many */
    uint32_t repeats;   /* timed runs of each test */
    bool no_warmup;
    const struct progress *progress; /* watches the timed runs; may be NULL */
    uint64_t run_count;              /* timed runs of all tests */
    /* Set by bench_measure_init. */
    uint32_t *ids;       /* of a prompt; the engine's context */
    uint32_t next_id;    /* state of the arbitrary ids */
    uint64_t runs_begun; /* of run_count */
};

/* Call it after the caller's fields are set. Release *measure whatever the outcome. */
MUST_CHECK enum status bench_measure_init(struct bench_measure *measure, struct error *err);
void bench_measure_release(struct bench_measure *measure); /* a zeroed one is fine */

/* Runs a test `repeats` times and returns the nanoseconds of each run. Filling the context and the
 * warm-up come before and are not timed. */
MUST_CHECK enum status bench_measure_run(struct bench_measure *measure,
                                         const struct bench_test *test, double *samples_ns,
                                         struct error *err);

#endif
