/* access.c - attributes, items and slices.
 *
 * x.k looks for an attribute first and for an item then; x['k'] the other way round. The attributes
 * of a value are its methods: for a dictionary, x.items is the method even if there is such a key.
 */
#include "template/render.h"

#include <string.h>

static struct value missing(enum undefined_reason reason, struct value object,
                            const struct string *name)
{
    struct value value = value_undefined(reason, name);
    value.owner = object.kind;
    return value;
}

static bool is_private(const struct string *name)
{
    return name->length >= 2 && name->bytes[0] == '_' && name->bytes[1] == '_';
}

/* The attribute proper; VALUE_ABSENT if there is none. */
static enum status find_attribute(struct render *r, struct value object, const struct string *name,
                                  struct value *ret)
{
    *ret = (struct value){ .kind = VALUE_ABSENT };
    if (value_is(object, VALUE_LOOP))
        return jinja_loop_attribute(r, object.loop, name, ret);
    if (value_is(object, VALUE_MACRO))
        return jinja_macro_attribute(r, object.macro, name, ret);
    if (value_is(object, VALUE_NAMESPACE)) {
        struct dict_entry *entry = jinja_dict_text(r, object.dict, name);
        if (entry)
            *ret = entry->value;
        return STATUS_OK;
    }
    const struct builtin *row = jinja_method_find(object.kind, name);
    if (!row)
        return STATUS_OK;
    struct bound *bound;
    TRY(jinja_take(r, sizeof(*bound), &bound));
    *bound = (struct bound){ row, object };
    *ret = (struct value){ .kind = VALUE_BUILTIN, .bound = bound };
    return STATUS_OK;
}

enum status jinja_attribute(struct render *r, struct value object, const struct string *name,
                            struct value *ret)
{
    if (value_is(object, VALUE_UNDEFINED))
        return jinja_fail_undefined(r, object);
    TRY(find_attribute(r, object, name, ret));
    if (ret->kind != VALUE_ABSENT)
        return STATUS_OK;
    if (value_is(object, VALUE_DICT)) {
        struct dict_entry *entry = jinja_dict_text(r, object.dict, name);
        if (entry) {
            *ret = entry->value;
            return STATUS_OK;
        }
    }
    *ret = missing(is_private(name) ? UNDEFINED_UNSAFE : UNDEFINED_ATTRIBUTE, object, name);
    return STATUS_OK;
}

/* ---- Items ----------------------------------------------------------------------------------- */

static enum status character_at(struct render *r, const struct string *string, int64_t index,
                                struct value *ret)
{
    uint32_t begin = jinja_offset_of(string, (uint32_t)index), code;
    uint32_t step = jinja_decode(string->bytes + begin, string->length - begin, &code);
    struct string *character;
    if (string->characters != string->length)
        TRY(jinja_spend(r, begin / 32));
    TRY(jinja_take(r, sizeof(*character), &character));
    *character = (struct string){
        .bytes = string->bytes + begin, .length = step, .characters = 1, .safe = string->safe
    };
    *ret = value_string(character);
    return STATUS_OK;
}

static bool is_sequence(struct value value)
{
    return value_is(value, VALUE_LIST) || value_is(value, VALUE_TUPLE) ||
           value_is(value, VALUE_STRING) || value_is(value, VALUE_RANGE);
}

static enum status item_by_index(struct render *r, struct value object, int64_t index,
                                 struct value *ret)
{
    int64_t length;
    TRY(jinja_length(r, object, &length));
    int64_t at = index < 0 ? index + length : index;
    if (at < 0 || at >= length) {
        *ret = (struct value){ .kind = VALUE_UNDEFINED,
                               .reason = UNDEFINED_ELEMENT,
                               .owner = object.kind,
                               .integer = index };
        return STATUS_OK;
    }
    if (value_is(object, VALUE_STRING))
        return character_at(r, object.string, at, ret);
    if (value_is(object, VALUE_RANGE))
        *ret = value_int(object.range->start + at * object.range->step);
    else
        *ret = object.list->items[at];
    return STATUS_OK;
}

enum status jinja_item(struct render *r, struct value object, struct value index, struct value *ret)
{
    if (value_is(object, VALUE_UNDEFINED))
        return jinja_fail_undefined(r, object);
    if (is_sequence(object) && value_is_integer(index))
        return item_by_index(r, object, value_integer(index), ret);
    if (value_is(object, VALUE_DICT)) {
        struct dict_entry *entry = NULL;
        if (!value_is(index, VALUE_LIST) && !value_is(index, VALUE_DICT))
            TRY(jinja_dict_find(r, object.dict, index, &entry));
        if (entry) {
            *ret = entry->value;
            return STATUS_OK;
        }
    }
    if (value_is(index, VALUE_STRING)) {
        TRY(find_attribute(r, object, index.string, ret));
        if (ret->kind == VALUE_ABSENT)
            *ret = missing(UNDEFINED_ATTRIBUTE, object, index.string);
        return STATUS_OK;
    }
    *ret = (struct value){ .kind = VALUE_UNDEFINED,
                           .reason = UNDEFINED_ELEMENT,
                           .owner = object.kind,
                           .integer = value_is_integer(index) ? value_integer(index) : 0 };
    return STATUS_OK;
}

/* ---- Slices ---------------------------------------------------------------------------------- */

/* From `first`, `count` times, `step` apart. */
struct cut {
    int64_t first, step, count;
};

static enum status slice_part(struct render *r, struct value part, int64_t fallback, int64_t *ret)
{
    *ret = fallback;
    if (value_is(part, VALUE_NONE) || value_is(part, VALUE_ABSENT))
        return STATUS_OK;
    if (!value_is_integer(part))
        return fail(r, TYPE, "slice indices must be integers or None or have an __index__ method");
    *ret = value_integer(part);
    return STATUS_OK;
}

static int64_t clamp(int64_t at, int64_t length, int64_t least, int64_t most)
{
    if (at < 0)
        at += length;
    return at < least ? least : at > most ? most : at;
}

static enum status slice_cut(struct render *r, int64_t length, struct value start,
                             struct value stop, struct value step, struct cut *ret)
{
    int64_t by, from, to;
    TRY(slice_part(r, step, 1, &by));
    if (by == 0)
        return fail(r, VALUE, "slice step cannot be zero");
    bool forward = by > 0;
    TRY(slice_part(r, start, forward ? 0 : length - 1, &from));
    TRY(slice_part(r, stop, forward ? length : -length - 1, &to));
    from = clamp(from, length, forward ? 0 : -1, forward ? length : length - 1);
    to = clamp(to, length, forward ? 0 : -1, forward ? length : length - 1);
    *ret = (struct cut){ from, by, 0 };
    int64_t distance = forward ? to - from : from - to;
    /* The size of the step: the most negative integer has no positive one. */
    uint64_t size = forward ? (uint64_t)by : 0 - (uint64_t)by;
    if (distance > 0)
        ret->count = 1 + (int64_t)((uint64_t)(distance - 1) / size);
    return STATUS_OK;
}

static enum status slice_string(struct render *r, const struct string *string,
                                const struct cut *cut, struct value *ret)
{
    if (cut->step == 1 || cut->count == 0) {
        uint32_t first = cut->count ? jinja_offset_of(string, (uint32_t)cut->first) : 0;
        uint32_t last = cut->count ? jinja_offset_of(string, (uint32_t)(cut->first + cut->count))
                                   : 0;
        TRY(jinja_spend(r, string->length / 64));
        TRY(jinja_string(r, (struct text_view){ string->bytes + first, last - first }, ret));
        return jinja_mark_safe(r, *ret, string->safe, ret);
    }
    struct list *characters;
    size_t begin = jinja_text_begin(r);
    TRY(jinja_walk(r, value_string(string), &characters));
    for (int64_t i = 0; i < cut->count; i++)
        TRY(jinja_print(r, characters->items[cut->first + i * cut->step]));
    TRY(jinja_text_end(r, begin, ret));
    return jinja_mark_safe(r, *ret, string->safe, ret);
}

enum status jinja_slice(struct render *r, struct value object, struct value start,
                        struct value stop, struct value step, struct value *ret)
{
    struct cut cut;
    int64_t length;
    struct list *source, *part;
    if (value_is(object, VALUE_UNDEFINED))
        return jinja_fail_undefined(r, object);
    if (!is_sequence(object))
        return fail(r, TYPE, "'%s' object is not subscriptable", jinja_kind_name(object));
    TRY(jinja_length(r, object, &length));
    TRY(slice_cut(r, length, start, stop, step, &cut));
    if (value_is(object, VALUE_STRING))
        return slice_string(r, object.string, &cut, ret);
    TRY(jinja_walk(r, object, &source));
    TRY(jinja_list_create(r, (uint64_t)cut.count, &part));
    for (int64_t i = 0; i < cut.count; i++)
        part->items[part->count++] = source->items[cut.first + i * cut.step];
    *ret = value_list(value_is(object, VALUE_TUPLE) ? VALUE_TUPLE : VALUE_LIST, part);
    return STATUS_OK;
}

/* ---- Paths ----------------------------------------------------------------------------------- */

/* True for digits only; their number. */
static bool is_index(struct text_view text, int64_t *ret)
{
    int64_t index = 0;
    for (size_t i = 0; i < text.length; i++) {
        if (text.bytes[i] < '0' || text.bytes[i] > '9' || i == 18)
            return false;
        index = index * 10 + (text.bytes[i] - '0');
    }
    *ret = index;
    return text.length > 0;
}

enum status jinja_path(struct render *r, struct value object, struct value path,
                       struct value default_value, struct value *ret)
{
    *ret = object;
    if (value_is(path, VALUE_NONE) || value_is(path, VALUE_ABSENT))
        return STATUS_OK;
    bool has_default = !value_is(default_value, VALUE_ABSENT) &&
                       !value_is(default_value, VALUE_NONE);
    struct text_view rest = { "", 0 };
    if (value_is(path, VALUE_STRING))
        rest = value_text(path);
    do {
        struct value key = path;
        if (value_is(path, VALUE_STRING)) {
            const char *dot = memchr(rest.bytes, '.', rest.length);
            size_t length = dot ? (size_t)(dot - rest.bytes) : rest.length;
            struct text_view part = { rest.bytes, length };
            TRY(jinja_string(r, part, &key));
            int64_t index;
            if (is_index(part, &index))
                key = value_int(index);
            rest.bytes += length + (dot ? 1 : 0);
            rest.length -= length + (dot ? 1 : 0);
            if (!dot)
                rest.bytes = NULL;
        } else {
            rest.bytes = NULL;
        }
        TRY(jinja_spend(r, 1));
        TRY(jinja_item(r, *ret, key, ret));
        if (has_default && value_is(*ret, VALUE_UNDEFINED))
            *ret = default_value;
    } while (rest.bytes);
    return STATUS_OK;
}
