/* decode.c - turns ids back into text, whole characters only.
 *
 * A character may be spread over several tokens. Its beginning is kept until the rest arrives, or
 * until it is certain that no rest can come; only then are the bytes shown as something else than
 * text. */
#include "tokenizer/tokenizer_impl.h"

#include <inttypes.h>
#include <string.h>

#define SPACE_MARK "\xE2\x96\x81"
#define REPLACEMENT "\xEF\xBF\xBD"

/* ---- One token ------------------------------------------------------------------------------ */

static void add_spaces(struct text *text, struct text_view token)
{
    size_t start = 0;
    for (size_t at = 0; at < token.length;) {
        if (token.length - at < 3 || memcmp(token.bytes + at, SPACE_MARK, 3) != 0) {
            at++;
            continue;
        }
        text_add_bytes(text, token.bytes + start, at - start);
        text_add(text, " ");
        at += 3;
        start = at;
    }
    text_add_bytes(text, token.bytes + start, token.length - start);
}

/* Characters outside of the alphabet stay as they are. */
static void add_byte_characters(struct text *text, struct text_view token)
{
    for (size_t at = 0; at < token.length;) {
        size_t length = text_utf8_length(token.bytes + at, token.length - at);
        const uint8_t *bytes = (const uint8_t *)token.bytes + at;
        int byte = -1;
        if (length == 1)
            byte = tokenizer_character_byte(bytes[0]);
        else if (length == 2)
            byte = tokenizer_character_byte((uint32_t)(bytes[0] & 0x1F) << 6 | (bytes[1] & 0x3F));
        length = length ? length : 1;
        if (byte >= 0)
            text_add_bytes(text, &(uint8_t){ (uint8_t)byte }, 1);
        else
            text_add_bytes(text, bytes, length);
        at += length;
    }
}

void tokenizer_token_bytes(const struct tokenizer *tokenizer, uint32_t id, unsigned flags,
                           struct text *text)
{
    ASSERT(id < tokenizer->info.token_count);
    const struct tokenizer_symbol_text *token = &tokenizer->symbols[id];
    switch ((enum tokenizer_type)token->type) {
    case TOKENIZER_UNKNOWN:
    case TOKENIZER_CONTROL:
        if (flags & TOKENIZER_SHOW_SPECIAL)
            text_add_bytes(text, token->text.bytes, token->text.length);
        return;
    case TOKENIZER_USER_DEFINED:
        text_add_bytes(text, token->text.bytes, token->text.length);
        return;
    case TOKENIZER_BYTE:
        if (tokenizer->info.kind != TOKENIZER_BYTE_LEVEL) {
            text_add_bytes(text, &(uint8_t){ (uint8_t)tokenizer_byte_of(token->text) }, 1);
            return;
        }
        break;
    default:
        break;
    }
    if (tokenizer->info.kind != TOKENIZER_BYTE_LEVEL)
        add_spaces(text, token->text);
    else
        add_byte_characters(text, token->text);
}

/* ---- Characters ----------------------------------------------------------------------------- */

/* How many of the bytes, which are no whole character, could be the beginning of one. At least 1: a
 * byte that cannot begin a character stands alone. */
static size_t beginning_length(const char *bytes, size_t count)
{
    const uint8_t *b = (const uint8_t *)bytes;
    size_t whole = b[0] >= 0xF0 ? 4 : b[0] >= 0xE0 ? 3 : 2;
    if (b[0] < 0xC2 || b[0] > 0xF4 || count < 2)
        return 1;
    /* No overlong forms, no surrogates, nothing past U+10FFFF. */
    uint8_t low = b[0] == 0xE0 ? 0xA0 : b[0] == 0xF0 ? 0x90 : 0x80;
    uint8_t high = b[0] == 0xED ? 0x9F : b[0] == 0xF4 ? 0x8F : 0xBF;
    if (b[1] < low || b[1] > high)
        return 1;
    size_t length = 2;
    while (length < count && length < whole && (b[length] & 0xC0) == 0x80)
        length++;
    return length;
}

static bool can_begin(char byte)
{
    return (uint8_t)byte >= 0xC2 && (uint8_t)byte <= 0xF4;
}

static void add_broken(const struct tokenizer_decoder *decoder, const char *bytes, size_t count,
                       struct text *text)
{
    if (decoder->flags & TOKENIZER_RAW)
        text_add_bytes(text, bytes, count);
    else
        text_add(text, REPLACEMENT);
}

/* Adds the complete characters of bytes, and keeps the beginning of one at the end. */
static void add_characters(struct tokenizer_decoder *decoder, struct text_view bytes,
                           struct text *text)
{
    size_t at = 0;
    while (at < bytes.length) {
        size_t left = bytes.length - at;
        size_t length = text_utf8_length(bytes.bytes + at, left);
        if (length) {
            text_add_bytes(text, bytes.bytes + at, length);
            at += length;
            continue;
        }
        length = beginning_length(bytes.bytes + at, left);
        if (length == left && can_begin(bytes.bytes[at]))
            break;
        add_broken(decoder, bytes.bytes + at, length, text);
        at += length;
    }
    decoder->pending_bytes = bytes.length - at;
    ASSERT(decoder->pending_bytes <= sizeof(decoder->pending));
    memcpy(decoder->pending, bytes.bytes + at, decoder->pending_bytes);
}

/* ---- The decoder ---------------------------------------------------------------------------- */

void tokenizer_decoder_init(struct tokenizer_decoder *decoder, const struct tokenizer *tokenizer,
                            unsigned flags)
{
    *decoder = (struct tokenizer_decoder){ .tokenizer = tokenizer,
                                           .flags = flags,
                                           .at_start = tokenizer->info.add_space_prefix };
}

/* Encoding puts a space before text at the start and after special tokens; this removes it. */
static size_t prefix_bytes(struct tokenizer_decoder *decoder, uint32_t id)
{
    const struct tokenizer_symbol_text *token = &decoder->tokenizer->symbols[id];
    bool special = token->type == TOKENIZER_CONTROL || token->type == TOKENIZER_UNKNOWN ||
                   token->type == TOKENIZER_USER_DEFINED;
    bool at_start = decoder->at_start;
    decoder->at_start = special && decoder->tokenizer->info.add_space_prefix;
    return at_start && !special && token->type != TOKENIZER_BYTE && token->text.length >= 3 &&
                   memcmp(token->text.bytes, SPACE_MARK, 3) == 0
               ? 1
               : 0;
}

enum status tokenizer_decoder_add(struct tokenizer_decoder *decoder, uint32_t id, struct text *text,
                                  struct error *err)
{
    const struct tokenizer *tokenizer = decoder->tokenizer;
    if (id >= tokenizer->info.token_count)
        return error_set(err, STATUS_REFUSED,
                         "expected a token id below %" PRIu32 ", found %" PRIu32,
                         tokenizer->info.token_count, id);
    /* Decoding never makes a token longer, so it needs no memory of its own. */
    char bytes[sizeof(decoder->pending) + TOKENIZER_TOKEN_LIMIT_BYTES];
    size_t start = text->length;
    tokenizer_token_bytes(tokenizer, id, decoder->flags, text);
    size_t prefix = prefix_bytes(decoder, id);
    size_t count = text->length - start;
    if (text->failed)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the text of a token");
    if (count == 0)
        return STATUS_OK;
    ASSERT(count <= TOKENIZER_TOKEN_LIMIT_BYTES && prefix <= count);
    memcpy(bytes, decoder->pending, decoder->pending_bytes);
    memcpy(bytes + decoder->pending_bytes, text->bytes + start + prefix, count - prefix);
    text->length = start;
    text->bytes[start] = '\0';
    add_characters(decoder, (struct text_view){ bytes, decoder->pending_bytes + count - prefix },
                   text);
    return text->failed ? error_set(err, STATUS_NO_MEMORY, "no memory for the text of a token")
                        : STATUS_OK;
}

void tokenizer_decoder_finish(struct tokenizer_decoder *decoder, struct text *text)
{
    if (decoder->pending_bytes)
        add_broken(decoder, decoder->pending, decoder->pending_bytes, text);
    decoder->pending_bytes = 0;
    decoder->at_start = decoder->tokenizer->info.add_space_prefix;
}
