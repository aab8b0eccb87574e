/* macro.c - macros, and the blocks that are given to them as caller. */
#include "template/render.h"

struct macro {
    const struct node *node;
    struct scope *scope; /* around its definition; NULL: the template's own */
};

static uint32_t parameter_count(const struct node *node)
{
    return (node->count - 1) / 2;
}

static const struct string *parameter_name(const struct render *r, const struct node *node,
                                           uint32_t index)
{
    return r->template->names[node->kids[index * 2]->name];
}

enum status jinja_macro_create(struct render *r, const struct node *node, struct value *ret)
{
    struct macro *macro;
    TRY(jinja_take(r, sizeof(*macro), &macro));
    *macro = (struct macro){ node, r->scope };
    *ret = (struct value){ .kind = VALUE_MACRO, .macro = macro };
    return STATUS_OK;
}

enum status jinja_macro_attribute(struct render *r, const struct macro *macro,
                                  const struct string *name, struct value *ret)
{
    const struct node *node = macro->node;
    if (jinja_text_is(name, "name")) {
        *ret = value_is(node->value, VALUE_STRING) ? node->value : value_none();
    } else if (jinja_text_is(name, "arguments")) {
        struct list *list;
        TRY(jinja_list_create(r, parameter_count(node), &list));
        for (uint32_t i = 0; i < parameter_count(node); i++)
            list->items[list->count++] = value_string(parameter_name(r, node, i));
        *ret = value_list(VALUE_TUPLE, list);
    } else if (jinja_text_is(name, "catch_kwargs")) {
        *ret = value_bool(node->flags & FLAG_USES_KWARGS);
    } else if (jinja_text_is(name, "catch_varargs")) {
        *ret = value_bool(node->flags & FLAG_USES_VARARGS);
    } else if (jinja_text_is(name, "caller")) {
        *ret = value_bool(node->flags & FLAG_USES_CALLER);
    }
    return STATUS_OK;
}

/* "f", or "None" for a caller. */
static const char *shown_name(const struct node *node, char *buffer, size_t bytes)
{
    if (!value_is(node->value, VALUE_STRING))
        return "None";
    return text_printable(value_text(node->value), buffer, bytes);
}

/* ---- Arguments ------------------------------------------------------------------------------- */

static const struct keyword *find_keyword(const struct call *call, const struct string *name)
{
    for (uint32_t i = 0; i < call->keyword_count; i++)
        if (jinja_text_equal(call->keywords[i].name, name))
            return &call->keywords[i];
    return NULL;
}

/* The value of parameter `index`; defaults see the parameters before theirs. */
static enum status bind_parameter(struct render *r, const struct node *node,
                                  const struct call *call, uint32_t index, uint32_t *used)
{
    const struct string *name = parameter_name(r, node, index);
    const struct node *fallback = node->kids[index * 2 + 1];
    struct value value;
    const struct keyword *keyword = index < call->count ? NULL : find_keyword(call, name);
    if (index < call->count)
        value = call->values[index];
    else if (keyword)
        value = keyword->value;
    else if (fallback)
        TRY(jinja_evaluate(r, fallback, &value));
    else
        value = value_undefined(UNDEFINED_ARGUMENT, name);
    *used += keyword != NULL;
    TRY(jinja_spend(r, call->keyword_count));
    return jinja_name_set(r, node->kids[index * 2]->name, value);
}

static enum status set_special(struct render *r, const char *name, struct value value)
{
    for (uint32_t i = 0; i < r->template->name_count; i++)
        if (jinja_text_is(r->template->names[i], name))
            return jinja_name_set(r, i, value);
    return STATUS_OK;
}

static bool is_parameter(const struct render *r, const struct node *node, const struct string *name)
{
    for (uint32_t i = 0; i < parameter_count(node); i++)
        if (jinja_text_equal(parameter_name(r, node, i), name))
            return true;
    return false;
}

/* Keywords that are no parameters: caller, and what kwargs has. */
static enum status bind_keywords(struct render *r, const struct node *node, const struct call *call,
                                 uint32_t used)
{
    struct dict *rest;
    char shown[64], name[64];
    struct value caller = value_undefined(UNDEFINED_EMPTY, NULL);
    TRY(jinja_dict_create(r, &rest));
    for (uint32_t i = 0; used < call->keyword_count && i < call->keyword_count; i++) {
        const struct keyword *keyword = &call->keywords[i];
        struct value key = value_string(keyword->name);
        if (node->flags & FLAG_USES_CALLER && jinja_text_is(keyword->name, "caller")) {
            caller = keyword->value;
            continue;
        }
        TRY(jinja_spend(r, parameter_count(node)));
        bool known = is_parameter(r, node, keyword->name);
        if (known && find_keyword(call, keyword->name) == keyword &&
            !(node->flags & FLAG_USES_KWARGS))
            continue;
        if (!known && !(node->flags & FLAG_USES_KWARGS))
            return fail(r, TYPE, "macro '%s' takes no keyword argument '%s'",
                        shown_name(node, shown, sizeof(shown)),
                        text_printable(value_text(key), name, sizeof(name)));
        if (!known)
            TRY(jinja_dict_set(r, rest, key, keyword->value));
    }
    if (node->flags & FLAG_USES_CALLER)
        TRY(set_special(r, "caller", caller));
    if (node->flags & FLAG_USES_KWARGS)
        TRY(set_special(r, "kwargs", (struct value){ .kind = VALUE_DICT, .dict = rest }));
    return STATUS_OK;
}

static enum status bind_rest(struct render *r, const struct node *node, const struct call *call,
                             uint32_t used)
{
    uint32_t count = parameter_count(node);
    char shown[64];
    TRY(bind_keywords(r, node, call, used));
    if (!(node->flags & FLAG_USES_VARARGS)) {
        if (call->count > count)
            return fail(r, TYPE, "macro '%s' takes not more than %u argument(s)",
                        shown_name(node, shown, sizeof(shown)), count);
        return STATUS_OK;
    }
    struct list *rest;
    TRY(jinja_list_create(r, call->count > count ? call->count - count : 0, &rest));
    for (uint32_t i = count; i < call->count; i++)
        rest->items[rest->count++] = call->values[i];
    return set_special(r, "varargs", value_list(VALUE_TUPLE, rest));
}

enum status jinja_macro_call(struct render *r, const struct macro *macro, const struct call *call,
                             struct value *ret)
{
    const struct node *node = macro->node;
    struct scope *outer = r->scope, *scope;
    uint32_t used = 0;
    if (r->calls >= CALL_LIMIT)
        return fail(r, LIMIT, "more than %u macros or loops within each other", CALL_LIMIT);
    r->calls++;
    r->scope = macro->scope;
    TRY(jinja_scope_begin(r, &scope));
    for (uint32_t i = 0; i < parameter_count(node); i++)
        TRY(bind_parameter(r, node, call, i, &used));
    TRY(bind_rest(r, node, call, used));
    size_t begin = jinja_text_begin(r);
    TRY(jinja_run(r, node->kids[node->count - 1]));
    TRY(jinja_text_end(r, begin, ret));
    r->scope = outer;
    r->calls--;
    return STATUS_OK;
}
