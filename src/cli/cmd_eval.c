/* cmd_eval.c - greta eval: how well a model predicts a text, alone or against a recording. */
#include "cli/cli.h"
#include "cli/colour.h"
#include "cli/default_model.h"
#include "cli/device_choice.h"
#include "cli/engine_load.h"
#include "cli/model_options.h"
#include "cli/token_input.h"

#include "base/clock.h"
#include "device/all/all.h"
#include "evaluate/evaluate.h"

#include <inttypes.h>
#include <string.h>

struct settings {
    const char *model, *device, *kv_type, *key_type, *value_type, *kl_save, *kl_base;
    uint32_t context, chunks, batch, threads;
    float perplexity_limit, divergence_limit; /* 0: none */
    bool special, force, json;
};

static const struct settings defaults = { .device = "auto" };

#define AT(field) offsetof(struct settings, field)

static const struct cli_option options[] = {
    { "--model|-m", "FILE", CLI_TEXT, AT(model),
      "model to evaluate (GGUF; default: the one that comes with greta)", NULL, true },
    { "--ctx-size|-c|--ctx", "N", CLI_U32, AT(context),
      "tokens of a chunk (default: 512, or the model's context, or the base's)", NULL, false },
    { "--chunks", "N", CLI_U32, AT(chunks), "only the first N chunks (default: all)", NULL, false },
    { "--special", NULL, CLI_FLAG, AT(special),
      "parse control tokens such as <|endoftext|> in the text", NULL, false },
    { "--kl-save|--save-logits", "OUT", CLI_TEXT, AT(kl_save),
      "record the logits of every scored token, to compare with later", NULL, true },
    { "--kl-base|--kl-divergence-base", "FILE", CLI_TEXT, AT(kl_base),
      "compare with this recording, token by token", NULL, true },
    { "--max-perplexity", "X", CLI_F32, AT(perplexity_limit), "exit status 1 above X", NULL,
      false },
    { "--max-kl", "X", CLI_F32, AT(divergence_limit),
      "exit status 1 if the mean divergence from the base is above X", NULL, false },
    { "--force|-f", NULL, CLI_FLAG, AT(force), "replace OUT if it exists", NULL, false },
    { "--batch-size|-b|--ubatch-size|-ub", "N", CLI_U32, AT(batch),
      "tokens at a time (default: 512, on a GPU 2048)", NULL, false },
    { "--threads|-t", "N", CLI_U32, AT(threads), "threads (default: all processors)", NULL, false },
    { "--device|-dev", "NAME", CLI_TEXT, AT(device),
      "host, cuda:N, hip:N or auto (the default); also CPU, CUDA0, ROCm0", NULL, false },
    CLI_CACHE_TYPE_OPTIONS,
    { "--json", NULL, CLI_FLAG, AT(json), "JSON instead of text", NULL, false },
};

#define CONTEXT_DEFAULT 512u

/* Everything that a run holds, released together. */
struct run {
    const struct cli_invocation *invocation;
    const struct settings *settings;
    struct default_model default_model;
    const char *model;
    struct evaluate_recording *base;
    struct gguf_file *file;
    struct model_report report;
    struct tokenizer *tokenizer;
    struct tokenizer_ids ids;
    struct device *device;
    struct ops ops;
    struct engine *engine;
    struct evaluate_options options;
};

static void release(struct run *run)
{
    engine_close(run->engine);
    device_close(run->device);
    tokenizer_ids_release(&run->ids);
    tokenizer_destroy(run->tokenizer);
    gguf_close(run->file);
    evaluate_recording_close(run->base);
}

/* ---- Before the run ------------------------------------------------------------------------- */

static enum status check_settings(const struct settings *settings, struct error *err)
{
    if (settings->kl_save && settings->kl_base)
        return error_set(err, STATUS_USAGE, "expected --kl-save or --kl-base, found both");
    if (settings->divergence_limit != 0 && !settings->kl_base)
        return error_set(err, STATUS_USAGE,
                         "--max-kl: expected --kl-base FILE with it, found none");
    /* The comparison is written so that NaN is refused too. */
    if (!(settings->divergence_limit >= 0) || !(settings->perplexity_limit >= 0))
        return error_set(err, STATUS_USAGE,
                         "--max-perplexity, --max-kl: expected limits above 0, found %g and %g",
                         (double)settings->perplexity_limit, (double)settings->divergence_limit);
    return STATUS_OK;
}

static enum status open_model(struct run *run, struct error *err)
{
    TRY(default_model_path(run->settings->model, &run->default_model, &run->model, err));
    TRY(gguf_open(run->model, &run->file, err));
    model_check(run->file, NULL, &run->report);
    if (model_report_refuses(&run->report, false))
        return error_set(err, STATUS_REFUSED, "%s: the guard rail refuses it (see greta inspect)",
                         run->model);
    TRY(tokenizer_create(run->file, &run->tokenizer, err));
    if (tokenizer_info(run->tokenizer)->pre_missing)
        cli_warn(run->invocation, "the file does not name its pre-tokenizer; words may be split "
                                  "wrongly");
    return STATUS_OK;
}

static enum status read_text(struct run *run, struct error *err)
{
    const char *path = run->invocation->operands[0];
    unsigned flags = TOKENIZER_ADD_SPECIAL | (run->settings->special ? TOKENIZER_PARSE_SPECIAL : 0);
    struct text text;
    text_init(&text);
    enum status status = token_input_read_file(path, TOKENIZER_TEXT_LIMIT_BYTES, &text, err);
    if (!status)
        status = tokenizer_encode(run->tokenizer,
                                  (struct text_view){ text_get(&text), text.length }, flags,
                                  &run->ids, err);
    text_release(&text);
    return status;
}

/* The size of a chunk: as requested, as in the base, or the default. */
static enum status choose_chunks(struct run *run, struct error *err)
{
    uint32_t trained = run->report.config.context_length, context = run->settings->context;
    const struct evaluate_recording_info *base = run->base ? evaluate_recording_info(run->base)
                                                           : NULL;
    if (context == 0)
        context = base ? base->context : trained < CONTEXT_DEFAULT ? trained : CONTEXT_DEFAULT;
    if (context < EVALUATE_CONTEXT_LEAST)
        return error_set(err, STATUS_USAGE, "--ctx-size: expected at least %u, found %u",
                         EVALUATE_CONTEXT_LEAST, context);
    run->options = (struct evaluate_options){
        .context = context,
        .chunk_limit = run->settings->chunks ? run->settings->chunks
                       : base                ? base->chunk_count
                                             : 0,
        .thread_count = run->settings->threads,
        .save_path = run->settings->kl_save,
        .replace = run->settings->force,
        .base = run->base,
    };
    if (context > trained)
        cli_warn(run->invocation, "chunks of %u tokens are longer than the model's context of %u",
                 context, trained);
    return STATUS_OK;
}

static enum status open_engine(struct run *run, struct error *err)
{
    const struct settings *settings = run->settings;
    struct device_options device_options = { .thread_count = settings->threads,
                                             .gpu_image = ops_gpu_image() };
    struct engine_options engine_options = {
        .context = run->options.context,
        .batch_limit = settings->batch,
        .logits_limit = evaluate_logits_limit(run->options.context, run->report.config.vocab_size)
    };
    char device[32];
    TRY(cli_cache_type(settings->kv_type, settings->key_type, settings->value_type,
                       &engine_options.kv_dtype, err));
    TRY(cli_device_name(settings->device, NULL, device, sizeof(device), err));
    if (engine_options.batch_limit && engine_options.logits_limit > engine_options.batch_limit)
        engine_options.logits_limit = engine_options.batch_limit;
    TRY(all_open(device, &device_options, &run->device, err));
    TRY(ops_load(&run->ops, run->device, CPU_PATH_COUNT, err));
    return cli_engine_open(run->invocation, &run->ops, run->file, &run->report, &engine_options,
                           &run->engine, err);
}

static enum status prepare(struct run *run, struct error *err)
{
    TRY(check_settings(run->settings, err));
    TRY(cli_check_threads(run->settings->threads, err));
    if (run->settings->kl_base)
        TRY(evaluate_recording_open(run->settings->kl_base, &run->base, err));
    TRY(open_model(run, err));
    TRY(read_text(run, err));
    TRY(choose_chunks(run, err));
    return open_engine(run, err);
}

/* ---- Results -------------------------------------------------------------------------------- */

/* "7.5031 ± 0.0567" for people; for programs a number and, under KEY_error, its error. */
static void emit_mean(struct emit *emit, const char *key, struct evaluate_mean mean)
{
    char error_key[64];
    if (!emit_is_json(emit)) {
        emit_textf(emit, key, "%.6g ± %.2g", mean.value, mean.error);
        return;
    }
    snprintf(error_key, sizeof(error_key), "%s_error", key);
    emit_real(emit, key, mean.value);
    emit_real(emit, error_key, mean.error);
}

static void emit_comparison(struct emit *emit, const struct run *run,
                            const struct evaluate_comparison *comparison, uint64_t tokens)
{
    emit_object_begin(emit, "against_base");
    emit_text(emit, "base", run->settings->kl_base);
    emit_real(emit, "base_perplexity", comparison->base_perplexity);
    emit_mean(emit, "log_perplexity_ratio", comparison->log_ratio);
    emit_mean(emit, "divergence", comparison->divergence);
    emit_real(emit, "divergence_median", comparison->divergence_median);
    emit_real(emit, "divergence_p90", comparison->divergence_90);
    emit_real(emit, "divergence_p95", comparison->divergence_95);
    emit_real(emit, "divergence_p99", comparison->divergence_99);
    emit_real(emit, "divergence_p999", comparison->divergence_999);
    emit_real(emit, "divergence_max", comparison->divergence_max);
    emit_mean(emit, "same_top", comparison->same_top);
    emit_real(emit, "probability_change_rms", comparison->probability_rms);
    emit_real(emit, "identical_rows", (double)comparison->identical / (double)tokens);
    emit_object_end(emit);
}

/* The result of a gate. The comparison is written so that NaN passes no limit. */
struct gate {
    const char *name;
    double limit, value;
};

static bool is_passed(const struct gate *gate)
{
    return gate->value <= gate->limit;
}

#define GATE_LIMIT 2

/* The gates that were requested. */
static size_t list_gates(const struct run *run, const struct evaluate_result *result,
                         struct gate gates[GATE_LIMIT])
{
    const struct settings *settings = run->settings;
    size_t count = 0;
    if (settings->perplexity_limit > 0)
        gates[count++] = (struct gate){ "perplexity", (double)settings->perplexity_limit,
                                        result->perplexity.value };
    if (settings->divergence_limit > 0)
        gates[count++] = (struct gate){ "divergence", (double)settings->divergence_limit,
                                        result->comparison.divergence.value };
    return count;
}

static void emit_gates(struct emit *emit, const struct gate *gates, size_t count)
{
    bool passed = true;
    for (size_t i = 0; i < count; i++)
        passed = passed && is_passed(&gates[i]);
    if (!count || !emit_is_json(emit))
        return;
    emit_flag(emit, "passed", passed);
    emit_list_begin(emit, "gates");
    for (size_t i = 0; i < count; i++) {
        emit_object_begin(emit, NULL);
        emit_text(emit, "what", gates[i].name);
        emit_real(emit, "limit", gates[i].limit);
        emit_real(emit, "found", gates[i].value);
        emit_text(emit, "result", is_passed(&gates[i]) ? "passed" : "FAILED");
        emit_object_end(emit);
    }
    emit_list_end(emit);
}

static enum status print_result(const struct run *run, const struct evaluate_result *result,
                                double seconds, struct error *err)
{
    struct gate gates[GATE_LIMIT];
    size_t gate_count = list_gates(run, result, gates);
    struct emit *emit;
    TRY(emit_create(run->settings->json ? EMIT_JSON : EMIT_TEXT, &emit, err));
    emit_text(emit, "model", run->model);
    emit_text(emit, "text", run->invocation->operands[0]);
    emit_text(emit, "device", device_info(run->device)->kind);
    emit_text(emit, "cache_type", dtype_name(engine_budget(run->engine)->options.kv_dtype));
    emit_count(emit, "context", run->options.context);
    emit_count(emit, "chunks", result->chunk_count);
    emit_count(emit, "scored_tokens", result->scored_tokens);
    emit_count(emit, "scored_bytes", result->scored_bytes);
    emit_mean(emit, "nats_per_token", result->nats);
    emit_mean(emit, "perplexity", result->perplexity);
    emit_mean(emit, "bits_per_byte", result->bits_per_byte);
    if (result->compared)
        emit_comparison(emit, run, &result->comparison, result->scored_tokens);
    emit_real(emit, "seconds", seconds);
    emit_gates(emit, gates, gate_count);
    enum status status = emit_finish(emit, stdout, err);
    emit_destroy(emit);
    return status;
}

/* A gate that failed is printed and gives exit status 1. */
static bool is_within_limits(const struct run *run, const struct evaluate_result *result)
{
    struct gate gates[GATE_LIMIT];
    size_t count = list_gates(run, result, gates);
    bool within = true, colour = run->invocation->colour_err;
    for (size_t i = 0; i < count; i++) {
        if (is_passed(&gates[i]))
            continue;
        fprintf(stderr, "greta eval: %sFAILED%s: %s: expected at most %g, found %g\n",
                cli_colour_begin(colour, CLI_COLOUR_BAD), cli_colour_end(colour), gates[i].name,
                gates[i].limit, gates[i].value);
        within = false;
    }
    return within;
}

static enum cli_exit run_eval(const struct cli_invocation *invocation)
{
    struct run run = { .invocation = invocation, .settings = invocation->settings };
    struct evaluate_result result;
    struct cli_progress progress;
    struct error err;
    bool within = true;
    tokenizer_ids_init(&run.ids);
    enum status status = prepare(&run, &err);
    if (!status) {
        uint64_t start_ns = clock_ns();
        cli_progress_begin(&progress, invocation, "eval", "chunks");
        run.options.progress = &progress.progress;
        status = evaluate_run(run.engine, run.tokenizer, run.ids.ids, run.ids.count, &run.options,
                              &result, &err);
        cli_progress_end(&progress);
        double seconds = (double)(clock_ns() - start_ns) / 1e9;
        if (!status)
            status = gguf_check_whole(run.file, &err);
        if (!status)
            status = print_result(&run, &result, seconds, &err);
    }
    if (!status)
        within = is_within_limits(&run, &result);
    release(&run);
    return status ? cli_fail(invocation, &err) : within ? CLI_EXIT_OK : CLI_EXIT_FAILED;
}

const struct cli_command cli_eval = {
    .name = "eval",
    .operands = "FILE",
    .operand_least = 1,
    .operand_most = 1,
    .summary = "measure how well a model predicts a text",
    .description =
        "Prints the perplexity of a model on the text in FILE, and the bits it needs for a byte of "
        "it, which can be compared between models with different tokens. The text is cut into "
        "chunks of --ctx-size tokens, each run alone; the tokens of its second half are scored. "
        "An incomplete chunk at the end is not used. Errors are standard errors of the mean over "
        "tokens.\n\n"
        "To compare two types of one model, or two devices, record the logits of one with "
        "--kl-save and run the other with --kl-base: the Kullback-Leibler divergence of its "
        "predictions from the recorded ones, token by token, shows differences far below what "
        "perplexity does. A recording takes 4 bytes for each scored token and entry of the "
        "vocabulary; --chunks keeps it small.\n\n"
        "Exit status 1 if --max-perplexity or --max-kl is exceeded, the guard rail refuses the "
        "model or the model fails; 130 if it was interrupted.",
    .examples = "  greta eval book.txt\n"
                "  greta eval -m model-f16.gguf book.txt --kl-save f16.logits --chunks 20\n"
                "  greta eval -m model-q4_k_m.gguf book.txt --kl-base f16.logits --max-kl 0.05\n",
    .options = options,
    .option_count = COUNT_OF(options),
    .settings_bytes = sizeof(defaults),
    .defaults = &defaults,
    .run = run_eval,
};
