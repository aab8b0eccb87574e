/* print.c - str and repr of values. */
#include "template/render.h"

#include "template/unicode.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Floats ---------------------------------------------------------------------------------- */

/* The shortest digits that give the number again: "1.5e-07" as printf writes it. */
static void shortest(double real, char *text, size_t bytes)
{
    for (int precision = 0; precision < 17; precision++) {
        snprintf(text, bytes, "%.*e", precision, real);
        if (strtod(text, NULL) == real)
            return;
    }
}

/* Scientific from 1e16 up and below 1e-4, as Python's repr. */
enum status jinja_print_float(struct render *r, double real)
{
    char scientific[40], text[64];
    if (!isfinite(real))
        return jinja_add_text(r, isnan(real) ? "nan" : real < 0 ? "-inf" : "inf");
    shortest(real, scientific, sizeof(scientific));
    int exponent = atoi(strchr(scientific, 'e') + 1);
    if (real != 0 && (exponent < -4 || exponent >= 16))
        return jinja_add_text(r, scientific);
    size_t count = 0;
    for (const char *at = scientific; *at != 'e'; at++)
        if (*at >= '0' && *at <= '9')
            count++;
    int decimals = (int)count - 1 - exponent;
    snprintf(text, sizeof(text), "%.*f", decimals > 1 ? decimals : 1, real);
    return jinja_add_text(r, text);
}

/* ---- repr ------------------------------------------------------------------------------------ */

static enum status repr_character(struct render *r, uint32_t code, char quote)
{
    static const char from[] = "\n\r\t\\", to[] = "nrt\\";
    char text[16];
    const char *simple = code && code < 0x80 ? strchr(from, (int)code) : NULL;
    if (simple)
        snprintf(text, sizeof(text), "\\%c", to[simple - from]);
    else if (code == (uint32_t)quote)
        snprintf(text, sizeof(text), "\\%c", quote);
    else if (jinja_unicode_is(code, UNICODE_PRINTABLE))
        return jinja_add_code(r, code);
    else
        snprintf(text, sizeof(text),
                 code < 0x100     ? "\\x%02x"
                 : code < 0x10000 ? "\\u%04x"
                                  : "\\U%08x",
                 code);
    return jinja_add_text(r, text);
}

static enum status repr_string(struct render *r, const struct string *string)
{
    bool single = memchr(string->bytes, '\'', string->length) != NULL;
    bool twice = memchr(string->bytes, '"', string->length) != NULL;
    char quote = single && !twice ? '"' : '\'';
    TRY(jinja_spend(r, string->length / 8));
    TRY(jinja_add(r, &quote, 1));
    for (uint32_t at = 0; at < string->length;) {
        uint32_t code;
        at += jinja_decode(string->bytes + at, string->length - at, &code);
        TRY(repr_character(r, code, quote));
    }
    return jinja_add(r, &quote, 1);
}

static enum status repr_list(struct render *r, const struct list *list, const char *open,
                             const char *close)
{
    TRY(jinja_add_text(r, open));
    for (uint32_t i = 0; i < list->count; i++) {
        if (i > 0)
            TRY(jinja_add_text(r, ", "));
        TRY(jinja_repr(r, list->items[i]));
    }
    return jinja_add_text(r, close);
}

static enum status repr_dict(struct render *r, const struct dict *dict)
{
    TRY(jinja_add_text(r, "{"));
    for (uint32_t i = 0; i < dict->count; i++) {
        if (i > 0)
            TRY(jinja_add_text(r, ", "));
        TRY(jinja_repr(r, dict->entries[i].key));
        TRY(jinja_add_text(r, ": "));
        TRY(jinja_repr(r, dict->entries[i].value));
    }
    return jinja_add_text(r, "}");
}

static enum status repr_range(struct render *r, const struct range *range)
{
    char text[96];
    if (range->step == 1)
        snprintf(text, sizeof(text), "range(%lld, %lld)", (long long)range->start,
                 (long long)range->stop);
    else
        snprintf(text, sizeof(text), "range(%lld, %lld, %lld)", (long long)range->start,
                 (long long)range->stop, (long long)range->step);
    return jinja_add_text(r, text);
}

static enum status repr_object(struct render *r, struct value value)
{
    TRY(jinja_add_text(r, "<"));
    TRY(jinja_add_text(r, jinja_kind_name(value)));
    if (value_is(value, VALUE_MACRO)) {
        static const struct string key = { "name", 4, 4, false, NULL };
        struct value name;
        TRY(jinja_macro_attribute(r, value.macro, &key, &name));
        TRY(jinja_add_text(r, " "));
        TRY(value_is(name, VALUE_STRING) ? jinja_repr(r, name) : jinja_add_text(r, "anonymous"));
    }
    return jinja_add_text(r, ">");
}

static enum status repr_value(struct render *r, struct value value)
{
    char text[32];
    switch (value.kind) {
    case VALUE_UNDEFINED:
        return jinja_add_text(r, "Undefined");
    case VALUE_NONE:
        return jinja_add_text(r, "None");
    case VALUE_BOOL:
        return jinja_add_text(r, value.truth ? "True" : "False");
    case VALUE_INT:
        snprintf(text, sizeof(text), "%lld", (long long)value.integer);
        return jinja_add_text(r, text);
    case VALUE_FLOAT:
        return jinja_print_float(r, value.real);
    case VALUE_STRING:
        if (!value.string->safe)
            return repr_string(r, value.string);
        TRY(jinja_add_text(r, "Markup("));
        TRY(repr_string(r, value.string));
        return jinja_add_text(r, ")");
    case VALUE_LIST:
        return repr_list(r, value.list, "[", "]");
    case VALUE_TUPLE:
        return repr_list(r, value.list, "(", value.list->count == 1 ? ",)" : ")");
    case VALUE_VIEW:
        TRY(jinja_add_text(r, jinja_kind_name(value)));
        return repr_list(r, value.list, "([", "])");
    case VALUE_DICT:
        return repr_dict(r, value.dict);
    case VALUE_NAMESPACE:
        TRY(jinja_add_text(r, "<Namespace "));
        TRY(repr_dict(r, value.dict));
        return jinja_add_text(r, ">");
    case VALUE_RANGE:
        return repr_range(r, value.range);
    default:
        return repr_object(r, value);
    }
}

enum status jinja_repr(struct render *r, struct value value)
{
    TRY(jinja_enter(r));
    TRY(jinja_spend(r, 1));
    TRY(repr_value(r, value));
    jinja_leave(r);
    return STATUS_OK;
}

/* ---- str ------------------------------------------------------------------------------------- */

enum status jinja_print(struct render *r, struct value value)
{
    if (value_is(value, VALUE_STRING))
        return jinja_add_view(r, value_text(value));
    if (value_is(value, VALUE_UNDEFINED))
        return STATUS_OK;
    return jinja_repr(r, value);
}

enum status jinja_to_string(struct render *r, struct value value, struct value *ret)
{
    if (value_is(value, VALUE_STRING)) {
        *ret = value;
        return STATUS_OK;
    }
    size_t begin = jinja_text_begin(r);
    TRY(jinja_print(r, value));
    return jinja_text_end(r, begin, ret);
}

/* ---- HTML ------------------------------------------------------------------------------------ */

enum status jinja_escape(struct render *r, struct value value, struct value *ret)
{
    static const struct {
        char byte;
        const char *entity;
    } entities[] = {
        { '&', "&amp;" }, { '<', "&lt;" }, { '>', "&gt;" }, { '"', "&#34;" }, { '\'', "&#39;" }
    };
    struct value text;
    TRY(jinja_to_string(r, value, &text));
    if (text.string->safe) {
        *ret = text;
        return STATUS_OK;
    }
    size_t begin = jinja_text_begin(r);
    TRY(jinja_spend(r, text.string->length / 8));
    for (uint32_t i = 0; i < text.string->length; i++) {
        const char *entity = NULL;
        for (size_t e = 0; e < COUNT_OF(entities); e++)
            if (text.string->bytes[i] == entities[e].byte)
                entity = entities[e].entity;
        TRY(entity ? jinja_add_text(r, entity) : jinja_add(r, text.string->bytes + i, 1));
    }
    TRY(jinja_text_end(r, begin, &text));
    return jinja_mark_safe(r, text, true, ret);
}
