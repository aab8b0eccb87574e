/* audit_result.c - see audit_result.h. */
#include "cli/audit_result.h"

#include "base/text.h"
#include "cli/cli.h"
#include "report/report.h"

#include <inttypes.h>

/* The recording has the others. */
#define FINDINGS_SHOWN 5u

static uint64_t unseen_events(const struct analysis *analysis)
{
    return analysis->lost_count + analysis->dropped_count;
}

/* ---- Words ---------------------------------------------------------------------------------- */

static void print_finding(const struct analysis *analysis, size_t index, FILE *out)
{
    const struct finding *finding = &analysis->findings[index];
    struct text words;
    text_init(&words);
    report_finding_describe(finding, REPORT_ENGLISH, &words);
    fprintf(out, "  %s%s: %s\n",
            (int32_t)index == analysis->root                           ? "root cause: "
            : (int32_t)index == analysis->defect && analysis->root < 0 ? "seen here: "
                                                                       : "",
            hypothesis_info(finding->hypothesis)->slug, text_get(&words));
    text_release(&words);
}

void audit_result_print(const struct audit_result *result, FILE *out)
{
    const struct analysis *analysis = result->analysis;
    char recording[CLI_SHOWN_BYTES];
    text_printable(text_view_of(result->recording), recording, sizeof(recording));
    if (!analysis) {
        fprintf(out, "Audit: level %s, recorded in %s; the analysis failed: %s\n",
                audit_level_name(result->level), recording, result->failure);
        return;
    }
    fprintf(out, "Audit: level %s, %" PRIu64 " events, %zu finding%s, recorded in %s\n",
            audit_level_name(result->level), analysis->event_count, analysis->finding_count,
            analysis->finding_count == 1 ? "" : "s", recording);
    uint64_t unseen = unseen_events(analysis);
    if (unseen)
        fprintf(out, "  %" PRIu64 " event%s not analysed\n", unseen,
                unseen == 1 ? " was" : "s were");
    if (analysis->root >= 0)
        print_finding(analysis, (size_t)analysis->root, out);
    size_t shown = analysis->root >= 0;
    for (size_t i = 0; i < analysis->finding_count && shown < FINDINGS_SHOWN; i++) {
        if ((int32_t)i == analysis->root)
            continue;
        print_finding(analysis, i, out);
        shown++;
    }
    if (analysis->finding_count > shown)
        fprintf(out, "  and %zu more (greta flight show %s)\n", analysis->finding_count - shown,
                recording);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

/* A number that is at least 0; negative means null. */
static json_t *index_json(int64_t value)
{
    return value < 0 ? json_null() : json_integer(value);
}

/* Paths may hold any bytes; JSON only UTF-8. */
static json_t *text_json(const char *words)
{
    json_t *whole = json_string(words);
    if (whole)
        return whole;
    struct text shown;
    text_init(&shown);
    text_add_printable(&shown, text_view_of(words), SIZE_MAX);
    whole = json_string(text_get(&shown));
    text_release(&shown);
    return whole;
}

/* Null if no call is known. */
static json_t *place_json(const struct analyze_place *place)
{
    if (!place->event_id)
        return json_null();
    return json_pack(
        "{s:I, s:s, s:s, s:o, s:o, s:s, s:o}", "event", (json_int_t)place->event_id, "kind",
        event_kind_name((enum event_kind)place->kind), "op", place->op, "layer",
        index_json(place->scope.layer), "step", index_json(place->scope.step), "tensor",
        place->scope.tensor, "stream",
        index_json(place->stream_index == EVENT_NO_STREAM ? -1 : (int64_t)place->stream_index));
}

static json_t *finding_json(const struct analysis *analysis, size_t index)
{
    const struct finding *finding = &analysis->findings[index];
    struct text words;
    text_init(&words);
    report_finding_describe(finding, REPORT_ENGLISH, &words);
    json_t *one = json_pack(
        "{s:s, s:s, s:b, s:I, s:o, s:o}", "hypothesis", hypothesis_info(finding->hypothesis)->slug,
        "certainty", finding->certainty == FINDING_DIRECT ? "direct" : "possible", "root",
        (int32_t)index == analysis->root, "count", (json_int_t)finding->count, "cause",
        place_json(&finding->cause), "sentence", text_json(text_get(&words)));
    text_release(&words);
    return one;
}

json_t *audit_result_json(const struct audit_result *result)
{
    const struct analysis *analysis = result->analysis;
    if (!analysis)
        return json_pack("{s:s, s:o, s:o}", "level", audit_level_name(result->level), "recording",
                         text_json(result->recording), "error", text_json(result->failure));
    json_t *findings = json_array();
    for (size_t i = 0; findings && i < analysis->finding_count; i++)
        json_array_append_new(findings, finding_json(analysis, i));
    return json_pack("{s:s, s:o, s:I, s:I, s:I, s:o}", "level", audit_level_name(result->level),
                     "recording", text_json(result->recording), "events",
                     (json_int_t)analysis->event_count, "not_analysed",
                     (json_int_t)unseen_events(analysis), "finding_count",
                     (json_int_t)analysis->finding_count + (json_int_t)analysis->findings_dropped,
                     "findings", findings);
}
