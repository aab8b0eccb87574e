/* strings.c - see strings.h. */
#include "template/strings.h"

#include <string.h>

uint32_t jinja_decode(const char *bytes, size_t available, uint32_t *ret_code)
{
    const unsigned char *at = (const unsigned char *)bytes;
    if (at[0] < 0x80) {
        *ret_code = at[0];
        return 1;
    }
    uint32_t length = at[0] >= 0xF0 ? 4 : at[0] >= 0xE0 ? 3 : 2;
    if (length > available) {
        *ret_code = 0xFFFD;
        return 1;
    }
    uint32_t code = at[0] & (0x7Fu >> length);
    for (uint32_t i = 1; i < length; i++)
        code = code << 6 | (at[i] & 0x3F);
    *ret_code = code;
    return length;
}

uint32_t jinja_encode(uint32_t code, char ret_bytes[4])
{
    if (code < 0x80) {
        ret_bytes[0] = (char)code;
        return 1;
    }
    uint32_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (uint32_t i = length - 1; i > 0; i--) {
        ret_bytes[i] = (char)(0x80 | (code & 0x3F));
        code >>= 6;
    }
    ret_bytes[0] = (char)((0xF00u >> length & 0xF0) | code);
    return length;
}

uint32_t jinja_count_characters(const char *bytes, size_t length)
{
    uint32_t count = 0;
    for (size_t i = 0; i < length; i++)
        count += ((unsigned char)bytes[i] & 0xC0) != 0x80;
    return count;
}

const struct string *jinja_string_in(struct arena *arena, const char *bytes, size_t length)
{
    struct string *string = arena_take(arena, sizeof(*string) + length);
    if (!string)
        return NULL;
    char *copy = (char *)(string + 1);
    if (length)
        memcpy(copy, bytes, length);
    *string = (struct string){ .bytes = copy,
                               .length = (uint32_t)length,
                               .characters = jinja_count_characters(bytes, length) };
    return string;
}

uint32_t jinja_offset_of(const struct string *string, uint32_t character)
{
    if (string->characters == string->length)
        return character;
    uint32_t at = 0;
    while (character > 0) {
        at++;
        while (at < string->length && ((unsigned char)string->bytes[at] & 0xC0) == 0x80)
            at++;
        character--;
    }
    return at;
}

bool jinja_text_equal(const struct string *a, const struct string *b)
{
    return a->length == b->length &&
           (a->bytes == b->bytes || memcmp(a->bytes, b->bytes, a->length) == 0);
}

bool jinja_text_is(const struct string *string, const char *zero_terminated)
{
    size_t length = strlen(zero_terminated);
    return string->length == length && memcmp(string->bytes, zero_terminated, length) == 0;
}

/* The order of UTF-8 is that of the characters. */
int jinja_text_compare(const struct string *a, const struct string *b)
{
    uint32_t length = a->length < b->length ? a->length : b->length;
    int order = length ? memcmp(a->bytes, b->bytes, length) : 0;
    return order ? order : (a->length > b->length) - (a->length < b->length);
}

int64_t jinja_find(struct text_view text, struct text_view needle, size_t at)
{
    if (needle.length == 0)
        return at <= text.length ? (int64_t)at : -1;
    while (at + needle.length <= text.length) {
        const char *first = memchr(text.bytes + at, needle.bytes[0],
                                   text.length - at - needle.length + 1);
        if (!first)
            return -1;
        at = (size_t)(first - text.bytes);
        if (memcmp(first, needle.bytes, needle.length) == 0)
            return (int64_t)at;
        at++;
    }
    return -1;
}

int64_t jinja_find_last(struct text_view text, struct text_view needle)
{
    if (needle.length > text.length)
        return -1;
    for (size_t at = text.length - needle.length + 1; at > 0; at--)
        if (needle.length == 0 || memcmp(text.bytes + at - 1, needle.bytes, needle.length) == 0)
            return (int64_t)at - 1;
    return -1;
}

/* ---- White space and strip ------------------------------------------------------------------- */

bool jinja_is_space(uint32_t code)
{
    return (code >= 0x09 && code <= 0x0D) || (code >= 0x1C && code <= 0x20) || code == 0x85 ||
           code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
           code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

uint32_t jinja_space_at(const char *bytes, uint32_t length)
{
    if (length == 0)
        return 0;
    uint32_t code;
    uint32_t step = jinja_decode(bytes, length, &code);
    return jinja_is_space(code) ? step : 0;
}

static bool goes(struct text_view character, const struct string *set)
{
    uint32_t code;
    if (set)
        return jinja_find((struct text_view){ set->bytes, set->length }, character, 0) >= 0;
    jinja_decode(character.bytes, character.length, &code);
    return jinja_is_space(code);
}

struct text_view jinja_strip(struct text_view text, const struct string *set, bool left, bool right)
{
    uint32_t code;
    while (left && text.length > 0) {
        uint32_t step = jinja_decode(text.bytes, text.length, &code);
        if (!goes((struct text_view){ text.bytes, step }, set))
            break;
        text.bytes += step;
        text.length -= step;
    }
    while (right && text.length > 0) {
        size_t begin = text.length - 1;
        while (begin > 0 && ((unsigned char)text.bytes[begin] & 0xC0) == 0x80)
            begin--;
        if (!goes((struct text_view){ text.bytes + begin, text.length - begin }, set))
            break;
        text.length = begin;
    }
    return text;
}
