/* format_percent.c - "%s and %5.2f" % values. */
#include "template/builtin.h"

#include <string.h>

struct percent {
    struct render *r;
    struct text_view format;
    size_t at;
    struct value values; /* a tuple, a dictionary or one value */
    uint32_t used;
};

static enum status next_value(struct percent *p, struct value *ret)
{
    bool several = value_is(p->values, VALUE_TUPLE);
    if (p->used >= (several ? p->values.list->count : 1))
        return fail(p->r, TYPE, "not enough arguments for format string");
    *ret = several ? p->values.list->items[p->used] : p->values;
    p->used++;
    return STATUS_OK;
}

static char peek(const struct percent *p)
{
    return p->at < p->format.length ? p->format.bytes[p->at] : '\0';
}

/* Digits, or '*' for the next value. */
static enum status read_size(struct percent *p, int64_t *ret)
{
    if (peek(p) == '*') {
        struct value value;
        p->at++;
        TRY(next_value(p, &value));
        if (!value_is_integer(value))
            return fail(p->r, TYPE, "* wants int");
        *ret = value_integer(value);
        return STATUS_OK;
    }
    *ret = 0;
    while (peek(p) >= '0' && peek(p) <= '9') {
        if (*ret < INT32_MAX)
            *ret = *ret * 10 + (peek(p) - '0');
        p->at++;
    }
    return STATUS_OK;
}

static enum status read_key(struct percent *p, struct value *ret)
{
    size_t begin = ++p->at, depth = 1;
    for (; p->at < p->format.length; p->at++) {
        depth += peek(p) == '(';
        depth -= peek(p) == ')';
        if (depth == 0)
            break;
    }
    if (p->at >= p->format.length)
        return fail(p->r, VALUE, "incomplete format key");
    if (!value_is(p->values, VALUE_DICT))
        return fail(p->r, TYPE, "format requires a mapping");
    struct value key;
    struct dict_entry *entry;
    TRY(jinja_string(p->r, (struct text_view){ p->format.bytes + begin, p->at - begin }, &key));
    TRY(jinja_dict_find(p->r, p->values.dict, key, &entry));
    if (!entry)
        return fail(p->r, VALUE, "the format names a key that is not there");
    p->at++;
    p->used = 1;
    *ret = entry->value;
    return STATUS_OK;
}

static enum status read_style(struct percent *p, struct number_style *style)
{
    *style = (struct number_style){ .precision = -1, .fill = ' ' };
    for (; peek(p) && strchr("-+ #0", peek(p)); p->at++) {
        if (peek(p) == '-')
            style->align = '<';
        else if (peek(p) == '0')
            style->zero = true;
        else if (peek(p) == '#')
            style->alternate = true;
        else
            style->sign = style->sign == '+' ? '+' : peek(p);
    }
    TRY(read_size(p, &style->width));
    if (style->width < 0) {
        style->align = '<';
        style->width = -style->width;
    }
    if (peek(p) == '.') {
        p->at++;
        TRY(read_size(p, &style->precision));
        if (style->precision < 0)
            style->precision = 0;
    }
    while (peek(p) && strchr("hlL", peek(p)))
        p->at++;
    style->type = peek(p);
    p->at++;
    style->zero = style->zero && style->align != '<';
    return STATUS_OK;
}

static enum status add_text_value(struct percent *p, struct value value, struct number_style *style)
{
    size_t begin = jinja_text_begin(p->r);
    struct value text;
    if (style->type == 'c' && value_is_integer(value)) {
        int64_t code = value_integer(value);
        if (code < 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
            return fail(p->r, VALUE, "%%c arg not in range(0x110000)");
        TRY(jinja_add_code(p->r, (uint32_t)code));
    } else {
        TRY(style->type == 'r' || style->type == 'a' ? jinja_repr(p->r, value)
                                                     : jinja_print(p->r, value));
    }
    TRY(jinja_text_end(p->r, begin, &text));
    if (style->precision >= 0 && style->precision < (int64_t)text.string->characters)
        TRY(jinja_slice(p->r, text, value_none(), value_int(style->precision), value_none(),
                        &text));
    if (!style->align)
        style->align = '>';
    return jinja_add_padded(p->r, value_text(text), style);
}

/* After '%'. */
static enum status add_directive(struct percent *p)
{
    struct number_style style;
    struct value value = { .kind = VALUE_ABSENT };
    if (peek(p) == '(')
        TRY(read_key(p, &value));
    TRY(read_style(p, &style));
    if (style.type == '%')
        return jinja_add_text(p->r, "%");
    if (style.type == '\0')
        return fail(p->r, VALUE, "incomplete format");
    if (!is_given(value))
        TRY(next_value(p, &value));
    if (strchr("sra", style.type) || style.type == 'c')
        return add_text_value(p, value, &style);
    if (!strchr("diuxXoeEfFgG", style.type))
        return fail(p->r, VALUE, "unsupported format character '%c' (0x%x)",
                    style.type >= ' ' && style.type < 127 ? style.type : '?',
                    (unsigned char)style.type);
    if (strchr("xXo", style.type) && value_is(value, VALUE_FLOAT))
        return fail(p->r, TYPE, "%%%c format: an integer is required, not float", style.type);
    return jinja_add_number(p->r, value, &style);
}

enum status jinja_percent(struct render *r, struct value format, struct value values,
                          struct value *ret)
{
    struct percent p = { .r = r, .format = value_text(format), .values = values };
    size_t begin = jinja_text_begin(r);
    while (p.at < p.format.length) {
        const char *rest = p.format.bytes + p.at;
        const char *mark = memchr(rest, '%', p.format.length - p.at);
        size_t plain = mark ? (size_t)(mark - rest) : p.format.length - p.at;
        TRY(jinja_add(r, rest, plain));
        TRY(jinja_spend(r, 1));
        p.at += plain + 1;
        if (mark)
            TRY(add_directive(&p));
    }
    bool complete = value_is(values, VALUE_TUPLE) ? p.used == values.list->count
                    : value_is(values, VALUE_DICT) || value_is(values, VALUE_LIST) ||
                            value_is(values, VALUE_UNDEFINED)
                        ? true
                        : p.used == 1;
    if (!complete)
        return fail(r, TYPE, "not all arguments converted during string formatting");
    TRY(jinja_text_end(r, begin, ret));
    return jinja_mark_safe(r, *ret, format.string->safe, ret);
}
