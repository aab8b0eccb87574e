/* audit_state.c - FOLDER/state.json: what was asked for and which rows are finished, so that a
 * killed audit can be finished. The evidence itself is in run/. */
#include "campaign/audit.h"

#include <stdio.h>
#include <string.h>

static json_t *rows_json(const struct audit *audit)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < audit->matrix.count; i++) {
        const struct audit_row *row = &audit->rows[i];
        if (row->finished)
            json_array_append_new(
                rows, json_pack("{s:s, s:i, s:i, s:b, s:b, s:i, s:I}", "label", row->settings.label,
                                "exit_code", row->outcome.exit_code, "signal", row->outcome.signal,
                                "hung", row->outcome.hung, "out_of_memory",
                                row->outcome.out_of_memory, "stopped_by", row->outcome.stopped_by,
                                "still_ns", (json_int_t)row->outcome.still_ns));
    }
    return rows;
}

enum status audit_save_state(const struct audit *audit, bool complete, struct error *err)
{
    const struct campaign_options *options = &audit->options;
    char path[FILES_PATH_BYTES];
    TRY(files_join(path, err, audit->folder, "state.json"));
    struct job job = audit_job(options, &audit->model, "audit");
    job.results = "";
    job.model = options->model;
    job.inject = options->inject;
    json_t *document = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:o, s:s, s:s?, s:s?, s:s?, s:s, s:b, s:b, s:b, s:b, s:I, s:o, "
        "s:b}",
        "id", audit->id, "date", audit->date, "command", options->command, "binary_sha256",
        audit->identity.binary_sha256, "device_key", audit->identity.key, "workload",
        job_to_json(&job), "matrix", options->matrix, "expect_fault", options->expect_fault,
        "baseline", options->baseline, "author", options->author, "language",
        options->language == REPORT_SPANISH ? "es" : "en", "locked", options->locked, "ablate_d2h",
        options->ablate_d2h, "no_self_test", options->no_self_test, "no_interventions",
        options->no_interventions, "repeats", (json_int_t)options->repeats, "finished",
        rows_json(audit), "complete", complete);
    return files_write_json(path, document, err);
}

/* ---- Reading -------------------------------------------------------------------------------- */

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static bool flag_of(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

/* The workload of the state into the options. */
static void take_workload(struct campaign_options *options, const struct job *job)
{
    options->device = job->device;
    options->model = job->model;
    options->prompt = job->prompt;
    options->kv_type = job->kv_type;
    options->token_limit = job->token_limit;
    options->context = job->context;
    options->batch = job->batch;
    options->threads = job->threads;
    options->ignore_end = job->ignore_end;
    options->sampling = job->sampling;
    options->d2h_mode = job->d2h_mode;
    options->inject = job->inject;
    options->level = job->level;
    options->seed = job->seed;
    options->hang_limit_ns = job->hang_limit_ns;
}

static enum status take_state(struct audit *audit, const char *path, struct error *err)
{
    struct campaign_options *options = &audit->options;
    const char *id = text_of(audit->state, "id"), *date = text_of(audit->state, "date");
    const char *matrix = text_of(audit->state, "matrix"),
               *command = text_of(audit->state, "command");
    const char *language = text_of(audit->state, "language");
    json_t *workload = json_object_get(audit->state, "workload");
    if (!id || !date || !matrix || !command || !language || !json_is_object(workload) ||
        strlen(id) >= sizeof(audit->id) || strlen(date) >= sizeof(audit->date))
        return error_set(err, STATUS_BAD_FILE,
                         "%s: expected id, date, matrix, command, language and workload of an "
                         "audit, found something else",
                         path);
    TRY(job_from_json(workload, path, &audit->state_job, err));
    take_workload(options, &audit->state_job);
    snprintf(audit->id, sizeof(audit->id), "%s", id);
    snprintf(audit->date, sizeof(audit->date), "%s", date);
    options->matrix = matrix;
    options->command = command;
    options->expect_fault = text_of(audit->state, "expect_fault");
    options->baseline = text_of(audit->state, "baseline");
    options->author = text_of(audit->state, "author");
    options->language = strcmp(language, "es") == 0 ? REPORT_SPANISH : REPORT_ENGLISH;
    options->locked = flag_of(audit->state, "locked");
    options->ablate_d2h = flag_of(audit->state, "ablate_d2h");
    options->no_self_test = flag_of(audit->state, "no_self_test");
    options->no_interventions = flag_of(audit->state, "no_interventions");
    options->repeats = (uint32_t)json_integer_value(json_object_get(audit->state, "repeats"));
    return STATUS_OK;
}

enum status audit_load_state(struct audit *audit, const char *folder, struct error *err)
{
    char path[FILES_PATH_BYTES];
    int length = snprintf(audit->folder, sizeof(audit->folder), "%s", folder);
    if (length < 0 || (size_t)length >= sizeof(audit->folder))
        return error_set(err, STATUS_LIMIT, "--resume: expected a shorter path");
    TRY(files_join(path, err, folder, "state.json"));
    TRY(files_read_json(path, &audit->state, err));
    return take_state(audit, path, err);
}
