/* byte_text.c - the alphabet of byte-level BPE. Bytes that are printable in Latin-1 stand for
 * themselves as code points; the other 68, in order, are U+0100 and up. */
#include "tokenizer/tokenizer_impl.h"

/* The bytes that are moved: 0x00-0x20, 0x7F-0xA0, 0xAD. */
#define FIRST_RANGE 0x21u
#define SECOND_START 0x7Fu
#define SECOND_RANGE 0x22u
#define LAST_MOVED 0xADu

size_t tokenizer_byte_character(uint8_t byte, char ret[2])
{
    uint32_t code_point = byte;
    if (byte < FIRST_RANGE)
        code_point = 0x100u + byte;
    else if (byte >= SECOND_START && byte < SECOND_START + SECOND_RANGE)
        code_point = 0x100u + FIRST_RANGE + (byte - SECOND_START);
    else if (byte == LAST_MOVED)
        code_point = 0x100u + FIRST_RANGE + SECOND_RANGE;
    if (code_point < 0x80) {
        ret[0] = (char)code_point;
        return 1;
    }
    ret[0] = (char)(0xC0 | code_point >> 6);
    ret[1] = (char)(0x80 | (code_point & 0x3F));
    return 2;
}

int tokenizer_character_byte(uint32_t code_point)
{
    if (code_point >= TOKENIZER_BYTE_CHARACTERS)
        return -1;
    if (code_point >= 0x100) {
        uint32_t moved = code_point - 0x100;
        if (moved < FIRST_RANGE)
            return (int)moved;
        moved -= FIRST_RANGE;
        return moved < SECOND_RANGE ? (int)(SECOND_START + moved) : (int)LAST_MOVED;
    }
    bool moved_away = code_point < FIRST_RANGE ||
                      (code_point >= SECOND_START && code_point < SECOND_START + SECOND_RANGE) ||
                      code_point == LAST_MOVED;
    return moved_away ? -1 : (int)code_point;
}
