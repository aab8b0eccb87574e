/* builtin.h - what the files with functions, filters, tests and methods share. */
#ifndef GRETA_TEMPLATE_BUILTIN_H
#define GRETA_TEMPLATE_BUILTIN_H

#include "template/render.h"

/* The rows of each file. */
extern const struct builtin_table jinja_text_filters, jinja_list_filters, jinja_pick_filters,
    jinja_number_filters;
extern const struct builtin_table jinja_text_methods, jinja_search_methods,
    jinja_text_class_methods, jinja_dict_methods, jinja_list_methods, jinja_tuple_methods,
    jinja_cycler_methods;

static inline bool is_given(struct value value)
{
    return value.kind != VALUE_ABSENT;
}

/* An argument that must be an integer, or the fallback if it was not given (or none). */
MUST_CHECK enum status jinja_integer_argument(struct render *r, struct value value,
                                              int64_t fallback, int64_t *ret);
/* An argument that must be a string. */
MUST_CHECK enum status jinja_text_argument(struct render *r, struct value value, struct value *ret);

MUST_CHECK enum status jinja_wordwrap(struct render *r, const struct call *call, struct value *ret);
/* str.format and the format filter. */
MUST_CHECK enum status jinja_format(struct render *r, const struct call *call, struct value *ret);
MUST_CHECK enum status jinja_format_filter(struct render *r, const struct call *call,
                                           struct value *ret);
/* How % and format write numbers. */
struct number_style {
    char type;  /* d f e g x o b c s %, or 0 */
    char align; /* < > = ^, or 0 */
    char sign;  /* + space, or 0 */
    bool alternate, zero, commas;
    int64_t width, precision; /* precision -1: none */
    uint32_t fill;
};
MUST_CHECK enum status jinja_add_number(struct render *r, struct value value,
                                        const struct number_style *style);
MUST_CHECK enum status jinja_add_padded(struct render *r, struct text_view text,
                                        const struct number_style *style);

#endif
