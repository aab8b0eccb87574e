/* peers_library.h - llama.cpp's prebuilt libraries, loaded when asked for.
 *
 * Only what is needed of its interface is declared here. Of its parameter structures just the first
 * members are named, which have stood there for years; the rest is kept as the library's own
 * defaults, in room that is larger than the structure has ever been (the platform's calling
 * convention passes such structures in memory, so that a longer copy is harmless). Members that are
 * set must first hold the defaults that are known, and what was set is asked back through the
 * library's functions before anything is measured. */
#ifndef GRETA_BENCH_PEERS_LIBRARY_H
#define GRETA_BENCH_PEERS_LIBRARY_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct opaque_params {
    uint64_t words[128];
};

struct model_params {
    void **devices; /* ends with NULL; NULL: whatever there is */
    void *overrides;
    int32_t gpu_layers; /* negative: all */
    int32_t split;
    uint64_t rest[125];
};

struct context_params {
    uint32_t context, batch, micro_batch, sequences;
    uint32_t rest[252];
};

struct chain_params {
    bool untimed;
};

struct batch {
    int32_t token_count;
    int32_t *tokens;
    float *embeddings;
    int32_t *positions;
    int32_t *sequence_counts;
    int32_t **sequences;
    int8_t *wants_logits;
};

struct interface {
    void (*log_set)(void (*log)(int level, const char *text, void *data), void *data);
    void (*load_backends)(const char *folder);
    void *(*device_by_name)(const char *name);
    void (*backend_init)(void);
    struct model_params (*model_default_params)(void);
    void *(*model_load)(const char *path, struct model_params params);
    void (*model_free)(void *model);
    const void *(*vocabulary)(const void *model);
    int32_t (*vocabulary_size)(const void *vocabulary);
    struct context_params (*context_default_params)(void);
    void *(*context_open)(void *model, struct context_params params);
    void (*context_free)(void *context);
    uint32_t (*context_length)(const void *context); /* of a sequence */
    uint32_t (*batch_length)(const void *context);
    uint32_t (*micro_batch_length)(const void *context);
    uint32_t (*sequence_limit)(const void *context);
    void (*set_threads)(void *context, int32_t threads, int32_t batch_threads);
    int32_t (*threads)(void *context);
    void (*attach_pool)(void *context, void *pool, void *batch_pool);
    void *(*memory)(const void *context);
    void (*memory_clear)(void *memory, bool data_too);
    int32_t (*decode)(void *context, struct batch batch);
    void (*synchronize)(void *context);
    float *(*logits)(void *context, int32_t place);
    struct chain_params (*chain_default_params)(void);
    void *(*chain_create)(struct chain_params params);
    void (*chain_take)(void *chain, void *sampler);
    void *(*greedy_create)(void);
    void (*sampler_free)(void *sampler);
    bool (*set_sampler)(void *context, int32_t sequence, void *sampler);
    int32_t (*sampled)(void *context, int32_t place);
    struct opaque_params (*pool_default_params)(int threads);
    void *(*pool_create)(struct opaque_params *params);
    void (*pool_free)(void *pool);
    void (*pool_pause)(void *pool);
    void (*pool_resume)(void *pool);
};

/* Loads the libraries of a folder and those of its backends that this machine can run. log: gets
 * what llama.cpp says, with data, or NULL where this failed. */
MUST_CHECK enum status library_load(const char *folder,
                                    void (*log)(int level, const char *text, void *data),
                                    void *data, struct interface *ret_call, struct error *err);

/* The device that greta calls "cuda:N"; NULL for "host". STATUS_NOT_FOUND with the reason where
 * llama.cpp has none. */
MUST_CHECK enum status library_device(const struct interface *call, const char *folder,
                                      const char *name, void **ret_device, struct error *err);

#endif
