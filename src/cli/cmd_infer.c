/* cmd_infer.c - greta infer: runs a model on a prompt. */
#include "cli/chat_run.h"
#include "cli/colour.h"
#include "cli/device_choice.h"
#include "cli/infer_run.h"

#include "base/clock.h"
#include "base/text.h"

#include <inttypes.h>
#include <string.h>
#include <sys/random.h>

/* ---- Running -------------------------------------------------------------------------------- */

uint64_t infer_choose_seed(const struct infer_settings *settings)
{
    uint32_t seed = (uint32_t)settings->seed;
    if (settings->seed < 0 && getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
        seed = (uint32_t)clock_ns();
    return seed & 0x7FFFFFFFu; /* can be given back as --seed */
}

static enum status on_logits(void *context, uint64_t request, uint32_t position,
                             const float *logits, struct error *err)
{
    struct infer_run *run = context;
    (void)request;
    (void)position;
    return infer_capture_logits(&run->capture, logits, run->report.config.vocab_size, err);
}

/* How much of all prompts is read; false to stop. */
static bool show_progress(struct infer_run *run)
{
    struct progress *progress = &run->progress.progress;
    uint64_t done = 0, total = 0;
    struct error unused;
    for (size_t i = 0; i < run->count; i++) {
        done += run->results[i].read_count;
        total += infer_prompt_ids(run, i)->count;
    }
    return progress_step(progress, done, total, &unused) == STATUS_OK;
}

/* What the session reports; false in *ret_more to stop. */
static enum status take_event(struct infer_run *run, const struct session_event *event,
                              bool *ret_more, struct error *err)
{
    struct infer_result *result = &run->results[event->request];
    if (event->kind == SESSION_PROMPT) {
        result->read_count = event->prompt.done;
        *ret_more = show_progress(run);
        return STATUS_OK;
    }
    cli_progress_end(&run->progress);
    if (event->kind == SESSION_TOKEN) {
        result->token_count++;
        result->read_count = (uint32_t)infer_prompt_ids(run, event->request)->count;
    } else {
        result->reason = event->end.reason;
    }
    infer_output_event(&run->output, event);
    *ret_more = !cli_is_interrupted() && !ferror(stdout);
    if (event->kind != SESSION_END || event->end.reason != SESSION_FAILED)
        return STATUS_OK;
    *err = *event->end.error;
    return err->status;
}

/* A request for each prompt; the seed goes up by one from prompt to prompt. */
static enum status add_requests(struct infer_run *run, const struct infer_summary *summary,
                                struct session *session, struct error *err)
{
    const struct infer_settings *settings = run->settings;
    for (size_t i = 0; i < run->count; i++) {
        const struct tokenizer_ids *ids = infer_prompt_ids(run, i);
        struct session_request request = {
            .ids = ids->ids,
            .id_count = ids->count,
            .sampling = infer_sampling(settings, summary->budget.options.context,
                                       summary->seed + i),
            .token_limit = settings->max_tokens >= 0 ? (uint32_t)settings->max_tokens
                                                     : SESSION_NO_LIMIT,
            .stops = run->stop_texts,
            .stop_count = settings->stops.count,
            .ignore_end = settings->ignore_end,
            .show_special = settings->special,
            .allow_bad = settings->allow_nan,
            .grammar = run->grammar.grammar,
            .logits = run->capture.has_logits ? on_logits : NULL,
            .logits_context = run,
        };
        uint64_t id;
        TRY(session_add(session, &request, &id, err));
        ASSERT(id == i);
    }
    return STATUS_OK;
}

static enum status run_session(struct infer_run *run, struct session *session, struct error *err)
{
    struct session_event event;
    bool more = true;
    while (more && session_active_count(session)) {
        enum status status = session_step(session, err);
        while (more && session_take(session, &event)) {
            /* What failed in the step also ended the requests: one report is enough. */
            struct error unused;
            if (take_event(run, &event, &more, status ? &unused : err) && !status)
                return err->status;
        }
        TRY(status);
    }
    return STATUS_OK;
}

static enum status write_text(struct infer_run *run, struct infer_summary *summary,
                              struct error *err)
{
    const struct session_options options = { .wait_for_chunks = true };
    struct session *session;
    TRY(session_create(run->engine, run->tokenizer, &options, &session, err));
    enum status status = add_requests(run, summary, session, err);
    if (!status)
        status = run_session(run, session, err);
    summary->timing = *session_timing(session);
    session_destroy(session);
    return status;
}

static void show_prompt(const struct infer_run *run)
{
    if (run->settings->show_prompt && !run->settings->json && run->count == 1)
        fwrite(text_get(&run->texts.texts[0]), 1, run->texts.texts[0].length, stdout);
}

static enum status generate(struct infer_run *run, struct infer_summary *summary, struct error *err)
{
    cli_finish_calls();
    cli_progress_begin(&run->progress, run->invocation, "prefill", "tokens");
    show_prompt(run);
    enum status status = write_text(run, summary, err);
    cli_progress_end(&run->progress);
    struct error second;
    enum status shown = infer_output_finish(&run->output, &second);
    enum status kept = shown ? STATUS_OK
                             : infer_capture_finish(&run->capture, run->invocation, &second);
    if (!status && (shown || kept)) {
        *err = second;
        status = shown ? shown : kept;
    }
    if (!status && ferror(stdout))
        status = error_set(err, STATUS_IO, "cannot write to standard output");
    return status ? status : gguf_check_whole(run->file, err);
}

/* Which model runs where; the device's own name has its threads, if it is the host. */
static void print_setup(const struct infer_run *run)
{
    const struct model_report *report = &run->report;
    const struct device_info *info = device_info(run->device);
    bool chosen = strcmp(run->opening.name, "auto") == 0;
    char path[CLI_SHOWN_BYTES];
    fprintf(stderr, "Model: %s (%s, %.1f M parameters); device: %s (%s)\n",
            text_printable(text_view_of(gguf_path(run->file)), path, sizeof(path)),
            model_arch_info(report->config.arch)->name, (double)report->parameter_count / 1e6,
            chosen ? info->kind : run->opening.name, info->name);
}

/* There is a text, but it is not what the model makes of the prompt. An audit's findings, which
 * follow, name the launch. */
static enum status refuse_trapped(const struct infer_run *run, uint64_t trap_count,
                                  struct error *err)
{
    bool audited = cli_audit_answer(run->audit) != CLI_AUDIT_NOT_ASKED;
    return error_set(err, STATUS_REFUSED,
                     "an index was past its bound and the access was skipped (%" PRIu64 " %s): do "
                     "not trust the text%s",
                     trap_count, text_plural(trap_count, "time", "times"),
                     audited ? "" : " (--audit log names the launch)");
}

enum cli_exit infer_main(const struct cli_invocation *invocation)
{
    const struct infer_settings *settings = invocation->settings;
    if (settings->list_devices)
        return cli_list_devices(invocation, settings->json);
    if (settings->inject && strcmp(settings->inject, "help") == 0)
        return cli_list_faults();
    struct infer_run run = { .invocation = invocation,
                             .settings = settings,
                             .start_ns = clock_ns() };
    struct infer_summary summary = { .invocation = invocation,
                                     .json = settings->json,
                                     .seed = infer_choose_seed(settings) };
    struct error err;
    enum status status = infer_run_prepare(&run, &err);
    if (status) {
        infer_run_release(&run);
        if (status == STATUS_INTERRUPTED)
            cli_put_coloured(stderr, invocation->colour_err, "STATUS=INTERRUPTED\n");
        return cli_fail(invocation, &err);
    }
    summary.load_ns = clock_ns() - run.start_ns;
    summary.budget = *engine_budget(run.engine);
    summary.results = run.results;
    summary.count = run.count;
    cli_warn_no_gpu(invocation, settings->gpu_layers, run.opening.name,
                    device_info(run.device)->kind);
    if (!invocation->quiet) {
        fprintf(stderr, "Weights loaded and config updated (vocab size: %u)\n",
                run.report.config.vocab_size);
        print_setup(&run);
    }
    status = generate(&run, &summary, &err);
    summary.total_ns = clock_ns() - run.start_ns;
    summary.peak_bytes = device_peak_bytes(run.device);
    uint64_t trap_count = device_trap_count(run.device);
    infer_run_stop(&run);
    if (!status && trap_count > 0)
        status = refuse_trapped(&run, trap_count, &err);
    summary.audit = run.audit;
    const struct error *failure = status ? &err : NULL;
    infer_print_summary(&summary, failure);
    enum cli_exit code = infer_exit_of(infer_ending_of(&summary, failure), failure);
    infer_run_release(&run);
    return code;
}

/* An option that would have no effect on a prompt that is taken as it is. */
static enum status refuse_chat_options(const struct infer_settings *settings, struct error *err)
{
    const struct {
        const char *name;
        bool given;
    } rows[] = {
        { "--system-prompt", settings->system != NULL },
        { "--chat-template", settings->chat_template != NULL },
        { "--tools", settings->tools != NULL },
        { "--reasoning", settings->reasoning != infer_defaults.reasoning },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (rows[i].given)
            return error_set(err, STATUS_USAGE,
                             "%s: expected --chat or -cnv with it, found a prompt that is taken as "
                             "it is",
                             rows[i].name);
    return STATUS_OK;
}

static enum cli_exit run_infer(const struct cli_invocation *invocation)
{
    const struct infer_settings *settings = invocation->settings;
    struct cli_invocation asked = *invocation;
    asked.quiet = invocation->quiet || settings->quiet; /* --log-disable */
    if (settings->converse || settings->once)
        return chat_main(&asked, settings);
    struct error err;
    if (refuse_chat_options(settings, &err))
        return cli_fail(&asked, &err);
    return infer_main(&asked);
}

const struct cli_command cli_infer = {
    .name = "infer",
    .operands = "[PROMPT|-]",
    .operand_most = 1,
    .summary = "run a model on a prompt",
    .description =
        "Runs the model on a prompt and writes its text to standard output as it is generated; "
        "everything else goes to standard error; at the end these are the timings, STATUS=OK (or "
        "FAILED, INTERRUPTED, FINDINGS, INCONCLUSIVE, with the reason) and the memory used. "
        "greta_infer is another name of this command.\n\n"
        "Sampling has the usual order: penalties, top-k, top-p, min-p, temperature. --greedy and "
        "--temp 0 always take the likeliest token. On the host, results have the same bits "
        "whatever the number of threads or the batch size. Ctrl-C ends the run in order and keeps "
        "the text so far; a second one kills it.\n\n"
        "Several prompts (--prompt several times, or a file divided by --prompt-separator) run "
        "--parallel at a time; each one's text is written whole, in their order, and does not "
        "depend on the others. With --json every line has the number of its prompt (sequence).\n\n"
        "With --json-schema or --grammar only tokens that fit are chosen: the text is JSON and valid, "
        "or what the grammar says, unless --max-tokens or --stop cuts it off.\n\n"
        "--tap copies tensors out while the model runs, each as an array for NumPy: wo (what "
        "attention adds), norm (input, output and weight of every norm), attn (query, key, value "
        "and result of one head), mlp, kv (a layer's cache, decoded), logits, hidden. A NaN or an "
        "infinity in a tap or in logits ends the run and says where it first appeared, unless "
        "--allow-nan.\n\n"
        "--audit records what the model does with the device in a new flight file, which is whole "
        "even if the process is killed, and reports at the end what was wrong, if anything (see "
        "greta audit for verdicts): then the status is FINDINGS. greta flight list shows the "
        "recordings. GCORE_D2H_AUDIT=1 (to GCORE_D2H_AUDIT_LOG=FILE), GRETA_TRACE_MEMCPY=1 and "
        "GRETA_D2H_DEBUG=1 print a line or more for every copy from the device.\n\n"
        "Exit status 1 if the guard rail refuses the model, generation fails, a kernel met an "
        "index past its bound, or the audit found something; 3 if it could not begin or be "
        "recorded, 4 if the audit could not be finished or its planted fault never fired, 130 if "
        "it was interrupted.",
    .examples = "  greta infer \"Once upon a time\"\n"
                "  greta infer --model model.gguf --prompt \"Once upon a time\" --greedy\n"
                "  greta infer -m model.gguf -f prompt.txt -n 100 --seed 7\n"
                "  echo Hello | greta infer -m model.gguf --json -\n"
                "  greta infer -m model.gguf -p Hello -n 1 --tap attn@layer=3,step=0 --tap-out "
                "taps\n",
    .options = infer_options,
    .option_count = INFER_OPTION_COUNT,
    .refusals = infer_refusals,
    .refusal_count = INFER_REFUSAL_COUNT,
    .settings_bytes = sizeof(struct infer_settings),
    .defaults = &infer_defaults,
    .run = run_infer,
};
