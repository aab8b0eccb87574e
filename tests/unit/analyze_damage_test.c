/* Which launches may have damaged a canary: those that ran since it was last seen whole, in any
 * stream; one alone is named only if no other is left. */
#include "analyze_model.h"

enum { MARK = 7 };

/* One byte past the end of a buffer, seen after a launch; launch 0: when the buffer is destroyed.
 */
static struct event damage(struct script *script, uint64_t launch, uint32_t buffer)
{
    struct event event = script_event(script, EVENT_CANARY);
    event.cause_id = launch;
    event.operand = launch ? 1 : EVENT_NO_OPERAND;
    event.canary = (struct event_canary){ .address = BUFFER_ADDRESS(buffer) + BUFFER_BYTES,
                                          .offset = BUFFER_BYTES,
                                          .damaged_bytes = 1,
                                          .buffer_bytes = BUFFER_BYTES };
    event.access_count = 1;
    event.accesses[0] = script_access(buffer, 0, BUFFER_BYTES, EVENT_UPDATE, event.operand);
    return event;
}

static void add_damage(struct script *script, uint64_t launch, uint32_t buffer)
{
    struct event event = damage(script, launch, buffer);
    script_add(script, &event);
}

/* MAIN is ordered after what SIDE was given, or the other way round. */
static void order(struct script *script, uint32_t before, uint32_t after)
{
    script_call(script, EVENT_MARK_RECORD, before, MARK);
    script_call(script, EVENT_MARK_WAIT, after, MARK);
}

/* Ends the script, whose only finding is that one of `count` launches did it. ids: the likeliest
 * first. One launch is the culprit. */
static void expect_ids(struct script *script, const uint64_t *ids, uint32_t count)
{
    const struct analysis *analysis = script_finish(script, NULL);
    assert_int_equal(analysis->finding_count, 1);
    const struct finding *finding = &analysis->findings[0];
    assert_int_equal(finding->hypothesis, HYPOTHESIS_SILENT_CORRUPTION);
    assert_int_equal(finding->certainty, FINDING_DIRECT);
    assert_int_equal(finding->candidate_count, count);
    assert_int_equal(finding->candidates_left_out, 0);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(finding->candidates[i].event_id, ids[i]);
    assert_int_equal(finding_is_culprit(finding), count == 1);
    assert_int_equal(analysis->root, count == 1 ? 0 : -1);
    assert_int_equal(analysis->defect, 0);
    if (count == 1)
        assert_int_equal(finding->cause.event_id, ids[0]);
    script_close(script);
}

static void a_launch_of_another_stream_is_a_candidate(void **state)
{
    (void)state;
    struct script script;
    begin(&script, AUDIT_GUARD);
    uint64_t other = script_launch(&script, SIDE, "rope", WEIGHTS, X);
    uint64_t writer = script_launch(&script, MAIN, "add", WEIGHTS, Y);
    add_damage(&script, writer, Y);
    expect_ids(&script, (uint64_t[]){ writer, other }, 2);
}

static void an_earlier_launch_that_does_not_write_the_buffer_is_a_candidate(void **state)
{
    (void)state;
    struct script script;
    begin(&script, AUDIT_GUARD);
    script_launch(&script, MAIN, "add", WEIGHTS, Y); /* seen whole after it */
    uint64_t other = script_launch(&script, MAIN, "rope", WEIGHTS, X);
    uint64_t writer = script_launch(&script, MAIN, "add", WEIGHTS, Y);
    add_damage(&script, writer, Y);
    expect_ids(&script, (uint64_t[]){ writer, other }, 2);
}

static void what_was_over_when_it_was_seen_whole_is_excluded(void **state)
{
    (void)state;
    struct script script;
    begin(&script, AUDIT_GUARD);
    script_launch(&script, SIDE, "rope", WEIGHTS, X);
    order(&script, SIDE, MAIN);
    script_launch(&script, MAIN, "add", WEIGHTS, Y);
    uint64_t writer = script_launch(&script, MAIN, "add", WEIGHTS, Y);
    add_damage(&script, writer, Y);
    expect_ids(&script, &writer, 1);

    begin(&script, AUDIT_GUARD); /* an earlier check of another stream, in order */
    script_launch(&script, SIDE, "rope", WEIGHTS, X);
    script_launch(&script, SIDE, "add", WEIGHTS, Y);
    order(&script, SIDE, MAIN);
    writer = script_launch(&script, MAIN, "add", WEIGHTS, Y);
    add_damage(&script, writer, Y);
    expect_ids(&script, &writer, 1);

    begin(&script, AUDIT_GUARD); /* and a check that nothing orders before */
    uint64_t rope = script_launch(&script, SIDE, "rope", WEIGHTS, X);
    order(&script, SIDE, MAIN);
    writer = script_launch(&script, MAIN, "add", WEIGHTS, Y);
    uint64_t late = script_launch(&script, SIDE, "norm", WEIGHTS, X);
    add_damage(&script, writer, Y);
    expect_ids(&script, (uint64_t[]){ writer, rope, late }, 3);
}

static void what_began_after_the_damage_was_seen_is_excluded(void **state)
{
    (void)state;
    struct script script;
    begin(&script, AUDIT_GUARD);
    uint64_t writer = script_launch(&script, MAIN, "add", WEIGHTS, Y);
    order(&script, MAIN, SIDE);
    script_launch(&script, SIDE, "rope", WEIGHTS, X);
    script_launch(&script, MAIN, "norm", WEIGHTS, X);
    add_damage(&script, writer, Y);
    const struct analysis *analysis = script_finish(&script, NULL);
    /* The two launches race for X, which is another finding. */
    bool found = false;
    for (size_t i = 0; i < analysis->finding_count; i++) {
        const struct finding *finding = &analysis->findings[i];
        if (finding->hypothesis != HYPOTHESIS_SILENT_CORRUPTION)
            continue;
        found = true;
        assert_int_equal(finding->candidate_count, 1);
        assert_int_equal(finding->cause.event_id, writer);
    }
    assert_true(found);
    script_close(&script);
}

static void what_was_over_before_the_buffer_was_made_is_excluded(void **state)
{
    (void)state;
    struct script script;
    begin(&script, AUDIT_GUARD);
    script_launch(&script, SIDE, "rope", WEIGHTS, X);
    script_sync(&script, SIDE);
    uint64_t queued = script_launch(&script, SIDE, "norm", WEIGHTS, X);
    script_destroy(&script, Y, "y");
    script_buffer(&script, Y, "y", false);
    uint64_t writer = script_launch(&script, MAIN, "add", WEIGHTS, Y);
    add_damage(&script, writer, Y);
    expect_ids(&script, (uint64_t[]){ writer, queued }, 2);
}

static void a_replay_is_its_launches(void **state)
{
    (void)state;
    struct script script;
    begin(&script, AUDIT_GUARD);
    uint64_t graph = script_call(&script, EVENT_GRAPH_BEGIN, MAIN, 0);
    for (uint32_t i = 0; i < 2; i++) {
        struct event record = script_launch_event(&script, MAIN, i ? "add" : "rope");
        record.launch.graph_id = graph;
        script_operand(&record, i ? Y : X, 0, BUFFER_BYTES, EVENT_WRITE);
        script_add(&script, &record);
    }
    struct event end = script_event(&script, EVENT_GRAPH_END);
    end.stream_index = MAIN;
    end.cause_id = graph;
    end.graph.handle = 3;
    script_add(&script, &end);
    struct event replay = script_event(&script, EVENT_GRAPH_REPLAY);
    replay.stream_index = MAIN;
    replay.cause_id = graph;
    replay.graph.handle = 3;
    script_add(&script, &replay); /* the first: whole at its end */
    replay = script_event(&script, EVENT_GRAPH_REPLAY);
    replay.stream_index = MAIN;
    replay.cause_id = graph;
    replay.graph.handle = 3;
    uint64_t second = script_add(&script, &replay);
    add_damage(&script, second, Y);
    const struct analysis *analysis = script_finish(&script, NULL);
    assert_int_equal(analysis->finding_count, 1);
    const struct finding *finding = &analysis->findings[0];
    assert_int_equal(finding->candidate_count, 2);
    assert_string_equal(finding->candidates[0].op, "add"); /* it writes there */
    assert_string_equal(finding->candidates[1].op, "rope");
    assert_int_equal(finding->candidates[0].event_id, second);
    assert_int_equal(finding->candidates[1].event_id, second);
    assert_int_equal(analysis->root, -1);
    script_close(&script);
}

static void damage_seen_at_the_end_is_of_any_launch_since_the_last_check(void **state)
{
    (void)state;
    struct script script;
    begin(&script, AUDIT_GUARD);
    script_launch(&script, MAIN, "add", WEIGHTS, Y);
    uint64_t rope = script_launch(&script, MAIN, "rope", WEIGHTS, X);
    script_sync(&script, MAIN);
    add_damage(&script, 0, Y);
    expect_ids(&script, &rope, 1);

    begin(&script, AUDIT_GUARD); /* where only the end looks: nothing is known of when */
    uint64_t add = script_launch(&script, MAIN, "add", WEIGHTS, Y);
    rope = script_launch(&script, MAIN, "rope", WEIGHTS, X);
    script_sync(&script, MAIN);
    struct event event = damage(&script, 0, Y);
    event.canary.offset += 64;
    event.canary.address += 64;
    script_add(&script, &event);
    expect_ids(&script, (uint64_t[]){ add, rope }, 2);
}

/* All canaries were checked after the work before, which ran alone. */
static void a_sweep_names_the_launch(void **state)
{
    (void)state;
    struct script script;
    begin(&script, AUDIT_GUARD);
    script_launch(&script, SIDE, "norm", WEIGHTS, Y);
    uint64_t rope = script_launch(&script, MAIN, "rope", WEIGHTS, X);
    struct event event = damage(&script, rope, Y);
    event.flags = EVENT_SWEPT;
    event.operand = EVENT_NO_OPERAND;
    script_add(&script, &event);
    const struct analysis *analysis = script_finish(&script, NULL);
    assert_int_equal(analysis->root, 0);
    assert_true(finding_is_culprit(&analysis->findings[0]));
    assert_int_equal(analysis->findings[0].cause.event_id, rope);
    assert_string_equal(analysis->findings[0].cause.op, "rope");
    assert_string_equal(analysis->findings[0].cause.buffer, "y");
    script_close(&script);
}

/* No culprit where something is missing that could exclude, or have done it. */
static void what_is_missing_leaves_no_culprit(void **state)
{
    (void)state;
    enum { UNSEEN, LATE_START, LOG_LEVEL, MISSING_COUNT };
    for (int missing = 0; missing < MISSING_COUNT; missing++) {
        struct script script;
        if (missing == LATE_START) {
            script_open(&script, AUDIT_GUARD);
            script.id = 100;
            script_buffer(&script, WEIGHTS, "blk.weight", true);
            script_buffer(&script, Y, "y", false);
        } else {
            begin(&script, missing == LOG_LEVEL ? AUDIT_LOG : AUDIT_GUARD);
        }
        if (missing == UNSEEN) { /* a check could not be made */
            struct event event = damage(&script, 0, Y);
            event.canary.damaged_bytes = 0;
            script_add(&script, &event);
        }
        uint64_t writer = script_launch(&script, MAIN, "add", WEIGHTS, Y);
        add_damage(&script, writer, Y);
        const struct analysis *analysis = script_finish(&script, NULL);
        assert_int_equal(analysis->finding_count, 1);
        const struct finding *finding = &analysis->findings[0];
        assert_int_equal(finding->attribution, FINDING_SEEN_AT);
        assert_int_equal(finding->candidate_count, 1);
        assert_int_equal(finding->candidates[0].event_id, writer);
        assert_int_equal(analysis->root, -1);
        assert_int_equal(analysis->defect, 0);
        assert_int_equal(finding->reason, REASON_GAPS);
        script_close(&script);
    }
}

/* Launches that are forgotten may have done it, where nothing shows that they were over. */
static void what_is_forgotten_counts(void **state)
{
    (void)state;
    struct script script;
    begin(&script, AUDIT_GUARD);
    for (uint32_t i = 0; i < 9000; i++)
        script_launch(&script, MAIN, "rope", WEIGHTS, X);
    uint64_t writer = script_launch(&script, MAIN, "add", WEIGHTS, Y);
    add_damage(&script, writer, Y);
    const struct analysis *analysis = script_finish(&script, NULL);
    const struct finding *finding = &analysis->findings[0];
    assert_int_equal(finding->candidates[0].event_id, writer);
    assert_int_equal(finding->candidate_count, FINDING_CANDIDATE_LIMIT);
    assert_int_equal(finding->candidate_count + finding->candidates_left_out, 9001);
    script_close(&script);

    begin(&script, AUDIT_GUARD); /* they were over when the buffer was seen whole */
    for (uint32_t i = 0; i < 9000; i++)
        script_launch(&script, MAIN, "rope", WEIGHTS, X);
    script_launch(&script, MAIN, "add", WEIGHTS, Y);
    writer = script_launch(&script, MAIN, "add", WEIGHTS, Y);
    add_damage(&script, writer, Y);
    expect_ids(&script, &writer, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_launch_of_another_stream_is_a_candidate),
        cmocka_unit_test(an_earlier_launch_that_does_not_write_the_buffer_is_a_candidate),
        cmocka_unit_test(what_was_over_when_it_was_seen_whole_is_excluded),
        cmocka_unit_test(what_began_after_the_damage_was_seen_is_excluded),
        cmocka_unit_test(what_was_over_before_the_buffer_was_made_is_excluded),
        cmocka_unit_test(a_replay_is_its_launches),
        cmocka_unit_test(damage_seen_at_the_end_is_of_any_launch_since_the_last_check),
        cmocka_unit_test(a_sweep_names_the_launch),
        cmocka_unit_test(what_is_missing_leaves_no_culprit),
        cmocka_unit_test(what_is_forgotten_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
