/* render.h - one rendering: its memory, limits, scopes and text.
 *
 * Everything that makes text appends to r->out. What should become a string and not output is cut
 * off its end again (jinja_text_begin, jinja_text_end), so that nothing has to be released after a
 * failure. A function that fails has reported why. */
#ifndef GRETA_TEMPLATE_RENDER_H
#define GRETA_TEMPLATE_RENDER_H

#include "template/node.h"
#include "template/report.h"
#include "template/strings.h"

/* Real templates need 11 macros within each other and a depth of 29 in each. */
#define DEPTH_LIMIT 1200u
#define CALL_LIMIT 100u
#define ITEM_LIMIT 1000000u /* of a list or dictionary */
#define RANGE_LIMIT 100000

enum flow { FLOW_ON, FLOW_BREAK, FLOW_CONTINUE };

struct scope_entry {
    uint32_t name;
    struct value value;
};

struct scope {
    struct scope *parent;
    struct scope_entry *entries;
    uint32_t count, capacity;
};

struct render {
    const struct template *template;
    struct arena arena;
    struct report report;
    uint64_t steps_left;
    uint64_t output_limit;
    uint32_t depth, calls;
    struct text *out;
    size_t out_begin;      /* what *out held before */
    struct value *globals; /* by name */
    struct scope *scope;   /* NULL: the template's own */
    struct tm now;
    enum flow flow;
};

/* What a function, filter, test or method is called with. */
struct keyword {
    const struct string *name;
    struct value value;
};

struct call {
    struct value subject; /* of a filter, test or method */
    const struct value *values;
    uint32_t count;
    const struct keyword *keywords;
    uint32_t keyword_count;
    struct value args[8]; /* by the parameters of the row; VALUE_ABSENT: not given */
};

struct builtin {
    const char *name;
    /* "width=,first=": positional or keyword; without '=' it must be given. NULL: looks at values
     * and keywords itself. */
    const char *parameters;
    enum status (*run)(struct render *r, const struct call *call, struct value *ret);
};

struct builtin_table {
    const struct builtin *rows;
    size_t count;
};

extern const struct builtin_table jinja_tests, jinja_functions;
const struct builtin *jinja_filter_find(const struct string *name);
const struct builtin *jinja_test_find(const struct string *name);
const struct builtin *jinja_function_find(const struct string *name);
/* A method of this kind of value. */
const struct builtin *jinja_method_find(enum value_kind kind, const struct string *name);
const struct builtin *jinja_table_find(const struct builtin_table *table,
                                       const struct string *name);

/* ---- Failing, limits (render.c) -------------------------------------------------------------- */

/* The report has the status that callers see in the end; here it only matters that it is a failure,
 * which the compiler sees too. */
#define fail(r, problem, ...)                                                                      \
    (jinja_fail((r), TEMPLATE_PROBLEM_##problem, __VA_ARGS__), STATUS_BAD_FILE)
void jinja_fail(struct render *r, enum template_problem problem, const char *format, ...)
    PRINTF_LIKE(3, 4);
/* Using an undefined value: says why it is undefined. */
enum status jinja_fail_undefined(struct render *r, struct value value);
MUST_CHECK enum status jinja_spend(struct render *r, uint64_t steps);
MUST_CHECK enum status jinja_enter(struct render *r); /* one level deeper, until jinja_leave */
void jinja_leave(struct render *r);
MUST_CHECK enum status jinja_take(struct render *r, uint64_t bytes, void *ret_pointer);

/* ---- Text ------------------------------------------------------------------------------------ */

MUST_CHECK enum status jinja_add(struct render *r, const char *bytes, size_t length);
MUST_CHECK enum status jinja_add_text(struct render *r, const char *zero_terminated);
MUST_CHECK enum status jinja_add_view(struct render *r, struct text_view text);
MUST_CHECK enum status jinja_add_code(struct render *r, uint32_t code);
MUST_CHECK enum status jinja_add_fill(struct render *r, struct text_view what, uint64_t times);
size_t jinja_text_begin(const struct render *r);
MUST_CHECK enum status jinja_text_end(struct render *r, size_t begin, struct value *ret);
struct text_view jinja_text_since(const struct render *r, size_t begin);

MUST_CHECK enum status jinja_string(struct render *r, struct text_view text, struct value *ret);
MUST_CHECK enum status jinja_string_of(struct render *r, const char *zero_terminated,
                                       struct value *ret);
MUST_CHECK enum status jinja_concat(struct render *r, struct value a, struct value b,
                                    struct value *ret);
/* str(value), and the same appended. repr likewise. */
MUST_CHECK enum status jinja_to_string(struct render *r, struct value value, struct value *ret);
MUST_CHECK enum status jinja_print(struct render *r, struct value value);
MUST_CHECK enum status jinja_repr(struct render *r, struct value value);
MUST_CHECK enum status jinja_print_float(struct render *r, double real);
MUST_CHECK enum status jinja_escape(struct render *r, struct value value, struct value *ret);
/* Marks a string as safe, or not, as another one is. */
MUST_CHECK enum status jinja_mark_safe(struct render *r, struct value value, bool safe,
                                       struct value *ret);

/* ---- Containers (containers.c) --------------------------------------------------------------- */

MUST_CHECK enum status jinja_list_create(struct render *r, uint64_t capacity, struct list **ret);
MUST_CHECK enum status jinja_list_add(struct render *r, struct list *list, struct value value);
MUST_CHECK enum status jinja_pair(struct render *r, struct value a, struct value b,
                                  struct value *ret);
MUST_CHECK enum status jinja_dict_create(struct render *r, struct dict **ret);
/* The entry or NULL. Fails for a key that cannot be one. */
MUST_CHECK enum status jinja_dict_find(struct render *r, const struct dict *dict, struct value key,
                                       struct dict_entry **ret);
MUST_CHECK enum status jinja_dict_set(struct render *r, struct dict *dict, struct value key,
                                      struct value value);
MUST_CHECK enum status jinja_dict_remove(struct render *r, struct dict *dict,
                                         struct dict_entry *entry);
MUST_CHECK enum status jinja_dict_copy(struct render *r, struct dict *into,
                                       const struct dict *from);
/* The entry of a text key; NULL if there is none or no step left. */
struct dict_entry *jinja_dict_text(struct render *r, const struct dict *dict,
                                   const struct string *key);

/* All items of what can be walked, as a list that may be the value's own: do not change it. A
 * generator is at its end afterwards. */
MUST_CHECK enum status jinja_walk(struct render *r, struct value value, struct list **ret);
bool jinja_can_walk(struct value value);
/* A new list with all items. */
MUST_CHECK enum status jinja_walk_copy(struct render *r, struct value value, struct list **ret);
MUST_CHECK enum status jinja_length(struct render *r, struct value value, int64_t *ret);

/* ---- Comparing (compare.c) ------------------------------------------------------------------- */

MUST_CHECK enum status jinja_equal(struct render *r, struct value a, struct value b, bool *ret);
/* True if a < b. */
MUST_CHECK enum status jinja_less(struct render *r, struct value a, struct value b, bool *ret);
MUST_CHECK enum status jinja_contains(struct render *r, struct value item, struct value in,
                                      bool *ret);
MUST_CHECK enum status jinja_compare(struct render *r, enum operator op, struct value a,
                                     struct value b, bool *ret);
/* Without regard to case where both are strings and not case_sensitive. */
MUST_CHECK enum status jinja_fold(struct render *r, struct value value, bool case_sensitive,
                                  struct value *ret);
MUST_CHECK enum status jinja_hash(struct render *r, struct value value, uint64_t *ret);

/* ---- Evaluating ------------------------------------------------------------------------------ */

MUST_CHECK enum status jinja_evaluate(struct render *r, const struct node *node, struct value *ret);
MUST_CHECK enum status jinja_run(struct render *r, const struct node *node);
MUST_CHECK enum status jinja_assign(struct render *r, const struct node *target,
                                    struct value value);
MUST_CHECK enum status jinja_binary(struct render *r, enum operator op, struct value a,
                                    struct value b, struct value *ret);
MUST_CHECK enum status jinja_unary(struct render *r, enum operator op, struct value value,
                                   struct value *ret);
/* "a %s b" % value (a tuple: several). */
MUST_CHECK enum status jinja_percent(struct render *r, struct value format, struct value values,
                                     struct value *ret);

/* x.name and x[index]. */
MUST_CHECK enum status jinja_attribute(struct render *r, struct value object,
                                       const struct string *name, struct value *ret);
MUST_CHECK enum status jinja_item(struct render *r, struct value object, struct value index,
                                  struct value *ret);
MUST_CHECK enum status jinja_slice(struct render *r, struct value object, struct value start,
                                   struct value stop, struct value step, struct value *ret);
/* "a.b.0" as filters take it; default_value replaces what is undefined unless it is absent. */
MUST_CHECK enum status jinja_path(struct render *r, struct value object, struct value path,
                                  struct value default_value, struct value *ret);

/* Calls whatever can be called. */
MUST_CHECK enum status jinja_call(struct render *r, struct value callee, struct call *call,
                                  struct value *ret);
MUST_CHECK enum status jinja_call_builtin(struct render *r, const struct builtin *row,
                                          struct call *call, struct value *ret);
MUST_CHECK enum status jinja_call_node(struct render *r, const struct node *node,
                                       struct value extra_caller, struct value *ret);
/* Evaluates a chain of filters whose innermost subject is given. */
MUST_CHECK enum status jinja_filter_node(struct render *r, const struct node *node,
                                         struct value subject, struct value *ret);
MUST_CHECK enum status jinja_test_node(struct render *r, const struct node *node,
                                       struct value *ret);

/* Loops and macros. */
MUST_CHECK enum status jinja_run_for(struct render *r, const struct node *node);
MUST_CHECK enum status jinja_loop_attribute(struct render *r, struct loop *loop,
                                            const struct string *name, struct value *ret);
MUST_CHECK enum status jinja_loop_call(struct render *r, struct loop *loop, const struct call *call,
                                       struct value *ret);
MUST_CHECK enum status jinja_macro_create(struct render *r, const struct node *node,
                                          struct value *ret);
MUST_CHECK enum status jinja_macro_attribute(struct render *r, const struct macro *macro,
                                             const struct string *name, struct value *ret);
MUST_CHECK enum status jinja_macro_call(struct render *r, const struct macro *macro,
                                        const struct call *call, struct value *ret);
MUST_CHECK enum status jinja_scope_begin(struct render *r, struct scope **ret);
void jinja_scope_end(struct render *r);
MUST_CHECK enum status jinja_name_set(struct render *r, uint32_t name, struct value value);
MUST_CHECK enum status jinja_name_get(struct render *r, uint32_t name, struct value *ret);

/* ---- JSON ------------------------------------------------------------------------------------ */

MUST_CHECK enum status jinja_from_json(struct render *r, const json_t *json, struct value *ret);
MUST_CHECK enum status jinja_from_json_text(struct render *r, struct text_view text,
                                            struct value *ret);
struct json_style {
    bool ensure_ascii, sort_keys;
    struct text_view indent; /* bytes NULL: one line */
    struct text_view item_separator, key_separator;
};
MUST_CHECK enum status jinja_json(struct render *r, struct value value,
                                  const struct json_style *style);

/* Appends the text converted. */
MUST_CHECK enum status jinja_convert_case(struct render *r, struct text_view text, int how);

#endif
