/* analyze_order_graph_test.c - happens-before with graphs: a recorded launch runs where its graph
 * is replayed. */
#include "analyze_order.h"

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
    order_begin(&script);
    record_graph(&script);
    script_launch(&script, B, "read", A, B);
    order_end(&script, HYPOTHESIS_MISSING_SYNC, 0, 0);
}

static void replay_races_as_its_launches(void **state)
{
    (void)state;
    struct script script;
    order_begin(&script);
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
    order_begin(&script);
    uint64_t graph = record_graph(&script);
    replay(&script, A, graph, 1);
    script_call(&script, EVENT_MARK_RECORD, A, 7);
    script_call(&script, EVENT_MARK_WAIT, B, 7);
    script_launch(&script, B, "read", A, B);
    order_end(&script, HYPOTHESIS_MISSING_SYNC, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recording_runs_nothing),
        cmocka_unit_test(replay_races_as_its_launches),
        cmocka_unit_test(replay_is_ordered_by_marks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
