/* arch.c - the architectures that greta runs. A new one needs a row here, a column in
 * tensor_table.c, and perhaps ops in the engine. */
#include "model/model_impl.h"

static const struct model_arch_info arch_infos[] = {
    /* Also Mistral, Yi, TinyLlama, SmolLM: their converters write "llama" and permute q and k so
     * that adjacent pairs are right. */
    [MODEL_ARCH_LLAMA] = { "llama", MODEL_ROPE_ADJACENT, .rope_covers_head = true },
    [MODEL_ARCH_QWEN2] = { "qwen2", MODEL_ROPE_SPLIT_HALF, .rope_covers_head = false },
    [MODEL_ARCH_QWEN3] = { "qwen3", MODEL_ROPE_SPLIT_HALF, .rope_covers_head = false },
};
_Static_assert(COUNT_OF(arch_infos) == MODEL_ARCH_COUNT, "every architecture has a row");

const struct model_arch_info *model_arch_info(enum model_arch arch)
{
    ASSERT((unsigned)arch < MODEL_ARCH_COUNT);
    return &arch_infos[arch];
}

bool model_arch_find(struct text_view name, enum model_arch *ret_arch)
{
    for (size_t i = 0; i < MODEL_ARCH_COUNT; i++) {
        if (text_view_is(name, arch_infos[i].name)) {
            *ret_arch = (enum model_arch)i;
            return true;
        }
    }
    return false;
}

const char *model_arch_list(void)
{
    return "llama, qwen2, qwen3";
}
