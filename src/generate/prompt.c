/* prompt.c - how a prompt begins: in a lane that is free, from what some sequence holds of it
 * already, the rest in chunks of the engine's batch, up to its first token.
 *
 * Called with no step queued. Whatever is shared, at least the last token is run. Where the watcher
 * stops, the run is interrupted and the prompt has no token; that is no failure. */
#include "generate/loop.h"

#include "base/clock.h"

#include <string.h>

/* True if the watcher wants to stop; that is no failure. */
static bool watcher_stops(struct loop *loop)
{
    struct error unused;
    if (progress_step(loop->options->progress, loop->read_tokens, loop->all_tokens, &unused))
        loop->interrupted = true;
    return loop->interrupted;
}

static bool same_prompt(const struct generate_prompt *a, const struct generate_prompt *b)
{
    return a->count == b->count && memcmp(a->ids, b->ids, a->count * sizeof(*a->ids)) == 0;
}

/* Makes the sequence hold the beginning of the prompt, as far as some sequence has it; at least the
 * last token is always run, for its logits. */
static enum status share_prompt(struct loop *loop, size_t number, size_t *ret_held,
                                struct error *err)
{
    const struct generate_prompt *prompt = &loop->prompts[loop->next];
    *ret_held = 0;
    for (size_t i = 0; i < loop->lane_count && *ret_held == 0; i++) {
        const struct lane *lane = &loop->lanes[i];
        if (lane->prompt == NO_PROMPT || !same_prompt(&loop->prompts[lane->prompt], prompt) ||
            engine_length(loop->engine, (uint32_t)i) < prompt->count)
            continue;
        TRY(engine_fork(loop->engine, (uint32_t)i, (uint32_t)number, err));
        *ret_held = prompt->count - 1;
    }
    engine_rewind(loop->engine, (uint32_t)number, (uint32_t)*ret_held);
    return STATUS_OK;
}

static enum status read_tokens(struct loop *loop, size_t number, size_t held, struct error *err)
{
    const struct generate_prompt *prompt = &loop->prompts[loop->lanes[number].prompt];
    size_t batch_limit = engine_plan(loop->engine)->options.batch_limit;
    if (loop->options->prompt_chunk && loop->options->prompt_chunk < batch_limit)
        batch_limit = loop->options->prompt_chunk;
    loop->read_tokens += held;
    for (size_t first = held; first < prompt->count; first += batch_limit) {
        size_t left = prompt->count - first, count = left < batch_limit ? left : batch_limit;
        /* Not queued before the batch before it is done, so that progress is true. */
        if (first > held && loop->options->progress)
            TRY(engine_wait(loop->engine, err));
        if (watcher_stops(loop))
            return STATUS_OK;
        for (size_t i = 0; i < count; i++)
            loop->tokens[i] = (struct engine_token){ (int32_t)prompt->ids[first + i],
                                                     (uint32_t)number,
                                                     first + i + 1 == prompt->count };
        TRY(engine_forward(loop->engine, loop->tokens, count, err));
        loop->timing.prompt_tokens += count;
        loop->read_tokens += count;
    }
    return STATUS_OK;
}

static enum status start_lane(struct loop *loop, size_t number, struct error *err)
{
    struct lane *lane = &loop->lanes[number];
    struct sampler_settings settings = loop->options->sampling;
    settings.seed += loop->next;
    sampler_destroy(lane->sampler);
    stop_scan_release(&lane->stops);
    *lane = (struct lane){ .prompt = loop->next++, .last_ns = clock_ns() };
    stop_scan_init(&lane->stops, loop->options->stops, loop->options->stop_count);
    tokenizer_decoder_init(&lane->decoder, loop->tokenizer,
                           loop->options->show_special ? TOKENIZER_SHOW_SPECIAL : 0);
    /* The text goes on where the prompt ended: its first space is part of it. */
    lane->decoder.at_start = false;
    loop_keep_result(loop, lane);
    return sampler_create(&settings, loop->vocab_size, &lane->sampler, err);
}

enum status prompt_begin(struct loop *loop, size_t number, struct error *err)
{
    struct lane *lane = &loop->lanes[number];
    size_t held;
    TRY(share_prompt(loop, number, &held, err));
    TRY(start_lane(loop, number, err));
    const struct generate_prompt *prompt = &loop->prompts[lane->prompt];
    for (size_t i = 0; i < prompt->count; i++)
        sampler_accept(lane->sampler, (int32_t)prompt->ids[i]);
    TRY(read_tokens(loop, number, held, err));
    if (loop->interrupted)
        return STATUS_OK;
    lane->reason = loop_reason_after(loop, number);
    if (lane->reason == GENERATE_RUNNING) {
        loop->best[0] = -1;
        if (loop_wants_ids(loop, number))
            TRY(engine_argmax(loop->engine, loop->best, err));
        return loop_sample(loop, 0, number, err);
    }
    loop_keep_result(loop, lane); /* no token is wanted */
    return engine_wait(loop->engine, err);
}
