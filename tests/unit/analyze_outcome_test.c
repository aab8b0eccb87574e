/* analyze_outcome_test.c - what findings, flips and planted faults make of an audit's outcome: a
 * root cause needs a culprit, and whatever keeps a run from meaning something keeps it from being
 * clean. */
#include "analyze_verdict.h"

static void direct_finding_confirms(void **state)
{
    (void)state;
    for (unsigned i = 0; i < HYPOTHESIS_COUNT; i++) {
        struct audit audit;
        make_clean(&audit);
        add_finding(&audit, (enum hypothesis)i);
        audit.analysis.root = audit.analysis.defect = 0;
        audit.input.self_test[i] = SELF_TEST_ABSENT; /* what was seen was seen */
        const struct hypothesis_verdict *one = decide(&audit, (enum hypothesis)i);
        assert_int_equal(one->verdict, VERDICT_CONFIRMED);
        assert_int_equal(one->rank, 1);
        assert_int_equal(one->finding, 0);
        assert_int_equal(audit.verdict.outcome, AUDIT_ROOT_CAUSE);
        assert_int_equal(audit.verdict.root_finding, 0);
    }
}

/* Where something was seen is not what did it. */
static void symptom_is_not_a_cause(void **state)
{
    (void)state;
    for (unsigned i = 0; i < HYPOTHESIS_COUNT; i++) {
        struct audit audit;
        make_clean(&audit);
        add_finding(&audit, (enum hypothesis)i)->attribution = FINDING_SEEN_AT;
        audit.analysis.defect = 0;
        const struct hypothesis_verdict *one = decide(&audit, (enum hypothesis)i);
        assert_int_equal(one->verdict, VERDICT_CONFIRMED);
        assert_int_equal(one->rank, 1);
        assert_int_equal(audit.verdict.outcome, AUDIT_DEFECT_SEEN);
        assert_int_equal(audit.verdict.root_finding, -1);
        assert_int_equal(audit.verdict.seen_analysis, 0);
        assert_int_equal(audit.verdict.seen_finding, 0);
        /* A search that ran later and found the culprit decides. */
        struct finding culprit = audit.findings[0];
        culprit.attribution = FINDING_CULPRIT;
        struct analysis search = audit.analysis;
        search.findings = &culprit;
        search.root = 0;
        const struct analysis *both[] = { &audit.analysis, &search };
        audit.input.analyses = both;
        audit.input.analysis_count = 2;
        one = decide(&audit, (enum hypothesis)i);
        assert_int_equal(audit.verdict.outcome, AUDIT_ROOT_CAUSE);
        assert_int_equal(audit.verdict.root_analysis, 1);
        assert_int_equal(audit.verdict.seen_finding, -1);
        assert_int_equal(one->analysis, 1);
    }
}

/* Nothing explains that the device is gone: something is wrong all the same. */
static void lost_device_is_a_defect(void **state)
{
    (void)state;
    struct audit audit;
    make_clean(&audit);
    audit.analysis.device_lost = true;
    verdict_decide(&audit.input, &audit.verdict);
    assert_int_equal(audit.verdict.outcome, AUDIT_DEFECT_SEEN);
    assert_int_equal(audit.verdict.seen_finding, -1);
}

/* Several launches may have made the fault: the finding that lists them shows the defect. */
static void lost_device_is_shown_by_its_candidates(void **state)
{
    (void)state;
    struct audit audit;
    make_clean(&audit);
    audit.analysis.device_lost = true;
    struct finding *finding = add_finding(&audit, HYPOTHESIS_KERNEL_FAULT);
    finding->certainty = FINDING_POSSIBLE;
    finding->attribution = FINDING_SEEN_AT;
    finding->candidate_count = 3;
    verdict_decide(&audit.input, &audit.verdict);
    assert_int_equal(audit.verdict.outcome, AUDIT_DEFECT_SEEN);
    assert_int_equal(audit.verdict.root_finding, -1);
    assert_int_equal(audit.verdict.seen_analysis, 0);
    assert_int_equal(audit.verdict.seen_finding, 0);
}

static void possible_finding_does_not(void **state)
{
    (void)state;
    for (unsigned i = 0; i < HYPOTHESIS_COUNT; i++) {
        struct audit audit;
        make_clean(&audit);
        add_finding(&audit, (enum hypothesis)i)->certainty = FINDING_POSSIBLE;
        const struct hypothesis_verdict *one = decide(&audit, (enum hypothesis)i);
        assert_int_equal(one->verdict, VERDICT_INCONCLUSIVE);
        assert_int_equal(one->missing, i == HYPOTHESIS_RUNTIME_DEFECT ? VERDICT_MISSING_COMPARISON
                                                                      : VERDICT_MISSING_CERTAINTY);
        assert_int_equal(one->rank, 1);
        assert_int_equal(audit.verdict.outcome, AUDIT_INCONCLUSIVE);
    }
}

/* That a kernel faulted is certain, which one is not. */
static void several_candidates_are_no_culprit(void **state)
{
    (void)state;
    struct audit audit;
    make_clean(&audit);
    struct finding *finding = add_finding(&audit, HYPOTHESIS_KERNEL_FAULT);
    finding->candidate_count = 2;
    audit.analysis.defect = 0;
    assert_false(finding_is_culprit(finding));
    assert_int_equal(decide(&audit, HYPOTHESIS_KERNEL_FAULT)->verdict, VERDICT_CONFIRMED);
    assert_int_equal(audit.verdict.outcome, AUDIT_DEFECT_SEEN);
    finding->candidate_count = 1;
    assert_true(finding_is_culprit(finding));
    finding->certainty = FINDING_POSSIBLE;
    assert_false(finding_is_culprit(finding));
}

/* Taking a planted fault away shows that something was wrong, but not that a hypothesis that is
 * only possible describes it. Only a change that is the culprit itself confirms one, and makes a
 * root cause, with the place that the finding names. */
static void what_a_flip_proves(void **state)
{
    (void)state;
    static const struct {
        enum verdict_proof proof;
        enum verdict verdict;
        enum audit_outcome outcome;
        int32_t root_finding;
    } rows[] = {
        { VERDICT_PROOF_NONE, VERDICT_INCONCLUSIVE, AUDIT_INCONCLUSIVE, -1 },
        { VERDICT_PROOF_DEFECT, VERDICT_INCONCLUSIVE, AUDIT_DEFECT_SEEN, -1 },
        { VERDICT_PROOF_CULPRIT, VERDICT_CONFIRMED, AUDIT_ROOT_CAUSE, 0 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct audit audit;
        make_clean(&audit);
        add_finding(&audit, HYPOTHESIS_RUNTIME_DEFECT)->certainty = FINDING_POSSIBLE;
        struct verdict_flip flip = { HYPOTHESIS_RUNTIME_DEFECT, rows[i].proof };
        audit.input.flips = &flip;
        audit.input.flip_count = 1;
        const struct hypothesis_verdict *one = decide(&audit, HYPOTHESIS_RUNTIME_DEFECT);
        assert_int_equal(one->verdict, rows[i].verdict);
        assert_int_equal(audit.verdict.outcome, rows[i].outcome);
        assert_int_equal(audit.verdict.root_finding, rows[i].root_finding);
    }
}

/* No root cause without a finding: the outcome would name no one. */
static void a_flip_alone_is_no_root_cause(void **state)
{
    (void)state;
    for (int seen = 0; seen < 2; seen++) {
        struct audit audit;
        make_clean(&audit);
        if (seen)
            add_finding(&audit, HYPOTHESIS_SILENT_CORRUPTION)->attribution = FINDING_SEEN_AT;
        struct verdict_flip flip = { HYPOTHESIS_RUNTIME_DEFECT, VERDICT_PROOF_CULPRIT };
        audit.input.flips = &flip;
        audit.input.flip_count = 1;
        decide(&audit, HYPOTHESIS_RUNTIME_DEFECT);
        assert_int_equal(audit.verdict.outcome, seen ? AUDIT_ROOT_CAUSE : AUDIT_DEFECT_SEEN);
        assert_int_equal(audit.verdict.root_finding, seen ? 0 : -1);
    }
}

static void excluded_names_its_check_unless_it_happened(void **state)
{
    (void)state;
    struct audit audit;
    make_clean(&audit);
    audit.input.excluded[HYPOTHESIS_STALE_GRAPH] = true;
    audit.input.excluded_by[HYPOTHESIS_STALE_GRAPH] = "no graphs";
    audit.analysis.coverage[HYPOTHESIS_STALE_GRAPH] = (struct hypothesis_coverage){ true, 0, 0 };
    const struct hypothesis_verdict *one = decide(&audit, HYPOTHESIS_STALE_GRAPH);
    assert_int_equal(one->verdict, VERDICT_EXCLUDED);
    assert_string_equal(one->excluded_by, "no graphs");
    assert_int_equal(audit.verdict.outcome, AUDIT_CLEAN);
    add_finding(&audit, HYPOTHESIS_STALE_GRAPH);
    assert_int_equal(decide(&audit, HYPOTHESIS_STALE_GRAPH)->verdict, VERDICT_CONFIRMED);
}

/* The root ranks before what follows from it, and both before what was not found. */
static void root_ranks_first(void **state)
{
    (void)state;
    struct audit audit;
    make_clean(&audit);
    add_finding(&audit, HYPOTHESIS_USE_AFTER_FREE);
    add_finding(&audit, HYPOTHESIS_KERNEL_FAULT)->consequence_of = 0;
    audit.analysis.root = audit.analysis.defect = 0;
    verdict_decide(&audit.input, &audit.verdict);
    assert_int_equal(audit.verdict.hypotheses[HYPOTHESIS_USE_AFTER_FREE].rank, 1);
    assert_int_equal(audit.verdict.hypotheses[HYPOTHESIS_KERNEL_FAULT].rank, 2);
    assert_int_equal(audit.verdict.root_analysis, 0);
    assert_int_equal(audit.verdict.root_finding, 0);
    check_ranks(&audit.verdict);
}

static void expected_fault_that_did_not_come(void **state)
{
    (void)state;
    struct audit audit;
    make_clean(&audit);
    audit.input.fault_expected = true;
    verdict_decide(&audit.input, &audit.verdict);
    assert_int_equal(audit.verdict.outcome, AUDIT_NOT_REPRODUCED);
    assert_true(audit.verdict.bound == 3.0 / 200);
    audit.input.fault_occurred = true; /* it came, and nothing explains it */
    verdict_decide(&audit.input, &audit.verdict);
    assert_int_equal(audit.verdict.outcome, AUDIT_DEFECT_SEEN);
    add_finding(&audit, HYPOTHESIS_BAD_POINTER);
    audit.analysis.root = audit.analysis.defect = 0;
    verdict_decide(&audit.input, &audit.verdict);
    assert_int_equal(audit.verdict.outcome, AUDIT_ROOT_CAUSE);
}

/* What was to be looked for was never there: nothing is said, but what was seen all the same. */
static void fault_that_never_fired_decides_nothing(void **state)
{
    (void)state;
    struct audit audit;
    make_clean(&audit);
    audit.input.unfired_count = 1;
    verdict_decide(&audit.input, &audit.verdict);
    assert_int_equal(audit.verdict.outcome, AUDIT_INCONCLUSIVE);
    audit.input.fault_expected = true;
    verdict_decide(&audit.input, &audit.verdict);
    assert_int_equal(audit.verdict.outcome, AUDIT_INCONCLUSIVE);
    add_finding(&audit, HYPOTHESIS_BAD_POINTER);
    audit.analysis.root = audit.analysis.defect = 0;
    verdict_decide(&audit.input, &audit.verdict);
    assert_int_equal(audit.verdict.outcome, AUDIT_ROOT_CAUSE);
}

/* A fault was there, and no detector saw it: the run cannot be called sound. */
static void fault_that_fired_unseen_is_not_clean(void **state)
{
    (void)state;
    struct audit audit;
    make_clean(&audit);
    verdict_decide(&audit.input, &audit.verdict);
    assert_int_equal(audit.verdict.outcome, AUDIT_CLEAN);
    audit.input.fired_count = 1;
    verdict_decide(&audit.input, &audit.verdict);
    assert_int_equal(audit.verdict.outcome, AUDIT_INCONCLUSIVE);
    add_finding(&audit, HYPOTHESIS_BAD_POINTER);
    audit.analysis.root = audit.analysis.defect = 0;
    verdict_decide(&audit.input, &audit.verdict);
    assert_int_equal(audit.verdict.outcome, AUDIT_ROOT_CAUSE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(direct_finding_confirms),
        cmocka_unit_test(possible_finding_does_not),
        cmocka_unit_test(several_candidates_are_no_culprit),
        cmocka_unit_test(symptom_is_not_a_cause),
        cmocka_unit_test(lost_device_is_a_defect),
        cmocka_unit_test(lost_device_is_shown_by_its_candidates),
        cmocka_unit_test(what_a_flip_proves),
        cmocka_unit_test(a_flip_alone_is_no_root_cause),
        cmocka_unit_test(excluded_names_its_check_unless_it_happened),
        cmocka_unit_test(root_ranks_first),
        cmocka_unit_test(expected_fault_that_did_not_come),
        cmocka_unit_test(fault_that_never_fired_decides_nothing),
        cmocka_unit_test(fault_that_fired_unseen_is_not_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
