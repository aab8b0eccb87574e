/* session.h - requests in, tokens and text out.
 *
 *     session_add(...)                   at any time: a prompt, with settings of its own
 *     while (session_active_count(...))
 *         session_step(...)              one batch
 *         while (session_take(...))      what came of it: progress, tokens, ends
 *
 * A request gets a sequence of the engine as soon as one is free, in the order in which requests
 * were added; until then it waits. Requests join and leave between two steps. A step is one batch:
 * a token of each sequence that decodes, or a chunk of a prompt, or both (mix_prompts). The
 * requests of a batch may differ in every setting, and what a request writes depends on its prompt
 * and settings alone. (On a GPU the last bits of its logits also depend on the size of the batches:
 * engine.h.)
 *
 * If a sequence already holds the beginning of a prompt, those tokens are copied instead of run.
 * Text is handed out in whole characters; text that may be the beginning of a stop string is held
 * back until that is decided. If a request wants nothing but the likeliest token, the device
 * chooses it, and where that is faster the next step is queued before the host knows it (step.c).
 *
 * A request that cannot be served fails alone. If the engine fails, as after a fault on the device,
 * all requests fail.
 *
 * The session borrows engine and tokenizer; both must outlive it, and nothing else runs batches on
 * the engine in the meantime. One thread at a time uses it. Running a token allocates no memory,
 * provided that the caller takes the events of each step; grammars make states as they need them.
 */
#ifndef GRETA_SESSION_SESSION_H
#define GRETA_SESSION_SESSION_H

#include "base/text.h"
#include "engine/engine.h"
#include "grammar/grammar.h"
#include "session/sampler.h"
#include "tokenizer/tokenizer.h"

struct session;

/* ---- Life ----------------------------------------------------------------------------------- */

struct session_options {
    uint32_t prompt_chunk; /* most prompt tokens of a batch; 0: as many as the engine takes */
    /* Waits for each chunk of a prompt before the next one is queued. Then SESSION_PROMPT reports
     * what was run, otherwise what was queued, and a caller that stops stepping waits for at most
     * one chunk.
     */
    bool wait_for_chunks;
    /* Chunks of prompts share batches with decoding sequences and with each other. Otherwise one
     * prompt is prefilled at a time, and nothing is decoded meanwhile. */
    bool mix_prompts;
    /* If at least this many tokens at the beginning of a prompt equal those of a sequence's prompt,
     * they are copied instead of run. 0: only if the whole prompts are equal. */
    uint32_t share_from;
};

/* tokenizer NULL: no text, and no token ends a request. options NULL: all zeros. The session uses
 * as many sequences as the engine has, at most its logits_limit. */
MUST_CHECK enum status session_create(struct engine *engine, const struct tokenizer *tokenizer,
                                      const struct session_options *options,
                                      struct session **ret_session, struct error *err);
/* Drops a step that is still queued; the sequences keep the tokens before it. NULL is fine. */
void session_destroy(struct session *session);

/* ---- Requests ------------------------------------------------------------------------------- */

#define SESSION_NO_LIMIT UINT32_MAX

/* Receives the logits [vocabulary] that follow the token at a position, before grammar and
 * penalties; borrowed for the call. A failure it returns ends the request. */
typedef enum status (*session_logits_sink)(void *context, uint64_t request, uint32_t position,
                                           const float *logits, struct error *err);

/* session_add copies everything that a request points to, except the sink's context and the
 * grammar. */
struct session_request {
    const uint32_t *ids; /* the prompt: 1 to context tokens, below the vocabulary */
    size_t id_count;
    struct sampler_settings sampling;
    uint32_t token_limit;     /* tokens to write; SESSION_NO_LIMIT: until the context is full */
    const char *const *stops; /* stop strings, none empty */
    size_t stop_count;
    bool ignore_end;   /* go on after the model's end token */
    bool show_special; /* control tokens as text */
    bool allow_bad;    /* go on where logits are NaN or infinite */
    /* Only tokens that fit are chosen; others count as if their logits were -infinity. An end token
     * then ends the request in any case. Outlives the request; used by the session's thread alone.
     * NULL: any token. */
    struct grammar *grammar;
    session_logits_sink logits; /* gets the logits of every token that is written; may be NULL */
    void *logits_context;
    /* With a sink: it also gets the logits that follow each of the last this-many tokens of the
     * prompt, which is then run as a whole, without sharing. 0: none of the prompt. */
    uint32_t prompt_logits;
};

/* *ret_id: 0 for the first request, then 1 and so on. A request that makes no sense is refused with
 * STATUS_USAGE or STATUS_LIMIT; the other requests are not affected. */
MUST_CHECK enum status session_add(struct session *session, const struct session_request *request,
                                   uint64_t *ret_id, struct error *err);
/* Ends a request, waiting or running; the end is its only further event. False if it has ended. */
bool session_cancel(struct session *session, uint64_t id);
/* Requests that have not ended. */
size_t session_active_count(const struct session *session);

/* ---- Steps ---------------------------------------------------------------------------------- */

/* Runs a batch, or waits for one; does nothing if no request is active. A failure is one of the
 * engine: all requests have failed with it, and every later call fails the same way. */
MUST_CHECK enum status session_step(struct session *session, struct error *err);

/* Steps until no request is active; takes the events and forgets them. Returns the failure of the
 * first request that failed; the others may still be active then. For callers that want only logits
 * or only the time. */
MUST_CHECK enum status session_run(struct session *session, struct error *err);

struct session_timing {
    uint64_t prompt_ns, prompt_tokens; /* steps with prefill; prompt tokens that were run */
    uint64_t first_token_ns;           /* from the first session_add to the first token of all */
    uint64_t decode_ns, decode_tokens; /* the other steps, up to the last token; their tokens */
    uint64_t ahead_steps;              /* steps that were queued ahead, dropped ones included */
};

const struct session_timing *session_timing(const struct session *session);

/* ---- Events --------------------------------------------------------------------------------- */

enum session_event_kind {
    SESSION_PROMPT, /* the request has a sequence, or a chunk of its prompt was run */
    SESSION_TOKEN,  /* a token was written */
    SESSION_END,    /* the last event of the request */
};

enum session_reason {
    SESSION_RUNNING,   /* in no event */
    SESSION_END_TOKEN, /* the model ended */
    SESSION_STOP,      /* a stop string was written */
    SESSION_COMPLETE,  /* nothing can follow in the grammar */
    SESSION_LENGTH,    /* token_limit */
    SESSION_CONTEXT,   /* the context is full */
    SESSION_CANCELLED,
    SESSION_FAILED,
    SESSION_REASON_COUNT
};

const char *session_reason_name(enum session_reason reason); /* "end", "stop", ... */

struct session_event {
    enum session_event_kind kind;
    uint64_t request;
    union {
        struct {
            uint32_t done, total; /* tokens */
        } prompt;
        struct {
            uint32_t step; /* number of the token, from 0 */
            uint32_t id;
            struct text_view text; /* new text, perhaps none */
            uint64_t wait_ns;      /* since the token before it, or since the prompt was begun */
        } token;
        struct {
            enum session_reason reason;
            uint32_t token_count;      /* written */
            const struct error *error; /* why, with SESSION_FAILED; otherwise NULL */
        } end;
    };
};

/* Takes the oldest event. False: there is none. Text and error are borrowed until the next call of
 * session_add, session_cancel or session_step. */
bool session_take(struct session *session, struct session_event *ret_event);

#endif
