/* generate.c - see generate.h. A prompt is read as soon as a sequence is free (prompt.c); then
 * every step is one batch with a token of each sequence that is running. One may be queued before
 * the tokens of the one before it were taken: ahead.c. */
#include "generate/generate.h"

#include "base/clock.h"
#include "generate/bad_logits.h"
#include "generate/loop.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const reason_names[] = {
    [GENERATE_RUNNING] = "running", [GENERATE_END] = "end",
    [GENERATE_STOP] = "stop",       [GENERATE_LENGTH] = "length",
    [GENERATE_CONTEXT] = "context", [GENERATE_INTERRUPTED] = "interrupted",
};
_Static_assert(COUNT_OF(reason_names) == GENERATE_REASON_COUNT, "every reason has a name");

const char *generate_reason_name(enum generate_reason reason)
{
    ASSERT((unsigned)reason < GENERATE_REASON_COUNT);
    return reason_names[reason];
}

/* ---- One token ------------------------------------------------------------------------------ */

enum generate_reason loop_reason_after(const struct loop *loop, size_t number)
{
    const struct lane *lane = &loop->lanes[number];
    if (lane->token_count && !loop->options->ignore_end &&
        tokenizer_is_end(loop->tokenizer, lane->last_id))
        return GENERATE_END;
    if (lane->token_count >= loop->options->token_limit)
        return GENERATE_LENGTH;
    if (engine_length(loop->engine, (uint32_t)number) - lane->ahead >=
        engine_plan(loop->engine)->options.context)
        return GENERATE_CONTEXT;
    return GENERATE_RUNNING;
}

void loop_keep_result(struct loop *loop, const struct lane *lane)
{
    loop->results[lane->prompt] = (struct generate_result){ lane->reason, lane->token_count };
}

/* A token came: its text, whether the lane ends, and the callback. */
static enum status take_token(struct loop *loop, size_t number, uint32_t id, struct error *err)
{
    struct lane *lane = &loop->lanes[number];
    uint64_t now_ns = clock_ns();
    if (!loop->timing.first_token_ns)
        loop->timing.first_token_ns = now_ns - loop->start_ns;
    lane->last_id = id;
    sampler_accept(lane->sampler, (int32_t)id);
    struct generate_event event = { .sequence = (uint32_t)lane->prompt,
                                    .step = lane->token_count++,
                                    .id = id,
                                    .wait_ns = now_ns - lane->last_ns };
    lane->last_ns = now_ns;
    lane->reason = loop_reason_after(loop, number);
    text_clear(&loop->piece);
    text_clear(&loop->shown);
    if (lane->reason != GENERATE_END || loop->options->show_special)
        TRY(tokenizer_decoder_add(&lane->decoder, id, &loop->piece, err));
    if (lane->reason != GENERATE_RUNNING)
        tokenizer_decoder_finish(&lane->decoder, &loop->piece);
    struct text_view piece = { text_get(&loop->piece), loop->piece.length };
    if (stop_scan_add(&lane->stops, piece, &loop->shown))
        lane->reason = GENERATE_STOP;
    else if (lane->reason != GENERATE_RUNNING)
        stop_scan_finish(&lane->stops, &loop->shown);
    if (loop->piece.failed || loop->shown.failed || lane->stops.held.failed)
        return error_set(err, STATUS_NO_MEMORY, "no memory for text");
    event.text = (struct text_view){ text_get(&loop->shown), loop->shown.length };
    event.reason = lane->reason;
    loop_keep_result(loop, lane);
    if (!loop->callback(loop->context, &event))
        loop->interrupted = true;
    return STATUS_OK;
}

/* ---- Sampling ------------------------------------------------------------------------------- */

static enum status check_logits(struct loop *loop, size_t number, struct error *err)
{
    struct tap_stats stats = tap_stats_of(loop->logits, loop->vocab_size);
    if (stats.first_bad == stats.count)
        return STATUS_OK;
    if (!loop->options->allow_bad) {
        /* The sequence is run again, as it is without the step ahead. Where that cannot be dropped
         * nothing can be run, which is told beside what was found. */
        if (ahead_drop(loop, err))
            loop->row_count = 0;
        return bad_logits_tell(loop->engine, (uint32_t)number,
                               &loop->prompts[loop->lanes[number].prompt],
                               loop->lanes[number].token_count, &stats, err);
    }
    for (uint32_t i = 0; i < loop->vocab_size; i++)
        if (!isfinite(loop->logits[i]))
            loop->logits[i] = loop->logits[i] > 0 ? FLT_MAX : -FLT_MAX; /* NaN: never chosen */
    return STATUS_OK;
}

/* By the whole row. A row that has no largest logit is looked at where it was chosen from, also
 * when a step has gone ahead since. */
static enum status choose(struct loop *loop, uint32_t row, size_t number, int32_t *ret_id,
                          struct error *err)
{
    const struct lane *lane = &loop->lanes[number];
    if (loop_wants_ids(loop, number))
        TRY(engine_argmax_logits(loop->engine, row, loop->logits, err));
    else
        TRY(engine_logits(loop->engine, row, loop->logits, err));
    if (loop->options->logits)
        TRY(loop->options->logits(loop->context, (uint32_t)lane->prompt, lane->token_count,
                                  loop->logits, err));
    TRY(check_logits(loop, number, err));
    return sampler_choose(lane->sampler, loop->logits, ret_id, err);
}

/* With nothing but the largest wanted, only its id crossed; a row with a NaN or an infinity has
 * none, and is looked at as a whole. */
enum status loop_sample(struct loop *loop, uint32_t row, size_t number, struct error *err)
{
    int32_t id = loop->best[row];
    if (id < 0)
        TRY(choose(loop, row, number, &id, err));
    return take_token(loop, number, (uint32_t)id, err);
}

/* ---- The loop ------------------------------------------------------------------------------- */

static enum status fill_lanes(struct loop *loop, struct error *err)
{
    uint64_t begin_ns = clock_ns();
    for (size_t i = 0; i < loop->lane_count; i++)
        while (!lane_runs(&loop->lanes[i]) && loop->next < loop->count && !loop->interrupted)
            TRY(prompt_begin(loop, i, err));
    loop->timing.prompt_ns += clock_ns() - begin_ns;
    return STATUS_OK;
}

/* Queues a token of every lane that runs. */
static enum status queue_step(struct loop *loop, struct error *err)
{
    size_t count = 0;
    for (size_t i = 0; i < loop->lane_count; i++) {
        if (!lane_runs(&loop->lanes[i]))
            continue;
        loop->rows[count] = i;
        loop->tokens[count++] = (struct engine_token){ (int32_t)loop->lanes[i].last_id, (uint32_t)i,
                                                       true };
    }
    if (count == 0)
        return STATUS_OK;
    TRY(engine_forward(loop->engine, loop->tokens, count, err));
    loop->row_count = count;
    return loop_wants_ids(loop, loop->rows[0]) ? engine_argmax_submit(loop->engine, err)
                                               : STATUS_OK;
}

/* The tokens of the step that is queued, of the lanes that still want theirs; *ret_goes_on: the
 * step ahead went on from what came. */
static enum status take_step(struct loop *loop, bool *ret_goes_on, struct error *err)
{
    for (size_t row = 0; row < loop->row_count; row++)
        loop->best[row] = -1;
    if (loop_wants_ids(loop, loop->rows[0]))
        TRY(engine_argmax_wait(loop->engine, loop->best, err));
    *ret_goes_on = false;
    bool chosen = true;
    for (size_t row = 0; row < loop->row_count; row++)
        loop->timing.decode_tokens += lane_runs(&loop->lanes[loop->rows[row]]);
    for (uint32_t row = 0; row < loop->row_count && !loop->interrupted; row++) {
        size_t number = loop->rows[row];
        if (!lane_runs(&loop->lanes[number]))
            continue;
        chosen = chosen && loop->best[row] >= 0;
        TRY(loop_sample(loop, row, number, err));
        if (lane_runs(&loop->lanes[number]))
            *ret_goes_on = true;
        else
            ahead_take_back(loop, number);
    }
    *ret_goes_on = *ret_goes_on && chosen && !loop->interrupted;
    return STATUS_OK;
}

/* Does no token come any more? */
static bool is_over(const struct loop *loop)
{
    bool more = loop->next < loop->count;
    for (size_t i = 0; i < loop->lane_count; i++)
        more = more || lane_runs(&loop->lanes[i]);
    return !more || loop->interrupted;
}

/* One token of every lane that runs; false in *ret_more when none does. */
static enum status step(struct loop *loop, bool *ret_more, struct error *err)
{
    uint64_t begin_ns = clock_ns();
    bool goes_on;
    if (loop->row_count == 0)
        TRY(queue_step(loop, err));
    *ret_more = loop->row_count > 0;
    if (loop->row_count == 0)
        return STATUS_OK;
    /* A step ahead that fails is told behind the tokens it was to go on from, and not at all where
     * it does not go on: it would not have been. */
    struct error second;
    enum status ahead = ahead_is_allowed(loop) ? ahead_queue(loop, &second) : STATUS_OK;
    TRY(take_step(loop, &goes_on, err));
    if (ahead && goes_on) {
        *err = second;
        return ahead;
    }
    loop->timing.decode_ns += clock_ns() - begin_ns;
    begin_ns = clock_ns();
    if (!goes_on)
        TRY(ahead_drop(loop, err));
    /* What is thrown away in the end has delayed no token. */
    if (!is_over(loop))
        loop->timing.decode_ns += clock_ns() - begin_ns;
    if (!loop->ahead)
        loop->row_count = 0;
    loop->ahead = false;
    for (size_t i = 0; i < loop->lane_count; i++)
        loop->lanes[i].ahead = 0; /* what was ahead is the step now */
    return STATUS_OK;
}

static enum status run(struct loop *loop, struct error *err)
{
    loop->start_ns = clock_ns();
    for (size_t i = 0; i < loop->count; i++)
        loop->all_tokens += loop->prompts[i].count;
    bool more = true;
    while (more && !loop->interrupted) {
        if (loop->row_count == 0)
            TRY(fill_lanes(loop, err));
        if (!loop->interrupted)
            TRY(step(loop, &more, err));
    }
    return STATUS_OK;
}

/* ---- Life ----------------------------------------------------------------------------------- */

static enum status start(struct loop *loop, struct error *err)
{
    const struct engine_options *limits = &engine_plan(loop->engine)->options;
    uint32_t lane_limit = limits->sequence_limit;
    lane_limit = limits->logits_limit < lane_limit ? limits->logits_limit : lane_limit;
    ASSERT(loop->count > 0);
    loop->lane_count = loop->count < lane_limit ? loop->count : lane_limit;
    loop->vocab_size = tokenizer_info(loop->tokenizer)->token_count;
    loop->lanes = calloc(loop->lane_count, sizeof(*loop->lanes));
    loop->tokens = calloc(limits->batch_limit, sizeof(*loop->tokens));
    loop->logits = calloc(loop->vocab_size, sizeof(*loop->logits));
    loop->best = calloc(loop->lane_count, sizeof(*loop->best));
    loop->dropped = calloc(loop->lane_count, sizeof(*loop->dropped));
    loop->rows = calloc(loop->lane_count, sizeof(*loop->rows));
    if (!loop->lanes || !loop->tokens || !loop->logits || !loop->best || !loop->dropped ||
        !loop->rows)
        return error_set(err, STATUS_NO_MEMORY, "no memory to generate");
    for (size_t i = 0; i < loop->lane_count; i++)
        loop->lanes[i].prompt = NO_PROMPT;
    return STATUS_OK;
}

static void release(struct loop *loop)
{
    for (size_t i = 0; loop->lanes && i < loop->lane_count; i++) {
        sampler_destroy(loop->lanes[i].sampler);
        stop_scan_release(&loop->lanes[i].stops);
    }
    free(loop->lanes);
    free(loop->tokens);
    free(loop->logits);
    free(loop->best);
    free(loop->dropped);
    free(loop->rows);
    text_release(&loop->piece);
    text_release(&loop->shown);
}

enum status generate_run(struct engine *engine, const struct tokenizer *tokenizer,
                         const struct generate_prompt *prompts, size_t prompt_count,
                         const struct generate_options *options, generate_callback callback,
                         void *context, struct generate_result *results,
                         struct generate_timing *ret_timing, struct error *err)
{
    struct loop loop = { .engine = engine,
                         .tokenizer = tokenizer,
                         .prompts = prompts,
                         .count = prompt_count,
                         .options = options,
                         .callback = callback,
                         .context = context,
                         .results = results };
    memset(results, 0, prompt_count * sizeof(*results));
    enum status status = start(&loop, err);
    if (!status)
        status = run(&loop, err);
    /* A run that failed may have left something queued, which who uses the engine next must not
     * find; that it failed is told already. */
    struct error unused;
    if (status && loop.rows && ahead_drop(&loop, &unused))
        loop.row_count = 0;
    /* Also of a run that failed: what was written until then was written. */
    for (size_t i = 0; i < prompt_count; i++)
        if (results[i].reason == GENERATE_RUNNING)
            results[i].reason = GENERATE_INTERRUPTED;
    *ret_timing = loop.timing;
    release(&loop);
    return status;
}
