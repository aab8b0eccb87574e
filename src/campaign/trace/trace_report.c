/* trace_report.c - from recordings to verdicts, words and files. */
#include "campaign/trace/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Findings shown in the terminal; the artifacts have them all. */
#define SHOWN_LIMIT 24u

struct listed {
    const struct analysis *list[TRACE_PROCESS_LIMIT];
    const struct trace_process *from[TRACE_PROCESS_LIMIT];
    struct report_row rows[TRACE_PROCESS_LIMIT];
    char labels[TRACE_PROCESS_LIMIT][96], flights[TRACE_PROCESS_LIMIT][128];
    size_t count;
    uint64_t event_count;
};

/* Recordings that say something; a process that only asked for the number of devices does not. */
static void collect(const struct trace *trace, struct listed *listed)
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

/* What a trace asks; the rest is for greta's own audits. Of kernels nothing is seen but pointers:
 * small overruns and uses of freed memory inside them stay undecided, found or not. */
static bool is_asked(enum hypothesis hypothesis)
{
    switch (hypothesis) {
    case HYPOTHESIS_SIZE_MISMATCH:
    case HYPOTHESIS_MISSING_SYNC:
    case HYPOTHESIS_BAD_POINTER:
    case HYPOTHESIS_STAGING_REUSE:
    case HYPOTHESIS_OVERLAPPING_COPIES:
    case HYPOTHESIS_STALE_GRAPH:
    case HYPOTHESIS_LEAK:
        return true;
    default:
        return false;
    }
}

/* A path the program does not take (no graph, no copy) is nothing to hold against it. */
static bool is_exercised(const struct listed *listed, enum hypothesis hypothesis)
{
    for (size_t i = 0; i < listed->count; i++)
        if (listed->list[i]->coverage[hypothesis].total > 0)
            return true;
    return false;
}

static void decide(const struct trace *trace, const struct listed *listed,
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

/* ---- The terminal --------------------------------------------------------------------------- */

static void add_side(struct trace *trace, const struct trace_process *process, const char *title,
                     const struct analyze_place *place, struct text *text)
{
    struct report_frame frames[REPORT_FRAME_LIMIT];
    char name[512];
    if (!place->event_id || (!place->stack_index && !place->name_index))
        return;
    bool kernel = place->name_index && trace_kernel(process, place->name_index, name, sizeof(name));
    text_addf(text, "      %s ", title);
    text_add_printable(text, text_view_of(kernel ? name : place->op), 400);
    text_add(text, ", called by\n");
    size_t count = trace_stack(trace, process, place->stack_index, frames, COUNT_OF(frames));
    for (size_t i = 0; i < count; i++) {
        bool known = frames[i].function[0] != '\0';
        text_add(text, "          ");
        text_add_printable(text, text_view_of(known ? frames[i].function : frames[i].file), 200);
        text_addf(text, "+0x%" PRIx64, frames[i].offset);
        if (known) {
            text_add(text, " (");
            text_add_printable(text, text_view_of(frames[i].file), 200);
            text_add(text, ")");
        }
        if (frames[i].line) {
            text_add(text, ", ");
            text_add_printable(text, text_view_of(frames[i].source), 200);
            text_addf(text, ":%" PRIu32, frames[i].line);
        }
        text_add(text, "\n");
    }
}

static bool is_sure(const struct finding *finding)
{
    return finding->certainty == FINDING_DIRECT && finding->candidate_count <= 1;
}

static void add_finding(struct trace *trace, const struct trace_process *process,
                        const struct finding *finding, struct text *text)
{
    text_addf(text, "  %s %s: ", is_sure(finding) ? "CONFIRMED" : "possible",
              hypothesis_info(finding->hypothesis)->slug);
    finding_describe(finding, trace->options->language, text);
    text_add(text, "\n");
    add_side(trace, process, "-", &finding->cause, text);
    add_side(trace, process, "other side:", &finding->other, text);
    add_side(trace, process, "seen at:", &finding->seen, text);
}

/* What is certain first, then what ended the program. */
static int class_of(const struct finding *finding)
{
    if (is_sure(finding))
        return 0;
    return finding->hypothesis == HYPOTHESIS_KERNEL_FAULT ? 1 : 2;
}

static void add_findings(struct trace *trace, const struct listed *listed, struct text *text)
{
    size_t shown = 0, count = 0;
    for (int class = 0; class < 3; class ++)
        for (size_t i = 0; i < listed->count; i++)
            for (size_t j = 0; j < listed->list[i]->finding_count; j++) {
                const struct finding *finding = &listed->list[i]->findings[j];
                if (class_of(finding) != class)
                    continue;
                if (count++ == 0)
                    text_add(text, "findings\n");
                if (shown < SHOWN_LIMIT) {
                    add_finding(trace, listed->from[i], finding, text);
                    shown++;
                }
            }
    if (count > shown)
        text_addf(text, "  and %zu more; --artifacts keeps them all\n", count - shown);
}

/* Memory that caching allocators keep is one piece to us. */
static void add_caches(const struct trace *trace, struct text *text)
{
    uint64_t count = 0;
    for (size_t i = 0; i < trace->process_count; i++) {
        const struct trace_process *process = &trace->processes[i];
        for (size_t j = 0; process->reader && j < flight_allocation_count(process->reader); j++) {
            const struct flight_allocation *one = flight_allocation_at(process->reader, j);
            uint64_t id = one->created_id;
            struct event event;
            if (flight_next(process->reader, &id, &event) && event.id == one->created_id)
                count += trace_is_cached((void *)(uintptr_t)process, event.stack_index);
        }
    }
    if (count)
        text_addf(text,
                  "  %" PRIu64 " allocations belong to a caching allocator or a library: what it "
                  "cuts out of them is not seen, so neither are overruns and uses after free "
                  "inside\n",
                  count);
}

static void add_overhead(const struct trace *trace, struct text *text)
{
    uint64_t ns = 0, count = 0, lost = 0, kept = 0;
    for (size_t i = 0; i < trace->process_count; i++) {
        const struct trace_process *process = &trace->processes[i];
        if (process->rerun)
            continue;
        ns += process->observed_ns;
        count += process->observed_count;
        if (process->analyzer) {
            const struct analysis *analysis = analyzer_result(process->analyzer);
            kept += analysis->event_count;
            lost += analysis->lost_count + analysis->dropped_count + analysis->damaged_count;
        }
    }
    double seconds = (double)ns / 1e9, wall = (double)trace->wall_ns / 1e9;
    text_addf(text,
              "  %" PRIu64 " calls recorded; observing took %.3f s of %.3f s (%.1f %%), without "
              "what the runtime's callbacks cost\n",
              kept, seconds, wall, wall > 0 ? 100 * seconds / wall : 0.0);
    if (lost)
        text_addf(text,
                  "  %" PRIu64 " records were lost before they were analysed: --records gives them "
                  "more room\n",
                  lost);
    (void)count;
}

static void add_end(const struct trace *trace, struct text *text)
{
    if (trace->signal)
        text_addf(text, "  the program was ended by signal %d\n", trace->signal);
    else if (trace->exit_code)
        text_addf(text, "  the program ended with exit code %d\n", trace->exit_code);
    if (trace->why[0])
        text_addf(text, "  nothing was looked at: %s\n", trace->why);
    else if (trace->note[0]) {
        text_add(text, "  not all was looked at: ");
        text_add_printable(text, text_view_of(trace->note), 400);
        text_add(text, "\n");
    }
    for (size_t i = 0; i < trace->process_count; i++)
        if (trace->processes[i].missing[0])
            text_addf(text, "  process %s: %s\n", trace->processes[i].name,
                      trace->processes[i].missing);
}

/* ---- Who called, for the reports ------------------------------------------------------------- */

struct callers {
    struct trace *trace;
    const struct listed *listed;
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

static void set_why(struct trace *trace, const struct listed *listed)
{
    if (listed->event_count) {
        bool any = false;
        for (size_t i = 0; i < HYPOTHESIS_COUNT; i++)
            any = any || (is_asked((enum hypothesis)i) && is_exercised(listed, (enum hypothesis)i));
        if (!any)
            snprintf(trace->why, sizeof(trace->why),
                     "calls were seen, but none that makes, copies or uses memory");
        return;
    }
    if (trace->note[0]) {
        struct text text;
        text_init(&text);
        text_add_printable(&text, text_view_of(trace->note), 400);
        snprintf(trace->why, sizeof(trace->why), "%s", text_get(&text));
        text_release(&text);
    } else if (trace->options->set_user_id) {
        snprintf(trace->why, sizeof(trace->why),
                 "the program changes its user (setuid): no library can be put into it");
    } else {
        snprintf(trace->why, sizeof(trace->why),
                 "no GPU call was seen (it made none, has a static HIP runtime, or clears its "
                 "environment)");
    }
}

static struct report_row row_of(const struct trace *trace, const struct trace_process *process,
                                char label[96], char flight[128])
{
    const struct trace_figures *figures = &process->figures;
    snprintf(label, 96, "%s%s", process->name, process->rerun ? " (rerun)" : "");
    snprintf(flight, 128, "%s/%s.flight", process->rerun ? "rerun" : "run", process->name);
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
        .flight = flight,
        .missing = process->missing[0] ? process->missing : NULL,
        .analysis = analysis,
        .peak_bytes = figures->device_peak,
        .copy_out_count = figures->transfers[TRACE_TO_HOST].count,
        .copy_out_bytes = figures->transfers[TRACE_TO_HOST].bytes,
        .launch_count = figures->launches,
    };
}

static enum status write_stacks(struct trace *trace, const struct listed *listed, struct error *err)
{
    char path[FILES_PATH_BYTES];
    struct text text;
    text_init(&text);
    for (size_t i = 0; i < listed->count; i++)
        for (size_t j = 0; j < listed->list[i]->finding_count; j++)
            add_finding(trace, listed->from[i], &listed->list[i]->findings[j], &text);
    enum status status = text.failed ? error_set(err, STATUS_NO_MEMORY, "no memory for findings")
                                     : files_join(path, err, trace->folder, "findings.txt");
    if (!status)
        status = files_write(path, text_get(&text), text.length, err);
    text_release(&text);
    return status;
}

/* What the reports say of each process. */
static void make_rows(const struct trace *trace, struct listed *listed, struct report_facts *facts)
{
    for (size_t i = 0; i < listed->count; i++)
        listed->rows[i] = row_of(trace, listed->from[i], listed->labels[i], listed->flights[i]);
    facts->rows = listed->rows;
    facts->row_count = listed->count;
    size_t chosen = facts->verdict.root_analysis >= 0 ? (size_t)facts->verdict.root_analysis : 0;
    facts->flight_path = listed->count ? listed->from[chosen]->path : NULL;
}

static enum status write_files(struct trace *trace, const struct listed *listed,
                               const struct report_facts *facts, struct error *err)
{
    if (!trace->keep)
        return STATUS_OK;
    TRY(write_stacks(trace, listed, err));
    return report_write(facts, trace->folder, trace->options->language, err);
}

static void print(struct trace *trace, const struct listed *listed,
                  const struct report_facts *facts, struct trace_result *result)
{
    struct trace_figures sum = { 0 };
    struct text *table = &result->table;
    for (size_t i = 0; i < trace->process_count; i++)
        if (!trace->processes[i].rerun)
            trace_figures_join(&sum, &trace->processes[i].figures);
    add_findings(trace, listed, table);
    if (trace->options->summary) {
        text_add(table, "summary\n");
        trace_figures_print(&sum, table);
    }
    text_addf(table, "verdict: %s\n", audit_outcome_name(facts->verdict.outcome));
    add_end(trace, table);
    if (listed->event_count) {
        add_caches(trace, table);
        add_overhead(trace, table);
    }
    if (trace->keep)
        text_addf(table, "  %s/report.html\n", trace->folder);
    report_summary_json(facts, &result->json);
}

enum status trace_report(struct trace *trace, struct trace_result *result, struct error *err)
{
    struct listed *listed = calloc(1, sizeof(*listed));
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
    set_why(trace, listed);
    facts.analyses = listed->list;
    facts.analysis_count = listed->count;
    trace_self_test(trace->run, facts.self_test);
    facts.self_test_key = "trace";
    decide(trace, listed, facts.self_test, &facts.verdict);
    make_rows(trace, listed, &facts);
    enum status status = write_files(trace, listed, &facts, err);
    if (!status) {
        result->outcome = facts.verdict.outcome;
        print(trace, listed, &facts, result);
    }
    free(listed);
    return status;
}
