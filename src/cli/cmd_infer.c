/* cmd_infer.c - greta infer: a prompt, and what the model makes of it. */
#include "cli/cli.h"
#include "cli/infer_report.h"

#include "base/clock.h"
#include "base/mapfile.h"
#include "device/all/all.h"
#include "generate/generate.h"
#include "inject/inject.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

struct settings {
    const char *model, *prompt, *prompt_file, *device, *kv_type, *d2h_mode, *expect, *stop, *inject;
    int32_t max_tokens, seed;
    uint32_t context, batch, micro_batch, threads, top_k, repeat_last_n;
    float temperature, top_p, min_p, repeat_penalty, presence_penalty, frequency_penalty;
    bool greedy, ignore_end, special, json;
};

static const struct settings defaults = { .device = "auto",
                                          .kv_type = "f16",
                                          .d2h_mode = "ticket",
                                          .max_tokens = 256,
                                          .seed = -1,
                                          .top_k = 40,
                                          .repeat_last_n = 64,
                                          .temperature = 0.8f,
                                          .top_p = 0.95f,
                                          .min_p = 0.05f,
                                          .repeat_penalty = 1 };

#define AT(field) offsetof(struct settings, field)

static const struct cli_option options[] = {
    { "--model|-m", "FILE", CLI_TEXT, AT(model), "model to run (GGUF)", NULL, true },
    { "--prompt|-p", "TEXT", CLI_TEXT, AT(prompt), "what to begin with", NULL, false },
    { "--prompt-file|-f|--file", "FILE", CLI_TEXT, AT(prompt_file),
      "read the prompt from a file; - is standard input", NULL, true },
    { "--max-tokens|-n|--n-predict|--predict", "N", CLI_I32, AT(max_tokens),
      "tokens to write (default: 256); -1: until the context is full", NULL, false },
    { "--ctx-size|-c|--ctx", "N", CLI_U32, AT(context),
      "context in tokens (default: the model's, at most 4096)", NULL, false },
    { "--batch-size|-b", "N", CLI_U32, AT(batch), "prompt tokens at a time (default: 512)", NULL,
      false },
    { "--ubatch-size|-ub", "N", CLI_U32, AT(micro_batch), "the same; the smaller of both counts",
      NULL, false },
    { "--threads|-t", "N", CLI_U32, AT(threads), "threads (default: all processors)", NULL, false },
    { "--device|-dev", "NAME", CLI_TEXT, AT(device), "host, cuda:N, hip:N or auto (the default)",
      NULL, false },
    { "--cache-type|-ctk|-ctv|--cache-type-k|--cache-type-v", "TYPE", CLI_TEXT, AT(kv_type),
      "type of keys and values in the cache (default: f16)", "f32 f16 q8_0", false },
    { "--greedy", NULL, CLI_FLAG, AT(greedy), "always the likeliest token", NULL, false },
    { "--temp|--temperature", "X", CLI_F32, AT(temperature),
      "temperature (default: 0.8); 0 is greedy", NULL, false },
    { "--top-k", "N", CLI_U32, AT(top_k), "of the N likeliest (default: 40; 0: all)", NULL, false },
    { "--top-p", "X", CLI_F32, AT(top_p), "of the likeliest that make up X (default: 0.95)", NULL,
      false },
    { "--min-p", "X", CLI_F32, AT(min_p),
      "at least X times as likely as the likeliest (default: 0.05)", NULL, false },
    { "--repeat-penalty", "X", CLI_F32, AT(repeat_penalty),
      "divides logits of recent tokens (default: 1, none)", NULL, false },
    { "--repeat-last-n", "N", CLI_U32, AT(repeat_last_n),
      "how many tokens are recent (default: 64)", NULL, false },
    { "--presence-penalty", "X", CLI_F32, AT(presence_penalty),
      "taken from logits of recent tokens (default: 0)", NULL, false },
    { "--frequency-penalty", "X", CLI_F32, AT(frequency_penalty),
      "the same for each time it occurred (default: 0)", NULL, false },
    { "--seed|-s", "N", CLI_I32, AT(seed), "seed; -1 is random, and told (the default)", NULL,
      false },
    { "--stop|-r|--reverse-prompt", "TEXT", CLI_TEXT, AT(stop), "stop when this is written", NULL,
      false },
    { "--ignore-eos", NULL, CLI_FLAG, AT(ignore_end), "go on after the model has ended", NULL,
      false },
    { "--special|-sp", NULL, CLI_FLAG, AT(special), "print control tokens", NULL, false },
    { "--expect", "NAME", CLI_TEXT, AT(expect),
      "refuse any model but this one; GRETA_DISABLE_GUARD_RAIL=1 makes it a warning", NULL, false },
    { "--d2h-mode", "MODE", CLI_TEXT, AT(d2h_mode),
      "how copies to the host are ordered (default: ticket)", "ticket sync event plain", false },
    { "--inject", "PLAN", CLI_TEXT, AT(inject),
      "plant a fault: NAME@layer=L,step=S,op=OP,operand=X,tensor=T", NULL, false },
    { "--json", NULL, CLI_FLAG, AT(json), "a line of JSON for each token, and one at the end", NULL,
      false },
};

/* Everything a run holds, released together. */
struct run {
    const struct cli_invocation *invocation;
    const struct settings *settings;
    struct gguf_file *file;
    struct model_report report;
    struct tokenizer *tokenizer;
    struct tokenizer_ids prompt;
    struct device *device;
    struct ops ops;
    struct engine *engine;
    uint64_t start_ns, loaded_ns;
};

static void release(struct run *run)
{
    engine_close(run->engine);
    device_close(run->device);
    tokenizer_ids_release(&run->prompt);
    tokenizer_destroy(run->tokenizer);
    gguf_close(run->file);
}

/* ---- The model ------------------------------------------------------------------------------ */

static enum status check_model(struct run *run, struct error *err)
{
    const struct settings *settings = run->settings;
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

/* Memory for the whole context of a modern model would be tens of gigabytes. */
#define CONTEXT_DEFAULT 4096u

static enum status open_engine(struct run *run, struct error *err)
{
    const struct settings *settings = run->settings;
    struct device_options device_options = { .thread_count = settings->threads };
    struct engine_options engine_options = { .context = settings->context,
                                             .batch_limit = settings->batch };
    struct inject_plan plan;
    for (int mode = 0; mode < DEVICE_D2H_COUNT; mode++)
        if (strcmp(settings->d2h_mode, device_d2h_mode_name((enum device_d2h_mode)mode)) == 0)
            device_options.d2h_mode = (enum device_d2h_mode)mode;
    ASSERT(dtype_from_name(settings->kv_type, &engine_options.kv_dtype));
    if (!engine_options.context)
        engine_options.context = run->report.config.context_length < CONTEXT_DEFAULT
                                     ? run->report.config.context_length
                                     : CONTEXT_DEFAULT;
    if (settings->micro_batch &&
        (!engine_options.batch_limit || settings->micro_batch < engine_options.batch_limit))
        engine_options.batch_limit = settings->micro_batch;
    if (settings->inject)
        TRY(inject_parse(settings->inject, &plan, err));
    TRY(all_open(cli_device_name(settings->device), &device_options, &run->device, err));
    struct inject *inject;
    if (settings->inject) {
        TRY(inject_install(run->device, &plan, &inject, err));
        cli_warn(run->invocation, "a fault is planted: %s", settings->inject);
    }
    TRY(ops_load(&run->ops, run->device, CPU_PATH_COUNT, err));
    return engine_open(&run->ops, run->file, &run->report, &engine_options, &run->engine, err);
}

/* ---- The prompt ----------------------------------------------------------------------------- */

static enum status read_stdin(struct text *text, struct error *err)
{
    char block[65536];
    size_t count;
    while ((count = fread(block, 1, sizeof(block), stdin)) > 0) {
        text_add_bytes(text, block, count);
        if (text->length > TOKENIZER_TEXT_LIMIT_BYTES)
            return error_set(err, STATUS_LIMIT, "prompt: expected at most %u bytes",
                             TOKENIZER_TEXT_LIMIT_BYTES);
    }
    if (ferror(stdin))
        return error_set(err, STATUS_IO, "prompt: cannot read standard input");
    return STATUS_OK;
}

static enum status read_prompt(const struct settings *settings, struct text *text,
                               struct error *err)
{
    if (settings->prompt && settings->prompt_file)
        return error_set(err, STATUS_USAGE, "expected --prompt or --prompt-file, found both");
    if (settings->prompt)
        text_add(text, settings->prompt);
    else if (!settings->prompt_file)
        return error_set(err, STATUS_USAGE,
                         "expected --prompt TEXT or --prompt-file FILE, found neither");
    else if (strcmp(settings->prompt_file, "-") == 0)
        TRY(read_stdin(text, err));
    else {
        struct mapfile map;
        TRY(mapfile_open(&map, settings->prompt_file, err));
        if (map.size <= TOKENIZER_TEXT_LIMIT_BYTES)
            text_add_bytes(text, map.data, (size_t)map.size);
        uint64_t size = map.size;
        mapfile_release(&map);
        if (size > TOKENIZER_TEXT_LIMIT_BYTES)
            return error_set(err, STATUS_LIMIT, "%s: expected a prompt of at most %u bytes",
                             settings->prompt_file, TOKENIZER_TEXT_LIMIT_BYTES);
    }
    if (text->failed)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the prompt");
    if (text->length == 0)
        return error_set(err, STATUS_USAGE, "prompt: expected some text, found none");
    return STATUS_OK;
}

static enum status encode_prompt(struct run *run, const struct text *text, struct error *err)
{
    TRY(tokenizer_create(run->file, &run->tokenizer, err));
    if (tokenizer_info(run->tokenizer)->pre_missing)
        cli_warn(run->invocation, "the file does not name its pre-tokenizer; words may be split "
                                  "wrongly");
    struct text_view view = { text_get(text), text->length };
    TRY(tokenizer_encode(run->tokenizer, view, TOKENIZER_ADD_SPECIAL | TOKENIZER_PARSE_SPECIAL,
                         &run->prompt, err));
    if (run->prompt.count == 0)
        return error_set(err, STATUS_USAGE, "prompt: expected at least one token, found none");
    return STATUS_OK;
}

/* ---- Running -------------------------------------------------------------------------------- */

static struct sampler_settings sampling(const struct settings *settings, uint64_t seed)
{
    return (struct sampler_settings){ .temperature = settings->greedy ? 0 : settings->temperature,
                                      .top_k = settings->top_k,
                                      .top_p = settings->top_p,
                                      .min_p = settings->min_p,
                                      .repeat_penalty = settings->repeat_penalty,
                                      .presence_penalty = settings->presence_penalty,
                                      .frequency_penalty = settings->frequency_penalty,
                                      .repeat_last_n = settings->repeat_last_n,
                                      .seed = seed };
}

static uint64_t choose_seed(const struct settings *settings)
{
    uint32_t seed = (uint32_t)settings->seed;
    if (settings->seed < 0 && getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
        seed = (uint32_t)clock_ns();
    return seed & 0x7FFFFFFFu; /* can be given back as --seed */
}

static bool on_token(void *context, const struct generate_event *event)
{
    const struct run *run = context;
    if (run->settings->json)
        infer_print_token(event);
    else
        fwrite(event->text.bytes, 1, event->text.length, stdout);
    fflush(stdout);
    return !cli_is_interrupted() && !ferror(stdout);
}

static enum status generate(struct run *run, struct infer_summary *summary, struct error *err)
{
    const struct settings *settings = run->settings;
    struct generate_prompt prompt = { run->prompt.ids, run->prompt.count };
    struct generate_options generate_options = {
        .token_limit = settings->max_tokens > 0 ? (uint32_t)settings->max_tokens : 0,
        .ignore_end = settings->ignore_end,
        .show_special = settings->special,
        .sampling = sampling(settings, summary->seed),
        .stops = &settings->stop,
        .stop_count = settings->stop && settings->stop[0] ? 1 : 0,
    };
    return generate_run(run->engine, run->tokenizer, &prompt, 1, &generate_options, on_token, run,
                        &summary->result, &summary->timing, err);
}

static enum status prepare(struct run *run, struct error *err)
{
    struct text prompt;
    text_init(&prompt);
    enum status status = read_prompt(run->settings, &prompt, err);
    if (!status)
        status = gguf_open(run->settings->model, &run->file, err);
    if (!status)
        status = check_model(run, err);
    if (!status)
        status = encode_prompt(run, &prompt, err);
    if (!status)
        status = open_engine(run, err);
    if (!status && run->prompt.count >= engine_plan(run->engine)->options.context)
        status = error_set(err, STATUS_LIMIT,
                           "prompt: expected fewer tokens than the context of %u, found %zu; use a "
                           "larger --ctx-size",
                           engine_plan(run->engine)->options.context, run->prompt.count);
    text_release(&prompt);
    return status;
}

static enum cli_exit run_infer(const struct cli_invocation *invocation)
{
    const struct settings *settings = invocation->settings;
    struct run run = { .invocation = invocation, .settings = settings, .start_ns = clock_ns() };
    struct infer_summary summary = { .json = settings->json, .seed = choose_seed(settings) };
    struct error err;
    enum status status;
    tokenizer_ids_init(&run.prompt);
    if (!settings->model)
        status = error_set(&err, STATUS_USAGE, "expected --model FILE, found none");
    else
        status = prepare(&run, &err);
    if (status) {
        release(&run);
        return cli_fail(invocation, &err);
    }
    summary.load_ns = clock_ns() - run.start_ns;
    summary.plan = engine_plan(run.engine);
    fprintf(stderr, "Weights loaded and config updated (vocab size: %u)\n",
            run.report.config.vocab_size);
    status = generate(&run, &summary, &err);
    if (!status && ferror(stdout))
        status = error_set(&err, STATUS_IO, "cannot write to standard output");
    summary.total_ns = clock_ns() - run.start_ns;
    summary.peak_bytes = device_peak_bytes(run.device);
    infer_print_summary(&summary, status ? &err : NULL);
    release(&run);
    if (status)
        return status == STATUS_USAGE ? CLI_EXIT_USAGE : CLI_EXIT_FAILED;
    return summary.result.reason == GENERATE_INTERRUPTED ? CLI_EXIT_INTERRUPTED : CLI_EXIT_OK;
}

const struct cli_command cli_infer = {
    .name = "infer",
    .operands = "",
    .summary = "run a model on a prompt",
    .description =
        "Reads a prompt, and writes what the model makes of it to standard output as it comes; "
        "everything else goes to standard error: at the end the timings, STATUS=OK (or "
        "STATUS=FAILED and why), and the memory used. greta_infer is another name of this "
        "command.\n\n"
        "Sampling works in the order users know: penalties, top-k, top-p, min-p, temperature. With "
        "--greedy or --temp 0 it always takes the likeliest token. On the host, results have the "
        "same bits whatever the number of threads or the batch size. Ctrl-C ends in order with "
        "what was written; a second one kills.\n\n"
        "Exit status 1 if the guard rail refuses the model or generation fails, 3 if it could not "
        "begin, 130 if it was interrupted.",
    .examples = "  greta infer --model model.gguf --prompt \"Once upon a time\" --greedy\n"
                "  greta infer -m model.gguf -f prompt.txt -n 100 --seed 7\n"
                "  echo Hello | greta infer -m model.gguf -f - --json\n",
    .options = options,
    .option_count = COUNT_OF(options),
    .settings_bytes = sizeof(defaults),
    .defaults = &defaults,
    .run = run_infer,
};
