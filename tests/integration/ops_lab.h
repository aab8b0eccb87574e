/* ops_lab.h - for tests of ops through a device: rows of floats in and out, and random
 * numbers that can be repeated. */
#ifndef GRETA_TESTS_OPS_LAB_H
#define GRETA_TESTS_OPS_LAB_H

#include "test.h"

#include "device/all/all.h"
#include "device/host/host.h"
#include "device/kernel.h"
#include "ops/ops.h"
#include "tensor/quant.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What no launch may do, counted: bytes next to a buffer that something wrote, illegal accesses,
 * and indices past their bounds. */
struct lab_watch {
    uint64_t canary_count, fault_count, trap_count; /* atomic: any thread tells */
};

static inline void lab_watch_notify(void *context, const struct event *event)
{
    struct lab_watch *watch = context;
    if (event->kind == EVENT_CANARY) {
        __atomic_fetch_add(&watch->canary_count, 1, __ATOMIC_RELAXED);
        printf("canary: %llu bytes next to a buffer of %llu bytes (%s) are damaged, the first at "
               "byte %lld; seen after: %s\n",
               (unsigned long long)event->canary.damaged_bytes,
               (unsigned long long)event->canary.buffer_bytes, event->scope.tensor,
               (long long)event->canary.offset, event->op[0] ? event->op : "its life");
    } else if (event->kind == EVENT_FAULT) {
        __atomic_fetch_add(&watch->fault_count, 1, __ATOMIC_RELAXED);
    } else if (event->kind == EVENT_TRAP) {
        __atomic_fetch_add(&watch->trap_count, 1, __ATOMIC_RELAXED);
    }
}

/* For whole models, where none of it is expected. */
static inline void lab_watch_check(const struct lab_watch *watch)
{
    if (watch->canary_count || watch->fault_count || watch->trap_count)
        fail_msg("expected no damage, found %llu canaries, %llu faults, %llu traps",
                 (unsigned long long)watch->canary_count, (unsigned long long)watch->fault_count,
                 (unsigned long long)watch->trap_count);
}

struct lab {
    struct device *device;
    struct ops ops;
    struct ops_target target;
    struct error err;
    uint64_t random;
    uint64_t trap_count; /* so far */
    struct event last_trap;
    uint64_t last_launch_id;
    pthread_mutex_t lock;
    struct lab_watch watch;
    struct device_buffer *buffers; /* that were made and not dropped */
    size_t buffer_count;
};

static inline void lab_notify(void *context, const struct event *event)
{
    struct lab *lab = context;
    lab_watch_notify(&lab->watch, event);
    pthread_mutex_lock(&lab->lock);
    if (event->kind == EVENT_TRAP) {
        lab->trap_count++;
        lab->last_trap = *event;
    } else if (event->kind == EVENT_LAUNCH) {
        lab->last_launch_id = event->id;
    }
    pthread_mutex_unlock(&lab->lock);
}

/* The device under test: the host, or what the test's first argument names. */
static const char *lab_device = "host";

static inline bool lab_is_host(void)
{
    return strcmp(lab_device, "host") == 0;
}

/* Whether a path of the host is to be tested here; another device counts as one path. */
static inline bool lab_has_path(enum cpu_path path)
{
    return lab_is_host() ? cpu_path_is_supported(path) : path == CPU_PATH_PORTABLE;
}

/* False, with words, if the device that was asked for is not here: the test is skipped then. */
static inline bool lab_choose(int argument_count, char **arguments)
{
    struct device_options options = { .staging_slot_count = 1 };
    struct device *device;
    struct ops ops;
    struct error err;
    if (argument_count < 2)
        return true;
    lab_device = arguments[1];
    if (all_open(lab_device, &options, &device, &err)) {
        printf("skipped: %s\n", err.text);
        return false;
    }
    bool loaded = ops_load(&ops, device, CPU_PATH_COUNT, &err) == STATUS_OK;
    if (!loaded)
        printf("skipped: %s\n", err.text);
    device_close(device);
    return loaded;
}
#define LAB_SKIPPED 77

/* For tests that are only for what the first argument names. */
static inline bool lab_choose_named(int argument_count, char **arguments)
{
    if (argument_count < 2)
        printf("skipped: no device was named\n");
    return argument_count >= 2 && lab_choose(argument_count, arguments);
}

/* The seed of the numbers a test draws: a new one each time, unless GRETA_TEST_SEED gives it. It is
 * printed, so that a run can be repeated. */
static inline uint64_t lab_seed(void)
{
    static uint64_t seed;
    static bool known;
    const char *given = getenv("GRETA_TEST_SEED");
    if (known)
        return seed;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    seed = given ? strtoull(given, NULL, 10)
                 : ((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec) % 1000000007u;
    known = true;
    printf("GRETA_TEST_SEED=%llu\n", (unsigned long long)seed);
    fflush(stdout); /* also of a run that dies */
    return seed;
}

static inline void lab_open_with(struct lab *lab, enum cpu_path path,
                                 const struct device_options *options)
{
    memset(lab, 0, sizeof(*lab));
    pthread_mutex_init(&lab->lock, NULL);
    lab->random = lab_seed();
    CHECK_OK(all_open(lab_device, options, &lab->device, &lab->err), &lab->err);
    CHECK_OK(ops_load(&lab->ops, lab->device, path, &lab->err), &lab->err);
    lab->target.ops = &lab->ops;
    lab->target.site = DEVICE_HERE;
    CHECK_OK(device_stream_create(lab->device, DEVICE_HERE, &lab->target.stream, &lab->err),
             &lab->err);
}

/* Guards stand next to every operand: reading or writing past them is a fault; writing into what
 * alignment leaves over before them is a canary, for which the test fails (lab_check). Reading an
 * operand that is no more is a fault too: freed addresses are not used again soon. */
static inline void lab_open(struct lab *lab, enum cpu_path path, uint32_t thread_count)
{
    struct device_options options = { .observer = { lab_notify, lab },
                                      .guards = true,
                                      .poison = true,
                                      .quarantine_bytes = UINT64_C(64) << 20,
                                      .thread_count = thread_count };
    lab_open_with(lab, path, &options);
}

/* Nothing next to a buffer was written, as far as is known by now: of launches that were waited
 * for, and of buffers that were destroyed. */
static inline void lab_check(const struct lab *lab)
{
    uint64_t count = __atomic_load_n(&lab->watch.canary_count, __ATOMIC_RELAXED);
    if (count)
        fail_msg("expected nothing to be written next to buffers, found %llu canaries damaged",
                 (unsigned long long)count);
}

/* Canaries are looked at when a buffer is destroyed, and not when its device is closed. A group's
 * teardown that fails is no failure for cmocka: so the program ends here. */
static inline void lab_close(struct lab *lab)
{
    bool lives = device_check(lab->device, &lab->err) != STATUS_LOST;
    if (lives && device_stream_sync(lab->device, lab->target.stream, DEVICE_HERE, &lab->err))
        lives = false;
    for (size_t i = 0; lives && i < lab->buffer_count; i++)
        if (device_buffer_bytes(lab->device, lab->buffers[i])) /* else the test destroyed it */
            device_buffer_destroy(lab->device, lab->buffers[i], DEVICE_HERE);
    device_close(lab->device);
    pthread_mutex_destroy(&lab->lock);
    free(lab->buffers);
    if (lab->watch.canary_count) {
        print_error("expected nothing to be written next to buffers, found %llu canaries damaged\n",
                    (unsigned long long)lab->watch.canary_count);
        exit(EXIT_FAILURE);
    }
}

#define LAB_OK(lab, call) CHECK_OK(call, &(lab)->err)

/* In (-1, 1). */
static inline float lab_random(struct lab *lab)
{
    lab->random = lab->random * 6364136223846793005u + 1442695040888963407u;
    return (float)(int32_t)(lab->random >> 32) / 2147483648.0f;
}

static inline float *lab_floats(struct lab *lab, size_t count)
{
    float *values = malloc((count + 1) * sizeof(*values));
    assert_non_null(values);
    for (size_t i = 0; i < count; i++)
        values[i] = lab_random(lab);
    return values;
}

/* A buffer of its own for [width, rows] of a type. */
static inline struct device_view lab_view(struct lab *lab, enum dtype dtype, uint64_t width,
                                          uint64_t rows)
{
    struct device_view view = { .dtype = dtype,
                                .shape = shape_make(2, (uint64_t[]){ width, rows }) };
    uint64_t bytes = 0;
    assert_true(shape_bytes(&view.shape, dtype, &bytes));
    LAB_OK(lab, device_buffer_create(lab->device, bytes, "operand", DEVICE_HERE, &view.buffer,
                                     &lab->err));
    struct device_buffer *buffers = realloc(lab->buffers,
                                            (lab->buffer_count + 1) * sizeof(*buffers));
    assert_non_null(buffers);
    lab->buffers = buffers;
    lab->buffers[lab->buffer_count++] = view.buffer;
    return view;
}

static inline void lab_put(struct lab *lab, const struct device_view *view, const void *bytes)
{
    uint64_t count = 0;
    assert_true(shape_bytes(&view->shape, view->dtype, &count));
    LAB_OK(lab, device_copy_in(lab->device, lab->target.stream, view, bytes, count, DEVICE_HERE,
                               &lab->err));
}

static inline struct device_view lab_put_new(struct lab *lab, enum dtype dtype, uint64_t width,
                                             uint64_t rows, const void *bytes)
{
    struct device_view view = lab_view(lab, dtype, width, rows);
    lab_put(lab, &view, bytes);
    return view;
}

static inline void lab_get(struct lab *lab, const struct device_view *view, void *bytes)
{
    LAB_OK(lab, device_read(lab->device, lab->target.stream, view, bytes, DEVICE_HERE, &lab->err));
    lab_check(lab);
}

static inline void lab_drop(struct lab *lab, struct device_view view)
{
    device_buffer_destroy(lab->device, view.buffer, DEVICE_HERE);
    for (size_t i = lab->buffer_count; i-- > 0;)
        if (lab->buffers[i].index == view.buffer.index &&
            lab->buffers[i].generation == view.buffer.generation) {
            lab->buffers[i] = lab->buffers[--lab->buffer_count];
            break;
        }
    lab_check(lab);
}

/* Every element within tolerance of wanted, relative to the largest of wanted. */
static inline void check_close(const char *name, const float *found, const double *wanted,
                               size_t count, double tolerance)
{
    double largest = 1e-30;
    for (size_t i = 0; i < count; i++)
        largest = fabs(wanted[i]) > largest ? fabs(wanted[i]) : largest;
    for (size_t i = 0; i < count; i++)
        if (!(fabs((double)found[i] - wanted[i]) <= tolerance * largest))
            fail_msg("%s: element %zu: expected %g, found %g (tolerance %g of %g)", name, i,
                     wanted[i], (double)found[i], tolerance, largest);
}

#endif
