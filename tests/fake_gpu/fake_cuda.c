/* fake_cuda.c - a libcuda.so.1 for tests: the calls of cuda_api.def, and what tests/hip_over_cuda
 * needs beyond them, on a processor. Here are the device, streams and events, and what a test may
 * ask of it all; fake_memory.c has memory, which is mapped memory between unmapped pages,
 * fake_work.c kernels, which run in the emulator, copies and graphs. Work is done when it is given,
 * or when it is waited for (late.h). An illegal access of a kernel becomes error 700, which stays,
 * as on a real device. */
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;

static struct device {
    CUresult sticky; /* atomic: an illegal access, which stays */
    size_t used_bytes;
} devices[FAKE_DEVICE_LIMIT];

/* ---- What a test may ask of it ----------------------------------------------------------------
 */

/* FAKE_GPU_PROCESSORS: how many processors the device has (default: 2). FAKE_GPU_MIB: how much
 * memory (default: 4096). FAKE_GPU_LEFT: a file that lists, at the end of the process, what was
 * made and not given back. FAKE_GPU_IDLE: kernels do nothing and inspections find nothing, a graph
 * takes so many microseconds: to measure what the host does meanwhile. FAKE_GPU_LATE: late.h.
 * FAKE_GPU_CHIP: its compute capability, times ten (default: 90). FAKE_GPU_EARLY: the kernels of a
 * graph all begin before the first has done anything: what one reads by then (load_if) must be what
 * it would read in its turn. FAKE_GPU_NO_RANGES: memory cannot be mapped into address ranges.
 * FAKE_GPU_ADVERSE: adverse.h. FAKE_GPU_VERSION: CUDA's version the driver is for (default: 13000).
 * FAKE_GPU_COUNT: devices (default: 1), alike, each with memory and faults of its own. A call that
 * names a stream, event or graph of another device than the current one fails. */
static int live[THING_COUNT];

void fake_count(enum thing thing, int change)
{
    __atomic_fetch_add(&live[thing], change, __ATOMIC_RELAXED);
}

int fake_number(const char *variable, int otherwise)
{
    const char *wanted = getenv(variable);
    return wanted ? (int)strtol(wanted, NULL, 10) : otherwise;
}

static size_t total_bytes(void)
{
    return (size_t)fake_number("FAKE_GPU_MIB", 4096) << 20;
}

bool fake_use_bytes(int device, size_t bytes)
{
    size_t *used_bytes = &devices[device].used_bytes;
    if (bytes > total_bytes())
        return false;
    size_t used = __atomic_add_fetch(used_bytes, bytes, __ATOMIC_RELAXED);
    if (used <= total_bytes())
        return true;
    __atomic_sub_fetch(used_bytes, bytes, __ATOMIC_RELAXED);
    return false;
}

void fake_unuse_bytes(int device, size_t bytes)
{
    __atomic_sub_fetch(&devices[device].used_bytes, bytes, __ATOMIC_RELAXED);
}

/* For tests: how many things there are now. */
int fake_cuda_left(void)
{
    int count = 0;
    for (int i = 0; i < THING_COUNT; i++)
        count += __atomic_load_n(&live[i], __ATOMIC_RELAXED);
    return count;
}

__attribute__((destructor)) static void tell_left(void)
{
    const char *path = getenv("FAKE_GPU_LEFT");
    FILE *file = path ? fopen(path, "w") : NULL;
    size_t used_bytes = 0;
    for (int i = 0; i < FAKE_DEVICE_LIMIT; i++)
        used_bytes += devices[i].used_bytes;
    if (!file)
        return;
    fprintf(file, "memory %d, ranges %d, pinned %d, streams %d, events %d, graphs %d, bytes %zu\n",
            live[THING_MEMORY], live[THING_RANGE], live[THING_PINNED], live[THING_STREAM],
            live[THING_EVENT], live[THING_GRAPH], used_bytes);
    fclose(file);
}

/* ---- Device --------------------------------------------------------------------------------- */

static _Thread_local struct device *current;

int fake_current(void)
{
    return current ? (int)(current - devices) : -1;
}

CUresult fake_state_of(int device)
{
    return __atomic_load_n(&devices[device].sticky, __ATOMIC_RELAXED);
}

CUresult fake_state(void)
{
    return current ? fake_state_of(fake_current()) : FAKE_INVALID_CONTEXT;
}

CUresult fake_state_for(int device, int other)
{
    int here = fake_current();
    bool fits = (device < 0 || device == here) && (other < 0 || other == here);
    return here >= 0 && !fits ? FAKE_INVALID_HANDLE : fake_state();
}

void fake_lose(int device)
{
    __atomic_store_n(&devices[device].sticky, CUDA_ILLEGAL_ADDRESS, __ATOMIC_RELAXED);
}

static int device_count(void)
{
    int count = fake_number("FAKE_GPU_COUNT", 1);
    return count < FAKE_DEVICE_LIMIT ? count : FAKE_DEVICE_LIMIT;
}

CUresult cuInit(unsigned int flags)
{
    return flags;
}

CUresult cuDriverGetVersion(int *version)
{
    *version = fake_number("FAKE_GPU_VERSION", 13000);
    return 0;
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
    *name = error == CUDA_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
            : error == FAKE_NO_MEMORY     ? "CUDA_ERROR_OUT_OF_MEMORY"
            : error == FAKE_INVALID_IMAGE ? "CUDA_ERROR_INVALID_IMAGE"
            : error == FAKE_INVALID_VALUE ? "CUDA_ERROR_INVALID_VALUE"
                                          : "CUDA_ERROR_UNKNOWN";
    return 0;
}

CUresult cuDeviceGetCount(int *count)
{
    *count = device_count();
    return 0;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    *device = ordinal;
    return ordinal >= 0 && ordinal < device_count() ? 0 : FAKE_INVALID_DEVICE;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
    (void)device;
    snprintf(name, (size_t)length, "Fake GPU");
    return 0;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    (void)device;
    *bytes = total_bytes();
    return 0;
}

int fake_chip(void)
{
    return fake_number("FAKE_GPU_CHIP", 90);
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    (void)device;
    switch (attribute) {
    case CUDA_PROCESSOR_COUNT:
        *value = fake_number("FAKE_GPU_PROCESSORS", 2); /* plans depend on it */
        break;
    case CUDA_MAJOR:
        *value = fake_chip() / 10;
        break;
    case CUDA_MINOR:
        *value = fake_chip() % 10;
        break;
    case CUDA_BLOCK_SHARED:
        *value = 232448;
        break;
    case CUDA_PROCESSOR_SHARED:
        *value = 233472;
        break;
    default:
        return FAKE_INVALID_VALUE;
    }
    return 0;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    *context = (CUcontext)&devices[device];
    return 0;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    late_do_all(device);
    return 0;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    current = (struct device *)context;
    return 0;
}

CUresult cuCtxSynchronize(void)
{
    if (current)
        late_do_all(fake_current());
    return fake_state();
}

/* ---- Streams and events --------------------------------------------------------------------- */

static int device_of(CUstream stream)
{
    return stream ? stream->device : -1;
}

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
    if (!current)
        return FAKE_INVALID_CONTEXT;
    *stream = calloc(1, sizeof(**stream));
    fake_count(THING_STREAM, *stream != NULL);
    if (*stream)
        (*stream)->device = fake_current();
    if (*stream && late_wanted())
        late_add_queue(&(*stream)->late, fake_current());
    return !*stream                            ? FAKE_NO_MEMORY
           : flags <= CUDA_STREAM_NON_BLOCKING ? fake_state()
                                               : FAKE_INVALID_VALUE;
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
    CUresult state = fake_state_for(stream->device, -1);
    if (late_wanted())
        late_do_queue(&stream->late); /* events may still name it */
    else
        free(stream);
    fake_count(THING_STREAM, -1);
    return state;
}

CUresult cuStreamSynchronize(CUstream stream)
{
    if (stream)
        late_do_queue(&stream->late);
    return stream && stream->capturing ? 900 : fake_state_for(device_of(stream), -1);
}

CUresult cuStreamQuery(CUstream stream)
{
    if (stream)
        late_do_queue(&stream->late);
    return fake_state_for(device_of(stream), -1);
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
    if (late_wanted() && !late_give_wait(&stream->late, &event->mark))
        return FAKE_NO_MEMORY;
    return flags ? FAKE_INVALID_VALUE : fake_state_for(stream->device, event->device);
}

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
    if (!current)
        return FAKE_INVALID_CONTEXT;
    *event = calloc(1, sizeof(**event));
    fake_count(THING_EVENT, *event != NULL);
    if (*event)
        (*event)->device = fake_current();
    bool known = (flags & ~(unsigned)CUDA_EVENT_BLOCKING) == CUDA_EVENT_NO_TIMING;
    return !*event ? FAKE_NO_MEMORY : known ? fake_state() : FAKE_INVALID_VALUE;
}

CUresult cuEventDestroy_v2(CUevent event)
{
    CUresult state = fake_state_for(event->device, -1);
    free(event);
    fake_count(THING_EVENT, -1);
    return state;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    if (event && stream && late_wanted()) /* none is the default one */
        late_place_mark(&stream->late, &event->mark);
    return event ? fake_state_for(event->device, device_of(stream)) : FAKE_INVALID_VALUE;
}

CUresult cuEventSynchronize(CUevent event)
{
    if (event)
        late_do_mark(&event->mark);
    return event ? fake_state_for(event->device, -1) : FAKE_INVALID_VALUE;
}

CUresult cuEventQuery(CUevent event)
{
    if (event)
        late_do_mark(&event->mark);
    return event ? fake_state_for(event->device, -1) : FAKE_INVALID_VALUE;
}
