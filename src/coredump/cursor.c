/* cursor.c - see cursor.h. */
#include "coredump/cursor.h"

#include <string.h>

static bool has(struct cursor *cursor, uint64_t count)
{
    if (!cursor->bad && count <= cursor->end - cursor->at)
        return true;
    cursor->bad = true;
    return false;
}

uint64_t cursor_number(struct cursor *cursor, uint64_t count)
{
    uint64_t value = 0;
    ASSERT(count <= 8);
    if (!has(cursor, count))
        return 0;
    for (uint64_t i = 0; i < count; i++)
        value |= (uint64_t)cursor->data[cursor->at + i] << 8 * i;
    cursor->at += count;
    return value;
}

/* Bits past the 64th are dropped; *ret_bits: how many the number was written with, at most 70. */
static uint64_t read_leb(struct cursor *cursor, unsigned *ret_bits, uint8_t *ret_last)
{
    uint64_t value = 0;
    unsigned bits = 0;
    uint8_t byte;
    do {
        byte = (uint8_t)cursor_number(cursor, 1);
        if (bits < 64)
            value |= (uint64_t)(byte & 0x7F) << bits;
        bits += 7;
    } while (byte & 0x80 && bits < 70);
    if (byte & 0x80)
        cursor->bad = true;
    *ret_bits = bits;
    *ret_last = byte;
    return cursor->bad ? 0 : value;
}

uint64_t cursor_unsigned(struct cursor *cursor)
{
    unsigned bits;
    uint8_t last;
    return read_leb(cursor, &bits, &last);
}

int64_t cursor_signed(struct cursor *cursor)
{
    unsigned bits;
    uint8_t last;
    uint64_t value = read_leb(cursor, &bits, &last);
    if (!cursor->bad && last & 0x40 && bits < 64)
        value |= UINT64_MAX << bits;
    return (int64_t)value;
}

void cursor_skip(struct cursor *cursor, uint64_t count)
{
    if (has(cursor, count))
        cursor->at += count;
}

struct text_view cursor_string(struct cursor *cursor)
{
    if (cursor->bad)
        return (struct text_view){ "", 0 };
    const char *text = (const char *)cursor->data + cursor->at;
    uint64_t left = cursor->end - cursor->at;
    size_t length = left ? strnlen(text, left) : 0;
    if (length == left) {
        cursor->bad = true;
        return (struct text_view){ "", 0 };
    }
    cursor->at += length + 1;
    return (struct text_view){ text, length };
}
