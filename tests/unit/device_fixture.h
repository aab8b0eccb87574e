/* device_fixture.h - for tests of the host device: an observer that keeps events, small kernels
 * with contracts, and a device that has both. */
#ifndef GRETA_TESTS_DEVICE_FIXTURE_H
#define GRETA_TESTS_DEVICE_FIXTURE_H

#include "test.h"

#include "device/host/host.h"
#include "device/kernel.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>

/* ---- Observer ------------------------------------------------------------------------------- */

#define KEPT_LIMIT 4096

/* Keeps ends of calls, in the order they were reported. */
struct recorder {
    pthread_mutex_t lock;
    size_t count; /* all that were reported */
    struct event events[KEPT_LIMIT];
};

static inline void recorder_notify(void *context, const struct event *event)
{
    struct recorder *recorder = context;
    if (event->phase != EVENT_END)
        return;
    pthread_mutex_lock(&recorder->lock);
    if (recorder->count < KEPT_LIMIT)
        recorder->events[recorder->count] = *event;
    recorder->count++;
    pthread_mutex_unlock(&recorder->lock);
}

/* How many events are kept by now. A stream may still be telling more; those below this number no
 * longer change. */
static inline size_t recorder_kept(struct recorder *recorder)
{
    pthread_mutex_lock(&recorder->lock);
    size_t kept = recorder->count < KEPT_LIMIT ? recorder->count : KEPT_LIMIT;
    pthread_mutex_unlock(&recorder->lock);
    return kept;
}

/* The newest event of a kind, or NULL. */
static inline const struct event *recorder_last(struct recorder *recorder, enum event_kind kind)
{
    size_t count = recorder_kept(recorder);
    while (count > 0)
        if (recorder->events[--count].kind == kind)
            return &recorder->events[count];
    return NULL;
}

/* ---- Kernels -------------------------------------------------------------------------------- */

#define ADD_TILE 256u

/* x += amount, ADD_TILE values a tile. */
struct add_params {
    float amount;
};

static inline void add_kernel(const struct device_host_call *call, uint64_t tile)
{
    const struct add_params *params = call->params;
    float *x = call->operands[0].data;
    uint64_t end = (tile + 1) * ADD_TILE, count = call->operands[0].shape.dims[0];
    for (uint64_t i = tile * ADD_TILE; i < end && i < count; i++)
        x[i] += params->amount;
}

/* Writes one float at byte `offset` from the operand's start, whatever that hits. */
struct poke_params {
    int64_t offset;
};

static inline void poke_kernel(const struct device_host_call *call, uint64_t tile)
{
    (void)tile;
    const struct poke_params *params = call->params;
    /* Volatile and through an integer: no compiler may know better. */
    uintptr_t address = (uintptr_t)call->operands[0].data + (uintptr_t)params->offset;
    *(volatile uint8_t *)address = 1;
}

/* target[i] = source[index[i]], with the index checked. */
static inline void gather_kernel(const struct device_host_call *call, uint64_t tile)
{
    (void)tile;
    const int32_t *index = call->operands[1].data;
    const float *source = call->operands[2].data;
    float *target = call->operands[0].data;
    for (uint64_t i = 0; i < call->operands[0].shape.dims[0]; i++)
        if (device_index_ok(call, 1, (uint64_t)(int64_t)index[i], call->operands[2].shape.dims[0]))
            target[i] = source[index[i]];
}

/* Takes its time. */
struct sleep_params {
    uint32_t milliseconds;
};

static inline void sleep_kernel(const struct device_host_call *call, uint64_t tile)
{
    (void)tile;
    const struct sleep_params *params = call->params;
    struct timespec pause = { params->milliseconds / 1000,
                              (long)(params->milliseconds % 1000) * 1000000L };
    nanosleep(&pause, NULL);
}

/* Opens its own gate, then waits for another: words of host memory, either may be NULL. */
struct gate_params {
    uint32_t *open, *wait;
};

static inline void gate_kernel(const struct device_host_call *call, uint64_t tile)
{
    (void)tile;
    const struct gate_params *params = call->params;
    if (params->open)
        __atomic_store_n(params->open, 1, __ATOMIC_RELEASE);
    while (params->wait && !__atomic_load_n(params->wait, __ATOMIC_ACQUIRE))
        sched_yield();
}

static inline void open_gate(uint32_t *gate)
{
    __atomic_store_n(gate, 1, __ATOMIC_RELEASE);
}

#define F32_BIT (UINT64_C(1) << DTYPE_F32)
#define I32_BIT (UINT64_C(1) << DTYPE_I32)

static const struct device_contract add_contract = {
    "add", { { "x", EVENT_UPDATE, false, false, F32_BIT, "n" } },
    1,     sizeof(struct add_params),
    1000,  NULL,
};
static const struct device_contract poke_contract = {
    "poke", { { "x", EVENT_UPDATE, false, false, F32_BIT, "n" } }, 1, sizeof(struct poke_params), 0,
    NULL,
};
static const struct device_contract gather_contract = {
    "gather",
    { { "target", EVENT_WRITE, false, false, F32_BIT, "rows" },
      { "index", EVENT_READ, false, false, I32_BIT, "rows" },
      { "source", EVENT_READ, false, false, F32_BIT, "bound" } },
    3,
    0,
    0,
    NULL,
};
static const struct device_contract sleep_contract = {
    "sleep", { { "x", EVENT_READ, true, false, F32_BIT, "n" } }, 1, sizeof(struct sleep_params), 0,
    NULL,
};

static const struct device_contract gate_contract = {
    "gate", { { "x", EVENT_READ, true, false, F32_BIT, "n" } }, 1, sizeof(struct gate_params), 0,
    NULL,
};

static const struct device_kernel_entry test_kernels[] = {
    { .contract = &add_contract, .host = add_kernel },
    { .contract = &poke_contract, .host = poke_kernel },
    { .contract = &gather_contract, .host = gather_kernel },
    { .contract = &sleep_contract, .host = sleep_kernel },
    { .contract = &gate_contract, .host = gate_kernel },
};
static const struct device_image test_image = { test_kernels, COUNT_OF(test_kernels) };

/* ---- Device --------------------------------------------------------------------------------- */

struct fixture {
    struct recorder recorder;
    struct device *device;
    struct device_stream stream;
    struct error err;
};

static inline void fixture_open(struct fixture *fixture, struct device_options options)
{
    memset(fixture, 0, sizeof(*fixture));
    pthread_mutex_init(&fixture->recorder.lock, NULL);
    options.observer = (struct event_observer){ recorder_notify, &fixture->recorder };
    CHECK_OK(host_device_open(&options, &fixture->device, &fixture->err), &fixture->err);
    CHECK_OK(device_module_load(fixture->device, &test_image, DEVICE_HERE, &fixture->err),
             &fixture->err);
    CHECK_OK(device_stream_create(fixture->device, DEVICE_HERE, &fixture->stream, &fixture->err),
             &fixture->err);
}

static inline void fixture_close(struct fixture *fixture)
{
    device_close(fixture->device);
    pthread_mutex_destroy(&fixture->recorder.lock);
}

/* A buffer of count floats, and a view of all of it. */
static inline struct device_view fixture_floats(struct fixture *fixture, uint64_t count,
                                                const char *name)
{
    struct device_view view = { .dtype = DTYPE_F32, .shape = shape_make(1, &count) };
    CHECK_OK(device_buffer_create(fixture->device, count * sizeof(float), name, DEVICE_HERE,
                                  &view.buffer, &fixture->err),
             &fixture->err);
    return view;
}

static inline void fixture_fill(struct fixture *fixture, const struct device_view *view,
                                uint8_t byte)
{
    CHECK_OK(device_fill(fixture->device, fixture->stream, view, byte, DEVICE_HERE, &fixture->err),
             &fixture->err);
}

static inline struct device_launch launch_add(struct device_view view,
                                              const struct add_params *params)
{
    return (struct device_launch){ .contract = &add_contract,
                                   .params = params,
                                   .operands = { view },
                                   .operand_count = 1,
                                   .tile_count = (view.shape.dims[0] + ADD_TILE - 1) / ADD_TILE };
}

static inline struct device_launch launch_poke(struct device_view view,
                                               const struct poke_params *params)
{
    return (struct device_launch){ .contract = &poke_contract,
                                   .params = params,
                                   .operands = { view },
                                   .operand_count = 1,
                                   .tile_count = 1 };
}

static inline struct device_launch launch_gate(const struct gate_params *params)
{
    return (struct device_launch){
        .contract = &gate_contract, .params = params, .operand_count = 1, .tile_count = 1
    };
}

static inline struct device_launch launch_sleep(const struct sleep_params *params)
{
    return (struct device_launch){
        .contract = &sleep_contract, .params = params, .operand_count = 1, .tile_count = 1
    };
}

#endif
