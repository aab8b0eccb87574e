/* token.c - the tokens within {{ }} and {% %}. */
#include "template/lexer.h"

#include "base/array.h"
#include "template/strings.h"
#include "template/unicode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum status jinja_lex_add(struct lexer *lexer, struct token token)
{
    if (lexer->count >= TOKEN_LIMIT)
        return jinja_report(lexer->report, TEMPLATE_PROBLEM_LIMIT, token.at, "more than %u tokens",
                            TOKEN_LIMIT);
    struct token *more = array_reserve(lexer->tokens, lexer->count, &lexer->capacity,
                                       sizeof(*more));
    if (!more)
        return jinja_report_memory(lexer->report);
    lexer->tokens = more;
    more[lexer->count++] = token;
    return STATUS_OK;
}

static char byte_at(const struct lexer *lexer, uint32_t at)
{
    return at < lexer->length ? lexer->source[at] : '\0';
}

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* Digits with single underscores between them; returns where they end, or `at`. */
static uint32_t skip_digits(const struct lexer *lexer, uint32_t at)
{
    if (!is_digit(byte_at(lexer, at)))
        return at;
    while (is_digit(byte_at(lexer, at)) ||
           (byte_at(lexer, at) == '_' && is_digit(byte_at(lexer, at + 1))))
        at++;
    return at;
}

static uint32_t skip_exponent(const struct lexer *lexer, uint32_t at)
{
    if ((byte_at(lexer, at) | 0x20) != 'e')
        return at;
    uint32_t digits = at + 1;
    if (byte_at(lexer, digits) == '+' || byte_at(lexer, digits) == '-')
        digits++;
    uint32_t end = skip_digits(lexer, digits);
    return end > digits ? end : at;
}

/* The text without underscores, cut where no double or integer needs more. */
static void copy_number(const struct lexer *lexer, uint32_t at, uint32_t end, char *copy,
                        size_t bytes)
{
    size_t length = 0;
    for (; at < end && length + 1 < bytes; at++)
        if (lexer->source[at] != '_')
            copy[length++] = lexer->source[at];
    copy[length] = '\0';
}

static enum status add_integer(struct lexer *lexer, uint32_t at, uint32_t end, int base)
{
    char copy[128];
    copy_number(lexer, base == 10 ? at : at + 2, end, copy, sizeof(copy));
    errno = 0;
    long long number = strtoll(copy, NULL, base);
    if (errno || end - at > sizeof(copy) - 2)
        return jinja_report(lexer->report, TEMPLATE_PROBLEM_LIMIT, at,
                            "an integer of more than 64 bits");
    lexer->at = end;
    return jinja_lex_add(lexer, (struct token){ .kind = TOKEN_NUMBER,
                                                .at = at,
                                                .length = end - at,
                                                .value = value_int(number) });
}

static enum status add_float(struct lexer *lexer, uint32_t at, uint32_t end)
{
    char copy[512];
    if (end - at >= sizeof(copy))
        return jinja_report(lexer->report, TEMPLATE_PROBLEM_LIMIT, at,
                            "a number of more than %zu characters", sizeof(copy) - 1);
    copy_number(lexer, at, end, copy, sizeof(copy));
    lexer->at = end;
    return jinja_lex_add(lexer, (struct token){ .kind = TOKEN_NUMBER,
                                                .at = at,
                                                .length = end - at,
                                                .value = value_float(strtod(copy, NULL)) });
}

static int digit_of(char byte)
{
    if (is_digit(byte))
        return byte - '0';
    byte |= 0x20;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : 16;
}

static enum status lex_number(struct lexer *lexer)
{
    uint32_t at = lexer->at, end = skip_digits(lexer, at);
    bool after_dot = at > 0 && lexer->source[at - 1] == '.';
    uint32_t fraction = end;
    if (byte_at(lexer, end) == '.' && is_digit(byte_at(lexer, end + 1)))
        fraction = skip_digits(lexer, end + 1);
    uint32_t exponent = skip_exponent(lexer, fraction);
    if (!after_dot && exponent > end)
        return add_float(lexer, at, exponent);
    static const struct {
        char letter;
        int base;
    } prefixes[] = { { 'x', 16 }, { 'o', 8 }, { 'b', 2 } };
    for (size_t i = 0; byte_at(lexer, at) == '0' && i < COUNT_OF(prefixes); i++) {
        if ((byte_at(lexer, at + 1) | 0x20) != prefixes[i].letter)
            continue;
        uint32_t digits = at + 2;
        while (digit_of(byte_at(lexer, digits)) < prefixes[i].base || byte_at(lexer, digits) == '_')
            digits++;
        if (digits > at + 2)
            return add_integer(lexer, at, digits, prefixes[i].base);
    }
    if (byte_at(lexer, at) == '0') /* 007 is three numbers */
        for (end = at; byte_at(lexer, end) == '0';)
            end++;
    return add_integer(lexer, at, end, 10);
}

static uint32_t skip_name(const struct lexer *lexer, uint32_t at)
{
    while (at < lexer->length) {
        unsigned char byte = (unsigned char)lexer->source[at];
        if (byte < 0x80) {
            if (byte != '_' && !is_digit((char)byte) &&
                !((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z'))
                break;
            at++;
            continue;
        }
        uint32_t code;
        uint32_t step = jinja_decode(lexer->source + at, lexer->length - at, &code);
        if (!jinja_unicode_is(code, UNICODE_IDENTIFIER))
            break;
        at += step;
    }
    return at;
}

static enum status lex_operator(struct lexer *lexer)
{
    static const char two[][3] = { "//", "**", "==", "!=", ">=", "<=" };
    uint32_t at = lexer->at;
    char first = byte_at(lexer, at), second = byte_at(lexer, at + 1);
    struct token token = { .kind = TOKEN_OPERATOR, .at = at, .length = 1 };
    for (size_t i = 0; i < COUNT_OF(two); i++)
        if (first == two[i][0] && second == two[i][1])
            token.length = 2;
    if (token.length == 1 && (!first || !strchr("+-/*%~[](){}><=.:|,;", first))) {
        char shown[32];
        size_t bytes = text_utf8_length(lexer->source + at, lexer->length - at);
        text_printable((struct text_view){ lexer->source + at, bytes }, shown, sizeof(shown));
        return jinja_report(lexer->report, TEMPLATE_PROBLEM_SYNTAX, at, "unexpected char '%s'",
                            shown);
    }
    token.op = token.length == 2 ? TWO(first, second) : (uint8_t)first;
    lexer->at += token.length;
    return jinja_lex_add(lexer, token);
}

/* Keeps the brackets that are open, so that }} within a dictionary ends that and not the tag. */
struct brackets {
    char open[PARSE_DEPTH_LIMIT];
    uint32_t count;
};

static enum status follow_brackets(struct lexer *lexer, struct brackets *brackets)
{
    const struct token *token = &lexer->tokens[lexer->count - 1];
    static const char opening[] = "([{", closing[] = ")]}";
    if (token->kind != TOKEN_OPERATOR || token->length != 1)
        return STATUS_OK;
    const char *open = strchr(opening, (char)token->op);
    const char *close = strchr(closing, (char)token->op);
    if (open) {
        if (brackets->count == PARSE_DEPTH_LIMIT)
            return jinja_report(lexer->report, TEMPLATE_PROBLEM_LIMIT, token->at,
                                "brackets nested more than %u deep", PARSE_DEPTH_LIMIT);
        brackets->open[brackets->count++] = closing[open - opening];
    } else if (close) {
        if (brackets->count == 0)
            return jinja_report(lexer->report, TEMPLATE_PROBLEM_SYNTAX, token->at,
                                "unexpected '%c'", *close);
        char expected = brackets->open[--brackets->count];
        if (expected != *close)
            return jinja_report(lexer->report, TEMPLATE_PROBLEM_SYNTAX, token->at,
                                "unexpected '%c', expected '%c'", *close, expected);
    }
    return STATUS_OK;
}

/* True if the tag ends here; goes past its end and what that takes. */
static bool lex_end(struct lexer *lexer, enum token_kind end)
{
    const char *mark = end == TOKEN_OUTPUT_END ? "}}" : "%}";
    uint32_t at = lexer->at;
    char sign = byte_at(lexer, at);
    if (sign != '-' && !(sign == '+' && end == TOKEN_TAG_END))
        sign = '\0';
    at += sign != '\0';
    if (byte_at(lexer, at) != mark[0] || byte_at(lexer, at + 1) != mark[1])
        return false;
    lexer->at = at + 2;
    uint32_t step;
    if (sign == '-')
        while ((step = jinja_space_at(lexer->source + lexer->at, lexer->length - lexer->at)) > 0)
            lexer->at += step;
    else if (sign == '\0' && end == TOKEN_TAG_END && byte_at(lexer, lexer->at) == '\n')
        lexer->at++;
    return true;
}

static enum status lex_one(struct lexer *lexer)
{
    char byte = lexer->source[lexer->at];
    if (is_digit(byte))
        return lex_number(lexer);
    uint32_t end = skip_name(lexer, lexer->at);
    if (end > lexer->at) {
        struct token token = { .kind = TOKEN_NAME, .at = lexer->at, .length = end - lexer->at };
        lexer->at = end;
        return jinja_lex_add(lexer, token);
    }
    if (byte == '\'' || byte == '"')
        return jinja_lex_string(lexer);
    return lex_operator(lexer);
}

enum status jinja_lex_inside(struct lexer *lexer, enum token_kind end)
{
    struct brackets brackets = { .count = 0 };
    while (lexer->at < lexer->length) {
        uint32_t begin = lexer->at;
        if (brackets.count == 0 && lex_end(lexer, end))
            return jinja_lex_add(lexer, (struct token){ .kind = (uint8_t)end, .at = begin });
        uint32_t space = jinja_space_at(lexer->source + begin, lexer->length - begin);
        if (space) {
            lexer->at += space;
            continue;
        }
        TRY(lex_one(lexer));
        TRY(follow_brackets(lexer, &brackets));
    }
    return STATUS_OK; /* the parser misses the end */
}
