/* generate.h - the token loop: prompts in, tokens and text out, one callback per token.
 *
 * Several prompts run side by side, each as a sequence of the engine, each with a sampler of its
 * own (the seed plus its number). Text is handed out in whole characters; what might be the
 * beginning of a stop string is held back until that is known. */
#ifndef GRETA_GENERATE_GENERATE_H
#define GRETA_GENERATE_GENERATE_H

#include "base/text.h"
#include "engine/engine.h"
#include "generate/sampler.h"
#include "tokenizer/tokenizer.h"

struct generate_prompt {
    const uint32_t *ids; /* count > 0 of them, below the vocabulary */
    size_t count;
};

struct generate_options {
    uint32_t token_limit; /* tokens to write for each prompt; 0: until the context is full */
    bool ignore_end;      /* go on after the model has ended */
    bool show_special;    /* control tokens as text */
    struct sampler_settings sampling;
    const char *const *stops; /* stop strings */
    size_t stop_count;
    uint32_t prompt_chunk; /* most prompt tokens of a batch; 0: as many as the engine takes */
};

enum generate_reason {
    GENERATE_RUNNING,
    GENERATE_END,         /* the model ended */
    GENERATE_STOP,        /* a stop string was written */
    GENERATE_LENGTH,      /* token_limit */
    GENERATE_CONTEXT,     /* the context is full */
    GENERATE_INTERRUPTED, /* the callback said so */
    GENERATE_REASON_COUNT
};

const char *generate_reason_name(enum generate_reason reason); /* "end", "stop", ... */

struct generate_event {
    uint32_t sequence; /* number of the prompt */
    uint32_t step;     /* of its tokens, from 0 */
    uint32_t id;
    struct text_view text; /* new text, perhaps none; borrowed for the call */
    uint64_t wait_ns;      /* since the token before, or since the prompt was begun */
};

/* False: stop everything, in order. */
typedef bool (*generate_callback)(void *context, const struct generate_event *event);

struct generate_result {
    enum generate_reason reason;
    uint32_t token_count; /* written */
};

struct generate_timing {
    uint64_t prompt_ns, prompt_tokens; /* until the first token of the last prompt */
    uint64_t first_token_ns;           /* from the beginning to the first token of all */
    uint64_t decode_ns, decode_tokens;
};

/* Prompts must fit the engine: at most sequence_limit, each shorter than the context. results has
 * an entry for each. */
MUST_CHECK enum status generate_run(struct engine *engine, const struct tokenizer *tokenizer,
                                    const struct generate_prompt *prompts, size_t prompt_count,
                                    const struct generate_options *options,
                                    generate_callback callback, void *context,
                                    struct generate_result *results,
                                    struct generate_timing *ret_timing, struct error *err);

#endif
