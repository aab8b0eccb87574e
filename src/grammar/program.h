/* program.h - a grammar as a program over bytes, which the automaton runs.
 *
 * Every instruction that is not a set leads on without reading a byte. A rule is called: the
 * instruction after the call goes onto the stack. So is a counted repetition, with its count. */
#ifndef GRETA_GRAMMAR_PROGRAM_H
#define GRETA_GRAMMAR_PROGRAM_H

#include "grammar/rules.h"

#define PROGRAM_LIMIT (1u << 20)

enum program_op {
    PROGRAM_FAIL,   /* this way does not lead on */
    PROGRAM_SET,    /* a byte of set number a, then b */
    PROGRAM_SPLIT,  /* a or b */
    PROGRAM_CALL,   /* rule number a, then b */
    PROGRAM_REPEAT, /* a, least to most times, then b */
    PROGRAM_RETURN,
};

struct program_step {
    enum program_op op;
    uint32_t a, b;
    uint32_t least, most; /* most RULES_NO_LIMIT: counting ends at least */
};

struct byte_set {
    uint64_t bits[4];
};

static inline bool byte_set_has(const struct byte_set *set, unsigned byte)
{
    return set->bits[byte >> 6] >> (byte & 63) & 1;
}

struct program {
    struct program_step *steps;
    size_t step_count, step_capacity;
    struct byte_set *sets;
    size_t set_count, set_capacity;
    uint32_t *entries; /* of each rule; owned */
    /* Bytes that no set tells apart have the same class. */
    uint8_t classes[256];
    uint8_t examples[256]; /* a byte of each class */
    unsigned class_count;
    struct error error; /* while it is built; status 0: none */
};

void program_release(struct program *program);

/* Step 0 of every program is a failure. Compiles the rules; rule 0 is the root. STATUS_UNSUPPORTED
 * for left recursion, whose rule is then *ret_rule. STATUS_USAGE if no text fits. */
MUST_CHECK enum status program_compile(const struct rules *rules, struct program *ret_program,
                                       uint32_t *ret_rule, struct error *err);

/* ---- analyse.c ------------------------------------------------------------------------------ */

enum rules_fact { RULES_NULLABLE = 1, RULES_PRODUCTIVE = 2 };

/* facts: enum rules_fact for each node, to be freed: it may match nothing; something matches it. */
MUST_CHECK enum status rules_analyse(const struct rules *rules, uint8_t **ret_facts,
                                     struct error *err);
/* Fails for a rule that can begin with itself. */
MUST_CHECK enum status rules_check_left(const struct rules *rules, const uint8_t *facts,
                                        uint32_t *ret_rule, struct error *err);

/* ---- Steps: the first failure stays in program->error ---------------------------------------- */

uint32_t program_add(struct program *program, struct program_step step);
uint32_t program_add_set(struct program *program, const struct byte_set *set, uint32_t next);
/* utf8.c: one character of the ranges, then next. */
uint32_t program_add_characters(struct program *program, const struct rules_range *ranges,
                                size_t count, uint32_t next);

#endif
