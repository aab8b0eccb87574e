/* lexer.c - texts, comments and raw blocks, with the rules for white space around tags.
 *
 * trim_blocks: a line end directly after a tag goes. lstrip_blocks: blanks between the start of the
 * line and a tag go. A minus strips all white space of the text on its side; a plus switches both
 * rules off for its tag. */
#include "template/lexer.h"
#include "template/strings.h"

#include <string.h>

/* The sign next to the delimiter that begins at `at`: '-', '+' or 0. */
static char sign_at(const struct lexer *lexer, uint32_t at)
{
    char sign = at < lexer->length ? lexer->source[at] : '\0';
    return sign == '-' || sign == '+' ? sign : '\0';
}

static uint32_t skip_space(const struct lexer *lexer, uint32_t at)
{
    uint32_t step;
    while ((step = jinja_space_at(lexer->source + at, lexer->length - at)) > 0)
        at += step;
    return at;
}

static bool word_at(const struct lexer *lexer, uint32_t at, const char *word)
{
    size_t length = strlen(word);
    return lexer->length - at >= length && memcmp(lexer->source + at, word, length) == 0;
}

/* Where the text before a tag ends, given the sign of the tag. */
static uint32_t text_end(const struct lexer *lexer, uint32_t begin, uint32_t end, char sign,
                         bool is_output, bool line_starts)
{
    const char *source = lexer->source;
    if (sign == '-') {
        uint32_t kept = begin;
        for (uint32_t at = begin; at < end;) {
            uint32_t step = jinja_space_at(source + at, end - at);
            at += step ? step : (uint32_t)text_utf8_length(source + at, end - at);
            if (!step)
                kept = at;
        }
        return kept;
    }
    if (sign == '+' || is_output)
        return end;
    uint32_t line = end;
    while (line > begin && source[line - 1] != '\n')
        line--;
    if (line == begin && !line_starts)
        return end;
    uint32_t at = line, step;
    while (at < end && (step = jinja_space_at(source + at, end - at)) > 0)
        at += step;
    return at == end ? line : end;
}

static enum status add_text(struct lexer *lexer, uint32_t begin, uint32_t end)
{
    if (begin == end)
        return STATUS_OK;
    return jinja_lex_add(lexer,
                         (struct token){ .kind = TOKEN_TEXT, .at = begin, .length = end - begin });
}

/* After "%}" or "#}" at lexer->at (a sign before it already read): what else goes with it. */
static void after_tag(struct lexer *lexer, char sign)
{
    if (sign == '-')
        lexer->at = skip_space(lexer, lexer->at);
    else if (sign != '+' && lexer->at < lexer->length && lexer->source[lexer->at] == '\n')
        lexer->at++;
}

/* lexer->at is after "{#" and its sign. */
static enum status skip_comment(struct lexer *lexer, uint32_t begin)
{
    for (uint32_t at = lexer->at; at + 1 < lexer->length; at++) {
        if (lexer->source[at] != '#' || lexer->source[at + 1] != '}')
            continue;
        char sign = at > lexer->at ? sign_at(lexer, at - 1) : '\0';
        lexer->at = at + 2;
        after_tag(lexer, sign);
        return STATUS_OK;
    }
    return jinja_report(lexer->report, TEMPLATE_PROBLEM_SYNTAX, begin,
                        "Missing end of comment tag");
}

/* True if {% raw %} or {% endraw %} (word) begins at `at`; *ret_end is after its "%}", *ret_sign
 * that of its end. */
static bool raw_tag(const struct lexer *lexer, uint32_t at, const char *word, bool plus_ends,
                    uint32_t *ret_end, char *ret_sign)
{
    if (!word_at(lexer, at, "{%"))
        return false;
    at += 2;
    at += sign_at(lexer, at) != '\0';
    at = skip_space(lexer, at);
    if (!word_at(lexer, at, word))
        return false;
    at = skip_space(lexer, at + (uint32_t)strlen(word));
    *ret_sign = sign_at(lexer, at);
    if (*ret_sign == '+' && !plus_ends)
        return false;
    at += *ret_sign != '\0';
    if (!word_at(lexer, at, "%}"))
        return false;
    *ret_end = at + 2;
    return true;
}

/* lexer->at is after {% raw %}. */
static enum status raw_text(struct lexer *lexer, uint32_t begin)
{
    uint32_t end;
    char sign;
    for (uint32_t at = lexer->at; at < lexer->length; at++) {
        if (lexer->source[at] != '{' || !raw_tag(lexer, at, "endraw", true, &end, &sign))
            continue;
        TRY(add_text(lexer, lexer->at,
                     text_end(lexer, lexer->at, at, sign_at(lexer, at + 2), false,
                              lexer->source[lexer->at - 1] == '\n')));
        lexer->at = end;
        after_tag(lexer, sign);
        return STATUS_OK;
    }
    return jinja_report(lexer->report, TEMPLATE_PROBLEM_SYNTAX, begin,
                        "Missing end of raw directive");
}

static uint32_t find_delimiter(const struct lexer *lexer, uint32_t at)
{
    while (at + 1 < lexer->length) {
        const char *brace = memchr(lexer->source + at, '{', lexer->length - at - 1);
        if (!brace)
            break;
        if (brace[1] == '{' || brace[1] == '%' || brace[1] == '#')
            return (uint32_t)(brace - lexer->source);
        at = (uint32_t)(brace - lexer->source) + 1;
    }
    return lexer->length;
}

/* A tag, comment or raw block that begins at `begin`. */
static enum status lex_delimiter(struct lexer *lexer, uint32_t begin, char sign)
{
    char what = lexer->source[begin + 1], raw_sign;
    uint32_t raw_end;
    if (what == '%' && raw_tag(lexer, begin, "raw", false, &raw_end, &raw_sign)) {
        lexer->at = raw_sign == '-' ? skip_space(lexer, raw_end) : raw_end;
        return raw_text(lexer, begin);
    }
    lexer->at = begin + 2 + (sign != '\0');
    if (what == '#')
        return skip_comment(lexer, begin);
    struct token token = { .kind = what == '{' ? TOKEN_OUTPUT_BEGIN : TOKEN_TAG_BEGIN,
                           .at = begin,
                           .length = 2 };
    TRY(jinja_lex_add(lexer, token));
    return jinja_lex_inside(lexer, what == '{' ? TOKEN_OUTPUT_END : TOKEN_TAG_END);
}

enum status jinja_lex(struct lexer *lexer)
{
    bool line_starts = true;
    while (lexer->at < lexer->length) {
        uint32_t begin = lexer->at;
        uint32_t end = find_delimiter(lexer, begin);
        if (end == lexer->length) {
            TRY(add_text(lexer, begin, end));
            break;
        }
        char sign = sign_at(lexer, end + 2);
        bool is_output = lexer->source[end + 1] == '{';
        TRY(add_text(lexer, begin, text_end(lexer, begin, end, sign, is_output, line_starts)));
        TRY(lex_delimiter(lexer, end, sign));
        line_starts = lexer->source[lexer->at - 1] == '\n';
    }
    return jinja_lex_add(lexer, (struct token){ .kind = TOKEN_END, .at = lexer->length });
}
