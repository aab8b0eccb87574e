/* worker.c - the child that runs a workload: opens the device as the level asks, records to the
 * flight file, follows it with live analysis, plants the fault that the job names, runs the
 * iterations and writes a line of JSON for each. Whatever happens to it, the auditor has the lines
 * and the flight file. */
#include "campaign/worker.h"

#include "base/clock.h"
#include "campaign/campaign.h"
#include "campaign/dump_facts.h"
#include "campaign/files.h"
#include "campaign/worker_lines.h"
#include "device/all/all.h"
#include "inject/inject.h"
#include "report/report.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* ---- Opening -------------------------------------------------------------------------------- */

/* What the worker holds next to the workloads. */
struct recording {
    struct flight *flight;
    struct analyze_live *live;
    struct inject *inject;
};

/* A run goes on if there can be no recording; the report says what is missing. */
static void open_flight(struct worker *worker, struct recording *recording)
{
    const struct job *job = worker->job;
    char command[FLIGHT_TEXT_BYTES];
    struct error err;
    snprintf(command, sizeof(command), "greta audit, row %s, --audit %s", job->label,
             audit_level_name(job->level));
    struct flight_options options = { .device = job->device, .command = command };
    if (job->level == AUDIT_OFF || !job->flight)
        return;
    if (flight_create(job->flight, &options, &recording->flight, &err))
        worker_tell(worker, json_pack("{s:s, s:s}", "kind", "missing", "text", err.text));
}

static enum status open_device(struct worker *worker, struct recording *recording,
                               struct error *err)
{
    const struct job *job = worker->job;
    struct device_options options = { .thread_count = job->threads,
                                      .gpu_image = ops_gpu_image(),
                                      .staging_slot_count = WORKER_SLOT_COUNT };
    campaign_level_options(job->level, &options);
    if (job->no_guards) {
        options.guards = options.poison = false;
        options.quarantine_bytes = 0;
    }
    if (job->search.on) {
        options.hash_ops = job->search.hash;
        options.scan_every = 1;
    }
    char coredump[FILES_PATH_BYTES];
    if (job->coredump && job->flight && job->level > AUDIT_OFF) {
        snprintf(coredump, sizeof(coredump), "%.4000s" DUMP_FACTS_SUFFIX, job->flight);
        options.coredump = coredump;
    }
    options.d2h_mode = job->d2h_mode;
    options.staging = job->pageable ? DEVICE_STAGING_PAGEABLE : DEVICE_STAGING_PINNED;
    options.serialise = job->serialise;
    if (job->large_copies) {
        options.staging_slot_bytes = WORK_TRANSFERS_SLOT_BYTES;
        options.staging_slot_count = 8;
    }
    open_flight(worker, recording);
    if (recording->flight) {
        event_fan_add(&worker->fan, flight_observer(recording->flight));
        event_fan_add(&worker->fan, (struct event_observer){ worker_count_event, &worker->counts });
        options.observer = event_fan_observer(&worker->fan);
        options.crumbs = flight_crumbs(recording->flight);
    }
    struct inject_spec spec;
    if (job->inject)
        TRY(inject_parse(job->inject, &spec, err));
    TRY(all_open(job->device, &options, &worker->device, err));
    if (job->inject)
        TRY(inject_install(worker->device, &spec, &recording->inject, err));
    /* From here on the device's methods stay as they are: another thread may call them. */
    if (recording->flight && worker->pulse) /* whose looks bring it up to date */
        crumb_set_late(flight_crumbs(recording->flight), false);
    pulse_set_device(worker->pulse, worker->device);
    TRY(ops_load(&worker->ops, worker->device, CPU_PATH_COUNT, err));
    const struct device_info *info = device_info(worker->device);
    worker_log(worker, "row %s, level %s, device %s (%s, %s), d2h %s, staging %s, seed %" PRIu64,
               job->label, audit_level_name(job->level), info->name, info->kind, info->driver,
               device_d2h_mode_name(job->d2h_mode), job->pageable ? "pageable" : "pinned",
               job->seed);
    if (job->inject)
        worker_log(worker, "a fault is planted: %s", job->inject);
    worker_tell(worker, json_pack("{s:s, s:I, s:s, s:s, s:s, s:I}", "kind", "start", "pid",
                                  (json_int_t)getpid(), "device_kind", info->kind, "device_name",
                                  info->name, "device_driver", info->driver, "device_memory",
                                  (json_int_t)info->memory_bytes));
    return STATUS_OK;
}

static enum status start_live(struct worker *worker, struct recording *recording, struct error *err)
{
    const struct job *job = worker->job;
    struct analyze_options options = { .level = job->level,
                                       .hang_limit_ns = job->hang_limit_ns,
                                       .operand_name = ops_operand_name };
    if (!recording->flight || job->no_live)
        return STATUS_OK;
    return analyze_live_start(recording->flight, job->flight, &options, &recording->live, err);
}

/* ---- Running -------------------------------------------------------------------------------- */

/* Runs the iterations; *ret_failed counts those that failed. Returns what keeps it from going on.
 */
static enum status run_iterations(struct worker *worker, uint32_t *ret_failed, struct error *err)
{
    const struct job *job = worker->job;
    struct work_infer *infer = NULL;
    struct work_streams *streams = NULL;
    enum status status = STATUS_OK;
    if (job->work & JOB_INFER)
        status = work_infer_open(worker, &infer, err);
    if (!status && job->work & JOB_STREAMS)
        status = work_streams_open(worker, &streams, err);
    if (!status && infer && job->check_weights)
        status = work_infer_check_weights(infer, err);
    if (!status)
        worker_ready(worker);
    uint32_t interval = infer && job->streams_interval ? job->streams_interval : 1;
    for (uint32_t i = 0; i < job->iterations && !status; i++) {
        enum status one = STATUS_OK;
        if (infer)
            one = work_infer_run(infer, i, err);
        if (one != STATUS_LOST && streams && i % interval == 0) {
            struct error second;
            enum status other = work_streams_run(streams, i / interval, &second);
            if (other && !one)
                *err = second;
            one = one ? one : other;
        }
        *ret_failed += one != STATUS_OK;
        if (worker_check_lost(worker, err)) /* nothing more can run here */
            break;
    }
    work_streams_close(streams);
    work_infer_close(infer);
    return status;
}

static enum status run_busy(struct worker *worker, uint32_t *ret_failed, struct error *err)
{
    struct work_busy *busy;
    TRY(work_busy_open(worker, &busy, err));
    worker_ready(worker);
    for (uint32_t i = 0; i < worker->job->iterations; i++) {
        *ret_failed += work_busy_run(busy, i, err) != STATUS_OK;
        if (worker_check_lost(worker, err))
            break;
    }
    work_busy_close(busy);
    return STATUS_OK;
}

static void tell_planted(struct worker *worker, const struct inject *inject)
{
    if (!inject)
        return;
    const struct inject_record *record = inject_record(inject);
    const struct inject_place *place = &record->place;
    if (!record->planted)
        worker_log(worker, "no call matched the fault: it was never planted");
    worker_tell(worker,
                json_pack("{s:s, s:b, s:I, s:s, s:s, s:i, s:i, s:s, s:I, s:s}", "kind", "planted",
                          "planted", record->planted, "event_id", (json_int_t)place->event_id, "op",
                          place->op, "operand", place->operand, "layer", place->scope.layer, "step",
                          place->scope.step, "tensor", place->scope.tensor, "victim_id",
                          (json_int_t)record->victim.event_id, "victim", record->victim.op));
}

/* What live analysis found, in short: the auditor reads the file for the rest. */
static void tell_live(struct worker *worker, const struct analysis *analysis)
{
    struct text words;
    int32_t index = analysis->root >= 0 ? analysis->root : analysis->defect;
    const struct finding *first = index >= 0 ? &analysis->findings[index] : NULL;
    text_init(&words);
    if (first)
        report_finding_describe(first, REPORT_ENGLISH, &words);
    worker_log(worker, "analysed %" PRIu64 " events: %zu findings%s%s", analysis->event_count,
               analysis->finding_count, words.length ? "; " : "", text_get(&words));
    worker_tell(worker,
                json_pack("{s:s, s:I, s:I, s:s, s:s}", "kind", "live", "findings",
                          (json_int_t)analysis->finding_count, "events",
                          (json_int_t)analysis->event_count, "root", text_get(&words), "hypothesis",
                          first ? hypothesis_info(first->hypothesis)->slug : ""));
    text_release(&words);
}

static void end_recording(struct worker *worker, struct recording *recording)
{
    struct analyzer *analyzer;
    struct error err;
    if (worker->job->kill_at_end)
        raise(SIGKILL);
    pulse_set_phase(worker->pulse, false);
    pulse_set_device(worker->pulse, NULL);
    tell_planted(worker, recording->inject); /* dies with the device */
    uint64_t peak = worker->device ? device_peak_bytes(worker->device) : 0;
    device_close(worker->device);
    worker->device = NULL;
    if (recording->live) {
        if (analyze_live_stop(recording->live, &analyzer, &err)) {
            worker_tell(worker, json_pack("{s:s, s:s}", "kind", "missing", "text", err.text));
        } else {
            tell_live(worker, analyzer_result(analyzer));
            analyzer_destroy(analyzer);
        }
    }
    flight_close(recording->flight);
    worker_tell(worker, json_pack("{s:s, s:I}", "kind", "end", "peak_bytes", (json_int_t)peak));
}

static enum status run_work(struct worker *worker, uint32_t *ret_failed, struct error *err)
{
    if (worker->job->work & JOB_TRANSFERS)
        return work_transfers_run(worker, err);
    if (worker->job->work & JOB_BUSY)
        return run_busy(worker, ret_failed, err);
    if (worker->job->work & JOB_COMPARE)
        return work_compare_run(worker, err);
    return run_iterations(worker, ret_failed, err);
}

static enum status run_job(const struct job *job, bool *ret_failed, struct error *err)
{
    struct worker worker = { .job = job, .beat_ns = clock_ns() };
    struct recording recording = { 0 };
    uint32_t failed = 0;
    worker.results = open(job->results, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (worker.results < 0)
        return error_set_os(err, errno, "cannot write to %s", job->results);
    worker.log = job->log ? open(job->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    worker.pulse = pulse_start(job->hang_limit_ns ? job->hang_limit_ns : JOB_HANG_DEFAULT_NS,
                               (struct pulse_listener){ worker_on_pulse, &worker });
    enum status status = open_device(&worker, &recording, err);
    if (!status)
        status = start_live(&worker, &recording, err);
    if (!status)
        status = run_work(&worker, &failed, err);
    if (status) {
        worker_log(&worker, "could not go on: %s", err->text);
        worker_tell(&worker, json_pack("{s:s, s:s, s:s}", "kind", "failed", "status",
                                       status_name(status), "text", err->text));
    }
    end_recording(&worker, &recording);
    pulse_stop(worker.pulse);
    close(worker.results);
    if (worker.log >= 0)
        close(worker.log);
    *ret_failed = failed > 0;
    if (!status && worker.silent)
        status = error_set(err, STATUS_IO, "cannot write to %s", job->results);
    return status;
}

/* The program's handlers ask it to finish what it does. A worker is ended by a signal, and its
 * auditor says so. */
static void end_by_signals(void)
{
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
    struct sigaction plain = { .sa_handler = SIG_DFL };
    for (size_t i = 0; i < COUNT_OF(signals); i++)
        sigaction(signals[i], &plain, NULL);
}

enum status campaign_worker(const char *job_path, bool *ret_failed, bool *ret_dumped,
                            struct error *err)
{
    struct job job;
    enum status status;
    *ret_dumped = false;
    end_by_signals();
    TRY(job_read(job_path, &job, err));
    /* Must not outlive its auditor; which may have died before we could ask. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || (uint64_t)getppid() != job.auditor_pid)
        status = error_set(err, STATUS_REFUSED,
                           "expected to be started by the audit with process %llu",
                           (unsigned long long)job.auditor_pid);
    else
        status = run_job(&job, ret_failed, err);
    *ret_dumped = job.flight && dump_facts_is_there(job.flight);
    job_release(&job);
    return status;
}
