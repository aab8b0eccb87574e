/* device_host_blame_test.c - whose a defect is: canaries after each launch, traps and faults name
 * the launch that caused them, also in a graph, and never what only looked at its bytes. */
#include "device_audit.h"

/* The bytes are gone: the copy faults and is named, what looked at them for the audit is not. */
static void test_inspection_never_blamed(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, (struct device_options){
                               .verify = true, .guards = true, .quarantine_bytes = 1 << 20 });
    struct device_view x = fixture_floats(&fixture, 16, "x");
    uint32_t gate = 0;
    struct gate_params wait = { NULL, &gate };
    struct device_launch hold = launch_gate(&wait);
    struct device_ticket ticket;
    const void *bytes;
    uint64_t count;
    fixture_launch(&fixture, &hold);
    CHECK_OK(
        device_copy_out(fixture.device, fixture.stream, &x, DEVICE_HERE, &ticket, &fixture.err),
        &fixture.err);
    device_buffer_destroy(fixture.device, x.buffer, DEVICE_HERE);
    open_gate(&gate);
    CHECK_FAILS(
        device_ticket_redeem(fixture.device, ticket, DEVICE_HERE, &bytes, &count, &fixture.err),
        STATUS_LOST, &fixture.err);
    const struct event *fault = recorder_last(&fixture.recorder, EVENT_FAULT);
    assert_string_equal(fault->op, "copy out");
    assert_int_equal(fault->cause_id, recorder_last(&fixture.recorder, EVENT_COPY_OUT)->id);
    assert_null(recorder_last(&fixture.recorder, EVENT_TRANSFER_HASH));
    fixture_close(&fixture);
}

static void test_canary_of_launch(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, (struct device_options){ .guards = true });
    struct device_view x = fixture_floats(&fixture, 10, "x");
    static const int64_t places[] = { 40, -1, 41, 4 };
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        struct event_scope scope = { (int32_t)i, 5, "poked" };
        struct poke_params where = { places[i] };
        struct device_launch launch = launch_poke(x, &where);
        device_scope_set(fixture.device, fixture.stream, &scope);
        fixture_launch(&fixture, &launch);
    }
    fixture_sync(&fixture);
    for (size_t i = 0; i < 3; i++) {
        const struct event *canary = fixture_event(&fixture, EVENT_CANARY, i);
        assert_non_null(canary);
        assert_int_equal(canary->cause_id, fixture_event(&fixture, EVENT_LAUNCH, i)->id);
        assert_int_equal(canary->scope.step, i);
        assert_int_equal(canary->scope.layer, 5);
        assert_string_equal(canary->op, "poke");
        assert_int_equal(canary->operand, 0);
        assert_int_equal(canary->canary.damaged_bytes, 1);
        assert_true(canary->canary.offset == places[i]);
        assert_int_equal(canary->accesses[0].buffer_index, x.buffer.index);
        assert_int_equal(canary->canary.buffer_bytes, 40);
    }
    /* Put back: the last poke was inside, and destroying finds nothing more. */
    device_buffer_destroy(fixture.device, x.buffer, DEVICE_HERE);
    assert_null(fixture_event(&fixture, EVENT_CANARY, 3));
    fixture_close(&fixture);
}

/* Directly and replayed: the trap says which op it was, of what. */
static void test_trap_is_named(void **state)
{
    (void)state;
    for (int recorded = 0; recorded < 2; recorded++) {
        struct fixture fixture;
        fixture_open(&fixture, (struct device_options){ 0 });
        struct device_view x = fixture_floats(&fixture, 4, "x");
        struct device_view source = fixture_floats(&fixture, 4, "source");
        struct device_view index = fixture_floats(&fixture, 4, "index");
        index.dtype = DTYPE_I32;
        int32_t wrong[4] = { 0, 1, 99, 3 };
        struct device_launch gather = { &gather_contract, NULL, { x, index, source }, 3, 1 };
        struct device_graph graph;
        struct error *err = &fixture.err;
        fixture_copy_in(&fixture, &index, wrong, sizeof(wrong));
        device_scope_set(fixture.device, fixture.stream, &somewhere);
        if (recorded)
            CHECK_OK(device_graph_begin(fixture.device, fixture.stream, DEVICE_HERE, err), err);
        fixture_launch(&fixture, &gather);
        if (recorded) {
            CHECK_OK(device_graph_end(fixture.device, fixture.stream, DEVICE_HERE, &graph, err),
                     err);
            device_scope_set(fixture.device, fixture.stream, NULL);
            /* Enough calls later for the launch to be forgotten but for the graph. */
            for (int i = 0; i < 5000; i++)
                device_run_begin(fixture.device, 0, 0);
            struct device_launch add = launch_add(x, &(struct add_params){ 1 });
            for (int i = 0; i < 4096; i++)
                fixture_launch(&fixture, &add);
            CHECK_OK(device_graph_replay(fixture.device, fixture.stream, graph, DEVICE_HERE, err),
                     err);
        }
        uint64_t launch_id = fixture_event(&fixture, EVENT_LAUNCH, 0)->id;
        /* The recorder is full by now: keep only what comes next. */
        fixture.recorder.count = 0;
        fixture_sync(&fixture);
        const struct event *trap = recorder_last(&fixture.recorder, EVENT_TRAP);
        assert_non_null(trap);
        assert_int_equal(trap->cause_id, launch_id);
        assert_string_equal(trap->op, "gather");
        assert_int_equal(trap->scope.layer, 17);
        assert_int_equal(trap->trap.index, 99);
        if (!recorded)
            assert_int_equal(trap->stream_index, fixture.stream.index);
        fixture_close(&fixture);
    }
}

static void test_fault_in_graph(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, (struct device_options){ .guards = true });
    struct device_view x = fixture_floats(&fixture, 1024, "x");
    struct error *err = &fixture.err;
    struct add_params one = { 1 };
    struct poke_params past = { 4096 };
    struct device_launch add = launch_add(x, &one), poke = launch_poke(x, &past);
    struct device_graph graph;
    CHECK_OK(device_graph_begin(fixture.device, fixture.stream, DEVICE_HERE, err), err);
    fixture_launch(&fixture, &add);
    device_scope_set(fixture.device, fixture.stream, &somewhere);
    fixture_launch(&fixture, &poke);
    CHECK_OK(device_graph_end(fixture.device, fixture.stream, DEVICE_HERE, &graph, err), err);
    device_scope_set(fixture.device, fixture.stream, NULL);
    CHECK_OK(device_graph_replay(fixture.device, fixture.stream, graph, DEVICE_HERE, err), err);
    CHECK_FAILS(device_stream_sync(fixture.device, fixture.stream, DEVICE_HERE, err), STATUS_LOST,
                err);
    const struct event *fault = recorder_last(&fixture.recorder, EVENT_FAULT);
    assert_string_equal(fault->op, "poke");
    assert_int_equal(fault->scope.layer, 17);
    assert_int_equal(fault->cause_id, recorder_last(&fixture.recorder, EVENT_GRAPH_REPLAY)->id);
    assert_int_equal(fault->fault.node_id, fixture_event(&fixture, EVENT_LAUNCH, 1)->id);
    fixture_close(&fixture);
}

static void test_error_state(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, (struct device_options){ .ask_errors = true, .guards = true });
    struct error *err = &fixture.err;
    struct device_view x = fixture_floats(&fixture, 1024, "x");
    struct device_ticket ticket;
    uint8_t bytes[4096];
    fixture_fill(&fixture, &x, 0);
    CHECK_OK(device_read(fixture.device, fixture.stream, &x, bytes, DEVICE_HERE, err), err);
    const struct event *copy = recorder_last(&fixture.recorder, EVENT_COPY_OUT);
    assert_int_equal(copy->copy.state_before, EVENT_STATE_CLEAR);
    assert_int_equal(copy->copy.state_after, EVENT_STATE_CLEAR);
    struct poke_params past = { 4096 };
    struct device_launch poke = launch_poke(x, &past);
    fixture_launch(&fixture, &poke);
    CHECK_FAILS(device_stream_sync(fixture.device, fixture.stream, DEVICE_HERE, err), STATUS_LOST,
                err);
    CHECK_FAILS(device_copy_out(fixture.device, fixture.stream, &x, DEVICE_HERE, &ticket, err),
                STATUS_LOST, err);
    copy = recorder_last(&fixture.recorder, EVENT_COPY_OUT);
    assert_int_equal(copy->outcome, EVENT_REFUSED);
    assert_int_equal(copy->check, EVENT_CHECK_LOST);
    assert_int_equal(copy->cause_id, recorder_last(&fixture.recorder, EVENT_FAULT)->id);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inspection_never_blamed),
        cmocka_unit_test(test_canary_of_launch),
        cmocka_unit_test(test_trap_is_named),
        cmocka_unit_test(test_fault_in_graph),
        cmocka_unit_test(test_error_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
