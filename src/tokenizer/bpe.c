/* bpe.c - byte-level BPE: the bytes of a piece merge by the ranked pairs of the file.
 *
 * Pieces are compared as numbers. Every text that occurs in a merge is a symbol, most of them
 * tokens, and a merge is a row (left, right, result). So merging never compares texts. */
#include "tokenizer/tokenizer_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define KEY_MERGES "tokenizer.ggml.merges"

/* ---- Merges --------------------------------------------------------------------------------- */

static bool is_pair(const void *owner, uint32_t index, const void *key)
{
    const struct tokenizer *tokenizer = owner;
    const struct tokenizer_pair *wanted = key;
    const struct tokenizer_pair *pair = &tokenizer->pairs[index];
    return pair->left == wanted->left && pair->right == wanted->right;
}

static uint32_t pair_hash(const struct tokenizer *tokenizer, uint32_t left, uint32_t right)
{
    uint32_t both[2] = { left, right };
    return tokenizer_map_hash(&tokenizer->pair_map, both, sizeof(both));
}

/* The symbol of two joined texts. The text is stored only if it is not a token. */
static enum status intern_joined(struct tokenizer *tokenizer, struct text_view left,
                                 struct text_view right, uint32_t *ret_id, struct error *err)
{
    /* Large enough for the texts of all merges, because the space between the two parts is left
     * out. */
    char *joined = tokenizer->joined + tokenizer->joined_bytes;
    size_t length = left.length + right.length;
    memcpy(joined, left.bytes, left.length);
    memcpy(joined + left.length, right.bytes, right.length);
    size_t symbols_before = tokenizer->symbol_count;
    TRY(tokenizer_symbol_intern(tokenizer, (struct text_view){ joined, length }, ret_id, err));
    if (tokenizer->symbol_count > symbols_before)
        tokenizer->joined_bytes += length;
    return STATUS_OK;
}

static enum status add_merge(struct tokenizer *tokenizer, const struct gguf_file *file,
                             struct text_view merge, struct error *err)
{
    uint32_t rank = (uint32_t)tokenizer->pair_count++;
    const char *space = merge.length > 1 ? memchr(merge.bytes + 1, ' ', merge.length - 1) : NULL;
    size_t left_length = space ? (size_t)(space - merge.bytes) : 0;
    if (!space || left_length + 1 == merge.length) {
        char shown[64];
        return error_set(err, STATUS_BAD_FILE,
                         "%s: " KEY_MERGES "[%" PRIu32
                         "]: expected two pieces divided by a space, found '%s'",
                         gguf_path(file), rank, text_printable(merge, shown, sizeof(shown)));
    }
    struct text_view left = { merge.bytes, left_length };
    struct text_view right = { space + 1, merge.length - left_length - 1 };
    struct tokenizer_pair *pair = &tokenizer->pairs[rank];
    TRY(tokenizer_symbol_intern(tokenizer, left, &pair->left, err));
    TRY(tokenizer_symbol_intern(tokenizer, right, &pair->right, err));
    TRY(intern_joined(tokenizer, left, right, &pair->result, err));
    uint32_t hash = pair_hash(tokenizer, pair->left, pair->right);
    /* If a pair occurs twice, the first rank counts. */
    if (!tokenizer_map_find(&tokenizer->pair_map, hash, is_pair, tokenizer, pair) &&
        !tokenizer_map_add(&tokenizer->pair_map, hash, rank))
        return error_set(err, STATUS_NO_MEMORY, "no memory for the merges of %s", gguf_path(file));
    return STATUS_OK;
}

static enum status check_merges(const struct gguf_file *file, const struct gguf_value *merges,
                                struct error *err)
{
    if (!merges)
        return error_set(err, STATUS_NOT_FOUND,
                         "%s: " KEY_MERGES ": expected an array of strings, found no such key",
                         gguf_path(file));
    /* An empty array may have any type. */
    if (merges->type != GGUF_ARRAY || (merges->count && merges->element_type != GGUF_STRING))
        return error_set(err, STATUS_BAD_FILE,
                         "%s: " KEY_MERGES ": expected an array of strings, found %s%s",
                         gguf_path(file), merges->type == GGUF_ARRAY ? "an array of " : "",
                         gguf_type_name(merges->element_type));
    if (merges->count > TOKENIZER_MERGE_LIMIT)
        return error_set(err, STATUS_LIMIT,
                         "%s: " KEY_MERGES ": expected at most %u merges, found %" PRIu64,
                         gguf_path(file), TOKENIZER_MERGE_LIMIT, merges->count);
    return STATUS_OK;
}

enum status tokenizer_merges_load(struct tokenizer *tokenizer, const struct gguf_file *file,
                                  struct error *err)
{
    const struct gguf_value *merges = gguf_find(file, KEY_MERGES);
    TRY(check_merges(file, merges, err));
    if (merges->count == 0)
        return STATUS_OK;
    tokenizer->pairs = calloc((size_t)merges->count, sizeof(*tokenizer->pairs));
    tokenizer->joined = malloc((size_t)merges->bytes);
    if (!tokenizer->pairs || !tokenizer->joined)
        return error_set(err, STATUS_NO_MEMORY, "no memory for %" PRIu64 " merges of %s",
                         merges->count, gguf_path(file));
    struct gguf_strings strings = gguf_strings_of(merges);
    struct text_view merge;
    while (gguf_strings_next(&strings, &merge))
        TRY(add_merge(tokenizer, file, merge, err));
    if (tokenizer->joined_bytes == 0) { /* in every real file */
        free(tokenizer->joined);
        tokenizer->joined = NULL;
    }
    return STATUS_OK;
}

enum status tokenizer_bpe_load(struct tokenizer *tokenizer, const struct gguf_file *file,
                               struct error *err)
{
    for (size_t byte = 0; byte < 256; byte++) {
        char *text = tokenizer->byte_texts[byte];
        size_t length = tokenizer_byte_character((uint8_t)byte, text);
        TRY(tokenizer_symbol_intern(tokenizer, (struct text_view){ text, length },
                                    &tokenizer->byte_ids[byte], err));
    }
    return tokenizer_merges_load(tokenizer, file, err);
}

/* ---- Text ----------------------------------------------------------------------------------- */

bool tokenizer_ranks_merge(const struct tokenizer *tokenizer, const char *text,
                           const struct tokenizer_symbol *left,
                           const struct tokenizer_symbol *right, struct tokenizer_heap_item *ret)
{
    (void)text;
    struct tokenizer_pair wanted = { .left = left->id, .right = right->id };
    uint32_t hash = pair_hash(tokenizer, wanted.left, wanted.right);
    const struct tokenizer_map_slot *slot = tokenizer_map_find(&tokenizer->pair_map, hash, is_pair,
                                                               tokenizer, &wanted);
    if (!slot)
        return false;
    ret->priority = slot->index_plus_one - 1;
    ret->id = tokenizer->pairs[ret->priority].result;
    return true;
}

/* The token that is exactly this piece, or TOKENIZER_NO_ID. */
static uint32_t find_whole(struct tokenizer_work *work, struct text_view piece)
{
    const struct tokenizer *tokenizer = work->tokenizer;
    if (piece.length > tokenizer->token_longest_bytes)
        return TOKENIZER_NO_ID;
    text_clear(&work->scratch);
    for (size_t i = 0; i < piece.length; i++) {
        char character[2];
        size_t length = tokenizer_byte_character((uint8_t)piece.bytes[i], character);
        text_add_bytes(&work->scratch, character, length);
    }
    if (work->scratch.failed)
        return TOKENIZER_NO_ID;
    return tokenizer_token_find(tokenizer,
                                (struct text_view){ work->scratch.bytes, work->scratch.length });
}

static enum status encode_piece(struct tokenizer_work *work, struct text_view piece,
                                struct error *err)
{
    const struct tokenizer *tokenizer = work->tokenizer;
    uint32_t whole = tokenizer->ignore_merges ? find_whole(work, piece) : TOKENIZER_NO_ID;
    if (tokenizer_is_plain(tokenizer, whole))
        return tokenizer_add_id(work, whole, err);
    work->symbol_count = 0;
    for (size_t i = 0; i < piece.length; i++)
        TRY(tokenizer_symbol_append(work, 1, tokenizer->byte_ids[(uint8_t)piece.bytes[i]], err));
    TRY(tokenizer_merge(work, piece.bytes, tokenizer_ranks_merge, err));
    for (uint32_t at = 0; at < work->symbol_count; at = work->symbols[at].next) {
        const struct tokenizer_symbol *symbol = &work->symbols[at];
        if (tokenizer_is_plain(tokenizer, symbol->id)) {
            TRY(tokenizer_add_id(work, symbol->id, err));
            continue;
        }
        /* Not a token: byte by byte. A byte that the vocabulary does not have is lost. */
        for (size_t i = 0; i < symbol->length; i++) {
            uint32_t id = tokenizer->byte_ids[(uint8_t)piece.bytes[symbol->start + i]];
            if (tokenizer_is_plain(tokenizer, id))
                TRY(tokenizer_add_id(work, id, err));
        }
    }
    return STATUS_OK;
}

static enum status encode_valid(struct tokenizer_work *work, struct text_view text,
                                struct error *err)
{
    if (text.length == 0)
        return STATUS_OK;
    TRY(tokenizer_pretokenize(work, text, err));
    for (size_t i = 0; i < work->pieces.count; i++) {
        struct tokenizer_piece piece = work->pieces.items[i];
        TRY(encode_piece(work, (struct text_view){ text.bytes + piece.start, piece.length }, err));
    }
    return STATUS_OK;
}

/* Patterns match characters, so a byte that is part of none is a piece by itself. */
enum status tokenizer_bpe_encode(struct tokenizer_work *work, struct text_view text,
                                 struct error *err)
{
    size_t start = 0, at = 0;
    while (at < text.length) {
        size_t length = text_utf8_length(text.bytes + at, text.length - at);
        if (length) {
            at += length;
            continue;
        }
        TRY(encode_valid(work, (struct text_view){ text.bytes + start, at - start }, err));
        TRY(encode_piece(work, (struct text_view){ text.bytes + at, 1 }, err));
        start = ++at;
    }
    return encode_valid(work, (struct text_view){ text.bytes + start, at - start }, err);
}
