/* self_test_plant.c - see self_test_plant.h. */
#include "campaign/self_test_plant.h"

#include "campaign/narrow.h"
#include "campaign/stress.h"
#include "ops/ops.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A planted hang is waited for; the rest ends by itself, and a busy machine is no hang. */
#define HANG_LIMIT_NS UINT64_C(700000000)
#define HANG_LIMIT_LAST_NS (16 * HANG_LIMIT_NS)
#define ITERATIONS_DEFAULT 2u
#define CLEAN_ITERATIONS 12u

const char *place_op(const struct analyze_place *place)
{
    return place->op[0] ? place->op : event_kind_name((enum event_kind)place->kind);
}

static bool is_culprit(const struct self_test_row *row, const struct analyze_place *place)
{
    return strcmp(place_op(place), row->op) == 0 && place->scope.layer == row->layer &&
           place->scope.step == row->step && strcmp(place->scope.tensor, row->tensor) == 0;
}

/* The finding to hold against a row: the root cause; where it can only be seen, what was seen; of a
 * comparison, any of its hypothesis. */
static const struct finding *find_answer(const struct self_test_row *row,
                                         const struct analysis *analysis)
{
    for (size_t i = 0; (row->needs & SELF_TEST_COMPARED) && i < analysis->finding_count; i++)
        if (analysis->findings[i].hypothesis == row->hypothesis)
            return &analysis->findings[i];
    int32_t index = row->needs & SELF_TEST_ONLY_SEEN ? analysis->defect : analysis->root;
    return index >= 0 ? &analysis->findings[index] : NULL;
}

bool self_test_matches(const struct self_test_row *row, const struct analysis *analysis,
                       bool *ret_culprit_ok)
{
    const struct finding *root = find_answer(row, analysis);
    *ret_culprit_ok = false;
    if (!root || ((row->needs & SELF_TEST_ONLY_SEEN) && analysis->root >= 0))
        return false;
    *ret_culprit_ok = root->hypothesis == row->hypothesis && is_culprit(row, &root->cause);
    return root->hypothesis == row->hypothesis;
}

/* ---- A child -------------------------------------------------------------------------------- */

/* A detector is not judged by a run that another process ended. */
static enum status refuse_ended(const struct child_outcome *outcome, const char *label,
                                struct error *err)
{
    char ending[CHILD_ENDING_BYTES];
    child_ending_words(outcome, ending);
    return error_set(err, STATUS_IO,
                     "the self-test of %s cannot be judged: its process was %s, each time", label,
                     ending);
}

/* Runs a job and analyses what it left. *ret_analyzer may be NULL: no recording. */
static enum status run_job(struct self_test_bench *bench, struct job *job,
                           struct child_outcome *ret_outcome, struct analyzer **ret_analyzer,
                           struct error *err)
{
    char flight[FILES_PATH_BYTES];
    struct analyze_options options = { .level = job->level,
                                       .hang_limit_ns = job->hang_limit_ns,
                                       .operand_name = ops_operand_name };
    TRY(child_path(bench->folder, job->label, "flight", flight, err));
    job->flight = flight;
    enum status status = child_run_again(&bench->setup, job, &bench->step, ret_outcome, err);
    *ret_analyzer = NULL;
    struct error unused;
    if (!status && !job->kill_at_end && child_was_ended_from_outside(ret_outcome)) {
        status = refuse_ended(ret_outcome, job->label, err);
        child_outcome_release(ret_outcome);
    }
    if (!status && analyze_flight(flight, &options, ret_analyzer, &unused))
        *ret_analyzer = NULL;
    unlink(flight); /* tens of megabytes each */
    job->flight = NULL;
    if (!status && ret_outcome->missing[0]) {
        status = error_set(err, STATUS_IO, "the self-test of %s cannot be judged: %s", job->label,
                           ret_outcome->missing);
        analyzer_destroy(*ret_analyzer);
        child_outcome_release(ret_outcome);
    }
    return status;
}

struct job self_test_job(const char *device, const char *model, const char *label)
{
    return (struct job){ .label = label,
                         .device = device,
                         .model = model,
                         .prompt = "Hello there",
                         .kv_type = "f16",
                         .level = AUDIT_LOG,
                         .seed = 1,
                         .streams_interval = 1,
                         .iterations = ITERATIONS_DEFAULT,
                         .token_limit = 6,
                         .context = 64,
                         .ignore_end = true,
                         /* Sampled: whole rows of logits cross, and are compared. */
                         .sampling = {
                             .temperature = 0.8f, .top_p = 1, .repeat_penalty = 1, .seed = 1 } };
}

/* ---- Planted -------------------------------------------------------------------------------- */

static void describe_miss(const struct child_outcome *outcome, const struct analysis *analysis,
                          char *note, size_t note_bytes)
{
    if (outcome->failed[0])
        snprintf(note, note_bytes, "could not run: %.120s", outcome->failed);
    else if (outcome->planted.reported && !outcome->planted.planted)
        snprintf(note, note_bytes, "no call fits the fault: nothing was planted");
    else if (!analysis)
        snprintf(note, note_bytes, "no flight file to analyse");
    else if (!analysis->findings || !analysis->finding_count)
        snprintf(note, note_bytes, "no finding (%s%.100s)",
                 outcome->error[0] ? "error seen: " : "no error seen either", outcome->error);
    else if (analysis->defect >= 0)
        snprintf(note, note_bytes, "%s %s", analysis->root >= 0 ? "found" : "seen",
                 hypothesis_info(
                     analysis->findings[analysis->root >= 0 ? analysis->root : analysis->defect]
                         .hypothesis)
                     ->slug);
}

/* The same with other staging memory and nothing planted: the runtime's other path is sound. */
static enum status run_other_path(struct self_test_bench *bench, const struct job *planted,
                                  bool *ret_clean, struct error *err)
{
    struct job job = *planted;
    struct child_outcome outcome;
    struct analyzer *analyzer;
    job.inject = NULL;
    job.pageable = true;
    TRY(run_job(bench, &job, &outcome, &analyzer, err));
    *ret_clean = analyzer && outcome.ended && analyzer_result(analyzer)->finding_count == 0;
    analyzer_destroy(analyzer);
    child_outcome_release(&outcome);
    return STATUS_OK;
}

bool self_test_is_absent(const struct self_test_bench *bench, const struct self_test_row *row)
{
    return (row->needs & SELF_TEST_FAULTING_GUARDS) && !bench->guards_fault;
}

static bool has_candidate(const struct self_test_row *row, const struct finding *finding)
{
    for (uint32_t i = 0; i < finding->candidate_count; i++)
        if (is_culprit(row, &finding->candidates[i]))
            return true;
    return false;
}

/* Several launches may have done it: the right one must be among them, and the only one left in a
 * run that waits after each launch. */
static enum status narrow(struct self_test_bench *bench, const struct self_test_row *row,
                          const struct job *planted, const struct finding *several,
                          struct report_planted *result, struct error *err)
{
    struct job job = *planted;
    struct child_outcome outcome;
    struct analyzer *analyzer;
    job.serialise = true;
    TRY(run_job(bench, &job, &outcome, &analyzer, err));
    const struct analysis *analysis = analyzer ? analyzer_result(analyzer) : NULL;
    if (analysis && analysis->root >= 0) {
        result->found_hypothesis = analysis->findings[analysis->root].hypothesis;
        result->culprit = analysis->findings[analysis->root].cause;
        result->detected = self_test_matches(row, analysis, &result->culprit_ok);
        result->culprit_ok = result->culprit_ok && has_candidate(row, several);
    }
    analyzer_destroy(analyzer);
    child_outcome_release(&outcome);
    return STATUS_OK;
}

void self_test_set_place(const struct self_test_row *row, struct analyze_place *ret_place)
{
    *ret_place = (struct analyze_place){ .scope = { .step = row->step, .layer = row->layer } };
    event_set_text(ret_place->op, sizeof(ret_place->op), row->op);
    event_set_text(ret_place->scope.tensor, sizeof(ret_place->scope.tensor), row->tensor);
}

/* Only time tells a hang from a worker that is kept from running: where the machine is so busy that
 * the worker was ended before its own analysis saw the hang, it gets more time. */
static enum status run_planted(struct self_test_bench *bench, const struct self_test_row *row,
                               struct job *job, struct child_outcome *ret_outcome,
                               struct analyzer **ret_analyzer, struct error *err)
{
    bool is_hang = row->hypothesis == HYPOTHESIS_HANG;
    for (uint64_t limit_ns = HANG_LIMIT_NS;; limit_ns *= 2) {
        if (is_hang)
            job->hang_limit_ns = limit_ns;
        TRY(run_job(bench, job, ret_outcome, ret_analyzer, err));
        if (!is_hang || limit_ns >= HANG_LIMIT_LAST_NS || !ret_outcome->hung ||
            (*ret_analyzer && find_answer(row, analyzer_result(*ret_analyzer))))
            return STATUS_OK;
        analyzer_destroy(*ret_analyzer);
        child_outcome_release(ret_outcome);
    }
}

enum status self_test_plant(struct self_test_bench *bench, const struct self_test_row *row,
                            struct report_planted *planted, char *note, size_t note_bytes,
                            struct error *err)
{
    const struct audit_model *model = row->needs & SELF_TEST_EXPERTS ? &bench->experts
                                                                     : &bench->model;
    struct job job = self_test_job(bench->options->device, model->path, row->fault);
    struct child_outcome outcome;
    struct analyzer *analyzer;
    job.inject = row->spec;
    job.level = row->level;
    job.work = row->work;
    job.busy_streams = SELF_TEST_STREAM_COUNT(row->needs);
    job.busy_replays = (row->needs & SELF_TEST_REPLAYS) != 0;
    if (row->needs & SELF_TEST_SEARCHED)
        job.search = (struct job_search){ .on = true, .hash = { .every = 1 }, .clear = true };
    if (row->iterations)
        job.iterations = row->iterations;
    TRY(run_planted(bench, row, &job, &outcome, &analyzer, err));
    self_test_set_place(row, &planted->planted);
    const struct analysis *analysis = analyzer ? analyzer_result(analyzer) : NULL;
    const struct finding *root = analysis ? find_answer(row, analysis) : NULL;
    if (root) {
        planted->found_hypothesis = root->hypothesis;
        planted->culprit = root->cause;
        planted->detected = self_test_matches(row, analysis, &planted->culprit_ok);
    }
    describe_miss(&outcome, analysis, note, note_bytes);
    enum status status = STATUS_OK;
    const struct finding *several = analysis ? narrow_find(analysis) : NULL;
    if (several && several->hypothesis == row->hypothesis)
        status = narrow(bench, row, &job, several, planted, err);
    if (planted->detected && (row->needs & SELF_TEST_COMPARED))
        status = run_other_path(bench, &job, &planted->detected, err);
    planted->note = note[0] ? note : NULL;
    analyzer_destroy(analyzer);
    child_outcome_release(&outcome);
    return status;
}

/* ---- Clean ---------------------------------------------------------------------------------- */

static struct job clean_job(const struct self_test_bench *bench, enum self_test_clean which)
{
    static const char *const labels[] = { "clean", "clean-stress", "clean-searched" };
    struct job job = self_test_job(bench->options->device, bench->model.path, labels[which]);
    job.level = which == SELF_TEST_CLEAN_STRESS ? AUDIT_VERIFY : AUDIT_GUARD;
    job.work = JOB_INFER | JOB_STREAMS;
    job.iterations = CLEAN_ITERATIONS;
    if (which == SELF_TEST_CLEAN_STRESS)
        job.stress = stress_ranges();
    if (which == SELF_TEST_CLEAN_SEARCHED) { /* equal runs have equal operands, all of them */
        job.work = JOB_INFER;
        job.iterations = 2;
        job.search = (struct job_search){ .on = true, .hash = { .every = 1 }, .clear = true };
    }
    return job;
}

enum status self_test_run_clean(struct self_test_bench *bench, enum self_test_clean which,
                                uint64_t *findings, struct error *err)
{
    struct job job = clean_job(bench, which);
    struct child_outcome outcome;
    struct analyzer *analyzer;
    TRY(run_job(bench, &job, &outcome, &analyzer, err));
    if (!analyzer || !outcome.ended || outcome.errors)
        (*findings)++; /* a clean run that fails is no better than a false alarm */
    if (analyzer)
        *findings += analyzer_result(analyzer)->finding_count;
    analyzer_destroy(analyzer);
    child_outcome_release(&outcome);
    return STATUS_OK;
}
