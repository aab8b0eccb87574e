/* audit_facts.c - what an audit knows, as the facts of a report; its verdict; its files. */
#include "campaign/audit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Analyses of all rows and of the transfers, in the order the verdict's indices mean. */
struct analyses {
    const struct analysis *list[MATRIX_ROW_LIMIT + TRANSFERS_CHILD_LIMIT + 2];
    size_t count;
    struct analysis narrowed;                         /* what it found, and no more */
    struct analysis transfers[TRANSFERS_CHILD_LIMIT]; /* with what they vouch for, and no more */
    struct analysis search;                           /* with what it found, and no more */
    struct analysis unrecorded; /* stands for rows whose recording is not there */
};

static const char *or_null(const char *text)
{
    return text[0] ? text : NULL;
}

/* ---- The verdict ---------------------------------------------------------------------------- */

/* The symptom that was to occur did: an error says so. */
static bool has_symptom(const struct audit_row *row, const char *text)
{
    const json_t *errors = row->outcome.errors_seen;
    for (size_t i = 0; i < json_array_size(errors); i++) {
        const char *error = json_string_value(json_array_get(errors, i));
        if (error && strstr(error, text))
            return true;
    }
    return strstr(row->outcome.failed, text) != NULL;
}

/* Copies say nothing about the workload but that copies are right: what their children looked at
 * otherwise must not make up for a row that looked at less. */
static struct analysis only_copies(const struct analysis *analysis)
{
    struct analysis masked = *analysis;
    for (int i = 0; i < HYPOTHESIS_COUNT; i++)
        if (i != HYPOTHESIS_SILENT_CORRUPTION && i != HYPOTHESIS_RUNTIME_DEFECT)
            masked.coverage[i] = (struct hypothesis_coverage){ 0 };
    return masked;
}

/* A row that was to be recorded and was not: a verdict must not be made of the others alone. */
static bool has_unrecorded(const struct audit *audit, bool *ret_any_recorded)
{
    bool unrecorded = false;
    *ret_any_recorded = false;
    for (size_t i = 0; i < audit->matrix.count; i++) {
        const struct audit_row *row = &audit->rows[i];
        *ret_any_recorded = *ret_any_recorded || row->analyzer;
        unrecorded = unrecorded ||
                     (row->finished && row->settings.mode != REPORT_BARE && !row->analyzer);
    }
    return unrecorded;
}

static void collect(const struct audit *audit, struct analyses *analyses)
{
    for (size_t i = 0; i < audit->matrix.count; i++)
        if (audit->rows[i].analyzer)
            analyses->list[analyses->count++] = analyzer_result(audit->rows[i].analyzer);
    for (size_t i = 0; i < audit->transfers.analyzer_count; i++) {
        analyses->transfers[i] = only_copies(analyzer_result(audit->transfers.analyzers[i]));
        analyses->list[analyses->count++] = &analyses->transfers[i];
    }
    if (audit->narrowing.analyzer) {
        analyses->narrowed = *analyzer_result(audit->narrowing.analyzer);
        memset(analyses->narrowed.coverage, 0, sizeof(analyses->narrowed.coverage));
        analyses->list[analyses->count++] = &analyses->narrowed;
    }
    if (audit->search.analyzer) {
        analyses->search = *analyzer_result(audit->search.analyzer);
        memset(analyses->search.coverage, 0, sizeof(analyses->search.coverage));
        analyses->list[analyses->count++] = &analyses->search;
    }
    analyses->unrecorded = (struct analysis){
        .level = audit->options.level, .lost_count = 1, .closed = true, .root = -1, .defect = -1
    };
}

static uint64_t count_all(const struct audit *audit, bool only_recorded)
{
    uint64_t done = 0;
    for (size_t i = 0; i < audit->matrix.count; i++)
        if (audit->rows[i].analyzer || !only_recorded)
            done += audit->rows[i].outcome.done;
    return done;
}

static bool is_unfired(const struct audit_row *row)
{
    return row->outcome.planted.reported && !row->outcome.planted.planted;
}

/* A process that another one ended says nothing of the workload. */
static bool fails_by_itself(const struct audit_row *row)
{
    switch (audit_row_ending(row).kind) {
    case ENDING_ABORTED:
    case ENDING_HUNG:
    case ENDING_DEVICE_LOST:
        return true;
    case ENDING_EXITED:
        return row->outcome.ended;
    default:
        return false;
    }
}

/* The search came nearer than the row: it knows the last op that agreed, and the next. */
static void show_interval(const struct audit *audit, const struct analyses *analyses,
                          struct audit_verdict *verdict)
{
    const struct analysis *found = &analyses->search;
    enum hypothesis hypothesis = audit->search.hypothesis;
    int32_t index = (int32_t)analyses->count - 1; /* it was collected last */
    if (!audit->search.analyzer || audit->search.record.result != REPORT_SEARCH_INTERVAL ||
        verdict->outcome != AUDIT_DEFECT_SEEN || verdict->seen_finding < 0 || found->defect < 0 ||
        found->findings[found->defect].hypothesis != hypothesis ||
        analyses->list[verdict->seen_analysis]->findings[verdict->seen_finding].hypothesis !=
            hypothesis)
        return;
    verdict->seen_analysis = verdict->hypotheses[hypothesis].analysis = index;
    verdict->seen_finding = verdict->hypotheses[hypothesis].finding = found->defect;
}

static void decide(const struct audit *audit, const struct analyses *analyses,
                   struct audit_verdict *ret_verdict)
{
    const struct analysis *list[COUNT_OF(analyses->list) + 1];
    size_t count = analyses->count;
    memcpy(list, analyses->list, count * sizeof(*list));
    bool any_recorded, unrecorded = has_unrecorded(audit, &any_recorded);
    if (unrecorded)
        list[count++] = &analyses->unrecorded; /* at the end: indices stay those of the facts */
    struct verdict_input input = { .analyses = list,
                                   .analysis_count = count,
                                   .nearest = audit->narrowing.is_copy ? &analyses->narrowed : NULL,
                                   .flips = audit->interventions.flips,
                                   .flip_count = audit->interventions.flip_count,
                                   .total_count = count_all(audit, false),
                                   .recorded_count = count_all(audit, true),
                                   .none_recorded = !unrecorded && !any_recorded,
                                   .fault_expected = audit->options.expect_fault != NULL };
    memcpy(input.self_test, audit->self_test, sizeof(input.self_test));
    /* greta's own device gives every buffer back when it is closed. */
    input.excluded[HYPOTHESIS_LEAK] = true;
    input.excluded_by[HYPOTHESIS_LEAK] = "device-close";
    for (size_t i = 0; i < audit->matrix.count; i++) {
        const struct audit_row *row = &audit->rows[i];
        const struct analysis *analysis = row->analyzer ? analyzer_result(row->analyzer) : NULL;
        if (!row->finished)
            continue;
        if (audit->options.expect_fault && has_symptom(row, audit->options.expect_fault))
            input.fault_occurred = true;
        input.unfired_count += is_unfired(row);
        input.fired_count += row->outcome.planted.planted;
        if (audit_row_is_faulty(row) && !(analysis && analysis->finding_count)) {
            bool by_itself = fails_by_itself(row);
            input.crash_count += !by_itself;
            input.failure_count += by_itself;
        }
    }
    input.crash_count += audit->transfers.failed;
    verdict_decide(&input, ret_verdict);
    show_interval(audit, analyses, ret_verdict);
}

/* ---- Facts ---------------------------------------------------------------------------------- */

/* What the row's verdict must not be taken to rest on; NULL: nothing is missing. */
static const char *missing_of(const struct audit_row *row)
{
    if (row->outcome.missing[0])
        return row->outcome.missing;
    if (is_unfired(row))
        return "no call matched the fault of --inject: the fault was never planted";
    return or_null(row->analysis_missing);
}

static struct report_row row_facts(const struct audit *audit, const struct audit_row *row)
{
    const struct child_outcome *outcome = &row->outcome;
    struct job job = audit_row_job(audit, &row->settings);
    const char *error = outcome->error[0]    ? outcome->error
                        : outcome->failed[0] ? outcome->failed
                                             : NULL;
    return (struct report_row){
        .label = row->settings.label,
        .mode = row->settings.mode,
        .level = job.level,
        .planned = row->settings.iterations,
        .done = outcome->done,
        .errors = outcome->errors,
        .crashed = row->finished && !outcome->ended && !outcome->hung && !outcome->interrupted,
        .hung = outcome->hung,
        .interrupted = !row->finished,
        .ending = row->finished ? audit_row_ending(row) : (struct run_ending){ ENDING_UNKNOWN, 0 },
        .exit_code = outcome->exit_code,
        .signal = outcome->hung         ? 0
                  : outcome->stopped_by ? outcome->stopped_by
                                        : outcome->signal,
        .error = error,
        .log = row->finished ? row->log : NULL,
        .flight = or_null(row->flight),
        .log_sha256 = or_null(row->log_sha256),
        .flight_sha256 = or_null(row->flight_sha256),
        .missing = missing_of(row),
        .fault = is_unfired(row)                ? REPORT_FAULT_UNFIRED
                 : row->outcome.planted.planted ? REPORT_FAULT_PLANTED
                                                : REPORT_FAULT_NONE,
        .parameters = row->parameters,
        .analysis = row->analyzer ? analyzer_result(row->analyzer) : NULL,
        .latencies_ms = outcome->latencies_ms,
        .latency_count = outcome->latency_count,
        .tokens_per_second = row->tokens_per_second,
        .peak_bytes = outcome->peak_bytes,
        .copy_out_count = outcome->copies_out,
        .copy_out_bytes = outcome->copy_out_bytes,
        .launch_count = outcome->launches,
    };
}

static struct report_identity identity_facts(const struct audit *audit)
{
    const struct campaign_options *options = &audit->options;
    return (struct report_identity){
        .id = audit->id,
        .date = audit->date,
        .author = options->author,
        .version = options->version,
        .commit = options->commit,
        .command = options->command,
        .binary_sha256 = audit->identity.binary_sha256,
        .model_sha256 = or_null(audit->model.sha256),
        .model_path = options->model,
        .model_name = options->model ? NULL : "synthetic (tiny, seed 1)",
        .workload_sha256 = or_null(audit->workload),
        .device_kind = audit->identity.device.kind,
        .device_name = audit->identity.device.name,
        .device_driver = audit->identity.device.driver,
        .device_memory_bytes = audit->identity.device.memory_bytes,
        .seed = options->seed,
        .environment = audit->recorded,
        .environment_count = audit->recorded_count,
        .locked = options->locked,
    };
}

/* The recording the timeline is drawn of: the one the root cause is in, else the first row's. */
static const char *choose_flight(const struct audit *audit, const struct audit_verdict *verdict,
                                 const struct analyses *analyses, char path[FILES_PATH_BYTES])
{
    const struct audit_row *chosen = NULL;
    struct error unused;
    if (verdict->root_analysis >= 0 &&
        analyses->list[verdict->root_analysis] == &analyses->narrowed)
        return files_join(path, &unused, audit->folder, "%s", audit->narrowing.flight) ? NULL
                                                                                       : path;
    for (size_t i = 0; i < audit->matrix.count; i++) {
        const struct audit_row *row = &audit->rows[i];
        if (!row->analyzer)
            continue;
        bool is_root = verdict->root_analysis >= 0 &&
                       analyses->list[verdict->root_analysis] == analyzer_result(row->analyzer);
        if (!chosen || is_root)
            chosen = row;
    }
    if (!chosen || files_join(path, &unused, audit->folder, "%s", chosen->flight))
        return NULL;
    return path;
}

/* The verdicts as they are printed, for greta audit show. */
static enum status write_verdict(const struct audit *audit, const struct report_facts *facts,
                                 struct campaign_result *result, struct error *err)
{
    char path[FILES_PATH_BYTES];
    text_clear(&result->table);
    report_verdict_table(facts, audit->options.language, &result->table);
    TRY(files_join(path, err, audit->folder, FILES_VERDICT_NAME));
    return files_write(path, text_get(&result->table), result->table.length, err);
}

static enum status write_all(struct audit *audit, struct report_facts *facts,
                             struct campaign_result *result, struct error *err)
{
    if (audit->comparison.open && !facts->partial)
        TRY(comparison_make(&audit->comparison, facts, err));
    if (!facts->partial)
        TRY(write_verdict(audit, facts, result, err));
    TRY(report_write(facts, audit->folder, audit->options.language, err));
    result->outcome = facts->verdict.outcome;
    snprintf(result->folder, sizeof(result->folder), "%s", audit->folder);
    if (facts->partial)
        return STATUS_OK;
    text_clear(&result->json);
    report_summary_json(facts, &result->json);
    return STATUS_OK;
}

enum status audit_report(struct audit *audit, struct campaign_result *result, struct error *err)
{
    struct report_row rows[MATRIX_ROW_LIMIT];
    struct analyses analyses = { .count = 0 };
    char flight[FILES_PATH_BYTES];
    collect(audit, &analyses);
    for (size_t i = 0; i < audit->matrix.count; i++)
        rows[i] = row_facts(audit, &audit->rows[i]);
    struct report_search search = { audit->search.hypothesis, audit->search.record.result,
                                    audit->search.record.steps, audit->search.record.count };
    struct report_facts facts = {
        .identity = identity_facts(audit),
        .analyses = analyses.list,
        .analysis_count = analyses.count,
        .expected_fault = audit->options.expect_fault,
        .inject = audit->options.inject,
        .rows = rows,
        .row_count = audit->matrix.count,
        .interventions = audit->interventions.made,
        .intervention_count = audit->interventions.count,
        .search = audit->search.made ? &search : NULL,
        .compare = audit->compare.lines ? &audit->compare.report : NULL,
        .ablations = audit->interventions.ablations,
        .ablation_count = audit->interventions.ablation_count,
        .planted = audit->test.planted,
        .planted_count = audit->test.planted_count,
        .self_test_key = audit->self_test_known ? audit->identity.key : NULL,
        .transfers = audit->transfers.paths,
        .transfer_count = audit->transfers.count,
        .earlier = audit->history.earlier,
        .earlier_count = audit->history.earlier ? audit->history.count : 0,
        .partial = audit->partial,
    };
    memcpy(facts.self_test, audit->self_test, sizeof(facts.self_test));
    decide(audit, &analyses, &facts.verdict);
    /* An op that gives another result than the host from the same inputs is what is wrong. For a
     * matmul it may also be the op that packed its input. */
    if (facts.compare && facts.compare->first && facts.verdict.outcome != AUDIT_ROOT_CAUSE)
        facts.verdict.outcome = report_compare_is_ambiguous(facts.compare->first)
                                    ? AUDIT_DEFECT_SEEN
                                    : AUDIT_ROOT_CAUSE;
    facts.flight_path = choose_flight(audit, &facts.verdict, &analyses, flight);
    return write_all(audit, &facts, result, err);
}
