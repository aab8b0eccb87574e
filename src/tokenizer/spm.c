/* spm.c - SentencePiece: spaces are U+2581, neighbours whose text is a token merge by highest
 * score, and a character without a token becomes its bytes. */
#include "tokenizer/tokenizer_impl.h"

#include <stdio.h>
#include <string.h>

#define SPACE_MARK "\xE2\x96\x81"

int tokenizer_byte_of(struct text_view text)
{
    static const char digits[] = "0123456789ABCDEF";
    if (text.length != 6 || memcmp(text.bytes, "<0x", 3) != 0 || text.bytes[5] != '>')
        return -1;
    const char *high = memchr(digits, text.bytes[3], 16);
    const char *low = memchr(digits, text.bytes[4], 16);
    return high && low ? (int)((high - digits) * 16 + (low - digits)) : -1;
}

void tokenizer_spm_load(struct tokenizer *tokenizer)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        char name[8], single[1] = { (char)byte };
        snprintf(name, sizeof(name), "<0x%02X>", byte);
        uint32_t id = tokenizer_token_find(tokenizer, text_view_of(name));
        if (!tokenizer_is_plain(tokenizer, id))
            id = tokenizer_token_find(tokenizer, (struct text_view){ single, 1 });
        tokenizer->byte_ids[byte] = tokenizer_is_plain(tokenizer, id) ? id : TOKENIZER_NO_ID;
    }
}

/* ---- Merging -------------------------------------------------------------------------------- */

/* The token that text may merge into, or TOKENIZER_NO_ID. The name of a byte token is not its text.
 */
static uint32_t find_text(const struct tokenizer *tokenizer, struct text_view text)
{
    if (text.length > tokenizer->token_longest_bytes)
        return TOKENIZER_NO_ID;
    uint32_t id = tokenizer_token_find(tokenizer, text);
    bool usable = tokenizer_is_plain(tokenizer, id) &&
                  tokenizer->symbols[id].type != TOKENIZER_BYTE;
    return usable ? id : TOKENIZER_NO_ID;
}

/* Maps floats to integers in the same order, the highest first. */
static uint32_t priority_of(float score)
{
    uint32_t bits;
    score += 0.0f; /* -0 and 0 are equal */
    memcpy(&bits, &score, sizeof(bits));
    return ~(bits & 0x80000000u ? ~bits : bits | 0x80000000u);
}

static bool can_merge(const struct tokenizer *tokenizer, const char *text,
                      const struct tokenizer_symbol *left, const struct tokenizer_symbol *right,
                      struct tokenizer_heap_item *ret)
{
    (void)right; /* follows left in the text */
    ret->id = find_text(tokenizer, (struct text_view){ text + left->start, ret->length });
    if (ret->id == TOKENIZER_NO_ID)
        return false;
    ret->priority = priority_of(tokenizer->symbols[ret->id].score);
    return true;
}

/* ---- Text ----------------------------------------------------------------------------------- */

void tokenizer_mark_spaces(struct text *marked, struct text_view text, bool space_prefix)
{
    text_clear(marked);
    if (space_prefix)
        text_add(marked, SPACE_MARK);
    size_t at = 0;
    while (at < text.length) {
        const char *space = memchr(text.bytes + at, ' ', text.length - at);
        size_t end = space ? (size_t)(space - text.bytes) : text.length;
        text_add_bytes(marked, text.bytes + at, end - at);
        if (space)
            text_add(marked, SPACE_MARK);
        at = end + (space != NULL);
    }
}

enum status tokenizer_add_bytes(struct tokenizer_work *work, const char *bytes, size_t count,
                                struct error *err)
{
    const struct tokenizer *tokenizer = work->tokenizer;
    for (size_t i = 0; i < count; i++) {
        if (tokenizer->byte_ids[(uint8_t)bytes[i]] != TOKENIZER_NO_ID)
            continue;
        /* Half of a character would be worse than none. */
        uint32_t unknown = tokenizer->special_ids[TOKENIZER_UNK];
        return unknown == TOKENIZER_NO_ID ? STATUS_OK : tokenizer_add_id(work, unknown, err);
    }
    for (size_t i = 0; i < count; i++)
        TRY(tokenizer_add_id(work, tokenizer->byte_ids[(uint8_t)bytes[i]], err));
    return STATUS_OK;
}

enum status tokenizer_spm_encode(struct tokenizer_work *work, struct text_view text,
                                 bool space_prefix, struct error *err)
{
    struct text *marked = &work->scratch;
    tokenizer_mark_spaces(marked, text, space_prefix);
    if (marked->failed)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a text of %zu bytes", text.length);
    work->symbol_count = 0;
    for (size_t at = 0; at < marked->length;) {
        size_t length = text_utf8_length(marked->bytes + at, marked->length - at);
        length = length ? length : 1;
        uint32_t id = find_text(work->tokenizer, (struct text_view){ marked->bytes + at, length });
        TRY(tokenizer_symbol_append(work, (uint32_t)length, id, err));
        at += length;
    }
    TRY(tokenizer_merge(work, marked->bytes, can_merge, err));
    for (uint32_t at = 0; at < work->symbol_count; at = work->symbols[at].next) {
        const struct tokenizer_symbol *symbol = &work->symbols[at];
        if (symbol->id != TOKENIZER_NO_ID)
            TRY(tokenizer_add_id(work, symbol->id, err));
        else
            TRY(tokenizer_add_bytes(work, marked->bytes + symbol->start, symbol->length, err));
    }
    return STATUS_OK;
}
