/* sampler.h - chooses a token from logits, in the usual order: penalties, top-k, top-p, min-p,
 * temperature, then a random draw. Equal settings, seed and logits give equal tokens. */
#ifndef GRETA_SESSION_SAMPLER_H
#define GRETA_SESSION_SAMPLER_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sampler_settings {
    float temperature;       /* 0: always the likeliest token */
    uint32_t top_k;          /* 0: all */
    float top_p;             /* 1: all */
    float min_p;             /* 0: all */
    float repeat_penalty;    /* 1: none */
    float presence_penalty;  /* 0: none */
    float frequency_penalty; /* 0: none */
    uint32_t repeat_last_n;  /* how many of the last tokens penalties apply to */
    uint64_t seed;
};

/* STATUS_USAGE, naming the setting that is out of its range. */
MUST_CHECK enum status sampler_check(const struct sampler_settings *settings, struct error *err);

struct sampler;

/* STATUS_USAGE as sampler_check. */
MUST_CHECK enum status sampler_create(const struct sampler_settings *settings, uint32_t vocab_size,
                                      struct sampler **ret_sampler, struct error *err);
void sampler_destroy(struct sampler *sampler); /* NULL is fine */

/* True if only the largest logit matters, so that its index is all the sampler needs. */
bool sampler_is_greedy(const struct sampler *sampler);

/* Chooses a token from the logits, which it changes. STATUS_BAD_FILE if one is NaN or all are
 * -infinity: the model is damaged or the machine is faulty. */
MUST_CHECK enum status sampler_choose(struct sampler *sampler, float *logits, int32_t *ret_id,
                                      struct error *err);

/* Adds a token of the prompt or of the text to those that penalties apply to. */
void sampler_accept(struct sampler *sampler, int32_t id);

#endif
