/* scope.c - names and what they stand for.
 *
 * A scope sees those around the place where it was written, not those of its caller. The template's
 * own names have a place each in r->globals. */
#include "template/render.h"

#include <string.h>

enum status jinja_scope_begin(struct render *r, struct scope **ret)
{
    struct scope *scope;
    TRY(jinja_take(r, sizeof(*scope), &scope));
    scope->parent = r->scope;
    r->scope = scope;
    *ret = scope;
    return STATUS_OK;
}

void jinja_scope_end(struct render *r)
{
    r->scope = r->scope->parent;
}

enum status jinja_name_get(struct render *r, uint32_t name, struct value *ret)
{
    for (const struct scope *scope = r->scope; scope; scope = scope->parent) {
        TRY(jinja_spend(r, scope->count / 8));
        for (uint32_t i = 0; i < scope->count; i++)
            if (scope->entries[i].name == name) {
                *ret = scope->entries[i].value;
                return STATUS_OK;
            }
    }
    *ret = r->globals[name];
    if (ret->kind == VALUE_ABSENT)
        *ret = value_undefined(UNDEFINED_NAME, r->template->names[name]);
    return STATUS_OK;
}

enum status jinja_name_set(struct render *r, uint32_t name, struct value value)
{
    struct scope *scope = r->scope;
    if (!scope) {
        r->globals[name] = value;
        return STATUS_OK;
    }
    TRY(jinja_spend(r, scope->count / 8));
    for (uint32_t i = 0; i < scope->count; i++)
        if (scope->entries[i].name == name) {
            scope->entries[i].value = value;
            return STATUS_OK;
        }
    if (scope->count == scope->capacity) {
        uint32_t capacity = scope->capacity ? scope->capacity * 2 : 4;
        struct scope_entry *entries;
        TRY(jinja_take(r, capacity * sizeof(*entries), &entries));
        if (scope->count)
            memcpy(entries, scope->entries, scope->count * sizeof(*entries));
        scope->entries = entries;
        scope->capacity = capacity;
    }
    scope->entries[scope->count++] = (struct scope_entry){ name, value };
    return STATUS_OK;
}

static enum status assign_namespace(struct render *r, const struct node *target, struct value value)
{
    struct value owner;
    TRY(jinja_name_get(r, target->name, &owner));
    if (!value_is(owner, VALUE_NAMESPACE))
        return fail(r, RUNTIME, "cannot assign attribute on non-namespace object");
    return jinja_dict_set(r, owner.dict, target->value, value);
}

static enum status unpack(struct render *r, const struct node *target, struct value value)
{
    struct list *list;
    if (!jinja_can_walk(value))
        return fail(r, TYPE, "cannot unpack non-iterable %s object", jinja_kind_name(value));
    TRY(jinja_walk(r, value, &list));
    if (list->count > target->count)
        return fail(r, VALUE, "too many values to unpack (expected %u)", target->count);
    if (list->count < target->count)
        return fail(r, VALUE, "not enough values to unpack (expected %u, got %u)", target->count,
                    list->count);
    for (uint32_t i = 0; i < target->count; i++)
        TRY(jinja_assign(r, target->kids[i], list->items[i]));
    return STATUS_OK;
}

enum status jinja_assign(struct render *r, const struct node *target, struct value value)
{
    switch (target->kind) {
    case NODE_NAME:
        return jinja_name_set(r, target->name, value);
    case NODE_NAMESPACE:
        return assign_namespace(r, target, value);
    default:
        return unpack(r, target, value);
    }
}
