/* sarif.c - findings.sarif: SARIF 2.1.0. Rules are the hypotheses. A finding is a result of kind
 * fail (open where it is only possible); a hypothesis that was refuted is one of kind pass, one
 * that was not seen in too few runs, or stayed inconclusive, of kind open. */
#include "report/json_tools.h"

#include "report/escape.h"
#include "report/facts.h"
#include "report/sections.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static json_t *message_json(struct text *out, const char *text)
{
    json_t *message = json_object();
    json_put_text(out, message, "text", text);
    return message;
}

static json_t *rule_json(struct text *out, enum hypothesis hypothesis)
{
    const struct report_hypothesis_words *words = report_hypothesis_words(hypothesis);
    json_t *rule = json_object();
    json_put_text(out, rule, "id", hypothesis_info(hypothesis)->slug);
    json_put_text(out, rule, "name", words->title[REPORT_ENGLISH]);
    json_put(out, rule, "shortDescription", message_json(out, words->title[REPORT_ENGLISH]));
    json_put(out, rule, "fullDescription", message_json(out, words->detector[REPORT_ENGLISH]));
    json_put(out, rule, "help", message_json(out, words->advice[REPORT_ENGLISH]));
    return rule;
}

static json_t *driver_json(struct text *out, const struct report_identity *identity)
{
    json_t *driver = json_object(), *rules = json_array();
    json_put_text(out, driver, "name", "greta");
    json_put_text(out, driver, "version", identity->version ? identity->version : "0");
    for (int i = 0; i < HYPOTHESIS_COUNT; i++)
        json_add(out, rules, rule_json(out, (enum hypothesis)i));
    json_put(out, driver, "rules", rules);
    return driver;
}

/* ---- Places --------------------------------------------------------------------------------- */

/* A path as a reference, relative where it is: bytes that a URI cannot have become %HH. */
static void put_uri(struct text *out, json_t *object, const char *path)
{
    struct text uri;
    text_init(&uri);
    if (path[0] == '/')
        text_add(&uri, "file://");
    escape_uri(&uri, path);
    json_put_text(out, object, "uri", text_get(&uri));
    out->failed = out->failed || uri.failed;
    text_release(&uri);
}

static void add_logical(struct text *out, json_t *list, const char *kind, const char *name)
{
    json_t *item = json_object();
    json_put_text(out, item, "kind", kind);
    json_put_text(out, item, "name", name);
    json_add(out, list, item);
}

static void put_physical(struct text *out, json_t *location, const char *file, uint32_t line)
{
    json_t *physical = json_object(), *artifact = json_object(), *region = json_object();
    put_uri(out, artifact, file);
    json_put(out, physical, "artifactLocation", artifact);
    /* Lines count from 1 in SARIF. */
    json_put_count(out, region, "startLine", line ? line : 1);
    json_put(out, physical, "region", region);
    json_put(out, location, "physicalLocation", physical);
}

/* It starts programs and threads, so it is in every stack, and never to blame. */
static bool is_of_c_library(const struct report_frame *frame)
{
    return strncmp(frame->file, "libc.so", 7) == 0 ||
           strncmp(frame->file, "libpthread.so", 13) == 0;
}

/* For a foreign call: the innermost caller whose source line is known. */
static void put_caller(struct text *out, json_t *location, const struct report_facts *facts,
                       size_t analysis, const struct analyze_place *place)
{
    struct report_frame frames[REPORT_FRAME_LIMIT];
    if (!facts->callers.stack || !place->stack_index)
        return;
    size_t count = facts->callers.stack(facts->callers.context, analysis, place->stack_index,
                                        frames, COUNT_OF(frames));
    for (size_t i = 0; i < count; i++)
        if (frames[i].line && !is_of_c_library(&frames[i])) {
            put_physical(out, location, frames[i].source, frames[i].line);
            return;
        }
}

static json_t *location_json(struct text *out, const struct report_facts *facts, size_t analysis,
                             const struct analyze_place *place)
{
    json_t *location = json_object(), *logical = json_array();
    char number[24];
    if (place->file[0])
        put_physical(out, location, place->file, place->line);
    else if (place->foreign)
        put_caller(out, location, facts, analysis, place);
    add_logical(out, logical, "function", place->op[0] ? place->op : event_kind_name(place->kind));
    if (place->scope.layer >= 0) {
        snprintf(number, sizeof(number), "%" PRId32, place->scope.layer);
        add_logical(out, logical, "layer", number);
    }
    if (place->scope.step >= 0) {
        snprintf(number, sizeof(number), "%" PRId32, place->scope.step);
        add_logical(out, logical, "step", number);
    }
    if (place->scope.tensor[0])
        add_logical(out, logical, "tensor", place->scope.tensor);
    json_put(out, location, "logicalLocations", logical);
    return location;
}

/* A finding's other places, each with what it is. */
static void add_related(struct text *out, json_t *list, const struct report_facts *facts,
                        size_t analysis, const struct analyze_place *place, const char *what)
{
    if (place->event_id == 0)
        return;
    json_t *location = location_json(out, facts, analysis, place);
    json_put_count(out, location, "id", json_array_size(list));
    json_put(out, location, "message", message_json(out, what));
    json_add(out, list, location);
}

/* ---- Results -------------------------------------------------------------------------------- */

static json_t *result_json(struct text *out, enum hypothesis hypothesis, const char *kind,
                           const char *level, const char *message)
{
    json_t *result = json_object();
    json_put_text(out, result, "ruleId", hypothesis_info(hypothesis)->slug);
    json_put_integer(out, result, "ruleIndex", hypothesis);
    json_put_text(out, result, "kind", kind);
    json_put_text(out, result, "level", level);
    json_put(out, result, "message", message_json(out, message));
    return result;
}

static json_t *finding_result(struct text *out, const struct report_facts *facts, size_t analysis,
                              size_t index)
{
    const struct finding *finding = &facts->analyses[analysis]->findings[index];
    bool direct = finding->certainty == FINDING_DIRECT;
    bool consequence = finding->consequence_of >= 0;
    struct text words, key;
    text_init(&words);
    text_init(&key);
    report_finding_describe(finding, REPORT_ENGLISH, &words);
    report_finding_key(finding, &key);
    /* SARIF: a result that is not of kind fail has the level none. */
    json_t *result = result_json(out, finding->hypothesis, direct ? "fail" : "open",
                                 !direct       ? "none"
                                 : consequence ? "warning"
                                               : "error",
                                 text_get(&words));
    json_t *locations = json_array(), *related = json_array(), *prints = json_object();
    json_t *properties = json_object();
    if (finding->cause.event_id)
        json_add(out, locations, location_json(out, facts, analysis, &finding->cause));
    json_put(out, result, "locations", locations);
    add_related(out, related, facts, analysis, &finding->other, "other side");
    add_related(out, related, facts, analysis, &finding->seen, "seen here");
    json_put(out, result, "relatedLocations", related);
    json_put_text(out, prints, "gretaFindingKey/v1", text_get(&key));
    json_put(out, result, "partialFingerprints", prints);
    json_put_flag(out, properties, "rootCause", facts_root(facts) == finding);
    json_put_text(out, properties, "attribution", finding_attribution_name(finding->attribution));
    json_put_count(out, properties, "count", finding->count);
    json_put(out, result, "properties", properties);
    out->failed = out->failed || words.failed || key.failed;
    text_release(&words);
    text_release(&key);
    return result;
}

static json_t *verdict_result(struct text *out, const struct report_facts *facts,
                              enum hypothesis hypothesis)
{
    static const char *const kinds[] = { [VERDICT_CONFIRMED] = "fail",
                                         [VERDICT_REFUTED] = "pass",
                                         [VERDICT_NOT_SEEN] = "open",
                                         [VERDICT_EXCLUDED] = "notApplicable",
                                         [VERDICT_INCONCLUSIVE] = "open" };
    const struct hypothesis_verdict *one = &facts->verdict.hypotheses[hypothesis];
    struct text words;
    text_init(&words);
    text_addf(&words, "%s: ", verdict_name(one->verdict));
    sections_evidence(facts, hypothesis, REPORT_ENGLISH, &words);
    if (one->missing != VERDICT_MISSING_NOTHING)
        text_addf(&words, " Missing: %s.", report_missing_words(one->missing, REPORT_ENGLISH));
    json_t *result = result_json(out, hypothesis, kinds[one->verdict],
                                 one->verdict == VERDICT_CONFIRMED ? "error" : "none",
                                 text_get(&words));
    out->failed = out->failed || words.failed;
    text_release(&words);
    return result;
}

static json_t *results_json(struct text *out, const struct report_facts *facts)
{
    json_t *list = json_array();
    for (size_t i = 0; i < facts->analysis_count; i++)
        for (size_t j = 0; facts->analyses[i] && j < facts->analyses[i]->finding_count; j++)
            json_add(out, list, finding_result(out, facts, i, j));
    for (int i = 0; i < HYPOTHESIS_COUNT; i++) {
        const struct hypothesis_verdict *one = &facts->verdict.hypotheses[i];
        /* Its findings are results already. */
        if (one->verdict != VERDICT_CONFIRMED || !facts_finding(facts, one->analysis, one->finding))
            json_add(out, list, verdict_result(out, facts, (enum hypothesis)i));
    }
    return list;
}

void report_sarif(const struct report_facts *facts, struct text *text)
{
    json_t *root = json_object(), *runs = json_array(), *run = json_object();
    json_t *tool = json_object(), *invocations = json_array(), *invocation = json_object();
    json_put_text(text, root, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
    json_put_text(text, root, "version", "2.1.0");
    json_put(text, tool, "driver", driver_json(text, &facts->identity));
    json_put(text, run, "tool", tool);
    json_put_text(text, invocation, "commandLine", facts->identity.command);
    json_put_flag(text, invocation, "executionSuccessful", !facts->partial);
    json_add(text, invocations, invocation);
    json_put(text, run, "invocations", invocations);
    json_put(text, run, "results", results_json(text, facts));
    json_add(text, runs, run);
    json_put(text, root, "runs", runs);
    json_print(text, root);
}
