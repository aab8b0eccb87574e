/* source.c - see source.h. */
#include "grammar/source.h"

#include "grammar/grammar.h"

#include <stdio.h>
#include <string.h>

static uint32_t decode(const struct source *source, size_t *ret_length)
{
    const uint8_t *b = (const uint8_t *)source->text.bytes + source->at;
    size_t left = source->text.length - source->at;
    *ret_length = text_utf8_length((const char *)b, left);
    switch (*ret_length) {
    case 2:
        return (uint32_t)(b[0] & 0x1F) << 6 | (b[1] & 0x3F);
    case 3:
        return (uint32_t)(b[0] & 0x0F) << 12 | (uint32_t)(b[1] & 0x3F) << 6 | (b[2] & 0x3F);
    case 4:
        return (uint32_t)(b[0] & 0x07) << 18 | (uint32_t)(b[1] & 0x3F) << 12 |
               (uint32_t)(b[2] & 0x3F) << 6 | (b[3] & 0x3F);
    default:
        *ret_length = 1;
        return b[0];
    }
}

uint32_t source_peek(const struct source *source)
{
    size_t length;
    return source->at < source->text.length ? decode(source, &length) : SOURCE_END;
}

uint32_t source_take(struct source *source)
{
    size_t length;
    if (source->at >= source->text.length)
        return SOURCE_END;
    uint32_t character = decode(source, &length);
    source->at += length;
    return character;
}

bool source_skip(struct source *source, const char *zero_terminated)
{
    size_t length = strlen(zero_terminated);
    if (source->text.length - source->at < length ||
        memcmp(source->text.bytes + source->at, zero_terminated, length) != 0)
        return false;
    source->at += length;
    return true;
}

/* ---- Errors --------------------------------------------------------------------------------- */

static void find_place(const struct source *source, size_t at, size_t *ret_line, size_t *ret_column)
{
    size_t line = 1, column = 1;
    for (size_t i = 0; i < at && i < source->text.length; i++) {
        uint8_t byte = (uint8_t)source->text.bytes[i];
        if (byte == '\n') {
            line++;
            column = 1;
        } else if ((byte & 0xC0) != 0x80) {
            column++;
        }
    }
    *ret_line = line;
    *ret_column = column;
}

enum status source_wrap(const struct source *source, size_t at, struct error *err)
{
    size_t line, column;
    find_place(source, at, &line, &column);
    return error_wrap(err, "%.200s:%zu:%zu", source->name, line, column);
}

void source_fail_at(const struct source *source, size_t at, struct error *err, const char *file,
                    int line, const char *format, ...)
{
    char expected[256], found[32] = "the end";
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(expected, sizeof(expected), format, arguments);
    va_end(arguments);
    if (at < source->text.length) {
        char shown[16];
        size_t length = text_utf8_length(source->text.bytes + at, source->text.length - at);
        struct text_view view = { source->text.bytes + at, length ? length : 1 };
        if (view.bytes[0] == '\n')
            snprintf(found, sizeof(found), "the end of the line");
        else
            snprintf(found, sizeof(found), "'%s'", text_printable(view, shown, sizeof(shown)));
    }
    error_set_at(err, STATUS_USAGE, file, line, "%s, found %s", expected, found);
    (void)source_wrap(source, at, err);
}

enum status source_check(struct source *source, struct error *err)
{
    if (source->text.length > GRAMMAR_TEXT_LIMIT_BYTES)
        return error_set(err, STATUS_LIMIT, "%s: expected at most %u bytes, found %zu",
                         source->name, GRAMMAR_TEXT_LIMIT_BYTES, source->text.length);
    for (size_t at = 0; at < source->text.length;) {
        size_t length = text_utf8_length(source->text.bytes + at, source->text.length - at);
        if (!length)
            return source_fail(source, at, err, "expected UTF-8");
        at += length;
    }
    return STATUS_OK;
}

/* ---- Numbers -------------------------------------------------------------------------------- */

enum status source_number(struct source *source, uint32_t limit, uint32_t *ret, struct error *err)
{
    size_t start = source->at;
    uint64_t number = 0;
    while (source_peek(source) >= '0' && source_peek(source) <= '9' && number <= limit)
        number = 10 * number + (source_take(source) - '0');
    if (source->at == start)
        return source_fail(source, start, err, "expected a number");
    if (number > limit)
        return source_fail(source, start, err, "expected a number up to %u", limit);
    *ret = (uint32_t)number;
    return STATUS_OK;
}

enum status source_hex(struct source *source, unsigned digits, uint32_t *ret, struct error *err)
{
    uint32_t number = 0;
    for (unsigned i = 0; i < digits; i++) {
        uint32_t c = source_peek(source);
        bool is_digit = c >= '0' && c <= '9';
        bool is_letter = (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
        if (!is_digit && !is_letter)
            return source_fail(source, source->at, err, "expected %u hexadecimal digits", digits);
        number = 16 * number + (is_digit ? c - '0' : (c | 0x20) - 'a' + 10);
        source_take(source);
    }
    *ret = number;
    return STATUS_OK;
}
