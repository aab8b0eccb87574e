/* gpu_inspect_test.c - what a device says of memory the audit wants looked at, compared with what
 * is there: digests of rows of any size and place, values that are not finite, canaries, in
 * launches and in replays. The device is the first argument; the host, without one. Where a GPU's
 * runtime cannot map memory into ranges (FAKE_GPU_NO_RANGES), canaries are all that guards are. */
#include "ops_lab.h"

#include "device/device_impl.h"
#include "inject/inject.h"

#define SLOT_BYTES 65536u

/* Events so far; under its lock. */
struct watch {
    pthread_mutex_t lock;
    uint64_t hashes, scans, bad_scans, canaries;
    struct event hash, scan, bad_scan, canary, replay; /* the last of each */
};

static void notify(void *context, const struct event *event)
{
    struct watch *watch = context;
    pthread_mutex_lock(&watch->lock);
    if (event->kind == EVENT_TRANSFER_HASH) {
        watch->hashes++;
        watch->hash = *event;
    } else if (event->kind == EVENT_SCAN) {
        watch->scans++;
        watch->scan = *event;
        if (event->scan.bad_count) {
            watch->bad_scans++;
            watch->bad_scan = *event;
        }
    } else if (event->kind == EVENT_CANARY) {
        watch->canaries++;
        watch->canary = *event;
    } else if (event->kind == EVENT_GRAPH_REPLAY && event->phase == EVENT_END) {
        watch->replay = *event;
    }
    pthread_mutex_unlock(&watch->lock);
}

struct scene {
    struct lab lab;
    struct watch watch;
    struct inject *inject;
};

static void open_scene(struct scene *scene, bool verify, const char *spec_text)
{
    struct lab *lab = &scene->lab;
    memset(scene, 0, sizeof(*scene));
    pthread_mutex_init(&scene->watch.lock, NULL);
    struct device_options options = { .observer = { notify, &scene->watch },
                                      .guards = true,
                                      .poison = true,
                                      .verify = verify,
                                      .scan_every = 1,
                                      .staging_slot_bytes = SLOT_BYTES };
    pthread_mutex_init(&lab->lock, NULL);
    lab->random = lab_seed();
    LAB_OK(lab, all_open(lab_device, &options, &lab->device, &lab->err));
    if (spec_text) {
        struct inject_spec spec;
        LAB_OK(lab, inject_parse(spec_text, &spec, &lab->err));
        LAB_OK(lab, inject_install(lab->device, &spec, &scene->inject, &lab->err));
    }
    LAB_OK(lab, ops_load(&lab->ops, lab->device, CPU_PATH_COUNT, &lab->err));
    lab->target = (struct ops_target){ .ops = &lab->ops, .site = DEVICE_HERE };
    LAB_OK(lab, device_stream_create(lab->device, DEVICE_HERE, &lab->target.stream, &lab->err));
}

static void close_scene(struct scene *scene)
{
    lab_close(&scene->lab);
    pthread_mutex_destroy(&scene->watch.lock);
}

static void wait_for(struct scene *scene)
{
    struct lab *lab = &scene->lab;
    LAB_OK(lab, device_stream_sync(lab->device, lab->target.stream, DEVICE_HERE, &lab->err));
}

/* ---- Digests -------------------------------------------------------------------------------- */

static void check_hash(const struct watch *watch, const char *what, uint64_t wanted)
{
    const struct event *hash = &watch->hash;
    if (hash->transfer.source_before != wanted || hash->transfer.source_after != wanted ||
        hash->transfer.destination != wanted)
        fail_msg("%s of %llu bytes: expected digest %016llx, found %016llx, %016llx, %016llx", what,
                 (unsigned long long)hash->transfer.bytes, (unsigned long long)wanted,
                 (unsigned long long)hash->transfer.source_before,
                 (unsigned long long)hash->transfer.source_after,
                 (unsigned long long)hash->transfer.destination);
}

static void test_digests(void **state)
{
    (void)state;
    static const uint64_t sizes[] = { 1, 7, 8, 9, 64, 4095, 4096, 16385, 65535, SLOT_BYTES };
    struct scene scene;
    open_scene(&scene, true, NULL);
    struct lab *lab = &scene.lab;
    uint8_t *bytes = (uint8_t *)lab_floats(lab, SLOT_BYTES), *back = malloc(SLOT_BYTES);
    assert_non_null(back);
    struct device_view all = lab_view(lab, DTYPE_I8, SLOT_BYTES + 64, 1);
    uint64_t reported = 0;
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct device_view view = all;
        view.shape = shape_make(1, &sizes[i]);
        view.offset_bytes = i * 5 % 17; /* of every alignment */
        uint64_t digest = device_digest(bytes + i, sizes[i], 1, sizes[i]);
        LAB_OK(lab, device_copy_in(lab->device, lab->target.stream, &view, bytes + i, sizes[i],
                                   DEVICE_HERE, &lab->err));
        wait_for(&scene);
        assert_int_equal(scene.watch.hashes, ++reported);
        check_hash(&scene.watch, "copy in", digest);
        lab_get(lab, &view, back);
        assert_int_equal(scene.watch.hashes, ++reported);
        check_hash(&scene.watch, "copy out", digest);
    }
    free(bytes);
    free(back);
    close_scene(&scene);
}

static void test_digests_of_rows(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, true, NULL);
    struct lab *lab = &scene.lab;
    enum { STRIDE = 96, ROWS = 37 };
    uint8_t *bytes = (uint8_t *)lab_floats(lab, STRIDE * ROWS);
    struct device_view from = lab_put_new(lab, DTYPE_I8, STRIDE, ROWS, bytes);
    struct device_view to = lab_view(lab, DTYPE_I8, STRIDE, ROWS);
    for (uint64_t width = 1; width < STRIDE; width += 7) {
        uint64_t dims[] = { width, ROWS };
        from.shape = to.shape = shape_make(2, dims);
        from.row_stride_bytes = to.row_stride_bytes = STRIDE;
        from.offset_bytes = width % 3;
        LAB_OK(lab, device_copy_within(lab->device, lab->target.stream, &to, &from, DEVICE_HERE,
                                       &lab->err));
        wait_for(&scene);
        check_hash(&scene.watch, "copy within",
                   device_digest(bytes + from.offset_bytes, width, ROWS, STRIDE));
    }
    free(bytes);
    close_scene(&scene);
}

/* ---- Values --------------------------------------------------------------------------------- */

static void check_scan(uint64_t width, uint64_t rows, bool apart)
{
    struct scene scene;
    open_scene(&scene, false, NULL);
    struct lab *lab = &scene.lab;
    uint64_t stride = apart ? width + 4 : width; /* values */
    float *values = lab_floats(lab, stride * rows), *added = lab_floats(lab, stride * rows);
    uint64_t wanted = 0, first = UINT64_MAX;
    for (uint64_t i = rows * width / 3; i < rows * width; i += 1 + rows * width / 7) {
        values[i / width * stride + i % width] = wanted % 2 ? INFINITY : NAN;
        first = wanted++ ? first : i;
    }
    struct device_view x = lab_put_new(lab, DTYPE_F32, stride, rows, values);
    struct device_view y = lab_put_new(lab, DTYPE_F32, stride, rows, added);
    uint64_t dims[] = { width, rows };
    x.shape = y.shape = shape_make(2, dims);
    x.row_stride_bytes = y.row_stride_bytes = stride * sizeof(float);
    LAB_OK(lab, ops_add(&lab->target, &x, &y, &lab->err));
    wait_for(&scene);
    assert_int_equal(scene.watch.scans, 1);
    assert_int_equal(scene.watch.scan.scan.value_count, width * rows);
    assert_int_equal(scene.watch.scan.scan.bad_count, wanted);
    assert_true(scene.watch.scan.scan.first_bad == first);
    assert_string_equal(scene.watch.scan.op, "add");
    assert_int_equal(scene.watch.canaries, 0);
    free(values);
    free(added);
    close_scene(&scene);
}

static void test_scans(void **state)
{
    (void)state;
    check_scan(100, 1, false);
    check_scan(4096, 1, false);
    check_scan(4099, 33, false);
    check_scan(1000, 17, true);
    check_scan(20000, 3, true);
}

/* More launches than can wait to be reported: none is forgotten. */
static void test_many_launches(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, false, NULL);
    struct lab *lab = &scene.lab;
    enum { LAUNCHES = 2500, WIDTH = 40 };
    float values[WIDTH] = { 0 };
    struct device_view x = lab_put_new(lab, DTYPE_F32, WIDTH, 1, values);
    struct device_view y = lab_put_new(lab, DTYPE_F32, WIDTH, 1, values);
    for (int i = 0; i < LAUNCHES; i++)
        LAB_OK(lab, ops_add(&lab->target, &x, &y, &lab->err));
    wait_for(&scene);
    assert_int_equal(scene.watch.scans, LAUNCHES);
    assert_int_equal(scene.watch.bad_scans + scene.watch.canaries, 0);
    close_scene(&scene);
}

/* ---- Canaries ------------------------------------------------------------------------------- */

#define WIDTH_LIMIT 128u

/* Adds `width` values three times; the spec's damage is done in the second. */
static void check_canary(const char *spec, uint64_t width, int64_t offset)
{
    struct scene scene;
    open_scene(&scene, false, spec);
    struct lab *lab = &scene.lab;
    float values[WIDTH_LIMIT] = { 0 };
    struct device_view x = lab_put_new(lab, DTYPE_F32, width, 1, values);
    struct device_view y = lab_put_new(lab, DTYPE_F32, width, 1, values);
    for (int32_t layer = 0; layer < 3; layer++) {
        struct event_scope scope = { .step = 2, .layer = layer, .tensor = "sum" };
        device_scope_set(lab->device, lab->target.stream, &scope);
        LAB_OK(lab, ops_add(&lab->target, &x, &y, &lab->err));
    }
    wait_for(&scene);
    const struct event *canary = &scene.watch.canary;
    assert_int_equal(scene.watch.canaries, 1); /* put back: seen once */
    assert_int_equal(canary->canary.damaged_bytes, 1);
    assert_int_equal(canary->canary.offset, offset);
    assert_int_equal(canary->canary.buffer_bytes, width * sizeof(float));
    assert_int_equal(canary->accesses[0].buffer_index, x.buffer.index);
    assert_int_equal(canary->scope.layer, 1);
    assert_string_equal(canary->op, "add");
    assert_true(canary->cause_id == inject_record(scene.inject)->place.event_id);
    lab_get(lab, &x, values); /* nothing faulted */
    close_scene(&scene);
}

/* Whether guards fault on this device, or are canaries alone. */
static bool guards_fault(void)
{
    struct scene scene;
    open_scene(&scene, false, NULL);
    bool fault = device_info(scene.lab.device)->guards_fault;
    close_scene(&scene);
    return fault;
}

static void test_canaries(void **state)
{
    (void)state;
    /* So wide that some bytes are left behind it, whatever is there. */
    check_canary("overrun@op=add,layer=1", 99, 99 * (int64_t)sizeof(float));
    check_canary("underrun@op=add,layer=1", 99, -1);
}

/* A buffer of whole steps of alignment: where guards fault, its end is that of the memory. */
static void test_zones(void **state)
{
    (void)state;
    if (guards_fault())
        return; /* gpu_fault_test has this */
    check_canary("overrun@op=add,layer=1", WIDTH_LIMIT, WIDTH_LIMIT * (int64_t)sizeof(float));
    check_canary("underrun@op=add,layer=1", WIDTH_LIMIT, -1);
}

/* Further away than what is looked at after a launch: found when the buffer goes. */
static void test_far_damage(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, false, NULL);
    struct lab *lab = &scene.lab;
    const struct device_info *info = device_info(lab->device);
    /* Only the emulated driver's memory can be written by this process. */
    if (strncmp(info->name, "Fake", 4) == 0 && !info->guards_fault) {
        float values[WIDTH_LIMIT] = { 0 };
        struct device_view x = lab_put_new(lab, DTYPE_F32, WIDTH_LIMIT, 1, values);
        struct device_view y = lab_put_new(lab, DTYPE_F32, WIDTH_LIMIT, 1, values);
        LAB_OK(lab, ops_add(&lab->target, &x, &y, &lab->err));
        wait_for(&scene);
        uint8_t *bytes = (uint8_t *)(uintptr_t)scene.watch.scan.accesses[0].address;
        bytes[sizeof(values) + 3000] = bytes[-3000] = 0;
        LAB_OK(lab, ops_add(&lab->target, &x, &y, &lab->err));
        wait_for(&scene);
        assert_int_equal(scene.watch.canaries, 0);
        lab_drop(lab, y);
        assert_int_equal(scene.watch.canaries, 0);
        uint32_t index = x.buffer.index;
        lab_drop(lab, x);
        assert_int_equal(scene.watch.canaries, 1);
        assert_int_equal(scene.watch.canary.canary.damaged_bytes, 2);
        assert_int_equal(scene.watch.canary.accesses[0].buffer_index, index);
        assert_int_equal(scene.watch.canary.canary.offset, -3000);
        assert_true(scene.watch.canary.cause_id == 0);
    }
    close_scene(&scene);
}

/* ---- Replays -------------------------------------------------------------------------------- */

enum { REPLAY_WIDTH = 5001, REPLAY_LAUNCHES = 3 };

/* A graph of REPLAY_LAUNCHES adds to x, one for each layer. */
static struct device_graph record_adds(struct lab *lab, const struct device_view *x,
                                       const struct device_view *y)
{
    struct device_graph graph;
    LAB_OK(lab, device_graph_begin(lab->device, lab->target.stream, DEVICE_HERE, &lab->err));
    for (int32_t layer = 0; layer < REPLAY_LAUNCHES; layer++) {
        struct event_scope scope = { .step = 0, .layer = layer, .tensor = "sum" };
        device_scope_set(lab->device, lab->target.stream, &scope);
        LAB_OK(lab, ops_add(&lab->target, x, y, &lab->err));
    }
    LAB_OK(lab, device_graph_end(lab->device, lab->target.stream, DEVICE_HERE, &graph, &lab->err));
    return graph;
}

/* A scene with such a graph. */
struct replays {
    struct scene scene;
    float *values;
    struct device_view x, y;
    struct device_graph graph;
};

static void open_replays(struct replays *replays)
{
    struct lab *lab = &replays->scene.lab;
    open_scene(&replays->scene, false, NULL);
    replays->values = lab_floats(lab, REPLAY_WIDTH);
    replays->x = lab_put_new(lab, DTYPE_F32, REPLAY_WIDTH, 1, replays->values);
    replays->y = lab_put_new(lab, DTYPE_F32, REPLAY_WIDTH, 1, replays->values);
    replays->graph = record_adds(lab, &replays->x, &replays->y);
}

static void close_replays(struct replays *replays)
{
    struct lab *lab = &replays->scene.lab;
    device_graph_destroy(lab->device, replays->graph, DEVICE_HERE);
    free(replays->values);
    close_scene(&replays->scene);
}

static void replay(struct replays *replays)
{
    struct lab *lab = &replays->scene.lab;
    LAB_OK(lab, device_graph_replay(lab->device, lab->target.stream, replays->graph, DEVICE_HERE,
                                    &lab->err));
}

/* A GPU sweeps once at the end; from the first alarm on, it looks after every launch. */
static void test_replays(void **state)
{
    (void)state;
    struct replays replays;
    open_replays(&replays);
    struct lab *lab = &replays.scene.lab;
    const struct watch *watch = &replays.scene.watch;
    uint64_t swept = lab_is_host() ? REPLAY_LAUNCHES : 1;
    /* Two at once: the first is reported before the second may use its slots. */
    replay(&replays);
    replay(&replays);
    wait_for(&replays.scene);
    assert_int_equal(watch->scans, 2 * swept);
    assert_int_equal(watch->bad_scans, 0);
    assert_int_equal(watch->scan.scan.value_count, REPLAY_WIDTH);
    assert_true(watch->scan.cause_id == watch->replay.id);
    replays.values[REPLAY_WIDTH - 3] = INFINITY;
    lab_put(lab, &replays.y, replays.values);
    replay(&replays);
    lab_get(lab, &replays.x, replays.values); /* a ticket's wait tells as well */
    assert_int_equal(watch->scans, 3 * swept);
    assert_int_equal(watch->bad_scans, swept);
    assert_int_equal(watch->bad_scan.scan.first_bad, REPLAY_WIDTH - 3);
    assert_true(watch->bad_scan.cause_id == watch->replay.id);
    assert_int_equal(watch->bad_scan.scope.layer, REPLAY_LAUNCHES - 1);
    replay(&replays);
    wait_for(&replays.scene);
    assert_int_equal(watch->scans, 3 * swept + REPLAY_LAUNCHES);
    assert_int_equal(watch->bad_scans, swept + REPLAY_LAUNCHES);
    assert_true(watch->bad_scan.cause_id == watch->replay.id);
    assert_int_equal(watch->canaries, 0);
    close_replays(&replays);
}

/* Bytes next to a buffer of a graph, overwritten by hand where this process can. */
static void test_canary_of_replay(void **state)
{
    (void)state;
    struct replays replays;
    open_replays(&replays);
    struct lab *lab = &replays.scene.lab;
    replay(&replays);
    wait_for(&replays.scene);
    if (lab_is_host() || strncmp(device_info(lab->device)->name, "Fake", 4) == 0) {
        uint64_t address = replays.scene.watch.scan.accesses[0].address;
        ((uint8_t *)(uintptr_t)address)[REPLAY_WIDTH * sizeof(float) + 1] = 0;
        replay(&replays);
        replay(&replays); /* put back: reported once */
        wait_for(&replays.scene);
        assert_int_equal(replays.scene.watch.canaries, 1);
        assert_int_equal(replays.scene.watch.canary.canary.damaged_bytes, 1);
        assert_int_equal(replays.scene.watch.canary.canary.offset,
                         REPLAY_WIDTH * sizeof(float) + 1);
        /* Three launches write there: which one it was is not known of a sweep. */
        assert_string_equal(replays.scene.watch.canary.op, lab_is_host() ? "add" : "");
    }
    close_replays(&replays);
}

/* A stream that goes before its graph, with a replay that was not waited for. */
static void test_stream_before_graph(void **state)
{
    (void)state;
    struct replays replays;
    open_replays(&replays);
    struct lab *lab = &replays.scene.lab;
    replay(&replays);
    device_stream_destroy(lab->device, lab->target.stream, DEVICE_HERE);
    assert_true(replays.scene.watch.scans > 0);
    close_replays(&replays);
}

int main(int argument_count, char **arguments)
{
    if (!lab_choose(argument_count, arguments))
        return LAB_SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_digests),
        cmocka_unit_test(test_digests_of_rows),
        cmocka_unit_test(test_scans),
        cmocka_unit_test(test_many_launches),
        cmocka_unit_test(test_canaries),
        cmocka_unit_test(test_zones),
        cmocka_unit_test(test_far_damage),
        cmocka_unit_test(test_replays),
        cmocka_unit_test(test_canary_of_replay),
        cmocka_unit_test(test_stream_before_graph),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
