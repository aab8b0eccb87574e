/* Happens-before: which pairs of accesses are ordered and which are not. */
#include "analyze_fixture.h"

#include "analyze/analyze_impl.h"

enum { A = 1, B = 2, C = 3 }; /* buffers and streams */

/* Two buffers, one written by a copy in, and nothing pending. */
static void begin(struct script *script)
{
    script_open(script, AUDIT_LOG);
    for (uint32_t i = A; i <= C; i++) {
        script_buffer(script, i, i == A ? "a" : i == B ? "b" : "c", false);
        script_call(script, EVENT_STREAM_CREATE, i, 0);
        script_copy(script, EVENT_FILL, A, i, 0, BUFFER_BYTES, 0);
    }
    script_sync(script, A);
}

static void end(struct script *script, enum hypothesis hypothesis, uint64_t cause, uint64_t other)
{
    const struct analysis *analysis = script_finish(script, NULL);
    if (!cause) {
        if (analysis->finding_count)
            fail_msg("expected no finding, found %s at event %ju",
                     hypothesis_info(analysis->findings[0].hypothesis)->slug,
                     (uintmax_t)analysis->findings[0].cause.event_id);
    } else {
        CHECK_FINDING(analysis, hypothesis, cause);
        assert_int_equal(find_finding(analysis, hypothesis)->other.event_id, other);
        assert_int_equal(analysis->finding_count, 1);
    }
    script_close(script);
}

static void same_stream_is_ordered(void **state)
{
    (void)state;
    struct script script;
    begin(&script);
    script_launch(&script, A, "write", 0, A);
    script_launch(&script, A, "read", A, B);
    script_launch(&script, A, "write", B, A);
    end(&script, HYPOTHESIS_MISSING_SYNC, 0, 0);
}

static void two_streams_race(void **state)
{
    (void)state;
    struct script script;
    begin(&script);
    uint64_t write = script_launch(&script, A, "write", 0, A);
    uint64_t read = script_launch(&script, B, "read", A, B);
    end(&script, HYPOTHESIS_MISSING_SYNC, read, write);
}

static void write_after_unordered_read_races(void **state)
{
    (void)state;
    struct script script;
    begin(&script);
    uint64_t read = script_launch(&script, A, "read", A, B);
    uint64_t write = script_launch(&script, B, "write", 0, A);
    end(&script, HYPOTHESIS_MISSING_SYNC, write, read);
}

static void two_reads_do_not_race(void **state)
{
    (void)state;
    struct script script;
    begin(&script);
    script_launch(&script, A, "read", A, B);
    script_launch(&script, B, "read", A, C);
    end(&script, HYPOTHESIS_MISSING_SYNC, 0, 0);
}

static void disjoint_bytes_do_not_race(void **state)
{
    (void)state;
    struct script script;
    begin(&script);
    struct event left = script_launch_event(&script, A, "left");
    script_operand(&left, A, 0, 4096, EVENT_WRITE);
    script_add(&script, &left);
    struct event right = script_launch_event(&script, B, "right");
    script_operand(&right, A, 4096, 4096, EVENT_WRITE);
    script_add(&script, &right);
    end(&script, HYPOTHESIS_MISSING_SYNC, 0, 0);
}

static void one_common_byte_races(void **state)
{
    (void)state;
    struct script script;
    begin(&script);
    struct event left = script_launch_event(&script, A, "left");
    script_operand(&left, A, 0, 4097, EVENT_WRITE);
    uint64_t first = script_add(&script, &left);
    struct event right = script_launch_event(&script, B, "right");
    script_operand(&right, A, 4096, 4096, EVENT_READ);
    uint64_t second = script_add(&script, &right);
    const struct analysis *analysis = script_finish(&script, NULL);
    const struct finding *finding = find_finding(analysis, HYPOTHESIS_MISSING_SYNC);
    assert_non_null(finding);
    assert_int_equal(finding->cause.event_id, second);
    assert_int_equal(finding->other.event_id, first);
    assert_int_equal(finding->cause.address, BUFFER_ADDRESS(A) + 4096);
    assert_int_equal(finding->cause.bytes, 1);
    assert_string_equal(finding->cause.buffer, "a");
    script_close(&script);
}

static void mark_orders_two_streams(void **state)
{
    (void)state;
    struct script script;
    begin(&script);
    script_launch(&script, A, "write", 0, A);
    script_call(&script, EVENT_MARK_RECORD, A, 7);
    script_call(&script, EVENT_MARK_WAIT, B, 7);
    script_launch(&script, B, "read", A, B);
    end(&script, HYPOTHESIS_MISSING_SYNC, 0, 0);
}

/* The mark was recorded before the write: waiting for it orders nothing. */
static void mark_recorded_too_early_races(void **state)
{
    (void)state;
    struct script script;
    begin(&script);
    script_call(&script, EVENT_MARK_RECORD, A, 7);
    uint64_t write = script_launch(&script, A, "write", 0, A);
    script_call(&script, EVENT_MARK_WAIT, B, 7);
    uint64_t read = script_launch(&script, B, "read", A, B);
    end(&script, HYPOTHESIS_MISSING_SYNC, read, write);
}

static void chain_of_marks_is_transitive(void **state)
{
    (void)state;
    struct script script;
    begin(&script);
    script_launch(&script, A, "write", 0, A);
    script_call(&script, EVENT_MARK_RECORD, A, 7);
    script_call(&script, EVENT_MARK_WAIT, B, 7);
    script_call(&script, EVENT_MARK_RECORD, B, 8);
    script_call(&script, EVENT_MARK_WAIT, C, 8);
    script_launch(&script, C, "read", A, C);
    end(&script, HYPOTHESIS_MISSING_SYNC, 0, 0);
}

/* The second link is missing: what B waited for, C did not. */
static void broken_chain_races(void **state)
{
    (void)state;
    struct script script;
    begin(&script);
    uint64_t write = script_launch(&script, A, "write", 0, A);
    script_call(&script, EVENT_MARK_RECORD, B, 8);
    script_call(&script, EVENT_MARK_RECORD, A, 7);
    script_call(&script, EVENT_MARK_WAIT, B, 7);
    script_call(&script, EVENT_MARK_WAIT, C, 8);
    uint64_t read = script_launch(&script, C, "read", A, C);
    end(&script, HYPOTHESIS_MISSING_SYNC, read, write);
}

static void recording_again_moves_a_mark(void **state)
{
    (void)state;
    struct script script;
    begin(&script);
    script_call(&script, EVENT_MARK_RECORD, A, 7);
    script_launch(&script, A, "write", 0, A);
    script_call(&script, EVENT_MARK_RECORD, A, 7);
    script_call(&script, EVENT_MARK_WAIT, B, 7);
    script_launch(&script, B, "read", A, B);
    end(&script, HYPOTHESIS_MISSING_SYNC, 0, 0);
}

static void host_waits_order(void **state)
{
    (void)state;
    enum event_kind waits[] = { EVENT_STREAM_SYNC, EVENT_STREAM_DESTROY, EVENT_MARK_SYNC };
    for (size_t i = 0; i < COUNT_OF(waits); i++) {
        struct script script;
        begin(&script);
        script_launch(&script, A, "write", 0, A);
        script_call(&script, EVENT_MARK_RECORD, A, 7);
        script_call(&script, waits[i], waits[i] == EVENT_MARK_SYNC ? EVENT_NO_STREAM : A,
                    waits[i] == EVENT_MARK_SYNC ? 7 : 0);
        script_launch(&script, B, "read", A, B);
        end(&script, HYPOTHESIS_MISSING_SYNC, 0, 0);
    }
}

/* A wait that has not returned orders nothing. */
static void pending_wait_does_not_order(void **state)
{
    (void)state;
    struct script script;
    begin(&script);
    uint64_t write = script_launch(&script, A, "write", 0, A);
    struct event wait = script_event(&script, EVENT_STREAM_SYNC);
    wait.stream_index = A;
    wait.phase = EVENT_BEGIN;
    wait.outcome = EVENT_PENDING;
    wait.end_ns = 0;
    script_add(&script, &wait);
    script.thread = 1; /* another thread goes on */
    uint64_t read = script_launch(&script, B, "read", A, B);
    const struct analysis *analysis = script_finish(&script, NULL);
    CHECK_FINDING(analysis, HYPOTHESIS_MISSING_SYNC, read);
    assert_int_equal(find_finding(analysis, HYPOTHESIS_MISSING_SYNC)->other.event_id, write);
    script_close(&script);
}

static void redeeming_waits_for_the_stream_so_far(void **state)
{
    (void)state;
    struct script script;
    begin(&script);
    script_launch(&script, A, "write", 0, A);
    uint64_t copy = script_copy(&script, EVENT_COPY_OUT, A, A, 0, 64, 1);
    script_redeem(&script, 1, copy, true, 0);
    script_launch(&script, B, "read", A, B);
    uint64_t late = script_launch(&script, A, "late", 0, C);
    uint64_t read = script_launch(&script, B, "read_late", C, B);
    end(&script, HYPOTHESIS_MISSING_SYNC, read, late);
}

static void another_threads_wait_counts_once_it_is_over(void **state)
{
    (void)state;
    struct script script;
    begin(&script);
    script_launch(&script, A, "write", 0, A);
    script_sync(&script, A);
    script.thread = 3;
    script_launch(&script, B, "read", A, B);
    end(&script, HYPOTHESIS_MISSING_SYNC, 0, 0);

    begin(&script);
    uint64_t write = script_launch(&script, A, "write", 0, A);
    struct event wait = script_event(&script, EVENT_STREAM_SYNC);
    wait.stream_index = A;
    wait.end_ns = wait.begin_ns + 100u * SCRIPT_NS; /* still waiting when the other calls */
    script_add(&script, &wait);
    script.thread = 3;
    uint64_t read = script_launch(&script, B, "read", A, B);
    end(&script, HYPOTHESIS_MISSING_SYNC, read, write);
}

/* ---- Frees ---------------------------------------------------------------------------------- */

static void free_after_a_wait_is_fine(void **state)
{
    (void)state;
    struct script script;
    begin(&script);
    script_launch(&script, A, "read", A, B);
    script_sync(&script, A);
    script_destroy(&script, A, "a");
    end(&script, HYPOTHESIS_USE_AFTER_FREE, 0, 0);
}

static void free_of_queued_work_is_found(void **state)
{
    (void)state;
    struct script script;
    begin(&script);
    script_launch(&script, A, "first", A, B);
    uint64_t last = script_launch(&script, A, "last", A, B);
    uint64_t destroyed = script_destroy(&script, A, "a");
    const struct analysis *analysis = script_finish(&script, NULL);
    CHECK_FINDING(analysis, HYPOTHESIS_USE_AFTER_FREE, last);
    const struct finding *finding = find_finding(analysis, HYPOTHESIS_USE_AFTER_FREE);
    assert_int_equal(finding->other.event_id, destroyed);
    assert_int_equal(finding->other.kind, EVENT_BUFFER_DESTROY);
    assert_string_equal(finding->cause.buffer, "a");
    script_close(&script);
}

static void waiting_for_another_stream_is_not_enough(void **state)
{
    (void)state;
    struct script script;
    begin(&script);
    uint64_t use = script_launch(&script, B, "read", A, B);
    script_sync(&script, C);
    uint64_t destroyed = script_destroy(&script, A, "a");
    end(&script, HYPOTHESIS_USE_AFTER_FREE, use, destroyed);
}

/* Two threads: the place of a buffer is given again before its destruction is reported. */
static void late_destruction_spares_the_successor(void **state)
{
    (void)state;
    struct script script;
    begin(&script);
    struct event made = script_event(&script, EVENT_BUFFER_CREATE);
    made.access_count = 1;
    made.accesses[0] = script_access(A, 0, BUFFER_BYTES, EVENT_UPDATE, 0);
    made.accesses[0].generation = 3;
    script_add(&script, &made);
    script_destroy(&script, A, "a"); /* of generation 1 */
    struct event write = script_launch_event(&script, A, "write");
    script_operand(&write, A, 0, BUFFER_BYTES, EVENT_WRITE);
    write.accesses[0].generation = 3;
    uint64_t first = script_add(&script, &write);
    struct event read = script_launch_event(&script, B, "read");
    script_operand(&read, A, 0, BUFFER_BYTES, EVENT_READ);
    read.accesses[0].generation = 3;
    uint64_t second = script_add(&script, &read);
    end(&script, HYPOTHESIS_MISSING_SYNC, second, first);
}

/* ---- Graphs --------------------------------------------------------------------------------- */

/* Records on A a launch that writes A, as graph 5. Returns the graph's id. */
static uint64_t record_graph(struct script *script)
{
    uint64_t graph = script_call(script, EVENT_GRAPH_BEGIN, A, 0);
    script->layer = 4;
    struct event event = script_launch_event(script, A, "write");
    script_operand(&event, A, 0, BUFFER_BYTES, EVENT_WRITE);
    event.launch.graph_id = graph;
    script_add(script, &event);
    script->layer = -1;
    struct event finished = script_event(script, EVENT_GRAPH_END);
    finished.stream_index = A;
    finished.cause_id = graph;
    finished.graph.handle = 5;
    script_add(script, &finished);
    return graph;
}

static uint64_t replay(struct script *script, uint32_t stream, uint64_t graph, uint16_t epoch)
{
    struct event event = script_event(script, EVENT_GRAPH_REPLAY);
    event.stream_index = stream;
    event.graph.handle = 5;
    event.cause_id = graph;
    event.graph.epoch = epoch;
    return script_add(script, &event);
}

static void recording_runs_nothing(void **state)
{
    (void)state;
    struct script script;
    begin(&script);
    record_graph(&script);
    script_launch(&script, B, "read", A, B);
    end(&script, HYPOTHESIS_MISSING_SYNC, 0, 0);
}

static void replay_races_as_its_launches(void **state)
{
    (void)state;
    struct script script;
    begin(&script);
    uint64_t graph = record_graph(&script);
    replay(&script, A, graph, 1);
    script.step = 9;
    uint64_t second = replay(&script, A, graph, 2);
    script.step = -1;
    uint64_t read = script_launch(&script, B, "read", A, B);
    const struct analysis *analysis = script_finish(&script, NULL);
    CHECK_FINDING(analysis, HYPOTHESIS_MISSING_SYNC, read);
    const struct finding *finding = find_finding(analysis, HYPOTHESIS_MISSING_SYNC);
    assert_int_equal(finding->other.event_id, second);
    assert_int_equal(finding->other.node, 1);
    assert_int_equal(finding->other.epoch, 2);
    assert_int_equal(finding->other.scope.layer, 4);
    assert_int_equal(finding->other.scope.step, 9);
    assert_string_equal(finding->other.op, "write");
    script_close(&script);
}

static void replay_is_ordered_by_marks(void **state)
{
    (void)state;
    struct script script;
    begin(&script);
    uint64_t graph = record_graph(&script);
    replay(&script, A, graph, 1);
    script_call(&script, EVENT_MARK_RECORD, A, 7);
    script_call(&script, EVENT_MARK_WAIT, B, 7);
    script_launch(&script, B, "read", A, B);
    end(&script, HYPOTHESIS_MISSING_SYNC, 0, 0);
}

/* ---- Bounds --------------------------------------------------------------------------------- */

/* A long run of a ring buffer, as a cache is: memory stays bounded, nothing is forgotten. */
static void long_runs_forget_nothing(void **state)
{
    (void)state;
    struct script script;
    begin(&script);
    for (uint32_t step = 0; step < 20000; step++) {
        struct event append = script_launch_event(&script, A, "append");
        script_operand(&append, A, (step * 8u) % BUFFER_BYTES, 8, EVENT_WRITE);
        script_add(&script, &append);
        script_launch(&script, A, "attend", A, B);
        script_sync(&script, A);
    }
    const struct analysis *analysis = script_finish(&script, NULL);
    assert_int_equal(analysis->finding_count, 0);
    const struct hypothesis_coverage *coverage = &analysis->coverage[HYPOTHESIS_MISSING_SYNC];
    assert_int_equal(coverage->checked, coverage->total);
    assert_true(coverage->total > 60000);
    script_close(&script);
}

/* Ranges that never settle fill the table: then accesses count as not checked. */
static void what_does_not_fit_is_counted(void **state)
{
    (void)state;
    struct script script;
    begin(&script);
    for (uint32_t i = 0; i < 10000; i++) {
        struct event event = script_launch_event(&script, i % 2 ? A : B, "scatter");
        script_operand(&event, i % 2 ? A : B, (i * 6u) % BUFFER_BYTES, 3, EVENT_WRITE);
        script_add(&script, &event);
    }
    const struct analysis *analysis = script_finish(&script, NULL);
    const struct hypothesis_coverage *coverage = &analysis->coverage[HYPOTHESIS_MISSING_SYNC];
    assert_true(coverage->checked < coverage->total);
    assert_int_equal(analysis->finding_count, 0);
    script_close(&script);
}

/* What was lost may have been the wait, the completion or the release: no claims across it. What
 * comes later is looked at as ever. */
static void nothing_is_claimed_across_a_loss(void **state)
{
    (void)state;
    for (int lost = 0; lost < 2; lost++) {
        struct script script;
        begin(&script);
        uint64_t write = script_launch(&script, A, "write", 0, A);
        struct event first = script_copy_event(&script, EVENT_COPY_IN, A, B, 0, 64, 9);
        first.copy.generation = 5;
        uint64_t copy = script_add(&script, &first);
        if (lost)
            analyze_lost(script.analyzer, 1);
        uint64_t read = script_launch(&script, B, "read", A, C);
        struct event second = script_copy_event(&script, EVENT_COPY_IN, A, B, 64, 64, 9);
        second.copy.generation = 5; /* the same slot */
        script_add(&script, &second);
        const struct analysis *analysis = script_finish(&script, NULL);
        assert_int_equal(analysis->finding_count, lost ? 0 : 2);
        if (!lost) {
            CHECK_FINDING(analysis, HYPOTHESIS_MISSING_SYNC, read);
            assert_int_equal(find_finding(analysis, HYPOTHESIS_MISSING_SYNC)->other.event_id,
                             write);
            assert_int_equal(find_finding(analysis, HYPOTHESIS_STAGING_REUSE)->other.event_id,
                             copy);
        }
        script_close(&script);
    }
    struct script script;
    begin(&script);
    analyze_lost(script.analyzer, 1);
    uint64_t write = script_launch(&script, A, "write", 0, A);
    end(&script, HYPOTHESIS_MISSING_SYNC, script_launch(&script, B, "read", A, C), write);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_claimed_across_a_loss),
        cmocka_unit_test(same_stream_is_ordered),
        cmocka_unit_test(two_streams_race),
        cmocka_unit_test(write_after_unordered_read_races),
        cmocka_unit_test(two_reads_do_not_race),
        cmocka_unit_test(disjoint_bytes_do_not_race),
        cmocka_unit_test(one_common_byte_races),
        cmocka_unit_test(mark_orders_two_streams),
        cmocka_unit_test(mark_recorded_too_early_races),
        cmocka_unit_test(chain_of_marks_is_transitive),
        cmocka_unit_test(broken_chain_races),
        cmocka_unit_test(recording_again_moves_a_mark),
        cmocka_unit_test(host_waits_order),
        cmocka_unit_test(pending_wait_does_not_order),
        cmocka_unit_test(redeeming_waits_for_the_stream_so_far),
        cmocka_unit_test(another_threads_wait_counts_once_it_is_over),
        cmocka_unit_test(free_after_a_wait_is_fine),
        cmocka_unit_test(free_of_queued_work_is_found),
        cmocka_unit_test(waiting_for_another_stream_is_not_enough),
        cmocka_unit_test(late_destruction_spares_the_successor),
        cmocka_unit_test(recording_runs_nothing),
        cmocka_unit_test(replay_races_as_its_launches),
        cmocka_unit_test(replay_is_ordered_by_marks),
        cmocka_unit_test(long_runs_forget_nothing),
        cmocka_unit_test(what_does_not_fit_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
