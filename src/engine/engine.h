/* engine.h - a model on a device: weights, key and value cache, and the forward pass.
 *
 * One path serves prefill and decode, one sequence and many: a batch is a list of tokens, each of
 * which is appended to its sequence. Everything is allocated when the engine is opened, nothing
 * afterwards. On the host the results have the same bits however tokens are put into batches. A GPU
 * sums in a different order for one token, a small batch and a large one, so there only equal
 * batches give equal bits.
 *
 * The engine borrows the device, the ops and the mapped file; all must outlive it. It is used by
 * one thread at a time. */
#ifndef GRETA_ENGINE_ENGINE_H
#define GRETA_ENGINE_ENGINE_H

#include "base/progress.h"
#include "device/device.h"
#include "gguf/gguf.h"
#include "model/model.h"
#include "ops/ops.h"
#include "tap/tap.h"

struct engine;

/* Labels of the calls an engine makes (struct event_scope); a weight carries its own name. */
extern const char *const engine_labels[];
extern const size_t engine_label_count;

struct engine_options {
    uint32_t context;        /* most tokens of a sequence; 0: the model's */
    uint32_t sequence_limit; /* sequences at a time; 0: 1 */
    uint32_t
        batch_limit; /* most tokens of a batch; 0: engine_batch_default, or the context if less */
    uint32_t logits_limit; /* most tokens of a batch that want logits; 0: sequence_limit */
    enum dtype kv_dtype;   /* F32 (0), F16 or Q8_0 */
    bool eager;            /* run every batch op by op, record no graph */
    /* Watches engine_open, in bytes of weights, and may stop it. May be NULL. */
    const struct progress *progress;
};

/* The batch_limit where the caller sets none. */
uint32_t engine_batch_default(bool on_gpu);

/* The memory an engine needs, by kind. */
struct engine_budget {
    struct engine_options options; /* with every 0 replaced by its default */
    uint64_t weight_bytes;         /* as in the file */
    uint64_t kv_bytes;
    uint64_t scratch_bytes; /* activations, tables, logits */
    uint64_t total_bytes;
};

/* STATUS_USAGE with both numbers where options and model do not fit each other. */
MUST_CHECK enum status engine_budget_make(const struct model_report *report, const struct ops *ops,
                                          const struct engine_options *options,
                                          struct engine_budget *ret_budget, struct error *err);

/* The report must not refuse the model (model_report_refuses). STATUS_NO_MEMORY with both numbers
 * where the budget does not fit the device. */
MUST_CHECK enum status engine_open(const struct ops *ops, const struct gguf_file *file,
                                   const struct model_report *report,
                                   const struct engine_options *options, struct engine **ret_engine,
                                   struct error *err);
void engine_close(struct engine *engine); /* NULL is fine */

const struct engine_budget *engine_budget(const struct engine *engine);
struct device_stream engine_stream(const struct engine *engine);
uint32_t engine_vocab_size(const struct engine *engine);

/* Visits every weight, with its name in the file and its view on the device; stops at the first
 * failure of visit and returns it. */
typedef enum status (*engine_weight_visitor)(void *context, const char *name,
                                             const struct device_view *view, struct error *err);
MUST_CHECK enum status engine_weights_visit(const struct engine *engine,
                                            engine_weight_visitor visit, void *context,
                                            struct error *err);

/* ---- Sequences ------------------------------------------------------------------------------ */

/* Tokens in a sequence; sequences are numbered from 0 and begin empty. */
uint32_t engine_length(const struct engine *engine, uint32_t sequence);
/* Forgets the tokens from `length` on; length is at most the current one. A batch of the sequence
 * may still be queued: it runs, and has no effect on later ones. */
void engine_rewind(struct engine *engine, uint32_t sequence, uint32_t length);
/* Empties all sequences. The step that calls are labelled with begins at 0 again, so the caller
 * must give what follows another run number. */
void engine_restart(struct engine *engine);
/* Fills the cache and every activation with zeros: nothing is left of earlier batches, not even
 * where no op may read. Queued on the engine's stream; all sequences must be empty. */
MUST_CHECK enum status engine_clear(struct engine *engine, struct error *err);
/* Makes target a copy of source. STATUS_USAGE while an argmax is pending. */
MUST_CHECK enum status engine_fork(struct engine *engine, uint32_t source, uint32_t target,
                                   struct error *err);

/* ---- Running -------------------------------------------------------------------------------- */

/* An id that is still on the device: token i of a batch with this id is what engine_argmax_submit
 * found for row i of the batch before. The host need not know it. engine_argmax never returns this
 * value, so a -1 that a caller forgot to check is not mistaken for it. */
#define ENGINE_TOKEN_FROM_DEVICE INT32_MIN

struct engine_token {
    int32_t id;
    uint32_t sequence; /* each token is appended to its sequence */
    bool wants_logits;
};

/* Queues a batch of 1 to batch_limit tokens. STATUS_LIMIT with both numbers where a sequence would
 * grow past the context. On failure no sequence has grown.
 *
 * Either all tokens are ENGINE_TOKEN_FROM_DEVICE or none is. If they are, there must be as many as
 * engine_argmax_submit found ids for in the batch before, and at most sequence_limit; STATUS_USAGE
 * otherwise. Where it found none (-1) token 0 is run; the caller must discard what comes of that
 * (engine_rewind). */
MUST_CHECK enum status engine_forward(struct engine *engine, const struct engine_token *tokens,
                                      size_t count, struct error *err);

/* Returns when everything queued has run. */
MUST_CHECK enum status engine_wait(struct engine *engine, struct error *err);

/* How many tokens of the last batch wanted logits; row r belongs to the r-th of them. */
uint32_t engine_logits_count(const struct engine *engine);
/* Copies a row of vocab_size logits to the host and waits for it. */
MUST_CHECK enum status engine_logits(struct engine *engine, uint32_t row, float *logits,
                                     struct error *err);
/* The id of the largest logit of every row, the lowest id if several are equal; -1 for a row with a
 * NaN or an infinity. Only ids are copied to the host. ids has engine_logits_count entries.
 * STATUS_USAGE while an argmax is pending. */
MUST_CHECK enum status engine_argmax(struct engine *engine, int32_t *ids, struct error *err);

/* The same in two halves, so that the next batch (of ENGINE_TOKEN_FROM_DEVICE) can be queued before
 * the host has the ids. With one step always queued ahead the device never idles between two:
 *
 *     forward(known) submit, then again and again: forward(FROM_DEVICE) submit wait
 *
 * engine_argmax_submit queues the argmax of the last batch, at most once for each batch; the batch
 * must have rows of logits. STATUS_LIMIT if ENGINE_ARGMAX_LIMIT are pending. engine_argmax_wait
 * waits for the oldest pending one; STATUS_USAGE if there is none. ids has an entry for each row of
 * that batch. A wait that fails ends the argmax all the same. */
#define ENGINE_ARGMAX_LIMIT 2
MUST_CHECK enum status engine_argmax_submit(struct engine *engine, struct error *err);
MUST_CHECK enum status engine_argmax_wait(struct engine *engine, int32_t *ids, struct error *err);
/* True if queueing one step ahead is faster. That is the case if steps are replayed: not on the
 * host, not with planted faults (which must be met in the same step every time), not while taps are
 * set. Where it is not faster, queueing ahead is still allowed. */
bool engine_ahead_pays(const struct engine *engine);
/* How many were submitted and not waited for. */
uint32_t engine_argmax_pending(const struct engine *engine);
/* As engine_logits, for a row of the batch whose argmax was waited for last; there must have been
 * one. One batch of ENGINE_TOKEN_FROM_DEVICE after it leaves them intact, unless taps are set;
 * STATUS_USAGE if they were overwritten. */
MUST_CHECK enum status engine_argmax_logits(struct engine *engine, uint32_t row, float *logits,
                                            struct error *err);

/* ---- Taps ----------------------------------------------------------------------------------- */

/* What can be tapped while a batch runs; a choice may combine several kinds. */
enum engine_tap_kind {
    ENGINE_TAP_WO = 1,      /* wo: what attention adds to the residual stream */
    ENGINE_TAP_NORM = 2,    /* attn_norm, ffn_norm, output_norm: .in, .out, .weight */
    ENGINE_TAP_ATTN = 4,    /* one head's attn.q, attn.out, and attn.k, attn.v up to its length */
    ENGINE_TAP_MLP = 8,     /* attn_vector, wo, ffn_gate, ffn_up, ffn_swiglu, ffn_down */
    ENGINE_TAP_KV = 16,     /* kv.keys, kv.values: a layer's cache up to the sequence's length */
    ENGINE_TAP_LOGITS = 32, /* logits */
    ENGINE_TAP_HIDDEN = 64, /* the output of every op */
};

struct engine_tap_choice {
    uint32_t kinds;                  /* of enum engine_tap_kind */
    int32_t first_layer, last_layer; /* first -1: also tensors that belong to no layer */
    int32_t first_step, last_step;   /* batches, from 0 */
    int32_t head;                    /* for ENGINE_TAP_ATTN */
};

/* Parses "attn@layer=3,step=0-2,head=1": a kind, then its limits. STATUS_USAGE otherwise. */
MUST_CHECK enum status engine_tap_parse(const char *text, struct engine_tap_choice *ret_choice,
                                        struct error *err);

/* Receives the values of a tap, borrowed for the call. A failure it returns ends the batch. */
typedef enum status (*engine_tap_sink)(void *context, const struct tap_record *record,
                                       const float *values, struct error *err);

/* From the next batch on the chosen tensors go to the sink, in the order they are computed; count
 * 0: none any more. Each tap waits for the device, which costs time; without taps there is no cost.
 * STATUS_USAGE if the model has no such layer or head. */
MUST_CHECK enum status engine_tap_set(struct engine *engine,
                                      const struct engine_tap_choice *choices, size_t count,
                                      engine_tap_sink sink, void *context, struct error *err);

/* Runs a sequence again from its first token and checks the output of every op. If *ret_found, the
 * first value that is not finite is described by *ret_record and belongs to the token at
 * *ret_position; otherwise the same tokens gave only finite values this time. Leaves the sequence
 * as it was. STATUS_USAGE while an argmax is pending. */
MUST_CHECK enum status engine_find_bad(struct engine *engine, uint32_t sequence, bool *ret_found,
                                       struct tap_record *ret_record, uint32_t *ret_position,
                                       struct error *err);

#endif
