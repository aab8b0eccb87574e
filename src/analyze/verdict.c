/* verdict.c - findings, coverage, self-tests and interventions become verdicts. Nothing here makes
 * a verdict more certain than its weakest premise: whatever is missing is named. */
#include "analyze/analyze.h"

#include <stdlib.h>
#include <string.h>

/* ---- One hypothesis ------------------------------------------------------------------------- */

static bool is_direct(const struct finding *finding)
{
    return finding->certainty == FINDING_DIRECT;
}

/* What a finding says, the larger the more: who did it, that it happened, that it may have; each
 * time those that follow from nothing first. */
static int strength_of(const struct finding *finding)
{
    int grade = finding_is_culprit(finding) ? 2 : is_direct(finding) ? 1 : 0;
    return 2 * grade + (finding->consequence_of < 0);
}

/* The first of the hypothesis's strongest findings. */
static const struct finding *find_strongest(const struct verdict_input *input,
                                            enum hypothesis hypothesis,
                                            struct hypothesis_verdict *verdict)
{
    const struct finding *strongest = NULL;
    for (size_t i = 0; i < input->analysis_count; i++)
        for (size_t j = 0; j < input->analyses[i]->finding_count; j++) {
            const struct finding *finding = &input->analyses[i]->findings[j];
            if (finding->hypothesis != hypothesis ||
                (strongest && strength_of(finding) <= strength_of(strongest)))
                continue;
            strongest = finding;
            verdict->analysis = (int32_t)i;
            verdict->finding = (int32_t)j;
        }
    return strongest;
}

static bool is_proved_by_flip(const struct verdict_input *input, enum hypothesis hypothesis)
{
    for (size_t i = 0; i < input->flip_count; i++)
        if (input->flips[i].hypothesis == hypothesis &&
            input->flips[i].proof == VERDICT_PROOF_CULPRIT)
            return true;
    return false;
}

static bool is_defect_by_flip(const struct verdict_input *input)
{
    for (size_t i = 0; i < input->flip_count; i++)
        if (input->flips[i].proof != VERDICT_PROOF_NONE)
            return true;
    return false;
}

/* A run that did not end in order, and has no finding to say why. */
static bool has_unexplained_end(const struct verdict_input *input)
{
    if (input->crash_count + input->failure_count > 0)
        return true;
    for (size_t i = 0; i < input->analysis_count; i++) {
        const struct analysis *analysis = input->analyses[i];
        bool explained = false;
        for (size_t j = 0; j < analysis->finding_count && !explained; j++)
            explained = is_direct(&analysis->findings[j]);
        if (!analysis->closed && !explained)
            return true;
    }
    return false;
}

/* Transfers are verified outside the iterations too, and not in all of them: each is a trial. */
static uint64_t trials_of(const struct verdict_input *input, const struct hypothesis_info *info,
                          const struct hypothesis_verdict *verdict)
{
    if (info->bound_each)
        return verdict->checked;
    if (!info->bound_equal)
        return input->iteration_count;
    uint64_t compared = 0;
    for (size_t i = 0; i < input->analysis_count; i++) {
        uint64_t count = input->analyses[i]->compared_count;
        compared += count ? count + 1 : 0; /* and the one they were held against */
    }
    return compared < input->iteration_count ? compared : input->iteration_count;
}

/* Nothing was found: what keeps that from meaning something? */
static enum verdict_missing find_missing(const struct verdict_input *input,
                                         enum hypothesis hypothesis,
                                         const struct hypothesis_verdict *verdict)
{
    const struct hypothesis_info *info = hypothesis_info(hypothesis);
    bool level = false, below = false, ran = false, whole = true;
    for (size_t i = 0; i < input->analysis_count; i++) {
        const struct analysis *analysis = input->analyses[i];
        level = level || analysis->level >= info->level;
        below = below || analysis->level < info->level;
        ran = ran || analysis->coverage[hypothesis].ran;
        whole = whole && analysis->lost_count == 0 && analysis->dropped_count == 0 &&
                analysis->damaged_count == 0 && analysis->findings_dropped == 0;
    }
    /* A run at the level that looks at other things, as one of copies only, does not make up for
     * one below it. */
    if (!level || (below && !ran))
        return VERDICT_MISSING_LEVEL;
    if (!ran)
        return VERDICT_MISSING_DETECTOR;
    if (input->self_test[hypothesis] == SELF_TEST_ABSENT)
        return VERDICT_MISSING_SELF_TEST;
    if (input->self_test[hypothesis] == SELF_TEST_FAILED)
        return VERDICT_MISSING_SELF_TEST_PASS;
    if (!whole)
        return VERDICT_MISSING_RECORDS;
    bool untried = !info->exact && trials_of(input, info, verdict) == 0;
    if (info->bound_equal && untried && verdict->total == verdict->checked)
        return VERDICT_MISSING_EQUAL_RUNS;
    if (verdict->checked == 0 || untried)
        return VERDICT_MISSING_EXERCISE;
    if (info->exact && verdict->checked < verdict->total)
        return VERDICT_MISSING_RECORDS;
    if (has_unexplained_end(input))
        return VERDICT_MISSING_END;
    return VERDICT_MISSING_NOTHING;
}

/* Only where the detector ran in full does looking count. */
static void add_coverage(const struct verdict_input *input, enum hypothesis hypothesis,
                         struct hypothesis_verdict *verdict)
{
    for (size_t i = 0; i < input->analysis_count; i++) {
        const struct hypothesis_coverage *coverage = &input->analyses[i]->coverage[hypothesis];
        if (!coverage->ran)
            continue;
        verdict->checked += coverage->checked;
        verdict->total += coverage->total;
    }
}

static double bound_of(uint64_t trial_count)
{
    double bound = trial_count ? 3.0 / (double)trial_count : 1.0;
    return bound < 1.0 ? bound : 1.0;
}

static void decide_one(const struct verdict_input *input, enum hypothesis hypothesis,
                       struct hypothesis_verdict *verdict)
{
    *verdict = (struct hypothesis_verdict){ .verdict = VERDICT_INCONCLUSIVE,
                                            .analysis = -1,
                                            .finding = -1 };
    add_coverage(input, hypothesis, verdict);
    const struct finding *finding = find_strongest(input, hypothesis, verdict);
    if ((finding && is_direct(finding)) || is_proved_by_flip(input, hypothesis)) {
        verdict->verdict = VERDICT_CONFIRMED;
        return;
    }
    if (finding) {
        verdict->missing = hypothesis == HYPOTHESIS_RUNTIME_DEFECT ? VERDICT_MISSING_COMPARISON
                                                                   : VERDICT_MISSING_CERTAINTY;
        return;
    }
    if (input->excluded[hypothesis]) {
        verdict->verdict = VERDICT_EXCLUDED;
        verdict->excluded_by = input->excluded_by[hypothesis];
        return;
    }
    verdict->missing = input->not_asked[hypothesis] ? VERDICT_MISSING_DETECTOR
                                                    : find_missing(input, hypothesis, verdict);
    if (verdict->missing != VERDICT_MISSING_NOTHING)
        return;
    verdict->verdict = VERDICT_REFUTED;
    const struct hypothesis_info *info = hypothesis_info(hypothesis);
    if (info->exact)
        return;
    verdict->trials = trials_of(input, info, verdict);
    verdict->bound = bound_of(verdict->trials);
    if (verdict->trials < VERDICT_TRIALS_LEAST)
        verdict->verdict = VERDICT_NOT_SEEN;
}

/* ---- Ranks ---------------------------------------------------------------------------------- */

/* Where evidence does not decide: how often each was the cause among known cases (bounds and
 * geometry most, the runtime least). */
static const enum hypothesis by_frequency[] = {
    HYPOTHESIS_BAD_POINTER,    HYPOTHESIS_CONTRACT_BREACH,
    HYPOTHESIS_MISSING_SYNC,   HYPOTHESIS_KERNEL_FAULT,
    HYPOTHESIS_STALE_GRAPH,    HYPOTHESIS_USE_AFTER_FREE,
    HYPOTHESIS_STAGING_REUSE,  HYPOTHESIS_UNINITIALISED_READ,
    HYPOTHESIS_SIZE_MISMATCH,  HYPOTHESIS_OVERLAPPING_COPIES,
    HYPOTHESIS_NUMERIC,        HYPOTHESIS_NON_DETERMINISM,
    HYPOTHESIS_HANG,           HYPOTHESIS_SILENT_CORRUPTION,
    HYPOTHESIS_RUNTIME_DEFECT, HYPOTHESIS_LEAK,
};
_Static_assert(COUNT_OF(by_frequency) == HYPOTHESIS_COUNT, "every hypothesis has a prior");

struct ranked {
    uint32_t class;    /* smaller is likelier */
    uint64_t order_id; /* among confirmed: the first in time */
    uint32_t prior;
    enum hypothesis hypothesis;
};

static int compare_ranked(const void *a, const void *b)
{
    const struct ranked *left = a, *right = b;
    if (left->class != right->class)
        return left->class < right->class ? -1 : 1;
    if (left->order_id != right->order_id)
        return left->order_id < right->order_id ? -1 : 1;
    return left->prior < right->prior ? -1 : 1;
}

static uint32_t class_of(const struct hypothesis_verdict *verdict, const struct finding *finding,
                         bool is_root)
{
    switch (verdict->verdict) {
    case VERDICT_CONFIRMED:
        if (is_root)
            return 0;
        return finding && finding->consequence_of >= 0 ? 2 : 1;
    case VERDICT_INCONCLUSIVE:
        return finding ? 3 : 4;
    case VERDICT_NOT_SEEN:
        return 5;
    case VERDICT_REFUTED:
        return 6;
    case VERDICT_EXCLUDED:
    case VERDICT_COUNT:
        break;
    }
    return 7;
}

static void rank_all(const struct verdict_input *input, struct audit_verdict *verdict,
                     int32_t root_hypothesis)
{
    struct ranked ranked[HYPOTHESIS_COUNT];
    for (uint32_t i = 0; i < HYPOTHESIS_COUNT; i++) {
        enum hypothesis hypothesis = by_frequency[i];
        const struct hypothesis_verdict *one = &verdict->hypotheses[hypothesis];
        const struct finding *finding =
            one->finding >= 0 ? &input->analyses[one->analysis]->findings[one->finding] : NULL;
        ranked[i] = (struct ranked){ class_of(one, finding, (int32_t)hypothesis == root_hypothesis),
                                     finding ? finding->order_id : 0, i, hypothesis };
    }
    qsort(ranked, HYPOTHESIS_COUNT, sizeof(*ranked), compare_ranked);
    for (uint32_t i = 0; i < HYPOTHESIS_COUNT; i++)
        verdict->hypotheses[ranked[i].hypothesis].rank = i + 1;
}

/* ---- All together --------------------------------------------------------------------------- */

/* The first run that has a culprit. Returns its hypothesis, or -1. */
static int32_t find_root(const struct verdict_input *input, struct audit_verdict *verdict)
{
    for (size_t i = 0; i < input->analysis_count; i++) {
        const struct analysis *analysis = input->analyses[i];
        if (analysis->root < 0)
            continue;
        verdict->root_analysis = (int32_t)i;
        verdict->root_finding = analysis->root;
        return (int32_t)analysis->findings[analysis->root].hypothesis;
    }
    /* Proved by taking it away and putting it back, with no record of the act itself. The finding
     * that the reruns were about names the place: wrong bytes, where the runtime's copy path is. */
    for (uint32_t i = 0; i < HYPOTHESIS_COUNT; i++) {
        const struct hypothesis_verdict *one = &verdict->hypotheses[by_frequency[i]];
        if (!is_proved_by_flip(input, by_frequency[i]))
            continue;
        if (one->finding < 0)
            one = &verdict->hypotheses[HYPOTHESIS_SILENT_CORRUPTION];
        if (one->finding < 0)
            continue;
        verdict->root_analysis = one->analysis;
        verdict->root_finding = one->finding;
        return (int32_t)by_frequency[i];
    }
    return -1;
}

/* Something is wrong: a violation was seen, the device is lost, or a run failed by itself. Where a
 * finding shows it, that one is named. */
static bool find_defect(const struct verdict_input *input, struct audit_verdict *verdict)
{
    bool lost = false;
    for (size_t i = 0; i < input->analysis_count; i++) {
        const struct analysis *analysis = input->analyses[i];
        lost = lost || analysis->device_lost;
        if (analysis->defect < 0)
            continue;
        verdict->seen_analysis = (int32_t)i;
        verdict->seen_finding = analysis->defect;
        return true;
    }
    return lost || input->failure_count > 0 || input->fault_occurred || is_defect_by_flip(input);
}

/* Nothing keeps the hypothesis from being settled but, with too few iterations, their number. */
static bool is_settled(const struct verdict_input *input, enum hypothesis hypothesis,
                       const struct hypothesis_verdict *one)
{
    switch (one->verdict) {
    case VERDICT_REFUTED:
    case VERDICT_NOT_SEEN:
    case VERDICT_EXCLUDED:
        return true;
    default:
        return one->finding < 0 &&
               (input->not_asked[hypothesis] || (one->missing == VERDICT_MISSING_EQUAL_RUNS &&
                                                 input->recorded_count < VERDICT_TRIALS_LEAST));
    }
}

/* Whether how often the workload ran matters to what was asked. */
static bool is_statistical(const struct verdict_input *input)
{
    for (unsigned i = 0; i < HYPOTHESIS_COUNT; i++)
        if (!hypothesis_info((enum hypothesis)i)->exact && !input->not_asked[i] &&
            !input->excluded[i])
            return true;
    return false;
}

static enum audit_outcome outcome_of(const struct verdict_input *input,
                                     struct audit_verdict *verdict, bool all_settled)
{
    if (find_defect(input, verdict))
        return AUDIT_DEFECT_SEEN;
    if (input->unfired_count > 0)
        return AUDIT_INCONCLUSIVE; /* what was to be looked for was never there */
    if (input->fault_expected)
        return AUDIT_NOT_REPRODUCED;
    if (input->fired_count > 0)
        return AUDIT_INCONCLUSIVE; /* a fault was there, and no detector saw it */
    if (!all_settled || input->crash_count > 0 || input->analysis_count == 0)
        return AUDIT_INCONCLUSIVE;
    if (is_statistical(input) && input->recorded_count < VERDICT_TRIALS_LEAST)
        return AUDIT_NOT_SEEN;
    return AUDIT_CLEAN;
}

/* A defect that no direct finding shows, such as a fault that several launches may have made: the
 * finding of the likeliest hypothesis shows it best. */
static void show_likeliest(struct audit_verdict *verdict)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < HYPOTHESIS_COUNT; i++) {
        const struct hypothesis_verdict *one = &verdict->hypotheses[i];
        if (one->finding < 0 || one->rank >= best)
            continue;
        best = one->rank;
        verdict->seen_analysis = one->analysis;
        verdict->seen_finding = one->finding;
    }
}

void verdict_decide(const struct verdict_input *input, struct audit_verdict *ret_verdict)
{
    struct audit_verdict *verdict = ret_verdict;
    *verdict = (struct audit_verdict){ .root_analysis = -1,
                                       .root_finding = -1,
                                       .seen_analysis = -1,
                                       .seen_finding = -1,
                                       .iterations = input->recorded_count };
    bool all_settled = true;
    for (uint32_t i = 0; i < HYPOTHESIS_COUNT; i++) {
        decide_one(input, (enum hypothesis)i, &verdict->hypotheses[i]);
        all_settled = all_settled && is_settled(input, (enum hypothesis)i, &verdict->hypotheses[i]);
    }
    int32_t root = find_root(input, verdict);
    verdict->outcome = root >= 0 ? AUDIT_ROOT_CAUSE : outcome_of(input, verdict, all_settled);
    if (verdict->seen_finding >= 0)
        root = (int32_t)input->analyses[verdict->seen_analysis]
                   ->findings[verdict->seen_finding]
                   .hypothesis;
    rank_all(input, verdict, root);
    if (verdict->outcome == AUDIT_DEFECT_SEEN && verdict->seen_finding < 0)
        show_likeliest(verdict);
    /* An expected fault shows in a bare run too. */
    if (verdict->outcome == AUDIT_NOT_REPRODUCED)
        verdict->iterations = input->total_count;
    if (verdict->outcome == AUDIT_NOT_REPRODUCED || verdict->outcome == AUDIT_NOT_SEEN ||
        (verdict->outcome == AUDIT_CLEAN && verdict->iterations > 0))
        verdict->bound = bound_of(verdict->iterations);
}
