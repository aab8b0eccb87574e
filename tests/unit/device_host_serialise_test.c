/* device_host_serialise_test.c - a device that waits after every call: a fault shows at the call
 * that made it, and every wait is told, so that what comes later is ordered by it. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waits_are_told),
        cmocka_unit_test(test_fault_shows_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
