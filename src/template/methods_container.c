/* methods_container.c - methods of dictionaries and lists. */
#include "template/builtin.h"

#include <string.h>

/* ---- Dictionaries ---------------------------------------------------------------------------- */

static enum status view(struct render *r, const struct call *call, enum view_kind kind,
                        struct value *ret)
{
    const struct dict *dict = call->subject.dict;
    struct list *list;
    TRY(jinja_list_create(r, dict->count, &list));
    for (uint32_t i = 0; i < dict->count; i++) {
        const struct dict_entry *entry = &dict->entries[i];
        if (kind == VIEW_ITEMS)
            TRY(jinja_pair(r, entry->key, entry->value, &list->items[i]));
        else
            list->items[i] = kind == VIEW_KEYS ? entry->key : entry->value;
        list->count++;
    }
    *ret = value_list(VALUE_VIEW, list);
    ret->view = (uint8_t)kind;
    return STATUS_OK;
}

static enum status dict_items(struct render *r, const struct call *call, struct value *ret)
{
    return view(r, call, VIEW_ITEMS, ret);
}

static enum status dict_keys(struct render *r, const struct call *call, struct value *ret)
{
    return view(r, call, VIEW_KEYS, ret);
}

static enum status dict_values(struct render *r, const struct call *call, struct value *ret)
{
    return view(r, call, VIEW_VALUES, ret);
}

static enum status dict_get(struct render *r, const struct call *call, struct value *ret)
{
    struct dict_entry *entry;
    TRY(jinja_dict_find(r, call->subject.dict, call->args[0], &entry));
    *ret = entry ? entry->value : is_given(call->args[1]) ? call->args[1] : value_none();
    return STATUS_OK;
}

static enum status dict_copy(struct render *r, const struct call *call, struct value *ret)
{
    struct dict *copy;
    TRY(jinja_dict_create(r, &copy));
    TRY(jinja_dict_copy(r, copy, call->subject.dict));
    *ret = (struct value){ .kind = VALUE_DICT, .dict = copy };
    return STATUS_OK;
}

static enum status dict_pop(struct render *r, const struct call *call, struct value *ret)
{
    struct dict_entry *entry;
    TRY(jinja_dict_find(r, call->subject.dict, call->args[0], &entry));
    if (!entry && !is_given(call->args[1]))
        return fail(r, VALUE, "the key to pop is not there");
    *ret = entry ? entry->value : call->args[1];
    return entry ? jinja_dict_remove(r, call->subject.dict, entry) : STATUS_OK;
}

static enum status dict_setdefault(struct render *r, const struct call *call, struct value *ret)
{
    struct dict_entry *entry;
    TRY(jinja_dict_find(r, call->subject.dict, call->args[0], &entry));
    *ret = entry ? entry->value : is_given(call->args[1]) ? call->args[1] : value_none();
    return entry ? STATUS_OK : jinja_dict_set(r, call->subject.dict, call->args[0], *ret);
}

static enum status dict_update(struct render *r, const struct call *call, struct value *ret)
{
    static const struct string name = { "dict", 4, 4, false, NULL };
    struct call make = *call;
    struct value more;
    TRY(jinja_function_find(&name)->run(r, &make, &more));
    TRY(jinja_dict_copy(r, call->subject.dict, more.dict));
    *ret = value_none();
    return STATUS_OK;
}

static enum status dict_clear(struct render *r, const struct call *call, struct value *ret)
{
    (void)r;
    *call->subject.dict = (struct dict){ 0 };
    *ret = value_none();
    return STATUS_OK;
}

static const struct builtin dict_rows[] = {
    { "items", "", dict_items },
    { "keys", "", dict_keys },
    { "values", "", dict_values },
    { "get", "key,default=", dict_get },
    { "copy", "", dict_copy },
    { "pop", "key,default=", dict_pop },
    { "setdefault", "key,default=", dict_setdefault },
    { "update", NULL, dict_update },
    { "clear", "", dict_clear },
};
const struct builtin_table jinja_dict_methods = { dict_rows, COUNT_OF(dict_rows) };

/* ---- Lists ----------------------------------------------------------------------------------- */

static enum status list_append(struct render *r, const struct call *call, struct value *ret)
{
    *ret = value_none();
    return jinja_list_add(r, call->subject.list, call->args[0]);
}

static enum status list_extend(struct render *r, const struct call *call, struct value *ret)
{
    struct list *more;
    TRY(jinja_walk_copy(r, call->args[0], &more));
    for (uint32_t i = 0; i < more->count; i++)
        TRY(jinja_list_add(r, call->subject.list, more->items[i]));
    *ret = value_none();
    return STATUS_OK;
}

/* Where an item goes or is, from an index that may be negative. */
static enum status place(struct render *r, const struct list *list, struct value index,
                         int64_t fallback, int64_t *ret)
{
    TRY(jinja_integer_argument(r, index, fallback, ret));
    if (*ret < 0)
        *ret += list->count;
    return jinja_spend(r, list->count / 8);
}

static enum status list_insert(struct render *r, const struct call *call, struct value *ret)
{
    struct list *list = call->subject.list;
    int64_t at;
    TRY(place(r, list, call->args[0], 0, &at));
    at = at < 0 ? 0 : at > list->count ? list->count : at;
    TRY(jinja_list_add(r, list, call->args[1]));
    memmove(list->items + at + 1, list->items + at,
            (size_t)(list->count - 1 - at) * sizeof(*list->items));
    list->items[at] = call->args[1];
    *ret = value_none();
    return STATUS_OK;
}

static void remove_at(struct list *list, int64_t at)
{
    memmove(list->items + at, list->items + at + 1,
            (size_t)(list->count - 1 - at) * sizeof(*list->items));
    list->count--;
}

static enum status list_pop(struct render *r, const struct call *call, struct value *ret)
{
    struct list *list = call->subject.list;
    int64_t at;
    TRY(place(r, list, call->args[0], -1, &at));
    if (at < 0 || at >= list->count)
        return fail(r, VALUE, list->count ? "pop index out of range" : "pop from empty list");
    *ret = list->items[at];
    remove_at(list, at);
    return STATUS_OK;
}

/* The first item that equals the argument. */
static enum status find_item(struct render *r, const struct call *call, uint32_t *ret)
{
    const struct list *list = call->subject.list;
    for (uint32_t i = 0; i < list->count; i++) {
        bool equal;
        TRY(jinja_equal(r, list->items[i], call->args[0], &equal));
        if (equal) {
            *ret = i;
            return STATUS_OK;
        }
    }
    return fail(r, VALUE, "the item is not in the list");
}

static enum status list_remove(struct render *r, const struct call *call, struct value *ret)
{
    uint32_t at;
    TRY(find_item(r, call, &at));
    remove_at(call->subject.list, at);
    *ret = value_none();
    return STATUS_OK;
}

static enum status list_reverse(struct render *r, const struct call *call, struct value *ret)
{
    struct list *list = call->subject.list;
    TRY(jinja_spend(r, list->count / 4));
    for (uint32_t i = 0; i < list->count / 2; i++) {
        struct value kept = list->items[i];
        list->items[i] = list->items[list->count - 1 - i];
        list->items[list->count - 1 - i] = kept;
    }
    *ret = value_none();
    return STATUS_OK;
}

static enum status list_copy(struct render *r, const struct call *call, struct value *ret)
{
    struct list *copy;
    TRY(jinja_walk_copy(r, call->subject, &copy));
    *ret = value_list(VALUE_LIST, copy);
    return STATUS_OK;
}

static enum status list_clear(struct render *r, const struct call *call, struct value *ret)
{
    (void)r;
    *call->subject.list = (struct list){ 0 };
    *ret = value_none();
    return STATUS_OK;
}

static enum status tuple_index(struct render *r, const struct call *call, struct value *ret)
{
    uint32_t at;
    TRY(find_item(r, call, &at));
    *ret = value_int(at);
    return STATUS_OK;
}

static enum status tuple_count(struct render *r, const struct call *call, struct value *ret)
{
    int64_t count = 0;
    for (uint32_t i = 0; i < call->subject.list->count; i++) {
        bool equal;
        TRY(jinja_equal(r, call->subject.list->items[i], call->args[0], &equal));
        count += equal;
    }
    *ret = value_int(count);
    return STATUS_OK;
}

static const struct builtin list_rows[] = {
    { "append", "object", list_append },
    { "extend", "iterable", list_extend },
    { "insert", "index,object", list_insert },
    { "pop", "index=", list_pop },
    { "remove", "value", list_remove },
    { "reverse", "", list_reverse },
    { "copy", "", list_copy },
    { "clear", "", list_clear },
};
const struct builtin_table jinja_list_methods = { list_rows, COUNT_OF(list_rows) };

static const struct builtin tuple_rows[] = {
    { "index", "value", tuple_index },
    { "count", "value", tuple_count },
};
const struct builtin_table jinja_tuple_methods = { tuple_rows, COUNT_OF(tuple_rows) };
