/* analyze_fault_test.c - faults and traps: the launch that caused one, where it was seen, and what
 * it follows from. Which launches are candidates where none is named: analyze_suspects_test.c. */
#include "analyze_model.h"

/* ---- Lifetime ------------------------------------------------------------------------------- */

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fault_in_freed_memory_is_use_after_free),
        cmocka_unit_test(fault_is_named_where_it_was_and_where_it_was_seen),
        cmocka_unit_test(crumbs_leave_candidates),
        cmocka_unit_test(one_open_crumb_names_the_launch),
        cmocka_unit_test(trap_names_launch_operand_and_where_it_was_seen),
        cmocka_unit_test(trap_after_a_race_is_its_consequence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
