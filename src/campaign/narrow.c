/* narrow.c - see narrow.h. */
#include "campaign/narrow.h"

#include "campaign/files.h"
#include "ops/ops.h"
#include "report/words.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LABEL "narrowed"

const struct finding *narrow_find(const struct analysis *analysis)
{
    for (size_t i = 0; analysis->root < 0 && i < analysis->finding_count; i++) {
        const struct finding *finding = &analysis->findings[i];
        bool by_fault = finding->hypothesis == HYPOTHESIS_KERNEL_FAULT ||
                        finding->hypothesis == HYPOTHESIS_USE_AFTER_FREE;
        bool by_canary = finding->hypothesis == HYPOTHESIS_SILENT_CORRUPTION;
        if (by_fault && analysis->device_lost && finding->certainty == FINDING_POSSIBLE &&
            finding->candidate_count)
            return finding;
        if (by_canary && finding->candidate_count && !finding_is_culprit(finding))
            return finding;
    }
    return NULL;
}

/* The same launch in another run: events have other numbers, and a replay is its calls there. */
static bool is_candidate(const struct finding *several, const struct analyze_place *place)
{
    for (uint32_t i = 0; i < several->candidate_count; i++) {
        const struct analyze_place *one = &several->candidates[i];
        if (strcmp(one->op, place->op) == 0 && one->scope.layer == place->scope.layer &&
            one->scope.step == place->scope.step &&
            strcmp(one->scope.tensor, place->scope.tensor) == 0)
            return true;
    }
    return several->candidates_left_out > 0;
}

static void conclude(struct report_intervention *made, enum word proves, enum word does_not_prove)
{
    for (int i = 0; i < REPORT_LANGUAGE_COUNT; i++) {
        made->proves[i] = words_get((enum report_language)i, proves);
        made->does_not_prove[i] = words_get((enum report_language)i, does_not_prove);
    }
}

/* What the rerun shows; true if it singles a candidate out. */
static bool judge(const struct finding *several, const struct analysis *analysis,
                  struct report_intervention *made)
{
    const struct finding *root = analysis && analysis->root >= 0
                                     ? &analysis->findings[analysis->root]
                                     : NULL;
    made->faults = analysis && (analysis->device_lost || analysis->finding_count);
    bool by_canary = several->hypothesis == HYPOTHESIS_SILENT_CORRUPTION;
    bool single = root && is_candidate(several, &root->cause) &&
                  (!by_canary || root->hypothesis == HYPOTHESIS_SILENT_CORRUPTION);
    if (single)
        conclude(made, WORD_NARROWED_PROVES, WORD_NARROWED_NOT);
    else if (made->faults)
        conclude(made, WORD_NARROWED_OTHER_PROVES, WORD_NOT_NARROWED_NOT);
    else
        conclude(made, WORD_NOT_NARROWED_PROVES, WORD_NOT_NARROWED_NOT);
    return single;
}

/* The proof: kept, compressed where that works. */
static void keep_recording(const struct child_setup *setup, const char *path,
                           struct narrowing *narrowing)
{
    char packed[FILES_PATH_BYTES];
    struct error unused;
    bool is_packed = !child_path(setup->folder, LABEL, "flight" FLIGHT_PACKED_SUFFIX, packed,
                                 &unused) &&
                     !flight_pack(path, packed, 0, &unused);
    if (is_packed)
        unlink(path);
    snprintf(narrowing->flight, sizeof(narrowing->flight), "run/%s.flight%s", LABEL,
             is_packed ? FLIGHT_PACKED_SUFFIX : "");
}

/* *ret_analyzer: NULL if the recording cannot be read. */
static enum status rerun(const struct campaign_options *options, const struct child_setup *setup,
                         struct job *job, char ret_flight[FILES_PATH_BYTES],
                         struct analyzer **ret_analyzer, struct error *err)
{
    const struct child_step step = { &options->watcher, "narrowing", 0, 1 };
    struct analyze_options analysis_options = { .level = job->level,
                                                .hang_limit_ns = job->hang_limit_ns,
                                                .operand_name = ops_operand_name };
    struct child_outcome outcome;
    struct error unused;
    TRY(child_path(setup->folder, LABEL, "flight", ret_flight, err));
    job->label = LABEL;
    job->flight = ret_flight;
    TRY(child_run_again(setup, job, &step, &outcome, err));
    child_outcome_release(&outcome);
    if (analyze_flight(ret_flight, &analysis_options, ret_analyzer, &unused))
        *ret_analyzer = NULL;
    return STATUS_OK;
}

/* Takes the analyzer and the recording. */
static void keep(const struct child_setup *setup, const char *flight, struct analyzer *analyzer,
                 bool single, struct narrowing *narrowing)
{
    if (single) {
        narrowing->analyzer = analyzer;
        keep_recording(setup, flight, narrowing);
        return;
    }
    analyzer_destroy(analyzer);
    unlink(flight);
}

enum status narrow_down(const struct campaign_options *options, const struct child_setup *setup,
                        const struct job *base, const struct finding *several,
                        struct narrowing *narrowing, struct report_intervention *ret_made,
                        struct error *err)
{
    struct job job = *base;
    struct analyzer *analyzer = NULL;
    char flight[FILES_PATH_BYTES];
    job.serialise = true;
    TRY(rerun(options, setup, &job, flight, &analyzer, err));
    *ret_made = (struct report_intervention){
        .changed = "one-at-a-time", .runs = 1, .control_runs = 1, .control_faults = 1
    };
    keep(setup, flight, analyzer,
         judge(several, analyzer ? analyzer_result(analyzer) : NULL, ret_made), narrowing);
    return STATUS_OK;
}

/* ---- Copies --------------------------------------------------------------------------------- */

static bool is_index(const struct finding *finding)
{
    return finding->hypothesis == HYPOTHESIS_BAD_POINTER &&
           finding_defect(finding) == DEFECT_INDEX_PAST_BOUND;
}

const struct finding *narrow_find_index(const struct analysis *analysis)
{
    const struct finding *root = analysis->root >= 0 ? &analysis->findings[analysis->root] : NULL;
    return root && is_index(root) && analysis->level < AUDIT_VERIFY ? root : NULL;
}

/* The index came again, in a launch of the same op. */
static const struct finding *find_again(const struct finding *index,
                                        const struct analysis *analysis)
{
    for (size_t i = 0; i < analysis->finding_count; i++) {
        const struct finding *finding = &analysis->findings[i];
        if (is_index(finding) && strcmp(finding->cause.op, index->cause.op) == 0 &&
            finding->cause.operand == index->cause.operand)
            return finding;
    }
    return NULL;
}

/* Changed bytes that the launch then read. */
static bool is_brought_by(const struct finding *index, const struct finding *root)
{
    const struct analyze_place *copy = &root->cause, *read = &index->cause;
    return root->hypothesis == HYPOTHESIS_SILENT_CORRUPTION && copy->kind == EVENT_COPY_IN &&
           copy->event_id < read->event_id && copy->device_index == read->device_index &&
           copy->buffer_index == read->buffer_index && copy->generation == read->generation &&
           copy->address < read->address + read->bytes &&
           read->address < copy->address + copy->bytes;
}

static bool judge_copies(const struct finding *index, const struct analysis *analysis,
                         struct report_intervention *made)
{
    const struct finding *again = analysis ? find_again(index, analysis) : NULL;
    bool brought = again && analysis->root >= 0 &&
                   is_brought_by(again, &analysis->findings[analysis->root]);
    made->faults = analysis && analysis->finding_count;
    if (brought)
        conclude(made, WORD_COPY_BLAMED_PROVES, WORD_COPY_BLAMED_NOT);
    else if (again && analysis->root >= 0 && is_index(&analysis->findings[analysis->root]))
        conclude(made, WORD_COPIES_RIGHT_PROVES, WORD_COPIES_RIGHT_NOT);
    else
        conclude(made, WORD_COPIES_UNSEEN_PROVES, WORD_COPIES_UNSEEN_NOT);
    return brought;
}

enum status narrow_copies(const struct campaign_options *options, const struct child_setup *setup,
                          const struct job *base, const struct finding *index,
                          struct narrowing *narrowing, struct report_intervention *ret_made,
                          struct error *err)
{
    struct job job = *base;
    struct analyzer *analyzer = NULL;
    char flight[FILES_PATH_BYTES];
    job.level = AUDIT_VERIFY;
    TRY(rerun(options, setup, &job, flight, &analyzer, err));
    *ret_made = (struct report_intervention){
        .changed = "hashed-copies", .runs = 1, .control_runs = 1, .control_faults = 1
    };
    narrowing->is_copy = judge_copies(index, analyzer ? analyzer_result(analyzer) : NULL, ret_made);
    keep(setup, flight, analyzer, narrowing->is_copy, narrowing);
    return STATUS_OK;
}

void narrowing_release(struct narrowing *narrowing)
{
    analyzer_destroy(narrowing->analyzer);
    *narrowing = (struct narrowing){ 0 };
}
