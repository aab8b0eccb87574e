/* Graphs and threads on a real device: replays are followed launch by launch, and threads that wait
 * for each other properly raise nothing. */
#define _GNU_SOURCE /* mkdtemp */
#include "analyze_bench.h"

/* ---- Graphs --------------------------------------------------------------------------------- */

enum graph_defect { GRAPH_CLEAN, GRAPH_TRAP, GRAPH_FAULT, GRAPH_STALE };

/* Records a gather and an add as layers 1 and 2, replays them for some steps; before the
 * replay of that step the index is wrong, the memory is gone, or a buffer is made again. */
static void run_graph(struct bench *bench, enum graph_defect defect, int32_t defect_step)
{
    struct error *err = &bench->err, unused;
    struct device *device = bench->device;
    struct device_stream stream = bench->streams[0];
    struct device_view x = make_floats(bench, 4, "x"), y = make_floats(bench, 1024, "y");
    uint64_t four = 4;
    struct device_view index = { .dtype = DTYPE_I32, .shape = shape_make(1, &four) };
    CHECK_OK(device_buffer_create(device, 16, "index", DEVICE_HERE, &index.buffer, err), err);
    CHECK_OK(device_fill(device, stream, &x, 0, DEVICE_HERE, err), err);
    CHECK_OK(device_fill(device, stream, &y, 0, DEVICE_HERE, err), err);
    const struct add_params add = { 1.0f };
    struct poke_params poke = { .offset = defect == GRAPH_FAULT ? 4096 : 0 };
    struct device_graph graph;
    CHECK_OK(device_graph_begin(device, stream, DEVICE_HERE, err), err);
    struct device_launch gather = { .contract = &gather_contract,
                                    .operands = { x, index, y },
                                    .operand_count = 3,
                                    .tile_count = 1 };
    struct device_launch adding = launch_add(y, &add), poking = launch_poke(y, &poke);
    set_scope(bench, 0, 1, 0, "");
    launch(bench, 0, &gather);
    set_scope(bench, 0, 2, 0, "");
    launch(bench, 0, &adding);
    if (defect == GRAPH_FAULT)
        launch(bench, 0, &poking);
    CHECK_OK(device_graph_end(device, stream, DEVICE_HERE, &graph, err), err);
    int32_t good[4] = { 0, 1, 2, 3 }, bad[4] = { 0, 99999, 2, 3 };
    for (int32_t step = 0; step < defect_step + 3; step++) {
        bool now = step == defect_step;
        set_scope(bench, 0, -1, step, "");
        if (device_copy_in(device, stream, &index, now && defect == GRAPH_TRAP ? bad : good, 16,
                           DEVICE_HERE, &unused))
            break;
        if (now && defect == GRAPH_STALE) {
            CHECK_OK(device_stream_sync(device, stream, DEVICE_HERE, err), err);
            device_buffer_destroy(device, y.buffer, DEVICE_HERE);
            y = make_floats(bench, 2048, "y");
        }
        if (device_graph_replay(device, stream, graph, DEVICE_HERE, &unused) ||
            device_stream_sync(device, stream, DEVICE_HERE, &unused))
            break;
    }
}

static void graphs_are_followed(void **state)
{
    static const struct {
        enum graph_defect defect;
        int hypothesis;
        const char *op;
        int32_t layer, step;
        uint32_t node;
    } rows[] = {
        { GRAPH_CLEAN, -1, "", 0, 0, 0 },
        { GRAPH_TRAP, HYPOTHESIS_BAD_POINTER, "gather", 1, 3, 1 },
        { GRAPH_FAULT, HYPOTHESIS_KERNEL_FAULT, "poke", 2, 0, 3 },
        { GRAPH_STALE, HYPOTHESIS_STALE_GRAPH, "gather", 1, 3, 1 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct bench bench;
        struct analyze_live *live;
        struct analyzer *alive, *dead;
        struct analyze_options options = { .level = AUDIT_GUARD };
        bench_open(&bench, *state, "graph", 0, true);
        CHECK_OK(analyze_live_start(bench.flight, bench.path, &options, &live, &bench.err),
                 &bench.err);
        run_graph(&bench, rows[i].defect, 3);
        CHECK_OK(analyze_live_stop(live, &alive, &bench.err), &bench.err);
        bench_close(&bench);
        CHECK_OK(analyze_flight(bench.path, &options, &dead, &bench.err), &bench.err);
        const struct analysis *analysis = analyzer_result(alive);
        show(analysis);
        check_equal(analysis, analyzer_result(dead));
        if (rows[i].hypothesis < 0) {
            assert_int_equal(analysis->finding_count, 0);
            assert_int_equal(analysis->coverage[HYPOTHESIS_STALE_GRAPH].checked, 6);
        } else {
            assert_true(analysis->root >= 0);
            const struct finding *root = &analysis->findings[analysis->root];
            assert_int_equal(root->hypothesis, (enum hypothesis)rows[i].hypothesis);
            assert_string_equal(root->cause.op, rows[i].op);
            assert_int_equal(root->cause.scope.layer, rows[i].layer);
            assert_int_equal(root->cause.scope.step, rows[i].step);
            assert_int_equal(root->cause.node, rows[i].node);
        }
        analyzer_destroy(alive);
        analyzer_destroy(dead);
        unlink(bench.path);
    }
}

/* The ring has forgotten the buffers and the recording of the graph, and there was no live
 * analysis: the tables of the file still know. */
static void tables_outlive_the_ring(void **state)
{
    struct bench bench;
    struct analyzer *dead;
    struct analyze_options options = { .level = AUDIT_LOG };
    bench_open(&bench, *state, "tables", 64, true);
    run_graph(&bench, GRAPH_TRAP, 50);
    bench_close(&bench);
    CHECK_OK(analyze_flight(bench.path, &options, &dead, &bench.err), &bench.err);
    const struct analysis *analysis = analyzer_result(dead);
    show(analysis);
    assert_true(analysis->lost_count > 0);
    assert_int_equal(analysis->finding_count, 1); /* nothing is called uninitialised */
    const struct finding *root = &analysis->findings[0];
    assert_int_equal(root->hypothesis, HYPOTHESIS_BAD_POINTER);
    assert_string_equal(root->cause.op, "gather");
    assert_int_equal(root->cause.node, 1);
    assert_int_equal(root->cause.scope.step, 50);
    assert_string_equal(root->cause.buffer, "index");
    const struct hypothesis_coverage *reads = &analysis->coverage[HYPOTHESIS_UNINITIALISED_READ];
    assert_int_equal(reads->checked, 0);
    assert_true(reads->total > 0);
    analyzer_destroy(dead);
    unlink(bench.path);
}

/* ---- Threads -------------------------------------------------------------------------------- */

struct worker {
    struct bench *bench;
    uint64_t random;
    bool failed;
    pthread_t thread;
};

static uint32_t draw(struct worker *worker, uint32_t below)
{
    worker->random = worker->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(worker->random >> 33) % below;
}

/* Two streams that hand one buffer to each other, properly, and now and then a new buffer. */
static void *run_worker(void *argument)
{
    struct worker *worker = argument;
    struct device *device = worker->bench->device;
    struct error err;
    struct device_stream streams[2];
    struct device_mark mark;
    uint64_t count = 600;
    struct device_view view = { .dtype = DTYPE_F32, .shape = shape_make(1, &count) };
    const struct add_params add = { 1.0f };
    uint32_t current = 0;
    bool bad = device_stream_create(device, DEVICE_HERE, &streams[0], &err) ||
               device_stream_create(device, DEVICE_HERE, &streams[1], &err) ||
               device_mark_create(device, &mark, &err);
    bool fresh = true;
    for (uint32_t i = 0; i < 1500 && !bad; i++) {
        uint32_t what = draw(worker, 100);
        struct device_launch plain = launch_add(view, &add);
        struct device_ticket ticket;
        const void *bytes;
        uint64_t bytes_count;
        if (fresh) {
            bad = device_buffer_create(device, count * 4, "own", DEVICE_HERE, &view.buffer, &err) ||
                  device_fill(device, streams[current], &view, 0, DEVICE_HERE, &err);
            fresh = false;
        } else if (what < 50) {
            bad = device_launch(device, streams[current], &plain, DEVICE_HERE, &err) != STATUS_OK;
        } else if (what < 75) {
            bad = device_mark_record(device, streams[current], mark, DEVICE_HERE, &err) ||
                  device_mark_wait(device, streams[current ^ 1], mark, DEVICE_HERE, &err);
            current ^= 1;
        } else if (what < 95) {
            enum status status = device_copy_out(device, streams[current], &view, DEVICE_HERE,
                                                 &ticket, &err);
            bad = status != STATUS_BUSY &&
                  (status ||
                   device_ticket_redeem(device, ticket, DEVICE_HERE, &bytes, &bytes_count, &err));
            if (!status)
                device_ticket_release(device, ticket, DEVICE_HERE);
        } else {
            bad = device_stream_sync(device, streams[current], DEVICE_HERE, &err) != STATUS_OK;
            device_buffer_destroy(device, view.buffer, DEVICE_HERE);
            fresh = true;
        }
        bad = bad || device_check(device, &err);
    }
    worker->failed = bad;
    return NULL;
}

static void threads_that_wait_properly_raise_nothing(void **state)
{
    struct bench bench;
    struct worker workers[4];
    struct analyze_live *live;
    struct analyzer *alive, *dead;
    struct analyze_options options = { .level = AUDIT_LOG };
    bench_open(&bench, *state, "threads", 0, false);
    CHECK_OK(analyze_live_start(bench.flight, bench.path, &options, &live, &bench.err), &bench.err);
    for (size_t i = 0; i < COUNT_OF(workers); i++) {
        workers[i] = (struct worker){ .bench = &bench, .random = 7 + i };
        assert_int_equal(pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]), 0);
    }
    for (size_t i = 0; i < COUNT_OF(workers); i++) {
        pthread_join(workers[i].thread, NULL);
        assert_false(workers[i].failed);
    }
    CHECK_OK(analyze_live_stop(live, &alive, &bench.err), &bench.err);
    bench_close(&bench);
    CHECK_OK(analyze_flight(bench.path, &options, &dead, &bench.err), &bench.err);
    show(analyzer_result(dead));
    assert_int_equal(analyzer_result(alive)->finding_count, 0);
    assert_int_equal(analyzer_result(dead)->finding_count, 0);
    const struct hypothesis_coverage *order =
        &analyzer_result(dead)->coverage[HYPOTHESIS_MISSING_SYNC];
    assert_int_equal(order->checked, order->total);
    assert_true(order->total > 1000);
    analyzer_destroy(alive);
    analyzer_destroy(dead);
    unlink(bench.path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_are_followed),
        cmocka_unit_test(tables_outlive_the_ring),
        cmocka_unit_test(threads_that_wait_properly_raise_nothing),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
