/* tokenizer.c - makes a tokenizer from a file, and does what all kinds share: special tokens are
 * cut out of the text, the text between them is tokenized, begin and end tokens are added. */
#include "tokenizer/tokenizer_impl.h"

#include "base/array.h"

#include <stdlib.h>

#define KEY_MODEL "tokenizer.ggml.model"

/* ---- From a file ---------------------------------------------------------------------------- */

static enum status load_kind(struct tokenizer *tokenizer, const struct gguf_file *file,
                             struct error *err)
{
    struct text_view name;
    char shown[64];
    TRY(gguf_get_text(file, KEY_MODEL, &name, err));
    if (text_view_is(name, "llama"))
        tokenizer->info.kind = TOKENIZER_SENTENCEPIECE;
    else if (text_view_is(name, "gpt2"))
        tokenizer->info.kind = TOKENIZER_BYTE_LEVEL;
    else if (text_view_is(name, "gemma4"))
        tokenizer->info.kind = TOKENIZER_CHARACTER;
    else
        return error_set(err, STATUS_UNSUPPORTED,
                         "%s: " KEY_MODEL ": expected llama (SentencePiece), gpt2 (byte-level "
                         "BPE) or gemma4 (character BPE), found '%s'",
                         gguf_path(file), text_printable(name, shown, sizeof(shown)));
    tokenizer->info.add_bos = tokenizer->info.kind != TOKENIZER_BYTE_LEVEL;
    tokenizer->info.add_space_prefix = tokenizer->info.kind == TOKENIZER_SENTENCEPIECE;
    return STATUS_OK;
}

static enum status load(struct tokenizer *tokenizer, const struct gguf_file *file,
                        struct error *err)
{
    TRY(load_kind(tokenizer, file, err));
    if (tokenizer->info.kind == TOKENIZER_BYTE_LEVEL)
        TRY(tokenizer_pretokenize_load(tokenizer, file, err));
    TRY(tokenizer_vocab_load(tokenizer, file, err));
    TRY(tokenizer_special_ids_load(tokenizer, file, err));
    TRY(tokenizer_special_load(tokenizer, err));
    if (tokenizer->info.kind == TOKENIZER_BYTE_LEVEL)
        return tokenizer_bpe_load(tokenizer, file, err);
    tokenizer_spm_load(tokenizer);
    return tokenizer->info.kind == TOKENIZER_CHARACTER ? tokenizer_merges_load(tokenizer, file, err)
                                                       : STATUS_OK;
}

enum status tokenizer_create(const struct gguf_file *file, struct tokenizer **ret_tokenizer,
                             struct error *err)
{
    struct tokenizer *tokenizer = calloc(1, sizeof(*tokenizer));
    if (!tokenizer)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the tokenizer of %s",
                         gguf_path(file));
    tokenizer_map_init(&tokenizer->symbol_by_text);
    tokenizer_map_init(&tokenizer->pair_map);
    enum status status = load(tokenizer, file, err);
    if (status)
        tokenizer_destroy(tokenizer);
    else
        *ret_tokenizer = tokenizer;
    return status;
}

void tokenizer_destroy(struct tokenizer *tokenizer)
{
    if (!tokenizer)
        return;
    for (size_t i = 0; i < tokenizer->pattern_count; i++)
        pcre2_code_free(tokenizer->patterns[i]);
    tokenizer_map_release(&tokenizer->symbol_by_text);
    tokenizer_map_release(&tokenizer->pair_map);
    free(tokenizer->symbols);
    free(tokenizer->specials);
    free(tokenizer->pairs);
    free(tokenizer->joined);
    free(tokenizer);
}

const struct tokenizer_info *tokenizer_info(const struct tokenizer *tokenizer)
{
    return &tokenizer->info;
}

/* ---- Ids ------------------------------------------------------------------------------------ */

void tokenizer_ids_init(struct tokenizer_ids *ids)
{
    *ids = (struct tokenizer_ids){ 0 };
}

void tokenizer_ids_release(struct tokenizer_ids *ids)
{
    free(ids->ids);
    tokenizer_ids_init(ids);
}

enum status tokenizer_add_id(struct tokenizer_work *work, uint32_t id, struct error *err)
{
    struct tokenizer_ids *ids = work->ids;
    uint32_t *larger = array_reserve(ids->ids, ids->count, &ids->capacity, sizeof(*larger));
    if (!larger)
        return error_set(err, STATUS_NO_MEMORY, "no memory for %zu token ids", ids->count + 1);
    ids->ids = larger;
    larger[ids->count++] = id;
    return STATUS_OK;
}

/* ---- Text ----------------------------------------------------------------------------------- */

static void work_release(struct tokenizer_work *work)
{
    tokenizer_heap_release(&work->heap);
    text_release(&work->scratch);
    free(work->symbols);
    free(work->pieces.items);
    free(work->pieces_before.items);
    pcre2_match_data_free(work->match_data);
    pcre2_match_context_free(work->match_context);
}

static enum status encode_between(struct tokenizer_work *work, struct text_view text,
                                  struct error *err)
{
    if (text.length == 0)
        return STATUS_OK;
    /* This text is at the start or after a special token, and so gets its space. */
    const struct tokenizer_info *info = &work->tokenizer->info;
    if (info->kind == TOKENIZER_CHARACTER)
        return tokenizer_character_encode(work, text, err);
    return info->kind == TOKENIZER_SENTENCEPIECE
               ? tokenizer_spm_encode(work, text, info->add_space_prefix, err)
               : tokenizer_bpe_encode(work, text, err);
}

static enum status add_wanted(struct tokenizer_work *work, bool wanted,
                              enum tokenizer_special special, struct error *err)
{
    uint32_t id = work->tokenizer->special_ids[special];
    return wanted && id != TOKENIZER_NO_ID ? tokenizer_add_id(work, id, err) : STATUS_OK;
}

static bool is_space(char byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

static enum status encode(struct tokenizer_work *work, struct text_view text, unsigned flags,
                          const struct tokenizer_special_match *matches, size_t match_count,
                          struct error *err)
{
    const struct tokenizer_info *info = &work->tokenizer->info;
    bool around = flags & TOKENIZER_ADD_SPECIAL;
    size_t at = 0;
    TRY(add_wanted(work, around && info->add_bos, TOKENIZER_BOS, err));
    for (size_t i = 0; i < match_count; i++) {
        const struct tokenizer_special_match *match = &matches[i];
        TRY(encode_between(work, (struct text_view){ text.bytes + at, match->start - at }, err));
        TRY(tokenizer_add_id(work, match->id, err));
        at = match->start + match->length;
        size_t next = i + 1 < match_count ? matches[i + 1].start : text.length;
        while (work->tokenizer->symbols[match->id].takes_space && at < next &&
               is_space(text.bytes[at]))
            at++;
    }
    TRY(encode_between(work, (struct text_view){ text.bytes + at, text.length - at }, err));
    return add_wanted(work, around && info->add_eos, TOKENIZER_EOS, err);
}

enum status tokenizer_encode(const struct tokenizer *tokenizer, struct text_view text,
                             unsigned flags, struct tokenizer_ids *ids, struct error *err)
{
    struct tokenizer_work work = { .tokenizer = tokenizer, .ids = ids };
    struct tokenizer_special_match *matches = NULL;
    size_t match_count = 0, count_before = ids->count;
    if (text.length > TOKENIZER_TEXT_LIMIT_BYTES)
        return error_set(err, STATUS_LIMIT, "expected a text of at most %u bytes, found %zu",
                         TOKENIZER_TEXT_LIMIT_BYTES, text.length);
    enum status status = tokenizer_special_split(&work, text, flags & TOKENIZER_PARSE_SPECIAL,
                                                 &matches, &match_count, err);
    if (!status)
        status = encode(&work, text, flags, matches, match_count, err);
    if (status)
        ids->count = count_before;
    free(matches);
    work_release(&work);
    return status;
}
