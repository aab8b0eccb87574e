/* tests.c - what may follow "is". */
#include "template/builtin.h"
#include "template/unicode.h"

static enum status answer(bool holds, struct value *ret)
{
    *ret = value_bool(holds);
    return STATUS_OK;
}

/* Tests of what kind of value it is, by a set of kinds. */
#define KINDS(function, set)                                                                       \
    static enum status function(struct render *r, const struct call *call, struct value *ret)      \
    {                                                                                              \
        (void)r;                                                                                   \
        return answer(((set) >> call->subject.kind & 1u) != 0, ret);                               \
    }
#define KIND(name) (1u << VALUE_##name)

KINDS(test_undefined, KIND(UNDEFINED))
KINDS(test_defined, ~KIND(UNDEFINED))
KINDS(test_none, KIND(NONE))
KINDS(test_boolean, KIND(BOOL))
KINDS(test_integer, KIND(INT))
KINDS(test_float, KIND(FLOAT))
KINDS(test_number, KIND(BOOL) | KIND(INT) | KIND(FLOAT))
KINDS(test_string, KIND(STRING))
KINDS(test_mapping, KIND(DICT))
KINDS(test_sequence,
      KIND(UNDEFINED) | KIND(STRING) | KIND(LIST) | KIND(TUPLE) | KIND(DICT) | KIND(RANGE))
KINDS(test_iterable, KIND(UNDEFINED) | KIND(STRING) | KIND(LIST) | KIND(TUPLE) | KIND(DICT) |
                         KIND(RANGE) | KIND(GENERATOR) | KIND(VIEW) | KIND(LOOP))
KINDS(test_callable, KIND(UNDEFINED) | KIND(LOOP) | KIND(MACRO) | KIND(BUILTIN) | KIND(JOINER))

static enum status test_true(struct render *r, const struct call *call, struct value *ret)
{
    (void)r;
    return answer(value_is(call->subject, VALUE_BOOL) && call->subject.truth, ret);
}

static enum status test_false(struct render *r, const struct call *call, struct value *ret)
{
    (void)r;
    return answer(value_is(call->subject, VALUE_BOOL) && !call->subject.truth, ret);
}

static enum status rest_of(struct render *r, const struct call *call, int64_t divisor,
                           struct value *ret)
{
    return jinja_binary(r, OP_MOD, call->subject, value_int(divisor), ret);
}

static enum status test_odd(struct render *r, const struct call *call, struct value *ret)
{
    bool one;
    TRY(rest_of(r, call, 2, ret));
    TRY(jinja_equal(r, *ret, value_int(1), &one));
    return answer(one, ret);
}

static enum status test_even(struct render *r, const struct call *call, struct value *ret)
{
    TRY(rest_of(r, call, 2, ret));
    return answer(!jinja_truth(*ret), ret);
}

static enum status test_divisibleby(struct render *r, const struct call *call, struct value *ret)
{
    TRY(jinja_binary(r, OP_MOD, call->subject, call->args[0], ret));
    return answer(!jinja_truth(*ret), ret);
}

static enum status compare_as(struct render *r, const struct call *call, enum operator op,
                              struct value *ret)
{
    bool holds;
    TRY(jinja_compare(r, op, call->subject, call->args[0], &holds));
    return answer(holds, ret);
}

#define COMPARES(function, op)                                                                     \
    static enum status function(struct render *r, const struct call *call, struct value *ret)      \
    {                                                                                              \
        return compare_as(r, call, op, ret);                                                       \
    }

COMPARES(test_eq, OP_EQ)
COMPARES(test_ne, OP_NE)
COMPARES(test_lt, OP_LT)
COMPARES(test_le, OP_LE)
COMPARES(test_gt, OP_GT)
COMPARES(test_ge, OP_GE)
COMPARES(test_in, OP_IN)

static enum status test_sameas(struct render *r, const struct call *call, struct value *ret)
{
    bool equal = false;
    if (call->subject.kind == call->args[0].kind) {
        if (call->subject.kind >= VALUE_LIST)
            equal = call->subject.list == call->args[0].list;
        else
            TRY(jinja_equal(r, call->subject, call->args[0], &equal));
    }
    return answer(equal, ret);
}

static enum status all_letters(struct render *r, const struct call *call, bool upper,
                               struct value *ret)
{
    struct value text;
    bool some = false;
    TRY(jinja_to_string(r, call->subject, &text));
    TRY(jinja_spend(r, text.string->length / 8));
    for (uint32_t at = 0; at < text.string->length;) {
        uint32_t code;
        at += jinja_decode(text.string->bytes + at, text.string->length - at, &code);
        if (!jinja_unicode_is(code, UNICODE_CASED))
            continue;
        if (upper ? !jinja_unicode_is_upper(code) : !jinja_unicode_is_lower(code))
            return answer(false, ret);
        some = true;
    }
    return answer(some, ret);
}

static enum status test_upper(struct render *r, const struct call *call, struct value *ret)
{
    return all_letters(r, call, true, ret);
}

static enum status test_lower(struct render *r, const struct call *call, struct value *ret)
{
    return all_letters(r, call, false, ret);
}

static enum status test_escaped(struct render *r, const struct call *call, struct value *ret)
{
    (void)r;
    return answer(value_is(call->subject, VALUE_STRING) && call->subject.string->safe, ret);
}

static enum status test_filter(struct render *r, const struct call *call, struct value *ret)
{
    (void)r;
    return answer(value_is(call->subject, VALUE_STRING) && jinja_filter_find(call->subject.string),
                  ret);
}

static enum status test_test(struct render *r, const struct call *call, struct value *ret)
{
    (void)r;
    return answer(value_is(call->subject, VALUE_STRING) && jinja_test_find(call->subject.string),
                  ret);
}

static const struct builtin rows[] = {
    { "defined", "", test_defined },
    { "undefined", "", test_undefined },
    { "none", "", test_none },
    { "boolean", "", test_boolean },
    { "integer", "", test_integer },
    { "float", "", test_float },
    { "number", "", test_number },
    { "string", "", test_string },
    { "mapping", "", test_mapping },
    { "sequence", "", test_sequence },
    { "iterable", "", test_iterable },
    { "callable", "", test_callable },
    { "true", "", test_true },
    { "false", "", test_false },
    { "odd", "", test_odd },
    { "even", "", test_even },
    { "divisibleby", "num", test_divisibleby },
    { "eq", "other", test_eq },
    { "equalto", "other", test_eq },
    { "==", "other", test_eq },
    { "ne", "other", test_ne },
    { "!=", "other", test_ne },
    { "lt", "other", test_lt },
    { "lessthan", "other", test_lt },
    { "<", "other", test_lt },
    { "le", "other", test_le },
    { "<=", "other", test_le },
    { "gt", "other", test_gt },
    { "greaterthan", "other", test_gt },
    { ">", "other", test_gt },
    { "ge", "other", test_ge },
    { ">=", "other", test_ge },
    { "in", "seq", test_in },
    { "sameas", "other", test_sameas },
    { "upper", "", test_upper },
    { "lower", "", test_lower },
    { "escaped", "", test_escaped },
    { "filter", "", test_filter },
    { "test", "", test_test },
};
const struct builtin_table jinja_tests = { rows, COUNT_OF(rows) };
