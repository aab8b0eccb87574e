/* call_reader.c - see call_reader.h. */
#define _GNU_SOURCE /* memmem */
#include "chat/call_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALL_LIMIT 128u

/* ---- Text ------------------------------------------------------------------------------------ */

bool call_skip(struct call_reader *reader, const char *words)
{
    size_t length = strlen(words);
    if (reader->length - reader->at < length ||
        memcmp(reader->bytes + reader->at, words, length) != 0)
        return false;
    reader->at += length;
    return true;
}

static bool is_blank(char byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

void call_skip_blanks(struct call_reader *reader)
{
    while (reader->at < reader->length && is_blank(reader->bytes[reader->at]))
        reader->at++;
}

bool call_until(struct call_reader *reader, const char *words, bool must, struct text_view *ret)
{
    const char *begin = reader->bytes + reader->at;
    const char *found = memmem(begin, reader->length - reader->at, words, strlen(words));
    if (!found && must)
        return false;
    *ret = (struct text_view){ begin,
                               found ? (size_t)(found - begin) : reader->length - reader->at };
    reader->at += ret->length + (found ? strlen(words) : 0);
    return true;
}

struct text_view call_trimmed(struct text_view text)
{
    while (text.length && is_blank(text.bytes[0])) {
        text.bytes++;
        text.length--;
    }
    while (text.length && is_blank(text.bytes[text.length - 1]))
        text.length--;
    return text;
}

json_t *call_json(struct call_reader *reader)
{
    json_error_t error;
    call_skip_blanks(reader);
    if (reader->at == reader->length)
        return NULL;
    json_t *value = json_loadb(reader->bytes + reader->at, reader->length - reader->at,
                               JSON_DISABLE_EOF_CHECK, &error);
    if (value)
        reader->at += (size_t)error.position;
    return value;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

bool call_add(struct call_reader *reader, struct text_view name, json_t *arguments, const char *id)
{
    char made[16];
    char *text = json_is_object(arguments) ? json_dumps(arguments, 0) : NULL;
    json_decref(arguments);
    if (!text || name.length == 0 || json_array_size(reader->calls) >= CALL_LIMIT) {
        free(text);
        return false;
    }
    /* Some templates want nine letters or digits. */
    snprintf(made, sizeof(made), "call%05u", reader->next_number % 100000u);
    reader->next_number += id == NULL;
    json_t *call = json_pack("{s:s, s:s, s:{s:s%, s:s}}", "id", id ? id : made, "type", "function",
                             "function", "name", name.bytes, name.length, "arguments", text);
    free(text);
    return call && json_array_append_new(reader->calls, call) == 0;
}

static const json_t *first_of(const json_t *object, const char *const *keys)
{
    const json_t *found = NULL;
    for (; !found && *keys; keys++)
        found = json_object_get(object, *keys);
    return found;
}

/* The arguments as an object, which may be given as text. */
static json_t *arguments_of(const json_t *given)
{
    if (json_is_string(given))
        return json_loadb(json_string_value(given), json_string_length(given), 0, NULL);
    return given && !json_is_null(given) ? json_incref((json_t *)given) : json_object();
}

static bool add_object(struct call_reader *reader, const json_t *object)
{
    static const char *const names[] = { "name", "tool_name", NULL };
    static const char *const arguments[] = { "arguments", "parameters", NULL };
    static const char *const ids[] = { "id", "tool_call_id", NULL };
    const json_t *function = json_object_get(object, "function");
    const json_t *holder = json_is_object(function) ? function : object;
    const json_t *name = first_of(holder, names);
    if (json_is_string(name))
        return call_add(
            reader, (struct text_view){ json_string_value(name), json_string_length(name) },
            arguments_of(first_of(holder, arguments)), json_string_value(first_of(object, ids)));
    /* {"f": {..}} */
    void *only = json_object_iter((json_t *)object);
    if (json_object_size(object) != 1 || !json_is_object(json_object_iter_value(only)))
        return false;
    return call_add(reader, text_view_of(json_object_iter_key(only)),
                    json_incref(json_object_iter_value(only)), NULL);
}

bool call_add_json(struct call_reader *reader, json_t *value)
{
    bool added = json_is_object(value) && add_object(reader, value);
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *item = json_array_get(value, i);
        added |= json_is_object(item) && add_object(reader, item);
    }
    json_decref(value);
    return added;
}

/* ---- Bare values ----------------------------------------------------------------------------- */

/* The type of a parameter: "string", "integer", ...; NULL: unknown. */
static const char *type_of(const struct call_reader *reader, struct text_view function,
                           const char *parameter)
{
    for (size_t i = 0; i < json_array_size(reader->tools); i++) {
        const json_t *tool = json_array_get(reader->tools, i);
        const json_t *inner = json_object_get(tool, "function");
        const json_t *holder = inner ? inner : tool;
        const char *name = json_string_value(json_object_get(holder, "name"));
        if (!name || !text_view_is(function, name))
            continue;
        const json_t *properties = json_object_get(json_object_get(holder, "parameters"),
                                                   "properties");
        return json_string_value(json_object_get(json_object_get(properties, parameter), "type"));
    }
    return NULL;
}

json_t *call_bare_value(const struct call_reader *reader, struct text_view function,
                        const char *parameter, struct text_view value)
{
    const char *type = type_of(reader, function, parameter);
    json_t *json = NULL;
    if (!type || strcmp(type, "string") != 0)
        json = json_loadb(value.bytes, value.length, JSON_DECODE_ANY, NULL);
    /* Without a schema only what is clearly no text is something else. */
    if (json && !type && json_is_string(json)) {
        json_decref(json);
        json = NULL;
    }
    return json ? json : json_stringn(value.bytes, value.length);
}
