/* token_string.c - string literals, with Python's escapes. */
#include "template/lexer.h"
#include "template/strings.h"

#include <string.h>

struct reader {
    struct lexer *lexer;
    const char *bytes;
    uint32_t length, at;
    struct text out;
};

static int hex_of(char byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    byte |= 0x20;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

static enum status bad_escape(struct reader *reader, const char *what)
{
    return jinja_report(reader->lexer->report, TEMPLATE_PROBLEM_SYNTAX, reader->lexer->at,
                        "a string with %s", what);
}

static enum status add_code(struct reader *reader, uint32_t code)
{
    char bytes[4];
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
        return bad_escape(reader, "an escape that is no character");
    text_add_bytes(&reader->out, bytes, jinja_encode(code, bytes));
    return STATUS_OK;
}

/* \xNN, \uNNNN and \UNNNNNNNN: exactly so many digits. */
static enum status read_hex(struct reader *reader, uint32_t digits)
{
    uint32_t code = 0;
    if (reader->length - reader->at < digits)
        return bad_escape(reader, "a cut escape");
    for (uint32_t i = 0; i < digits; i++) {
        int digit = hex_of(reader->bytes[reader->at++]);
        if (digit < 0)
            return bad_escape(reader, "a cut escape");
        code = code << 4 | (uint32_t)digit;
    }
    return add_code(reader, code);
}

static enum status read_octal(struct reader *reader, char first)
{
    uint32_t code = (uint32_t)(first - '0');
    for (int i = 0; i < 2 && reader->at < reader->length; i++) {
        char byte = reader->bytes[reader->at];
        if (byte < '0' || byte > '7')
            break;
        code = code * 8 + (uint32_t)(byte - '0');
        reader->at++;
    }
    return add_code(reader, code);
}

/* After a backslash; there is at least one more byte. */
static enum status read_escape(struct reader *reader)
{
    static const char from[] = "abfnrtv\\'\"", to[] = "\a\b\f\n\r\t\v\\'\"";
    char byte = reader->bytes[reader->at++];
    const char *simple = byte ? strchr(from, byte) : NULL;
    if (simple) {
        text_add_bytes(&reader->out, &to[simple - from], 1);
        return STATUS_OK;
    }
    switch (byte) {
    case '\n':
        return STATUS_OK;
    case 'x':
        return read_hex(reader, 2);
    case 'u':
        return read_hex(reader, 4);
    case 'U':
        return read_hex(reader, 8);
    case 'N':
        return bad_escape(reader, "a character by name (\\N), which is not supported");
    default:
        if (byte >= '0' && byte <= '7')
            return read_octal(reader, byte);
        text_add(&reader->out, "\\");
        reader->at--;
        return STATUS_OK;
    }
}

static enum status read_all(struct reader *reader)
{
    while (reader->at < reader->length) {
        const char *rest = reader->bytes + reader->at;
        const char *slash = memchr(rest, '\\', reader->length - reader->at);
        size_t plain = slash ? (size_t)(slash - rest) : reader->length - reader->at;
        text_add_bytes(&reader->out, rest, plain);
        reader->at += (uint32_t)plain + (slash ? 1 : 0);
        if (!slash)
            break;
        TRY(read_escape(reader));
    }
    return STATUS_OK;
}

enum status jinja_lex_string(struct lexer *lexer)
{
    char quote = lexer->source[lexer->at];
    uint32_t begin = lexer->at + 1, end = begin;
    while (end < lexer->length && lexer->source[end] != quote)
        end += lexer->source[end] == '\\' ? 2 : 1;
    if (end >= lexer->length)
        return jinja_report(lexer->report, TEMPLATE_PROBLEM_SYNTAX, lexer->at,
                            "unexpected char '%c', a string without end", quote);
    struct reader reader = { .lexer = lexer,
                             .bytes = lexer->source + begin,
                             .length = end - begin };
    text_init(&reader.out);
    enum status status = read_all(&reader);
    const struct string *string = NULL;
    if (!status) {
        string = jinja_string_in(&lexer->template->arena, text_get(&reader.out), reader.out.length);
        status = string && !reader.out.failed ? STATUS_OK : jinja_report_memory(lexer->report);
    }
    text_release(&reader.out);
    if (status)
        return status;
    struct token token = { .kind = TOKEN_STRING,
                           .at = lexer->at,
                           .length = end + 1 - lexer->at,
                           .value = value_string(string) };
    lexer->at = end + 1;
    return jinja_lex_add(lexer, token);
}
