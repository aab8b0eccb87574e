/* verdict_one.c - the verdict on one hypothesis: from its findings, from reruns that proved it, or
 * from what was looked at without finding anything. */
#include "analyze/verdict.h"

#include "base/size.h"

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

bool verdict_is_proved(const struct verdict_input *input, enum hypothesis hypothesis)
{
    for (size_t i = 0; i < input->flip_count; i++)
        if (input->flips[i].hypothesis == hypothesis &&
            input->flips[i].proof == VERDICT_PROOF_CULPRIT)
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
        return input->recorded_count;
    uint64_t compared = 0;
    for (size_t i = 0; i < input->analysis_count; i++) {
        uint64_t count = input->analyses[i]->compared_count;
        compared += count ? count + 1 : 0; /* and the one they were compared with */
    }
    return min_u64(compared, input->recorded_count);
}

/* Nothing was found: what keeps that from meaning something? */
static enum verdict_missing find_missing(const struct verdict_input *input,
                                         enum hypothesis hypothesis,
                                         const struct hypothesis_verdict *verdict)
{
    if (input->none_recorded)
        return VERDICT_MISSING_RECORDING;
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
    if (info->exact && verdict->checked < verdict->total)
        return VERDICT_MISSING_COVERAGE;
    if (verdict->checked == 0 || untried)
        return VERDICT_MISSING_EXERCISE;
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

double verdict_bound(uint64_t trial_count)
{
    double bound = trial_count ? 3.0 / (double)trial_count : 1.0;
    return bound < 1.0 ? bound : 1.0;
}

void verdict_decide_one(const struct verdict_input *input, enum hypothesis hypothesis,
                        struct hypothesis_verdict *verdict)
{
    *verdict = (struct hypothesis_verdict){ .verdict = VERDICT_INCONCLUSIVE,
                                            .analysis = -1,
                                            .finding = -1 };
    add_coverage(input, hypothesis, verdict);
    const struct finding *finding = find_strongest(input, hypothesis, verdict);
    if ((finding && is_direct(finding)) || verdict_is_proved(input, hypothesis)) {
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
    verdict->bound = verdict_bound(verdict->trials);
    if (verdict->trials < VERDICT_TRIALS_LEAST)
        verdict->verdict = VERDICT_NOT_SEEN;
}
