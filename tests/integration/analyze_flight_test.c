/* The same findings live, from the file of a process that ended, and from one that was killed. */
#define _GNU_SOURCE /* mkdtemp, kill, usleep */
#include "analyze/analyze.h"
#include "base/clock.h"
#include "base/text.h"
#include "device_fixture.h"
#include "event/fan.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__)
#define RACES_ARE_REPORTED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RACES_ARE_REPORTED 1
#endif
#endif

/* ---- A workload ----------------------------------------------------------------------------- */

enum defect {
    DEFECT_NONE,
    DEFECT_TRAP,
    DEFECT_FAULT,
    DEFECT_RACE,
    DEFECT_FREE,
    DEFECT_REFUSAL,
    DEFECT_NO_WAIT /* the side stream does not wait for its mark */
};

struct bench {
    char path[128];
    struct flight *flight;
    struct device *device;
    struct device_stream streams[2];
    struct device_mark there, back;
    struct error err;
};

static void bench_open(struct bench *bench, const char *folder, const char *name,
                       uint32_t record_count, bool guards)
{
    memset(bench, 0, sizeof(*bench));
    snprintf(bench->path, sizeof(bench->path), "%s/%s.flight", folder, name);
    struct flight_options flight_options = { .record_count = record_count,
                                             .device = "host",
                                             .command = "test --audit guard" };
    CHECK_OK(flight_create(bench->path, &flight_options, &bench->flight, &bench->err), &bench->err);
    struct device_options options = { .observer = flight_observer(bench->flight),
                                      .crumbs = flight_crumbs(bench->flight),
                                      .thread_count = 1,
                                      .guards = guards,
                                      /* Freed memory stays readable: what is found must not
                                       * depend on whether the work was done by then. */
                                      .quarantine_bytes = guards ? 0 : (uint64_t)1 << 30,
                                      .hash_results = true };
    CHECK_OK(host_device_open(&options, &bench->device, &bench->err), &bench->err);
    CHECK_OK(device_module_load(bench->device, &test_image, DEVICE_HERE, &bench->err), &bench->err);
    for (size_t i = 0; i < 2; i++)
        CHECK_OK(device_stream_create(bench->device, DEVICE_HERE, &bench->streams[i], &bench->err),
                 &bench->err);
    CHECK_OK(device_mark_create(bench->device, &bench->there, &bench->err), &bench->err);
    CHECK_OK(device_mark_create(bench->device, &bench->back, &bench->err), &bench->err);
}

static void bench_close(struct bench *bench)
{
    device_close(bench->device);
    flight_close(bench->flight);
}

static struct device_view make_floats(struct bench *bench, uint64_t count, const char *name)
{
    struct device_view view = { .dtype = DTYPE_F32, .shape = shape_make(1, &count) };
    CHECK_OK(device_buffer_create(bench->device, count * sizeof(float), name, DEVICE_HERE,
                                  &view.buffer, &bench->err),
             &bench->err);
    return view;
}

static void set_scope(struct bench *bench, size_t stream, int32_t layer, int32_t step,
                      const char *tensor)
{
    struct event_scope scope = { step, layer, "" };
    event_set_text(scope.tensor, sizeof(scope.tensor), tensor);
    device_scope_set(bench->device, bench->streams[stream], &scope);
}

/* Failures are the point of some runs. */
static void launch(struct bench *bench, size_t stream, const struct device_launch *launch)
{
    struct error unused;
    if (device_launch(bench->device, bench->streams[stream], launch, DEVICE_HERE, &unused))
        return;
}

/* One launch on the side stream, after what the main one has so far and before what comes. */
static void run_aside(struct bench *bench, const struct device_launch *work, bool waits)
{
    struct error unused;
    const struct device_stream *streams = bench->streams;
    if (device_mark_record(bench->device, streams[0], bench->there, DEVICE_HERE, &unused) ||
        (waits && device_mark_wait(bench->device, streams[1], bench->there, DEVICE_HERE, &unused)))
        return;
    launch(bench, 1, work);
    if (device_mark_record(bench->device, streams[1], bench->back, DEVICE_HERE, &unused) ||
        device_mark_wait(bench->device, streams[0], bench->back, DEVICE_HERE, &unused))
        return;
}

/* Iterations of a few steps with a few layers each, and one defect at layer 2 of the given step. */
static void run_workload(struct bench *bench, enum defect defect, uint64_t iterations,
                         int32_t defect_step)
{
    struct error unused;
    struct device_view x = make_floats(bench, 1024, "x");
    struct device_view y = make_floats(bench, 1024, "y");
    uint64_t four = 4;
    struct device_view index = { .dtype = DTYPE_I32, .shape = shape_make(1, &four) };
    CHECK_OK(
        device_buffer_create(bench->device, 16, "index", DEVICE_HERE, &index.buffer, &bench->err),
        &bench->err);
    struct device_view short_x = x;
    short_x.shape = shape_make(1, &four);
    const struct add_params add = { 1.0f };
    int32_t good[4] = { 0, 1, 2, 3 }, bad[4] = { 0, 99999, 2, 3 };
    bool spoilt = false;
    /* The faulting launch waits until the copy of the logits is queued: it is seen there. */
    uint32_t is_open = 0;
    struct gate_params gate = { .wait = &is_open };
    for (uint64_t iteration = 1; iteration <= iterations; iteration++) {
        if (iteration % 20 == 0)
            usleep(10000); /* for the live analysis to follow, on a busy machine */
        device_run_begin(bench->device, iteration, 42);
        for (int32_t step = 0; step < 4; step++) {
            bool now = defect && !spoilt && step == defect_step && iteration == iterations;
            set_scope(bench, 0, -1, step, "index");
            if (device_copy_in(bench->device, bench->streams[0], &index,
                               now && defect == DEFECT_TRAP ? bad : good, 16, DEVICE_HERE,
                               &unused) ||
                device_fill(bench->device, bench->streams[0], &x, 0, DEVICE_HERE, &unused) ||
                device_fill(bench->device, bench->streams[0], &y, 0, DEVICE_HERE, &unused))
                break;
            for (int32_t layer = 0; layer < 4; layer++) {
                set_scope(bench, 0, layer, step, "");
                struct device_launch plain = launch_add(x, &add);
                launch(bench, 0, &plain);
                struct device_launch gather = { .contract = &gather_contract,
                                                .operands = { short_x, index, y },
                                                .operand_count = 3,
                                                .tile_count = 4 };
                if (layer == 2)
                    launch(bench, 0, &gather);
                set_scope(bench, 1, layer, step, "");
                if (layer == 2)
                    run_aside(bench, &plain, !now || defect != DEFECT_NO_WAIT);
                if (layer != 2 || !now)
                    continue;
                spoilt = true;
                struct poke_params poke = { .offset = 4096 };
                struct device_launch waiting = launch_gate(&gate);
                struct device_launch poking = launch_poke(x, &poke);
                struct device_view wrong = x;
                wrong.dtype = DTYPE_I32;
                struct device_launch refused = launch_add(wrong, &add);
                if (defect == DEFECT_FAULT) {
                    launch(bench, 0, &waiting);
                    launch(bench, 0, &poking);
                }
                if (defect == DEFECT_RACE)
                    launch(bench, 1, &plain);
                if (defect == DEFECT_REFUSAL)
                    launch(bench, 0, &refused);
                if (defect == DEFECT_FREE &&
                    device_buffer_destroy(bench->device, y.buffer, DEVICE_HERE, &unused))
                    continue;
            }
            set_scope(bench, 0, -1, step, "logits");
            struct device_ticket ticket;
            const void *bytes;
            uint64_t count;
            if (device_copy_out(bench->device, bench->streams[0], &x, DEVICE_HERE, &ticket,
                                &unused))
                break;
            if (spoilt)
                open_gate(&is_open);
            if (device_ticket_redeem(bench->device, ticket, DEVICE_HERE, &bytes, &count, &unused))
                break;
            if (device_ticket_release(bench->device, ticket, DEVICE_HERE, &unused))
                break;
            if (defect == DEFECT_FREE && spoilt)
                return;
        }
    }
}

/* ---- Comparing ------------------------------------------------------------------------------ */

static void check_place(const char *what, const struct analyze_place *a,
                        const struct analyze_place *b)
{
    if (a->event_id != b->event_id || a->kind != b->kind || strcmp(a->op, b->op) != 0 ||
        a->scope.layer != b->scope.layer || a->scope.step != b->scope.step ||
        strcmp(a->scope.tensor, b->scope.tensor) != 0 || a->stream_index != b->stream_index ||
        a->iteration != b->iteration || a->operand != b->operand || a->address != b->address ||
        a->bytes != b->bytes || strcmp(a->buffer, b->buffer) != 0 || a->line != b->line ||
        a->node != b->node || a->epoch != b->epoch || a->time_ns != b->time_ns)
        fail_msg("%s: event %" PRIu64 " (%s, %s) against event %" PRIu64 " (%s, %s)", what,
                 a->event_id, a->op, a->buffer, b->event_id, b->op, b->buffer);
}

static void check_equal(const struct analysis *a, const struct analysis *b)
{
    assert_int_equal(a->finding_count, b->finding_count);
    assert_int_equal(a->root, b->root);
    assert_int_equal(a->device_lost, b->device_lost);
    assert_int_equal(a->iteration_count, b->iteration_count);
    for (size_t i = 0; i < a->finding_count; i++) {
        const struct finding *x = &a->findings[i], *y = &b->findings[i];
        assert_int_equal(x->hypothesis, y->hypothesis);
        assert_int_equal(x->certainty, y->certainty);
        check_place("cause", &x->cause, &y->cause);
        check_place("other", &x->other, &y->other);
        check_place("seen", &x->seen, &y->seen);
        assert_int_equal(x->check, y->check);
        assert_int_equal(x->expected, y->expected);
        assert_int_equal(x->found, y->found);
        assert_int_equal(x->near.known, y->near.known);
        assert_int_equal(x->near.address, y->near.address);
        assert_string_equal(x->near.live.name, y->near.live.name);
        assert_string_equal(x->near.freed.name, y->near.freed.name);
        assert_string_equal(x->near.before.name, y->near.before.name);
        assert_string_equal(x->near.after.name, y->near.after.name);
        assert_int_equal(x->near.before.distance, y->near.before.distance);
        assert_int_equal(x->candidate_count, y->candidate_count);
        assert_int_equal(x->order_id, y->order_id);
        assert_int_equal(x->count, y->count);
        assert_int_equal(x->consequence_of, y->consequence_of);
        assert_string_equal(x->reason, y->reason);
    }
}

static void show(const struct analysis *analysis)
{
    struct text text;
    text_init(&text);
    for (size_t i = 0; i < analysis->finding_count; i++) {
        text_addf(&text, "  %zu (%d) %s: ", i, analysis->findings[i].consequence_of,
                  hypothesis_info(analysis->findings[i].hypothesis)->slug);
        finding_describe(&analysis->findings[i], ANALYZE_ENGLISH, &text);
        text_add(&text, "\n");
    }
    print_message("%s", text_get(&text));
    text_release(&text);
}

/* ---- Tests ---------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    enum defect defect;
    bool guards;
    int hypothesis; /* of the root; -1: none */
    const char *op; /* its culprit */
    int32_t layer;
} defects[] = {
    { "clean", DEFECT_NONE, true, -1, "", 0 },
    { "trap", DEFECT_TRAP, true, HYPOTHESIS_BAD_POINTER, "gather", 2 },
    { "fault", DEFECT_FAULT, true, HYPOTHESIS_KERNEL_FAULT, "poke", 2 },
#ifndef RACES_ARE_REPORTED /* ThreadSanitizer finds the planted ones too */
    /* The stray launch is behind what its stream had waited for: the next one races with it. */
    { "race", DEFECT_RACE, false, HYPOTHESIS_MISSING_SYNC, "add", 3 },
    { "no-wait", DEFECT_NO_WAIT, false, HYPOTHESIS_MISSING_SYNC, "add", 2 },
#endif
    { "free", DEFECT_FREE, false, HYPOTHESIS_USE_AFTER_FREE, "gather", 2 },
    { "refusal", DEFECT_REFUSAL, true, HYPOTHESIS_CONTRACT_BREACH, "add", 2 },
};

static void check_root(const struct analysis *analysis, size_t row, int32_t step)
{
    show(analysis);
    if (defects[row].hypothesis < 0) {
        assert_int_equal(analysis->finding_count, 0);
        return;
    }
    assert_true(analysis->root >= 0);
    const struct finding *root = &analysis->findings[analysis->root];
    assert_int_equal(root->hypothesis, (enum hypothesis)defects[row].hypothesis);
    assert_string_equal(root->cause.op, defects[row].op);
    assert_int_equal(root->cause.scope.layer, defects[row].layer);
    assert_int_equal(root->cause.scope.step, step);
    if (defects[row].defect == DEFECT_FAULT || defects[row].defect == DEFECT_TRAP) {
        assert_int_equal(root->seen.kind, EVENT_COPY_OUT);
        assert_string_equal(root->seen.scope.tensor, "logits");
        assert_int_equal(root->seen.scope.step, step);
    }
}

/* ring: small enough to be overwritten many times, or large enough for all. */
static void compare_live_and_dead(const char *folder, size_t row, uint32_t ring,
                                  uint64_t iterations, int32_t step)
{
    struct bench bench;
    struct analyze_live *live;
    struct analyzer *alive, *dead;
    struct analyze_options options = { .level = AUDIT_GUARD };
    bench_open(&bench, folder, defects[row].name, ring, defects[row].guards);
    CHECK_OK(analyze_live_start(bench.flight, bench.path, &options, &live, &bench.err), &bench.err);
    run_workload(&bench, defects[row].defect, iterations, step);
    CHECK_OK(analyze_live_stop(live, &alive, &bench.err), &bench.err);
    bench_close(&bench);
    CHECK_OK(analyze_flight(bench.path, &options, &dead, &bench.err), &bench.err);
    if (analyzer_result(alive)->lost_count) {
        /* On a machine so busy that the ring overtook: said by both, and not to be compared. */
        assert_true(analyzer_result(dead)->lost_count > 0);
    } else {
        check_root(analyzer_result(alive), row, step);
        assert_int_equal(analyzer_result(dead)->lost_count, 0);
        check_equal(analyzer_result(alive), analyzer_result(dead));
    }
    analyzer_destroy(alive);
    analyzer_destroy(dead);
    unlink(bench.path);
}

static void live_equals_dead(void **state)
{
    const char *folder = *state;
    for (size_t row = 0; row < COUNT_OF(defects); row++) {
        print_message("%s\n", defects[row].name);
        compare_live_and_dead(folder, row, 0, 3, 1);
        compare_live_and_dead(folder, row, 4096, 300, 2); /* wraps; the checkpoint knows the rest */
    }
}

/* No checkpoint: the file alone says it all. */
static void file_alone_is_enough(void **state)
{
    const char *folder = *state;
    for (size_t row = 0; row < COUNT_OF(defects); row++) {
        struct bench bench;
        struct analyzer *dead;
        struct analyze_options options = { .level = AUDIT_LEVEL_COUNT };
        bench_open(&bench, folder, defects[row].name, 0, defects[row].guards);
        run_workload(&bench, defects[row].defect, 2, 3);
        bench_close(&bench);
        CHECK_OK(analyze_flight(bench.path, &options, &dead, &bench.err), &bench.err);
        assert_int_equal(analyzer_result(dead)->level, AUDIT_GUARD); /* from the command */
        assert_true(analyzer_result(dead)->closed);
        check_root(analyzer_result(dead), row, 3);
        analyzer_destroy(dead);
        unlink(bench.path);
    }
}

/* A child runs into the defect, says so and is killed: no handler runs, nothing is closed. */
static void killed_process_tells_the_same(void **state)
{
    const char *folder = *state;
    for (int live_too = 0; live_too < 2; live_too++)
        for (size_t row = 1; row < COUNT_OF(defects); row++) {
            char path[128];
            int ready[2];
            snprintf(path, sizeof(path), "%s/%s.flight", folder, defects[row].name);
            assert_int_equal(pipe(ready), 0);
            pid_t child = fork();
            assert_true(child >= 0);
            if (child == 0) {
                struct bench bench;
                struct analyze_live *live;
                struct analyze_options options = { .level = AUDIT_GUARD };
                bench_open(&bench, folder, defects[row].name, 0, defects[row].guards);
                if (live_too &&
                    analyze_live_start(bench.flight, bench.path, &options, &live, &bench.err))
                    _exit(2);
                run_workload(&bench, defects[row].defect, 2, 1);
                if (live_too)
                    usleep(
                        100000); /* its checkpoint is written meanwhile, or not: both are right */
                if (write(ready[1], "x", 1) != 1)
                    _exit(3);
                for (;;)
                    pause();
            }
            close(ready[1]);
            char byte;
            assert_int_equal(read(ready[0], &byte, 1), 1);
            close(ready[0]);
            assert_int_equal(kill(child, SIGKILL), 0);
            assert_int_equal(waitpid(child, NULL, 0), child);
            struct analyzer *dead;
            struct error err;
            struct analyze_options options = { .level = AUDIT_GUARD };
            CHECK_OK(analyze_flight(path, &options, &dead, &err), &err);
            assert_false(analyzer_result(dead)->closed);
            check_root(analyzer_result(dead), row, 1);
            analyzer_destroy(dead);
            unlink(path);
        }
}

/* ---- Graphs --------------------------------------------------------------------------------- */

enum graph_defect { GRAPH_CLEAN, GRAPH_TRAP, GRAPH_FAULT, GRAPH_STALE };

/* Records a gather and an add as layers 1 and 2, replays them for some steps; the index is wrong,
 * the memory is gone, or a buffer is made anew, before the replay of that step. */
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
            CHECK_OK(device_buffer_destroy(device, y.buffer, DEVICE_HERE, err), err);
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

/* The ring has forgotten the buffers and the recording of the graph, and nobody read along: the
 * tables of the file still know. */
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
                   device_ticket_redeem(device, ticket, DEVICE_HERE, &bytes, &bytes_count, &err) ||
                   device_ticket_release(device, ticket, DEVICE_HERE, &err));
        } else {
            bad = device_stream_sync(device, streams[current], DEVICE_HERE, &err) ||
                  device_buffer_destroy(device, view.buffer, DEVICE_HERE, &err);
            fresh = true;
        }
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

/* A kernel that does not end is seen while it lasts, and found in the file. */
static void hang_is_seen_live(void **state)
{
    const char *folder = *state;
    struct bench bench;
    struct analyze_live *live;
    struct analyzer *alive, *dead;
    struct analyze_options options = { .level = AUDIT_LOG, .hang_limit_ns = 200000000u };
    bench_open(&bench, folder, "hang", 0, false);
    CHECK_OK(analyze_live_start(bench.flight, bench.path, &options, &live, &bench.err), &bench.err);
    uint64_t from = clock_ns();
    struct sleep_params params = { .milliseconds = 900 };
    struct device_launch sleeping = launch_sleep(&params);
    set_scope(&bench, 0, 2, 7, "");
    launch(&bench, 0, &sleeping);
    CHECK_OK(device_stream_sync(bench.device, bench.streams[0], DEVICE_HERE, &bench.err),
             &bench.err);
    assert_true(clock_ns() - from >= 900000000u);
    CHECK_OK(analyze_live_stop(live, &alive, &bench.err), &bench.err);
    bench_close(&bench);
    show(analyzer_result(alive));
    const struct analysis *analysis = analyzer_result(alive);
    assert_int_equal(analysis->finding_count, 1);
    assert_int_equal(analysis->findings[0].hypothesis, HYPOTHESIS_HANG);
    assert_string_equal(analysis->findings[0].cause.op, "sleep");
    assert_int_equal(analysis->findings[0].cause.scope.layer, 2);
    assert_int_equal(analysis->findings[0].seen.kind, EVENT_STREAM_SYNC);
    CHECK_OK(analyze_flight(bench.path, &options, &dead, &bench.err), &bench.err);
    check_equal(analysis, analyzer_result(dead));
    analyzer_destroy(alive);
    analyzer_destroy(dead);
    unlink(bench.path);
}

static uint64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* How long an event takes; printed, not judged. */
static void print_throughput(void **state)
{
    const char *folder = *state;
    struct bench bench;
    bench_open(&bench, folder, "throughput", 0, false);
    run_workload(&bench, DEFECT_NONE, 300, 0);
    bench_close(&bench);
    struct flight_reader *reader;
    CHECK_OK(flight_open(bench.path, &reader, &bench.err), &bench.err);
    struct analyzer *analyzer;
    struct analyze_options options = { .level = AUDIT_LOG };
    CHECK_OK(analyzer_create(&options, &analyzer, &bench.err), &bench.err);
    struct event event;
    uint64_t from = cpu_ns(), count = 0, sum = 0;
    for (uint64_t id = 0; flight_next(reader, &id, &event);)
        sum += event.id;
    uint64_t read_ns = cpu_ns() - from;
    assert_true(sum > 0);
    from = cpu_ns();
    for (uint64_t id = 0; flight_next(reader, &id, &event); count++)
        CHECK_OK(analyzer_add(analyzer, &event, &bench.err), &bench.err);
    uint64_t ns = cpu_ns() - from;
    assert_true(count > 0);
    print_message("%" PRIu64 " events, %" PRIu64 " ns each, of which reading takes %" PRIu64 "\n",
                  count, ns / count, read_ns / count);
    assert_int_equal(analyzer_result(analyzer)->finding_count, 0);
    analyzer_destroy(analyzer);
    flight_reader_close(reader);
    unlink(bench.path);
}

static int make_folder(void **state)
{
    static char folder[64];
    snprintf(folder, sizeof(folder), "/tmp/greta-analyze-XXXXXX");
    *state = mkdtemp(folder);
    return *state ? 0 : -1;
}

static int remove_folder(void **state)
{
    return rmdir(*state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_process_tells_the_same), /* forks: before there are threads */
        cmocka_unit_test(live_equals_dead),
        cmocka_unit_test(file_alone_is_enough),
        cmocka_unit_test(graphs_are_followed),
        cmocka_unit_test(tables_outlive_the_ring),
        cmocka_unit_test(threads_that_wait_properly_raise_nothing),
        cmocka_unit_test(hang_is_seen_live),
        cmocka_unit_test(print_throughput),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
