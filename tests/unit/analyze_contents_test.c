/* analyze_contents_test.c - hypotheses on what memory holds: reads of what was never written,
 * canaries, hashes of transfers and results, values that are not finite. */
#include "analyze_model.h"

/* ---- Contents ------------------------------------------------------------------------------- */

static void reading_what_nobody_wrote(void **state)
{
    (void)state;
    struct script script;
    begin(&script, AUDIT_LOG);
    script_copy(&script, EVENT_COPY_IN, MAIN, X, 0, 1024, 9);
    script.layer = LAYER;
    struct event event = script_launch_event(&script, MAIN, "norm");
    script_operand(&event, X, 512, 1024, EVENT_READ);
    script_operand(&event, WEIGHTS, 0, 64, EVENT_READ); /* imported: written */
    uint64_t id = script_add(&script, &event);
    const struct analysis *analysis = script_finish(&script, NULL);
    assert_int_equal(analysis->finding_count, 1);
    CHECK_FINDING(analysis, HYPOTHESIS_UNINITIALISED_READ, id);
    const struct finding *finding = &analysis->findings[0];
    check_culprit(finding, "norm", LAYER, STEP);
    assert_string_equal(finding->cause.buffer, "x");
    assert_int_equal(finding->cause.address, BUFFER_ADDRESS(X) + 1024);
    assert_int_equal(finding->found, 512);
    script_close(&script);
}

/* What is updated in place is read before it is written. Rows that indices choose are not: the rest
 * of the range may hold anything. */
static void updating_what_nobody_wrote(void **state)
{
    (void)state;
    static const struct {
        const char *op;
        uint8_t mode;
        size_t findings;
    } rows[] = {
        { "add", EVENT_UPDATE, 1 },
        { "kv_append", EVENT_UPDATE | EVENT_SCATTERED, 0 },
        { "copy", EVENT_WRITE, 0 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct script script;
        begin(&script, AUDIT_LOG);
        struct event event = script_launch_event(&script, MAIN, rows[i].op);
        script_operand(&event, X, 256, 1024, rows[i].mode);
        uint64_t id = script_add(&script, &event);
        const struct analysis *analysis = script_finish(&script, NULL);
        if (analysis->finding_count != rows[i].findings)
            fail_msg("%s: expected %zu findings, found %zu", rows[i].op, rows[i].findings,
                     analysis->finding_count);
        if (rows[i].findings) {
            CHECK_FINDING(analysis, HYPOTHESIS_UNINITIALISED_READ, id);
            assert_int_equal(analysis->findings[0].cause.address, BUFFER_ADDRESS(X) + 256);
            assert_int_equal(analysis->findings[0].found, 1024);
        }
        const struct hypothesis_coverage *reads =
            &analysis->coverage[HYPOTHESIS_UNINITIALISED_READ];
        assert_int_equal(reads->total, rows[i].findings);
        assert_int_equal(reads->checked, rows[i].findings);
        script_close(&script);
    }
}

/* Which launches may have done it: analyze_damage_test.c. */
static void damaged_canary_names_the_launch(void **state)
{
    (void)state;
    struct script script;
    begin(&script, AUDIT_GUARD);
    script.layer = LAYER;
    uint64_t launch = script_launch(&script, MAIN, "rope", WEIGHTS, Y);
    struct event canary = script_event(&script, EVENT_CANARY);
    canary.cause_id = launch;
    canary.operand = 1;
    canary.canary = (struct event_canary){ .address = BUFFER_ADDRESS(Y) + BUFFER_BYTES,
                                           .offset = BUFFER_BYTES,
                                           .damaged_bytes = 1,
                                           .buffer_bytes = BUFFER_BYTES };
    canary.access_count = 1;
    canary.accesses[0] = script_access(Y, 0, BUFFER_BYTES, EVENT_WRITE, 1);
    script_add(&script, &canary);
    const struct analysis *analysis = script_finish(&script, NULL);
    CHECK_FINDING(analysis, HYPOTHESIS_SILENT_CORRUPTION, launch);
    check_culprit(&analysis->findings[0], "rope", LAYER, STEP);
    assert_string_equal(analysis->findings[0].cause.buffer, "y");
    assert_int_equal(analysis->findings[0].cause.operand, 1);
    assert_true(finding_is_culprit(&analysis->findings[0]));
    assert_int_equal(analysis->root, 0);
    script_close(&script);

    begin(&script, AUDIT_GUARD); /* seen only when the buffer went, and no launch is known */
    canary = script_event(&script, EVENT_CANARY);
    canary.access_count = 1;
    canary.accesses[0] = script_access(Y, 0, BUFFER_BYTES, EVENT_UPDATE, 0);
    canary.canary.damaged_bytes = 1;
    script_add(&script, &canary);
    analysis = script_finish(&script, NULL);
    assert_int_equal(analysis->findings[0].certainty, FINDING_DIRECT);
    assert_int_equal(analysis->findings[0].attribution, FINDING_SEEN_AT);
    assert_int_equal(analysis->root, -1);
    assert_int_equal(analysis->defect, 0);
    script_close(&script);
}

static void transfer_hashes_are_compared(void **state)
{
    (void)state;
    static const struct {
        uint64_t before, after, landed;
        int hypothesis;
    } rows[] = {
        { 7, 7, 7, -1 },
        { 7, 7, 8, HYPOTHESIS_SILENT_CORRUPTION },
        { 7, 9, 9, HYPOTHESIS_MISSING_SYNC }, /* the origin changed meanwhile */
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct script script;
        begin(&script, AUDIT_VERIFY);
        script.tensor = "logits";
        script_copy(&script, EVENT_FILL, MAIN, X, 0, BUFFER_BYTES, 0);
        uint64_t copy = script_copy(&script, EVENT_COPY_OUT, MAIN, X, 0, 1024, 1);
        script_remark(&script, EVENT_TRANSFER_HASH, copy, EVENT_NO_OPERAND, rows[i].before,
                      rows[i].landed, rows[i].after);
        const struct analysis *analysis = script_finish(&script, NULL);
        assert_true(analysis->coverage[HYPOTHESIS_SILENT_CORRUPTION].ran);
        assert_int_equal(analysis->coverage[HYPOTHESIS_RUNTIME_DEFECT].checked, 1);
        assert_int_equal(analysis->coverage[HYPOTHESIS_RUNTIME_DEFECT].total, 1);
        if (rows[i].hypothesis < 0)
            assert_int_equal(analysis->finding_count, 0);
        else
            CHECK_FINDING(analysis, (enum hypothesis)rows[i].hypothesis, copy);
        const struct finding *defect = find_finding(analysis, HYPOTHESIS_RUNTIME_DEFECT);
        assert_int_equal(defect != NULL, i == 1);
        if (defect) { /* never more than possible, from one run */
            assert_int_equal(defect->certainty, FINDING_POSSIBLE);
            assert_true(defect->consequence_of >= 0);
        }
        script_close(&script);
    }
}

/* ---- Results -------------------------------------------------------------------------------- */

static void unequal_results_of_equal_runs(void **state)
{
    (void)state;
    struct script script;
    begin(&script, AUDIT_LOG);
    for (uint64_t i = 1; i <= 4; i++) {
        script_run(&script, i, i == 4 ? 2 : 1); /* the last one need not be equal */
        run_step(&script, 1, 100);
        script.step++;
        run_step(&script, 1, i == 3 ? 999 : i == 4 ? 555 : 200);
        script.step--;
    }
    uint64_t third = 0;
    const struct analysis *analysis = script_finish(&script, NULL);
    assert_int_equal(analysis->finding_count, 1);
    const struct finding *finding = find_finding(analysis, HYPOTHESIS_NON_DETERMINISM);
    assert_non_null(finding);
    third = finding->cause.iteration;
    assert_int_equal(third, 3);
    assert_int_equal(finding->other.iteration, 1);
    assert_int_equal(finding->cause.scope.step, STEP + 1);
    assert_string_equal(finding->cause.scope.tensor, "logits");
    assert_int_equal(finding->attribution, FINDING_SEEN_AT);
    assert_int_equal(analysis->root, -1);
    assert_int_equal(analysis->defect, 0);
    assert_int_equal(finding->expected, 200);
    assert_int_equal(finding->found, 999);
    assert_int_equal(analysis->iteration_count, 4);
    assert_int_equal(analysis->compared_count,
                     2); /* the first had nothing before it, nor the last */
    script_close(&script);
}

/* NaN made by the norm of LAYER; what follows only passes it on. */
static void first_launch_with_nan_is_named(void **state)
{
    (void)state;
    struct script script;
    begin(&script, AUDIT_LOG);
    static const char *const ops[] = { "embed", "norm", "rope", "matmul" };
    uint64_t ids[COUNT_OF(ops)];
    uint32_t from = WEIGHTS, to = X;
    for (size_t i = 0; i < COUNT_OF(ops); i++) {
        script.layer = i ? LAYER : -1;
        ids[i] = script_launch(&script, MAIN, ops[i], from, to);
        script_remark(&script, EVENT_SCAN, ids[i], 1, 1000, i ? 4 : 0, 0);
        from = to;
        to = to == X ? Y : X;
    }
    const struct analysis *analysis = script_finish(&script, NULL);
    assert_int_equal(analysis->finding_count, 1);
    CHECK_FINDING(analysis, HYPOTHESIS_NUMERIC, ids[1]);
    const struct finding *finding = &analysis->findings[0];
    check_culprit(finding, "norm", LAYER, STEP);
    assert_true(finding_is_culprit(finding));
    assert_int_equal(finding->count, 3);
    assert_int_equal(finding->found, 4);
    script_close(&script);
}

/* A sampled scan: the launch before was not looked at, so it may have made them. */
static void nan_with_unscanned_input_is_only_seen_there(void **state)
{
    (void)state;
    struct script script;
    begin(&script, AUDIT_LOG);
    script_launch(&script, MAIN, "embed", WEIGHTS, X);
    uint64_t norm = script_launch(&script, MAIN, "norm", X, Y);
    script_remark(&script, EVENT_SCAN, norm, 1, 1000, 4, 0);
    const struct analysis *analysis = script_finish(&script, NULL);
    CHECK_FINDING(analysis, HYPOTHESIS_NUMERIC, norm);
    assert_int_equal(analysis->findings[0].attribution, FINDING_SEEN_AT);
    assert_int_equal(analysis->root, -1);
    assert_int_equal(analysis->defect, 0);
    script_close(&script);
}

/* The range was overwritten with finite values in between: what comes later is a new finding. */
static void nan_twice_is_found_twice(void **state)
{
    (void)state;
    struct script script;
    begin(&script, AUDIT_LOG);
    for (script.layer = 0; script.layer < 3; script.layer++) {
        uint64_t norm = script_launch(&script, MAIN, "norm", WEIGHTS, X);
        script_remark(&script, EVENT_SCAN, norm, 1, 1000, script.layer == 1 ? 0 : 4, 0);
        uint64_t rope = script_launch(&script, MAIN, "rope", X, Y);
        script_remark(&script, EVENT_SCAN, rope, 1, 1000, 4, 0);
    }
    const struct analysis *analysis = script_finish(&script, NULL);
    assert_int_equal(analysis->finding_count, 3); /* norm 0, rope 1, norm 2 */
    assert_string_equal(analysis->findings[0].cause.op, "norm");
    assert_string_equal(analysis->findings[1].cause.op, "rope");
    assert_int_equal(analysis->findings[1].cause.scope.layer, 1);
    script_close(&script);
}

/* NaN that comes of a trap reported later: linked when the trap is known. */
static void nan_follows_from_a_trap(void **state)
{
    (void)state;
    struct script script;
    begin(&script, AUDIT_LOG);
    script.layer = LAYER;
    uint64_t rope = script_launch(&script, MAIN, "rope", WEIGHTS, Y);
    script_remark(&script, EVENT_SCAN, rope, 1, 1000, 0, 0);
    uint64_t matmul = script_launch(&script, MAIN, "matmul", Y, X);
    script_remark(&script, EVENT_SCAN, matmul, 1, 1000, 4, 0);
    script_remark(&script, EVENT_TRAP, rope, 0, 4096, 9999, 0);
    const struct analysis *analysis = script_finish(&script, NULL);
    assert_int_equal(analysis->finding_count, 2);
    assert_int_equal(analysis->findings[analysis->root].hypothesis, HYPOTHESIS_BAD_POINTER);
    const struct finding *numeric = find_finding(analysis, HYPOTHESIS_NUMERIC);
    assert_int_equal(numeric->consequence_of, analysis->root);
    script_close(&script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reading_what_nobody_wrote),
        cmocka_unit_test(updating_what_nobody_wrote),
        cmocka_unit_test(damaged_canary_names_the_launch),
        cmocka_unit_test(transfer_hashes_are_compared),
        cmocka_unit_test(unequal_results_of_equal_runs),
        cmocka_unit_test(first_launch_with_nan_is_named),
        cmocka_unit_test(nan_with_unscanned_input_is_only_seen_there),
        cmocka_unit_test(nan_twice_is_found_twice),
        cmocka_unit_test(nan_follows_from_a_trap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
