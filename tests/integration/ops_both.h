/* ops_both.h - for tests that do the same on the host and on a GPU: operands on both, with the same
 * contents, and what comes of them compared. */
#ifndef GRETA_TESTS_OPS_BOTH_H
#define GRETA_TESTS_OPS_BOTH_H

#include "ops_lab.h"

static struct lab host, gpu;

/* bytes NULL: poison. */
static inline void both(struct device_view views[2], enum dtype dtype, uint64_t width,
                        uint64_t rows, const void *bytes)
{
    views[0] = bytes ? lab_put_new(&host, dtype, width, rows, bytes)
                     : lab_view(&host, dtype, width, rows);
    views[1] = bytes ? lab_put_new(&gpu, dtype, width, rows, bytes)
                     : lab_view(&gpu, dtype, width, rows);
}

/* A buffer is gone at once, whatever is queued: so that is waited for. */
static inline void drop_both(struct device_view views[2])
{
    struct lab *labs[2] = { &host, &gpu };
    for (size_t i = 0; i < 2; i++) {
        struct lab *lab = labs[i];
        LAB_OK(lab, device_stream_sync(lab->device, lab->target.stream, DEVICE_HERE, &lab->err));
        lab_drop(lab, views[i]);
    }
}

/* Host and GPU within tolerance of each other, relative to the largest; 0: the same bits. */
static inline void compare(const char *name, struct device_view views[2], double tolerance)
{
    uint64_t bytes = 0;
    assert_true(shape_bytes(&views[0].shape, views[0].dtype, &bytes));
    float *wanted = malloc(bytes), *found = malloc(bytes);
    double *exact = malloc(2 * bytes);
    assert_true(wanted && found && exact);
    lab_get(&host, &views[0], wanted);
    lab_get(&gpu, &views[1], found);
    if (tolerance == 0 && memcmp(wanted, found, bytes) != 0) {
        const uint8_t *a = (const uint8_t *)wanted, *b = (const uint8_t *)found;
        size_t at = 0;
        while (a[at] == b[at])
            at++;
        fail_msg("%s: byte %zu of %zu: expected %02x, found %02x", name, at, (size_t)bytes, a[at],
                 b[at]);
    }
    size_t count = (size_t)bytes / sizeof(float);
    for (size_t i = 0; i < count; i++)
        exact[i] = (double)wanted[i];
    if (tolerance > 0)
        check_close(name, found, exact, count, tolerance);
    free(exact);
    free(found);
    free(wanted);
}

/* A call with `lab` and `side`, 0 for the host and 1 for the GPU. */
#define BOTH_OK(call)                                                                              \
    do {                                                                                           \
        struct lab *lab = &host;                                                                   \
        size_t side = 0;                                                                           \
        LAB_OK(lab, call);                                                                         \
        lab = &gpu;                                                                                \
        side = 1;                                                                                  \
        LAB_OK(lab, call);                                                                         \
    } while (0)

static inline int open_labs(void **state)
{
    (void)state;
    const char *device = lab_device;
    lab_open(&gpu, CPU_PATH_COUNT, 0);
    lab_device = "host";
    lab_open(&host, CPU_PATH_PORTABLE, 1);
    lab_device = device;
    return 0;
}

static inline int close_labs(void **state)
{
    (void)state;
    lab_close(&gpu);
    lab_close(&host);
    return 0;
}

#endif
