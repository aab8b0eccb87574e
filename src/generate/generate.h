/* generate.h - the token loop: prompts in, tokens and text out, one callback per token.
 *
 * As many prompts run side by side as the engine has sequences; where one ends, the next begins.
 * Each has a sampler of its own (the seed plus its number), so that its text does not depend on
 * the others. A prompt that was read just before is not read again but copied. Text is handed out
 * in whole characters; what might be the beginning of a stop string is held back until that is
 * known. Logits that are not finite end the run: the error says where the first such value came
 * from. Where only the largest logit is wanted the engine has the next step before a token is
 * handed out; nothing but the speed depends on it, and on a GPU the sums of the sequences that go
 * on when one ends: its row is one step longer in their batch. */
#ifndef GRETA_GENERATE_GENERATE_H
#define GRETA_GENERATE_GENERATE_H

#include "base/progress.h"
#include "base/text.h"
#include "engine/engine.h"
#include "generate/sampler.h"
#include "tokenizer/tokenizer.h"

struct generate_prompt {
    const uint32_t *ids; /* count > 0 of them, below the vocabulary */
    size_t count;
};

#define GENERATE_NO_LIMIT UINT32_MAX

struct generate_options {
    uint32_t token_limit; /* tokens to write for each prompt; GENERATE_NO_LIMIT: until the context
                             is full */
    bool ignore_end;      /* go on after the model has ended */
    bool show_special;    /* control tokens as text */
    bool allow_bad;       /* go on where logits are NaN or infinite */
    const struct progress *progress; /* of reading prompts, in tokens; may be NULL */
    struct sampler_settings sampling;
    const char *const *stops; /* stop strings */
    size_t stop_count;
    uint32_t prompt_chunk; /* most prompt tokens of a batch; 0: as many as the engine takes */
    /* The logits a token is chosen from, before penalties; NULL: nobody wants them. */
    enum status (*logits)(void *context, uint32_t sequence, uint32_t step, const float *logits,
                          struct error *err);
};

enum generate_reason {
    GENERATE_RUNNING,
    GENERATE_END,         /* the model ended */
    GENERATE_STOP,        /* a stop string was written */
    GENERATE_LENGTH,      /* token_limit */
    GENERATE_CONTEXT,     /* the context is full */
    GENERATE_INTERRUPTED, /* the callback or the progress said so */
    GENERATE_REASON_COUNT
};

const char *generate_reason_name(enum generate_reason reason); /* "end", "stop", ... */

struct generate_event {
    uint32_t sequence; /* number of the prompt */
    uint32_t step;     /* of its tokens, from 0 */
    uint32_t id;
    struct text_view text;       /* new text, perhaps none; borrowed for the call */
    uint64_t wait_ns;            /* since the token before, or since the prompt was begun */
    enum generate_reason reason; /* why it was the last one of its prompt, or GENERATE_RUNNING */
};

/* False: stop everything, in order. */
typedef bool (*generate_callback)(void *context, const struct generate_event *event);

struct generate_result {
    enum generate_reason reason;
    uint32_t token_count; /* written */
};

struct generate_timing {
    uint64_t prompt_ns, prompt_tokens; /* reading prompts; tokens that were run */
    uint64_t first_token_ns;           /* from the beginning to the first token of all */
    uint64_t decode_ns, decode_tokens; /* until the last token came */
};

/* Each prompt must be shorter than the context. results has an entry for each. context is given to
 * the callback and to options->logits. */
MUST_CHECK enum status generate_run(struct engine *engine, const struct tokenizer *tokenizer,
                                    const struct generate_prompt *prompts, size_t prompt_count,
                                    const struct generate_options *options,
                                    generate_callback callback, void *context,
                                    struct generate_result *results,
                                    struct generate_timing *ret_timing, struct error *err);

#endif
