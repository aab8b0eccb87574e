/* session_impl.h - shared by the files of session/. */
#ifndef GRETA_SESSION_SESSION_IMPL_H
#define GRETA_SESSION_SESSION_IMPL_H

#include "session/session.h"
#include "session/stop.h"

/* A request is in the list of those that wait, then in a sequence, then owned by its end event. */
struct request {
    uint64_t id;
    struct session_request settings; /* points to the copies below */
    uint32_t *ids;                   /* the prompt; owned until its sequence takes it */
    char **stops;                    /* settings.stop_count; owned */
    struct request *next;            /* in the list */
    /* From here on only with a sequence. */
    struct sampler *sampler;
    struct grammar_matcher *matcher; /* NULL: no grammar */
    struct tokenizer_decoder decoder;
    struct stop_scan stop_scan;
    uint32_t read_count; /* prompt tokens that the sequence holds or that are queued */
    uint32_t token_count;
    uint32_t last_id;
    uint64_t last_ns;            /* when the newest token came */
    bool has_bad;                /* the logits of this step are not finite */
    struct tap_stats bad_logits; /* with has_bad: what is wrong with them */
    enum session_reason reason;
    struct error error; /* with SESSION_FAILED */
};

/* A sequence of the engine, by its number. */
struct sequence {
    struct request *request; /* NULL: free */
    uint32_t *prompt;        /* of its request, or of the last one it had; owned */
    uint32_t prompt_count;
};

/* A row of logits of the step. */
struct step_row {
    uint32_t sequence, position; /* of the token that the logits follow */
    bool is_sampled;             /* a token is chosen from it */
};

struct event_slot {
    struct session_event event;
    struct text text;        /* of a token */
    struct request *request; /* of an end; owned */
};

struct session {
    struct engine *engine;
    const struct tokenizer *tokenizer; /* may be NULL */
    struct session_options options;
    uint32_t vocab_size;
    struct sequence *sequences;
    uint32_t sequence_count;
    struct request *waiting, **waiting_end; /* list; where the next request is linked */
    uint64_t next_id;
    size_t active_count; /* waiting and running */
    /* Events; those from taken_count to slot_count were not taken yet. */
    struct event_slot *slots;
    size_t slot_limit, slot_count, taken_count;
    /* The step: step.c. */
    struct engine_token *tokens; /* batch_limit */
    uint32_t token_count;
    struct step_row *rows; /* logits_limit; the same for all pending steps */
    uint32_t row_count;
    uint32_t pending;      /* steps submitted and not waited for: 2 while one is ahead */
    bool has_prefill;      /* the step runs prompt tokens */
    bool ids_from_device;  /* it ends with an argmax */
    bool chunk_is_pending; /* a chunk without rows was submitted and must be waited for */
    int32_t *ids;          /* logits_limit */
    float *logits;         /* vocab_size */
    struct text piece;     /* of a token, before stop strings */
    struct session_timing timing;
    uint64_t start_ns;    /* when the first request came */
    struct error failure; /* of the engine; status 0: none */
};

/* ---- session.c ------------------------------------------------------------------------------ */

/* Adds an event of the request, for the caller to fill in. A slot is free: reserve_slots. */
struct event_slot *session_push(struct session *session, enum session_event_kind kind,
                                const struct request *request);
/* Gives free sequences to requests that wait. No step may be pending. Fails if the engine does. */
MUST_CHECK enum status session_admit(struct session *session, struct error *err);
/* Ends the request of a sequence, which is free afterwards. error: with SESSION_FAILED. */
void session_end_request(struct session *session, uint32_t sequence, enum session_reason reason,
                         const struct error *error);

/* ---- request.c ------------------------------------------------------------------------------ */

MUST_CHECK enum status request_create(const struct session *session,
                                      const struct session_request *settings,
                                      struct request **ret_request, struct error *err);
void request_destroy(struct request *request); /* NULL is fine */
/* Makes what the request needs to run: sampler, decoder, stop strings. */
MUST_CHECK enum status request_begin(const struct session *session, struct request *request,
                                     struct error *err);
/* True if only the id of the largest logit is wanted, of all tokens. */
bool request_wants_id(const struct request *request);
/* Gives the logits of the row to the request's sink. Fails if the engine does; a sink that fails
 * ends the request. */
MUST_CHECK enum status request_give_logits(struct session *session, uint32_t row,
                                           struct error *err);
/* The request writes a token: the id, or, if that is negative, one chosen from the logits of the
 * row. May end the request; sets has_bad if the logits are not finite. Fails if the engine does. */
MUST_CHECK enum status request_sample(struct session *session, uint32_t row, int32_t id,
                                      struct error *err);

/* ---- prefix.c ------------------------------------------------------------------------------- */

/* Begins the request of a sequence, which then holds as much of the prompt as can be copied. A
 * request that cannot begin ends. Fails if the engine does. No step may be pending. */
MUST_CHECK enum status prefix_admit(struct session *session, uint32_t sequence, struct error *err);

/* ---- step.c --------------------------------------------------------------------------------- */

/* Drops the pending step, if there is one: takes its tokens back from the requests that still run,
 * and waits for its argmax. */
MUST_CHECK enum status step_drop(struct session *session, struct error *err);
MUST_CHECK enum status step_run(struct session *session, struct error *err);

#endif
