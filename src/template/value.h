/* value.h - what a template computes with, as Python has it.
 *
 * A value is passed by copy; what it points to lives as long as the rendering (constants: as long
 * as the template). Strings do not change. Lists and dictionaries do, and may contain themselves:
 * what walks them counts its depth (jinja_enter). */
#ifndef GRETA_TEMPLATE_VALUE_H
#define GRETA_TEMPLATE_VALUE_H

#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

enum value_kind {
    VALUE_ABSENT, /* no value at all: an argument that was not given */
    VALUE_UNDEFINED,
    VALUE_NONE,
    VALUE_BOOL,
    VALUE_INT,
    VALUE_FLOAT,
    VALUE_STRING,
    VALUE_LIST,
    VALUE_TUPLE,
    VALUE_DICT,
    VALUE_NAMESPACE,
    VALUE_RANGE,
    VALUE_GENERATOR, /* what map and select give: can be walked once */
    VALUE_VIEW,      /* what dict.items(), keys() and values() give */
    VALUE_LOOP,
    VALUE_MACRO,
    VALUE_BUILTIN, /* a function, or a method with its subject */
    VALUE_CYCLER,
    VALUE_JOINER,
    VALUE_KIND_COUNT
};

/* Why a value is undefined; for messages. */
enum undefined_reason {
    UNDEFINED_NAME,      /* string: the name of a variable */
    UNDEFINED_ATTRIBUTE, /* string: the attribute; owner: the kind that lacks it */
    UNDEFINED_ELEMENT,   /* integer: the index; owner: the kind that lacks it */
    UNDEFINED_ARGUMENT,  /* string: a parameter of a macro */
    UNDEFINED_UNSAFE,    /* string: an attribute that is out of reach */
    UNDEFINED_EMPTY,     /* first, last, min, max of nothing */
    UNDEFINED_BRANCH,    /* a condition without else */
};

struct string {
    const char *bytes;
    uint32_t length;
    uint32_t characters;
    bool safe;         /* marked by safe or escape: adding to it escapes the other side */
    struct tail *tail; /* room after the bytes that a longer string may take; NULL: none */
};

struct value {
    uint8_t kind;
    uint8_t reason; /* enum undefined_reason */
    uint8_t owner;  /* enum value_kind, for UNDEFINED_ATTRIBUTE and UNDEFINED_ELEMENT */
    uint8_t view;   /* enum view_kind */
    union {
        bool truth;
        int64_t integer;
        double real;
        const struct string *string;
        struct list *list; /* LIST, TUPLE, GENERATOR, VIEW */
        struct dict *dict; /* DICT, NAMESPACE */
        struct range *range;
        struct loop *loop;
        struct macro *macro;
        struct bound *bound;
        struct cycler *cycler;
    };
};

enum view_kind { VIEW_ITEMS, VIEW_KEYS, VIEW_VALUES };

struct list {
    struct value *items;
    uint32_t count, capacity;
    uint32_t walked; /* generator: items already taken */
};

struct dict_entry {
    struct value key, value;
    uint64_t hash;
};

struct dict {
    struct dict_entry *entries; /* in order of insertion */
    uint32_t count, capacity;
    uint32_t *slots; /* index + 1 by hash; NULL while there are few entries */
    uint32_t slot_count;
};

struct range {
    int64_t start, stop, step, count;
};

struct cycler {
    struct list items;
    uint32_t at;
    const struct string *separator; /* joiner */
    bool used;                      /* joiner */
};

struct bound {
    const struct builtin *row;
    struct value subject;
};

/* ---- Values without memory of their own ------------------------------------------------------ */

static inline struct value value_none(void)
{
    return (struct value){ .kind = VALUE_NONE };
}

static inline struct value value_bool(bool truth)
{
    return (struct value){ .kind = VALUE_BOOL, .truth = truth };
}

static inline struct value value_int(int64_t integer)
{
    return (struct value){ .kind = VALUE_INT, .integer = integer };
}

static inline struct value value_float(double real)
{
    return (struct value){ .kind = VALUE_FLOAT, .real = real };
}

static inline struct value value_string(const struct string *string)
{
    return (struct value){ .kind = VALUE_STRING, .string = string };
}

static inline struct value value_list(enum value_kind kind, struct list *list)
{
    return (struct value){ .kind = (uint8_t)kind, .list = list };
}

static inline struct value value_undefined(enum undefined_reason reason, const struct string *name)
{
    return (struct value){ .kind = VALUE_UNDEFINED, .reason = (uint8_t)reason, .string = name };
}

static inline bool value_is(struct value value, enum value_kind kind)
{
    return value.kind == kind;
}

/* A bool is a number, as in Python. */
static inline bool value_is_integer(struct value value)
{
    return value.kind == VALUE_INT || value.kind == VALUE_BOOL;
}

static inline bool value_is_number(struct value value)
{
    return value_is_integer(value) || value.kind == VALUE_FLOAT;
}

static inline int64_t value_integer(struct value value)
{
    return value.kind == VALUE_BOOL ? value.truth : value.integer;
}

static inline double value_real(struct value value)
{
    return value.kind == VALUE_FLOAT ? value.real : (double)value_integer(value);
}

static inline struct text_view value_text(struct value value)
{
    return (struct text_view){ value.string->bytes, value.string->length };
}

/* Python's name of a kind: "str", "NoneType". */
const char *jinja_kind_name(struct value value);
bool jinja_truth(struct value value);

#endif
