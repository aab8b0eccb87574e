/* inject_host_test.c - every plantable fault on the host device: planted at one layer and step, it
 * shows there, as what it is, and nowhere else. */
#include "device_fixture.h"

#include "inject/inject.h"

#include <stdio.h>

#define WIDTH 10u
#define LAYERS 3
#define STEPS 2
#define PLANTED_LAYER 1
#define PLANTED_STEP 1

/* A small computation on two streams: every layer of every step gathers, adds, and copies out. */
struct scene {
    struct fixture fixture;
    struct inject *inject;
    struct device_stream other;
    struct device_mark mark;
    struct device_view x, index, source;
    struct error first; /* the first call that failed */
    float out[STEPS][LAYERS][WIDTH];
    bool landed[STEPS][LAYERS];
};

static const int32_t good_index[WIDTH] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 };

static void scene_open(struct scene *scene, const char *plan_text)
{
    struct device_options options = {
        .guards = true, .poison = true, .quarantine_bytes = 1 << 24, .staging_slot_count = 1
    };
    struct fixture *fixture = &scene->fixture;
    struct inject_plan plan;
    struct error *err = &fixture->err;
    memset(scene, 0, sizeof(*scene));
    pthread_mutex_init(&fixture->recorder.lock, NULL);
    options.observer = (struct event_observer){ recorder_notify, &fixture->recorder };
    CHECK_OK(host_device_open(&options, &fixture->device, err), err);
    CHECK_OK(inject_parse(plan_text, &plan, err), err);
    CHECK_OK(inject_install(fixture->device, &plan, &scene->inject, err), err);
    CHECK_OK(device_module_load(fixture->device, &test_image, DEVICE_HERE, err), err);
    CHECK_OK(device_stream_create(fixture->device, DEVICE_HERE, &fixture->stream, err), err);
    CHECK_OK(device_stream_create(fixture->device, DEVICE_HERE, &scene->other, err), err);
    CHECK_OK(device_mark_create(fixture->device, &scene->mark, err), err);
    scene->x = fixture_floats(fixture, WIDTH, "x");
    scene->index = fixture_floats(fixture, WIDTH, "index");
    scene->index.dtype = DTYPE_I32;
    scene->source = fixture_floats(fixture, WIDTH, "source");
}

/* Remembers the first failure; what follows it is a consequence. */
static bool went_wrong(struct scene *scene, enum status status)
{
    if (status && !scene->first.status)
        scene->first = scene->fixture.err;
    return status != STATUS_OK;
}

static void run_layer(struct scene *scene, int step, int layer)
{
    struct fixture *fixture = &scene->fixture;
    struct device *device = fixture->device;
    struct error *err = &fixture->err;
    float ones[WIDTH];
    for (size_t i = 0; i < WIDTH; i++)
        ones[i] = 1;
    struct event_scope scope = { .step = step, .layer = layer, .tensor = "x" };
    device_scope_set(device, fixture->stream, &scope);
    struct add_params two = { 2 };
    struct device_launch add = launch_add(scene->x, &two);
    struct device_launch gather = {
        &gather_contract, NULL, { scene->x, scene->index, scene->source }, 3, 1
    };
    struct device_ticket ticket;
    const void *bytes;
    uint64_t count;
    if (went_wrong(scene, device_copy_in(device, fixture->stream, &scene->index, good_index,
                                         sizeof(good_index), DEVICE_HERE, err)) ||
        went_wrong(scene, device_copy_in(device, fixture->stream, &scene->source, ones,
                                         sizeof(ones), DEVICE_HERE, err)) ||
        went_wrong(scene, device_launch(device, fixture->stream, &gather, DEVICE_HERE, err)) ||
        went_wrong(scene, device_launch(device, fixture->stream, &add, DEVICE_HERE, err)) ||
        went_wrong(scene,
                   device_copy_out(device, fixture->stream, &scene->x, DEVICE_HERE, &ticket, err)))
        return;
    if (!went_wrong(scene,
                    device_ticket_redeem(device, ticket, DEVICE_HERE, &bytes, &count, err))) {
        memcpy(scene->out[step][layer], bytes, (size_t)count);
        scene->landed[step][layer] = true;
    }
    went_wrong(scene, device_ticket_release(device, ticket, DEVICE_HERE, err));
}

static void scene_run(struct scene *scene)
{
    for (int step = 0; step < STEPS; step++)
        for (int layer = 0; layer < LAYERS; layer++)
            run_layer(scene, step, layer);
}

/* Gives the buffers back, so that canaries are looked at. */
static void scene_close(struct scene *scene)
{
    struct error unused;
    const struct device_view views[] = { scene->x, scene->index, scene->source };
    for (size_t i = 0; i < COUNT_OF(views); i++)
        if (device_buffer_destroy(scene->fixture.device, views[i].buffer, DEVICE_HERE, &unused))
            print_message("%s\n", unused.text);
}

/* True if all bytes of a layer's result are right. */
static bool is_right(const struct scene *scene, int step, int layer)
{
    for (size_t i = 0; i < WIDTH; i++)
        if (!(scene->out[step][layer][i] == 3))
            return false;
    return scene->landed[step][layer];
}

/* ---- The table ------------------------------------------------------------------------------ */

enum sign {
    SIGN_REFUSED, /* a call was refused by `check` */
    SIGN_TRAP,
    SIGN_FAULT,
    SIGN_CANARY,
    SIGN_RESULT, /* only the bytes are wrong */
};

static const struct {
    const char *plan;
    enum sign sign;
    enum event_kind kind; /* of the call that carried it */
    enum event_check check;
    const char *op;
} rows[] = {
    { "dtype-mismatch@op=add", SIGN_REFUSED, EVENT_LAUNCH, EVENT_CHECK_DTYPE, "add" },
    { "wrong-stride@op=add", SIGN_REFUSED, EVENT_LAUNCH, EVENT_CHECK_STRIDE, "add" },
    { "shape-mismatch@op=gather,operand=index", SIGN_REFUSED, EVENT_LAUNCH, EVENT_CHECK_SHAPE,
      "gather" },
    { "grid-limit@op=add", SIGN_REFUSED, EVENT_LAUNCH, EVENT_CHECK_GEOMETRY, "add" },
    { "misaligned-view@op=add", SIGN_REFUSED, EVENT_LAUNCH, EVENT_CHECK_ALIGNMENT, "add" },
    { "view-past-end@op=copy-out", SIGN_REFUSED, EVENT_COPY_OUT, EVENT_CHECK_VIEW_END, "copy-out" },
    { "dead-handle@op=gather,operand=source", SIGN_REFUSED, EVENT_LAUNCH, EVENT_CHECK_GENERATION,
      "gather" },
    { "bad-index@op=gather", SIGN_TRAP, EVENT_LAUNCH, 0, "gather" },
    { "wild-pointer@op=add", SIGN_FAULT, EVENT_LAUNCH, 0, "add" },
    { "wrapped-offset@op=gather", SIGN_FAULT, EVENT_LAUNCH, 0, "gather" },
    { "early-free@op=gather,operand=source", SIGN_FAULT, EVENT_LAUNCH, 0, "gather" },
    { "skipped-launch@op=add", SIGN_RESULT, EVENT_LAUNCH, 0, "add" },
    { "overrun@op=add", SIGN_CANARY, EVENT_LAUNCH, 0, "add" },
    { "underrun@op=add", SIGN_CANARY, EVENT_LAUNCH, 0, "add" },
    { "nan-output@op=add", SIGN_RESULT, EVENT_LAUNCH, 0, "add" },
    { "flipped-bit", SIGN_RESULT, EVENT_COPY_OUT, 0, "copy-out" },
    { "short-copy", SIGN_RESULT, EVENT_COPY_OUT, 0, "copy-out" },
    { "stale-copy", SIGN_RESULT, EVENT_COPY_OUT, 0, "copy-out" },
};

static const struct event *event_by_id(struct recorder *recorder, uint64_t id)
{
    for (size_t i = 0; i < recorder->count && i < KEPT_LIMIT; i++)
        if (recorder->events[i].id == id)
            return &recorder->events[i];
    return NULL;
}

static size_t count_kind(struct recorder *recorder, enum event_kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < recorder->count && i < KEPT_LIMIT; i++)
        count += recorder->events[i].kind == kind;
    return count;
}

static void check_row(size_t row, struct scene *scene)
{
    const char *name = rows[row].plan;
    struct recorder *recorder = &scene->fixture.recorder;
    const struct inject_record *record = inject_record(scene->inject);
    if (!record->planted || record->scope.layer != PLANTED_LAYER ||
        record->scope.step != PLANTED_STEP || strcmp(record->op, rows[row].op) != 0)
        fail_msg("%s: planted %d in %s at layer %d, step %d", name, record->planted, record->op,
                 record->scope.layer, record->scope.step);
    /* Everything before it is right, whatever it is. */
    for (int step = 0; step < STEPS; step++)
        for (int layer = 0; layer < LAYERS; layer++)
            if ((step < PLANTED_STEP || (step == PLANTED_STEP && layer < PLANTED_LAYER)) &&
                !is_right(scene, step, layer))
                fail_msg("%s: layer %d of step %d is wrong too", name, layer, step);
    const struct event *event = NULL;
    switch (rows[row].sign) {
    case SIGN_REFUSED:
        for (size_t i = 0; i < recorder->count && !event; i++)
            if (recorder->events[i].outcome == EVENT_REFUSED)
                event = &recorder->events[i];
        if (!event || event->kind != rows[row].kind || event->check != rows[row].check)
            fail_msg("%s: expected a refusal by %s, found %s of %s", name,
                     event_check_name(rows[row].check),
                     event ? event_check_name(event->check) : "none",
                     event ? event_kind_name(event->kind) : "-");
        assert_int_equal(event->scope.layer, PLANTED_LAYER);
        return;
    case SIGN_TRAP:
        event = recorder_last(recorder, EVENT_TRAP);
        if (!event || event->cause_id != record->event_id || event->found != 0x7F7F7F7F)
            fail_msg("%s: no trap of that launch", name);
        break;
    case SIGN_FAULT:
        event = recorder_last(recorder, EVENT_FAULT);
        if (!event || event->cause_id != record->event_id || event->scope.layer != PLANTED_LAYER)
            fail_msg("%s: no fault of that launch", name);
        break;
    case SIGN_CANARY:
        event = recorder_last(recorder, EVENT_CANARY);
        if (!event || strcmp(event->scope.tensor, "x") != 0 || event->bytes != 1)
            fail_msg("%s: no damaged canary of x", name);
        break;
    case SIGN_RESULT:
        if (is_right(scene, PLANTED_STEP, PLANTED_LAYER))
            fail_msg("%s: the result is right", name);
        break;
    }
    event = event_by_id(recorder, record->event_id);
    if (!event || event->kind != rows[row].kind || event->scope.layer != PLANTED_LAYER ||
        event->scope.step != PLANTED_STEP)
        fail_msg("%s: the record names another call", name);
    if (rows[row].sign != SIGN_FAULT)
        assert_int_equal(count_kind(recorder, EVENT_FAULT), 0);
}

static void test_faults(void **state)
{
    (void)state;
    static struct scene scene;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        char plan[128];
        snprintf(plan, sizeof(plan), "%s%clayer=%d,step=%d", rows[row].plan,
                 strchr(rows[row].plan, '@') ? ',' : '@', PLANTED_LAYER, PLANTED_STEP);
        scene_open(&scene, plan);
        scene_run(&scene);
        scene_close(&scene);
        check_row(row, &scene);
        fixture_close(&scene.fixture);
    }
}

/* With a plan that fits no call the decorator changes nothing. */
static void test_passes_through(void **state)
{
    (void)state;
    static struct scene scene;
    scene_open(&scene, "bad-index@layer=77");
    scene_run(&scene);
    scene_close(&scene);
    assert_int_equal(scene.first.status, STATUS_OK);
    for (int step = 0; step < STEPS; step++)
        for (int layer = 0; layer < LAYERS; layer++)
            assert_true(is_right(&scene, step, layer));
    assert_false(inject_record(scene.inject)->planted);
    assert_int_equal(count_kind(&scene.fixture.recorder, EVENT_CANARY), 0);
    assert_int_equal(count_kind(&scene.fixture.recorder, EVENT_TRAP), 0);
    fixture_close(&scene.fixture);
}

/* Freed behind a kernel that is still queued: held back by a gate until the memory is gone. */
static void test_free_while_queued(void **state)
{
    (void)state;
    static struct scene scene;
    uint32_t gate = 0;
    scene_open(&scene, "free-while-queued@op=add");
    struct fixture *fixture = &scene.fixture;
    struct gate_params wait = { NULL, &gate };
    struct device_launch hold = launch_gate(&wait);
    struct add_params one = { 1 };
    struct device_launch add = launch_add(scene.x, &one);
    CHECK_OK(device_launch(fixture->device, fixture->stream, &hold, DEVICE_HERE, &fixture->err),
             &fixture->err);
    CHECK_OK(device_launch(fixture->device, fixture->stream, &add, DEVICE_HERE, &fixture->err),
             &fixture->err);
    open_gate(&gate);
    CHECK_FAILS(device_stream_sync(fixture->device, fixture->stream, DEVICE_HERE, &fixture->err),
                STATUS_LOST, &fixture->err);
    assert_int_equal(recorder_last(&fixture->recorder, EVENT_FAULT)->cause_id,
                     inject_record(scene.inject)->event_id);
    scene_close(&scene);
    fixture_close(fixture);
}

/* The second stream runs although the mark it should wait for cannot be passed. */
static void test_dropped_wait(void **state)
{
    (void)state;
    static struct scene scene;
    uint32_t gate = 0;
    scene_open(&scene, "dropped-wait");
    struct fixture *fixture = &scene.fixture;
    struct device *device = fixture->device;
    struct error *err = &fixture->err;
    struct gate_params wait = { NULL, &gate };
    struct device_launch hold = launch_gate(&wait);
    CHECK_OK(device_launch(device, fixture->stream, &hold, DEVICE_HERE, err), err);
    CHECK_OK(device_mark_record(device, fixture->stream, scene.mark, DEVICE_HERE, err), err);
    CHECK_OK(device_mark_wait(device, scene.other, scene.mark, DEVICE_HERE, err), err);
    CHECK_OK(device_stream_sync(device, scene.other, DEVICE_HERE, err), err); /* would never end */
    assert_true(inject_record(scene.inject)->planted);
    open_gate(&gate);
    CHECK_OK(device_stream_sync(device, fixture->stream, DEVICE_HERE, err), err);
    scene_close(&scene);
    fixture_close(fixture);
}

static void test_parse(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } bad[] = {
        { "", "expected one of" },
        { "nothing", "bad-index" },
        { "bad-index@", "behind '@'" },
        { "bad-index@layer", "KEY=VALUE" },
        { "bad-index@layer=", "KEY=VALUE" },
        { "bad-index@layer=x", "whole number" },
        { "bad-index@layer=-1", "whole number" },
        { "bad-index@step=99999999999", "whole number" },
        { "bad-index@where=3", "expected layer, step" },
        { "bad-index@op=a-name-that-is-far-too-long-for-an-op", "fewer than" },
    };
    struct inject_plan plan;
    struct error err;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        CHECK_FAILS(inject_parse(bad[i].text, &plan, &err), STATUS_USAGE, &err);
        check_contains(bad[i].text, err.text, bad[i].words);
    }
    CHECK_OK(inject_parse("wild-pointer@layer=17,step=3,op=rope,operand=x,tensor=q", &plan, &err),
             &err);
    assert_int_equal(plan.fault, INJECT_WILD_POINTER);
    assert_int_equal(plan.layer, 17);
    assert_int_equal(plan.step, 3);
    assert_string_equal(plan.op, "rope");
    assert_string_equal(plan.operand, "x");
    assert_string_equal(plan.tensor, "q");
    for (int fault = 0; fault < INJECT_FAULT_COUNT; fault++) {
        CHECK_OK(inject_parse(inject_fault_name((enum inject_fault)fault), &plan, &err), &err);
        assert_int_equal(plan.fault, fault);
        assert_string_not_equal(inject_fault_summary((enum inject_fault)fault), "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_passes_through),
        cmocka_unit_test(test_free_while_queued),
        cmocka_unit_test(test_dropped_wait),
        cmocka_unit_test(test_parse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
