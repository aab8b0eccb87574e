/* containers.c - lists, dictionaries, and walking over whatever has items. */
#include "template/render.h"

#include <string.h>

#define FEW_ENTRIES 8u /* up to here a dictionary is searched from its beginning */

enum status jinja_list_create(struct render *r, uint64_t capacity, struct list **ret)
{
    if (capacity > ITEM_LIMIT)
        return fail(r, LIMIT, "a list of more than %u items", ITEM_LIMIT);
    TRY(jinja_spend(r, capacity / 8));
    struct list *list;
    TRY(jinja_take(r, sizeof(*list), &list));
    if (capacity)
        TRY(jinja_take(r, capacity * sizeof(*list->items), &list->items));
    list->capacity = (uint32_t)capacity;
    *ret = list;
    return STATUS_OK;
}

enum status jinja_list_add(struct render *r, struct list *list, struct value value)
{
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity ? list->capacity * 2 : 4;
        struct value *items;
        if (list->count >= ITEM_LIMIT)
            return fail(r, LIMIT, "a list of more than %u items", ITEM_LIMIT);
        TRY(jinja_take(r, (uint64_t)capacity * sizeof(*items), &items));
        if (list->count)
            memcpy(items, list->items, list->count * sizeof(*items));
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = value;
    return STATUS_OK;
}

enum status jinja_pair(struct render *r, struct value a, struct value b, struct value *ret)
{
    struct list *pair;
    TRY(jinja_list_create(r, 2, &pair));
    pair->items[0] = a;
    pair->items[1] = b;
    pair->count = 2;
    *ret = value_list(VALUE_TUPLE, pair);
    return STATUS_OK;
}

/* ---- Dictionaries ---------------------------------------------------------------------------- */

enum status jinja_dict_create(struct render *r, struct dict **ret)
{
    return jinja_take(r, sizeof(**ret), ret);
}

/* Puts the entry's index into a free slot. */
static enum status fill_slot(struct render *r, struct dict *dict, uint32_t index)
{
    uint32_t mask = dict->slot_count - 1;
    uint32_t at = (uint32_t)dict->entries[index].hash & mask;
    while (dict->slots[at]) {
        TRY(jinja_spend(r, 1));
        at = (at + 1) & mask;
    }
    dict->slots[at] = index + 1;
    return STATUS_OK;
}

static enum status fill_slots(struct render *r, struct dict *dict)
{
    TRY(jinja_spend(r, dict->count));
    memset(dict->slots, 0, dict->slot_count * sizeof(*dict->slots));
    for (uint32_t i = 0; i < dict->count; i++)
        TRY(fill_slot(r, dict, i));
    return STATUS_OK;
}

static enum status grow_dict(struct render *r, struct dict *dict)
{
    uint32_t capacity = dict->capacity ? dict->capacity * 2 : FEW_ENTRIES;
    struct dict_entry *entries;
    if (dict->count >= ITEM_LIMIT)
        return fail(r, LIMIT, "a dictionary of more than %u entries", ITEM_LIMIT);
    TRY(jinja_take(r, (uint64_t)capacity * sizeof(*entries), &entries));
    if (dict->count)
        memcpy(entries, dict->entries, dict->count * sizeof(*entries));
    dict->entries = entries;
    dict->capacity = capacity;
    if (capacity <= FEW_ENTRIES)
        return STATUS_OK;
    dict->slot_count = capacity * 2;
    TRY(jinja_take(r, (uint64_t)dict->slot_count * sizeof(*dict->slots), &dict->slots));
    return fill_slots(r, dict);
}

static enum status find_hashed(struct render *r, const struct dict *dict, struct value key,
                               uint64_t hash, struct dict_entry **ret)
{
    uint32_t at = dict->slots ? (uint32_t)hash & (dict->slot_count - 1) : 0;
    uint32_t probes = dict->slots ? dict->slot_count : dict->count;
    *ret = NULL;
    for (uint32_t i = 0; i < probes; i++) {
        uint32_t index = i;
        if (dict->slots) {
            if (!dict->slots[at])
                return STATUS_OK;
            index = dict->slots[at] - 1;
            at = (at + 1) & (dict->slot_count - 1);
        }
        struct dict_entry *entry = &dict->entries[index];
        bool equal = false;
        if (i > 1)
            TRY(jinja_spend(r, 1));
        if (entry->hash == hash)
            TRY(jinja_equal(r, entry->key, key, &equal));
        if (equal) {
            *ret = entry;
            return STATUS_OK;
        }
    }
    return STATUS_OK;
}

enum status jinja_dict_find(struct render *r, const struct dict *dict, struct value key,
                            struct dict_entry **ret)
{
    uint64_t hash;
    TRY(jinja_hash(r, key, &hash));
    return find_hashed(r, dict, key, hash, ret);
}

struct dict_entry *jinja_dict_text(struct render *r, const struct dict *dict,
                                   const struct string *key)
{
    struct dict_entry *entry;
    return jinja_dict_find(r, dict, value_string(key), &entry) ? NULL : entry;
}

enum status jinja_dict_set(struct render *r, struct dict *dict, struct value key,
                           struct value value)
{
    uint64_t hash;
    struct dict_entry *entry;
    TRY(jinja_hash(r, key, &hash));
    TRY(find_hashed(r, dict, key, hash, &entry));
    if (entry) {
        entry->value = value;
        return STATUS_OK;
    }
    if (dict->count == dict->capacity)
        TRY(grow_dict(r, dict));
    dict->entries[dict->count++] = (struct dict_entry){ key, value, hash };
    return dict->slots ? fill_slot(r, dict, dict->count - 1) : STATUS_OK;
}

enum status jinja_dict_remove(struct render *r, struct dict *dict, struct dict_entry *entry)
{
    size_t index = (size_t)(entry - dict->entries);
    TRY(jinja_spend(r, dict->count / 8));
    memmove(entry, entry + 1, (dict->count - index - 1) * sizeof(*entry));
    dict->count--;
    return dict->slots ? fill_slots(r, dict) : STATUS_OK;
}

enum status jinja_dict_copy(struct render *r, struct dict *into, const struct dict *from)
{
    uint32_t count = from->count; /* the two may be the same */
    for (uint32_t i = 0; i < count; i++) {
        TRY(jinja_spend(r, 1));
        TRY(jinja_dict_set(r, into, from->entries[i].key, from->entries[i].value));
    }
    return STATUS_OK;
}

/* ---- Walking --------------------------------------------------------------------------------- */

static enum status walk_string(struct render *r, const struct string *string, struct list **ret)
{
    TRY(jinja_list_create(r, string->characters, ret));
    struct string *characters;
    TRY(jinja_take(r, (uint64_t)string->characters * sizeof(*characters) + 1, &characters));
    TRY(jinja_spend(r, string->characters));
    uint32_t code, at = 0;
    for (uint32_t i = 0; i < string->characters; i++) {
        uint32_t step = jinja_decode(string->bytes + at, string->length - at, &code);
        /* As in Python, the characters of a safe text are plain. */
        characters[i] =
            (struct string){ .bytes = string->bytes + at, .length = step, .characters = 1 };
        (*ret)->items[(*ret)->count++] = value_string(&characters[i]);
        at += step;
    }
    return STATUS_OK;
}

static enum status walk_dict(struct render *r, const struct dict *dict, struct list **ret)
{
    TRY(jinja_list_create(r, dict->count, ret));
    for (uint32_t i = 0; i < dict->count; i++)
        (*ret)->items[(*ret)->count++] = dict->entries[i].key;
    return STATUS_OK;
}

static enum status walk_range(struct render *r, const struct range *range, struct list **ret)
{
    TRY(jinja_list_create(r, (uint64_t)range->count, ret));
    for (int64_t i = 0; i < range->count; i++)
        (*ret)->items[(*ret)->count++] = value_int(range->start + i * range->step);
    return STATUS_OK;
}

/* What a generator still has. */
static enum status walk_generator(struct render *r, struct list *generator, struct list **ret)
{
    struct list *rest;
    TRY(jinja_take(r, sizeof(*rest), &rest));
    rest->count = generator->count - generator->walked;
    if (rest->count)
        rest->items = generator->items + generator->walked;
    rest->capacity = rest->count;
    generator->walked = generator->count;
    *ret = rest;
    return STATUS_OK;
}

bool jinja_can_walk(struct value value)
{
    switch (value.kind) {
    case VALUE_UNDEFINED:
    case VALUE_STRING:
    case VALUE_LIST:
    case VALUE_TUPLE:
    case VALUE_DICT:
    case VALUE_RANGE:
    case VALUE_GENERATOR:
    case VALUE_VIEW:
        return true;
    default:
        return false;
    }
}

enum status jinja_walk(struct render *r, struct value value, struct list **ret)
{
    switch (value.kind) {
    case VALUE_LIST:
    case VALUE_TUPLE:
    case VALUE_VIEW:
        *ret = value.list;
        return STATUS_OK;
    case VALUE_STRING:
        return walk_string(r, value.string, ret);
    case VALUE_DICT:
        return walk_dict(r, value.dict, ret);
    case VALUE_RANGE:
        return walk_range(r, value.range, ret);
    case VALUE_GENERATOR:
        return walk_generator(r, value.list, ret);
    case VALUE_UNDEFINED:
        if (value.reason == UNDEFINED_UNSAFE)
            return jinja_fail_undefined(r, value);
        return jinja_list_create(r, 0, ret);
    default:
        return fail(r, TYPE, "'%s' object is not iterable", jinja_kind_name(value));
    }
}

enum status jinja_walk_copy(struct render *r, struct value value, struct list **ret)
{
    struct list *from, *copy;
    TRY(jinja_walk(r, value, &from));
    TRY(jinja_list_create(r, from->count, &copy));
    if (from->count)
        memcpy(copy->items, from->items, from->count * sizeof(*copy->items));
    copy->count = from->count;
    *ret = copy;
    return STATUS_OK;
}

enum status jinja_length(struct render *r, struct value value, int64_t *ret)
{
    switch (value.kind) {
    case VALUE_STRING:
        *ret = value.string->characters;
        return STATUS_OK;
    case VALUE_LIST:
    case VALUE_TUPLE:
    case VALUE_VIEW:
        *ret = value.list->count;
        return STATUS_OK;
    case VALUE_DICT:
        *ret = value.dict->count;
        return STATUS_OK;
    case VALUE_RANGE:
        *ret = value.range->count;
        return STATUS_OK;
    case VALUE_UNDEFINED:
        *ret = 0;
        return STATUS_OK;
    default:
        return fail(r, TYPE, "object of type '%s' has no len()", jinja_kind_name(value));
    }
}
