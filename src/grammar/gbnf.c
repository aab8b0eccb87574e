/* gbnf.c - reads a grammar in GBNF, the notation of llama.cpp.
 *
 *     root ::= "yes" | "no" reason?      # comment
 *     reason ::= ", " [^\n]{1,80}
 *
 * Recursive descent over parts in parentheses; everything else is a loop. */
#include "grammar/gbnf.h"
#include "grammar/matcher.h"

#include "base/array.h"

#include <stdlib.h>

#define REPEAT_LIMIT 1000000u

struct name {
    struct text_view text;
    size_t used_at; /* where it was first used, or defined */
    bool defined;
    uint32_t rule, next; /* next with the same hash, + 1 */
};

#define BUCKET_COUNT 1024u

struct reader {
    struct source source;
    struct rules rules;
    struct name *names; /* by rule */
    size_t name_count, name_capacity;
    uint32_t buckets[BUCKET_COUNT]; /* first name, + 1 */
    unsigned depth;
};

static enum status read_choice(struct reader *reader, bool inside, uint32_t *ret_node,
                               struct error *err);

/* ---- Space and names ------------------------------------------------------------------------ */

static void skip_space(struct reader *reader, bool lines)
{
    struct source *source = &reader->source;
    for (;;) {
        uint32_t c = source_peek(source);
        if (c == '#')
            while (source_peek(source) != '\n' && source_peek(source) != SOURCE_END)
                source_take(source);
        else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r')))
            source_take(source);
        else
            return;
    }
}

static bool is_name(uint32_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

static struct text_view take_name(struct reader *reader)
{
    size_t start = reader->source.at;
    while (is_name(source_peek(&reader->source)))
        source_take(&reader->source);
    return (struct text_view){ reader->source.text.bytes + start, reader->source.at - start };
}

/* The rule of a name, which is added if it was not known. */
static enum status find_rule(struct reader *reader, struct text_view text, size_t at,
                             uint32_t *ret_rule, struct error *err)
{
    uint32_t hash = 0;
    for (size_t i = 0; i < text.length; i++)
        hash = hash * 31 + (uint8_t)text.bytes[i];
    uint32_t *bucket = &reader->buckets[hash % BUCKET_COUNT];
    for (uint32_t i = *bucket; i; i = reader->names[i - 1].next)
        if (text_view_equal(reader->names[i - 1].text, text)) {
            *ret_rule = i - 1;
            return STATUS_OK;
        }
    struct name *names = array_reserve(reader->names, reader->name_count, &reader->name_capacity,
                                       sizeof(*names));
    if (!names)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a grammar");
    reader->names = names;
    *ret_rule = rules_add(&reader->rules);
    names[reader->name_count++] =
        (struct name){ .text = text, .used_at = at, .rule = *ret_rule, .next = *bucket };
    *bucket = (uint32_t)reader->name_count;
    return STATUS_OK;
}

/* ---- Parts ---------------------------------------------------------------------------------- */

static enum status read_group(struct reader *reader, uint32_t *ret_node, struct error *err)
{
    struct source *source = &reader->source;
    size_t start = source->at;
    source_take(source);
    if (++reader->depth > RULES_DEPTH_LIMIT)
        return source_fail(source, start, err, "expected at most %u parentheses inside each other",
                           RULES_DEPTH_LIMIT);
    TRY(read_choice(reader, true, ret_node, err));
    reader->depth--;
    if (source_peek(source) != ')')
        return source_fail(source, source->at, err, "expected ) or another part");
    source_take(source);
    return STATUS_OK;
}

/* One part; *ret_more is false where none begins. */
static enum status read_part(struct reader *reader, bool inside, uint32_t *ret_node, bool *ret_more,
                             struct error *err)
{
    struct source *source = &reader->source;
    static const struct rules_range any = { 0, RULES_LAST_CHARACTER };
    uint32_t c = source_peek(source), rule;
    size_t start = source->at;
    *ret_more = true;
    if (c == '"')
        return gbnf_literal(source, &reader->rules, ret_node, err);
    if (c == '[')
        return gbnf_set(source, &reader->rules, ret_node, err);
    if (c == '(')
        return read_group(reader, ret_node, err);
    if (c == '.') {
        source_take(source);
        *ret_node = rules_set(&reader->rules, &any, 1);
        return STATUS_OK;
    }
    if (is_name(c)) {
        TRY(find_rule(reader, take_name(reader), start, &rule, err));
        *ret_node = rules_use(&reader->rules, rule);
        return STATUS_OK;
    }
    *ret_more = false;
    if (c == '<' || c == '!')
        return source_fail(source, start, err,
                           "expected text, a set, a rule or (; tokens cannot be named");
    if (c == '|' || c == SOURCE_END || (!inside && (c == '\n' || c == '\r')) ||
        (inside && c == ')'))
        return STATUS_OK;
    return source_fail(source, start, err, "expected text, a set, a rule or (");
}

static enum status read_braces(struct reader *reader, uint32_t *ret_least, uint32_t *ret_most,
                               struct error *err)
{
    struct source *source = &reader->source;
    size_t start = source->at;
    source_take(source);
    skip_space(reader, false);
    *ret_least = 0;
    if (source_peek(source) != ',')
        TRY(source_number(source, REPEAT_LIMIT, ret_least, err));
    skip_space(reader, false);
    *ret_most = *ret_least;
    if (source_peek(source) == ',') {
        source_take(source);
        skip_space(reader, false);
        *ret_most = RULES_NO_LIMIT;
        if (source_peek(source) != '}')
            TRY(source_number(source, REPEAT_LIMIT, ret_most, err));
        skip_space(reader, false);
    }
    if (source_peek(source) != '}')
        return source_fail(source, source->at, err, "expected }");
    source_take(source);
    if (*ret_least > *ret_most)
        return source_fail(source, start, err, "expected {LEAST,MOST} with LEAST up to MOST");
    return STATUS_OK;
}

static enum status read_repeats(struct reader *reader, uint32_t *node, struct error *err)
{
    for (;;) {
        uint32_t c = source_peek(&reader->source), least = c == '+', most = RULES_NO_LIMIT;
        if (c == '{')
            TRY(read_braces(reader, &least, &most, err));
        else if (c == '*' || c == '+' || c == '?')
            source_take(&reader->source);
        else
            return STATUS_OK;
        *node = rules_repeat(&reader->rules, *node, least, c == '?' ? 1 : most);
    }
}

static enum status read_choice(struct reader *reader, bool inside, uint32_t *ret_node,
                               struct error *err)
{
    *ret_node = RULES_NODE_NEVER;
    for (;;) {
        uint32_t sequence = RULES_NODE_EMPTY, part;
        bool more = true;
        while (more) {
            skip_space(reader, inside);
            TRY(read_part(reader, inside, &part, &more, err));
            if (!more)
                break;
            TRY(read_repeats(reader, &part, err));
            sequence = rules_seq(&reader->rules, sequence, part);
        }
        *ret_node = rules_alt(&reader->rules, *ret_node, sequence);
        if (source_peek(&reader->source) != '|')
            return STATUS_OK;
        source_take(&reader->source);
        skip_space(reader, true); /* a choice may go on in the next line */
    }
}

/* ---- Rules ---------------------------------------------------------------------------------- */

static enum status read_rule(struct reader *reader, struct error *err)
{
    struct source *source = &reader->source;
    size_t start = source->at;
    uint32_t rule, node;
    struct text_view name = take_name(reader);
    if (!name.length)
        return source_fail(source, start, err, "expected the name of a rule");
    skip_space(reader, false);
    if (!source_skip(source, "::="))
        return source_fail(source, source->at, err, "expected ::=");
    TRY(find_rule(reader, name, start, &rule, err));
    if (reader->names[rule].defined)
        return source_fail(source, start, err, "expected one rule '%.*s', a second one begins",
                           (int)(name.length < 64 ? name.length : 64), name.bytes);
    reader->names[rule].defined = true;
    reader->names[rule].used_at = start;
    skip_space(reader, true);
    TRY(read_choice(reader, false, &node, err));
    rules_define(&reader->rules, rule, node);
    return reader->rules.error.status ? source_wrap(source, start, &reader->rules.error)
                                      : STATUS_OK;
}

static enum status read_grammar(struct reader *reader, struct error *err)
{
    uint32_t root;
    TRY(source_check(&reader->source, err));
    TRY(find_rule(reader, text_view_of("root"), reader->source.text.length, &root, err));
    skip_space(reader, true);
    while (source_peek(&reader->source) != SOURCE_END) {
        TRY(read_rule(reader, err));
        skip_space(reader, true);
    }
    for (size_t i = 0; i < reader->name_count; i++) {
        const struct name *name = &reader->names[i];
        if (!name->defined)
            return source_fail(&reader->source, name->used_at, err,
                               "expected a rule '%.*s' (NAME ::= ...) somewhere",
                               (int)(name->text.length < 64 ? name->text.length : 64),
                               name->text.bytes);
    }
    return STATUS_OK;
}

enum status grammar_create_gbnf(const struct grammar_vocabulary *vocabulary, struct text_view text,
                                const char *source, struct grammar **ret_grammar, struct error *err)
{
    struct program program = { 0 };
    uint32_t rule = 0;
    struct reader *reader = calloc(1, sizeof(*reader));
    if (!reader)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a grammar");
    reader->source = (struct source){ .text = text, .name = source };
    rules_init(&reader->rules);
    enum status status = read_grammar(reader, err);
    if (reader->rules.error.status) {
        *err = reader->rules.error;
        status = err->status;
    }
    if (!status) {
        status = program_compile(&reader->rules, &program, &rule, err);
        if (status)
            (void)source_wrap(&reader->source, reader->names[rule].used_at, err);
    }
    if (!status)
        status = grammar_create_take(vocabulary, &program, ret_grammar, err);
    rules_release(&reader->rules);
    free(reader->names);
    free(reader);
    return status;
}
