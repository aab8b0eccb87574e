/* ops_lab.h - for tests of ops through a device: rows of floats in and out, and repeatable numbers.
 */
#ifndef GRETA_TESTS_OPS_LAB_H
#define GRETA_TESTS_OPS_LAB_H

#include "test.h"

#include "device/all/all.h"
#include "device/host/host.h"
#include "ops/ops.h"
#include "tensor/quant.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lab {
    struct device *device;
    struct ops ops;
    struct ops_target target;
    struct error err;
    uint64_t random;
    uint64_t trap_count; /* told so far */
    struct event last_trap;
    uint64_t last_launch_id;
    pthread_mutex_t lock;
};

static inline void lab_notify(void *context, const struct event *event)
{
    struct lab *lab = context;
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

/* Of tests that are only for what the first argument names. */
static inline bool lab_choose_named(int argument_count, char **arguments)
{
    if (argument_count < 2)
        printf("skipped: no device was named\n");
    return argument_count >= 2 && lab_choose(argument_count, arguments);
}

/* Of the numbers a test draws: the same each time, unless GRETA_TEST_SEED says otherwise. */
static inline uint64_t lab_seed(void)
{
    const char *given = getenv("GRETA_TEST_SEED");
    return given ? strtoull(given, NULL, 10) : 1;
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

/* Guards stand beside every operand: reading or writing one byte too far is a fault. So is reading
 * one that is no more: freed addresses are not used again soon. */
static inline void lab_open(struct lab *lab, enum cpu_path path, uint32_t thread_count)
{
    struct device_options options = { .observer = { lab_notify, lab },
                                      .guards = true,
                                      .poison = true,
                                      .quarantine_bytes = UINT64_C(64) << 20,
                                      .thread_count = thread_count };
    lab_open_with(lab, path, &options);
}

static inline void lab_close(struct lab *lab)
{
    device_close(lab->device);
    pthread_mutex_destroy(&lab->lock);
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
}

static inline void lab_drop(struct lab *lab, struct device_view view)
{
    LAB_OK(lab, device_buffer_destroy(lab->device, view.buffer, DEVICE_HERE, &lab->err));
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
