/* convert_impl.h - what the files of this module share. */
#ifndef GRETA_CONVERT_CONVERT_IMPL_H
#define GRETA_CONVERT_CONVERT_IMPL_H

#include "convert/convert.h"
#include "gguf/gguf.h"

/* mix.c */

/* What decides a tensor's type in a mix. */
struct convert_mix {
    enum convert_type type;
    uint32_t layer_count;
    bool tied; /* no output.weight: token_embd takes its type */
};

/* general.file_type of such a file. */
uint32_t convert_file_type(enum convert_type type);

/* True for weight matrices; the others (norms, biases, tables) are not quantized. */
bool convert_is_quantized(struct text_view name, const struct shape *shape);

/* The type of a weight matrix, or its fallback if rows are not whole blocks. */
enum dtype convert_dtype(const struct convert_mix *mix, struct text_view name,
                         const struct shape *shape);

/* synth_metadata.c: experts of an architecture that must have them, and what was not said of them.
 */
void convert_complete_experts(struct model_shape *shape);
void convert_complete_latent(struct model_shape *shape);

/* synth_metadata.c: all keys, also those of the vocabulary. */
MUST_CHECK enum status convert_put_metadata(struct gguf_writer *writer,
                                            const struct convert_synth *request,
                                            const struct model_config *config, struct error *err);

/* Where the shape's layers differ: every other one has a window, from the first on. */
void convert_unlike_layers(const struct model_shape *shape, struct model_config *config);

/* synth_vocabulary.c: the tokenizer.* keys, exactly shape->vocab_size tokens. */
MUST_CHECK enum status convert_put_vocabulary(struct gguf_writer *writer,
                                              const struct model_shape *shape, struct error *err);

/* The fewest tokens a vocabulary can have: all bytes and the special ones. */
#define CONVERT_VOCAB_MIN 259u

#endif
