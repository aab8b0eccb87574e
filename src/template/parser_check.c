/* parser_check.c - one walk over the finished tree: which filters and tests there are, and what
 * macros need.
 *
 * An unknown filter or test is an error now, except directly within a branch: templates ask for
 * what an engine knows before they use it. */
#include "template/parser.h"
#include "template/render.h"

#define USES (FLAG_USES_CALLER | FLAG_USES_VARARGS | FLAG_USES_KWARGS)

static enum status find_row(struct parser *parser, struct node *node, bool in_branch)
{
    const struct string *name = node->value.string;
    bool is_filter = node->kind == NODE_FILTER;
    node->row = is_filter ? jinja_filter_find(name) : jinja_test_find(name);
    if (node->row || in_branch)
        return STATUS_OK;
    char shown[64];
    text_printable(value_text(node->value), shown, sizeof(shown));
    return jinja_report(parser->report, TEMPLATE_PROBLEM_SYNTAX, node->at, "No %s named '%s'.",
                        is_filter ? "filter" : "test", shown);
}

static uint8_t uses_of_name(const struct parser *parser, const struct node *node)
{
    static const struct {
        const char *name;
        uint8_t flag;
    } rows[] = { { "caller", FLAG_USES_CALLER },
                 { "varargs", FLAG_USES_VARARGS },
                 { "kwargs", FLAG_USES_KWARGS } };
    const struct string *name = parser->template->names[node->name];
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (jinja_text_is(name, rows[i].name))
            return rows[i].flag;
    return 0;
}

static bool kid_in_branch(const struct node *node, uint32_t kid, bool in_branch)
{
    switch (node->kind) {
    case NODE_IF:
    case NODE_CONDITION:
        return true;
    case NODE_FOR: /* of it, only what is walked stands outside */
        return kid == 1 && in_branch;
    case NODE_MACRO:
    case NODE_CALL_TEXT:
    case NODE_FILTER_TEXT:
    case NODE_SET_TEXT:
    case NODE_WITH:
    case NODE_SCOPE:
        return false;
    default:
        return in_branch;
    }
}

static enum status check_node(struct parser *parser, struct node *node, bool in_branch,
                              uint8_t *ret_flags)
{
    uint8_t flags = 0;
    if (node->kind == NODE_FILTER || node->kind == NODE_TEST)
        TRY(find_row(parser, node, in_branch));
    if (node->kind == NODE_NAME)
        flags |= uses_of_name(parser, node);
    for (uint32_t i = 0; i < node->count; i++)
        if (node->kids[i])
            TRY(check_node(parser, node->kids[i], kid_in_branch(node, i, in_branch), &flags));
    if (node->kind == NODE_MACRO) {
        node->flags |= flags & USES;
        flags |= FLAG_HAS_MACRO;
    }
    if (node->kind == NODE_FOR)
        node->flags |= flags & FLAG_HAS_MACRO;
    *ret_flags |= flags;
    return STATUS_OK;
}

enum status jinja_check(struct parser *parser, struct node *root)
{
    uint8_t flags = 0;
    return check_node(parser, root, false, &flags);
}
