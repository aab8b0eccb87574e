/* filters_list.c - filters on what has items: their number, order, groups. */
#include "template/builtin.h"

#include <string.h>

static const struct value absent = { .kind = VALUE_ABSENT };

static enum status filter_length(struct render *r, const struct call *call, struct value *ret)
{
    int64_t length;
    TRY(jinja_length(r, call->subject, &length));
    *ret = value_int(length);
    return STATUS_OK;
}

static enum status filter_list(struct render *r, const struct call *call, struct value *ret)
{
    struct list *list;
    TRY(jinja_walk_copy(r, call->subject, &list));
    *ret = value_list(VALUE_LIST, list);
    return STATUS_OK;
}

static enum status filter_first(struct render *r, const struct call *call, struct value *ret)
{
    static const struct string none = { "No first item, sequence was empty.", 34, 34, false, NULL };
    struct value subject = call->subject;
    *ret = value_undefined(UNDEFINED_EMPTY, &none);
    if (value_is(subject, VALUE_GENERATOR)) {
        if (subject.list->walked < subject.list->count)
            *ret = subject.list->items[subject.list->walked++];
        return STATUS_OK;
    }
    struct list *list;
    TRY(jinja_walk(r, subject, &list));
    if (list->count)
        *ret = list->items[0];
    return STATUS_OK;
}

static enum status filter_last(struct render *r, const struct call *call, struct value *ret)
{
    static const struct string none = { "No last item, sequence was empty.", 33, 33, false, NULL };
    struct list *list;
    if (value_is(call->subject, VALUE_GENERATOR))
        return fail(r, TYPE, "'generator' object is not reversible");
    TRY(jinja_walk(r, call->subject, &list));
    *ret = list->count ? list->items[list->count - 1] : value_undefined(UNDEFINED_EMPTY, &none);
    return STATUS_OK;
}

static enum status filter_reverse(struct render *r, const struct call *call, struct value *ret)
{
    struct list *list, *reversed;
    if (value_is(call->subject, VALUE_STRING))
        return jinja_slice(r, call->subject, absent, absent, value_int(-1), ret);
    TRY(jinja_walk(r, call->subject, &list));
    TRY(jinja_list_create(r, list->count, &reversed));
    for (uint32_t i = list->count; i > 0; i--)
        reversed->items[reversed->count++] = list->items[i - 1];
    *ret = value_list(VALUE_GENERATOR, reversed);
    return STATUS_OK;
}

static enum status filter_items(struct render *r, const struct call *call, struct value *ret)
{
    struct list *list;
    uint32_t count = 0;
    if (value_is(call->subject, VALUE_DICT))
        count = call->subject.dict->count;
    else if (!value_is(call->subject, VALUE_UNDEFINED))
        return fail(r, TYPE, "Can only get item pairs from a mapping.");
    TRY(jinja_list_create(r, count, &list));
    for (uint32_t i = 0; i < count; i++) {
        const struct dict_entry *entry = &call->subject.dict->entries[i];
        TRY(jinja_pair(r, entry->key, entry->value, &list->items[i]));
        list->count++;
    }
    *ret = value_list(VALUE_GENERATOR, list);
    return STATUS_OK;
}

/* ---- Order ----------------------------------------------------------------------------------- */

struct sorted {
    struct value key, item;
};

/* A stable merge sort of items[begin, end), with room of the same size. */
static enum status merge_sort(struct render *r, struct sorted *items, struct sorted *room,
                              uint32_t count, bool reverse)
{
    if (count < 2)
        return STATUS_OK;
    uint32_t half = count / 2, left = 0, right = half;
    TRY(merge_sort(r, items, room, half, reverse));
    TRY(merge_sort(r, items + half, room, count - half, reverse));
    for (uint32_t i = 0; i < count; i++) {
        bool take_right = left == half;
        if (left < half && right < count)
            TRY(reverse ? jinja_less(r, items[left].key, items[right].key, &take_right)
                        : jinja_less(r, items[right].key, items[left].key, &take_right));
        room[i] = take_right ? items[right++] : items[left++];
    }
    memcpy(items, room, count * sizeof(*items));
    return STATUS_OK;
}

/* Keys by several paths ("a,b") are a list. */
static enum status sort_key(struct render *r, struct value item, struct value path, bool sensitive,
                            struct value *ret)
{
    if (!value_is(path, VALUE_STRING) || !memchr(path.string->bytes, ',', path.string->length)) {
        TRY(jinja_path(r, item, path, absent, ret));
        return jinja_fold(r, *ret, sensitive, ret);
    }
    struct list *keys;
    struct text_view rest = value_text(path);
    TRY(jinja_list_create(r, 2, &keys));
    while (rest.bytes) {
        const char *comma = memchr(rest.bytes, ',', rest.length);
        struct text_view part = { rest.bytes, comma ? (size_t)(comma - rest.bytes) : rest.length };
        struct value one, key;
        TRY(jinja_string(r, part, &one));
        TRY(jinja_path(r, item, one, absent, &key));
        TRY(jinja_fold(r, key, sensitive, &key));
        TRY(jinja_list_add(r, keys, key));
        rest.length -= part.length + (comma ? 1 : 0);
        rest.bytes = comma ? comma + 1 : NULL;
    }
    *ret = value_list(VALUE_LIST, keys);
    return STATUS_OK;
}

/* The list in order; path may be absent. */
static enum status sort_list(struct render *r, struct list *list, struct value path, bool sensitive,
                             bool reverse)
{
    struct sorted *items, *room;
    TRY(jinja_take(r, (list->count + 1) * sizeof(*items), &items));
    TRY(jinja_take(r, (list->count + 1) * sizeof(*room), &room));
    for (uint32_t i = 0; i < list->count; i++) {
        items[i].item = list->items[i];
        TRY(sort_key(r, items[i].item, path, sensitive, &items[i].key));
    }
    TRY(merge_sort(r, items, room, list->count, reverse));
    for (uint32_t i = 0; i < list->count; i++)
        list->items[i] = items[i].item;
    return STATUS_OK;
}

static enum status filter_sort(struct render *r, const struct call *call, struct value *ret)
{
    struct list *list;
    TRY(jinja_walk_copy(r, call->subject, &list));
    TRY(sort_list(r, list, call->args[2], jinja_truth(call->args[1]), jinja_truth(call->args[0])));
    *ret = value_list(VALUE_LIST, list);
    return STATUS_OK;
}

static enum status filter_dictsort(struct render *r, const struct call *call, struct value *ret)
{
    struct value pairs, by = value_int(0);
    if (!value_is(call->subject, VALUE_DICT))
        return fail(r, TYPE, "'%s' object has no attribute 'items'",
                    jinja_kind_name(call->subject));
    TRY(filter_items(r, call, &pairs));
    if (is_given(call->args[1])) {
        TRY(jinja_text_argument(r, call->args[1], &by));
        bool by_key = jinja_text_is(by.string, "key");
        if (!by_key && !jinja_text_is(by.string, "value"))
            return fail(r, VALUE, "You can only sort by either \"key\" or \"value\"");
        by = value_int(!by_key);
    }
    TRY(sort_list(r, pairs.list, by, jinja_truth(call->args[0]), jinja_truth(call->args[2])));
    *ret = value_list(VALUE_LIST, pairs.list);
    return STATUS_OK;
}

static enum status extreme(struct render *r, const struct call *call, bool want_max,
                           struct value *ret)
{
    static const struct string none = { "No aggregated item, sequence was empty.", 39, 39, false,
                                        NULL };
    struct list *list;
    struct value best, key;
    bool sensitive = jinja_truth(call->args[0]);
    TRY(jinja_walk(r, call->subject, &list));
    *ret = value_undefined(UNDEFINED_EMPTY, &none);
    for (uint32_t i = 0; i < list->count; i++) {
        bool better = i == 0;
        TRY(jinja_path(r, list->items[i], call->args[1], absent, &key));
        TRY(jinja_fold(r, key, sensitive, &key));
        if (i > 0)
            TRY(want_max ? jinja_less(r, best, key, &better) : jinja_less(r, key, best, &better));
        if (better) {
            best = key;
            *ret = list->items[i];
        }
    }
    return STATUS_OK;
}

static enum status filter_min(struct render *r, const struct call *call, struct value *ret)
{
    return extreme(r, call, false, ret);
}

static enum status filter_max(struct render *r, const struct call *call, struct value *ret)
{
    return extreme(r, call, true, ret);
}

static enum status filter_unique(struct render *r, const struct call *call, struct value *ret)
{
    struct list *list, *kept;
    struct dict *seen;
    TRY(jinja_walk(r, call->subject, &list));
    TRY(jinja_list_create(r, 0, &kept));
    TRY(jinja_dict_create(r, &seen));
    for (uint32_t i = 0; i < list->count; i++) {
        struct value key;
        struct dict_entry *entry;
        TRY(jinja_path(r, list->items[i], call->args[1], absent, &key));
        TRY(jinja_fold(r, key, jinja_truth(call->args[0]), &key));
        TRY(jinja_dict_find(r, seen, key, &entry));
        if (entry)
            continue;
        TRY(jinja_dict_set(r, seen, key, value_none()));
        TRY(jinja_list_add(r, kept, list->items[i]));
    }
    *ret = value_list(VALUE_GENERATOR, kept);
    return STATUS_OK;
}

/* ---- Groups ---------------------------------------------------------------------------------- */

static enum status filter_groupby(struct render *r, const struct call *call, struct value *ret)
{
    struct list *list, *groups, *group = NULL;
    struct value path = call->args[0], last = absent;
    bool sensitive = jinja_truth(call->args[2]);
    TRY(jinja_walk_copy(r, call->subject, &list));
    TRY(sort_list(r, list, path, sensitive, false));
    TRY(jinja_list_create(r, 0, &groups));
    for (uint32_t i = 0; i < list->count; i++) {
        struct value name, key, pair;
        bool same = false;
        TRY(jinja_path(r, list->items[i], path, call->args[1], &name));
        TRY(jinja_fold(r, name, sensitive, &key));
        if (group)
            TRY(jinja_equal(r, key, last, &same));
        if (!same) {
            TRY(jinja_list_create(r, 0, &group));
            TRY(jinja_pair(r, name, value_list(VALUE_LIST, group), &pair));
            TRY(jinja_list_add(r, groups, pair));
            last = key;
        }
        TRY(jinja_list_add(r, group, list->items[i]));
    }
    *ret = value_list(VALUE_LIST, groups);
    return STATUS_OK;
}

static enum status filter_batch(struct render *r, const struct call *call, struct value *ret)
{
    struct list *list, *rows, *row = NULL;
    int64_t width;
    TRY(jinja_walk(r, call->subject, &list));
    TRY(jinja_integer_argument(r, call->args[0], 0, &width));
    TRY(jinja_list_create(r, 0, &rows));
    for (uint32_t i = 0; i < list->count; i++) {
        if (!row || row->count == width) {
            TRY(jinja_list_create(r, 0, &row));
            TRY(jinja_list_add(r, rows, value_list(VALUE_LIST, row)));
        }
        TRY(jinja_list_add(r, row, list->items[i]));
    }
    bool fills = is_given(call->args[1]) && !value_is(call->args[1], VALUE_NONE);
    while (fills && row && row->count < width)
        TRY(jinja_list_add(r, row, call->args[1]));
    *ret = value_list(VALUE_GENERATOR, rows);
    return STATUS_OK;
}

static enum status filter_slice(struct render *r, const struct call *call, struct value *ret)
{
    struct list *list, *columns, *column;
    int64_t count;
    TRY(jinja_walk(r, call->subject, &list));
    TRY(jinja_integer_argument(r, call->args[0], 0, &count));
    if (count == 0)
        return fail(r, ARITHMETIC, "integer division or modulo by zero");
    TRY(jinja_list_create(r, count > 0 ? (uint64_t)count : 0, &columns));
    bool fills = is_given(call->args[1]) && !value_is(call->args[1], VALUE_NONE);
    int64_t each = list->count / count, longer = list->count % count, at = 0;
    for (int64_t i = 0; i < count; i++) {
        TRY(jinja_list_create(r, 0, &column));
        for (int64_t k = 0; k < each + (i < longer); k++)
            TRY(jinja_list_add(r, column, list->items[at++]));
        if (fills && i >= longer)
            TRY(jinja_list_add(r, column, call->args[1]));
        TRY(jinja_list_add(r, columns, value_list(VALUE_LIST, column)));
    }
    *ret = value_list(VALUE_GENERATOR, columns);
    return STATUS_OK;
}

static const struct builtin rows[] = {
    { "length", "", filter_length },
    { "count", "", filter_length },
    { "list", "", filter_list },
    { "first", "", filter_first },
    { "last", "", filter_last },
    { "reverse", "", filter_reverse },
    { "items", "", filter_items },
    { "sort", "reverse=,case_sensitive=,attribute=", filter_sort },
    { "dictsort", "case_sensitive=,by=,reverse=", filter_dictsort },
    { "min", "case_sensitive=,attribute=", filter_min },
    { "max", "case_sensitive=,attribute=", filter_max },
    { "unique", "case_sensitive=,attribute=", filter_unique },
    { "groupby", "attribute,default=,case_sensitive=", filter_groupby },
    { "batch", "linecount,fill_with=", filter_batch },
    { "slice", "slices,fill_with=", filter_slice },
};
const struct builtin_table jinja_list_filters = { rows, COUNT_OF(rows) };
