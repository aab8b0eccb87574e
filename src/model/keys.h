/* keys.h - numbers of a file's metadata, checked against a range. A bad number becomes a problem in
 * the report, and reading continues with a value in range. */
#ifndef GRETA_MODEL_KEYS_H
#define GRETA_MODEL_KEYS_H

#include "model/model_impl.h"

struct model_keys {
    const struct gguf_file *file;
    struct model_report *report;
    const char *arch;
    bool complete; /* false once a needed key could not be read */
};

/* "{arch}.key", in the buffer. */
const char *model_keys_full(const struct model_keys *keys, const char *key, char *buffer,
                            size_t bytes);

/* A needed key could not be read: err says why. */
void model_keys_problem(struct model_keys *keys, const struct error *err);

/* Reads an integer in [least, most]. If the key is absent: fallback, or a problem if fallback is
 * NULL. */
uint32_t model_keys_whole(struct model_keys *keys, const char *short_key, uint32_t least,
                          uint32_t most, const uint32_t *fallback);

/* The same where layers may differ: numbers[layer] of each layer if the key has an array, else 0.
 * Gives the largest. */
uint32_t model_keys_by_layer(struct model_keys *keys, const char *short_key, uint32_t least,
                             uint32_t most, const uint32_t *fallback, uint32_t layers,
                             uint32_t numbers[MODEL_UNLIKE_LIMIT]);

/* config_latent.c */
void model_latent_read(struct model_keys *keys, struct model_config *config);

/* Reads a finite number in (above, most]. If the key is absent: fallback, or a problem if that is
 * NAN. */
float model_keys_real(struct model_keys *keys, const char *short_key, double above, double most,
                      float fallback);

#endif
