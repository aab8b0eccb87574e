/* arch.c - the architectures that greta runs. A new one needs a row here, a column in
 * tensor_table.c, and perhaps ops in the engine. */
#include "model/model_impl.h"

static const struct model_arch_info arch_infos[] = {
    /* Also Mistral, Yi, TinyLlama, SmolLM: their converters write "llama" and permute q and k so
     * that adjacent pairs are right. */
    [MODEL_ARCH_LLAMA] = { "llama", MODEL_ROPE_ADJACENT, .rope_covers_head = true,
                           .reads = MODEL_MAY_HAVE_EXPERTS | MODEL_NORMALISES_EXPERTS },
    [MODEL_ARCH_QWEN2] = { "qwen2", MODEL_ROPE_SPLIT_HALF, .rope_covers_head = false },
    [MODEL_ARCH_QWEN3] = { "qwen3", MODEL_ROPE_SPLIT_HALF, .rope_covers_head = false },
    [MODEL_ARCH_GEMMA2] = { "gemma2", MODEL_ROPE_SPLIT_HALF, .activation = MODEL_ACTIVATION_GELU,
                            .window_period = 2, .window_default = 4096, .attention_cap = 50,
                            .logit_cap = 30,
                            .reads = MODEL_READS_WINDOW | MODEL_READS_ATTENTION_CAP |
                                     MODEL_READS_LOGIT_CAP | MODEL_SCALES_EMBEDDING,
                            .width_scaled_blocks = 46 },
    [MODEL_ARCH_GEMMA3] = { "gemma3", MODEL_ROPE_SPLIT_HALF, .activation = MODEL_ACTIVATION_GELU,
                            .local_rope = MODEL_LOCAL_ROPE_OWN_BASE, .window_period = 6,
                            .reads = MODEL_READS_WINDOW | MODEL_IGNORES_ATTENTION_CAP |
                                     MODEL_READS_LOGIT_CAP | MODEL_SCALES_EMBEDDING,
                            .width_scaled_blocks = 62 },
    [MODEL_ARCH_GEMMA4] = { "gemma4", MODEL_ROPE_SPLIT_HALF, .rope_covers_head = true,
                            .activation = MODEL_ACTIVATION_GELU,
                            .local_rope = MODEL_LOCAL_ROPE_OWN_BASE, .logit_cap = 30,
                            .reads = MODEL_READS_WINDOW | MODEL_NEEDS_WINDOW |
                                     MODEL_READS_LOGIT_CAP | MODEL_SCALES_EMBEDDING |
                                     MODEL_LAYERS_DIFFER | MODEL_NORMS_VALUES |
                                     MODEL_UNSCALED_SCORES | MODEL_MAY_HAVE_EXPERTS |
                                     MODEL_EXPERTS_OWN_LENGTH | MODEL_NORMALISES_EXPERTS |
                                     MODEL_KEEPS_DENSE },
    /* Its attention.sliding_window is not read, as in llama.cpp, which its files are made for. */
    [MODEL_ARCH_PHI3] = { "phi3", MODEL_ROPE_SPLIT_HALF, .reads = MODEL_READS_LONGROPE },
    [MODEL_ARCH_MISTRAL3] = { "mistral3", MODEL_ROPE_ADJACENT, .rope_covers_head = true,
                              .reads = MODEL_READS_YARN | MODEL_READS_TEMPERATURE |
                                       MODEL_READS_LONGROPE },
    [MODEL_ARCH_GLM4] = { "glm4", MODEL_ROPE_ADJACENT,
                          .reads = MODEL_SKIPS_PREDICTION | MODEL_READS_SECTIONS },
    [MODEL_ARCH_GRANITE] = { "granite", MODEL_ROPE_ADJACENT, .rope_covers_head = true,
                             .reads = MODEL_READS_SCALES | MODEL_DIVIDES_LOGITS |
                                      MODEL_NEEDS_LOGIT_SCALE | MODEL_MAY_NOT_ROTATE },
    [MODEL_ARCH_OLMO2] = { "olmo2", MODEL_ROPE_SPLIT_HALF, .head_norm = MODEL_HEAD_NORM_ROW,
                           .local_rope = MODEL_LOCAL_ROPE_UNSCALED, .window_period = 4,
                           .reads = MODEL_READS_WINDOW },
    [MODEL_ARCH_SMOLLM3] = { "smollm3", MODEL_ROPE_ADJACENT, .unrotated_every = 4 },
    [MODEL_ARCH_COMMAND_R] = { "command-r", MODEL_ROPE_ADJACENT, .norm = MODEL_NORM_LAYER,
                               .head_norm = MODEL_HEAD_NORM_OWN, .is_parallel = true,
                               .reads = MODEL_MULTIPLIES_LOGITS },
    [MODEL_ARCH_COHERE2] = { "cohere2", MODEL_ROPE_ADJACENT, .norm = MODEL_NORM_LAYER,
                             .is_parallel = true, .local_rope = MODEL_LOCAL_ROPE_ONLY,
                             .window_period = 4,
                             .reads = MODEL_READS_WINDOW | MODEL_NEEDS_WINDOW |
                                      MODEL_MULTIPLIES_LOGITS | MODEL_NEEDS_LOGIT_SCALE },
    [MODEL_ARCH_STARCODER2] = { "starcoder2", MODEL_ROPE_SPLIT_HALF, .norm = MODEL_NORM_LAYER,
                                .activation = MODEL_ACTIVATION_GELU },
    [MODEL_ARCH_QWEN2MOE] = { "qwen2moe", MODEL_ROPE_SPLIT_HALF,
                              .reads = MODEL_MUST_HAVE_EXPERTS | MODEL_EXPERTS_OWN_LENGTH |
                                       MODEL_MUST_SHARE_EXPERT },
    [MODEL_ARCH_QWEN3MOE] = { "qwen3moe", MODEL_ROPE_SPLIT_HALF,
                              .reads = MODEL_MUST_HAVE_EXPERTS | MODEL_EXPERTS_OWN_LENGTH |
                                       MODEL_NORMALISES_EXPERTS },
    [MODEL_ARCH_GRANITEMOE] = { "granitemoe", MODEL_ROPE_ADJACENT, .rope_covers_head = true,
                                .reads = MODEL_MUST_HAVE_EXPERTS | MODEL_NORMALISES_EXPERTS |
                                         MODEL_MAY_SHARE_EXPERT | MODEL_READS_SCALES |
                                         MODEL_DIVIDES_LOGITS | MODEL_NEEDS_LOGIT_SCALE },
    [MODEL_ARCH_GPT_OSS] = { "gpt-oss", MODEL_ROPE_SPLIT_HALF, .window_period = 2,
                             .ffn_norm = "post_attention_norm.weight",
                             .reads = MODEL_READS_WINDOW | MODEL_MUST_HAVE_EXPERTS |
                                      MODEL_EXPERTS_OWN_LENGTH | MODEL_NORMALISES_EXPERTS |
                                      MODEL_CLAMPS_EXPERTS },
    [MODEL_ARCH_LLAMA4] = { "llama4", MODEL_ROPE_ADJACENT, .rope_covers_head = true,
                            .unrotated_every = 4, .chunk = 8192, .resting_temperature = 0.1f,
                            .reads = MODEL_MUST_HAVE_EXPERTS | MODEL_EXPERTS_OWN_LENGTH |
                                     MODEL_WEIGHS_EXPERT_INPUT | MODEL_EXPERTS_BY_STEP |
                                     MODEL_SHARES_LIKE_EXPERT | MODEL_NORMS_ROTATED },
    [MODEL_ARCH_DEEPSEEK2] = { "deepseek2", MODEL_ROPE_ADJACENT, .is_latent = true,
                               .reads_routing = true,
                               .reads = MODEL_MUST_HAVE_EXPERTS | MODEL_EXPERTS_OWN_LENGTH |
                                        MODEL_SKIPS_PREDICTION },
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
    return "llama, qwen2, qwen3, gemma2, gemma3, gemma4, phi3, mistral3, glm4, granite, olmo2, "
           "smollm3, command-r, cohere2, starcoder2, qwen2moe, qwen3moe, granitemoe, gpt-oss, "
           "llama4, deepseek2";
}
