/* engine_impl.h - what the files of this module share. */
#ifndef GRETA_ENGINE_ENGINE_IMPL_H
#define GRETA_ENGINE_ENGINE_IMPL_H

#include "engine/engine.h"

/* The weights of a layer; absent ones have a zero buffer. */
struct engine_layer {
    struct device_view weights[MODEL_ROLE_COUNT]; /* those that are per layer */
    struct device_view keys, values;              /* [kv_dim, slots] */
};

/* Rows for a batch of batch_limit tokens; a smaller one uses the first rows. Views and nothing
 * else: closing walks over them. */
struct engine_scratch {
    struct device_view x;          /* [width, tokens]: the residual stream */
    struct device_view normed;     /* [width, tokens] */
    struct device_view q, mixed;   /* [query, tokens]: queries; what attention gives */
    struct device_view k, v;       /* [kv_dim, tokens] */
    struct device_view added;      /* [width, tokens]: what a block adds to the stream */
    struct device_view gate, up;   /* [feed, tokens] */
    struct device_view packed;     /* I8 [bytes, tokens]: for the widest input of any product */
    struct device_view chosen;     /* [width, logits rows] */
    struct device_view logits;     /* [vocab, logits rows] */
    struct device_view spare;      /* [vocab, sequences]: of every other batch of ENGINE_BEST */
    struct device_view best;       /* I32 [logits rows, ENGINE_CHOICE_LIMIT]: ids */
    struct device_view indices;    /* I32: ids, positions, starts, slots of a batch, then rows */
    struct device_view rope_table; /* [rotated dimensions, context] */
};

/* Points of the forward pass at which something new is there to be tapped. */
enum engine_moment {
    ENGINE_EMBEDDED,
    ENGINE_ATTN_NORMED,
    ENGINE_QKV_MULTIPLIED,
    ENGINE_HEADS_READY, /* normed where the model does that, and rotated */
    ENGINE_KV_APPENDED,
    ENGINE_ATTENDED,
    ENGINE_WO_MULTIPLIED,
    ENGINE_FFN_NORMED,
    ENGINE_GATE_UP_MULTIPLIED,
    ENGINE_GATED,
    ENGINE_DOWN_MULTIPLIED,
    ENGINE_OUTPUT_NORMED,
    ENGINE_LOGITS_READY,
};

struct engine_taps; /* taps.c */

/* What is known of a batch before it is run. */
struct engine_batch {
    uint64_t tokens;
    bool best;          /* of ENGINE_BEST */
    bool same_sequence; /* most neighbours are of one sequence */
};

/* How it is run. */
struct engine_mode {
    bool replays;    /* recorded once and replayed; otherwise launched op by op */
    bool ahead_pays; /* queueing one step ahead is faster */
    uint32_t side;   /* where its logits go: engine_logits_side */
};

/* A batch recorded for replay. */
struct engine_replay {
    uint64_t tokens, logits; /* of the batch; tokens 0: not used */
    uint32_t side;           /* where its logits go */
    struct device_graph graph;
};

/* Ids chosen from the logits of a batch. */
struct engine_choice {
    struct device_ticket ticket; /* until it is taken */
    uint32_t count;              /* of ids */
    uint32_t side;               /* where the logits are */
    uint64_t batch;              /* which one's they are */
    int32_t step;
    int32_t *ids;   /* logits_limit; when it was taken; owned */
    bool is_fed;    /* a batch went on with the ids before they were taken */
    int32_t *slots; /* logits_limit; where that put them, -1: no longer there; owned */
};

struct engine {
    const struct ops *ops;
    struct device *device;
    struct device_stream stream;
    struct device_stream answers; /* for copies out of choices; index 0: `stream` does them */
    struct device_mark chosen;    /* on `stream`, behind the last choice; with `answers` */
    struct model_config config;
    struct engine_plan plan;
    struct device_view globals[MODEL_ROLE_COUNT]; /* weights that are not per layer */
    struct engine_layer *layers;                  /* block_count; owned */
    struct engine_scratch scratch;
    uint32_t *lengths;     /* of each sequence; owned */
    uint32_t *new_lengths; /* while a batch is made; owned */
    int32_t *host_indices; /* 5 * batch_limit; owned */
    int32_t *slot_ids;     /* token in each slot of the cache, below a sequence's length; owned */
    uint32_t logits_count; /* of the last batch */
    uint32_t side;         /* where the logits of the last batch are: engine_logits_side */
    uint64_t batch;        /* batches ever: the last one's number */
    uint64_t side_batches[2]; /* the batch whose logits are on each side */
    uint32_t best_count;      /* ids of the last batch's choice in the indices; 0: none */
    struct engine_choice choices[ENGINE_CHOICE_LIMIT]; /* number n is at n % ENGINE_CHOICE_LIMIT */
    uint64_t choices_made, choices_taken;
    bool same_sequence;              /* of the batch at hand; see engine_batch */
    int32_t step;                    /* batches so far: the scope's step */
    struct event_scope scope;        /* of what is queued now */
    struct engine_taps *taps;        /* NULL: none; owned */
    struct engine_replay replays[8]; /* two of a size: one for each side */
    size_t next_replay;              /* the oldest is replaced */
};

/* choose.c: the stream that choices come out by. */
MUST_CHECK enum status engine_answers_open(struct engine *engine, struct error *err);
void engine_answers_close(struct engine *engine);

/* weights.c: imports or uploads every tensor of the plan. */
MUST_CHECK enum status engine_bind_weights(struct engine *engine, const struct gguf_file *file,
                                           struct error *err);

/* upload.c: weights copied in by several threads, and laid out anew where view and tensor have
 * different types. */
struct engine_upload;
/* What a tensor that is laid out anew wants of a raw buffer. */
uint64_t engine_upload_raw_bytes(enum dtype dtype, const struct shape *shape);
/* Tensors of file, tensor_limit at most. raw_bytes: the most that any of them wants; 0: none is
 * laid out anew. */
MUST_CHECK enum status engine_upload_create(struct engine *engine, const struct gguf_file *file,
                                            size_t tensor_limit, uint64_t raw_bytes,
                                            struct engine_upload **ret_upload, struct error *err);
/* Waits for what is under way; NULL is fine. */
void engine_upload_destroy(struct engine_upload *upload);
/* Gives the view, which has type and shape, a buffer named as the scope's tensor; its bytes come by
 * and by. Tells the engine's progress how far all are. */
MUST_CHECK enum status engine_upload_add(struct engine_upload *upload,
                                         const struct gguf_tensor *tensor,
                                         const struct event_scope *scope, struct device_view *view,
                                         struct error *err);
/* Returns when all is there. */
MUST_CHECK enum status engine_upload_finish(struct engine_upload *upload, struct error *err);

/* memory.c: what a buffer takes of device_reserve's bytes. */
uint64_t engine_reserved_bytes(const struct engine *engine, uint64_t bytes);

/* memory.c: caches, scratch, tables. */
MUST_CHECK enum status engine_make_memory(struct engine *engine, struct error *err);

/* forward.c: all layers and logits for a batch whose indices are on the device. */
MUST_CHECK enum status engine_run(struct engine *engine, uint64_t token_count,
                                  uint64_t logits_count, struct error *err);

/* taps.c: hands out what was chosen of this moment. Only with engine->taps. rows: of the batch. */
MUST_CHECK enum status engine_tap_moment(struct engine *engine, enum engine_moment moment,
                                         int32_t layer, uint64_t rows, struct error *err);
MUST_CHECK enum status engine_taps_create(const struct engine *engine,
                                          const struct engine_tap_choice *choices, size_t count,
                                          engine_tap_sink sink, void *context,
                                          struct engine_taps **ret_taps, struct error *err);
void engine_taps_destroy(struct engine_taps *taps); /* NULL is fine */

/* Slots of a sequence in a cache: its first `length`. */
struct device_view engine_slots(const struct engine *engine, const struct device_view *cache,
                                uint32_t sequence, uint32_t length);
/* mode.c: the one place where it is decided. */
struct engine_mode engine_mode_of(const struct engine *engine, const struct engine_batch *batch);
/* replay.c: engine_run, recorded once for each size of batch and replayed. */
MUST_CHECK enum status engine_replay(struct engine *engine, uint64_t tokens, uint64_t logits,
                                     struct error *err);
void engine_drop_replays(struct engine *engine);

/* choose.c */
MUST_CHECK enum status engine_choices_init(struct engine *engine, struct error *err);
void engine_choices_release(struct engine *engine); /* of one that is not whole, too */
/* STATUS_USAGE where a choice was made and not taken. what: the call that does not want that. */
MUST_CHECK enum status engine_check_no_choice(const struct engine *engine, const char *what,
                                              struct error *err);
/* Slots of a sequence from `length` on hold nothing any more. */
void engine_forget_slots(struct engine *engine, uint32_t sequence, uint32_t length);
/* A batch put the ids of the last choice into slots, as many as it has. */
void engine_feed_choice(struct engine *engine, const int32_t *slots);

/* engine.c: a row of the logits of a side. */
MUST_CHECK enum status engine_read_logits(struct engine *engine, uint32_t side, uint32_t row,
                                          float *logits, struct error *err);

/* Where logits can be. A batch of ENGINE_BEST takes the side the batch before did not, so that the
 * logits its ids were chosen from can still be looked at; all others take side 0. */
static inline const struct device_view *engine_logits_side(const struct engine *engine,
                                                           uint32_t side)
{
    return side ? &engine->scratch.spare : &engine->scratch.logits;
}

static inline struct engine_choice *engine_oldest_choice(struct engine *engine)
{
    return &engine->choices[engine->choices_taken % COUNT_OF(engine->choices)];
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
