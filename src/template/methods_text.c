/* methods_text.c - methods of strings that give other strings. */
#include "template/builtin.h"
#include "template/text_case.h"
#include "template/unicode.h"

static enum status convert(struct render *r, const struct call *call, int how, struct value *ret)
{
    size_t begin = jinja_text_begin(r);
    TRY(jinja_convert_case(r, value_text(call->subject), how));
    TRY(jinja_text_end(r, begin, ret));
    return jinja_mark_safe(r, *ret, call->subject.string->safe, ret);
}

static enum status method_upper(struct render *r, const struct call *call, struct value *ret)
{
    return convert(r, call, UNICODE_TO_UPPER, ret);
}

static enum status method_lower(struct render *r, const struct call *call, struct value *ret)
{
    return convert(r, call, UNICODE_TO_LOWER, ret);
}

static enum status method_title(struct render *r, const struct call *call, struct value *ret)
{
    return convert(r, call, TEXT_TITLE, ret);
}

static enum status method_capitalize(struct render *r, const struct call *call, struct value *ret)
{
    return convert(r, call, TEXT_CAPITAL, ret);
}

/* A part of the subject as a string of its own. */
static enum status part(struct render *r, const struct call *call, struct text_view text,
                        struct value *ret)
{
    TRY(jinja_string(r, text, ret));
    return jinja_mark_safe(r, *ret, call->subject.string->safe, ret);
}

static enum status strip(struct render *r, const struct call *call, bool left, bool right,
                         struct value *ret)
{
    struct value set = call->args[0];
    if (is_given(set) && !value_is(set, VALUE_NONE))
        TRY(jinja_text_argument(r, set, &set));
    const struct string *characters = value_is(set, VALUE_STRING) ? set.string : NULL;
    uint64_t work = call->subject.string->length;
    TRY(jinja_spend(r, work / 16 * (characters ? 1 + characters->length / 16 : 1)));
    return part(r, call, jinja_strip(value_text(call->subject), characters, left, right), ret);
}

static enum status method_strip(struct render *r, const struct call *call, struct value *ret)
{
    return strip(r, call, true, true, ret);
}

static enum status method_lstrip(struct render *r, const struct call *call, struct value *ret)
{
    return strip(r, call, true, false, ret);
}

static enum status method_rstrip(struct render *r, const struct call *call, struct value *ret)
{
    return strip(r, call, false, true, ret);
}

static bool begins_with(struct text_view text, struct text_view start)
{
    return text.length >= start.length &&
           jinja_find((struct text_view){ text.bytes, start.length }, start, 0) == 0;
}

static bool ends_with(struct text_view text, struct text_view end)
{
    return text.length >= end.length &&
           text_view_equal((struct text_view){ text.bytes + text.length - end.length, end.length },
                           end);
}

static enum status method_removeprefix(struct render *r, const struct call *call, struct value *ret)
{
    struct value prefix;
    struct text_view text = value_text(call->subject);
    TRY(jinja_text_argument(r, call->args[0], &prefix));
    size_t cut = begins_with(text, value_text(prefix)) ? prefix.string->length : 0;
    return part(r, call, (struct text_view){ text.bytes + cut, text.length - cut }, ret);
}

static enum status method_removesuffix(struct render *r, const struct call *call, struct value *ret)
{
    struct value suffix;
    struct text_view text = value_text(call->subject);
    TRY(jinja_text_argument(r, call->args[0], &suffix));
    size_t cut = ends_with(text, value_text(suffix)) ? suffix.string->length : 0;
    return part(r, call, (struct text_view){ text.bytes, text.length - cut }, ret);
}

/* One or a tuple of starts or ends. */
static enum status has_end(struct render *r, const struct call *call,
                           bool (*holds)(struct text_view, struct text_view), struct value *ret)
{
    struct value one = call->args[0];
    bool found = false;
    uint32_t count = value_is(one, VALUE_TUPLE) ? one.list->count : 1;
    for (uint32_t i = 0; !found && i < count; i++) {
        struct value end = value_is(one, VALUE_TUPLE) ? one.list->items[i] : one;
        TRY(jinja_text_argument(r, end, &end));
        TRY(jinja_spend(r, 1 + end.string->length / 64));
        found = holds(value_text(call->subject), value_text(end));
    }
    *ret = value_bool(found);
    return STATUS_OK;
}

static enum status method_startswith(struct render *r, const struct call *call, struct value *ret)
{
    return has_end(r, call, begins_with, ret);
}

static enum status method_endswith(struct render *r, const struct call *call, struct value *ret)
{
    return has_end(r, call, ends_with, ret);
}

/* An empty text to replace is found before each character and at the end. */
static enum status replace_empty(struct render *r, struct text_view text, struct text_view by,
                                 uint64_t limit)
{
    size_t at = 0;
    for (uint64_t i = 0;; i++) {
        if (i < limit)
            TRY(jinja_add_view(r, by));
        if (at == text.length)
            return STATUS_OK;
        uint32_t code;
        uint32_t step = jinja_decode(text.bytes + at, text.length - at, &code);
        TRY(jinja_add(r, text.bytes + at, step));
        TRY(jinja_spend(r, 1));
        at += step;
    }
}

static enum status method_replace(struct render *r, const struct call *call, struct value *ret)
{
    struct value from, to;
    int64_t count;
    struct text_view text = value_text(call->subject);
    TRY(jinja_text_argument(r, call->args[0], &from));
    TRY(jinja_text_argument(r, call->args[1], &to));
    TRY(jinja_integer_argument(r, call->args[2], -1, &count));
    uint64_t limit = count < 0 ? UINT64_MAX : (uint64_t)count;
    size_t begin = jinja_text_begin(r), at = 0;
    TRY(jinja_spend(r, text.length / 16));
    if (from.string->length == 0) {
        TRY(replace_empty(r, text, value_text(to), limit));
        return jinja_text_end(r, begin, ret);
    }
    for (uint64_t i = 0; i < limit; i++) {
        int64_t found = jinja_find(text, value_text(from), at);
        if (found < 0)
            break;
        TRY(jinja_add(r, text.bytes + at, (size_t)found - at));
        TRY(jinja_add_view(r, value_text(to)));
        at = (size_t)found + from.string->length;
    }
    TRY(jinja_add(r, text.bytes + at, text.length - at));
    return jinja_text_end(r, begin, ret);
}

static enum status method_join(struct render *r, const struct call *call, struct value *ret)
{
    struct list *list;
    TRY(jinja_walk(r, call->args[0], &list));
    size_t begin = jinja_text_begin(r);
    for (uint32_t i = 0; i < list->count; i++) {
        if (!value_is(list->items[i], VALUE_STRING))
            return fail(r, TYPE, "sequence item %u: expected str instance, %s found", i,
                        jinja_kind_name(list->items[i]));
        if (i > 0)
            TRY(jinja_add_view(r, value_text(call->subject)));
        TRY(jinja_add_view(r, value_text(list->items[i])));
        TRY(jinja_spend(r, 1));
    }
    return jinja_text_end(r, begin, ret);
}

static enum status pad(struct render *r, const struct call *call, char align, struct value *ret)
{
    struct number_style style = { .align = align, .fill = ' ' };
    TRY(jinja_integer_argument(r, call->args[0], 0, &style.width));
    if (is_given(call->args[1])) {
        struct value fill;
        TRY(jinja_text_argument(r, call->args[1], &fill));
        if (fill.string->characters != 1)
            return fail(r, TYPE, "The fill character must be exactly one character long");
        jinja_decode(fill.string->bytes, fill.string->length, &style.fill);
    }
    size_t begin = jinja_text_begin(r);
    TRY(jinja_add_padded(r, value_text(call->subject), &style));
    return jinja_text_end(r, begin, ret);
}

static enum status method_ljust(struct render *r, const struct call *call, struct value *ret)
{
    return pad(r, call, '<', ret);
}

static enum status method_rjust(struct render *r, const struct call *call, struct value *ret)
{
    return pad(r, call, '>', ret);
}

static const struct builtin rows[] = {
    { "upper", "", method_upper },
    { "lower", "", method_lower },
    { "casefold", "", method_lower },
    { "title", "", method_title },
    { "capitalize", "", method_capitalize },
    { "strip", "chars=", method_strip },
    { "lstrip", "chars=", method_lstrip },
    { "rstrip", "chars=", method_rstrip },
    { "removeprefix", "prefix", method_removeprefix },
    { "removesuffix", "suffix", method_removesuffix },
    { "startswith", "prefix", method_startswith },
    { "endswith", "suffix", method_endswith },
    { "replace", "old,new,count=", method_replace },
    { "join", "iterable", method_join },
    { "ljust", "width,fillchar=", method_ljust },
    { "rjust", "width,fillchar=", method_rjust },
    { "format", NULL, jinja_format },
};
const struct builtin_table jinja_text_methods = { rows, COUNT_OF(rows) };
