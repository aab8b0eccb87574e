/* summary.c - summary.json: verdicts, findings and figures for scripts and later audits. */
#include "report/json_tools.h"

#include "report/facts.h"

#include <string.h>

/* ---- Findings ------------------------------------------------------------------------------- */

static void put_neighbour(struct text *out, json_t *object, const char *key,
                          const struct analyze_neighbour *one)
{
    if (!one->name[0] && one->bytes == 0) {
        json_put(out, object, key, json_null());
        return;
    }
    json_t *item = json_object();
    json_put_text(out, item, "name", one->name);
    json_put_address(out, item, "address", one->address);
    json_put_count(out, item, "bytes", one->bytes);
    json_put_integer(out, item, "distance", one->distance);
    json_put_count(out, item, "created", one->created_id);
    json_put_count(out, item, "destroyed", one->destroyed_id);
    json_put(out, object, key, item);
}

static json_t *near_json(struct text *out, const struct analyze_neighbourhood *near)
{
    if (!near->known)
        return json_null();
    json_t *item = json_object();
    json_put_address(out, item, "address", near->address);
    put_neighbour(out, item, "live", &near->live);
    put_neighbour(out, item, "before", &near->before);
    put_neighbour(out, item, "after", &near->after);
    put_neighbour(out, item, "freed", &near->freed);
    return item;
}

static json_t *candidates_json(struct text *out, const struct finding *finding)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < finding->candidate_count && i < FINDING_CANDIDATE_LIMIT; i++) {
        json_t *holder = json_object();
        json_put_place(out, holder, "call", &finding->candidates[i]);
        json_add(out, list, holder);
    }
    return list;
}

/* Of a foreign program: the kernel's full name, and who called. */
static void put_callers(struct text *out, const struct report_facts *facts, size_t analysis,
                        json_t *finding, const char *key, const struct analyze_place *place)
{
    struct report_frame frames[REPORT_FRAME_LIMIT];
    const struct report_callers *callers = &facts->callers;
    char name[512];
    json_t *item = json_object_get(finding, key);
    if (!callers->stack || !place->foreign || !json_is_object(item))
        return;
    bool known = place->name_index &&
                 callers->kernel(callers->context, analysis, place->name_index, name, sizeof(name));
    json_put_text(out, item, "kernel", known ? name : NULL);
    json_put_count(out, item, "launch", place->ordinal);
    size_t count = callers->stack(callers->context, analysis, place->stack_index, frames,
                                  COUNT_OF(frames));
    json_t *stack = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *frame = json_object();
        json_put_text(out, frame, "function", frames[i].function[0] ? frames[i].function : NULL);
        json_put_text(out, frame, "file", frames[i].file);
        json_put_count(out, frame, "offset", frames[i].offset);
        json_put_text(out, frame, "source", frames[i].line ? frames[i].source : NULL);
        json_put_count(out, frame, "line", frames[i].line);
        json_add(out, stack, frame);
    }
    json_put(out, item, "stack", stack);
}

static json_t *finding_json(struct text *out, const struct report_facts *facts, size_t analysis,
                            size_t index)
{
    const struct finding *finding = &facts->analyses[analysis]->findings[index];
    const struct report_row *row = facts_row_of(facts, facts->analyses[analysis]);
    json_t *item = json_object();
    struct text key;
    text_init(&key);
    report_finding_key(finding, &key);
    json_put_count(out, item, "analysis", analysis);
    json_put_count(out, item, "index", index);
    json_put_text(out, item, "row", row ? row->label : NULL);
    json_put_text(out, item, "hypothesis", hypothesis_info(finding->hypothesis)->slug);
    json_put_text(out, item, "key", text_get(&key));
    json_put_finding_words(out, item, "text", finding);
    json_put_text(out, item, "certainty",
                  finding->certainty == FINDING_DIRECT ? "direct" : "possible");
    json_put_text(out, item, "attribution", finding_attribution_name(finding->attribution));
    json_put_text(out, item, "reason",
                  finding->reason ? report_reason_words(finding->reason, ANALYZE_ENGLISH) : NULL);
    json_put_flag(out, item, "root", facts_root(facts) == finding);
    json_put(out, item, "consequence_of",
             finding->consequence_of < 0 ? json_null() : json_integer(finding->consequence_of));
    json_put_count(out, item, "count", finding->count);
    json_put_count(out, item, "order", finding->order_id);
    json_put_text(out, item, "check", finding->check ? event_check_name(finding->check) : NULL);
    json_put_count(out, item, "expected", finding->expected);
    json_put_count(out, item, "found", finding->found);
    json_put_place(out, item, "cause", &finding->cause);
    json_put_place(out, item, "other", &finding->other);
    json_put_place(out, item, "seen", &finding->seen);
    put_callers(out, facts, analysis, item, "cause", &finding->cause);
    put_callers(out, facts, analysis, item, "other", &finding->other);
    put_callers(out, facts, analysis, item, "seen", &finding->seen);
    json_put(out, item, "near", near_json(out, &finding->near));
    json_put(out, item, "candidates", candidates_json(out, finding));
    json_put_count(out, item, "candidates_left_out", finding->candidates_left_out);
    out->failed = out->failed || key.failed;
    text_release(&key);
    return item;
}

static json_t *findings_json(struct text *out, const struct report_facts *facts)
{
    json_t *list = json_array();
    for (size_t i = 0; i < facts->analysis_count; i++)
        for (size_t j = 0; facts->analyses[i] && j < facts->analyses[i]->finding_count; j++)
            json_add(out, list, finding_json(out, facts, i, j));
    return list;
}

/* ---- Verdicts ------------------------------------------------------------------------------- */

static json_t *hypothesis_json(struct text *out, const struct report_facts *facts,
                               enum hypothesis hypothesis)
{
    const struct hypothesis_verdict *one = &facts->verdict.hypotheses[hypothesis];
    const struct hypothesis_info *info = hypothesis_info(hypothesis);
    const struct report_hypothesis_words *words = report_hypothesis_words(hypothesis);
    json_t *item = json_object();
    json_put_text(out, item, "slug", info->slug);
    json_put_text(out, item, "title", words->title[ANALYZE_ENGLISH]);
    json_put_text(out, item, "verdict", verdict_name(one->verdict));
    json_put_count(out, item, "rank", one->rank);
    json_put_text(out, item, "missing", verdict_missing_name(one->missing));
    json_put_flag(out, item, "exact", info->exact);
    json_put_count(out, item, "checked", one->checked);
    json_put_count(out, item, "total", one->total);
    json_put_text(out, item, "unit", words->unit[ANALYZE_ENGLISH]);
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
    for (int i = 0; i < ANALYZE_LANGUAGE_COUNT; i++) {
        struct text words;
        text_init(&words);
        report_headline(facts, (enum analyze_language)i, &words);
        json_put_text(out, both, json_language_name((enum analyze_language)i), text_get(&words));
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
    json_t *planted = facts->inject ? json_object() : json_null();
    if (facts->inject) {
        json_put_text(text, planted, "plan", facts->inject);
        enum facts_planted state = facts_planted(facts);
        json_put(text, planted, "fired",
                 state == FACTS_PLANTED_UNKNOWN ? json_null()
                                                : json_boolean(state == FACTS_PLANTED_FIRED));
    }
    json_put(text, root, "planted_fault", planted);
    json_put(text, root, "root_cause",
             named_json(text, facts, facts->verdict.root_analysis, facts->verdict.root_finding));
    json_put(text, root, "defect",
             named_json(text, facts, facts->verdict.seen_analysis, facts->verdict.seen_finding));
    json_put(text, root, "hypotheses", hypotheses_json(text, facts));
    json_put(text, root, "findings", findings_json(text, facts));
    json_put(text, root, "analyses", analyses_json(text, facts));
    json_put(text, root, "rows", json_rows(text, facts));
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
