/* compare.c - equality, order, membership and hashes, as Python has them. */
#include "template/render.h"

#include "template/unicode.h"

#include <math.h>
#include <string.h>

/* ---- Equality -------------------------------------------------------------------------------- */

static bool numbers_equal(struct value a, struct value b)
{
    if (value_is_integer(a) && value_is_integer(b))
        return value_integer(a) == value_integer(b);
    return value_real(a) == value_real(b);
}

static enum status lists_equal(struct render *r, const struct list *a, const struct list *b,
                               bool *ret)
{
    *ret = a->count == b->count;
    for (uint32_t i = 0; *ret && i < a->count && i < b->count; i++)
        TRY(jinja_equal(r, a->items[i], b->items[i], ret));
    return STATUS_OK;
}

static enum status dicts_equal(struct render *r, const struct dict *a, const struct dict *b,
                               bool *ret)
{
    *ret = a->count == b->count;
    for (uint32_t i = 0; *ret && i < a->count; i++) {
        struct dict_entry *other;
        TRY(jinja_dict_find(r, b, a->entries[i].key, &other));
        *ret = other != NULL;
        if (other)
            TRY(jinja_equal(r, a->entries[i].value, other->value, ret));
    }
    return STATUS_OK;
}

static bool ranges_equal(const struct range *a, const struct range *b)
{
    return a->count == b->count &&
           (a->count == 0 || (a->start == b->start && (a->count == 1 || a->step == b->step)));
}

static enum status same_kind_equal(struct render *r, struct value a, struct value b, bool *ret)
{
    switch (a.kind) {
    case VALUE_UNDEFINED:
    case VALUE_NONE:
        *ret = true;
        return STATUS_OK;
    case VALUE_STRING:
        *ret = jinja_text_equal(a.string, b.string);
        return jinja_spend(r, a.string->length / 64);
    case VALUE_LIST:
    case VALUE_TUPLE:
        return lists_equal(r, a.list, b.list, ret);
    case VALUE_DICT:
        return dicts_equal(r, a.dict, b.dict, ret);
    case VALUE_RANGE:
        *ret = ranges_equal(a.range, b.range);
        return STATUS_OK;
    case VALUE_BUILTIN:
        *ret = a.bound == b.bound ||
               (a.bound->row == b.bound->row && a.bound->subject.kind == b.bound->subject.kind &&
                a.bound->subject.list == b.bound->subject.list);
        return STATUS_OK;
    default:
        *ret = a.list == b.list; /* the same object */
        return STATUS_OK;
    }
}

enum status jinja_equal(struct render *r, struct value a, struct value b, bool *ret)
{
    if (value_is_number(a) && value_is_number(b)) {
        *ret = numbers_equal(a, b);
        return jinja_spend(r, 1);
    }
    if (a.kind != b.kind) {
        *ret = false;
        return jinja_spend(r, 1);
    }
    TRY(jinja_enter(r));
    TRY(jinja_spend(r, 1));
    TRY(same_kind_equal(r, a, b, ret));
    jinja_leave(r);
    return STATUS_OK;
}

/* ---- Order ----------------------------------------------------------------------------------- */

static enum status lists_less(struct render *r, const struct list *a, const struct list *b,
                              bool *ret)
{
    for (uint32_t i = 0; i < a->count && i < b->count; i++) {
        bool equal;
        TRY(jinja_equal(r, a->items[i], b->items[i], &equal));
        if (!equal)
            return jinja_less(r, a->items[i], b->items[i], ret);
    }
    *ret = a->count < b->count;
    return STATUS_OK;
}

static enum status order_fails(struct render *r, const char *op, struct value a, struct value b)
{
    if (value_is(a, VALUE_UNDEFINED))
        return jinja_fail_undefined(r, a);
    if (value_is(b, VALUE_UNDEFINED))
        return jinja_fail_undefined(r, b);
    return fail(r, TYPE, "'%s' not supported between instances of '%s' and '%s'", op,
                jinja_kind_name(a), jinja_kind_name(b));
}

static bool can_order(struct value a, struct value b)
{
    return (value_is_number(a) && value_is_number(b)) ||
           (a.kind == b.kind &&
            (value_is(a, VALUE_STRING) || value_is(a, VALUE_LIST) || value_is(a, VALUE_TUPLE)));
}

enum status jinja_less(struct render *r, struct value a, struct value b, bool *ret)
{
    TRY(jinja_spend(r, 1));
    if (!can_order(a, b))
        return order_fails(r, "<", a, b);
    if (value_is(a, VALUE_STRING)) {
        *ret = jinja_text_compare(a.string, b.string) < 0;
        return jinja_spend(r, a.string->length / 64);
    }
    if (!value_is_number(a)) {
        TRY(jinja_enter(r));
        TRY(lists_less(r, a.list, b.list, ret));
        jinja_leave(r);
        return STATUS_OK;
    }
    *ret = value_is_integer(a) && value_is_integer(b) ? value_integer(a) < value_integer(b)
                                                      : value_real(a) < value_real(b);
    return STATUS_OK;
}

static bool is_nan(struct value value)
{
    return value_is(value, VALUE_FLOAT) && isnan(value.real);
}

enum status jinja_compare(struct render *r, enum operator op, struct value a, struct value b,
                          bool *ret)
{
    static const char *const names[] = {
        [OP_LT] = "<", [OP_LE] = "<=", [OP_GT] = ">", [OP_GE] = ">="
    };
    switch (op) {
    case OP_EQ:
        return jinja_equal(r, a, b, ret);
    case OP_NE:
        TRY(jinja_equal(r, a, b, ret));
        *ret = !*ret;
        return STATUS_OK;
    case OP_IN:
        return jinja_contains(r, a, b, ret);
    case OP_NOT_IN:
        TRY(jinja_contains(r, a, b, ret));
        *ret = !*ret;
        return STATUS_OK;
    default:
        break;
    }
    if (!can_order(a, b))
        return order_fails(r, names[op], a, b);
    if (is_nan(a) || is_nan(b)) {
        *ret = false;
        return STATUS_OK;
    }
    bool swapped = op == OP_GT || op == OP_LE;
    TRY(jinja_less(r, swapped ? b : a, swapped ? a : b, ret));
    if (op == OP_LE || op == OP_GE)
        *ret = !*ret;
    return STATUS_OK;
}

/* ---- Membership ------------------------------------------------------------------------------ */

static enum status in_text(struct render *r, struct value item, struct value text, bool *ret)
{
    if (!value_is(item, VALUE_STRING))
        return fail(r, TYPE, "'in <string>' requires string as left operand, not %s",
                    jinja_kind_name(item));
    TRY(jinja_spend(r, text.string->length / 32));
    *ret = jinja_find(value_text(text), value_text(item), 0) >= 0;
    return STATUS_OK;
}

enum status jinja_contains(struct render *r, struct value item, struct value in, bool *ret)
{
    struct list *list;
    struct dict_entry *entry;
    *ret = false;
    if (value_is(in, VALUE_STRING))
        return in_text(r, item, in, ret);
    if (value_is(in, VALUE_DICT)) {
        TRY(jinja_dict_find(r, in.dict, item, &entry));
        *ret = entry != NULL;
        return STATUS_OK;
    }
    if (!jinja_can_walk(in))
        return fail(r, TYPE, "argument of type '%s' is not iterable", jinja_kind_name(in));
    TRY(jinja_walk(r, in, &list));
    for (uint32_t i = 0; !*ret && i < list->count; i++)
        TRY(jinja_equal(r, list->items[i], item, ret));
    return STATUS_OK;
}

/* ---- Folding and hashing --------------------------------------------------------------------- */

enum status jinja_fold(struct render *r, struct value value, bool case_sensitive, struct value *ret)
{
    *ret = value;
    if (case_sensitive || !value_is(value, VALUE_STRING))
        return STATUS_OK;
    size_t begin = jinja_text_begin(r);
    TRY(jinja_convert_case(r, value_text(value), UNICODE_TO_LOWER));
    return jinja_text_end(r, begin, ret);
}

static uint64_t mix(uint64_t hash, uint64_t more)
{
    hash ^= more;
    hash *= 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 29;
}

static uint64_t hash_number(struct value value)
{
    double real = value_real(value);
    uint64_t bits;
    if (!value_is_integer(value) && !(real == floor(real) && fabs(real) < 9e18)) {
        memcpy(&bits, &real, sizeof(bits));
        return mix(2, bits);
    }
    return mix(1,
               value_is_integer(value) ? (uint64_t)value_integer(value) : (uint64_t)(int64_t)real);
}

enum status jinja_hash(struct render *r, struct value value, uint64_t *ret)
{
    uint64_t hash = 1469598103934665603u;
    TRY(jinja_spend(r, 1));
    if (value_is_number(value)) {
        *ret = hash_number(value);
        return STATUS_OK;
    }
    switch (value.kind) {
    case VALUE_STRING:
        for (uint32_t i = 0; i < value.string->length; i++)
            hash = (hash ^ (unsigned char)value.string->bytes[i]) * 1099511628211u;
        *ret = mix(3, hash);
        return jinja_spend(r, value.string->length / 64);
    case VALUE_TUPLE:
        TRY(jinja_enter(r));
        for (uint32_t i = 0; i < value.list->count; i++) {
            uint64_t item;
            TRY(jinja_hash(r, value.list->items[i], &item));
            hash = mix(hash, item);
        }
        jinja_leave(r);
        *ret = hash;
        return STATUS_OK;
    case VALUE_LIST:
    case VALUE_DICT:
    case VALUE_VIEW:
        return fail(r, TYPE, "unhashable type: '%s'", jinja_kind_name(value));
    default:
        *ret = mix(4, value.kind);
        return STATUS_OK;
    }
}
