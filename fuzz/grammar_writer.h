/* grammar_writer.h - writes a text under a grammar that came from outside, with a small vocabulary:
 * what the mask allows must be accepted, and there is always something that it allows. */
#ifndef GRETA_FUZZ_GRAMMAR_WRITER_H
#define GRETA_FUZZ_GRAMMAR_WRITER_H

#include "grammar/grammar.h"

#include <math.h>
#include <stdio.h>

#define WRITER_TOKEN_LIMIT 512u

static inline void writer_require(bool holds, const char *what)
{
    if (!holds)
        assert_failed(what, __FILE__, __LINE__);
}

static inline void writer_add_number(struct text *text, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        text_add_bytes(text, &(uint8_t){ (uint8_t)(value >> (8 * i)) }, 1);
}

static inline void writer_add_key(struct text *text, const char *key, uint32_t type)
{
    gguf_add_string(text, text_view_of(key));
    writer_add_number(text, type, 4);
}

static const char *const writer_texts[] = { "{\"",   "\"}",  "\":",   "\",\"", "true", "null",
                                            "ab",    "abc",  "12",    "0.",    "]}",   "\\\"",
                                            "\\u00", "aaaa", "\"a\"", "[]",    "</s>" };

/* SentencePiece with a token for each byte: ids 0 to 255; the last one ends the text. */
static inline void writer_make_vocabulary(struct text *text)
{
    enum { STRING = 8, ARRAY = 9, I32 = 5, F32 = 6, U32 = 4 };
    uint32_t count = 256 + COUNT_OF(writer_texts);
    char name[8];
    text_add(text, "GGUF");
    writer_add_number(text, 3, 4);
    writer_add_number(text, 0, 8);
    writer_add_number(text, 5, 8);
    writer_add_key(text, "tokenizer.ggml.model", STRING);
    gguf_add_string(text, text_view_of("llama"));
    writer_add_key(text, "tokenizer.ggml.eos_token_id", U32);
    writer_add_number(text, count - 1, 4);
    writer_add_key(text, "tokenizer.ggml.tokens", ARRAY);
    writer_add_number(text, STRING, 4);
    writer_add_number(text, count, 8);
    for (uint32_t i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "<0x%02X>", i & 0xFF);
        gguf_add_string(text, text_view_of(i < 256 ? name : writer_texts[i - 256]));
    }
    writer_add_key(text, "tokenizer.ggml.token_type", ARRAY);
    writer_add_number(text, I32, 4);
    writer_add_number(text, count, 8);
    for (uint32_t i = 0; i < count; i++)
        writer_add_number(text, i < 256 ? 6 : i + 1 == count ? 3 : 1, 4);
    writer_add_key(text, "tokenizer.ggml.scores", ARRAY);
    writer_add_number(text, F32, 4);
    writer_add_number(text, count, 8);
    for (uint32_t i = 0; i < count; i++)
        writer_add_number(text, 0, 4);
}

static inline const struct tokenizer *writer_tokenizer(void)
{
    static struct text bytes;
    static struct gguf_file *file;
    static struct tokenizer *tokenizer;
    struct error err;
    if (tokenizer)
        return tokenizer;
    writer_make_vocabulary(&bytes);
    writer_require(!gguf_open_memory(bytes.bytes, bytes.length, "made.gguf", &file, &err) &&
                       !tokenizer_create(file, &tokenizer, &err),
                   "what is made is a tokenizer");
    return tokenizer;
}

static inline const struct grammar_vocabulary *writer_vocabulary(void)
{
    static struct grammar_vocabulary *vocabulary;
    struct error err;
    if (!vocabulary)
        writer_require(!grammar_vocabulary_create(writer_tokenizer(), &vocabulary, &err),
                       "what is made is a vocabulary");
    return vocabulary;
}

/* Writes at most `limit` tokens, chosen by the seed. True if the text has ended. */
static inline bool writer_write(struct grammar *grammar, uint64_t seed, uint32_t limit,
                                struct text *text)
{
    struct grammar_matcher *matcher;
    struct error err;
    uint32_t count = tokenizer_info(writer_tokenizer())->token_count;
    if (grammar_matcher_create(grammar, &matcher, &err)) {
        writer_require(err.status == STATUS_LIMIT, "only a limit stops a matcher");
        return false;
    }
    bool ended = grammar_matcher_must_end(matcher);
    for (uint32_t i = 0; i < limit && !ended; i++) {
        float logits[WRITER_TOKEN_LIMIT] = { 0 };
        uint32_t chosen = WRITER_TOKEN_LIMIT;
        if (grammar_matcher_mask(matcher, logits, count, &err)) {
            writer_require(err.status == STATUS_LIMIT, "something can always follow");
            break;
        }
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint32_t from = (uint32_t)(seed >> 33) % count;
        for (uint32_t k = 0; k < count && chosen == WRITER_TOKEN_LIMIT; k++)
            if (logits[(from + k) % count] > -INFINITY)
                chosen = (from + k) % count;
        writer_require(chosen < WRITER_TOKEN_LIMIT, "the mask leaves a token");
        if (grammar_matcher_accept(matcher, chosen, &err)) {
            writer_require(err.status == STATUS_LIMIT, "what it leaves is right");
            break;
        }
        if (chosen + 1 < count) /* not the end token */
            tokenizer_token_bytes(writer_tokenizer(), chosen, 0, text);
        ended = grammar_matcher_must_end(matcher);
    }
    grammar_matcher_destroy(matcher);
    return ended;
}

#endif
