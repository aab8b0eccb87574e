/* schema_string.c - strings as they stand in JSON: characters that may stand there as they are, and
 * escapes. Half of a surrogate pair is never written: it is no character. */
#include "grammar/schema.h"

#include <stdio.h>
#include <string.h>

/* ---- Characters ----------------------------------------------------------------------------- */

static const struct rules_range hex[] = { { '0', '9' }, { 'a', 'f' }, { 'A', 'F' } };

/* One character in any of its forms. */
static uint32_t any_character(struct rules *rules)
{
    static const struct rules_range plain[] = { { 0x20, '!' },
                                                { '#', '[' },
                                                { ']', RULES_LAST_CHARACTER } };
    static const struct rules_range letters[] = { { '"', '"' }, { '\\', '\\' }, { '/', '/' },
                                                  { 'b', 'b' }, { 'f', 'f' },   { 'n', 'n' },
                                                  { 'r', 'r' }, { 't', 't' } };
    static const struct rules_range first[] = {
        { '0', '9' }, { 'a', 'c' }, { 'e', 'f' }, { 'A', 'C' }, { 'E', 'F' }
    };
    static const struct rules_range d[] = { { 'd', 'd' }, { 'D', 'D' } };
    uint32_t digit = rules_set(rules, hex, COUNT_OF(hex));
    uint32_t three = rules_repeat(rules, digit, 3, 3), two = rules_repeat(rules, digit, 2, 2);
    uint32_t below = rules_seq(rules, rules_set(rules, d, COUNT_OF(d)),
                               rules_set(rules, &(struct rules_range){ '0', '7' }, 1));
    uint32_t code = rules_alt(rules,
                              rules_seq(rules, rules_set(rules, first, COUNT_OF(first)), three),
                              rules_seq(rules, below, two));
    uint32_t escape = rules_alt(rules, rules_set(rules, letters, COUNT_OF(letters)),
                                rules_seq(rules, rules_word(rules, "u"), code));
    return rules_alt(rules, rules_set(rules, plain, COUNT_OF(plain)),
                     rules_seq(rules, rules_word(rules, "\\"), escape));
}

uint32_t schema_character(struct schema_reader *reader, const struct charset *set)
{
    struct rules *rules = &reader->rules;
    struct charset plain = { 0 };
    uint32_t choice = RULES_NODE_NEVER;
    for (size_t i = 0; i < set->count; i++) {
        uint32_t at = set->ranges[i].first, last = set->ranges[i].last;
        for (; at <= last && at <= '\\'; at++) {
            char text[16];
            if (at >= 0x20 && at != '"' && at != '\\') {
                charset_add(&plain, at, at);
                continue;
            }
            if (at >= 0x20)
                snprintf(text, sizeof(text), "\\%c", (int)at);
            else
                snprintf(text, sizeof(text), "\\u%04x", at);
            choice = rules_alt(rules, choice, rules_word(rules, text));
        }
        charset_add(&plain, at, last);
    }
    charset_finish(&plain);
    if (plain.failed && !rules->error.status)
        (void)error_set(&rules->error, STATUS_NO_MEMORY, "no memory for a schema");
    choice = rules_alt(rules, choice, rules_set(rules, plain.ranges, plain.count));
    charset_release(&plain);
    return choice;
}

/* ---- Strings -------------------------------------------------------------------------------- */

static uint32_t quoted(struct rules *rules, uint32_t node)
{
    node = rules_seq(rules, rules_word(rules, "\""), node);
    return rules_seq(rules, node, rules_word(rules, "\""));
}

uint32_t schema_any_string(struct schema_reader *reader)
{
    struct rules *rules = &reader->rules;
    if (!reader->string) {
        uint32_t rule = rules_add(rules);
        uint32_t inside = rules_repeat(rules, any_character(rules), 0, RULES_NO_LIMIT);
        rules_define(rules, rule, quoted(rules, inside));
        reader->string = rule + 1;
    }
    return rules_use(rules, reader->string - 1);
}

/* JSON Schema does not demand formats; these are obeyed because they are easily put into a pattern.
 */
static const char *format_pattern(const char *format)
{
#define DATE                                                                                       \
    "\\d{3}[1-9]-((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-(0[1-9]|[12]\\d|30)"         \
    "|02-(0[1-9]|1\\d|2[0-8]))"
#define TIME "([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,6})?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)"
    static const struct {
        const char *format, *pattern;
    } patterns[] = {
        { "date", "^" DATE "$" },
        { "time", "^" TIME "$" },
        { "date-time", "^" DATE "T" TIME "$" },
        { "uuid", "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$" },
        { "ipv4", "^((25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)\\.){3}"
                  "(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)$" },
    };
    for (size_t i = 0; format && i < COUNT_OF(patterns); i++)
        if (strcmp(format, patterns[i].format) == 0)
            return patterns[i].pattern;
    return NULL;
}

enum status schema_string(struct schema_reader *reader, const struct schema_facts *facts,
                          uint32_t *ret_node, struct error *err)
{
    struct rules *rules = &reader->rules;
    uint64_t least = facts->least_length, most = facts->most_length;
    bool any_length = least == 0 && most == RULES_NO_LIMIT;
    const char *pattern = facts->pattern;
    uint32_t inside, shortest, longest;
    if (!pattern && any_length)
        pattern = format_pattern(facts->format);
    if (!pattern) {
        inside = any_length
                     ? 0
                     : rules_repeat(rules, any_character(rules), (uint32_t)least, (uint32_t)most);
        *ret_node = any_length ? schema_any_string(reader) : quoted(rules, inside);
        return STATUS_OK;
    }
    TRY(schema_pattern(reader, facts->pattern_schema, pattern, &inside, &shortest, &longest, err));
    if (shortest < least || longest > most)
        return schema_fail(reader, facts->pattern_schema, STATUS_UNSUPPORTED, err,
                           "minLength and maxLength cannot be obeyed together with a pattern whose "
                           "texts have other lengths; write the lengths into the pattern");
    *ret_node = quoted(rules, inside);
    return STATUS_OK;
}
