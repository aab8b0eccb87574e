/* shapes.c - well-known models by their dimensions: names for people, pins for --expect, and exact
 * shapes for synth. */
#include "model/model_impl.h"

#include <ctype.h>
#include <inttypes.h>

#define LLAMA MODEL_ARCH_LLAMA
#define QWEN2 MODEL_ARCH_QWEN2
#define QWEN3 MODEL_ARCH_QWEN3
#define GEMMA2 MODEL_ARCH_GEMMA2
#define GEMMA3 MODEL_ARCH_GEMMA3
#define PHI3 MODEL_ARCH_PHI3
#define MISTRAL3 MODEL_ARCH_MISTRAL3
#define GLM4 MODEL_ARCH_GLM4
#define GRANITE MODEL_ARCH_GRANITE
#define OLMO2 MODEL_ARCH_OLMO2
#define SMOLLM3 MODEL_ARCH_SMOLLM3
#define COMMAND_R MODEL_ARCH_COMMAND_R
#define COHERE2 MODEL_ARCH_COHERE2
#define STARCODER2 MODEL_ARCH_STARCODER2
#define QWEN2MOE MODEL_ARCH_QWEN2MOE
#define QWEN3MOE MODEL_ARCH_QWEN3MOE
#define GPT_OSS MODEL_ARCH_GPT_OSS
#define LLAMA4 MODEL_ARCH_LLAMA4
#define DEEPSEEK2 MODEL_ARCH_DEEPSEEK2

/* slug, title, arch, width, layers, feed, heads, kv heads, head dim, vocab, context, rope base,
 * epsilon, tied, rope_freqs factor. If two shapes differ only in the vocabulary, the more common
 * one comes first. */
static const struct model_shape shapes[] = {
    { "tiny", "tiny", LLAMA, 256, 4, 768, 8, 4, 32, 1024, 512, 1e4f, 1e-5f, false,
      .rope_freqs_factor = 0 },
    { "stories260k", "stories260K", LLAMA, 64, 5, 172, 8, 4, 8, 512, 512, 1e4f, 1e-5f, false,
      .rope_freqs_factor = 0 },
    { "tinyllama", "TinyLlama-1.1B", LLAMA, 2048, 22, 5632, 32, 4, 64, 32000, 2048, 1e4f, 1e-5f,
      false, .rope_freqs_factor = 0 },
    { "llama2-7b", "Llama-2-7B", LLAMA, 4096, 32, 11008, 32, 32, 128, 32000, 4096, 1e4f, 1e-5f,
      false, .rope_freqs_factor = 0 },
    { "llama2-13b", "Llama-2-13B", LLAMA, 5120, 40, 13824, 40, 40, 128, 32000, 4096, 1e4f, 1e-5f,
      false, .rope_freqs_factor = 0 },
    { "llama2-70b", "Llama-2-70B", LLAMA, 8192, 80, 28672, 64, 8, 128, 32000, 4096, 1e4f, 1e-5f,
      false, .rope_freqs_factor = 0 },
    { "llama3-1b", "Llama-3.2-1B", LLAMA, 2048, 16, 8192, 32, 8, 64, 128256, 131072, 5e5f, 1e-5f,
      true, .rope_freqs_factor = 32 },
    { "llama3-3b", "Llama-3.2-3B", LLAMA, 3072, 28, 8192, 24, 8, 128, 128256, 131072, 5e5f, 1e-5f,
      true, .rope_freqs_factor = 32 },
    { "llama3-8b", "Llama-3-8B", LLAMA, 4096, 32, 14336, 32, 8, 128, 128256, 8192, 5e5f, 1e-5f,
      false, .rope_freqs_factor = 0 },
    { "llama3-70b", "Llama-3-70B", LLAMA, 8192, 80, 28672, 64, 8, 128, 128256, 8192, 5e5f, 1e-5f,
      false, .rope_freqs_factor = 0 },
    { "mistral-7b", "Mistral-7B", LLAMA, 4096, 32, 14336, 32, 8, 128, 32000, 32768, 1e4f, 1e-5f,
      false, .rope_freqs_factor = 0 },
    { "mistral-7b-v3", "Mistral-7B-v0.3", LLAMA, 4096, 32, 14336, 32, 8, 128, 32768, 32768, 1e6f,
      1e-5f, false, .rope_freqs_factor = 0 },
    { "mistral-nemo", "Mistral-Nemo-12B", LLAMA, 5120, 40, 14336, 32, 8, 128, 131072, 131072, 1e6f,
      1e-5f, false, .rope_freqs_factor = 0 },
    { "qwen2-0.5b", "Qwen2-0.5B", QWEN2, 896, 24, 4864, 14, 2, 64, 151936, 32768, 1e6f, 1e-6f, true,
      .rope_freqs_factor = 0 },
    { "qwen2-1.5b", "Qwen2-1.5B", QWEN2, 1536, 28, 8960, 12, 2, 128, 151936, 32768, 1e6f, 1e-6f,
      true, .rope_freqs_factor = 0 },
    { "qwen2-3b", "Qwen2.5-3B", QWEN2, 2048, 36, 11008, 16, 2, 128, 151936, 32768, 1e6f, 1e-6f,
      true, .rope_freqs_factor = 0 },
    { "qwen2-7b", "Qwen2-7B", QWEN2, 3584, 28, 18944, 28, 4, 128, 152064, 32768, 1e6f, 1e-6f, false,
      .rope_freqs_factor = 0 },
    { "qwen2-14b", "Qwen2.5-14B", QWEN2, 5120, 48, 13824, 40, 8, 128, 152064, 32768, 1e6f, 1e-6f,
      false, .rope_freqs_factor = 0 },
    { "qwen2-32b", "Qwen2.5-32B", QWEN2, 5120, 64, 27648, 40, 8, 128, 152064, 32768, 1e6f, 1e-6f,
      false, .rope_freqs_factor = 0 },
    { "qwen2-72b", "Qwen2-72B", QWEN2, 8192, 80, 29568, 64, 8, 128, 152064, 32768, 1e6f, 1e-6f,
      false, .rope_freqs_factor = 0 },
    { "qwen3-0.6b", "Qwen3-0.6B", QWEN3, 1024, 28, 3072, 16, 8, 128, 151936, 40960, 1e6f, 1e-6f,
      true, .rope_freqs_factor = 0 },
    { "qwen3-1.7b", "Qwen3-1.7B", QWEN3, 2048, 28, 6144, 16, 8, 128, 151936, 40960, 1e6f, 1e-6f,
      true, .rope_freqs_factor = 0 },
    { "qwen3-4b", "Qwen3-4B", QWEN3, 2560, 36, 9728, 32, 8, 128, 151936, 40960, 1e6f, 1e-6f, true,
      .rope_freqs_factor = 0 },
    { "qwen3-8b", "Qwen3-8B", QWEN3, 4096, 36, 12288, 32, 8, 128, 151936, 40960, 1e6f, 1e-6f, false,
      .rope_freqs_factor = 0 },
    { "qwen3-14b", "Qwen3-14B", QWEN3, 5120, 40, 17408, 40, 8, 128, 151936, 40960, 1e6f, 1e-6f,
      false, .rope_freqs_factor = 0 },
    { "qwen3-32b", "Qwen3-32B", QWEN3, 5120, 64, 25600, 64, 8, 128, 151936, 40960, 1e6f, 1e-6f,
      false, .rope_freqs_factor = 0 },
    { "gemma2-2b", "Gemma-2-2B", GEMMA2, 2304, 26, 9216, 8, 4, 256, 256000, 8192, 1e4f, 1e-6f, true,
      .window = 4096 },
    { "gemma2-9b", "Gemma-2-9B", GEMMA2, 3584, 42, 14336, 16, 8, 256, 256000, 8192, 1e4f, 1e-6f,
      true, .window = 4096 },
    { "gemma3-1b", "Gemma-3-1B", GEMMA3, 1152, 26, 6912, 4, 1, 256, 262144, 32768, 1e6f, 1e-6f,
      true, .window = 512 },
    { "gemma3-4b", "Gemma-3-4B", GEMMA3, 2560, 34, 10240, 8, 4, 256, 262144, 131072, 1e6f, 1e-6f,
      true, .window = 1024, .rope_scaling = MODEL_ROPE_SCALING_LINEAR, .rope_scaling_factor = 8 },
    { "phi3-mini", "Phi-3-mini-4k", PHI3, 3072, 32, 8192, 32, 32, 96, 32064, 4096, 1e4f, 1e-5f,
      false, .rope_original_context = 4096, .has_fused_qkv = true },
    { "phi4-mini", "Phi-4-mini", PHI3, 3072, 32, 8192, 24, 8, 128, 200064, 131072, 1e4f, 1e-5f,
      true, .rope_dimensions = 96, .rope_scaling = MODEL_ROPE_SCALING_LONG,
      .rope_original_context = 4096, .rope_attention_factor = 1.1902381f, .has_fused_qkv = true },
    { "ministral3-8b", "Ministral-3-8B", MISTRAL3, 4096, 34, 14336, 32, 8, 128, 131072, 262144,
      1e6f, 1e-5f, false, .rope_scaling = MODEL_ROPE_SCALING_YARN, .rope_scaling_factor = 16,
      .rope_original_context = 16384, .temperature_scale = 0.1f },
    { "glm4-9b", "GLM-4-9B-0414", GLM4, 4096, 40, 13696, 32, 2, 128, 151552, 32768, 1e4f, 1e-5f,
      false, .rope_dimensions = 64, .has_qkv_biases = true },
    { "granite3-2b", "Granite-3.3-2B", GRANITE, 2048, 40, 8192, 32, 8, 64, 49159, 131072, 1e7f,
      1e-5f, true, .embedding_scale = 12, .residual_scale = 0.22f, .attention_scale = 1.0f / 64,
      .logit_scale = 8 },
    { "olmo2-7b", "OLMo-2-7B", OLMO2, 4096, 32, 11008, 32, 32, 128, 100352, 4096, 5e5f, 1e-6f,
      false, .rope_freqs_factor = 0 },
    { "smollm3-3b", "SmolLM3-3B", SMOLLM3, 2048, 36, 11008, 16, 4, 128, 128256, 65536, 5e6f, 1e-6f,
      true, .rope_freqs_factor = 0 },
    { "command-r", "Command-R-35B", COMMAND_R, 8192, 40, 22528, 64, 64, 128, 256000, 131072, 8e6f,
      1e-5f, true, .logit_scale = 0.0625f },
    { "command-r7b", "Command-R7B", COHERE2, 4096, 32, 14336, 32, 8, 128, 256000, 132096, 5e4f,
      1e-5f, true, .window = 4096, .logit_scale = 0.25f },
    { "starcoder2-3b", "StarCoder2-3B", STARCODER2, 3072, 30, 12288, 24, 2, 128, 49152, 16384,
      999999.44f, 1e-5f, true, .rope_freqs_factor = 0 },
    { "mixtral-8x7b", "Mixtral-8x7B", LLAMA, 4096, 32, 14336, 32, 8, 128, 32000, 32768, 1e6f, 1e-5f,
      false, .experts = { .count = 8, .used = 2, .feed_length = 14336 } },
    { "qwen1.5-moe", "Qwen1.5-MoE-A2.7B", QWEN2MOE, 2048, 24, 5632, 16, 16, 128, 151936, 8192, 1e6f,
      1e-6f, false,
      .experts = { .count = 60, .used = 4, .feed_length = 1408, .shared_feed_length = 5632 } },
    { "qwen3-30b-a3b", "Qwen3-30B-A3B", QWEN3MOE, 2048, 48, 6144, 32, 4, 128, 151936, 40960, 1e6f,
      1e-6f, false, .experts = { .count = 128, .used = 8, .feed_length = 768 } },
    { "gpt-oss-20b", "gpt-oss-20b", GPT_OSS, 2880, 24, 2880, 64, 8, 64, 201088, 131072, 150000,
      1e-5f, false, .rope_scaling = MODEL_ROPE_SCALING_YARN, .rope_scaling_factor = 32,
      .rope_original_context = 4096, .window = 128,
      .experts = { .count = 32, .used = 4, .feed_length = 2880 } },
    { "llama4-scout", "Llama-4-Scout-17B-16E", LLAMA4, 5120, 48, 16384, 40, 8, 128, 202048,
      10485760, 5e5f, 1e-5f, false, .rope_freqs_factor = 16,
      .experts = { .count = 16, .used = 1, .feed_length = 8192, .shared_feed_length = 8192 } },
    { "deepseek2-lite",
      "DeepSeek-V2-Lite",
      DEEPSEEK2,
      2048,
      27,
      10944,
      16,
      1,
      576,
      102400,
      163840,
      1e4f,
      1e-6f,
      false,
      .rope_dimensions = 64,
      .rope_scaling = MODEL_ROPE_SCALING_YARN,
      .rope_scaling_factor = 40,
      .rope_original_context = 4096,
      .experts = { .count = 64,
                   .used = 6,
                   .feed_length = 1408,
                   .shared_feed_length = 2816,
                   .first = 1 },
      .latent = { .rank = 512, .key_length = 128, .value_length = 128 } },
};

size_t model_shape_count(void)
{
    return COUNT_OF(shapes);
}

const struct model_shape *model_shape_at(size_t index)
{
    ASSERT(index < COUNT_OF(shapes));
    return &shapes[index];
}

/* The next letter or digit, lower case; 0 at the end. */
static char next_letter(const char **text)
{
    while (**text && !isalnum((unsigned char)**text))
        (*text)++;
    return **text ? (char)tolower((unsigned char)*(*text)++) : '\0';
}

static bool same_name(const char *a, const char *b)
{
    for (;;) {
        char left = next_letter(&a), right = next_letter(&b);
        if (left != right)
            return false;
        if (left == '\0')
            return true;
    }
}

const struct model_shape *model_shape_find(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(shapes); i++)
        if (same_name(name, shapes[i].slug) || same_name(name, shapes[i].title))
            return &shapes[i];
    return NULL;
}

static bool same_dimensions(const struct model_shape *shape, const struct model_config *config)
{
    return shape->arch == config->arch && shape->embedding_length == config->embedding_length &&
           shape->block_count == config->block_count &&
           shape->feed_forward_length == config->feed_forward_length &&
           shape->head_count == config->head_count &&
           shape->head_count_kv == config->head_count_kv && shape->head_dim == config->head_dim &&
           shape->experts.count == config->experts.count &&
           shape->experts.feed_length == config->experts.feed_length;
}

const struct model_shape *model_shape_of(const struct model_config *config, bool *ret_exact)
{
    const struct model_shape *alike = NULL;
    *ret_exact = false;
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        if (!same_dimensions(&shapes[i], config))
            continue;
        if (shapes[i].vocab_size == config->vocab_size) {
            *ret_exact = true;
            return &shapes[i];
        }
        if (!alike)
            alike = &shapes[i];
    }
    return alike;
}

void model_expectation_check(const struct model_shape *expected, struct model_report *report)
{
    const struct model_config *config = &report->config;
    if (expected->arch != config->arch)
        model_problem_add(report, MODEL_PROBLEM_EXPECTATION,
                          "architecture: expected %s, found %s; not %s: name that model, or drop "
                          "--expect",
                          model_arch_info(expected->arch)->name,
                          model_arch_info(config->arch)->name, expected->slug);
    const struct {
        const char *name;
        uint32_t expected, found;
    } numbers[] = {
        { "feed_forward_length", expected->feed_forward_length, config->feed_forward_length },
        { "embedding_length", expected->embedding_length, config->embedding_length },
        { "block_count", expected->block_count, config->block_count },
        { "head_count", expected->head_count, config->head_count },
        { "head_count_kv", expected->head_count_kv, config->head_count_kv },
        { "head dimension", expected->head_dim, config->head_dim },
        { "expert_count", expected->experts.count, config->experts.count },
        { "vocab_size", expected->vocab_size, config->vocab_size },
    };
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        if (numbers[i].expected != numbers[i].found)
            model_problem_add(report, MODEL_PROBLEM_EXPECTATION,
                              "%s: expected %" PRIu32 ", found %" PRIu32
                              "; not %s: name that model, or drop --expect",
                              numbers[i].name, numbers[i].expected, numbers[i].found,
                              expected->slug);
}
