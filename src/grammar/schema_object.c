/* schema_object.c - objects: properties in the order of the schema, those that are not required may
 * be left out, others come last if the schema asks for them.
 *
 * Two rules for each property: what follows if none was written yet, and what follows after one,
 * which begins with a comma. */
#include "grammar/schema.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

/* Properties of one object, whose names are compared with each other. */
#define PROPERTY_LIMIT 4096u

struct property {
    const char *name;
    bool is_required;
};

struct object {
    struct schema_reader *reader;
    const struct schema_set *set;
    struct property *properties;
    size_t count, capacity;
};

/* ---- Which properties ----------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct property *)a)->name, ((const struct property *)b)->name);
}

static enum status add_property(struct object *object, const char *name, bool is_required,
                                struct error *err)
{
    if (object->count == PROPERTY_LIMIT)
        return schema_fail(object->reader, object->set->parts[0].schema, STATUS_LIMIT, err,
                           "expected at most %u properties", PROPERTY_LIMIT);
    struct property *larger = array_reserve(object->properties, object->count, &object->capacity,
                                            sizeof(*larger));
    if (!larger)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a schema");
    object->properties = larger;
    larger[object->count++] = (struct property){ name, is_required };
    return STATUS_OK;
}

/* True if a property of an earlier part, or an earlier name of `required`, has this name. */
static bool was_added(const struct object *object, const char *name)
{
    for (size_t i = 0; i < object->count; i++)
        if (strcmp(object->properties[i].name, name) == 0)
            return true;
    return false;
}

static enum status add_required(struct object *object, const json_t *schema, struct error *err)
{
    const json_t *required = json_object_get(schema, "required"), *item;
    size_t index;
    if (required && (!json_is_array(required) || json_array_size(required) > PROPERTY_LIMIT))
        return schema_fail(object->reader, schema, STATUS_USAGE, err,
                           "required: expected an array of at most %u names", PROPERTY_LIMIT);
    json_array_foreach (required, index, item) {
        const char *name = json_string_value(item);
        bool found = false;
        if (!name)
            return schema_fail(object->reader, schema, STATUS_USAGE, err,
                               "required: expected an array of names");
        for (size_t i = 0; i < object->count && !found; i++) {
            found = strcmp(object->properties[i].name, name) == 0;
            object->properties[i].is_required |= found;
        }
        if (!found)
            TRY(add_property(object, name, true, err));
    }
    return STATUS_OK;
}

static enum status find_properties(struct object *object, struct error *err)
{
    for (size_t i = 0; i < object->set->count; i++) {
        const json_t *schema = object->set->parts[i].schema, *item;
        const json_t *properties = json_object_get(schema, "properties");
        bool is_first = object->count == 0;
        const char *name;
        if (properties && !json_is_object(properties))
            return schema_fail(object->reader, schema, STATUS_USAGE, err,
                               "properties: expected an object");
        json_object_foreach ((json_t *)properties, name, item)
            if (is_first || !was_added(object, name))
                TRY(add_property(object, name, false, err));
    }
    for (size_t i = 0; i < object->set->count; i++)
        TRY(add_required(object, object->set->parts[i].schema, err));
    return STATUS_OK;
}

/* ---- Their values --------------------------------------------------------------------------- */

/* name NULL: a property that no schema names. */
static enum status find_value(struct object *object, const char *name, uint32_t *ret_node,
                              struct error *err)
{
    struct schema_set set = { .count = 0 };
    for (size_t i = 0; i < object->set->count; i++) {
        const struct schema_part *part = &object->set->parts[i];
        const json_t *own = name ? schema_member(part, "properties", name) : NULL;
        const json_t *other = json_object_get(part->schema, "additionalProperties");
        if (own || other)
            TRY(schema_add(object->reader, &set, own ? own : other, err));
    }
    return schema_value(object->reader, &set, ret_node, err);
}

/* "name": value, and the space after it. */
static enum status build_member(struct object *object, const char *name, uint32_t key,
                                uint32_t *ret_node, struct error *err)
{
    struct rules *rules = &object->reader->rules;
    uint32_t value;
    TRY(find_value(object, name, &value, err));
    uint32_t node = rules_seq(rules, key, rules_word(rules, ":"));
    node = rules_seq(rules, node, schema_space(object->reader));
    node = rules_seq(rules, node, value);
    *ret_node = rules_seq(rules, node, schema_space(object->reader));
    return STATUS_OK;
}

static uint32_t build_comma(struct object *object)
{
    struct rules *rules = &object->reader->rules;
    return rules_seq(rules, rules_word(rules, ","), schema_space(object->reader));
}

/* ---- Names that the schema does not have ---------------------------------------------------- */

static uint32_t first_character(const char *text, size_t *ret_length)
{
    const uint8_t *b = (const uint8_t *)text;
    *ret_length = text_utf8_length(text, strlen(text));
    switch (*ret_length) {
    case 2:
        return (uint32_t)(b[0] & 0x1F) << 6 | (b[1] & 0x3F);
    case 3:
        return (uint32_t)(b[0] & 0x0F) << 12 | (uint32_t)(b[1] & 0x3F) << 6 | (b[2] & 0x3F);
    case 4:
        return (uint32_t)(b[0] & 0x07) << 18 | (uint32_t)(b[1] & 0x3F) << 12 |
               (uint32_t)(b[2] & 0x3F) << 6 | (b[3] & 0x3F);
    default:
        *ret_length = 1;
        return b[0];
    }
}

static void finish_plain(struct charset *set)
{
    charset_add(set, 0, 0x1F);
    charset_add(set, '"', '"');
    charset_add(set, '\\', '\\');
    charset_finish(set);
    charset_negate(set);
}

/* Texts without escapes that are none of the names [from, to), which are sorted and agree in their
 * first `depth` bytes. A name that needs an escape cannot be written this way at all. */
static uint32_t build_other_name(struct object *object, size_t from, size_t to, size_t depth,
                                 uint32_t plain)
{
    struct rules *rules = &object->reader->rules;
    struct charset taken = { 0 };
    bool is_name = false;
    uint32_t choice = RULES_NODE_NEVER, rule = rules_add(rules);
    for (size_t i = from; i < to && !rules->error.status;) {
        const char *rest = object->properties[i].name + depth;
        size_t length, end = i + 1;
        if (!*rest) {
            is_name = true;
            i++;
            continue;
        }
        uint32_t character = first_character(rest, &length);
        while (end < to && strncmp(object->properties[end].name + depth, rest, length) == 0)
            end++;
        charset_add(&taken, character, character);
        uint32_t head = rules_set(rules, &(struct rules_range){ character, character }, 1);
        uint32_t tail = build_other_name(object, i, end, depth + length, plain);
        if (character >= 0x20 && character != '"' && character != '\\')
            choice = rules_alt(rules, choice, rules_seq(rules, head, tail));
        i = end;
    }
    finish_plain(&taken);
    uint32_t other = rules_set(rules, taken.ranges, taken.count);
    choice = rules_alt(rules, choice,
                       rules_seq(rules, other, rules_repeat(rules, plain, 0, RULES_NO_LIMIT)));
    if (!is_name)
        choice = rules_alt(rules, choice, RULES_NODE_EMPTY);
    if (taken.failed && !rules->error.status)
        (void)error_set(&rules->error, STATUS_NO_MEMORY, "no memory for a schema");
    charset_release(&taken);
    rules_define(rules, rule, choice);
    return rules_use(rules, rule);
}

/* Names differ at most this far: each byte of a name is a rule, and a call while it is built. */
#define NAME_LIMIT_BYTES 200u

static enum status build_other_key(struct object *object, uint32_t *ret_node, struct error *err)
{
    struct rules *rules = &object->reader->rules;
    struct charset plain = { 0 };
    if (object->count == 0) {
        *ret_node = schema_any_string(object->reader);
        return STATUS_OK;
    }
    for (size_t i = 0; i < object->count; i++)
        if (strlen(object->properties[i].name) > NAME_LIMIT_BYTES)
            return schema_fail(object->reader, object->set->parts[0].schema, STATUS_LIMIT, err,
                               "additionalProperties: expected names of at most %u bytes",
                               NAME_LIMIT_BYTES);
    struct property *sorted = calloc(object->count, sizeof(*sorted));
    if (!sorted)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a schema");
    memcpy(sorted, object->properties, object->count * sizeof(*sorted));
    qsort(sorted, object->count, sizeof(*sorted), by_name);
    struct object with_sorted = *object;
    with_sorted.properties = sorted;
    finish_plain(&plain);
    uint32_t any = rules_set(rules, plain.ranges, plain.count);
    uint32_t name = build_other_name(&with_sorted, 0, object->count, 0, any);
    charset_release(&plain);
    free(sorted);
    name = rules_seq(rules, rules_word(rules, "\""), name);
    *ret_node = rules_seq(rules, name, rules_word(rules, "\""));
    return STATUS_OK;
}

/* ---- The object ----------------------------------------------------------------------------- */

/* Other properties are written only if a schema speaks of them, or of no property at all. */
static bool takes_others(const struct object *object, const struct schema_facts *facts)
{
    bool asked = object->count == 0 && !facts->is_closed;
    for (size_t i = 0; i < object->set->count; i++) {
        const json_t *others = json_object_get(object->set->parts[i].schema,
                                               "additionalProperties");
        if (json_is_false(others))
            return false;
        asked = asked || others;
    }
    return asked;
}

static enum status build_members(struct object *object, bool others, uint32_t *ret_node,
                                 struct error *err)
{
    struct rules *rules = &object->reader->rules;
    uint32_t first = RULES_NODE_EMPTY, after = RULES_NODE_EMPTY; /* of the next property */
    if (others) {
        uint32_t key, member;
        TRY(build_other_key(object, &key, err));
        TRY(build_member(object, NULL, key, &member, err));
        after = rules_repeat(rules, rules_seq(rules, build_comma(object), member), 0,
                             RULES_NO_LIMIT);
        first = rules_optional(rules, rules_seq(rules, member, after));
    }
    for (size_t i = object->count; i-- > 0;) {
        const struct property *property = &object->properties[i];
        uint32_t member, first_rule = rules_add(rules), after_rule = rules_add(rules);
        TRY(build_member(object, property->name, schema_name(object->reader, property->name),
                         &member, err));
        uint32_t alone = rules_seq(rules, member, after);
        uint32_t next = rules_seq(rules, build_comma(object), alone);
        rules_define(rules, first_rule,
                     property->is_required ? alone : rules_alt(rules, alone, first));
        rules_define(rules, after_rule,
                     property->is_required ? next : rules_alt(rules, next, after));
        first = rules_use(rules, first_rule);
        after = rules_use(rules, after_rule);
    }
    *ret_node = first;
    return STATUS_OK;
}

enum status schema_object(struct schema_reader *reader, const struct schema_set *set,
                          const struct schema_facts *facts, uint32_t *ret_node, struct error *err)
{
    struct object object = { .reader = reader, .set = set };
    struct rules *rules = &reader->rules;
    uint32_t members = RULES_NODE_NEVER;
    enum status status = find_properties(&object, err);
    if (!status)
        status = build_members(&object, takes_others(&object, facts), &members, err);
    free(object.properties);
    if (status)
        return status;
    uint32_t node = rules_seq(rules, rules_word(rules, "{"), schema_space(reader));
    node = rules_seq(rules, node, members);
    *ret_node = rules_seq(rules, node, rules_word(rules, "}"));
    return STATUS_OK;
}
