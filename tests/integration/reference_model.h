/* reference_model.h - a whole model in float64, small and slow, written from the formulas alone:
 * what the engine is held against. Weights are decoded by the scalar reference decoders. */
#ifndef GRETA_TESTS_REFERENCE_MODEL_H
#define GRETA_TESTS_REFERENCE_MODEL_H

#include "gguf/gguf.h"
#include "model/model.h"

#include <stddef.h>
#include <stdint.h>

/* Logits of every token of one sequence: count * vocab_size doubles. */
void reference_logits(const struct gguf_file *file, const struct model_config *config,
                      const int32_t *ids, size_t count, double *logits);

#endif
