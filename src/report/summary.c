/* summary.c - summary.json: verdicts, findings and figures for scripts and later audits. */
#include "report/json_tools.h"

#include "report/facts.h"

#include <string.h>

/* ---- Verdicts ------------------------------------------------------------------------------- */

static json_t *hypothesis_json(struct text *out, const struct report_facts *facts,
                               enum hypothesis hypothesis)
{
    const struct hypothesis_verdict *one = &facts->verdict.hypotheses[hypothesis];
    const struct hypothesis_info *info = hypothesis_info(hypothesis);
    const struct report_hypothesis_words *words = report_hypothesis_words(hypothesis);
    json_t *item = json_object();
    json_put_text(out, item, "slug", info->slug);
    json_put_text(out, item, "title", words->title[REPORT_ENGLISH]);
    json_put_text(out, item, "verdict", verdict_name(one->verdict));
    json_put_count(out, item, "rank", one->rank);
    json_put_text(out, item, "missing", verdict_missing_name(one->missing));
    json_put_flag(out, item, "exact", info->exact);
    json_put_count(out, item, "checked", one->checked);
    json_put_count(out, item, "total", one->total);
    json_put_text(out, item, "unit", words->units[REPORT_ENGLISH]);
    json_put_count(out, item, "trials", one->trials);
    json_put(out, item, "bound", one->bound > 0 ? json_real(one->bound) : json_null());
    json_put_text(out, item, "level", audit_level_name(info->level));
    json_put_text(out, item, "self_test", json_self_test_name(facts->self_test[hypothesis]));
    json_put_text(out, item, "excluded_by", one->excluded_by);
    bool found = facts_finding(facts, one->analysis, one->finding) != NULL;
    json_put(out, item, "analysis", found ? json_integer(one->analysis) : json_null());
    json_put(out, item, "finding", found ? json_integer(one->finding) : json_null());
    return item;
}

static json_t *hypotheses_json(struct text *out, const struct report_facts *facts)
{
    enum hypothesis ranked[HYPOTHESIS_COUNT];
    json_t *list = json_array();
    facts_ranked(facts, ranked);
    for (size_t i = 0; i < HYPOTHESIS_COUNT; i++)
        json_add(out, list, hypothesis_json(out, facts, ranked[i]));
    return list;
}

/* A finding as the verdict names it. */
static json_t *named_json(struct text *out, const struct report_facts *facts, int32_t analysis,
                          int32_t index)
{
    const struct finding *finding = facts_finding(facts, analysis, index);
    if (!finding)
        return json_null();
    json_t *item = json_object();
    json_put_integer(out, item, "analysis", analysis);
    json_put_integer(out, item, "finding", index);
    json_put_text(out, item, "hypothesis", hypothesis_info(finding->hypothesis)->slug);
    json_put_finding_words(out, item, "text", finding);
    return item;
}

static json_t *analysis_json(struct text *out, const struct report_facts *facts,
                             const struct analysis *one)
{
    const struct report_row *row = facts_row_of(facts, one);
    json_t *item = json_object(), *coverage = json_object();
    json_put_text(out, item, "row", row ? row->label : NULL);
    json_put_text(out, item, "level", audit_level_name(one->level));
    json_put_count(out, item, "events", one->event_count);
    json_put_count(out, item, "iterations", one->iteration_count);
    json_put_count(out, item, "lost", one->lost_count);
    json_put_count(out, item, "dropped", one->dropped_count);
    json_put_count(out, item, "damaged", one->damaged_count);
    json_put_count(out, item, "findings_dropped", one->findings_dropped);
    json_put_flag(out, item, "device_lost", one->device_lost);
    json_put_flag(out, item, "closed", one->closed);
    json_put_text(out, item, "ending", run_ending_name(one->ending.kind));
    for (int i = 0; i < HYPOTHESIS_COUNT; i++) {
        json_t *covered = json_object();
        json_put_flag(out, covered, "ran", one->coverage[i].ran);
        json_put_count(out, covered, "checked", one->coverage[i].checked);
        json_put_count(out, covered, "total", one->coverage[i].total);
        json_put(out, coverage, hypothesis_info((enum hypothesis)i)->slug, covered);
    }
    json_put(out, item, "coverage", coverage);
    return item;
}

static json_t *analyses_json(struct text *out, const struct report_facts *facts)
{
    json_t *list = json_array();
    for (size_t i = 0; i < facts->analysis_count; i++)
        json_add(out, list,
                 facts->analyses[i] ? analysis_json(out, facts, facts->analyses[i]) : json_null());
    return list;
}

static void json_put_headline(struct text *out, json_t *object, const struct report_facts *facts)
{
    json_t *both = json_object();
    for (int i = 0; i < REPORT_LANGUAGE_COUNT; i++) {
        struct text words;
        text_init(&words);
        report_headline(facts, (enum report_language)i, &words);
        json_put_text(out, both, json_language_name((enum report_language)i), text_get(&words));
        out->failed = out->failed || words.failed;
        text_release(&words);
    }
    json_put(out, object, "headline", both);
}

/* ---- The whole ------------------------------------------------------------------------------ */

static json_t *figures_json(struct text *out, const struct report_facts *facts)
{
    json_t *list = json_array();
    for (size_t i = 0; i < facts->row_count; i++) {
        struct report_figure figures[8];
        size_t count = report_figures(&facts->rows[i], 1, figures, COUNT_OF(figures));
        for (size_t j = 0; j < count; j++) {
            json_t *item = json_object();
            json_put_text(out, item, "what", figures[j].what);
            json_put_real(out, item, "value", figures[j].value);
            json_add(out, list, item);
        }
    }
    return list;
}

/* Its name, else that of its file. */
static const char *model_of(const struct report_identity *identity)
{
    if (identity->model_name || !identity->model_path)
        return identity->model_name;
    const char *slash = strrchr(identity->model_path, '/');
    return slash ? slash + 1 : identity->model_path;
}

void report_summary_json(const struct report_facts *facts, struct text *text)
{
    const struct report_identity *identity = &facts->identity;
    json_t *root = json_object();
    json_put_text(text, root, "schema", "greta-audit-summary");
    json_put_integer(text, root, "schema_version", 1);
    json_put_text(text, root, "id", identity->id);
    json_put_text(text, root, "date", identity->date);
    json_put_text(text, root, "model", model_of(identity));
    json_put_text(text, root, "device", identity->device_name);
    json_put_text(text, root, "workload_sha256", identity->workload_sha256);
    json_put_flag(text, root, "partial", facts->partial);
    json_put_text(text, root, "outcome", audit_outcome_name(facts->verdict.outcome));
    json_put_headline(text, root, facts);
    json_put_text(text, root, "severity", report_severity_name(report_severity(facts)));
    json_put(text, root, "bound",
             facts->verdict.bound > 0 ? json_real(facts->verdict.bound) : json_null());
    json_put_count(text, root, "iterations", facts->verdict.iterations);
    json_put_text(text, root, "expected_fault", facts->expected_fault);
    struct report_planting planting = facts_planting(facts);
    json_put(text, root, "planted_fault", report_planting_json(&planting, text));
    json_put(text, root, "root_cause",
             named_json(text, facts, facts->verdict.root_analysis, facts->verdict.root_finding));
    json_put(text, root, "defect",
             named_json(text, facts, facts->verdict.seen_analysis, facts->verdict.seen_finding));
    json_put(text, root, "hypotheses", hypotheses_json(text, facts));
    json_put(text, root, "findings", json_findings(text, facts));
    json_put(text, root, "analyses", analyses_json(text, facts));
    json_put(text, root, "rows", json_rows(text, facts));
    json_put(text, root, "program", json_program(text, facts));
    json_put(text, root, "compare", json_compare(text, facts->compare));
    json_put(text, root, "search", json_search(text, facts));
    json_put(text, root, "interventions", json_interventions(text, facts));
    json_put(text, root, "ablation", json_ablation(text, facts));
    json_put(text, root, "self_test", json_self_test(text, facts));
    json_put(text, root, "transfers", json_transfers(text, facts));
    json_put(text, root, "earlier", json_earlier(text, facts));
    json_put(text, root, "baseline", json_baseline(text, facts));
    json_put(text, root, "figures", figures_json(text, facts));
    json_print(text, root);
}
