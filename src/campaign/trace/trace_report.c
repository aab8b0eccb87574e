/* trace_report.c - from recordings to verdicts and files. What is printed is in trace_print.c. */
#include "campaign/trace/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Recordings that say something; a process that only asked for the number of devices does not. */
static void collect(const struct trace *trace, struct trace_listed *listed)
{
    for (size_t i = 0; i < trace->process_count; i++) {
        const struct trace_process *process = &trace->processes[i];
        const struct analysis *analysis = process->analyzer ? analyzer_result(process->analyzer)
                                                            : NULL;
        if (!analysis || analysis->event_count == 0)
            continue;
        listed->from[listed->count] = process;
        listed->list[listed->count++] = analysis;
        listed->event_count += analysis->event_count;
    }
}

/* ---- The verdict ---------------------------------------------------------------------------- */

/* What a trace asks; the rest is for greta's own audits. A trace sees only a kernel's pointers:
 * small overruns and uses of freed memory inside kernels stay undecided, found or not. */
static bool is_asked(enum hypothesis hypothesis)
{
    switch (hypothesis) {
    case HYPOTHESIS_SIZE_MISMATCH:
    case HYPOTHESIS_MISSING_SYNC:
    case HYPOTHESIS_BAD_POINTER:
    case HYPOTHESIS_STAGING_REUSE:
    case HYPOTHESIS_OVERLAPPING_COPIES:
    case HYPOTHESIS_STALE_GRAPH:
    case HYPOTHESIS_UNINITIALISED_READ:
    case HYPOTHESIS_LEAK:
        return true;
    default:
        return false;
    }
}

/* A path the program does not take (no graph, no copy) is nothing to hold against it. */
static bool is_exercised(const struct trace_listed *listed, enum hypothesis hypothesis)
{
    for (size_t i = 0; i < listed->count; i++)
        if (listed->list[i]->coverage[hypothesis].total > 0)
            return true;
    return false;
}

static void decide(const struct trace *trace, const struct trace_listed *listed,
                   const enum self_test_state *self_test, struct audit_verdict *ret_verdict)
{
    struct verdict_input input = { .analyses = listed->list, .analysis_count = listed->count };
    bool found = false;
    memcpy(input.self_test, self_test, sizeof(input.self_test));
    for (size_t i = 0; i < HYPOTHESIS_COUNT; i++)
        input.not_asked[i] = !is_asked((enum hypothesis)i) ||
                             !is_exercised(listed, (enum hypothesis)i);
    for (size_t i = 0; i < listed->count; i++)
        found = found || listed->list[i]->finding_count > 0;
    /* A crash that nothing explains keeps everything open. */
    input.crash_count = trace->signal && !found ? 1 : 0;
    for (size_t i = 0; i < trace->process_count; i++)
        input.crash_count += trace->processes[i].missing[0] != '\0';
    input.crash_count += trace->unread;
    verdict_decide(&input, ret_verdict);
    /* Clean of what? Something must have been looked at. */
    bool checked = false;
    for (size_t i = 0; i < HYPOTHESIS_COUNT; i++)
        checked = checked || ret_verdict->hypotheses[i].verdict == VERDICT_REFUTED;
    if (ret_verdict->outcome == AUDIT_CLEAN && !checked)
        ret_verdict->outcome = AUDIT_INCONCLUSIVE;
}

/* ---- Callers, for the reports ---------------------------------------------------------------- */

struct callers {
    struct trace *trace;
    const struct trace_listed *listed;
};

static size_t stack_of(void *context, size_t analysis, uint32_t stack_index,
                       struct report_frame *ret_frames, size_t capacity)
{
    const struct callers *callers = context;
    return trace_stack(callers->trace, callers->listed->from[analysis], stack_index, ret_frames,
                       capacity);
}

static bool kernel_of(void *context, size_t analysis, uint32_t name_index, char *ret_name,
                      size_t name_bytes)
{
    const struct callers *callers = context;
    return trace_kernel(callers->listed->from[analysis], name_index, ret_name, name_bytes);
}

/* ---- Files ---------------------------------------------------------------------------------- */

/* Why nothing could be looked at. */
static enum trace_blindness blindness_of(const struct trace *trace,
                                         const struct trace_listed *listed)
{
    if (listed->event_count) {
        for (size_t i = 0; i < HYPOTHESIS_COUNT; i++)
            if (is_asked((enum hypothesis)i) && is_exercised(listed, (enum hypothesis)i))
                return TRACE_NOT_BLIND;
        return TRACE_BLIND_NO_MEMORY;
    }
    if (trace->note[0])
        return TRACE_BLIND_NOTE;
    if (trace->program_kind == TRACE_PROGRAM_CHANGES_USER)
        return TRACE_BLIND_OTHER_USER;
    bool preloaded = !trace->options->cupti || !trace->library_cuda[0];
    return preloaded && trace->program_kind == TRACE_PROGRAM_STATIC ? TRACE_BLIND_STATIC
                                                                    : TRACE_BLIND_NO_CALL;
}

/* The program itself was seen to end; for processes that it started, the recording says how. */
static struct run_ending ending_of(const struct trace *trace, const struct trace_process *process,
                                   const struct analysis *analysis)
{
    if (!process->rerun && strtol(process->name, NULL, 10) == trace->program_pid)
        return trace->ending;
    return analysis ? analysis->ending : (struct run_ending){ ENDING_UNKNOWN, 0 };
}

static struct report_row row_of(const struct trace *trace, const struct trace_process *process,
                                char label[96], char flight[128])
{
    const struct trace_figures *figures = &process->figures;
    snprintf(label, 96, "%s%s", process->name, process->rerun ? " (rerun)" : "");
    const char *slash = strrchr(process->path, '/');
    snprintf(flight, 128, "%s/%.100s", process->rerun ? "rerun" : "run",
             slash ? slash + 1 : process->path);
    const struct analysis *analysis = process->analyzer ? analyzer_result(process->analyzer) : NULL;
    return (struct report_row){
        .label = label,
        .mode = REPORT_AUDIT,
        .level = AUDIT_LOG,
        .planned = 1,
        .done = 1,
        .errors = !process->rerun && trace->exit_code ? 1 : 0,
        .crashed = !process->rerun && trace->signal != 0,
        .exit_code = trace->exit_code,
        .signal = trace->signal,
        .ending = ending_of(trace, process, analysis),
        .flight = flight,
        .missing = process->missing[0] ? process->missing : NULL,
        .analysis = analysis,
        .peak_bytes = figures->device_peak,
        .copy_out_count = figures->transfers[TRACE_TO_HOST].count,
        .copy_out_bytes = figures->transfers[TRACE_TO_HOST].bytes,
        .launch_count = figures->launches,
    };
}

static enum status write_stacks(struct trace *trace, const struct trace_listed *listed,
                                struct error *err)
{
    char path[FILES_PATH_BYTES];
    struct text text;
    text_init(&text);
    for (size_t i = 0; i < listed->count; i++)
        for (size_t j = 0; j < listed->list[i]->finding_count; j++)
            trace_print_finding(trace, listed->from[i], &listed->list[i]->findings[j], &text);
    enum status status = text.failed ? error_set(err, STATUS_NO_MEMORY, "no memory for findings")
                                     : files_join(path, err, trace->folder, "findings.txt");
    if (!status)
        status = files_write(path, text_get(&text), text.length, err);
    text_release(&text);
    return status;
}

/* What the reports say of each process. */
static void make_rows(const struct trace *trace, struct trace_listed *listed,
                      struct report_facts *facts)
{
    for (size_t i = 0; i < listed->count; i++)
        listed->rows[i] = row_of(trace, listed->from[i], listed->labels[i], listed->flights[i]);
    facts->rows = listed->rows;
    facts->row_count = listed->count;
    size_t chosen = facts->verdict.root_analysis >= 0 ? (size_t)facts->verdict.root_analysis : 0;
    facts->flight_path = listed->count ? listed->from[chosen]->path : NULL;
}

static enum status write_files(struct trace *trace, const struct trace_listed *listed,
                               const struct report_facts *facts, const struct text *table,
                               struct error *err)
{
    char path[FILES_PATH_BYTES];
    if (!trace->keep)
        return STATUS_OK;
    TRY(write_stacks(trace, listed, err));
    TRY(files_join(path, err, trace->folder, FILES_VERDICT_NAME));
    TRY(files_write(path, text_get(table), table->length, err));
    return report_write(facts, trace->folder, trace->options->language, err);
}

static struct report_program program_of(const struct trace *trace)
{
    struct text reason;
    text_init(&reason);
    bool part = trace_add_reason(trace, 0, REPORT_ENGLISH, &reason);
    text_release(&reason);
    return (struct report_program){ .ending = trace->ending,
                                    .exit_code = trace->exit_code,
                                    .signal = trace->signal,
                                    .looked_at = trace->blind != TRACE_NOT_BLIND
                                                     ? REPORT_LOOKED_AT_NOTHING
                                                 : part ? REPORT_LOOKED_AT_PART
                                                        : REPORT_LOOKED_AT_ALL,
                                    .add_reason = trace_add_reason,
                                    .context = trace };
}

enum status trace_report(struct trace *trace, struct trace_result *result, struct error *err)
{
    struct trace_listed *listed = calloc(1, sizeof(*listed));
    const struct trace_options *options = trace->options;
    if (!listed)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a report");
    struct report_facts facts = { .identity = { .id = trace->id,
                                                .date = trace->date,
                                                .author = options->author,
                                                .version = options->version,
                                                .commit = options->commit,
                                                .command = options->command,
                                                .device_kind = "foreign",
                                                .device_name = "seen by interposition",
                                                .device_driver = "" } };
    struct callers callers = { trace, listed };
    facts.callers = (struct report_callers){ stack_of, kernel_of, &callers };
    collect(trace, listed);
    trace->blind = blindness_of(trace, listed);
    const struct report_program program = program_of(trace);
    facts.program = &program;
    facts.analyses = listed->list;
    facts.analysis_count = listed->count;
    trace_self_test(trace->run, facts.self_test);
    facts.self_test_key = "trace";
    decide(trace, listed, facts.self_test, &facts.verdict);
    make_rows(trace, listed, &facts);
    trace_print(trace, listed, &facts.verdict, &result->table);
    enum status status = write_files(trace, listed, &facts, &result->table, err);
    if (!status) {
        result->outcome = facts.verdict.outcome;
        result->nothing_seen = trace->blind != TRACE_NOT_BLIND;
        report_summary_json(&facts, &result->json);
    }
    free(listed);
    return status;
}
