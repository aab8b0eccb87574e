/* peers_engine.h - an engine to be measured: greta's own, or llama.cpp's libraries.
 *
 * Both run the same file with the same tokens, keys and values in f16, and give the logits of the
 * last token to the host. */
#ifndef GRETA_BENCH_PEERS_ENGINE_H
#define GRETA_BENCH_PEERS_ENGINE_H

#include "base/status.h"

#include <stdint.h>

/* Threads an engine may be asked for. */
#define PEERS_THREAD_LIMIT 2u

struct peers_engine {
    const char *name;
    void *self;
    /* Forgets everything, then runs count tokens, at_once in a batch, with 1 to PEERS_THREAD_LIMIT
     * threads. */
    enum status (*run)(void *self, uint32_t threads, uint32_t count, uint32_t at_once,
                       struct error *err);
    /* The logits of the last token, vocab_size of them: to see that both compute the same. */
    const float *(*logits)(void *self);
    void (*close)(void *self);
};

/* The token at a place of the text both read. */
static inline int32_t peers_token(uint32_t place, uint32_t vocab_size)
{
    uint32_t mixed = place * 2654435761u + 12345u;
    return (int32_t)((mixed >> 8) % vocab_size);
}

/* For least_threads to PEERS_THREAD_LIMIT threads. */
MUST_CHECK enum status peers_open_greta(const char *model, uint32_t context, uint32_t least_threads,
                                        struct peers_engine *ret, uint32_t *ret_vocab_size,
                                        struct error *err);
/* folder: where the shared libraries are. */
MUST_CHECK enum status peers_open_llama(const char *folder, const char *model, uint32_t context,
                                        uint32_t vocab_size, struct peers_engine *ret,
                                        struct error *err);

/* peers_start.c: opens one engine ("greta" or "llama.cpp"), runs a prompt, and prints how long that
 * took from nothing and the most memory the process had, as JSON. */
MUST_CHECK enum status peers_start(const char *name, const char *folder, const char *model,
                                   uint32_t prompt, struct error *err);

#endif
