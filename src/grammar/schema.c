/* schema.c - a JSON schema to rules: errors, choices, a rule for each set. See schema.h. */
#include "grammar/schema.h"

#include "grammar/matcher.h"

#include "base/array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALTERNATIVE_LIMIT 256u

/* ---- Errors --------------------------------------------------------------------------------- */

/* Adds the JSON pointer of a value to path; false if it is not in `from`. */
static bool find_path(const json_t *from, const json_t *value, unsigned depth, struct text *path)
{
    size_t length = path->length, index;
    const char *key;
    json_t *item;
    if (from == value)
        return true;
    if (depth == 0)
        return false;
    json_object_foreach ((json_t *)from, key, item) {
        text_addf(path, "/%.60s", key);
        if (find_path(item, value, depth - 1, path))
            return true;
        path->length = length;
    }
    json_array_foreach (from, index, item) {
        text_addf(path, "/%zu", index);
        if (find_path(item, value, depth - 1, path))
            return true;
        path->length = length;
    }
    return false;
}

void schema_fail_at(const struct schema_reader *reader, const json_t *schema, enum status status,
                    struct error *err, const char *file, int line, const char *format, ...)
{
    char said[512], shown[160];
    struct text path;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(said, sizeof(said), format, arguments);
    va_end(arguments);
    text_init(&path);
    text_add(&path, "#");
    if (!find_path(reader->document, schema, 64, &path))
        path.length = 1;
    struct text_view view = { text_get(&path), path.failed ? 0 : path.length };
    error_set_at(err, status, file, line, "%.200s: %s: %s", reader->source,
                 text_printable(view, shown, sizeof(shown)), said);
    text_release(&path);
}

/* ---- Choices -------------------------------------------------------------------------------- */

/* One rule for each alternative together with the rest of the set. */
static enum status build_choice(struct schema_reader *reader, const struct schema_set *set,
                                size_t part, bool one_of, uint32_t *ret_node, struct error *err)
{
    const json_t *schema = set->parts[part].schema;
    const json_t *choices = json_object_get(schema, one_of ? "oneOf" : "anyOf");
    size_t count = json_array_size(choices);
    if (!json_is_array(choices) || count == 0 || count > ALTERNATIVE_LIMIT)
        return schema_fail(reader, schema, STATUS_USAGE, err,
                           "%s: expected an array of 1 to %u schemas", one_of ? "oneOf" : "anyOf",
                           ALTERNATIVE_LIMIT);
    struct schema_set *sets = calloc(count, sizeof(*sets));
    enum status status = STATUS_OK;
    if (!sets)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a schema");
    *ret_node = RULES_NODE_NEVER;
    for (size_t i = 0; i < count && !status; i++) {
        sets[i] = *set;
        sets[i].parts[part].skip_one |= one_of;
        sets[i].parts[part].skip_any |= !one_of;
        status = schema_add(reader, &sets[i], json_array_get(choices, i), err);
    }
    for (size_t i = 0; i < count && !status; i++) {
        uint32_t node;
        status = schema_value(reader, &sets[i], &node, err);
        if (!status)
            *ret_node = rules_alt(&reader->rules, *ret_node, node);
    }
    if (!status && one_of)
        status = schema_check_apart(reader, schema, sets, count, err);
    free(sets);
    return status;
}

static enum status build_types(struct schema_reader *reader, const struct schema_set *set,
                               const struct schema_facts *facts, uint32_t *ret_node,
                               struct error *err)
{
    struct rules *rules = &reader->rules;
    unsigned types = schema_types(facts);
    uint32_t node, choice = RULES_NODE_NEVER;
    if (types & SCHEMA_OBJECT) {
        TRY(schema_object(reader, set, facts, &node, err));
        choice = rules_alt(rules, choice, node);
    }
    if (types & SCHEMA_ARRAY) {
        TRY(schema_array(reader, set, facts, &node, err));
        choice = rules_alt(rules, choice, node);
    }
    if (types & SCHEMA_STRING) {
        TRY(schema_string(reader, facts, &node, err));
        choice = rules_alt(rules, choice, node);
    }
    if (types & SCHEMA_NUMBER)
        choice = rules_alt(rules, choice, schema_number(reader, facts, types & SCHEMA_NUMBER));
    if (types & SCHEMA_BOOLEAN) {
        choice = rules_alt(rules, choice, rules_word(rules, "true"));
        choice = rules_alt(rules, choice, rules_word(rules, "false"));
    }
    if (types & SCHEMA_NULL)
        choice = rules_alt(rules, choice, rules_word(rules, "null"));
    *ret_node = choice;
    return STATUS_OK;
}

static enum status build(struct schema_reader *reader, const struct schema_set *set,
                         uint32_t *ret_node, struct error *err)
{
    struct schema_facts facts;
    for (size_t i = 0; i < set->count; i++) {
        const struct schema_part *part = &set->parts[i];
        if (!part->skip_any && json_object_get(part->schema, "anyOf"))
            return build_choice(reader, set, i, false, ret_node, err);
        if (!part->skip_one && json_object_get(part->schema, "oneOf"))
            return build_choice(reader, set, i, true, ret_node, err);
    }
    TRY(schema_find_facts(reader, set, &facts, err));
    return facts.values ? schema_values(reader, set, &facts, ret_node, err)
                        : build_types(reader, set, &facts, ret_node, err);
}

/* ---- Rules for sets ------------------------------------------------------------------------- */

/* Fields are often described in the same words; with one rule they share their masks. Only small
 * schemas are compared, and only with the first ones. */
#define EQUAL_KEYS 6u
#define EQUAL_LIMIT 256u

static bool are_equal(const json_t *a, const json_t *b)
{
    const char *key;
    json_t *item;
    if (json_object_size(a) > EQUAL_KEYS || json_object_size(a) != json_object_size(b))
        return false;
    json_object_foreach ((json_t *)a, key, item)
        if (json_is_object(item) || json_is_array(item) ||
            !json_equal(item, json_object_get(b, key)))
            return false;
    return true;
}

static bool same_set(const struct schema_set *a, const struct schema_set *b)
{
    bool same = a->count == b->count;
    for (size_t i = 0; same && i < a->count; i++)
        same = a->parts[i].schema == b->parts[i].schema &&
               a->parts[i].skip_any == b->parts[i].skip_any &&
               a->parts[i].skip_one == b->parts[i].skip_one;
    return same;
}

static enum status add_memo(struct schema_reader *reader, const struct schema_set *set,
                            uint32_t *ret_rule, struct error *err)
{
    if (reader->memo_count == SCHEMA_RULE_LIMIT)
        return error_set(err, STATUS_LIMIT,
                         "%s: expected at most %u different kinds of values, found more",
                         reader->source, SCHEMA_RULE_LIMIT);
    struct schema_memo **memos = array_reserve(
        reader->memos, reader->memo_count, &reader->memo_capacity, sizeof(struct schema_memo *));
    if (!memos)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a schema");
    reader->memos = memos;
    struct schema_memo *memo = calloc(1, sizeof(*memo));
    if (!memo)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a schema");
    memo->set = *set;
    memo->rule = *ret_rule = rules_add(&reader->rules);
    memos[reader->memo_count++] = memo;
    return STATUS_OK;
}

enum status schema_value(struct schema_reader *reader, const struct schema_set *set,
                         uint32_t *ret_node, struct error *err)
{
    uint32_t rule, node;
    if (set->never) {
        *ret_node = RULES_NODE_NEVER;
        return STATUS_OK;
    }
    for (size_t i = 0; i < reader->memo_count; i++)
        if (same_set(&reader->memos[i]->set, set) ||
            (i < EQUAL_LIMIT && set->count == 1 && reader->memos[i]->set.count == 1 &&
             are_equal(reader->memos[i]->set.parts[0].schema, set->parts[0].schema))) {
            *ret_node = rules_use(&reader->rules, reader->memos[i]->rule);
            return STATUS_OK;
        }
    TRY(add_memo(reader, set, &rule, err));
    if (++reader->depth > RULES_DEPTH_LIMIT)
        return schema_fail(reader, set->count ? set->parts[0].schema : NULL, STATUS_LIMIT, err,
                           "expected at most %u schemas inside each other", RULES_DEPTH_LIMIT);
    TRY(build(reader, set, &node, err));
    reader->depth--;
    rules_define(&reader->rules, rule, node);
    *ret_node = rules_use(&reader->rules, rule);
    if (reader->rules.error.status)
        *err = reader->rules.error;
    return reader->rules.error.status;
}

uint32_t schema_space(struct schema_reader *reader)
{
    struct rules *rules = &reader->rules;
    static const struct rules_range indent[] = { { ' ', ' ' }, { '\t', '\t' } };
    if (!reader->space) {
        uint32_t rule = rules_add(rules);
        uint32_t line = rules_seq(
            rules, rules_word(rules, "\n"),
            rules_repeat(rules, rules_set(rules, indent, COUNT_OF(indent)), 0, 40));
        uint32_t space = rules_alt(rules, rules_word(rules, " "), line);
        rules_define(rules, rule, rules_optional(rules, space));
        reader->space = rule + 1;
    }
    return rules_use(rules, reader->space - 1);
}

/* ---- The door ------------------------------------------------------------------------------- */

static enum status read_document(struct schema_reader *reader, struct text_view text,
                                 struct error *err)
{
    json_error_t problem;
    if (text.length > GRAMMAR_TEXT_LIMIT_BYTES)
        return error_set(err, STATUS_LIMIT, "%s: expected at most %u bytes, found %zu",
                         reader->source, GRAMMAR_TEXT_LIMIT_BYTES, text.length);
    reader->document = json_loadb(text.bytes, text.length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY,
                                  &problem);
    if (!reader->document) {
        char shown[JSON_ERROR_TEXT_LENGTH];
        return error_set(err, STATUS_USAGE, "%.200s:%d:%d: expected JSON: %s", reader->source,
                         problem.line, problem.column,
                         text_printable(text_view_of(problem.text), shown, sizeof(shown)));
    }
    return STATUS_OK;
}

static enum status read_schema(struct schema_reader *reader, struct text_view text,
                               struct error *err)
{
    struct schema_set set = { .count = 0 };
    uint32_t root = rules_add(&reader->rules), node;
    TRY(read_document(reader, text, err));
    TRY(schema_add(reader, &set, reader->document, err));
    TRY(schema_value(reader, &set, &node, err));
    rules_define(&reader->rules, root, node);
    if (reader->rules.error.status)
        *err = reader->rules.error;
    return reader->rules.error.status;
}

enum status grammar_create_schema(const struct grammar_vocabulary *vocabulary,
                                  struct text_view text, const char *source,
                                  struct grammar **ret_grammar, struct error *err)
{
    struct schema_reader reader = { .source = source };
    struct program program = { 0 };
    uint32_t rule;
    rules_init(&reader.rules);
    enum status status = read_schema(&reader, text, err);
    if (!status) {
        status = program_compile(&reader.rules, &program, &rule, err);
        if (status == STATUS_USAGE)
            status = error_set(err, STATUS_USAGE,
                               "%s: expected a schema that some value is valid for, found none "
                               "that can be written",
                               source);
        else if (status)
            (void)error_wrap(err, "%.200s", source);
    }
    if (!status)
        status = grammar_create_take(vocabulary, &program, ret_grammar, err);
    for (size_t i = 0; i < reader.memo_count; i++)
        free(reader.memos[i]);
    free(reader.memos);
    rules_release(&reader.rules);
    json_decref(reader.document);
    return status;
}
