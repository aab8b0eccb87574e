/* filters_pick.c - map, select and what is like them. */
#include "template/builtin.h"

static const struct value absent = { .kind = VALUE_ABSENT };

/* The call of the filter or test that is named among the values of another one. */
static struct call inner_call(const struct call *outer, uint32_t skip, struct value subject)
{
    return (struct call){ .subject = subject,
                          .values = outer->values + skip,
                          .count = outer->count - skip,
                          .keywords = outer->keywords,
                          .keyword_count = outer->keyword_count };
}

/* What is not true, none included, has no items for these filters. */
static enum status nothing(struct render *r, struct value *ret)
{
    struct list *list;
    TRY(jinja_list_create(r, 0, &list));
    *ret = value_list(VALUE_GENERATOR, list);
    return STATUS_OK;
}

/* With a path (select: without): items for which the named test, or truth, holds. */
static enum status pick(struct render *r, const struct call *call, bool by_path, bool wanted,
                        struct value *ret)
{
    struct list *list, *kept;
    const struct builtin *test = NULL;
    uint32_t skip = by_path ? 1 : 0;
    if (!jinja_truth(call->subject))
        return nothing(r, ret);
    if (by_path && call->count == 0)
        return fail(r, RUNTIME, "Missing parameter for attribute name");
    if (call->count > skip) {
        struct value name;
        TRY(jinja_text_argument(r, call->values[skip], &name));
        test = jinja_test_find(name.string);
        if (!test)
            return fail(r, RUNTIME, "No test named '%.*s'.",
                        (int)(name.string->length < 64 ? name.string->length : 64),
                        name.string->bytes);
    }
    TRY(jinja_walk(r, call->subject, &list));
    TRY(jinja_list_create(r, 0, &kept));
    for (uint32_t i = 0; i < list->count; i++) {
        struct value value, holds;
        TRY(jinja_spend(r, 1));
        TRY(jinja_path(r, list->items[i], by_path ? call->values[0] : absent, absent, &value));
        holds = value;
        if (test) {
            struct call inner = inner_call(call, skip + 1, value);
            TRY(jinja_call_builtin(r, test, &inner, &holds));
        }
        if (jinja_truth(holds) == wanted)
            TRY(jinja_list_add(r, kept, list->items[i]));
    }
    *ret = value_list(VALUE_GENERATOR, kept);
    return STATUS_OK;
}

static enum status filter_select(struct render *r, const struct call *call, struct value *ret)
{
    return pick(r, call, false, true, ret);
}

static enum status filter_reject(struct render *r, const struct call *call, struct value *ret)
{
    return pick(r, call, false, false, ret);
}

static enum status filter_selectattr(struct render *r, const struct call *call, struct value *ret)
{
    return pick(r, call, true, true, ret);
}

static enum status filter_rejectattr(struct render *r, const struct call *call, struct value *ret)
{
    return pick(r, call, true, false, ret);
}

static struct value keyword_of(const struct call *call, const char *name)
{
    for (uint32_t i = 0; i < call->keyword_count; i++)
        if (jinja_text_is(call->keywords[i].name, name))
            return call->keywords[i].value;
    return absent;
}

static enum status map_filter(const struct call *call, struct render *r, const struct builtin **ret)
{
    struct value name;
    if (call->count == 0)
        return fail(r, RUNTIME, "map requires a filter argument");
    TRY(jinja_text_argument(r, call->values[0], &name));
    *ret = jinja_filter_find(name.string);
    if (!*ret)
        return fail(r, RUNTIME, "No filter named '%.*s'.",
                    (int)(name.string->length < 64 ? name.string->length : 64), name.string->bytes);
    return STATUS_OK;
}

static enum status filter_map(struct render *r, const struct call *call, struct value *ret)
{
    struct list *list, *mapped;
    const struct builtin *filter = NULL;
    struct value path = call->count ? absent : keyword_of(call, "attribute");
    struct value fallback = keyword_of(call, "default");
    if (!jinja_truth(call->subject))
        return nothing(r, ret);
    if (!is_given(path))
        TRY(map_filter(call, r, &filter));
    else if (call->keyword_count > 1u + is_given(fallback))
        return fail(r, RUNTIME, "Unexpected keyword argument");
    TRY(jinja_walk(r, call->subject, &list));
    TRY(jinja_list_create(r, list->count, &mapped));
    for (uint32_t i = 0; i < list->count; i++) {
        struct value *item = &mapped->items[mapped->count++];
        TRY(jinja_spend(r, 1));
        if (filter) {
            struct call inner = inner_call(call, 1, list->items[i]);
            TRY(jinja_call_builtin(r, filter, &inner, item));
        } else {
            TRY(jinja_path(r, list->items[i], path, fallback, item));
        }
    }
    *ret = value_list(VALUE_GENERATOR, mapped);
    return STATUS_OK;
}

static enum status filter_sum(struct render *r, const struct call *call, struct value *ret)
{
    struct list *list;
    struct value sum = is_given(call->args[1]) ? call->args[1] : value_int(0);
    TRY(jinja_walk(r, call->subject, &list));
    for (uint32_t i = 0; i < list->count; i++) {
        struct value item;
        TRY(jinja_path(r, list->items[i], call->args[0], absent, &item));
        TRY(jinja_binary(r, OP_ADD, sum, item, &sum));
    }
    *ret = sum;
    return STATUS_OK;
}

static enum status filter_default(struct render *r, const struct call *call, struct value *ret)
{
    bool replaces = value_is(call->subject, VALUE_UNDEFINED) ||
                    (jinja_truth(call->args[1]) && !jinja_truth(call->subject));
    *ret = call->subject;
    if (!replaces)
        return STATUS_OK;
    *ret = call->args[0];
    return is_given(*ret) ? STATUS_OK : jinja_string_of(r, "", ret);
}

static enum status filter_attr(struct render *r, const struct call *call, struct value *ret)
{
    struct value name;
    TRY(jinja_to_string(r, call->args[0], &name));
    if (value_is(call->subject, VALUE_DICT) && !jinja_method_find(VALUE_DICT, name.string)) {
        *ret = value_undefined(UNDEFINED_ATTRIBUTE, name.string); /* attributes only */
        ret->owner = VALUE_DICT;
        return STATUS_OK;
    }
    return jinja_attribute(r, call->subject, name.string, ret);
}

static const struct builtin rows[] = {
    { "select", NULL, filter_select },
    { "reject", NULL, filter_reject },
    { "selectattr", NULL, filter_selectattr },
    { "rejectattr", NULL, filter_rejectattr },
    { "map", NULL, filter_map },
    { "sum", "attribute=,start=", filter_sum },
    { "default", "default_value=,boolean=", filter_default },
    { "d", "default_value=,boolean=", filter_default },
    { "attr", "name", filter_attr },
};
const struct builtin_table jinja_pick_filters = { rows, COUNT_OF(rows) };
