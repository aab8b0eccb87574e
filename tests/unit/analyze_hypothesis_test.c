/* analyze_hypothesis_test.c - hypotheses that need no order of calls: a clean run has no finding, a
 * refused call goes to its hypothesis, a dead handle or a stale graph names what ended it. More of
 * them: analyze_fault_test.c, analyze_copies_test.c, analyze_contents_test.c. */
#include "analyze_model.h"

/* ---- Clean ---------------------------------------------------------------------------------- */

static void clean_run_has_no_finding(void **state)
{
    (void)state;
    struct script script;
    begin(&script, AUDIT_VERIFY);
    for (uint64_t i = 1; i <= 20; i++) {
        script_run(&script, i, 1);
        run_step(&script, 1, 0x1234);
    }
    const struct analysis *analysis = script_finish(&script, NULL);
    assert_int_equal(analysis->finding_count, 0);
    assert_int_equal(analysis->root, -1);
    assert_int_equal(analysis->iteration_count, 20);
    assert_int_equal(analysis->coverage[HYPOTHESIS_NON_DETERMINISM].checked, 19);
    /* No transfer was hashed and no output scanned: those detectors did not run. */
    assert_false(analysis->coverage[HYPOTHESIS_SILENT_CORRUPTION].ran);
    assert_false(analysis->coverage[HYPOTHESIS_NUMERIC].ran);
    assert_true(analysis->coverage[HYPOTHESIS_MISSING_SYNC].ran);
    script_close(&script);
}

/* ---- Refusals ------------------------------------------------------------------------------- */

static void refusals_go_to_their_hypothesis(void **state)
{
    (void)state;
    static const struct {
        enum event_kind kind;
        enum event_check check;
        uint8_t operand;
        int hypothesis; /* -1: none */
    } rows[] = {
        { EVENT_COPY_OUT, EVENT_CHECK_BYTES, 0, HYPOTHESIS_SIZE_MISMATCH },
        { EVENT_COPY_IN, EVENT_CHECK_VIEW_END, 0, HYPOTHESIS_SIZE_MISMATCH },
        { EVENT_LAUNCH, EVENT_CHECK_VIEW_END, 1, HYPOTHESIS_BAD_POINTER },
        { EVENT_LAUNCH, EVENT_CHECK_ALIGNMENT, 1, HYPOTHESIS_BAD_POINTER },
        { EVENT_COPY_OUT, EVENT_CHECK_ALIGNMENT, 0, HYPOTHESIS_BAD_POINTER },
        { EVENT_LAUNCH, EVENT_CHECK_READ_ONLY, 0, HYPOTHESIS_BAD_POINTER },
        { EVENT_LAUNCH, EVENT_CHECK_HANDLE, 1, HYPOTHESIS_BAD_POINTER },
        { EVENT_MARK_WAIT, EVENT_CHECK_HANDLE, EVENT_NO_OPERAND, HYPOTHESIS_BAD_POINTER },
        { EVENT_LAUNCH, EVENT_CHECK_HANDLE, EVENT_NO_OPERAND, HYPOTHESIS_CONTRACT_BREACH },
        { EVENT_LAUNCH, EVENT_CHECK_GENERATION, 1, HYPOTHESIS_USE_AFTER_FREE },
        { EVENT_COPY_OUT, EVENT_CHECK_GENERATION, 0, HYPOTHESIS_USE_AFTER_FREE },
        { EVENT_LAUNCH, EVENT_CHECK_OPERANDS, 1, HYPOTHESIS_CONTRACT_BREACH },
        { EVENT_LAUNCH, EVENT_CHECK_DTYPE, 1, HYPOTHESIS_CONTRACT_BREACH },
        { EVENT_LAUNCH, EVENT_CHECK_SHAPE, 1, HYPOTHESIS_CONTRACT_BREACH },
        { EVENT_LAUNCH, EVENT_CHECK_STRIDE, 1, HYPOTHESIS_CONTRACT_BREACH },
        { EVENT_LAUNCH, EVENT_CHECK_PARAMETER, 1, HYPOTHESIS_CONTRACT_BREACH },
        { EVENT_LAUNCH, EVENT_CHECK_GEOMETRY, EVENT_NO_OPERAND, HYPOTHESIS_CONTRACT_BREACH },
        { EVENT_TICKET_REDEEM, EVENT_CHECK_TICKET, EVENT_NO_OPERAND, HYPOTHESIS_STAGING_REUSE },
        { EVENT_TICKET_RELEASE, EVENT_CHECK_TICKET, EVENT_NO_OPERAND, HYPOTHESIS_STAGING_REUSE },
        { EVENT_GRAPH_REPLAY, EVENT_CHECK_STALE_GRAPH, EVENT_NO_OPERAND, HYPOTHESIS_STALE_GRAPH },
        { EVENT_COPY_OUT, EVENT_CHECK_STAGING, EVENT_NO_OPERAND, -1 },
        { EVENT_BUFFER_CREATE, EVENT_CHECK_MEMORY, EVENT_NO_OPERAND, -1 },
        { EVENT_STREAM_CREATE, EVENT_CHECK_HANDLE, EVENT_NO_OPERAND, -1 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct script script;
        begin(&script, AUDIT_LOG);
        run_step(&script, 1, 0);
        script.layer = LAYER;
        struct event event = script_event(&script, rows[i].kind);
        event.stream_index = MAIN;
        if (rows[i].kind == EVENT_LAUNCH)
            event_set_text(event.op, sizeof(event.op), "rope");
        uint64_t id = script_refuse(&script, event, rows[i].check, rows[i].operand, 10, 11);
        const struct analysis *analysis = script_finish(&script, NULL);
        if (rows[i].hypothesis < 0) {
            assert_int_equal(analysis->finding_count, 0);
        } else {
            if (analysis->finding_count != 1)
                fail_msg("row %zu: expected 1 finding, found %zu", i, analysis->finding_count);
            CHECK_FINDING(analysis, (enum hypothesis)rows[i].hypothesis, id);
            const struct finding *finding = &analysis->findings[0];
            assert_int_equal(finding->check, rows[i].check);
            assert_int_equal(finding->expected, 10);
            assert_int_equal(finding->found, 11);
            assert_int_equal(finding->cause.scope.layer, LAYER);
            assert_int_equal(analysis->root, 0);
        }
        script_close(&script);
    }
}

static void equal_findings_are_counted(void **state)
{
    (void)state;
    struct script script;
    begin(&script, AUDIT_LOG);
    for (int i = 0; i < 5; i++) {
        script.layer = LAYER + i % 2;
        script_refuse(&script, script_launch_event(&script, MAIN, "rope"), EVENT_CHECK_DTYPE, 1, 1,
                      2);
    }
    const struct analysis *analysis = script_finish(&script, NULL);
    assert_int_equal(analysis->finding_count, 2);
    assert_int_equal(analysis->findings[0].count, 3);
    assert_int_equal(analysis->findings[1].count, 2);
    script_close(&script);
}

static void findings_are_limited_and_the_rest_counted(void **state)
{
    (void)state;
    struct script script = { .tensor = "", .layer = -1, .step = -1 };
    struct analyze_options options = { .level = AUDIT_LOG, .finding_limit = 4 };
    CHECK_OK(analyzer_create(&options, &script.analyzer, &script.err), &script.err);
    for (script.layer = 0; script.layer < 10; script.layer++)
        script_refuse(&script, script_launch_event(&script, MAIN, "rope"), EVENT_CHECK_DTYPE, 1, 1,
                      2);
    const struct analysis *analysis = script_finish(&script, NULL);
    assert_int_equal(analysis->finding_count, 4);
    assert_int_equal(analysis->findings_dropped, 6);
    script_close(&script);
}

/* ---- Lifetime ------------------------------------------------------------------------------- */

static void dead_handle_names_its_destruction(void **state)
{
    (void)state;
    struct script script;
    begin(&script, AUDIT_GUARD);
    run_step(&script, 1, 0);
    uint64_t destroyed = script_destroy(&script, Y, "y");
    script.layer = LAYER;
    uint64_t used = script_refuse(&script, script_launch_event(&script, MAIN, "rope"),
                                  EVENT_CHECK_GENERATION, 0, 1, 2);
    const struct analysis *analysis = script_finish(&script, NULL);
    CHECK_FINDING(analysis, HYPOTHESIS_USE_AFTER_FREE, used);
    assert_int_equal(analysis->findings[0].other.event_id, destroyed);
    assert_string_equal(analysis->findings[0].other.scope.tensor, "y");
    script_close(&script);
}

/* ---- Graphs --------------------------------------------------------------------------------- */

static void stale_graph_names_launch_and_free(void **state)
{
    (void)state;
    struct script script;
    begin(&script, AUDIT_LOG);
    uint64_t graph = script_call(&script, EVENT_GRAPH_BEGIN, MAIN, 0);
    script.layer = LAYER;
    struct event event = script_launch_event(&script, MAIN, "rope");
    script_operand(&event, WEIGHTS, 0, 64, EVENT_READ);
    script_operand(&event, Y, 0, BUFFER_BYTES, EVENT_WRITE);
    event.launch.graph_id = graph;
    script_add(&script, &event);
    script.layer = -1;
    struct event ended = script_event(&script, EVENT_GRAPH_END);
    ended.stream_index = MAIN;
    ended.cause_id = graph;
    ended.graph.handle = 5;
    script_add(&script, &ended);
    uint64_t destroyed = script_destroy(&script, Y, "y");
    struct event replay = script_event(&script, EVENT_GRAPH_REPLAY);
    replay.stream_index = MAIN;
    replay.graph.handle = 5;
    uint64_t id = script_refuse(&script, replay, EVENT_CHECK_STALE_GRAPH, EVENT_NO_OPERAND, 1, 2);
    const struct analysis *analysis = script_finish(&script, NULL);
    CHECK_FINDING(analysis, HYPOTHESIS_STALE_GRAPH, id);
    const struct finding *finding = &analysis->findings[0];
    check_culprit(finding, "rope", LAYER, STEP);
    assert_int_equal(finding->cause.operand, 1);
    assert_string_equal(finding->cause.buffer, "y");
    assert_int_equal(finding->other.event_id, destroyed);
    script_close(&script);
}

static void slugs_name_hypotheses(void **state)
{
    (void)state;
    enum hypothesis back;
    for (unsigned i = 0; i < HYPOTHESIS_COUNT; i++) {
        assert_true(hypothesis_from_slug(hypothesis_info((enum hypothesis)i)->slug, &back));
        assert_int_equal(back, i);
    }
    assert_false(hypothesis_from_slug("nothing", &back));
}

static void reasons_have_names(void **state)
{
    (void)state;
    for (unsigned i = 0; i < REASON_COUNT; i++) {
        const char *name = finding_reason_name((enum finding_reason)i);
        assert_int_equal(finding_reason_from_name(name), i);
    }
    assert_int_equal(finding_reason_from_name("nothing"), REASON_NONE);
}

static void events_out_of_order_are_refused(void **state)
{
    (void)state;
    struct script script;
    begin(&script, AUDIT_LOG);
    struct event event = script_event(&script, EVENT_STREAM_SYNC);
    event.id = 1;
    CHECK_FAILS(analyzer_add(script.analyzer, &event, &script.err), STATUS_BAD_FILE, &script.err);
    event.id = 1000;
    event.kind = 250;
    CHECK_FAILS(analyzer_add(script.analyzer, &event, &script.err), STATUS_BAD_FILE, &script.err);
    script_close(&script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clean_run_has_no_finding),
        cmocka_unit_test(refusals_go_to_their_hypothesis),
        cmocka_unit_test(equal_findings_are_counted),
        cmocka_unit_test(findings_are_limited_and_the_rest_counted),
        cmocka_unit_test(dead_handle_names_its_destruction),
        cmocka_unit_test(stale_graph_names_launch_and_free),
        cmocka_unit_test(slugs_name_hypotheses),
        cmocka_unit_test(reasons_have_names),
        cmocka_unit_test(events_out_of_order_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
