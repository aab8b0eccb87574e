/* cmd_synth.c - greta synth: write a synthetic model. */
#include "base/clock.h"
#include "base/text.h"
#include "cli/cli.h"
#include "convert/convert.h"

#include <string.h>

struct settings {
    const char *shape, *type, *out, *arch;
    uint64_t seed;
    uint32_t width, layers, ffn, heads, kv_heads, head_dim, vocab, context; /* 0: of the shape */
    uint32_t experts, experts_used;
    bool tied, force, json;
};

static const struct settings defaults = { .shape = "tiny", .type = "q8_0", .seed = 1 };

static const struct cli_option options[] = {
    { "--shape|-s", "NAME", CLI_TEXT, offsetof(struct settings, shape),
      "dimensions of a known model, or custom (default: tiny)",
      "tiny tinyllama llama3-1b llama3-3b llama3-8b llama3-70b llama2-7b llama2-13b llama2-70b "
      "mistral-7b mistral-7b-v3 mistral-nemo stories260k qwen2-0.5b qwen2-1.5b qwen2-3b qwen2-7b "
      "qwen2-14b qwen2-32b qwen2-72b qwen3-0.6b qwen3-1.7b qwen3-4b qwen3-8b qwen3-14b qwen3-32b "
      "gemma2-2b gemma2-9b gemma3-1b gemma3-4b phi3-mini phi4-mini ministral3-8b glm4-9b "
      "granite3-2b olmo2-7b smollm3-3b command-r command-r7b starcoder2-3b "
      "mixtral-8x7b qwen1.5-moe qwen3-30b-a3b gpt-oss-20b llama4-scout "
      "deepseek2-lite custom",
      false },
    { "--type|-t", "TYPE", CLI_TEXT, offsetof(struct settings, type),
      "type of the file (default: q8_0)", CLI_MODEL_TYPES, false },
    { "--out|-o", "FILE", CLI_TEXT, offsetof(struct settings, out), "file to write", NULL, true },
    { "--seed", "N", CLI_U64, offsetof(struct settings, seed), "same seed, same bytes (default: 1)",
      NULL, false },
    { "--arch", "NAME", CLI_TEXT, offsetof(struct settings, arch),
      "architecture instead of the shape's",
      "llama qwen2 qwen3 gemma2 gemma3 gemma4 phi3 mistral3 glm4 granite olmo2 smollm3 command-r "
      "cohere2 starcoder2 qwen2moe qwen3moe granitemoe gpt-oss llama4 deepseek2",
      false },
    { "--width", "N", CLI_U32, offsetof(struct settings, width),
      "embedding length instead of the shape's", NULL, false },
    { "--layers", "N", CLI_U32, offsetof(struct settings, layers), "layers instead of the shape's",
      NULL, false },
    { "--ffn", "N", CLI_U32, offsetof(struct settings, ffn),
      "feed-forward length instead of the shape's", NULL, false },
    { "--heads", "N", CLI_U32, offsetof(struct settings, heads),
      "attention heads instead of the shape's", NULL, false },
    { "--kv-heads", "N", CLI_U32, offsetof(struct settings, kv_heads),
      "key and value heads instead of the shape's", NULL, false },
    { "--head-dim", "N", CLI_U32, offsetof(struct settings, head_dim),
      "values of a head instead of the shape's", NULL, false },
    { "--vocab", "N", CLI_U32, offsetof(struct settings, vocab),
      "tokens instead of the shape's; at least 259", NULL, false },
    { "--context", "N", CLI_U32, offsetof(struct settings, context),
      "context length instead of the shape's", NULL, false },
    { "--experts", "N", CLI_U32, offsetof(struct settings, experts),
      "experts of a layer instead of the shape's", NULL, false },
    { "--experts-used", "N", CLI_U32, offsetof(struct settings, experts_used),
      "experts that a token uses instead of the shape's", NULL, false },
    { "--tied", NULL, CLI_FLAG, offsetof(struct settings, tied),
      "no output matrix: use the embedding instead", NULL, false },
    { "--force|-f", NULL, CLI_FLAG, offsetof(struct settings, force), "replace FILE if it exists",
      NULL, false },
    { "--json", NULL, CLI_FLAG, offsetof(struct settings, json),
      "what was written as JSON on standard output", NULL, false },
};

/* The shape to start from if none is named: the numbers of the tiny one, under another name. */
static enum status resolve_shape(const struct settings *settings, struct model_shape *ret,
                                 struct error *err)
{
    bool custom = strcmp(settings->shape, "custom") == 0;
    const struct model_shape *known = model_shape_find(custom ? "tiny" : settings->shape);
    if (!known)
        return error_set(err, STATUS_USAGE, "--shape: unknown shape '%s'", settings->shape);
    struct model_shape shape = *known;
    const struct {
        uint32_t given;
        uint32_t *target;
    } numbers[] = {
        { settings->width, &shape.embedding_length },
        { settings->layers, &shape.block_count },
        { settings->ffn, &shape.feed_forward_length },
        { settings->heads, &shape.head_count },
        { settings->kv_heads, &shape.head_count_kv },
        { settings->head_dim, &shape.head_dim },
        { settings->vocab, &shape.vocab_size },
        { settings->context, &shape.context_length },
        { settings->experts, &shape.experts.count },
        { settings->experts_used, &shape.experts.used },
    };
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        if (numbers[i].given)
            *numbers[i].target = numbers[i].given;
    for (int arch = 0; settings->arch && arch < MODEL_ARCH_COUNT; arch++)
        if (strcmp(settings->arch, model_arch_info((enum model_arch)arch)->name) == 0)
            shape.arch = (enum model_arch)arch;
    if (settings->tied)
        shape.tied_embeddings = true;
    if (custom)
        shape.title = "custom";
    *ret = shape;
    return STATUS_OK;
}

static enum status report(const struct settings *settings, uint64_t bytes, double seconds,
                          struct error *err)
{
    char size[TEXT_BYTES_CAPACITY], speed[TEXT_BYTES_CAPACITY];
    fprintf(stderr, "wrote %s: %s in %.2f s (%s/s)\n", settings->out, text_bytes(bytes, size),
            seconds, text_bytes((uint64_t)((double)bytes / seconds), speed));
    if (!settings->json)
        return STATUS_OK;
    struct emit *emit;
    TRY(emit_create(EMIT_JSON, &emit, err));
    emit_text(emit, "file", settings->out);
    emit_text(emit, "shape", settings->shape);
    emit_text(emit, "type", settings->type);
    emit_count(emit, "seed", settings->seed);
    emit_bytes(emit, "bytes", bytes);
    emit_real(emit, "seconds", seconds);
    enum status status = emit_finish(emit, stdout, err);
    emit_destroy(emit);
    return status;
}

static enum cli_exit run_synth(const struct cli_invocation *invocation)
{
    const struct settings *settings = invocation->settings;
    struct convert_synth request = { .seed = settings->seed,
                                     .path = settings->out,
                                     .replace = settings->force };
    struct error err;
    if (!settings->out) {
        error_set_at(&err, STATUS_USAGE, __FILE__, __LINE__,
                     "expected --out FILE, found none (see greta synth --help)");
        return cli_fail(invocation, &err);
    }
    ASSERT(convert_type_find(settings->type, &request.type)); /* the option table allows no other */
    if (resolve_shape(settings, &request.shape, &err))
        return cli_fail(invocation, &err);
    struct cli_progress progress;
    uint64_t start_ns = clock_ns(), bytes = 0;
    cli_progress_begin(&progress, invocation, "synth", "bytes");
    enum status status = convert_synth(&request, &progress.progress, &bytes, &err);
    cli_progress_end(&progress);
    double seconds = (double)(clock_ns() - start_ns) / 1e9;
    if (!status)
        status = report(settings, bytes, seconds, &err);
    return status ? cli_fail(invocation, &err) : CLI_EXIT_OK;
}

const struct cli_command cli_synth = {
    .name = "synth",
    .operands = "",
    .summary = "write a synthetic model of a real shape",
    .description =
        "Writes a GGUF model with the exact tensors, shapes and types of a known model and weights "
        "from a seed: good for measuring speed and memory, and for tests, without a download. The "
        "weights are gaussian, scaled so that activations stay finite at any depth. The tokenizer "
        "works (every byte, some words); the text the model writes means nothing.\n\n"
        "Any dimension of a shape can be changed, for instance --shape llama3-8b --layers 2. The "
        "shape custom starts from tiny.",
    .examples = "  greta synth --shape tiny --type q8_0 --out tiny.gguf\n"
                "  greta synth --shape llama3-8b --type q4_k_m --out 8b.gguf   # 4.58 GiB\n"
                "  greta synth --shape llama3-8b --layers 2 --out two-layers.gguf\n",
    .options = options,
    .option_count = COUNT_OF(options),
    .settings_bytes = sizeof(defaults),
    .defaults = &defaults,
    .run = run_synth,
};
