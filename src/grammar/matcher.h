/* matcher.h - a grammar with its automaton and masks, and the matchers that use it. */
#ifndef GRETA_GRAMMAR_MATCHER_H
#define GRETA_GRAMMAR_MATCHER_H

#include "grammar/automaton.h"
#include "grammar/vocabulary.h"

/* Which tokens may follow a state: by the state alone, or, for one whose stack was cut off, also
 * by what is below. */
struct grammar_mask {
    uint64_t *bits;    /* by id */
    uint32_t *pending; /* nodes of the trie after which the cut is passed; owned */
    size_t pending_count, pending_capacity;
    bool useless; /* so many that every state has its own mask */
};

struct grammar {
    const struct grammar_vocabulary *vocabulary;
    struct program program;
    struct automaton automaton;
    struct grammar_mask *masks;
    size_t mask_count, mask_capacity;
    size_t word_count; /* of bits */
    size_t kept_bytes; /* that the automaton had after it was last replaced */
    uint32_t *walk;    /* the state at each depth of the trie */
    uint64_t *bits;    /* the mask that is asked for */
    struct grammar_matcher *matchers;
};

struct grammar_matcher {
    struct grammar *grammar;
    uint32_t state;
    bool ended;                            /* by an end token */
    struct grammar_matcher *next, **place; /* in the grammar's list */
};

/* Takes the program, on failure too. */
MUST_CHECK enum status grammar_create_take(const struct grammar_vocabulary *vocabulary,
                                           struct program *program, struct grammar **ret_grammar,
                                           struct error *err);

/* mask.c: sets grammar->bits to the tokens with text that may follow the state. */
MUST_CHECK enum status grammar_find_bits(struct grammar *grammar, uint32_t state,
                                         struct error *err);
void grammar_forget_masks(struct grammar *grammar);

#endif
