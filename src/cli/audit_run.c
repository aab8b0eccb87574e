/* audit_run.c - a matrix, a self-test, transfers or a comparison: progress while it lasts, then the
 * table or the JSON, and the exit code. */
#include "cli/audit_run.h"

#include "cli/colour.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- Watching ------------------------------------------------------------------------------- */

struct watch {
    const struct cli_invocation *invocation;
    struct cli_progress progress;
    char stage[64];
};

static bool on_step(void *context, const char *stage, uint64_t done, uint64_t total)
{
    struct watch *watch = context;
    if (strcmp(stage, watch->stage) != 0) {
        cli_progress_end(&watch->progress);
        snprintf(watch->stage, sizeof(watch->stage), "%s", stage);
        cli_progress_begin(&watch->progress, watch->invocation, watch->stage, "");
    }
    return watch->progress.progress.step(watch->progress.progress.context, done, total);
}

static void on_note(void *context, const char *line)
{
    struct watch *watch = context;
    cli_progress_end(&watch->progress);
    if (!watch->invocation->quiet)
        cli_put_line(line);
}

/* ---- Running -------------------------------------------------------------------------------- */

static enum cli_exit exit_of(enum audit_outcome outcome)
{
    switch (outcome) {
    case AUDIT_CLEAN:
        return CLI_EXIT_OK;
    case AUDIT_ROOT_CAUSE:
    case AUDIT_DEFECT_SEEN:
        return CLI_EXIT_FAILED;
    default:
        return CLI_EXIT_UNDECIDED;
    }
}

enum cli_exit audit_run_fail(const struct cli_invocation *invocation, const struct error *err)
{
    enum cli_exit code = cli_fail(invocation, err);
    return code == CLI_EXIT_FAILED ? CLI_EXIT_CANNOT : code;
}

static enum cli_exit run_matrix(const struct audit_run *run, struct watch *watch)
{
    struct campaign_result result;
    struct error err;
    char folder[CLI_SHOWN_BYTES];
    campaign_result_init(&result);
    enum status status = campaign_audit(&run->campaign, &result, &err);
    cli_progress_end(&watch->progress);
    text_printable(text_view_of(result.folder), folder, sizeof(folder));
    enum cli_exit code;
    if (status) {
        code = audit_run_fail(run->invocation, &err);
        if (status == STATUS_INTERRUPTED && result.folder[0])
            fprintf(stderr, "greta audit: what is known so far is in %s; finish it with --resume\n",
                    folder);
    } else {
        if (run->json)
            fputs(text_get(&result.json), stdout);
        else
            cli_put_table(stdout, run->invocation->colour_out, text_get(&result.table));
        fprintf(stderr, "%s/report.html\n", folder);
        code = exit_of(result.outcome);
    }
    campaign_result_release(&result);
    return code;
}

/* The checks that print a table and pass or fail. */
static enum cli_exit run_check(const struct audit_run *run, struct watch *watch)
{
    struct text text;
    struct error err;
    bool passed = false, decided = true;
    text_init(&text);
    enum status status;
    if (run->kind == AUDIT_RUN_SELF_TEST)
        status = campaign_self_test(&run->campaign, run->json, &text, &passed, &err);
    else if (run->kind == AUDIT_RUN_TRANSFERS)
        status = campaign_transfers(&run->campaign, run->copies, run->json, &text, &passed,
                                    &decided, &err);
    else
        status = campaign_compare(&run->campaign, run->json, &text, &passed, &decided, &err);
    cli_progress_end(&watch->progress);
    if (!status && text.failed)
        status = error_set(&err, STATUS_NO_MEMORY, "no memory for the table");
    enum cli_exit code = status     ? audit_run_fail(run->invocation, &err)
                         : !decided ? CLI_EXIT_UNDECIDED
                         : passed   ? CLI_EXIT_OK
                                    : CLI_EXIT_FAILED;
    if (!status && run->json)
        fputs(text_get(&text), stdout);
    else if (!status)
        cli_put_table(stdout, run->invocation->colour_out, text_get(&text));
    text_release(&text);
    return code;
}

enum cli_exit audit_run(struct audit_run *run)
{
    struct watch watch = { .invocation = run->invocation };
    run->campaign.watcher = (struct campaign_watcher){ on_step, on_note, &watch };
    return run->kind == AUDIT_RUN_MATRIX ? run_matrix(run, &watch) : run_check(run, &watch);
}

/* The worker of an audit. The audit starts it itself, so it is in no list. */
enum cli_exit cli_audit_worker(int argument_count, char **arguments)
{
    struct error err;
    bool failed = false, dumped = false;
    enum cli_exit code = CLI_EXIT_OK;
    if (argument_count != 1) {
        fprintf(stderr, "greta audit-worker: expected a job; greta audit starts this itself\n");
        return CLI_EXIT_USAGE;
    }
    if (campaign_worker(arguments[0], &failed, &dumped, &err)) {
        fprintf(stderr, "greta audit-worker: %s\n", err.text);
        code = CLI_EXIT_CANNOT;
    } else if (failed) {
        code = CLI_EXIT_FAILED;
    }
    if (dumped) { /* after a GPU core dump the driver may crash in its destructors */
        fflush(NULL);
        _exit((int)code);
    }
    return code;
}
