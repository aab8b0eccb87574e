/* infer_run.c - see infer_run.h. */
#include "cli/infer_run.h"

#include "cli/default_model.h"
#include "cli/device_choice.h"
#include "cli/engine_load.h"
#include "cli/infer_opening.h"

#include "base/size.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void infer_run_stop(struct infer_run *run)
{
    infer_opening_join(run);
    if (!run->device && run->audit && !run->stopped) { /* nothing was recorded */
        cli_audit_discard(run->audit);
        run->audit = NULL;
    }
    run->stopped = true;
    engine_close(run->engine);
    cli_audit_check_planted(run->invocation, run->audit, run->inject, run->settings->inject);
    device_close(run->device);
    cli_audit_finish(run->audit);
    run->engine = NULL;
    run->device = NULL;
    run->inject = NULL; /* it went with the device */
}

void infer_run_release(struct infer_run *run)
{
    infer_run_stop(run);
    cli_audit_close(run->audit);
    for (size_t i = 0; run->ids && i < run->texts.count; i++)
        tokenizer_ids_release(&run->ids[i]);
    for (size_t i = 0; i < CLI_LIST_LIMIT; i++)
        text_release(&run->stops[i]);
    free(run->ids);
    free(run->results);
    infer_prompts_release(&run->texts);
    infer_output_release(&run->output);
    infer_capture_release(&run->capture);
    infer_grammar_close(&run->grammar);
    tokenizer_destroy(run->tokenizer);
    gguf_close(run->file);
}

/* ---- The model ------------------------------------------------------------------------------ */

static enum status check_model(struct infer_run *run, struct error *err)
{
    const struct infer_settings *settings = run->settings;
    const struct model_shape *expected = settings->expect ? model_shape_find(settings->expect)
                                                          : NULL;
    bool ignore = run->invocation->environment->guard_rail_disabled;
    if (settings->expect && !expected)
        return error_set(err, STATUS_USAGE, "--expect: unknown model '%s' (see greta inspect)",
                         settings->expect);
    model_check(run->file, expected, &run->report);
    if (model_report_refuses(&run->report, ignore))
        return error_set(err, STATUS_REFUSED, "%s: the guard rail refuses it: %s%s",
                         gguf_path(run->file),
                         run->report.problem_count ? run->report.problems[0].text
                                                   : "its configuration cannot be read",
                         run->report.problem_count > 1 ? " (more: greta inspect)" : "");
    for (size_t i = 0; i < run->report.problem_count; i++)
        cli_warn(run->invocation, "%s", run->report.problems[i].text);
    return STATUS_OK;
}

static enum status check_values(struct infer_run *run, struct error *err)
{
    struct cli_progress progress;
    if (!run->settings->check_tensors)
        return STATUS_OK;
    cli_progress_begin(&progress, run->invocation, "checking weights", "bytes");
    enum status status = model_check_values(run->file, &progress.progress, err);
    cli_progress_end(&progress);
    return status;
}

/* ---- The engine ----------------------------------------------------------------------------- */

/* Memory for the whole context of a modern model would be tens of gigabytes. */
#define CONTEXT_DEFAULT 4096u

static enum status choose_engine_options(const struct infer_run *run,
                                         struct engine_options *options, struct error *err)
{
    const struct infer_settings *settings = run->settings;
    uint32_t trained = run->report.config.context_length;
    *options = (struct engine_options){ .context = settings->context,
                                        .batch_limit = infer_batch_limit(settings) };
    TRY(cli_cache_type(settings->kv_type, settings->key_type, settings->value_type,
                       &options->kv_dtype, err));
    if (!options->context)
        options->context = min_u64(trained, CONTEXT_DEFAULT);
    if (options->context > trained)
        cli_warn(run->invocation,
                 "--ctx-size %u: the model was made for %u tokens; quality drops beyond that",
                 options->context, trained);
    options->sequence_limit = settings->parallel < run->count ? settings->parallel
                                                              : (uint32_t)run->count;
    return STATUS_OK;
}

static enum status open_engine(struct infer_run *run, struct error *err)
{
    struct engine_options engine_options;
    TRY(choose_engine_options(run, &engine_options, err));
    TRY(infer_opening_finish(run, err));
    TRY(cli_engine_open(run->invocation, &run->ops, run->file, &run->report, &engine_options,
                        &run->engine, err));
    return infer_capture_attach(&run->capture, run->engine, err);
}

/* ---- Prompts -------------------------------------------------------------------------------- */

static enum status read_prompts(struct infer_run *run, struct error *err)
{
    const struct infer_settings *settings = run->settings;
    const struct cli_invocation *invocation = run->invocation;
    struct infer_prompt_source source = { .prompts = &settings->prompts,
                                          .file = settings->prompt_file,
                                          .binary_file = settings->binary_file,
                                          .separator = settings->separator,
                                          .escapes = settings->escape };
    struct cli_text_list plain = { .count = 1 };
    if (invocation->operand_count) {
        const char *operand = invocation->operands[0];
        struct stat info;
        if (settings->prompts.count || source.file || source.binary_file)
            return error_set(err, STATUS_USAGE, "expected one prompt, found '%s' too", operand);
        if (strcmp(operand, "-") == 0) {
            source.file = "-";
        } else if (stat(operand, &info) == 0) {
            return error_set(err, STATUS_USAGE,
                             "%s: expected a prompt, found the name of a file; use --prompt-file "
                             "to read it, --model if it is a model, or --prompt to use it as text",
                             operand);
        } else {
            plain.items[0] = operand;
            source.prompts = &plain;
        }
    }
    if (settings->parallel == 0)
        return error_set(err, STATUS_USAGE, "--parallel: expected 1 or more, found 0");
    TRY(infer_prompts_read(&run->texts, &source, err));
    run->count = run->texts.count == 1 ? settings->parallel : run->texts.count;
    if (settings->logits_path && run->count > 1)
        return error_set(err, STATUS_USAGE,
                         "--logits-out: expected one prompt, found %zu; use --tap logits",
                         run->count);
    return STATUS_OK;
}

static enum status encode_prompts(struct infer_run *run, struct error *err)
{
    TRY(tokenizer_create(run->file, &run->tokenizer, err));
    if (tokenizer_info(run->tokenizer)->pre_missing)
        cli_warn(run->invocation, "the file does not name its pre-tokenizer; words may be split "
                                  "wrongly");
    run->ids = calloc(run->texts.count, sizeof(*run->ids));
    run->results = calloc(run->count, sizeof(*run->results));
    if (!run->ids || !run->results)
        return error_set(err, STATUS_NO_MEMORY, "no memory for prompts");
    for (size_t i = 0; i < run->texts.count; i++) {
        struct text_view view = { text_get(&run->texts.texts[i]), run->texts.texts[i].length };
        tokenizer_ids_init(&run->ids[i]);
        TRY(tokenizer_encode(run->tokenizer, view, TOKENIZER_ADD_SPECIAL | TOKENIZER_PARSE_SPECIAL,
                             &run->ids[i], err));
        if (run->ids[i].count == 0)
            return error_set(err, STATUS_USAGE, "prompt: expected at least one token, found none");
    }
    return STATUS_OK;
}

static enum status check_lengths(const struct infer_run *run, struct error *err)
{
    uint32_t context = engine_budget(run->engine)->options.context;
    for (size_t i = 0; i < run->texts.count; i++) {
        if (run->ids[i].count < context)
            continue;
        char which[64] = "";
        if (run->texts.count > 1)
            snprintf(which, sizeof(which), " %zu of %zu", i + 1, run->texts.count);
        return error_set(err, STATUS_LIMIT,
                         "prompt%s: expected fewer tokens than the context of %u, found %zu; use a "
                         "larger --ctx-size",
                         which, context, run->ids[i].count);
    }
    return STATUS_OK;
}

static enum status read_stops(struct infer_run *run, struct error *err)
{
    const struct cli_text_list *stops = &run->settings->stops;
    for (size_t i = 0; i < stops->count; i++) {
        if (stops->items[i][0] == '\0')
            return error_set(err, STATUS_USAGE, "--stop: expected some text, found none");
        if (!run->settings->escape)
            text_add(&run->stops[i], stops->items[i]);
        else
            infer_add_unescaped(&run->stops[i], stops->items[i]);
        if (run->stops[i].failed)
            return error_set(err, STATUS_NO_MEMORY, "no memory for stop strings");
        run->stop_texts[i] = text_get(&run->stops[i]);
    }
    return STATUS_OK;
}

/* ---- All of it ------------------------------------------------------------------------------ */

struct sampler_settings infer_sampling(const struct infer_settings *settings, uint32_t context,
                                       uint64_t seed)
{
    uint32_t recent = context;
    if (settings->repeat_last_n >= 0 && (uint32_t)settings->repeat_last_n < recent)
        recent = (uint32_t)settings->repeat_last_n;
    return (struct sampler_settings){ .temperature = settings->greedy ? 0 : settings->temperature,
                                      .top_k = settings->top_k,
                                      .top_p = settings->top_p,
                                      .min_p = settings->min_p,
                                      .repeat_penalty = settings->repeat_penalty,
                                      .presence_penalty = settings->presence_penalty,
                                      .frequency_penalty = settings->frequency_penalty,
                                      .repeat_last_n = recent,
                                      .seed = seed };
}

const struct tokenizer_ids *infer_prompt_ids(const struct infer_run *run, size_t prompt)
{
    return &run->ids[run->texts.count == 1 ? 0 : prompt];
}

enum status infer_run_prepare(struct infer_run *run, struct error *err)
{
    const struct infer_settings *settings = run->settings;
    struct default_model model;
    const char *path;
    struct sampler_settings sampled = infer_sampling(settings, 0, 0);
    TRY(sampler_check(&sampled, err));
    TRY(cli_check_threads(settings->threads, err));
    if (strcmp(settings->d2h_mode, device_d2h_mode_name(DEVICE_D2H_PLAIN)) == 0 &&
        !settings->flight && (!settings->audit || strcmp(settings->audit, "off") == 0))
        return error_set(err, STATUS_USAGE,
                         "--d2h-mode plain: expected --audit with it, found none: it reads copies "
                         "before they have arrived, to show what that breaks");
    TRY(default_model_path(settings->model, &model, &path, err));
    TRY(read_prompts(run, err));
    TRY(read_stops(run, err));
    TRY(infer_output_open(&run->output, settings->json, run->count, err));
    run->output.quiet = run->invocation->quiet;
    TRY(gguf_open(path, &run->file, err));
    TRY(check_model(run, err));
    TRY(infer_capture_open(&run->capture, &settings->taps, settings->tap_folder,
                           settings->logits_path, settings->allow_nan, err));
    TRY(check_values(run, err));
    TRY(infer_opening_begin(run, err));
    TRY(encode_prompts(run, err));
    TRY(infer_grammar_open(settings, run->tokenizer, &run->grammar, err));
    TRY(open_engine(run, err));
    return check_lengths(run, err);
}

static bool has_prompt(const struct infer_run *run)
{
    const struct infer_settings *settings = run->settings;
    return settings->prompts.count || settings->prompt_file || settings->binary_file ||
           run->invocation->operand_count;
}

enum status infer_run_prepare_chat(struct infer_run *run, struct error *err)
{
    const struct infer_settings *settings = run->settings;
    struct sampler_settings sampled = infer_sampling(settings, 0, 0);
    TRY(sampler_check(&sampled, err));
    TRY(cli_check_threads(settings->threads, err));
    if (settings->once || has_prompt(run))
        TRY(read_prompts(run, err));
    if (run->texts.count > 1)
        return error_set(err, STATUS_USAGE, "expected one message, found %zu", run->texts.count);
    run->count = 1;
    TRY(read_stops(run, err));
    TRY(gguf_open(settings->model, &run->file, err));
    TRY(check_model(run, err));
    TRY(check_values(run, err));
    TRY(infer_opening_begin(run, err));
    TRY(tokenizer_create(run->file, &run->tokenizer, err));
    TRY(infer_grammar_open(settings, run->tokenizer, &run->grammar, err));
    return open_engine(run, err);
}
