/* manifest.c - manifest.json: what the evidence is bound to. */
#include "report/json_tools.h"

#include "report/facts.h"

static json_t *greta_json(struct text *out, const struct report_identity *identity)
{
    json_t *item = json_object();
    json_put_text(out, item, "version", identity->version);
    json_put_text(out, item, "commit", identity->commit);
    json_put_text(out, item, "binary_sha256", identity->binary_sha256);
    return item;
}

static json_t *model_json(struct text *out, const struct report_identity *identity)
{
    if (!identity->model_path && !identity->model_name)
        return json_null();
    json_t *item = json_object();
    json_put_text(out, item, "path", identity->model_path);
    json_put_text(out, item, "name", identity->model_name);
    json_put_text(out, item, "sha256", identity->model_sha256);
    return item;
}

static json_t *device_json(struct text *out, const struct report_identity *identity)
{
    json_t *item = json_object();
    json_put_text(out, item, "kind", identity->device_kind);
    json_put_text(out, item, "name", identity->device_name);
    json_put_text(out, item, "driver", identity->device_driver);
    json_put_count(out, item, "memory_bytes", identity->device_memory_bytes);
    return item;
}

static json_t *environment_json(struct text *out, const struct report_identity *identity)
{
    json_t *list = json_array();
    for (size_t i = 0; i < identity->environment_count; i++)
        json_add_text(out, list, identity->environment[i]);
    return list;
}

/* NULL where they are not the JSON they should be. */
static json_t *parameters_json(const struct report_row *row)
{
    if (!row->parameters)
        return json_null();
    return json_loads(row->parameters, JSON_DECODE_ANY, NULL);
}

static json_t *row_json(struct text *out, const struct report_row *row)
{
    json_t *item = json_object();
    json_t *parameters = parameters_json(row);
    json_put_text(out, item, "label", row->label);
    json_put_text(out, item, "mode", report_row_mode_name(row->mode));
    json_put_text(out, item, "level", audit_level_name(row->level));
    json_put_count(out, item, "planned", row->planned);
    json_put_text(out, item, "log", row->log);
    json_put_text(out, item, "log_sha256", row->log_sha256);
    json_put_text(out, item, "flight", row->flight);
    json_put_text(out, item, "flight_sha256", row->flight_sha256);
    if (parameters)
        json_put(out, item, "parameters", parameters);
    else
        json_put_text(out, item, "parameters", row->parameters);
    return item;
}

void report_manifest_json(const struct report_facts *facts, struct text *text)
{
    const struct report_identity *identity = &facts->identity;
    json_t *root = json_object(), *rows = json_array();
    json_put_text(text, root, "schema", "greta-audit-manifest");
    json_put_integer(text, root, "schema_version", 1);
    json_put_text(text, root, "id", identity->id);
    json_put_text(text, root, "date", identity->date);
    json_put_text(text, root, "author", identity->author);
    json_put(text, root, "greta", greta_json(text, identity));
    json_put(text, root, "model", model_json(text, identity));
    json_put(text, root, "device", device_json(text, identity));
    json_put_text(text, root, "command", identity->command);
    json_put_count(text, root, "seed", identity->seed);
    json_put_flag(text, root, "locked", identity->locked);
    json_put(text, root, "environment", environment_json(text, identity));
    json_put_text(text, root, "self_test_key", facts->self_test_key);
    json_put_text(text, root, "baseline", facts->baseline);
    json_put_flag(text, root, "partial", facts->partial);
    for (size_t i = 0; i < facts->row_count; i++)
        json_add(text, rows, row_json(text, &facts->rows[i]));
    json_put(text, root, "rows", rows);
    json_print(text, root);
}
