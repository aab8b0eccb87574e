/* analyze_faults_test.c - analyses, live and of files, with every call of the system failing once.
 *
 * An analysis that ends has found what there is to find, or says that it did not see everything:
 * records lost, findings dropped, accesses not checked. It never finds something else. */
#include "fail_nth.h"

#include "analyze_model.h"
#include "temp_folder.h"

#include <stdio.h>
#include <unistd.h>

#define KEPT_LIMIT 512

/* One site: see fail_nth.h. */
#define CALLS 12

struct scene {
    struct temp_folder folder;
    struct temp_path flight;
    struct event events[KEPT_LIMIT];
    size_t event_count;
    /* What the whole analysis finds, in order. */
    struct {
        enum hypothesis hypothesis;
        uint64_t cause_id;
    } findings[16];
    size_t finding_count;
    struct hypothesis_coverage coverage[HYPOTHESIS_COUNT];
    int32_t root;
};

static void keep(void *context, const struct event *event)
{
    struct scene *scene = context;
    assert_true(scene->event_count < KEPT_LIMIT);
    scene->events[scene->event_count++] = *event;
}

/* A graph of more launches than an array has room for at first, replayed on the other stream
 * without waiting for what its buffers need. */
static void add_graph(struct script *script)
{
    uint64_t graph = script_call(script, EVENT_GRAPH_BEGIN, MAIN, 0);
    for (int i = 0; i < 70; i++) {
        struct event event = script_launch_event(script, MAIN, "step");
        event.launch.graph_id = graph;
        script_operand(&event, X, (uint64_t)i * 64, 64, EVENT_WRITE);
        script_add(script, &event);
    }
    struct event ended = script_event(script, EVENT_GRAPH_END);
    ended.stream_index = MAIN;
    ended.cause_id = graph;
    ended.graph.handle = 5;
    script_add(script, &ended);
    struct event replay = script_event(script, EVENT_GRAPH_REPLAY);
    replay.stream_index = SIDE;
    replay.cause_id = graph;
    replay.graph.handle = 5;
    replay.graph.epoch = 1;
    script_add(script, &replay);
}

/* A step that is right, then: a read of unwritten bytes, a refusal, a race, results and the
 * output of an op that differ, and buffers that come and go. */
static void write_events(struct scene *scene)
{
    struct script script;
    static const char *const names[] = { "", "blk.weight", "x", "y", "positions", "logits" };
    script = (struct script){
        .layer = -1, .step = STEP, .tensor = "", .ns = 1000, .listener = { keep, scene }
    };
    for (uint32_t i = WEIGHTS; i <= LOGITS; i++)
        script_buffer(&script, i, names[i], i == WEIGHTS);
    for (uint32_t i = 6; i < 80; i++)
        script_buffer(&script, i, "many", false);
    script_call(&script, EVENT_STREAM_CREATE, MAIN, 0);
    script_call(&script, EVENT_STREAM_CREATE, SIDE, 0);
    script_run(&script, 1, 7);
    script_op_hash(&script, run_step(&script, 3, 0xABCD), 0, EVENT_UPDATE, 1);
    script_run(&script, 2, 7);
    script_op_hash(&script, run_step(&script, 3, 0xABCE), 0, EVENT_UPDATE, 2);
    script.layer = LAYER;
    uint64_t orphan = script_launch(&script, MAIN, "orphan", 70, 0);
    script_op_hash(&script, orphan, 0, EVENT_READ, 100);
    script_refuse(&script, script_launch_event(&script, MAIN, "matmul"), EVENT_CHECK_DTYPE, 2, 1,
                  6);
    add_graph(&script);
    for (uint32_t i = 6; i < 80; i += 2)
        script_destroy(&script, i, "many");
    script_call(&script, EVENT_DEVICE_CLOSE, EVENT_NO_STREAM, 0);
}

/* The live analysis takes ids in order and waits for holes: the events are given as they come. */
static void tell_all(const struct scene *scene, struct event_observer observer)
{
    for (size_t i = 0; i < scene->event_count; i++) {
        struct event event = scene->events[i];
        event.phase = EVENT_END;
        observer.notify(observer.context, &event);
    }
}

static const struct flight_options flight_options = { .record_count = 256,
                                                      .allocation_count = 128,
                                                      .graph_record_count = 128,
                                                      .device = "host",
                                                      .command = "greta infer --audit log" };

/* ---- Holding against the whole ---------------------------------------------------------------*/

static bool says_something_is_missing(const struct analysis *analysis)
{
    return analysis->lost_count || analysis->dropped_count || analysis->findings_dropped;
}

/* Everything was looked at that there was. */
static bool is_whole(const struct scene *scene, const struct analysis *analysis)
{
    for (size_t i = 0; i < HYPOTHESIS_COUNT; i++)
        if (analysis->coverage[i].checked < scene->coverage[i].checked)
            return false;
    return !says_something_is_missing(analysis);
}

static bool is_expected(const struct scene *scene, const struct finding *finding)
{
    for (size_t i = 0; i < scene->finding_count; i++)
        if (scene->findings[i].hypothesis == finding->hypothesis &&
            scene->findings[i].cause_id == finding->cause.event_id)
            return true;
    return false;
}

static void check(struct scene *scene, const struct analysis *analysis)
{
    if (scene->finding_count == 0) { /* the first, with nothing failing, says what there is */
        assert_false(says_something_is_missing(analysis));
        assert_in_range(analysis->finding_count, 4, COUNT_OF(scene->findings));
        for (size_t i = 0; i < analysis->finding_count; i++) {
            scene->findings[i].hypothesis = analysis->findings[i].hypothesis;
            scene->findings[i].cause_id = analysis->findings[i].cause.event_id;
        }
        memcpy(scene->coverage, analysis->coverage, sizeof(scene->coverage));
        scene->finding_count = analysis->finding_count;
        scene->root = analysis->root;
        assert_true(scene->root >= 0);
        return;
    }
    for (size_t i = 0; i < analysis->finding_count; i++)
        if (!is_expected(scene, &analysis->findings[i]))
            fail_msg("found %s at event %llu, which is not there",
                     hypothesis_info(analysis->findings[i].hypothesis)->slug,
                     (unsigned long long)analysis->findings[i].cause.event_id);
    if (is_whole(scene, analysis)) {
        assert_int_equal(analysis->finding_count, scene->finding_count);
        assert_int_equal(analysis->root, scene->root);
    }
}

/* ---- Scenarios ------------------------------------------------------------------------------ */

static enum status analyse_file(void *context, struct error *err)
{
    struct scene *scene = context;
    struct analyze_options options = { .level = AUDIT_LEVEL_COUNT };
    struct analyzer *analyzer = NULL;
    enum status status = analyze_flight(scene->flight.text, &options, &analyzer, err);
    if (status) {
        assert_null(analyzer);
        return status;
    }
    check(scene, analyzer_result(analyzer));
    analyzer_destroy(analyzer);
    return STATUS_OK;
}

static enum status analyse_live(void *context, struct error *err)
{
    struct scene *scene = context;
    struct analyze_options options = { .level = AUDIT_GUARD };
    struct flight *flight;
    struct analyze_live *live = NULL;
    struct analyzer *analyzer = NULL;
    TRY(flight_create(scene->flight.text, &flight_options, &flight, err));
    enum status status = analyze_live_start(flight, scene->flight.text, &options, &live, err);
    tell_all(scene, flight_observer(flight));
    if (!status)
        status = analyze_live_stop(live, &analyzer, err);
    if (!status)
        check(scene, analyzer_result(analyzer));
    analyzer_destroy(analyzer);
    flight_close(flight);
    return status;
}

static int set_up(void **state)
{
    static struct scene scene;
    memset(&scene, 0, sizeof(scene));
    fail_nth_pause();
    temp_folder_init(&scene.folder);
    scene.flight = temp_folder_path(&scene.folder, "greta.flight");
    write_events(&scene);
    *state = &scene;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *scene = *state;
    temp_folder_release(&scene->folder);
    return 0;
}

/* A file that was written without an analysis, and one that has its checkpoint. */
static void test_file(void **state)
{
    struct scene *scene = *state;
    struct flight *flight;
    struct error err;
    CHECK_OK(flight_create(scene->flight.text, &flight_options, &flight, &err), &err);
    tell_all(scene, flight_observer(flight));
    flight_close(flight);
    fail_nth_sweep("file", CALLS, analyse_file, scene);
}

/* The file of a process that lives, and has not closed it. */
static void test_file_of_the_living(void **state)
{
    struct scene *scene = *state;
    struct flight *flight;
    struct error err;
    CHECK_OK(flight_create(scene->flight.text, &flight_options, &flight, &err), &err);
    tell_all(scene, flight_observer(flight));
    fail_nth_sweep("file of the living", CALLS, analyse_file, scene);
    flight_close(flight);
}

static void test_file_with_checkpoint(void **state)
{
    struct scene *scene = *state;
    struct error err;
    CHECK_OK(analyse_live(scene, &err), &err);
    scene->finding_count = 0;
    fail_nth_sweep("file with a checkpoint", CALLS, analyse_file, scene);
}

static void test_live(void **state)
{
    fail_nth_sweep("live", CALLS, analyse_live, *state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_file_of_the_living, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_file_with_checkpoint, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_live, set_up, tear_down),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fail_nth_write_sites();
    return failed;
}
