/* format_number.c - one number or text as %5.2f and {:>8} write it. */
#include "template/builtin.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define PRECISION_LIMIT 300

static enum status add_fill_code(struct render *r, uint32_t code, uint64_t times)
{
    char bytes[4];
    uint32_t length = jinja_encode(code ? code : ' ', bytes);
    return jinja_add_fill(r, (struct text_view){ bytes, length }, times);
}

enum status jinja_add_padded(struct render *r, struct text_view text,
                             const struct number_style *style)
{
    uint64_t count = jinja_count_characters(text.bytes, text.length);
    uint64_t room = style->width > 0 && (uint64_t)style->width > count
                        ? (uint64_t)style->width - count
                        : 0;
    uint64_t left = style->align == '>' ? room : style->align == '^' ? room / 2 : 0;
    size_t sign = 0;
    if (style->align == '=') { /* between the sign and the digits */
        sign = text.length &&
               (text.bytes[0] == '-' || text.bytes[0] == '+' || text.bytes[0] == ' ');
        left = room;
    }
    TRY(jinja_add(r, text.bytes, sign));
    TRY(add_fill_code(r, style->fill, left));
    TRY(jinja_add(r, text.bytes + sign, text.length - sign));
    return add_fill_code(r, style->fill, room - left);
}

/* With commas between thousands. */
static void add_commas(char *text, size_t bytes)
{
    char copy[512];
    size_t digits = strspn(text, "+- "), end = digits, length = 0;
    while (text[end] >= '0' && text[end] <= '9')
        end++;
    for (size_t i = 0; text[i] && length + 2 < sizeof(copy); i++) {
        if (i > digits && i < end && (end - i) % 3 == 0)
            copy[length++] = ',';
        copy[length++] = text[i];
    }
    copy[length] = '\0';
    snprintf(text, bytes, "%s", copy);
}

static const char *sign_of(const struct number_style *style, bool negative)
{
    return negative ? "-" : style->sign == '+' ? "+" : style->sign == ' ' ? " " : "";
}

static void integer_text(int64_t number, const struct number_style *style, char *text, size_t bytes)
{
    char digits[80];
    uint64_t size = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    const char *prefix = "";
    switch (style->type) {
    case 'x':
    case 'X':
        snprintf(digits, sizeof(digits), style->type == 'x' ? "%llx" : "%llX",
                 (unsigned long long)size);
        prefix = style->alternate ? style->type == 'x' ? "0x" : "0X" : "";
        break;
    case 'o':
        snprintf(digits, sizeof(digits), "%llo", (unsigned long long)size);
        prefix = style->alternate ? "0o" : "";
        break;
    case 'b': {
        char *at = digits + sizeof(digits) - 1;
        *at = '\0';
        do {
            *--at = (char)('0' + (size & 1));
            size >>= 1;
        } while (size);
        memmove(digits, at, strlen(at) + 1);
        prefix = style->alternate ? "0b" : "";
        break;
    }
    default:
        snprintf(digits, sizeof(digits), "%llu", (unsigned long long)size);
    }
    int zeros = 0;
    if (style->precision > (int64_t)strlen(digits)) /* %.5d */
        zeros = (int)style->precision - (int)strlen(digits);
    snprintf(text, bytes, "%s%s%.*s%s", sign_of(style, number < 0), prefix, zeros,
             "00000000000000000000000000000000000000000000000000000000000000000000000000000000000"
             "00000000000000000000000000000000000000000000000000000000000000000000000000000000000"
             "00000000000000000000000000000000000000000000000000000000000000000000000000000000000"
             "000000000000000000000000000000000000000000000000000",
             digits);
}

static void real_text(double real, const struct number_style *style, char *text, size_t bytes)
{
    char format[16];
    char type = style->type == '%' || style->type == 0 ? 'f' : style->type;
    int precision = style->precision < 0 ? 6 : (int)style->precision;
    snprintf(format, sizeof(format), "%%s%%%s.*%c", style->alternate ? "#" : "", type);
    double size = style->type == '%' ? fabs(real) * 100 : fabs(real);
    snprintf(text, bytes, format, sign_of(style, signbit(real) && !isnan(real)), precision, size);
    if (style->type == '%')
        strncat(text, "%", bytes - strlen(text) - 1);
}

enum status jinja_add_number(struct render *r, struct value value, const struct number_style *style)
{
    char text[1024];
    struct number_style padded = *style;
    bool is_real = style->type && strchr("eEfFgG%", style->type);
    if (value_is(value, VALUE_UNDEFINED))
        return jinja_fail_undefined(r, value);
    if (!value_is_number(value))
        return fail(r, TYPE, "%%%c format: a real number is required, not %s",
                    style->type ? style->type : 'd', jinja_kind_name(value));
    if (style->precision > PRECISION_LIMIT)
        return fail(r, LIMIT, "a precision of more than %d", PRECISION_LIMIT);
    if (is_real)
        real_text(value_real(value), style, text, sizeof(text));
    else if (value_is(value, VALUE_FLOAT) && fabs(value.real) < 9.2e18)
        integer_text((int64_t)value.real, style, text, sizeof(text));
    else if (value_is(value, VALUE_FLOAT))
        return fail(r, LIMIT, "an integer of more than 64 bits");
    else
        integer_text(value_integer(value), style, text, sizeof(text));
    if (style->commas)
        add_commas(text, sizeof(text));
    if (!padded.align)
        padded.align = style->zero ? '=' : '>';
    if (style->zero)
        padded.fill = '0';
    return jinja_add_padded(r, text_view_of(text), &padded);
}
