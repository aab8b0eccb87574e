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

enum status narrow_down(const struct campaign_options *options, const struct child_setup *setup,
                        const struct job *base, const struct finding *several,
                        struct narrowing *narrowing, struct report_intervention *ret_made,
                        struct error *err)
{
    const struct child_step step = { &options->watcher, "narrowing", 0, 1 };
    struct analyze_options analysis_options = { .level = base->level,
                                                .hang_limit_ns = base->hang_limit_ns,
                                                .operand_name = ops_operand_name };
    struct job job = *base;
    struct child_outcome outcome;
    struct analyzer *analyzer = NULL;
    struct error unused;
    char flight[FILES_PATH_BYTES];
    TRY(child_path(setup->folder, LABEL, "flight", flight, err));
    job.label = LABEL;
    job.flight = flight;
    job.serialise = true;
    TRY(child_run_again(setup, &job, &step, &outcome, err));
    child_outcome_release(&outcome);
    if (analyze_flight(flight, &analysis_options, &analyzer, &unused))
        analyzer = NULL;
    *ret_made = (struct report_intervention){
        .changed = "one-at-a-time", .runs = 1, .control_runs = 1, .control_faults = 1
    };
    if (judge(several, analyzer ? analyzer_result(analyzer) : NULL, ret_made)) {
        narrowing->analyzer = analyzer;
        keep_recording(setup, flight, narrowing);
        return STATUS_OK;
    }
    analyzer_destroy(analyzer);
    unlink(flight);
    return STATUS_OK;
}

void narrowing_release(struct narrowing *narrowing)
{
    analyzer_destroy(narrowing->analyzer);
    *narrowing = (struct narrowing){ 0 };
}
