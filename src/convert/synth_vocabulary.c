/* synth_vocabulary.c - a tokenizer for synthetic models: every byte, some English words, and
 * syllables up to the requested size.
 *
 * All pieces longer than one character are made of two earlier pieces, so the same list serves both
 * kinds of tokenizer: as falling scores (SentencePiece) and as merges in order (byte-level BPE). A
 * piece that starts a word starts with a space mark; the others are lower-case letters, so the two
 * kinds never meet. */
#include "convert/convert_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORD_PIECE_LIMIT 2048
#define PIECE_BYTES 24

static const char words[] =
    "the and a to was in he she it of her his they with said had on you for him that at day big so "
    "but little one once upon time there were named loved play very happy saw mom friend wanted "
    "all "
    "is up went be not as then out can would are them dog cat tree girl boy like when from back "
    "home good could this what into help new man old came made look asked ran house see did have "
    "water sun found too down their together park ball bird red blue far away king queen story end";

/* A piece of a word, without the space mark; `left` is all but its last letter. */
struct word_piece {
    char letters[PIECE_BYTES];
};

struct vocabulary {
    bool byte_level;    /* BPE; else SentencePiece */
    uint32_t limit;     /* tokens asked for */
    uint32_t count;     /* tokens so far */
    struct text tokens; /* GGUF strings */
    struct text merges; /* GGUF strings, byte-level only */
    uint32_t merge_count;
    float *scores;  /* limit entries */
    int32_t *types; /* limit entries; values of tokenizer.ggml.token_type */
};

enum { TYPE_NORMAL = 1, TYPE_UNKNOWN = 2, TYPE_CONTROL = 3, TYPE_UNUSED = 5, TYPE_BYTE = 6 };

static void add_token(struct vocabulary *vocabulary, const char *text, int32_t type)
{
    if (vocabulary->count == vocabulary->limit)
        return;
    gguf_add_string(&vocabulary->tokens, text_view_of(text));
    vocabulary->scores[vocabulary->count] = type == TYPE_NORMAL ? -(float)vocabulary->count : 0.0f;
    vocabulary->types[vocabulary->count] = type;
    vocabulary->count++;
}

/* U+2581 for SentencePiece, U+0120 (what byte 0x20 is mapped to) for byte-level BPE. */
static const char *space_mark(const struct vocabulary *vocabulary)
{
    return vocabulary->byte_level ? "\xC4\xA0" : "\xE2\x96\x81";
}

static void add_piece(struct vocabulary *vocabulary, const char *left, const char *right)
{
    if (vocabulary->count == vocabulary->limit)
        return;
    char text[2 * PIECE_BYTES + 8];
    snprintf(text, sizeof(text), "%s%s", left, right);
    add_token(vocabulary, text, TYPE_NORMAL);
    snprintf(text, sizeof(text), "%s %s", left, right);
    if (vocabulary->byte_level) {
        gguf_add_string(&vocabulary->merges, text_view_of(text));
        vocabulary->merge_count++;
    }
}

/* ---- Single bytes and characters ------------------------------------------------------------ */

static void utf8_encode(uint32_t code_point, char *ret)
{
    if (code_point < 0x80) {
        ret[0] = (char)code_point;
        ret[1] = '\0';
        return;
    }
    ret[0] = (char)(0xC0 | code_point >> 6); /* below U+0800 here */
    ret[1] = (char)(0x80 | (code_point & 0x3F));
    ret[2] = '\0';
}

/* Byte-level BPE writes each byte as a printable character: bytes that are printable in Latin-1
 * stand for themselves, the other 68 follow from U+0100. */
static void add_byte_characters(struct vocabulary *vocabulary)
{
    uint32_t moved = 0;
    for (uint32_t byte = 0; byte < 256; byte++) {
        bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) ||
                         byte >= 0xAE;
        char text[3];
        utf8_encode(printable ? byte : 0x100 + moved++, text);
        add_token(vocabulary, text, TYPE_NORMAL);
    }
}

static void add_byte_fallbacks(struct vocabulary *vocabulary)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        char text[8];
        snprintf(text, sizeof(text), "<0x%02X>", byte);
        add_token(vocabulary, text, TYPE_BYTE);
    }
    add_token(vocabulary, space_mark(vocabulary), TYPE_NORMAL);
    for (int letter = '!'; letter <= '~'; letter++)
        add_token(vocabulary, (char[]){ (char)letter, '\0' }, TYPE_NORMAL);
}

/* ---- Words and syllables -------------------------------------------------------------------- */

/* "the" gives the pieces mark+t, mark+th, mark+the; shared beginnings are added once. */
static void add_words(struct vocabulary *vocabulary, struct word_piece *seen)
{
    size_t seen_count = 0;
    const char *mark = space_mark(vocabulary);
    const char *word = words;
    while (*word) {
        size_t length = strcspn(word, " ");
        char left[PIECE_BYTES + 4];
        snprintf(left, sizeof(left), "%s", mark);
        for (size_t i = 1; i <= length; i++) {
            char letters[PIECE_BYTES];
            snprintf(letters, sizeof(letters), "%.*s", (int)i, word);
            size_t known = 0;
            while (known < seen_count && strcmp(seen[known].letters, letters) != 0)
                known++;
            char right[2] = { word[i - 1], '\0' };
            if (known == seen_count && seen_count < WORD_PIECE_LIMIT) {
                memcpy(seen[seen_count++].letters, letters, sizeof(letters));
                add_piece(vocabulary, left, right);
            }
            snprintf(left, sizeof(left), "%s%s", mark, letters);
        }
        word += length + (word[length] == ' ');
    }
}

static void syllable(uint32_t number, char *ret)
{
    ret[0] = (char)('a' + number / 26);
    ret[1] = (char)('a' + number % 26);
    ret[2] = '\0';
}

/* aa to zz, then pairs of those. */
static void add_syllables(struct vocabulary *vocabulary)
{
    const uint32_t syllable_count = 26 * 26;
    uint32_t stop = vocabulary->limit;
    char left[3], right[3];
    for (uint32_t i = 0; i < syllable_count && vocabulary->count < stop; i++) {
        syllable(i, left);
        add_piece(vocabulary, (char[]){ left[0], '\0' }, left + 1);
    }
    for (uint32_t i = 0; i < syllable_count; i++) {
        syllable(i, left);
        for (uint32_t j = 0; j < syllable_count && vocabulary->count < stop; j++) {
            syllable(j, right);
            add_piece(vocabulary, left, right);
        }
    }
    for (uint32_t i = 0; vocabulary->count < stop; i++) {
        char text[32];
        snprintf(text, sizeof(text), "<unused%u>", i);
        add_token(vocabulary, text, TYPE_UNUSED);
    }
}

/* ---- The two kinds -------------------------------------------------------------------------- */

static void build_sentencepiece(struct vocabulary *vocabulary, struct gguf_writer *writer,
                                struct word_piece *seen)
{
    add_token(vocabulary, "<unk>", TYPE_UNKNOWN);
    add_token(vocabulary, "<s>", TYPE_CONTROL);
    add_token(vocabulary, "</s>", TYPE_CONTROL);
    add_byte_fallbacks(vocabulary);
    add_words(vocabulary, seen);
    add_syllables(vocabulary);
    gguf_writer_put_text(writer, "tokenizer.ggml.model", "llama");
    gguf_writer_put_text(writer, "tokenizer.ggml.pre", "default");
    gguf_writer_put_array(writer, "tokenizer.ggml.scores", GGUF_F32, vocabulary->scores,
                          vocabulary->count);
    gguf_writer_put_u32(writer, "tokenizer.ggml.bos_token_id", 1);
    gguf_writer_put_u32(writer, "tokenizer.ggml.eos_token_id", 2);
    gguf_writer_put_u32(writer, "tokenizer.ggml.unknown_token_id", 0);
    gguf_writer_put_flag(writer, "tokenizer.ggml.add_bos_token", true);
}

static void build_byte_level(struct vocabulary *vocabulary, struct gguf_writer *writer,
                             struct word_piece *seen, bool qwen)
{
    static const char *const llama_special[] = { "<|begin_of_text|>", "<|end_of_text|>",
                                                 "<|eot_id|>" };
    static const char *const qwen_special[] = { "<|endoftext|>", "<|im_start|>", "<|im_end|>" };
    const char *const *special = qwen ? qwen_special : llama_special;
    uint32_t first_special = vocabulary->limit - 3;
    vocabulary->limit = first_special; /* the last three are kept free */
    add_byte_characters(vocabulary);
    add_words(vocabulary, seen);
    add_syllables(vocabulary);
    vocabulary->limit = first_special + 3;
    for (size_t i = 0; i < 3; i++)
        add_token(vocabulary, special[i], TYPE_CONTROL);
    gguf_writer_put_text(writer, "tokenizer.ggml.model", "gpt2");
    gguf_writer_put_text(writer, "tokenizer.ggml.pre", qwen ? "qwen2" : "llama-bpe");
    gguf_writer_put_strings(writer, "tokenizer.ggml.merges", &vocabulary->merges,
                            vocabulary->merge_count);
    gguf_writer_put_u32(writer, "tokenizer.ggml.bos_token_id", first_special);
    gguf_writer_put_u32(writer, "tokenizer.ggml.eos_token_id", first_special + (qwen ? 2 : 1));
    gguf_writer_put_flag(writer, "tokenizer.ggml.add_bos_token", !qwen);
}

/* Real models of this size have byte-level tokenizers. */
#define BYTE_LEVEL_VOCAB_MIN 65536u

enum status convert_put_vocabulary(struct gguf_writer *writer, const struct model_shape *shape,
                                   struct error *err)
{
    bool qwen = shape->arch == MODEL_ARCH_QWEN2 || shape->arch == MODEL_ARCH_QWEN3 ||
                shape->arch == MODEL_ARCH_QWEN2MOE || shape->arch == MODEL_ARCH_QWEN3MOE;
    struct vocabulary vocabulary = {
        .byte_level = qwen || shape->vocab_size >= BYTE_LEVEL_VOCAB_MIN, .limit = shape->vocab_size
    };
    struct word_piece *seen = calloc(WORD_PIECE_LIMIT, sizeof(*seen));
    vocabulary.scores = calloc(shape->vocab_size, sizeof(*vocabulary.scores));
    vocabulary.types = calloc(shape->vocab_size, sizeof(*vocabulary.types));
    enum status status = STATUS_OK;
    if (!seen || !vocabulary.scores || !vocabulary.types) {
        status = error_set(err, STATUS_NO_MEMORY, "no memory for a vocabulary");
        goto done;
    }
    if (vocabulary.byte_level)
        build_byte_level(&vocabulary, writer, seen, qwen);
    else
        build_sentencepiece(&vocabulary, writer, seen);
    ASSERT(vocabulary.count == shape->vocab_size);
    gguf_writer_put_strings(writer, "tokenizer.ggml.tokens", &vocabulary.tokens, vocabulary.count);
    gguf_writer_put_array(writer, "tokenizer.ggml.token_type", GGUF_I32, vocabulary.types,
                          vocabulary.count);
done:
    text_release(&vocabulary.tokens);
    text_release(&vocabulary.merges);
    free(vocabulary.scores);
    free(vocabulary.types);
    free(seen);
    return status;
}
