/* interpose_translate.h - a recording of calls that a test makes as a foreign program would, and
 * its events. */
#ifndef GRETA_TESTS_INTERPOSE_TRANSLATE_H
#define GRETA_TESTS_INTERPOSE_TRANSLATE_H

#include "test.h"

#include "event/flight.h"
#include "interpose/interpose_impl.h"
#include "temp_folder.h"

#include <stdio.h>
#include <unistd.h>

static inline bool is_fatal(int32_t code)
{
    return code == 700;
}

static int32_t sync_code;
static unsigned sync_count;
static inline int32_t synchronise(void)
{
    sync_count++;
    return sync_code;
}

static const struct interpose_backend backend = { "test", INTERPOSE_CUDA, is_fatal, synchronise,
                                                  NULL };

struct fixture {
    struct temp_folder folder;
    struct interpose *door;
    struct interpose_call call;
    struct flight_reader *reader;
};

static inline struct fixture fixture_begin(void)
{
    struct fixture fixture = { .reader = NULL };
    temp_folder_init(&fixture.folder);
    fixture.door = interpose_open(&backend, fixture.folder.path, "test", 1024);
    assert_non_null(fixture.door);
    return fixture;
}

/* The recording is over: its events can be read. */
static inline void fixture_stop(struct fixture *fixture)
{
    char path[512];
    struct error err;
    interpose_close(fixture->door);
    fixture->door = NULL;
    snprintf(path, sizeof(path), "%s/%ld.test.flight", fixture->folder.path, (long)getpid());
    CHECK_OK(flight_open(path, &fixture->reader, &err), &err);
}

static inline struct event fixture_event(const struct fixture *fixture, uint64_t id)
{
    struct event event = { 0 };
    uint64_t at = id;
    assert_true(flight_next(fixture->reader, &at, &event));
    assert_int_equal(event.id, id);
    return event;
}

static inline void fixture_end(struct fixture *fixture)
{
    flight_reader_close(fixture->reader);
    temp_folder_release(&fixture->folder);
}

static inline void fixture_alloc(struct fixture *fixture, enum interpose_memory memory,
                                 uint64_t address, uint64_t bytes)
{
    interpose_alloc_begin(fixture->door, &fixture->call, "cuMemAlloc_v2", memory, bytes, NULL);
    interpose_alloc_end(fixture->door, &fixture->call, address, 0);
}

static inline void fixture_copy(struct fixture *fixture, const struct interpose_copy *asked,
                                int32_t code)
{
    interpose_copy_begin(fixture->door, &fixture->call, "cuMemcpyHtoDAsync_v2_ptsz", asked);
    interpose_end(fixture->door, &fixture->call, code);
}

enum { DEVICE = 0x100000, MORE = 0x200000 };
static const struct interpose_stream one = { 1, 0x51 }, two = { 1, 0x52 };

static inline struct event fixture_launch(struct fixture *fixture, const void *bytes, size_t count)
{
    struct interpose_parameter parameter = { bytes, count, 0 };
    struct interpose_launch asked = { .kernel = "_ZN2at6native18elementwise_kernelILi4EEEvi",
                                      .function = 77,
                                      .parameters = &parameter,
                                      .parameter_count = 1,
                                      .stream = &one };
    interpose_launch_begin(fixture->door, &fixture->call, "cuLaunchKernel", &asked);
    struct event event = fixture->call.event;
    interpose_end(fixture->door, &fixture->call, 0);
    return event;
}

#endif
