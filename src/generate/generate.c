/* generate.c - see generate.h. Prompts are read one after the other, in chunks of the engine's
 * batch; then every step is one batch with a token of each sequence that is still running. */
#include "generate/generate.h"

#include "base/clock.h"
#include "generate/stop.h"

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

/* One prompt and what became of it. */
struct lane {
    struct sampler *sampler;
    struct tokenizer_decoder decoder;
    struct stop_scan stops;
    enum generate_reason reason;
    uint32_t token_count;
    uint32_t last_id;
    uint64_t last_ns; /* when the token before came */
};

struct loop {
    struct engine *engine;
    const struct tokenizer *tokenizer;
    const struct generate_prompt *prompts;
    size_t count;
    const struct generate_options *options;
    generate_callback callback;
    void *context;
    struct lane *lanes;          /* count */
    struct engine_token *tokens; /* batch_limit */
    float *logits;               /* vocab_size */
    int32_t *best;               /* count */
    struct text piece, shown;
    struct generate_timing timing;
    uint64_t start_ns;
    bool interrupted;
};

/* ---- One token ------------------------------------------------------------------------------ */

/* Why a lane ends after its newest token; GENERATE_RUNNING if it goes on. */
static enum generate_reason reason_after(const struct loop *loop, const struct lane *lane,
                                         uint32_t sequence)
{
    if (!loop->options->ignore_end && tokenizer_is_end(loop->tokenizer, lane->last_id))
        return GENERATE_END;
    if (loop->options->token_limit && lane->token_count >= loop->options->token_limit)
        return GENERATE_LENGTH;
    if (engine_length(loop->engine, sequence) >= engine_plan(loop->engine)->options.context)
        return GENERATE_CONTEXT;
    return GENERATE_RUNNING;
}

/* A token came: its text, whether the lane ends, and the callback. */
static enum status take_token(struct loop *loop, uint32_t sequence, uint32_t id, struct error *err)
{
    struct lane *lane = &loop->lanes[sequence];
    uint64_t now_ns = clock_ns();
    if (!loop->timing.first_token_ns)
        loop->timing.first_token_ns = now_ns - loop->start_ns;
    lane->last_id = id;
    sampler_accept(lane->sampler, (int32_t)id);
    struct generate_event event = { .sequence = sequence,
                                    .step = lane->token_count++,
                                    .id = id,
                                    .wait_ns = now_ns - lane->last_ns };
    lane->last_ns = now_ns;
    lane->reason = reason_after(loop, lane, sequence);
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
    if (!loop->callback(loop->context, &event))
        loop->interrupted = true;
    return STATUS_OK;
}

/* Samples row `row` of the last batch. With nothing but the largest wanted, only ids cross; but the
 * first row of a prompt is looked at as a whole, since a model with broken weights shows there. */
static enum status sample(struct loop *loop, uint32_t row, uint32_t sequence, struct error *err)
{
    int32_t id;
    bool first = loop->lanes[sequence].token_count == 0;
    if (!first && sampler_is_greedy(loop->lanes[sequence].sampler)) {
        if (row == 0)
            TRY(engine_argmax(loop->engine, loop->best, err));
        id = loop->best[row];
    } else {
        TRY(engine_logits(loop->engine, row, loop->logits, err));
        TRY(sampler_choose(loop->lanes[sequence].sampler, loop->logits, &id, err));
    }
    return take_token(loop, sequence, (uint32_t)id, err);
}

/* ---- Prompts and steps ---------------------------------------------------------------------- */

static enum status read_prompt(struct loop *loop, uint32_t sequence, struct error *err)
{
    const struct generate_prompt *prompt = &loop->prompts[sequence];
    struct lane *lane = &loop->lanes[sequence];
    size_t batch_limit = engine_plan(loop->engine)->options.batch_limit;
    if (loop->options->prompt_chunk && loop->options->prompt_chunk < batch_limit)
        batch_limit = loop->options->prompt_chunk;
    lane->last_ns = clock_ns();
    for (size_t first = 0; first < prompt->count; first += batch_limit) {
        size_t left = prompt->count - first, count = left < batch_limit ? left : batch_limit;
        for (size_t i = 0; i < count; i++) {
            loop->tokens[i] = (struct engine_token){ (int32_t)prompt->ids[first + i], sequence,
                                                     first + i + 1 == prompt->count };
            sampler_accept(lane->sampler, (int32_t)prompt->ids[first + i]);
        }
        TRY(engine_forward(loop->engine, loop->tokens, count, err));
    }
    loop->timing.prompt_tokens += prompt->count;
    return sample(loop, 0, sequence, err);
}

/* One token of every lane that runs; false in *ret_more when none does. */
static enum status step(struct loop *loop, bool *ret_more, struct error *err)
{
    size_t count = 0;
    for (size_t i = 0; i < loop->count; i++)
        if (loop->lanes[i].reason == GENERATE_RUNNING)
            loop->tokens[count++] = (struct engine_token){ (int32_t)loop->lanes[i].last_id,
                                                           (uint32_t)i, true };
    *ret_more = count > 0;
    if (count == 0)
        return STATUS_OK;
    TRY(engine_forward(loop->engine, loop->tokens, count, err));
    loop->timing.decode_tokens += count;
    uint32_t row = 0;
    for (size_t i = 0; i < loop->count && row < count && !loop->interrupted; i++)
        if (loop->tokens[row].sequence == i)
            TRY(sample(loop, row++, (uint32_t)i, err));
    return STATUS_OK;
}

static enum status run(struct loop *loop, struct error *err)
{
    loop->start_ns = clock_ns();
    for (size_t i = 0; i < loop->count && !loop->interrupted; i++)
        TRY(read_prompt(loop, (uint32_t)i, err));
    uint64_t read_ns = clock_ns();
    loop->timing.prompt_ns = read_ns - loop->start_ns;
    bool more = true;
    while (more && !loop->interrupted)
        TRY(step(loop, &more, err));
    loop->timing.decode_ns = clock_ns() - read_ns;
    return STATUS_OK;
}

/* ---- Life ----------------------------------------------------------------------------------- */

static enum status start(struct loop *loop, struct error *err)
{
    const struct engine_options *limits = &engine_plan(loop->engine)->options;
    uint32_t vocab_size = tokenizer_info(loop->tokenizer)->token_count;
    ASSERT(loop->count > 0 && loop->count <= limits->sequence_limit &&
           loop->count <= limits->logits_limit && loop->count <= limits->batch_limit);
    loop->lanes = calloc(loop->count, sizeof(*loop->lanes));
    loop->tokens = calloc(limits->batch_limit, sizeof(*loop->tokens));
    loop->logits = calloc(vocab_size, sizeof(*loop->logits));
    loop->best = calloc(loop->count, sizeof(*loop->best));
    if (!loop->lanes || !loop->tokens || !loop->logits || !loop->best)
        return error_set(err, STATUS_NO_MEMORY, "no memory to generate");
    for (size_t i = 0; i < loop->count; i++) {
        struct lane *lane = &loop->lanes[i];
        struct sampler_settings settings = loop->options->sampling;
        settings.seed += i;
        stop_scan_init(&lane->stops, loop->options->stops, loop->options->stop_count);
        tokenizer_decoder_init(&lane->decoder, loop->tokenizer,
                               loop->options->show_special ? TOKENIZER_SHOW_SPECIAL : 0);
        /* The text goes on where the prompt ended: its first space is part of it. */
        lane->decoder.at_start = false;
        TRY(sampler_create(&settings, vocab_size, &lane->sampler, err));
    }
    return STATUS_OK;
}

static void release(struct loop *loop)
{
    for (size_t i = 0; loop->lanes && i < loop->count; i++) {
        sampler_destroy(loop->lanes[i].sampler);
        stop_scan_release(&loop->lanes[i].stops);
    }
    free(loop->lanes);
    free(loop->tokens);
    free(loop->logits);
    free(loop->best);
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
                         .context = context };
    enum status status = start(&loop, err);
    if (!status)
        status = run(&loop, err);
    /* Also of a run that failed: what was written until then was written. */
    for (size_t i = 0; loop.lanes && i < prompt_count; i++) {
        const struct lane *lane = &loop.lanes[i];
        results[i] = (struct generate_result){ lane->reason == GENERATE_RUNNING
                                                   ? GENERATE_INTERRUPTED
                                                   : lane->reason,
                                               lane->token_count };
    }
    *ret_timing = loop.timing;
    release(&loop);
    return status;
}
