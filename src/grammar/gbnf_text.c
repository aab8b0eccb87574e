/* gbnf_text.c - texts and sets of characters in GBNF. */
#include "grammar/gbnf.h"

#include <string.h>

static enum status read_escape(struct source *source, uint32_t *ret, struct error *err)
{
    size_t start = source->at;
    uint32_t c = source_take(source);
    static const char plain[] = "nrt\\\"[]-^/'", meant[] = "\n\r\t\\\"[]-^/'";
    const char *found = c < 0x80 && c ? strchr(plain, (int)c) : NULL;
    if (found) {
        *ret = (uint8_t)meant[found - plain];
        return STATUS_OK;
    }
    if (c != 'x' && c != 'u' && c != 'U')
        return source_fail(source, start, err, "expected an escape (\\n \\t \\xHH \\uHHHH ...)");
    TRY(source_hex(source, c == 'x' ? 2 : c == 'u' ? 4 : 8, ret, err));
    if (*ret > RULES_LAST_CHARACTER || (*ret >= 0xD800 && *ret <= 0xDFFF))
        return source_fail(source, start, err, "expected a character of Unicode");
    return STATUS_OK;
}

static enum status read_character(struct source *source, uint32_t *ret, struct error *err)
{
    *ret = source_take(source);
    return *ret == '\\' ? read_escape(source, ret, err) : STATUS_OK;
}

enum status gbnf_literal(struct source *source, struct rules *rules, uint32_t *ret_node,
                         struct error *err)
{
    source_take(source);
    *ret_node = RULES_NODE_EMPTY;
    for (;;) {
        uint32_t c = source_peek(source);
        if (c == SOURCE_END || c == '\n')
            return source_fail(source, source->at, err, "expected \" at the end of a text");
        if (c == '"')
            break;
        TRY(read_character(source, &c, err));
        uint32_t node = rules_set(rules, &(struct rules_range){ c, c }, 1);
        *ret_node = rules_seq(rules, *ret_node, node);
    }
    source_take(source);
    return STATUS_OK;
}

static enum status read_members(struct source *source, struct charset *set, struct error *err)
{
    while (source_peek(source) != ']') {
        uint32_t first, last;
        size_t at = source->at;
        if (source_peek(source) == SOURCE_END || source_peek(source) == '\n')
            return source_fail(source, at, err, "expected ] at the end of a set");
        TRY(read_character(source, &first, err));
        last = first;
        if (source_peek(source) == '-') {
            source_take(source);
            if (source_peek(source) == ']')
                charset_add(set, '-', '-');
            else if (source_peek(source) == SOURCE_END)
                return source_fail(source, source->at, err, "expected ] at the end of a set");
            else
                TRY(read_character(source, &last, err));
        }
        if (last < first)
            return source_fail(source, at, err, "expected a range that goes up");
        charset_add(set, first, last);
    }
    source_take(source);
    charset_finish(set);
    return STATUS_OK;
}

enum status gbnf_set(struct source *source, struct rules *rules, uint32_t *ret_node,
                     struct error *err)
{
    struct charset set = { 0 };
    size_t start = source->at;
    source_take(source);
    bool negated = source_peek(source) == '^';
    if (negated)
        source_take(source);
    enum status status = read_members(source, &set, err);
    if (!status && negated)
        charset_negate(&set);
    if (!status && set.failed)
        status = error_set(err, STATUS_NO_MEMORY, "no memory for a grammar");
    if (!status && !set.count)
        status = source_fail(source, start, err, "expected a set with characters");
    if (!status)
        *ret_node = rules_set(rules, set.ranges, set.count);
    charset_release(&set);
    return status;
}
