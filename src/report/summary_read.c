/* summary_read.c - an earlier summary.json, read back. The file comes from outside: its size, its
 * depth and every field are checked before they are believed. */
#include "report/report.h"

#include "base/mapfile.h"
#include "base/text.h"
#include "report/earlier.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* 256 findings and the latencies of thousands of iterations are below 4 MiB. */
#define SUMMARY_LIMIT_BYTES (64u << 20)
/* More than any audit keeps; bounds what a hostile file makes us allocate. */
#define SUMMARY_ITEM_LIMIT 65536u

struct reading {
    const char *path;
    struct error *err;
};

/* ---- Fields --------------------------------------------------------------------------------- */

static const char *type_name(const json_t *value)
{
    if (!value)
        return "nothing";
    static const char *const names[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list",  [JSON_STRING] = "text",
        [JSON_INTEGER] = "a number", [JSON_REAL] = "a number", [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",      [JSON_NULL] = "null"
    };
    return names[json_typeof(value)];
}

static enum status expected(const struct reading *reading, const char *field, const char *wanted,
                            const json_t *found)
{
    return error_set(reading->err, STATUS_BAD_FILE, "%s: %s: expected %s, found %s", reading->path,
                     field, wanted, type_name(found));
}

/* Text of a field, owned; optional: null and absent give NULL. */
static enum status read_text(const struct reading *reading, const json_t *object, const char *field,
                             bool optional, char **ret)
{
    const json_t *value = json_object_get(object, field);
    if (optional && (!value || json_is_null(value)))
        return STATUS_OK;
    if (!json_is_string(value))
        return expected(reading, field, "text", value);
    *ret = strdup(json_string_value(value));
    return *ret ? STATUS_OK
                : error_set(reading->err, STATUS_NO_MEMORY, "%s: no memory for %s", reading->path,
                            field);
}

static enum status read_list(const struct reading *reading, const json_t *root, const char *field,
                             json_t **ret)
{
    json_t *list = json_object_get(root, field);
    if (!json_is_array(list))
        return expected(reading, field, "a list", list);
    if (json_array_size(list) > SUMMARY_ITEM_LIMIT)
        return error_set(reading->err, STATUS_LIMIT, "%s: %s: expected at most %u items, found %zu",
                         reading->path, field, SUMMARY_ITEM_LIMIT, json_array_size(list));
    *ret = list;
    return STATUS_OK;
}

static enum status read_outcome(const struct reading *reading, const json_t *root,
                                enum audit_outcome *ret)
{
    const json_t *value = json_object_get(root, "outcome");
    if (!json_is_string(value))
        return expected(reading, "outcome", "text", value);
    for (int i = 0; i < AUDIT_OUTCOME_COUNT; i++)
        if (strcmp(json_string_value(value), audit_outcome_name((enum audit_outcome)i)) == 0) {
            *ret = (enum audit_outcome)i;
            return STATUS_OK;
        }
    char shown[64];
    return error_set(reading->err, STATUS_BAD_FILE,
                     "%s: outcome: expected CLEAN, ROOT_CAUSE, DEFECT_SEEN, NOT_SEEN, "
                     "NOT_REPRODUCED or INCONCLUSIVE, found '%s'",
                     reading->path,
                     text_printable(text_view_of(json_string_value(value)), shown, sizeof(shown)));
}

/* {"en": .., "es": ..}; the Spanish one may be absent. */
static enum status read_both(const struct reading *reading, const json_t *object, char **ret_en,
                             char **ret_es)
{
    const json_t *both = json_object_get(object, "text");
    if (!json_is_object(both))
        return expected(reading, "text", "an object", both);
    TRY(read_text(reading, both, "en", false, ret_en));
    return read_text(reading, both, "es", true, ret_es);
}

/* ---- Parts ---------------------------------------------------------------------------------- */

static enum status read_root(const struct reading *reading, const json_t *root,
                             struct report_summary *summary)
{
    const json_t *cause = json_object_get(root, "root_cause");
    if (json_is_null(cause))
        return STATUS_OK;
    if (!json_is_object(cause))
        return expected(reading, "root_cause", "an object or null", cause);
    return read_both(reading, cause, &summary->root_cause, &summary->root_cause_es);
}

static enum status read_findings(const struct reading *reading, const json_t *root,
                                 struct report_summary *summary)
{
    json_t *list, *item;
    size_t i;
    TRY(read_list(reading, root, "findings", &list));
    summary->findings = calloc(json_array_size(list) + 1, sizeof(*summary->findings));
    if (!summary->findings)
        return error_set(reading->err, STATUS_NO_MEMORY, "%s: no memory for %zu findings",
                         reading->path, json_array_size(list));
    json_array_foreach (list, i, item) {
        struct report_summary_finding *finding = &summary->findings[summary->finding_count++];
        if (!json_is_object(item))
            return expected(reading, "findings", "objects", item);
        TRY(read_text(reading, item, "hypothesis", false, &finding->slug));
        TRY(read_text(reading, item, "key", false, &finding->key));
        TRY(read_both(reading, item, &finding->text, &finding->text_es));
    }
    return STATUS_OK;
}

static enum status read_figures(const struct reading *reading, const json_t *root,
                                struct report_summary *summary)
{
    json_t *list, *item;
    size_t i;
    TRY(read_list(reading, root, "figures", &list));
    summary->timings = calloc(json_array_size(list) + 1, sizeof(*summary->timings));
    if (!summary->timings)
        return error_set(reading->err, STATUS_NO_MEMORY, "%s: no memory for %zu figures",
                         reading->path, json_array_size(list));
    json_array_foreach (list, i, item) {
        struct report_summary_timing *timing = &summary->timings[summary->timing_count++];
        const json_t *value = json_object_get(item, "value");
        TRY(read_text(reading, item, "what", false, &timing->what));
        if (!json_is_number(value) || !isfinite(json_number_value(value)))
            return expected(reading, "value", "a number", value);
        timing->value = json_number_value(value);
    }
    return STATUS_OK;
}

static enum status check_schema(const struct reading *reading, const json_t *root)
{
    const json_t *schema = json_object_get(root, "schema");
    const json_t *version = json_object_get(root, "schema_version");
    if (!json_is_string(schema) || strcmp(json_string_value(schema), "greta-audit-summary") != 0)
        return error_set(reading->err, STATUS_BAD_FILE,
                         "%s: schema: expected \"greta-audit-summary\": not a summary of an audit",
                         reading->path);
    if (!json_is_integer(version) || json_integer_value(version) != 1)
        return error_set(reading->err, STATUS_UNSUPPORTED,
                         "%s: schema_version: expected 1; read it with the greta that wrote it",
                         reading->path);
    return STATUS_OK;
}

static enum status read_all(const struct reading *reading, const json_t *root,
                            struct report_summary *summary)
{
    TRY(check_schema(reading, root));
    TRY(read_text(reading, root, "id", false, &summary->id));
    TRY(read_text(reading, root, "date", false, &summary->date));
    TRY(read_text(reading, root, "device", true, &summary->device));
    TRY(read_text(reading, root, "model", true, &summary->model));
    TRY(read_text(reading, root, "workload_sha256", true, &summary->workload_sha256));
    summary->partial = json_is_true(json_object_get(root, "partial"));
    TRY(read_outcome(reading, root, &summary->outcome));
    TRY(read_root(reading, root, summary));
    TRY(read_findings(reading, root, summary));
    return read_figures(reading, root, summary);
}

/* ---- The file ------------------------------------------------------------------------------- */

static enum status load(const struct reading *reading, const void *bytes, size_t count,
                        json_t **ret)
{
    json_error_t problem;
    if (count == 0)
        return error_set(reading->err, STATUS_BAD_FILE, "%s: expected JSON, found an empty file",
                         reading->path);
    if (count > SUMMARY_LIMIT_BYTES)
        return error_set(reading->err, STATUS_LIMIT, "%s: expected at most %u bytes, found %zu",
                         reading->path, SUMMARY_LIMIT_BYTES, count);
    *ret = json_loadb(bytes, count, JSON_REJECT_DUPLICATES, &problem);
    if (*ret)
        return STATUS_OK;
    char shown[JSON_ERROR_TEXT_LENGTH];
    return error_set(reading->err, STATUS_BAD_FILE, "%s: line %d: not JSON: %s", reading->path,
                     problem.line,
                     text_printable(text_view_of(problem.text), shown, sizeof(shown)));
}

enum status report_summary_parse(const void *bytes, size_t count, const char *name,
                                 struct report_summary *ret_summary, struct error *err)
{
    struct reading reading = { name, err };
    struct report_summary summary = { 0 };
    json_t *root = NULL;
    enum status status = load(&reading, bytes, count, &root);
    if (!status)
        status = read_all(&reading, root, &summary);
    json_decref(root);
    if (status)
        report_summary_release(&summary);
    else
        *ret_summary = summary;
    return status;
}

enum status report_summary_read(const char *path, struct report_summary *ret_summary,
                                struct error *err)
{
    struct mapfile map;
    TRY(mapfile_open(&map, path, err));
    enum status status = report_summary_parse(map.data, (size_t)map.size, path, ret_summary, err);
    mapfile_release(&map);
    return status;
}

void report_summary_release(struct report_summary *summary)
{
    for (size_t i = 0; i < summary->finding_count; i++) {
        free(summary->findings[i].slug);
        free(summary->findings[i].key);
        free(summary->findings[i].text);
        free(summary->findings[i].text_es);
    }
    for (size_t i = 0; i < summary->timing_count; i++)
        free(summary->timings[i].what);
    free(summary->findings);
    free(summary->timings);
    free(summary->id);
    free(summary->date);
    free(summary->device);
    free(summary->model);
    free(summary->workload_sha256);
    free(summary->root_cause);
    free(summary->root_cause_es);
    *summary = (struct report_summary){ 0 };
}
