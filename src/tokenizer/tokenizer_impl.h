/* tokenizer_impl.h - what the files of this module share. */
#ifndef GRETA_TOKENIZER_TOKENIZER_IMPL_H
#define GRETA_TOKENIZER_TOKENIZER_IMPL_H

#define PCRE2_CODE_UNIT_WIDTH 8

#include "tokenizer/tokenizer.h"

#include <pcre2.h>

/* ---- map.c: from a hash to an index --------------------------------------------------------- */

/* Open addressing. The table holds only indices; the caller compares the keys. The seed is random,
 * so that no file can be made whose strings collide. */
struct tokenizer_map_slot {
    uint32_t hash;
    uint32_t index_plus_one; /* 0: free */
};

struct tokenizer_map {
    struct tokenizer_map_slot *slots;
    size_t slot_count; /* a power of two, or 0 */
    size_t used;
    uint64_t seed;
};

/* True if the entry at index is the key. */
typedef bool (*tokenizer_map_equal)(const void *owner, uint32_t index, const void *key);

void tokenizer_map_init(struct tokenizer_map *map);
void tokenizer_map_release(struct tokenizer_map *map);
uint32_t tokenizer_map_hash(const struct tokenizer_map *map, const void *bytes, size_t count);
/* The slot of the key, or NULL. Borrowed until the next add. */
struct tokenizer_map_slot *tokenizer_map_find(const struct tokenizer_map *map, uint32_t hash,
                                              tokenizer_map_equal equal, const void *owner,
                                              const void *key);
/* The key must not be there yet. False without memory. */
bool tokenizer_map_add(struct tokenizer_map *map, uint32_t hash, uint32_t index);

/* ---- heap.c: what comes first --------------------------------------------------------------- */

struct tokenizer_heap_item {
    uint32_t priority; /* lowest first, */
    uint32_t at;       /* then leftmost */
    uint32_t length;
    uint32_t id;
};

struct tokenizer_heap {
    struct tokenizer_heap_item *items;
    size_t count;
    size_t capacity;
};

void tokenizer_heap_release(struct tokenizer_heap *heap);
bool tokenizer_heap_push(struct tokenizer_heap *heap, struct tokenizer_heap_item item);
bool tokenizer_heap_pop(struct tokenizer_heap *heap, struct tokenizer_heap_item *ret);

/* ---- The tokenizer -------------------------------------------------------------------------- */

struct tokenizer_symbol_text {
    struct text_view text;
    float score;
    uint8_t type; /* enum tokenizer_type */
    bool is_end;
    bool takes_space; /* white space after it is part of it */
};

struct tokenizer_pair {
    uint32_t left, right, result; /* symbols */
};

/* Every text once, however many tokens have that text. */
struct tokenizer_special_text {
    struct text_view text;
    uint32_t id;      /* the lowest */
    uint32_t user_id; /* the lowest that is user-defined, or TOKENIZER_NO_ID */
    uint32_t order;   /* longest first, then by id */
};

#define TOKENIZER_PATTERN_LIMIT 6

struct tokenizer {
    struct tokenizer_info info;
    /* Tokens by id; after them, for byte-level BPE, pieces that occur only in merges. */
    struct tokenizer_symbol_text *symbols;
    size_t symbol_count, symbol_capacity;
    struct tokenizer_map symbol_by_text;
    size_t token_longest_bytes;
    uint32_t special_ids[TOKENIZER_SPECIAL_COUNT];
    /* Byte-level BPE: the symbol of a byte. Otherwise its token or TOKENIZER_NO_ID. */
    uint32_t byte_ids[256];
    char byte_texts[256][2]; /* BPE: what those symbols' texts borrow */
    /* Sorted by text; those that begin with byte b are [special_first[b], special_first[b + 1]). */
    struct tokenizer_special_text *specials;
    size_t special_count;
    uint32_t special_first[257];
    /* BPE of both kinds. */
    struct tokenizer_pair *pairs; /* by rank */
    size_t pair_count;
    struct tokenizer_map pair_map;
    char *joined; /* texts of merged symbols that are no tokens */
    size_t joined_bytes;
    bool ignore_merges; /* a piece that is a token is not merged */
    pcre2_code *patterns[TOKENIZER_PATTERN_LIMIT];
    size_t pattern_count;
};

/* vocab.c */
MUST_CHECK enum status tokenizer_vocab_load(struct tokenizer *tokenizer,
                                            const struct gguf_file *file, struct error *err);
/* Any symbol or TOKENIZER_NO_ID. */
uint32_t tokenizer_symbol_find(const struct tokenizer *tokenizer, struct text_view text);
/* Adds the symbol if it is not there. text must live as long as the tokenizer. */
MUST_CHECK enum status tokenizer_symbol_intern(struct tokenizer *tokenizer, struct text_view text,
                                               uint32_t *ret_id, struct error *err);
/* True for tokens that plain text may become. Control tokens never come from text. */
bool tokenizer_is_plain(const struct tokenizer *tokenizer, uint32_t id);

/* special_ids.c: begin, end and the like. */
MUST_CHECK enum status tokenizer_special_ids_load(struct tokenizer *tokenizer,
                                                  const struct gguf_file *file, struct error *err);

/* ---- One call of tokenizer_encode ----------------------------------------------------------- */

struct tokenizer_piece {
    uint32_t start, length;
};

struct tokenizer_pieces {
    struct tokenizer_piece *items;
    size_t count;
    size_t capacity;
};

struct tokenizer_work {
    const struct tokenizer *tokenizer;
    struct tokenizer_ids *ids;
    struct tokenizer_heap heap;
    struct tokenizer_symbol *symbols;
    size_t symbol_count, symbol_capacity;
    struct text scratch;
    struct tokenizer_pieces pieces, pieces_before;
    pcre2_match_data *match_data;
    pcre2_match_context *match_context;
    uint32_t match_options; /* more options for PCRE2: tests pass PCRE2_NO_JIT */
};

MUST_CHECK enum status tokenizer_add_id(struct tokenizer_work *work, uint32_t id,
                                        struct error *err);

/* merge.c: merges neighbours, best pair first. */

#define TOKENIZER_NO_SYMBOL UINT32_MAX

struct tokenizer_symbol {
    uint32_t start, length;  /* in the text; length 0: merged into another one */
    uint32_t previous, next; /* or TOKENIZER_NO_SYMBOL */
    uint32_t id;             /* of its text, or TOKENIZER_NO_ID */
};

/* True if two neighbours can be merged; fills priority (lowest first) and id. */
typedef bool (*tokenizer_can_merge)(const struct tokenizer *tokenizer, const char *text,
                                    const struct tokenizer_symbol *left,
                                    const struct tokenizer_symbol *right,
                                    struct tokenizer_heap_item *ret);

/* Appends to work->symbols. */
MUST_CHECK enum status tokenizer_symbol_append(struct tokenizer_work *work, uint32_t length,
                                               uint32_t id, struct error *err);
MUST_CHECK enum status tokenizer_merge(struct tokenizer_work *work, const char *text,
                                       tokenizer_can_merge can_merge, struct error *err);

/* spm.c */
void tokenizer_spm_load(struct tokenizer *tokenizer);
MUST_CHECK enum status tokenizer_spm_encode(struct tokenizer_work *work, struct text_view text,
                                            bool space_prefix, struct error *err);
/* The byte that "<0xHH>" stands for, or -1. */
int tokenizer_byte_of(struct text_view text);
/* Sets marked to text with every space as U+2581; check marked->failed. */
void tokenizer_mark_spaces(struct text *marked, struct text_view text, bool space_prefix);
/* Adds the tokens of the bytes, or one unknown token if a byte has none. */
MUST_CHECK enum status tokenizer_add_bytes(struct tokenizer_work *work, const char *bytes,
                                           size_t count, struct error *err);

/* bpe.c */
MUST_CHECK enum status tokenizer_bpe_load(struct tokenizer *tokenizer, const struct gguf_file *file,
                                          struct error *err);
MUST_CHECK enum status tokenizer_bpe_encode(struct tokenizer_work *work, struct text_view text,
                                            struct error *err);
/* Loads the merges alone. */
MUST_CHECK enum status tokenizer_merges_load(struct tokenizer *tokenizer,
                                             const struct gguf_file *file, struct error *err);
/* A tokenizer_can_merge by rank. */
bool tokenizer_ranks_merge(const struct tokenizer *tokenizer, const char *text,
                           const struct tokenizer_symbol *left,
                           const struct tokenizer_symbol *right, struct tokenizer_heap_item *ret);

/* character_bpe.c */
MUST_CHECK enum status tokenizer_character_encode(struct tokenizer_work *work,
                                                  struct text_view text, struct error *err);

/* byte_text.c: bytes as printable characters, the alphabet of byte-level BPE. */
#define TOKENIZER_BYTE_CHARACTERS 0x144 /* code points below it may stand for a byte */
/* Adds the character that stands for the byte. */
size_t tokenizer_byte_character(uint8_t byte, char ret[2]);
/* The byte that the character stands for, or -1. */
int tokenizer_character_byte(uint32_t code_point);

/* patterns.c: the splitting rules. */
struct tokenizer_rule {
    const char *name;
    const char *aliases; /* divided by spaces */
    bool ignore_merges, add_bos;
    const char *patterns[TOKENIZER_PATTERN_LIMIT]; /* up to the first NULL */
};
const struct tokenizer_rule *tokenizer_rule_find(struct text_view name); /* or NULL */

/* pretokenize.c */
MUST_CHECK enum status tokenizer_pretokenize_load(struct tokenizer *tokenizer,
                                                  const struct gguf_file *file, struct error *err);
/* Fills work->pieces with all of text, in order. text is valid UTF-8. */
MUST_CHECK enum status tokenizer_pretokenize(struct tokenizer_work *work, struct text_view text,
                                             struct error *err);

/* special.c: special tokens in a text. */
MUST_CHECK enum status tokenizer_special_load(struct tokenizer *tokenizer, struct error *err);
struct tokenizer_special_match {
    uint32_t start, length, id;
};
/* Matches in the order of the text; free them. */
MUST_CHECK enum status tokenizer_special_split(struct tokenizer_work *work, struct text_view text,
                                               bool parse_special,
                                               struct tokenizer_special_match **ret_matches,
                                               size_t *ret_count, struct error *err);

#endif
