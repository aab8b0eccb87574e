/* tokenizer_build.h - small vocabularies as open GGUF files in memory, for tests of tokenizers.
 *
 * A test lists its rows; the 256 byte tokens, or byte characters, are put in front of them. */
#ifndef GRETA_TESTS_TOKENIZER_BUILD_H
#define GRETA_TESTS_TOKENIZER_BUILD_H

#include "test.h"

#include "gguf_build.h"
#include "gguf_open.h"
#include "tokenizer/tokenizer.h"

#include <stdio.h>
#include <string.h>

#define VOCAB_LIMIT 640

struct vocab_row {
    const char *text;
    double score;
    enum tokenizer_type type; /* 0: normal */
};

/* Everything a vocabulary consists of; NULL or 0 leaves a key out. */
struct vocab {
    const char *model, *pre;
    const char *texts[VOCAB_LIMIT];
    uint64_t scores[VOCAB_LIMIT]; /* bits of F32 */
    uint64_t types[VOCAB_LIMIT];
    size_t count;
    const char *const *merges;
    size_t merge_count;
    char bytes[256][8]; /* texts of the byte tokens */
    /* Adds keys of the test's own. */
    void (*more)(struct gguf_build *build);
};

struct vocab_file {
    struct opened opened;
    struct tokenizer *tokenizer;
};

static inline uint32_t vocab_add(struct vocab *vocab, const char *text, double score,
                                 enum tokenizer_type type)
{
    float single = (float)score;
    uint32_t bits;
    memcpy(&bits, &single, sizeof(bits));
    ASSERT(vocab->count < VOCAB_LIMIT);
    vocab->texts[vocab->count] = text;
    vocab->scores[vocab->count] = bits;
    vocab->types[vocab->count] = type ? type : TOKENIZER_NORMAL;
    return (uint32_t)vocab->count++;
}

static inline void vocab_add_rows(struct vocab *vocab, const struct vocab_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        vocab_add(vocab, rows[i].text, rows[i].score, rows[i].type);
}

/* Ids 0 to 2 are <unk>, <s>, </s>; byte b is id 3 + b. */
static inline void vocab_init_spm(struct vocab *vocab)
{
    *vocab = (struct vocab){ .model = "llama" };
    vocab_add(vocab, "<unk>", 0, TOKENIZER_UNKNOWN);
    vocab_add(vocab, "<s>", 0, TOKENIZER_CONTROL);
    vocab_add(vocab, "</s>", 0, TOKENIZER_CONTROL);
    for (unsigned i = 0; i < 256; i++) {
        snprintf(vocab->bytes[i], sizeof(vocab->bytes[i]), "<0x%02X>", i);
        vocab_add(vocab, vocab->bytes[i], 0, TOKENIZER_BYTE);
    }
}

/* Byte b is id b. */
static inline void vocab_init_bpe(struct vocab *vocab, const char *pre)
{
    unsigned moved = 0;
    *vocab = (struct vocab){ .model = "gpt2", .pre = pre };
    for (unsigned i = 0; i < 256; i++) {
        bool same = (i >= 0x21 && i <= 0x7E) || (i >= 0xA1 && i <= 0xAC) || i >= 0xAE;
        unsigned code_point = same ? i : 0x100 + moved++;
        if (code_point < 0x80)
            snprintf(vocab->bytes[i], sizeof(vocab->bytes[i]), "%c", (int)code_point);
        else
            snprintf(vocab->bytes[i], sizeof(vocab->bytes[i]), "%c%c",
                     (int)(0xC0 | code_point >> 6), (int)(0x80 | (code_point & 0x3F)));
        vocab_add(vocab, vocab->bytes[i], 0, TOKENIZER_NORMAL);
    }
}

static inline struct opened vocab_open(const struct vocab *vocab)
{
    struct gguf_build build;
    gguf_build_init(&build, 3);
    if (vocab->model)
        gguf_build_string(&build, "tokenizer.ggml.model", vocab->model);
    if (vocab->pre)
        gguf_build_string(&build, "tokenizer.ggml.pre", vocab->pre);
    if (vocab->count) {
        gguf_build_strings(&build, "tokenizer.ggml.tokens", vocab->texts, vocab->count);
        gguf_build_array(&build, "tokenizer.ggml.scores", BUILD_F32, vocab->scores, vocab->count);
        gguf_build_array(&build, "tokenizer.ggml.token_type", BUILD_I32, vocab->types,
                         vocab->count);
    }
    if (vocab->model && strcmp(vocab->model, "llama") != 0)
        gguf_build_strings(&build, "tokenizer.ggml.merges", vocab->merges, vocab->merge_count);
    if (vocab->more)
        vocab->more(&build);
    struct opened opened = open_built(&build);
    CHECK_OK(opened.status, &opened.err);
    return opened;
}

static inline struct vocab_file vocab_file_open(const struct vocab *vocab)
{
    struct vocab_file file = { .opened = vocab_open(vocab) };
    struct error err;
    CHECK_OK(tokenizer_create(file.opened.file, &file.tokenizer, &err), &err);
    return file;
}

static inline void vocab_file_close(struct vocab_file *file)
{
    tokenizer_destroy(file->tokenizer);
    opened_release(&file->opened);
}

/* ---- Comparing ------------------------------------------------------------------------------ */

/* The tokens of text, as their texts in the file: "<s>|▁a|b". Release it. */
static inline struct text vocab_pieces(const struct tokenizer *tokenizer, struct text_view text,
                                       unsigned flags)
{
    struct tokenizer_ids ids;
    struct text pieces;
    struct error err;
    tokenizer_ids_init(&ids);
    text_init(&pieces);
    CHECK_OK(tokenizer_encode(tokenizer, text, flags, &ids, &err), &err);
    for (size_t i = 0; i < ids.count; i++) {
        struct text_view token = tokenizer_token_text(tokenizer, ids.ids[i]);
        text_addf(&pieces, "%s%.*s", i ? "|" : "", (int)token.length, token.bytes);
    }
    tokenizer_ids_release(&ids);
    return pieces;
}

static inline void check_pieces(const struct tokenizer *tokenizer, const char *what,
                                struct text_view text, unsigned flags, const char *expected)
{
    struct text pieces = vocab_pieces(tokenizer, text, flags);
    if (strcmp(text_get(&pieces), expected) != 0)
        fail_msg("%s: expected %s, found %s", what, expected, text_get(&pieces));
    text_release(&pieces);
}

/* What the decoder makes of the ids. Release it. */
static inline struct text vocab_decode(const struct tokenizer *tokenizer, const uint32_t *ids,
                                       size_t count, unsigned flags)
{
    struct tokenizer_decoder decoder;
    struct text text;
    struct error err;
    text_init(&text);
    tokenizer_decoder_init(&decoder, tokenizer, flags);
    for (size_t i = 0; i < count; i++)
        CHECK_OK(tokenizer_decoder_add(&decoder, ids[i], &text, &err), &err);
    tokenizer_decoder_finish(&decoder, &text);
    return text;
}

static inline void check_round_trip(const struct tokenizer *tokenizer, struct text_view text,
                                    unsigned flags)
{
    struct tokenizer_ids ids;
    struct error err;
    tokenizer_ids_init(&ids);
    CHECK_OK(tokenizer_encode(tokenizer, text, flags, &ids, &err), &err);
    struct text back = vocab_decode(tokenizer, ids.ids, ids.count, TOKENIZER_RAW);
    if (back.length != text.length || memcmp(text_get(&back), text.bytes, text.length) != 0) {
        char shown[128], found[128];
        fail_msg("'%s' came back as '%s'", text_printable(text, shown, sizeof(shown)),
                 text_printable((struct text_view){ text_get(&back), back.length }, found,
                                sizeof(found)));
    }
    text_release(&back);
    tokenizer_ids_release(&ids);
}

/* ---- Random texts --------------------------------------------------------------------------- */

static inline uint64_t vocab_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Up to 40 parts: any byte, any printable one, or one of the words. */
static inline void vocab_random_text(struct text *text, const char *const *words, size_t word_count,
                                     uint64_t *state)
{
    text_clear(text);
    for (uint64_t left = vocab_random(state) % 41; left > 0; left--) {
        uint64_t kind = vocab_random(state) % 4;
        char byte = kind ? (char)(' ' + vocab_random(state) % 95) : (char)vocab_random(state);
        if (kind < 2)
            text_add_bytes(text, &byte, 1);
        else
            text_add(text, words[vocab_random(state) % word_count]);
    }
}

#endif
