/* schema_array.c - arrays: prefixItems one after the other, then items. */
#include "grammar/schema.h"

/* The schemas of the item at a place; past all prefixes at RULES_NO_LIMIT. */
static const json_t *item_schema(const json_t *schema, size_t place)
{
    const json_t *prefix = json_object_get(schema, "prefixItems");
    const json_t *items = json_object_get(schema, "items");
    const json_t *rest = items;
    if (json_is_array(items)) { /* as drafts before 2020 have it */
        prefix = items;
        rest = json_object_get(schema, "additionalItems");
    }
    return place < json_array_size(prefix) ? json_array_get(prefix, place) : rest;
}

static size_t prefix_count(const struct schema_set *set)
{
    size_t count = 0;
    for (size_t i = 0; i < set->count; i++) {
        const json_t *prefix = json_object_get(set->parts[i].schema, "prefixItems");
        const json_t *items = json_object_get(set->parts[i].schema, "items");
        size_t own = json_array_size(json_is_array(items) ? items : prefix);
        count = own > count ? own : count;
    }
    return count;
}

/* An item and the space after it. */
static enum status build_item(struct schema_reader *reader, const struct schema_set *set,
                              const struct schema_facts *facts, size_t place, size_t prefixes,
                              uint32_t *ret_node, struct error *err)
{
    struct schema_set all = { .count = 0 };
    uint32_t value;
    bool found = false;
    for (size_t i = 0; i < set->count; i++) {
        const json_t *schema = item_schema(set->parts[i].schema, place);
        found = found || schema;
        if (schema)
            TRY(schema_add(reader, &all, schema, err));
    }
    all.never = all.never || (!found && place >= prefixes && facts->items_are_closed);
    TRY(schema_value(reader, &all, &value, err));
    *ret_node = rules_seq(&reader->rules, value, schema_space(reader));
    return STATUS_OK;
}

static uint32_t less(uint64_t limit, size_t count)
{
    return limit == RULES_NO_LIMIT ? RULES_NO_LIMIT : (uint32_t)(limit > count ? limit - count : 0);
}

enum status schema_array(struct schema_reader *reader, const struct schema_set *set,
                         const struct schema_facts *facts, uint32_t *ret_node, struct error *err)
{
    struct rules *rules = &reader->rules;
    uint64_t least = facts->least_items, most = facts->most_items;
    size_t prefixes = prefix_count(set);
    uint32_t item;
    TRY(build_item(reader, set, facts, prefixes, prefixes, &item, err));
    uint32_t comma = rules_seq(rules, rules_word(rules, ","), schema_space(reader));
    /* What follows the item before this place, from the last place to the first. */
    size_t places = prefixes ? prefixes : 1;
    uint32_t after = rules_repeat(rules, rules_seq(rules, comma, item), less(least, places),
                                  less(most, places));
    uint32_t items = RULES_NODE_EMPTY;
    if (most < least)
        after = RULES_NODE_NEVER;
    for (size_t place = places; place-- > 0;) {
        uint32_t at = item, rule = rules_add(rules);
        if (place < prefixes)
            TRY(build_item(reader, set, facts, place, prefixes, &at, err));
        items = rules_seq(rules, at, after);
        if (place > 0)
            items = rules_seq(rules, comma, items);
        if (place >= most)
            items = RULES_NODE_EMPTY;
        else if (place >= least)
            items = rules_optional(rules, items);
        if (most < least)
            items = RULES_NODE_NEVER;
        rules_define(rules, rule, items);
        after = items = rules_use(rules, rule);
    }
    uint32_t node = rules_seq(rules, rules_word(rules, "["), schema_space(reader));
    node = rules_seq(rules, node, items);
    *ret_node = rules_seq(rules, node, rules_word(rules, "]"));
    return STATUS_OK;
}
