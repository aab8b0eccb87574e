/* interpose_cuda.h - for tests of the library that the CUDA driver loads: the test is driver and
 * CUPTI at once. It takes the callback that the library gives to CUPTI, calls it with arguments
 * laid out as the driver's, and reads what the recording holds then. */
#ifndef GRETA_TESTS_INTERPOSE_CUDA_H
#define GRETA_TESTS_INTERPOSE_CUDA_H

#include "test.h"

#include "event/flight.h"
#include "interpose/cuda/cuda.h"
#include "temp_folder.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- The driver's side ---------------------------------------------------------------------- */

static cupti_function called;
static bool enabled[CUDA_CALL_LIMIT];

/* What the emulated CUPTI calls in the emulated driver (tests/fake_trace); these tests define it.
 */
void fake_driver_subscribe(cupti_function callback, void *context);
void fake_driver_enable(uint32_t id, int on);

void fake_driver_subscribe(cupti_function callback, void *context)
{
    (void)context;
    called = callback;
}

void fake_driver_enable(uint32_t id, int on)
{
    enabled[id] = on != 0;
}

int InitializeInjection(void);

static struct temp_folder folder;
static struct flight *flight;
static uint64_t last_id;
/* That calls are made in. */
static struct {
    const void *handle;
    uint32_t uid;
} context = { &folder, 1 };

static inline void callback(int32_t site, uint32_t id, const void *arguments, int32_t code,
                            const char *symbol)
{
    struct cupti_callback data = { .site = site,
                                   .parameters = arguments,
                                   .return_value = &code,
                                   .symbol_name = symbol,
                                   .context = context.handle,
                                   .context_uid = context.uid };
    called(NULL, CUPTI_DOMAIN_DRIVER, id, &data);
}

static inline void tell_named(uint32_t id, const void *arguments, int32_t code, const char *symbol)
{
    callback(CUPTI_SITE_ENTER, id, arguments, 0, symbol);
    callback(CUPTI_SITE_EXIT, id, arguments, code, symbol);
}

/* The next event that was not read yet. False: nothing was recorded. */
static inline bool next(struct event *ret_event)
{
    if (flight_peek(flight, last_id + 1, ret_event) != FLIGHT_WHOLE)
        return false;
    last_id++;
    return true;
}

static inline void nothing_reported(void)
{
    struct event event;
    assert_false(next(&event));
}

/* The one event of a call. */
static inline struct event only(void)
{
    struct event event = { 0 };
    assert_true(next(&event));
    nothing_reported();
    return event;
}

static inline struct event tell(uint32_t id, const void *arguments, int32_t code)
{
    tell_named(id, arguments, code, NULL);
    return only();
}

/* ---- A scene -------------------------------------------------------------------------------- */

enum { DEVICE = 0x100000, OTHER = 0x200000, BYTES = 4096, STREAM = 0x5100 };

static unsigned char pinned[BYTES];

static inline uint64_t host_address(void)
{
    return (uint64_t)(uintptr_t)pinned;
}

static inline void make(uint32_t id, uint64_t address, uint64_t bytes)
{
    struct args_alloc arguments = { &address, bytes, STREAM };
    assert_int_equal(tell(id, &arguments, 0).kind, EVENT_BUFFER_CREATE);
}

static inline void drop(uint32_t id, uint64_t address)
{
    struct args_pair arguments = { address, STREAM };
    struct event event = tell(id, &arguments, 0);
    assert_int_equal(event.kind, EVENT_BUFFER_DESTROY);
    assert_int_equal(event.check, EVENT_CHECK_NONE);
}

enum { ALLOC = 243, ALLOC_HOST = 39, FREE = 245, FREE_HOST = 38 };

static inline int set_up(void **state)
{
    (void)state;
    make(ALLOC, DEVICE, BYTES);
    make(ALLOC, OTHER, BYTES);
    make(ALLOC_HOST, host_address(), BYTES);
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    drop(FREE_HOST, host_address());
    drop(FREE, OTHER);
    drop(FREE, DEVICE);
    return 0;
}

/* ---- Kernels ---- */
/* A kernel of the emulated driver: three parameters, of 8, 8 and 4 bytes. */
static const char add_name[] = "_ZN4demo3addEPfPKfi";

static inline uint64_t kernel_of_driver(const char *name)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(library);
    int32_t (*get)(uint64_t *, void *, const char *);
    *(void **)&get = dlsym(library, "cuModuleGetFunction");
    uint64_t found = 0;
    assert_int_equal(get(&found, NULL, name), 0);
    return found;
}

static inline void check_pointers(const struct event *event)
{
    assert_int_equal(event->kind, EVENT_LAUNCH);
    assert_string_equal(event->op, "add");
    assert_int_equal(event->access_count, 2);
    assert_int_equal(event->accesses[0].address, DEVICE);
    assert_int_equal(event->accesses[0].mode, EVENT_UPDATE | EVENT_MAYBE);
    assert_int_equal(event->accesses[1].address, OTHER);
    assert_int_equal(event->accesses[1].operand, 1);
    assert_false(event->flags & EVENT_PARTIAL);
}

/* ---- The recording ---- */

static inline int open_recording(void **state)
{
    (void)state;
    char path[600];
    struct error err;
    unsetenv(INTERPOSE_VARIABLE_FOLDER);
    assert_int_equal(InitializeInjection(), 1); /* loaded into a process that is not traced */
    assert_null(called);
    temp_folder_init(&folder);
    setenv(INTERPOSE_VARIABLE_FOLDER, folder.path, 1);
    setenv(INTERPOSE_VARIABLE_RECORDS, "4096", 1);
    assert_int_equal(InitializeInjection(), 1);
    assert_non_null(called);
    assert_int_equal(InitializeInjection(), 1); /* a second time: nothing */
    snprintf(path, sizeof(path), "%s/%ld.cuda.flight", folder.path, (long)getpid());
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
