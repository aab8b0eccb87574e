/* engine.h - a model on a device: weights, key and value cache, and the forward pass.
 *
 * One path serves prompts and single tokens, one sequence and many: a batch is a list of tokens,
 * each of a sequence and at its position. Everything the engine needs is made when it is opened;
 * nothing is allocated afterwards. On the host results have the same bits however tokens are put
 * into batches; a GPU has its own order of sums for one token, a few and many, so there the same
 * batches give the same bits.
 *
 * The engine borrows the device, the ops and the mapped file; all must outlive it. One thread at a
 * time. */
#ifndef GRETA_ENGINE_ENGINE_H
#define GRETA_ENGINE_ENGINE_H

#include "base/progress.h"
#include "device/device.h"
#include "gguf/gguf.h"
#include "model/model.h"
#include "ops/ops.h"
#include "tap/tap.h"

struct engine;

/* Labels that calls of the engine carry (struct event_scope); weights carry their own names. */
extern const char *const engine_labels[];
extern const size_t engine_label_count;

struct engine_options {
    uint32_t context;        /* tokens a sequence can have; 0: the model's */
    uint32_t sequence_limit; /* sequences at a time; 0: 1 */
    uint32_t batch_limit;  /* tokens of a batch; 0: engine_batch_default, or the context if less */
    uint32_t logits_limit; /* tokens of a batch that want logits; 0: sequence_limit */
    enum dtype kv_dtype;   /* F32 (0), F16 or Q8_0 */
    bool eager;            /* every batch op by op, nothing recorded as a graph */
    /* Of engine_open, in bytes of weights; may end it. NULL: nobody watches. */
    const struct progress *progress;
};

/* Tokens of a batch where nothing else is asked for. */
uint32_t engine_batch_default(bool on_gpu);

/* What opening will take, by kind. */
struct engine_plan {
    struct engine_options options; /* with every 0 replaced */
    uint64_t weight_bytes;         /* as in the file */
    uint64_t kv_bytes;
    uint64_t scratch_bytes; /* activations, tables, logits */
    uint64_t total_bytes;
};

/* STATUS_USAGE with both numbers where options and model do not fit each other. */
MUST_CHECK enum status engine_plan_make(const struct model_report *report, const struct ops *ops,
                                        const struct engine_options *options,
                                        struct engine_plan *ret_plan, struct error *err);

/* The report must not refuse the model (model_report_refuses). STATUS_NO_MEMORY with both numbers
 * where the plan does not fit the device. */
MUST_CHECK enum status engine_open(const struct ops *ops, const struct gguf_file *file,
                                   const struct model_report *report,
                                   const struct engine_options *options, struct engine **ret_engine,
                                   struct error *err);
void engine_close(struct engine *engine); /* NULL is fine */

const struct engine_plan *engine_plan(const struct engine *engine);
struct device_stream engine_stream(const struct engine *engine);

/* Every weight with its name in the file and where it is on the device; stops at what visit
 * returns. */
typedef enum status (*engine_weight_visitor)(void *context, const char *name,
                                             const struct device_view *view, struct error *err);
MUST_CHECK enum status engine_weights_visit(const struct engine *engine,
                                            engine_weight_visitor visit, void *context,
                                            struct error *err);

/* ---- Sequences ------------------------------------------------------------------------------ */

/* Tokens in a sequence; sequences are numbered from 0 and begin empty. */
uint32_t engine_length(const struct engine *engine, uint32_t sequence);
/* Forgets everything from `length` on; length must not be more than there is. Also of a sequence
 * with a batch that is still queued: that runs, and is not seen again. */
void engine_rewind(struct engine *engine, uint32_t sequence, uint32_t length);
/* All sequences are empty, and the steps that calls are labelled with begin at 0 again: what comes
 * is told apart from what was by the run it belongs to. */
void engine_restart(struct engine *engine);
/* Zeros in the cache and in every activation: nothing of earlier batches is left, not even where
 * no op may read. Queued on the engine's stream; sequences must be empty. */
MUST_CHECK enum status engine_clear(struct engine *engine, struct error *err);
/* target becomes a copy of source. STATUS_USAGE while a choice was not taken (engine_chosen). */
MUST_CHECK enum status engine_fork(struct engine *engine, uint32_t source, uint32_t target,
                                   struct error *err);

/* ---- Running -------------------------------------------------------------------------------- */

/* As an id: the one that engine_choose chose for row i of the batch before, for token i of this
 * batch. It stays on the device; nobody waits for it. It is no id that engine_argmax gives, so that
 * a -1 which somebody forgot to look at is not taken for it. */
#define ENGINE_BEST INT32_MIN

struct engine_token {
    int32_t id;
    uint32_t sequence; /* each token is appended to its sequence */
    bool wants_logits;
};

/* Runs a batch of 1 to batch_limit tokens; queued when it returns. STATUS_LIMIT with both numbers
 * where a sequence would grow past the context. On failure no sequence has grown.
 *
 * With ENGINE_BEST all tokens have it, there are as many as engine_choose chose ids from the batch
 * before, and not more than sequence_limit; STATUS_USAGE otherwise. Where there was none to choose
 * (-1) token 0 is run: what comes of that is to be thrown away (engine_rewind). */
MUST_CHECK enum status engine_forward(struct engine *engine, const struct engine_token *tokens,
                                      size_t count, struct error *err);

/* Returns when everything queued is done. */
MUST_CHECK enum status engine_wait(struct engine *engine, struct error *err);

/* Of the last batch: how many tokens wanted logits; row r is of the r-th of them. */
uint32_t engine_logits_count(const struct engine *engine);
/* Copies a row of vocab_size logits; returns when it is there. */
MUST_CHECK enum status engine_logits(struct engine *engine, uint32_t row, float *logits,
                                     struct error *err);
/* The id of every row's largest logit, the first of equals; -1 where a logit of the row is NaN or
 * infinite. Nothing else crosses. ids has engine_logits_count entries. STATUS_USAGE while a choice
 * was not taken. */
MUST_CHECK enum status engine_argmax(struct engine *engine, int32_t *ids, struct error *err);

/* The same in two halves, so that the next batch (of ENGINE_BEST) is queued before the host has
 * the ids: with one step always queued the device does not wait between two of them.
 *
 *     forward(known)  choose  forward(BEST)  choose  chosen  forward(BEST)  choose  chosen ...
 *
 * engine_choose: of the last batch, once, which must have rows; queued when it returns.
 * STATUS_LIMIT where ENGINE_CHOICE_LIMIT were not taken. engine_chosen: waits for the oldest that
 * was not taken; STATUS_USAGE where there is none. ids has as many entries as that batch had rows.
 * One that fails counts as taken. */
#define ENGINE_CHOICE_LIMIT 2
MUST_CHECK enum status engine_choose(struct engine *engine, struct error *err);
MUST_CHECK enum status engine_chosen(struct engine *engine, int32_t *ids, struct error *err);
/* True if queueing one step ahead is faster: where steps are replayed, so not on the host, not with
 * planted faults, which are to be met in the same step every time, and not while taps are set. It
 * works everywhere. */
bool engine_pays_ahead(const struct engine *engine);
/* Choices that were not taken. */
uint32_t engine_choice_count(const struct engine *engine);
/* A row of the logits that the choice taken last was made from, as engine_logits. There must have
 * been one. They are kept over one batch of ENGINE_BEST, unless taps are set; STATUS_USAGE when
 * they were written over. */
MUST_CHECK enum status engine_chosen_logits(struct engine *engine, uint32_t row, float *logits,
                                            struct error *err);

/* ---- Taps ----------------------------------------------------------------------------------- */

/* What can be taken out while a batch runs; a choice may have several. */
enum engine_tap_kind {
    ENGINE_TAP_WO = 1,      /* wo: what attention adds to the stream */
    ENGINE_TAP_NORM = 2,    /* attn_norm, ffn_norm, output_norm: .in, .out, .weight */
    ENGINE_TAP_ATTN = 4,    /* of one head: attn.q, attn.k, attn.v over the used length, attn.out */
    ENGINE_TAP_MLP = 8,     /* attn_vector, wo, ffn_gate, ffn_up, ffn_swiglu, ffn_down */
    ENGINE_TAP_KV = 16,     /* kv.keys, kv.values: a layer's cache over the used length */
    ENGINE_TAP_LOGITS = 32, /* logits */
    ENGINE_TAP_HIDDEN = 64, /* what every op gives */
};

struct engine_tap_choice {
    uint32_t kinds;                  /* of enum engine_tap_kind */
    int32_t first_layer, last_layer; /* -1 as the first: also what belongs to no layer */
    int32_t first_step, last_step;   /* batches, from 0 */
    int32_t head;                    /* for ENGINE_TAP_ATTN */
};

/* "attn@layer=3,step=0-2,head=1": a kind, then what it is limited to. STATUS_USAGE otherwise. */
MUST_CHECK enum status engine_tap_parse(const char *text, struct engine_tap_choice *ret_choice,
                                        struct error *err);

/* Takes the values, which are borrowed for the call; what it returns ends the batch if it is not
 * STATUS_OK. */
typedef enum status (*engine_tap_sink)(void *context, const struct tap_record *record,
                                       const float *values, struct error *err);

/* Later batches give what was chosen to the sink, in the order it is computed; count 0: nothing
 * any more. A tap waits for the device: it costs time, and nothing while there is none.
 * STATUS_USAGE where a layer or head is beyond the model. */
MUST_CHECK enum status engine_tap_set(struct engine *engine,
                                      const struct engine_tap_choice *choices, size_t count,
                                      engine_tap_sink sink, void *context, struct error *err);

/* Runs a sequence again from its first token and looks at what every op gives. *ret_found: the
 * first that is not finite is *ret_record, of the token at *ret_position; otherwise the same tokens
 * gave only finite values this time. The sequence is as before. STATUS_USAGE while a choice was not
 * taken. */
MUST_CHECK enum status engine_find_bad(struct engine *engine, uint32_t sequence, bool *ret_found,
                                       struct tap_record *ret_record, uint32_t *ret_position,
                                       struct error *err);

#endif
