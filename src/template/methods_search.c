/* methods_search.c - methods of strings that search, split or ask what a text is made of. */
#include "template/builtin.h"
#include "template/unicode.h"

/* ---- Splitting ------------------------------------------------------------------------------- */

static enum status add_part(struct render *r, struct list *list, const char *bytes, size_t length)
{
    struct value value;
    TRY(jinja_spend(r, 1));
    TRY(jinja_string(r, (struct text_view){ bytes, length }, &value));
    return jinja_list_add(r, list, value);
}

/* The parts of a safe text are safe. */
static enum status mark_parts(struct render *r, const struct call *call, struct list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        TRY(jinja_mark_safe(r, list->items[i], call->subject.string->safe, &list->items[i]));
    return STATUS_OK;
}

static enum status split_at(struct render *r, struct text_view text, struct text_view separator,
                            int64_t limit, struct list *list)
{
    size_t at = 0;
    for (int64_t i = 0; limit < 0 || i < limit; i++) {
        int64_t found = jinja_find(text, separator, at);
        if (found < 0)
            break;
        TRY(add_part(r, list, text.bytes + at, (size_t)found - at));
        at = (size_t)found + separator.length;
    }
    return add_part(r, list, text.bytes + at, text.length - at);
}

/* The last separators count. */
static enum status split_from_end(struct render *r, struct text_view text,
                                  struct text_view separator, int64_t limit, struct list *list)
{
    for (int64_t i = 0; limit < 0 || i < limit; i++) {
        int64_t found = jinja_find_last(text, separator);
        if (found < 0)
            break;
        size_t after = (size_t)found + separator.length;
        TRY(add_part(r, list, text.bytes + after, text.length - after));
        text.length = (size_t)found;
    }
    TRY(add_part(r, list, text.bytes, text.length));
    for (uint32_t i = 0; i < list->count / 2; i++) {
        struct value kept = list->items[i];
        list->items[i] = list->items[list->count - 1 - i];
        list->items[list->count - 1 - i] = kept;
    }
    return STATUS_OK;
}

static enum status split_space(struct render *r, struct text_view text, int64_t limit,
                               struct list *list)
{
    for (int64_t i = 0;; i++) {
        text = jinja_strip(text, NULL, true, false);
        if (text.length == 0)
            return STATUS_OK;
        if (limit >= 0 && i >= limit)
            return add_part(r, list, text.bytes, text.length);
        size_t end = 0;
        uint32_t code;
        while (end < text.length &&
               !jinja_space_at(text.bytes + end, (uint32_t)(text.length - end)))
            end += jinja_decode(text.bytes + end, text.length - end, &code);
        TRY(add_part(r, list, text.bytes, end));
        text = (struct text_view){ text.bytes + end, text.length - end };
    }
}

static enum status split(struct render *r, const struct call *call, bool from_end,
                         struct value *ret)
{
    struct list *list;
    struct value separator = call->args[0];
    struct text_view text = value_text(call->subject);
    int64_t limit;
    TRY(jinja_integer_argument(r, call->args[1], -1, &limit));
    TRY(jinja_list_create(r, 0, &list));
    TRY(jinja_spend(r, text.length / 16));
    *ret = value_list(VALUE_LIST, list);
    if (!is_given(separator) || value_is(separator, VALUE_NONE)) {
        TRY(split_space(r, text, limit, list));
        return mark_parts(r, call, list);
    }
    TRY(jinja_text_argument(r, separator, &separator));
    if (separator.string->length == 0)
        return fail(r, VALUE, "empty separator");
    TRY(from_end ? split_from_end(r, text, value_text(separator), limit, list)
                 : split_at(r, text, value_text(separator), limit, list));
    return mark_parts(r, call, list);
}

static enum status method_split(struct render *r, const struct call *call, struct value *ret)
{
    return split(r, call, false, ret);
}

static enum status method_rsplit(struct render *r, const struct call *call, struct value *ret)
{
    return split(r, call, true, ret);
}

static bool ends_line(uint32_t code)
{
    return (code >= 0x0A && code <= 0x0D) || (code >= 0x1C && code <= 0x1E) || code == 0x85 ||
           code == 0x2028 || code == 0x2029;
}

static enum status method_splitlines(struct render *r, const struct call *call, struct value *ret)
{
    struct list *list;
    struct text_view text = value_text(call->subject);
    bool keep = jinja_truth(call->args[0]);
    size_t begin = 0;
    TRY(jinja_list_create(r, 0, &list));
    TRY(jinja_spend(r, text.length / 8));
    for (size_t at = 0; at < text.length;) {
        uint32_t code;
        size_t end = at;
        at += jinja_decode(text.bytes + at, text.length - at, &code);
        if (!ends_line(code))
            continue;
        if (code == '\r' && at < text.length && text.bytes[at] == '\n')
            at++;
        TRY(add_part(r, list, text.bytes + begin, (keep ? at : end) - begin));
        begin = at;
    }
    if (begin < text.length)
        TRY(add_part(r, list, text.bytes + begin, text.length - begin));
    *ret = value_list(VALUE_LIST, list);
    return mark_parts(r, call, list);
}

static enum status partition(struct render *r, const struct call *call, bool from_end,
                             struct value *ret)
{
    struct list *list;
    struct value separator;
    struct text_view text = value_text(call->subject);
    TRY(jinja_text_argument(r, call->args[0], &separator));
    if (separator.string->length == 0)
        return fail(r, VALUE, "empty separator");
    TRY(jinja_spend(r, text.length / 16));
    int64_t found = from_end ? jinja_find_last(text, value_text(separator))
                             : jinja_find(text, value_text(separator), 0);
    size_t middle = separator.string->length, first = (size_t)found;
    if (found < 0) {
        middle = 0;
        first = from_end ? 0 : text.length;
    }
    TRY(jinja_list_create(r, 3, &list));
    TRY(add_part(r, list, text.bytes, first));
    TRY(add_part(r, list, text.bytes + first, middle));
    TRY(add_part(r, list, text.bytes + first + middle, text.length - first - middle));
    *ret = value_list(VALUE_TUPLE, list);
    return mark_parts(r, call, list);
}

static enum status method_partition(struct render *r, const struct call *call, struct value *ret)
{
    return partition(r, call, false, ret);
}

static enum status method_rpartition(struct render *r, const struct call *call, struct value *ret)
{
    return partition(r, call, true, ret);
}

/* ---- Searching ------------------------------------------------------------------------------- */

/* The part of the subject that start and stop choose; *ret_first is its first character. False if
 * it lies outside. */
static enum status searched(struct render *r, const struct call *call, struct value *ret_part,
                            int64_t *ret_first)
{
    int64_t length = call->subject.string->characters;
    TRY(jinja_integer_argument(r, call->args[1], 0, ret_first));
    if (*ret_first < 0)
        *ret_first = *ret_first + length < 0 ? 0 : *ret_first + length;
    return jinja_slice(r, call->subject, value_int(*ret_first), call->args[2],
                       (struct value){ .kind = VALUE_ABSENT }, ret_part);
}

static enum status find(struct render *r, const struct call *call, bool last, bool must,
                        struct value *ret)
{
    struct value needle, within;
    int64_t first;
    TRY(jinja_text_argument(r, call->args[0], &needle));
    TRY(searched(r, call, &within, &first));
    struct text_view text = value_text(within);
    TRY(jinja_spend(r, text.length / 16));
    int64_t found = last ? jinja_find_last(text, value_text(needle))
                         : jinja_find(text, value_text(needle), 0);
    if (first > (int64_t)call->subject.string->characters)
        found = -1;
    if (found < 0 && must)
        return fail(r, VALUE, "substring not found");
    if (found >= 0)
        found = first + jinja_count_characters(text.bytes, (size_t)found);
    *ret = value_int(found);
    return STATUS_OK;
}

static enum status method_find(struct render *r, const struct call *call, struct value *ret)
{
    return find(r, call, false, false, ret);
}

static enum status method_rfind(struct render *r, const struct call *call, struct value *ret)
{
    return find(r, call, true, false, ret);
}

static enum status method_index(struct render *r, const struct call *call, struct value *ret)
{
    return find(r, call, false, true, ret);
}

static enum status method_count(struct render *r, const struct call *call, struct value *ret)
{
    struct value needle, within;
    int64_t first, count = 0;
    TRY(jinja_text_argument(r, call->args[0], &needle));
    TRY(searched(r, call, &within, &first));
    struct text_view text = value_text(within);
    TRY(jinja_spend(r, text.length / 16));
    if (needle.string->length == 0)
        count = (int64_t)within.string->characters + 1;
    for (size_t at = 0; needle.string->length > 0; count++) {
        int64_t found = jinja_find(text, value_text(needle), at);
        if (found < 0)
            break;
        at = (size_t)found + needle.string->length;
    }
    *ret = value_int(count);
    return STATUS_OK;
}

/* ---- Classes of characters ------------------------------------------------------------------- */

static bool is_alpha(uint32_t code)
{
    return jinja_unicode_is(code, UNICODE_ALPHA);
}

static bool is_digit(uint32_t code)
{
    return jinja_unicode_is(code, UNICODE_DIGIT);
}

static bool is_alnum(uint32_t code)
{
    return is_alpha(code) || is_digit(code);
}

static enum status all_are(struct render *r, const struct call *call, bool (*is)(uint32_t),
                           struct value *ret)
{
    const struct string *text = call->subject.string;
    bool holds = text->length > 0;
    TRY(jinja_spend(r, text->length / 8));
    for (uint32_t at = 0; holds && at < text->length;) {
        uint32_t code;
        at += jinja_decode(text->bytes + at, text->length - at, &code);
        holds = is(code);
    }
    *ret = value_bool(holds);
    return STATUS_OK;
}

static enum status method_isalpha(struct render *r, const struct call *call, struct value *ret)
{
    return all_are(r, call, is_alpha, ret);
}

static enum status method_isdigit(struct render *r, const struct call *call, struct value *ret)
{
    return all_are(r, call, is_digit, ret);
}

static enum status method_isalnum(struct render *r, const struct call *call, struct value *ret)
{
    return all_are(r, call, is_alnum, ret);
}

static enum status method_isspace(struct render *r, const struct call *call, struct value *ret)
{
    return all_are(r, call, jinja_is_space, ret);
}

/* As the test of the same name. */
static enum status by_test(struct render *r, const struct call *call, const struct string *name,
                           struct value *ret)
{
    return jinja_test_find(name)->run(r, call, ret);
}

static enum status method_isupper(struct render *r, const struct call *call, struct value *ret)
{
    static const struct string name = { "upper", 5, 5, false, NULL };
    return by_test(r, call, &name, ret);
}

static enum status method_islower(struct render *r, const struct call *call, struct value *ret)
{
    static const struct string name = { "lower", 5, 5, false, NULL };
    return by_test(r, call, &name, ret);
}

static const struct builtin search_rows[] = {
    { "split", "sep=,maxsplit=", method_split },      { "rsplit", "sep=,maxsplit=", method_rsplit },
    { "splitlines", "keepends=", method_splitlines }, { "partition", "sep", method_partition },
    { "rpartition", "sep", method_rpartition },       { "find", "sub,start=,end=", method_find },
    { "rfind", "sub,start=,end=", method_rfind },     { "index", "sub,start=,end=", method_index },
    { "count", "sub,start=,end=", method_count },
};
const struct builtin_table jinja_search_methods = { search_rows, COUNT_OF(search_rows) };

static const struct builtin class_rows[] = {
    { "isalpha", "", method_isalpha },   { "isdigit", "", method_isdigit },
    { "isdecimal", "", method_isdigit }, { "isnumeric", "", method_isdigit },
    { "isalnum", "", method_isalnum },   { "isspace", "", method_isspace },
    { "isupper", "", method_isupper },   { "islower", "", method_islower },
};
const struct builtin_table jinja_text_class_methods = { class_rows, COUNT_OF(class_rows) };
