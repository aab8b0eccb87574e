/* engine_impl.h - shared by the files of engine/. */
#ifndef GRETA_ENGINE_ENGINE_IMPL_H
#define GRETA_ENGINE_ENGINE_IMPL_H

#include "engine/engine.h"

/* A matrix and its bias, or absent views: a tensor each, or rows of a tensor that has several. They
 * own nothing. */
struct engine_projection {
    struct device_view weights, bias;
};

/* The weights of a layer; absent ones have a zero buffer. */
struct engine_layer {
    struct device_view weights[MODEL_ROLE_COUNT]; /* those that are per layer; they own buffers */
    struct engine_projection q, k, v, gate, up;   /* among these */
    float output_scale;              /* of the residual stream after the layer; 1: none */
    struct device_view keys, values; /* [kv_dim, slots]; absent: another layer's are used */
};

/* Activations with a row for each token of the largest batch; a smaller batch uses the first rows.
 * Only views: engine_close walks over them. */
struct engine_scratch {
    struct device_view x;        /* [width, tokens]: the residual stream */
    struct device_view normed;   /* [width, tokens] */
    struct device_view q;        /* [query, tokens] */
    struct device_view attn_out; /* [query, tokens]: what attention gives */
    struct device_view k, v;     /* [kv_dim, tokens] */
    struct device_view added;    /* [width, tokens]: what a block adds to the stream */
    struct device_view gate, up; /* [feed, tokens] */
    /* [layer_input_length * layers, tokens]: what each layer has of its own for a token, and a part
     * of it on its way there. */
    struct device_view layer_inputs, layer_projected;
    struct device_view packed; /* I8 [bytes, tokens]: room for the widest input of any matmul */
    /* Absent in models without experts. A slot is one choice of a token. */
    struct device_view router_logits;                      /* [experts, tokens] */
    struct device_view expert_ids, expert_weights;         /* I32, F32 [used, tokens] */
    struct device_view expert_gate, expert_up, expert_out; /* [feed or width, slots] */
    struct device_view expert_gate_up;                     /* [2 feed, slots], in place of up */
    struct device_view expert_scales, expert_scaled;       /* [used, tokens]: of their weights */
    struct device_view expert_packed;                      /* I8 [bytes, slots] */
    struct device_view shared;                             /* [width, tokens] */
    struct device_view shared_gate;                        /* [1, tokens] */
    struct device_view latent_query;                       /* [query_rank, tokens] */
    struct device_view latent_still;                       /* [key_length * heads, tokens] */
    struct device_view latent_values;                      /* [value_length * heads, tokens] */
    struct device_view gathered; /* [width, logits rows]: the rows that want logits */
    /* [vocab, logits rows] and [vocab, sequences]; the second one is for every other batch of
     * ENGINE_TOKEN_FROM_DEVICE: engine_mode_of. */
    struct device_view logits_buffer[2];
    struct device_view argmax_ids; /* I32 [logits rows, ENGINE_ARGMAX_LIMIT] */
    struct device_view indices;    /* I32: the lists of a batch: engine.c */
    /* [rotated dimensions, context]: of all layers, or of those without a window; of queries, where
     * they are turned by another table than keys; of layers with a window. The second and the third
     * are absent where all use the first. */
    struct device_view rope_table, rope_table_q, rope_table_local;
    struct device_view ones; /* [head_dim, 1]: the weights of norms that have none */
};

/* Points of the forward pass after which a tensor can be tapped. */
enum engine_moment {
    ENGINE_EMBEDDED,
    ENGINE_ATTN_NORMED,
    ENGINE_QKV_MULTIPLIED,
    ENGINE_HEADS_READY, /* normed where the model does that, and rotated */
    ENGINE_KV_APPENDED,
    ENGINE_ATTENDED,
    ENGINE_WO_MULTIPLIED,
    ENGINE_ATTN_POST_NORMED, /* normed once more, where the model does that, and scaled */
    ENGINE_FFN_NORMED,
    ENGINE_ROUTED, /* experts were chosen */
    ENGINE_EXPERTS_OPENED,
    ENGINE_EXPERTS_GATED,
    ENGINE_EXPERTS_CLOSED,
    ENGINE_GATE_UP_MULTIPLIED,
    ENGINE_GATED,
    ENGINE_DOWN_MULTIPLIED,
    ENGINE_FFN_POST_NORMED,
    ENGINE_OUTPUT_NORMED,
    ENGINE_LOGITS_READY,
};

struct engine_taps; /* taps.c */

/* What is known about a batch before it runs. */
struct engine_batch {
    uint64_t tokens;
    bool from_device;   /* its ids are ENGINE_TOKEN_FROM_DEVICE */
    bool same_sequence; /* most neighbouring tokens belong to one sequence */
};

/* How it runs. */
struct engine_mode {
    bool replays;          /* recorded once and replayed; otherwise launched op by op */
    bool ahead_pays;       /* queueing one step ahead is faster */
    uint32_t logits_index; /* of the buffer its logits go to */
};

/* A batch recorded for replay. */
struct engine_replay {
    uint64_t tokens, logits; /* of the batch; tokens 0: not used */
    uint32_t logits_index;   /* of the buffer its logits go to */
    struct device_graph graph;
};

/* An argmax that was submitted. */
struct engine_argmax_entry {
    struct device_ticket ticket; /* until it is waited for */
    uint32_t count;              /* of ids */
    uint32_t logits_index;       /* of the buffer that holds the logits */
    uint64_t batch;              /* number of the batch the logits belong to */
    int32_t step;
    int32_t *ids; /* [logits_limit], valid after the wait; owned */
    bool is_used; /* a batch of ENGINE_TOKEN_FROM_DEVICE used the ids before they were waited for */
    int32_t *slots; /* [logits_limit]: cache slots of that batch, -1 if rewound since; owned */
};

struct engine {
    const struct ops *ops;
    struct device *device;
    struct device_stream stream;
    struct device_stream argmax_stream; /* copies ids out; index 0: `stream` does that */
    struct device_mark argmax_made;     /* on `stream`, after the last argmax; with argmax_stream */
    struct model_config config;
    struct engine_budget budget;
    struct device_view globals[MODEL_ROLE_COUNT]; /* weights that are not per layer */
    struct engine_layer *layers;                  /* block_count; owned */
    struct engine_scratch scratch;
    uint32_t *lengths;          /* of each sequence; owned */
    uint32_t *new_lengths;      /* while a batch is put together; owned */
    int32_t *host_indices;      /* 5 * batch_limit; owned */
    int32_t *slot_ids;          /* token in each cache slot below its sequence's length; owned */
    uint32_t logits_count;      /* rows of logits of the last batch */
    uint32_t logits_index;      /* of the buffer they are in */
    uint64_t batch;             /* number of the last batch, from 1 */
    uint64_t logits_batches[2]; /* number of the batch whose logits each buffer holds */
    uint32_t device_id_count;   /* ids of the last batch's argmax in the indices; 0: none */
    struct engine_argmax_entry argmax_entries[ENGINE_ARGMAX_LIMIT]; /* number n at n % LIMIT */
    uint64_t argmax_submitted, argmax_waited;
    bool same_sequence;              /* of the batch being run; see engine_batch */
    int32_t step;                    /* batches since the last restart: the scope's step */
    struct event_scope scope;        /* of the call being queued */
    struct engine_taps *taps;        /* NULL: none; owned */
    struct engine_replay replays[8]; /* two for each size: one for each logits buffer */
    size_t next_replay;              /* the oldest is replaced */
};

/* projections.c: fills in the projections of every layer, whose weights are bound. */
void engine_find_projections(struct engine *engine);

/* memory.c: what rows of a layer are wide, if the field of struct engine_scratch with that offset
 * has other widths in other layers; else 0. */
uint64_t engine_layer_width(const struct engine *engine, size_t offset, int32_t layer);

/* weights.c: imports or uploads every tensor of the table. */
MUST_CHECK enum status engine_bind_weights(struct engine *engine, const struct gguf_file *file,
                                           struct error *err);

/* upload.c: copies weights in with several threads, and repacks those whose view has another type
 * than the tensor. */
struct engine_upload;
/* Bytes of raw buffer that repacking a tensor needs. */
uint64_t engine_upload_raw_bytes(enum dtype dtype, const struct shape *shape);
/* For at most tensor_limit tensors of file. raw_bytes: the most that any of them needs; 0: none is
 * repacked. */
MUST_CHECK enum status engine_upload_create(struct engine *engine, const struct gguf_file *file,
                                            size_t tensor_limit, uint64_t raw_bytes,
                                            struct engine_upload **ret_upload, struct error *err);
/* Waits for copies in progress; NULL is fine. */
void engine_upload_destroy(struct engine_upload *upload);
/* Creates the buffer of the view, which has type and shape, under the name of the scope's tensor;
 * its bytes follow in the background. Reports the total progress to the engine's watcher. */
MUST_CHECK enum status engine_upload_add(struct engine_upload *upload,
                                         const struct gguf_tensor *tensor,
                                         const struct event_scope *scope, struct device_view *view,
                                         struct error *err);
/* Returns when all weights are on the device. */
MUST_CHECK enum status engine_upload_finish(struct engine_upload *upload, struct error *err);

/* memory.c: the bytes of device_reserve that a buffer uses up. */
uint64_t engine_reserved_bytes(const struct engine *engine, uint64_t bytes);

/* memory.c: caches, scratch, tables. */
MUST_CHECK enum status engine_make_memory(struct engine *engine, struct error *err);

/* tables.c: what is computed once, before the first batch. */
MUST_CHECK enum status engine_make_tables(struct engine *engine, struct error *err);

/* forward.c: all layers and the logits of a batch whose indices are on the device. */
MUST_CHECK enum status engine_run(struct engine *engine, uint64_t token_count,
                                  uint64_t logits_count, struct error *err);

/* taps.c: hands out the tensors of this moment that were chosen. Needs engine->taps. rows: tokens
 * of the batch. */
MUST_CHECK enum status engine_tap_moment(struct engine *engine, enum engine_moment moment,
                                         int32_t layer, uint64_t rows, struct error *err);
MUST_CHECK enum status engine_taps_create(const struct engine *engine,
                                          const struct engine_tap_choice *choices, size_t count,
                                          engine_tap_sink sink, void *context,
                                          struct engine_taps **ret_taps, struct error *err);
void engine_taps_destroy(struct engine_taps *taps); /* NULL is fine */

/* engine.c: the first `length` slots of a sequence in a cache. */
struct device_view engine_slots(const struct engine *engine, const struct device_view *cache,
                                uint32_t sequence, uint32_t length);
/* mode.c: the only place that decides how a batch runs. */
struct engine_mode engine_mode_of(const struct engine *engine, const struct engine_batch *batch);
/* replay.c: does what engine_run does; recorded once for each size of batch, then replayed. */
MUST_CHECK enum status engine_replay(struct engine *engine, uint64_t tokens, uint64_t logits,
                                     struct error *err);
void engine_drop_replays(struct engine *engine);

/* argmax.c: opened after the engine's stream. Closing an engine that was opened in part is fine. */
MUST_CHECK enum status engine_argmax_open(struct engine *engine, struct error *err);
void engine_argmax_close(struct engine *engine);
/* STATUS_USAGE while an argmax was submitted and not waited for. what: the call that refuses. */
MUST_CHECK enum status engine_argmax_check_none(const struct engine *engine, const char *what,
                                                struct error *err);
/* STATUS_USAGE where tokens of ENGINE_TOKEN_FROM_DEVICE do not match the ids on the device. A batch
 * has only such tokens, or none. */
MUST_CHECK enum status engine_argmax_check_batch(const struct engine *engine,
                                                 const struct engine_token *tokens, size_t count,
                                                 bool *ret_from_device, struct error *err);
/* The slots of a sequence from `length` on are free again. */
void engine_argmax_forget_slots(struct engine *engine, uint32_t sequence, uint32_t length);
/* A batch put the ids of the last argmax into these slots, one for each id. */
void engine_argmax_note_slots(struct engine *engine, const int32_t *slots);

/* engine.c: a row of a logits buffer. */
MUST_CHECK enum status engine_read_logits(struct engine *engine, uint32_t buffer_index,
                                          uint32_t row, float *logits, struct error *err);

#define ENGINE_LISTS 4u
#define ENGINE_CHUNK_LISTS 6u

/* Layers with chunks see less than others do. */
static inline bool engine_has_chunks(const struct engine *engine)
{
    return engine->config.chunk && engine->config.chunk < engine->budget.options.context;
}

/* Index lists of a batch but for the rows that want logits. */
static inline uint64_t engine_list_count(const struct engine *engine)
{
    return engine_has_chunks(engine) ? ENGINE_CHUNK_LISTS : ENGINE_LISTS;
}

/* The first `rows` rows of a view. */
static inline struct device_view engine_rows(const struct device_view *view, uint64_t rows)
{
    struct device_view part = *view;
    part.shape.dims[1] = rows;
    return part;
}

static inline bool engine_has(const struct device_view *view)
{
    return view->buffer.index != 0;
}

#endif
