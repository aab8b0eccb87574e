/* device_gpu_faults_test.c - a life of a GPU with every call of the system and every call of the
 * vendor's library failing once. The libraries are emulated (tests/fake_gpu, tests/hip_over_cuda).
 *
 *     device_gpu_faults_test DEVICE */
#define _GNU_SOURCE /* dlsym's RTLD names */
#include "fail_nth.h"

#include "device/all/all.h"
#include "ops/ops.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* ---- The driver's functions ----------------------------------------------------------------- */

/* All take whole numbers and pointers, at most this many, and return a code, or a name of one:
 * called with more than they want they do the same. */
#define WORD_TYPES                                                                                 \
    uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6,     \
        uint64_t a7, uint64_t a8, uint64_t a9, uint64_t a10, uint64_t a11
#define WORDS a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11
typedef uint64_t (*driver_call)(WORD_TYPES);

#define CALL_LIMIT 64u
#define DRIVER_OUT_OF_MEMORY 2

static struct {
    const char *name;
    driver_call call;
} driver[CALL_LIMIT];

/* One function for each place in the table. */
#define EIGHT(do, base)                                                                            \
    do                                                                                             \
    (base##0) do(base##1) do(base##2) do(base##3) do(base##4) do(base##5) do(base##6) do(base##7)
#define ALL(do)                                                                                    \
    EIGHT(do, 0)                                                                                   \
    EIGHT(do, 1) EIGHT(do, 2) EIGHT(do, 3) EIGHT(do, 4) EIGHT(do, 5) EIGHT(do, 6) EIGHT(do, 7)
/* What gives something back does so even if it fails, as the real ones do (they tell errors of
 * earlier work); else hundreds of lives would fill the emulated memory. */
static bool gives_back(const char *name)
{
    static const char *const words[] = {
        "Free", "Release", "Destroy", "Unregister", "Unmap", "Unload",
    };
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (strstr(name, words[i]))
            return true;
    return false;
}
/* Words for a code: HIP returns them, and always has some. */
static bool cannot_fail(const char *name)
{
    return strcmp(name, "hipGetErrorName") == 0;
}
/* What is taken of the driver, and what gives it back. */
static const struct {
    const char *takes, *gives_back;
} pairs[] = {
    { "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2" },
    { "cuMemAlloc_v2", "cuMemFree_v2" },
    { "cuMemHostAlloc", "cuMemFreeHost" },
    { "cuMemHostRegister_v2", "cuMemHostUnregister" },
    { "cuMemAddressReserve", "cuMemAddressFree" },
    { "cuMemCreate", "cuMemRelease" },
    { "cuMemMap", "cuMemUnmap" },
    { "cuStreamCreate", "cuStreamDestroy_v2" },
    { "cuEventCreate", "cuEventDestroy_v2" },
    { "cuModuleLoadData", "cuModuleUnload" },
    { "cuStreamEndCapture", "cuGraphDestroy" },
    { "cuGraphInstantiateWithFlags", "cuGraphExecDestroy" },
    { "hipMalloc", "hipFree" },
    { "hipHostMalloc", "hipHostFree" },
    { "hipHostRegister", "hipHostUnregister" },
    { "hipMemAddressReserve", "hipMemAddressFree" },
    { "hipMemCreate", "hipMemRelease" },
    { "hipMemMap", "hipMemUnmap" },
    { "hipStreamCreateWithFlags", "hipStreamDestroy" },
    { "hipEventCreateWithFlags", "hipEventDestroy" },
    { "hipModuleLoadData", "hipModuleUnload" },
    { "hipStreamEndCapture", "hipGraphDestroy" },
    { "hipGraphInstantiate", "hipGraphExecDestroy" },
};
static int held[COUNT_OF(pairs)]; /* atomic: streams have threads */

static void count_held(const char *name, bool failed)
{
    for (size_t i = 0; i < COUNT_OF(pairs); i++)
        if (strcmp(name, pairs[i].takes) == 0 && !failed)
            __atomic_add_fetch(&held[i], 1, __ATOMIC_RELAXED);
        else if (strcmp(name, pairs[i].gives_back) == 0)
            __atomic_sub_fetch(&held[i], 1, __ATOMIC_RELAXED);
}

static void check_held(const struct error *err)
{
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        if (held[i])
            fail_msg("%d of %s were not given back (%s)", held[i], pairs[i].takes, err->text);
        held[i] = 0;
    }
}

/* The places are numbered in base 8: 00 to 77. */
#define PASS_ON(place)                                                                             \
    static uint64_t pass_on_##place(WORD_TYPES)                                                    \
    {                                                                                              \
        const char *name = driver[0##place].name;                                                  \
        bool fails = !cannot_fail(name) && fail_nth_is_failing(__builtin_return_address(0), name); \
        if (fails && !gives_back(name))                                                            \
            return DRIVER_OUT_OF_MEMORY;                                                           \
        uint64_t result = driver[0##place].call(WORDS);                                            \
        count_held(name, (int)result != 0);                                                        \
        return fails ? DRIVER_OUT_OF_MEMORY : result;                                              \
    }
ALL(PASS_ON)
#define NAME(place) pass_on_##place,
static const driver_call passing_on[CALL_LIMIT] = { ALL(NAME) };

void *__real_dlsym(void *handle, const char *name);
void *__wrap_dlsym(void *handle, const char *name);

void *__wrap_dlsym(void *handle, const char *name)
{
    void *found = __real_dlsym(handle, name);
    if (!found)
        return NULL;
    for (size_t i = 0; i < CALL_LIMIT; i++) {
        if (driver[i].name && strcmp(driver[i].name, name) != 0)
            continue;
        driver[i].name = name;
        memcpy(&driver[i].call, &found, sizeof(found));
        memcpy(&found, &passing_on[i], sizeof(found));
        return found;
    }
    fail_msg("more than %u functions of the driver", CALL_LIMIT);
    return NULL;
}

/* ---- The scenario --------------------------------------------------------------------------- */

#define WIDTH 256u
#define ROWS 4u
#define REPLAYS 3
/* Opening looks up dozens of functions at one place. For a second vendor only the table is new. */
enum { DRIVER_CALLS = 2, DRIVER_CALLS_HIP = 1 };

static void ignore(void *context, const struct event *event)
{
    (void)context;
    (void)event;
}

struct stage {
    struct device *device;
    struct ops ops;
    struct ops_target target;
    struct device_stream other;
    struct device_mark mark;
    struct device_view x, added, copy;
};

static float weights[WIDTH * ROWS];
static struct crumb_page crumbs;
static const char *device_name;

static enum status furnish(struct stage *stage, struct error *err)
{
    const uint64_t dims[] = { WIDTH, ROWS };
    struct device_view view = { .dtype = DTYPE_F32, .shape = shape_make(2, dims) };
    TRY(ops_load(&stage->ops, stage->device, CPU_PATH_COUNT, err));
    stage->target = (struct ops_target){ .ops = &stage->ops, .site = DEVICE_HERE };
    TRY(device_stream_create(stage->device, DEVICE_HERE, &stage->target.stream, err));
    TRY(device_stream_create(stage->device, DEVICE_HERE, &stage->other, err));
    TRY(device_mark_create(stage->device, &stage->mark, err));
    stage->x = stage->added = stage->copy = view;
    /* The reserve is for speed only: where it fails, all goes on without it. */
    device_reserve(stage->device, sizeof(weights) + 4096);
    TRY(device_buffer_create(stage->device, sizeof(weights), "x", DEVICE_HERE, &stage->x.buffer,
                             err));
    TRY(device_buffer_create(stage->device, sizeof(weights), "copy", DEVICE_HERE,
                             &stage->copy.buffer, err));
    return device_buffer_import(stage->device, weights, sizeof(weights), "added", DEVICE_HERE,
                                &stage->added.buffer, err);
}

/* x = 0 + weights, REPLAYS times, then once more on its own; and its copy. */
static enum status work(const struct stage *stage, struct error *err)
{
    struct device *device = stage->device;
    struct device_stream stream = stage->target.stream;
    struct device_graph graph;
    TRY(device_fill(device, stream, &stage->x, 0, DEVICE_HERE, err));
    TRY(device_graph_begin(device, stream, DEVICE_HERE, err));
    TRY(ops_add(&stage->target, &stage->x, &stage->added, err));
    TRY(device_copy_within(device, stream, &stage->copy, &stage->x, DEVICE_HERE, err));
    TRY(device_graph_end(device, stream, DEVICE_HERE, &graph, err));
    for (int i = 0; i < REPLAYS; i++)
        TRY(device_graph_replay(device, stream, graph, DEVICE_HERE, err));
    TRY(ops_add(&stage->target, &stage->x, &stage->added, err));
    TRY(device_copy_within(device, stream, &stage->copy, &stage->x, DEVICE_HERE, err));
    TRY(device_mark_record(device, stream, stage->mark, DEVICE_HERE, err));
    TRY(device_mark_wait(device, stage->other, stage->mark, DEVICE_HERE, err));
    TRY(device_mark_sync(device, stage->mark, DEVICE_HERE, err));
    TRY(device_stream_sync(device, stage->other, DEVICE_HERE, err));
    device_graph_destroy(device, graph, DEVICE_HERE);
    return STATUS_OK;
}

/* More slots at a time than are made when the device is opened. */
#define TICKETS 3u

static enum status hold_tickets(const struct stage *stage, struct error *err)
{
    struct device *device = stage->device;
    struct device_ticket tickets[TICKETS];
    const void *bytes;
    uint64_t count;
    for (uint32_t i = 0; i < TICKETS; i++)
        TRY(device_copy_out(device, stage->target.stream, &stage->x, DEVICE_HERE, &tickets[i],
                            err));
    for (uint32_t i = 0; i < TICKETS; i++) {
        TRY(device_ticket_redeem(device, tickets[i], DEVICE_HERE, &bytes, &count, err));
        assert_int_equal(count, sizeof(weights));
        assert_memory_equal(bytes, weights, sizeof(weights));
        device_ticket_release(device, tickets[i], DEVICE_HERE);
    }
    return STATUS_OK;
}

static enum status look(const struct stage *stage, struct error *err)
{
    float found[WIDTH * ROWS];
    struct device *device = stage->device;
    struct device_stream stream = stage->target.stream;
    TRY(device_read(device, stream, &stage->copy, found, DEVICE_HERE, err));
    for (size_t i = 0; i < COUNT_OF(found); i++)
        assert_true(found[i] == (REPLAYS + 1) * weights[i]);
    TRY(device_copy_in(device, stream, &stage->x, weights, sizeof(weights), DEVICE_HERE, err));
    TRY(device_read(device, stream, &stage->x, found, DEVICE_HERE, err));
    assert_memory_equal(found, weights, sizeof(found));
    TRY(hold_tickets(stage, err));
    device_buffer_destroy(device, stage->x.buffer, DEVICE_HERE);
    device_stream_destroy(device, stage->other, DEVICE_HERE);
    return device_check(device, err);
}

static enum status live(void *context, struct error *err)
{
    const struct device_options *options = context;
    struct stage stage = { 0 };
    enum status status = all_open(device_name, options, &stage.device, err);
    if (!status)
        status = furnish(&stage, err);
    if (!status)
        status = work(&stage, err);
    if (!status)
        status = look(&stage, err);
    device_close(stage.device);
    check_held(err);
    return status;
}

static void sweep_with(const char *name, struct device_options options)
{
    bool hip = strncmp(device_name, "hip", 3) == 0;
    fail_nth_sweep(name, hip ? DRIVER_CALLS_HIP : DRIVER_CALLS, live, &options);
}

static void sweep(const char *name, struct device_options options)
{
    options.observer = (struct event_observer){ ignore, NULL };
    options.staging_slot_count = TICKETS;
    options.staging_slot_bytes = 4096;
    sweep_with(name, options);
}

static void test_plain(void **state)
{
    (void)state;
    sweep("plain", (struct device_options){ .staging = DEVICE_STAGING_PINNED });
}

/* There is no observer, so buffers are cut from one allocation; slots are of large pages, and made
 * when they are wanted. */
static void test_unwatched(void **state)
{
    (void)state;
    sweep_with("unwatched", (struct device_options){ .staging = DEVICE_STAGING_PINNED });
}

static void test_audited(void **state)
{
    (void)state;
    sweep("audited", (struct device_options){ .guards = true,
                                              .poison = true,
                                              .quarantine_bytes = 1 << 20,
                                              .completions = true,
                                              .hash_results = true,
                                              .ask_errors = true,
                                              .ask_pointers = true,
                                              .crumbs = &crumbs,
                                              .verify = true,
                                              .scan_every = 1 });
}

static void test_serialised(void **state)
{
    (void)state;
    sweep("serialised", (struct device_options){ .serialise = true,
                                                 .poison = true,
                                                 .staging = DEVICE_STAGING_PAGEABLE,
                                                 .d2h_mode = DEVICE_D2H_EVENT });
}

int main(int argument_count, char **arguments)
{
    if (argument_count != 2) {
        fprintf(stderr, "usage: device_gpu_faults_test DEVICE\n");
        return 2;
    }
    device_name = arguments[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_unwatched),
        cmocka_unit_test(test_audited),
        cmocka_unit_test(test_serialised),
    };
    for (size_t i = 0; i < COUNT_OF(weights); i++)
        weights[i] = (float)i / 64;
    fail_nth_pause();
    /* What a process does once and keeps, as HIP's handler of faults, is done here. */
    struct device_options once = { .staging_slot_count = TICKETS, .staging_slot_bytes = 4096 };
    struct error err = { .status = STATUS_OK };
    if (live(&once, &err)) {
        fprintf(stderr, "%s: %s\n", device_name, err.text);
        return 1;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fail_nth_write_sites();
    return failed;
}
