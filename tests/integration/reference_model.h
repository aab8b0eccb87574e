/* reference_model.h - a whole model in float64, small and slow, written from the formulas alone:
 * what the engine is compared with. Weights are decoded by the scalar reference decoders. */
#ifndef GRETA_TESTS_REFERENCE_MODEL_H
#define GRETA_TESTS_REFERENCE_MODEL_H

#include "gguf/gguf.h"
#include "model/model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an implementation rounds on purpose. Its own roundings to f32 are not among them; but they
 * decide where a value lies between two levels, and one level more or less changes everything that
 * comes after it. So values that lie within a hundredth of a level of such a tie are rounded as the
 * implementation did, which its rows tell (witness); all others by the formula alone. */
struct reference_rounding {
    bool q8_rows;   /* rows that meet quantized weights: blocks of 32 levels with an f32 scale */
    bool bf16_rows; /* rows that meet BF16 weights: to BF16 */
    enum dtype kv;  /* keys and values as the cache keeps them; F32: exact */
    /* Rows of that name and layer (-1: none) the implementation had, all tokens; NULL: not known.
     */
    const float *(*witness)(void *context, const char *tensor, int layer);
    void *context;
};

/* Logits of every token of one sequence, by an engine with the model's own context: count *
 * vocab_size doubles. rounding may be NULL: nothing is rounded. */
void reference_logits(const struct gguf_file *file, const struct model_config *config,
                      const struct reference_rounding *rounding, const int32_t *ids, size_t count,
                      double *logits);

#endif
