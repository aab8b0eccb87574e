/* loop.c - for, and the loop variable. */
#include "template/render.h"

struct loop {
    const struct node *node;
    struct scope *outer; /* of the loop: where a recursive one runs again */
    struct list items;
    uint32_t index, depth;
    struct value last_changed;
    bool has_changed;
    uint32_t name; /* of "loop"; UINT32_MAX: the template never mentions it */
};

static uint32_t find_name(const struct template *template, const char *name)
{
    for (uint32_t i = 0; i < template->name_count; i++)
        if (jinja_text_is(template->names[i], name))
            return i;
    return UINT32_MAX;
}

/* The items that pass the condition, whose names are of a scope of their own. */
static enum status choose(struct render *r, const struct node *node, const struct list *from,
                          struct list *ret)
{
    struct scope *scope;
    struct list *chosen;
    TRY(jinja_list_create(r, from->count, &chosen));
    TRY(jinja_scope_begin(r, &scope));
    for (uint32_t i = 0; i < from->count; i++) {
        struct value condition, item = from->items[i];
        scope->count = 0;
        TRY(jinja_assign(r, node->kids[0], item));
        TRY(jinja_evaluate(r, node->kids[2], &condition));
        if (jinja_truth(condition))
            TRY(jinja_list_add(r, chosen, item));
    }
    jinja_scope_end(r);
    *ret = *chosen;
    return STATUS_OK;
}

static enum status run_iterations(struct render *r, struct loop *loop, bool *ret_completed)
{
    const struct node *node = loop->node;
    struct scope *scope = NULL;
    struct value variable = { .kind = VALUE_LOOP, .loop = loop };
    for (loop->index = 0; loop->index < loop->items.count; loop->index++) {
        /* A macro made here may outlive the iteration. */
        if (!scope || node->flags & FLAG_HAS_MACRO)
            TRY(jinja_scope_begin(r, &scope));
        scope->parent = loop->outer;
        scope->count = 0;
        r->scope = scope;
        if (loop->name != UINT32_MAX)
            TRY(jinja_name_set(r, loop->name, variable));
        TRY(jinja_assign(r, node->kids[0], loop->items.items[loop->index]));
        TRY(jinja_run(r, node->kids[3]));
        enum flow flow = r->flow;
        r->flow = FLOW_ON;
        if (flow == FLOW_BREAK)
            break;
        if (flow == FLOW_ON)
            *ret_completed = true;
    }
    r->scope = loop->outer;
    return STATUS_OK;
}

/* One loop over the value, at a depth of recursion. */
static enum status run_loop(struct render *r, const struct node *node, struct value value,
                            uint32_t depth)
{
    struct loop *loop;
    struct list *items;
    bool completed = false;
    TRY(jinja_walk(r, value, &items));
    TRY(jinja_take(r, sizeof(*loop), &loop));
    *loop = (struct loop){ .node = node,
                           .outer = r->scope,
                           .items = *items,
                           .depth = depth,
                           .name = find_name(r->template, "loop") };
    if (node->kids[2])
        TRY(choose(r, node, items, &loop->items));
    TRY(run_iterations(r, loop, &completed));
    if (completed || !node->kids[4])
        return STATUS_OK;
    struct scope *scope;
    TRY(jinja_scope_begin(r, &scope));
    TRY(jinja_run(r, node->kids[4]));
    jinja_scope_end(r);
    return STATUS_OK;
}

enum status jinja_run_for(struct render *r, const struct node *node)
{
    struct value value;
    TRY(jinja_evaluate(r, node->kids[1], &value));
    return run_loop(r, node, value, 1);
}

enum status jinja_loop_call(struct render *r, struct loop *loop, const struct call *call,
                            struct value *ret)
{
    if (!(loop->node->flags & FLAG_RECURSIVE))
        return fail(r, TYPE, "The loop must have the 'recursive' marker to be called recursively.");
    if (call->count != 1 || call->keyword_count)
        return fail(r, TYPE, "expected loop(items)");
    if (r->calls >= CALL_LIMIT)
        return fail(r, LIMIT, "more than %u macros or loops within each other", CALL_LIMIT);
    struct scope *scope = r->scope;
    size_t begin = jinja_text_begin(r);
    r->scope = loop->outer;
    r->calls++;
    TRY(run_loop(r, loop->node, call->values[0], loop->depth + 1));
    r->calls--;
    r->scope = scope;
    return jinja_text_end(r, begin, ret);
}

/* ---- Attributes ------------------------------------------------------------------------------ */

static enum status loop_cycle(struct render *r, const struct call *call, struct value *ret)
{
    const struct loop *loop = call->subject.loop;
    if (call->count == 0)
        return fail(r, TYPE, "no items for cycling given");
    *ret = call->values[loop->index % call->count];
    return STATUS_OK;
}

static enum status loop_changed(struct render *r, const struct call *call, struct value *ret)
{
    struct loop *loop = call->subject.loop;
    struct list *values;
    bool same = false;
    TRY(jinja_list_create(r, call->count, &values));
    for (uint32_t i = 0; i < call->count; i++)
        values->items[values->count++] = call->values[i];
    struct value now = value_list(VALUE_TUPLE, values);
    if (loop->has_changed)
        TRY(jinja_equal(r, loop->last_changed, now, &same));
    loop->has_changed = true;
    loop->last_changed = now;
    *ret = value_bool(!same);
    return STATUS_OK;
}

static struct value neighbour(const struct loop *loop, uint32_t index)
{
    static const struct string previous = { "there is no previous item", 25, 25, false, NULL };
    static const struct string next = { "there is no next item", 21, 21, false, NULL };
    if (index < loop->items.count)
        return loop->items.items[index];
    return value_undefined(UNDEFINED_EMPTY, index == UINT32_MAX ? &previous : &next);
}

static const struct builtin loop_methods[] = {
    { "cycle", NULL, loop_cycle },
    { "changed", NULL, loop_changed },
};

enum status jinja_loop_attribute(struct render *r, struct loop *loop, const struct string *name,
                                 struct value *ret)
{
    int64_t index = loop->index, count = loop->items.count;
    const struct {
        const char *name;
        struct value value;
    } rows[] = {
        { "index", value_int(index + 1) },
        { "index0", value_int(index) },
        { "revindex", value_int(count - index) },
        { "revindex0", value_int(count - index - 1) },
        { "first", value_bool(index == 0) },
        { "last", value_bool(index == count - 1) },
        { "length", value_int(count) },
        { "depth", value_int(loop->depth) },
        { "depth0", value_int((int64_t)loop->depth - 1) },
        { "previtem", neighbour(loop, loop->index - 1) },
        { "nextitem", neighbour(loop, loop->index + 1) },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (jinja_text_is(name, rows[i].name)) {
            *ret = rows[i].value;
            return STATUS_OK;
        }
    static const struct builtin_table table = { loop_methods, COUNT_OF(loop_methods) };
    const struct builtin *row = jinja_table_find(&table, name);
    if (!row)
        return STATUS_OK;
    struct bound *bound;
    TRY(jinja_take(r, sizeof(*bound), &bound));
    *bound = (struct bound){ row, { .kind = VALUE_LOOP, .loop = loop } };
    *ret = (struct value){ .kind = VALUE_BUILTIN, .bound = bound };
    return STATUS_OK;
}
