/* transfers.c - see transfers.h. */
#include "campaign/transfers.h"

#include "base/emit.h"
#include "ops/ops.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Copies of a path when only its speed is wanted. */
#define TIMING_COPIES 12u

static struct report_transfer *find_path(struct transfers_report *report, const char *name)
{
    for (size_t i = 0; i < report->count; i++)
        if (strcmp(report->names[i], name) == 0)
            return &report->paths[i];
    if (report->count == TRANSFERS_PATH_LIMIT)
        return NULL;
    size_t place = report->count++;
    snprintf(report->names[place], sizeof(report->names[place]), "%s", name);
    report->paths[place] = (struct report_transfer){ .path = report->names[place] };
    return &report->paths[place];
}

static uint64_t number(const json_t *line, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(line, key));
}

/* Lines of one child. One that is not counted only gives the speed of a path that others check. */
static void take_lines(struct transfers_report *report, const json_t *lines)
{
    for (size_t i = 0; i < json_array_size(lines); i++) {
        const json_t *line = json_array_get(lines, i);
        const char *name = json_string_value(json_object_get(line, "path"));
        const char *note = json_string_value(json_object_get(line, "note"));
        struct report_transfer *path = name ? find_path(report, name) : NULL;
        double ms = json_number_value(json_object_get(line, "ms"));
        if (!path)
            continue;
        if (json_is_true(json_object_get(line, "timed")) && ms > 0)
            path->gigabytes_per_second = (double)number(line, "bytes") / (ms * 1e6);
        if (json_is_false(json_object_get(line, "counted")))
            continue;
        path->copies += number(line, "copies");
        path->bytes += number(line, "bytes");
        path->mismatches += number(line, "mismatches");
        report->copies += number(line, "copies");
        report->mismatches += number(line, "mismatches");
        if (note && note[0]) {
            char *kept = report->notes[path - report->paths];
            snprintf(kept, sizeof(report->notes[0]), "%s", note);
            path->note = kept;
        }
    }
}

static enum status run_child(const struct campaign_options *options,
                             const struct child_setup *setup, struct job *job,
                             struct transfers_report *report, struct error *err)
{
    const struct child_step step = { &options->watcher, "transfers", report->runs_done++,
                                     report->runs_total };
    struct analyze_options analyze = { .level = job->level, .operand_name = ops_operand_name };
    struct child_outcome outcome;
    char flight[FILES_PATH_BYTES], ending[CHILD_ENDING_BYTES];
    TRY(child_path(setup->folder, job->label, "flight", flight, err));
    job->flight = job->level == AUDIT_OFF ? NULL : flight;
    TRY(child_run_again(setup, job, &step, &outcome, err));
    take_lines(report, outcome.transfers);
    report->planting.reported = report->planting.reported || outcome.planted.reported;
    report->planting.fired = report->planting.fired || outcome.planted.planted;
    child_ending_words(&outcome, ending);
    const char *error = outcome.failed[0] ? outcome.failed : outcome.error;
    if (!outcome.ended || outcome.failed[0] || outcome.errors) {
        report->failed = true;
        if (!report->error[0] && error[0])
            snprintf(report->error, sizeof(report->error), "%.500s", error);
        else if (!report->error[0])
            snprintf(report->error, sizeof(report->error), "%.60s: %s", job->label, ending);
    }
    struct analyzer *analyzer;
    struct error second;
    if (job->flight && report->analyzer_count < TRANSFERS_CHILD_LIMIT) {
        if (analyze_flight(flight, &analyze, &analyzer, &second)) {
            report->failed = true;
            snprintf(report->error, sizeof(report->error), "%.500s", second.text);
        } else {
            report->analyzers[report->analyzer_count++] = analyzer;
        }
    }
    unlink(flight);
    child_outcome_release(&outcome);
    return STATUS_OK;
}

/* Staging memory of one kind, copies ordered in one way. */
static enum status run_combination(const struct campaign_options *options,
                                   const struct child_setup *setup, const struct audit_model *model,
                                   uint32_t copies, bool pageable, enum device_d2h_mode mode,
                                   bool timed, struct transfers_report *report, struct error *err)
{
    char label[64];
    snprintf(label, sizeof(label), "transfers-%s-%s", pageable ? "pageable" : "pinned",
             device_d2h_mode_name(mode));
    struct job job = audit_job(options, model, label);
    job.work = JOB_TRANSFERS;
    job.level = timed ? AUDIT_OFF : AUDIT_VERIFY;
    job.copies = timed ? TIMING_COPIES : copies;
    job.iterations = timed ? 3 : 6;
    job.pageable = pageable;
    job.d2h_mode = mode;
    job.inject = report->planting.fault;
    return run_child(options, setup, &job, report, err);
}

/* Speeds by size, up to the link's. */
static enum status run_large(const struct campaign_options *options,
                             const struct child_setup *setup, const struct audit_model *model,
                             bool pageable, struct transfers_report *report, struct error *err)
{
    struct job job = audit_job(options, model,
                               pageable ? "transfers-large-pageable" : "transfers-large-pinned");
    job.work = JOB_TRANSFERS;
    job.level = AUDIT_OFF;
    job.copies = TIMING_COPIES;
    job.pageable = pageable;
    job.large_copies = true;
    return run_child(options, setup, &job, report, err);
}

static enum status check_weights(const struct campaign_options *options,
                                 const struct child_setup *setup, const struct audit_model *model,
                                 struct transfers_report *report, struct error *err)
{
    struct job job = audit_job(options, model, "weights");
    job.work = JOB_INFER;
    job.level = AUDIT_VERIFY;
    job.check_weights = true;
    return run_child(options, setup, &job, report, err);
}

enum status transfers_run(const struct campaign_options *options, const struct child_setup *setup,
                          const struct audit_model *model, uint32_t copies, bool quick,
                          struct transfers_report *report, struct error *err)
{
    static const enum device_d2h_mode modes[] = { DEVICE_D2H_TICKET, DEVICE_D2H_SYNC,
                                                  DEVICE_D2H_EVENT };
    size_t mode_count = quick ? 2 : COUNT_OF(modes);
    report->planting.fault = quick ? NULL : options->inject; /* an audit plants in its rows */
    report->runs_total = 2 * mode_count * (quick ? 1 : 2) + (quick ? 0 : 3);
    for (int pageable = 0; pageable < 2; pageable++) {
        for (size_t m = 0; m < mode_count; m++) {
            for (int timed = 0; timed < (quick ? 1 : 2); timed++) {
                TRY(run_combination(options, setup, model, copies, pageable, modes[m], timed,
                                    report, err));
            }
        }
    }
    for (int pageable = 0; pageable < 2 && !quick; pageable++)
        TRY(run_large(options, setup, model, pageable, report, err));
    return quick ? STATUS_OK : check_weights(options, setup, model, report, err);
}

void transfers_release(struct transfers_report *report)
{
    for (size_t i = 0; i < report->analyzer_count; i++)
        analyzer_destroy(report->analyzers[i]);
    report->analyzer_count = 0;
}
