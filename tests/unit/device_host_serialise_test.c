/* device_host_serialise_test.c - a device that waits after every call: a fault shows at the call
 * that made it, and every wait is reported, so that what comes later is ordered by it. */
#include "device_fixture.h"

static void test_waits_are_told(void **state)
{
    (void)state;
    static struct fixture fixture;
    fixture_open(&fixture, (struct device_options){ .serialise = true });
    struct device_view x = fixture_floats(&fixture, 16, "x");
    struct add_params one = { 1 };
    struct device_launch add = launch_add(x, &one);
    fixture_fill(&fixture, &x, 0);
    const struct event *fill = recorder_last(&fixture.recorder, EVENT_FILL);
    const struct event *wait = recorder_last(&fixture.recorder, EVENT_STREAM_SYNC);
    assert_non_null(wait);
    assert_int_equal(wait->cause_id, fill->id);
    CHECK_OK(device_launch(fixture.device, fixture.stream, &add, DEVICE_HERE, &fixture.err),
             &fixture.err);
    wait = recorder_last(&fixture.recorder, EVENT_STREAM_SYNC);
    assert_int_equal(wait->cause_id, recorder_last(&fixture.recorder, EVENT_LAUNCH)->id);
    assert_int_equal(wait->stream_index, fixture.stream.index);
    fixture_close(&fixture);
}

/* Without it the launch is queued, and a later call says so. */
static void test_fault_shows_at_once(void **state)
{
    (void)state;
    static struct fixture fixture;
    struct poke_params past = { 4096 };
    for (int serialise = 0; serialise < 2; serialise++) {
        uint32_t gate = 0;
        fixture_open(&fixture,
                     (struct device_options){ .serialise = serialise == 1, .guards = true });
        struct device_view x = fixture_floats(&fixture, 16, "x");
        struct device_launch poke = launch_poke(x, &past);
        struct gate_params hold = { NULL, &gate };
        struct device_launch wait = launch_gate(&hold);
        if (serialise)
            open_gate(&gate);
        CHECK_OK(device_launch(fixture.device, fixture.stream, &wait, DEVICE_HERE, &fixture.err),
                 &fixture.err);
        enum status status = device_launch(fixture.device, fixture.stream, &poke, DEVICE_HERE,
                                           &fixture.err);
        assert_int_equal(status, serialise ? STATUS_LOST : STATUS_OK);
        open_gate(&gate);
        CHECK_FAILS(device_stream_sync(fixture.device, fixture.stream, DEVICE_HERE, &fixture.err),
                    STATUS_LOST, &fixture.err);
        fixture_close(&fixture);
    }
}

static uint64_t address_of(const struct fixture *fixture, struct device_view view)
{
    for (size_t i = 0; i < fixture->recorder.count; i++) {
        const struct event *event = &fixture->recorder.events[i];
        if (event->kind == EVENT_BUFFER_CREATE &&
            event->accesses[0].buffer_index == view.buffer.index)
            return event->accesses[0].address;
    }
    fail_msg("no such buffer");
    return 0;
}

/* All canaries are checked after each launch and copy: also that of a buffer which the launch does
 * not name, as far away as the canary goes, and each time the damage is that launch's. */
static void test_all_canaries_are_checked(void **state)
{
    (void)state;
    static struct fixture fixture;
    fixture_open(&fixture, (struct device_options){ .serialise = true, .guards = true });
    struct device_view x = fixture_floats(&fixture, 10, "x"), y = fixture_floats(&fixture, 10, "y");
    fixture_fill(&fixture, &y, 0);
    int64_t apart = (int64_t)(address_of(&fixture, y) - address_of(&fixture, x));
    static const int64_t places[] = { 40, -1, -3000 };
    uint64_t launches[COUNT_OF(places)];
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        struct event_scope scope = { (int32_t)i, 5, "poked" };
        struct poke_params where = { apart + places[i] };
        struct device_launch poke = launch_poke(x, &where);
        device_scope_set(fixture.device, fixture.stream, &scope);
        CHECK_OK(device_launch(fixture.device, fixture.stream, &poke, DEVICE_HERE, &fixture.err),
                 &fixture.err);
        launches[i] = recorder_last(&fixture.recorder, EVENT_LAUNCH)->id;
        fixture_fill(&fixture, &y, 0);
    }
    size_t found = 0;
    for (size_t i = 0; i < fixture.recorder.count; i++) {
        const struct event *canary = &fixture.recorder.events[i];
        if (canary->kind != EVENT_CANARY)
            continue;
        assert_true(found < COUNT_OF(places));
        assert_int_equal(canary->cause_id, launches[found]);
        assert_true(canary->canary.offset == places[found]);
        assert_int_equal(canary->accesses[0].buffer_index, y.buffer.index);
        assert_int_equal(canary->flags, EVENT_SWEPT);
        assert_int_equal(canary->operand, EVENT_NO_OPERAND);
        assert_int_equal(canary->canary.damaged_bytes, 1);
        found++;
    }
    assert_int_equal(found, COUNT_OF(places));
    fixture_close(&fixture);
}

/* Only device_check returns the refusal of a destroy: calls after it are not its concern. */
static void test_refused_destroy_fails_no_launch(void **state)
{
    (void)state;
    static struct fixture fixture;
    fixture_open(&fixture, (struct device_options){ .serialise = true, .guards = true });
    struct device_view x = fixture_floats(&fixture, 16, "x"),
                       gone = fixture_floats(&fixture, 16, "y");
    struct add_params one = { 1 };
    struct device_launch add = launch_add(x, &one);
    device_buffer_destroy(fixture.device, gone.buffer, DEVICE_HERE);
    device_buffer_destroy(fixture.device, gone.buffer, DEVICE_HERE);
    CHECK_FAILS(device_check(fixture.device, &fixture.err), STATUS_NOT_FOUND, &fixture.err);
    CHECK_OK(device_launch(fixture.device, fixture.stream, &add, DEVICE_HERE, &fixture.err),
             &fixture.err);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waits_are_told),
        cmocka_unit_test(test_fault_shows_at_once),
        cmocka_unit_test(test_all_canaries_are_checked),
        cmocka_unit_test(test_refused_destroy_fails_no_launch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
