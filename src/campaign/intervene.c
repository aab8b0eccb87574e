/* intervene.c - see intervene.h. A run with the change and a run without it take turns, so that
 * what drifts over time meets both. */
#include "campaign/intervene.h"

#include "ops/ops.h"
#include "report/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define REPEATS_DEFAULT 3u
/* Iterations of a rerun: enough for what happens in a child at all, few enough to be repeated. */
#define ITERATION_LIMIT 6u

/* ---- What can be changed -------------------------------------------------------------------- */

struct change {
    const char *slug;
    /* Changes the job; false where it makes no difference to this one. */
    bool (*apply)(struct job *job);
    enum verdict_proof proof; /* what a flip proves */
    enum word flips;          /* what follows if it flips */
    enum word stays;          /* what follows if it does not */
    enum word not_flips;      /* what does not follow if it flips */
    enum word not_stays;      /* what does not follow if it does not */
};

static bool serialise(struct job *job)
{
    bool changes = !job->serialise;
    job->serialise = true;
    return changes;
}

static bool use_one_stream(struct job *job)
{
    bool changes = (job->work & JOB_STREAMS) && !job->single_stream;
    job->single_stream = true;
    return changes;
}

static bool drop_guards(struct job *job)
{
    bool changes = job->level >= AUDIT_GUARD && !job->no_guards;
    job->no_guards = true;
    return changes;
}

static bool unpin(struct job *job)
{
    bool changes = !job->pageable;
    job->pageable = true;
    return changes;
}

static bool wait_around_copies(struct job *job)
{
    bool changes = job->d2h_mode != DEVICE_D2H_SYNC;
    job->d2h_mode = DEVICE_D2H_SYNC;
    return changes;
}

static bool cut_prompt(struct job *job)
{
    bool changes = (job->work & JOB_INFER) && job->chunk != 1;
    job->chunk = 1;
    return changes;
}

static bool remove_fault(struct job *job)
{
    bool changes = job->inject != NULL;
    job->inject = NULL;
    return changes;
}

static const struct change changes[] = {
    { "serialised", serialise, VERDICT_PROOF_NONE, WORD_SERIALISED_FLIPS, WORD_SERIALISED_STAYS,
      WORD_SERIALISED_NOT_FLIPS, WORD_SERIALISED_NOT_STAYS },
    { "single-stream", use_one_stream, VERDICT_PROOF_NONE, WORD_SINGLE_STREAM_FLIPS,
      WORD_SINGLE_STREAM_STAYS, WORD_SINGLE_STREAM_NOT_FLIPS, WORD_SINGLE_STREAM_NOT_STAYS },
    { "guards", drop_guards, VERDICT_PROOF_NONE, WORD_GUARDS_FLIPS, WORD_GUARDS_STAYS,
      WORD_GUARDS_NOT_FLIPS, WORD_GUARDS_NOT_STAYS },
    { "pageable", unpin, VERDICT_PROOF_NONE, WORD_PAGEABLE_FLIPS, WORD_PAGEABLE_STAYS,
      WORD_PAGEABLE_NOT_FLIPS, WORD_PAGEABLE_NOT_STAYS },
    { "sync-copies", wait_around_copies, VERDICT_PROOF_NONE, WORD_SYNC_COPIES_FLIPS,
      WORD_SYNC_COPIES_STAYS, WORD_SYNC_COPIES_NOT_FLIPS, WORD_SYNC_COPIES_NOT_STAYS },
    { "chunking", cut_prompt, VERDICT_PROOF_NONE, WORD_CHUNKING_FLIPS, WORD_CHUNKING_STAYS,
      WORD_CHUNKING_NOT_FLIPS, WORD_CHUNKING_NOT_STAYS },
    { "injected-removed", remove_fault,
      /* The planted fault is what goes wrong; which hypothesis describes it is for the findings to
         show. */
      VERDICT_PROOF_DEFECT, WORD_INJECTED_REMOVED_FLIPS, WORD_INJECTED_REMOVED_STAYS,
      WORD_INJECTED_REMOVED_NOT_FLIPS, WORD_INJECTED_REMOVED_NOT_STAYS },
};

/* ---- Runs ----------------------------------------------------------------------------------- */

/* What a series of reruns shares. */
struct series {
    const struct campaign_options *options;
    const struct child_setup *setup;
    uint64_t done, total; /* runs */
    const char *what;     /* of the run: "serialised", "control" */
};

/* How many runs there were, and how many of them had the fault. */
struct tally {
    uint32_t *runs, *faults;
};

/* A run that is ended from outside, again and again, is not counted. */
static enum status run_once(struct series *series, struct job job, struct tally tally,
                            struct error *err)
{
    const struct child_step step = { &series->options->watcher, "interventions", series->done,
                                     series->total };
    struct analyze_options options = { .level = job.level,
                                       .hang_limit_ns = job.hang_limit_ns,
                                       .operand_name = ops_operand_name };
    struct child_outcome outcome;
    struct analyzer *analyzer = NULL;
    char flight[4096];
    struct error unused;
    char label[64];
    snprintf(label, sizeof(label), "rerun-%02" PRIu64 "-%s", series->done + 1, series->what);
    job.label = label;
    TRY(child_path(series->setup->folder, job.label, "flight", flight, err));
    job.flight = job.level == AUDIT_OFF ? NULL : flight;
    TRY(child_run_again(series->setup, &job, &step, &outcome, err));
    bool cut_short = child_was_ended_from_outside(&outcome) && !outcome.errors;
    bool fault = (!outcome.ended && !cut_short) || outcome.hung || outcome.errors;
    if (job.flight && !analyze_flight(flight, &options, &analyzer, &unused)) {
        fault = fault || analyzer_result(analyzer)->finding_count > 0;
        analyzer_destroy(analyzer);
    }
    unlink(flight);
    child_outcome_release(&outcome);
    series->done++;
    *tally.runs += fault || !cut_short;
    *tally.faults += fault;
    return STATUS_OK;
}

static uint32_t repeats_of(const struct campaign_options *options)
{
    return options->repeats ? options->repeats : REPEATS_DEFAULT;
}

static struct job short_job(const struct job *base)
{
    struct job job = *base;
    if (job.iterations > ITERATION_LIMIT)
        job.iterations = ITERATION_LIMIT;
    job.streams_interval = 1;
    return job;
}

static void conclude(struct report_intervention *result, const struct change *change)
{
    bool none = !result->runs || !result->control_runs;
    bool never = result->control_faults == 0;
    bool always = result->control_faults == result->control_runs && result->faults == result->runs;
    /* Where the fault came and went, or did not come at all, the change says nothing. */
    enum word proves = none            ? WORD_NO_RUNS_PROVES
                       : result->flips ? change->flips
                       : always        ? change->stays
                       : never         ? WORD_NEVER_PROVES
                                       : WORD_SOMETIMES_PROVES;
    enum word not = none            ? WORD_SOMETIMES_NOT
                    : result->flips ? change->not_flips
                    : always        ? change->not_stays
                    : never         ? WORD_NEVER_NOT
                                    : WORD_SOMETIMES_NOT;
    for (int i = 0; i < REPORT_LANGUAGE_COUNT; i++) {
        result->proves[i] = words_get((enum report_language)i, proves);
        result->does_not_prove[i] = words_get((enum report_language)i, not );
    }
}

/* control, changed, control, changed, ...: both ways. */
static enum status try_change(struct series *series, const struct job *base,
                              const struct change *change, struct report_intervention *result,
                              struct error *err)
{
    struct job control = short_job(base), changed = control;
    change->apply(&changed);
    *result = (struct report_intervention){ .changed = change->slug };
    struct tally with = { &result->runs, &result->faults };
    struct tally without = { &result->control_runs, &result->control_faults };
    for (uint32_t i = 0; i < repeats_of(series->options); i++) {
        series->what = "control";
        TRY(run_once(series, control, without, err));
        series->what = change->slug;
        TRY(run_once(series, changed, with, err));
    }
    result->flips = result->runs && result->control_runs && result->faults == 0 &&
                    result->control_faults == result->control_runs;
    conclude(result, change);
    return STATUS_OK;
}

/* Wrong bytes of a valid transfer that come and go with the copy path alone are the runtime's; any
 * other mistake would have a finding of its own. */
static struct verdict_flip flip_of(const struct change *change, enum hypothesis hypothesis)
{
    bool is_path = change->apply == unpin || change->apply == wait_around_copies;
    bool is_bytes = hypothesis == HYPOTHESIS_SILENT_CORRUPTION ||
                    hypothesis == HYPOTHESIS_RUNTIME_DEFECT;
    if (is_path && is_bytes)
        return (struct verdict_flip){ HYPOTHESIS_RUNTIME_DEFECT, VERDICT_PROOF_CULPRIT };
    return (struct verdict_flip){ hypothesis, change->proof };
}

/* What does not come again in any of these runs cannot be made to go away: other changes would
 * teach as little. */
static bool is_gone(const struct report_intervention *result)
{
    return result->control_runs && result->runs && !result->control_faults && !result->faults;
}

enum status intervene(const struct campaign_options *options, const struct child_setup *setup,
                      const struct job *base, enum hypothesis hypothesis,
                      struct interventions *interventions, struct error *err)
{
    struct child_setup quiet = *setup;
    quiet.keep = false;
    struct series series = { options, &quiet, 0, 0, "" };
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        struct job job = *base;
        series.total += changes[i].apply(&job) ? 2 * repeats_of(options) : 0;
    }
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        struct report_intervention *result = &interventions->made[interventions->count];
        struct job job = *base;
        if (!changes[i].apply(&job))
            continue;
        TRY(try_change(&series, base, &changes[i], result, err));
        interventions->count++;
        if (result->flips && hypothesis != HYPOTHESIS_COUNT)
            interventions->flips[interventions->flip_count++] = flip_of(&changes[i], hypothesis);
        if (is_gone(result))
            break;
    }
    return STATUS_OK;
}

enum status ablate_d2h(const struct campaign_options *options, const struct child_setup *setup,
                       const struct job *base, struct interventions *interventions,
                       struct error *err)
{
    struct child_setup quiet = *setup;
    quiet.keep = false;
    struct series series = { options, &quiet, 0, (uint64_t)DEVICE_D2H_COUNT * repeats_of(options),
                             "" };
    for (int mode = 0; mode < DEVICE_D2H_COUNT; mode++) {
        struct report_ablation *result = &interventions->ablations[interventions->ablation_count];
        struct job job = short_job(base);
        job.d2h_mode = (enum device_d2h_mode)mode;
        *result = (struct report_ablation){ .mode = device_d2h_mode_name(job.d2h_mode) };
        series.what = result->mode;
        for (uint32_t i = 0; i < repeats_of(options); i++)
            TRY(run_once(&series, job, (struct tally){ &result->runs, &result->faults }, err));
        interventions->ablation_count++;
    }
    return STATUS_OK;
}
