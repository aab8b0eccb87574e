/* statement.c - what the nodes of statements do. */
#include "template/render.h"

static enum status run_block(struct render *r, const struct node *node)
{
    for (uint32_t i = 0; i < node->count && r->flow == FLOW_ON; i++)
        TRY(jinja_run(r, node->kids[i]));
    return STATUS_OK;
}

static enum status run_text(struct render *r, const struct node *node)
{
    return jinja_add_view(r, value_text(node->value));
}

static enum status run_output(struct render *r, const struct node *node)
{
    for (uint32_t i = 0; i < node->count; i++) {
        struct value value;
        TRY(jinja_evaluate(r, node->kids[i], &value));
        TRY(jinja_print(r, value));
    }
    return STATUS_OK;
}

static enum status run_if(struct render *r, const struct node *node)
{
    for (uint32_t i = 0; i + 1 < node->count; i += 2) {
        struct value condition;
        TRY(jinja_evaluate(r, node->kids[i], &condition));
        if (jinja_truth(condition))
            return jinja_run(r, node->kids[i + 1]);
    }
    return node->count % 2 ? jinja_run(r, node->kids[node->count - 1]) : STATUS_OK;
}

static enum status run_set(struct render *r, const struct node *node)
{
    struct value value;
    TRY(jinja_evaluate(r, node->kids[1], &value));
    return jinja_assign(r, node->kids[0], value);
}

static enum status run_in_scope(struct render *r, const struct node *body)
{
    struct scope *scope;
    TRY(jinja_scope_begin(r, &scope));
    TRY(jinja_run(r, body));
    jinja_scope_end(r);
    return STATUS_OK;
}

/* What the body writes, as a string through the filters (or NULL). */
static enum status capture(struct render *r, const struct node *body, const struct node *filters,
                           struct value *ret)
{
    size_t begin = jinja_text_begin(r);
    TRY(run_in_scope(r, body));
    TRY(jinja_text_end(r, begin, ret));
    return filters ? jinja_filter_node(r, filters, *ret, ret) : STATUS_OK;
}

static enum status run_set_text(struct render *r, const struct node *node)
{
    struct value value;
    TRY(capture(r, node->kids[2], node->kids[1], &value));
    return jinja_assign(r, node->kids[0], value);
}

static enum status run_filter_text(struct render *r, const struct node *node)
{
    struct value value;
    TRY(capture(r, node->kids[1], node->kids[0], &value));
    return jinja_print(r, value);
}

/* The values are computed before any of the names is there. */
static enum status run_with(struct render *r, const struct node *node)
{
    struct scope *scope, *outer = r->scope;
    TRY(jinja_scope_begin(r, &scope));
    for (uint32_t i = 0; i + 1 < node->count; i += 2) {
        struct value value;
        r->scope = outer;
        TRY(jinja_evaluate(r, node->kids[i + 1], &value));
        r->scope = scope;
        TRY(jinja_assign(r, node->kids[i], value));
    }
    r->scope = scope;
    TRY(jinja_run(r, node->kids[node->count - 1]));
    jinja_scope_end(r);
    return STATUS_OK;
}

static enum status run_macro(struct render *r, const struct node *node)
{
    struct value macro;
    TRY(jinja_macro_create(r, node, &macro));
    return jinja_name_set(r, node->name, macro);
}

static enum status run_call_text(struct render *r, const struct node *node)
{
    struct value caller, result;
    TRY(jinja_macro_create(r, node->kids[1], &caller));
    TRY(jinja_call_node(r, node->kids[0], caller, &result));
    return jinja_print(r, result);
}

static enum status run_scope(struct render *r, const struct node *node)
{
    return run_in_scope(r, node->kids[0]);
}

static enum status run_jump(struct render *r, const struct node *node)
{
    r->flow = node->kind == NODE_BREAK ? FLOW_BREAK : FLOW_CONTINUE;
    return STATUS_OK;
}

static enum status (*const runners[])(struct render *r, const struct node *node) = {
    [NODE_BLOCK] = run_block,
    [NODE_TEXT] = run_text,
    [NODE_OUTPUT] = run_output,
    [NODE_FOR] = jinja_run_for,
    [NODE_IF] = run_if,
    [NODE_SET] = run_set,
    [NODE_SET_TEXT] = run_set_text,
    [NODE_WITH] = run_with,
    [NODE_MACRO] = run_macro,
    [NODE_CALL_TEXT] = run_call_text,
    [NODE_FILTER_TEXT] = run_filter_text,
    [NODE_SCOPE] = run_scope,
    [NODE_BREAK] = run_jump,
    [NODE_CONTINUE] = run_jump,
};

enum status jinja_run(struct render *r, const struct node *node)
{
    enum status status = jinja_spend(r, 1);
    if (!status)
        status = jinja_enter(r);
    if (!status)
        status = runners[node->kind](r, node);
    if (status && r->report.at == UINT32_MAX)
        r->report.at = node->at;
    jinja_leave(r);
    return status;
}
