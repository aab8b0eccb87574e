/* compare_host.c - see compare_host.h. A worker runs the model once on the device, op by op, and
 * each op once more on the host; its lines are the report. */
#include "campaign/compare_host.h"

#include "campaign/inject_stage.h"

#include <stdlib.h>
#include <string.h>

/* Tokens after the prompt: enough that the kernels of a single token have their turn. */
#define TOKEN_LIMIT 4u

enum status compare_host_check(const struct identity *identity, struct error *err)
{
    if (strcmp(identity->device.kind, "host") != 0)
        return STATUS_OK;
    return error_set(err, STATUS_REFUSED,
                     "--compare host: expected a GPU to compare with the host, found the host "
                     "itself (%s); name one with --device (greta devices lists them)",
                     identity->device.name);
}

static const char *text_of(const json_t *line, const char *key)
{
    const char *text = json_string_value(json_object_get(line, key));
    return text ? text : "";
}

static uint64_t number(const json_t *line, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(line, key));
}

static double real(const json_t *line, const char *key)
{
    return json_number_value(json_object_get(line, key));
}

static struct report_compare_row row_of(const json_t *line)
{
    return (struct report_compare_row){
        .op = text_of(line, "op"),
        .type = text_of(line, "type"),
        .operand = text_of(line, "operand"),
        .packed_by = text_of(line, "packed_by"),
        .tensor = text_of(line, "tensor"),
        .file = text_of(line, "file"),
        .line = (uint32_t)number(line, "line"),
        .layer = (int32_t)json_integer_value(json_object_get(line, "layer")),
        .step = (int32_t)json_integer_value(json_object_get(line, "step")),
        .launches = number(line, "launches"),
        .outside = number(line, "outside"),
        .tolerance = real(line, "tolerance"),
        .error = real(line, "error"),
        .row = number(line, "row"),
        .column = number(line, "column"),
        .device_value = real(line, "device"),
        .host_value = real(line, "host"),
    };
}

static void take_lines(struct compare_host *compare)
{
    struct report_compare *report = &compare->report;
    for (size_t i = 0; i < json_array_size(compare->lines); i++) {
        const json_t *line = json_array_get(compare->lines, i);
        const char *kind = text_of(line, "kind");
        if (strcmp(kind, "compare") == 0 && report->row_count < COMPARE_ROW_LIMIT) {
            compare->rows[report->row_count++] = row_of(line);
        } else if (strcmp(kind, "compare-first") == 0) {
            compare->first = row_of(line);
            report->first = &compare->first;
        } else if (strcmp(kind, "compared") == 0) {
            report->launches = number(line, "launches");
            report->not_compared = number(line, "not_compared");
        }
    }
    report->rows = compare->rows;
}

static struct job compare_job(const struct campaign_options *options,
                              const struct audit_model *model)
{
    struct job job = audit_job(options, model, "compare-host");
    job.work = JOB_COMPARE;
    job.level = AUDIT_OFF;
    job.iterations = 1;
    job.inject = options->inject;
    if (!job.token_limit || job.token_limit > TOKEN_LIMIT)
        job.token_limit = TOKEN_LIMIT;
    return job;
}

static enum status check_inject(const struct campaign_options *options,
                                const struct audit_model *model, struct error *err)
{
    struct job job = compare_job(options, model);
    struct campaign_extent extent = { .step_limit = inject_stage_steps(&job) };
    return options->inject ? inject_stage_check(options->inject, model->path, &extent, err)
                           : STATUS_OK;
}

enum status compare_host_run(const struct campaign_options *options,
                             const struct child_setup *setup, const struct audit_model *model,
                             struct compare_host *compare, struct error *err)
{
    const struct child_step step = { &options->watcher, "compare", 0, 1 };
    struct job job = compare_job(options, model);
    struct child_outcome outcome;
    char ending[CHILD_ENDING_BYTES];
    TRY(child_run_again(setup, &job, &step, &outcome, err));
    child_ending_words(&outcome, ending);
    compare->lines = json_incref(outcome.compares);
    take_lines(compare);
    const char *reason = outcome.failed[0]  ? outcome.failed
                         : outcome.error[0] ? outcome.error
                         : !outcome.ended   ? ending
                                            : "";
    snprintf(compare->error, sizeof(compare->error), "%s", reason);
    compare->report.error = compare->error[0] ? compare->error : NULL;
    compare->report.planting = (struct report_planting){ options->inject, outcome.planted.reported,
                                                         outcome.planted.planted };
    /* What goes wrong in a run that was set up is a result. */
    bool ran = outcome.ready && !child_was_ended_from_outside(&outcome);
    child_outcome_release(&outcome);
    bool empty = !compare->error[0] && !compare->report.launches;
    if (!compare->report.first && (!ran || empty))
        return error_set(err, STATUS_IO, "the comparison with the host could not be made: %s",
                         compare->error[0] ? compare->error : "no op was compared");
    return STATUS_OK;
}

void compare_host_release(struct compare_host *compare)
{
    json_decref(compare->lines);
    *compare = (struct compare_host){ 0 };
}

enum status campaign_compare(const struct campaign_options *options, bool json, struct text *text,
                             bool *ret_passed, bool *ret_decided, struct error *err)
{
    struct compare_host *compare = calloc(1, sizeof(*compare));
    struct identity identity;
    struct audit_model model = { 0 };
    char folder[FILES_PATH_BYTES] = "";
    if (!compare)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a table");
    enum status status = identity_find(options, &identity, err);
    if (!status)
        status = compare_host_check(&identity, err);
    if (!status)
        status = audit_model_open(options, &model, err);
    if (!status)
        status = check_inject(options, &model, err);
    if (!status)
        status = temporary_open(options, folder, err);
    if (!status) {
        struct child_setup setup = { options->program, options->environment, folder, false };
        status = compare_host_run(options, &setup, &model, compare, err);
    }
    if (!status) {
        compare->report.device = identity.device.name;
        *ret_passed = !compare->report.first && !compare->report.error;
        *ret_decided = !report_compare_is_untested(&compare->report);
        if (json)
            report_compare_json(&compare->report, text);
        else
            report_compare_table(&compare->report, options->language, text);
    }
    if (folder[0])
        temporary_close(folder);
    audit_model_close(&model);
    compare_host_release(compare);
    free(compare);
    return status;
}
