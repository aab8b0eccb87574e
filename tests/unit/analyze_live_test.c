/* analyze_live_test.c - the thread that analyses what the writers record: what it does where it
 * cannot follow. All events are there before it starts, so that nothing depends on who is faster. */
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

/* At the end there is no wait: open calls are how the process ended, holes are lost. */
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

/* ---- Hangs ---------------------------------------------------------------------------------- */

/* The time goes on in steps, each of which the live analysis has looked at before the next. */
#define STEP_NS UINT64_C(150000000)
#define HANG_LIMIT_NS UINT64_C(1000000000)
#define STEPS 40u /* six seconds */
#define WAIT_ID 3u

enum motion { MOTION_CRUMBS, MOTION_CALLS, MOTION_NONE };

static uint64_t clock_now(void *context)
{
    return __atomic_load_n((uint64_t *)context, __ATOMIC_ACQUIRE);
}

static void start_held(struct scene *scene, uint64_t *now_ns)
{
    struct analyze_options options = { .level = AUDIT_LOG,
                                       .hang_limit_ns = HANG_LIMIT_NS,
                                       .clock = clock_now,
                                       .clock_context = now_ns };
    CHECK_OK(analyze_live_start(scene->flight, scene->path, &options, &scene->live, &scene->err),
             &scene->err);
}

/* One step on, and until it was looked at. */
static void step(const struct scene *scene, uint64_t *now_ns)
{
    const uint64_t *watched_ns = &flight_crumbs(scene->flight)->watched_ns;
    uint64_t next_ns = *now_ns + STEP_NS;
    struct timespec moment = { .tv_nsec = 1000000 };
    __atomic_store_n(now_ns, next_ns, __ATOMIC_RELEASE);
    while (__atomic_load_n(watched_ns, __ATOMIC_ACQUIRE) < next_ns)
        nanosleep(&moment, NULL);
}

static struct event call(uint64_t id, enum event_kind kind, enum event_phase phase, uint64_t at_ns)
{
    return (struct event){ .id = id,
                           .kind = (uint8_t)kind,
                           .begin_ns = at_ns,
                           .end_ns = at_ns,
                           .op = "rope",
                           .phase = (uint8_t)phase,
                           .outcome = phase == EVENT_END ? EVENT_DONE : EVENT_PENDING,
                           .operand = EVENT_NO_OPERAND };
}

/* A wait of six seconds, during which the device, another thread or nothing goes on. */
static void wait_long(enum motion motion, struct analyzer **ret_analyzer)
{
    struct scene scene;
    uint64_t now_ns = 1000000000;
    open_scene(&scene, 1024);
    struct event_observer observer = flight_observer(scene.flight);
    struct crumb_page *crumbs = flight_crumbs(scene.flight);
    crumb_set_order(crumbs, CRUMB_ORDER_EXACT);
    start_held(&scene, &now_ns);
    for (uint64_t id = 1; id < WAIT_ID; id++) {
        struct event launch = call(id, EVENT_LAUNCH, EVENT_END, now_ns);
        observer.notify(observer.context, &launch);
    }
    crumb_enter(&crumbs->streams[0], 2);
    struct event wait = call(WAIT_ID, EVENT_STREAM_SYNC, EVENT_BEGIN, now_ns);
    observer.notify(observer.context, &wait);
    for (uint32_t i = 1; i <= STEPS; i++) {
        if (motion == MOTION_CRUMBS) /* a replay: one call, many nodes */
            __atomic_store_n(&crumbs->streams[0].node, i, __ATOMIC_RELEASE);
        struct event other = call(WAIT_ID + i, EVENT_LAUNCH, EVENT_END, now_ns);
        if (motion == MOTION_CALLS)
            observer.notify(observer.context, &other);
        step(&scene, &now_ns);
    }
    wait.phase = EVENT_END;
    wait.outcome = EVENT_DONE;
    wait.end_ns = now_ns;
    observer.notify(observer.context, &wait);
    CHECK_OK(analyze_live_stop(scene.live, ret_analyzer, &scene.err), &scene.err);
    flight_close(scene.flight);
    temp_folder_release(&scene.folder);
}

static void test_long_wait_while_something_moves(void **state)
{
    (void)state;
    for (enum motion motion = MOTION_CRUMBS; motion < MOTION_NONE; motion++) {
        struct analyzer *analyzer;
        wait_long(motion, &analyzer);
        assert_int_equal(analyzer_result(analyzer)->finding_count, 0);
        analyzer_destroy(analyzer);
    }
}

/* The same wait, and nothing moves: it is named while it lasts, with what moved last. */
static void test_long_wait_while_nothing_moves(void **state)
{
    (void)state;
    struct analyzer *analyzer;
    wait_long(MOTION_NONE, &analyzer);
    const struct analysis *analysis = analyzer_result(analyzer);
    assert_int_equal(analysis->finding_count, 1);
    const struct finding *hang = &analysis->findings[0];
    assert_int_equal(hang->hypothesis, HYPOTHESIS_HANG);
    assert_int_equal(hang->certainty, FINDING_DIRECT);
    assert_int_equal(hang->seen.event_id, WAIT_ID);
    assert_int_equal(hang->moved.event_id, 2);
    assert_in_range(hang->moved_ago_ns, HANG_LIMIT_NS, HANG_LIMIT_NS + 2 * STEP_NS);
    analyzer_destroy(analyzer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_overtaken),
        cmocka_unit_test(test_open_call),
        cmocka_unit_test(test_hole),
        cmocka_unit_test(test_end),
        cmocka_unit_test(test_long_wait_while_something_moves),
        cmocka_unit_test(test_long_wait_while_nothing_moves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
