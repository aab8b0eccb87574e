/* vocab.c - the table of tokens: texts, scores, types, and look-up by text.
 *
 * If two tokens have the same text, encoding gives the later one; both can be decoded. */
#include "tokenizer/tokenizer_impl.h"

#include "base/array.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define KEY_TOKENS "tokenizer.ggml.tokens"
#define KEY_SCORES "tokenizer.ggml.scores"
#define KEY_TYPES "tokenizer.ggml.token_type"

/* ---- From text to id ------------------------------------------------------------------------ */

static bool is_text(const void *owner, uint32_t index, const void *key)
{
    const struct tokenizer *tokenizer = owner;
    return text_view_equal(tokenizer->symbols[index].text, *(const struct text_view *)key);
}

uint32_t tokenizer_symbol_find(const struct tokenizer *tokenizer, struct text_view text)
{
    uint32_t hash = tokenizer_map_hash(&tokenizer->symbol_by_text, text.bytes, text.length);
    const struct tokenizer_map_slot *slot = tokenizer_map_find(&tokenizer->symbol_by_text, hash,
                                                               is_text, tokenizer, &text);
    return slot ? slot->index_plus_one - 1 : TOKENIZER_NO_ID;
}

uint32_t tokenizer_token_find(const struct tokenizer *tokenizer, struct text_view text)
{
    uint32_t id = tokenizer_symbol_find(tokenizer, text);
    return id < tokenizer->info.token_count ? id : TOKENIZER_NO_ID;
}

bool tokenizer_is_plain(const struct tokenizer *tokenizer, uint32_t id)
{
    if (id >= tokenizer->info.token_count)
        return false;
    uint8_t type = tokenizer->symbols[id].type;
    return type != TOKENIZER_CONTROL && type != TOKENIZER_UNKNOWN;
}

enum status tokenizer_symbol_intern(struct tokenizer *tokenizer, struct text_view text,
                                    uint32_t *ret_id, struct error *err)
{
    uint32_t id = tokenizer_symbol_find(tokenizer, text);
    if (id != TOKENIZER_NO_ID) {
        *ret_id = id;
        return STATUS_OK;
    }
    struct tokenizer_symbol_text *symbols = array_reserve(
        tokenizer->symbols, tokenizer->symbol_count, &tokenizer->symbol_capacity, sizeof(*symbols));
    if (symbols)
        tokenizer->symbols = symbols;
    uint32_t hash = tokenizer_map_hash(&tokenizer->symbol_by_text, text.bytes, text.length);
    if (!symbols ||
        !tokenizer_map_add(&tokenizer->symbol_by_text, hash, (uint32_t)tokenizer->symbol_count))
        return error_set(err, STATUS_NO_MEMORY, "no memory for the pieces of a tokenizer");
    symbols[tokenizer->symbol_count] = (struct tokenizer_symbol_text){ .text = text,
                                                                       .type = TOKENIZER_NORMAL };
    *ret_id = (uint32_t)tokenizer->symbol_count++;
    return STATUS_OK;
}

/* ---- Tokens --------------------------------------------------------------------------------- */

static enum status check_tokens(const struct gguf_file *file, const struct gguf_value *tokens,
                                struct error *err)
{
    if (!tokens)
        return error_set(err, STATUS_NOT_FOUND,
                         "%s: " KEY_TOKENS ": expected an array of strings, found no such key",
                         gguf_path(file));
    if (tokens->type != GGUF_ARRAY || tokens->element_type != GGUF_STRING)
        return error_set(err, STATUS_BAD_FILE,
                         "%s: " KEY_TOKENS ": expected an array of strings, found %s%s",
                         gguf_path(file), tokens->type == GGUF_ARRAY ? "an array of " : "",
                         gguf_type_name(tokens->element_type));
    if (tokens->count == 0)
        return error_set(err, STATUS_BAD_FILE,
                         "%s: " KEY_TOKENS ": expected at least one token, found none",
                         gguf_path(file));
    if (tokens->count > TOKENIZER_TOKEN_LIMIT)
        return error_set(err, STATUS_LIMIT,
                         "%s: " KEY_TOKENS ": expected at most %u tokens, found %" PRIu64,
                         gguf_path(file), TOKENIZER_TOKEN_LIMIT, tokens->count);
    return STATUS_OK;
}

static enum status add_token(struct tokenizer *tokenizer, const struct gguf_file *file,
                             struct text_view text, struct error *err)
{
    uint32_t id = (uint32_t)tokenizer->symbol_count++;
    tokenizer->symbols[id] = (struct tokenizer_symbol_text){ .text = text,
                                                             .type = TOKENIZER_NORMAL };
    if (text.length > TOKENIZER_TOKEN_LIMIT_BYTES)
        return error_set(err, STATUS_LIMIT,
                         "%s: " KEY_TOKENS "[%" PRIu32 "]: expected at most %u bytes, found %zu",
                         gguf_path(file), id, TOKENIZER_TOKEN_LIMIT_BYTES, text.length);
    if (text.length > tokenizer->token_longest_bytes)
        tokenizer->token_longest_bytes = text.length;
    uint32_t hash = tokenizer_map_hash(&tokenizer->symbol_by_text, text.bytes, text.length);
    struct tokenizer_map_slot *slot = tokenizer_map_find(&tokenizer->symbol_by_text, hash, is_text,
                                                         tokenizer, &text);
    if (slot)
        slot->index_plus_one = id + 1;
    else if (!tokenizer_map_add(&tokenizer->symbol_by_text, hash, id))
        return error_set(err, STATUS_NO_MEMORY, "no memory for the tokens of %s", gguf_path(file));
    return STATUS_OK;
}

static enum status load_tokens(struct tokenizer *tokenizer, const struct gguf_file *file,
                               struct error *err)
{
    const struct gguf_value *tokens = gguf_find(file, KEY_TOKENS);
    TRY(check_tokens(file, tokens, err));
    tokenizer->symbols = calloc((size_t)tokens->count, sizeof(*tokenizer->symbols));
    if (!tokenizer->symbols)
        return error_set(err, STATUS_NO_MEMORY, "no memory for %" PRIu64 " tokens of %s",
                         tokens->count, gguf_path(file));
    tokenizer->symbol_capacity = (size_t)tokens->count;
    tokenizer->info.token_count = (uint32_t)tokens->count;
    struct gguf_strings strings = gguf_strings_of(tokens);
    struct text_view text;
    while (gguf_strings_next(&strings, &text))
        TRY(add_token(tokenizer, file, text, err));
    if (tokenizer->symbol_count != tokens->count)
        return error_set(err, STATUS_BAD_FILE,
                         "%s: " KEY_TOKENS ": expected %" PRIu64 " strings, found %zu; the file "
                         "changed while it was read",
                         gguf_path(file), tokens->count, tokenizer->symbol_count);
    return STATUS_OK;
}

/* ---- Scores and types ----------------------------------------------------------------------- */

/* An array with one number per token. */
static enum status check_numbers(const struct tokenizer *tokenizer, const struct gguf_file *file,
                                 const char *key, const struct gguf_value *value, bool whole,
                                 struct error *err)
{
    double number;
    int64_t integer;
    if (value->type != GGUF_ARRAY || value->count != tokenizer->info.token_count ||
        !(whole ? gguf_value_i64(value, 0, &integer) : gguf_value_f64(value, 0, &number)))
        return error_set(err, STATUS_BAD_FILE,
                         "%s: %s: expected an array of %" PRIu32
                         " %s, one per token, found %" PRIu64 " of type %s",
                         gguf_path(file), key, tokenizer->info.token_count,
                         whole ? "whole numbers" : "numbers", value->count,
                         gguf_type_name(value->element_type));
    return STATUS_OK;
}

static enum status load_scores(struct tokenizer *tokenizer, const struct gguf_file *file,
                               struct error *err)
{
    const struct gguf_value *scores = gguf_find(file, KEY_SCORES);
    if (!scores)
        return error_set(err, STATUS_NOT_FOUND,
                         "%s: " KEY_SCORES ": expected an array of %" PRIu32
                         " numbers, found no such key",
                         gguf_path(file), tokenizer->info.token_count);
    TRY(check_numbers(tokenizer, file, KEY_SCORES, scores, false, err));
    for (uint32_t i = 0; i < tokenizer->info.token_count; i++) {
        double score = 0;
        if (!gguf_value_f64(scores, i, &score) || isnan(score))
            return error_set(err, STATUS_BAD_FILE,
                             "%s: " KEY_SCORES "[%" PRIu32 "]: expected a number, found %g",
                             gguf_path(file), i, score);
        tokenizer->symbols[i].score = (float)score;
    }
    return STATUS_OK;
}

static enum status load_types(struct tokenizer *tokenizer, const struct gguf_file *file,
                              struct error *err)
{
    const struct gguf_value *types = gguf_find(file, KEY_TYPES);
    bool falls_back = tokenizer->info.kind != TOKENIZER_BYTE_LEVEL;
    if (types)
        TRY(check_numbers(tokenizer, file, KEY_TYPES, types, true, err));
    for (uint32_t i = 0; i < tokenizer->info.token_count; i++) {
        struct tokenizer_symbol_text *token = &tokenizer->symbols[i];
        bool is_byte = tokenizer_byte_of(token->text) >= 0;
        int64_t type = falls_back && is_byte ? TOKENIZER_BYTE : TOKENIZER_NORMAL;
        if (types && (!gguf_value_i64(types, i, &type) || type < 0 || type >= TOKENIZER_TYPE_COUNT))
            return error_set(err, STATUS_BAD_FILE,
                             "%s: " KEY_TYPES "[%" PRIu32 "]: expected 0 to %d, found %" PRId64,
                             gguf_path(file), i, TOKENIZER_TYPE_COUNT - 1, type);
        if (falls_back && type == TOKENIZER_BYTE && !is_byte) {
            char shown[64];
            return error_set(err, STATUS_BAD_FILE,
                             "%s: " KEY_TOKENS "[%" PRIu32 "]: expected a byte token like <0x0A> "
                             "(its token_type is 6), found '%s'",
                             gguf_path(file), i, text_printable(token->text, shown, sizeof(shown)));
        }
        token->type = (uint8_t)type;
    }
    return STATUS_OK;
}

enum status tokenizer_vocab_load(struct tokenizer *tokenizer, const struct gguf_file *file,
                                 struct error *err)
{
    TRY(load_tokens(tokenizer, file, err));
    TRY(load_types(tokenizer, file, err));
    if (tokenizer->info.kind == TOKENIZER_SENTENCEPIECE)
        TRY(load_scores(tokenizer, file, err));
    return STATUS_OK;
}

/* ---- What is known of a token --------------------------------------------------------------- */

struct text_view tokenizer_token_text(const struct tokenizer *tokenizer, uint32_t id)
{
    ASSERT(id < tokenizer->info.token_count);
    return tokenizer->symbols[id].text;
}

enum tokenizer_type tokenizer_token_type(const struct tokenizer *tokenizer, uint32_t id)
{
    ASSERT(id < tokenizer->info.token_count);
    return (enum tokenizer_type)tokenizer->symbols[id].type;
}
