/* json.c - variables from JSON, and tojson. */
#include "template/render.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- From JSON ------------------------------------------------------------------------------- */

static enum status from_object(struct render *r, const json_t *json, struct value *ret)
{
    struct dict *dict;
    TRY(jinja_dict_create(r, &dict));
    void *at = json_object_iter((json_t *)json);
    for (; at; at = json_object_iter_next((json_t *)json, at)) {
        struct value key, value;
        TRY(jinja_string(
            r, (struct text_view){ json_object_iter_key(at), json_object_iter_key_len(at) }, &key));
        TRY(jinja_from_json(r, json_object_iter_value(at), &value));
        TRY(jinja_dict_set(r, dict, key, value));
    }
    *ret = (struct value){ .kind = VALUE_DICT, .dict = dict };
    return STATUS_OK;
}

static enum status from_array(struct render *r, const json_t *json, struct value *ret)
{
    struct list *list;
    size_t count = json_array_size(json);
    TRY(jinja_list_create(r, count, &list));
    for (size_t i = 0; i < count; i++) {
        TRY(jinja_from_json(r, json_array_get(json, i), &list->items[i]));
        list->count++;
    }
    *ret = value_list(VALUE_LIST, list);
    return STATUS_OK;
}

static enum status from_value(struct render *r, const json_t *json, struct value *ret)
{
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        return from_object(r, json, ret);
    case JSON_ARRAY:
        return from_array(r, json, ret);
    case JSON_STRING:
        return jinja_string(
            r, (struct text_view){ json_string_value(json), json_string_length(json) }, ret);
    case JSON_INTEGER:
        *ret = value_int(json_integer_value(json));
        return STATUS_OK;
    case JSON_REAL:
        *ret = value_float(json_real_value(json));
        return STATUS_OK;
    case JSON_TRUE:
    case JSON_FALSE:
        *ret = value_bool(json_is_true(json));
        return STATUS_OK;
    default:
        *ret = value_none();
        return STATUS_OK;
    }
}

enum status jinja_from_json(struct render *r, const json_t *json, struct value *ret)
{
    TRY(jinja_enter(r));
    TRY(jinja_spend(r, 1));
    TRY(from_value(r, json, ret));
    jinja_leave(r);
    return STATUS_OK;
}

enum status jinja_from_json_text(struct render *r, struct text_view text, struct value *ret)
{
    json_error_t error;
    TRY(jinja_spend(r, text.length / 8));
    json_t *json = json_loadb(text.bytes, text.length, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (!json)
        return fail(r, VALUE, "expected JSON: %s", error.text);
    enum status status = jinja_from_json(r, json, ret);
    json_decref(json);
    return status;
}

/* ---- To JSON --------------------------------------------------------------------------------- */

static enum status json_escape(struct render *r, uint32_t code)
{
    static const char from[] = "\"\\\n\r\t\b\f", to[] = "\"\\nrtbf";
    char text[16];
    const char *simple = code && code < 0x80 ? strchr(from, (int)code) : NULL;
    if (simple)
        snprintf(text, sizeof(text), "\\%c", to[simple - from]);
    else if (code >= 0x10000)
        snprintf(text, sizeof(text), "\\u%04x\\u%04x", 0xD800 + ((code - 0x10000) >> 10),
                 0xDC00 + ((code - 0x10000) & 0x3FF));
    else
        snprintf(text, sizeof(text), "\\u%04x", code);
    return jinja_add_text(r, text);
}

static enum status json_string_text(struct render *r, struct text_view text, bool ensure_ascii)
{
    size_t plain = 0; /* begin of what needs no escape */
    TRY(jinja_spend(r, text.length / 16));
    TRY(jinja_add_text(r, "\""));
    for (size_t at = 0; at < text.length;) {
        uint32_t code;
        uint32_t step = jinja_decode(text.bytes + at, text.length - at, &code);
        if (code < 0x20 || code == '"' || code == '\\' || (ensure_ascii && code >= 0x80)) {
            TRY(jinja_add(r, text.bytes + plain, at - plain));
            TRY(json_escape(r, code));
            plain = at + step;
        }
        at += step;
    }
    TRY(jinja_add(r, text.bytes + plain, text.length - plain));
    return jinja_add_text(r, "\"");
}

static enum status json_float(struct render *r, double real)
{
    if (isfinite(real))
        return jinja_print_float(r, real);
    return jinja_add_text(r, isnan(real) ? "NaN" : real < 0 ? "-Infinity" : "Infinity");
}

static enum status json_line(struct render *r, const struct json_style *style, uint32_t level)
{
    if (!style->indent.bytes)
        return STATUS_OK;
    TRY(jinja_add_text(r, "\n"));
    return jinja_add_fill(r, style->indent, level);
}

static enum status json_value(struct render *r, struct value value, const struct json_style *style,
                              uint32_t level);

/* Before item number `index`. */
static enum status json_between(struct render *r, const struct json_style *style, uint32_t index,
                                uint32_t level)
{
    if (index > 0)
        TRY(jinja_add_view(r, style->item_separator));
    return json_line(r, style, level);
}

static enum status json_list(struct render *r, const struct list *list,
                             const struct json_style *style, uint32_t level)
{
    if (list->count == 0)
        return jinja_add_text(r, "[]");
    TRY(jinja_add_text(r, "["));
    for (uint32_t i = 0; i < list->count; i++) {
        TRY(json_between(r, style, i, level + 1));
        TRY(json_value(r, list->items[i], style, level + 1));
    }
    TRY(json_line(r, style, level));
    return jinja_add_text(r, "]");
}

static enum status json_key(struct render *r, struct value key, const struct json_style *style)
{
    if (value_is(key, VALUE_STRING))
        return json_string_text(r, value_text(key), style->ensure_ascii);
    if (!value_is_number(key) && !value_is(key, VALUE_NONE))
        return fail(r, TYPE, "keys must be str, int, float, bool or None, not %s",
                    jinja_kind_name(key));
    TRY(jinja_add_text(r, "\""));
    TRY(json_value(r, key, style, 0));
    return jinja_add_text(r, "\"");
}

/* The entries in the order of their keys. */
static enum status sorted_entries(struct render *r, const struct dict *dict,
                                  const struct dict_entry **ret)
{
    struct dict_entry *sorted;
    TRY(jinja_take(r, (dict->count + 1) * sizeof(*sorted), &sorted));
    for (uint32_t i = 0; i < dict->count; i++) {
        uint32_t at = i;
        bool less = true;
        while (at > 0) {
            TRY(jinja_less(r, dict->entries[i].key, sorted[at - 1].key, &less));
            if (!less)
                break;
            sorted[at] = sorted[at - 1];
            at--;
        }
        sorted[at] = dict->entries[i];
    }
    *ret = sorted;
    return STATUS_OK;
}

static enum status json_dict(struct render *r, const struct dict *dict,
                             const struct json_style *style, uint32_t level)
{
    const struct dict_entry *entries = dict->entries;
    if (dict->count == 0)
        return jinja_add_text(r, "{}");
    if (style->sort_keys)
        TRY(sorted_entries(r, dict, &entries));
    TRY(jinja_add_text(r, "{"));
    for (uint32_t i = 0; i < dict->count; i++) {
        TRY(json_between(r, style, i, level + 1));
        TRY(json_key(r, entries[i].key, style));
        TRY(jinja_add_view(r, style->key_separator));
        TRY(json_value(r, entries[i].value, style, level + 1));
    }
    TRY(json_line(r, style, level));
    return jinja_add_text(r, "}");
}

static enum status json_one(struct render *r, struct value value, const struct json_style *style,
                            uint32_t level)
{
    switch (value.kind) {
    case VALUE_NONE:
        return jinja_add_text(r, "null");
    case VALUE_BOOL:
        return jinja_add_text(r, value.truth ? "true" : "false");
    case VALUE_INT:
        return jinja_repr(r, value);
    case VALUE_FLOAT:
        return json_float(r, value.real);
    case VALUE_STRING:
        return json_string_text(r, value_text(value), style->ensure_ascii);
    case VALUE_LIST:
    case VALUE_TUPLE:
        return json_list(r, value.list, style, level);
    case VALUE_DICT:
        return json_dict(r, value.dict, style, level);
    default:
        return fail(r, TYPE, "Object of type %s is not JSON serializable", jinja_kind_name(value));
    }
}

static enum status json_value(struct render *r, struct value value, const struct json_style *style,
                              uint32_t level)
{
    TRY(jinja_enter(r));
    TRY(jinja_spend(r, 1));
    TRY(json_one(r, value, style, level));
    jinja_leave(r);
    return STATUS_OK;
}

enum status jinja_json(struct render *r, struct value value, const struct json_style *style)
{
    return json_value(r, value, style, 0);
}
