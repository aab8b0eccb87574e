/* facts.c - see facts.h; and what report.h lets others ask of the facts. */
#include "report/facts.h"

#include "report/words.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Findings and rows ---------------------------------------------------------------------- */

const struct finding *facts_finding(const struct report_facts *facts, int32_t analysis,
                                    int32_t finding)
{
    if (analysis < 0 || (size_t)analysis >= facts->analysis_count || finding < 0)
        return NULL;
    const struct analysis *from = facts->analyses[analysis];
    return from && (size_t)finding < from->finding_count ? &from->findings[finding] : NULL;
}

const struct finding *facts_root(const struct report_facts *facts)
{
    return facts_finding(facts, facts->verdict.root_analysis, facts->verdict.root_finding);
}

const struct finding *facts_seen(const struct report_facts *facts)
{
    return facts_finding(facts, facts->verdict.seen_analysis, facts->verdict.seen_finding);
}

const struct finding *facts_subject(const struct report_facts *facts)
{
    const struct finding *root = facts_root(facts);
    return root ? root : facts_seen(facts);
}

const struct hypothesis_verdict *facts_weakest(const struct report_facts *facts)
{
    const struct audit_verdict *verdict = &facts->verdict;
    if (verdict->weakest >= HYPOTHESIS_COUNT || verdict->iterations < VERDICT_TRIALS_LEAST)
        return NULL;
    const struct hypothesis_verdict *one = &verdict->hypotheses[verdict->weakest];
    return one->trials < VERDICT_TRIALS_LEAST ? one : NULL;
}

enum word facts_culprit_word(const struct report_planted *planted)
{
    if (!planted->culprit_ok)
        return WORD_NO;
    return planted->only_seen ? WORD_ONLY_SEEN : WORD_YES;
}

const struct report_row *facts_row_of(const struct report_facts *facts,
                                      const struct analysis *analysis)
{
    for (size_t i = 0; i < facts->row_count; i++)
        if (facts->rows[i].analysis == analysis)
            return &facts->rows[i];
    return NULL;
}

void facts_ranked(const struct report_facts *facts, enum hypothesis ret[HYPOTHESIS_COUNT])
{
    /* Insertion: sixteen of them, and stable. */
    for (int i = 0; i < HYPOTHESIS_COUNT; i++) {
        uint32_t rank = facts->verdict.hypotheses[i].rank;
        int at = i;
        for (; at > 0 && facts->verdict.hypotheses[ret[at - 1]].rank > rank; at--)
            ret[at] = ret[at - 1];
        ret[at] = (enum hypothesis)i;
    }
}

struct report_planting facts_planting(const struct report_facts *facts)
{
    struct report_planting planting = { .fault = facts->inject };
    if (facts->compare && facts->inject)
        planting = facts->compare->planting;
    for (size_t i = 0; i < facts->row_count; i++) {
        planting.fired = planting.fired || facts->rows[i].fault == REPORT_FAULT_PLANTED;
        planting.reported = planting.reported || facts->rows[i].fault != REPORT_FAULT_NONE;
    }
    return planting;
}

enum facts_row_result facts_row_result(const struct report_row *row)
{
    const struct analysis *analysis = row->analysis;
    bool found = analysis && analysis->finding_count + analysis->findings_dropped > 0;
    return row->crashed                         ? FACTS_ROW_CRASHED
           : row->hung                          ? FACTS_ROW_HUNG
           : row->errors > 0                    ? FACTS_ROW_FAILED
           : found                              ? FACTS_ROW_FINDINGS
           : row->interrupted                   ? FACTS_ROW_INTERRUPTED
           : row->fault == REPORT_FAULT_UNFIRED ? FACTS_ROW_INCONCLUSIVE
           : row->done < row->planned           ? FACTS_ROW_INCOMPLETE
                                                : FACTS_ROW_PASSED;
}

const char *facts_row_result_name(enum facts_row_result result)
{
    static const char *const names[] = {
        [FACTS_ROW_PASSED] = "passed",
        [FACTS_ROW_FAILED] = "failed",
        [FACTS_ROW_CRASHED] = "crashed",
        [FACTS_ROW_HUNG] = "hung",
        [FACTS_ROW_FINDINGS] = "findings",
        [FACTS_ROW_INTERRUPTED] = "interrupted",
        [FACTS_ROW_INCONCLUSIVE] = "inconclusive",
        [FACTS_ROW_INCOMPLETE] = "incomplete",
    };
    _Static_assert(COUNT_OF(names) == FACTS_ROW_RESULT_COUNT, "every result has a name");
    return names[result];
}

static void add_verdicts(const struct report_facts *facts, struct facts_totals *totals)
{
    for (size_t i = 0; i < HYPOTHESIS_COUNT; i++)
        switch (facts->verdict.hypotheses[i].verdict) {
        case VERDICT_CONFIRMED:
            totals->confirmed++;
            break;
        case VERDICT_REFUTED:
            totals->refuted++;
            break;
        case VERDICT_NOT_SEEN:
            totals->not_seen++;
            break;
        case VERDICT_EXCLUDED:
            totals->excluded++;
            break;
        case VERDICT_INCONCLUSIVE:
            totals->inconclusive++;
            break;
        case VERDICT_COUNT:
            break;
        }
}

struct facts_totals facts_totals(const struct report_facts *facts)
{
    struct facts_totals totals = { 0 };
    for (size_t i = 0; i < facts->row_count; i++) {
        const struct report_row *row = &facts->rows[i];
        totals.planned += row->planned;
        totals.done += row->done;
        totals.errors += row->errors;
        totals.crashed += row->crashed;
        totals.hung += row->hung;
        totals.interrupted += row->interrupted;
        totals.incomplete += row->done < row->planned;
    }
    for (size_t i = 0; i < facts->analysis_count; i++) {
        if (!facts->analyses[i])
            continue;
        totals.findings += facts->analyses[i]->finding_count;
        totals.dropped_findings += facts->analyses[i]->findings_dropped;
    }
    for (size_t i = 0; i < facts->planted_count; i++) {
        totals.planted += !facts->planted[i].absent;
        totals.detected += facts->planted[i].detected;
        totals.culprits += facts->planted[i].culprit_ok && !facts->planted[i].only_seen;
        totals.seen += facts->planted[i].culprit_ok && facts->planted[i].only_seen;
    }
    add_verdicts(facts, &totals);
    return totals;
}

/* ---- Figures -------------------------------------------------------------------------------- */

static int compare_reals(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double facts_median(const double *values, size_t count)
{
    if (count == 0)
        return 0;
    double *sorted = malloc(count * sizeof(*sorted));
    if (!sorted)
        return NAN;
    memcpy(sorted, values, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), compare_reals);
    double middle = count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
    free(sorted);
    return middle;
}

static void add_figure(struct report_figure *ret, size_t capacity, size_t *count,
                       const struct report_row *row, const char *measure, double value)
{
    if (value <= 0 || !isfinite(value))
        return;
    if (*count < capacity) {
        snprintf(ret[*count].what, sizeof(ret->what), "%.24s %s", row->label, measure);
        ret[*count].value = value;
    }
    (*count)++;
}

size_t report_figures(const struct report_row *rows, size_t row_count, struct report_figure *ret,
                      size_t capacity)
{
    size_t count = 0;
    for (size_t i = 0; i < row_count; i++) {
        const struct report_row *row = &rows[i];
        add_figure(ret, capacity, &count, row, "latency_median_ms",
                   facts_median(row->latencies_ms, row->latency_count));
        add_figure(ret, capacity, &count, row, "tokens_per_second", row->tokens_per_second);
        add_figure(ret, capacity, &count, row, "peak_bytes", (double)row->peak_bytes);
    }
    return count;
}

void report_finding_key(const struct finding *finding, struct text *text)
{
    const struct analyze_place *cause = &finding->cause;
    text_add_printable(text, text_view_of(cause->op[0] ? cause->op : event_kind_name(cause->kind)),
                       SIZE_MAX);
    if (cause->operand != EVENT_NO_OPERAND)
        text_addf(text, "[%u]", (unsigned)cause->operand);
    text_addf(text, " layer=%" PRId32 " step=%" PRId32 " tensor=", cause->scope.layer,
              cause->scope.step);
    text_add_printable(text, text_view_of(cause->scope.tensor), SIZE_MAX);
    text_addf(text, " check=%s", event_check_name(finding->check));
    if (cause->device_index)
        text_addf(text, " device=%u", (unsigned)cause->device_index);
}

/* ---- Severity ------------------------------------------------------------------------------- */

static enum report_severity severity_of(enum hypothesis hypothesis)
{
    switch (hypothesis) {
    case HYPOTHESIS_SIZE_MISMATCH:
    case HYPOTHESIS_CONTRACT_BREACH:
    case HYPOTHESIS_LEAK:
        return REPORT_SEVERITY_MEDIUM;
    case HYPOTHESIS_BAD_POINTER:
    case HYPOTHESIS_KERNEL_FAULT:
    case HYPOTHESIS_HANG:
    case HYPOTHESIS_NON_DETERMINISM:
    case HYPOTHESIS_NUMERIC:
        return REPORT_SEVERITY_HIGH;
    default:
        return REPORT_SEVERITY_CRITICAL;
    }
}

enum report_severity report_severity(const struct report_facts *facts)
{
    struct facts_totals totals = facts_totals(facts);
    enum report_severity severity = REPORT_SEVERITY_NONE;
    if (facts->verdict.outcome != AUDIT_CLEAN)
        severity = totals.errors + totals.crashed + totals.hung ? REPORT_SEVERITY_HIGH
                                                                : REPORT_SEVERITY_MEDIUM;
    for (int i = 0; i < HYPOTHESIS_COUNT; i++) {
        enum report_severity one = severity_of((enum hypothesis)i);
        if (facts->verdict.hypotheses[i].verdict == VERDICT_CONFIRMED && one > severity)
            severity = one;
    }
    return severity;
}

/* ---- Places --------------------------------------------------------------------------------- */

static void add_part(struct text *text, enum report_language language, enum word word,
                     const char *argument)
{
    text_add(text, ", ");
    words_fill(text, words_get(language, word), &argument, 1);
}

void facts_call(const struct analyze_place *place, enum report_language language, struct text *text)
{
    /* In a foreign program the function says which call it was. */
    if (place->foreign && place->op[0])
        text_add_printable(text, text_view_of(place->op), REPORT_NAME_LIMIT);
    else
        report_add_kind(text, place->kind, language, place->op);
}

void facts_place(const struct analyze_place *place, enum report_language language,
                 struct text *text)
{
    bool event = place->event_id != 0;
    char number[48];
    if (event)
        facts_call(place, language, text);
    else if (place->op[0])
        text_add_printable(text, text_view_of(place->op), REPORT_NAME_LIMIT);
    else
        return;
    if (place->scope.layer >= 0) {
        snprintf(number, sizeof(number), "%" PRId32, place->scope.layer);
        add_part(text, language, WORD_PLACE_LAYER, number);
    }
    if (place->scope.step >= 0) {
        snprintf(number, sizeof(number), "%" PRId32, place->scope.step);
        add_part(text, language, WORD_PLACE_STEP, number);
    }
    if (place->scope.tensor[0])
        add_part(text, language, WORD_PLACE_TENSOR, place->scope.tensor);
    if (event && place->stream_index != EVENT_NO_STREAM) {
        snprintf(number, sizeof(number), "%" PRIu32, place->stream_index);
        add_part(text, language, WORD_PLACE_STREAM, number);
    }
    if (place->file[0])
        text_addf(text, " (%s:%" PRIu32 ")", place->file, place->line);
}

bool facts_seen_elsewhere(const struct finding *finding)
{
    return finding->seen.event_id != 0 && finding->seen.event_id != finding->cause.event_id;
}
