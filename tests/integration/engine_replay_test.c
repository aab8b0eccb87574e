/* engine_replay_test.c - steps that decode on a GPU are replays: each is one event of the same
 * graph, whose epoch counts them, and nothing is recorded or launched again. The device is the
 * first argument. */
#include "ops_lab.h"

#include "engine_scene.h"

#define STEPS 6u
#define SEQUENCES 3u
#define VOCABULARY 320u

/* Events since it was cleared; for calls, their ends. Under its lock. */
struct reported {
    pthread_mutex_t lock;
    uint32_t begin_count, end_count, destroy_count; /* of graphs */
    uint32_t launch_count, recorded_count;          /* run at once; into a graph */
    uint32_t replay_count;
    struct event launch, replay; /* the last of each */
    struct lab_watch watch;
};

static void notify(void *context, const struct event *event)
{
    struct reported *reported = context;
    lab_watch_notify(&reported->watch, event);
    if (event->phase != EVENT_END)
        return;
    pthread_mutex_lock(&reported->lock);
    reported->begin_count += event->kind == EVENT_GRAPH_BEGIN;
    reported->end_count += event->kind == EVENT_GRAPH_END;
    reported->destroy_count += event->kind == EVENT_GRAPH_DESTROY;
    if (event->kind == EVENT_LAUNCH && event_graph_id(event)) {
        reported->recorded_count++;
    } else if (event->kind == EVENT_LAUNCH) {
        reported->launch_count++;
        reported->launch = *event;
    } else if (event->kind == EVENT_GRAPH_REPLAY) {
        reported->replay_count++;
        reported->replay = *event;
    }
    pthread_mutex_unlock(&reported->lock);
}

/* What came since the last time. */
static struct reported take(struct reported *reported)
{
    pthread_mutex_lock(&reported->lock);
    struct reported taken = *reported;
    reported->begin_count = reported->end_count = reported->destroy_count = 0;
    reported->launch_count = reported->recorded_count = reported->replay_count = 0;
    pthread_mutex_unlock(&reported->lock);
    return taken;
}

static void start(struct scene *scene, struct reported *reported)
{
    struct model_shape shape = scene_shape(MODEL_ARCH_LLAMA);
    struct device_options device_options = { .observer = { notify, reported },
                                             .guards = true,
                                             .poison = true };
    struct engine_options options = { .kv_dtype = DTYPE_F16,
                                      .context = 32,
                                      .sequence_limit = SEQUENCES };
    shape.block_count = 1; /* an emulated GPU takes its time */
    shape.vocab_size = VOCABULARY;
    memset(reported, 0, sizeof(*reported));
    pthread_mutex_init(&reported->lock, NULL);
    scene_write(scene, &shape, CONVERT_Q8_0);
    CHECK_OK(all_open(lab_device, &device_options, &scene->device, &scene->err), &scene->err);
    CHECK_OK(ops_load(&scene->ops, scene->device, CPU_PATH_COUNT, &scene->err), &scene->err);
    CHECK_OK(engine_open(&scene->ops, scene->file, &scene->report, &options, &scene->engine,
                         &scene->err),
             &scene->err);
}

static void stop(struct scene *scene, struct reported *reported)
{
    scene_stop(scene);
    scene_end(scene);
    lab_watch_check(&reported->watch);
    pthread_mutex_destroy(&reported->lock);
}

/* A token of each of the first `count` sequences; id: of all, or ENGINE_TOKEN_FROM_DEVICE. */
static void forward(struct scene *scene, int32_t id, uint32_t count)
{
    struct engine_token tokens[SEQUENCES];
    for (uint32_t i = 0; i < count; i++)
        tokens[i] = (struct engine_token){ id == ENGINE_TOKEN_FROM_DEVICE ? id : id + (int32_t)i, i,
                                           true };
    CHECK_OK(engine_forward(scene->engine, tokens, count, &scene->err), &scene->err);
}

/* The first step of its kind: recorded, and replayed for the first time. Returns its replay. */
static struct event check_recorded(struct reported *reported)
{
    struct reported step = take(reported);
    assert_int_equal(step.begin_count, 1);
    assert_int_equal(step.end_count, 1);
    assert_true(step.recorded_count > 0);
    assert_int_equal(step.launch_count, 0);
    assert_int_equal(step.replay_count, 1);
    assert_int_equal(step.replay.outcome, EVENT_DONE);
    assert_int_equal(step.replay.graph.epoch, 1);
    return step.replay;
}

/* A later one: the same graph once more, and nothing else. */
static void check_replayed(const struct reported *step, const struct event *first, uint32_t epoch)
{
    if (step->begin_count || step->end_count || step->destroy_count || step->recorded_count)
        fail_msg("step %d: expected nothing to be recorded, found %u begun, %u ended, %u gone, %u "
                 "launches recorded",
                 step->replay.scope.step, step->begin_count, step->end_count, step->destroy_count,
                 step->recorded_count);
    if (step->replay_count != 1 || step->replay.graph.handle != first->graph.handle ||
        step->replay.cause_id != first->cause_id || step->replay.graph.epoch != epoch)
        fail_msg("step %d: expected one replay, of graph %d, its epoch %u, found %u, the last of "
                 "graph %d, epoch %u",
                 step->replay.scope.step, (int)first->graph.handle, epoch, step->replay_count,
                 (int)step->replay.graph.handle, step->replay.graph.epoch);
    assert_int_equal(step->replay.outcome, EVENT_DONE);
}

static void test_one_by_one(void **state)
{
    (void)state;
    struct scene scene;
    static struct reported reported;
    float logits[VOCABULARY];
    start(&scene, &reported);
    for (uint32_t count = 1; count <= SEQUENCES; count += 2) {
        take(&reported);
        forward(&scene, 7, count);
        struct event first = check_recorded(&reported);
        for (uint32_t step = 1; step < STEPS; step++) {
            forward(&scene, 20 + (int32_t)step, count);
            CHECK_OK(engine_logits(scene.engine, count - 1, logits, &scene.err), &scene.err);
            struct reported found = take(&reported);
            check_replayed(&found, &first, step + 1);
            assert_int_equal(found.launch_count, 0);
            assert_int_equal(found.replay.scope.step, first.scope.step + (int32_t)step);
        }
    }
    stop(&scene, &reported);
}

/* With a step queued before the ids of the one before are known there are two graphs, whose logits
 * go to different places, in turns; and one launch next to each replay, which chooses. */
static void test_ahead(void **state)
{
    (void)state;
    struct scene scene;
    static struct reported reported;
    struct event first[2];
    int32_t id;
    start(&scene, &reported);
    take(&reported);
    for (uint32_t step = 0; step < 2 * STEPS; step++) {
        forward(&scene, step ? ENGINE_TOKEN_FROM_DEVICE : 7, 1);
        if (step < 2) {
            first[step] = check_recorded(&reported);
        } else {
            struct reported found = take(&reported);
            check_replayed(&found, &first[step % 2], step / 2 + 1);
            assert_int_equal(found.launch_count, 0);
        }
        CHECK_OK(engine_argmax_submit(scene.engine, &scene.err), &scene.err);
        struct reported chosen = take(&reported);
        assert_int_equal(chosen.replay_count + chosen.begin_count + chosen.recorded_count, 0);
        assert_int_equal(chosen.launch_count, 1);
        assert_string_equal(chosen.launch.op, "argmax");
        if (step)
            CHECK_OK(engine_argmax_wait(scene.engine, &id, &scene.err), &scene.err);
    }
    assert_true(first[0].graph.handle != first[1].graph.handle);
    CHECK_OK(engine_argmax_wait(scene.engine, &id, &scene.err), &scene.err);
    stop(&scene, &reported);
}

struct tapped {
    uint32_t count; /* of records */
    float logits[VOCABULARY];
};

static enum status keep(void *context, const struct tap_record *record, const float *values,
                        struct error *err)
{
    struct tapped *tapped = context;
    (void)err;
    tapped->count++;
    if (strcmp(record->place.tensor, "logits") == 0)
        memcpy(tapped->logits, values, sizeof(tapped->logits));
    return STATUS_OK;
}

/* A graph joins launches, which changes the order of some sums and nothing else. */
static void check_near(const float *found, const float *wanted)
{
    double error = 0, power = 0;
    for (size_t i = 0; i < VOCABULARY; i++) {
        error += ((double)found[i] - (double)wanted[i]) * ((double)found[i] - (double)wanted[i]);
        power += (double)wanted[i] * (double)wanted[i];
    }
    if (!(power > 0 && error / power < 1e-6))
        fail_msg("tapped and replayed logits: normalised error %g", error / power);
}

/* A tap copies out in the middle of a step, so steps are launched op by op while taps are set, and
 * replayed again afterwards; both give the same logits. */
static void test_tapped(void **state)
{
    (void)state;
    struct scene scene;
    static struct reported reported;
    static struct tapped tapped;
    float replayed[VOCABULARY];
    struct engine_tap_choice all;
    bool found;
    uint32_t position;
    struct tap_record record;
    memset(&tapped, 0, sizeof(tapped));
    start(&scene, &reported);
    CHECK_OK(engine_tap_parse("hidden", &all, &scene.err), &scene.err);
    take(&reported);
    forward(&scene, 7, 1);
    struct event first = check_recorded(&reported);
    /* A search sets taps of its own; with one token it looks like a step. */
    CHECK_OK(engine_find_bad(scene.engine, 0, &found, &record, &position, &scene.err), &scene.err);
    assert_false(found);
    take(&reported);
    forward(&scene, 8, 1);
    CHECK_OK(engine_logits(scene.engine, 0, replayed, &scene.err), &scene.err);
    struct reported step = take(&reported);
    check_replayed(&step, &first, 2);
    engine_rewind(scene.engine, 0, 1);

    CHECK_OK(engine_tap_set(scene.engine, &all, 1, keep, &tapped, &scene.err), &scene.err);
    assert_false(engine_ahead_pays(scene.engine));
    for (uint32_t i = 0; i < STEPS; i++) {
        uint32_t before = tapped.count;
        forward(&scene, 8 + (int32_t)i, 1);
        step = take(&reported);
        assert_int_equal(step.begin_count + step.replay_count + step.recorded_count, 0);
        assert_true(step.launch_count > 0);
        assert_true(tapped.count > before);
        if (i == 0)
            check_near(tapped.logits, replayed);
    }
    CHECK_OK(engine_tap_set(scene.engine, NULL, 0, NULL, NULL, &scene.err), &scene.err);
    assert_true(engine_ahead_pays(scene.engine));
    uint32_t before = tapped.count;
    forward(&scene, 30, 1);
    step = take(&reported);
    check_replayed(&step, &first, 3);
    assert_int_equal(tapped.count, before);
    stop(&scene, &reported);
}

int main(int argument_count, char **arguments)
{
    if (!lab_choose_named(argument_count, arguments))
        return LAB_SKIPPED;
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_one_by_one),
                                        cmocka_unit_test(test_ahead),
                                        cmocka_unit_test(test_tapped) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
