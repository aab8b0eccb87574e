/* device_host_faults_test.c - a life of the host device with every call of the system failing
 * once. */
#include "fail_nth.h"

#include "device_fixture.h"

#include <stdlib.h>

#define FLOATS 512u
/* More than an array has room for at first. */
#define GRAPH_LAUNCHES 70

/* One site: see fail_nth.h. */
#define CALLS 12

/* Events are counted, not kept: what an observer gets must not depend on memory. */
static void count_event(void *context, const struct event *event)
{
    uint64_t *counts = context;
    if (event->phase == EVENT_END)
        __atomic_add_fetch(&counts[event->kind], 1, __ATOMIC_RELAXED);
}

struct scene {
    struct device_options options;
    const float *source; /* of imported memory */
    uint64_t source_count;
    uint64_t events[EVENT_KIND_COUNT];
};

/* A device with what a life needs. */
struct stage {
    struct device *device;
    struct device_stream stream, other;
    struct device_mark mark;
    struct device_view x, y, imported;
};

static enum status make_floats(const struct stage *stage, const char *name,
                               struct device_view *ret_view, struct error *err)
{
    uint64_t count = FLOATS;
    *ret_view = (struct device_view){ .dtype = DTYPE_F32, .shape = shape_make(1, &count) };
    return device_buffer_create(stage->device, FLOATS * sizeof(float), name, DEVICE_HERE,
                                &ret_view->buffer, err);
}

static enum status furnish(struct stage *stage, const struct scene *scene, struct error *err)
{
    struct device *device = stage->device;
    TRY(device_module_load(device, &test_image, DEVICE_HERE, err));
    TRY(device_stream_create(device, DEVICE_HERE, &stage->stream, err));
    TRY(device_stream_create(device, DEVICE_HERE, &stage->other, err));
    TRY(device_mark_create(device, &stage->mark, err));
    TRY(make_floats(stage, "x", &stage->x, err));
    TRY(make_floats(stage, "y", &stage->y, err));
    stage->imported = stage->x;
    stage->imported.shape = shape_make(1, &scene->source_count);
    return device_buffer_import(device, scene->source, scene->source_count * sizeof(float),
                                "weights", DEVICE_HERE, &stage->imported.buffer, err);
}

/* x = 1 + 70 times 1 in a graph, replayed twice, on two streams in order. */
static enum status work(const struct stage *stage, struct error *err)
{
    struct device *device = stage->device;
    const struct add_params one = { 1.0f };
    struct device_launch add = launch_add(stage->x, &one);
    float ones[FLOATS];
    for (uint32_t i = 0; i < FLOATS; i++)
        ones[i] = 1.0f;
    TRY(device_copy_in(device, stage->stream, &stage->x, ones, sizeof(ones), DEVICE_HERE, err));
    TRY(device_graph_begin(device, stage->stream, DEVICE_HERE, err));
    for (int i = 0; i < GRAPH_LAUNCHES; i++)
        TRY(device_launch(device, stage->stream, &add, DEVICE_HERE, err));
    struct device_graph graph;
    TRY(device_graph_end(device, stage->stream, DEVICE_HERE, &graph, err));
    TRY(device_graph_replay(device, stage->stream, graph, DEVICE_HERE, err));
    TRY(device_graph_replay(device, stage->stream, graph, DEVICE_HERE, err));
    TRY(device_mark_record(device, stage->stream, stage->mark, DEVICE_HERE, err));
    TRY(device_mark_wait(device, stage->other, stage->mark, DEVICE_HERE, err));
    TRY(device_copy_within(device, stage->other, &stage->y, &stage->x, DEVICE_HERE, err));
    TRY(device_stream_sync(device, stage->other, DEVICE_HERE, err));
    device_graph_destroy(device, graph, DEVICE_HERE);
    return STATUS_OK;
}

/* A copy in that several threads fill slots for, if they can be started. */
static enum status copy_much(const struct stage *stage, const struct scene *scene,
                             struct error *err)
{
    struct device_view whole = stage->imported, end = whole;
    uint64_t bytes = scene->source_count * sizeof(float), some = FLOATS;
    static float back[FLOATS];
    TRY(device_buffer_create(stage->device, bytes, "much", DEVICE_HERE, &whole.buffer, err));
    TRY(device_copy_in(stage->device, stage->stream, &whole, scene->source, bytes, DEVICE_HERE,
                       err));
    end.buffer = whole.buffer;
    end.shape = shape_make(1, &some);
    end.offset_bytes = bytes - sizeof(back);
    TRY(device_read(stage->device, stage->stream, &end, back, DEVICE_HERE, err));
    assert_memory_equal(back, scene->source + scene->source_count - FLOATS, sizeof(back));
    device_buffer_destroy(stage->device, whole.buffer, DEVICE_HERE);
    return STATUS_OK;
}

static enum status look(const struct stage *stage, const struct scene *scene, struct error *err)
{
    struct device *device = stage->device;
    struct device_ticket ticket;
    const void *bytes;
    uint64_t count;
    TRY(device_copy_out(device, stage->other, &stage->y, DEVICE_HERE, &ticket, err));
    TRY(device_ticket_redeem(device, ticket, DEVICE_HERE, &bytes, &count, err));
    assert_int_equal(count, FLOATS * sizeof(float));
    const float *values = bytes;
    for (uint32_t i = 0; i < FLOATS; i++)
        assert_true(values[i] == 1.0f + 2 * GRAPH_LAUNCHES);
    device_ticket_release(device, ticket, DEVICE_HERE);
    static float back[FLOATS];
    struct device_view start = stage->imported;
    uint64_t some = FLOATS;
    start.shape = shape_make(1, &some);
    TRY(device_read(device, stage->stream, &start, back, DEVICE_HERE, err));
    assert_memory_equal(back, scene->source, sizeof(back));
    if (scene->source_count > FLOATS)
        TRY(copy_much(stage, scene, err));
    device_buffer_destroy(device, stage->y.buffer, DEVICE_HERE);
    device_stream_destroy(device, stage->other, DEVICE_HERE);
    return device_check(device, err);
}

static enum status live(void *context, struct error *err)
{
    struct scene *scene = context;
    struct stage stage = { .device = NULL };
    struct device_options options = scene->options;
    memset(scene->events, 0, sizeof(scene->events));
    options.observer = (struct event_observer){ count_event, scene->events };
    enum status status = host_device_open(&options, &stage.device, err);
    if (!status)
        status = furnish(&stage, scene, err);
    if (!status)
        status = work(&stage, err);
    if (!status)
        status = look(&stage, scene, err);
    device_close(stage.device);
    /* What could not be made is reported as not made, and nothing as faulted. */
    assert_int_equal(scene->events[EVENT_FAULT], 0);
    /* Where every call is waited for, a replay is reported as its calls. */
    bool serial = options.serialise;
    if (!status) {
        assert_int_equal(scene->events[EVENT_GRAPH_REPLAY], serial ? 0 : 2);
        assert_int_equal(scene->events[EVENT_LAUNCH], GRAPH_LAUNCHES * (serial ? 3 : 1));
    }
    return status;
}

static void sweep(const char *name, struct device_options options, uint64_t source_count)
{
    struct scene scene = { .options = options, .source_count = source_count };
    float *source = malloc(source_count * sizeof(float));
    assert_non_null(source);
    for (uint64_t i = 0; i < source_count; i++)
        source[i] = (float)i;
    scene.source = source;
    scene.options.thread_count = 3;
    scene.options.staging_slot_count = 2;
    scene.options.staging_slot_bytes = 4096;
    fail_nth_sweep(name, CALLS, live, &scene);
    free(source);
}

static void test_plain(void **state)
{
    (void)state;
    sweep("plain", (struct device_options){ .imports = DEVICE_IMPORTS_IN_PLACE }, FLOATS);
}

static void test_audited(void **state)
{
    (void)state;
    sweep("audited",
          (struct device_options){ .guards = true,
                                   .poison = true,
                                   .quarantine_bytes = 1 << 20,
                                   .completions = true,
                                   .hash_results = true,
                                   .ask_errors = true,
                                   .verify = true,
                                   .scan_every = 1 },
          FLOATS);
}

static void test_serialised(void **state)
{
    (void)state;
    sweep("serialised",
          (struct device_options){ .serialise = true,
                                   .poison = true,
                                   .quarantine_bytes = 1 << 20,
                                   .staging = DEVICE_STAGING_PAGEABLE,
                                   .d2h_mode = DEVICE_D2H_EVENT },
          FLOATS);
}

/* Several parts, each copied by a thread, and the question whether the machine has the memory. */
static void test_imports(void **state)
{
    (void)state;
    const uint64_t large = (uint64_t)5 << 18;
    sweep("copied", (struct device_options){ .imports = DEVICE_IMPORTS_COPIED }, large);
    sweep("auto", (struct device_options){ .imports = DEVICE_IMPORTS_AUTO }, large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_audited),
        cmocka_unit_test(test_serialised),
        cmocka_unit_test(test_imports),
    };
    fail_nth_pause();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fail_nth_write_sites();
    return failed;
}
