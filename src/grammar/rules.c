/* rules.c - see rules.h. */
#include "grammar/rules.h"

#include "base/array.h"

#include <string.h>

#define FIRST_SURROGATE 0xD800u
#define LAST_SURROGATE 0xDFFFu

static void fail_memory(struct rules *rules)
{
    if (!rules->error.status)
        (void)error_set(&rules->error, STATUS_NO_MEMORY, "no memory for a grammar");
}

static uint32_t add_node(struct rules *rules, struct rules_node node)
{
    if (rules->error.status)
        return RULES_NODE_NEVER;
    if (rules->node_count == RULES_NODE_LIMIT) {
        (void)error_set(&rules->error, STATUS_LIMIT,
                        "grammar: expected at most %u parts, found more", RULES_NODE_LIMIT);
        return RULES_NODE_NEVER;
    }
    struct rules_node *nodes = array_reserve(rules->nodes, rules->node_count, &rules->node_capacity,
                                             sizeof(*nodes));
    if (!nodes) {
        fail_memory(rules);
        return RULES_NODE_NEVER;
    }
    rules->nodes = nodes;
    nodes[rules->node_count] = node;
    return (uint32_t)rules->node_count++;
}

void rules_init(struct rules *rules)
{
    *rules = (struct rules){ 0 };
    text_init(&rules->texts);
    add_node(rules, (struct rules_node){ .kind = RULES_NEVER });
    add_node(rules, (struct rules_node){ .kind = RULES_EMPTY });
}

void rules_release(struct rules *rules)
{
    free(rules->nodes);
    free(rules->ranges);
    free(rules->roots);
    text_release(&rules->texts);
}

uint32_t rules_text(struct rules *rules, const char *bytes, size_t count)
{
    size_t start = rules->texts.length;
    if (count == 0)
        return RULES_NODE_EMPTY;
    if (count > RULES_TEXT_LIMIT_BYTES - start) {
        if (!rules->error.status)
            (void)error_set(&rules->error, STATUS_LIMIT,
                            "grammar: expected at most %u bytes of text, found more",
                            RULES_TEXT_LIMIT_BYTES);
        return RULES_NODE_NEVER;
    }
    text_add_bytes(&rules->texts, bytes, count);
    if (rules->texts.failed)
        fail_memory(rules);
    return add_node(rules, (struct rules_node){
                               .kind = RULES_TEXT, .a = (uint32_t)start, .b = (uint32_t)count });
}

uint32_t rules_word(struct rules *rules, const char *zero_terminated)
{
    return rules_text(rules, zero_terminated, strlen(zero_terminated));
}

static void add_range(struct rules *rules, uint32_t first, uint32_t last)
{
    if (first > last || rules->error.status)
        return;
    if (rules->range_count == RULES_RANGE_LIMIT) {
        (void)error_set(&rules->error, STATUS_LIMIT,
                        "grammar: expected at most %u ranges of characters, found more",
                        RULES_RANGE_LIMIT);
        return;
    }
    struct rules_range *ranges = array_reserve(rules->ranges, rules->range_count,
                                               &rules->range_capacity, sizeof(*ranges));
    if (!ranges) {
        fail_memory(rules);
        return;
    }
    rules->ranges = ranges;
    ranges[rules->range_count++] = (struct rules_range){ first, last };
}

uint32_t rules_set(struct rules *rules, const struct rules_range *ranges, size_t count)
{
    size_t start = rules->range_count;
    for (size_t i = 0; i < count; i++) {
        uint32_t first = ranges[i].first, last = ranges[i].last;
        if (last < FIRST_SURROGATE || first > LAST_SURROGATE) {
            add_range(rules, first, last);
            continue;
        }
        if (first < FIRST_SURROGATE)
            add_range(rules, first, FIRST_SURROGATE - 1);
        if (last > LAST_SURROGATE)
            add_range(rules, LAST_SURROGATE + 1, last);
    }
    if (rules->range_count == start)
        return RULES_NODE_NEVER;
    return add_node(rules, (struct rules_node){ .kind = RULES_SET,
                                                .a = (uint32_t)start,
                                                .b = (uint32_t)(rules->range_count - start) });
}

uint32_t rules_seq(struct rules *rules, uint32_t first, uint32_t second)
{
    if (first == RULES_NODE_NEVER || second == RULES_NODE_NEVER)
        return RULES_NODE_NEVER;
    if (first == RULES_NODE_EMPTY)
        return second;
    if (second == RULES_NODE_EMPTY)
        return first;
    return add_node(rules, (struct rules_node){ .kind = RULES_SEQ, .a = first, .b = second });
}

uint32_t rules_alt(struct rules *rules, uint32_t one, uint32_t other)
{
    if (one == RULES_NODE_NEVER || one == other)
        return other;
    if (other == RULES_NODE_NEVER)
        return one;
    return add_node(rules, (struct rules_node){ .kind = RULES_ALT, .a = one, .b = other });
}

uint32_t rules_repeat(struct rules *rules, uint32_t node, uint32_t least, uint32_t most)
{
    if (least > most)
        return RULES_NODE_NEVER;
    if (most == 0 || node == RULES_NODE_EMPTY || (node == RULES_NODE_NEVER && least == 0))
        return RULES_NODE_EMPTY;
    if (node == RULES_NODE_NEVER || (least == 1 && most == 1))
        return node;
    return add_node(rules, (struct rules_node){
                               .kind = RULES_REPEAT, .a = node, .least = least, .most = most });
}

uint32_t rules_optional(struct rules *rules, uint32_t node)
{
    return rules_repeat(rules, node, 0, 1);
}

uint32_t rules_add(struct rules *rules)
{
    if (rules->error.status)
        return 0;
    uint32_t *roots = array_reserve(rules->roots, rules->rule_count, &rules->rule_capacity,
                                    sizeof(*roots));
    if (!roots) {
        fail_memory(rules);
        return 0;
    }
    rules->roots = roots;
    roots[rules->rule_count] = RULES_NODE_NEVER;
    return (uint32_t)rules->rule_count++;
}

void rules_define(struct rules *rules, uint32_t rule, uint32_t node)
{
    if (!rules->error.status)
        rules->roots[rule] = node;
}

uint32_t rules_use(struct rules *rules, uint32_t rule)
{
    return add_node(rules, (struct rules_node){ .kind = RULES_RULE, .a = rule });
}

/* ---- Sets of characters --------------------------------------------------------------------- */

void charset_release(struct charset *set)
{
    free(set->ranges);
    *set = (struct charset){ 0 };
}

void charset_add(struct charset *set, uint32_t first, uint32_t last)
{
    if (first > last)
        return;
    struct rules_range *ranges = array_reserve(set->ranges, set->count, &set->capacity,
                                               sizeof(*ranges));
    if (!ranges) {
        set->failed = true;
        return;
    }
    set->ranges = ranges;
    ranges[set->count++] = (struct rules_range){ first, last };
}

static int by_first(const void *a_item, const void *b_item)
{
    const struct rules_range *a = a_item, *b = b_item;
    return a->first < b->first ? -1 : a->first > b->first;
}

void charset_finish(struct charset *set)
{
    size_t kept = 0;
    if (set->count)
        qsort(set->ranges, set->count, sizeof(*set->ranges), by_first);
    for (size_t i = 0; i < set->count; i++) {
        struct rules_range *last = kept ? &set->ranges[kept - 1] : NULL;
        if (!last || set->ranges[i].first > last->last + 1)
            set->ranges[kept++] = set->ranges[i];
        else if (set->ranges[i].last > last->last)
            last->last = set->ranges[i].last;
    }
    set->count = kept;
}

void charset_negate(struct charset *set)
{
    struct charset other = { .failed = set->failed };
    uint32_t from = 0;
    for (size_t i = 0; i < set->count; i++) {
        if (set->ranges[i].first > from)
            charset_add(&other, from, set->ranges[i].first - 1);
        from = set->ranges[i].last + 1;
    }
    charset_add(&other, from, RULES_LAST_CHARACTER);
    charset_release(set);
    *set = other;
}

void charset_clip(struct charset *set, uint32_t first, uint32_t last)
{
    size_t kept = 0;
    for (size_t i = 0; i < set->count; i++) {
        struct rules_range range = set->ranges[i];
        range.first = range.first < first ? first : range.first;
        range.last = range.last > last ? last : range.last;
        if (range.first <= range.last)
            set->ranges[kept++] = range;
    }
    set->count = kept;
}

bool charset_has(const struct charset *set, uint32_t character)
{
    for (size_t i = 0; i < set->count; i++)
        if (character >= set->ranges[i].first && character <= set->ranges[i].last)
            return true;
    return false;
}
