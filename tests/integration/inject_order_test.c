/* inject_order_test.c - faults in which calls are made, when, and on which stream: an observer sees
 * the calls of the real bug, and does not see those that are missing. Lost wakeups are in
 * inject_wakeup_test.c. */
#include "inject_scene.h"

/* ---- Calls that are missing or too many ----------------------------------------------------- */

/* The free is a call of its own, between the launch and the fault. */
static void test_free_while_queued(void **state)
{
    (void)state;
    static struct scene scene;
    scene_plant(&scene, "free-while-queued@op=gather,operand=source");
    struct recorder *recorder = &scene.fixture.recorder;
    const struct inject_record *record = inject_record(scene.inject);
    const struct event *fault = recorder_last(recorder, EVENT_FAULT), *freed = NULL;
    for (size_t i = 0, kept = recorder_kept(recorder); i < kept && !freed; i++)
        if (recorder->events[i].kind == EVENT_BUFFER_DESTROY)
            freed = &recorder->events[i];
    assert_true(freed && fault && freed->outcome == EVENT_DONE);
    assert_int_equal(freed->buffer.buffer_index, scene.source.buffer.index);
    assert_true(record->place.event_id < freed->id && freed->id < fault->id);
    assert_string_equal(record->place.operand, "source");
    assert_int_equal(record->place.operand_index, 2);
    fixture_close(&scene.fixture);
}

static void test_double_free(void **state)
{
    (void)state;
    static struct scene scene;
    scene_open(&scene, "double-free@tensor=index");
    scene_run(&scene);
    scene_close(&scene);
    const struct event *refused = first_refusal(&scene.fixture.recorder);
    assert_true(refused && refused->kind == EVENT_BUFFER_DESTROY);
    assert_int_equal(refused->check, EVENT_CHECK_GENERATION);
    assert_string_equal(inject_record(scene.inject)->place.scope.tensor, "index");
    fixture_close(&scene.fixture);
}

/* The second stream never hears of the mark: there is no event, and the next launch suffers. */
static void test_skipped_wait(void **state)
{
    (void)state;
    static struct scene scene;
    scene_open(&scene, "skipped-wait");
    uint32_t gate = 0;
    struct fixture *fixture = &scene.fixture;
    struct device *device = fixture->device;
    struct error *err = &fixture->err;
    struct event_scope scope = { 4, 2, "y" };
    struct gate_params wait = { NULL, &gate };
    struct device_launch hold = launch_gate(&wait);
    struct add_params one = { 1 };
    struct device_launch add = launch_add(scene.x, &one);
    device_scope_set(device, scene.other, &scope);
    /* Only the gate is overtaken, which touches no memory: the race is the spec's, not a real one.
     */
    CHECK_OK(device_stream_sync(device, fixture->stream, DEVICE_HERE, err), err);
    CHECK_OK(device_launch(device, fixture->stream, &hold, DEVICE_HERE, err), err);
    CHECK_OK(device_mark_record(device, fixture->stream, scene.there, DEVICE_HERE, err), err);
    CHECK_OK(device_mark_wait(device, scene.other, scene.there, DEVICE_HERE, err), err);
    CHECK_OK(device_launch(device, scene.other, &add, DEVICE_HERE, err), err);
    CHECK_OK(device_stream_sync(device, scene.other, DEVICE_HERE, err), err); /* would never end */
    const struct inject_record *record = inject_record(scene.inject);
    assert_true(record->planted);
    assert_string_equal(record->place.op, "mark-wait");
    assert_int_equal(record->place.event_id, 0);
    assert_int_equal(record->place.stream_index, scene.other.index);
    assert_string_equal(record->victim.op, "add");
    assert_int_equal(record->victim.scope.layer, 2);
    assert_int_equal(record->victim.event_id, recorder_last(&fixture->recorder, EVENT_LAUNCH)->id);
    assert_int_equal(count_kind(&fixture->recorder, EVENT_MARK_WAIT), 0);
    open_gate(&gate);
    CHECK_OK(device_stream_sync(device, fixture->stream, DEVICE_HERE, err), err);
    /* The next wait is made. */
    CHECK_OK(device_mark_wait(device, scene.other, scene.there, DEVICE_HERE, err), err);
    assert_int_equal(count_kind(&fixture->recorder, EVENT_MARK_WAIT), 1);
    scene_close(&scene);
    fixture_close(fixture);
}

#ifndef RACES_ARE_REPORTED
static void test_two_streams(void **state)
{
    (void)state;
    static struct scene scene;
    scene_plant(&scene, "two-streams@op=gather");
    struct recorder *recorder = &scene.fixture.recorder;
    const struct inject_record *record = inject_record(scene.inject);
    const struct event *moved = event_by_id(recorder, record->place.event_id);
    check_planted(record, "two-streams", "gather");
    assert_non_null(moved);
    assert_true(moved->stream_index != scene.fixture.stream.index &&
                moved->stream_index != scene.other.index);
    assert_int_equal(moved->stream_index, record->place.stream_index);
    assert_int_equal(moved->scope.layer, PLANTED_LAYER);
    assert_string_equal(record->victim.op, "add");
    assert_int_equal(record->victim.stream_index, scene.fixture.stream.index);
    assert_true(record->victim.event_id > record->place.event_id);
    fixture_close(&scene.fixture);
}
#endif

static void test_skipped_launch(void **state)
{
    (void)state;
    static struct scene scene;
    scene_plant(&scene, "skipped-launch@op=add");
    struct recorder *recorder = &scene.fixture.recorder;
    check_planted(inject_record(scene.inject), "skipped-launch", "add");
    assert_false(is_right(&scene, PLANTED_STEP, PLANTED_LAYER));
    assert_int_equal(count_kind(recorder, EVENT_LAUNCH), 3 * LAYERS * STEPS - 1);
    fixture_close(&scene.fixture);
}

static void test_uninitialised_read(void **state)
{
    (void)state;
    static struct scene scene;
    scene_plant(&scene, "uninitialised-read@op=gather,operand=source");
    struct recorder *recorder = &scene.fixture.recorder;
    const struct inject_record *record = inject_record(scene.inject);
    const struct event *launch = event_by_id(recorder, record->place.event_id);
    const struct event *made = recorder_last(recorder, EVENT_BUFFER_CREATE);
    check_planted(record, "uninitialised-read", "gather");
    assert_non_null(launch);
    assert_string_equal(made->scope.tensor, "source");
    assert_true(made->buffer.buffer_index != scene.source.buffer.index);
    assert_int_equal(launch->accesses[2].buffer_index, made->buffer.buffer_index);
    assert_int_equal(launch->accesses[2].operand, 2);
    assert_false(is_right(&scene, PLANTED_STEP, PLANTED_LAYER));
    fixture_close(&scene.fixture);
}

static void test_stale_graph(void **state)
{
    (void)state;
    static struct scene scene;
    scene_open(&scene, "stale-graph@op=add,layer=2");
    struct fixture *fixture = &scene.fixture;
    struct error *err = &fixture->err;
    struct event_scope scope = { 0, 2, "x" };
    struct add_params one = { 1 };
    struct device_launch add = launch_add(scene.x, &one);
    struct device_graph graph;
    device_scope_set(fixture->device, fixture->stream, &scope);
    CHECK_OK(device_launch(fixture->device, fixture->stream, &add, DEVICE_HERE, err), err);
    /* The fault frees x before the replay: the launch must not be at it then. */
    CHECK_OK(device_stream_sync(fixture->device, fixture->stream, DEVICE_HERE, err), err);
    CHECK_OK(device_graph_begin(fixture->device, fixture->stream, DEVICE_HERE, err), err);
    CHECK_OK(device_launch(fixture->device, fixture->stream, &add, DEVICE_HERE, err), err);
    CHECK_OK(device_graph_end(fixture->device, fixture->stream, DEVICE_HERE, &graph, err), err);
    uint64_t recorded_id = recorder_last(&fixture->recorder, EVENT_LAUNCH)->id;
    CHECK_FAILS(device_graph_replay(fixture->device, fixture->stream, graph, DEVICE_HERE, err),
                STATUS_REFUSED, err);
    const struct event *replay = recorder_last(&fixture->recorder, EVENT_GRAPH_REPLAY);
    const struct inject_record *record = inject_record(scene.inject);
    assert_int_equal(replay->check, EVENT_CHECK_STALE_GRAPH);
    assert_true(record->planted);
    assert_int_equal(record->place.event_id, replay->id);
    assert_string_equal(record->place.op, "graph-replay");
    assert_string_equal(record->victim.op, "add");
    assert_string_equal(record->victim.operand, "x");
    assert_int_equal(record->victim.event_id, recorded_id);
    const struct event *made = recorder_last(&fixture->recorder, EVENT_BUFFER_CREATE);
    assert_string_equal(made->scope.tensor, "x");
    assert_int_equal(made->buffer.bytes, 2 * WIDTH * sizeof(float));
    fixture_close(fixture);
}

/* ---- Slots and copies ----------------------------------------------------------------------- */

/* The copy that follows in the events, of the same kind. */
static const struct event *next_copy(struct recorder *recorder, const struct event *copy)
{
    for (size_t i = 0, kept = recorder_kept(recorder); i < kept; i++)
        if (recorder->events[i].kind == copy->kind && recorder->events[i].id > copy->id)
            return &recorder->events[i];
    return NULL;
}

static void test_slot_rewritten(void **state)
{
    (void)state;
    static struct scene scene;
    scene_plant(&scene, "slot-rewritten");
    struct recorder *recorder = &scene.fixture.recorder;
    const struct inject_record *record = inject_record(scene.inject);
    const struct event *copy = event_by_id(recorder, record->place.event_id);
    check_planted(record, "slot-rewritten", "copy-in");
    check_before(&scene, "slot-rewritten");
    assert_non_null(copy);
    const struct event *again = next_copy(recorder, copy);
    assert_true(again && again->copy.ticket == copy->copy.ticket &&
                again->copy.generation == copy->copy.generation &&
                again->copy.host_address == copy->copy.host_address);
    /* Not because the first was done. */
    assert_true(caused_by(recorder, EVENT_COMPLETION, copy->id)->id > again->id);
    const struct event *hash = caused_by(recorder, EVENT_TRANSFER_HASH, copy->id);
    assert_true(hash && hash->transfer.source_before != hash->transfer.source_after &&
                hash->transfer.destination == hash->transfer.source_after);
    /* What was uploaded is an index that no table has. */
    assert_non_null(recorder_last(recorder, EVENT_TRAP));
    fixture_close(&scene.fixture);
}

static void test_overlapping_d2h(void **state)
{
    (void)state;
    static struct scene scene;
    scene_plant(&scene, "overlapping-d2h");
    struct recorder *recorder = &scene.fixture.recorder;
    const struct inject_record *record = inject_record(scene.inject);
    const struct event *copy = event_by_id(recorder, record->place.event_id);
    check_planted(record, "overlapping-d2h", "copy-out");
    assert_non_null(copy);
    const struct event *second = next_copy(recorder, copy);
    assert_true(second && second->copy.ticket == copy->copy.ticket &&
                second->copy.generation == copy->copy.generation &&
                second->copy.host_address == copy->copy.host_address);
    assert_true(second->stream_index != copy->stream_index);
    assert_true(caused_by(recorder, EVENT_COMPLETION, copy->id)->id > second->id);
    fixture_close(&scene.fixture);
}

static void test_overlapping_copies(void **state)
{
    (void)state;
    static struct scene scene;
    scene_plant(&scene, "overlapping-copies");
    struct recorder *recorder = &scene.fixture.recorder;
    const struct inject_record *record = inject_record(scene.inject);
    const struct event *copy = event_by_id(recorder, record->place.event_id), *in = NULL;
    check_planted(record, "overlapping-copies", "copy-out");
    assert_non_null(copy);
    for (size_t i = 0, kept = recorder_kept(recorder); i < kept && !in; i++)
        if (recorder->events[i].kind == EVENT_COPY_IN && recorder->events[i].id > copy->id)
            in = &recorder->events[i];
    assert_true(in && in->stream_index != copy->stream_index);
    assert_true(in->accesses[0].address == copy->accesses[0].address);
    assert_true(caused_by(recorder, EVENT_COMPLETION, copy->id)->id > in->id);
    assert_false(is_right(&scene, PLANTED_STEP, PLANTED_LAYER));
    fixture_close(&scene.fixture);
}

/* Bytes that do not arrive are seen where they differ from what was there. */
static void test_copies_in(void **state)
{
    (void)state;
    static const char *const specs[] = { "short-copy-in", "stale-copy-in" };
    for (size_t i = 0; i < COUNT_OF(specs); i++) {
        static struct scene scene;
        char spec[64];
        snprintf(spec, sizeof(spec), "%s@tensor=changing", specs[i]);
        scene_open(&scene, spec);
        struct fixture *fixture = &scene.fixture;
        struct event_scope scope = { 0, 0, "changing" };
        float ones[WIDTH];
        for (size_t j = 0; j < WIDTH; j++)
            ones[j] = 1;
        device_scope_set(fixture->device, fixture->stream, &scope);
        CHECK_OK(device_copy_in(fixture->device, fixture->stream, &scene.x, ones, sizeof(ones),
                                DEVICE_HERE, &fixture->err),
                 &fixture->err);
        CHECK_OK(device_stream_sync(fixture->device, fixture->stream, DEVICE_HERE, &fixture->err),
                 &fixture->err);
        const struct event *hash = recorder_last(&fixture->recorder, EVENT_TRANSFER_HASH);
        assert_true(hash->transfer.source_before == hash->transfer.source_after &&
                    hash->transfer.source_before != hash->transfer.destination);
        assert_int_equal(hash->cause_id, inject_record(scene.inject)->place.event_id);
        fixture_close(fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_free_while_queued), cmocka_unit_test(test_double_free),
        cmocka_unit_test(test_skipped_wait),
#ifndef RACES_ARE_REPORTED
        cmocka_unit_test(test_two_streams),
#endif
        cmocka_unit_test(test_skipped_launch),    cmocka_unit_test(test_uninitialised_read),
        cmocka_unit_test(test_stale_graph),       cmocka_unit_test(test_slot_rewritten),
        cmocka_unit_test(test_overlapping_d2h),   cmocka_unit_test(test_overlapping_copies),
        cmocka_unit_test(test_copies_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
