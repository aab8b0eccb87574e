/* convert.h - makes GGUF files: synthetic models of real shapes, and a model in another type. */
#ifndef GRETA_CONVERT_CONVERT_H
#define GRETA_CONVERT_CONVERT_H

#include "base/progress.h"
#include "base/status.h"
#include "model/model.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- File types ----------------------------------------------------------------------------- */

/* What users call the type of a file: a tensor type, or a mix of several. */
enum convert_type {
    CONVERT_F32,
    CONVERT_F16,
    CONVERT_BF16,
    CONVERT_Q8_0,
    CONVERT_Q4_0,
    CONVERT_Q4_K_M,
    CONVERT_Q5_K_M,
    CONVERT_Q6_K,
    CONVERT_MXFP4, /* experts; the rest is Q8_0 */
    CONVERT_TYPE_COUNT
};

const char *convert_type_name(enum convert_type type); /* "q4_k_m" */
/* Upper or lower case; q4_k and q5_k stand for their _m mixes. False if unknown. */
bool convert_type_find(const char *name, enum convert_type *ret_type);

/* ---- Synthetic models ----------------------------------------------------------------------- */

struct convert_synth {
    struct model_shape shape; /* a known one, or one with any of its numbers changed */
    enum convert_type type;
    uint64_t seed; /* same seed, same bytes */
    const char *path;
    bool replace;
};

/* Writes a model of exactly that shape with gaussian weights, scaled so that activations stay
 * finite at any depth, and a working tokenizer (all bytes, some words). Weights are drawn block by
 * block from pools that are quantized once, so the disk is the limit. STATUS_USAGE if the numbers
 * do not make a model. */
MUST_CHECK enum status convert_synth(const struct convert_synth *request,
                                     const struct progress *progress, uint64_t *ret_bytes,
                                     struct error *err);

/* ---- Other types of a model ----------------------------------------------------------------- */

struct convert_quantize {
    const struct gguf_file *input;
    const char *path;
    enum convert_type type;
    bool replace;
    uint32_t thread_count; /* 0: all processors */
};

struct convert_quantize_result {
    uint64_t input_bytes;
    uint64_t output_bytes;
    size_t converted_count; /* tensors; the others were copied */
    size_t copied_count;
    size_t requantized_count; /* of these, tensors that had been quantized before and lose precision
                                 twice */
};

/* Writes the same model in another type. Refuses NaN, infinity, and types that cannot be decoded.
 * The result does not depend on the number of threads. */
MUST_CHECK enum status convert_quantize(const struct convert_quantize *request,
                                        const struct progress *progress,
                                        struct convert_quantize_result *ret_result,
                                        struct error *err);

#endif
