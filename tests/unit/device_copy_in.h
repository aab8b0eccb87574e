/* device_copy_in.h - bytes to copy in, where they go, and a check that they arrived. */
#ifndef GRETA_TESTS_DEVICE_COPY_IN_H
#define GRETA_TESTS_DEVICE_COPY_IN_H

#include "device_fixture.h"

#include <stdlib.h>

#define SLOT ((uint64_t)1 << 20) /* what shares of the work is at least half of it */

static inline uint8_t *make_bytes(uint64_t count, uint32_t seed)
{
    uint8_t *bytes = malloc(count);
    assert_non_null(bytes);
    for (uint64_t i = 0; i < count; i++)
        bytes[i] = (uint8_t)((i + seed) * 2654435761u >> 9);
    return bytes;
}

static inline struct device_view make_view(struct fixture *fixture, uint64_t bytes)
{
    struct device_view view = { .dtype = DTYPE_I8, .shape = shape_make(1, &bytes) };
    CHECK_OK(device_buffer_create(fixture->device, bytes, "target", DEVICE_HERE, &view.buffer,
                                  &fixture->err),
             &fixture->err);
    return view;
}

static inline void check_bytes(struct fixture *fixture, const struct device_view *view,
                               const uint8_t *wanted)
{
    uint64_t bytes = view->shape.dims[0];
    uint8_t *found = malloc(bytes);
    assert_non_null(found);
    CHECK_OK(device_read(fixture->device, fixture->stream, view, found, DEVICE_HERE, &fixture->err),
             &fixture->err);
    assert_memory_equal(found, wanted, bytes);
    free(found);
}

/* Bytes that somebody reads. */
struct source {
    const uint8_t *bytes;
    uint64_t next;     /* what is asked for follows what was */
    uint64_t fails_at; /* from here on nothing can be read */
    uint32_t calls;
};

static inline enum status read_source(void *context, uint64_t at, void *target, uint64_t bytes,
                                      struct error *err)
{
    struct source *source = context;
    source->calls++;
    assert_int_equal(at, source->next);
    source->next = at + bytes;
    if (at + bytes > source->fails_at)
        return error_set(err, STATUS_IO, "the disk is gone");
    memcpy(target, source->bytes + at, bytes);
    return STATUS_OK;
}

#endif
