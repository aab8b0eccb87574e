/* audit_archive.c - see audit_archive.h. Texts of an archive come from its files and are shown
 * escaped. */
#include "cli/audit_archive.h"

#include "campaign/campaign.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *const actions[] = { "list", "show", "prune" };
enum action { ACTION_LIST, ACTION_SHOW, ACTION_PRUNE };

/* The files that people look for in an audit's folder, with a description of each. */
static const struct {
    const char *name, *what;
} files[] = {
    { "report.html", "the report" },
    { "report.en.md", "the report in English" },
    { "report.es.md", "the report in Spanish" },
    { "summary.json", "verdicts and findings, for scripts" },
    { "manifest.json", "what the evidence is bound to" },
    { "timeline.json", "opens in Perfetto" },
    { "findings.sarif", "findings, for code scanning" },
    { "junit.xml", "verdicts, for test reports" },
    { "run", "logs and recordings of the rows" },
};

struct request {
    const struct cli_invocation *invocation;
    const char *artifacts;
    const struct audit_archive_settings *settings;
    struct campaign_archive archive;
};

static bool find_action(const struct cli_invocation *invocation, enum action *ret)
{
    for (size_t i = 0; invocation->operand_count && i < COUNT_OF(actions); i++)
        if (strcmp(invocation->operands[0], actions[i]) == 0) {
            *ret = (enum action)i;
            return true;
        }
    return false;
}

bool audit_archive_is_asked(const struct cli_invocation *invocation)
{
    enum action unused;
    return find_action(invocation, &unused);
}

/* ---- One audit ------------------------------------------------------------------------------ */

/* The outcome of the audit, or why it has none. */
static const char *outcome_of(const struct campaign_archived *audit)
{
    return audit->state == CAMPAIGN_FINISHED ? audit_outcome_name(audit->outcome)
                                             : campaign_archived_state_name(audit->state);
}

static void emit_outside(struct emit *emit, const char *key, const char *text)
{
    emit_view(emit, key, text_view_of(text[0] || emit_is_json(emit) ? text : "-"));
}

/* The columns that list and prune show of each audit. */
static void emit_audit(struct emit *emit, const struct campaign_archived *audit)
{
    emit_text(emit, "id", audit->id);
    emit_text(emit, "date", audit->date);
    if (emit_is_json(emit)) {
        emit_text(emit, "state", campaign_archived_state_name(audit->state));
        emit_text(emit, "outcome",
                  audit->state == CAMPAIGN_FINISHED ? audit_outcome_name(audit->outcome) : "");
        emit_flag(emit, "last", audit->is_last);
        emit_count(emit, "process", audit->process);
        emit_outside(emit, "problem", audit->problem);
    } else {
        emit_textf(emit, "outcome", "%s%s", outcome_of(audit), audit->is_last ? " (last)" : "");
    }
    emit_outside(emit, "device", audit->device);
    emit_outside(emit, "model", audit->model);
    emit_bytes(emit, "size", audit->bytes);
}

static void emit_folder(struct emit *emit, const struct request *request,
                        const struct campaign_archived *audit)
{
    emit_textf(emit, "folder", "%s/%s/%s", request->artifacts, audit->day, audit->id);
}

static enum status finish(struct emit *emit, struct error *err)
{
    TRY(emit_finish(emit, stdout, err));
    return fflush(stdout) == 0 ? STATUS_OK : error_set(err, STATUS_IO, "cannot write the output");
}

static void warn_cut(const struct request *request)
{
    if (request->archive.cut)
        cli_warn(request->invocation, "%s: there are too many folders; some audits are not shown",
                 request->artifacts);
}

/* ---- list ----------------------------------------------------------------------------------- */

static enum status list(const struct request *request, struct emit *emit, struct error *err)
{
    const struct campaign_archive *archive = &request->archive;
    if (archive->count == 0 && !emit_is_json(emit)) {
        cli_warn(request->invocation, "%s: no audits there", request->artifacts);
        return STATUS_OK;
    }
    emit_list_begin(emit, "audits");
    for (size_t i = 0; i < archive->count; i++) {
        emit_object_begin(emit, NULL);
        emit_audit(emit, &archive->audits[i]);
        if (emit_is_json(emit))
            emit_folder(emit, request, &archive->audits[i]);
        emit_object_end(emit);
    }
    emit_list_end(emit);
    warn_cut(request);
    return finish(emit, err);
}

/* ---- show ----------------------------------------------------------------------------------- */

static void emit_files(struct emit *emit, const struct request *request,
                       const struct campaign_archived *audit)
{
    emit_list_begin(emit, "files");
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        struct text path;
        text_init(&path);
        text_addf(&path, "%s/%s/%s/%s", request->artifacts, audit->day, audit->id, files[i].name);
        if (!path.failed && access(text_get(&path), F_OK) == 0) {
            emit_object_begin(emit, NULL);
            emit_text(emit, "file", text_get(&path));
            emit_text(emit, "what", files[i].what);
            emit_object_end(emit);
        }
        text_release(&path);
    }
    emit_list_end(emit);
}

/* Lines as the audit printed them; what is not printable is escaped. */
static void print_verdict(const struct text *verdict, struct text *ret)
{
    const char *at = text_get(verdict), *end = at + verdict->length;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t length = stop ? (size_t)(stop - at) : (size_t)(end - at);
        text_add_printable(ret, (struct text_view){ at, length }, SIZE_MAX);
        text_add(ret, "\n");
        at += length + (stop != NULL);
    }
}

static enum status show(const struct request *request, struct emit *emit, struct error *err)
{
    const struct cli_invocation *invocation = request->invocation;
    const struct campaign_archived *audit;
    struct text verdict, shown;
    TRY(campaign_archive_find(&request->archive,
                              invocation->operand_count > 1 ? invocation->operands[1] : "latest",
                              &audit, err));
    text_init(&verdict);
    text_init(&shown);
    campaign_archive_verdict(request->artifacts, audit, &verdict);
    print_verdict(&verdict, &shown);
    emit_audit(emit, audit);
    emit_folder(emit, request, audit);
    if (audit->root_cause[0] || emit_is_json(emit))
        emit_outside(emit, "root_cause", audit->root_cause);
    if (audit->problem[0] && !emit_is_json(emit))
        emit_outside(emit, "problem", audit->problem);
    if (audit->state == CAMPAIGN_UNFINISHED)
        emit_note(emit, "next", "greta audit --resume with that folder finishes it");
    emit_files(emit, request, audit);
    if (emit_is_json(emit))
        emit_text(emit, "verdict", text_get(&shown));
    enum status status = verdict.failed || shown.failed
                             ? error_set(err, STATUS_NO_MEMORY, "no memory for the verdict")
                             : finish(emit, err);
    if (!status && !emit_is_json(emit) && shown.length)
        printf("\n%s", text_get(&shown));
    text_release(&verdict);
    text_release(&shown);
    return status;
}

/* ---- prune ---------------------------------------------------------------------------------- */

static enum status check_prune(const struct audit_archive_settings *settings, struct error *err)
{
    if (settings->keep != CAMPAIGN_KEEP_ALL || settings->older_days || settings->unfinished)
        return STATUS_OK;
    return error_set(
        err, STATUS_USAGE,
        "prune: expected --keep N, --older DAYS or --unfinished to say what to remove, found none");
}

struct pruned {
    size_t count, unfinished, failed;
    uint64_t bytes;
    struct error first; /* the first failure */
};

static void prune_one(const struct request *request, struct emit *emit,
                      const struct campaign_archived *audit, struct pruned *pruned)
{
    struct error err;
    if (!request->settings->dry_run && campaign_archive_remove(request->artifacts, audit, &err)) {
        if (!pruned->failed++)
            pruned->first = err;
        return;
    }
    emit_object_begin(emit, NULL);
    emit_audit(emit, audit);
    emit_object_end(emit);
    pruned->count++;
    pruned->bytes += audit->bytes;
}

static void emit_pruned(struct emit *emit, const struct request *request,
                        const struct pruned *pruned)
{
    char size[TEXT_BYTES_CAPACITY];
    if (emit_is_json(emit)) {
        emit_flag(emit, "dry_run", request->settings->dry_run);
        emit_count(emit, "removed_count", pruned->count);
        emit_count(emit, "freed_bytes", pruned->bytes);
        return;
    }
    fprintf(stderr, "%s %zu audit%s, %s %s\n",
            request->settings->dry_run ? "would remove" : "removed", pruned->count,
            pruned->count == 1 ? "" : "s", request->settings->dry_run ? "freeing" : "freed",
            text_bytes(pruned->bytes, size));
    if (pruned->unfinished)
        fprintf(stderr,
                "%zu unfinished audit%s: --resume finishes one, --unfinished removes them\n",
                pruned->unfinished, pruned->unfinished == 1 ? " stays" : "s stay");
}

static enum status prune(const struct request *request, struct emit *emit, struct error *err)
{
    const struct campaign_archive *archive = &request->archive;
    const struct campaign_prune wish = { .keep = request->settings->keep,
                                         .older_days = request->settings->older_days,
                                         .unfinished = request->settings->unfinished };
    struct pruned pruned = { 0 };
    int64_t now = (int64_t)time(NULL);
    emit_list_begin(emit,
                    request->settings->dry_run && !emit_is_json(emit) ? "would_remove" : "removed");
    for (size_t i = 0; i < archive->count && !cli_is_interrupted(); i++) {
        if (campaign_prune_wants(&wish, archive, i, now))
            prune_one(request, emit, &archive->audits[i], &pruned);
        else
            pruned.unfinished += archive->audits[i].state == CAMPAIGN_UNFINISHED;
    }
    emit_list_end(emit);
    emit_pruned(emit, request, &pruned);
    warn_cut(request);
    if (pruned.count || emit_is_json(emit))
        TRY(finish(emit, err));
    if (cli_is_interrupted())
        return error_set(err, STATUS_INTERRUPTED, "interrupted");
    if (!pruned.failed)
        return STATUS_OK;
    *err = pruned.first;
    return pruned.failed > 1
               ? error_wrap(err, "%zu audits could not be removed; the first", pruned.failed)
               : err->status;
}

/* ---- All of it ------------------------------------------------------------------------------ */

static enum status check_line(const struct request *request, enum action action, struct error *err)
{
    const struct cli_invocation *invocation = request->invocation;
    const struct audit_archive_settings *settings = request->settings;
    size_t most = action == ACTION_SHOW ? 2 : 1;
    if (invocation->operand_count > most)
        return error_set(err, STATUS_USAGE, "%s: expected nothing more, found '%s'",
                         actions[action], invocation->operands[most]);
    if (action == ACTION_PRUNE)
        return check_prune(settings, err);
    if (settings->keep != CAMPAIGN_KEEP_ALL || settings->older_days || settings->unfinished ||
        settings->dry_run)
        return error_set(err, STATUS_USAGE,
                         "--keep, --older, --unfinished and --dry-run are for prune");
    return STATUS_OK;
}

enum status audit_archive_run(const struct cli_invocation *invocation, const char *artifacts,
                              bool json, const struct audit_archive_settings *settings,
                              struct error *err)
{
    static enum status (*const run[])(const struct request *, struct emit *, struct error *) = {
        [ACTION_LIST] = list, [ACTION_SHOW] = show, [ACTION_PRUNE] = prune
    };
    struct request request = { invocation, artifacts, settings, { 0 } };
    struct emit *emit = NULL;
    enum action action = ACTION_LIST;
    if (!find_action(invocation, &action))
        return error_set(err, STATUS_USAGE, "expected list, show or prune");
    TRY(check_line(&request, action, err));
    cli_catch_interrupts();
    TRY(campaign_archive_open(artifacts, &request.archive, err));
    enum status status = emit_create(json ? EMIT_JSON : EMIT_TEXT, &emit, err);
    if (!status)
        status = run[action](&request, emit, err);
    emit_destroy(emit);
    campaign_archive_release(&request.archive);
    return status;
}
