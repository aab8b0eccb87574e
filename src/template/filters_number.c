/* filters_number.c - filters that give numbers, and those that count or wrap words. */
#include "template/builtin.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_BYTES 128

/* The text without white space around it, as C wants it. False: too long for a number. */
static bool number_text(struct value value, char *copy)
{
    struct text_view text = jinja_strip(value_text(value), NULL, true, true);
    size_t length = 0;
    if (text.length >= NUMBER_BYTES || memchr(text.bytes, '\0', text.length))
        return false;
    for (size_t i = 0; i < text.length; i++) {
        bool between = i > 0 && i + 1 < text.length && text.bytes[i] == '_' &&
                       text.bytes[i - 1] != '_';
        if (!between)
            copy[length++] = text.bytes[i];
    }
    copy[length] = '\0';
    return length > 0 && copy[0] > ' ' && copy[0] != '_';
}

static bool to_real(struct value value, double *ret)
{
    char copy[NUMBER_BYTES], *end;
    if (value_is_number(value)) {
        *ret = value_real(value);
        return true;
    }
    if (!value_is(value, VALUE_STRING) || !number_text(value, copy) || strpbrk(copy, "xX(pP"))
        return false;
    *ret = strtod(copy, &end);
    return *end == '\0';
}

static bool to_integer(struct value value, int base, int64_t *ret)
{
    char copy[NUMBER_BYTES], *end;
    double real;
    if (value_is_integer(value)) {
        *ret = value_integer(value);
        return true;
    }
    if (value_is(value, VALUE_STRING) && number_text(value, copy)) {
        const char *digits = copy + (copy[0] == '-' || copy[0] == '+');
        size_t skip = 0;
        if (digits[0] == '0' &&
            ((base == 2 && (digits[1] | 32) == 'b') || (base == 8 && (digits[1] | 32) == 'o')))
            skip = 2;
        errno = 0;
        if (digits[skip] > ' ' && digits[skip] != '-' && digits[skip] != '+') {
            int64_t number = strtoll(digits + skip, &end, base);
            if (*end == '\0' && !errno) {
                *ret = copy[0] == '-' ? -number : number;
                return true;
            }
        }
    }
    if (!to_real(value, &real) || !isfinite(real) || fabs(real) >= 9.2e18)
        return false;
    *ret = (int64_t)real;
    return true;
}

static enum status filter_int(struct render *r, const struct call *call, struct value *ret)
{
    int64_t number, base;
    TRY(jinja_integer_argument(r, call->args[1], 10, &base));
    if (value_is(call->subject, VALUE_UNDEFINED))
        return jinja_fail_undefined(r, call->subject);
    if (base != 0 && (base < 2 || base > 36))
        base = 10;
    if (to_integer(call->subject, (int)base, &number))
        *ret = value_int(number);
    else
        *ret = is_given(call->args[0]) ? call->args[0] : value_int(0);
    return STATUS_OK;
}

static enum status filter_float(struct render *r, const struct call *call, struct value *ret)
{
    double real;
    if (value_is(call->subject, VALUE_UNDEFINED))
        return jinja_fail_undefined(r, call->subject);
    if (to_real(call->subject, &real))
        *ret = value_float(real);
    else
        *ret = is_given(call->args[0]) ? call->args[0] : value_float(0);
    return STATUS_OK;
}

static enum status filter_abs(struct render *r, const struct call *call, struct value *ret)
{
    struct value value = call->subject;
    if (value_is(value, VALUE_UNDEFINED))
        return jinja_fail_undefined(r, value);
    if (!value_is_number(value))
        return fail(r, TYPE, "bad operand type for abs(): '%s'", jinja_kind_name(value));
    if (value_is(value, VALUE_FLOAT)) {
        *ret = value_float(fabs(value.real));
        return STATUS_OK;
    }
    return jinja_unary(r, value_integer(value) < 0 ? OP_SUB : OP_ADD, value, ret);
}

/* To so many decimals; half to even of what the number really is, as Python. */
static double round_common(double real, int64_t decimals)
{
    char text[400];
    if (decimals < 0) {
        double scale = pow(10, (double)-decimals);
        return nearbyint(real / scale) * scale;
    }
    snprintf(text, sizeof(text), "%.*f", (int)(decimals > 30 ? 30 : decimals), real);
    return strtod(text, NULL);
}

static enum status filter_round(struct render *r, const struct call *call, struct value *ret)
{
    struct value value = call->subject, method = call->args[1];
    int64_t decimals;
    TRY(jinja_integer_argument(r, call->args[0], 0, &decimals));
    if (value_is(value, VALUE_UNDEFINED))
        return jinja_fail_undefined(r, value);
    if (!value_is_number(value))
        return fail(r, TYPE, "type %s doesn't define __round__ method", jinja_kind_name(value));
    bool is_common = !is_given(method) ||
                     (value_is(method, VALUE_STRING) && jinja_text_is(method.string, "common"));
    if (is_common) {
        if (value_is_integer(value) && decimals >= 0)
            *ret = value_int(value_integer(value));
        else if (!isfinite(value_real(value)))
            *ret = value;
        else
            *ret = value_float(round_common(value_real(value), decimals));
        return STATUS_OK;
    }
    bool up = value_is(method, VALUE_STRING) && jinja_text_is(method.string, "ceil");
    if (!up && !(value_is(method, VALUE_STRING) && jinja_text_is(method.string, "floor")))
        return fail(r, RUNTIME, "method must be common, ceil or floor");
    double scale = pow(10, (double)decimals), scaled = value_real(value) * scale;
    *ret = value_float((up ? ceil(scaled) : floor(scaled)) / scale);
    return STATUS_OK;
}

static enum status filter_filesizeformat(struct render *r, const struct call *call,
                                         struct value *ret)
{
    static const char *const decimal[] = { "kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB" };
    static const char *const binary[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB" };
    bool is_binary = jinja_truth(call->args[0]);
    double base = is_binary ? 1024 : 1000, bytes, unit = base;
    char text[48];
    if (!to_real(call->subject, &bytes))
        return fail(r, VALUE, "could not convert to float");
    if (bytes == 1)
        return jinja_string_of(r, "1 Byte", ret);
    if (bytes < base) {
        snprintf(text, sizeof(text), "%.0f Bytes", trunc(bytes));
        return jinja_string_of(r, text, ret);
    }
    size_t i = 0;
    while (i + 1 < COUNT_OF(decimal) && bytes >= unit * base) {
        unit *= base;
        i++;
    }
    snprintf(text, sizeof(text), "%.1f %s", bytes / unit, is_binary ? binary[i] : decimal[i]);
    return jinja_string_of(r, text, ret);
}

/* ---- Words ----------------------------------------------------------------------------------- */

static bool is_word(struct render *r, uint32_t code)
{
    (void)r;
    return code == '_' || (code >= '0' && code <= '9') ||
           ((code | 32) >= 'a' && (code | 32) <= 'z') || code >= 0x80;
}

static enum status filter_wordcount(struct render *r, const struct call *call, struct value *ret)
{
    struct value text;
    int64_t count = 0;
    bool within = false;
    TRY(jinja_to_string(r, call->subject, &text));
    TRY(jinja_spend(r, text.string->length / 8));
    for (uint32_t at = 0; at < text.string->length;) {
        uint32_t code;
        at += jinja_decode(text.string->bytes + at, text.string->length - at, &code);
        bool word = is_word(r, code) && !jinja_is_space(code);
        count += word && !within;
        within = word;
    }
    *ret = value_int(count);
    return STATUS_OK;
}

static const struct builtin rows[] = {
    { "int", "default=,base=", filter_int },
    { "float", "default=", filter_float },
    { "abs", "", filter_abs },
    { "round", "precision=,method=", filter_round },
    { "filesizeformat", "binary=", filter_filesizeformat },
    { "wordcount", "", filter_wordcount },
};
const struct builtin_table jinja_number_filters = { rows, COUNT_OF(rows) };
