/* sampler.h - from logits to a token, in the order users know: penalties, top-k, top-p, min-p,
 * temperature, then a draw. Equal settings, seed and logits give equal tokens. */
#ifndef GRETA_GENERATE_SAMPLER_H
#define GRETA_GENERATE_SAMPLER_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sampler_settings {
    float temperature;       /* 0: always the likeliest */
    uint32_t top_k;          /* 0: all */
    float top_p;             /* 1: all */
    float min_p;             /* 0: all */
    float repeat_penalty;    /* 1: none */
    float presence_penalty;  /* 0: none */
    float frequency_penalty; /* 0: none */
    uint32_t repeat_last_n;  /* tokens the penalties look back at */
    uint64_t seed;
};

/* STATUS_USAGE with the setting that is out of its range. */
MUST_CHECK enum status sampler_check(const struct sampler_settings *settings, struct error *err);

struct sampler;

/* STATUS_USAGE for settings that make no sense. */
MUST_CHECK enum status sampler_create(const struct sampler_settings *settings, uint32_t vocab_size,
                                      struct sampler **ret_sampler, struct error *err);
void sampler_destroy(struct sampler *sampler); /* NULL is fine */

/* True if only the largest logit matters: nothing but its index need be fetched. */
bool sampler_is_greedy(const struct sampler *sampler);

/* Chooses a token; changes logits. STATUS_BAD_FILE if a logit is NaN or all are -infinity: the
 * model or the machine is broken. */
MUST_CHECK enum status sampler_choose(struct sampler *sampler, float *logits, int32_t *ret_id,
                                      struct error *err);

/* A token was added to the text, chosen here or of the prompt: penalties see it from now on. */
void sampler_accept(struct sampler *sampler, int32_t id);

#endif
