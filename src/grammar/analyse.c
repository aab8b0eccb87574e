/* analyse.c - what the rules of a grammar can match: nothing, or anything at all; and whether one
 * begins with itself. */
#include "grammar/program.h"

#include <stdlib.h>

/* Rules refer to later rules, so facts are computed again until none changes. A real grammar needs
 * a few rounds. */
#define WORK_LIMIT (1u << 27)

static uint8_t facts_of(const struct rules *rules, const uint8_t *facts,
                        const struct rules_node *node)
{
    switch (node->kind) {
    case RULES_NEVER:
        return 0;
    case RULES_EMPTY:
        return RULES_NULLABLE | RULES_PRODUCTIVE;
    case RULES_TEXT:
    case RULES_SET:
        return RULES_PRODUCTIVE;
    case RULES_SEQ:
        return facts[node->a] & facts[node->b];
    case RULES_ALT:
        return facts[node->a] | facts[node->b];
    case RULES_REPEAT:
        return node->least == 0 ? RULES_NULLABLE | RULES_PRODUCTIVE : facts[node->a];
    case RULES_RULE:
        return facts[rules->roots[node->a]];
    }
    return 0;
}

enum status rules_analyse(const struct rules *rules, uint8_t **ret_facts, struct error *err)
{
    uint8_t *facts = calloc(rules->node_count, 1);
    if (!facts)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a grammar");
    uint64_t work = 0;
    for (bool changed = true; changed;) {
        changed = false;
        work += rules->node_count;
        if (work > WORK_LIMIT) {
            free(facts);
            return error_set(err, STATUS_LIMIT,
                             "grammar: expected rules that follow from each other in fewer steps");
        }
        for (size_t i = 0; i < rules->node_count; i++) {
            uint8_t now = facts_of(rules, facts, &rules->nodes[i]);
            changed = changed || now != facts[i];
            facts[i] = now;
        }
    }
    *ret_facts = facts;
    return STATUS_OK;
}

/* ---- Left recursion ------------------------------------------------------------------------- */

struct visit {
    uint32_t node;
    uint32_t next_part; /* how many of its first parts were visited */
};

enum colour { NEW, OPEN, DONE };

/* The part number `index` that a node may begin with; false if there is none. */
static bool first_part(const struct rules *rules, const uint8_t *facts, uint32_t number,
                       uint32_t index, uint32_t *ret)
{
    const struct rules_node *node = &rules->nodes[number];
    switch (node->kind) {
    case RULES_SEQ:
        *ret = index ? node->b : node->a;
        return index == 0 || (index == 1 && facts[node->a] & RULES_NULLABLE);
    case RULES_ALT:
        *ret = index ? node->b : node->a;
        return index < 2;
    case RULES_REPEAT:
        *ret = node->a;
        return index == 0;
    case RULES_RULE:
        *ret = rules->roots[node->a];
        return index == 0;
    default:
        return false;
    }
}

/* The rule on the way that is open; every circle of first parts goes through one. */
static uint32_t rule_of(const struct rules *rules, const struct visit *path, size_t depth)
{
    while (depth-- > 0)
        if (rules->nodes[path[depth].node].kind == RULES_RULE)
            return rules->nodes[path[depth].node].a;
    return 0;
}

/* Depth first; a node that is met again while it is open begins with itself. Nodes 0 and 1, which
 * are shared, have no parts. */
static enum status visit_from(const struct rules *rules, const uint8_t *facts, uint8_t *colours,
                              struct visit *path, uint32_t from, uint32_t *ret_rule,
                              struct error *err)
{
    size_t depth = 0;
    path[depth++] = (struct visit){ from, 0 };
    colours[from] = OPEN;
    while (depth) {
        struct visit *top = &path[depth - 1];
        uint32_t part;
        if (!first_part(rules, facts, top->node, top->next_part++, &part)) {
            colours[top->node] = DONE;
            depth--;
        } else if (colours[part] == OPEN) {
            *ret_rule = rule_of(rules, path, depth);
            return error_set(err, STATUS_UNSUPPORTED,
                             "expected a rule that begins with a character, found one that begins "
                             "with itself; write the repetition with * or +");
        } else if (colours[part] == NEW) {
            colours[part] = OPEN;
            path[depth++] = (struct visit){ part, 0 };
        }
    }
    return STATUS_OK;
}

enum status rules_check_left(const struct rules *rules, const uint8_t *facts, uint32_t *ret_rule,
                             struct error *err)
{
    uint8_t *colours = calloc(rules->node_count, 1);
    struct visit *path = calloc(rules->node_count, sizeof(*path));
    enum status status = STATUS_OK;
    if (!colours || !path)
        status = error_set(err, STATUS_NO_MEMORY, "no memory for a grammar");
    for (uint32_t i = 0; i < rules->node_count && !status; i++)
        if (colours[i] == NEW)
            status = visit_from(rules, facts, colours, path, i, ret_rule, err);
    free(colours);
    free(path);
    return status;
}
