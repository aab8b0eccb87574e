/* operators.c - arithmetic on numbers, and what + * % mean for texts and lists. */
#include "template/render.h"

#include <math.h>
#include <string.h>

static enum status overflow(struct render *r)
{
    return fail(r, LIMIT, "an integer of more than 64 bits");
}

static int64_t floor_div(int64_t a, int64_t b)
{
    int64_t quotient = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

static int64_t floor_mod(int64_t a, int64_t b)
{
    int64_t rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static enum status integer_power(struct render *r, int64_t base, int64_t exponent,
                                 struct value *ret)
{
    int64_t result = 1;
    if (exponent < 0) {
        if (base == 0)
            return fail(r, ARITHMETIC, "0.0 cannot be raised to a negative power");
        *ret = value_float(pow((double)base, (double)exponent));
        return STATUS_OK;
    }
    if (base == 0 || base == 1 || base == -1)
        exponent = exponent > 0 ? 2 - exponent % 2 : 0;
    for (int64_t i = 0; i < exponent; i++)
        if (__builtin_mul_overflow(result, base, &result))
            return overflow(r);
    *ret = value_int(result);
    return STATUS_OK;
}

static enum status integer_binary(struct render *r, enum operator op, int64_t a, int64_t b,
                                  struct value *ret)
{
    int64_t result = 0;
    bool wraps = false;
    if ((op == OP_DIV || op == OP_FLOORDIV || op == OP_MOD) && b == 0)
        return fail(r, ARITHMETIC,
                    op == OP_DIV ? "division by zero" : "integer division or modulo by zero");
    switch (op) {
    case OP_ADD:
        wraps = __builtin_add_overflow(a, b, &result);
        break;
    case OP_SUB:
        wraps = __builtin_sub_overflow(a, b, &result);
        break;
    case OP_MUL:
        wraps = __builtin_mul_overflow(a, b, &result);
        break;
    case OP_FLOORDIV:
    case OP_MOD:
        wraps = a == INT64_MIN && b == -1;
        if (!wraps)
            result = op == OP_MOD ? floor_mod(a, b) : floor_div(a, b);
        break;
    case OP_DIV:
        *ret = value_float((double)a / (double)b);
        return STATUS_OK;
    default:
        return integer_power(r, a, b, ret);
    }
    *ret = value_int(result);
    return wraps ? overflow(r) : STATUS_OK;
}

static double real_mod(double a, double b)
{
    double rest = fmod(a, b);
    if (rest == 0)
        return copysign(0.0, b);
    return (rest < 0) != (b < 0) ? rest + b : rest;
}

static enum status real_power(struct render *r, double a, double b, struct value *ret)
{
    if (a == 0 && b < 0)
        return fail(r, ARITHMETIC, "0.0 cannot be raised to a negative power");
    if (a < 0 && b != floor(b))
        return fail(r, VALUE, "a complex number");
    double result = pow(a, b);
    if (isinf(result) && isfinite(a) && isfinite(b))
        return fail(r, ARITHMETIC, "Numerical result out of range");
    *ret = value_float(result);
    return STATUS_OK;
}

static enum status real_binary(struct render *r, enum operator op, double a, double b,
                               struct value *ret)
{
    if ((op == OP_DIV || op == OP_FLOORDIV || op == OP_MOD) && b == 0)
        return fail(r, ARITHMETIC, "%s",
                    op == OP_DIV   ? "float division by zero"
                    : op == OP_MOD ? "float modulo"
                                   : "float divmod()");
    switch (op) {
    case OP_ADD:
        *ret = value_float(a + b);
        break;
    case OP_SUB:
        *ret = value_float(a - b);
        break;
    case OP_MUL:
        *ret = value_float(a * b);
        break;
    case OP_DIV:
        *ret = value_float(a / b);
        break;
    case OP_FLOORDIV:
        *ret = value_float(floor((a - real_mod(a, b)) / b + 0.5));
        break;
    case OP_MOD:
        *ret = value_float(real_mod(a, b));
        break;
    default:
        return real_power(r, a, b, ret);
    }
    return STATUS_OK;
}

/* ---- Texts and lists ------------------------------------------------------------------------- */

static enum status add_strings(struct render *r, struct value a, struct value b, struct value *ret)
{
    if (a.string->safe != b.string->safe) {
        TRY(jinja_escape(r, a, &a));
        TRY(jinja_escape(r, b, &b));
    }
    return jinja_concat(r, a, b, ret);
}

static enum status add_lists(struct render *r, struct value a, struct value b, struct value *ret)
{
    struct list *sum;
    TRY(jinja_list_create(r, (uint64_t)a.list->count + b.list->count, &sum));
    if (a.list->count)
        memcpy(sum->items, a.list->items, a.list->count * sizeof(*sum->items));
    if (b.list->count)
        memcpy(sum->items + a.list->count, b.list->items, b.list->count * sizeof(*sum->items));
    sum->count = a.list->count + b.list->count;
    *ret = value_list((enum value_kind)a.kind, sum);
    return STATUS_OK;
}

static enum status repeat(struct render *r, struct value what, int64_t times, struct value *ret)
{
    uint64_t count = times > 0 ? (uint64_t)times : 0;
    if (value_is(what, VALUE_STRING)) {
        size_t begin = jinja_text_begin(r);
        TRY(jinja_add_fill(r, value_text(what), count));
        TRY(jinja_text_end(r, begin, ret));
        return jinja_mark_safe(r, *ret, what.string->safe, ret);
    }
    struct list *list;
    if (what.list->count && count > ITEM_LIMIT / what.list->count)
        return fail(r, LIMIT, "a list of more than %u items", ITEM_LIMIT);
    TRY(jinja_list_create(r, count * what.list->count, &list));
    for (uint32_t i = 0; i < list->capacity; i++)
        list->items[list->count++] = what.list->items[i % what.list->count];
    *ret = value_list((enum value_kind)what.kind, list);
    return STATUS_OK;
}

static bool can_repeat(struct value value)
{
    return value_is(value, VALUE_STRING) || value_is(value, VALUE_LIST) ||
           value_is(value, VALUE_TUPLE);
}

static enum status unsupported(struct render *r, enum operator op, struct value a, struct value b)
{
    static const char *const names[] = {
        [OP_ADD] = "+",       [OP_SUB] = "-", [OP_MUL] = "*",          [OP_DIV] = "/",
        [OP_FLOORDIV] = "//", [OP_MOD] = "%", [OP_POW] = "** or pow()"
    };
    if (value_is(a, VALUE_UNDEFINED))
        return jinja_fail_undefined(r, a);
    if (value_is(b, VALUE_UNDEFINED))
        return jinja_fail_undefined(r, b);
    if (op == OP_ADD && value_is(a, VALUE_STRING))
        return fail(r, TYPE, "can only concatenate str (not \"%s\") to str", jinja_kind_name(b));
    if (op == OP_ADD && (value_is(a, VALUE_LIST) || value_is(a, VALUE_TUPLE)))
        return fail(r, TYPE, "can only concatenate %s (not \"%s\") to %s", jinja_kind_name(a),
                    jinja_kind_name(b), jinja_kind_name(a));
    if (op == OP_MUL && (can_repeat(a) || can_repeat(b)))
        return fail(r, TYPE, "can't multiply sequence by non-int of type '%s'",
                    jinja_kind_name(can_repeat(a) ? b : a));
    return fail(r, TYPE, "unsupported operand type(s) for %s: '%s' and '%s'", names[op],
                jinja_kind_name(a), jinja_kind_name(b));
}

enum status jinja_binary(struct render *r, enum operator op, struct value a, struct value b,
                         struct value *ret)
{
    if (value_is_integer(a) && value_is_integer(b))
        return integer_binary(r, op, value_integer(a), value_integer(b), ret);
    if (value_is_number(a) && value_is_number(b))
        return real_binary(r, op, value_real(a), value_real(b), ret);
    if (op == OP_MOD && value_is(a, VALUE_STRING))
        return jinja_percent(r, a, b, ret);
    if (op == OP_ADD && value_is(a, VALUE_STRING) && value_is(b, VALUE_STRING))
        return add_strings(r, a, b, ret);
    if (op == OP_ADD && a.kind == b.kind && (value_is(a, VALUE_LIST) || value_is(a, VALUE_TUPLE)))
        return add_lists(r, a, b, ret);
    if (op == OP_MUL && can_repeat(a) && value_is_integer(b))
        return repeat(r, a, value_integer(b), ret);
    if (op == OP_MUL && can_repeat(b) && value_is_integer(a))
        return repeat(r, b, value_integer(a), ret);
    return unsupported(r, op, a, b);
}

enum status jinja_unary(struct render *r, enum operator op, struct value value, struct value *ret)
{
    if (value_is(value, VALUE_UNDEFINED))
        return jinja_fail_undefined(r, value);
    if (!value_is_number(value))
        return fail(r, TYPE, "bad operand type for unary %c: '%s'", op == OP_SUB ? '-' : '+',
                    jinja_kind_name(value));
    if (value_is(value, VALUE_FLOAT)) {
        *ret = value_float(op == OP_SUB ? -value.real : value.real);
        return STATUS_OK;
    }
    if (op == OP_ADD) {
        *ret = value_int(value_integer(value));
        return STATUS_OK;
    }
    return integer_binary(r, OP_SUB, 0, value_integer(value), ret);
}
