/* schema.h - what the files that turn a JSON schema into rules share.
 *
 * A value has to be valid for a set of schemas at once: that is what allOf, $ref next to other
 * keywords, and anyOf in a schema with properties come to. Each set becomes one rule, made when it
 * is met first, so recursive schemas become recursive rules. The rules may allow less than the
 * schema (compact layout, properties in the order of the schema), never more. */
#ifndef GRETA_GRAMMAR_SCHEMA_H
#define GRETA_GRAMMAR_SCHEMA_H

#include "grammar/rules.h"

#include <jansson.h>

/* Schemas that hold for one value. */
#define SCHEMA_SET_LIMIT 64u
#define SCHEMA_RULE_LIMIT 20000u

struct schema_part {
    const json_t *schema;    /* an object; borrowed from the document */
    bool skip_any, skip_one; /* its anyOf, oneOf was chosen from */
};

struct schema_set {
    struct schema_part parts[SCHEMA_SET_LIMIT];
    size_t count;
    bool never; /* no value is valid */
};

enum schema_type {
    SCHEMA_NULL = 1,
    SCHEMA_BOOLEAN = 2,
    SCHEMA_INTEGER = 4,
    SCHEMA_FRACTION = 8, /* a number that is no integer */
    SCHEMA_STRING = 16,
    SCHEMA_ARRAY = 32,
    SCHEMA_OBJECT = 64,
    SCHEMA_ANY_TYPE = 127,
    SCHEMA_NUMBER = SCHEMA_INTEGER | SCHEMA_FRACTION,
};

/* What the keywords of a set that concern the value itself come to. */
struct schema_facts {
    unsigned types; /* that are said; SCHEMA_ANY_TYPE if none is */
    bool has_types;
    unsigned implied;                   /* by other keywords; 0: none */
    double least, most;                 /* of numbers; infinite: no bound */
    bool above_least, below_most;       /* the bound itself is out */
    uint64_t least_length, most_length; /* of strings; RULES_NO_LIMIT */
    const char *pattern, *format;
    const json_t *pattern_schema;
    uint64_t least_items, most_items;
    bool is_closed; /* no properties but those that are named */
    bool items_are_closed;
    const json_t *values; /* enum (array) or const of one schema, or NULL */
    bool values_is_const;
};

struct schema_memo {
    struct schema_set set;
    uint32_t rule;
};

struct schema_reader {
    json_t *document;
    const char *source; /* for errors */
    struct rules rules;
    struct schema_memo **memos;
    size_t memo_count, memo_capacity;
    unsigned depth;
    uint32_t compared; /* by schema_one_of.c */
    /* Shared rules, + 1; 0: not made yet. */
    uint32_t space, string;
};

/* ---- schema_set.c --------------------------------------------------------------------------- */

/* Adds a schema with all it refers to; `true` adds nothing. */
MUST_CHECK enum status schema_add(struct schema_reader *reader, struct schema_set *set,
                                  const json_t *schema, struct error *err);

/* ---- schema.c ------------------------------------------------------------------------------- */

/* The node for a value that is valid for all of the set. */
MUST_CHECK enum status schema_value(struct schema_reader *reader, const struct schema_set *set,
                                    uint32_t *ret_node, struct error *err);
/* White space, or none. */
uint32_t schema_space(struct schema_reader *reader);
/* STATUS_USAGE or another, with the place of the schema in front. */
#define schema_fail(reader, schema, status, err, ...)                                              \
    (schema_fail_at((reader), (schema), (status), (err), __FILE__, __LINE__, __VA_ARGS__), (status))
void schema_fail_at(const struct schema_reader *reader, const json_t *schema, enum status status,
                    struct error *err, const char *file, int line, const char *format, ...)
    PRINTF_LIKE(7, 8);

/* ---- schema_facts.c ------------------------------------------------------------------------- */

MUST_CHECK enum status schema_find_facts(const struct schema_reader *reader,
                                         const struct schema_set *set, struct schema_facts *ret,
                                         struct error *err);
/* Types that values of the set which are written can have. */
unsigned schema_types(const struct schema_facts *facts);
unsigned schema_type_of(const json_t *value);

/* ---- One type each -------------------------------------------------------------------------- */

/* schema_number.c. types: SCHEMA_INTEGER or SCHEMA_NUMBER. */
uint32_t schema_number(struct schema_reader *reader, const struct schema_facts *facts,
                       unsigned types);
/* schema_string.c */
MUST_CHECK enum status schema_string(struct schema_reader *reader, const struct schema_facts *facts,
                                     uint32_t *ret_node, struct error *err);
/* Any string, with its quotes. */
uint32_t schema_any_string(struct schema_reader *reader);
/* A character of a string as it stands in JSON, from a finished set. */
uint32_t schema_character(struct schema_reader *reader, const struct charset *set);
/* schema_pattern.c: the inside of a string. Lengths are of characters; most RULES_NO_LIMIT. */
MUST_CHECK enum status schema_pattern(struct schema_reader *reader, const json_t *schema,
                                      const char *pattern, uint32_t *ret_node, uint32_t *ret_least,
                                      uint32_t *ret_most, struct error *err);
/* schema_object.c */
MUST_CHECK enum status schema_object(struct schema_reader *reader, const struct schema_set *set,
                                     const struct schema_facts *facts, uint32_t *ret_node,
                                     struct error *err);
/* schema_array.c */
MUST_CHECK enum status schema_array(struct schema_reader *reader, const struct schema_set *set,
                                    const struct schema_facts *facts, uint32_t *ret_node,
                                    struct error *err);
/* schema_values.c: the values of enum and const that the set allows. */
MUST_CHECK enum status schema_values(struct schema_reader *reader, const struct schema_set *set,
                                     const struct schema_facts *facts, uint32_t *ret_node,
                                     struct error *err);
/* The JSON text of a value without parts, or a name with its quotes. */
uint32_t schema_scalar(struct schema_reader *reader, const json_t *value);
uint32_t schema_name(struct schema_reader *reader, const char *name);
/* True if the two are the same value; numbers by value. */
bool schema_equal(const json_t *a, const json_t *b);
/* schema_one_of.c: fails if what is written for one of the sets may be valid for another. */
MUST_CHECK enum status schema_check_apart(struct schema_reader *reader, const json_t *schema,
                                          const struct schema_set *sets, size_t count,
                                          struct error *err);

/* The member of the schema's `keyword` with this name, or NULL. */
static inline const json_t *schema_member(const struct schema_part *part, const char *keyword,
                                          const char *name)
{
    return json_object_get(json_object_get(part->schema, keyword), name);
}

#endif
