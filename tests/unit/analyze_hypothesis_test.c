/* Every hypothesis: the defect gives the right finding with the right culprit; without the defect
 * there is none. */
#include "analyze_model.h"

#include "base/text.h"

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

/* The fault is in memory that was freed: the free is the root, the fault its consequence. */
static void fault_in_freed_memory_is_use_after_free(void **state)
{
    (void)state;
    struct script script;
    begin(&script, AUDIT_GUARD);
    run_step(&script, 1, 0);
    script_destroy(&script, Y, "y");
    script.layer = LAYER;
    uint64_t launch = script_launch(&script, MAIN, "rope", WEIGHTS, 0);
    script_remark(&script, EVENT_FAULT, launch, EVENT_NO_OPERAND, 0, 1, BUFFER_ADDRESS(Y) + 12);
    const struct analysis *analysis = script_finish(&script, NULL);
    assert_int_equal(analysis->finding_count, 2);
    CHECK_FINDING(analysis, HYPOTHESIS_USE_AFTER_FREE, launch);
    CHECK_FINDING(analysis, HYPOTHESIS_KERNEL_FAULT, launch);
    const struct finding *root = &analysis->findings[analysis->root];
    assert_int_equal(root->hypothesis, HYPOTHESIS_USE_AFTER_FREE);
    assert_string_equal(root->near.freed.name, "y");
    const struct finding *fault = find_finding(analysis, HYPOTHESIS_KERNEL_FAULT);
    assert_int_equal(fault->consequence_of, analysis->root);
    script_close(&script);
}

/* ---- Faults --------------------------------------------------------------------------------- */

/* The seeds' case: RoPE faults, the error surfaces where the logits are read. */
static void fault_is_named_where_it_was_and_where_it_was_seen(void **state)
{
    (void)state;
    struct script script;
    begin(&script, AUDIT_LOG);
    script.layer = LAYER;
    script_launch(&script, MAIN, "norm", WEIGHTS, Y);
    struct event rope = script_launch_event(&script, MAIN, "rope");
    script_operand(&rope, Y, 0, BUFFER_BYTES, EVENT_UPDATE);
    uint64_t launch = script_add(&script, &rope);
    script.layer = -1;
    script_launch(&script, MAIN, "output", Y, LOGITS);
    script.tensor = "logits";
    uint64_t copy = script_copy(&script, EVENT_COPY_OUT, MAIN, LOGITS, 0, 1024, 1);
    script.tensor = "";
    struct event redeem = script_event(&script, EVENT_TICKET_REDEEM);
    redeem.ticket.ticket = 1;
    redeem.scope = (struct event_scope){ -1, -1, "" };
    redeem.outcome = EVENT_FAILED;
    redeem.cause_id = redeem.id + 1;
    script_add(&script, &redeem); /* began before the fault was reported */
    script_remark(&script, EVENT_FAULT, launch, EVENT_NO_OPERAND, 0, 1,
                  BUFFER_ADDRESS(Y) + BUFFER_BYTES + 8);
    /* After that everything is refused and freed without a wait: no findings of their own. */
    script_refuse(&script, script_launch_event(&script, MAIN, "norm"), EVENT_CHECK_LOST,
                  EVENT_NO_OPERAND, 0, launch);
    script_destroy(&script, Y, "y");
    const struct analysis *analysis = script_finish(&script, NULL);
    assert_int_equal(analysis->finding_count, 1);
    assert_true(analysis->device_lost);
    const struct finding *finding = &analysis->findings[0];
    CHECK_FINDING(analysis, HYPOTHESIS_KERNEL_FAULT, launch);
    check_culprit(finding, "rope", LAYER, STEP);
    assert_int_equal(finding->seen.event_id, copy);
    assert_string_equal(finding->near.before.name, "y");
    assert_int_equal(finding->near.before.distance, 9);
    script_close(&script);
}

/* A fault that names no launch: two streams are inside one, so there are two candidates; the
 * likeliest is the one whose memory is near. */
static void crumbs_leave_candidates(void **state)
{
    (void)state;
    struct script script;
    begin(&script, AUDIT_GUARD);
    script_launch(&script, MAIN, "rope", 0, Y);
    uint64_t first = script.id;
    script_launch(&script, SIDE, "matmul", 0, X);
    uint64_t second = script.id;
    static struct crumb_page crumbs;
    memset(&crumbs, 0, sizeof(crumbs));
    crumb_enter(&crumbs.streams[MAIN], first);
    crumb_enter(&crumbs.streams[SIDE], second);
    script_remark(&script, EVENT_FAULT, 0, EVENT_NO_OPERAND, 0, 1,
                  BUFFER_ADDRESS(X) + BUFFER_BYTES + 4);
    const struct analysis *analysis = script_finish(&script, &crumbs);
    const struct finding *finding = find_finding(analysis, HYPOTHESIS_KERNEL_FAULT);
    assert_non_null(finding);
    assert_int_equal(finding->candidate_count, 2);
    assert_int_equal(finding->certainty, FINDING_POSSIBLE);
    assert_int_equal(finding->cause.event_id, second);
    assert_int_equal(analysis->root, -1);
    script_close(&script);
}

static void one_open_crumb_names_the_launch(void **state)
{
    (void)state;
    struct script script;
    begin(&script, AUDIT_GUARD);
    uint64_t done = script_launch(&script, SIDE, "matmul", 0, X);
    uint64_t launch = script_launch(&script, MAIN, "rope", 0, Y);
    static struct crumb_page crumbs;
    memset(&crumbs, 0, sizeof(crumbs));
    crumb_enter(&crumbs.streams[MAIN], launch);
    crumb_enter(&crumbs.streams[SIDE], done);
    crumb_finish(&crumbs.streams[SIDE], done);
    script_remark(&script, EVENT_FAULT, 0, EVENT_NO_OPERAND, 0, 0, 0);
    const struct analysis *analysis = script_finish(&script, &crumbs);
    CHECK_FINDING(analysis, HYPOTHESIS_KERNEL_FAULT, launch);
    assert_int_equal(analysis->findings[0].certainty, FINDING_DIRECT);
    assert_false(analysis->findings[0].near.known);
    script_close(&script);
}

/* ---- Traps ---------------------------------------------------------------------------------- */

static void trap_names_launch_operand_and_where_it_was_seen(void **state)
{
    (void)state;
    struct script script;
    begin(&script, AUDIT_LOG);
    run_step(&script, 1, 0);
    uint64_t rope = run_step(&script, 1, 0);
    uint64_t copy = script.id - 2;
    /* As the device tells it: within the redeem, after its event began. */
    struct event trap = script_event(&script, EVENT_TRAP);
    trap.cause_id = rope;
    trap.operand = 1;
    trap.trap = (struct event_trap){ .index = 0x7F7F7F7F, .bound = 4096 };
    script_add(&script, &trap);
    const struct analysis *analysis = script_finish(&script, NULL);
    CHECK_FINDING(analysis, HYPOTHESIS_BAD_POINTER, rope);
    const struct finding *finding = &analysis->findings[0];
    check_culprit(finding, "rope", LAYER, STEP);
    assert_int_equal(finding->cause.operand, 1);
    assert_string_equal(finding->cause.buffer, "positions");
    assert_int_equal(finding->expected, 4096);
    assert_int_equal(finding->found, 0x7F7F7F7F);
    assert_int_equal(finding->seen.event_id, copy);
    assert_int_equal(finding->order_id, rope);
    script_close(&script);
}

/* The positions were overwritten without order: the trap is what came of it. */
static void trap_after_a_race_is_its_consequence(void **state)
{
    (void)state;
    struct script script;
    begin(&script, AUDIT_LOG);
    script_launch(&script, MAIN, "norm", WEIGHTS, Y);
    uint64_t upload = script_copy(&script, EVENT_COPY_IN, SIDE, POSITIONS, 0, 64, 9);
    script.layer = LAYER;
    struct event event = script_launch_event(&script, MAIN, "rope");
    script_operand(&event, Y, 0, BUFFER_BYTES, EVENT_UPDATE);
    script_operand(&event, POSITIONS, 0, 64, EVENT_READ);
    uint64_t rope = script_add(&script, &event);
    script_remark(&script, EVENT_TRAP, rope, 1, 4096, 99999, 0);
    const struct analysis *analysis = script_finish(&script, NULL);
    CHECK_FINDING(analysis, HYPOTHESIS_MISSING_SYNC, rope);
    const struct finding *root = &analysis->findings[analysis->root];
    assert_int_equal(root->hypothesis, HYPOTHESIS_MISSING_SYNC);
    assert_int_equal(root->other.event_id, upload);
    const struct finding *trap = find_finding(analysis, HYPOTHESIS_BAD_POINTER);
    assert_non_null(trap);
    assert_int_equal(trap->consequence_of, analysis->root);
    script_close(&script);
}

/* ---- Order ---------------------------------------------------------------------------------- */

static void reading_a_ticket_early_is_missing_sync(void **state)
{
    (void)state;
    for (int waited = 0; waited < 3; waited++) {
        struct script script;
        begin(&script, AUDIT_LOG);
        script_launch(&script, MAIN, "output", WEIGHTS, LOGITS);
        script.tensor = "logits";
        uint64_t copy = script_copy(&script, EVENT_COPY_OUT, MAIN, LOGITS, 0, 1024, 1);
        if (waited == 2)
            script_sync(&script, MAIN); /* the host waited by other means */
        script_redeem(&script, 1, copy, waited == 1, 0);
        const struct analysis *analysis = script_finish(&script, NULL);
        if (waited) {
            assert_int_equal(analysis->finding_count, 0);
        } else {
            CHECK_FINDING(analysis, HYPOTHESIS_MISSING_SYNC, copy);
            assert_string_equal(analysis->findings[0].cause.scope.tensor, "logits");
        }
        script_close(&script);
    }
}

static void unordered_copies_are_overlapping_copies(void **state)
{
    (void)state;
    struct script script;
    begin(&script, AUDIT_LOG);
    uint64_t in = script_copy(&script, EVENT_COPY_IN, MAIN, X, 0, 1024, 9);
    uint64_t out = script_copy(&script, EVENT_COPY_OUT, SIDE, X, 512, 1024, 1);
    const struct analysis *analysis = script_finish(&script, NULL);
    CHECK_FINDING(analysis, HYPOTHESIS_OVERLAPPING_COPIES, out);
    const struct finding *finding = find_finding(analysis, HYPOTHESIS_OVERLAPPING_COPIES);
    assert_int_equal(finding->other.event_id, in);
    assert_int_equal(finding->cause.bytes, 512);
    assert_null(find_finding(analysis, HYPOTHESIS_MISSING_SYNC));
    script_close(&script);
}

static void two_copies_out_into_one_slot_overlap(void **state)
{
    (void)state;
    struct script script;
    begin(&script, AUDIT_LOG);
    script_copy(&script, EVENT_FILL, MAIN, X, 0, BUFFER_BYTES, 0);
    script_sync(&script, MAIN);
    uint64_t first = script_copy(&script, EVENT_COPY_OUT, MAIN, X, 0, 1024, 1);
    uint64_t second = script_copy(&script, EVENT_COPY_OUT, SIDE, X, 0, 1024, 1);
    const struct analysis *analysis = script_finish(&script, NULL);
    assert_int_equal(analysis->finding_count, 1);
    CHECK_FINDING(analysis, HYPOTHESIS_OVERLAPPING_COPIES, second);
    assert_int_equal(analysis->findings[0].other.event_id, first);
    script_close(&script);
}

/* ---- Staging -------------------------------------------------------------------------------- */

static void slot_of_an_open_ticket_taken_again(void **state)
{
    (void)state;
    struct script script;
    begin(&script, AUDIT_LOG);
    script_copy(&script, EVENT_FILL, MAIN, X, 0, BUFFER_BYTES, 0);
    script.tensor = "logits";
    uint64_t copy = script_copy(&script, EVENT_COPY_OUT, MAIN, X, 0, 1024, 1);
    script_redeem(&script, 1, copy, true, 0);
    uint64_t again = script_copy(&script, EVENT_COPY_OUT, MAIN, X, 0, 1024, 1);
    const struct analysis *analysis = script_finish(&script, NULL);
    CHECK_FINDING(analysis, HYPOTHESIS_STAGING_REUSE, again);
    assert_int_equal(analysis->findings[0].other.event_id, copy);
    script_close(&script);
}

/* The slot of a copy in: taken again with the generation it had, or before its completion. */
static void slot_of_a_copy_in_rewritten(void **state)
{
    (void)state;
    static const struct {
        uint16_t generation; /* of the second copy; the first has 5 */
        bool completions;    /* are reported at all */
        bool completed;      /* the first copy was */
        bool found;
    } rows[] = {
        { 5, false, false, true },  /* never free in between */
        { 7, false, false, false }, /* free in between, as the device says */
        { 7, true, false, true },   /* the device says so, but it was not done */
        { 7, true, true, false },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct script script;
        begin(&script, AUDIT_LOG);
        struct event before = script_copy_event(&script, EVENT_COPY_IN, MAIN, Y, 0, 64, 3);
        uint64_t earlier = script_add(&script, &before);
        struct event first = script_copy_event(&script, EVENT_COPY_IN, MAIN, X, 0, 64, 9);
        first.copy.generation = 5;
        uint64_t id = script_add(&script, &first);
        if (rows[i].completions)
            script_remark(&script, EVENT_COMPLETION, earlier, EVENT_NO_OPERAND, 0, 0, 0);
        if (rows[i].completed)
            script_remark(&script, EVENT_COMPLETION, id, EVENT_NO_OPERAND, 0, 0, 0);
        struct event second = script_copy_event(&script, EVENT_COPY_IN, MAIN, X, 64, 64, 9);
        second.copy.generation = rows[i].generation;
        uint64_t again = script_add(&script, &second);
        const struct analysis *analysis = script_finish(&script, NULL);
        assert_int_equal(analysis->finding_count, rows[i].found);
        if (rows[i].found)
            CHECK_FINDING(analysis, HYPOTHESIS_STAGING_REUSE, again);
        script_close(&script);
    }
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
        cmocka_unit_test(fault_in_freed_memory_is_use_after_free),
        cmocka_unit_test(fault_is_named_where_it_was_and_where_it_was_seen),
        cmocka_unit_test(crumbs_leave_candidates),
        cmocka_unit_test(one_open_crumb_names_the_launch),
        cmocka_unit_test(trap_names_launch_operand_and_where_it_was_seen),
        cmocka_unit_test(trap_after_a_race_is_its_consequence),
        cmocka_unit_test(reading_a_ticket_early_is_missing_sync),
        cmocka_unit_test(unordered_copies_are_overlapping_copies),
        cmocka_unit_test(two_copies_out_into_one_slot_overlap),
        cmocka_unit_test(slot_of_an_open_ticket_taken_again),
        cmocka_unit_test(slot_of_a_copy_in_rewritten),
        cmocka_unit_test(stale_graph_names_launch_and_free),
        cmocka_unit_test(slugs_name_hypotheses),
        cmocka_unit_test(reasons_have_names),
        cmocka_unit_test(events_out_of_order_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
