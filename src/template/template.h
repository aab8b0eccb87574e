/* template.h - an interpreter for the Jinja that chat templates are written in.
 *
 * It behaves as Hugging Face transformers sets Jinja up: trim_blocks and lstrip_blocks, break and
 * continue, the generation tag, raise_exception, strftime_now, and a tojson that escapes no HTML
 * and keeps the order of keys. Lists and dictionaries may be changed, which transformers refuses,
 * because published templates do so.
 *
 * A template is hostile input, and so are the variables. Source, nesting, steps, memory and output
 * are limited; what passes a limit fails with STATUS_LIMIT. Nothing outside the variables can be
 * reached. A template is parsed once and may then be rendered by several threads at the same time.
 */
#ifndef GRETA_TEMPLATE_TEMPLATE_H
#define GRETA_TEMPLATE_TEMPLATE_H

#include "base/status.h"
#include "base/text.h"

#include <jansson.h>
#include <stdint.h>
#include <time.h>

struct template;

enum template_problem {
    TEMPLATE_PROBLEM_NONE,
    TEMPLATE_PROBLEM_SYNTAX,
    TEMPLATE_PROBLEM_RAISED, /* the template called raise_exception */
    TEMPLATE_PROBLEM_UNDEFINED,
    TEMPLATE_PROBLEM_TYPE,
    TEMPLATE_PROBLEM_VALUE,
    TEMPLATE_PROBLEM_ARITHMETIC,
    TEMPLATE_PROBLEM_SECURITY,
    TEMPLATE_PROBLEM_RUNTIME,
    TEMPLATE_PROBLEM_LIMIT,
    TEMPLATE_PROBLEM_COUNT
};

/* "syntax", "raised", ...: stable slugs. */
const char *template_problem_name(enum template_problem problem);

/* More than struct error holds: the message in Python's words and full length, without the place.
 * Initialise before use, release after. */
struct template_failure {
    enum template_problem problem;
    uint32_t line, column; /* from 1, in characters; 0: no place */
    struct text message;
};

void template_failure_init(struct template_failure *failure);
void template_failure_release(struct template_failure *failure);

/* The source is copied and must be UTF-8. failure may be NULL. Destroy with template_destroy. */
MUST_CHECK enum status template_parse(struct text_view source, struct template **ret,
                                      struct template_failure *failure, struct error *err);
void template_destroy(struct template *template); /* NULL is fine */

/* True if the template mentions the name as a variable, attribute or constant string: what is not
 * mentioned cannot matter to it. */
bool template_mentions(const struct template *template, const char *name);

/* 0 means the limit that suits honest templates: each leaves a factor of 100 to what those need. */
struct template_limits {
    uint64_t steps;
    uint64_t output_bytes; /* the rendering and every string on the way */
    uint64_t memory_bytes;
};

struct template_input {
    const json_t *variables; /* an object; borrowed for the call */
    struct tm now;           /* what strftime_now formats: local time, complete */
    struct template_limits limits;
};

/* Adds the rendering to *out, which the caller has initialised; *out is as it was after a failure.
 * STATUS_REFUSED: the template called raise_exception. */
MUST_CHECK enum status template_render(const struct template *template,
                                       const struct template_input *input, struct text *out,
                                       struct template_failure *failure, struct error *err);

#endif
