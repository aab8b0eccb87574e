/* cmd_audit.c - greta audit: is the run sound, and if not, what is the cause? */
#include "cli/audit_archive.h"
#include "cli/audit_run.h"
#include "cli/audit_workload.h"
#include "cli/cli.h"
#include "cli/command_line.h"
#include "cli/version.h"

#include "campaign/campaign.h"

#include <stdlib.h>
#include <string.h>

struct settings {
    const char *model, *prompt, *prompt_file, *matrix, *level, *expect_fault, *baseline, *ablate;
    const char *language, *artifacts, *author, *resume, *inject, *device, *faults, *compare;
    uint64_t seed;
    uint32_t copies, repeats, hang_limit;
    bool locked, json, self_test, transfers, no_self_test, no_interventions, no_search;
    struct audit_archive_settings archive; /* the last field: see check_archive_flags */
};

static const struct settings defaults = { .matrix = CAMPAIGN_MATRIX_DEFAULT,
                                          .level = "guard",
                                          .language = "en",
                                          .artifacts = "artifacts",
                                          .device = "auto",
                                          .seed = 1,
                                          .copies = 200,
                                          .repeats = 3,
                                          .hang_limit = 30,
                                          .archive = { .keep = CAMPAIGN_KEEP_ALL } };

#define AT(field) offsetof(struct settings, field)

static const struct cli_option options[] = {
    { "--model|-m", "FILE", CLI_TEXT, AT(model),
      "model to run (default: the one that came with greta, else a small synthetic one)", NULL,
      true },
    { "--prompt|-p", "TEXT", CLI_TEXT, AT(prompt), "prompt (default: a short sentence)", NULL,
      false },
    { "--prompt-file|-f", "FILE", CLI_TEXT, AT(prompt_file), "prompt (default: a short sentence)",
      NULL, true },
    { "--matrix", "ROWS", CLI_TEXT, AT(matrix),
      "LABEL:MODE:COUNT,... with modes bare, audit, stress (default: "
      "A:bare:50,B:audit:50,C:stress:100)",
      NULL, false },
    { "--level", "LEVEL", CLI_TEXT, AT(level),
      "what rows that are not bare record and check (default: guard)", "log guard verify", false },
    { "--expect-fault", "TEXT", CLI_TEXT, AT(expect_fault),
      "an error with this text should occur; if it does not, the verdict is NOT_REPRODUCED", NULL,
      false },
    { "--baseline", "DIR", CLI_TEXT, AT(baseline),
      "earlier audit to compare with: shows findings that are new, gone or changed, and the "
      "timings",
      NULL, true },
    { "--ablate", "WHAT", CLI_TEXT, AT(ablate),
      "run the workload in each way to copy to the host: a fix counts only if taking it away "
      "brings "
      "the fault back",
      "d2h", false },
    { "--locked", NULL, CLI_FLAG, AT(locked),
      "one audit of this device at a time, and an environment in which runtimes serialise", NULL,
      false },
    { "--lang", "LANGUAGE", CLI_TEXT, AT(language),
      "language of the terminal and of report.html (default: en); both Markdown reports are always "
      "written",
      "en es", false },
    { "--artifacts", "DIR", CLI_TEXT, AT(artifacts),
      "where audits are kept: DIR/DATE/ID (default: artifacts)", NULL, true },
    { "--author", "NAME", CLI_TEXT, AT(author), "name of the report's author", NULL, false },
    { "--resume", "DIR", CLI_TEXT, AT(resume),
      "finish the audit in this folder: finished rows are not run again, and the options are those "
      "it was started with",
      NULL, true },
    { "--inject", "FAULT", CLI_TEXT, AT(inject),
      "plant a fault in every row that is not bare (see greta infer --inject)", NULL,
      CLI_COMPLETES_FAULT },
    { "--seed|-s", "N", CLI_U64, AT(seed), "seed of stress and sampling (default: 1)", NULL,
      false },
    { "--device|-dev", "NAME", CLI_TEXT, AT(device), "host, cuda:N, hip:N or auto (the default)",
      NULL, false },
    { "--repeats", "N", CLI_U32, AT(repeats), "runs of each intervention (default: 3)", NULL,
      false },
    { "--hang-limit", "SECONDS", CLI_U32, AT(hang_limit),
      "time without progress that counts as a hang (default: 30)", NULL, false },
    { "--no-self-test", NULL, CLI_FLAG, AT(no_self_test),
      "do not run a missing self-test; hypotheses that need it stay inconclusive", NULL, false },
    { "--no-interventions", NULL, CLI_FLAG, AT(no_interventions),
      "do not rerun a faulty row with one thing changed", NULL, false },
    { "--no-search", NULL, CLI_FLAG, AT(no_search),
      "do not search for the op that makes equal runs differ or produces NaN or infinity", NULL,
      false },
    { "--self-test", NULL, CLI_FLAG, AT(self_test),
      "plant every known fault and print which were detected", NULL, false },
    { "--faults", "NAMES", CLI_TEXT, AT(faults),
      "with --self-test: plant only these (NAME,NAME), without clean runs; the result is not kept",
      NULL, false },
    { "--transfers", NULL, CLI_FLAG, AT(transfers),
      "copy on every path of the device, hashed at both ends, and check the model's bytes there",
      NULL, false },
    { "--compare", "WHAT", CLI_TEXT, AT(compare),
      "run the model once on the GPU, op by op, and every op once more on the host with the GPU's "
      "own inputs; names the first op outside its tolerance. With --matrix, as part of the audit",
      "host", false },
    { "--copies", "N", CLI_U32, AT(copies), "with --transfers: copies on each path (default: 200)",
      NULL, false },
    { "--keep", "N", CLI_U32, AT(archive.keep),
      "with prune: the newest N finished audits stay; 0 removes the one that `last` points to too",
      NULL, false },
    { "--older", "DAYS", CLI_U32, AT(archive.older_days),
      "with prune: remove only audits older than DAYS; with --keep, an audit stays if either "
      "option keeps it",
      NULL, false },
    { "--unfinished", NULL, CLI_FLAG, AT(archive.unfinished),
      "with prune: also remove interrupted audits that no process works on", NULL, false },
    { "--dry-run", NULL, CLI_FLAG, AT(archive.dry_run),
      "with prune: only print what would be removed", NULL, false },
    { "--json", NULL, CLI_FLAG, AT(json), "print JSON", NULL, false },
};

/* ---- Options -------------------------------------------------------------------------------- */

/* Flags that would have no effect are refused. */

static bool is_of_archive(size_t offset)
{
    return offset >= AT(archive);
}

static bool is_of_audit(size_t offset)
{
    return !is_of_archive(offset) && offset != AT(artifacts) && offset != AT(json);
}

static bool is_of_matrix(size_t offset)
{
    return offset == AT(matrix) || offset == AT(expect_fault) || offset == AT(ablate) ||
           offset == AT(baseline);
}

/* The name of the first flag given that is one of those; false if none is. */
static bool find_given(const struct settings *settings, bool (*is_one)(size_t offset),
                       char name[32])
{
    for (size_t i = 0; i < COUNT_OF(options); i++)
        if (is_one(options[i].offset) && cli_option_changed(&options[i], settings, &defaults))
            return cli_option_name(&options[i], 0, name, 32);
    return false;
}

static enum status fill_options(const struct cli_invocation *invocation,
                                struct audit_workload *workload, const struct text *command,
                                struct campaign_options *ret, struct error *err)
{
    const struct settings *settings = invocation->settings;
    const struct cli_environment *environment = invocation->environment;
    *ret = (struct campaign_options){
        .program = "/proc/self/exe",
        .environment = environment->variables,
        .cache_folder = environment->cache_folder[0] ? environment->cache_folder : NULL,
        .runtime_folder = environment->runtime_folder,
        .temporary_folder = environment->temporary_folder,
        .version = GRETA_VERSION,
        .commit = GRETA_COMMIT[0] ? GRETA_COMMIT : NULL,
        .command = text_get(command),
        .device = settings->device,
        .inject = settings->inject,
        .seed = settings->seed,
        .matrix = settings->matrix,
        .expect_fault = settings->expect_fault,
        .baseline = settings->baseline,
        .resume = settings->resume,
        .artifacts = settings->artifacts,
        .author = settings->author,
        .language = strcmp(settings->language, "es") == 0 ? REPORT_SPANISH : REPORT_ENGLISH,
        .locked = settings->locked,
        .ablate_d2h = settings->ablate != NULL,
        .no_self_test = settings->no_self_test,
        .no_interventions = settings->no_interventions,
        .no_search = settings->no_search,
        .compare_host = settings->compare != NULL,
        .repeats = settings->repeats,
        .faults = settings->faults,
        .hang_limit_ns = (uint64_t)settings->hang_limit * UINT64_C(1000000000),
    };
    if (!audit_level_from_name(settings->level, &ret->level))
        ret->level = AUDIT_GUARD; /* the table allows no other */
    if (settings->self_test + settings->transfers + (settings->compare != NULL) > 1)
        return error_set(err, STATUS_USAGE,
                         "expected one of --self-test, --transfers and --compare, found several; "
                         "run one after the other");
    if (settings->self_test && settings->inject)
        return error_set(err, STATUS_USAGE,
                         "--self-test: expected no --inject, found '%s': it plants faults of its "
                         "own (--faults names them)",
                         settings->inject);
    if (settings->expect_fault && settings->expect_fault[0] == '\0')
        return error_set(err, STATUS_USAGE,
                         "--expect-fault: expected a text of the error, found none");
    char flag[32];
    TRY(audit_check_texts(options, COUNT_OF(options), settings, err));
    if (find_given(settings, is_of_archive, flag))
        return error_set(err, STATUS_USAGE,
                         "%s: expected prune before it (greta audit prune %s ...)", flag, flag);
    if ((settings->self_test || settings->transfers) && find_given(settings, is_of_matrix, flag))
        return error_set(err, STATUS_USAGE, "%s: expected no %s with it: no matrix is run",
                         settings->self_test ? "--self-test" : "--transfers", flag);
    if (settings->faults && !settings->self_test)
        return error_set(err, STATUS_USAGE, "--faults: expected --self-test with it, found none");
    if (settings->hang_limit == 0 || settings->repeats == 0 || settings->copies == 0)
        return error_set(err, STATUS_USAGE,
                         "--hang-limit, --repeats, --copies: expected at least 1, found 0");
    TRY(campaign_check_matrix(settings->matrix, err));
    TRY(campaign_check_faults(settings->faults, err));
    const struct audit_workload_line line = { settings->model, settings->prompt,
                                              settings->prompt_file };
    return audit_workload_read(workload, invocation, &line, ret, err);
}

/* ---- Audits that were made ------------------------------------------------------------------ */

static enum cli_exit run_archive(const struct cli_invocation *invocation)
{
    const struct settings *settings = invocation->settings;
    struct error err;
    char flag[32];
    if (find_given(settings, is_of_audit, flag)) {
        (void)error_set(&err, STATUS_USAGE,
                        "list, show and prune: expected --artifacts, --json, --keep, --older, "
                        "--unfinished or --dry-run, found %s, a flag for running an audit",
                        flag);
        return cli_fail(invocation, &err);
    }
    if (audit_archive_run(invocation, settings->artifacts, settings->json, &settings->archive,
                          &err))
        return cli_fail(invocation, &err);
    return CLI_EXIT_OK;
}

/* ---- Running -------------------------------------------------------------------------------- */

static enum audit_run_kind kind_of(const struct settings *settings)
{
    if (settings->self_test)
        return AUDIT_RUN_SELF_TEST;
    if (settings->transfers)
        return AUDIT_RUN_TRANSFERS;
    /* Without a matrix, --compare runs alone. */
    if (settings->compare && settings->matrix == defaults.matrix)
        return AUDIT_RUN_COMPARE;
    return AUDIT_RUN_MATRIX;
}

static enum cli_exit run_audit(const struct cli_invocation *invocation)
{
    const struct settings *settings = invocation->settings;
    struct audit_run run = { .invocation = invocation,
                             .kind = kind_of(settings),
                             .copies = settings->copies,
                             .json = settings->json };
    struct audit_workload workload;
    struct text command;
    struct error err;
    enum cli_exit code;
    if (audit_archive_is_asked(invocation))
        return run_archive(invocation);
    text_init(&command);
    audit_workload_init(&workload);
    cli_add_command_line(&command, invocation->environment);
    if (fill_options(invocation, &workload, &command, &run.campaign, &err))
        code = audit_run_fail(invocation, &err);
    else
        code = audit_run(&run);
    audit_workload_release(&workload);
    text_release(&command);
    return code;
}

const struct cli_command cli_audit = {
    .name = "audit",
    .operands = "[list | show [ID|latest] | prune] [-- INFER-OPTIONS]",
    .actions = "list show prune",
    .operand_least = 0,
    .operand_most = AUDIT_WORKLOAD_WORDS,
    .summary = "find out whether runs are sound, and what the cause is if not",
    .description =
        "Runs a workload in child processes, as often as the matrix says: bare rows record "
        "nothing, audit rows are recorded and checked, stress rows also have other streams, "
        "chunks, pauses, memory pressure and context, chosen by a seed. The workload is the model "
        "on the prompt, with the options of greta infer after -- (greta audit -- --max-tokens 32 "
        "--threads 4); a small fixed share of iterations also runs several streams, marks, graphs "
        "and staging slots, to test what a single stream cannot show. The audit reports a crash, a "
        "hang or a kill of a child.\n\n"
        "Every hypothesis gets a verdict: CONFIRMED with the op, layer, step, tensor and bytes; "
        "REFUTED if its detector ran, passed its self-test on this binary and device, and the path "
        "was exercised; EXCLUDED if it cannot be expressed; otherwise INCONCLUSIVE, with what is "
        "missing. When something goes wrong, the faulty row is run again with one thing changed, "
        "in turn with runs without the change.\n\n"
        "Everything goes to ARTIFACTS/DATE/ID: manifest.json, summary.json, report.en.md, "
        "report.es.md, report.html, timeline.json, findings.sarif, junit.xml, run/. After every "
        "row the folder is a valid record of what is known; --resume finishes it.\n\n"
        "list shows the audits in ARTIFACTS, show prints the verdict of one (by its id or the "
        "beginning of it; default: latest, the newest that is finished) and where its files are, "
        "prune removes old ones and prints how much space that frees. prune never removes an audit "
        "that is "
        "running, nor one that is not finished unless --unfinished is given, nor anything that is "
        "not an audit. ARTIFACTS/last is a link to the newest finished audit; a --baseline that "
        "does not exist yet means a first run.\n\n"
        "--self-test plants every fault there is, each in a child, and prints whether it is found "
        "with the right culprit. An audit needs a self-test of the same binary on the same device, "
        "and runs it first if there is none.\n\n"
        "If equal runs differ, or values are not finite, and it is only known where that was seen, "
        "the audit searches for the cause: it runs the row again with every op's inputs and "
        "outputs hashed (or outputs scanned) in stream order, and names the first op whose inputs "
        "agree and whose output does not. If the difference disappears because of the hashing, it "
        "hashes less and reports the interval that is left.\n\n"
        "--compare host runs the model once on the GPU and each op once more on the host, with the "
        "GPU's own inputs and the file's own weights, and names the first op whose output is "
        "outside its tolerance (docs/ops.md). Exit status 0 if none is, 1 if one is, 3 if the "
        "device is the host itself, 4 if a fault was to be planted and never fired.\n\n"
        "Exit status 0 if clean, 1 if a root cause was found or a defect was seen (or a planted "
        "fault was missed, or a byte was wrong), 3 if it could not run, 4 if inconclusive, not "
        "reproduced, or not seen in fewer than 20 iterations.",
    .examples =
        "  greta audit                                      # the bundled model, 200 iterations\n"
        "  greta audit --model m.gguf --matrix B:audit:10 -- --max-tokens 32 --threads 4\n"
        "  greta audit --expect-fault \"illegal memory access\" --lang es --author \"A. Person\"\n"
        "  greta audit --inject rope-position@layer=2,step=3 --matrix B:audit:2\n"
        "  greta audit --resume artifacts/2026-11-15/20261115-093012-4f2a\n"
        "  greta audit --locked --artifacts out --baseline out/last -- --max-tokens 32\n"
        "  greta audit list                                 # the audits in ./artifacts\n"
        "  greta audit show latest\n"
        "  greta audit prune --keep 20 --older 30 --dry-run\n"
        "  greta audit --self-test --json\n"
        "  greta audit --self-test --faults overrun,underrun --device cuda:0\n"
        "  greta audit --transfers --copies 1000\n"
        "  greta audit --compare host --device cuda:0 -m m.gguf\n",
    .options = options,
    .option_count = COUNT_OF(options),
    .settings_bytes = sizeof(defaults),
    .defaults = &defaults,
    .run = run_audit,
};
