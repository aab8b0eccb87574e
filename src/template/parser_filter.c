/* parser_filter.c - filters and tests after a value, and signs before it. */
#include "template/parser.h"

/* "name" or "name.name". */
static enum status parse_dotted(struct parser *parser, struct value *ret)
{
    struct text_view name;
    TRY(jinja_expect_name(parser, &name));
    while (jinja_is_operator(parser, '.')) {
        parser->at++;
        struct text_view more;
        TRY(jinja_expect_name(parser, &more));
        name.length = (size_t)(more.bytes + more.length - name.bytes);
    }
    return jinja_parser_string(parser, name, ret);
}

static enum status parse_filter(struct parser *parser, struct node **value)
{
    uint32_t at = jinja_peek(parser, 0)->at;
    size_t mark = parser->stack_count;
    struct value name;
    TRY(parse_dotted(parser, &name));
    TRY(jinja_push(parser, *value));
    if (jinja_is_operator(parser, '('))
        TRY(jinja_parse_arguments(parser));
    TRY(jinja_finish(parser, NODE_FILTER, at, mark, value));
    (*value)->value = name;
    return STATUS_OK;
}

enum status jinja_parse_filter_chain(struct parser *parser, bool inline_first, struct node **ret)
{
    *ret = NULL;
    if (inline_first)
        TRY(parse_filter(parser, ret));
    while (jinja_skip_operator(parser, '|'))
        TRY(parse_filter(parser, ret));
    return STATUS_OK;
}

/* True if a test's argument without parentheses follows. */
static bool test_argument_follows(const struct parser *parser)
{
    const struct token *token = jinja_peek(parser, 0);
    if (token->kind == TOKEN_NAME)
        return !jinja_is_name(parser, "else") && !jinja_is_name(parser, "or") &&
               !jinja_is_name(parser, "and");
    return token->kind == TOKEN_STRING || token->kind == TOKEN_NUMBER ||
           jinja_is_operator(parser, '[') || jinja_is_operator(parser, '{');
}

static enum status parse_test(struct parser *parser, struct node **value)
{
    uint32_t at = jinja_peek(parser, 0)->at;
    size_t mark = parser->stack_count;
    struct value name;
    parser->at++;
    bool negated = jinja_skip_name(parser, "not");
    TRY(parse_dotted(parser, &name));
    TRY(jinja_push(parser, *value));
    if (jinja_is_operator(parser, '(')) {
        TRY(jinja_parse_arguments(parser));
    } else if (test_argument_follows(parser)) {
        struct node *argument;
        if (jinja_is_name(parser, "is"))
            return jinja_syntax(parser, "You cannot chain multiple tests with is");
        TRY(jinja_parse_primary(parser, &argument));
        TRY(jinja_parse_postfix(parser, &argument));
        TRY(jinja_push(parser, argument));
    }
    TRY(jinja_finish(parser, NODE_TEST, at, mark, value));
    (*value)->value = name;
    if (!negated)
        return STATUS_OK;
    TRY(jinja_push(parser, *value));
    return jinja_finish(parser, NODE_NOT, at, mark, value);
}

enum status jinja_parse_filters(struct parser *parser, struct node **value)
{
    for (;;) {
        if (jinja_skip_operator(parser, '|'))
            TRY(parse_filter(parser, value));
        else if (jinja_is_name(parser, "is"))
            TRY(parse_test(parser, value));
        else if (jinja_is_operator(parser, '('))
            TRY(jinja_parse_call(parser, value));
        else
            return STATUS_OK;
    }
}

enum status jinja_parse_unary(struct parser *parser, bool with_filters, struct node **ret)
{
    uint32_t at = jinja_peek(parser, 0)->at;
    bool minus = jinja_is_operator(parser, '-');
    TRY(jinja_parse_enter(parser));
    if (minus || jinja_is_operator(parser, '+')) {
        struct node *inner;
        size_t mark = parser->stack_count;
        parser->at++;
        TRY(jinja_parse_unary(parser, false, &inner));
        TRY(jinja_push(parser, inner));
        TRY(jinja_finish(parser, NODE_UNARY, at, mark, ret));
        (*ret)->op = minus ? OP_SUB : OP_ADD;
    } else {
        TRY(jinja_parse_primary(parser, ret));
    }
    TRY(jinja_parse_postfix(parser, ret));
    if (with_filters)
        TRY(jinja_parse_filters(parser, ret));
    parser->depth--;
    return STATUS_OK;
}
