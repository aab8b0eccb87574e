/* schema_number.c - numbers between two bounds, digit by digit.
 *
 * What is written has at most 15 digits before the point, so that a double holds it as it stands
 * there; a bound farther out is none. A bound that is itself not allowed is moved inwards by what a
 * double can tell apart. Rounding keeps order, so a number that is inside as a decimal is inside as
 * a double too. */
#include "grammar/schema.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS 15
#define LARGEST 999999999999999.0 /* of so many digits */
#define STEP 1e-15

/* A number from 0 as decimals: digits before and after the point, without trailing zeros. */
struct decimal {
    uint64_t whole;
    char fraction[48];
};

static const struct rules_range all_digits = { '0', '9' };

static uint32_t digit(struct rules *rules, unsigned first, unsigned last)
{
    return rules_set(rules, &(struct rules_range){ first, last }, 1);
}

static uint32_t any_digits(struct rules *rules, uint32_t least, uint32_t most)
{
    return rules_repeat(rules, rules_set(rules, &all_digits, 1), least, most);
}

/* ---- Whole numbers -------------------------------------------------------------------------- */

static bool are_all(const char *digits, char digit)
{
    return strspn(digits, (char[]){ digit, '\0' }) == strlen(digits);
}

/* Digits between two texts of the same length. */
static uint32_t between(struct rules *rules, const char *low, const char *high)
{
    static const char zeros[] = "000000000000000", nines[] = "999999999999999";
    size_t left = strlen(low);
    if (left == 0)
        return RULES_NODE_EMPTY;
    if (are_all(low, '0') && are_all(high, '9'))
        return any_digits(rules, (uint32_t)left, (uint32_t)left);
    unsigned first = (uint8_t)low[0], last = (uint8_t)high[0];
    if (first == last)
        return rules_seq(rules, digit(rules, first, first), between(rules, low + 1, high + 1));
    uint32_t lowest = rules_seq(rules, digit(rules, first, first),
                                between(rules, low + 1, nines + DIGITS - (left - 1)));
    uint32_t highest = rules_seq(rules, digit(rules, last, last),
                                 between(rules, zeros + DIGITS - (left - 1), high + 1));
    uint32_t middle = RULES_NODE_NEVER;
    if (last - first > 1)
        middle = rules_seq(rules, digit(rules, first + 1, last - 1),
                           any_digits(rules, (uint32_t)left - 1, (uint32_t)left - 1));
    return rules_alt(rules, rules_alt(rules, lowest, middle), highest);
}

static uint32_t whole_range(struct rules *rules, uint64_t low, uint64_t high)
{
    uint32_t choice = RULES_NODE_NEVER;
    uint64_t first = 0, last = 9; /* the numbers with so many digits */
    for (int count = 1; count <= DIGITS && first <= high; count++) {
        char low_text[24], high_text[24];
        if (last >= low && low <= high) {
            snprintf(low_text, sizeof(low_text), "%llu",
                     (unsigned long long)(low > first ? low : first));
            snprintf(high_text, sizeof(high_text), "%llu",
                     (unsigned long long)(high < last ? high : last));
            choice = rules_alt(rules, choice, between(rules, low_text, high_text));
        }
        first = last + 1;
        last = last * 10 + 9;
    }
    return choice;
}

static uint32_t integer(struct rules *rules, const struct schema_facts *facts)
{
    double least = ceil(facts->least), most = floor(facts->most);
    if (facts->above_least && least == facts->least)
        least += 1;
    if (facts->below_most && most == facts->most)
        most -= 1;
    if (least > LARGEST || most < -LARGEST || least > most)
        return RULES_NODE_NEVER;
    int64_t low = (int64_t)fmax(least, -LARGEST), high = (int64_t)fmin(most, LARGEST);
    uint32_t choice = RULES_NODE_NEVER;
    if (high >= 0)
        choice = whole_range(rules, low > 0 ? (uint64_t)low : 0, (uint64_t)high);
    if (low < 0) {
        uint32_t below = whole_range(rules, high < 0 ? (uint64_t)-high : 1, (uint64_t)-low);
        choice = rules_alt(rules, choice, rules_seq(rules, rules_word(rules, "-"), below));
    }
    return choice;
}

/* ---- Fractions ------------------------------------------------------------------------------ */

/* value is from 0 to LARGEST. */
static struct decimal decimal_of(double value)
{
    struct decimal decimal = { 0 };
    char text[64];
    for (int precision = 0; precision <= 40; precision++) {
        snprintf(text, sizeof(text), "%.*f", precision, value);
        if (strtod(text, NULL) == value)
            break;
    }
    decimal.whole = strtoull(text, NULL, 10);
    const char *point = strchr(text, '.');
    if (point)
        snprintf(decimal.fraction, sizeof(decimal.fraction), "%s", point + 1);
    size_t length = strlen(decimal.fraction);
    while (length && decimal.fraction[length - 1] == '0')
        decimal.fraction[--length] = '\0';
    return decimal;
}

/* Digits after the point; low and high are the rest of the bounds' digits, NULL where there is no
 * bound any more. A number may end where its bounds would allow zeros. */
static uint32_t fraction(struct rules *rules, const char *low, const char *high, unsigned left,
                         bool is_first)
{
    if (low && !*low)
        low = NULL;
    if (!low && !high)
        return any_digits(rules, is_first, left);
    uint32_t choice = low || is_first ? RULES_NODE_NEVER : RULES_NODE_EMPTY;
    if (left == 0)
        return choice;
    unsigned first = low ? (uint8_t)low[0] : '0', last = '9';
    if (high)
        last = *high ? (uint8_t)high[0] : '0';
    for (unsigned d = first; d <= last; d++) {
        const char *next_low = low && d == first ? low + 1 : NULL;
        const char *next_high = high && d == last ? high + (*high != '\0') : NULL;
        unsigned end = d;
        if (!next_low && !next_high) /* together up to the upper bound */
            end = high ? last - 1 : last;
        uint32_t tail = fraction(rules, next_low, next_high, left - 1, false);
        choice = rules_alt(rules, choice, rules_seq(rules, digit(rules, d, end), tail));
        d = end;
    }
    return choice;
}

/* What follows the digits before the point. */
static uint32_t point(struct rules *rules, const char *low, const char *high, unsigned digits)
{
    uint32_t node = rules_seq(rules, rules_word(rules, "."),
                              fraction(rules, low, high, digits, true));
    bool may_be_zero = !low || !*low;
    return may_be_zero ? rules_optional(rules, node) : node;
}

/* Numbers from low, which is not negative, to high. */
static uint32_t decimal_range(struct rules *rules, double low, double high)
{
    struct decimal from = decimal_of(fmin(low, LARGEST)), to = decimal_of(fmin(high, LARGEST));
    bool bounded = high <= LARGEST;
    const char *end = bounded ? to.fraction : NULL;
    unsigned digits = DIGITS - (unsigned)fmin(DIGITS - 1, floor(log10(fmax(low, 1))) + 1);
    size_t needed = fmax(strlen(from.fraction), strlen(to.fraction));
    digits = needed > digits ? (unsigned)needed : digits;
    if (low > high || low > LARGEST)
        return RULES_NODE_NEVER;
    if (from.whole == to.whole)
        return rules_seq(rules, whole_range(rules, from.whole, from.whole),
                         point(rules, from.fraction, end, digits));
    uint32_t node = rules_seq(rules, whole_range(rules, from.whole, from.whole),
                              point(rules, from.fraction, NULL, digits));
    if (to.whole - from.whole > 1)
        node = rules_alt(rules, node,
                         rules_seq(rules, whole_range(rules, from.whole + 1, to.whole - 1),
                                   point(rules, NULL, NULL, digits)));
    return rules_alt(
        rules, node,
        rules_seq(rules, whole_range(rules, to.whole, to.whole), point(rules, NULL, end, digits)));
}

static uint32_t any_number(struct rules *rules)
{
    static const struct rules_range exponent[] = { { 'e', 'e' }, { 'E', 'E' } },
                                    sign[] = { { '+', '+' }, { '-', '-' } };
    uint32_t whole = rules_seq(rules, digit(rules, '1', '9'), any_digits(rules, 0, DIGITS - 1));
    uint32_t node = rules_seq(rules, rules_optional(rules, rules_word(rules, "-")),
                              rules_alt(rules, rules_word(rules, "0"), whole));
    node = rules_seq(rules, node, point(rules, NULL, NULL, DIGITS));
    uint32_t power = rules_seq(rules, rules_set(rules, exponent, 2),
                               rules_optional(rules, rules_set(rules, sign, 2)));
    power = rules_seq(rules, power, any_digits(rules, 1, 2));
    return rules_seq(rules, node, rules_optional(rules, power));
}

/* The bound moved inwards, if it is out itself. */
static double inside(double bound, bool is_out, double direction)
{
    if (!is_out || isinf(bound))
        return bound;
    return fabs(bound) < 1 ? bound + direction * STEP : nextafter(bound, direction * INFINITY);
}

uint32_t schema_number(struct schema_reader *reader, const struct schema_facts *facts,
                       unsigned types)
{
    struct rules *rules = &reader->rules;
    if (!(types & SCHEMA_FRACTION))
        return integer(rules, facts);
    if (isinf(facts->least) && isinf(facts->most))
        return any_number(rules);
    double low = inside(facts->least, facts->above_least, 1);
    double high = inside(facts->most, facts->below_most, -1);
    uint32_t choice = RULES_NODE_NEVER;
    if (high >= 0)
        choice = decimal_range(rules, fmax(low, 0), high);
    if (low < 0) {
        uint32_t below = decimal_range(rules, fmax(-high, 0), -low);
        choice = rules_alt(rules, choice, rules_seq(rules, rules_word(rules, "-"), below));
    }
    return choice;
}
