/* parser_primary.c - values, and the attributes, items and calls that follow them. */
#include "template/parser.h"

#include "template/strings.h"

#include <string.h>

static enum status parse_items(struct parser *parser, uint16_t end, struct node **ret)
{
    uint32_t at = jinja_peek(parser, 0)->at;
    size_t mark = parser->stack_count;
    bool is_dict = end == '}';
    parser->at++;
    while (!jinja_is_operator(parser, end)) {
        struct node *part;
        if (parser->stack_count > mark)
            TRY(jinja_expect_operator(parser, ','));
        if (jinja_is_operator(parser, end))
            break;
        TRY(jinja_parse_expression(parser, &part));
        TRY(jinja_push(parser, part));
        if (is_dict) {
            TRY(jinja_expect_operator(parser, ':'));
            TRY(jinja_parse_expression(parser, &part));
            TRY(jinja_push(parser, part));
        }
    }
    parser->at++;
    return jinja_finish(parser, is_dict ? NODE_DICT : NODE_LIST, at, mark, ret);
}

/* Strings next to each other are one. */
static enum status parse_strings(struct parser *parser, struct node **ret)
{
    const struct token *token = jinja_peek(parser, 0);
    TRY(jinja_leaf(parser, NODE_CONSTANT, token->at, ret));
    (*ret)->value = token->value;
    parser->at++;
    if (jinja_peek(parser, 0)->kind != TOKEN_STRING)
        return STATUS_OK;
    struct text joined;
    text_init(&joined);
    text_add_bytes(&joined, token->value.string->bytes, token->value.string->length);
    for (; (token = jinja_peek(parser, 0))->kind == TOKEN_STRING; parser->at++)
        text_add_bytes(&joined, token->value.string->bytes, token->value.string->length);
    enum status status = joined.failed
                             ? jinja_report_memory(parser->report)
                             : jinja_parser_string(
                                   parser, (struct text_view){ text_get(&joined), joined.length },
                                   &(*ret)->value);
    text_release(&joined);
    return status;
}

static enum status parse_name(struct parser *parser, struct node **ret)
{
    static const struct {
        const char *names[2];
        struct value value;
    } constants[] = {
        { { "true", "True" }, { .kind = VALUE_BOOL, .truth = true } },
        { { "false", "False" }, { .kind = VALUE_BOOL, .truth = false } },
        { { "none", "None" }, { .kind = VALUE_NONE } },
    };
    const struct token *token = jinja_peek(parser, 0);
    struct text_view name = jinja_token_text(parser, token);
    parser->at++;
    for (size_t i = 0; i < COUNT_OF(constants); i++)
        if (text_view_is(name, constants[i].names[0]) ||
            text_view_is(name, constants[i].names[1])) {
            TRY(jinja_leaf(parser, NODE_CONSTANT, token->at, ret));
            (*ret)->value = constants[i].value;
            return STATUS_OK;
        }
    TRY(jinja_leaf(parser, NODE_NAME, token->at, ret));
    return jinja_intern(parser, name, &(*ret)->name);
}

enum status jinja_parse_primary(struct parser *parser, struct node **ret)
{
    const struct token *token = jinja_peek(parser, 0);
    char words[64];
    switch (token->kind) {
    case TOKEN_NAME:
        return parse_name(parser, ret);
    case TOKEN_STRING:
        return parse_strings(parser, ret);
    case TOKEN_NUMBER:
        parser->at++;
        TRY(jinja_leaf(parser, NODE_CONSTANT, token->at, ret));
        (*ret)->value = token->value;
        return STATUS_OK;
    default:
        break;
    }
    if (jinja_skip_operator(parser, '(')) {
        TRY(jinja_parse_tuple(parser, TUPLE_IN_PARENTHESES, ret));
        return jinja_expect_operator(parser, ')');
    }
    if (jinja_is_operator(parser, '['))
        return parse_items(parser, ']', ret);
    if (jinja_is_operator(parser, '{'))
        return parse_items(parser, '}', ret);
    return jinja_syntax(parser, "unexpected '%s'", jinja_token_words(parser, words, sizeof(words)));
}

/* ---- Arguments ------------------------------------------------------------------------------- */

static enum status parse_argument(struct parser *parser, bool *keywords, bool *spread_keywords)
{
    const struct token *token = jinja_peek(parser, 0), *next = jinja_peek(parser, 1);
    enum node_kind kind = NODE_CONSTANT; /* positional */
    struct value name = { 0 };
    if (jinja_skip_operator(parser, '*')) {
        kind = NODE_SPREAD;
    } else if (jinja_skip_operator(parser, TWO('*', '*'))) {
        kind = NODE_SPREAD_KEYWORDS;
    } else if (token->kind == TOKEN_NAME && next->kind == TOKEN_OPERATOR && next->op == '=') {
        kind = NODE_KEYWORD;
        TRY(jinja_parser_string(parser, jinja_token_text(parser, token), &name));
        parser->at += 2;
    }
    if (*spread_keywords || (kind == NODE_CONSTANT && *keywords))
        return jinja_syntax(parser, "invalid syntax for function call expression");
    *keywords |= kind == NODE_KEYWORD || kind == NODE_SPREAD;
    *spread_keywords |= kind == NODE_SPREAD_KEYWORDS;
    struct node *value;
    TRY(jinja_parse_expression(parser, &value));
    if (kind != NODE_CONSTANT) {
        size_t mark = parser->stack_count;
        TRY(jinja_push(parser, value));
        TRY(jinja_finish(parser, kind, token->at, mark, &value));
        value->value = name;
    }
    return jinja_push(parser, value);
}

/* "(a, b=1)", whose arguments are pushed. */
enum status jinja_parse_arguments(struct parser *parser)
{
    bool first = true, keywords = false, spread_keywords = false;
    TRY(jinja_expect_operator(parser, '('));
    while (!jinja_is_operator(parser, ')')) {
        if (!first)
            TRY(jinja_expect_operator(parser, ','));
        first = false;
        if (jinja_is_operator(parser, ')'))
            break;
        TRY(parse_argument(parser, &keywords, &spread_keywords));
    }
    parser->at++;
    return STATUS_OK;
}

enum status jinja_parse_call(struct parser *parser, struct node **value)
{
    uint32_t at = jinja_peek(parser, 0)->at;
    size_t mark = parser->stack_count;
    TRY(jinja_push(parser, *value));
    TRY(jinja_parse_arguments(parser));
    return jinja_finish(parser, NODE_CALL, at, mark, value);
}

/* ---- Items ----------------------------------------------------------------------------------- */

/* One index, or a slice. */
static enum status parse_index(struct parser *parser, struct node **ret)
{
    uint32_t at = jinja_peek(parser, 0)->at;
    size_t mark = parser->stack_count;
    struct node *part = NULL;
    if (!jinja_is_operator(parser, ':')) {
        TRY(jinja_parse_expression(parser, &part));
        if (!jinja_is_operator(parser, ':')) {
            *ret = part;
            return STATUS_OK;
        }
    }
    TRY(jinja_push(parser, part));
    for (int i = 0; i < 2; i++) {
        part = NULL;
        if (jinja_skip_operator(parser, ':') && !jinja_is_operator(parser, ':') &&
            !jinja_is_operator(parser, ']') && !jinja_is_operator(parser, ','))
            TRY(jinja_parse_expression(parser, &part));
        TRY(jinja_push(parser, part));
    }
    return jinja_finish(parser, NODE_SLICE, at, mark, ret);
}

static enum status parse_item(struct parser *parser, struct node **value)
{
    uint32_t at = jinja_peek(parser, 0)->at;
    size_t mark = parser->stack_count;
    struct node *index;
    parser->at++;
    TRY(jinja_push(parser, *value));
    TRY(parse_index(parser, &index));
    if (jinja_is_operator(parser, ',')) {
        size_t inner = parser->stack_count;
        TRY(jinja_push(parser, index));
        while (jinja_skip_operator(parser, ',')) {
            TRY(parse_index(parser, &index));
            TRY(jinja_push(parser, index));
        }
        TRY(jinja_finish(parser, NODE_TUPLE, at, inner, &index));
    }
    TRY(jinja_expect_operator(parser, ']'));
    TRY(jinja_push(parser, index));
    return jinja_finish(parser, NODE_ITEM, at, mark, value);
}

static enum status parse_attribute(struct parser *parser, struct node **value)
{
    uint32_t at = jinja_peek(parser, 0)->at;
    size_t mark = parser->stack_count;
    parser->at++;
    const struct token *token = jinja_peek(parser, 0);
    TRY(jinja_push(parser, *value));
    if (token->kind == TOKEN_NAME) {
        parser->at++;
        TRY(jinja_finish(parser, NODE_ATTRIBUTE, at, mark, value));
        return jinja_parser_string(parser, jinja_token_text(parser, token), &(*value)->value);
    }
    if (token->kind != TOKEN_NUMBER || token->value.kind != VALUE_INT)
        return jinja_syntax(parser, "expected name or number");
    struct node *index;
    TRY(jinja_parse_primary(parser, &index));
    TRY(jinja_push(parser, index));
    return jinja_finish(parser, NODE_ITEM, at, mark, value);
}

enum status jinja_parse_postfix(struct parser *parser, struct node **value)
{
    for (;;) {
        if (jinja_is_operator(parser, '.'))
            TRY(parse_attribute(parser, value));
        else if (jinja_is_operator(parser, '['))
            TRY(parse_item(parser, value));
        else if (jinja_is_operator(parser, '('))
            TRY(jinja_parse_call(parser, value));
        else
            return STATUS_OK;
    }
}
