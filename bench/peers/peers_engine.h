/* peers_engine.h - an engine to be measured: greta's own, or llama.cpp's libraries.
 *
 * Both run the same file with the same tokens on the same device, keys and values in f16. An engine
 * is opened for some settings at once; a run begins one of them, takes steps and ends. */
#ifndef GRETA_BENCH_PEERS_ENGINE_H
#define GRETA_BENCH_PEERS_ENGINE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How llama.cpp can be told to do the same. greta has one way. */
enum peers_way {
    PEERS_PLAIN,    /* its defaults: micro batches of 512, logits on the host */
    PEERS_WIDE,     /* micro batches of 2048 */
    PEERS_CHOOSING, /* its sampler on the device: the likeliest token comes to the host */
    PEERS_WAY_COUNT
};

const char *peers_way_name(enum peers_way way);

struct peers_setting {
    uint32_t threads;   /* of the processor; beside a GPU, for what is left to it */
    uint32_t sequences; /* at once */
    uint32_t context;   /* tokens of each */
    uint32_t batch;     /* most tokens of a step */
    uint32_t ways;      /* a bit for each enum peers_way that is to be ready */
    /* A step gives the likeliest token of each sequence; otherwise the logits, of one sequence. */
    bool chooses;
};

#define PEERS_SETTING_LIMIT 4u

struct peers_request {
    const char *model, *device; /* "host" or "cuda:N" */
    const char *folder;         /* where llama.cpp's shared libraries are */
    const struct peers_setting *settings;
    size_t setting_count; /* at most PEERS_SETTING_LIMIT */
};

struct peers_engine {
    const char *name;
    void *self;
    uint32_t vocab_size;
    /* Can this be run? llama.cpp's sampler may not be had on every device. */
    bool (*has)(void *self, size_t setting, enum peers_way way);
    /* Forgets everything. */
    enum status (*begin)(void *self, size_t setting, enum peers_way way, struct error *err);
    /* Appends tokens to the sequence, or where the setting has several, one to each of them.
     * Returns when what the setting asks for is on the host. */
    enum status (*step)(void *self, const int32_t *tokens, uint32_t count, struct error *err);
    enum status (*end)(void *self, struct error *err);
    /* The logits of the last step's last token (or of that sequence), vocab_size of them: to see
     * that both compute the same. NULL: none. */
    const float *(*logits)(void *self, uint32_t sequence);
    void (*close)(void *self);
};

/* The token at a place of the text both read. */
static inline int32_t peers_token(uint32_t place, uint32_t vocab_size)
{
    uint32_t mixed = place * 2654435761u + 12345u;
    return (int32_t)((mixed >> 8) % vocab_size);
}

MUST_CHECK enum status peers_open_greta(const struct peers_request *request,
                                        struct peers_engine *ret, struct error *err);
MUST_CHECK enum status peers_open_llama(const struct peers_request *request,
                                        struct peers_engine *ret, struct error *err);

/* ---- One of them alone ---------------------------------------------------------------------- */

bool peers_is_engine(const char *name); /* "greta", "llama.cpp" */

struct peers_alone {
    const char *name, *folder, *model, *device;
    uint32_t prompt, tokens, repeats;
};

/* Opens the engine, runs a prompt, and prints how long that took from nothing and the most memory
 * the process had, as JSON. */
MUST_CHECK enum status peers_start(const struct peers_alone *alone, struct error *err);

/* Reads a prompt and goes on with the likeliest tokens, again and again: prints the tokens to
 * standard output, and tokens per second of each repetition to standard error. */
MUST_CHECK enum status peers_generate(const struct peers_alone *alone, struct error *err);

#endif
