/* hip_recording.h - the recording of this process, which the preload library makes, and the memory
 * that its calls of HIP are about: the runtime below does nothing. */
#ifndef GRETA_TESTS_HIP_RECORDING_H
#define GRETA_TESTS_HIP_RECORDING_H

#include "interpose/hip/hip.h"

#include "event/flight.h"
#include "fake_hip.h"
#include "temp_folder.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct temp_folder folder;
static struct flight *flight;
static uint64_t last_id;

static inline bool next_event(struct event *ret_event)
{
    if (flight_peek(flight, last_id + 1, ret_event) != FLIGHT_WHOLE)
        return false;
    last_id++;
    return true;
}

static inline void nothing_reported(void)
{
    struct event event;
    assert_false(next_event(&event));
}

static inline struct event only_event(void)
{
    struct event event = { 0 };
    assert_true(next_event(&event));
    nothing_reported();
    return event;
}

/* The one event of a call that succeeds. */
#define TOLD(call) (assert_int_equal((call), 0), only_event())

enum { BYTES = 4096 };
static unsigned char memory[2 * BYTES], other[BYTES], pinned[BYTES];
static char stream_place;
static void *const stream = &stream_place;

/* Where the emulated runtime leaves the result pointer alone, so the address is the test's. */
static inline void make(void *address)
{
    void *result = address;
    struct event event = TOLD(hipMalloc(&result, BYTES));
    assert_int_equal(event.kind, EVENT_BUFFER_CREATE);
    assert_int_equal(event.accesses[0].address, (uint64_t)(uintptr_t)address);
}

static inline int set_up(void **state)
{
    (void)state;
    void *host = pinned;
    make(memory);
    make(other);
    assert_int_equal(TOLD(hipHostMalloc(&host, BYTES, 0)).kind, EVENT_BUFFER_CREATE);
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    assert_int_equal(TOLD(hipFree(memory)).check, EVENT_CHECK_NONE);
    assert_int_equal(TOLD(hipFree(other)).check, EVENT_CHECK_NONE);
    assert_int_equal(TOLD(hipHostFree(pinned)).check, EVENT_CHECK_NONE);
    return 0;
}

static inline int open_recording(void **state)
{
    (void)state;
    char path[600];
    struct error err;
    temp_folder_init(&folder);
    setenv(INTERPOSE_VARIABLE_FOLDER, folder.path, 1);
    setenv(INTERPOSE_VARIABLE_RECORDS, "4096", 1);
    assert_int_equal(hipInit(0), 0);
    snprintf(path, sizeof(path), "%s/%ld.hip.flight", folder.path, (long)getpid());
    CHECK_OK(flight_attach(path, &flight, &err), &err);
    return 0;
}

static inline int close_recording(void **state)
{
    (void)state;
    flight_close(flight);
    temp_folder_release(&folder);
    return 0;
}

#define IN_SCENE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

#endif
