/* fake_cuda.c - a libcuda.so.1 for tests: the calls of cuda_api.def, and what tests/hip_over_cuda
 * needs beyond them, on a processor. Memory is mapped memory with unmapped pages beside it, kernels
 * run in the emulator, work is done when it is given, or when it is waited for (late.h). An illegal
 * access of a kernel becomes error 700, which stays, as on a real device. */
#define _GNU_SOURCE
#include "device/cuda/cuda_api.h"

#include "fake.h"
#include "late.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define PAGE 4096u
#define GRANULARITY 65536u
#define INVALID_VALUE 1
#define NO_MEMORY 2
#define INVALID_IMAGE 200
#define NOT_FOUND 500
#define NOT_SUPPORTED 801

#define CUDA_CALL(name, parameters) EXPORT CUresult name parameters;
#define CUDA_OLD CUDA_CALL
#include "device/cuda/cuda_api.def"
#undef CUDA_OLD
#undef CUDA_CALL
EXPORT CUresult cuCtxSynchronize(void);
EXPORT uint64_t fake_cuda_captured(const char *name);
EXPORT int fake_cuda_left(void);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards everything below */
static CUresult sticky;

/* ---- What a test may ask of it ----------------------------------------------------------------
 */

/* FAKE_GPU_PROCESSORS: how many processors the device has (default: 2). FAKE_GPU_MIB: how much
 * memory (default: 4096). FAKE_GPU_LEFT: a file that is told, at the end of the process, what was
 * made and not given back. FAKE_GPU_IDLE: kernels do nothing and inspections find nothing, a graph
 * takes so many microseconds: to measure what the host does beside them. FAKE_GPU_LATE: late.h.
 * FAKE_GPU_CHIP: its compute capability, times ten (default: 90). FAKE_GPU_EARLY: the kernels of a
 * graph all begin before the first has done anything: what one reads by then (load_if) must be what
 * it would read in its turn. FAKE_GPU_NO_RANGES: memory cannot be mapped into address ranges.
 * FAKE_GPU_VERSION: CUDA's version the driver is for (default: 13000). FAKE_GPU_COUNT: devices
 * (default: 1; they are one). */
enum thing {
    THING_MEMORY,
    THING_RANGE,
    THING_PINNED,
    THING_STREAM,
    THING_EVENT,
    THING_GRAPH,
    THING_COUNT
};
static int live[THING_COUNT];
static size_t used_bytes;

static void count_thing(enum thing thing, int change)
{
    __atomic_fetch_add(&live[thing], change, __ATOMIC_RELAXED);
}

static int number_asked(const char *name, int otherwise)
{
    const char *wanted = getenv(name);
    return wanted ? (int)strtol(wanted, NULL, 10) : otherwise;
}

static size_t total_bytes(void)
{
    return (size_t)number_asked("FAKE_GPU_MIB", 4096) << 20;
}

/* False if there is not as much left. */
static bool use_bytes(size_t bytes)
{
    if (bytes > total_bytes())
        return false;
    size_t used = __atomic_add_fetch(&used_bytes, bytes, __ATOMIC_RELAXED);
    if (used <= total_bytes())
        return true;
    __atomic_sub_fetch(&used_bytes, bytes, __ATOMIC_RELAXED);
    return false;
}

static void unuse_bytes(size_t bytes)
{
    __atomic_sub_fetch(&used_bytes, bytes, __ATOMIC_RELAXED);
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
    if (!file)
        return;
    fprintf(file, "memory %d, ranges %d, pinned %d, streams %d, events %d, graphs %d, bytes %zu\n",
            live[THING_MEMORY], live[THING_RANGE], live[THING_PINNED], live[THING_STREAM],
            live[THING_EVENT], live[THING_GRAPH], used_bytes);
    fclose(file);
}

/* ---- Device --------------------------------------------------------------------------------- */

CUresult cuInit(unsigned int flags)
{
    return flags;
}

CUresult cuDriverGetVersion(int *version)
{
    *version = number_asked("FAKE_GPU_VERSION", 13000);
    return 0;
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
    *name = error == CUDA_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
            : error == NO_MEMORY          ? "CUDA_ERROR_OUT_OF_MEMORY"
            : error == INVALID_IMAGE      ? "CUDA_ERROR_INVALID_IMAGE"
            : error == INVALID_VALUE      ? "CUDA_ERROR_INVALID_VALUE"
                                          : "CUDA_ERROR_UNKNOWN";
    return 0;
}

CUresult cuDeviceGetCount(int *count)
{
    *count = number_asked("FAKE_GPU_COUNT", 1);
    return 0;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    *device = ordinal;
    return ordinal != 0;
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

static int chip(void)
{
    return number_asked("FAKE_GPU_CHIP", 90);
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    (void)device;
    switch (attribute) {
    case CUDA_PROCESSOR_COUNT:
        *value = number_asked("FAKE_GPU_PROCESSORS", 2); /* plans depend on it */
        break;
    case CUDA_MAJOR:
        *value = chip() / 10;
        break;
    case CUDA_MINOR:
        *value = chip() % 10;
        break;
    case CUDA_BLOCK_SHARED:
        *value = 232448;
        break;
    case CUDA_PROCESSOR_SHARED:
        *value = 233472;
        break;
    default:
        return INVALID_VALUE;
    }
    return 0;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    (void)device;
    *context = (CUcontext)&sticky;
    return 0;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    (void)device;
    late_do_all();
    return 0;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    (void)context;
    return 0;
}

CUresult cuCtxSynchronize(void)
{
    late_do_all();
    return sticky;
}

/* ---- What is where -------------------------------------------------------------------------- */

/* As measured on an H200: what is freed below this size stays mapped, so that nothing faults. */
#define FREED_STAYS_BYTES ((size_t)2 << 20)

/* What the driver knows of addresses: allocations, and ranges that are reserved, mapped or not. */
struct range {
    uintptr_t start, end;         /* the allocation, or the reserved range; 0: no entry */
    uintptr_t mapped, mapped_end; /* the part with memory in it */
};
#define RANGE_LIMIT 32768
static struct range ranges[RANGE_LIMIT];
static size_t range_count;
static pthread_mutex_t range_lock = PTHREAD_MUTEX_INITIALIZER; /* guards these */

/* With range_lock held. */
static struct range *find_range(uintptr_t address)
{
    for (size_t i = 0; i < range_count; i++)
        if (address >= ranges[i].start && address < ranges[i].end)
            return &ranges[i];
    return NULL;
}

static void add_range(uintptr_t start, size_t bytes, bool mapped)
{
    pthread_mutex_lock(&range_lock);
    size_t place = 0;
    while (place < range_count && ranges[place].end)
        place++;
    if (place < RANGE_LIMIT) {
        uintptr_t end = start + bytes;
        ranges[place] = (struct range){ start, end, mapped ? start : 0, mapped ? end : 0 };
        range_count = place == range_count ? range_count + 1 : range_count;
    }
    pthread_mutex_unlock(&range_lock);
}

/* Returns its size; 0: there is none. */
static size_t drop_range(uintptr_t start)
{
    pthread_mutex_lock(&range_lock);
    struct range *range = find_range(start);
    size_t bytes = range ? range->end - range->start : 0;
    if (range)
        *range = (struct range){ 0 };
    pthread_mutex_unlock(&range_lock);
    return bytes;
}

static void map_range(uintptr_t address, size_t bytes)
{
    pthread_mutex_lock(&range_lock);
    struct range *range = find_range(address);
    if (range) {
        range->mapped = bytes ? address : 0;
        range->mapped_end = address + bytes;
    }
    pthread_mutex_unlock(&range_lock);
}

/* The driver looks at addresses of copies and fills before it queues them. */
static bool is_memory(CUdeviceptr address, size_t bytes)
{
    pthread_mutex_lock(&range_lock);
    const struct range *range = find_range((uintptr_t)address);
    bool known = range && range->mapped && address >= range->mapped &&
                 bytes <= range->mapped_end - address;
    pthread_mutex_unlock(&range_lock);
    return known;
}

CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes, void **data,
                                CUdeviceptr address)
{
    pthread_mutex_lock(&range_lock);
    const struct range *found = find_range((uintptr_t)address);
    struct range range = found ? *found : (struct range){ 0 };
    pthread_mutex_unlock(&range_lock);
    bool mapped = range.mapped && address >= range.mapped && address < range.mapped_end;
    for (unsigned int i = 0; i < count; i++) {
        switch (attributes[i]) {
        case CUDA_POINTER_TYPE:
            *(unsigned int *)data[i] = mapped ? CUDA_TYPE_DEVICE : 0;
            break;
        case CUDA_POINTER_DEVICE:
            *(int *)data[i] = found ? 0 : -2;
            break;
        case CUDA_POINTER_START:
            *(CUdeviceptr *)data[i] = range.start;
            break;
        case CUDA_POINTER_BYTES:
            *(size_t *)data[i] = range.end - range.start;
            break;
        case CUDA_POINTER_MAPPED:
            *(unsigned int *)data[i] = mapped;
            break;
        default:
            return INVALID_VALUE;
        }
    }
    return sticky;
}

/* ---- Memory --------------------------------------------------------------------------------- */

/* A mapping with an unmapped page on both sides; its size is kept in front. Aligned to 256. */
static void *make_memory(size_t bytes)
{
    size_t room = (bytes + PAGE - 1) / PAGE * PAGE;
    uint8_t *map = mmap(NULL, room + 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return NULL;
    mprotect(map, PAGE, PROT_READ | PROT_WRITE);
    mprotect(map + 2 * PAGE, room, PROT_READ | PROT_WRITE);
    *(size_t *)(void *)map = room + 3 * PAGE;
    /* As far right as 256 bytes of alignment allow, and full of what was there before. */
    uint8_t *memory = map + 2 * PAGE + (room - (bytes + 255) / 256 * 256);
    memset(map + 2 * PAGE, 0x5A, room);
    return memory;
}

static void drop_memory(void *memory)
{
    uint8_t *map = (uint8_t *)((uintptr_t)memory / PAGE * PAGE) - 2 * PAGE;
    munmap(map, *(size_t *)(void *)map);
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    if (sticky)
        return sticky;
    if (!use_bytes(bytes))
        return NO_MEMORY;
    void *memory = make_memory(bytes);
    if (!memory)
        return NO_MEMORY;
    *address = (CUdeviceptr)(uintptr_t)memory;
    add_range((uintptr_t)memory, bytes, true);
    count_thing(THING_MEMORY, 1);
    return 0;
}

/* Waits for all work, as cuMemFreeHost does; cuMemUnmap does not. */
CUresult cuMemFree_v2(CUdeviceptr address)
{
    late_do_all();
    size_t bytes = drop_range((uintptr_t)address);
    if (bytes >= FREED_STAYS_BYTES)
        drop_memory((void *)(uintptr_t)address);
    unuse_bytes(bytes);
    if (bytes)
        count_thing(THING_MEMORY, -1);
    return bytes ? sticky : INVALID_VALUE;
}

CUresult cuMemHostAlloc(void **memory, size_t bytes, unsigned int flags)
{
    (void)flags;
    *memory = make_memory(bytes);
    if (*memory)
        count_thing(THING_PINNED, 1);
    return *memory ? 0 : NO_MEMORY;
}

CUresult cuMemFreeHost(void *memory)
{
    late_do_all();
    drop_memory(memory);
    count_thing(THING_PINNED, -1);
    return sticky;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *memory, unsigned int flags)
{
    *address = (CUdeviceptr)(uintptr_t)memory;
    return flags;
}

CUresult cuMemHostRegister_v2(void *memory, size_t bytes, unsigned int flags)
{
    (void)flags;
    return memory && bytes ? 0 : INVALID_VALUE;
}

CUresult cuMemHostUnregister(void *memory)
{
    return memory ? 0 : INVALID_VALUE;
}

static bool has_ranges(void)
{
    return getenv("FAKE_GPU_NO_RANGES") == NULL;
}

CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *properties,
                                       CUmemAllocationGranularity_flags option)
{
    (void)properties;
    *bytes = GRANULARITY;
    return has_ranges() ? option : NOT_SUPPORTED;
}

CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment,
                             CUdeviceptr wanted, unsigned long long flags)
{
    (void)alignment;
    (void)wanted;
    (void)flags;
    if (!has_ranges())
        return NOT_SUPPORTED;
    if (bytes % GRANULARITY)
        return INVALID_VALUE;
    void *map = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *address = (CUdeviceptr)(uintptr_t)map;
    if (map != MAP_FAILED) {
        add_range((uintptr_t)map, bytes, false);
        count_thing(THING_RANGE, 1);
    }
    return map == MAP_FAILED ? NO_MEMORY : 0;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes)
{
    if (drop_range((uintptr_t)address))
        count_thing(THING_RANGE, -1);
    return munmap((void *)(uintptr_t)address, bytes) ? INVALID_VALUE : 0;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *memory, size_t bytes,
                     const CUmemAllocationProp *properties, unsigned long long flags)
{
    (void)flags;
    *memory = bytes;
    if (!has_ranges())
        return NOT_SUPPORTED;
    if (properties->type != CUDA_MEMORY_PINNED || bytes % GRANULARITY)
        return INVALID_VALUE;
    if (!use_bytes(bytes))
        return NO_MEMORY;
    count_thing(THING_MEMORY, 1);
    return 0;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle memory)
{
    if (!memory)
        return INVALID_VALUE;
    unuse_bytes((size_t)memory);
    count_thing(THING_MEMORY, -1);
    return 0;
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle memory, unsigned long long flags)
{
    return address && bytes == memory && !offset && !flags ? 0 : INVALID_VALUE;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
    void *map = (void *)(uintptr_t)address;
    map_range((uintptr_t)address, 0);
    return mmap(map, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == map
               ? sticky
               : INVALID_VALUE;
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access,
                        size_t count)
{
    if (count != 1 || access->flags != CUDA_ACCESS_READ_WRITE)
        return INVALID_VALUE;
    map_range((uintptr_t)address, bytes);
    return mprotect((void *)(uintptr_t)address, bytes, PROT_READ | PROT_WRITE) ? INVALID_VALUE : 0;
}

/* ---- Work ----------------------------------------------------------------------------------- */

enum work_kind { WORK_KERNEL, WORK_COPY, WORK_FILL };

struct CUgraphNode_st {
    enum work_kind kind;
    struct fake_kernel *kernel;
    uint32_t grid_x, grid_y, threads, shared_bytes;
    struct gpu_call call;
    void *target;
    const void *source;
    size_t bytes;
    unsigned char byte;
    bool began; /* early: with what it read by then */
    uint64_t early_digest;
    struct CUgraphNode_st *next;
};

struct CUgraph_st {
    struct CUgraphNode_st *first, *last;
};

struct CUstream_st {
    CUgraph capturing;
    struct late_queue late;
};

struct CUevent_st {
    struct late_mark mark;
};

static sigjmp_buf fault_jump;
/* Work, in this thread. Read by the handler, in threads that may never have touched it: memory that
 * they would be given for it at first touch must not be asked for there. */
static _Thread_local bool running __attribute__((tls_model("initial-exec")));
static struct sigaction before_segv, before_bus;

/* A fault of another thread is none of ours. */
static void on_fault(int number, siginfo_t *info, void *context)
{
    const struct sigaction *before = number == SIGBUS ? &before_bus : &before_segv;
    if (running)
        siglongjmp(fault_jump, number);
    if (before->sa_flags & SA_SIGINFO)
        before->sa_sigaction(number, info, context);
    else
        abort();
}

static void do_work(const struct CUgraphNode_st *work)
{
    uint64_t digest;
    switch (work->kind) {
    case WORK_KERNEL:
        digest = emulator_run(work->kernel->run, &work->call, work->grid_x, work->grid_y,
                              work->threads, work->shared_bytes);
        if (work->began && digest != work->early_digest) {
            fprintf(stderr, "kernel %s: what it read early is written by one before it\n",
                    work->kernel->name);
            abort();
        }
        break;
    case WORK_COPY:
        memmove(work->target, work->source, work->bytes);
        break;
    case WORK_FILL:
        memset(work->target, work->byte, work->bytes);
        break;
    }
}

/* Microseconds; -1: kernels are run. */
static long idle_us(void)
{
    static long idle = -2;
    const char *text = idle == -2 ? getenv("FAKE_GPU_IDLE") : NULL;
    if (idle == -2)
        idle = text ? strtol(text, NULL, 10) : -1;
    return idle;
}

/* Done at once: what is behind it must find its inspections done. */
static bool is_skipped(const struct CUgraphNode_st *work)
{
    struct gpu_inspect_params params;
    if (idle_us() < 0 || work->kind != WORK_KERNEL)
        return false;
    if (strcmp(work->kernel->name, "inspect") == 0) {
        memcpy(&params, work->call.params, sizeof(params));
        struct gpu_inspect_slot *slots = (struct gpu_inspect_slot *)(uintptr_t)params.slots;
        for (uint32_t i = 0; i < work->grid_y; i++)
            slots[i].done = 1;
    }
    return true;
}

static CUresult run_work(const struct CUgraphNode_st *work)
{
    if (is_skipped(work))
        return 0;
    struct sigaction action = { .sa_sigaction = on_fault,
                                .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK };
    pthread_mutex_lock(&lock);
    if (!sticky) {
        sigaction(SIGSEGV, &action, &before_segv);
        sigaction(SIGBUS, &action, &before_bus);
        running = true;
        if (sigsetjmp(fault_jump, 0) == 0)
            do_work(work);
        else
            sticky = CUDA_ILLEGAL_ADDRESS;
        running = false;
        sigaction(SIGSEGV, &before_segv, NULL);
        sigaction(SIGBUS, &before_bus, NULL);
    }
    pthread_mutex_unlock(&lock);
    return 0; /* as a GPU does, it is told by a later call */
}

static void run_late(void *work)
{
    run_work(work);
}

static struct CUgraphNode_st *copy_node(const struct CUgraphNode_st *work)
{
    struct CUgraphNode_st *node = malloc(sizeof(*node));
    if (node)
        *node = *work;
    if (node)
        node->next = NULL;
    return node;
}

/* At once, or when the stream is waited for. */
static CUresult do_or_keep(CUstream stream, const struct CUgraphNode_st *work)
{
    if (!late_wanted() || !stream)
        return run_work(work);
    struct CUgraphNode_st *node = copy_node(work);
    if (node && late_give(&stream->late, run_late, node))
        return 0;
    free(node);
    return NO_MEMORY;
}

static CUresult give(CUstream stream, const struct CUgraphNode_st *work)
{
    if (sticky)
        return sticky;
    if (!stream || !stream->capturing)
        return do_or_keep(stream, work);
    struct CUgraphNode_st *node = copy_node(work);
    if (!node)
        return NO_MEMORY;
    if (stream->capturing->last)
        stream->capturing->last->next = node;
    else
        stream->capturing->first = node;
    stream->capturing->last = node;
    return 0;
}

static CUresult give_copy(void *target, const void *source, size_t bytes, CUstream stream)
{
    struct CUgraphNode_st work = {
        .kind = WORK_COPY, .target = target, .source = source, .bytes = bytes
    };
    return give(stream, &work);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr target, const void *source, size_t bytes, CUstream stream)
{
    return is_memory(target, bytes) ? give_copy((void *)(uintptr_t)target, source, bytes, stream)
                                    : INVALID_VALUE;
}

CUresult cuMemcpyDtoHAsync_v2(void *target, CUdeviceptr source, size_t bytes, CUstream stream)
{
    return is_memory(source, bytes)
               ? give_copy(target, (const void *)(uintptr_t)source, bytes, stream)
               : INVALID_VALUE;
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream)
{
    if (!is_memory(source, bytes) || !is_memory(target, bytes))
        return INVALID_VALUE;
    return give_copy((void *)(uintptr_t)target, (const void *)(uintptr_t)source, bytes, stream);
}

CUresult cuMemsetD8Async(CUdeviceptr target, unsigned char byte, size_t count, CUstream stream)
{
    if (!is_memory(target, count))
        return INVALID_VALUE;
    struct CUgraphNode_st work = {
        .kind = WORK_FILL, .target = (void *)(uintptr_t)target, .bytes = count, .byte = byte
    };
    return give(stream, &work);
}

/* ---- Streams and events --------------------------------------------------------------------- */

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
    *stream = calloc(1, sizeof(**stream));
    count_thing(THING_STREAM, *stream != NULL);
    if (*stream && late_wanted())
        late_add_queue(&(*stream)->late);
    return !*stream ? NO_MEMORY : flags <= CUDA_STREAM_NON_BLOCKING ? sticky : INVALID_VALUE;
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
    if (late_wanted())
        late_do_queue(&stream->late); /* events may still name it */
    else
        free(stream);
    count_thing(THING_STREAM, -1);
    return sticky;
}

CUresult cuStreamSynchronize(CUstream stream)
{
    if (stream)
        late_do_queue(&stream->late);
    return stream && stream->capturing ? 900 : sticky;
}

CUresult cuStreamQuery(CUstream stream)
{
    if (stream)
        late_do_queue(&stream->late);
    return sticky;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
    if (late_wanted() && !late_give_wait(&stream->late, &event->mark))
        return NO_MEMORY;
    return flags ? INVALID_VALUE : sticky;
}

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
    *event = calloc(1, sizeof(**event));
    count_thing(THING_EVENT, *event != NULL);
    bool known = (flags & ~(unsigned)CUDA_EVENT_BLOCKING) == CUDA_EVENT_NO_TIMING;
    return !*event ? NO_MEMORY : known ? sticky : INVALID_VALUE;
}

CUresult cuEventDestroy_v2(CUevent event)
{
    free(event);
    count_thing(THING_EVENT, -1);
    return sticky;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    if (event && stream && late_wanted()) /* none is the default one */
        late_place_mark(&stream->late, &event->mark);
    return event ? sticky : INVALID_VALUE;
}

CUresult cuEventSynchronize(CUevent event)
{
    if (event)
        late_do_mark(&event->mark);
    return event ? sticky : INVALID_VALUE;
}

CUresult cuEventQuery(CUevent event)
{
    if (event)
        late_do_mark(&event->mark);
    return event ? sticky : INVALID_VALUE;
}

/* ---- Kernels -------------------------------------------------------------------------------- */

/* A module is its PTX: a kernel is found if its entry is in the text and in the emulator. */
CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    static const char target[] = ".target sm_";
    const char *wanted = strncmp(image, "//", 2) == 0 ? strstr(image, target) : NULL;
    *module = (CUmodule)(uintptr_t)image;
    return wanted && strtol(wanted + strlen(target), NULL, 10) <= chip() ? sticky : INVALID_IMAGE;
}

CUresult cuModuleUnload(CUmodule module)
{
    return module ? sticky : INVALID_VALUE;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    char entry[128];
    snprintf(entry, sizeof(entry), ".entry %s(", name);
    struct fake_kernel *kernel = fake_kernel_find(name);
    const char *code = strstr((const char *)module, entry);
    const char *limit = code ? strstr(code, ".maxntid ") : NULL;
    if (!kernel || !limit)
        return NOT_FOUND;
    kernel->thread_limit = (uint32_t)strtoul(limit + strlen(".maxntid "), NULL, 10);
    *function = (CUfunction)(uintptr_t)kernel;
    return sticky;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    bool shared = attribute == CUDA_FUNCTION_SHARED && value <= 232448;
    bool carveout = attribute == CUDA_FUNCTION_CARVEOUT && value <= 100;
    return function && (shared || carveout) ? sticky : INVALID_VALUE;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params,
                          void **extra)
{
    struct CUgraphNode_st work = { .kind = WORK_KERNEL,
                                   .kernel = (struct fake_kernel *)(uintptr_t)function,
                                   .grid_x = config->gridDimX,
                                   .grid_y = config->gridDimY,
                                   .threads = config->blockDimX,
                                   .shared_bytes = config->sharedMemBytes,
                                   .call = *(const struct gpu_call *)params[0] };
    if (extra || !config->gridDimX || !config->gridDimY || config->gridDimY > 65535 ||
        config->blockDimX > work.kernel->thread_limit || config->sharedMemBytes > 232448)
        return INVALID_VALUE;
    if (config->hStream && config->hStream->capturing)
        work.kernel->captured++;
    return give(config->hStream, &work);
}

/* For tests: how often a kernel was given to a graph. */
uint64_t fake_cuda_captured(const char *name)
{
    const struct fake_kernel *kernel = fake_kernel_find(name);
    return kernel ? kernel->captured : 0;
}

/* ---- Graphs --------------------------------------------------------------------------------- */

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
    (void)mode;
    stream->capturing = calloc(1, sizeof(*stream->capturing));
    return stream->capturing ? sticky : NO_MEMORY;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    *graph = stream->capturing;
    stream->capturing = NULL;
    count_thing(THING_GRAPH, *graph != NULL);
    return *graph ? sticky : INVALID_VALUE;
}

CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                   CUgraph *graph, const CUgraphNode **dependencies,
                                   size_t *dependency_count)
{
    (void)id;
    (void)graph;
    *status = stream->capturing != NULL;
    *dependency_count = stream->capturing && stream->capturing->last ? 1 : 0;
    *dependencies = stream->capturing ? &stream->capturing->last : NULL;
    return sticky;
}

/* The graph itself: nobody here changes one after the other was made from it. */
CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    *exec = (CUgraphExec)graph;
    return flags ? INVALID_VALUE : sticky;
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
    if (!exec || node->kind != WORK_KERNEL ||
        node->kernel != (const struct fake_kernel *)(uintptr_t)params->func)
        return INVALID_VALUE;
    node->call = *(const struct gpu_call *)params->kernelParams[0];
    return sticky;
}

/* Only where work is done at once: what is kept for later has not all been done before. */
static void begin_early(CUgraph graph)
{
    static int wanted = -1;
    if (wanted < 0)
        wanted = getenv("FAKE_GPU_EARLY") != NULL;
    if (!wanted || late_wanted() || idle_us() >= 0)
        return;
    pthread_mutex_lock(&lock);
    for (struct CUgraphNode_st *node = graph->first; node; node = node->next) {
        node->began = node->kind == WORK_KERNEL;
        if (node->began)
            node->early_digest = emulator_run_early(node->kernel->run, &node->call, node->grid_x,
                                                    node->threads, node->shared_bytes);
    }
    pthread_mutex_unlock(&lock);
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    if (sticky)
        return sticky;
    begin_early((CUgraph)exec);
    for (struct CUgraphNode_st *node = ((CUgraph)exec)->first; node; node = node->next)
        if (do_or_keep(stream, node))
            return NO_MEMORY;
    if (idle_us() > 0)
        usleep((useconds_t)idle_us());
    return 0;
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    return exec ? sticky : INVALID_VALUE;
}

CUresult cuGraphDestroy(CUgraph graph)
{
    while (graph->first) {
        struct CUgraphNode_st *node = graph->first;
        graph->first = node->next;
        free(node);
    }
    free(graph);
    count_thing(THING_GRAPH, -1);
    return sticky;
}
