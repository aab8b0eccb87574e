/* functions.c - what every template may call. */
#include "template/builtin.h"

#define DATE_BYTES 4096

static enum status run_raise(struct render *r, const struct call *call, struct value *ret)
{
    struct value message;
    (void)ret;
    TRY(jinja_to_string(r, call->args[0], &message));
    return jinja_report_raised(&r->report, value_text(message));
}

static enum status run_strftime(struct render *r, const struct call *call, struct value *ret)
{
    struct value format;
    char text[DATE_BYTES], pattern[DATE_BYTES];
    TRY(jinja_text_argument(r, call->args[0], &format));
    /* A character before the format, so that an empty result is no failure. */
    if (format.string->length + 2 > sizeof(pattern))
        return fail(r, LIMIT, "a date format of more than %zu bytes", sizeof(pattern) - 2);
    snprintf(pattern, sizeof(pattern), "x%.*s", (int)format.string->length, format.string->bytes);
    size_t length = strftime(text, sizeof(text), pattern, &r->now);
    if (length == 0)
        return fail(r, LIMIT, "a date of more than %zu bytes", sizeof(text) - 2);
    for (size_t at = 0; at < length;) {
        size_t step = text_utf8_length(text + at, length - at);
        if (step == 0)
            return fail(r, VALUE, "a date format that gives no UTF-8");
        at += step;
    }
    return jinja_string(r, (struct text_view){ text + 1, length - 1 }, ret);
}

static enum status run_range(struct render *r, const struct call *call, struct value *ret)
{
    int64_t parts[3];
    if (call->keyword_count || call->count == 0 || call->count > 3)
        return fail(r, TYPE, "range expected 1 to 3 arguments, got %u", call->count);
    for (uint32_t i = 0; i < call->count; i++) {
        if (value_is(call->values[i], VALUE_NONE))
            return fail(r, TYPE, "'NoneType' object cannot be interpreted as an integer");
        TRY(jinja_integer_argument(r, call->values[i], 0, &parts[i]));
    }
    struct range *range;
    TRY(jinja_take(r, sizeof(*range), &range));
    *range = (struct range){ .start = call->count > 1 ? parts[0] : 0,
                             .stop = call->count > 1 ? parts[1] : parts[0],
                             .step = call->count > 2 ? parts[2] : 1 };
    if (range->step == 0)
        return fail(r, VALUE, "range() arg 3 must not be zero");
    bool up = range->step > 0;
    uint64_t distance = 0;
    if (up ? range->stop > range->start : range->stop < range->start)
        distance = up ? (uint64_t)range->stop - (uint64_t)range->start
                      : (uint64_t)range->start - (uint64_t)range->stop;
    uint64_t size = up ? (uint64_t)range->step : 0 - (uint64_t)range->step;
    uint64_t count = distance ? (distance - 1) / size + 1 : 0;
    if (count > RANGE_LIMIT)
        return fail(r, LIMIT,
                    "Range too big. The sandbox blocks ranges larger than MAX_RANGE "
                    "(%d).",
                    RANGE_LIMIT);
    range->count = (int64_t)count;
    *ret = (struct value){ .kind = VALUE_RANGE, .range = range };
    return STATUS_OK;
}

/* A dictionary from a mapping or pairs, then the keywords. */
static enum status fill_dict(struct render *r, const struct call *call, struct dict *dict)
{
    if (call->count > 1)
        return fail(r, TYPE, "dict expected at most 1 argument, got %u", call->count);
    if (call->count == 1 && value_is(call->values[0], VALUE_DICT)) {
        TRY(jinja_dict_copy(r, dict, call->values[0].dict));
    } else if (call->count == 1) {
        struct list *list, *pair;
        TRY(jinja_walk(r, call->values[0], &list));
        for (uint32_t i = 0; i < list->count; i++) {
            TRY(jinja_walk(r, list->items[i], &pair));
            if (pair->count != 2)
                return fail(r, VALUE,
                            "dictionary update sequence element #%u has length %u; 2 is required",
                            i, pair->count);
            TRY(jinja_dict_set(r, dict, pair->items[0], pair->items[1]));
        }
    }
    for (uint32_t i = 0; i < call->keyword_count; i++)
        TRY(jinja_dict_set(r, dict, value_string(call->keywords[i].name), call->keywords[i].value));
    return STATUS_OK;
}

static enum status run_dict(struct render *r, const struct call *call, struct value *ret)
{
    struct dict *dict;
    TRY(jinja_dict_create(r, &dict));
    TRY(fill_dict(r, call, dict));
    *ret = (struct value){ .kind = VALUE_DICT, .dict = dict };
    return STATUS_OK;
}

static enum status run_namespace(struct render *r, const struct call *call, struct value *ret)
{
    TRY(run_dict(r, call, ret));
    ret->kind = VALUE_NAMESPACE;
    return STATUS_OK;
}

static enum status run_cycler(struct render *r, const struct call *call, struct value *ret)
{
    struct cycler *cycler;
    if (call->count == 0)
        return fail(r, RUNTIME, "at least one item has to be provided");
    TRY(jinja_take(r, sizeof(*cycler), &cycler));
    for (uint32_t i = 0; i < call->count; i++)
        TRY(jinja_list_add(r, &cycler->items, call->values[i]));
    *ret = (struct value){ .kind = VALUE_CYCLER, .cycler = cycler };
    return STATUS_OK;
}

static enum status run_joiner(struct render *r, const struct call *call, struct value *ret)
{
    struct cycler *joiner;
    struct value separator = call->args[0];
    TRY(jinja_take(r, sizeof(*joiner), &joiner));
    TRY(is_given(separator) ? jinja_to_string(r, separator, &separator)
                            : jinja_string_of(r, ", ", &separator));
    joiner->separator = separator.string;
    *ret = (struct value){ .kind = VALUE_JOINER, .cycler = joiner };
    return STATUS_OK;
}

static enum status cycler_next(struct render *r, const struct call *call, struct value *ret)
{
    struct cycler *cycler = call->subject.cycler;
    (void)r;
    *ret = cycler->items.items[cycler->at];
    cycler->at = (cycler->at + 1) % cycler->items.count;
    return STATUS_OK;
}

static enum status cycler_reset(struct render *r, const struct call *call, struct value *ret)
{
    (void)r;
    call->subject.cycler->at = 0;
    *ret = value_none();
    return STATUS_OK;
}

static const struct builtin rows[] = {
    { "raise_exception", "message", run_raise },
    { "strftime_now", "format", run_strftime },
    { "range", NULL, run_range },
    { "dict", NULL, run_dict },
    { "namespace", NULL, run_namespace },
    { "cycler", NULL, run_cycler },
    { "joiner", "sep=", run_joiner },
};
const struct builtin_table jinja_functions = { rows, COUNT_OF(rows) };

static const struct builtin cycler_rows[] = {
    { "next", "", cycler_next },
    { "reset", "", cycler_reset },
};
const struct builtin_table jinja_cycler_methods = { cycler_rows, COUNT_OF(cycler_rows) };
