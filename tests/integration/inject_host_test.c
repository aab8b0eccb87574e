/* inject_host_test.c - every plantable fault on the host device: planted at one layer and step, an
 * observer sees there what it would see of the real bug, and nothing before it. */
#include "device_fixture.h"

#include "inject/inject.h"

#include <stdio.h>

#if defined(__SANITIZE_THREAD__)
#define RACES_ARE_REPORTED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RACES_ARE_REPORTED 1
#endif
#endif

#define WIDTH 10u
#define LAYERS 3
#define STEPS 2
#define PLANTED_LAYER 1
#define PLANTED_STEP 1

/* A small computation on two streams: every layer of every step uploads, gathers, adds on one
 * stream, adds on the other, and copies out. */
struct scene {
    struct fixture fixture;
    struct inject *inject;
    struct device_stream other;
    struct device_mark there, back;
    struct device_view x, index, source;
    struct error first; /* the first call that failed */
    float out[STEPS][LAYERS][WIDTH];
    bool landed[STEPS][LAYERS];
};

static const int32_t good_index[WIDTH] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 };

static void scene_open(struct scene *scene, const char *plan_text)
{
    struct device_options options = { .guards = true,
                                      .poison = true,
                                      .quarantine_bytes = 1 << 24,
                                      .staging_slot_count = 4,
                                      .verify = true,
                                      .hash_results = true,
                                      .ask_errors = true,
                                      .copy_completions = true,
                                      .scan_every = 1 };
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
    CHECK_OK(device_mark_create(fixture->device, &scene->there, err), err);
    CHECK_OK(device_mark_create(fixture->device, &scene->back, err), err);
    scene->x = fixture_floats(fixture, WIDTH, "x");
    scene->index = fixture_floats(fixture, WIDTH, "index");
    scene->index.dtype = DTYPE_I32;
    scene->source = fixture_floats(fixture, WIDTH, "source");
    /* Step 0 comes from nowhere: a fault that shows in what is left from before needs a before. */
    fixture_fill(fixture, &scene->x, 0);
}

/* Remembers the first failure; what follows it is a consequence. */
static bool went_wrong(struct scene *scene, enum status status)
{
    if (status && !scene->first.status)
        scene->first = scene->fixture.err;
    return status != STATUS_OK;
}

static void read_out(struct scene *scene, int step, int layer)
{
    struct fixture *fixture = &scene->fixture;
    struct error *err = &fixture->err;
    struct device_ticket ticket;
    const void *bytes;
    uint64_t count;
    if (went_wrong(scene, device_copy_out(fixture->device, fixture->stream, &scene->x, DEVICE_HERE,
                                          &ticket, err)))
        return;
    if (!went_wrong(scene, device_ticket_redeem(fixture->device, ticket, DEVICE_HERE, &bytes,
                                                &count, err))) {
        memcpy(scene->out[step][layer], bytes, (size_t)count);
        scene->landed[step][layer] = true;
    }
    went_wrong(scene, device_ticket_release(fixture->device, ticket, DEVICE_HERE, err));
}

/* x = 1 + 2 + layer, then 1 more on the other stream. */
static void run_layer(struct scene *scene, int step, int layer)
{
    struct fixture *fixture = &scene->fixture;
    struct device *device = fixture->device;
    struct device_stream main = fixture->stream, other = scene->other;
    struct error *err = &fixture->err;
    float ones[WIDTH];
    for (size_t i = 0; i < WIDTH; i++)
        ones[i] = (float)(1 + layer);
    struct event_scope scope = { .step = step, .layer = layer, .tensor = "x" };
    device_scope_set(device, main, &scope);
    device_scope_set(device, other, &scope);
    struct add_params two = { 2 }, one = { 1 };
    struct device_launch add = launch_add(scene->x, &two), more = launch_add(scene->x, &one);
    struct device_launch gather = {
        &gather_contract, NULL, { scene->x, scene->index, scene->source }, 3, 1
    };
    if (went_wrong(scene, device_copy_in(device, main, &scene->index, good_index,
                                         sizeof(good_index), DEVICE_HERE, err)) ||
        went_wrong(scene, device_copy_in(device, main, &scene->source, ones, sizeof(ones),
                                         DEVICE_HERE, err)) ||
        went_wrong(scene, device_launch(device, main, &gather, DEVICE_HERE, err)) ||
        went_wrong(scene, device_launch(device, main, &add, DEVICE_HERE, err)) ||
        went_wrong(scene, device_mark_record(device, main, scene->there, DEVICE_HERE, err)) ||
        went_wrong(scene, device_mark_wait(device, other, scene->there, DEVICE_HERE, err)) ||
        went_wrong(scene, device_launch(device, other, &more, DEVICE_HERE, err)) ||
        went_wrong(scene, device_mark_record(device, other, scene->back, DEVICE_HERE, err)) ||
        went_wrong(scene, device_mark_wait(device, main, scene->back, DEVICE_HERE, err)))
        return;
    read_out(scene, step, layer);
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
    const struct device_view views[] = { scene->x, scene->index, scene->source };
    went_wrong(scene, device_stream_sync(scene->fixture.device, scene->fixture.stream, DEVICE_HERE,
                                         &scene->fixture.err));
    for (size_t i = 0; i < COUNT_OF(views); i++)
        went_wrong(scene, device_buffer_destroy(scene->fixture.device, views[i].buffer, DEVICE_HERE,
                                                &scene->fixture.err));
}

/* True if all bytes of a layer's result are right. */
static bool is_right(const struct scene *scene, int step, int layer)
{
    for (size_t i = 0; i < WIDTH; i++)
        if (!(scene->out[step][layer][i] == (float)(4 + layer)))
            return false;
    return scene->landed[step][layer];
}

/* ---- Events --------------------------------------------------------------------------------- */

static const struct event *event_by_id(struct recorder *recorder, uint64_t id)
{
    for (size_t i = 0; id && i < recorder->count && i < KEPT_LIMIT; i++)
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

static const struct event *first_refusal(struct recorder *recorder)
{
    for (size_t i = 0; i < recorder->count && i < KEPT_LIMIT; i++)
        if (recorder->events[i].outcome == EVENT_REFUSED)
            return &recorder->events[i];
    return NULL;
}

/* An event of a kind with that cause, or NULL. */
static const struct event *caused_by(struct recorder *recorder, enum event_kind kind, uint64_t id)
{
    for (size_t i = 0; id && i < recorder->count && i < KEPT_LIMIT; i++)
        if (recorder->events[i].kind == kind && recorder->events[i].cause_id == id)
            return &recorder->events[i];
    return NULL;
}

static bool is_whole(const struct event *hash)
{
    return hash->expected == hash->host_address && hash->expected == hash->found;
}

/* ---- The table ------------------------------------------------------------------------------ */

enum sign {
    SIGN_REFUSED, /* a call was refused by `check` */
    SIGN_TRAP,
    SIGN_FAULT,
    SIGN_CANARY,
    SIGN_HASH,   /* the hashes of a copy differ */
    SIGN_SCAN,   /* values that are not finite */
    SIGN_RESULT, /* only the bytes are wrong */
};

static const struct {
    const char *plan;
    enum sign sign;
    enum event_kind kind; /* of the call that is refused, or carried it */
    enum event_check check;
    const char *op;
} rows[] = {
    { "dtype-mismatch@op=add", SIGN_REFUSED, EVENT_LAUNCH, EVENT_CHECK_DTYPE, "add" },
    { "wrong-stride@op=add", SIGN_REFUSED, EVENT_LAUNCH, EVENT_CHECK_STRIDE, "add" },
    { "shape-mismatch@op=gather,operand=index", SIGN_REFUSED, EVENT_LAUNCH, EVENT_CHECK_SHAPE,
      "gather" },
    { "grid-limit@op=add", SIGN_REFUSED, EVENT_LAUNCH, EVENT_CHECK_GEOMETRY, "add" },
    { "misaligned-view@op=add", SIGN_REFUSED, EVENT_LAUNCH, EVENT_CHECK_ALIGNMENT, "add" },
    { "offset-past-end@op=gather", SIGN_REFUSED, EVENT_LAUNCH, EVENT_CHECK_VIEW_END, "gather" },
    { "dead-handle@op=gather,operand=source", SIGN_REFUSED, EVENT_LAUNCH, EVENT_CHECK_GENERATION,
      "gather" },
    { "view-past-end@op=copy-out", SIGN_REFUSED, EVENT_COPY_OUT, EVENT_CHECK_VIEW_END, "copy-out" },
    { "size-beyond-view", SIGN_REFUSED, EVENT_COPY_IN, EVENT_CHECK_BYTES, "copy-in" },
    { "early-free@op=gather,operand=source", SIGN_REFUSED, EVENT_LAUNCH, EVENT_CHECK_GENERATION,
      "gather" },
    { "freed-staging", SIGN_REFUSED, EVENT_TICKET_REDEEM, EVENT_CHECK_TICKET, "copy-out" },
    { "double-release", SIGN_REFUSED, EVENT_TICKET_RELEASE, EVENT_CHECK_TICKET, "copy-out" },
    { "bad-index@op=gather", SIGN_TRAP, EVENT_LAUNCH, 0, "gather" },
    { "wild-pointer@op=add", SIGN_FAULT, EVENT_LAUNCH, 0, "add" },
    { "wrapped-offset@op=gather", SIGN_FAULT, EVENT_LAUNCH, 0, "gather" },
    { "memory-vanished@op=gather,operand=source", SIGN_FAULT, EVENT_LAUNCH, 0, "gather" },
    { "free-while-queued@op=gather,operand=source", SIGN_FAULT, EVENT_LAUNCH, 0, "gather" },
    { "overrun@op=add", SIGN_CANARY, EVENT_LAUNCH, 0, "add" },
    { "underrun@op=add", SIGN_CANARY, EVENT_LAUNCH, 0, "add" },
    { "nan-output@op=add", SIGN_SCAN, EVENT_LAUNCH, 0, "add" },
    { "unequal-runs@op=add", SIGN_RESULT, EVENT_LAUNCH, 0, "add" },
    { "flipped-bit", SIGN_HASH, EVENT_COPY_OUT, 0, "copy-out" },
    { "short-copy", SIGN_HASH, EVENT_COPY_OUT, 0, "copy-out" },
    { "stale-copy", SIGN_HASH, EVENT_COPY_OUT, 0, "copy-out" },
    { "flipped-bit-in", SIGN_HASH, EVENT_COPY_IN, 0, "copy-in" },
};

/* Everything before the fault is right, whatever it is. */
static void check_before(const struct scene *scene, const char *name)
{
    for (int step = 0; step < STEPS; step++)
        for (int layer = 0; layer < LAYERS; layer++)
            if ((step < PLANTED_STEP || (step == PLANTED_STEP && layer < PLANTED_LAYER)) &&
                !is_right(scene, step, layer))
                fail_msg("%s: layer %d of step %d is wrong too", name, layer, step);
}

static void check_planted(const struct inject_record *record, const char *name, const char *op)
{
    const struct inject_place *place = &record->place;
    if (!record->planted || place->scope.layer != PLANTED_LAYER ||
        place->scope.step != PLANTED_STEP || strcmp(place->op, op) != 0)
        fail_msg("%s: planted %d in %s at layer %d, step %d", name, record->planted, place->op,
                 place->scope.layer, place->scope.step);
}

static void check_refusal(struct recorder *recorder, const struct inject_record *record, size_t row)
{
    const struct event *event = first_refusal(recorder);
    if (!event || event->kind != rows[row].kind || event->check != rows[row].check)
        fail_msg("%s: expected a refusal by %s, found %s of %s", rows[row].plan,
                 event_check_name(rows[row].check), event ? event_check_name(event->check) : "none",
                 event ? event_kind_name(event->kind) : "-");
    if (event->kind == EVENT_TICKET_REDEEM || event->kind == EVENT_TICKET_RELEASE)
        return; /* of no stream */
    assert_int_equal(event->scope.layer, PLANTED_LAYER);
    assert_int_equal(event->id, record->place.event_id);
}

static void check_row(size_t row, struct scene *scene)
{
    const char *name = rows[row].plan;
    struct recorder *recorder = &scene->fixture.recorder;
    const struct inject_record *record = inject_record(scene->inject);
    uint64_t id = record->place.event_id;
    const struct event *event = NULL;
    check_planted(record, name, rows[row].op);
    check_before(scene, name);
    assert_int_equal(record->place.stream_index, scene->fixture.stream.index);
    switch (rows[row].sign) {
    case SIGN_REFUSED:
        check_refusal(recorder, record, row);
        return;
    case SIGN_TRAP:
        event = caused_by(recorder, EVENT_TRAP, id);
        if (!event || event->found != 0x7F7F7F7F || event->scope.layer != PLANTED_LAYER ||
            strcmp(event->op, rows[row].op) != 0)
            fail_msg("%s: no trap of that launch", name);
        break;
    case SIGN_FAULT:
        event = caused_by(recorder, EVENT_FAULT, id);
        if (!event || event->scope.layer != PLANTED_LAYER)
            fail_msg("%s: no fault of that launch", name);
        break;
    case SIGN_CANARY:
        event = caused_by(recorder, EVENT_CANARY, id);
        if (!event || event->accesses[0].buffer_index != scene->x.buffer.index ||
            event->bytes != 1 || event->scope.layer != PLANTED_LAYER)
            fail_msg("%s: no damaged canary of x behind that launch", name);
        assert_int_equal(count_kind(recorder, EVENT_CANARY), 1);
        break;
    case SIGN_HASH:
        event = caused_by(recorder, EVENT_TRANSFER_HASH, id);
        if (!event || is_whole(event))
            fail_msg("%s: the hashes are equal", name);
        break;
    case SIGN_SCAN:
        event = caused_by(recorder, EVENT_SCAN, id);
        if (!event || event->found != WIDTH || event->expected != WIDTH)
            fail_msg("%s: nothing was scanned", name);
        break;
    case SIGN_RESULT:
        if (is_right(scene, PLANTED_STEP, PLANTED_LAYER))
            fail_msg("%s: the result is right", name);
        break;
    }
    event = event_by_id(recorder, id);
    if (!event || event->kind != rows[row].kind || event->scope.layer != PLANTED_LAYER ||
        event->scope.step != PLANTED_STEP)
        fail_msg("%s: the record names another call", name);
    if (rows[row].sign != SIGN_FAULT)
        assert_int_equal(count_kind(recorder, EVENT_FAULT), 0);
}

/* Plants at the one layer and step, runs, and gives back what was there to be given back. */
static void scene_plant(struct scene *scene, const char *plan_text)
{
    char plan[128];
    snprintf(plan, sizeof(plan), "%s%clayer=%d,step=%d", plan_text,
             strchr(plan_text, '@') ? ',' : '@', PLANTED_LAYER, PLANTED_STEP);
    scene_open(scene, plan);
    scene_run(scene);
    scene_close(scene);
}

static void test_faults(void **state)
{
    (void)state;
    static struct scene scene;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        scene_plant(&scene, rows[row].plan);
        check_row(row, &scene);
        fixture_close(&scene.fixture);
    }
}

/* With a plan that fits no call nothing changes. */
static void test_passes_through(void **state)
{
    (void)state;
    static struct scene scene;
    for (int fault = 0; fault < INJECT_FAULT_COUNT; fault++) {
        char plan[64];
        snprintf(plan, sizeof(plan), "%s@layer=77", inject_fault_name((enum inject_fault)fault));
        scene_open(&scene, plan);
        scene_run(&scene);
        scene_close(&scene);
        assert_int_equal(scene.first.status, STATUS_OK);
        for (int step = 0; step < STEPS; step++)
            for (int layer = 0; layer < LAYERS; layer++)
                assert_true(is_right(&scene, step, layer));
        struct recorder *recorder = &scene.fixture.recorder;
        assert_false(inject_record(scene.inject)->planted);
        assert_int_equal(count_kind(recorder, EVENT_CANARY) + count_kind(recorder, EVENT_TRAP), 0);
        for (size_t i = 0; i < recorder->count && i < KEPT_LIMIT; i++)
            if (recorder->events[i].kind == EVENT_TRANSFER_HASH)
                assert_true(is_whole(&recorder->events[i]));
        fixture_close(&scene.fixture);
    }
}

/* ---- Calls that are missing or too many ----------------------------------------------------- */

/* The free is a call of its own, between the launch and the fault. */
static void test_free_while_queued(void **state)
{
    (void)state;
    static struct scene scene;
    scene_plant(&scene, "free-while-queued@op=gather,operand=source");
    struct recorder *recorder = &scene.fixture.recorder;
    const struct inject_record *record = inject_record(scene.inject);
    const struct event *fault = recorder_last(recorder, EVENT_FAULT), *freed = NULL;
    for (size_t i = 0; i < recorder->count && !freed; i++)
        if (recorder->events[i].kind == EVENT_BUFFER_DESTROY)
            freed = &recorder->events[i];
    assert_true(freed && fault && freed->outcome == EVENT_DONE);
    assert_int_equal(freed->object, scene.source.buffer.index);
    assert_true(record->place.event_id < freed->id && freed->id < fault->id);
    assert_string_equal(record->place.operand, "source");
    assert_int_equal(record->place.operand_index, 2);
    fixture_close(&scene.fixture);
}

static void test_double_free(void **state)
{
    (void)state;
    static struct scene scene;
    scene_open(&scene, "double-free@tensor=index");
    scene_run(&scene);
    scene_close(&scene);
    const struct event *refused = first_refusal(&scene.fixture.recorder);
    assert_true(refused && refused->kind == EVENT_BUFFER_DESTROY);
    assert_int_equal(refused->check, EVENT_CHECK_GENERATION);
    assert_string_equal(inject_record(scene.inject)->place.scope.tensor, "index");
    fixture_close(&scene.fixture);
}

/* The second stream never hears of the mark: there is no event, and the next launch suffers. */
static void test_skipped_wait(void **state)
{
    (void)state;
    static struct scene scene;
    scene_open(&scene, "skipped-wait");
    uint32_t gate = 0;
    struct fixture *fixture = &scene.fixture;
    struct device *device = fixture->device;
    struct error *err = &fixture->err;
    struct event_scope scope = { 4, 2, "y" };
    struct gate_params wait = { NULL, &gate };
    struct device_launch hold = launch_gate(&wait);
    struct add_params one = { 1 };
    struct device_launch add = launch_add(scene.x, &one);
    device_scope_set(device, scene.other, &scope);
    CHECK_OK(device_launch(device, fixture->stream, &hold, DEVICE_HERE, err), err);
    CHECK_OK(device_mark_record(device, fixture->stream, scene.there, DEVICE_HERE, err), err);
    CHECK_OK(device_mark_wait(device, scene.other, scene.there, DEVICE_HERE, err), err);
    CHECK_OK(device_launch(device, scene.other, &add, DEVICE_HERE, err), err);
    CHECK_OK(device_stream_sync(device, scene.other, DEVICE_HERE, err), err); /* would never end */
    const struct inject_record *record = inject_record(scene.inject);
    assert_true(record->planted);
    assert_string_equal(record->place.op, "mark-wait");
    assert_int_equal(record->place.event_id, 0);
    assert_int_equal(record->place.stream_index, scene.other.index);
    assert_string_equal(record->victim.op, "add");
    assert_int_equal(record->victim.scope.layer, 2);
    assert_int_equal(record->victim.event_id, recorder_last(&fixture->recorder, EVENT_LAUNCH)->id);
    assert_int_equal(count_kind(&fixture->recorder, EVENT_MARK_WAIT), 0);
    open_gate(&gate);
    CHECK_OK(device_stream_sync(device, fixture->stream, DEVICE_HERE, err), err);
    /* The next wait is made. */
    CHECK_OK(device_mark_wait(device, scene.other, scene.there, DEVICE_HERE, err), err);
    assert_int_equal(count_kind(&fixture->recorder, EVENT_MARK_WAIT), 1);
    scene_close(&scene);
    fixture_close(fixture);
}

#ifndef RACES_ARE_REPORTED
static void test_two_streams(void **state)
{
    (void)state;
    static struct scene scene;
    scene_plant(&scene, "two-streams@op=gather");
    struct recorder *recorder = &scene.fixture.recorder;
    const struct inject_record *record = inject_record(scene.inject);
    const struct event *moved = event_by_id(recorder, record->place.event_id);
    check_planted(record, "two-streams", "gather");
    assert_non_null(moved);
    assert_true(moved->stream_index != scene.fixture.stream.index &&
                moved->stream_index != scene.other.index);
    assert_int_equal(moved->stream_index, record->place.stream_index);
    assert_int_equal(moved->scope.layer, PLANTED_LAYER);
    assert_string_equal(record->victim.op, "add");
    assert_int_equal(record->victim.stream_index, scene.fixture.stream.index);
    assert_true(record->victim.event_id > record->place.event_id);
    fixture_close(&scene.fixture);
}
#endif

static void test_skipped_launch(void **state)
{
    (void)state;
    static struct scene scene;
    scene_plant(&scene, "skipped-launch@op=add");
    struct recorder *recorder = &scene.fixture.recorder;
    check_planted(inject_record(scene.inject), "skipped-launch", "add");
    assert_false(is_right(&scene, PLANTED_STEP, PLANTED_LAYER));
    assert_int_equal(count_kind(recorder, EVENT_LAUNCH), 3 * LAYERS * STEPS - 1);
    fixture_close(&scene.fixture);
}

static void test_uninitialised_read(void **state)
{
    (void)state;
    static struct scene scene;
    scene_plant(&scene, "uninitialised-read@op=gather,operand=source");
    struct recorder *recorder = &scene.fixture.recorder;
    const struct inject_record *record = inject_record(scene.inject);
    const struct event *launch = event_by_id(recorder, record->place.event_id);
    const struct event *made = recorder_last(recorder, EVENT_BUFFER_CREATE);
    check_planted(record, "uninitialised-read", "gather");
    assert_non_null(launch);
    assert_string_equal(made->scope.tensor, "source");
    assert_true(made->object != scene.source.buffer.index);
    assert_int_equal(launch->accesses[2].buffer_index, made->object);
    assert_int_equal(launch->accesses[2].operand, 2);
    assert_false(is_right(&scene, PLANTED_STEP, PLANTED_LAYER));
    fixture_close(&scene.fixture);
}

static void test_stale_graph(void **state)
{
    (void)state;
    static struct scene scene;
    scene_open(&scene, "stale-graph@op=add,layer=2");
    struct fixture *fixture = &scene.fixture;
    struct error *err = &fixture->err;
    struct event_scope scope = { 0, 2, "x" };
    struct add_params one = { 1 };
    struct device_launch add = launch_add(scene.x, &one);
    struct device_graph graph;
    device_scope_set(fixture->device, fixture->stream, &scope);
    CHECK_OK(device_launch(fixture->device, fixture->stream, &add, DEVICE_HERE, err), err);
    CHECK_OK(device_graph_begin(fixture->device, fixture->stream, DEVICE_HERE, err), err);
    CHECK_OK(device_launch(fixture->device, fixture->stream, &add, DEVICE_HERE, err), err);
    CHECK_OK(device_graph_end(fixture->device, fixture->stream, DEVICE_HERE, &graph, err), err);
    uint64_t recorded_id = recorder_last(&fixture->recorder, EVENT_LAUNCH)->id;
    CHECK_FAILS(device_graph_replay(fixture->device, fixture->stream, graph, DEVICE_HERE, err),
                STATUS_REFUSED, err);
    const struct event *replay = recorder_last(&fixture->recorder, EVENT_GRAPH_REPLAY);
    const struct inject_record *record = inject_record(scene.inject);
    assert_int_equal(replay->check, EVENT_CHECK_STALE_GRAPH);
    assert_true(record->planted);
    assert_int_equal(record->place.event_id, replay->id);
    assert_string_equal(record->place.op, "graph-replay");
    assert_string_equal(record->victim.op, "add");
    assert_string_equal(record->victim.operand, "x");
    assert_int_equal(record->victim.event_id, recorded_id);
    const struct event *made = recorder_last(&fixture->recorder, EVENT_BUFFER_CREATE);
    assert_string_equal(made->scope.tensor, "x");
    assert_int_equal(made->bytes, 2 * WIDTH * sizeof(float));
    fixture_close(fixture);
}

/* ---- Slots and copies ----------------------------------------------------------------------- */

/* The copy that follows in the events, of the same kind. */
static const struct event *next_copy(struct recorder *recorder, const struct event *copy)
{
    for (size_t i = 0; i < recorder->count && i < KEPT_LIMIT; i++)
        if (recorder->events[i].kind == copy->kind && recorder->events[i].id > copy->id)
            return &recorder->events[i];
    return NULL;
}

static void test_slot_rewritten(void **state)
{
    (void)state;
    static struct scene scene;
    scene_plant(&scene, "slot-rewritten");
    struct recorder *recorder = &scene.fixture.recorder;
    const struct inject_record *record = inject_record(scene.inject);
    const struct event *copy = event_by_id(recorder, record->place.event_id);
    check_planted(record, "slot-rewritten", "copy-in");
    check_before(&scene, "slot-rewritten");
    assert_non_null(copy);
    const struct event *again = next_copy(recorder, copy);
    assert_true(again && again->object == copy->object && again->epoch == copy->epoch &&
                again->host_address == copy->host_address);
    /* Not because the first was done. */
    assert_true(caused_by(recorder, EVENT_COMPLETION, copy->id)->id > again->id);
    const struct event *hash = caused_by(recorder, EVENT_TRANSFER_HASH, copy->id);
    assert_true(hash && hash->expected != hash->host_address && hash->found == hash->host_address);
    /* What was uploaded is an index that no table has. */
    assert_non_null(recorder_last(recorder, EVENT_TRAP));
    fixture_close(&scene.fixture);
}

static void test_overlapping_d2h(void **state)
{
    (void)state;
    static struct scene scene;
    scene_plant(&scene, "overlapping-d2h");
    struct recorder *recorder = &scene.fixture.recorder;
    const struct inject_record *record = inject_record(scene.inject);
    const struct event *copy = event_by_id(recorder, record->place.event_id);
    check_planted(record, "overlapping-d2h", "copy-out");
    assert_non_null(copy);
    const struct event *second = next_copy(recorder, copy);
    assert_true(second && second->object == copy->object && second->epoch == copy->epoch &&
                second->host_address == copy->host_address);
    assert_true(second->stream_index != copy->stream_index);
    assert_true(caused_by(recorder, EVENT_COMPLETION, copy->id)->id > second->id);
    fixture_close(&scene.fixture);
}

static void test_overlapping_copies(void **state)
{
    (void)state;
    static struct scene scene;
    scene_plant(&scene, "overlapping-copies");
    struct recorder *recorder = &scene.fixture.recorder;
    const struct inject_record *record = inject_record(scene.inject);
    const struct event *copy = event_by_id(recorder, record->place.event_id), *in = NULL;
    check_planted(record, "overlapping-copies", "copy-out");
    assert_non_null(copy);
    for (size_t i = 0; i < recorder->count && !in; i++)
        if (recorder->events[i].kind == EVENT_COPY_IN && recorder->events[i].id > copy->id)
            in = &recorder->events[i];
    assert_true(in && in->stream_index != copy->stream_index);
    assert_true(in->accesses[0].address == copy->accesses[0].address);
    assert_true(caused_by(recorder, EVENT_COMPLETION, copy->id)->id > in->id);
    assert_false(is_right(&scene, PLANTED_STEP, PLANTED_LAYER));
    fixture_close(&scene.fixture);
}

/* Bytes that do not arrive are seen where they differ from what was there. */
static void test_copies_in(void **state)
{
    (void)state;
    static const char *const plans[] = { "short-copy-in", "stale-copy-in" };
    for (size_t i = 0; i < COUNT_OF(plans); i++) {
        static struct scene scene;
        char plan[64];
        snprintf(plan, sizeof(plan), "%s@tensor=changing", plans[i]);
        scene_open(&scene, plan);
        struct fixture *fixture = &scene.fixture;
        struct event_scope scope = { 0, 0, "changing" };
        float ones[WIDTH];
        for (size_t j = 0; j < WIDTH; j++)
            ones[j] = 1;
        device_scope_set(fixture->device, fixture->stream, &scope);
        CHECK_OK(device_copy_in(fixture->device, fixture->stream, &scene.x, ones, sizeof(ones),
                                DEVICE_HERE, &fixture->err),
                 &fixture->err);
        CHECK_OK(device_stream_sync(fixture->device, fixture->stream, DEVICE_HERE, &fixture->err),
                 &fixture->err);
        const struct event *hash = recorder_last(&fixture->recorder, EVENT_TRANSFER_HASH);
        assert_true(hash->expected == hash->host_address && hash->expected != hash->found);
        assert_int_equal(hash->cause_id, inject_record(scene.inject)->place.event_id);
        fixture_close(fixture);
    }
}

/* ---- Wakeups -------------------------------------------------------------------------------- */

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

/* The redeeming thread hangs although the copy is long done, until the wakeup comes after all. */
static void test_lost_wakeup(void **state)
{
    (void)state;
    static struct scene scene;
    scene_open(&scene, "lost-wakeup");
    struct fixture *fixture = &scene.fixture;
    struct redeemer redeemer = { .scene = &scene };
    pthread_t thread;
    CHECK_OK(device_copy_out(fixture->device, fixture->stream, &scene.x, DEVICE_HERE,
                             &redeemer.ticket, &fixture->err),
             &fixture->err);
    assert_int_equal(pthread_create(&thread, NULL, redeem, &redeemer), 0);
    CHECK_OK(device_stream_sync(fixture->device, fixture->stream, DEVICE_HERE, &fixture->err),
             &fixture->err); /* the stream itself does not hang */
    struct timespec pause = { 0, 20 * 1000000L };
    nanosleep(&pause, NULL);
    assert_false(__atomic_load_n(&redeemer.done, __ATOMIC_ACQUIRE));
    inject_release(scene.inject);
    pthread_join(thread, NULL);
    assert_int_equal(redeemer.status, STATUS_OK);
    assert_int_equal(recorder_last(&fixture->recorder, EVENT_COPY_OUT)->id,
                     inject_record(scene.inject)->place.event_id);
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
    static const char *const plans[] = { "lost-wakeup", "lost-wakeup@op=mark-record",
                                         "free-while-queued@op=add" };
    for (size_t i = 0; i < COUNT_OF(plans); i++) {
        static struct scene scene;
        scene_open(&scene, plans[i]);
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
    CHECK_OK(
        inject_parse("wild-pointer@layer=17,step=3,run=2,op=rope,operand=x,tensor=q", &plan, &err),
        &err);
    assert_int_equal(plan.fault, INJECT_WILD_POINTER);
    assert_int_equal(plan.layer, 17);
    assert_int_equal(plan.step, 3);
    assert_int_equal(plan.run, 2);
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
        cmocka_unit_test(test_double_free),
        cmocka_unit_test(test_skipped_wait),
#ifndef RACES_ARE_REPORTED
        cmocka_unit_test(test_two_streams),
#endif
        cmocka_unit_test(test_skipped_launch),
        cmocka_unit_test(test_uninitialised_read),
        cmocka_unit_test(test_stale_graph),
        cmocka_unit_test(test_slot_rewritten),
        cmocka_unit_test(test_overlapping_d2h),
        cmocka_unit_test(test_overlapping_copies),
        cmocka_unit_test(test_copies_in),
        cmocka_unit_test(test_lost_wakeup),
        cmocka_unit_test(test_lost_mark),
        cmocka_unit_test(test_close_while_lost),
        cmocka_unit_test(test_parse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
