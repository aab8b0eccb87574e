/* analyze_verdict_test.c - no verdict is more certain than its evidence: for every hypothesis each
 * thing that can be missing is taken away in turn. */
#include "analyze_verdict.h"

static void whole_evidence_refutes(void **state)
{
    (void)state;
    for (unsigned i = 0; i < HYPOTHESIS_COUNT; i++) {
        struct audit audit;
        make_clean(&audit);
        const struct hypothesis_verdict *one = decide(&audit, (enum hypothesis)i);
        assert_int_equal(one->verdict, VERDICT_REFUTED);
        assert_int_equal(one->missing, VERDICT_MISSING_NOTHING);
        assert_int_equal(one->checked, 500);
        assert_int_equal(one->finding, -1);
        const struct hypothesis_info *info = hypothesis_info((enum hypothesis)i);
        assert_true(one->bound == (info->exact ? 0.0 : info->bound_each ? 3.0 / 500 : 3.0 / 200));
        assert_int_equal(one->trials, info->exact ? 0 : info->bound_each ? 500 : 200);
        assert_int_equal(audit.verdict.outcome, AUDIT_CLEAN);
        assert_true(audit.verdict.bound == 3.0 / 200);
        check_ranks(&audit.verdict);
    }
}

enum lack {
    LACK_DETECTOR,
    LACK_LEVEL,
    LACK_SELF_TEST,
    LACK_SELF_TEST_PASS,
    LACK_RECORDING,
    LACK_LOST,
    LACK_DROPPED,
    LACK_DAMAGED,
    LACK_FINDINGS,
    LACK_EXERCISE,
    LACK_COVERAGE,
    LACK_END,
    LACK_CRASH,
    LACK_FAILURE,
    LACK_COUNT
};

static const enum verdict_missing lack_means[] = {
    [LACK_DETECTOR] = VERDICT_MISSING_DETECTOR,
    [LACK_LEVEL] = VERDICT_MISSING_LEVEL,
    [LACK_SELF_TEST] = VERDICT_MISSING_SELF_TEST,
    [LACK_SELF_TEST_PASS] = VERDICT_MISSING_SELF_TEST_PASS,
    [LACK_RECORDING] = VERDICT_MISSING_RECORDING,
    [LACK_LOST] = VERDICT_MISSING_RECORDS,
    [LACK_DROPPED] = VERDICT_MISSING_RECORDS,
    [LACK_DAMAGED] = VERDICT_MISSING_RECORDS,
    [LACK_FINDINGS] = VERDICT_MISSING_RECORDS,
    [LACK_EXERCISE] = VERDICT_MISSING_EXERCISE,
    [LACK_COVERAGE] = VERDICT_MISSING_COVERAGE,
    [LACK_END] = VERDICT_MISSING_END,
    [LACK_CRASH] = VERDICT_MISSING_END,
    [LACK_FAILURE] = VERDICT_MISSING_END,
};

/* Takes one thing away; false where the hypothesis does not need it. */
static bool take_away(struct audit *audit, enum hypothesis hypothesis, enum lack lack)
{
    const struct hypothesis_info *info = hypothesis_info(hypothesis);
    struct analysis *analysis = &audit->analysis;
    struct hypothesis_coverage *coverage = &analysis->coverage[hypothesis];
    switch (lack) {
    case LACK_DETECTOR:
        coverage->ran = false;
        return true;
    case LACK_LEVEL:
        if (info->level == AUDIT_OFF)
            return false;
        analysis->level = (enum audit_level)(info->level - 1);
        coverage->ran = false;
        return true;
    case LACK_SELF_TEST:
        audit->input.self_test[hypothesis] = SELF_TEST_ABSENT;
        return true;
    case LACK_SELF_TEST_PASS:
        audit->input.self_test[hypothesis] = SELF_TEST_FAILED;
        return true;
    case LACK_RECORDING:
        audit->input.none_recorded = true;
        return true;
    case LACK_LOST:
        analysis->lost_count = 1;
        return true;
    case LACK_DROPPED:
        analysis->dropped_count = 1;
        return true;
    case LACK_DAMAGED:
        analysis->damaged_count = 1;
        return true;
    case LACK_FINDINGS:
        analysis->findings_dropped = 1;
        return true;
    case LACK_EXERCISE:
        coverage->checked = coverage->total = 0;
        return true;
    case LACK_COVERAGE:
        coverage->checked--;
        return info->exact;
    case LACK_END:
        analysis->closed = false;
        return true;
    case LACK_CRASH:
        audit->input.crash_count = 1;
        return true;
    case LACK_FAILURE:
        audit->input.failure_count = 1;
        return true;
    case LACK_COUNT:
        break;
    }
    return false;
}

static void whatever_is_missing_is_named(void **state)
{
    (void)state;
    for (unsigned i = 0; i < HYPOTHESIS_COUNT; i++)
        for (unsigned lack = 0; lack < LACK_COUNT; lack++) {
            struct audit audit;
            make_clean(&audit);
            if (!take_away(&audit, (enum hypothesis)i, (enum lack)lack))
                continue;
            const struct hypothesis_verdict *one = decide(&audit, (enum hypothesis)i);
            if (one->verdict != VERDICT_INCONCLUSIVE || one->missing != lack_means[lack])
                fail_msg("%s without %u: expected INCONCLUSIVE (%s), found %s (%s)",
                         hypothesis_info((enum hypothesis)i)->slug, lack,
                         verdict_missing_name(lack_means[lack]), verdict_name(one->verdict),
                         verdict_missing_name(one->missing));
            assert_int_equal(audit.verdict.outcome,
                             lack == LACK_FAILURE ? AUDIT_DEFECT_SEEN : AUDIT_INCONCLUSIVE);
        }
}

static void nothing_at_all_is_inconclusive(void **state)
{
    (void)state;
    struct verdict_input input = { 0 };
    struct audit_verdict verdict;
    verdict_decide(&input, &verdict);
    assert_int_equal(verdict.outcome, AUDIT_INCONCLUSIVE);
    for (unsigned i = 0; i < HYPOTHESIS_COUNT; i++)
        assert_int_equal(verdict.hypotheses[i].verdict, VERDICT_INCONCLUSIVE);
    check_ranks(&verdict);
}

/* A rerun that tells the cause from what follows: its root is the root, whatever came first. */
static void the_nearest_has_the_root(void **state)
{
    (void)state;
    struct audit audit;
    make_clean(&audit);
    struct finding symptom = { .hypothesis = HYPOTHESIS_BAD_POINTER, .consequence_of = -1 };
    struct finding cause = { .hypothesis = HYPOTHESIS_SILENT_CORRUPTION, .consequence_of = -1 };
    struct analysis rerun = { .findings = &cause, .finding_count = 1, .closed = true };
    const struct analysis *both[] = { &audit.analysis, &rerun };
    audit.analysis.findings = &symptom;
    audit.analysis.finding_count = 1;
    audit.analysis.root = rerun.root = 0;
    audit.input.analyses = both;
    audit.input.analysis_count = 2;
    verdict_decide(&audit.input, &audit.verdict);
    assert_int_equal(audit.verdict.root_analysis, 0);
    audit.input.nearest = &rerun;
    verdict_decide(&audit.input, &audit.verdict);
    assert_int_equal(audit.verdict.outcome, AUDIT_ROOT_CAUSE);
    assert_int_equal(audit.verdict.root_analysis, 1);
    assert_int_equal(audit.verdict.hypotheses[HYPOTHESIS_SILENT_CORRUPTION].rank, 1);
}

/* A run below the level does not count, and does not spoil one that was at it. */
static void one_run_at_the_level_is_enough(void **state)
{
    (void)state;
    struct audit audit;
    make_clean(&audit);
    struct analysis low = audit.analysis;
    low.level = AUDIT_OFF;
    for (unsigned i = 0; i < HYPOTHESIS_COUNT; i++)
        low.coverage[i] = (struct hypothesis_coverage){ false, 7, 9 };
    const struct analysis *both[] = { &low, &audit.analysis };
    audit.input.analyses = both;
    audit.input.analysis_count = 2;
    const struct hypothesis_verdict *one = decide(&audit, HYPOTHESIS_MISSING_SYNC);
    assert_int_equal(one->verdict, VERDICT_REFUTED);
    assert_int_equal(one->checked, 500);
    /* Where the one at it looks at other things, the level of the other is what is missing. */
    audit.analysis.coverage[HYPOTHESIS_MISSING_SYNC] = (struct hypothesis_coverage){ 0 };
    assert_int_equal(decide(&audit, HYPOTHESIS_MISSING_SYNC)->missing, VERDICT_MISSING_LEVEL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_evidence_refutes),
        cmocka_unit_test(whatever_is_missing_is_named),
        cmocka_unit_test(nothing_at_all_is_inconclusive),
        cmocka_unit_test(the_nearest_has_the_root),
        cmocka_unit_test(one_run_at_the_level_is_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
