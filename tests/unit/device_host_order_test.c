/* device_host_order_test.c - what is ordered on the host device and what is not. Nothing here is
 * timed: a gate is a word that a kernel waits for, so "still running" is a fact. */
#include "device_fixture.h"

static void give_gate(struct fixture *fixture, struct device_stream stream, uint32_t *open,
                      uint32_t *wait)
{
    struct gate_params params = { open, wait };
    struct device_launch launch = launch_gate(&params);
    CHECK_OK(device_launch(fixture->device, stream, &launch, DEVICE_HERE, &fixture->err),
             &fixture->err);
}

static void give_add(struct fixture *fixture, struct device_stream stream, struct device_view view,
                     float amount)
{
    struct add_params params = { amount };
    struct device_launch launch = launch_add(view, &params);
    CHECK_OK(device_launch(fixture->device, stream, &launch, DEVICE_HERE, &fixture->err),
             &fixture->err);
}

static void check_floats(struct fixture *fixture, struct device_view view, float wanted)
{
    float values[2000];
    assert_true(view.shape.dims[0] <= COUNT_OF(values));
    CHECK_OK(
        device_read(fixture->device, fixture->stream, &view, values, DEVICE_HERE, &fixture->err),
        &fixture->err);
    for (uint64_t i = 0; i < view.shape.dims[0]; i++)
        if (values[i] != wanted)
            fail_msg("value %d: expected %g, found %g", (int)i, (double)wanted, (double)values[i]);
}

/* ---- Tests ---------------------------------------------------------------------------------- */

/* Each kernel waits for the other: only streams that run at the same time end. */
static void test_streams_overlap(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, (struct device_options){ 0 });
    struct device_stream other;
    uint32_t first = 0, second = 0;
    CHECK_OK(device_stream_create(fixture.device, DEVICE_HERE, &other, &fixture.err), &fixture.err);
    give_gate(&fixture, fixture.stream, &first, &second);
    give_gate(&fixture, other, &second, &first);
    CHECK_OK(device_stream_sync(fixture.device, fixture.stream, DEVICE_HERE, &fixture.err),
             &fixture.err);
    CHECK_OK(device_stream_sync(fixture.device, other, DEVICE_HERE, &fixture.err), &fixture.err);
    fixture_close(&fixture);
}

/* Calls return while the kernel before them cannot end: everything is queued. */
static void test_calls_are_asynchronous(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, (struct device_options){ 0 });
    struct device_view x = fixture_floats(&fixture, 1000, "x");
    uint32_t gate = 0;
    struct device_ticket ticket;
    const void *bytes;
    uint64_t count;
    fixture_fill(&fixture, &x, 0);
    give_gate(&fixture, fixture.stream, NULL, &gate);
    give_add(&fixture, fixture.stream, x, 5);
    CHECK_OK(
        device_copy_out(fixture.device, fixture.stream, &x, DEVICE_HERE, &ticket, &fixture.err),
        &fixture.err);
    open_gate(&gate); /* had any call waited, we would not be here */
    CHECK_OK(
        device_ticket_redeem(fixture.device, ticket, DEVICE_HERE, &bytes, &count, &fixture.err),
        &fixture.err);
    assert_int_equal(count, 4000);
    assert_true(((const float *)bytes)[999] == 5);
    device_ticket_release(fixture.device, ticket, DEVICE_HERE);
    fixture_close(&fixture);
}

/* The source of a copy in may be reused at once. */
static void test_copy_in_reads_its_source(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, (struct device_options){ .staging_slot_bytes = 256 });
    struct device_view x = fixture_floats(&fixture, 1000, "x");
    float values[1000];
    uint32_t gate = 0;
    for (size_t i = 0; i < COUNT_OF(values); i++)
        values[i] = 7;
    give_gate(&fixture, fixture.stream, NULL, &gate);
    open_gate(&gate); /* 16 chunks through 16 slots: may wait for the stream */
    CHECK_OK(device_copy_in(fixture.device, fixture.stream, &x, values, sizeof(values), DEVICE_HERE,
                            &fixture.err),
             &fixture.err);
    memset(values, 0, sizeof(values));
    check_floats(&fixture, x, 7);
    fixture_close(&fixture);
}

static void test_marks(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, (struct device_options){ 0 });
    struct device *device = fixture.device;
    struct error *err = &fixture.err;
    struct device_view x = fixture_floats(&fixture, 1000, "x");
    struct device_stream other;
    struct device_mark mark;
    uint32_t gate = 0;
    CHECK_OK(device_stream_create(device, DEVICE_HERE, &other, err), err);
    CHECK_OK(device_mark_create(device, &mark, err), err);
    /* Waiting for a mark that was never recorded does nothing. */
    CHECK_OK(device_mark_wait(device, other, mark, DEVICE_HERE, err), err);
    CHECK_OK(device_mark_sync(device, mark, DEVICE_HERE, err), err);
    fixture_fill(&fixture, &x, 0);
    give_gate(&fixture, fixture.stream, NULL, &gate);
    give_add(&fixture, fixture.stream, x, 3);
    CHECK_OK(device_mark_record(device, fixture.stream, mark, DEVICE_HERE, err), err);
    CHECK_OK(device_mark_wait(device, other, mark, DEVICE_HERE, err), err);
    give_add(&fixture, other, x, 4);
    open_gate(&gate);
    CHECK_OK(device_stream_sync(device, other, DEVICE_HERE, err), err);
    check_floats(&fixture, x, 7);
    /* Destroyed while still queued: the wait keeps it. */
    CHECK_OK(device_mark_wait(device, other, mark, DEVICE_HERE, err), err);
    device_mark_destroy(device, mark);
    CHECK_OK(device_stream_sync(device, other, DEVICE_HERE, err), err);
    fixture_close(&fixture);
}

/* Modes that wait give the bytes after the kernel; plain gives what happens to be there. */
static void test_d2h_modes(void **state)
{
    (void)state;
    for (int mode = 0; mode < DEVICE_D2H_COUNT; mode++) {
        struct fixture fixture;
        fixture_open(&fixture, (struct device_options){ .d2h_mode = (enum device_d2h_mode)mode,
                                                        .staging_slot_count = 1 });
        struct device_view x = fixture_floats(&fixture, 10, "x");
        uint32_t gate = mode != DEVICE_D2H_PLAIN;
        struct device_ticket ticket;
        const void *bytes;
        uint64_t count;
        /* The one slot holds zeros, then is used again. */
        fixture_fill(&fixture, &x, 0);
        float zeros[10];
        if (mode != DEVICE_D2H_PLAIN)
            CHECK_OK(
                device_read(fixture.device, fixture.stream, &x, zeros, DEVICE_HERE, &fixture.err),
                &fixture.err);
        give_gate(&fixture, fixture.stream, NULL, &gate);
        give_add(&fixture, fixture.stream, x, 1);
        CHECK_OK(
            device_copy_out(fixture.device, fixture.stream, &x, DEVICE_HERE, &ticket, &fixture.err),
            &fixture.err);
        CHECK_OK(
            device_ticket_redeem(fixture.device, ticket, DEVICE_HERE, &bytes, &count, &fixture.err),
            &fixture.err);
        const struct event *redeem = recorder_last(&fixture.recorder, EVENT_TICKET_REDEEM);
        assert_int_equal(redeem->ticket.waited, mode != DEVICE_D2H_PLAIN);
        assert_int_equal(redeem->cause_id, recorder_last(&fixture.recorder, EVENT_COPY_OUT)->id);
        /* In plain mode the kernel is provably not done: its gate is closed, and we are here. */
        if (mode != DEVICE_D2H_PLAIN && ((const float *)bytes)[9] != 1)
            fail_msg("%s: stale bytes", device_d2h_mode_name((enum device_d2h_mode)mode));
        open_gate(&gate);
        device_ticket_release(fixture.device, ticket, DEVICE_HERE);
        fixture_close(&fixture);
    }
}

static void test_graph(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, (struct device_options){ .completions = true });
    struct device *device = fixture.device;
    struct error *err = &fixture.err;
    struct device_view x = fixture_floats(&fixture, 1000, "x");
    struct device_view y = fixture_floats(&fixture, 1000, "y");
    struct device_graph graph;
    fixture_fill(&fixture, &x, 0);
    CHECK_OK(device_graph_begin(device, fixture.stream, DEVICE_HERE, err), err);
    give_add(&fixture, fixture.stream, x, 1);
    give_add(&fixture, fixture.stream, x, 2);
    CHECK_OK(device_copy_within(device, fixture.stream, &y, &x, DEVICE_HERE, err), err);
    CHECK_OK(device_graph_end(device, fixture.stream, DEVICE_HERE, &graph, err), err);
    /* Recorded, not run; and marked as part of the graph. */
    check_floats(&fixture, x, 0);
    const struct event *recorded = recorder_last(&fixture.recorder, EVENT_LAUNCH);
    assert_int_equal(event_graph_id(recorded),
                     recorder_last(&fixture.recorder, EVENT_GRAPH_BEGIN)->id);
    for (int i = 0; i < 10; i++)
        CHECK_OK(device_graph_replay(device, fixture.stream, graph, DEVICE_HERE, err), err);
    uint64_t replay_id = recorder_last(&fixture.recorder, EVENT_GRAPH_REPLAY)->id;
    assert_int_equal(recorder_last(&fixture.recorder, EVENT_GRAPH_REPLAY)->graph.epoch, 10);
    /* Destroying waits for what is queued. */
    device_graph_destroy(device, graph, DEVICE_HERE);
    CHECK_OK(device_stream_sync(device, fixture.stream, DEVICE_HERE, err), err);
    assert_int_equal(recorder_last(&fixture.recorder, EVENT_COMPLETION)->cause_id, replay_id);
    check_floats(&fixture, y, 30);
    fixture_close(&fixture);
}

/* Rows with gaps: only the rows are touched. */
static void test_strided(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, (struct device_options){ 0 });
    struct device_view all = fixture_floats(&fixture, 12, "x"), rows = all;
    float values[12], wanted[12] = { 1, 1, 0, 0, 2, 2, 0, 0, 3, 3, 0, 0 };
    static const float source[6] = { 1, 1, 2, 2, 3, 3 };
    fixture_fill(&fixture, &all, 0);
    rows.shape = shape_make(2, (uint64_t[]){ 2, 3 });
    rows.row_stride_bytes = 16;
    CHECK_OK(device_copy_in(fixture.device, fixture.stream, &rows, source, sizeof(source),
                            DEVICE_HERE, &fixture.err),
             &fixture.err);
    CHECK_OK(device_read(fixture.device, fixture.stream, &all, values, DEVICE_HERE, &fixture.err),
             &fixture.err);
    assert_memory_equal(values, wanted, sizeof(values));
    float back[6];
    CHECK_OK(device_read(fixture.device, fixture.stream, &rows, back, DEVICE_HERE, &fixture.err),
             &fixture.err);
    assert_memory_equal(back, source, sizeof(back));
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streams_overlap),
        cmocka_unit_test(test_calls_are_asynchronous),
        cmocka_unit_test(test_copy_in_reads_its_source),
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_d2h_modes),
        cmocka_unit_test(test_graph),
        cmocka_unit_test(test_strided),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
