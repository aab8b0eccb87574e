/* bench_measure.c - see bench_measure.h. Every test begins with the same arbitrary ids in empty
 * sequences, so that it does not depend on those before it; each of its runs begins behind the same
 * `depth` tokens. A run ends when its last ids are on the host: nothing is queued when the clock is
 * read. */
#include "cli/bench_measure.h"

#include "base/clock.h"

#include <stdlib.h>

/* A step from a known token, and both kinds that go on from the one before. */
#define WARMUP_STEPS 3u

enum status bench_measure_init(struct bench_measure *measure, struct error *err)
{
    uint32_t batch_limit = engine_plan(measure->engine)->options.batch_limit;
    measure->tokens = calloc(batch_limit, sizeof(*measure->tokens));
    measure->best = calloc(measure->sequences, sizeof(*measure->best));
    return measure->tokens && measure->best
               ? STATUS_OK
               : error_set(err, STATUS_NO_MEMORY, "no memory to measure");
}

void bench_measure_release(struct bench_measure *measure)
{
    free(measure->tokens);
    free(measure->best);
}

static struct engine_token next_token(struct bench_measure *measure, uint32_t sequence,
                                      bool wants_logits)
{
    measure->next_id = (measure->next_id * 1103515245u + 12345u) & 0x7FFFFFFFu;
    return (struct engine_token){ (int32_t)(measure->next_id % measure->vocab_size), sequence,
                                  wants_logits };
}

static enum status run_batch(struct bench_measure *measure, uint32_t count, struct error *err)
{
    TRY(engine_forward(measure->engine, measure->tokens, count, err));
    return engine_argmax(measure->engine, measure->best, err);
}

/* A prompt of count tokens for each sequence; the last of each batch wants logits, as in real use.
 */
static enum status run_prompts(struct bench_measure *measure, uint32_t count, struct error *err)
{
    uint32_t at_once = engine_plan(measure->engine)->options.batch_limit;
    for (uint32_t sequence = 0; sequence < measure->sequences; sequence++)
        for (uint32_t first = 0; first < count; first += at_once) {
            uint32_t batch = count - first < at_once ? count - first : at_once;
            for (uint32_t i = 0; i < batch; i++)
                measure->tokens[i] = next_token(measure, sequence, i + 1 == batch);
            TRY(run_batch(measure, batch, err));
        }
    return STATUS_OK;
}

/* Token of a step: an arbitrary one, then the likeliest behind it, also where only the device knows
 * it yet. */
static struct engine_token step_token(struct bench_measure *measure, uint32_t step, bool ahead,
                                      uint32_t i)
{
    struct engine_token token = next_token(measure, i, true);
    if (step && ahead)
        token.id = ENGINE_TOKEN_FROM_DEVICE;
    else if (step && measure->best[i] >= 0)
        token.id = measure->best[i];
    return token;
}

/* count times a token of each sequence, the way they are generated: where it pays every step is
 * queued before the ids of the one before it are waited for. */
static enum status run_steps(struct bench_measure *measure, uint32_t count, struct error *err)
{
    uint32_t sequences = measure->sequences;
    bool ahead = engine_ahead_pays(measure->engine);
    for (uint32_t step = 0; step < count; step++) {
        for (uint32_t i = 0; i < sequences; i++)
            measure->tokens[i] = step_token(measure, step, ahead, i);
        TRY(engine_forward(measure->engine, measure->tokens, sequences, err));
        TRY(engine_argmax_submit(measure->engine, err));
        if (step || !ahead)
            TRY(engine_argmax_wait(measure->engine, measure->best, err));
    }
    return count && ahead ? engine_argmax_wait(measure->engine, measure->best, err) : STATUS_OK;
}

static void rewind_all(struct bench_measure *measure, uint32_t length)
{
    for (uint32_t i = 0; i < measure->sequences; i++)
        engine_rewind(measure->engine, i, length);
}

static enum status run_test(struct bench_measure *measure, const struct bench_test *test,
                            uint32_t prompt, uint32_t generate, double *ret_ns, struct error *err)
{
    rewind_all(measure, test->depth);
    uint64_t start_ns = clock_ns();
    TRY(run_prompts(measure, prompt, err));
    TRY(run_steps(measure, generate, err));
    *ret_ns = (double)(clock_ns() - start_ns);
    return STATUS_OK;
}

enum status bench_measure_run(struct bench_measure *measure, const struct bench_test *test,
                              double *samples_ns, struct error *err)
{
    uint32_t batch = engine_plan(measure->engine)->options.batch_limit;
    double unused;
    measure->next_id = 1;
    rewind_all(measure, 0);
    TRY(run_prompts(measure, test->depth, err));
    if (!measure->no_warmup)
        TRY(run_test(measure, test, test->prompt < batch ? test->prompt : batch,
                     test->generate < WARMUP_STEPS ? test->generate : WARMUP_STEPS, &unused, err));
    for (uint32_t i = 0; i < measure->repeats; i++) {
        TRY(progress_step(measure->progress, measure->runs_begun++, measure->run_count, err));
        TRY(run_test(measure, test, test->prompt, test->generate, &samples_ns[i], err));
    }
    return STATUS_OK;
}
