/* audit_workload.c - see audit_workload.h. */
#include "cli/audit_workload.h"

#include "cli/device_choice.h"
#include "cli/infer_run.h"
#include "cli/token_input.h"
#include "ops/ops.h"
#include "session/session.h"
#include "tokenizer/tokenizer.h"

#include <string.h>

/* An audit runs the workload hundreds of times: a few tokens are enough unless more are requested.
 */
#define TOKENS_DEFAULT 16

void audit_workload_init(struct audit_workload *workload)
{
    workload->settings = infer_defaults;
    workload->settings.max_tokens = TOKENS_DEFAULT;
    workload->settings.temperature = 0; /* equal runs must give equal results */
    text_init(&workload->prompt);
}

void audit_workload_release(struct audit_workload *workload)
{
    text_release(&workload->prompt);
}

/* The options that shape what an audit runs, and those that are ignored everywhere. Others, as
 * --tap, would have no effect. */
static const size_t used_options[] = {
#define AT(field) offsetof(struct infer_settings, field)
    AT(model),
    AT(prompts),
    AT(prompt_file),
    AT(device),
    AT(kv_type),
    AT(key_type),
    AT(value_type),
    AT(d2h_mode),
    AT(max_tokens),
    AT(context),
    AT(batch),
    AT(micro_batch),
    AT(threads),
    AT(ignore_end),
    AT(gpu_layers),
    AT(inject),
    AT(greedy),
    AT(temperature),
    AT(top_k),
    AT(top_p),
    AT(min_p),
    AT(repeat_penalty),
    AT(repeat_last_n),
    AT(presence_penalty),
    AT(seed),
    AT(frequency_penalty),
    AT(flash_attention),
    AT(batch_threads),
    AT(map),
    AT(lock),
    AT(warmup),
    AT(keep),
    AT(verbose),
    AT(quiet),
#undef AT
};

static enum status check_used(const struct infer_settings *settings,
                              const struct infer_settings *before, struct error *err)
{
    for (size_t i = 0; i < INFER_OPTION_COUNT; i++) {
        bool used = !cli_option_changed(&infer_options[i], settings, before);
        for (size_t j = 0; j < COUNT_OF(used_options) && !used; j++)
            used = infer_options[i].offset == used_options[j];
        if (used)
            continue;
        char name[32] = "";
        cli_option_name(&infer_options[i], 0, name, sizeof(name));
        return error_set(err, STATUS_USAGE,
                         "%s: expected an option that changes what is run, found one that an audit "
                         "does not use",
                         name);
    }
    return STATUS_OK;
}

/* A device may be named before -- or after it. */
static enum status take_device(const struct infer_settings *settings,
                               struct campaign_options *options, struct error *err)
{
    if (strcmp(settings->device, infer_defaults.device) == 0)
        return STATUS_OK;
    if (strcmp(options->device, infer_defaults.device) != 0 &&
        strcmp(options->device, settings->device) != 0)
        return error_set(err, STATUS_USAGE, "--device: expected one device, found %s and %s",
                         options->device, settings->device);
    options->device = settings->device;
    return STATUS_OK;
}

static bool is_utf8(const char *text)
{
    size_t left = strlen(text);
    while (left > 0) {
        size_t length = text_utf8_length(text, left);
        if (length == 0)
            return false;
        text += length;
        left -= length;
    }
    return true;
}

enum status audit_check_texts(const struct cli_option *options, size_t count, const void *settings,
                              struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        const char *const *value = (const void *)((const char *)settings + options[i].offset);
        if (options[i].kind != CLI_TEXT || !*value || is_utf8(*value))
            continue;
        char name[32] = "", shown[CLI_SHOWN_BYTES];
        cli_option_name(&options[i], 0, name, sizeof(name));
        return error_set(err, STATUS_USAGE,
                         "%s: expected UTF-8, which is what the records of an audit hold, found "
                         "'%s'",
                         name, text_printable(text_view_of(*value), shown, sizeof(shown)));
    }
    return STATUS_OK;
}

static enum status parse(struct audit_workload *workload, const struct cli_invocation *invocation,
                         struct error *err)
{
    const struct infer_settings before = workload->settings;
    const char *operands[AUDIT_WORKLOAD_WORDS + 1];
    struct cli_common unused; /* of the audit's own command line */
    size_t operand_count;
    bool help;
    enum status status = cli_parse(
        &cli_infer, (int)invocation->operand_count, (char *const *)(uintptr_t)invocation->operands,
        &workload->settings, &unused, operands, &operand_count, &help, err);
    if (!status && help)
        status = error_set(err, STATUS_USAGE, "see greta infer --help");
    if (!status && operand_count)
        status = error_set(err, STATUS_USAGE, "expected only flags, found '%s'", operands[0]);
    if (!status)
        status = check_used(&workload->settings, &before, err);
    if (!status)
        status = audit_check_texts(infer_options, INFER_OPTION_COUNT, &workload->settings, err);
    return status ? error_wrap(err, "after --") : STATUS_OK;
}

static enum status read_prompt(struct audit_workload *workload, const char *path, struct error *err)
{
    TRY(token_input_read_file(path, TOKENIZER_TEXT_LIMIT_BYTES, &workload->prompt, err));
    if (workload->prompt.length == 0 ||
        memchr(text_get(&workload->prompt), '\0', workload->prompt.length))
        return error_set(err, STATUS_USAGE,
                         "%s: expected a prompt of 1 to %u bytes without NUL, found something else",
                         path, TOKENIZER_TEXT_LIMIT_BYTES);
    return STATUS_OK;
}

static enum status take_prompt(struct audit_workload *workload,
                               const struct audit_workload_line *line,
                               struct campaign_options *options, struct error *err)
{
    const struct infer_settings *settings = &workload->settings;
    const char *file = line->prompt_file ? line->prompt_file : settings->prompt_file;
    if ((line->prompt != NULL) + settings->prompts.count + (file != NULL) > 1)
        return error_set(err, STATUS_USAGE, "expected one prompt, found several");
    options->prompt = line->prompt ? line->prompt : options->prompt;
    if (settings->prompts.count)
        options->prompt = settings->prompts.items[0];
    if (file) {
        TRY(read_prompt(workload, file, err));
        options->prompt = text_get(&workload->prompt);
    }
    if (options->prompt && !is_utf8(options->prompt))
        return error_set(err, STATUS_USAGE,
                         "%s: expected a prompt in UTF-8, which is what the records of an audit "
                         "hold",
                         file ? file : "--prompt");
    return STATUS_OK;
}

enum status audit_workload_read(struct audit_workload *workload,
                                const struct cli_invocation *invocation,
                                const struct audit_workload_line *line,
                                struct campaign_options *options, struct error *err)
{
    TRY(parse(workload, invocation, err));
    const struct infer_settings *settings = &workload->settings;
    enum dtype kv_dtype;
    TRY(cli_check_threads(settings->threads, err));
    TRY(cli_cache_type(settings->kv_type, settings->key_type, settings->value_type, &kv_dtype,
                       err));
    TRY(take_device(settings, options, err));
    char asked[ALL_NAME_BYTES];
    TRY(cli_device_name(options->device, settings->gpu_layers, asked, sizeof(asked), err));
    /* All workers use the same device, and records name it. */
    all_resolve(asked, ops_gpu_image(), workload->device);
    options->device = workload->device;
    struct error unused;
    /* If the bundled model is missing, a small synthetic one is made. */
    if (default_model_path(line->model ? line->model : settings->model, &workload->default_model,
                           &options->model, &unused))
        options->model = NULL;
    options->kv_type = dtype_name(kv_dtype);
    options->token_limit = settings->max_tokens >= 0 ? (uint32_t)settings->max_tokens
                                                     : SESSION_NO_LIMIT;
    options->context = settings->context;
    options->batch = settings->batch;
    if (settings->micro_batch && (!options->batch || settings->micro_batch < options->batch))
        options->batch = settings->micro_batch;
    options->threads = settings->threads;
    options->ignore_end = settings->ignore_end;
    for (int i = 0; i < DEVICE_D2H_COUNT; i++)
        if (strcmp(settings->d2h_mode, device_d2h_mode_name((enum device_d2h_mode)i)) == 0)
            options->d2h_mode = (enum device_d2h_mode)i;
    if (!options->inject)
        options->inject = settings->inject;
    uint64_t seed = settings->seed >= 0 ? (uint64_t)settings->seed : options->seed;
    options->sampling = infer_sampling(settings, UINT32_MAX, seed);
    return take_prompt(workload, line, options, err);
}
