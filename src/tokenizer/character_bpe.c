/* character_bpe.c - BPE over characters, for Gemma 4: spaces are U+2581, and runs of newlines and
 * the lines between them merge by rank, each for itself. What is no token becomes its bytes. */
#include "tokenizer/tokenizer_impl.h"

#include <string.h>

/* The token of a whole text. The name of a byte token is not its text. */
static uint32_t usable(const struct tokenizer *tokenizer, uint32_t id)
{
    bool is_text = tokenizer_is_plain(tokenizer, id) &&
                   tokenizer->symbols[id].type != TOKENIZER_BYTE;
    return is_text ? id : TOKENIZER_NO_ID;
}

static uint32_t find_symbol(const struct tokenizer *tokenizer, struct text_view text)
{
    if (text.length > tokenizer->token_longest_bytes)
        return TOKENIZER_NO_ID;
    return tokenizer_symbol_find(tokenizer, text);
}

static enum status encode_run(struct tokenizer_work *work, struct text_view run, struct error *err)
{
    const struct tokenizer *tokenizer = work->tokenizer;
    uint32_t whole = TOKENIZER_NO_ID;
    if (run.bytes[0] == '\n') /* a run of newlines that is a token is not merged */
        whole = usable(tokenizer, find_symbol(tokenizer, run));
    if (whole != TOKENIZER_NO_ID)
        return tokenizer_add_id(work, whole, err);
    work->symbol_count = 0;
    for (size_t at = 0; at < run.length;) {
        size_t length = text_utf8_length(run.bytes + at, run.length - at);
        length = length ? length : 1;
        uint32_t id = find_symbol(tokenizer, (struct text_view){ run.bytes + at, length });
        TRY(tokenizer_symbol_append(work, (uint32_t)length, id, err));
        at += length;
    }
    TRY(tokenizer_merge(work, run.bytes, tokenizer_ranks_merge, err));
    for (uint32_t at = 0; at < work->symbol_count; at = work->symbols[at].next) {
        const struct tokenizer_symbol *symbol = &work->symbols[at];
        uint32_t id = usable(tokenizer, symbol->id);
        if (id != TOKENIZER_NO_ID)
            TRY(tokenizer_add_id(work, id, err));
        else
            TRY(tokenizer_add_bytes(work, run.bytes + symbol->start, symbol->length, err));
    }
    return STATUS_OK;
}

enum status tokenizer_character_encode(struct tokenizer_work *work, struct text_view text,
                                       struct error *err)
{
    struct text *marked = &work->scratch;
    tokenizer_mark_spaces(marked, text, work->tokenizer->info.add_space_prefix);
    if (marked->failed)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a text of %zu bytes", text.length);
    for (size_t start = 0, end; start < marked->length; start = end) {
        bool newlines = marked->bytes[start] == '\n';
        for (end = start + 1; end < marked->length; end++)
            if ((marked->bytes[end] == '\n') != newlines)
                break;
        TRY(encode_run(work, (struct text_view){ marked->bytes + start, end - start }, err));
    }
    return STATUS_OK;
}
