/* analyze_verdict_trials_test.c - how many trials a verdict needs, and what their number bounds:
 * iterations, iterations that are equal, transfers. */
#include "analyze_verdict.h"

static void statistics_need_iterations(void **state)
{
    (void)state;
    struct audit audit;
    make_clean(&audit);
    for (unsigned i = 0; i < HYPOTHESIS_COUNT; i++) {
        enum hypothesis hypothesis = (enum hypothesis)i;
        const struct hypothesis_info *info = hypothesis_info(hypothesis);
        bool exact = info->exact || info->bound_each;
        for (uint64_t count = 1; count < VERDICT_TRIALS_LEAST; count++) {
            audit.input.recorded_count = count;
            const struct hypothesis_verdict *one = decide(&audit, hypothesis);
            assert_int_equal(one->verdict, exact ? VERDICT_REFUTED : VERDICT_NOT_SEEN);
            assert_int_equal(one->missing, VERDICT_MISSING_NOTHING);
            assert_int_equal(one->trials, info->exact ? 0 : exact ? 500 : count);
            /* Up to three iterations 3/n is 1 or more: it bounds nothing. */
            double bound = count < 3 ? 1.0 : 3.0 / (double)count;
            assert_true(one->bound == (info->exact ? 0.0 : exact ? 3.0 / 500 : bound));
            assert_int_equal(audit.verdict.outcome, AUDIT_NOT_SEEN);
            assert_int_equal(audit.verdict.iterations, count);
            assert_true(audit.verdict.bound == bound);
        }
        audit.input.recorded_count = VERDICT_TRIALS_LEAST;
        const struct hypothesis_verdict *one = decide(&audit, hypothesis);
        assert_int_equal(one->verdict, VERDICT_REFUTED);
        assert_true(one->bound == (info->exact ? 0.0 : info->bound_each ? 3.0 / 500 : 0.15));
        assert_int_equal(audit.verdict.outcome, AUDIT_CLEAN);
        assert_true(audit.verdict.bound == 0.15);
        /* Without a single one there was no trial. */
        audit.input.recorded_count = 0;
        one = decide(&audit, hypothesis);
        assert_int_equal(one->verdict, exact ? VERDICT_REFUTED : VERDICT_INCONCLUSIVE);
        assert_int_equal(one->missing, exact               ? VERDICT_MISSING_NOTHING
                                       : info->bound_equal ? VERDICT_MISSING_EQUAL_RUNS
                                                           : VERDICT_MISSING_EXERCISE);
        assert_int_equal(audit.verdict.outcome, AUDIT_INCONCLUSIVE);
    }
}

/* The hypothesis with the fewest trials decides: iterations that no detector could compare do not
 * make an audit clean, and do not make its bound smaller. */
static void the_weakest_hypothesis_decides(void **state)
{
    (void)state;
    struct audit audit;
    make_clean(&audit);
    audit.input.recorded_count = 150;
    audit.analysis.compared_count = 49;
    assert_int_equal(decide(&audit, HYPOTHESIS_NON_DETERMINISM)->trials, 50);
    assert_int_equal(audit.verdict.hypotheses[HYPOTHESIS_KERNEL_FAULT].trials, 150);
    assert_int_equal(audit.verdict.weakest, HYPOTHESIS_NON_DETERMINISM);
    assert_int_equal(audit.verdict.outcome, AUDIT_CLEAN);
    assert_true(audit.verdict.bound == 3.0 / 50);
    audit.analysis.compared_count = 1; /* 148 under stress, and two that were equal */
    assert_int_equal(decide(&audit, HYPOTHESIS_NON_DETERMINISM)->verdict, VERDICT_NOT_SEEN);
    assert_int_equal(audit.verdict.outcome, AUDIT_NOT_SEEN);
    assert_true(audit.verdict.bound == 1.0);
    /* Few verified transfers are too few as well, but bound transfers and not runs. */
    make_clean(&audit);
    audit.analysis.coverage[HYPOTHESIS_SILENT_CORRUPTION] = (struct hypothesis_coverage){ true, 19,
                                                                                          19 };
    verdict_decide(&audit.input, &audit.verdict);
    assert_int_equal(audit.verdict.weakest, HYPOTHESIS_SILENT_CORRUPTION);
    assert_int_equal(audit.verdict.outcome, AUDIT_NOT_SEEN);
    assert_true(audit.verdict.bound == 3.0 / 200);
}

/* If only exact hypotheses are asked about, one run is enough. */
static void exact_hypotheses_need_one_run(void **state)
{
    (void)state;
    struct audit audit;
    make_clean(&audit);
    for (unsigned i = 0; i < HYPOTHESIS_COUNT; i++)
        audit.input.not_asked[i] = !hypothesis_info((enum hypothesis)i)->exact;
    audit.input.recorded_count = 0;
    verdict_decide(&audit.input, &audit.verdict);
    assert_int_equal(audit.verdict.outcome, AUDIT_CLEAN);
    assert_int_equal(audit.verdict.weakest, HYPOTHESIS_COUNT);
    assert_true(audit.verdict.bound == 0.0);
}

/* One iteration: there is nothing to compare it with, and that is what is said. */
static void one_iteration_lacks_an_equal_one(void **state)
{
    (void)state;
    struct audit audit;
    make_clean(&audit);
    audit.analysis.compared_count = 0;
    audit.analysis.coverage[HYPOTHESIS_NON_DETERMINISM] = (struct hypothesis_coverage){ true, 0,
                                                                                        0 };
    audit.input.recorded_count = 1;
    const struct hypothesis_verdict *one = decide(&audit, HYPOTHESIS_NON_DETERMINISM);
    assert_int_equal(one->verdict, VERDICT_INCONCLUSIVE);
    assert_int_equal(one->missing, VERDICT_MISSING_EQUAL_RUNS);
    assert_int_equal(audit.verdict.outcome, AUDIT_NOT_SEEN);
    /* With enough iterations it is a lack like any other. */
    audit.input.recorded_count = 20;
    verdict_decide(&audit.input, &audit.verdict);
    assert_int_equal(audit.verdict.outcome, AUDIT_INCONCLUSIVE);
}

/* Iterations under stress are all different: they say nothing about equal ones. */
static void only_equal_iterations_count(void **state)
{
    (void)state;
    static const struct {
        uint64_t compared;
        enum verdict verdict;
        double bound;
    } rows[] = {
        { 0, VERDICT_INCONCLUSIVE, 0 },
        { 3, VERDICT_NOT_SEEN, 0.75 }, /* and the first one */
        { 18, VERDICT_NOT_SEEN, 3.0 / 19 },
        { 19, VERDICT_REFUTED, 0.15 },
        { 29, VERDICT_REFUTED, 0.1 },
        { 1000, VERDICT_REFUTED, 3.0 / 200 }, /* rounds are not iterations */
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct audit audit;
        make_clean(&audit);
        audit.analysis.compared_count = rows[i].compared;
        const struct hypothesis_verdict *one = decide(&audit, HYPOTHESIS_NON_DETERMINISM);
        assert_int_equal(one->verdict, rows[i].verdict);
        assert_true(one->bound == rows[i].bound);
        assert_int_equal(decide(&audit, HYPOTHESIS_NUMERIC)->verdict, VERDICT_REFUTED);
    }
}

/* Where each transfer is a trial, many iterations do not stand for few transfers. */
static void transfers_bound_themselves(void **state)
{
    (void)state;
    struct audit audit;
    make_clean(&audit);
    audit.analysis.coverage[HYPOTHESIS_SILENT_CORRUPTION] = (struct hypothesis_coverage){ true, 3,
                                                                                          3 };
    const struct hypothesis_verdict *one = decide(&audit, HYPOTHESIS_SILENT_CORRUPTION);
    assert_int_equal(one->verdict, VERDICT_NOT_SEEN);
    assert_int_equal(one->trials, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statistics_need_iterations),
        cmocka_unit_test(the_weakest_hypothesis_decides),
        cmocka_unit_test(exact_hypotheses_need_one_run),
        cmocka_unit_test(one_iteration_lacks_an_equal_one),
        cmocka_unit_test(only_equal_iterations_count),
        cmocka_unit_test(transfers_bound_themselves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
