/* guard.c - the guard rail: finds every reason why a file cannot run before the first byte goes to
 * a device. */
#include "model/model_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void model_problem_add(struct model_report *report, enum model_problem_kind kind,
                       const char *format, ...)
{
    if (report->problem_count == MODEL_PROBLEM_LIMIT) {
        report->unkept_count++;
        return;
    }
    struct model_problem *problem = &report->problems[report->problem_count++];
    problem->kind = kind;
    va_list arguments;
    va_start(arguments, format);
    int wanted = vsnprintf(problem->text, sizeof(problem->text), format, arguments);
    va_end(arguments);
    if (wanted >= 0 && (size_t)wanted >= sizeof(problem->text))
        memcpy(problem->text + sizeof(problem->text) - 4, "...", 4);
}

static void count_weights(const struct gguf_file *file, struct model_report *report)
{
    for (size_t i = 0; i < gguf_tensor_count(file); i++) {
        const struct gguf_tensor *tensor = gguf_tensor_at(file, i);
        uint64_t elements;
        /* Sizes fit the file, so their sums fit 64 bits. */
        if (shape_element_count(&tensor->shape, &elements) &&
            !text_view_is(tensor->name, "rope_freqs.weight"))
            report->parameter_count += elements;
        report->weight_bytes += tensor->bytes;
    }
}

void model_check(const struct gguf_file *file, const struct model_shape *expected,
                 struct model_report *ret_report)
{
    *ret_report = (struct model_report){ 0 };
    count_weights(file, ret_report);
    model_config_read(file, ret_report);
    if (!ret_report->config_known)
        return;
    if (expected)
        model_expectation_check(expected, ret_report);
    model_vocabulary_check(file, ret_report);
    model_tensors_check(file, ret_report);
}

bool model_report_refuses(const struct model_report *report, bool ignore_expectations)
{
    for (size_t i = 0; i < report->problem_count; i++)
        if (report->problems[i].kind == MODEL_PROBLEM_CANNOT_RUN || !ignore_expectations)
            return true;
    /* Problems beyond the limit may be of any kind, so the model cannot run. */
    return report->unkept_count > 0 || !report->config_known;
}
