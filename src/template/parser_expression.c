/* parser_expression.c - operators, from the loosest to the tightest:
 * if else, or, and, not, comparisons, + -, ~, * / // %, **, unary + -. */
#include "template/parser.h"

struct binary_row {
    uint16_t token;
    enum operator op;
};

static const struct binary_row sums[] = { { '+', OP_ADD }, { '-', OP_SUB } };
static const struct binary_row terms[] = {
    { '*', OP_MUL }, { '/', OP_DIV }, { TWO('/', '/'), OP_FLOORDIV }, { '%', OP_MOD }
};
static const struct binary_row powers[] = { { TWO('*', '*'), OP_POW } };
static const struct binary_row comparisons[] = {
    { TWO('=', '='), OP_EQ }, { TWO('!', '='), OP_NE }, { '<', OP_LT },
    { TWO('<', '='), OP_LE }, { '>', OP_GT },           { TWO('>', '='), OP_GE },
};

static const struct binary_row *row_at(const struct parser *parser, const struct binary_row *rows,
                                       size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (jinja_is_operator(parser, rows[i].token))
            return &rows[i];
    return NULL;
}

typedef enum status (*parse_function)(struct parser *parser, struct node **ret);

/* Left-associative: a op b op c. */
static enum status parse_binary(struct parser *parser, const struct binary_row *rows, size_t count,
                                parse_function tighter, struct node **ret)
{
    struct node *left, *right;
    TRY(tighter(parser, &left));
    for (;;) {
        const struct binary_row *row = row_at(parser, rows, count);
        if (!row)
            break;
        uint32_t at = jinja_peek(parser, 0)->at;
        parser->at++;
        size_t mark = parser->stack_count;
        TRY(jinja_push(parser, left));
        TRY(tighter(parser, &right));
        TRY(jinja_push(parser, right));
        TRY(jinja_finish(parser, NODE_BINARY, at, mark, &left));
        left->op = (uint8_t)row->op;
    }
    *ret = left;
    return STATUS_OK;
}

static enum status parse_signed(struct parser *parser, struct node **ret)
{
    return jinja_parse_unary(parser, true, ret);
}

static enum status parse_power(struct parser *parser, struct node **ret)
{
    return parse_binary(parser, powers, COUNT_OF(powers), parse_signed, ret);
}

static enum status parse_term(struct parser *parser, struct node **ret)
{
    return parse_binary(parser, terms, COUNT_OF(terms), parse_power, ret);
}

static enum status parse_concat(struct parser *parser, struct node **ret)
{
    struct node *first;
    uint32_t at = jinja_peek(parser, 0)->at;
    size_t mark = parser->stack_count;
    TRY(parse_term(parser, &first));
    if (!jinja_is_operator(parser, '~')) {
        *ret = first;
        return STATUS_OK;
    }
    TRY(jinja_push(parser, first));
    while (jinja_skip_operator(parser, '~')) {
        struct node *next;
        TRY(parse_term(parser, &next));
        TRY(jinja_push(parser, next));
    }
    return jinja_finish(parser, NODE_CONCAT, at, mark, ret);
}

static enum status parse_sum(struct parser *parser, struct node **ret)
{
    return parse_binary(parser, sums, COUNT_OF(sums), parse_concat, ret);
}

/* The operator of a comparison, read; false: there is none. */
static bool skip_comparison(struct parser *parser, enum operator* ret)
{
    const struct binary_row *row = row_at(parser, comparisons, COUNT_OF(comparisons));
    if (row) {
        parser->at++;
        *ret = row->op;
        return true;
    }
    if (jinja_skip_name(parser, "in")) {
        *ret = OP_IN;
        return true;
    }
    const struct token *next = jinja_peek(parser, 1);
    if (jinja_is_name(parser, "not") && next->kind == TOKEN_NAME &&
        text_view_is(jinja_token_text(parser, next), "in")) {
        parser->at += 2;
        *ret = OP_NOT_IN;
        return true;
    }
    return false;
}

static enum status parse_comparison(struct parser *parser, struct node **ret)
{
    struct node *first;
    enum operator op;
    size_t mark = parser->stack_count;
    TRY(parse_sum(parser, &first));
    uint32_t at = jinja_peek(parser, 0)->at;
    if (!skip_comparison(parser, &op)) {
        *ret = first;
        return STATUS_OK;
    }
    TRY(jinja_push(parser, first));
    do {
        struct node *right, *operand;
        size_t inner = parser->stack_count;
        TRY(parse_sum(parser, &right));
        TRY(jinja_push(parser, right));
        TRY(jinja_finish(parser, NODE_OPERAND, right->at, inner, &operand));
        operand->op = (uint8_t)op;
        TRY(jinja_push(parser, operand));
    } while (skip_comparison(parser, &op));
    return jinja_finish(parser, NODE_COMPARE, at, mark, ret);
}

static enum status parse_not(struct parser *parser, struct node **ret)
{
    uint32_t at = jinja_peek(parser, 0)->at;
    if (!jinja_skip_name(parser, "not"))
        return parse_comparison(parser, ret);
    struct node *inner;
    size_t mark = parser->stack_count;
    TRY(jinja_parse_enter(parser));
    TRY(parse_not(parser, &inner));
    parser->depth--;
    TRY(jinja_push(parser, inner));
    return jinja_finish(parser, NODE_NOT, at, mark, ret);
}

static enum status parse_chain(struct parser *parser, const char *word, enum node_kind kind,
                               parse_function tighter, struct node **ret)
{
    struct node *left, *right;
    TRY(tighter(parser, &left));
    for (;;) {
        uint32_t at = jinja_peek(parser, 0)->at;
        if (!jinja_skip_name(parser, word))
            break;
        size_t mark = parser->stack_count;
        TRY(jinja_push(parser, left));
        TRY(tighter(parser, &right));
        TRY(jinja_push(parser, right));
        TRY(jinja_finish(parser, kind, at, mark, &left));
    }
    *ret = left;
    return STATUS_OK;
}

static enum status parse_and(struct parser *parser, struct node **ret)
{
    return parse_chain(parser, "and", NODE_AND, parse_not, ret);
}

enum status jinja_parse_or(struct parser *parser, struct node **ret)
{
    return parse_chain(parser, "or", NODE_OR, parse_and, ret);
}

enum status jinja_parse_expression(struct parser *parser, struct node **ret)
{
    struct node *then, *part;
    TRY(jinja_parse_enter(parser));
    TRY(jinja_parse_or(parser, &then));
    for (;;) {
        uint32_t at = jinja_peek(parser, 0)->at;
        if (!jinja_skip_name(parser, "if"))
            break;
        size_t mark = parser->stack_count;
        TRY(jinja_parse_or(parser, &part));
        TRY(jinja_push(parser, part));
        TRY(jinja_push(parser, then));
        part = NULL;
        if (jinja_skip_name(parser, "else"))
            TRY(jinja_parse_expression(parser, &part));
        TRY(jinja_push(parser, part));
        TRY(jinja_finish(parser, NODE_CONDITION, at, mark, &then));
    }
    parser->depth--;
    *ret = then;
    return STATUS_OK;
}

/* True where a tuple cannot go on: after a last comma, or where nothing was to come. */
static bool tuple_ends(const struct parser *parser)
{
    uint8_t kind = jinja_peek(parser, 0)->kind;
    return kind == TOKEN_OUTPUT_END || kind == TOKEN_TAG_END || jinja_is_operator(parser, ')');
}

enum status jinja_parse_tuple(struct parser *parser, enum tuple_style style, struct node **ret)
{
    uint32_t at = jinja_peek(parser, 0)->at;
    size_t mark = parser->stack_count;
    bool is_tuple = false;
    while (!tuple_ends(parser) &&
           !(style == TUPLE_WITHOUT_CONDITION && jinja_is_name(parser, "recursive"))) {
        struct node *part;
        TRY(style == TUPLE_WITHOUT_CONDITION ? jinja_parse_or(parser, &part)
                                             : jinja_parse_expression(parser, &part));
        TRY(jinja_push(parser, part));
        if (!jinja_skip_operator(parser, ','))
            break;
        is_tuple = true;
    }
    if (!is_tuple && parser->stack_count > mark) {
        *ret = parser->stack[--parser->stack_count];
        return STATUS_OK;
    }
    if (!is_tuple && style != TUPLE_IN_PARENTHESES) {
        char words[64];
        return jinja_syntax(parser, "Expected an expression, got '%s'",
                            jinja_token_words(parser, words, sizeof(words)));
    }
    return jinja_finish(parser, NODE_TUPLE, at, mark, ret);
}
