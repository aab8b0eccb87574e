/* cmd_quantize.c - greta quantize: a model in another type. */
#include "base/clock.h"
#include "base/text.h"
#include "cli/cli.h"
#include "convert/convert.h"

#include <stddef.h>

struct settings {
    uint32_t threads;
    bool force, json;
};

static const struct settings defaults = { 0 };

static const struct cli_option options[] = {
    { "--force|-f", NULL, CLI_FLAG, offsetof(struct settings, force), "replace OUT if it exists",
      NULL, false },
    { "--threads|-t", "N", CLI_U32, offsetof(struct settings, threads),
      "threads (default: all processors); the result is the same", NULL, false },
    { "--json", NULL, CLI_FLAG, offsetof(struct settings, json),
      "what was written as JSON on standard output", NULL, false },
};

static enum status report(const struct settings *settings, const char *path,
                          const struct convert_quantize_result *result, double seconds,
                          struct error *err)
{
    char input[TEXT_BYTES_CAPACITY], output[TEXT_BYTES_CAPACITY];
    fprintf(stderr, "wrote %s: %s -> %s in %.1f s, %zu tensors converted, %zu copied\n", path,
            text_bytes(result->input_bytes, input), text_bytes(result->output_bytes, output),
            seconds, result->converted_count, result->copied_count);
    if (!settings->json)
        return STATUS_OK;
    struct emit *emit;
    TRY(emit_create(EMIT_JSON, &emit, err));
    emit_text(emit, "file", path);
    emit_bytes(emit, "input_bytes", result->input_bytes);
    emit_bytes(emit, "output_bytes", result->output_bytes);
    emit_count(emit, "converted", result->converted_count);
    emit_count(emit, "copied", result->copied_count);
    emit_count(emit, "requantized", result->requantized_count);
    emit_real(emit, "seconds", seconds);
    enum status status = emit_finish(emit, stdout, err);
    emit_destroy(emit);
    return status;
}

static enum cli_exit run_quantize(const struct cli_invocation *invocation)
{
    const struct settings *settings = invocation->settings;
    const char *type = invocation->operands[2];
    struct convert_quantize request = { .path = invocation->operands[1],
                                        .replace = settings->force,
                                        .thread_count = settings->threads };
    struct convert_quantize_result result;
    struct error err;
    if (!convert_type_find(type, &request.type)) {
        error_set_at(&err, STATUS_USAGE, __FILE__, __LINE__,
                     "TYPE: expected one of: " CLI_MODEL_TYPES "; found '%s'", type);
        return cli_fail(invocation, &err);
    }
    struct gguf_file *input;
    if (gguf_open(invocation->operands[0], &input, &err))
        return cli_fail(invocation, &err);
    request.input = input;
    struct cli_progress progress;
    uint64_t start_ns = clock_ns();
    cli_progress_begin(&progress, invocation, "quantize", "values");
    enum status status;
    if (gguf_is_same_file(input, request.path) && !settings->force)
        status = error_set(&err, STATUS_EXISTS,
                           "%s: is the input; name another OUT, or use --force to replace it",
                           request.path);
    else
        status = convert_quantize(&request, &progress.progress, &result, &err);
    cli_progress_end(&progress);
    double seconds = (double)(clock_ns() - start_ns) / 1e9;
    gguf_close(input);
    if (!status && result.requantized_count)
        cli_warn(
            invocation,
            "%zu tensors were quantized before and lost precision twice; start from F32, F16 or "
            "BF16 for better quality",
            result.requantized_count);
    if (!status)
        status = report(settings, request.path, &result, seconds, &err);
    return status ? cli_fail(invocation, &err) : CLI_EXIT_OK;
}

const struct cli_command cli_quantize = {
    .name = "quantize",
    .operands = "IN OUT TYPE",
    .last_operand_values = CLI_MODEL_TYPES,
    .operand_least = 3,
    .operand_most = 3,
    .summary = "convert a GGUF model to another type",
    .description =
        "Writes the model IN as OUT with its weight matrices in another type: f32, f16, bf16, "
        "q8_0, q4_0, q4_k_m (also q4_k), q5_k_m (also q5_k), q6_k or mxfp4. Norms and biases "
        "become or stay F32. q4_k_m and q5_k_m keep the output matrix, and attn_v and ffn_down of "
        "the most sensitive layers, as Q6_K; mxfp4 is for experts, and keeps all others as Q8_0. "
        "Where rows are not whole blocks the nearest type that fits is used.\n\n"
        "OUT appears when it is complete; an interrupted run leaves nothing under that name. NaN "
        "and infinity in IN are refused.",
    .examples = "  greta quantize model-f16.gguf model-q4_k_m.gguf q4_k_m\n",
    .options = options,
    .option_count = COUNT_OF(options),
    .settings_bytes = sizeof(defaults),
    .defaults = &defaults,
    .run = run_quantize,
};
