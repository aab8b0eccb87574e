/* analyze_live_test.c - the thread that analyses behind the writers: what it does where it cannot
 * follow. All events are there before it starts, so that nothing depends on who is faster. */
#include "test.h"

#include "analyze/analyze.h"
#include "event/flight.h"
#include "temp_folder.h"

#include <stdio.h>
#include <time.h>

struct scene {
    struct temp_folder folder;
    char path[512];
    struct flight *flight;
    struct analyze_live *live;
    struct error err;
};

static void open_scene(struct scene *scene, uint32_t ring)
{
    struct flight_options options = { .record_count = ring, .device = "test", .command = "test" };
    temp_folder_init(&scene->folder);
    snprintf(scene->path, sizeof(scene->path), "%s/live.flight", scene->folder.path);
    CHECK_OK(flight_create(scene->path, &options, &scene->flight, &scene->err), &scene->err);
}

static void start(struct scene *scene)
{
    struct analyze_options options = { .level = AUDIT_LOG };
    CHECK_OK(analyze_live_start(scene->flight, scene->path, &options, &scene->live, &scene->err),
             &scene->err);
}

/* How many records were not seen. */
static uint64_t stop(struct scene *scene)
{
    struct analyzer *analyzer;
    CHECK_OK(analyze_live_stop(scene->live, &analyzer, &scene->err), &scene->err);
    uint64_t lost = analyzer_result(analyzer)->lost_count;
    analyzer_destroy(analyzer);
    flight_close(scene->flight);
    temp_folder_release(&scene->folder);
    return lost;
}

/* Calls with these ids, both included; ended: or begun only. */
static void tell(const struct scene *scene, uint64_t first, uint64_t last, bool ended)
{
    struct event_observer observer = flight_observer(scene->flight);
    for (uint64_t id = first; id <= last; id++) {
        struct event event = { .id = id,
                               .kind = EVENT_STREAM_SYNC,
                               .phase = EVENT_BEGIN,
                               .outcome = EVENT_PENDING,
                               .operand = EVENT_NO_OPERAND };
        observer.notify(observer.context, &event);
        event.phase = EVENT_END;
        event.outcome = EVENT_DONE;
        if (ended)
            observer.notify(observer.context, &event);
    }
}

/* Until it has analysed so much that it left a checkpoint; false if it never does. */
static bool wait_for_checkpoint(struct scene *scene)
{
    struct timespec moment = { .tv_nsec = 10000000 };
    for (int i = 0; i < 3000; i++) {
        struct flight_reader *reader;
        CHECK_OK(flight_open(scene->path, &reader, &scene->err), &scene->err);
        uint64_t analysed = flight_info(reader)->analysed_id;
        flight_reader_close(reader);
        if (analysed)
            return true;
        nanosleep(&moment, NULL);
    }
    return false;
}

/* The ring went round before anybody looked: on with what is there, and it is said how much is
 * missing. */
static void test_overtaken(void **state)
{
    (void)state;
    enum { RING = 1024, COUNT = 5000 };
    struct scene scene;
    open_scene(&scene, RING);
    tell(&scene, 1, COUNT, true);
    start(&scene);
    uint64_t lost = stop(&scene);
    assert_in_range(lost, COUNT - RING, COUNT - RING + RING / 4);
}

/* A call that does not end holds the analysis up, but not for ever: before the ring comes round it
 * is taken as it is. */
static void test_open_call(void **state)
{
    (void)state;
    enum { RING = 16384, COUNT = 12000 };
    struct scene scene;
    open_scene(&scene, RING);
    tell(&scene, 1, 1, false);
    tell(&scene, 2, COUNT, true);
    start(&scene);
    assert_true(wait_for_checkpoint(&scene));
    assert_int_equal(stop(&scene), 1);
}

/* A number that was taken by a thread which never wrote its record. */
static void test_hole(void **state)
{
    (void)state;
    enum { RING = 16384, COUNT = 12000 };
    struct scene scene;
    open_scene(&scene, RING);
    tell(&scene, 2, COUNT, true);
    start(&scene);
    assert_true(wait_for_checkpoint(&scene));
    assert_int_equal(stop(&scene), 1);
}

/* At the end nobody waits: open calls are how the process ended, holes are lost. */
static void test_end(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, 1024);
    tell(&scene, 1, 1, true);
    tell(&scene, 2, 2, false);
    tell(&scene, 4, 9, true);
    start(&scene);
    assert_int_equal(stop(&scene), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_overtaken),
        cmocka_unit_test(test_open_call),
        cmocka_unit_test(test_hole),
        cmocka_unit_test(test_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
