/* trace_self_test.c - is the instrument itself sound? Calls with one thing wrong each are passed
 * in through the same door that the libraries use, recorded and analysed by the same code; each
 * must be found, and a program with nothing wrong must give nothing. No device is needed: what is
 * not tested here is whether the runtime reports its calls. */
#include "campaign/trace/trace.h"

#include "interpose/interpose.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool never_fatal(int32_t code)
{
    (void)code;
    return false;
}

static int32_t nothing(void)
{
    return 0;
}

static const struct interpose_backend backend = { "self-test", INTERPOSE_CUDA, never_fatal,
                                                  nothing, NULL };

enum { BYTES = 4096 };
static const struct interpose_stream first = { 0, 0x100 }, second = { 0, 0x200 };

static void alloc(struct interpose *door, enum interpose_memory memory, uint64_t address)
{
    struct interpose_call call;
    interpose_alloc_begin(door, &call, "alloc", memory, BYTES, NULL);
    interpose_alloc_end(door, &call, address, 0);
}

static void release(struct interpose *door, enum interpose_memory memory, uint64_t address)
{
    struct interpose_call call;
    interpose_free_begin(door, &call, "free", memory, address, 0, NULL);
    interpose_end(door, &call, 0);
}

static void copy(struct interpose *door, enum interpose_direction direction, uint64_t target,
                 uint64_t source, uint64_t bytes, const struct interpose_stream *stream)
{
    struct interpose_call call;
    struct interpose_copy asked = { .direction = direction,
                                    .source = source,
                                    .target = target,
                                    .bytes = bytes,
                                    .async = true,
                                    .stream = stream };
    interpose_copy_begin(door, &call, "copy", &asked);
    interpose_end(door, &call, 0);
}

static void wait(struct interpose *door)
{
    struct interpose_call call;
    interpose_sync_begin(door, &call, "wait", NULL);
    interpose_end(door, &call, 0);
}

static void launch(struct interpose *door, uint64_t pointer, const struct interpose_stream *stream)
{
    struct interpose_call call;
    struct interpose_parameter parameter = { &pointer, sizeof(pointer), 0 };
    struct interpose_launch asked = { .kernel = "kernel",
                                      .function = 1,
                                      .parameters = &parameter,
                                      .parameter_count = 1,
                                      .stream = stream };
    interpose_launch_begin(door, &call, "launch", &asked);
    interpose_end(door, &call, 0);
}

/* ---- Scenes --------------------------------------------------------------------------------- */

enum { DEVICE = 0x10000000, OTHER = 0x20000000 };
static unsigned char host[BYTES];

static uint64_t host_address(void)
{
    return (uint64_t)(uintptr_t)host;
}

static void plant_nothing(struct interpose *door)
{
    alloc(door, INTERPOSE_DEVICE, DEVICE);
    alloc(door, INTERPOSE_PINNED, host_address());
    copy(door, INTERPOSE_TO_DEVICE, DEVICE, host_address(), BYTES, &first);
    launch(door, DEVICE, &first);
    copy(door, INTERPOSE_TO_HOST, host_address(), DEVICE, BYTES, &first);
    wait(door);
    release(door, INTERPOSE_PINNED, host_address());
    release(door, INTERPOSE_DEVICE, DEVICE);
}

static void plant_size(struct interpose *door)
{
    alloc(door, INTERPOSE_DEVICE, DEVICE);
    copy(door, INTERPOSE_TO_HOST, host_address(), DEVICE, BYTES + 1, &first);
    wait(door);
}

static void plant_freed(struct interpose *door)
{
    alloc(door, INTERPOSE_DEVICE, DEVICE);
    release(door, INTERPOSE_DEVICE, DEVICE);
    copy(door, INTERPOSE_TO_HOST, host_address(), DEVICE, BYTES, &first);
}

static void plant_unordered_kernel(struct interpose *door)
{
    alloc(door, INTERPOSE_DEVICE, DEVICE);
    launch(door, DEVICE, &first);
    copy(door, INTERPOSE_TO_HOST, host_address(), DEVICE, BYTES, &second);
}

static void plant_direction(struct interpose *door)
{
    alloc(door, INTERPOSE_DEVICE, DEVICE);
    copy(door, INTERPOSE_TO_DEVICE, host_address(), DEVICE, BYTES, &first);
}

static void plant_rewritten(struct interpose *door)
{
    alloc(door, INTERPOSE_DEVICE, DEVICE);
    alloc(door, INTERPOSE_PINNED, host_address());
    copy(door, INTERPOSE_TO_DEVICE, DEVICE, host_address(), BYTES, &first);
    host[0] ^= 1;
    wait(door);
}

static void plant_overlap(struct interpose *door)
{
    alloc(door, INTERPOSE_DEVICE, DEVICE);
    alloc(door, INTERPOSE_DEVICE, OTHER);
    copy(door, INTERPOSE_WITHIN, OTHER, DEVICE, BYTES, &first);
    copy(door, INTERPOSE_TO_HOST, host_address(), OTHER, BYTES, &second);
}

static void plant_stale_graph(struct interpose *door)
{
    struct interpose_call call;
    struct interpose_fill fill = { .target = DEVICE, .bytes = BYTES, .graph = 7 };
    alloc(door, INTERPOSE_DEVICE, DEVICE);
    interpose_fill_begin(door, &call, "fill", &fill);
    interpose_end(door, &call, 0);
    interpose_graph_instantiated(door, 7, 8);
    release(door, INTERPOSE_DEVICE, DEVICE);
    interpose_graph_launch_begin(door, &call, "graph", 8, &first);
    interpose_end(door, &call, 0);
}

static void plant_unwritten(struct interpose *door)
{
    alloc(door, INTERPOSE_DEVICE, DEVICE);
    copy(door, INTERPOSE_TO_HOST, host_address(), DEVICE, BYTES, &first);
    wait(door);
}

static void plant_leak(struct interpose *door)
{
    for (uint64_t i = 0; i < 16; i++) {
        alloc(door, INTERPOSE_DEVICE, DEVICE + i * BYTES);
        launch(door, DEVICE + i * BYTES, &first);
    }
}

/* ---- All of them ---------------------------------------------------------------------------- */

/* Whether the analysis of what was recorded has a finding of the hypothesis; COUNT: any at all. */
static bool is_found(const char *path, enum hypothesis hypothesis)
{
    struct analyze_options options = { .level = AUDIT_LOG };
    struct analyzer *analyzer;
    struct error unused;
    bool found = false;
    if (analyze_flight(path, &options, &analyzer, &unused))
        return hypothesis == HYPOTHESIS_COUNT; /* what cannot be read is no clean run */
    const struct analysis *result = analyzer_result(analyzer);
    for (size_t i = 0; i < result->finding_count; i++)
        found = found || hypothesis == HYPOTHESIS_COUNT ||
                result->findings[i].hypothesis == hypothesis;
    analyzer_destroy(analyzer);
    return found;
}

static bool run_scene(const char *folder, void (*plant)(struct interpose *door),
                      enum hypothesis hypothesis)
{
    char path[FILES_PATH_BYTES];
    struct error unused;
    struct interpose *door = interpose_open(&backend, folder, "self-test", 64);
    if (!door || files_join(path, &unused, folder, "%ld.self-test.flight", (long)getpid())) {
        interpose_close(door);
        return false;
    }
    plant(door);
    interpose_close(door);
    bool found = is_found(path, hypothesis);
    unlink(path);
    return hypothesis == HYPOTHESIS_COUNT ? !found : found;
}

void trace_self_test(const char *folder, enum self_test_state ret[HYPOTHESIS_COUNT])
{
    static const struct {
        enum hypothesis hypothesis;
        void (*plant)(struct interpose *door);
    } scenes[] = {
        { HYPOTHESIS_SIZE_MISMATCH, plant_size },
        { HYPOTHESIS_USE_AFTER_FREE, plant_freed },
        { HYPOTHESIS_MISSING_SYNC, plant_unordered_kernel },
        { HYPOTHESIS_BAD_POINTER, plant_direction },
        { HYPOTHESIS_STAGING_REUSE, plant_rewritten },
        { HYPOTHESIS_OVERLAPPING_COPIES, plant_overlap },
        { HYPOTHESIS_STALE_GRAPH, plant_stale_graph },
        { HYPOTHESIS_UNINITIALISED_READ, plant_unwritten },
        { HYPOTHESIS_LEAK, plant_leak },
    };
    for (size_t i = 0; i < HYPOTHESIS_COUNT; i++)
        ret[i] = SELF_TEST_ABSENT;
    bool clean = run_scene(folder, plant_nothing, HYPOTHESIS_COUNT);
    for (size_t i = 0; i < COUNT_OF(scenes); i++)
        ret[scenes[i].hypothesis] = clean &&
                                            run_scene(folder, scenes[i].plant, scenes[i].hypothesis)
                                        ? SELF_TEST_PASSED
                                        : SELF_TEST_FAILED;
}
