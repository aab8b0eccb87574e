/* tokenizer.h - text to token ids and back, as the tokenizer in a GGUF file says.
 *
 * There are three kinds: SentencePiece (score merges, byte fallback), byte-level BPE (ranked merges
 * of the pieces that a splitting rule makes) and character BPE (ranked merges of the characters of
 * a line, byte fallback). Text may be any bytes: those that are not UTF-8 are tokenized byte by
 * byte. Encoding and decoding gives the same text again if the vocabulary has all bytes, with one
 * exception: all but byte-level BPE write spaces as U+2581, so a U+2581 in the text comes back as a
 * space. (With Phi-3, white space after a control token is lost too: the model was trained so.)
 *
 * A tokenizer borrows its token strings from the file, which must outlive it. It does not change
 * after tokenizer_create and may be used from any number of threads; a decoder belongs to one. */
#ifndef GRETA_TOKENIZER_TOKENIZER_H
#define GRETA_TOKENIZER_TOKENIZER_H

#include "base/status.h"
#include "base/text.h"
#include "gguf/gguf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Limits --------------------------------------------------------------------------------- */

/* The largest real vocabularies have 262,144 tokens and some 500,000 merges. */
#define TOKENIZER_TOKEN_LIMIT (1u << 24)
#define TOKENIZER_MERGE_LIMIT (1u << 24)
/* The longest real tokens are runs of 128 spaces. Look-ups read whole tokens, so this bounds the
 * work per byte of text, whatever the file. */
#define TOKENIZER_TOKEN_LIMIT_BYTES 4096u
/* More than any context holds; keeps every position inside 32 bits. */
#define TOKENIZER_TEXT_LIMIT_BYTES (64u << 20)

#define TOKENIZER_NO_ID UINT32_MAX

/* ---- A tokenizer ---------------------------------------------------------------------------- */

struct tokenizer;

enum tokenizer_kind {
    TOKENIZER_SENTENCEPIECE,
    TOKENIZER_BYTE_LEVEL,
    TOKENIZER_CHARACTER,
    TOKENIZER_KIND_COUNT
};

/* The numbers are those of tokenizer.ggml.token_type. */
enum tokenizer_type {
    TOKENIZER_UNDEFINED = 0,
    TOKENIZER_NORMAL,
    TOKENIZER_UNKNOWN,
    TOKENIZER_CONTROL,
    TOKENIZER_USER_DEFINED, /* found in any text, before everything else */
    TOKENIZER_UNUSED,
    TOKENIZER_BYTE, /* "<0xHH>" */
    TOKENIZER_TYPE_COUNT
};

enum tokenizer_special {
    TOKENIZER_BOS,
    TOKENIZER_EOS,
    TOKENIZER_EOT, /* guessed from the token's text if the file does not say */
    TOKENIZER_EOM,
    TOKENIZER_UNK,
    TOKENIZER_SEPARATOR,
    TOKENIZER_PADDING,
    TOKENIZER_CLS,
    TOKENIZER_MASK,
    TOKENIZER_FIM_PRE,
    TOKENIZER_FIM_SUF,
    TOKENIZER_FIM_MID,
    TOKENIZER_FIM_PAD,
    TOKENIZER_FIM_REP,
    TOKENIZER_FIM_SEP,
    TOKENIZER_SPECIAL_COUNT
};

struct tokenizer_info {
    enum tokenizer_kind kind;
    const char *pre;  /* splitting rule, by its first name; NULL unless byte-level BPE */
    bool pre_missing; /* the file names none: "default" is used, wrong splits are likely */
    uint32_t token_count;
    bool add_bos, add_eos;
    bool add_space_prefix; /* SentencePiece only */
};

/* Destroy with tokenizer_destroy, before the file is closed. STATUS_NOT_FOUND if the file has no
 * tokenizer, STATUS_UNSUPPORTED if it has one of another kind. */
MUST_CHECK enum status tokenizer_create(const struct gguf_file *file,
                                        struct tokenizer **ret_tokenizer, struct error *err);
void tokenizer_destroy(struct tokenizer *tokenizer); /* NULL is fine */

/* Borrowed as long as the tokenizer. */
const struct tokenizer_info *tokenizer_info(const struct tokenizer *tokenizer);

/* TOKENIZER_NO_ID if the model has no such token. */
uint32_t tokenizer_special_id(const struct tokenizer *tokenizer, enum tokenizer_special special);
/* True if this token ends the model's output. */
bool tokenizer_is_end(const struct tokenizer *tokenizer, uint32_t id);

/* The token's text as it is in the file; borrowed as long as the file. id < token_count. */
struct text_view tokenizer_token_text(const struct tokenizer *tokenizer, uint32_t id);
enum tokenizer_type tokenizer_token_type(const struct tokenizer *tokenizer, uint32_t id);
/* The token that has exactly this text in the file, of any type, or TOKENIZER_NO_ID. */
uint32_t tokenizer_token_find(const struct tokenizer *tokenizer, struct text_view text);

/* Names of splitting rules, with the other names of the same rule; bytes is NULL past the last. */
struct text_view tokenizer_pre_name(size_t index);

/* ---- Text to ids ---------------------------------------------------------------------------- */

struct tokenizer_ids {
    uint32_t *ids;
    size_t count;
    size_t capacity;
};

void tokenizer_ids_init(struct tokenizer_ids *ids);
void tokenizer_ids_release(struct tokenizer_ids *ids);

enum tokenizer_encode_flags {
    TOKENIZER_ADD_SPECIAL = 1,   /* begin and end tokens, if the model needs them */
    TOKENIZER_PARSE_SPECIAL = 2, /* "<s>" in the text is the control token, not three characters */
};

/* Adds the tokens of text to ids, which stay as they were on failure. Takes time linear in the
 * text. */
MUST_CHECK enum status tokenizer_encode(const struct tokenizer *tokenizer, struct text_view text,
                                        unsigned flags, struct tokenizer_ids *ids,
                                        struct error *err);

/* ---- Ids to text ---------------------------------------------------------------------------- */

enum tokenizer_decode_flags {
    TOKENIZER_SHOW_SPECIAL = 1, /* control tokens as text; else they print nothing */
    TOKENIZER_RAW = 2,          /* bytes that are not UTF-8 as they are; else as U+FFFD */
};

/* Adds the bytes that one token stands for, perhaps part of a character. id < token_count. */
void tokenizer_token_bytes(const struct tokenizer *tokenizer, uint32_t id, unsigned flags,
                           struct text *text);

/* Joins the bytes of tokens: it adds only whole characters to a text. */
struct tokenizer_decoder {
    const struct tokenizer *tokenizer;
    unsigned flags;
    bool at_start;   /* SentencePiece: the space that encoding added is to be removed */
    char pending[3]; /* the beginning of a character */
    size_t pending_bytes;
};

void tokenizer_decoder_init(struct tokenizer_decoder *decoder, const struct tokenizer *tokenizer,
                            unsigned flags);
/* STATUS_REFUSED if there is no such token. */
MUST_CHECK enum status tokenizer_decoder_add(struct tokenizer_decoder *decoder, uint32_t id,
                                             struct text *text, struct error *err);
/* No more tokens come: an incomplete character is written as it is. */
void tokenizer_decoder_finish(struct tokenizer_decoder *decoder, struct text *text);

#endif
