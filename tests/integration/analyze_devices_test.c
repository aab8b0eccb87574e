/* analyze_devices_test.c - two devices of one process report to one flight file: the host, or what
 * the second argument names, and the device that the first argument names (by default the host once
 * more). Their buffers, streams, marks and tickets have the same numbers. What is wrong on one is
 * found there, and the other is not taken for it.
 *
 *     analyze_devices_test [DEVICE [FIRST]] */
#include "ops_lab.h"
#include "small_model.h"
#include "temp_folder.h"

#include "analyze/analyze.h"
#include "event/flight.h"
#include "inject/inject.h"
#include "report/json_tools.h"
#include "report/report.h"

#define WIDTH 64u
#define ROWS 4u
#define LAYERS 4
#define DEVICES 2u
#define VALUES (WIDTH * ROWS)

struct side {
    struct device *device;
    struct ops ops;
    struct device_stream streams[2];
    struct device_mark mark;
    struct device_view x, y;
    struct inject *inject;
    struct error err;
};

static const char *first_device = "host";

struct scene {
    struct temp_folder folder;
    struct temp_path path;
    struct flight *flight;
    struct side sides[DEVICES];
    struct analyzer *analyzer;
};

/* ---- Two devices ---------------------------------------------------------------------------- */

static struct device_view make_values(struct side *side, const char *name)
{
    struct device_view view = { .dtype = DTYPE_F32,
                                .shape = shape_make(2, (uint64_t[]){ WIDTH, ROWS }) };
    CHECK_OK(device_buffer_create(side->device, VALUES * sizeof(float), name, DEVICE_HERE,
                                  &view.buffer, &side->err),
             &side->err);
    CHECK_OK(device_fill(side->device, side->streams[0], &view, 0, DEVICE_HERE, &side->err),
             &side->err);
    return view;
}

static void open_side(struct scene *scene, uint32_t index, const char *spec)
{
    struct side *side = &scene->sides[index];
    struct inject_spec parsed;
    struct device_options options = { .observer = flight_observer(scene->flight),
                                      .event_ids = flight_event_ids(scene->flight),
                                      .device_index = index,
                                      .crumbs = flight_device_crumbs(scene->flight, index),
                                      .guards = true,
                                      .thread_count = 2 };
    CHECK_OK(all_open(index ? lab_device : first_device, &options, &side->device, &side->err),
             &side->err);
    if (spec) {
        CHECK_OK(inject_parse(spec, &parsed, &side->err), &side->err);
        CHECK_OK(inject_install(side->device, &parsed, &side->inject, &side->err), &side->err);
    }
    CHECK_OK(ops_load(&side->ops, side->device, CPU_PATH_COUNT, &side->err), &side->err);
    for (size_t i = 0; i < COUNT_OF(side->streams); i++)
        CHECK_OK(device_stream_create(side->device, DEVICE_HERE, &side->streams[i], &side->err),
                 &side->err);
    CHECK_OK(device_mark_create(side->device, &side->mark, &side->err), &side->err);
    side->x = make_values(side, index ? "second.x" : "first.x");
    side->y = make_values(side, index ? "second.y" : "first.y");
    CHECK_OK(device_stream_sync(side->device, side->streams[0], DEVICE_HERE, &side->err),
             &side->err);
}

static void open_scene(struct scene *scene, const char *spec_of_second)
{
    struct flight_options options = { .device_count = DEVICES,
                                      .device = "two devices",
                                      .command = "test --audit guard" };
    struct error err;
    memset(scene, 0, sizeof(*scene));
    temp_folder_init(&scene->folder);
    scene->path = temp_folder_path(&scene->folder, "two.flight");
    CHECK_OK(flight_create(scene->path.text, &options, &scene->flight, &err), &err);
    open_side(scene, 0, NULL);
    open_side(scene, 1, spec_of_second);
    const struct side *sides = scene->sides;
    assert_int_equal(sides[0].x.buffer.index, sides[1].x.buffer.index);
    assert_int_equal(sides[0].y.buffer.index, sides[1].y.buffer.index);
    assert_int_equal(sides[0].streams[0].index, sides[1].streams[0].index);
    assert_int_equal(sides[0].streams[1].index, sides[1].streams[1].index);
    assert_int_equal(sides[0].mark.index, sides[1].mark.index);
}

/* Closes the devices and analyses their file. */
static const struct analysis *end_scene(struct scene *scene)
{
    struct analyze_options options = { .level = AUDIT_GUARD, .hang_limit_ns = 60000000000u };
    struct error err;
    for (size_t i = 0; i < DEVICES; i++)
        device_close(scene->sides[i].device);
    flight_close(scene->flight);
    CHECK_OK(analyze_flight(scene->path.text, &options, &scene->analyzer, &err), &err);
    return analyzer_result(scene->analyzer);
}

static void close_scene(struct scene *scene)
{
    analyzer_destroy(scene->analyzer);
    temp_folder_release(&scene->folder);
}

/* ---- Work ----------------------------------------------------------------------------------- */

static enum status add(struct side *side, size_t stream, int32_t layer)
{
    struct event_scope scope = { .step = 7, .layer = layer, .tensor = "sum" };
    struct ops_target target = { .ops = &side->ops,
                                 .stream = side->streams[stream],
                                 .site = DEVICE_HERE };
    device_scope_set(side->device, side->streams[stream], &scope);
    return ops_add(&target, &side->x, &side->y, &side->err);
}

/* The second stream goes on with what the first one wrote; it waits for it, if `waits`. */
static void hand_over(struct side *side, bool waits)
{
    CHECK_OK(add(side, 0, 1), &side->err);
    CHECK_OK(
        device_mark_record(side->device, side->streams[0], side->mark, DEVICE_HERE, &side->err),
        &side->err);
    if (waits)
        CHECK_OK(
            device_mark_wait(side->device, side->streams[1], side->mark, DEVICE_HERE, &side->err),
            &side->err);
    CHECK_OK(add(side, 1, 2), &side->err);
}

static enum status read_back(struct side *side)
{
    float values[VALUES];
    return device_read(side->device, side->streams[1], &side->x, values, DEVICE_HERE, &side->err);
}

static const struct finding *find(const struct analysis *analysis, enum hypothesis hypothesis)
{
    for (size_t i = 0; i < analysis->finding_count; i++)
        if (analysis->findings[i].hypothesis == hypothesis)
            return &analysis->findings[i];
    fail_msg("%s: not found among %zu findings", hypothesis_info(hypothesis)->slug,
             analysis->finding_count);
    return NULL;
}

/* ---- Tests ---------------------------------------------------------------------------------- */

static void test_clean(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, NULL);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < DEVICES; i++)
            hand_over(&scene.sides[i], true);
        for (size_t i = 0; i < DEVICES; i++) {
            CHECK_OK(read_back(&scene.sides[i]), &scene.sides[i].err);
            CHECK_OK(device_stream_sync(scene.sides[i].device, scene.sides[i].streams[0],
                                        DEVICE_HERE, &scene.sides[i].err),
                     &scene.sides[i].err);
        }
    }
    /* The other device's buffer of the same number lives on. */
    device_buffer_destroy(scene.sides[0].device, scene.sides[0].y.buffer, DEVICE_HERE);
    CHECK_OK(add(&scene.sides[1], 1, 3), &scene.sides[1].err);
    CHECK_OK(read_back(&scene.sides[1]), &scene.sides[1].err);
    const struct analysis *analysis = end_scene(&scene);
    assert_int_equal(analysis->finding_count, 0);
    assert_int_equal(analysis->lost_count, 0);
    const struct hypothesis_coverage *coverage = &analysis->coverage[HYPOTHESIS_MISSING_SYNC];
    assert_true(coverage->total && coverage->checked == coverage->total);
    close_scene(&scene);
}

/* Each event names its device; the file has both, each with its page of crumbs. */
static void test_file(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, NULL);
    for (size_t i = 0; i < DEVICES; i++) {
        hand_over(&scene.sides[i], true);
        CHECK_OK(read_back(&scene.sides[i]), &scene.sides[i].err);
    }
    end_scene(&scene);
    struct flight_reader *reader;
    struct flight_device device;
    struct error err;
    CHECK_OK(flight_open(scene.path.text, &reader, &err), &err);
    assert_int_equal(flight_info(reader)->device_count, DEVICES);
    assert_int_equal(flight_info(reader)->dropped_count, 0);
    assert_true(flight_device_at(reader, 0, &device));
    assert_true(strncmp(first_device, device.kind, strlen(device.kind)) == 0);
    assert_true(flight_device_at(reader, 1, &device));
    assert_true(strncmp(lab_device, device.kind, strlen(device.kind)) == 0);
    assert_false(flight_device_at(reader, DEVICES, &device));
    uint64_t launches[DEVICES] = { 0 }, last_id = 0;
    struct event event;
    for (uint64_t id = 0; flight_next(reader, &id, &event);) {
        assert_true(event.id > last_id && event.device_index < DEVICES);
        assert_int_equal(event.process_id, flight_info(reader)->pid);
        last_id = event.id;
        launches[event.device_index] += event.kind == EVENT_LAUNCH;
    }
    assert_int_equal(launches[0], 2);
    assert_int_equal(launches[1], 2);
    for (uint32_t i = 0; i < DEVICES; i++) {
        const struct crumb_page *page = flight_reader_device_crumbs(reader, i);
        assert_non_null(page);
        assert_true(crumb_entered(&page->streams[scene.sides[i].streams[1].index]) != 0);
    }
    assert_null(flight_reader_device_crumbs(reader, DEVICES));
    flight_reader_close(reader);
    close_scene(&scene);
}

#ifndef RACES_ARE_REPORTED /* ThreadSanitizer finds the planted one too */
/* The mark of the same number that the first device waited for orders nothing on the second. */
static void test_missing_wait(void **state)
{
    (void)state;
    for (size_t wrong = 0; wrong < DEVICES; wrong++) {
        struct scene scene;
        open_scene(&scene, NULL);
        for (size_t i = 0; i < DEVICES; i++)
            hand_over(&scene.sides[i], i != wrong);
        const struct analysis *analysis = end_scene(&scene);
        const struct finding *finding = find(analysis, HYPOTHESIS_MISSING_SYNC);
        for (size_t i = 0; i < analysis->finding_count; i++)
            assert_int_equal(analysis->findings[i].cause.device_index, wrong);
        assert_int_equal(finding->certainty, FINDING_DIRECT);
        assert_int_equal(finding->other.device_index, wrong);
        assert_int_equal(finding->cause.scope.layer, 2);
        assert_int_equal(finding->other.scope.layer, 1);
        assert_string_equal(finding->cause.buffer, wrong ? "second.x" : "first.x");
        close_scene(&scene);
    }
}

#endif

/* Reports tell apart what is alike on two devices. */
static void check_report(const struct finding *finding)
{
    struct text text;
    json_t *object = json_object();
    text_init(&text);
    report_finding_key(finding, &text);
    check_contains("the key", text_get(&text), " device=1");
    json_put_place(&text, object, "cause", &finding->cause);
    const json_t *device = json_object_get(json_object_get(object, "cause"), "device");
    assert_int_equal(json_integer_value(device), 1);
    json_decref(object);
    text_release(&text);
}

/* The second device is lost; the first goes on, and none of its launches is suspected. */
static void test_fault_on_the_second(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, "wild-pointer@op=add,layer=2");
    struct side *first = &scene.sides[0], *second = &scene.sides[1];
    enum status status = STATUS_OK;
    for (int32_t layer = 0; layer < LAYERS; layer++) {
        CHECK_OK(add(first, 0, layer), &first->err);
        if (!status)
            status = add(second, 0, layer);
    }
    if (!status)
        status = device_stream_sync(second->device, second->streams[0], DEVICE_HERE, &second->err);
    assert_int_equal(status, STATUS_LOST);
    CHECK_OK(device_stream_sync(first->device, first->streams[0], DEVICE_HERE, &first->err),
             &first->err);
    CHECK_OK(read_back(first), &first->err);
    assert_int_equal(read_back(second), STATUS_LOST);
    const struct analysis *analysis = end_scene(&scene);
    const struct finding *finding = find(analysis, HYPOTHESIS_KERNEL_FAULT);
    assert_true(analysis->device_lost);
    assert_int_equal(finding->cause.device_index, 1);
    assert_string_equal(finding->cause.op, "add");
    assert_int_equal(finding->cause.scope.layer, 2);
    assert_int_equal(finding->seen.device_index, 1);
    check_report(finding);
    for (uint32_t i = 0; i < finding->candidate_count; i++)
        assert_int_equal(finding->candidates[i].device_index, 1);
    for (size_t i = 0; i < analysis->finding_count; i++)
        assert_int_equal(analysis->findings[i].cause.device_index, 1);
    close_scene(&scene);
}

/* ---- Models --------------------------------------------------------------------------------- */

#define STEPS 4u
#define SEQUENCES 2u

struct run {
    struct side *side;
    int32_t first_id;
    int32_t ids[STEPS][SEQUENCES];
};

/* Two sequences, greedy; steps are replayed as a graph if that is faster. */
static void *run_model(void *argument)
{
    struct run *run = argument;
    struct error err;
    struct engine *engine;
    struct engine_options options = {
        .context = 16, .kv_dtype = DTYPE_F16, .sequence_limit = SEQUENCES, .logits_limit = SEQUENCES
    };
    CHECK_OK(engine_open(&run->side->ops, model.file, &model.report, &options, &engine, &err),
             &err);
    for (uint32_t step = 0; step < STEPS; step++) {
        struct engine_token tokens[SEQUENCES];
        for (uint32_t s = 0; s < SEQUENCES; s++)
            tokens[s] = (struct engine_token){ step ? run->ids[step - 1][s]
                                                    : run->first_id + (int32_t)s,
                                               s, true };
        CHECK_OK(engine_forward(engine, tokens, SEQUENCES, &err), &err);
        CHECK_OK(engine_argmax(engine, run->ids[step], &err), &err);
    }
    engine_close(engine);
    return NULL;
}

/* A model on each, at the same time: each computes what it computes alone. */
static void test_models(void **state)
{
    (void)state;
    struct scene scene;
    struct run alone[DEVICES], runs[DEVICES];
    pthread_t threads[DEVICES];
    open_scene(&scene, NULL);
    for (uint32_t i = 0; i < DEVICES; i++) {
        alone[i] = (struct run){ .side = &scene.sides[i], .first_id = 17 + 40 * (int32_t)i };
        runs[i] = alone[i];
        run_model(&alone[i]);
    }
    for (uint32_t i = 0; i < DEVICES; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_model, &runs[i]), 0);
    for (uint32_t i = 0; i < DEVICES; i++)
        pthread_join(threads[i], NULL);
    for (uint32_t i = 0; i < DEVICES; i++)
        assert_memory_equal(runs[i].ids, alone[i].ids, sizeof(alone[i].ids));
    assert_memory_not_equal(runs[0].ids, runs[1].ids, sizeof(runs[0].ids));
    const struct analysis *analysis = end_scene(&scene);
    assert_int_equal(analysis->finding_count, 0);
    assert_int_equal(analysis->lost_count, 0);
    close_scene(&scene);
}

int main(int argument_count, char **arguments)
{
    if (argument_count > 2)
        first_device = arguments[2];
    if (!lab_choose(argument_count, arguments))
        return LAB_SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clean),
        cmocka_unit_test(test_models),
        cmocka_unit_test(test_file),
#ifndef RACES_ARE_REPORTED
        cmocka_unit_test(test_missing_wait),
#endif
        cmocka_unit_test(test_fault_on_the_second),
    };
    return cmocka_run_group_tests(tests, write_model, remove_model);
}
