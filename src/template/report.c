/* report.c - see report.h. */
#include "template/report.h"

static const char *const problem_names[] = {
    [TEMPLATE_PROBLEM_NONE] = "none",
    [TEMPLATE_PROBLEM_SYNTAX] = "syntax",
    [TEMPLATE_PROBLEM_RAISED] = "raised",
    [TEMPLATE_PROBLEM_UNDEFINED] = "undefined",
    [TEMPLATE_PROBLEM_TYPE] = "type",
    [TEMPLATE_PROBLEM_VALUE] = "value",
    [TEMPLATE_PROBLEM_ARITHMETIC] = "arithmetic",
    [TEMPLATE_PROBLEM_SECURITY] = "security",
    [TEMPLATE_PROBLEM_RUNTIME] = "runtime",
    [TEMPLATE_PROBLEM_LIMIT] = "limit",
};
_Static_assert(COUNT_OF(problem_names) == TEMPLATE_PROBLEM_COUNT, "every problem has a name");

const char *template_problem_name(enum template_problem problem)
{
    return (unsigned)problem < TEMPLATE_PROBLEM_COUNT ? problem_names[problem] : "unknown";
}

void template_failure_init(struct template_failure *failure)
{
    *failure = (struct template_failure){ 0 };
    text_init(&failure->message);
}

void template_failure_release(struct template_failure *failure)
{
    text_release(&failure->message);
    *failure = (struct template_failure){ 0 };
}

void jinja_report_init(struct report *report)
{
    *report = (struct report){ .at = UINT32_MAX };
    template_failure_init(&report->failure);
}

static enum status status_of(enum template_problem problem)
{
    switch (problem) {
    case TEMPLATE_PROBLEM_RAISED:
        return STATUS_REFUSED;
    case TEMPLATE_PROBLEM_LIMIT:
        return STATUS_LIMIT;
    default:
        return STATUS_BAD_FILE;
    }
}

enum status jinja_report_va(struct report *report, enum template_problem problem, uint32_t at,
                            const char *format, va_list arguments)
{
    if (report->status)
        return report->status;
    report->status = status_of(problem);
    report->failure.problem = problem;
    report->at = at;
    text_addf_va(&report->failure.message, format, arguments);
    return report->status;
}

enum status jinja_report(struct report *report, enum template_problem problem, uint32_t at,
                         const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    enum status status = jinja_report_va(report, problem, at, format, arguments);
    va_end(arguments);
    return status;
}

enum status jinja_report_raised(struct report *report, struct text_view message)
{
    if (report->status)
        return report->status;
    report->status = STATUS_REFUSED;
    report->failure.problem = TEMPLATE_PROBLEM_RAISED;
    text_add_bytes(&report->failure.message, message.bytes, message.length);
    return report->status;
}

enum status jinja_report_memory(struct report *report)
{
    if (!report->status) {
        report->status = STATUS_NO_MEMORY;
        report->failure.problem = TEMPLATE_PROBLEM_LIMIT;
        text_add(&report->failure.message, "no memory for the template");
    }
    return report->status;
}

static void find_place(struct template_failure *failure, const struct text *source, uint32_t at)
{
    failure->line = failure->column = 1;
    for (uint32_t i = 0; i < at && i < source->length; i++) {
        unsigned char byte = (unsigned char)source->bytes[i];
        if (byte == '\n') {
            failure->line++;
            failure->column = 1;
        } else if ((byte & 0xC0) != 0x80) {
            failure->column++;
        }
    }
}

enum status jinja_report_finish(struct report *report, const struct text *source,
                                struct template_failure *failure, struct error *err)
{
    enum status status = report->status;
    struct template_failure *own = &report->failure;
    if (report->at != UINT32_MAX)
        find_place(own, source, report->at);
    char shown[ERROR_TEXT_BYTES];
    text_printable((struct text_view){ text_get(&own->message), own->message.length }, shown,
                   sizeof(shown));
    if (own->problem == TEMPLATE_PROBLEM_RAISED || own->line == 0)
        (void)error_set(err, status, "%s", shown);
    else
        (void)error_set(err, status, "template: line %u, column %u: %s", own->line, own->column,
                        shown);
    if (failure) {
        template_failure_release(failure);
        *failure = *own;
    } else {
        template_failure_release(own);
    }
    return status;
}
