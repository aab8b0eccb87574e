/* expression.c - what the nodes of expressions give. */
#include "template/render.h"

typedef enum status (*evaluate_function)(struct render *r, const struct node *node,
                                         struct value *ret);

static enum status give_constant(struct render *r, const struct node *node, struct value *ret)
{
    (void)r;
    *ret = node->value;
    return STATUS_OK;
}

static enum status give_name(struct render *r, const struct node *node, struct value *ret)
{
    return jinja_name_get(r, node->name, ret);
}

static enum status give_list(struct render *r, const struct node *node, struct value *ret)
{
    struct list *list;
    TRY(jinja_list_create(r, node->count, &list));
    for (uint32_t i = 0; i < node->count; i++) {
        TRY(jinja_evaluate(r, node->kids[i], &list->items[i]));
        list->count++;
    }
    *ret = value_list(node->kind == NODE_LIST ? VALUE_LIST : VALUE_TUPLE, list);
    return STATUS_OK;
}

static enum status give_dict(struct render *r, const struct node *node, struct value *ret)
{
    struct dict *dict;
    TRY(jinja_dict_create(r, &dict));
    for (uint32_t i = 0; i < node->count; i += 2) {
        struct value key, value;
        TRY(jinja_evaluate(r, node->kids[i], &key));
        TRY(jinja_evaluate(r, node->kids[i + 1], &value));
        TRY(jinja_dict_set(r, dict, key, value));
    }
    *ret = (struct value){ .kind = VALUE_DICT, .dict = dict };
    return STATUS_OK;
}

static enum status give_attribute(struct render *r, const struct node *node, struct value *ret)
{
    struct value object;
    TRY(jinja_evaluate(r, node->kids[0], &object));
    return jinja_attribute(r, object, node->value.string, ret);
}

static enum status give_item(struct render *r, const struct node *node, struct value *ret)
{
    struct value object, index, parts[3];
    TRY(jinja_evaluate(r, node->kids[0], &object));
    const struct node *at = node->kids[1];
    if (at->kind != NODE_SLICE) {
        TRY(jinja_evaluate(r, at, &index));
        return jinja_item(r, object, index, ret);
    }
    for (uint32_t i = 0; i < 3; i++) {
        parts[i] = value_none();
        if (at->kids[i])
            TRY(jinja_evaluate(r, at->kids[i], &parts[i]));
    }
    return jinja_slice(r, object, parts[0], parts[1], parts[2], ret);
}

static enum status give_call(struct render *r, const struct node *node, struct value *ret)
{
    return jinja_call_node(r, node, (struct value){ .kind = VALUE_ABSENT }, ret);
}

static enum status give_filter(struct render *r, const struct node *node, struct value *ret)
{
    return jinja_filter_node(r, node, (struct value){ .kind = VALUE_ABSENT }, ret);
}

static enum status give_condition(struct render *r, const struct node *node, struct value *ret)
{
    struct value condition;
    TRY(jinja_evaluate(r, node->kids[0], &condition));
    const struct node *chosen = node->kids[jinja_truth(condition) ? 1 : 2];
    if (chosen)
        return jinja_evaluate(r, chosen, ret);
    *ret = value_undefined(UNDEFINED_BRANCH, NULL);
    return STATUS_OK;
}

static enum status give_and_or(struct render *r, const struct node *node, struct value *ret)
{
    TRY(jinja_evaluate(r, node->kids[0], ret));
    if (jinja_truth(*ret) != (node->kind == NODE_AND))
        return STATUS_OK;
    return jinja_evaluate(r, node->kids[1], ret);
}

static enum status give_not(struct render *r, const struct node *node, struct value *ret)
{
    struct value value;
    TRY(jinja_evaluate(r, node->kids[0], &value));
    *ret = value_bool(!jinja_truth(value));
    return STATUS_OK;
}

/* a < b < c is (a < b) and (b < c). */
static enum status give_compare(struct render *r, const struct node *node, struct value *ret)
{
    struct value left, right;
    bool holds = true;
    TRY(jinja_evaluate(r, node->kids[0], &left));
    for (uint32_t i = 1; holds && i < node->count; i++) {
        const struct node *operand = node->kids[i];
        TRY(jinja_evaluate(r, operand->kids[0], &right));
        TRY(jinja_compare(r, (enum operator)operand->op, left, right, &holds));
        left = right;
    }
    *ret = value_bool(holds);
    return STATUS_OK;
}

static enum status give_binary(struct render *r, const struct node *node, struct value *ret)
{
    struct value left, right;
    TRY(jinja_evaluate(r, node->kids[0], &left));
    TRY(jinja_evaluate(r, node->kids[1], &right));
    return jinja_binary(r, (enum operator)node->op, left, right, ret);
}

static enum status give_unary(struct render *r, const struct node *node, struct value *ret)
{
    struct value value;
    TRY(jinja_evaluate(r, node->kids[0], &value));
    return jinja_unary(r, (enum operator)node->op, value, ret);
}

static enum status give_concat(struct render *r, const struct node *node, struct value *ret)
{
    struct value sum, next;
    TRY(jinja_evaluate(r, node->kids[0], &next));
    TRY(jinja_to_string(r, next, &sum));
    TRY(jinja_mark_safe(r, sum, false, &sum));
    for (uint32_t i = 1; i < node->count; i++) {
        TRY(jinja_evaluate(r, node->kids[i], &next));
        TRY(jinja_to_string(r, next, &next));
        TRY(jinja_concat(r, sum, next, &sum));
    }
    *ret = sum;
    return STATUS_OK;
}

static const evaluate_function evaluators[] = {
    [NODE_CONSTANT] = give_constant,   [NODE_NAME] = give_name,
    [NODE_LIST] = give_list,           [NODE_TUPLE] = give_list,
    [NODE_DICT] = give_dict,           [NODE_ATTRIBUTE] = give_attribute,
    [NODE_ITEM] = give_item,           [NODE_CALL] = give_call,
    [NODE_FILTER] = give_filter,       [NODE_TEST] = jinja_test_node,
    [NODE_CONDITION] = give_condition, [NODE_AND] = give_and_or,
    [NODE_OR] = give_and_or,           [NODE_NOT] = give_not,
    [NODE_COMPARE] = give_compare,     [NODE_BINARY] = give_binary,
    [NODE_UNARY] = give_unary,         [NODE_CONCAT] = give_concat,
};

enum status jinja_evaluate(struct render *r, const struct node *node, struct value *ret)
{
    enum status status = jinja_spend(r, 1);
    if (!status)
        status = jinja_enter(r);
    if (!status && (node->kind >= COUNT_OF(evaluators) || !evaluators[node->kind]))
        status = fail(r, TYPE, "a slice is no value");
    if (!status)
        status = evaluators[node->kind](r, node, ret);
    if (status && r->report.at == UINT32_MAX)
        r->report.at = node->at; /* the innermost that failed */
    jinja_leave(r);
    return status;
}
