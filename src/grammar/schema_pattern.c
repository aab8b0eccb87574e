/* schema_pattern.c - the regular expressions of `pattern`, as the inside of a JSON string.
 *
 * What has the same meaning everywhere is read: characters, classes, groups, |, * + ? {}, and ^ $
 * at the ends. What cannot be obeyed by reading forward (\b, look-around, references) is refused.
 * \w, \d and \s are ASCII; what excludes them is printable ASCII alone, as engines differ beyond.
 */
#include "grammar/schema.h"
#include "grammar/source.h"

#include <string.h>

#define REPEAT_LIMIT 10000u
#define GROUP_LIMIT 64u

struct regex {
    struct schema_reader *reader;
    const json_t *schema;
    struct source source;
    unsigned depth;
};

/* A node, and how many characters its texts have. */
struct part {
    uint32_t node;
    uint32_t shortest, longest;
};

static enum status read_choice(struct regex *regex, bool inside, struct part *ret,
                               struct error *err);

#define refuse(regex, err, ...)                                                                    \
    schema_fail((regex)->reader, (regex)->schema, STATUS_UNSUPPORTED, (err), __VA_ARGS__)

static uint32_t add_lengths(uint32_t a, uint32_t b)
{
    return a > RULES_NO_LIMIT - b ? RULES_NO_LIMIT : a + b;
}

static uint32_t multiply_length(uint32_t length, uint32_t count)
{
    uint64_t product = (uint64_t)length * count;
    bool unlimited = (length == RULES_NO_LIMIT && count) || (count == RULES_NO_LIMIT && length);
    return unlimited || product > RULES_NO_LIMIT ? RULES_NO_LIMIT : (uint32_t)product;
}

/* ---- Characters ----------------------------------------------------------------------------- */

static void add_class(struct charset *set, uint32_t letter)
{
    switch (letter | 0x20) {
    case 'd':
        charset_add(set, '0', '9');
        break;
    case 'w':
        charset_add(set, '0', '9');
        charset_add(set, 'A', 'Z');
        charset_add(set, '_', '_');
        charset_add(set, 'a', 'z');
        break;
    default: /* s */
        charset_add(set, '\t', '\r');
        charset_add(set, ' ', ' ');
        break;
    }
}

/* After a backslash: a class is added to the set; a character comes back in *ret_single, which is
 * SOURCE_END for a class. */
static enum status read_escape(struct regex *regex, struct charset *set, bool *ret_ascii,
                               uint32_t *ret_single, struct error *err)
{
    struct source *source = &regex->source;
    uint32_t c = source_take(source);
    static const char letters[] = "nrtfv0", meant[] = "\n\r\t\f\v\0";
    const char *found = c < 0x80 && c ? strchr(letters, (int)c) : NULL;
    struct error unused;
    *ret_single = SOURCE_END;
    if (c < 0x80 && c && strchr("dws", (int)c)) {
        add_class(set, c);
        *ret_ascii = true;
        return STATUS_OK;
    }
    if (c < 0x80 && c && strchr("DWS", (int)c)) {
        struct charset other = { 0 };
        add_class(&other, c);
        charset_finish(&other);
        charset_negate(&other);
        charset_clip(&other, ' ', 0x7E);
        for (size_t i = 0; i < other.count; i++)
            charset_add(set, other.ranges[i].first, other.ranges[i].last);
        charset_release(&other);
        *ret_ascii = true;
        return STATUS_OK;
    }
    if (found)
        *ret_single = (uint8_t)meant[found - letters];
    else if ((c == 'x' || c == 'u') && !source_hex(source, c == 'x' ? 2 : 4, ret_single, &unused))
        return STATUS_OK;
    else if (c < 0x80 && strchr("^$\\.*+?()[]{}|/-\"'!#%&,:;<=>@_`~ ", (int)c) && c)
        *ret_single = c;
    else
        return refuse(regex, err, "pattern: an escape that cannot be obeyed at character %zu",
                      source->at);
    return STATUS_OK;
}

static enum status read_member(struct regex *regex, struct charset *set, bool *ret_ascii,
                               uint32_t *ret_single, struct error *err)
{
    uint32_t c = source_take(&regex->source);
    *ret_single = c;
    if (c == SOURCE_END || (c == '[' && source_peek(&regex->source) == ':'))
        return refuse(regex, err, "pattern: expected a class that ends with ]");
    return c == '\\' ? read_escape(regex, set, ret_ascii, ret_single, err) : STATUS_OK;
}

static enum status read_members(struct regex *regex, struct charset *set, bool *ret_ascii,
                                struct error *err)
{
    struct source *source = &regex->source;
    while (source_peek(source) != ']') {
        uint32_t first, last;
        TRY(read_member(regex, set, ret_ascii, &first, err));
        if (first == SOURCE_END)
            continue;
        last = first;
        if (source_skip(source, "-]")) {
            charset_add(set, '-', '-');
            source->at--;
        } else if (source_skip(source, "-")) {
            TRY(read_member(regex, set, ret_ascii, &last, err));
            if (last == SOURCE_END || last < first)
                return refuse(regex, err, "pattern: expected a range that goes up");
        }
        charset_add(set, first, last);
    }
    source_take(source);
    charset_finish(set);
    return STATUS_OK;
}

static enum status read_class(struct regex *regex, struct charset *set, struct error *err)
{
    bool ascii = false, negated = source_skip(&regex->source, "^");
    TRY(read_members(regex, set, &ascii, err));
    if (negated)
        charset_negate(set);
    if (negated && ascii)
        charset_clip(set, ' ', 0x7E);
    return STATUS_OK;
}

/* ---- Parts ---------------------------------------------------------------------------------- */

static enum status read_group(struct regex *regex, struct part *ret, struct error *err)
{
    struct source *source = &regex->source;
    if (++regex->depth > GROUP_LIMIT)
        return refuse(regex, err, "pattern: expected at most %u groups inside each other",
                      GROUP_LIMIT);
    bool named = source_skip(source, "?<");
    uint32_t c = source_peek(source);
    if (named ? c == '=' || c == '!' : c == '?' && !source_skip(source, "?:"))
        return refuse(regex, err, "pattern: look-around cannot be obeyed");
    while (named && c != '>' && c != SOURCE_END)
        c = source_take(source);
    TRY(read_choice(regex, true, ret, err));
    regex->depth--;
    if (source_take(source) != ')')
        return refuse(regex, err, "pattern: expected a group that ends with )");
    return STATUS_OK;
}

static enum status read_one(struct regex *regex, struct part *ret, struct error *err)
{
    struct charset set = { 0 };
    uint32_t c = source_take(&regex->source), single = c;
    bool ascii;
    enum status status = STATUS_OK;
    if (c == '(')
        return read_group(regex, ret, err);
    if (strchr("*+?{^$", (int)c) && c < 0x80 && c)
        return refuse(regex, err, "pattern: '%c' cannot be obeyed here (character %zu)", (int)c,
                      regex->source.at);
    if (c == '.') {
        charset_add(&set, '\n', '\n');
        charset_add(&set, '\r', '\r');
        charset_add(&set, 0x2028, 0x2029);
        charset_finish(&set);
        charset_negate(&set);
        single = SOURCE_END;
    } else if (c == '[') {
        status = read_class(regex, &set, err);
        single = SOURCE_END;
    } else if (c == '\\') {
        status = read_escape(regex, &set, &ascii, &single, err);
    }
    if (!status) {
        if (single != SOURCE_END)
            charset_add(&set, single, single);
        charset_finish(&set);
        *ret = (struct part){ schema_character(regex->reader, &set), 1, 1 };
        if (set.failed)
            status = error_set(err, STATUS_NO_MEMORY, "no memory for a pattern");
    }
    charset_release(&set);
    return status;
}

/* {LEAST,MOST}; what does not look like that is refused. */
static enum status read_braces(struct regex *regex, uint32_t *least, uint32_t *most,
                               struct error *err)
{
    struct source *source = &regex->source;
    struct error unused;
    *least = 0;
    enum status status = source_number(source, REPEAT_LIMIT, least, &unused);
    *most = *least;
    if (!status && source_skip(source, ",")) {
        *most = RULES_NO_LIMIT;
        if (source_peek(source) != '}')
            status = source_number(source, REPEAT_LIMIT, most, &unused);
    }
    if (status || !source_skip(source, "}") || *least > *most)
        return refuse(regex, err,
                      "pattern: expected {N}, {N,} or {N,M} with numbers up to %u at character %zu",
                      REPEAT_LIMIT, source->at);
    return STATUS_OK;
}

static enum status read_repeats(struct regex *regex, struct part *part, struct error *err)
{
    struct source *source = &regex->source;
    uint32_t least = 0, most = RULES_NO_LIMIT;
    if (source_skip(source, "{"))
        TRY(read_braces(regex, &least, &most, err));
    else if (source_skip(source, "+"))
        least = 1;
    else if (source_skip(source, "?"))
        most = 1;
    else if (!source_skip(source, "*"))
        return STATUS_OK;
    (void)source_skip(source, "?"); /* a lazy repetition has the same texts */
    part->node = rules_repeat(&regex->reader->rules, part->node, least, most);
    part->shortest = multiply_length(part->shortest, least);
    part->longest = multiply_length(part->longest, most);
    return STATUS_OK;
}

static struct part join(struct rules *rules, struct part a, struct part b)
{
    return (struct part){ rules_seq(rules, a.node, b.node), add_lengths(a.shortest, b.shortest),
                          add_lengths(a.longest, b.longest) };
}

/* Anything: what an end that is not anchored may have. */
static struct part anything(struct regex *regex)
{
    struct charset all = { 0 };
    charset_add(&all, 0, RULES_LAST_CHARACTER);
    uint32_t node = schema_character(regex->reader, &all);
    charset_release(&all);
    return (struct part){ rules_repeat(&regex->reader->rules, node, 0, RULES_NO_LIMIT), 0,
                          RULES_NO_LIMIT };
}

static enum status read_sequence(struct regex *regex, bool inside, struct part *ret,
                                 struct error *err)
{
    struct source *source = &regex->source;
    struct rules *rules = &regex->reader->rules;
    *ret = (struct part){ RULES_NODE_EMPTY, 0, 0 };
    if (!inside && !source_skip(source, "^"))
        *ret = anything(regex);
    for (;;) {
        uint32_t c = source_peek(source);
        struct part part;
        size_t at = source->at;
        if (!inside && source_skip(source, "$")) {
            if (source_peek(source) == '|' || source_peek(source) == SOURCE_END)
                return STATUS_OK;
            source->at = at;
        }
        if (c == SOURCE_END || c == '|' || (inside && c == ')'))
            break;
        if (c == ')')
            return refuse(regex, err, "pattern: expected a group before )");
        TRY(read_one(regex, &part, err));
        TRY(read_repeats(regex, &part, err));
        *ret = join(rules, *ret, part);
    }
    if (!inside)
        *ret = join(rules, *ret, anything(regex));
    return STATUS_OK;
}

static enum status read_choice(struct regex *regex, bool inside, struct part *ret,
                               struct error *err)
{
    struct part one;
    TRY(read_sequence(regex, inside, ret, err));
    while (source_skip(&regex->source, "|")) {
        TRY(read_sequence(regex, inside, &one, err));
        ret->node = rules_alt(&regex->reader->rules, ret->node, one.node);
        ret->shortest = one.shortest < ret->shortest ? one.shortest : ret->shortest;
        ret->longest = one.longest > ret->longest ? one.longest : ret->longest;
    }
    return STATUS_OK;
}

enum status schema_pattern(struct schema_reader *reader, const json_t *schema, const char *pattern,
                           uint32_t *ret_node, uint32_t *ret_least, uint32_t *ret_most,
                           struct error *err)
{
    struct regex regex = { .reader = reader,
                           .schema = schema,
                           .source = { .text = text_view_of(pattern), .name = "pattern" } };
    struct part part;
    TRY(read_choice(&regex, false, &part, err));
    *ret_node = part.node;
    *ret_least = part.shortest;
    *ret_most = part.longest;
    return STATUS_OK;
}
