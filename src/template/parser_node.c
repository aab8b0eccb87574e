/* parser_node.c - making nodes, and looking at tokens. */
#include "template/parser.h"

#include "base/array.h"
#include "template/strings.h"

#include <stdio.h>
#include <string.h>

enum status jinja_syntax(struct parser *parser, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    enum status status = jinja_report_va(parser->report, TEMPLATE_PROBLEM_SYNTAX,
                                         jinja_peek(parser, 0)->at, format, arguments);
    va_end(arguments);
    return status;
}

enum status jinja_push(struct parser *parser, struct node *node)
{
    struct node **more = array_reserve(parser->stack, parser->stack_count, &parser->stack_capacity,
                                       sizeof(struct node *));
    if (!more)
        return jinja_report_memory(parser->report);
    parser->stack = more;
    more[parser->stack_count++] = node;
    return STATUS_OK;
}

enum status jinja_finish(struct parser *parser, enum node_kind kind, uint32_t at, size_t mark,
                         struct node **ret)
{
    size_t count = parser->stack_count - mark;
    if (++parser->template->node_count > NODE_LIMIT)
        return jinja_report(parser->report, TEMPLATE_PROBLEM_LIMIT, at,
                            "a template of more than %u nodes", NODE_LIMIT);
    struct node *node = arena_take(&parser->template->arena,
                                   sizeof(*node) + count * sizeof(struct node *));
    if (!node)
        return jinja_report_memory(parser->report);
    node->kind = (uint8_t)kind;
    node->at = at;
    node->kids = (struct node **)(node + 1);
    node->count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        struct node *kid = node->kids[i] = parser->stack[mark + i];
        if (kid && kid->depth > node->depth)
            node->depth = kid->depth;
    }
    node->depth++;
    if (node->depth > PARSE_DEPTH_LIMIT)
        return jinja_report(parser->report, TEMPLATE_PROBLEM_LIMIT, at, "nested more than %u deep",
                            PARSE_DEPTH_LIMIT);
    parser->stack_count = mark;
    *ret = node;
    return STATUS_OK;
}

enum status jinja_leaf(struct parser *parser, enum node_kind kind, uint32_t at, struct node **ret)
{
    return jinja_finish(parser, kind, at, parser->stack_count, ret);
}

enum status jinja_parse_enter(struct parser *parser)
{
    if (++parser->depth > PARSE_DEPTH_LIMIT)
        return jinja_report(parser->report, TEMPLATE_PROBLEM_LIMIT, jinja_peek(parser, 0)->at,
                            "nested more than %u deep", PARSE_DEPTH_LIMIT);
    return STATUS_OK;
}

/* ---- Names ----------------------------------------------------------------------------------- */

static uint32_t hash_text(struct text_view text)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < text.length; i++)
        hash = (hash ^ (unsigned char)text.bytes[i]) * 16777619u;
    return hash;
}

static uint32_t *slot_of(const struct template *template, struct text_view name)
{
    uint32_t mask = template->name_slot_count - 1, at = hash_text(name) & mask;
    for (; template->name_slots[at]; at = (at + 1) & mask) {
        const struct string *known = template->names[template->name_slots[at] - 1];
        if (known->length == name.length && memcmp(known->bytes, name.bytes, name.length) == 0)
            break;
    }
    return &template->name_slots[at];
}

/* Keeps half of the slots free. */
static enum status grow_names(struct parser *parser)
{
    struct template *template = parser->template;
    uint32_t capacity = template->name_capacity ? template->name_capacity * 2 : 64;
    const struct string **names = arena_take(&template->arena, capacity * sizeof(*names));
    uint32_t *slots = arena_take(&template->arena, (uint64_t)capacity * 2 * sizeof(*slots));
    if (!names || !slots)
        return jinja_report_memory(parser->report);
    if (template->name_count)
        memcpy(names, template->names, template->name_count * sizeof(*names));
    template->names = names;
    template->name_slots = slots;
    template->name_capacity = capacity;
    template->name_slot_count = capacity * 2;
    for (uint32_t i = 0; i < template->name_count; i++)
        *slot_of(template, (struct text_view){ names[i]->bytes, names[i]->length }) = i + 1;
    return STATUS_OK;
}

enum status jinja_intern(struct parser *parser, struct text_view name, uint32_t *ret)
{
    struct template *template = parser->template;
    if (template->name_count == template->name_capacity)
        TRY(grow_names(parser));
    uint32_t *slot = slot_of(template, name);
    if (!*slot) {
        const struct string *string = jinja_string_in(&template->arena, name.bytes, name.length);
        if (!string)
            return jinja_report_memory(parser->report);
        template->names[template->name_count++] = string;
        *slot = template->name_count;
    }
    *ret = *slot - 1;
    return STATUS_OK;
}

enum status jinja_parser_string(struct parser *parser, struct text_view text, struct value *ret)
{
    const struct string *string = jinja_string_in(&parser->template->arena, text.bytes,
                                                  text.length);
    if (!string)
        return jinja_report_memory(parser->report);
    *ret = value_string(string);
    return STATUS_OK;
}

/* ---- Tokens ---------------------------------------------------------------------------------- */

/* The last token, TOKEN_END, is never passed. */
const struct token *jinja_peek(const struct parser *parser, size_t ahead)
{
    size_t at = parser->at;
    while (ahead > 0 && parser->tokens[at].kind != TOKEN_END) {
        at++;
        ahead--;
    }
    return &parser->tokens[at];
}

struct text_view jinja_token_text(const struct parser *parser, const struct token *token)
{
    return (struct text_view){ parser->template->source.bytes + token->at, token->length };
}

bool jinja_is_operator(const struct parser *parser, uint16_t op)
{
    const struct token *token = jinja_peek(parser, 0);
    return token->kind == TOKEN_OPERATOR && token->op == op;
}

bool jinja_is_name(const struct parser *parser, const char *name)
{
    const struct token *token = jinja_peek(parser, 0);
    return token->kind == TOKEN_NAME && text_view_is(jinja_token_text(parser, token), name);
}

bool jinja_skip_operator(struct parser *parser, uint16_t op)
{
    bool found = jinja_is_operator(parser, op);
    parser->at += found;
    return found;
}

bool jinja_skip_name(struct parser *parser, const char *name)
{
    bool found = jinja_is_name(parser, name);
    parser->at += found;
    return found;
}

const char *jinja_token_words(const struct parser *parser, char *buffer, size_t bytes)
{
    const struct token *token = jinja_peek(parser, 0);
    switch (token->kind) {
    case TOKEN_OUTPUT_END:
        return "end of print statement";
    case TOKEN_TAG_END:
        return "end of statement block";
    case TOKEN_TEXT:
        return "template data / text";
    case TOKEN_END:
        return "end of template";
    default:
        return text_printable(jinja_token_text(parser, token), buffer, bytes);
    }
}

static enum status unexpected(struct parser *parser, const char *expected)
{
    char words[64];
    if (jinja_peek(parser, 0)->kind == TOKEN_END)
        return jinja_syntax(parser, "unexpected end of template, expected '%s'.", expected);
    return jinja_syntax(parser, "expected token '%s', got '%s'", expected,
                        jinja_token_words(parser, words, sizeof(words)));
}

enum status jinja_expect_operator(struct parser *parser, uint16_t op)
{
    char expected[3] = { (char)(op > 0xFF ? op >> 8 : op), (char)(op > 0xFF ? op & 0xFF : 0), 0 };
    if (!jinja_skip_operator(parser, op))
        return unexpected(parser, expected);
    return STATUS_OK;
}

enum status jinja_expect_tag_end(struct parser *parser)
{
    if (jinja_peek(parser, 0)->kind != TOKEN_TAG_END)
        return unexpected(parser, "end of statement block");
    parser->at++;
    return STATUS_OK;
}

enum status jinja_expect_name(struct parser *parser, struct text_view *ret)
{
    const struct token *token = jinja_peek(parser, 0);
    if (token->kind != TOKEN_NAME)
        return unexpected(parser, "name");
    *ret = jinja_token_text(parser, token);
    parser->at++;
    return STATUS_OK;
}
