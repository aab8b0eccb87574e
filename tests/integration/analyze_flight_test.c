/* The same findings live, from the file of a process that ended, and from one that was killed. */
#define _GNU_SOURCE /* mkdtemp, kill, usleep */
#include "analyze_bench.h"

/* ---- A workload ------------------------------------------------------------------------------ */

enum defect {
    DEFECT_NONE,
    DEFECT_TRAP,
    DEFECT_FAULT,
    DEFECT_RACE,
    DEFECT_FREE,
    DEFECT_REFUSAL,
    DEFECT_NO_WAIT /* the side stream does not wait for its mark */
};

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

/* One defect, between the launches of a layer. */
static void plant(struct bench *bench, enum defect defect, struct device_view x,
                  struct device_view y, const struct device_launch *plain, struct gate_params *gate)
{
    const struct add_params add = { 1.0f };
    struct poke_params poke = { .offset = 4096 };
    struct device_launch waiting = launch_gate(gate);
    struct device_launch poking = launch_poke(x, &poke);
    struct device_view wrong = x;
    wrong.dtype = DTYPE_I32;
    struct device_launch refused = launch_add(wrong, &add);
    if (defect == DEFECT_FAULT) {
        launch(bench, 0, &waiting);
        launch(bench, 0, &poking);
    }
    if (defect == DEFECT_RACE)
        launch(bench, 1, plain);
    if (defect == DEFECT_REFUSAL)
        launch(bench, 0, &refused);
    if (defect == DEFECT_FREE)
        device_buffer_destroy(bench->device, y.buffer, DEVICE_HERE);
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
                plant(bench, defect, x, y, &plain, &gate);
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
            device_ticket_release(bench->device, ticket, DEVICE_HERE);
            if (defect == DEFECT_FREE && spoilt)
                return;
        }
    }
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
    /* The stray launch comes after what its stream had waited for: the next one races with it. */
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

/* A launch that lasts so long is a hang; false where the live analysis did not look meanwhile. */
static bool is_seen_live(const char *folder, uint32_t milliseconds)
{
    struct bench bench;
    struct analyze_live *live;
    struct analyzer *alive, *dead;
    struct analyze_options options = { .level = AUDIT_LOG, .hang_limit_ns = 200000000u };
    bench_open(&bench, folder, "hang", 0, false);
    CHECK_OK(analyze_live_start(bench.flight, bench.path, &options, &live, &bench.err), &bench.err);
    struct sleep_params params = { milliseconds };
    struct device_launch sleeping = launch_sleep(&params);
    set_scope(&bench, 0, 2, 7, "");
    launch(&bench, 0, &sleeping);
    CHECK_OK(device_stream_sync(bench.device, bench.streams[0], DEVICE_HERE, &bench.err),
             &bench.err);
    CHECK_OK(analyze_live_stop(live, &alive, &bench.err), &bench.err);
    bench_close(&bench);
    show(analyzer_result(alive));
    const struct analysis *analysis = analyzer_result(alive);
    bool seen = analysis->finding_count > 0;
    if (seen) {
        assert_int_equal(analysis->finding_count, 1);
        assert_int_equal(analysis->findings[0].hypothesis, HYPOTHESIS_HANG);
        assert_string_equal(analysis->findings[0].cause.op, "sleep");
        assert_int_equal(analysis->findings[0].cause.scope.layer, 2);
        assert_int_equal(analysis->findings[0].seen.kind, EVENT_STREAM_SYNC);
    }
    CHECK_OK(analyze_flight(bench.path, &options, &dead, &bench.err), &bench.err);
    check_equal(analysis, analyzer_result(dead));
    analyzer_destroy(alive);
    analyzer_destroy(dead);
    unlink(bench.path);
    return seen;
}

/* A kernel that does not end is seen while it lasts, and found in the file. It lasts longer where
 * the machine is so busy that the live analysis did not get to look. */
static void hang_is_seen_live(void **state)
{
    uint32_t milliseconds = 500;
    while (!is_seen_live(*state, milliseconds))
        assert_true((milliseconds *= 2) <= 64000);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_process_tells_the_same), /* forks: before there are threads */
        cmocka_unit_test(live_equals_dead),
        cmocka_unit_test(file_alone_is_enough),
        cmocka_unit_test(hang_is_seen_live),
        cmocka_unit_test(print_throughput),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
