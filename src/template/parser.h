/* parser.h - tokens to a tree, with Jinja's grammar and its messages. */
#ifndef GRETA_TEMPLATE_PARSER_H
#define GRETA_TEMPLATE_PARSER_H

#include "template/lexer.h"

struct parser {
    struct template *template;
    struct report *report;
    const struct token *tokens;
    size_t at;
    uint32_t depth;      /* of the parser's own calls */
    uint32_t loops;      /* around the statement; 0: break is an error */
    struct node **stack; /* nodes that still lack a parent; malloc */
    size_t stack_count, stack_capacity;
};

/* parser_check.c: unknown filters and tests, which macros need what. Sets flags and rows. */
MUST_CHECK enum status jinja_check(struct parser *parser, struct node *root);

MUST_CHECK enum status jinja_parse_block(struct parser *parser, const char *const *ends,
                                         struct node **ret);

/* ---- Nodes (parser_node.c) ------------------------------------------------------------------- */

MUST_CHECK enum status jinja_syntax(struct parser *parser, const char *format, ...)
    PRINTF_LIKE(2, 3);
MUST_CHECK enum status jinja_push(struct parser *parser, struct node *node);
/* A node whose kids are what was pushed since the stack had `mark` entries. */
MUST_CHECK enum status jinja_finish(struct parser *parser, enum node_kind kind, uint32_t at,
                                    size_t mark, struct node **ret);
MUST_CHECK enum status jinja_leaf(struct parser *parser, enum node_kind kind, uint32_t at,
                                  struct node **ret);
MUST_CHECK enum status jinja_parse_enter(struct parser *parser);
MUST_CHECK enum status jinja_intern(struct parser *parser, struct text_view name, uint32_t *ret);
MUST_CHECK enum status jinja_parser_string(struct parser *parser, struct text_view text,
                                           struct value *ret);

/* ---- Tokens ---------------------------------------------------------------------------------- */

const struct token *jinja_peek(const struct parser *parser, size_t ahead);
struct text_view jinja_token_text(const struct parser *parser, const struct token *token);
bool jinja_is_operator(const struct parser *parser, uint16_t op);
bool jinja_is_name(const struct parser *parser, const char *name);
bool jinja_skip_operator(struct parser *parser, uint16_t op);
bool jinja_skip_name(struct parser *parser, const char *name);
MUST_CHECK enum status jinja_expect_operator(struct parser *parser, uint16_t op);
MUST_CHECK enum status jinja_expect_tag_end(struct parser *parser);
MUST_CHECK enum status jinja_expect_name(struct parser *parser, struct text_view *ret);
/* The current token in Jinja's words. */
const char *jinja_token_words(const struct parser *parser, char *buffer, size_t bytes);

/* ---- Expressions (parser_expression.c, parser_primary.c, parser_filter.c, parser_target.c)
 * ------------------------------------- */

MUST_CHECK enum status jinja_parse_expression(struct parser *parser, struct node **ret);
/* Without "a if b else c". */
MUST_CHECK enum status jinja_parse_or(struct parser *parser, struct node **ret);

enum tuple_style {
    TUPLE_PLAIN,
    TUPLE_WITHOUT_CONDITION, /* for x in HERE if ... */
    TUPLE_IN_PARENTHESES,    /* () is a tuple */
};
/* One expression, or several with commas. */
MUST_CHECK enum status jinja_parse_tuple(struct parser *parser, enum tuple_style style,
                                         struct node **ret);
MUST_CHECK enum status jinja_parse_unary(struct parser *parser, bool with_filters,
                                         struct node **ret);
MUST_CHECK enum status jinja_parse_primary(struct parser *parser, struct node **ret);
/* What follows a value: attributes, items, calls; with_filters: filters and tests too. */
MUST_CHECK enum status jinja_parse_postfix(struct parser *parser, struct node **value);
/* "(a, b=1)", whose arguments are pushed, and a call of the value with them. */
MUST_CHECK enum status jinja_parse_arguments(struct parser *parser);
MUST_CHECK enum status jinja_parse_call(struct parser *parser, struct node **value);
MUST_CHECK enum status jinja_parse_filters(struct parser *parser, struct node **value);
/* name(arguments) | ...; the innermost subject is NULL. */
MUST_CHECK enum status jinja_parse_filter_chain(struct parser *parser, bool inline_first,
                                                struct node **ret);
/* What is assigned to: names, tuples of names; with_namespace: name.attribute too. */
MUST_CHECK enum status jinja_parse_target(struct parser *parser, bool with_tuple,
                                          bool with_namespace, struct node **ret);

#endif
