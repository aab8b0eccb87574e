/* report.h - how the files of this module say that something failed. */
#ifndef GRETA_TEMPLATE_REPORT_H
#define GRETA_TEMPLATE_REPORT_H

#include "template/template.h"

#include <stdarg.h>

struct report {
    struct template_failure failure;
    enum status status; /* STATUS_OK: nothing has failed */
    uint32_t at;        /* byte of the source; UINT32_MAX: not known yet */
};

void jinja_report_init(struct report *report);
/* Records the first failure; later ones change nothing. Returns its status. */
enum status jinja_report(struct report *report, enum template_problem problem, uint32_t at,
                         const char *format, ...) PRINTF_LIKE(4, 5);
enum status jinja_report_va(struct report *report, enum template_problem problem, uint32_t at,
                            const char *format, va_list arguments) PRINTF_LIKE(4, 0);
/* The message as bytes: what raise_exception is given. */
enum status jinja_report_raised(struct report *report, struct text_view message);
enum status jinja_report_memory(struct report *report);

/* Computes the place, fills err and hands over the failure if the caller wants it (not NULL);
 * releases it otherwise. */
enum status jinja_report_finish(struct report *report, const struct text *source,
                                struct template_failure *failure, struct error *err);

#endif
