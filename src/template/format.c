/* format.c - "{} and {name:>8}".format(values), and the format filter. */
#include "template/builtin.h"

#include <string.h>

struct braces {
    struct render *r;
    const struct call *call;
    struct text_view format;
    size_t at;
    int64_t next; /* of {} */
};

static enum status bad(struct braces *b, const char *what)
{
    return fail(b->r, VALUE, "%s", what);
}

static bool read_number(struct text_view text, size_t *at, int64_t *ret)
{
    size_t begin = *at;
    for (*ret = 0; *at < text.length && text.bytes[*at] >= '0' && text.bytes[*at] <= '9'; ++*at)
        if (*ret < INT32_MAX)
            *ret = *ret * 10 + (text.bytes[*at] - '0');
    return *at > begin;
}

/* The argument that a field names: "", "0" or "name". */
static enum status find_argument(struct braces *b, struct text_view name, struct value *ret)
{
    int64_t index = b->next;
    size_t at = 0;
    if (name.length == 0 || (read_number(name, &at, &index) && at == name.length)) {
        b->next += name.length == 0;
        if (index >= b->call->count)
            return bad(b, "Replacement index out of range for positional args tuple");
        *ret = b->call->values[index];
        return STATUS_OK;
    }
    for (uint32_t i = 0; i < b->call->keyword_count; i++) {
        const struct string *keyword = b->call->keywords[i].name;
        if (text_view_equal((struct text_view){ keyword->bytes, keyword->length }, name)) {
            *ret = b->call->keywords[i].value;
            return STATUS_OK;
        }
    }
    return bad(b, "the format names an argument that is not there");
}

/* "name.attribute[item]" */
static enum status find_value(struct braces *b, struct text_view field, struct value *ret)
{
    size_t end = 0;
    while (end < field.length && field.bytes[end] != '.' && field.bytes[end] != '[')
        end++;
    TRY(find_argument(b, (struct text_view){ field.bytes, end }, ret));
    while (end < field.length) {
        bool item = field.bytes[end++] == '[';
        size_t begin = end, digits = end;
        while (end < field.length && field.bytes[end] != (item ? ']' : '.') &&
               (item || field.bytes[end] != '['))
            end++;
        struct value key;
        int64_t index;
        TRY(jinja_string(b->r, (struct text_view){ field.bytes + begin, end - begin }, &key));
        if (item && read_number(field, &digits, &index) && digits == end)
            key = value_int(index);
        TRY(item ? jinja_item(b->r, *ret, key, ret) : jinja_attribute(b->r, *ret, key.string, ret));
        end += item;
    }
    return STATUS_OK;
}

/* "[[fill]align][sign][#][0][width][,][.precision][type]" */
static enum status read_spec(struct braces *b, struct text_view spec, struct number_style *style)
{
    size_t at = 0;
    uint32_t code;
    *style = (struct number_style){ .precision = -1, .fill = ' ' };
    if (spec.length > 0) {
        uint32_t step = jinja_decode(spec.bytes, spec.length, &code);
        if (step < spec.length && strchr("<>=^", spec.bytes[step])) {
            style->fill = code;
            style->align = spec.bytes[step];
            at = step + 1;
        } else if (code < 0x80 && code && strchr("<>=^", (int)code)) {
            style->align = (char)code;
            at = 1;
        }
    }
    if (at < spec.length && spec.bytes[at] && strchr("+- ", spec.bytes[at]))
        style->sign = spec.bytes[at++];
    if (at < spec.length && spec.bytes[at] == '#') {
        style->alternate = true;
        at++;
    }
    if (at < spec.length && spec.bytes[at] == '0' && !style->align) {
        style->zero = true;
        at++;
    }
    (void)read_number(spec, &at, &style->width);
    if (at < spec.length && spec.bytes[at] == ',') {
        style->commas = true;
        at++;
    }
    if (at < spec.length && spec.bytes[at] == '.') {
        at++;
        if (!read_number(spec, &at, &style->precision))
            return bad(b, "Format specifier missing precision");
    }
    if (at < spec.length)
        style->type = spec.bytes[at++];
    if (at < spec.length || (style->type && !strchr("bcdeEfFgGnosxX%", style->type)))
        return bad(b, "Invalid format specifier");
    return STATUS_OK;
}

static enum status add_value(struct braces *b, struct value value, struct number_style *style)
{
    bool as_number = value_is_number(value) && style->type != 's' &&
                     !(value_is(value, VALUE_BOOL) && !style->type);
    if (as_number && !(value_is(value, VALUE_FLOAT) && !style->type && style->precision < 0)) {
        if (value_is(value, VALUE_FLOAT) && !style->type)
            style->type = 'g';
        if (style->type == 'c')
            return bad(b, "the type c is not supported");
        if (value_is(value, VALUE_FLOAT) && !strchr("eEfFgGn%", style->type))
            return bad(b, "Unknown format code for object of type 'float'");
        return jinja_add_number(b->r, value, style);
    }
    if (style->type && style->type != 's')
        return bad(b, "Unknown format code for this object");
    struct value text;
    TRY(jinja_to_string(b->r, value, &text));
    if (style->precision >= 0 && style->precision < (int64_t)text.string->characters)
        TRY(jinja_slice(b->r, text, value_none(), value_int(style->precision), value_none(),
                        &text));
    if (!style->align)
        style->align = as_number ? '>' : '<';
    if (style->zero)
        style->fill = '0';
    return jinja_add_padded(b->r, value_text(text), style);
}

/* A field, from after its opening brace. */
static enum status add_field(struct braces *b)
{
    size_t begin = b->at;
    while (b->at < b->format.length && b->format.bytes[b->at] != '}')
        if (b->format.bytes[b->at++] == '{')
            return bad(b, "fields within fields are not supported");
    if (b->at >= b->format.length)
        return bad(b, "expected '}' before end of string");
    struct text_view field = { b->format.bytes + begin, b->at++ - begin };
    const char *colon = memchr(field.bytes, ':', field.length);
    struct text_view spec = { "", 0 };
    if (colon) {
        spec = (struct text_view){ colon + 1, (size_t)(field.bytes + field.length - colon - 1) };
        field.length = (size_t)(colon - field.bytes);
    }
    char conversion = '\0';
    if (field.length >= 2 && field.bytes[field.length - 2] == '!') {
        conversion = field.bytes[field.length - 1];
        field.length -= 2;
    }
    struct value value;
    struct number_style style;
    TRY(find_value(b, field, &value));
    if (conversion) {
        size_t mark = jinja_text_begin(b->r);
        TRY(conversion == 's' ? jinja_print(b->r, value) : jinja_repr(b->r, value));
        TRY(jinja_text_end(b->r, mark, &value));
    }
    TRY(read_spec(b, spec, &style));
    return add_value(b, value, &style);
}

enum status jinja_format(struct render *r, const struct call *call, struct value *ret)
{
    struct braces b = { .r = r, .call = call, .format = value_text(call->subject) };
    size_t begin = jinja_text_begin(r);
    while (b.at < b.format.length) {
        char byte = b.format.bytes[b.at];
        bool twice = b.at + 1 < b.format.length && b.format.bytes[b.at + 1] == byte;
        TRY(jinja_spend(r, 1));
        if ((byte == '{' || byte == '}') && twice) {
            TRY(jinja_add(r, &byte, 1));
            b.at += 2;
        } else if (byte == '{') {
            b.at++;
            TRY(add_field(&b));
        } else if (byte == '}') {
            return bad(&b, "Single '}' encountered in format string");
        } else {
            TRY(jinja_add(r, &byte, 1));
            b.at++;
        }
    }
    return jinja_text_end(r, begin, ret);
}

/* As a filter: with % signs. */
enum status jinja_format_filter(struct render *r, const struct call *call, struct value *ret)
{
    struct value format, values;
    TRY(jinja_to_string(r, call->subject, &format));
    if (call->count && call->keyword_count)
        return fail(r, RUNTIME, "can't handle positional and keyword arguments at the same time");
    if (call->keyword_count) {
        struct dict *dict;
        TRY(jinja_dict_create(r, &dict));
        for (uint32_t i = 0; i < call->keyword_count; i++)
            TRY(jinja_dict_set(r, dict, value_string(call->keywords[i].name),
                               call->keywords[i].value));
        return jinja_percent(r, format, (struct value){ .kind = VALUE_DICT, .dict = dict }, ret);
    }
    struct list *list;
    TRY(jinja_list_create(r, call->count, &list));
    for (uint32_t i = 0; i < call->count; i++)
        list->items[list->count++] = call->values[i];
    values = value_list(VALUE_TUPLE, list);
    return jinja_percent(r, format, values, ret);
}
