/* parser_target.c - what is assigned to: names, tuples of names, attributes of a namespace. */
#include "template/parser.h"

static enum status check_target(struct parser *parser, const struct node *node)
{
    static const char *const names[] = {
        [NODE_CONSTANT] = "const", [NODE_CALL] = "call", [NODE_LIST] = "list", [NODE_DICT] = "dict"
    };
    if (node->kind == NODE_NAME)
        return STATUS_OK;
    if (node->kind != NODE_TUPLE || node->count == 0)
        return jinja_report(
            parser->report, TEMPLATE_PROBLEM_SYNTAX, node->at, "can't assign to '%s'",
            node->kind < COUNT_OF(names) && names[node->kind] ? names[node->kind] : "expression");
    for (uint32_t i = 0; i < node->count; i++)
        TRY(check_target(parser, node->kids[i]));
    return STATUS_OK;
}

/* Names and tuples of names, up to "=", "in" or the end of the tag. */
static enum status parse_target_tuple(struct parser *parser, struct node **ret)
{
    uint32_t at = jinja_peek(parser, 0)->at;
    size_t mark = parser->stack_count;
    bool is_tuple = false;
    do {
        struct node *part;
        if (jinja_is_name(parser, "in") || jinja_is_operator(parser, '=') ||
            jinja_peek(parser, 0)->kind == TOKEN_TAG_END)
            break;
        TRY(jinja_parse_primary(parser, &part));
        TRY(jinja_push(parser, part));
        is_tuple |= jinja_is_operator(parser, ',');
    } while (jinja_skip_operator(parser, ','));
    if (!is_tuple && parser->stack_count > mark) {
        *ret = parser->stack[--parser->stack_count];
        return STATUS_OK;
    }
    if (!is_tuple) {
        char words[64];
        return jinja_syntax(parser, "Expected an expression, got '%s'",
                            jinja_token_words(parser, words, sizeof(words)));
    }
    return jinja_finish(parser, NODE_TUPLE, at, mark, ret);
}

enum status jinja_parse_target(struct parser *parser, bool with_tuple, bool with_namespace,
                               struct node **ret)
{
    const struct token *name = jinja_peek(parser, 0), *dot = jinja_peek(parser, 1);
    if (with_namespace && name->kind == TOKEN_NAME && dot->kind == TOKEN_OPERATOR &&
        dot->op == '.') {
        struct text_view attribute;
        parser->at += 2;
        TRY(jinja_leaf(parser, NODE_NAMESPACE, name->at, ret));
        TRY(jinja_intern(parser, jinja_token_text(parser, name), &(*ret)->name));
        TRY(jinja_expect_name(parser, &attribute));
        return jinja_parser_string(parser, attribute, &(*ret)->value);
    }
    TRY(with_tuple ? parse_target_tuple(parser, ret) : jinja_parse_primary(parser, ret));
    return check_target(parser, *ret);
}
