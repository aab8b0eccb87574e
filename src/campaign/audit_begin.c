/* audit_begin.c - what an audit needs before its first run: options checked, binary and device
 * identified, folder and locks taken; for one that is resumed, the rows finished before. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "campaign/audit.h"

#include "base/size.h"
#include "campaign/inject_stage.h"

#include "campaign/worker.h"
#include "engine/engine.h"
#include "gguf/gguf.h"
#include "inject/inject.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- Where and when ------------------------------------------------------------------------- */

/* The id is the time of the beginning, to the 65536th of a second: ids are in the order of audits.
 * If two begin at the same moment, one takes the next moment. */
static enum status make_folder(struct audit *audit, struct error *err)
{
    struct timespec now;
    struct tm utc;
    char day[16], folder[FILES_PATH_BYTES], run[FILES_PATH_BYTES];
    if (clock_gettime(CLOCK_REALTIME, &now) != 0 || !gmtime_r(&now.tv_sec, &utc))
        return error_set(err, STATUS_IO, "cannot tell the time");
    strftime(audit->date, sizeof(audit->date), "%Y-%m-%dT%H:%M:%SZ", &utc);
    strftime(day, sizeof(day), "%Y-%m-%d", &utc);
    size_t length = strftime(audit->id, sizeof(audit->id), "%Y%m%d-%H%M%S", &utc);
    TRY(files_join(folder, err, audit->options.artifacts, "%s", day));
    TRY(files_make_folder(folder, err));
    uint32_t moment = (uint32_t)((uint64_t)now.tv_nsec * 65536 / 1000000000);
    do {
        snprintf(audit->id + length, sizeof(audit->id) - length, "-%04x", moment % 65536);
        TRY(files_join(audit->folder, err, folder, "%s", audit->id));
    } while (mkdir(audit->folder, 0700) != 0 && errno == EEXIST && ++moment < 2 * 65536);
    TRY(files_join(run, err, audit->folder, "run"));
    return files_make_folder(run, err);
}

/* Variables that change what a runtime or greta does. */
static bool matters(const char *variable)
{
    static const char *const prefixes[] = { "GRETA_", "GCORE_", "HIP_",  "HSA_",   "AMD_",
                                            "ROCR_",  "ROCM_",  "CUDA_", "NVIDIA_" };
    for (size_t i = 0; i < COUNT_OF(prefixes); i++)
        if (strncmp(variable, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

static enum status set_environment(struct audit *audit, struct error *err)
{
    size_t count = 0;
    if (audit->options.locked)
        audit->environment = lock_environment_join(audit->options.environment);
    const char *const *all = audit->options.locked ? audit->environment
                                                   : audit->options.environment;
    while (all && all[count])
        count++;
    audit->recorded = calloc(count + 1, sizeof(*audit->recorded));
    if (!all || !audit->recorded)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the environment");
    for (size_t i = 0; i < count; i++)
        if (matters(all[i]))
            audit->recorded[audit->recorded_count++] = all[i];
    audit->setup = (struct child_setup){ audit->options.program, all, audit->folder, true };
    return STATUS_OK;
}

/* ---- Beginning ------------------------------------------------------------------------------ */

/* Evidence of two binaries or devices must not be mixed. */
static enum status check_same(const struct audit *audit, struct error *err)
{
    const char *key = json_string_value(json_object_get(audit->state, "device_key"));
    if (key && strcmp(key, audit->identity.key) == 0)
        return STATUS_OK;
    return error_set(err, STATUS_REFUSED,
                     "--resume: expected the binary and the device the audit was begun with, found "
                     "others; begin a new audit");
}

/* Rows that were finished before. */
static enum status load_rows(struct audit *audit, struct error *err)
{
    const json_t *finished = json_object_get(audit->state, "finished");
    for (size_t i = 0; i < json_array_size(finished); i++) {
        const json_t *one = json_array_get(finished, i);
        const char *label = json_string_value(json_object_get(one, "label"));
        for (size_t r = 0; label && r < audit->matrix.count; r++) {
            struct audit_row *row = &audit->rows[r];
            if (row->finished || strcmp(row->settings.label, label) != 0)
                continue;
            row->outcome.exit_code = (int)json_integer_value(json_object_get(one, "exit_code"));
            row->outcome.signal = (int)json_integer_value(json_object_get(one, "signal"));
            row->outcome.hung = json_is_true(json_object_get(one, "hung"));
            row->outcome.out_of_memory = json_is_true(json_object_get(one, "out_of_memory"));
            row->outcome.stopped_by = (int)json_integer_value(json_object_get(one, "stopped_by"));
            row->outcome.still_ns = (uint64_t)json_integer_value(json_object_get(one, "still_ns"));
            TRY(audit_load_row(audit, row, err));
        }
    }
    return STATUS_OK;
}

void audit_note(const struct audit *audit, enum word word, const char *what)
{
    const struct campaign_watcher *watcher = &audit->options.watcher;
    struct text line;
    if (!watcher->note)
        return;
    text_init(&line);
    words_add(&line, audit->options.language, word, what, NULL);
    watcher->note(watcher->context, text_get(&line));
    text_release(&line);
}

/* The audit to compare with, where it really is: `last` points elsewhere when this one is finished
 * or resumed. None yet is a first run; one that is damaged is an error. */
static enum status open_baseline(struct audit *audit, struct error *err)
{
    const char *named = audit->options.baseline;
    struct stat info;
    if (!named)
        return STATUS_OK;
    if (lstat(named, &info) != 0 && errno == ENOENT) {
        audit_note(audit, WORD_NOTE_FIRST_AUDIT, named);
        audit->options.baseline = NULL;
        return STATUS_OK;
    }
    audit->baseline = realpath(named, NULL);
    if (!audit->baseline)
        return error_set_os(err, errno,
                            "%s: cannot find the audit to compare with; name another, or remove a "
                            "link that points nowhere",
                            named);
    audit->options.baseline = audit->baseline;
    return comparison_open(&audit->comparison, audit->baseline, err);
}

/* Findings and timings of something else say little: the reader must know. */
static void check_baseline(const struct audit *audit)
{
    const char *other = audit->comparison.open ? audit->comparison.summary.workload_sha256 : NULL;
    if (other && strcmp(other, audit->workload) != 0)
        audit_note(audit, WORD_NOTE_OTHER_WORKLOAD, audit->comparison.summary.id);
}

/* Earlier audits in the folder that this one is in. A resumed audit knows only that folder. */
static void open_history(struct audit *audit)
{
    char artifacts[FILES_PATH_BYTES];
    struct error unused;
    if (!files_join(artifacts, &unused, audit->folder, "../.."))
        history_open(&audit->history, artifacts, audit->id, audit->workload);
}

static struct campaign_extent extent_of(const struct audit *audit)
{
    struct campaign_extent extent = { .streams = true, .step_limit = work_streams_step_count };
    for (size_t i = 0; i < audit->matrix.count; i++) {
        struct job job = audit_row_job(audit, &audit->matrix.rows[i]);
        uint64_t steps = inject_stage_steps(&job);
        uint64_t runs = 2 * (uint64_t)job.iterations; /* with a round of streams after each */
        extent.step_limit = max_u64(steps, extent.step_limit);
        extent.run_count = max_u64(runs, extent.run_count);
    }
    return extent;
}

/* Rows that are not bare, and the comparison with the host, are what a fault is planted in. */
static enum status check_inject(const struct audit *audit, struct error *err)
{
    struct campaign_extent extent = extent_of(audit);
    bool planted = audit->options.compare_host;
    for (size_t i = 0; i < audit->matrix.count; i++)
        planted = planted || audit->matrix.rows[i].mode != REPORT_BARE;
    if (!planted)
        return error_set(err, STATUS_USAGE,
                         "--inject: expected a row that is not bare (--matrix A:audit:20), found "
                         "bare rows only, in which nothing is planted");
    return inject_stage_check(audit->options.inject, audit->model.path, &extent, err);
}

enum status audit_begin(struct audit *audit, struct error *err)
{
    if (audit->options.resume)
        TRY(audit_load_state(audit, audit->options.resume, err));
    struct inject_spec spec;
    if (audit->options.inject)
        TRY(inject_parse(audit->options.inject, &spec, err)); /* the cheap checks first */
    TRY(matrix_parse(audit->options.matrix, &audit->matrix, err));
    for (size_t i = 0; i < audit->matrix.count; i++)
        audit->rows[i].settings = audit->matrix.rows[i];
    TRY(open_baseline(audit, err));
    TRY(identity_find(&audit->options, &audit->identity, err));
    if (audit->options.compare_host)
        TRY(compare_host_check(&audit->identity, err));
    if (audit->options.locked)
        TRY(device_lock_take(&audit->lock, audit->options.runtime_folder, &audit->identity, err));
    TRY(audit_model_open(&audit->options, &audit->model, err));
    if (audit->options.inject)
        TRY(check_inject(audit, err));
    if (audit->state)
        TRY(check_same(audit, err));
    else
        TRY(make_folder(audit, err));
    TRY(folder_lock_take(&audit->folder_lock, audit->folder, err));
    TRY(set_environment(audit, err));
    if (audit->state)
        TRY(load_rows(audit, err));
    TRY(audit_save_state(audit, false, err));
    TRY(audit_workload_key(&audit->options, &audit->model, &audit->identity, audit->workload, err));
    check_baseline(audit);
    open_history(audit);
    return STATUS_OK;
}
