/* tool_calls.c - the forms in which models write calls, by the marker they begin with. */
#include "chat/tool_calls.h"

#include "chat/call_reader.h"

#include <string.h>

typedef bool (*read_form)(struct call_reader *reader);

static void strip_quotes(struct text_view *text)
{
    if (text->length >= 2 && (text->bytes[0] == '"' || text->bytes[0] == '\'')) {
        text->bytes++;
        text->length -= 2;
    }
}

/* Takes the value over, which may be NULL. A zero byte in a key would be no JSON for many readers. */
static bool set_value(json_t *arguments, struct text_view key, json_t *value)
{
    if (key.length == 0 || memchr(key.bytes, '\0', key.length)) {
        json_decref(value);
        return false;
    }
    return value && json_object_setn_new(arguments, key.bytes, key.length, value) == 0;
}

/* A bare value of a parameter, whose name need not end in zero. */
static json_t *bare_value(const struct call_reader *reader, struct text_view function,
                          struct text_view key, struct text_view value)
{
    char name[128];
    if (key.length >= sizeof(name))
        return NULL;
    memcpy(name, key.bytes, key.length);
    name[key.length] = '\0';
    return call_bare_value(reader, function, name, value);
}

/* One line end at each side belongs to the form. */
static struct text_view without_line_ends(struct text_view text)
{
    if (text.length && text.bytes[0] == '\n') {
        text.bytes++;
        text.length--;
    }
    if (text.length && text.bytes[text.length - 1] == '\n')
        text.length--;
    return text;
}

/* ---- Parameters as tags ---------------------------------------------------------------------- */

/* How a family writes them: <parameter=k>v</parameter>, <parameter name="k">v</parameter>, ... */
struct tags {
    const char *begin, *end; /* of a parameter; its attributes are between begin and '>' */
    const char *close;       /* of the call */
};

static bool read_tags(struct call_reader *reader, struct text_view function,
                      const struct tags *tags)
{
    json_t *arguments = json_object();
    for (;;) {
        struct text_view head, value;
        call_skip_blanks(reader);
        if (!call_skip(reader, tags->begin))
            break;
        if (!call_until(reader, ">", true, &head) || !call_until(reader, tags->end, true, &value)) {
            json_decref(arguments);
            return false;
        }
        /* name="k" string="false" */
        bool is_json = false;
        const char *space = memchr(head.bytes, ' ', head.length);
        if (space && head.bytes[0] == '"') {
            is_json = memchr(space, 'f', head.length - (size_t)(space - head.bytes)) != NULL;
            head.length = (size_t)(space - head.bytes);
        }
        strip_quotes(&head);
        value = without_line_ends(value);
        json_t *json = is_json ? json_loadb(value.bytes, value.length, JSON_DECODE_ANY, NULL)
                               : bare_value(reader, function, head, value);
        if (!set_value(arguments, head, json)) {
            json_decref(arguments);
            return false;
        }
    }
    (void)call_skip(reader, tags->close);
    return call_add(reader, function, arguments, NULL);
}

/* After "<function=": parameters as tags, or JSON. */
static bool read_function(struct call_reader *reader)
{
    static const struct tags tags = { "<parameter=", "</parameter>", "</function>" };
    struct text_view name;
    if (!call_until(reader, ">", true, &name))
        return false;
    call_skip_blanks(reader);
    if (reader->at < reader->length && reader->bytes[reader->at] == '{')
        return call_add(reader, name, call_json(reader), NULL);
    return read_tags(reader, name, &tags);
}

/* After <invoke name=" */
static bool read_invoke(struct call_reader *reader)
{
    static const struct tags tags = { "<parameter name=", "</parameter>", "</invoke>" };
    struct text_view name;
    return call_until(reader, "\">", true, &name) && read_tags(reader, name, &tags);
}

static bool read_dsml(struct call_reader *reader)
{
    static const struct tags tags = { "<｜DSML｜parameter name=", "</｜DSML｜parameter>",
                                      "</｜DSML｜invoke>" };
    struct text_view name;
    return call_until(reader, "\">", true, &name) && read_tags(reader, name, &tags);
}

/* ---- Other forms ----------------------------------------------------------------------------- */

/* After <tool_call>: JSON, tags, or a name and pairs of <arg_key> and <arg_value>. */
static bool read_tool_call(struct call_reader *reader)
{
    struct text_view name, key, value;
    call_skip_blanks(reader);
    if (reader->at < reader->length &&
        (reader->bytes[reader->at] == '{' || reader->bytes[reader->at] == '['))
        return call_add_json(reader, call_json(reader));
    if (call_skip(reader, "<function="))
        return read_function(reader);
    size_t begin = reader->at;
    while (reader->at < reader->length && !strchr("\n<", reader->bytes[reader->at]))
        reader->at++;
    name = call_trimmed((struct text_view){ reader->bytes + begin, reader->at - begin });
    json_t *arguments = json_object();
    for (;;) {
        call_skip_blanks(reader);
        if (!call_skip(reader, "<arg_key>"))
            return call_add(reader, name, arguments, NULL);
        if (!call_until(reader, "</arg_key>", true, &key))
            break;
        call_skip_blanks(reader);
        if (!call_skip(reader, "<arg_value>") || !call_until(reader, "</arg_value>", true, &value))
            break;
        key = call_trimmed(key);
        if (!set_value(arguments, key, bare_value(reader, name, key, value)))
            break;
    }
    json_decref(arguments);
    return false;
}

static bool read_json(struct call_reader *reader)
{
    return call_add_json(reader, call_json(reader));
}

/* After [TOOL_CALLS]: an array, or name[CALL_ID]id[ARGS]{..} */
static bool read_mistral(struct call_reader *reader)
{
    struct text_view name;
    call_skip_blanks(reader);
    if (reader->at < reader->length && strchr("[{", reader->bytes[reader->at]))
        return read_json(reader);
    char id[64] = "";
    if (!call_until(reader, "[ARGS]", true, &name))
        return false;
    for (size_t i = 0; i + 9 <= name.length; i++)
        if (memcmp(name.bytes + i, "[CALL_ID]", 9) == 0 && name.length - i - 9 < sizeof(id)) {
            memcpy(id, name.bytes + i + 9, name.length - i - 9);
            name.length = i;
        }
    return call_add(reader, call_trimmed(name), call_json(reader), id[0] ? id : NULL);
}

/* After the beginning of one of DeepSeek's calls: "function", the separator, the name and fenced
 * JSON; or the name, the separator and JSON. */
static bool read_deepseek(struct call_reader *reader)
{
    struct text_view name;
    if (!call_until(reader, "<｜tool▁sep｜>", true, &name))
        return false;
    if (text_view_is(call_trimmed(name), "function") && !call_until(reader, "\n", true, &name))
        return false;
    call_skip_blanks(reader);
    (void)call_skip(reader, "```json");
    return call_add(reader, call_trimmed(name), call_json(reader), NULL);
}

/* After the beginning of one of Kimi's calls: functions.f:0, which is the id too. */
static bool read_kimi(struct call_reader *reader)
{
    struct text_view head;
    char id[128];
    if (!call_until(reader, "<|tool_call_argument_begin|>", true, &head))
        return false;
    head = call_trimmed(head);
    if (head.length >= sizeof(id))
        return false;
    memcpy(id, head.bytes, head.length);
    id[head.length] = '\0';
    const char *begin = strncmp(id, "functions.", 10) == 0 ? id + 10 : id;
    return call_add(reader, (struct text_view){ begin, strcspn(begin, ":") }, call_json(reader),
                    id);
}

/* After "<|channel|>commentary to=": the name, the message, JSON. */
static bool read_harmony(struct call_reader *reader)
{
    struct text_view head;
    if (!call_until(reader, "<|message|>", true, &head))
        return false;
    struct text_view name = head;
    for (name.length = 0; name.length < head.length; name.length++)
        if (strchr(" <", head.bytes[name.length]))
            break;
    if (name.length > 10 && memcmp(name.bytes, "functions.", 10) == 0) {
        name.bytes += 10;
        name.length -= 10;
    }
    return call_add(reader, name, call_json(reader), NULL);
}

/* After <|python_tag|>: JSON, or a call of a built-in tool. */
static bool read_python_tag(struct call_reader *reader)
{
    call_skip_blanks(reader);
    return reader->at < reader->length && reader->bytes[reader->at] == '{'
               ? read_json(reader)
               : call_read_python(reader);
}

static const struct {
    const char *marker;
    read_form read;
} forms[] = {
    { "<tool_call>", read_tool_call },     { "<function=", read_function },
    { "<invoke name=\"", read_invoke },    { "<｜DSML｜invoke name=\"", read_dsml },
    { "[TOOL_CALLS]", read_mistral },      { "<｜tool▁call▁begin｜>", read_deepseek },
    { "<|tool_call_begin|>", read_kimi },  { "<|channel|>commentary to=", read_harmony },
    { "<|python_tag|>", read_python_tag }, { "<|tool_call_start|>", call_read_python },
    { "<|tool_call|>", read_json },        { "<|START_ACTION|>", read_json },
    { "<TOOLCALL>", read_json },           { "<|tools_prefix|>", read_json },
};

/* Calls without a marker are the whole answer: {"name": .., "parameters": ..} or [f(a=1)]. */
static void read_unmarked(struct call_reader *reader)
{
    call_skip_blanks(reader);
    if (reader->at == reader->length || !json_array_size(reader->tools))
        return;
    if (reader->bytes[reader->at] == '{')
        (void)read_json(reader);
    else if (reader->bytes[reader->at] == '[')
        (void)call_read_python(reader);
}

enum status chat_tool_calls(struct text_view text, const json_t *tools, uint32_t first_number,
                            json_t **ret_calls, struct error *err)
{
    struct call_reader reader = { .bytes = text.bytes,
                                  .length = text.length,
                                  .tools = tools,
                                  .calls = json_array(),
                                  .next_number = first_number };
    if (!reader.calls)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the calls of an answer");
    read_unmarked(&reader);
    reader.at = json_array_size(reader.calls) ? reader.length : 0;
    while (reader.at < reader.length) {
        size_t begin = reader.at;
        for (size_t i = 0; reader.at == begin && i < COUNT_OF(forms); i++)
            if (call_skip(&reader, forms[i].marker)) {
                size_t after = reader.at;
                if (!forms[i].read(&reader))
                    reader.at = after; /* something within it may be a call */
            }
        reader.at += reader.at == begin;
    }
    *ret_calls = reader.calls;
    return STATUS_OK;
}
