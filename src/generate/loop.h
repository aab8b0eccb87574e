/* loop.h - the state of a run of generate.c, for the files that share it. */
#ifndef GRETA_GENERATE_LOOP_H
#define GRETA_GENERATE_LOOP_H

#include "generate/generate.h"
#include "generate/stop.h"

#define NO_PROMPT SIZE_MAX

/* A sequence of the engine, and the prompt it is at. */
struct lane {
    size_t prompt; /* the one it has, or had last; NO_PROMPT before the first */
    struct sampler *sampler;
    struct tokenizer_decoder decoder;
    struct stop_scan stops;
    enum generate_reason reason;
    uint32_t token_count;
    uint32_t last_id;
    uint64_t last_ns; /* when the token before came */
    uint32_t ahead;   /* tokens the engine has of it behind last_id: 1 while a step is ahead */
};

struct loop {
    struct engine *engine;
    const struct tokenizer *tokenizer;
    const struct generate_prompt *prompts;
    size_t count, next; /* prompts, and the first that was not begun */
    const struct generate_options *options;
    generate_callback callback;
    void *context;
    struct generate_result *results; /* count */
    struct lane *lanes;              /* lane_count */
    size_t lane_count;
    struct engine_token *tokens; /* batch_limit */
    float *logits;               /* vocab_size */
    int32_t *best;               /* lane_count: ids; -1: the logits are to be looked at */
    size_t *rows;                /* lane_count: the lane of each row of the step that is queued */
    size_t row_count;            /* 0: none is */
    int32_t *dropped;            /* lane_count: ids that nobody wants */
    bool ahead;                  /* one is queued behind that, with the same rows */
    uint32_t vocab_size;
    struct text piece, shown;
    struct generate_timing timing;
    uint64_t start_ns, read_tokens, all_tokens; /* tokens of prompts read, and of all prompts */
    bool interrupted;
};

static inline bool lane_runs(const struct lane *lane)
{
    return lane->prompt != NO_PROMPT && lane->reason == GENERATE_RUNNING;
}

/* Is nothing wanted of a lane's logits but the largest? Lanes have the same settings. */
static inline bool loop_wants_ids(const struct loop *loop, size_t number)
{
    return !loop->options->logits && sampler_is_greedy(loop->lanes[number].sampler);
}

/* ---- generate.c ----------------------------------------------------------------------------- */

/* Why a lane ends after its newest token; GENERATE_RUNNING if it goes on. */
enum generate_reason loop_reason_after(const struct loop *loop, size_t number);
/* What the caller is told of the lane's prompt, as it is now. */
void loop_keep_result(struct loop *loop, const struct lane *lane);
/* The token of row `row` of a batch, which is lane `number`'s: chosen, and taken with its text. */
MUST_CHECK enum status loop_sample(struct loop *loop, uint32_t row, size_t number,
                                   struct error *err);

/* ---- prompt.c ------------------------------------------------------------------------------- */

/* The next prompt, read into a lane; its first token. */
MUST_CHECK enum status prompt_begin(struct loop *loop, size_t number, struct error *err);

/* ---- ahead.c -------------------------------------------------------------------------------- */

/* May a step be queued behind the one whose tokens were not taken yet? */
bool ahead_is_allowed(const struct loop *loop);
/* Queues it, with the rows of that one. On failure there may be one all the same: drop it. */
MUST_CHECK enum status ahead_queue(struct loop *loop, struct error *err);
/* The lane's token of the step ahead never was. */
void ahead_take_back(struct loop *loop, size_t number);
/* Throws the step ahead away, if there is one, and returns when every choice was taken. */
MUST_CHECK enum status ahead_drop(struct loop *loop, struct error *err);

#endif
