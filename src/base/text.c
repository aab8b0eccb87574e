/* text.c - see text.h. */
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Views ---------------------------------------------------------------------------------- */

struct text_view text_view_of(const char *zero_terminated)
{
    return (struct text_view){ zero_terminated, strlen(zero_terminated) };
}

bool text_view_equal(struct text_view a, struct text_view b)
{
    return text_view_compare(a, b) == 0;
}

bool text_view_is(struct text_view view, const char *zero_terminated)
{
    return text_view_equal(view, text_view_of(zero_terminated));
}

int text_view_compare(struct text_view a, struct text_view b)
{
    if (a.length != b.length)
        return a.length < b.length ? -1 : 1;
    return a.length ? memcmp(a.bytes, b.bytes, a.length) : 0;
}

/* ---- Growable text -------------------------------------------------------------------------- */

void text_init(struct text *text)
{
    *text = (struct text){ 0 };
}

void text_release(struct text *text)
{
    free(text->bytes);
    text_init(text);
}

void text_clear(struct text *text)
{
    text->length = 0;
    if (text->bytes)
        text->bytes[0] = '\0';
}

/* Room for `more` bytes and the final NUL. */
static bool reserve(struct text *text, size_t more)
{
    if (text->failed)
        return false;
    if (more < text->capacity - text->length)
        return true;
    size_t capacity = text->capacity ? text->capacity : 64;
    while (capacity - text->length <= more) {
        if (capacity > SIZE_MAX / 2) {
            text->failed = true;
            return false;
        }
        capacity *= 2;
    }
    char *bytes = realloc(text->bytes, capacity);
    if (!bytes) {
        text->failed = true;
        return false;
    }
    text->bytes = bytes;
    text->capacity = capacity;
    return true;
}

void text_add_bytes(struct text *text, const void *bytes, size_t length)
{
    if (!reserve(text, length))
        return;
    if (length)
        memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
}

void text_add(struct text *text, const char *zero_terminated)
{
    text_add_bytes(text, zero_terminated, strlen(zero_terminated));
}

size_t text_width(const char *zero_terminated)
{
    size_t count = 0;
    for (const char *at = zero_terminated; *at; at++)
        count += ((unsigned char)*at & 0xC0) != 0x80; /* all but the bytes that continue one */
    return count;
}

void text_add_fill(struct text *text, char byte, size_t count)
{
    if (!reserve(text, count))
        return;
    memset(text->bytes + text->length, byte, count);
    text->length += count;
    text->bytes[text->length] = '\0';
}

void text_addf_va(struct text *text, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int wanted = vsnprintf(NULL, 0, format, arguments);
    if (wanted < 0)
        text->failed = true;
    else if (reserve(text, (size_t)wanted)) {
        vsnprintf(text->bytes + text->length, (size_t)wanted + 1, format, again);
        text->length += (size_t)wanted;
    }
    va_end(again);
}

void text_addf(struct text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    text_addf_va(text, format, arguments);
    va_end(arguments);
}

const char *text_get(const struct text *text)
{
    return text->bytes ? text->bytes : "";
}

/* ---- Bytes from outside, made safe to show -------------------------------------------------- */

size_t text_utf8_length(const char *bytes, size_t available)
{
    const unsigned char *b = (const unsigned char *)bytes;
    if (available == 0)
        return 0;
    if (b[0] < 0x80)
        return 1;
    size_t length = b[0] >= 0xF0 ? 4 : b[0] >= 0xE0 ? 3 : b[0] >= 0xC2 ? 2 : 0;
    if (length == 0 || length > available || b[0] > 0xF4)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((b[i] & 0xC0) != 0x80)
            return 0;
    /* Overlong forms, surrogates, past U+10FFFF. */
    if ((b[0] == 0xE0 && b[1] < 0xA0) || (b[0] == 0xED && b[1] > 0x9F) ||
        (b[0] == 0xF0 && b[1] < 0x90) || (b[0] == 0xF4 && b[1] > 0x8F))
        return 0;
    return length;
}

/* What a terminal or a browser obeys instead of showing it: text with it reads as other text. */
static const struct {
    uint32_t first, last;
} obeyed[] = {
    { 0x00, 0x1F },       /* C0 controls */
    { 0x7F, 0x9F },       /* DEL and C1 controls */
    { 0x061C, 0x061C },   /* Arabic letter mark */
    { 0x200B, 0x200F },   /* zero width; marks of direction */
    { 0x2028, 0x202E },   /* separators of lines; embeddings and overrides of direction */
    { 0x2060, 0x206F },   /* word joiner, invisible operators, isolates of direction */
    { 0xFEFF, 0xFEFF },   /* byte order mark */
    { 0xE0000, 0xE007F }, /* tags */
};

/* bytes: a valid UTF-8 character of that length. */
static bool is_obeyed(const char *bytes, size_t length)
{
    const unsigned char *b = (const unsigned char *)bytes;
    uint32_t character = length == 1 ? b[0] : b[0] & (0xFFu >> (length + 1));
    for (size_t i = 1; i < length; i++)
        character = character << 6 | (b[i] & 0x3Fu);
    for (size_t i = 0; i < COUNT_OF(obeyed); i++)
        if (character >= obeyed[i].first && character <= obeyed[i].last)
            return true;
    return false;
}

void text_add_printable(struct text *text, struct text_view view, size_t limit)
{
    size_t at = 0;
    while (at < view.length && at < limit) {
        size_t length = text_utf8_length(view.bytes + at, view.length - at);
        if (length && !is_obeyed(view.bytes + at, length)) {
            text_add_bytes(text, view.bytes + at, length);
            at += length;
            continue;
        }
        text_addf(text, "\\x%02X", (unsigned)(unsigned char)view.bytes[at]);
        at++;
    }
    if (at < view.length)
        text_add(text, "...");
}

const char *text_printable(struct text_view view, char *buffer, size_t buffer_bytes)
{
    ASSERT(buffer_bytes >= 8);
    size_t used = 0;
    size_t at = 0;
    while (at < view.length) {
        size_t length = text_utf8_length(view.bytes + at, view.length - at);
        bool plain = length && !is_obeyed(view.bytes + at, length);
        size_t needed = plain ? length : 4;
        /* Always leave room for "..." and the end. */
        if (used + needed + 4 > buffer_bytes) {
            memcpy(buffer + used, "...", 3);
            used += 3;
            break;
        }
        if (plain) {
            memcpy(buffer + used, view.bytes + at, length);
            at += length;
        } else {
            snprintf(buffer + used, 5, "\\x%02X", (unsigned)(unsigned char)view.bytes[at]);
            at++;
        }
        used += needed;
    }
    buffer[used] = '\0';
    return buffer;
}

/* ---- Numbers for people --------------------------------------------------------------------- */

const char *text_plural(uint64_t count, const char *one, const char *many)
{
    return count == 1 ? one : many;
}

const char *text_bytes(uint64_t bytes, char *buffer)
{
    static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    if (bytes < 1024) {
        snprintf(buffer, TEXT_BYTES_CAPACITY, "%u %s", (unsigned)bytes,
                 text_plural(bytes, "byte", "bytes"));
        return buffer;
    }
    double value = (double)bytes / 1024.0;
    size_t unit = 0;
    /* 1023.995 would print as "1024.00". */
    while (value >= 1023.995 && unit + 1 < COUNT_OF(units)) {
        value /= 1024.0;
        unit++;
    }
    snprintf(buffer, TEXT_BYTES_CAPACITY, "%.2f %s", value, units[unit]);
    return buffer;
}

const char *text_count(uint64_t count, char *buffer)
{
    static const char units[] = { 'K', 'M', 'B', 'T' };
    if (count < 1000) {
        snprintf(buffer, TEXT_BYTES_CAPACITY, "%u", (unsigned)count);
        return buffer;
    }
    double value = (double)count / 1000.0;
    size_t unit = 0;
    /* 999.995 would print as "1000.00". */
    while (value >= 999.995 && unit + 1 < COUNT_OF(units)) {
        value /= 1000.0;
        unit++;
    }
    snprintf(buffer, TEXT_BYTES_CAPACITY, "%.2f%c", value, units[unit]);
    return buffer;
}
