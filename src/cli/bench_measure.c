/* bench_measure.c - see bench_measure.h. A run adds a request for each sequence to a session and
 * steps until all have ended, which is when the last ids are on the host. The prompts of a test
 * begin with the same `depth` tokens, which the sequences hold from the first run on; the rest is
 * arbitrary and different in each run. */
#include "cli/bench_measure.h"

#include "base/clock.h"
#include "base/size.h"

#include <stdlib.h>

/* A step from a known token, and both kinds of step that go on from the one before. */
#define WARMUP_STEPS 3u

enum status bench_measure_init(struct bench_measure *measure, struct error *err)
{
    uint32_t context = engine_budget(measure->engine)->options.context;
    measure->ids = calloc(context, sizeof(*measure->ids));
    return measure->ids ? STATUS_OK : error_set(err, STATUS_NO_MEMORY, "no memory to measure");
}

void bench_measure_release(struct bench_measure *measure)
{
    free(measure->ids);
}

static void draw_ids(struct bench_measure *measure, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        measure->next_id = (measure->next_id * 1103515245u + 12345u) & 0x7FFFFFFFu;
        measure->ids[first + i] = measure->next_id % measure->vocab_size;
    }
}

/* A request for each sequence: the tokens of the depth, `fresh` arbitrary ones, then token_limit
 * likeliest ones. */
static enum status run_requests(struct bench_measure *measure, struct session *session,
                                uint32_t depth, uint32_t fresh, uint32_t token_limit,
                                struct error *err)
{
    struct session_request request = { .ids = measure->ids,
                                       .id_count = depth + fresh,
                                       .token_limit = token_limit,
                                       .allow_bad = true,
                                       .sampling = { .top_p = 1, .repeat_penalty = 1 } };
    uint64_t unused;
    for (uint32_t i = 0; i < measure->sequences; i++) {
        draw_ids(measure, depth, fresh);
        TRY(session_add(session, &request, &unused, err));
    }
    return session_run(session, err);
}

/* A prompt gives the first token, which decoding goes on from; without a prompt it goes on from an
 * arbitrary one. Either way there is a step for each token to generate. */
static enum status run_test(struct bench_measure *measure, struct session *session, uint32_t depth,
                            uint32_t prompt, uint32_t generate, double *ret_ns, struct error *err)
{
    uint64_t start_ns = clock_ns();
    TRY(run_requests(measure, session, depth, prompt ? prompt : 1, generate + (prompt > 0), err));
    *ret_ns = (double)(clock_ns() - start_ns);
    return STATUS_OK;
}

static enum status run_runs(struct bench_measure *measure, struct session *session,
                            const struct bench_test *test, double *samples_ns, struct error *err)
{
    uint32_t batch = engine_budget(measure->engine)->options.batch_limit;
    double unused;
    measure->next_id = 1;
    draw_ids(measure, 0, test->depth);
    /* Two tokens: so that all run side by side, each in a sequence of its own. */
    if (test->depth)
        TRY(run_requests(measure, session, test->depth, 0, 2, err));
    if (!measure->no_warmup)
        TRY(run_test(measure, session, test->depth, min_u64(test->prompt, batch),
                     min_u64(test->generate, WARMUP_STEPS), &unused, err));
    for (uint32_t i = 0; i < measure->repeats; i++) {
        TRY(progress_step(measure->progress, measure->runs_begun++, measure->run_count, err));
        TRY(run_test(measure, session, test->depth, test->prompt, test->generate, &samples_ns[i],
                     err));
    }
    return STATUS_OK;
}

enum status bench_measure_run(struct bench_measure *measure, const struct bench_test *test,
                              double *samples_ns, struct error *err)
{
    /* Without prompts all sequences begin in one batch: each has one token to run. */
    const struct session_options options = { .mix_prompts = test->prompt == 0,
                                             .share_from = test->depth };
    struct session *session;
    TRY(session_create(measure->engine, NULL, &options, &session, err));
    enum status status = run_runs(measure, session, test, samples_ns, err);
    session_destroy(session);
    return status;
}
