/* schema_facts.c - what the keywords of some schemas say together about a value itself.
 *
 * A keyword that greta cannot obey is refused by its name, unless it narrows nothing. Keywords that
 * are not in the table are annotations, as JSON Schema has it. */
#include "grammar/schema.h"

#include <math.h>
#include <string.h>

/* What a keyword that is not obeyed may be without narrowing anything. */
enum harmless { NEVER_HARMLESS, IF_EMPTY, IF_FALSE, IF_TRUE, IF_ZERO, IF_ONE };

static const struct {
    const char *keyword;
    enum harmless harmless;
} refused[] = {
    { "not", NEVER_HARMLESS },           { "if", NEVER_HARMLESS },
    { "dependentRequired", IF_EMPTY },   { "dependentSchemas", IF_EMPTY },
    { "dependencies", IF_EMPTY },        { "patternProperties", IF_EMPTY },
    { "propertyNames", IF_TRUE },        { "minProperties", IF_ZERO },
    { "maxProperties", NEVER_HARMLESS }, { "uniqueItems", IF_FALSE },
    { "contains", NEVER_HARMLESS },      { "multipleOf", IF_ONE },
    { "$dynamicRef", NEVER_HARMLESS },   { "$recursiveRef", NEVER_HARMLESS },
    { "extends", NEVER_HARMLESS },       { "disallow", NEVER_HARMLESS },
    { "divisibleBy", NEVER_HARMLESS },
};

static bool is_harmless(const json_t *value, enum harmless harmless)
{
    switch (harmless) {
    case NEVER_HARMLESS:
        return false;
    case IF_EMPTY:
        return json_is_object(value) && json_object_size(value) == 0;
    case IF_FALSE:
        return json_is_false(value);
    case IF_TRUE:
        return json_is_true(value) || (json_is_object(value) && json_object_size(value) == 0);
    case IF_ZERO:
        return json_is_number(value) && json_number_value(value) <= 0;
    case IF_ONE: /* where the value is an integer: see add_part */
        return json_is_number(value) && json_number_value(value) == 1;
    }
    return false;
}

static enum status check_refused(const struct schema_reader *reader, const json_t *schema,
                                 struct error *err)
{
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        const json_t *value = json_object_get(schema, refused[i].keyword);
        if (value && !is_harmless(value, refused[i].harmless))
            return schema_fail(reader, schema, STATUS_UNSUPPORTED, err,
                               "'%s' cannot be obeyed; leave it out, or check it afterwards",
                               refused[i].keyword);
    }
    return STATUS_OK;
}

/* ---- Types ---------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    unsigned types;
} type_names[] = {
    { "null", SCHEMA_NULL },     { "boolean", SCHEMA_BOOLEAN }, { "integer", SCHEMA_INTEGER },
    { "number", SCHEMA_NUMBER }, { "string", SCHEMA_STRING },   { "array", SCHEMA_ARRAY },
    { "object", SCHEMA_OBJECT },
};

unsigned schema_type_of(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return SCHEMA_OBJECT;
    case JSON_ARRAY:
        return SCHEMA_ARRAY;
    case JSON_STRING:
        return SCHEMA_STRING;
    case JSON_INTEGER:
        return SCHEMA_INTEGER;
    case JSON_REAL:
        return floor(json_real_value(value)) == json_real_value(value) ? SCHEMA_INTEGER
                                                                       : SCHEMA_FRACTION;
    case JSON_NULL:
        return SCHEMA_NULL;
    default:
        return SCHEMA_BOOLEAN;
    }
}

static enum status add_type(const struct schema_reader *reader, const json_t *schema,
                            const json_t *name, unsigned *types, struct error *err)
{
    const char *text = json_string_value(name);
    for (size_t i = 0; text && i < COUNT_OF(type_names); i++)
        if (strcmp(text, type_names[i].name) == 0) {
            *types |= type_names[i].types;
            return STATUS_OK;
        }
    return schema_fail(reader, schema, STATUS_USAGE, err,
                       "type: expected null, boolean, integer, number, string, array or object, "
                       "found '%.60s'",
                       text ? text : "something else");
}

static enum status add_types(const struct schema_reader *reader, const json_t *schema,
                             struct schema_facts *facts, struct error *err)
{
    const json_t *type = json_object_get(schema, "type"), *item;
    unsigned types = 0;
    size_t index;
    if (!type)
        return STATUS_OK;
    json_array_foreach (type, index, item)
        TRY(add_type(reader, schema, item, &types, err));
    if (!json_is_array(type))
        TRY(add_type(reader, schema, type, &types, err));
    facts->types &= types;
    facts->has_types = true;
    return STATUS_OK;
}

unsigned schema_types(const struct schema_facts *facts)
{
    return facts->has_types || !facts->implied ? facts->types : facts->implied;
}

/* A schema without types means those that its keywords are for. */
static void add_implied(const json_t *schema, struct schema_facts *facts)
{
    static const struct {
        const char *keyword;
        unsigned types;
    } implied[] = {
        { "properties", SCHEMA_OBJECT },
        { "required", SCHEMA_OBJECT },
        { "additionalProperties", SCHEMA_OBJECT },
        { "items", SCHEMA_ARRAY },
        { "prefixItems", SCHEMA_ARRAY },
        { "minItems", SCHEMA_ARRAY },
        { "maxItems", SCHEMA_ARRAY },
        { "minLength", SCHEMA_STRING },
        { "maxLength", SCHEMA_STRING },
        { "pattern", SCHEMA_STRING },
        { "minimum", SCHEMA_NUMBER },
        { "maximum", SCHEMA_NUMBER },
        { "exclusiveMinimum", SCHEMA_NUMBER },
        { "exclusiveMaximum", SCHEMA_NUMBER },
    };
    for (size_t i = 0; i < COUNT_OF(implied); i++)
        if (json_object_get(schema, implied[i].keyword))
            facts->implied |= implied[i].types;
}

/* ---- Limits --------------------------------------------------------------------------------- */

static enum status find_number(const struct schema_reader *reader, const json_t *schema,
                               const char *keyword, bool *ret_found, double *ret, struct error *err)
{
    const json_t *value = json_object_get(schema, keyword);
    *ret_found = value != NULL;
    if (value && !json_is_number(value))
        return schema_fail(reader, schema, STATUS_USAGE, err, "%s: expected a number", keyword);
    if (value)
        *ret = json_number_value(value);
    return STATUS_OK;
}

static enum status add_bounds(const struct schema_reader *reader, const json_t *schema,
                              struct schema_facts *facts, struct error *err)
{
    bool found;
    double value = 0;
    TRY(find_number(reader, schema, "minimum", &found, &value, err));
    if (found && value > facts->least) {
        facts->least = value;
        facts->above_least = false;
    }
    TRY(find_number(reader, schema, "exclusiveMinimum", &found, &value, err));
    if (found && value >= facts->least) {
        facts->least = value;
        facts->above_least = true;
    }
    TRY(find_number(reader, schema, "maximum", &found, &value, err));
    if (found && value < facts->most) {
        facts->most = value;
        facts->below_most = false;
    }
    TRY(find_number(reader, schema, "exclusiveMaximum", &found, &value, err));
    if (found && value <= facts->most) {
        facts->most = value;
        facts->below_most = true;
    }
    return STATUS_OK;
}

static enum status add_count(const struct schema_reader *reader, const json_t *schema,
                             const char *keyword, bool is_least, uint64_t *limit, struct error *err)
{
    bool found;
    double value = 0;
    TRY(find_number(reader, schema, keyword, &found, &value, err));
    if (!found)
        return STATUS_OK;
    if (value < 0 || floor(value) != value)
        return schema_fail(reader, schema, STATUS_USAGE, err,
                           "%s: expected a whole number from 0, found %g", keyword, value);
    if (is_least && value > 1e6)
        return schema_fail(reader, schema, STATUS_LIMIT, err, "%s: expected at most 1000000",
                           keyword);
    uint64_t count = value >= RULES_NO_LIMIT ? RULES_NO_LIMIT : (uint64_t)value;
    if (is_least ? count > *limit : count < *limit)
        *limit = count;
    return STATUS_OK;
}

static enum status add_pattern(const struct schema_reader *reader, const json_t *schema,
                               struct schema_facts *facts, struct error *err)
{
    const json_t *pattern = json_object_get(schema, "pattern");
    const char *text = json_string_value(pattern);
    const char *format = json_string_value(json_object_get(schema, "format"));
    if (format)
        facts->format = format;
    if (!pattern)
        return STATUS_OK;
    if (!text)
        return schema_fail(reader, schema, STATUS_USAGE, err, "pattern: expected text");
    if (facts->pattern && strcmp(facts->pattern, text) != 0)
        return schema_fail(reader, schema, STATUS_UNSUPPORTED, err,
                           "two patterns for one value cannot be obeyed");
    facts->pattern = text;
    facts->pattern_schema = schema;
    return STATUS_OK;
}

static enum status add_values(const struct schema_reader *reader, const json_t *schema,
                              struct schema_facts *facts, struct error *err)
{
    const json_t *all = json_object_get(schema, "enum"), *one = json_object_get(schema, "const");
    if (all && (!json_is_array(all) || json_array_size(all) == 0))
        return schema_fail(reader, schema, STATUS_USAGE, err, "enum: expected an array of values");
    if (!facts->values && (all || one)) {
        facts->values = one ? one : all;
        facts->values_is_const = one != NULL;
    }
    return STATUS_OK;
}

/* ---- All of them ---------------------------------------------------------------------------- */

static enum status add_part(const struct schema_reader *reader, const json_t *schema,
                            struct schema_facts *facts, struct error *err)
{
    const json_t *properties = json_object_get(schema, "unevaluatedProperties");
    const json_t *items = json_object_get(schema, "unevaluatedItems");
    TRY(check_refused(reader, schema, err));
    TRY(add_types(reader, schema, facts, err));
    add_implied(schema, facts);
    TRY(add_bounds(reader, schema, facts, err));
    TRY(add_count(reader, schema, "minLength", true, &facts->least_length, err));
    TRY(add_count(reader, schema, "maxLength", false, &facts->most_length, err));
    TRY(add_count(reader, schema, "minItems", true, &facts->least_items, err));
    TRY(add_count(reader, schema, "maxItems", false, &facts->most_items, err));
    TRY(add_pattern(reader, schema, facts, err));
    TRY(add_values(reader, schema, facts, err));
    facts->is_closed |= properties && !json_is_true(properties);
    facts->items_are_closed |= items && !json_is_true(items);
    if (json_object_get(schema, "multipleOf")) { /* of 1 */
        facts->types &= ~(unsigned)SCHEMA_FRACTION;
        facts->implied &= ~(unsigned)SCHEMA_FRACTION;
    }
    return STATUS_OK;
}

enum status schema_find_facts(const struct schema_reader *reader, const struct schema_set *set,
                              struct schema_facts *ret, struct error *err)
{
    *ret = (struct schema_facts){ .types = SCHEMA_ANY_TYPE,
                                  .least = -INFINITY,
                                  .most = INFINITY,
                                  .most_length = RULES_NO_LIMIT,
                                  .most_items = RULES_NO_LIMIT };
    for (size_t i = 0; i < set->count; i++)
        TRY(add_part(reader, set->parts[i].schema, ret, err));
    return STATUS_OK;
}
