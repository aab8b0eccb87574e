/* filters_text.c - filters that give texts. */
#include "template/builtin.h"
#include "template/text_case.h"
#include "template/unicode.h"

#include <string.h>

static enum status filter_case(struct render *r, const struct call *call, int how,
                               struct value *ret)
{
    struct value text;
    TRY(jinja_to_string(r, call->subject, &text));
    size_t begin = jinja_text_begin(r);
    TRY(jinja_convert_case(r, value_text(text), how));
    TRY(jinja_text_end(r, begin, ret));
    return jinja_mark_safe(r, *ret, text.string->safe, ret);
}

static enum status filter_upper(struct render *r, const struct call *call, struct value *ret)
{
    return filter_case(r, call, UNICODE_TO_UPPER, ret);
}

static enum status filter_lower(struct render *r, const struct call *call, struct value *ret)
{
    return filter_case(r, call, UNICODE_TO_LOWER, ret);
}

static enum status filter_title(struct render *r, const struct call *call, struct value *ret)
{
    return filter_case(r, call, TEXT_WORDS, ret);
}

static enum status filter_capitalize(struct render *r, const struct call *call, struct value *ret)
{
    return filter_case(r, call, TEXT_CAPITAL, ret);
}

static enum status filter_trim(struct render *r, const struct call *call, struct value *ret)
{
    struct value text, set = call->args[0];
    TRY(jinja_to_string(r, call->subject, &text));
    if (is_given(set) && !value_is(set, VALUE_NONE))
        TRY(jinja_text_argument(r, set, &set));
    TRY(jinja_spend(r, text.string->length / 8));
    const struct string *characters = value_is(set, VALUE_STRING) ? set.string : NULL;
    TRY(jinja_string(r, jinja_strip(value_text(text), characters, true, true), ret));
    return jinja_mark_safe(r, *ret, text.string->safe, ret);
}

static enum status filter_string(struct render *r, const struct call *call, struct value *ret)
{
    return jinja_to_string(r, call->subject, ret);
}

static enum status filter_safe(struct render *r, const struct call *call, struct value *ret)
{
    TRY(jinja_to_string(r, call->subject, ret));
    return jinja_mark_safe(r, *ret, true, ret);
}

static enum status filter_escape(struct render *r, const struct call *call, struct value *ret)
{
    return jinja_escape(r, call->subject, ret);
}

static enum status filter_forceescape(struct render *r, const struct call *call, struct value *ret)
{
    TRY(jinja_to_string(r, call->subject, ret));
    TRY(jinja_mark_safe(r, *ret, false, ret));
    return jinja_escape(r, *ret, ret);
}

static enum status filter_replace(struct render *r, const struct call *call, struct value *ret)
{
    struct call method = { .count = 0 };
    static const struct string name = { "replace", 7, 7, false, NULL };
    TRY(jinja_to_string(r, call->subject, &method.subject));
    TRY(jinja_mark_safe(r, method.subject, false, &method.subject));
    TRY(jinja_to_string(r, call->args[0], &method.args[0]));
    TRY(jinja_to_string(r, call->args[1], &method.args[1]));
    method.args[2] = call->args[2];
    return jinja_method_find(VALUE_STRING, &name)->run(r, &method, ret);
}

static enum status filter_join(struct render *r, const struct call *call, struct value *ret)
{
    struct list *list;
    struct value separator = call->args[0];
    TRY(jinja_walk(r, call->subject, &list));
    if (is_given(separator))
        TRY(jinja_to_string(r, separator, &separator));
    size_t begin = jinja_text_begin(r);
    for (uint32_t i = 0; i < list->count; i++) {
        struct value item;
        TRY(jinja_spend(r, 1));
        if (i > 0 && is_given(separator))
            TRY(jinja_add_view(r, value_text(separator)));
        TRY(jinja_path(r, list->items[i], call->args[1], (struct value){ .kind = VALUE_ABSENT },
                       &item));
        TRY(jinja_print(r, item));
    }
    return jinja_text_end(r, begin, ret);
}

/* A line end or the end of the text; *ret_next is after it. */
static size_t line_end(struct text_view text, size_t at, size_t *ret_next)
{
    while (at < text.length) {
        uint32_t code;
        uint32_t step = jinja_decode(text.bytes + at, text.length - at, &code);
        bool ends = (code >= 0x0A && code <= 0x0D) || (code >= 0x1C && code <= 0x1E) ||
                    code == 0x85 || code == 0x2028 || code == 0x2029;
        if (ends) {
            *ret_next = at + step;
            if (code == '\r' && *ret_next < text.length && text.bytes[*ret_next] == '\n')
                ++*ret_next;
            return at;
        }
        at += step;
    }
    *ret_next = at;
    return at;
}

static enum status indentation(struct render *r, struct value width, struct value *ret)
{
    int64_t count;
    if (value_is(width, VALUE_STRING)) {
        *ret = width;
        return STATUS_OK;
    }
    TRY(jinja_integer_argument(r, width, 4, &count));
    size_t begin = jinja_text_begin(r);
    TRY(jinja_add_fill(r, (struct text_view){ " ", 1 }, count > 0 ? (uint64_t)count : 0));
    return jinja_text_end(r, begin, ret);
}

static enum status filter_indent(struct render *r, const struct call *call, struct value *ret)
{
    struct value indent, text;
    bool first = jinja_truth(call->args[1]), blank = jinja_truth(call->args[2]);
    TRY(indentation(r, call->args[0], &indent));
    TRY(jinja_text_argument(r, call->subject, &text));
    struct text_view view = value_text(text);
    size_t begin = jinja_text_begin(r);
    for (size_t at = 0, line = 0, next; at <= view.length; at = next, line++) {
        size_t end = line_end(view, at, &next);
        if (line > 0)
            TRY(jinja_add_text(r, "\n"));
        if (line == 0 ? first : blank || end > at)
            TRY(jinja_add_view(r, value_text(indent)));
        TRY(jinja_add(r, view.bytes + at, end - at));
        if (next == view.length && end == next)
            break;
    }
    return jinja_text_end(r, begin, ret);
}

static enum status style_of(struct render *r, const struct call *call, struct json_style *style)
{
    struct value indent = call->args[1], separators = call->args[2], text;
    bool one_line = !is_given(indent) || value_is(indent, VALUE_NONE);
    *style = (struct json_style){ .ensure_ascii = jinja_truth(call->args[0]),
                                  .sort_keys = jinja_truth(call->args[3]),
                                  .item_separator = text_view_of(one_line ? ", " : ","),
                                  .key_separator = text_view_of(": ") };
    if (!one_line) {
        TRY(indentation(r, indent, &text));
        style->indent = value_text(text);
    }
    if (!is_given(separators) || value_is(separators, VALUE_NONE))
        return STATUS_OK;
    struct list *pair;
    TRY(jinja_walk(r, separators, &pair));
    if (pair->count != 2)
        return fail(r, VALUE, "expected two separators, found %u", pair->count);
    TRY(jinja_text_argument(r, pair->items[0], &text));
    style->item_separator = value_text(text);
    TRY(jinja_text_argument(r, pair->items[1], &text));
    style->key_separator = value_text(text);
    return STATUS_OK;
}

static enum status filter_tojson(struct render *r, const struct call *call, struct value *ret)
{
    struct json_style style;
    TRY(style_of(r, call, &style));
    size_t begin = jinja_text_begin(r);
    TRY(jinja_json(r, call->subject, &style));
    return jinja_text_end(r, begin, ret);
}

/* Not of Jinja: templates for other engines use it on arguments that are texts. */
static enum status filter_fromjson(struct render *r, const struct call *call, struct value *ret)
{
    struct value text;
    TRY(jinja_text_argument(r, call->subject, &text));
    return jinja_from_json_text(r, value_text(text), ret);
}

static enum status filter_truncate(struct render *r, const struct call *call, struct value *ret)
{
    static const struct string dots = { "...", 3, 3, false, NULL };
    struct value text, end = value_string(&dots);
    int64_t length, leeway, whole;
    TRY(jinja_integer_argument(r, call->args[0], 255, &length));
    if (is_given(call->args[2]))
        TRY(jinja_text_argument(r, call->args[2], &end));
    TRY(jinja_integer_argument(r, call->args[3], 5, &leeway));
    int64_t kept = length - (int64_t)end.string->characters;
    if (kept < 0 || leeway < 0)
        return fail(r, RUNTIME, "expected length >= %u, got %lld", end.string->characters,
                    (long long)length);
    TRY(jinja_length(r, call->subject, &whole));
    *ret = call->subject;
    if (whole <= length || whole - length <= leeway)
        return STATUS_OK;
    TRY(jinja_text_argument(r, call->subject, &text));
    struct text_view cut = { text.string->bytes, jinja_offset_of(text.string, (uint32_t)kept) };
    int64_t space = jinja_find_last(cut, (struct text_view){ " ", 1 });
    if (!jinja_truth(call->args[1]) && space >= 0)
        cut.length = (size_t)space;
    size_t begin = jinja_text_begin(r);
    TRY(jinja_add_view(r, cut));
    TRY(jinja_add_view(r, value_text(end)));
    return jinja_text_end(r, begin, ret);
}

static enum status filter_center(struct render *r, const struct call *call, struct value *ret)
{
    struct value text;
    int64_t width;
    TRY(jinja_to_string(r, call->subject, &text));
    TRY(jinja_integer_argument(r, call->args[0], 80, &width));
    int64_t room = width > (int64_t)text.string->characters ? width - text.string->characters : 0;
    int64_t left = room / 2 + (room & width & 1); /* as str.center rounds */
    size_t begin = jinja_text_begin(r);
    TRY(jinja_add_fill(r, (struct text_view){ " ", 1 }, (uint64_t)left));
    TRY(jinja_add_view(r, value_text(text)));
    TRY(jinja_add_fill(r, (struct text_view){ " ", 1 }, (uint64_t)(room - left)));
    return jinja_text_end(r, begin, ret);
}

static bool stays_in_url(char byte)
{
    return (byte >= '0' && byte <= '9') || ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z') ||
           (byte && strchr("_.-~/", byte));
}

static enum status filter_urlencode(struct render *r, const struct call *call, struct value *ret)
{
    struct value text;
    static const char digits[] = "0123456789ABCDEF";
    if (value_is(call->subject, VALUE_DICT) || value_is(call->subject, VALUE_LIST))
        return fail(r, TYPE, "urlencode: expected a text, found a %s",
                    jinja_kind_name(call->subject));
    TRY(jinja_to_string(r, call->subject, &text));
    size_t begin = jinja_text_begin(r);
    TRY(jinja_spend(r, text.string->length / 8));
    for (uint32_t i = 0; i < text.string->length; i++) {
        unsigned char byte = (unsigned char)text.string->bytes[i];
        char code[3] = { '%', digits[byte >> 4], digits[byte & 15] };
        TRY(stays_in_url((char)byte) ? jinja_add(r, (char *)&byte, 1) : jinja_add(r, code, 3));
    }
    return jinja_text_end(r, begin, ret);
}

/* Without tags and comments; white space becomes single spaces. */
static enum status filter_striptags(struct render *r, const struct call *call, struct value *ret)
{
    struct value text;
    TRY(jinja_to_string(r, call->subject, &text));
    struct text_view rest = jinja_strip(value_text(text), NULL, true, true);
    bool in_tag = false, space = false;
    size_t begin = jinja_text_begin(r);
    TRY(jinja_spend(r, rest.length / 8));
    for (size_t at = 0; at < rest.length;) {
        uint32_t code;
        uint32_t step = jinja_decode(rest.bytes + at, rest.length - at, &code);
        if (code == '<')
            in_tag = memchr(rest.bytes + at, '>', rest.length - at) != NULL;
        if (!in_tag && jinja_is_space(code)) {
            space = true;
        } else if (!in_tag) {
            if (space && jinja_text_begin(r) > begin)
                TRY(jinja_add_text(r, " "));
            space = false;
            TRY(jinja_add(r, rest.bytes + at, step));
        }
        in_tag = in_tag && code != '>';
        at += step;
    }
    return jinja_text_end(r, begin, ret);
}

static const struct builtin rows[] = {
    { "upper", "", filter_upper },
    { "lower", "", filter_lower },
    { "title", "", filter_title },
    { "capitalize", "", filter_capitalize },
    { "trim", "chars=", filter_trim },
    { "string", "", filter_string },
    { "safe", "", filter_safe },
    { "e", "", filter_escape },
    { "escape", "", filter_escape },
    { "forceescape", "", filter_forceescape },
    { "replace", "old,new,count=", filter_replace },
    { "join", "d=,attribute=", filter_join },
    { "indent", "width=,first=,blank=", filter_indent },
    { "tojson", "ensure_ascii=,indent=,separators=,sort_keys=", filter_tojson },
    { "fromjson", "", filter_fromjson },
    { "from_json", "", filter_fromjson },
    { "truncate", "length=,killwords=,end=,leeway=", filter_truncate },
    { "center", "width=", filter_center },
    { "urlencode", "", filter_urlencode },
    { "striptags", "", filter_striptags },
    { "wordwrap", "width=,break_long_words=,wrapstring=,break_on_hyphens=", jinja_wordwrap },
    { "format", NULL, jinja_format_filter },
};
const struct builtin_table jinja_text_filters = { rows, COUNT_OF(rows) };
