/* schema_set.c - sets of schemas: a schema with all that its $ref and allOf add. */
#include "grammar/schema.h"

#include <ctype.h>
#include <stdlib.h>

/* ---- References ----------------------------------------------------------------------------- */

/* The part of a pointer up to the next slash, with its escapes undone. */
static bool next_token(const char **at, char *token, size_t size)
{
    size_t length = 0;
    if (**at != '/')
        return false;
    for ((*at)++; **at && **at != '/'; (*at)++) {
        char c = **at;
        if (c == '~' && ((*at)[1] == '0' || (*at)[1] == '1'))
            c = *++*at == '0' ? '~' : '/';
        else if (c == '%' && isxdigit((uint8_t)(*at)[1]) && isxdigit((uint8_t)(*at)[2])) {
            c = (char)strtoul((const char[]){ (*at)[1], (*at)[2], '\0' }, NULL, 16);
            *at += 2;
        }
        if (length + 1 == size)
            return false;
        token[length++] = c;
    }
    token[length] = '\0';
    return true;
}

static enum status find_reference(const struct schema_reader *reader, const json_t *schema,
                                  const json_t **ret, struct error *err)
{
    const json_t *found = reader->document;
    const json_t *reference = json_object_get(schema, "$ref");
    const char *text = json_string_value(reference), *at = text ? text + 1 : NULL;
    char token[1024];
    if (!text || text[0] != '#' || (text[1] && text[1] != '/'))
        return schema_fail(reader, schema, STATUS_UNSUPPORTED, err,
                           "$ref: expected a place in the same document (#/...), found '%.100s'",
                           text ? text : "no text");
    while (found && *at) {
        if (!next_token(&at, token, sizeof(token)))
            found = NULL;
        else if (json_is_array(found))
            found = json_array_get(found, strtoul(token, NULL, 10));
        else
            found = json_object_get(found, token);
    }
    if (!found)
        return schema_fail(reader, schema, STATUS_USAGE, err, "$ref: found nothing at '%.200s'",
                           text);
    *ret = found;
    return STATUS_OK;
}

/* ---- Sets ----------------------------------------------------------------------------------- */

static enum status add_object(struct schema_reader *reader, struct schema_set *set,
                              const json_t *schema, struct error *err)
{
    const json_t *all = json_object_get(schema, "allOf"), *target, *item;
    size_t index;
    if (set->count == SCHEMA_SET_LIMIT)
        return schema_fail(reader, schema, STATUS_LIMIT, err,
                           "expected at most %u schemas for one value", SCHEMA_SET_LIMIT);
    set->parts[set->count++] = (struct schema_part){ .schema = schema };
    if (json_object_get(schema, "$ref")) {
        TRY(find_reference(reader, schema, &target, err));
        TRY(schema_add(reader, set, target, err));
    }
    if (all && !json_is_array(all))
        return schema_fail(reader, schema, STATUS_USAGE, err, "allOf: expected an array");
    json_array_foreach (all, index, item)
        TRY(schema_add(reader, set, item, err));
    return STATUS_OK;
}

enum status schema_add(struct schema_reader *reader, struct schema_set *set, const json_t *schema,
                       struct error *err)
{
    if (json_is_true(schema))
        return STATUS_OK;
    if (json_is_false(schema)) {
        set->never = true;
        return STATUS_OK;
    }
    if (!json_is_object(schema))
        return schema_fail(reader, schema, STATUS_USAGE, err,
                           "expected a schema (an object, true or false)");
    if (++reader->depth > RULES_DEPTH_LIMIT)
        return schema_fail(reader, schema, STATUS_LIMIT, err,
                           "expected at most %u schemas inside each other; a schema that refers "
                           "to itself needs a value around the reference",
                           RULES_DEPTH_LIMIT);
    enum status status = STATUS_OK;
    const struct schema_part *known = NULL;
    for (size_t i = 0; i < set->count; i++)
        if (set->parts[i].schema == schema)
            known = &set->parts[i];
    if (known && (known->skip_any || known->skip_one))
        status = schema_fail(reader, schema, STATUS_UNSUPPORTED, err,
                             "an alternative is the schema that it is in");
    else if (!known)
        status = add_object(reader, set, schema, err);
    reader->depth--;
    return status;
}
