/* node.h - a template as a tree. All nodes have one shape, so that walks over the tree need to know
 * nothing of their kinds. */
#ifndef GRETA_TEMPLATE_NODE_H
#define GRETA_TEMPLATE_NODE_H

#include "template/arena.h"
#include "template/value.h"

enum node_kind {
    /* Statements. */
    NODE_BLOCK,       /* kids: statements */
    NODE_TEXT,        /* value: the text */
    NODE_OUTPUT,      /* kids: expressions */
    NODE_FOR,         /* target, iterable, condition or NULL, body, else or NULL; flag: recursive */
    NODE_IF,          /* condition, body, condition, body, ..., [else body] */
    NODE_SET,         /* target, value */
    NODE_SET_TEXT,    /* target, filters or NULL, body */
    NODE_WITH,        /* target, value, ..., body */
    NODE_MACRO,       /* parameters (TARGET_NAME), defaults, ..., body; name: the macro's; flags */
    NODE_CALL_TEXT,   /* call, NODE_MACRO that is its caller */
    NODE_FILTER_TEXT, /* filters, body */
    NODE_SCOPE,       /* body: the generation tag */
    NODE_BREAK,
    NODE_CONTINUE,
    /* Expressions. */
    NODE_CONSTANT, /* value */
    NODE_NAME,     /* name */
    NODE_LIST,
    NODE_TUPLE,
    NODE_DICT,      /* key, value, ... */
    NODE_ATTRIBUTE, /* object; value: the attribute's name */
    NODE_ITEM,      /* object, index */
    NODE_SLICE,     /* start, stop, step; each or NULL */
    NODE_CALL,      /* callee, arguments */
    NODE_FILTER,    /* subject or NULL (what a block gives), arguments; value: its name */
    NODE_TEST,      /* subject, arguments; value: its name */
    NODE_CONDITION, /* condition, then, else or NULL */
    NODE_AND,
    NODE_OR,
    NODE_NOT,
    NODE_COMPARE, /* first, NODE_OPERAND, ... */
    NODE_OPERAND, /* the right side of a comparison; op */
    NODE_BINARY,  /* left, right; op */
    NODE_UNARY,   /* op: OP_SUB, OP_ADD */
    NODE_CONCAT,  /* a ~ b ~ ... */
    /* Arguments of calls. */
    NODE_KEYWORD, /* value; value: the keyword */
    NODE_SPREAD,  /* *list */
    NODE_SPREAD_KEYWORDS,
    /* What is assigned to, next to NODE_NAME and NODE_TUPLE. */
    NODE_NAMESPACE, /* name; value: the attribute */
};

enum operator{
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_FLOORDIV,
    OP_MOD,
    OP_POW,
    OP_EQ,
    OP_NE,
    OP_LT,
    OP_LE,
    OP_GT,
    OP_GE,
    OP_IN,
    OP_NOT_IN,
    OP_COUNT
};

/* Flags of NODE_FOR and NODE_MACRO. */
#define FLAG_RECURSIVE 1u
#define FLAG_HAS_MACRO 2u /* a macro within may keep the scope of an iteration */
#define FLAG_USES_CALLER 4u
#define FLAG_USES_VARARGS 8u
#define FLAG_USES_KWARGS 16u

struct node {
    uint8_t kind;
    uint8_t op;
    uint8_t flags;
    uint16_t depth; /* of the tree below, this node included */
    uint32_t at;    /* byte of the source */
    uint32_t count;
    uint32_t name; /* index in template->names */
    struct node **kids;
    struct value value;
    const struct builtin *row; /* of a filter or test; NULL: unknown */
};

struct template
{
    struct arena arena;
    struct text source; /* line ends normalised */
    struct node *root;
    const struct string **names; /* every name that is read or written */
    uint32_t name_count, name_capacity;
    uint32_t *name_slots;
    uint32_t name_slot_count;
    uint32_t node_count;
};

/* Limits of the source. Real templates have up to 20 KB, 1,300 nodes and a depth of 29. */
#define SOURCE_LIMIT_BYTES ((size_t)1 << 20)
#define NODE_LIMIT 200000u
#define TOKEN_LIMIT 400000u
#define PARSE_DEPTH_LIMIT 200u

#endif
