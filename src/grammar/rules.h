/* rules.h - a grammar as rules over characters, while it is built: what the readers of GBNF and of
 * schemas make, and what compile.c turns into a program.
 *
 * Nodes are numbers; a node's parts have smaller numbers than the node, except through rules. The
 * first failure (memory, a limit) is kept in `error`, and everything after it does nothing: callers
 * check it once, at the end. */
#ifndef GRETA_GRAMMAR_RULES_H
#define GRETA_GRAMMAR_RULES_H

#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RULES_NODE_LIMIT (1u << 18)
#define RULES_RANGE_LIMIT (1u << 18)
#define RULES_TEXT_LIMIT_BYTES (8u << 20)
#define RULES_NO_LIMIT UINT32_MAX
#define RULES_LAST_CHARACTER 0x10FFFFu
/* Parts inside each other; compiling takes a stack frame for each. */
#define RULES_DEPTH_LIMIT 256u

enum rules_kind {
    RULES_NEVER, /* matches nothing at all */
    RULES_EMPTY,
    RULES_TEXT,   /* bytes [a, a + b) of texts */
    RULES_SET,    /* one character of ranges [a, a + b) */
    RULES_SEQ,    /* a, then b */
    RULES_ALT,    /* a or b */
    RULES_REPEAT, /* a, least to most times */
    RULES_RULE,   /* rule number a */
};

/* These two are always there. */
#define RULES_NODE_NEVER 0u
#define RULES_NODE_EMPTY 1u

struct rules_node {
    enum rules_kind kind;
    uint32_t a, b;
    uint32_t least, most;
};

struct rules_range {
    uint32_t first, last; /* characters */
};

struct rules {
    struct rules_node *nodes;
    size_t node_count, node_capacity;
    struct rules_range *ranges;
    size_t range_count, range_capacity;
    uint32_t *roots; /* of each rule, its node; RULES_NODE_NEVER until it is set */
    size_t rule_count, rule_capacity;
    struct text texts;
    struct error error; /* status 0: none */
};

void rules_init(struct rules *rules);
void rules_release(struct rules *rules);

uint32_t rules_text(struct rules *rules, const char *bytes, size_t count);
uint32_t rules_word(struct rules *rules, const char *zero_terminated);
/* Ranges in any order; surrogates are left out. */
uint32_t rules_set(struct rules *rules, const struct rules_range *ranges, size_t count);
uint32_t rules_seq(struct rules *rules, uint32_t first, uint32_t second);
uint32_t rules_alt(struct rules *rules, uint32_t one, uint32_t other);
uint32_t rules_repeat(struct rules *rules, uint32_t node, uint32_t least, uint32_t most);
uint32_t rules_optional(struct rules *rules, uint32_t node);
/* A new rule, whose node is set later. */
uint32_t rules_add(struct rules *rules);
void rules_define(struct rules *rules, uint32_t rule, uint32_t node);
uint32_t rules_use(struct rules *rules, uint32_t rule);

/* ---- Sets of characters --------------------------------------------------------------------- */

/* Sorted, no two touching; initialise with zeros. */
struct charset {
    struct rules_range *ranges;
    size_t count, capacity;
    bool failed; /* no memory */
};

void charset_release(struct charset *set);
void charset_add(struct charset *set, uint32_t first, uint32_t last);
/* Sorts and joins; call it after the last charset_add. */
void charset_finish(struct charset *set);
/* Every character that the set does not have; the set is finished. */
void charset_negate(struct charset *set);
/* Keeps what lies in [first, last]; the set is finished. */
void charset_clip(struct charset *set, uint32_t first, uint32_t last);
bool charset_has(const struct charset *set, uint32_t character);

#endif
