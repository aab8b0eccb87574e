/* schema_values.c - enum and const: the values that the other schemas of the set allow too. */
#include "grammar/schema.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

bool schema_equal(const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b))
        return json_number_value(a) == json_number_value(b);
    return json_equal(a, b) == 1;
}

static bool is_listed(const json_t *values, const json_t *value)
{
    const json_t *item;
    size_t index;
    json_array_foreach (values, index, item)
        if (schema_equal(item, value))
            return true;
    return false;
}

/* True if enum and const of every schema of the set have the value. */
static bool is_allowed(const struct schema_set *set, const json_t *value)
{
    for (size_t i = 0; i < set->count; i++) {
        const json_t *all = json_object_get(set->parts[i].schema, "enum");
        const json_t *one = json_object_get(set->parts[i].schema, "const");
        if ((one && !schema_equal(one, value)) || (all && !is_listed(all, value)))
            return false;
    }
    return true;
}

/* ---- Other keywords ------------------------------------------------------------------------- */

static size_t character_count(const json_t *string)
{
    const char *text = json_string_value(string);
    size_t count = 0;
    for (size_t i = 0; i < json_string_length(string); i++)
        count += (text[i] & 0xC0) != 0x80;
    return count;
}

static bool is_inside(const struct schema_facts *facts, const json_t *value)
{
    if (json_is_number(value)) {
        double number = json_number_value(value);
        return number >= facts->least && number <= facts->most &&
               !(facts->above_least && number == facts->least) &&
               !(facts->below_most && number == facts->most);
    }
    if (json_is_string(value)) {
        size_t count = character_count(value);
        return count >= facts->least_length && count <= facts->most_length;
    }
    return true;
}

/* Keywords that a listed value would have to be checked against in depth. */
static const json_t *find_deep(const struct schema_set *set, const json_t *value,
                               const char **ret_keyword)
{
    static const char *const of_objects[] = { "properties", "required", "additionalProperties",
                                              "unevaluatedProperties", NULL };
    static const char *const of_arrays[] = { "items",    "prefixItems",      "minItems",
                                             "maxItems", "unevaluatedItems", NULL };
    static const char *const of_strings[] = { "pattern", NULL };
    static const char *const none[] = { NULL };
    const char *const *keywords = json_is_object(value)   ? of_objects
                                  : json_is_array(value)  ? of_arrays
                                  : json_is_string(value) ? of_strings
                                                          : none;
    for (size_t i = 0; i < set->count; i++)
        for (size_t k = 0; keywords[k]; k++)
            if (json_object_get(set->parts[i].schema, keywords[k])) {
                *ret_keyword = keywords[k];
                return set->parts[i].schema;
            }
    return NULL;
}

/* ---- Text ----------------------------------------------------------------------------------- */

static uint32_t dump(struct schema_reader *reader, const json_t *value)
{
    struct rules *rules = &reader->rules;
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    if (!text) {
        if (!rules->error.status)
            (void)error_set(&rules->error, STATUS_NO_MEMORY, "no memory for a schema");
        return RULES_NODE_NEVER;
    }
    uint32_t node = rules_word(rules, text);
    free(text);
    return node;
}

uint32_t schema_name(struct schema_reader *reader, const char *name)
{
    json_t *string = json_string(name);
    uint32_t node = dump(reader, string);
    json_decref(string);
    return node;
}

uint32_t schema_scalar(struct schema_reader *reader, const json_t *value)
{
    char text[64];
    if (!json_is_real(value))
        return dump(reader, value);
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(text, sizeof(text), "%.*g", precision, json_real_value(value));
        if (strtod(text, NULL) == json_real_value(value))
            break;
    }
    return rules_word(&reader->rules, text);
}

/* depth: parts inside each other that are left. */
static uint32_t whole_value(struct schema_reader *reader, const json_t *value, unsigned depth)
{
    struct rules *rules = &reader->rules;
    const char *name;
    json_t *item;
    size_t index;
    bool is_object = json_is_object(value), is_first = true;
    if (!is_object && !json_is_array(value))
        return schema_scalar(reader, value);
    if (depth == 0) {
        if (!rules->error.status)
            (void)error_set(&rules->error, STATUS_LIMIT, "%s: expected less deeply nested values",
                            reader->source);
        return RULES_NODE_NEVER;
    }
    uint32_t node = rules_seq(rules, rules_word(rules, is_object ? "{" : "["),
                              schema_space(reader));
    json_object_foreach ((json_t *)value, name, item) {
        if (!is_first)
            node = rules_seq(rules, rules_seq(rules, node, rules_word(rules, ",")),
                             schema_space(reader));
        is_first = false;
        node = rules_seq(rules, node, schema_name(reader, name));
        node = rules_seq(rules, rules_seq(rules, node, rules_word(rules, ":")),
                         schema_space(reader));
        node = rules_seq(rules, node, whole_value(reader, item, depth - 1));
        node = rules_seq(rules, node, schema_space(reader));
    }
    json_array_foreach (value, index, item) {
        if (index)
            node = rules_seq(rules, rules_seq(rules, node, rules_word(rules, ",")),
                             schema_space(reader));
        node = rules_seq(rules, node, whole_value(reader, item, depth - 1));
        node = rules_seq(rules, node, schema_space(reader));
    }
    return rules_seq(rules, node, rules_word(rules, is_object ? "}" : "]"));
}

/* ---- The choice ----------------------------------------------------------------------------- */

static enum status add_value(struct schema_reader *reader, const struct schema_set *set,
                             const struct schema_facts *facts, const json_t *value,
                             uint32_t *choice, struct error *err)
{
    const char *keyword = "";
    if (!(schema_type_of(value) & facts->types) || !is_inside(facts, value) ||
        !is_allowed(set, value))
        return STATUS_OK;
    const json_t *deep = find_deep(set, value, &keyword);
    if (deep)
        return schema_fail(reader, deep, STATUS_UNSUPPORTED, err,
                           "'%s' together with enum or const cannot be obeyed", keyword);
    *choice = rules_alt(&reader->rules, *choice, whole_value(reader, value, RULES_DEPTH_LIMIT / 2));
    return STATUS_OK;
}

enum status schema_values(struct schema_reader *reader, const struct schema_set *set,
                          const struct schema_facts *facts, uint32_t *ret_node, struct error *err)
{
    const json_t *item;
    size_t index;
    *ret_node = RULES_NODE_NEVER;
    if (facts->values_is_const)
        return add_value(reader, set, facts, facts->values, ret_node, err);
    json_array_foreach (facts->values, index, item)
        TRY(add_value(reader, set, facts, item, ret_node, err));
    return STATUS_OK;
}
