/* verdict.c - the verdict on an audit: hypotheses ranked, a root or a defect named, an outcome.
 * Nothing here or in verdict_one.c makes a verdict more certain than its weakest premise: whatever
 * is missing is named. */
#include "analyze/verdict.h"

#include <stdlib.h>

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

/* The first run that has a culprit, or the one that came nearest. Returns its hypothesis, or -1. */
static int32_t find_root(const struct verdict_input *input, struct audit_verdict *verdict)
{
    for (size_t i = 0; i < input->analysis_count; i++) {
        const struct analysis *analysis = input->analyses[i];
        if (analysis->root < 0 || (input->nearest && input->nearest != analysis))
            continue;
        verdict->root_analysis = (int32_t)i;
        verdict->root_finding = analysis->root;
        return (int32_t)analysis->findings[analysis->root].hypothesis;
    }
    /* Proved by taking it away and putting it back, with no record of the act itself. The finding
     * that the reruns were about names the place: wrong bytes, where the runtime's copy path is. */
    for (uint32_t i = 0; i < HYPOTHESIS_COUNT; i++) {
        const struct hypothesis_verdict *one = &verdict->hypotheses[by_frequency[i]];
        if (!verdict_is_proved(input, by_frequency[i]))
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

static bool is_defect_by_flip(const struct verdict_input *input)
{
    for (size_t i = 0; i < input->flip_count; i++)
        if (input->flips[i].proof != VERDICT_PROOF_NONE)
            return true;
    return false;
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

/* True if it matters how often the workload ran. */
static bool is_statistical(const struct verdict_input *input)
{
    for (unsigned i = 0; i < HYPOTHESIS_COUNT; i++)
        if (!hypothesis_info((enum hypothesis)i)->exact && !input->not_asked[i] &&
            !input->excluded[i])
            return true;
    return false;
}

/* A chain is as strong as its weakest link: the hypothesis with the fewest trials decides how much
 * the absence of findings says. */
static void find_weakest(struct audit_verdict *verdict)
{
    verdict->weakest = HYPOTHESIS_COUNT;
    for (uint32_t i = 0; i < HYPOTHESIS_COUNT; i++) {
        const struct hypothesis_info *info = hypothesis_info((enum hypothesis)i);
        const struct hypothesis_verdict *one = &verdict->hypotheses[i];
        if (info->exact || (one->verdict != VERDICT_REFUTED && one->verdict != VERDICT_NOT_SEEN))
            continue;
        if (verdict->weakest == HYPOTHESIS_COUNT ||
            one->trials < verdict->hypotheses[verdict->weakest].trials)
            verdict->weakest = (enum hypothesis)i;
        if (!info->bound_each && one->bound > verdict->bound)
            verdict->bound = one->bound;
    }
}

static bool has_few_trials(const struct verdict_input *input, const struct audit_verdict *verdict)
{
    if (is_statistical(input) && input->recorded_count < VERDICT_TRIALS_LEAST)
        return true;
    return verdict->weakest != HYPOTHESIS_COUNT &&
           verdict->hypotheses[verdict->weakest].trials < VERDICT_TRIALS_LEAST;
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
    return has_few_trials(input, verdict) ? AUDIT_NOT_SEEN : AUDIT_CLEAN;
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
    for (size_t i = 0; i < input->analysis_count; i++) {
        verdict->subjects.seen |= input->analyses[i]->subjects.seen;
        verdict->subjects.missed |= input->analyses[i]->subjects.missed;
    }
    for (uint32_t i = 0; i < HYPOTHESIS_COUNT; i++) {
        verdict_decide_one(input, (enum hypothesis)i, &verdict->hypotheses[i]);
        all_settled = all_settled && is_settled(input, (enum hypothesis)i, &verdict->hypotheses[i]);
    }
    find_weakest(verdict);
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
    if (verdict->outcome == AUDIT_NOT_REPRODUCED) {
        verdict->iterations = input->total_count;
        verdict->bound = verdict_bound(verdict->iterations);
    } else if (verdict->outcome == AUDIT_NOT_SEEN && verdict->weakest == HYPOTHESIS_COUNT) {
        verdict->bound = verdict_bound(verdict->iterations);
    } else if (verdict->outcome != AUDIT_CLEAN && verdict->outcome != AUDIT_NOT_SEEN) {
        verdict->bound = 0;
    }
}
