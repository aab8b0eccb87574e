/* schema_one_of.c - oneOf: a value must not be valid for a second alternative. What is written for
 * one is never checked against the others, so alternatives are accepted only if they are visibly
 * apart: by their types, by listed values, or, for objects, by a property. */
#include "grammar/schema.h"

#include <string.h>

/* Properties inside properties that are looked at. */
#define DEPTH 4u
/* Comparisons for a whole schema; past them nothing is apart any more. */
#define COMPARISON_LIMIT 100000u

static bool are_apart(struct schema_reader *reader, const struct schema_set *written,
                      const struct schema_set *other, unsigned depth);

static bool has_choice(const struct schema_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct schema_part *part = &set->parts[i];
        if ((!part->skip_any && json_object_get(part->schema, "anyOf")) ||
            (!part->skip_one && json_object_get(part->schema, "oneOf")))
            return true;
    }
    return false;
}

/* ---- Values --------------------------------------------------------------------------------- */

static bool is_valid_value(const struct schema_set *set, const struct schema_facts *facts,
                           const json_t *value)
{
    if (!(schema_type_of(value) & facts->types))
        return false;
    for (size_t i = 0; i < set->count; i++) {
        const json_t *all = json_object_get(set->parts[i].schema, "enum"), *item;
        const json_t *one = json_object_get(set->parts[i].schema, "const");
        bool found = !all;
        size_t index;
        json_array_foreach (all, index, item)
            found = found || schema_equal(item, value);
        if (!found || (one && !schema_equal(one, value)))
            return false;
    }
    return true;
}

/* True if no value that is listed for one may be valid for the other. */
static bool values_are_apart(const struct schema_facts *written, const struct schema_set *other,
                             const struct schema_facts *facts)
{
    const json_t *item;
    size_t index;
    if (!written->values)
        return false;
    if (written->values_is_const)
        return !is_valid_value(other, facts, written->values);
    json_array_foreach (written->values, index, item)
        if (is_valid_value(other, facts, item))
            return false;
    return true;
}

/* ---- Objects -------------------------------------------------------------------------------- */

static bool is_required(const struct schema_set *set, const char *name)
{
    for (size_t i = 0; i < set->count; i++) {
        const json_t *item;
        size_t index;
        json_array_foreach (json_object_get(set->parts[i].schema, "required"), index, item)
            if (json_is_string(item) && strcmp(json_string_value(item), name) == 0)
                return true;
    }
    return false;
}

static bool is_named(const struct schema_set *set, const char *name)
{
    for (size_t i = 0; i < set->count; i++)
        if (schema_member(&set->parts[i], "properties", name))
            return true;
    return is_required(set, name);
}

/* True if objects that are written for the set have named properties alone. */
static bool is_closed(const struct schema_set *set)
{
    bool has_names = false;
    for (size_t i = 0; i < set->count; i++) {
        const json_t *others = json_object_get(set->parts[i].schema, "additionalProperties");
        if (json_is_false(others))
            return true;
        if (others)
            return false;
        has_names = has_names ||
                    json_object_size(json_object_get(set->parts[i].schema, "properties"));
    }
    return has_names && !has_choice(set);
}

/* True if the schema lets no object have the property. */
static bool forbids(const struct schema_part *part, const char *name)
{
    const json_t *own = schema_member(part, "properties", name);
    return json_is_false(own) ||
           (!own && json_is_false(json_object_get(part->schema, "additionalProperties")));
}

/* True if the property, which is always written, shows the two apart. */
static bool property_shows(struct schema_reader *reader, const struct schema_set *written,
                           const struct schema_set *other, const char *name, unsigned depth)
{
    struct schema_set own = { .count = 0 }, theirs = { .count = 0 };
    struct error unused;
    for (size_t i = 0; i < other->count; i++)
        if (forbids(&other->parts[i], name))
            return true;
    for (size_t i = 0; i < written->count; i++) {
        const json_t *schema = schema_member(&written->parts[i], "properties", name);
        if (schema && schema_add(reader, &own, schema, &unused))
            return false;
    }
    for (size_t i = 0; i < other->count; i++) {
        const json_t *schema = schema_member(&other->parts[i], "properties", name);
        if (schema && schema_add(reader, &theirs, schema, &unused))
            return false;
    }
    return are_apart(reader, &own, &theirs, depth - 1);
}

static bool objects_are_apart(struct schema_reader *reader, const struct schema_set *written,
                              const struct schema_set *other, unsigned depth)
{
    const json_t *item;
    size_t index;
    bool closed = is_closed(written) && !has_choice(written);
    for (size_t i = 0; closed && i < other->count; i++)
        json_array_foreach (json_object_get(other->parts[i].schema, "required"), index, item)
            if (json_is_string(item) && !is_named(written, json_string_value(item)))
                return true;
    for (size_t i = 0; i < written->count; i++)
        json_array_foreach (json_object_get(written->parts[i].schema, "required"), index, item)
            if (json_is_string(item) &&
                property_shows(reader, written, other, json_string_value(item), depth))
                return true;
    return false;
}

/* ---- Both ----------------------------------------------------------------------------------- */

/* True if nothing that is written for one is valid for the other. */
static bool are_apart(struct schema_reader *reader, const struct schema_set *written,
                      const struct schema_set *other, unsigned depth)
{
    struct schema_facts facts, theirs;
    struct error unused;
    if (written->never || other->never)
        return true;
    if (depth == 0 || ++reader->compared > COMPARISON_LIMIT ||
        schema_find_facts(reader, written, &facts, &unused) ||
        schema_find_facts(reader, other, &theirs, &unused))
        return false;
    /* Types are implied only where no choice brings others. */
    unsigned types = has_choice(written) ? facts.types : schema_types(&facts);
    if (!(types & theirs.types) || values_are_apart(&facts, other, &theirs))
        return true;
    return types == SCHEMA_OBJECT && objects_are_apart(reader, written, other, depth);
}

enum status schema_check_apart(struct schema_reader *reader, const json_t *schema,
                               const struct schema_set *sets, size_t count, struct error *err)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++)
            if (i != k && !are_apart(reader, &sets[i], &sets[k], DEPTH))
                return schema_fail(reader, schema, STATUS_UNSUPPORTED, err,
                                   "oneOf: a value may be valid for both alternative %zu and %zu; "
                                   "use anyOf, or make them differ in their types, in listed "
                                   "values or in a required property",
                                   i, k);
    return STATUS_OK;
}
