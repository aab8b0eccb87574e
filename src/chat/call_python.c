/* call_python.c - calls as Python writes them: [f(a="x", b=[1, None]), g()]. */
#include "chat/call_reader.h"

#include <string.h>

#define NESTING_LIMIT 32u

static json_t *read_value(struct call_reader *reader, unsigned depth);

static bool is_name(char byte)
{
    return (byte >= '0' && byte <= '9') || ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z') ||
           byte == '_' || byte == '.' || byte == '-';
}

static struct text_view read_name(struct call_reader *reader)
{
    size_t begin = reader->at;
    while (reader->at < reader->length && is_name(reader->bytes[reader->at]))
        reader->at++;
    return (struct text_view){ reader->bytes + begin, reader->at - begin };
}

static json_t *read_string(struct call_reader *reader)
{
    static const char from[] = "ntr\\'\"", to[] = "\n\t\r\\'\"";
    char quote = reader->bytes[reader->at++];
    struct text text;
    text_init(&text);
    while (reader->at < reader->length && reader->bytes[reader->at] != quote) {
        const char *byte = &reader->bytes[reader->at++];
        const char *known = NULL;
        if (*byte == '\\' && reader->at < reader->length && reader->bytes[reader->at])
            known = strchr(from, reader->bytes[reader->at]);
        text_add_bytes(&text, known ? &to[known - from] : byte, 1);
        reader->at += known != NULL;
    }
    json_t *json = reader->at < reader->length ? json_stringn(text_get(&text), text.length) : NULL;
    reader->at++;
    text_release(&text);
    return json;
}

static json_t *read_list(struct call_reader *reader, char end, unsigned depth)
{
    json_t *list = json_array();
    reader->at++;
    for (;;) {
        call_skip_blanks(reader);
        if (reader->at < reader->length && reader->bytes[reader->at] == end) {
            reader->at++;
            return list;
        }
        json_t *value = read_value(reader, depth + 1);
        if (!value || json_array_append_new(list, value) != 0)
            break;
        call_skip_blanks(reader);
        (void)call_skip(reader, ",");
    }
    json_decref(list);
    return NULL;
}

static json_t *read_dict(struct call_reader *reader, unsigned depth)
{
    json_t *dict = json_object();
    reader->at++;
    for (;;) {
        call_skip_blanks(reader);
        if (call_skip(reader, "}"))
            return dict;
        json_t *key = read_value(reader, depth + 1);
        call_skip_blanks(reader);
        json_t *value = json_is_string(key) && call_skip(reader, ":")
                            ? read_value(reader, depth + 1)
                            : NULL;
        bool set = value && json_object_set_new(dict, json_string_value(key), value) == 0;
        json_decref(key);
        if (!set)
            break;
        call_skip_blanks(reader);
        (void)call_skip(reader, ",");
    }
    json_decref(dict);
    return NULL;
}

static json_t *read_value(struct call_reader *reader, unsigned depth)
{
    static const struct {
        const char *words[3];
        json_type type;
    } constants[] = { { { "True", "true", NULL }, JSON_TRUE },
                      { { "False", "false", NULL }, JSON_FALSE },
                      { { "None", "null", NULL }, JSON_NULL } };
    call_skip_blanks(reader);
    if (reader->at >= reader->length || depth > NESTING_LIMIT)
        return NULL;
    char byte = reader->bytes[reader->at];
    if (byte == '"' || byte == '\'')
        return read_string(reader);
    if (byte == '[' || byte == '(')
        return read_list(reader, byte == '[' ? ']' : ')', depth);
    if (byte == '{')
        return read_dict(reader, depth);
    for (size_t i = 0; i < COUNT_OF(constants); i++)
        if (call_skip(reader, constants[i].words[0]) || call_skip(reader, constants[i].words[1]))
            return constants[i].type == JSON_TRUE    ? json_true()
                   : constants[i].type == JSON_FALSE ? json_false()
                                                     : json_null();
    struct text_view number = read_name(reader);
    return number.length ? json_loadb(number.bytes, number.length, JSON_DECODE_ANY, NULL) : NULL;
}

/* "f(a=1)" */
static bool read_call(struct call_reader *reader)
{
    struct text_view name = read_name(reader);
    if (name.length == 0 || !call_skip(reader, "("))
        return false;
    /* The built-in tools of Llama: brave_search.call(query="..") */
    if (name.length > 5 && memcmp(name.bytes + name.length - 5, ".call", 5) == 0)
        name.length -= 5;
    json_t *arguments = json_object();
    for (;;) {
        call_skip_blanks(reader);
        if (call_skip(reader, ")"))
            return call_add(reader, name, arguments, NULL);
        struct text_view key = read_name(reader);
        call_skip_blanks(reader);
        json_t *value = key.length && call_skip(reader, "=") ? read_value(reader, 0) : NULL;
        if (!value || json_object_setn_new(arguments, key.bytes, key.length, value) != 0)
            break;
        call_skip_blanks(reader);
        (void)call_skip(reader, ",");
    }
    json_decref(arguments);
    return false;
}

bool call_read_python(struct call_reader *reader)
{
    bool any = false;
    call_skip_blanks(reader);
    bool listed = call_skip(reader, "[");
    do {
        call_skip_blanks(reader);
        if (!read_call(reader))
            return any;
        any = true;
        call_skip_blanks(reader);
    } while (listed && call_skip(reader, ","));
    return any;
}
