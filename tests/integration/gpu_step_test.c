/* gpu_step_test.c - rope, kv_append and attention of one token, which in a graph of a GPU are one
 * kernel, against the same launches one by one. The device is the first argument.
 *
 * Everything is done with guards, where an access past them is a fault and a write before or after
 * a buffer a canary, which an observer hears of, as of traps. (A graph in which damage was found is
 * looked at after every launch from then on, and none are joined: the test has failed by then.)
 * Shapes also without guards, where nothing is looked at. */
#include "ops_lab.h"

#include <dlfcn.h>

static struct lab gpu;

/* ---- Operands ------------------------------------------------------------------------------- */

struct shape_row {
    uint64_t head_dim, kv_heads, group, slots;
    uint64_t rotated; /* values of a head */
    bool adjacent;
};

/* What is in the lists of a replay. */
struct indices {
    int32_t start, position, slot;
};

/* All operands of the three launches, and which events the launches are. */
struct step {
    const struct shape_row *shape;
    struct device_view q, k, v, keys, values, table, starts, positions, slots, out, packed;
    uint64_t launch_ids[3];
};

static uint64_t table_rows(const struct shape_row *shape)
{
    return shape->slots > 1 ? shape->slots - 1 : 1;
}

static struct step make_step(const struct shape_row *shape)
{
    uint64_t kv_dim = shape->head_dim * shape->kv_heads, width = kv_dim * shape->group;
    return (struct step){
        .shape = shape,
        .q = lab_view(&gpu, DTYPE_F32, width, 1),
        .k = lab_view(&gpu, DTYPE_F32, kv_dim, 1),
        .v = lab_view(&gpu, DTYPE_F32, kv_dim, 1),
        .keys = lab_view(&gpu, DTYPE_F16, kv_dim, shape->slots),
        .values = lab_view(&gpu, DTYPE_F16, kv_dim, shape->slots),
        .table = lab_view(&gpu, DTYPE_F32, shape->rotated, table_rows(shape)),
        .starts = lab_view(&gpu, DTYPE_I32, 1, 1),
        .positions = lab_view(&gpu, DTYPE_I32, 1, 1),
        .slots = lab_view(&gpu, DTYPE_I32, 1, 1),
        .out = lab_view(&gpu, DTYPE_F32, width, 1),
        .packed = lab_view(&gpu, DTYPE_I8, ops_packed_row_bytes(&gpu.ops, DTYPE_Q8_0, width, 1), 1)
    };
}

static void drop_step(struct step *step)
{
    struct device_view views[] = { step->q,      step->k,     step->v,      step->keys,
                                   step->values, step->table, step->starts, step->positions,
                                   step->slots,  step->out,   step->packed };
    for (size_t i = 0; i < COUNT_OF(views); i++)
        lab_drop(&gpu, views[i]);
}

static void put_random(const struct device_view *views[2])
{
    uint64_t count = 0;
    assert_true(shape_element_count(&views[0]->shape, &count));
    float *values = lab_floats(&gpu, count);
    uint8_t *bytes = malloc(count * sizeof(float));
    assert_non_null(bytes);
    quant_encode_row(views[0]->dtype, values, count, bytes);
    for (size_t i = 0; i < 2; i++)
        lab_put(&gpu, views[i], bytes);
    free(bytes);
    free(values);
}

/* The same numbers in both. */
static void fill_steps(struct step steps[2], struct indices indices)
{
    struct step *one = &steps[0], *two = &steps[1];
    put_random((const struct device_view *[]){ &one->q, &two->q });
    put_random((const struct device_view *[]){ &one->k, &two->k });
    put_random((const struct device_view *[]){ &one->v, &two->v });
    put_random((const struct device_view *[]){ &one->keys, &two->keys });
    put_random((const struct device_view *[]){ &one->values, &two->values });
    put_random((const struct device_view *[]){ &one->table, &two->table });
    put_random((const struct device_view *[]){ &one->out, &two->out });
    for (size_t i = 0; i < 2; i++) {
        lab_put(&gpu, &steps[i].starts, &indices.start);
        lab_put(&gpu, &steps[i].positions, &indices.position);
        lab_put(&gpu, &steps[i].slots, &indices.slot);
    }
}

/* ---- Launches ------------------------------------------------------------------------------- */

static void launch_step(struct step *step)
{
    struct ops_packing packing = { &step->packed, DTYPE_Q8_0 };
    uint32_t head_dim = (uint32_t)step->shape->head_dim;
    LAB_OK(&gpu, ops_rope(&gpu.target, &step->q, &step->k, &step->positions, &step->table, head_dim,
                          step->shape->adjacent, &gpu.err));
    step->launch_ids[0] = gpu.last_launch_id;
    LAB_OK(&gpu, ops_kv_append(&gpu.target, &step->k, &step->v, &step->slots, &step->keys,
                               &step->values, &gpu.err));
    step->launch_ids[1] = gpu.last_launch_id;
    LAB_OK(&gpu,
           ops_attention(&gpu.target, &step->q, &step->keys, &step->values, &step->starts,
                         &step->positions, &step->out, &packing,
                         &(struct ops_attention_settings){ .head_dim = head_dim, .scale = 0.3f },
                         &gpu.err));
    step->launch_ids[2] = gpu.last_launch_id;
}

/* tolerance: relative to the largest; 0: the same bits. */
static void compare(const char *name, const struct device_view *wanted_view,
                    const struct device_view *found_view, double tolerance)
{
    uint64_t bytes = 0;
    assert_true(shape_bytes(&wanted_view->shape, wanted_view->dtype, &bytes));
    float *wanted = malloc(bytes), *found = malloc(bytes);
    assert_true(wanted && found);
    lab_get(&gpu, wanted_view, wanted);
    lab_get(&gpu, found_view, found);
    if (tolerance == 0) {
        if (memcmp(wanted, found, bytes) != 0)
            fail_msg("%s: other bytes than of launches one by one", name);
    } else {
        size_t count = bytes / sizeof(float);
        double *exact = malloc(count * sizeof(double));
        assert_non_null(exact);
        for (size_t i = 0; i < count; i++)
            exact[i] = (double)wanted[i];
        check_close(name, found, exact, count, tolerance);
        free(exact);
    }
    free(found);
    free(wanted);
}

/* Traps since the last time, and the last of them. */
struct traps {
    uint64_t count;
    struct event last;
};
static uint64_t traps_before;

static struct traps take_traps(void)
{
    LAB_OK(&gpu, device_stream_sync(gpu.device, gpu.target.stream, DEVICE_HERE, &gpu.err));
    uint64_t count = device_trap_count(gpu.device);
    struct traps traps = { count - traps_before, gpu.last_trap };
    traps_before = count;
    return traps;
}

static void compare_traps(const char *name, const struct step steps[2], const struct traps traps[2])
{
    if (traps[0].count != traps[1].count)
        fail_msg("%s: expected %d traps, found %d", name, (int)traps[0].count, (int)traps[1].count);
    if (traps[0].count == 0)
        return;
    const struct event *wanted = &traps[0].last, *found = &traps[1].last;
    size_t launch = 0, of = 0;
    while (launch < 3 && steps[0].launch_ids[launch] != wanted->cause_id)
        launch++;
    while (of < 3 && steps[1].launch_ids[of] != found->cause_id)
        of++;
    assert_true(launch < 3);
    if (launch != of || wanted->trap.index != found->trap.index ||
        wanted->trap.bound != found->trap.bound || wanted->operand != found->operand)
        fail_msg("%s: trap: expected launch %zu, operand %d, index %d of %d, found %zu, %d, %d, %d",
                 name, launch, wanted->operand, (int)wanted->trap.index, (int)wanted->trap.bound,
                 of, found->operand, (int)found->trap.index, (int)found->trap.bound);
}

static void compare_steps(const char *name, const struct step steps[2])
{
    const struct step *one = &steps[0], *two = &steps[1];
    compare(name, &one->q, &two->q, 0);
    compare(name, &one->k, &two->k, 0);
    compare(name, &one->keys, &two->keys, 0);
    compare(name, &one->values, &two->values, 0);
    compare(name, &one->out, &two->out, 1e-5);
    /* What is packed is what is there. */
    LAB_OK(&gpu, ops_act_pack(&gpu.target, &two->out, &one->packed, DTYPE_Q8_0, &gpu.err));
    compare(name, &one->packed, &two->packed, 0);
}

static void replay(struct device_graph graph)
{
    LAB_OK(&gpu, device_graph_replay(gpu.device, gpu.target.stream, graph, DEVICE_HERE, &gpu.err));
}

static struct device_graph record_step(struct step *step)
{
    struct device_graph graph;
    LAB_OK(&gpu, device_graph_begin(gpu.device, gpu.target.stream, DEVICE_HERE, &gpu.err));
    launch_step(step);
    LAB_OK(&gpu, device_graph_end(gpu.device, gpu.target.stream, DEVICE_HERE, &graph, &gpu.err));
    return graph;
}

static void check_shape(const struct shape_row *shape)
{
    int32_t all = (int32_t)shape->slots, last = all - 1;
    const struct indices rows[] = {
        { 0, 0, 0 },
        { 0, last, last },
        { 0, last, last / 2 },             /* the new row among the others */
        { last / 2, last / 3, last },      /* after them */
        { last / 2, last / 3, last / 4 },  /* before them */
        { last, 0, last },                 /* the last alone */
        { 0, last < 111 ? last : 111, 0 }, /* one chunk, and one past it */
        { 0, last < 112 ? last : 112, 1 % all },
        { 0, last < 256 ? last : 256, last < 255 ? last : 255 }, /* one past a part */
        { 0, 0, all }, /* a slot past the cache: its row is not the new one */
        { all, 0, 0 },
        { last, 1, 0 },
        { 0, all, 0 },
        { 0, -1, -1 },
        { -1, 0, 0 },
    };
    struct step steps[2] = { make_step(shape), make_step(shape) };
    struct device_graph graph = record_step(&steps[1]);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char name[160];
        snprintf(name, sizeof(name),
                 "head %d (%d rotated%s), %d kv heads x %d, %d slots, start %d, position %d, slot "
                 "%d",
                 (int)shape->head_dim, (int)shape->rotated, shape->adjacent ? ", neighbours" : "",
                 (int)shape->kv_heads, (int)shape->group, all, rows[i].start, rows[i].position,
                 rows[i].slot);
        struct traps traps[2];
        fill_steps(steps, rows[i]);
        launch_step(&steps[0]);
        traps[0] = take_traps();
        replay(graph);
        traps[1] = take_traps();
        compare_traps(name, steps, traps);
        compare_steps(name, steps);
    }
    device_graph_destroy(gpu.device, graph, DEVICE_HERE);
    drop_step(&steps[0]);
    drop_step(&steps[1]);
}

/* How often a kernel was given to a graph of the emulated driver. NULL: the driver is a real one.
 */
static uint64_t (*find_captured(void))(const char *name)
{
    uint64_t (*captured)(const char *name) = NULL;
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (library)
        *(void **)&captured = dlsym(library, "fake_cuda_captured");
    return captured;
}

static void test_shapes(void **state)
{
    (void)state;
    static const struct shape_row shapes[] = {
        { 32, 1, 1, 1, 32, false },     { 32, 3, 2, 33, 32, true },
        { 64, 2, 8, 300, 64, false },   { 96, 1, 3, 113, 64, false },
        { 96, 2, 5, 129, 96, true },    { 96, 1, 8, 260, 94, true },
        { 64, 1, 7, 257, 2, false },    { 128, 2, 4, 700, 128, false },
        { 128, 1, 8, 1500, 96, false }, { 128, 4, 1, 2100, 128, true },
    };
    uint64_t (*captured)(const char *name) = find_captured();
    uint64_t before = captured ? captured("attention_step") : 0;
    for (size_t i = 0; i < COUNT_OF(shapes); i++)
        check_shape(&shapes[i]);
    if (captured)
        assert_true(captured("attention_step") > before); /* else nothing of it was tested */
}

/* What is not rotated stays as it is, whatever stands next to it. */
static void test_not_finite(void **state)
{
    (void)state;
    static const struct shape_row shape = { 64, 1, 2, 40, 32, false };
    struct step steps[2] = { make_step(&shape), make_step(&shape) };
    struct device_graph graph = record_step(&steps[1]);
    float q[128], k[64];
    fill_steps(steps, (struct indices){ 0, 20, 20 });
    for (size_t i = 0; i < 128; i++)
        q[i] = i % 64 < 32 ? 1.0f : i % 4 == 1 ? -INFINITY : -0.0f;
    for (size_t i = 0; i < 64; i++)
        k[i] = i < 32 ? 1.0f : i % 4 == 1 ? NAN : -0.0f;
    for (size_t i = 0; i < 2; i++) {
        lab_put(&gpu, &steps[i].q, q);
        lab_put(&gpu, &steps[i].k, k);
    }
    launch_step(&steps[0]);
    replay(graph);
    compare("queries", &steps[0].q, &steps[1].q, 0);
    compare("key", &steps[0].k, &steps[1].k, 0);
    compare("cache", &steps[0].keys, &steps[1].keys, 0);
    float found[128];
    lab_get(&gpu, &steps[1].out, found);
    for (size_t i = 0; i < 128; i++)
        assert_true(isnan(found[i]));
    device_graph_destroy(gpu.device, graph, DEVICE_HERE);
    drop_step(&steps[0]);
    drop_step(&steps[1]);
}

/* Launches of the same graph that write what the kernel would read early. With FAKE_GPU_EARLY the
 * emulated GPU ends the program if it does. */
static void test_written_before(void **state)
{
    (void)state;
    static const struct shape_row shape = { 64, 2, 2, 300, 64, false };
    struct step steps[2] = { make_step(&shape), make_step(&shape) };
    float *rows = lab_floats(&gpu, 128);
    struct device_view row = lab_put_new(&gpu, DTYPE_F32, 128, 1, rows);
    struct device_view early_slot = lab_put_new(&gpu, DTYPE_I32, 1, 1, (int32_t[]){ 7 });
    struct device_graph graph;
    fill_steps(steps, (struct indices){ 0, 290, 290 });
    /* Another row of the cache; the step; the step again, on what it left. */
    for (size_t i = 0; i < 2; i++) {
        if (i == 1)
            LAB_OK(&gpu, device_graph_begin(gpu.device, gpu.target.stream, DEVICE_HERE, &gpu.err));
        LAB_OK(&gpu, ops_kv_append(&gpu.target, &row, &row, &early_slot, &steps[i].keys,
                                   &steps[i].values, &gpu.err));
        launch_step(&steps[i]);
        LAB_OK(&gpu, ops_add(&gpu.target, &steps[i].q, &steps[i].q, &gpu.err));
        launch_step(&steps[i]);
    }
    LAB_OK(&gpu, device_graph_end(gpu.device, gpu.target.stream, DEVICE_HERE, &graph, &gpu.err));
    replay(graph);
    compare_steps("cache written before", steps);
    device_graph_destroy(gpu.device, graph, DEVICE_HERE);
    lab_drop(&gpu, row);
    lab_drop(&gpu, early_slot);
    drop_step(&steps[0]);
    drop_step(&steps[1]);
    free(rows);
}

static int open_as(bool guards)
{
    struct device_options options = { .observer = { lab_notify, &gpu },
                                      .guards = guards,
                                      .poison = true,
                                      .quarantine_bytes = guards ? UINT64_C(64) << 20 : 0 };
    lab_open_with(&gpu, CPU_PATH_COUNT, &options);
    traps_before = 0;
    return 0;
}

static int open_guarded(void **state)
{
    (void)state;
    return open_as(true);
}

static int open_unguarded(void **state)
{
    (void)state;
    return open_as(false);
}

static int close_lab(void **state)
{
    (void)state;
    lab_close(&gpu);
    return 0;
}

int main(int argument_count, char **arguments)
{
    if (!lab_choose_named(argument_count, arguments))
        return LAB_SKIPPED;
    const struct CMUnitTest guarded[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_written_before),
    };
    const struct CMUnitTest unguarded[] = { cmocka_unit_test(test_shapes) };
    int failed = cmocka_run_group_tests(guarded, open_guarded, close_lab);
    return cmocka_run_group_tests(unguarded, open_unguarded, close_lab) + failed;
}
