/* vocabulary.h - the tokens of a model as tries over their bytes, the few long ones apart (mask.c
 * says why).
 *
 * Nodes are in preorder, so that a walk is one pass over an array: a node's children follow it, and
 * `skip` is where the next node outside of it is. Tokens are sorted by their bytes, which is the
 * same order: those of a node and of all below it are neighbours. */
#ifndef GRETA_GRAMMAR_VOCABULARY_H
#define GRETA_GRAMMAR_VOCABULARY_H

#include "grammar/grammar.h"

struct trie_node {
    uint32_t skip;
    uint32_t first_token; /* in the trie's ids; its own end where the next node's begin */
    uint16_t depth;       /* bytes from the root, whose depth is 0 */
    uint8_t byte;
};

/* Tokens of more bytes than this are long. */
#define TRIE_SHORT_BYTES 16u

enum trie_kind { TRIE_SHORT, TRIE_LONG, TRIE_COUNT };

struct trie {
    const uint32_t *ids; /* by their bytes; a part of `order` */
    uint32_t id_count;
    uint32_t longest_bytes;
    struct trie_node *nodes; /* node_count, and one that ends the last; owned */
    uint32_t node_count;
};

struct grammar_vocabulary {
    const struct tokenizer *tokenizer;
    uint32_t token_count; /* ids */
    struct text bytes;    /* of all tokens that stand for text */
    uint32_t *starts;     /* of each id, and the end; equal if it stands for no text */
    uint32_t *order;      /* ids with text: short ones first, then by their bytes */
    uint32_t order_count;
    struct trie tries[TRIE_COUNT];
    uint32_t longest_bytes;
    uint32_t *ends; /* ids of end tokens */
    uint32_t end_count;
};

#endif
