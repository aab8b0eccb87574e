/* gpu_placements_test.c - faults placed anywhere: in which stream, which op, which of its launches,
 * in a call or in a replay, with one to eight streams at work, whatever is waited for in between.
 *
 *     gpu_placements_test DEVICE COUNT [SEED]
 *
 * A launch that is named alone must be the right one, always; otherwise the right one must be among
 * the candidates, and the only one left in a run that waits after each launch. What an unrecorded
 * run would print is held to the same. Prints how often one launch was named.
 *
 * Each placement is a process of its own, since a context that faulted cannot be used again; the
 * emulated driver runs as an adverse one there (tests/fake_gpu/adverse.h). */
#include "test.h"

#include "analyze/analyze.h"
#include "base/text.h"
#include "device/all/all.h"
#include "inject/inject.h"
#include "ops/ops.h"
#include "report/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define STREAMS 8u
#define LAUNCHES 5u /* of a stream in a round, at most */
#define ROUNDS 4u
#define WIDTH 64u
#define ROWS 4u

static const char *device_name;

/* ---- The placement -------------------------------------------------------------------------- */

enum op { OP_ADD, OP_SWIGLU };

struct lane {
    bool replays;
    uint32_t launch_count;
    enum op ops[LAUNCHES];
};

struct placement {
    uint64_t seed;
    uint32_t stream_count, round_count;
    struct lane lanes[STREAMS];
    uint32_t wait_every;          /* about: calls between waits; 0: none */
    uint32_t lane, launch, round; /* of the fault */
    const char *fault;
    char label[24]; /* of the launch that has it */
    char spec[96];
};

static uint32_t draw(uint64_t *state, uint32_t bound)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((*state >> 33) % bound);
}

static void name_launch(char *name, size_t bytes, uint32_t lane, uint32_t launch)
{
    snprintf(name, bytes, "place.%" PRIu32 ".%" PRIu32, lane, launch);
}

static struct placement place_fault(uint64_t seed)
{
    static const char *const faults[] = { "wild-pointer", "overrun", "memory-vanished" };
    static const uint32_t waits[] = { 0, 20, 6, 2 };
    uint64_t state = seed * 2 + 1;
    for (int i = 0; i < 8; i++)
        draw(&state, 2);
    struct placement place = { .seed = seed };
    place.stream_count = 1 + draw(&state, STREAMS);
    place.round_count = 1 + draw(&state, ROUNDS);
    place.wait_every = waits[draw(&state, COUNT_OF(waits))];
    for (uint32_t i = 0; i < place.stream_count; i++) {
        struct lane *lane = &place.lanes[i];
        lane->replays = draw(&state, 2);
        lane->launch_count = 1 + draw(&state, LAUNCHES);
        for (uint32_t n = 0; n < lane->launch_count; n++)
            lane->ops[n] = draw(&state, 2) ? OP_ADD : OP_SWIGLU;
    }
    place.lane = draw(&state, place.stream_count);
    const struct lane *lane = &place.lanes[place.lane];
    place.launch = draw(&state, lane->launch_count);
    /* A recorded launch faults in the first replay, and only by itself. */
    place.round = lane->replays ? 0 : draw(&state, place.round_count);
    place.fault = lane->replays ? faults[0] : faults[draw(&state, COUNT_OF(faults))];
    name_launch(place.label, sizeof(place.label), place.lane, place.launch);
    snprintf(place.spec, sizeof(place.spec), "%s@tensor=%s,step=%" PRIu32, place.fault, place.label,
             place.round);
    return place;
}

/* ---- The process that has it ----------------------------------------------------------------- */

struct stage {
    const struct placement *place;
    struct device *device;
    struct ops ops;
    struct device_stream streams[STREAMS];
    struct device_view x[STREAMS], y[STREAMS], z[STREAMS];
    struct device_graph graphs[STREAMS];
    struct device_mark mark;
    uint64_t random;
};

static enum status make_view(struct stage *stage, uint32_t lane, struct device_view *view,
                             struct error *err)
{
    uint64_t dims[] = { WIDTH, ROWS };
    char name[24];
    snprintf(name, sizeof(name), "lane.%" PRIu32, lane);
    *view = (struct device_view){ .dtype = DTYPE_F32, .shape = shape_make(2, dims) };
    TRY(device_buffer_create(stage->device, WIDTH * ROWS * sizeof(float), name, DEVICE_HERE,
                             &view->buffer, err));
    return device_fill(stage->device, stage->streams[lane], view, 0, DEVICE_HERE, err);
}

static enum status give(struct stage *stage, uint32_t lane, uint32_t launch, uint32_t round,
                        struct error *err)
{
    struct event_scope scope = { .step = (int32_t)round, .layer = (int32_t)launch };
    struct ops_target target = { &stage->ops, stage->streams[lane], DEVICE_HERE };
    name_launch(scope.tensor, sizeof(scope.tensor), lane, launch);
    device_scope_set(stage->device, stage->streams[lane], &scope);
    if (stage->place->lanes[lane].ops[launch] == OP_ADD)
        return ops_add(&target, &stage->x[lane], &stage->y[lane], err);
    return ops_swiglu(&target, &stage->x[lane], &stage->y[lane], &stage->z[lane], NULL, err);
}

static enum status record(struct stage *stage, uint32_t lane, struct error *err)
{
    TRY(device_graph_begin(stage->device, stage->streams[lane], DEVICE_HERE, err));
    for (uint32_t n = 0; n < stage->place->lanes[lane].launch_count; n++) {
        TRY(give(stage, lane, n, 0, err));
        if (draw(&stage->random, 4) == 0)
            TRY(device_copy_within(stage->device, stage->streams[lane], &stage->z[lane],
                                   &stage->y[lane], DEVICE_HERE, err));
    }
    return device_graph_end(stage->device, stage->streams[lane], DEVICE_HERE, &stage->graphs[lane],
                            err);
}

static enum status set_stage(struct stage *stage, struct error *err)
{
    TRY(device_mark_create(stage->device, &stage->mark, err));
    for (uint32_t i = 0; i < stage->place->stream_count; i++) {
        TRY(device_stream_create(stage->device, DEVICE_HERE, &stage->streams[i], err));
        TRY(make_view(stage, i, &stage->x[i], err));
        TRY(make_view(stage, i, &stage->y[i], err));
        TRY(make_view(stage, i, &stage->z[i], err));
        if (stage->place->lanes[i].replays)
            TRY(record(stage, i, err));
    }
    return STATUS_OK;
}

/* Copies some bytes of a stream out, and may take them. */
static enum status copy_out(struct stage *stage, uint32_t lane, struct error *err)
{
    struct device_ticket ticket;
    const void *bytes;
    uint64_t count;
    TRY(device_copy_out(stage->device, stage->streams[lane], &stage->x[lane], DEVICE_HERE, &ticket,
                        err));
    if (draw(&stage->random, 2))
        TRY(device_ticket_redeem(stage->device, ticket, DEVICE_HERE, &bytes, &count, err));
    device_ticket_release(stage->device, ticket, DEVICE_HERE);
    return STATUS_OK;
}

/* Something that orders, or only looks as if. */
static enum status wait_somehow(struct stage *stage, uint32_t lane, struct error *err)
{
    struct device *device = stage->device;
    uint32_t other = draw(&stage->random, stage->place->stream_count);
    switch (draw(&stage->random, 5)) {
    case 0:
        return device_stream_sync(device, stage->streams[lane], DEVICE_HERE, err);
    case 1:
        TRY(device_mark_record(device, stage->streams[lane], stage->mark, DEVICE_HERE, err));
        return device_mark_sync(device, stage->mark, DEVICE_HERE, err);
    case 2:
        TRY(device_mark_record(device, stage->streams[lane], stage->mark, DEVICE_HERE, err));
        return device_mark_wait(device, stage->streams[other], stage->mark, DEVICE_HERE, err);
    case 3:
        return device_fill(device, stage->streams[lane], &stage->z[lane], 0, DEVICE_HERE, err);
    default:
        return copy_out(stage, lane, err);
    }
}

static enum status maybe_wait(struct stage *stage, uint32_t lane, struct error *err)
{
    uint32_t every = stage->place->wait_every;
    return every && draw(&stage->random, every) == 0 ? wait_somehow(stage, lane, err) : STATUS_OK;
}

/* The streams' launches of a round, mixed. */
static enum status run_round(struct stage *stage, uint32_t round, struct error *err)
{
    const struct placement *place = stage->place;
    uint32_t next[STREAMS] = { 0 }, left = place->stream_count;
    while (left) {
        uint32_t lane = draw(&stage->random, place->stream_count);
        const struct lane *facts = &place->lanes[lane];
        if (next[lane] == facts->launch_count)
            continue;
        if (facts->replays) {
            struct event_scope scope = { .step = (int32_t)round, .layer = -1 };
            device_scope_set(stage->device, stage->streams[lane], &scope);
            TRY(device_graph_replay(stage->device, stage->streams[lane], stage->graphs[lane],
                                    DEVICE_HERE, err));
            next[lane] = facts->launch_count;
        } else {
            TRY(give(stage, lane, next[lane]++, round, err));
        }
        left -= next[lane] == facts->launch_count;
        TRY(maybe_wait(stage, lane, err));
    }
    return STATUS_OK;
}

static enum status run_stage(struct stage *stage, struct error *err)
{
    TRY(set_stage(stage, err));
    for (uint32_t round = 0; round < stage->place->round_count; round++)
        TRY(run_round(stage, round, err));
    uint32_t first = draw(&stage->random, stage->place->stream_count);
    for (uint32_t i = 0; i < stage->place->stream_count; i++)
        TRY(device_stream_sync(stage->device,
                               stage->streams[(first + i) % stage->place->stream_count],
                               DEVICE_HERE, err));
    return STATUS_OK;
}

/* 0: the fault came, and its message is printed; 1: it did not; 2: something else went wrong. */
static int run_child(const struct placement *place, const char *flight_path, bool serialise)
{
    struct stage stage = { .place = place, .random = place->seed };
    struct flight_options recording = { .record_count = 4096, .command = "placement" };
    struct flight *flight;
    struct inject_spec spec;
    struct inject *inject = NULL; /* until one is installed */
    struct error err = { 0 };
    enum status status = flight_create(flight_path, &recording, &flight, &err);
    if (status)
        return 2;
    struct device_options options = { .observer = flight_observer(flight),
                                      .crumbs = flight_crumbs(flight),
                                      .gpu_image = ops_gpu_image(),
                                      .guards = true,
                                      /* An emulated driver writes no log to wait for. */
                                      .kernel_log = getenv("FAKE_GPU_LATE") ? "/nonexistent" : NULL,
                                      .quarantine_bytes = (uint64_t)1 << 30,
                                      .serialise = serialise };
    status = all_open(device_name, &options, &stage.device, &err);
    if (!status)
        status = inject_parse(place->spec, &spec, &err);
    if (!status)
        status = inject_install(stage.device, &spec, &inject, &err);
    if (!status)
        status = ops_load(&stage.ops, stage.device, CPU_PATH_COUNT, &err);
    if (!status)
        status = run_stage(&stage, &err);
    bool planted = inject && inject_record(inject)->planted;
    printf("%s\n", status ? err.text : "no error");
    fflush(stdout);
    device_close(stage.device);
    flight_close(flight);
    return status == STATUS_LOST && planted ? 0 : !status ? 1 : 2;
}

/* ---- What is made of it --------------------------------------------------------------------- */

struct counts {
    uint32_t single, narrowed, messages; /* placements that named one launch */
    uint32_t most;                       /* candidates */
};

/* Runs one placement in a process; returns its exit status. ret_message: what it printed. */
static int run_process(const struct placement *place, const char *flight, bool serialise,
                       char *ret_message, size_t bytes)
{
    int ends[2], status = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char seed[24];
        snprintf(seed, sizeof(seed), "%" PRIu64, place->seed);
        setenv("FAKE_GPU_ADVERSE", seed, 1);
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl("/proc/self/exe", "placement", "--child", device_name, seed, flight,
              serialise ? "serial" : "", (char *)NULL);
        _exit(2);
    }
    close(ends[1]);
    size_t used = 0;
    for (ssize_t got = 1; got > 0 && used + 1 < bytes; used += (size_t)got) {
        got = read(ends[0], ret_message + used, bytes - 1 - used);
        got = got < 0 ? 0 : got;
    }
    ret_message[used] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

static bool is_right(const struct placement *place, const struct analyze_place *found)
{
    return strcmp(found->scope.tensor, place->label) == 0 &&
           found->scope.step == (int32_t)place->round &&
           strcmp(found->op,
                  place->lanes[place->lane].ops[place->launch] == OP_ADD ? "add" : "swiglu") == 0;
}

static const struct finding *find_fault(const struct analysis *analysis)
{
    for (size_t i = 0; i < analysis->finding_count; i++)
        if (analysis->findings[i].hypothesis == HYPOTHESIS_KERNEL_FAULT)
            return &analysis->findings[i];
    return NULL;
}

/* What is wrong with the answer; NULL: nothing. *ret_single: one launch is named. */
static const char *judge(const struct placement *place, const struct analysis *analysis,
                         bool *ret_single, uint32_t *most)
{
    const struct finding *finding = find_fault(analysis);
    *ret_single = false;
    if (!finding)
        return "no kernel-fault was found";
    if (finding->certainty == FINDING_DIRECT) {
        *ret_single = true;
        return is_right(place, &finding->cause) ? NULL
                                                : "a launch is named alone, and it is another";
    }
    uint32_t count = finding->candidate_count + (uint32_t)finding->candidates_left_out;
    *most = count > *most ? count : *most;
    for (uint32_t i = 0; i < finding->candidate_count; i++)
        if (is_right(place, &finding->candidates[i]))
            return NULL;
    return "the launch is not among the candidates";
}

static void show(const struct placement *place, const struct analysis *analysis, const char *wrong)
{
    struct text words;
    text_init(&words);
    const struct finding *finding = find_fault(analysis);
    if (finding)
        report_finding_describe(finding, REPORT_ENGLISH, &words);
    print_message("seed %" PRIu64 ", %s, %" PRIu32 " streams%s: %s\n  %s\n", place->seed,
                  place->spec, place->stream_count,
                  place->lanes[place->lane].replays ? ", replayed" : "", wrong, text_get(&words));
    text_release(&words);
}

/* The message of a run without a recording. */
static bool message_is_right(const struct placement *place, const char *message, bool *ret_single)
{
    const char *fault = strstr(message, "first fault: ");
    *ret_single = fault &&
                  strncmp(fault, "first fault: one of ", strlen("first fault: one of ")) != 0;
    return fault && (!*ret_single || strstr(fault, place->label));
}

static bool try_run(const struct placement *place, const char *flight, bool serialise,
                    struct counts *counts)
{
    struct analyze_options options = { .level = AUDIT_LOG };
    struct analyzer *analyzer;
    struct error err;
    char message[2048];
    bool single = false, said = false;
    int code = run_process(place, flight, serialise, message, sizeof(message));
    if (code != 0) {
        print_message("seed %" PRIu64 ", %s: expected a fault, found exit status %d: %s\n",
                      place->seed, place->spec, code, message);
        return false;
    }
    CHECK_OK(analyze_flight(flight, &options, &analyzer, &err), &err);
    const char *wrong = judge(place, analyzer_result(analyzer), &single, &counts->most);
    if (!wrong && !message_is_right(place, message, &said))
        wrong = message;
    if (!wrong && serialise && !single)
        wrong = "a run that waits after each launch leaves several";
    if (wrong)
        show(place, analyzer_result(analyzer), wrong);
    analyzer_destroy(analyzer);
    counts->single += single && !serialise;
    counts->narrowed += single && serialise;
    counts->messages += said && !serialise;
    return !wrong;
}

static uint32_t placement_count;
static uint64_t first_seed;

static void test_placements(void **state)
{
    (void)state;
    char flight[] = "/tmp/gpu-placements-test-XXXXXX";
    struct counts counts = { 0 };
    uint32_t failed = 0;
    int file = mkstemp(flight);
    assert_true(file >= 0);
    close(file);
    for (uint32_t i = 0; i < placement_count; i++) {
        struct placement place = place_fault(first_seed + i);
        unlink(flight);
        bool good = try_run(&place, flight, false, &counts);
        unlink(flight);
        failed += !(good && try_run(&place, flight, true, &counts));
    }
    unlink(flight);
    print_message("%" PRIu32 " placements from seed %" PRIu64 " on %s: one launch named in %" PRIu32
                  " (at most %" PRIu32 " candidates otherwise), after narrowing in %" PRIu32
                  "; messages that name one: %" PRIu32 "; wrong: %" PRIu32 "\n",
                  placement_count, first_seed, device_name, counts.single, counts.most,
                  counts.narrowed, counts.messages, failed);
    assert_int_equal(failed, 0);
}

int main(int argument_count, char **arguments)
{
    if (argument_count == 6 && strcmp(arguments[1], "--child") == 0) {
        struct placement place = place_fault(strtoull(arguments[3], NULL, 10));
        device_name = arguments[2];
        return run_child(&place, arguments[4], arguments[5][0] != '\0');
    }
    if (argument_count < 3) {
        printf("skipped: no device and count were named\n");
        return 77;
    }
    device_name = arguments[1];
    placement_count = (uint32_t)strtoul(arguments[2], NULL, 10);
    first_seed = argument_count > 3 ? strtoull(arguments[3], NULL, 10) : 1;
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_placements) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
