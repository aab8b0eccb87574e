/* template_rows.h - tests of templates as tables: a template, its variables, what it gives. */
#ifndef GRETA_TESTS_TEMPLATE_ROWS_H
#define GRETA_TESTS_TEMPLATE_ROWS_H

#include "test.h"

#include "template/template.h"

#include <string.h>

struct template_row {
    const char *template;
    const char *variables; /* JSON; NULL: none */
    const char *expected;
};

struct rendered {
    struct text out;
    struct template_failure failure;
    enum status status;
    struct error err;
};

static inline struct rendered render_limited(const char *source, size_t length,
                                             const char *variables, struct template_limits limits)
{
    struct rendered rendered = { .status = STATUS_OK };
    struct template *template = NULL;
    json_error_t error;
    json_t *json = json_loads(variables ? variables : "{}", JSON_ALLOW_NUL, &error);
    if (!json)
        fail_msg("the variables of '%s': %s", source, error.text);
    text_init(&rendered.out);
    template_failure_init(&rendered.failure);
    rendered.status = template_parse((struct text_view){ source, length }, &template,
                                     &rendered.failure, &rendered.err);
    if (!rendered.status) {
        struct template_input input = {
            .variables = json,
            .now = { .tm_year = 126, .tm_mon = 1, .tm_mday = 3, .tm_wday = 2, .tm_hour = 4 },
            .limits = limits,
        };
        rendered.status = template_render(template, &input, &rendered.out, &rendered.failure,
                                          &rendered.err);
    }
    template_destroy(template);
    json_decref(json);
    return rendered;
}

static inline struct rendered render_template(const char *source, const char *variables)
{
    return render_limited(source, strlen(source), variables, (struct template_limits){ 0 });
}

static inline void rendered_release(struct rendered *rendered)
{
    text_release(&rendered->out);
    template_failure_release(&rendered->failure);
}

static inline void check_rows(const struct template_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct rendered rendered = render_template(rows[i].template, rows[i].variables);
        if (rendered.status)
            fail_msg("%s: %s", rows[i].template, rendered.err.text);
        if (rendered.out.length != strlen(rows[i].expected) ||
            strcmp(text_get(&rendered.out), rows[i].expected) != 0)
            fail_msg("%s: expected '%s', found '%s'", rows[i].template, rows[i].expected,
                     text_get(&rendered.out));
        rendered_release(&rendered);
    }
}

#endif
