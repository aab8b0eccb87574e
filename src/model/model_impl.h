/* model_impl.h - what the files of this module share. */
#ifndef GRETA_MODEL_MODEL_IMPL_H
#define GRETA_MODEL_MODEL_IMPL_H

#include "model/model.h"

/* A number beyond these limits is a damaged file, not a model. Products of two numbers within them
 * fit 64 bits. */
#define MODEL_WIDTH_LIMIT (1u << 24)
#define MODEL_HEAD_LIMIT 65536u
#define MODEL_CONTEXT_LIMIT (1u << 30)
#define MODEL_VOCAB_LIMIT (1u << 26)

void model_problem_add(struct model_report *report, enum model_problem_kind kind,
                       const char *format, ...) PRINTF_LIKE(3, 4);

/* arch.c: by general.architecture; false if unknown. */
bool model_arch_find(struct text_view name, enum model_arch *ret_arch);
/* "llama, qwen2, qwen3, ..." */
const char *model_arch_list(void);

/* config.c: fills report->config; sets config_known if nothing it needs is missing. */
void model_config_read(const struct gguf_file *file, struct model_report *report);

/* config_layers.c: windows, caps and scales, and which layers have what. */
struct model_keys;
void model_layers_read(struct model_keys *keys, struct model_config *config);

/* config_experts.c */
void model_experts_read(struct model_keys *keys, struct model_config *config);
bool model_layer_has_experts(const struct model_config *config, uint32_t layer);

/* vocabulary.c: tokens, scores, types and special ids agree with each other and with vocab_size. */
void model_vocabulary_check(const struct gguf_file *file, struct model_report *report);

/* tensor_table.c: what follows "blk.N." in the names of a layer's tensors, or the whole name. */
const char *model_role_name(const struct model_config *config, enum model_role role);

/* tensor_check.c: compares every tensor of the file with the table. */
void model_tensors_check(const struct gguf_file *file, struct model_report *report);

/* shapes.c: compares with the pinned shape, number by number. */
void model_expectation_check(const struct model_shape *expected, struct model_report *report);

#endif
