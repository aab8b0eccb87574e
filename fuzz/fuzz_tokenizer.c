/* fuzz_tokenizer.c - any text for small vocabularies of every kind, and any bytes as a vocabulary.
 *
 * The first byte says what the rest is: 0 a GGUF file, whose tokenizer is made to work on a fixed
 * text; 1 text for SentencePiece; anything else text for byte-level BPE, with the splitting rule of
 * that number. The second byte holds the flags of encoding. Texts must come back byte for byte, and
 * the decoder may print whole characters only. */
#include "tokenizer/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SPACE_MARK "\xE2\x96\x81"
#define RULE_LIMIT 128

enum { STRING = 8, ARRAY = 9, I32 = 5, F32 = 6 }; /* of the file format */

static void require(bool holds, const char *what)
{
    if (!holds)
        assert_failed(what, __FILE__, __LINE__);
}

/* ---- A vocabulary --------------------------------------------------------------------------- */

static void add_number(struct text *text, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        text_add_bytes(text, &(uint8_t){ (uint8_t)(value >> (8 * i)) }, 1);
}

static void add_key(struct text *text, const char *key, uint32_t type)
{
    gguf_add_string(text, text_view_of(key));
    add_number(text, type, 4);
}

static void add_array(struct text *text, const char *key, uint32_t type, uint64_t count)
{
    add_key(text, key, ARRAY);
    add_number(text, type, 4);
    add_number(text, count, 8);
}

static void add_string_key(struct text *text, const char *key, struct text_view value)
{
    add_key(text, key, STRING);
    gguf_add_string(text, value);
}

/* In both kinds of vocabulary ids 0 to 255 are the bytes. */
static const char *const spm_texts[] = { "<unk>", "<s>",  "</s>",         SPACE_MARK,
                                         "a",     "b",    "ab",           "aa",
                                         "aaaa",  "<",    SPACE_MARK "a", "é",
                                         "[X]",   "[X]]", "s>",           "</" };
static const uint32_t spm_types[] = { 2, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 4, 3, 1, 1 };
static const char *const bpe_texts[] = { "ab", "aa", "abab", "Ġa", "Ã©", "<|e|>", "[X]", "[X]]" };
static const uint32_t bpe_types[] = { 1, 1, 1, 1, 1, 3, 4, 3 };
static const char *const merges[] = { "a b", "a a", "ab ab", "Ġ a", "Ã ©", "b a", "1 2" };
_Static_assert(COUNT_OF(spm_texts) == COUNT_OF(spm_types), "a type each");
_Static_assert(COUNT_OF(bpe_texts) == COUNT_OF(bpe_types), "a type each");

static void add_byte_text(struct text *text, bool spm, unsigned byte)
{
    char name[8];
    bool same = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    unsigned code_point = same           ? byte
                          : byte < 0x21  ? 0x100 + byte
                          : byte == 0xAD ? 0x143
                                         : byte + 0xA2;
    if (spm)
        snprintf(name, sizeof(name), "<0x%02X>", byte);
    else if (code_point < 0x80)
        snprintf(name, sizeof(name), "%c", (int)code_point);
    else
        snprintf(name, sizeof(name), "%c%c", (int)(0xC0 | code_point >> 6),
                 (int)(0x80 | (code_point & 0x3F)));
    gguf_add_string(text, text_view_of(name));
}

static void make_vocabulary(struct text *text, bool spm, struct text_view rule)
{
    const char *const *texts = spm ? spm_texts : bpe_texts;
    const uint32_t *types = spm ? spm_types : bpe_types;
    size_t more = spm ? COUNT_OF(spm_texts) : COUNT_OF(bpe_texts);
    text_add(text, "GGUF");
    add_number(text, 3, 4);
    add_number(text, 0, 8);
    add_number(text, 6, 8);
    add_string_key(text, "tokenizer.ggml.model", text_view_of(spm ? "llama" : "gpt2"));
    add_string_key(text, "tokenizer.ggml.pre", rule);
    add_array(text, "tokenizer.ggml.tokens", STRING, 256 + more);
    for (unsigned byte = 0; byte < 256; byte++)
        add_byte_text(text, spm, byte);
    for (size_t i = 0; i < more; i++)
        gguf_add_string(text, text_view_of(texts[i]));
    add_array(text, "tokenizer.ggml.token_type", I32, 256 + more);
    for (size_t i = 0; i < 256 + more; i++)
        add_number(text, i >= 256 ? types[i - 256] : spm ? 6 : 1, 4);
    add_array(text, "tokenizer.ggml.scores", F32, 256 + more);
    for (size_t i = 0; i < 256 + more; i++) {
        float score = -(float)(i % 5);
        uint32_t bits;
        memcpy(&bits, &score, sizeof(bits));
        add_number(text, bits, 4);
    }
    add_array(text, "tokenizer.ggml.merges", STRING, COUNT_OF(merges));
    for (size_t i = 0; i < COUNT_OF(merges); i++)
        gguf_add_string(text, text_view_of(merges[i]));
}

/* ---- There and back ------------------------------------------------------------------------- */

static bool is_whole(const struct text *text)
{
    for (size_t at = 0; at < text->length;) {
        size_t length = text_utf8_length(text->bytes + at, text->length - at);
        if (length == 0)
            return false;
        at += length;
    }
    return true;
}

static void decode(const struct tokenizer *tokenizer, const struct tokenizer_ids *ids,
                   unsigned flags, struct text *text)
{
    struct tokenizer_decoder decoder;
    struct error err;
    tokenizer_decoder_init(&decoder, tokenizer, flags);
    for (size_t i = 0; i < ids->count; i++) {
        require(!tokenizer_decoder_add(&decoder, ids->ids[i], text, &err), "an id is a token");
        require(flags & TOKENIZER_RAW || is_whole(text), "whole characters");
    }
    tokenizer_decoder_finish(&decoder, text);
}

/* exact: the vocabulary can spell everything. */
static void run_text(const struct tokenizer *tokenizer, struct text_view text, unsigned flags,
                     bool exact)
{
    struct tokenizer_ids ids;
    struct text back;
    struct error err;
    tokenizer_ids_init(&ids);
    text_init(&back);
    require(!tokenizer_encode(tokenizer, text, flags, &ids, &err), "any text can be encoded");
    decode(tokenizer, &ids, TOKENIZER_RAW | TOKENIZER_SHOW_SPECIAL, &back);
    require(!exact || (back.length == text.length &&
                       (text.length == 0 || memcmp(back.bytes, text.bytes, text.length) == 0)),
            "a text comes back");
    text_clear(&back);
    decode(tokenizer, &ids, 0, &back);
    require(is_whole(&back), "whole characters at the end");
    tokenizer_ids_release(&ids);
    text_release(&back);
}

static bool has_space_mark(struct text_view text)
{
    for (size_t i = 0; i + 3 <= text.length; i++)
        if (memcmp(text.bytes + i, SPACE_MARK, 3) == 0)
            return true;
    return false;
}

/* A file from outside. */
static void run_file(struct text_view bytes, struct text_view text, unsigned flags)
{
    struct gguf_file *file = NULL;
    struct tokenizer *tokenizer = NULL;
    struct error err = { 0 };
    if (gguf_open_memory(bytes.bytes, bytes.length, "fuzz.gguf", &file, &err))
        return;
    if (tokenizer_create(file, &tokenizer, &err))
        require(tokenizer == NULL && strstr(err.text, "tokenizer.ggml."), "an error names a key");
    else
        run_text(tokenizer, text, flags, false);
    tokenizer_destroy(tokenizer);
    gguf_close(file);
}

/* The vocabulary made here, kept for each rule: it takes longer to make than a text takes. */
static const struct tokenizer *find_made(bool spm, size_t rule)
{
    static struct {
        struct text bytes;
        struct gguf_file *file;
        struct tokenizer *tokenizer;
    } made[RULE_LIMIT];
    size_t index = spm ? 0 : rule + 1;
    require(index < RULE_LIMIT, "room for every rule");
    if (made[index].tokenizer)
        return made[index].tokenizer;
    struct text *bytes = &made[index].bytes;
    struct error err;
    make_vocabulary(bytes, spm, tokenizer_pre_name(rule));
    require(!gguf_open_memory(bytes->bytes, bytes->length, "made.gguf", &made[index].file, &err),
            "what is made is a file");
    require(!tokenizer_create(made[index].file, &made[index].tokenizer, &err),
            "what is made is a tokenizer");
    return made[index].tokenizer;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char fixed[] = "Hello  world's 123 <s> \xC3\xA9\xFF\n\n aaaa";
    if (size < 2)
        return 0;
    unsigned kind = data[0];
    struct text_view rest = { (const char *)data + 2, size - 2 };
    if (kind == 0) {
        run_file(rest, text_view_of(fixed), data[1]);
        return 0;
    }
    size_t rule_count = 0;
    while (tokenizer_pre_name(rule_count).bytes)
        rule_count++;
    require(rule_count > 0, "there are rules");
    bool spm = kind == 1;
    /* SentencePiece writes spaces as U+2581, which then cannot come back. */
    run_text(find_made(spm, kind % rule_count), rest, data[1] & TOKENIZER_PARSE_SPECIAL,
             !spm || !has_space_mark(rest));
    return 0;
}
