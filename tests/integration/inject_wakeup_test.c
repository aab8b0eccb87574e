/* inject_wakeup_test.c - wakeups that are lost: threads and streams that wait for a copy or a mark
 * that is long done, and a device that is closed meanwhile. */
#include "inject_scene.h"

struct redeemer {
    struct scene *scene;
    struct device_ticket ticket;
    enum status status;
    uint32_t done; /* atomic */
};

static void *redeem(void *argument)
{
    struct redeemer *redeemer = argument;
    struct error err;
    const void *bytes;
    uint64_t count;
    redeemer->status = device_ticket_redeem(redeemer->scene->fixture.device, redeemer->ticket,
                                            DEVICE_HERE, &bytes, &count, &err);
    __atomic_store_n(&redeemer->done, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void pause_ms(long milliseconds)
{
    struct timespec pause = { 0, milliseconds * 1000000L };
    nanosleep(&pause, NULL);
}

/* The redeeming thread hangs although the copy is long done, until the wakeup comes after all: by
 * hand, or because a stream is destroyed. */
static void test_lost_wakeup(void **state)
{
    (void)state;
    static struct scene scene;
    for (int by_hand = 0; by_hand < 2; by_hand++) {
        scene_open(&scene, "lost-wakeup");
        struct fixture *fixture = &scene.fixture;
        struct error *err = &fixture->err;
        struct redeemer redeemer = { .scene = &scene };
        pthread_t thread;
        CHECK_OK(device_copy_out(fixture->device, fixture->stream, &scene.x, DEVICE_HERE,
                                 &redeemer.ticket, err),
                 err);
        assert_int_equal(pthread_create(&thread, NULL, redeem, &redeemer), 0);
        /* The stream itself does not hang. */
        CHECK_OK(device_stream_sync(fixture->device, fixture->stream, DEVICE_HERE, err), err);
        pause_ms(20);
        assert_false(__atomic_load_n(&redeemer.done, __ATOMIC_ACQUIRE));
        if (by_hand)
            inject_release(scene.inject);
        else
            device_stream_destroy(fixture->device, scene.other, DEVICE_HERE);
        pthread_join(thread, NULL);
        assert_int_equal(redeemer.status, STATUS_OK);
        assert_int_equal(recorder_last(&fixture->recorder, EVENT_COPY_OUT)->id,
                         inject_record(scene.inject)->place.event_id);
        fixture_close(fixture);
    }
}

/* A stream that waits for the lost mark stands still, as does one that waits for that one. */
static void test_lost_mark_stops_streams(void **state)
{
    (void)state;
    static struct scene scene;
    scene_open(&scene, "lost-wakeup@op=mark-record");
    struct fixture *fixture = &scene.fixture;
    struct device *device = fixture->device;
    struct error *err = &fixture->err;
    uint32_t reached[2] = { 0, 0 };
    struct gate_params first = { &reached[0], NULL }, second = { &reached[1], NULL };
    struct device_launch on_other = launch_gate(&first), on_third = launch_gate(&second);
    struct device_stream third;
    CHECK_OK(device_stream_create(device, DEVICE_HERE, &third, err), err);
    CHECK_OK(device_mark_record(device, fixture->stream, scene.there, DEVICE_HERE, err), err);
    CHECK_OK(device_mark_wait(device, scene.other, scene.there, DEVICE_HERE, err), err);
    CHECK_OK(device_launch(device, scene.other, &on_other, DEVICE_HERE, err), err);
    CHECK_OK(device_mark_record(device, scene.other, scene.back, DEVICE_HERE, err), err);
    CHECK_OK(device_mark_wait(device, third, scene.back, DEVICE_HERE, err), err);
    CHECK_OK(device_launch(device, third, &on_third, DEVICE_HERE, err), err);
    pause_ms(20);
    assert_false(__atomic_load_n(&reached[0], __ATOMIC_ACQUIRE));
    assert_false(__atomic_load_n(&reached[1], __ATOMIC_ACQUIRE));
    inject_release(scene.inject);
    CHECK_OK(device_stream_sync(device, third, DEVICE_HERE, err), err);
    assert_true(__atomic_load_n(&reached[0], __ATOMIC_ACQUIRE));
    assert_true(__atomic_load_n(&reached[1], __ATOMIC_ACQUIRE));
    fixture_close(fixture);
}

/* A stream that waits for a lost mark stands still; sync on it hangs until the limit. */
static void test_lost_mark(void **state)
{
    (void)state;
    static struct scene scene;
    scene_open(&scene, "lost-wakeup@op=mark-record,ms=30");
    scene_run(&scene);
    scene_close(&scene);
    assert_int_equal(scene.first.status, STATUS_OK); /* late, not wrong */
    assert_true(is_right(&scene, 0, 0));
    assert_string_equal(inject_record(scene.inject)->place.op, "mark-record");
    assert_true(inject_record(scene.inject)->place.event_id > 0);
    fixture_close(&scene.fixture);
}

/* Closed in the middle of it: nothing hangs. */
static void test_close_while_lost(void **state)
{
    (void)state;
    static const char *const specs[] = { "lost-wakeup", "lost-wakeup@op=mark-record",
                                         "free-while-queued@op=add" };
    for (size_t i = 0; i < COUNT_OF(specs); i++) {
        static struct scene scene;
        scene_open(&scene, specs[i]);
        struct fixture *fixture = &scene.fixture;
        struct error *err = &fixture->err;
        struct device_ticket ticket;
        struct add_params one = { 1 };
        struct device_launch add = launch_add(scene.x, &one);
        CHECK_OK(
            device_copy_out(fixture->device, fixture->stream, &scene.x, DEVICE_HERE, &ticket, err),
            err);
        CHECK_OK(
            device_mark_record(fixture->device, fixture->stream, scene.there, DEVICE_HERE, err),
            err);
        CHECK_OK(device_mark_wait(fixture->device, scene.other, scene.there, DEVICE_HERE, err),
                 err);
        went_wrong(&scene, device_launch(fixture->device, scene.other, &add, DEVICE_HERE, err));
        fixture_close(fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lost_wakeup),
        cmocka_unit_test(test_lost_mark_stops_streams),
        cmocka_unit_test(test_lost_mark),
        cmocka_unit_test(test_close_while_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
