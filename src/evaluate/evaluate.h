/* evaluate.h - how well a model predicts a text, and how far the predictions of two models differ.
 *
 * The text is cut into chunks of `context` tokens, and each is run alone. If the model needs a
 * begin token, it replaces the first token. The tokens of the second half are scored, so that each
 * has at least half a context before it. An incomplete chunk at the end is not used.
 * llama-perplexity does the same, so numbers can be compared with its.
 *
 * A recording holds the logits of every scored token. Another model, type or device is compared
 * with it, token by token. */
#ifndef GRETA_EVALUATE_EVALUATE_H
#define GRETA_EVALUATE_EVALUATE_H

#include "base/progress.h"
#include "base/status.h"
#include "engine/engine.h"
#include "tokenizer/tokenizer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A chunk needs a token to begin with and one to score. */
#define EVALUATE_CONTEXT_LEAST 4u

/* Tokens of a chunk that are scored. */
uint32_t evaluate_scored_per_chunk(uint32_t context);

/* How many logits to ask an engine for at a time (engine_options.logits_limit): as many as a chunk
 * scores, or as fit a modest buffer. */
uint32_t evaluate_logits_limit(uint32_t context, uint32_t vocab_size);

/* ---- Recordings ----------------------------------------------------------------------------- */

struct evaluate_recording;

struct evaluate_recording_info {
    uint32_t context;
    uint32_t vocab_size;
    uint64_t chunk_count;
    uint64_t ids_hash; /* XXH3 of the tokens of all chunks */
};

/* STATUS_BAD_FILE if the file is no recording, or not as long as it says. */
MUST_CHECK enum status evaluate_recording_open(const char *path,
                                               struct evaluate_recording **ret_recording,
                                               struct error *err);
void evaluate_recording_close(struct evaluate_recording *recording); /* NULL is fine */
const struct evaluate_recording_info *
evaluate_recording_info(const struct evaluate_recording *recording);

/* ---- Evaluating ----------------------------------------------------------------------------- */

struct evaluate_options {
    uint32_t context;                /* at least EVALUATE_CONTEXT_LEAST, at most the engine's */
    uint64_t chunk_limit;            /* 0: the whole text */
    uint32_t thread_count;           /* of the arithmetic after the model; 0: all processors */
    const char *save_path;           /* record here; NULL: nowhere */
    bool replace;                    /* save_path may exist */
    struct evaluate_recording *base; /* compare with this; NULL: with nothing */
    const struct progress *progress; /* in chunks; NULL is fine */
};

/* A mean and its standard error, as if tokens were independent. */
struct evaluate_mean {
    double value, error;
};

/* A model compared with the base. Divergences are of the model's distribution from the base's, in
 * nats, over the scored tokens. */
struct evaluate_comparison {
    struct evaluate_mean divergence;
    double divergence_max;
    double divergence_median, divergence_90, divergence_95, divergence_99, divergence_999;
    struct evaluate_mean log_ratio; /* of perplexities: model over base, paired */
    struct evaluate_mean same_top;  /* share of tokens with the same likeliest next token */
    double probability_rms;         /* change of the true token's probability */
    double base_perplexity;
    uint64_t identical; /* tokens whose logits have the same bits */
};

struct evaluate_result {
    uint64_t chunk_count;
    uint64_t scored_tokens;
    uint64_t scored_bytes;     /* of text; control tokens have none */
    struct evaluate_mean nats; /* per token */
    struct evaluate_mean perplexity;
    struct evaluate_mean bits_per_byte;
    bool compared;
    struct evaluate_comparison comparison;
};

/* ids: the whole text, with the begin token if the model needs one. STATUS_USAGE with both numbers
 * if the text is shorter than a chunk or does not fit the base; STATUS_REFUSED if a logit is not a
 * number. Uses sequence 0 of the engine. */
MUST_CHECK enum status evaluate_run(struct engine *engine, const struct tokenizer *tokenizer,
                                    const uint32_t *ids, size_t count,
                                    const struct evaluate_options *options,
                                    struct evaluate_result *ret_result, struct error *err);

#endif
