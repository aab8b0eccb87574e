/* audit.c - an audit from its beginning (audit_begin.c) to its verdict: self-test, rows, transfers,
 * interventions, report. After every row the folder holds a valid record of what is known so far.
 */
#include "campaign/audit.h"

#include "campaign/archive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Copies of each path that every audit makes, hashed at both ends: one of each size. */
#define QUICK_COPIES 16u

void campaign_result_init(struct campaign_result *result)
{
    *result = (struct campaign_result){ .outcome = AUDIT_INCONCLUSIVE };
    text_init(&result->table);
    text_init(&result->json);
}

void campaign_result_release(struct campaign_result *result)
{
    text_release(&result->table);
    text_release(&result->json);
}

/* ---- Parts ---------------------------------------------------------------------------------- */

static enum status ensure_self_test(struct audit *audit, struct error *err)
{
    const struct campaign_options *options = &audit->options;
    audit->self_test_known = self_test_load(options, &audit->identity, &audit->test);
    if (!audit->self_test_known && options->no_self_test)
        return STATUS_OK;
    if (audit->self_test_known) {
        memcpy(audit->self_test, audit->test.states, sizeof(audit->self_test));
        return STATUS_OK;
    }
    audit_note(audit, WORD_NOTE_SELF_TEST, "");
    TRY(self_test_run(options, &audit->identity, &audit->test, err));
    self_test_save(options, &audit->identity, &audit->test);
    memcpy(audit->self_test, audit->test.states, sizeof(audit->self_test));
    audit->self_test_known = true;
    return STATUS_OK;
}

static enum status run_rows(struct audit *audit, struct campaign_result *result, struct error *err)
{
    for (size_t i = 0; i < audit->matrix.count; i++) {
        if (audit->rows[i].finished)
            continue;
        TRY(audit_run_row(audit, &audit->rows[i], err));
        TRY(audit_save_state(audit, false, err));
        audit->partial = true; /* until all is there */
        TRY(audit_report(audit, result, err));
    }
    return STATUS_OK;
}

/* The row to find out more about: the first that went wrong while it was recorded. One that did
 * nothing wrong until it was ended from outside has no cause to search for. */
static const struct audit_row *find_faulty(const struct audit *audit)
{
    const struct audit_row *faulty = NULL;
    for (size_t i = 0; i < audit->matrix.count; i++) {
        const struct audit_row *row = &audit->rows[i];
        if (audit_row_is_faulty(row) && !audit_row_is_cut_short(row) &&
            (!faulty || (!faulty->analyzer && row->analyzer)))
            faulty = row;
    }
    return faulty;
}

/* Several launches may have made the fault: which of them? A launch read a bad index: did a copy
 * bring it? */
static enum status narrow(struct audit *audit, const struct audit_row *row, const struct job *base,
                          struct error *err)
{
    const struct finding *several = row->analyzer ? narrow_find(analyzer_result(row->analyzer))
                                                  : NULL;
    const struct finding *index = row->analyzer ? narrow_find_index(analyzer_result(row->analyzer))
                                                : NULL;
    struct interventions *made = &audit->interventions;
    struct job job = *base;
    if (!several && !index)
        return STATUS_OK;
    /* As far as the row got, where it comes again at all. */
    if (row->outcome.done && job.iterations > row->outcome.done)
        job.iterations = row->outcome.done;
    TRY((several ? narrow_down : narrow_copies)(&audit->options, &audit->setup, &job,
                                                several ? several : index, &audit->narrowing,
                                                &made->made[made->count], err));
    made->count++;
    return STATUS_OK;
}

/* A defect of which only the symptom is known: what made it is searched for. */
static enum status search_cause(struct audit *audit, const struct audit_row *row, struct error *err)
{
    enum hypothesis hypothesis;
    uint64_t iteration;
    if (!row || !row->analyzer || audit->options.no_search ||
        !search_is_wanted(analyzer_result(row->analyzer), &hypothesis, &iteration))
        return STATUS_OK;
    struct job base = audit_row_job(audit, &row->settings);
    return search_run(&audit->options, &audit->setup, &base, hypothesis, iteration, &audit->search,
                      err);
}

static enum status find_out_more(struct audit *audit, struct error *err)
{
    const struct campaign_options *options = &audit->options;
    const struct audit_row *row = find_faulty(audit);
    TRY(search_cause(audit, row, err));
    if (row && !options->no_interventions) {
        struct job base = audit_row_job(audit, &row->settings);
        TRY(narrow(audit, row, &base, err));
        const struct analyzer *analyzer = audit->narrowing.analyzer ? audit->narrowing.analyzer
                                                                    : row->analyzer;
        const struct analysis *analysis = analyzer ? analyzer_result(analyzer) : NULL;
        TRY(intervene(
            options, &audit->setup, &base,
            analysis && analysis->root >= 0     ? analysis->findings[analysis->root].hypothesis
            : analysis && analysis->defect >= 0 ? analysis->findings[analysis->defect].hypothesis
                                                : HYPOTHESIS_COUNT,
            &audit->interventions, err));
    }
    if (options->ablate_d2h) {
        /* The job of the row that went wrong, or of the last row, which is usually under stress. */
        struct job base = audit_row_job(audit, row ? &row->settings
                                                   : &audit->matrix.rows[audit->matrix.count - 1]);
        if (base.level == AUDIT_OFF)
            base.level = options->level;
        TRY(ablate_d2h(options, &audit->setup, &base, &audit->interventions, err));
    }
    return STATUS_OK;
}

/* ---- All of it ------------------------------------------------------------------------------ */

/* The verdict stands without it: where it cannot be made, that is said. */
static void point_last(const struct audit *audit)
{
    struct error err;
    bool done;
    const struct campaign_watcher *watcher = &audit->options.watcher;
    if (!archive_point_last(audit->folder, audit->id, &done, &err) || !watcher->note)
        return;
    char line[sizeof(err.text) + 8];
    snprintf(line, sizeof(line), "last: %s", err.text);
    watcher->note(watcher->context, line);
}

static enum status run_parts(struct audit *audit, struct campaign_result *result, struct error *err)
{
    audit->partial = true;
    TRY(audit_report(audit, result, err)); /* what is asked for, before anything is known */
    TRY(ensure_self_test(audit, err));
    TRY(run_rows(audit, result, err));
    TRY(transfers_run(&audit->options, &audit->setup, &audit->model, QUICK_COPIES, true,
                      &audit->transfers, err));
    if (audit->options.compare_host)
        TRY(compare_host_run(&audit->options, &audit->setup, &audit->model, &audit->compare, err));
    TRY(find_out_more(audit, err));
    audit->partial = false;
    TRY(audit_report(audit, result, err));
    TRY(audit_save_state(audit, true, err));
    point_last(audit);
    return STATUS_OK;
}

static void release(struct audit *audit)
{
    for (size_t i = 0; i < MATRIX_ROW_LIMIT; i++)
        audit_row_release(&audit->rows[i]);
    self_test_release(&audit->test);
    narrowing_release(&audit->narrowing);
    compare_host_release(&audit->compare);
    search_release(&audit->search);
    transfers_release(&audit->transfers);
    comparison_release(&audit->comparison);
    history_release(&audit->history);
    audit_model_close(&audit->model);
    device_lock_release(&audit->lock);
    folder_lock_release(&audit->folder_lock);
    free(audit->baseline);
    free(audit->environment);
    free(audit->recorded);
    job_release(&audit->state_job);
    json_decref(audit->state);
    free(audit);
}

enum status campaign_audit(const struct campaign_options *options, struct campaign_result *result,
                           struct error *err)
{
    struct audit *audit = calloc(1, sizeof(*audit));
    if (!audit)
        return error_set(err, STATUS_NO_MEMORY, "no memory for an audit");
    audit->options = *options;
    audit->lock.file = -1;
    audit->folder_lock = (struct folder_lock){ -1, -1 };
    enum status status = audit_begin(audit, err);
    if (!status)
        status = run_parts(audit, result, err);
    if (audit->folder[0])
        snprintf(result->folder, sizeof(result->folder), "%s", audit->folder);
    release(audit);
    return status;
}
