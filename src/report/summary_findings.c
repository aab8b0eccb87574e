/* summary_findings.c - the findings of summary.json. */
#include "report/json_tools.h"

#include "report/facts.h"

#include <inttypes.h>
#include <stdio.h>

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

/* ---- What exactly was found ----------------------------------------------------------------- */

static void put_parameter(struct text *out, json_t *object,
                          const struct finding_parameter *parameter, uint64_t value)
{
    char hash[24];
    if (!parameter->name)
        return;
    switch (parameter->type) {
    case PARAMETER_COUNT:
    case PARAMETER_BYTES:
    case PARAMETER_DURATION:
        json_put_count(out, object, parameter->name, value);
        break;
    case PARAMETER_OFFSET:
        json_put_integer(out, object, parameter->name, (int64_t)value);
        break;
    case PARAMETER_ADDRESS:
        json_put_address(out, object, parameter->name, value);
        break;
    case PARAMETER_HASH:
        snprintf(hash, sizeof(hash), "%016" PRIx64, value);
        json_put_text(out, object, parameter->name, hash);
        break;
    }
}

static json_t *parameters_json(struct text *out, const struct finding *finding)
{
    const struct finding_defect_info *info = finding_defect_info(finding_defect(finding));
    json_t *object = json_object();
    put_parameter(out, object, &info->expected, finding->expected);
    put_parameter(out, object, &info->found, finding->found);
    return object;
}

static json_t *miss_json(struct text *out, const struct finding *finding)
{
    struct finding_miss miss = finding_miss(finding);
    if (miss.side == MISS_UNKNOWN)
        return json_null();
    json_t *item = json_object();
    json_put_text(out, item, "side", finding_miss_name(miss.side));
    json_put_count(out, item, "bytes", miss.bytes);
    json_put_count(out, item, "wraps", miss.wraps);
    return item;
}

/* ---- A finding ------------------------------------------------------------------------------ */

json_t *json_frames(struct text *out, const struct report_facts *facts, size_t analysis,
                    uint32_t stack_index)
{
    struct report_frame frames[REPORT_FRAME_LIMIT];
    const struct report_callers *callers = &facts->callers;
    json_t *stack = json_array();
    size_t count = callers->stack ? callers->stack(callers->context, analysis, stack_index, frames,
                                                   COUNT_OF(frames))
                                  : 0;
    for (size_t i = 0; i < count; i++) {
        json_t *frame = json_object();
        json_put_text(out, frame, "function", frames[i].function[0] ? frames[i].function : NULL);
        json_put_text(out, frame, "file", frames[i].file);
        json_put_count(out, frame, "offset", frames[i].offset);
        json_put_text(out, frame, "source", frames[i].line ? frames[i].source : NULL);
        json_put_count(out, frame, "line", frames[i].line);
        json_add(out, stack, frame);
    }
    return stack;
}

/* For a foreign program: the kernel's full name, and the callers. */
static void put_callers(struct text *out, const struct report_facts *facts, size_t analysis,
                        json_t *finding, const char *key, const struct analyze_place *place)
{
    const struct report_callers *callers = &facts->callers;
    char name[512];
    json_t *item = json_object_get(finding, key);
    if (!callers->stack || !place->foreign || !json_is_object(item))
        return;
    bool known = place->name_index &&
                 callers->kernel(callers->context, analysis, place->name_index, name, sizeof(name));
    json_put_text(out, item, "kernel", known ? name : NULL);
    json_put_count(out, item, "launch", place->ordinal);
    json_put(out, item, "stack", json_frames(out, facts, analysis, place->stack_index));
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
    json_put_text(out, item, "defect", finding_defect_info(finding_defect(finding))->slug);
    json_put(out, item, "parameters", parameters_json(out, finding));
    json_put_text(out, item, "certainty",
                  finding->certainty == FINDING_DIRECT ? "direct" : "possible");
    json_put_text(out, item, "attribution", finding_attribution_name(finding->attribution));
    json_put_text(out, item, "reason",
                  finding->reason ? report_reason_words(finding->reason, REPORT_ENGLISH) : NULL);
    json_put_text(out, item, "reason_name",
                  finding->reason ? finding_reason_name(finding->reason) : NULL);
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
    json_put_place(out, item, "moved", &finding->moved);
    json_put_count(out, item, "moved_ago_ns", finding->moved_ago_ns);
    put_callers(out, facts, analysis, item, "cause", &finding->cause);
    put_callers(out, facts, analysis, item, "other", &finding->other);
    put_callers(out, facts, analysis, item, "seen", &finding->seen);
    json_put(out, item, "near", near_json(out, &finding->near));
    json_put(out, item, "miss", miss_json(out, finding));
    json_put(out, item, "candidates", candidates_json(out, finding));
    json_put_text(out, item, "ranking", finding_ranking_name(finding_ranking(finding)));
    json_put_count(out, item, "candidates_left_out", finding->candidates_left_out);
    json_put(out, item, "dump", json_hardware(out, facts, analysis, finding));
    out->failed = out->failed || key.failed;
    text_release(&key);
    return item;
}

json_t *json_findings(struct text *out, const struct report_facts *facts)
{
    json_t *list = json_array();
    for (size_t i = 0; i < facts->analysis_count; i++)
        for (size_t j = 0; facts->analyses[i] && j < facts->analyses[i]->finding_count; j++)
            json_add(out, list, finding_json(out, facts, i, j));
    return list;
}
