/* audit_workload.c - see audit_workload.h. The options are found by name in the table of greta
 * infer, so that there is one table. */
#include "cli/audit_workload.h"

#include "base/mapfile.h"
#include "generate/generate.h"
#include "tokenizer/tokenizer.h"

#include <stdlib.h>
#include <string.h>

/* An audit runs the workload hundreds of times: a few tokens each are enough, unless asked. */
#define TOKENS_DEFAULT 16

void audit_workload_init(struct audit_workload *workload)
{
    workload->settings = NULL;
    text_init(&workload->prompt);
}

void audit_workload_release(struct audit_workload *workload)
{
    free(workload->settings);
    text_release(&workload->prompt);
}

/* Where greta infer keeps the value of an option of that kind. */
static void *value_at(void *settings, const char *name, enum cli_option_kind kind)
{
    for (size_t i = 0; i < cli_infer.option_count; i++) {
        char first[64];
        if (cli_option_name(&cli_infer.options[i], 0, first, sizeof(first)) &&
            strcmp(first, name) == 0 && cli_infer.options[i].kind == kind)
            return (char *)settings + cli_infer.options[i].offset;
    }
    ASSERT(!"greta infer has the option");
    return NULL;
}

static const char *text_value(void *settings, const char *name)
{
    return *(const char **)value_at(settings, name, CLI_TEXT);
}

static uint32_t u32_value(void *settings, const char *name)
{
    return *(uint32_t *)value_at(settings, name, CLI_U32);
}

static float f32_value(void *settings, const char *name)
{
    return *(float *)value_at(settings, name, CLI_F32);
}

static bool flag_value(void *settings, const char *name)
{
    return *(bool *)value_at(settings, name, CLI_FLAG);
}

static enum status parse(struct audit_workload *workload, const struct cli_invocation *invocation,
                         struct error *err)
{
    const char *operands[AUDIT_WORKLOAD_WORDS + 1];
    size_t operand_count;
    bool help;
    workload->settings = malloc(cli_infer.settings_bytes);
    if (!workload->settings)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the options behind --");
    memcpy(workload->settings, cli_infer.defaults, cli_infer.settings_bytes);
    *(int32_t *)value_at(workload->settings, "--max-tokens", CLI_I32) = TOKENS_DEFAULT;
    *(float *)value_at(workload->settings, "--temp", CLI_F32) = 0; /* greedy, unless asked */
    TRY(cli_parse(&cli_infer, (int)invocation->operand_count,
                  (char *const *)(uintptr_t)invocation->operands, workload->settings, operands,
                  &operand_count, &help, err));
    if (help)
        return error_set(err, STATUS_USAGE, "behind --: see greta infer --help");
    return STATUS_OK;
}

static enum status read_prompt(struct audit_workload *workload, const char *path, struct error *err)
{
    struct mapfile map;
    TRY(mapfile_open(&map, path, err));
    bool fits = map.size > 0 && map.size <= TOKENIZER_TEXT_LIMIT_BYTES &&
                !memchr(map.data, '\0', (size_t)map.size);
    if (fits)
        text_add_bytes(&workload->prompt, map.data, (size_t)map.size);
    mapfile_release(&map);
    if (!fits)
        return error_set(err, STATUS_USAGE,
                         "%s: expected a prompt of 1 to %u bytes without NUL, found something else",
                         path, TOKENIZER_TEXT_LIMIT_BYTES);
    if (workload->prompt.failed)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the prompt");
    return STATUS_OK;
}

static void take_sampling(void *settings, struct campaign_options *options)
{
    int32_t seed = *(int32_t *)value_at(settings, "--seed", CLI_I32);
    options->sampling = (struct sampler_settings){
        .temperature = flag_value(settings, "--greedy") ? 0 : f32_value(settings, "--temp"),
        .top_k = u32_value(settings, "--top-k"),
        .top_p = f32_value(settings, "--top-p"),
        .min_p = f32_value(settings, "--min-p"),
        .repeat_penalty = f32_value(settings, "--repeat-penalty"),
        .presence_penalty = f32_value(settings, "--presence-penalty"),
        .frequency_penalty = f32_value(settings, "--frequency-penalty"),
        .repeat_last_n = u32_value(settings, "--repeat-last-n"),
        .seed = seed >= 0 ? (uint64_t)seed : options->seed,
    };
}

enum status audit_workload_read(struct audit_workload *workload,
                                const struct cli_invocation *invocation, const char *model,
                                const char *prompt_file, struct campaign_options *options,
                                struct error *err)
{
    TRY(parse(workload, invocation, err));
    void *settings = workload->settings;
    int32_t tokens = *(int32_t *)value_at(settings, "--max-tokens", CLI_I32);
    uint32_t micro_batch = u32_value(settings, "--ubatch-size");
    const char *mode = text_value(settings, "--d2h-mode");
    options->model = model ? model : text_value(settings, "--model");
    options->prompt = text_value(settings, "--prompt");
    options->kv_type = text_value(settings, "--cache-type");
    options->token_limit = tokens >= 0 ? (uint32_t)tokens : GENERATE_NO_LIMIT;
    options->context = u32_value(settings, "--ctx-size");
    options->batch = u32_value(settings, "--batch-size");
    if (micro_batch && (!options->batch || micro_batch < options->batch))
        options->batch = micro_batch;
    options->threads = u32_value(settings, "--threads");
    options->ignore_end = flag_value(settings, "--ignore-eos");
    for (int i = 0; i < DEVICE_D2H_COUNT; i++)
        if (strcmp(mode, device_d2h_mode_name((enum device_d2h_mode)i)) == 0)
            options->d2h_mode = (enum device_d2h_mode)i;
    if (!options->inject)
        options->inject = text_value(settings, "--inject");
    take_sampling(settings, options);
    const char *file = prompt_file ? prompt_file : text_value(settings, "--prompt-file");
    if (file && options->prompt)
        return error_set(err, STATUS_USAGE, "expected --prompt or --prompt-file, found both");
    if (file) {
        TRY(read_prompt(workload, file, err));
        options->prompt = text_get(&workload->prompt);
    }
    return STATUS_OK;
}
