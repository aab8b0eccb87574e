/* template.h - sentences with places to fill in: "read index {index} (bound {bound})".
 *
 * {name|row|rows} is a word that depends on whether {name} is 1. What stands in [brackets] is left
 * out where a name in it is not known; brackets do not nest. */
#ifndef GRETA_REPORT_TEMPLATE_H
#define GRETA_REPORT_TEMPLATE_H

#include "base/text.h"

/* Adds what the name stands for; false, and nothing added, where it is not known. */
typedef bool (*template_filler)(const void *context, struct text_view name, struct text *text);

void template_fill(struct text *text, const char *words, template_filler fill, const void *context);

/* What stands at a place of a template; length 0: no place to fill in. */
struct template_part {
    size_t length;              /* with its braces */
    struct text_view name;      /* "index" */
    struct text_view one, many; /* of {name|row|rows}; else bytes NULL */
};
struct template_part template_part(const char *at);

#endif
