/* parser.c - statements. */
#include "template/parser.h"

#include <stdio.h>
#include <string.h>

static bool is_end(const struct parser *parser, const char *const *ends)
{
    for (; ends && *ends; ends++)
        if (jinja_is_name(parser, *ends))
            return true;
    return false;
}

/* ---- Statements ------------------------------------------------------------------------------ */

/* The statements up to one of the end tags, whose name is the next token. */
static enum status parse_body(struct parser *parser, const char *const *ends, struct node **ret)
{
    (void)jinja_skip_operator(parser, ':');
    TRY(jinja_expect_tag_end(parser));
    TRY(jinja_parse_block(parser, ends, ret));
    return STATUS_OK;
}

/* The same, pushed, with the end tag's name read. */
static enum status push_body(struct parser *parser, const char *const *ends)
{
    struct node *body;
    TRY(parse_body(parser, ends, &body));
    parser->at++;
    return jinja_push(parser, body);
}

static enum status parse_for(struct parser *parser, uint32_t at, struct node **ret)
{
    static const char *const ends[] = { "endfor", "else", NULL }, *const last[] = { "endfor",
                                                                                    NULL };
    size_t mark = parser->stack_count;
    struct node *part;
    TRY(jinja_parse_target(parser, true, false, &part));
    TRY(jinja_push(parser, part));
    if (!jinja_skip_name(parser, "in")) {
        char words[64];
        return jinja_syntax(parser, "expected token 'in', got '%s'",
                            jinja_token_words(parser, words, sizeof(words)));
    }
    TRY(jinja_parse_tuple(parser, TUPLE_WITHOUT_CONDITION, &part));
    TRY(jinja_push(parser, part));
    part = NULL;
    if (jinja_skip_name(parser, "if"))
        TRY(jinja_parse_expression(parser, &part));
    TRY(jinja_push(parser, part));
    bool recursive = jinja_skip_name(parser, "recursive");
    parser->loops++;
    TRY(parse_body(parser, ends, &part));
    parser->loops--;
    TRY(jinja_push(parser, part));
    if (jinja_skip_name(parser, "else")) {
        TRY(push_body(parser, last));
    } else {
        parser->at++;
        TRY(jinja_push(parser, NULL));
    }
    TRY(jinja_finish(parser, NODE_FOR, at, mark, ret));
    (*ret)->flags = recursive ? FLAG_RECURSIVE : 0;
    return STATUS_OK;
}

static enum status parse_if(struct parser *parser, uint32_t at, struct node **ret)
{
    static const char *const ends[] = { "elif", "else", "endif", NULL };
    static const char *const last[] = { "endif", NULL };
    size_t mark = parser->stack_count;
    do {
        struct node *part;
        TRY(jinja_parse_tuple(parser, TUPLE_WITHOUT_CONDITION, &part));
        TRY(jinja_push(parser, part));
        TRY(parse_body(parser, ends, &part));
        TRY(jinja_push(parser, part));
    } while (jinja_skip_name(parser, "elif"));
    if (jinja_skip_name(parser, "else"))
        TRY(push_body(parser, last));
    else
        parser->at++; /* endif */
    return jinja_finish(parser, NODE_IF, at, mark, ret);
}

static enum status parse_set(struct parser *parser, uint32_t at, struct node **ret)
{
    static const char *const ends[] = { "endset", NULL };
    size_t mark = parser->stack_count;
    struct node *part;
    TRY(jinja_parse_target(parser, true, true, &part));
    TRY(jinja_push(parser, part));
    bool simple = jinja_skip_operator(parser, '=');
    TRY(simple ? jinja_parse_tuple(parser, TUPLE_PLAIN, &part)
               : jinja_parse_filter_chain(parser, false, &part));
    TRY(jinja_push(parser, part));
    if (!simple)
        TRY(push_body(parser, ends));
    return jinja_finish(parser, simple ? NODE_SET : NODE_SET_TEXT, at, mark, ret);
}

static enum status parse_with(struct parser *parser, uint32_t at, struct node **ret)
{
    static const char *const ends[] = { "endwith", NULL };
    size_t mark = parser->stack_count;
    while (jinja_peek(parser, 0)->kind != TOKEN_TAG_END) {
        struct node *part;
        if (parser->stack_count > mark)
            TRY(jinja_expect_operator(parser, ','));
        TRY(jinja_parse_target(parser, false, false, &part));
        TRY(jinja_push(parser, part));
        TRY(jinja_expect_operator(parser, '='));
        TRY(jinja_parse_expression(parser, &part));
        TRY(jinja_push(parser, part));
    }
    TRY(push_body(parser, ends));
    return jinja_finish(parser, NODE_WITH, at, mark, ret);
}

/* "(a, b=1)": names and defaults (or NULL) are pushed. */
static enum status parse_signature(struct parser *parser)
{
    bool first = true, defaults = false;
    TRY(jinja_expect_operator(parser, '('));
    while (!jinja_is_operator(parser, ')')) {
        struct node *part;
        if (!first)
            TRY(jinja_expect_operator(parser, ','));
        first = false;
        TRY(jinja_parse_target(parser, false, false, &part));
        TRY(jinja_push(parser, part));
        part = NULL;
        if (jinja_skip_operator(parser, '=')) {
            TRY(jinja_parse_expression(parser, &part));
            defaults = true;
        } else if (defaults) {
            return jinja_syntax(parser, "non-default argument follows default argument");
        }
        TRY(jinja_push(parser, part));
    }
    parser->at++;
    return STATUS_OK;
}

/* From the signature on; the name may be empty. */
static enum status parse_macro_rest(struct parser *parser, uint32_t at, struct text_view name,
                                    const char *const *ends, bool with_signature, struct node **ret)
{
    size_t mark = parser->stack_count;
    uint32_t loops = parser->loops;
    if (with_signature)
        TRY(parse_signature(parser));
    struct node *call = NULL;
    bool is_call = name.length == 0;
    if (is_call) {
        TRY(jinja_parse_expression(parser, &call));
        if (call->kind != NODE_CALL)
            return jinja_report(parser->report, TEMPLATE_PROBLEM_SYNTAX, at, "expected call");
    }
    parser->loops = 0;
    TRY(push_body(parser, ends));
    parser->loops = loops;
    TRY(jinja_finish(parser, NODE_MACRO, at, mark, ret));
    if (!is_call) {
        TRY(jinja_parser_string(parser, name, &(*ret)->value));
        return jinja_intern(parser, name, &(*ret)->name);
    }
    TRY(jinja_push(parser, call));
    TRY(jinja_push(parser, *ret));
    return jinja_finish(parser, NODE_CALL_TEXT, at, mark, ret);
}

static enum status parse_macro(struct parser *parser, uint32_t at, struct node **ret)
{
    static const char *const ends[] = { "endmacro", NULL };
    struct text_view name;
    TRY(jinja_expect_name(parser, &name));
    return parse_macro_rest(parser, at, name, ends, true, ret);
}

static enum status parse_call_text(struct parser *parser, uint32_t at, struct node **ret)
{
    static const char *const ends[] = { "endcall", NULL };
    return parse_macro_rest(parser, at, (struct text_view){ "", 0 }, ends,
                            jinja_is_operator(parser, '('), ret);
}

static enum status parse_filter_text(struct parser *parser, uint32_t at, struct node **ret)
{
    static const char *const ends[] = { "endfilter", NULL };
    size_t mark = parser->stack_count;
    struct node *filters;
    TRY(jinja_parse_filter_chain(parser, true, &filters));
    TRY(jinja_push(parser, filters));
    TRY(push_body(parser, ends));
    return jinja_finish(parser, NODE_FILTER_TEXT, at, mark, ret);
}

static enum status parse_generation(struct parser *parser, uint32_t at, struct node **ret)
{
    static const char *const ends[] = { "endgeneration", NULL };
    size_t mark = parser->stack_count;
    TRY(push_body(parser, ends));
    return jinja_finish(parser, NODE_SCOPE, at, mark, ret);
}

static enum status parse_print(struct parser *parser, uint32_t at, struct node **ret)
{
    size_t mark = parser->stack_count;
    do {
        struct node *part;
        TRY(jinja_parse_expression(parser, &part));
        TRY(jinja_push(parser, part));
    } while (jinja_skip_operator(parser, ','));
    return jinja_finish(parser, NODE_OUTPUT, at, mark, ret);
}

static enum status parse_jump(struct parser *parser, uint32_t at, struct node **ret)
{
    struct text_view name = jinja_token_text(parser, &parser->tokens[parser->at - 1]);
    bool is_break = text_view_is(name, "break");
    if (parser->loops == 0)
        return jinja_report(parser->report, TEMPLATE_PROBLEM_SYNTAX, at, "'%s' outside loop",
                            is_break ? "break" : "continue");
    return jinja_leaf(parser, is_break ? NODE_BREAK : NODE_CONTINUE, at, ret);
}

static const struct {
    const char *name;
    enum status (*parse)(struct parser *parser, uint32_t at, struct node **ret);
} statements[] = {
    { "for", parse_for },        { "if", parse_if },
    { "set", parse_set },        { "macro", parse_macro },
    { "call", parse_call_text }, { "filter", parse_filter_text },
    { "with", parse_with },      { "generation", parse_generation },
    { "print", parse_print },    { "break", parse_jump },
    { "continue", parse_jump },
};

static enum status unknown_tag(struct parser *parser, const char *const *ends)
{
    char words[64];
    const char *shown = jinja_token_words(parser, words, sizeof(words));
    struct text list;
    text_init(&list);
    for (const char *const *end = ends; end && *end; end++)
        text_addf(&list, "%s'%s'", end == ends ? "" : " or ", *end);
    enum status status;
    if (jinja_peek(parser, 0)->kind == TOKEN_END)
        status = jinja_syntax(parser,
                              "Unexpected end of template. Jinja was looking for the following "
                              "tags: %s.",
                              text_get(&list));
    else if (ends)
        status = jinja_syntax(parser,
                              "Encountered unknown tag '%s'. Jinja was looking for the following "
                              "tags: %s.",
                              shown, text_get(&list));
    else
        status = jinja_syntax(parser, "Encountered unknown tag '%s'.", shown);
    text_release(&list);
    return status;
}

static enum status parse_statement(struct parser *parser, const char *const *ends)
{
    const struct token *token = jinja_peek(parser, 0);
    if (token->kind != TOKEN_NAME)
        return jinja_syntax(parser, "tag name expected");
    for (size_t i = 0; i < COUNT_OF(statements); i++) {
        if (!jinja_is_name(parser, statements[i].name))
            continue;
        struct node *node;
        parser->at++;
        TRY(jinja_parse_enter(parser));
        TRY(statements[i].parse(parser, token->at, &node));
        parser->depth--;
        TRY(jinja_expect_tag_end(parser));
        return jinja_push(parser, node);
    }
    return unknown_tag(parser, ends);
}

static enum status parse_output(struct parser *parser)
{
    size_t mark = parser->stack_count;
    struct node *node;
    uint32_t at = jinja_peek(parser, 0)->at;
    parser->at++;
    TRY(jinja_parse_tuple(parser, TUPLE_PLAIN, &node));
    if (jinja_peek(parser, 0)->kind == TOKEN_END)
        return jinja_syntax(parser,
                            "unexpected end of template, expected 'end of print statement'.");
    if (jinja_peek(parser, 0)->kind != TOKEN_OUTPUT_END) {
        char words[64];
        return jinja_syntax(parser, "expected token 'end of print statement', got '%s'",
                            jinja_token_words(parser, words, sizeof(words)));
    }
    parser->at++;
    TRY(jinja_push(parser, node));
    TRY(jinja_finish(parser, NODE_OUTPUT, at, mark, &node));
    return jinja_push(parser, node);
}

static enum status parse_text(struct parser *parser)
{
    const struct token *token = jinja_peek(parser, 0);
    struct node *node;
    parser->at++;
    TRY(jinja_leaf(parser, NODE_TEXT, token->at, &node));
    TRY(jinja_parser_string(parser, jinja_token_text(parser, token), &node->value));
    return jinja_push(parser, node);
}

enum status jinja_parse_block(struct parser *parser, const char *const *ends, struct node **ret)
{
    size_t mark = parser->stack_count;
    uint32_t at = jinja_peek(parser, 0)->at;
    for (;;) {
        switch (jinja_peek(parser, 0)->kind) {
        case TOKEN_TEXT:
            TRY(parse_text(parser));
            break;
        case TOKEN_OUTPUT_BEGIN:
            TRY(parse_output(parser));
            break;
        case TOKEN_TAG_BEGIN:
            parser->at++;
            if (is_end(parser, ends))
                return jinja_finish(parser, NODE_BLOCK, at, mark, ret);
            TRY(parse_statement(parser, ends));
            break;
        default:
            if (ends)
                return unknown_tag(parser, ends);
            return jinja_finish(parser, NODE_BLOCK, at, mark, ret);
        }
    }
}
