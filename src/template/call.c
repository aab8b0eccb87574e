/* call.c - calling functions, methods, filters, tests and macros. */
#include "template/render.h"

#include <string.h>

#define ARGUMENT_LIMIT 100000u

/* ---- Arguments as written -------------------------------------------------------------------- */

/* What a call has, in memory of the rendering. */
struct arguments {
    struct list *values;
    struct keyword *keywords;
    uint32_t keyword_count, keyword_capacity;
};

static enum status add_keyword(struct render *r, struct arguments *arguments,
                               const struct string *name, struct value value)
{
    for (uint32_t i = 0; i < arguments->keyword_count; i++)
        if (jinja_text_equal(arguments->keywords[i].name, name))
            return fail(r, TYPE, "got multiple values for keyword argument '%.*s'",
                        (int)(name->length < 64 ? name->length : 64), name->bytes);
    TRY(jinja_spend(r, arguments->keyword_count));
    if (arguments->keyword_count == arguments->keyword_capacity) {
        uint32_t capacity = arguments->keyword_capacity ? arguments->keyword_capacity * 2 : 4;
        struct keyword *more;
        TRY(jinja_take(r, capacity * sizeof(*more), &more));
        if (arguments->keyword_count)
            memcpy(more, arguments->keywords, arguments->keyword_count * sizeof(*more));
        arguments->keywords = more;
        arguments->keyword_capacity = capacity;
    }
    arguments->keywords[arguments->keyword_count++] = (struct keyword){ name, value };
    return STATUS_OK;
}

static enum status spread(struct render *r, struct arguments *arguments, struct value value)
{
    struct list *list;
    TRY(jinja_walk(r, value, &list));
    if (list->count > ARGUMENT_LIMIT)
        return fail(r, LIMIT, "more than %u arguments", ARGUMENT_LIMIT);
    for (uint32_t i = 0; i < list->count; i++) {
        TRY(jinja_spend(r, 1));
        TRY(jinja_list_add(r, arguments->values, list->items[i]));
    }
    return STATUS_OK;
}

static enum status spread_keywords(struct render *r, struct arguments *arguments,
                                   struct value value)
{
    if (!value_is(value, VALUE_DICT))
        return fail(r, TYPE, "argument after ** must be a mapping, not %s", jinja_kind_name(value));
    for (uint32_t i = 0; i < value.dict->count; i++) {
        const struct dict_entry *entry = &value.dict->entries[i];
        if (!value_is(entry->key, VALUE_STRING))
            return fail(r, TYPE, "keywords must be strings");
        TRY(add_keyword(r, arguments, entry->key.string, entry->value));
    }
    return STATUS_OK;
}

/* The kids of a call, filter or test after the first. */
static enum status collect(struct render *r, const struct node *node, struct arguments *arguments)
{
    *arguments = (struct arguments){ 0 };
    TRY(jinja_list_create(r, node->count > 1 ? node->count - 1 : 0, &arguments->values));
    for (uint32_t i = 1; i < node->count; i++) {
        const struct node *kid = node->kids[i];
        bool is_plain = kid->kind != NODE_KEYWORD && kid->kind != NODE_SPREAD &&
                        kid->kind != NODE_SPREAD_KEYWORDS;
        struct value value;
        TRY(jinja_evaluate(r, is_plain ? kid : kid->kids[0], &value));
        if (kid->kind == NODE_SPREAD)
            TRY(spread(r, arguments, value));
        else if (kid->kind == NODE_SPREAD_KEYWORDS)
            TRY(spread_keywords(r, arguments, value));
        else if (kid->kind == NODE_KEYWORD)
            TRY(add_keyword(r, arguments, kid->value.string, value));
        else
            TRY(jinja_list_add(r, arguments->values, value));
    }
    return STATUS_OK;
}

static struct call call_with(struct value subject, const struct arguments *arguments)
{
    return (struct call){ .subject = subject,
                          .values = arguments->values->items,
                          .count = arguments->values->count,
                          .keywords = arguments->keywords,
                          .keyword_count = arguments->keyword_count };
}

/* ---- Arguments by parameter ------------------------------------------------------------------ */

struct parameter {
    struct text_view name;
    bool optional;
};

/* The next of "a,b=,": false after the last. */
static bool next_parameter(const char **at, struct parameter *ret)
{
    const char *text = *at;
    if (!*text)
        return false;
    size_t length = strcspn(text, ",=");
    ret->name = (struct text_view){ text, length };
    ret->optional = text[length] == '=';
    text += length + ret->optional;
    *at = text + (*text == ',');
    return true;
}

static enum status bind(struct render *r, const struct builtin *row, struct call *call)
{
    const char *at = row->parameters;
    struct parameter parameter;
    uint32_t index = 0, keywords_used = 0;
    for (; next_parameter(&at, &parameter); index++) {
        struct value *argument = &call->args[index];
        *argument = (struct value){ .kind = VALUE_ABSENT };
        if (index < call->count)
            *argument = call->values[index];
        for (uint32_t k = 0; k < call->keyword_count; k++) {
            const struct string *name = call->keywords[k].name;
            if (!text_view_equal((struct text_view){ name->bytes, name->length }, parameter.name))
                continue;
            if (index < call->count)
                return fail(r, TYPE, "%s() got multiple values for argument '%.*s'", row->name,
                            (int)parameter.name.length, parameter.name.bytes);
            *argument = call->keywords[k].value;
            keywords_used++;
        }
        if (argument->kind == VALUE_ABSENT && !parameter.optional)
            return fail(r, TYPE, "%s() missing a required argument: '%.*s'", row->name,
                        (int)parameter.name.length, parameter.name.bytes);
    }
    if (call->count > index)
        return fail(r, TYPE, "%s() takes at most %u arguments (%u given)", row->name, index,
                    call->count);
    if (keywords_used < call->keyword_count)
        return fail(r, TYPE, "%s() got an unexpected keyword argument", row->name);
    return STATUS_OK;
}

enum status jinja_call_builtin(struct render *r, const struct builtin *row, struct call *call,
                               struct value *ret)
{
    TRY(jinja_spend(r, 1));
    if (row->parameters)
        TRY(bind(r, row, call));
    return row->run(r, call, ret);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static enum status call_joiner(struct render *r, struct cycler *joiner, struct value *ret)
{
    if (joiner->used) {
        *ret = value_string(joiner->separator);
        return STATUS_OK;
    }
    joiner->used = true;
    return jinja_string_of(r, "", ret);
}

enum status jinja_call(struct render *r, struct value callee, struct call *call, struct value *ret)
{
    switch (callee.kind) {
    case VALUE_UNDEFINED:
        return jinja_fail_undefined(r, callee);
    case VALUE_BUILTIN:
        call->subject = callee.bound->subject;
        return jinja_call_builtin(r, callee.bound->row, call, ret);
    case VALUE_MACRO:
        return jinja_macro_call(r, callee.macro, call, ret);
    case VALUE_LOOP:
        return jinja_loop_call(r, callee.loop, call, ret);
    case VALUE_JOINER:
        return call_joiner(r, callee.cycler, ret);
    default:
        return fail(r, TYPE, "'%s' object is not callable", jinja_kind_name(callee));
    }
}

enum status jinja_call_node(struct render *r, const struct node *node, struct value extra_caller,
                            struct value *ret)
{
    struct value callee;
    struct arguments arguments;
    TRY(jinja_evaluate(r, node->kids[0], &callee));
    if (value_is(callee, VALUE_UNDEFINED))
        return jinja_fail_undefined(r, callee);
    TRY(collect(r, node, &arguments));
    if (extra_caller.kind != VALUE_ABSENT) {
        struct value name;
        TRY(jinja_string_of(r, "caller", &name));
        TRY(add_keyword(r, &arguments, name.string, extra_caller));
    }
    struct call call = call_with((struct value){ .kind = VALUE_ABSENT }, &arguments);
    return jinja_call(r, callee, &call, ret);
}

/* ---- Filters and tests ----------------------------------------------------------------------- */

static enum status unknown(struct render *r, const struct node *node, const char *what)
{
    char shown[64];
    text_printable(value_text(node->value), shown, sizeof(shown));
    return fail(r, RUNTIME, "No %s named '%s' found.", what, shown);
}

enum status jinja_filter_node(struct render *r, const struct node *node, struct value subject,
                              struct value *ret)
{
    struct arguments arguments;
    if (!node->row)
        return unknown(r, node, "filter");
    const struct node *inner = node->kids[0];
    if (inner && subject.kind != VALUE_ABSENT)
        TRY(jinja_filter_node(r, inner, subject, &subject));
    else if (inner)
        TRY(jinja_evaluate(r, inner, &subject));
    TRY(collect(r, node, &arguments));
    struct call call = call_with(subject, &arguments);
    return jinja_call_builtin(r, node->row, &call, ret);
}

enum status jinja_test_node(struct render *r, const struct node *node, struct value *ret)
{
    struct arguments arguments;
    struct value subject;
    if (!node->row)
        return unknown(r, node, "test");
    TRY(jinja_evaluate(r, node->kids[0], &subject));
    TRY(collect(r, node, &arguments));
    struct call call = call_with(subject, &arguments);
    return jinja_call_builtin(r, node->row, &call, ret);
}
