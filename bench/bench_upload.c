/* bench_upload.c - where the time of loading goes: the driver's start, pinned memory, buffers, the
 * file's bytes into pinned memory, those over the link, and both together in several ways.
 *
 *     bench_upload MODEL [REPEATS]
 *
 * Speaks to the driver itself (device/cuda/cuda_api.h), so that ways can be tried that the device
 * layer does not have. The file must be in the page cache. All figures are of this process alone:
 * medians of REPEATS (3); with 0 only the start is timed. */
#define _DEFAULT_SOURCE /* madvise */
#include "base/clock.h"
#include "base/parallel.h"
#include "device/cuda/cuda_api.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)
#define THREAD_LIMIT 16u
#define SLOT_LIMIT 8u
#define REPEAT_LIMIT 16u
/* Buffers of an 8B model, for what their creation costs. */
#define BUFFER_COUNT 291u
#define REGISTER_READ_ONLY 8u /* CU_MEMHOSTREGISTER_READ_ONLY */

enum source { FROM_FILE, FROM_MAPPING, FROM_POPULATED, FROM_NOTHING, SOURCE_COUNT };
static const char *const source_names[] = { "pread", "mapping", "populated", "nothing" };
_Static_assert(COUNT_OF(source_names) == SOURCE_COUNT, "every source has a name");

/* One way to do it. */
struct way {
    enum source source;
    uint32_t threads;
    uint64_t piece_bytes;
    uint32_t slots;    /* of each thread */
    bool shared;       /* one stream for all threads */
    bool idle;         /* who waits for a slot sleeps */
    bool only_filling; /* nothing goes over the link */
};

struct bench {
    struct cuda_api api;
    struct dynlib *library;
    CUdevice device;
    CUcontext context;
    int descriptor;
    uint64_t bytes;
    uint8_t *map;       /* mapped again for each run */
    CUdeviceptr target; /* bytes of it */
    uint8_t *pinned;    /* THREAD_LIMIT * SLOT_LIMIT * 4 MiB */
    uint32_t repeats;
    /* The current run: */
    const struct way *way;
    CUstream shared_stream;
    uint64_t next; /* atomic: first byte that no thread has taken */
    int failed;    /* atomic: a result that is not 0 */
    int first_failed;
};

struct worker {
    struct bench *bench;
    uint32_t index;
    pthread_t thread;
};

static void note(struct bench *bench, int code)
{
    if (code)
        __atomic_store_n(&bench->failed, code, __ATOMIC_RELAXED);
}

/* What failed in one measurement says nothing of the next. */
static void end_section(struct bench *bench)
{
    if (bench->failed && !bench->first_failed)
        bench->first_failed = bench->failed;
    bench->failed = 0;
}

static double ms_since(uint64_t begin_ns)
{
    return (double)(clock_ns() - begin_ns) / 1e6;
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

static double median(double *values, uint32_t count)
{
    qsort(values, count, sizeof(*values), compare);
    return values[count / 2];
}

/* ---- One run -------------------------------------------------------------------------------- */

static void fill_slot(struct bench *bench, uint8_t *slot, uint64_t at, uint64_t bytes)
{
    enum source source = bench->way->source;
    if (source == FROM_POPULATED) {
        uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), first = at / page * page;
        madvise(bench->map + first, (size_t)(at + bytes - first), 22); /* MADV_POPULATE_READ */
    }
    if (source == FROM_MAPPING || source == FROM_POPULATED)
        memcpy(slot, bench->map + at, (size_t)bytes);
    if (source == FROM_FILE &&
        pread(bench->descriptor, slot, (size_t)bytes, (off_t)at) != (ssize_t)bytes)
        note(bench, -1);
}

static void *work(void *argument)
{
    const struct worker *worker = argument;
    struct bench *bench = worker->bench;
    const struct cuda_api *api = &bench->api;
    const struct way *way = bench->way;
    CUstream stream = bench->shared_stream;
    CUevent events[SLOT_LIMIT] = { 0 };
    uint8_t *slots = bench->pinned + (uint64_t)worker->index * SLOT_LIMIT * 4 * MIB;
    note(bench, (int)api->cuCtxSetCurrent(bench->context));
    if (!way->shared)
        note(bench, (int)api->cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING));
    for (uint32_t i = 0; i < way->slots; i++)
        note(bench, (int)api->cuEventCreate(&events[i], CUDA_EVENT_NO_TIMING |
                                                            (way->idle ? CUDA_EVENT_BLOCKING : 0)));
    for (uint32_t turn = 0; !__atomic_load_n(&bench->failed, __ATOMIC_RELAXED); turn++) {
        uint64_t at = __atomic_fetch_add(&bench->next, way->piece_bytes, __ATOMIC_RELAXED);
        if (at >= bench->bytes)
            break;
        uint64_t left = bench->bytes - at;
        uint64_t bytes = left < way->piece_bytes ? left : way->piece_bytes;
        uint32_t place = way->slots ? turn % way->slots : 0;
        uint8_t *slot = slots + place * way->piece_bytes;
        if (turn >= way->slots && !way->only_filling)
            note(bench, (int)api->cuEventSynchronize(events[place]));
        fill_slot(bench, slot, at, bytes);
        if (way->only_filling)
            continue;
        note(bench,
             (int)api->cuMemcpyHtoDAsync_v2(bench->target + at, slot, (size_t)bytes, stream));
        note(bench, (int)api->cuEventRecord(events[place], stream));
    }
    note(bench, (int)api->cuStreamSynchronize(stream));
    for (uint32_t i = 0; i < way->slots; i++)
        api->cuEventDestroy_v2(events[i]);
    if (!way->shared)
        api->cuStreamDestroy_v2(stream);
    return NULL;
}

static double run_once(struct bench *bench, const struct way *way)
{
    struct worker workers[THREAD_LIMIT];
    bench->way = way;
    bench->next = 0;
    void *map = mmap(NULL, (size_t)bench->bytes, PROT_READ, MAP_SHARED, bench->descriptor, 0);
    ASSERT(map != MAP_FAILED);
    bench->map = map;
    uint64_t begin_ns = clock_ns();
    for (uint32_t i = 0; i < way->threads; i++) {
        workers[i] = (struct worker){ .bench = bench, .index = i };
        ASSERT(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
    }
    for (uint32_t i = 0; i < way->threads; i++)
        pthread_join(workers[i].thread, NULL);
    double ms = ms_since(begin_ns);
    munmap(map, (size_t)bench->bytes);
    return ms;
}

static void run(struct bench *bench, const struct way *way)
{
    double values[REPEAT_LIMIT];
    for (uint32_t i = 0; i < bench->repeats; i++)
        values[i] = run_once(bench, way);
    double ms = median(values, bench->repeats);
    printf("%-9s %-9s %2u threads, %u slots of %" PRIu64 " MiB%s%s: %7.1f ms %6.1f GB/s%s\n",
           way->only_filling ? "fill" : "both", source_names[way->source], way->threads, way->slots,
           way->piece_bytes / MIB, way->shared ? ", one stream" : "", way->idle ? ", idle" : "", ms,
           (double)bench->bytes / ms / 1e6, bench->failed ? "  FAILED" : "");
    fflush(stdout);
    end_section(bench);
}

/* ---- Single costs --------------------------------------------------------------------------- */

static void time_pinned(struct bench *bench, uint32_t count, uint64_t bytes)
{
    void *blocks[64];
    uint64_t begin_ns = clock_ns();
    for (uint32_t i = 0; i < count; i++)
        note(bench, (int)bench->api.cuMemHostAlloc(&blocks[i], (size_t)bytes,
                                                   CUDA_HOST_PORTABLE | CUDA_HOST_MAPPED));
    double made = ms_since(begin_ns);
    begin_ns = clock_ns();
    for (uint32_t i = 0; i < count; i++)
        bench->api.cuMemFreeHost(blocks[i]);
    printf("pinned    %u x %" PRIu64 " MiB: %.2f ms, given back in %.2f\n", count, bytes / MIB,
           made, ms_since(begin_ns));
}

static void time_registered(struct bench *bench, uint64_t bytes, bool huge)
{
    uint64_t begin_ns = clock_ns();
    uint8_t *memory = mmap(NULL, (size_t)bytes + 2 * MIB, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT(memory != MAP_FAILED);
    uint8_t *start = memory + (2 * MIB - (uintptr_t)memory % (2 * MIB));
    int advised = huge ? madvise(start, (size_t)bytes, MADV_HUGEPAGE) : 0;
    double mapped = ms_since(begin_ns);
    begin_ns = clock_ns();
    int code = (int)bench->api.cuMemHostRegister_v2(start, (size_t)bytes, CUDA_REGISTER_MAPPED);
    printf("pinned    own %" PRIu64 " MiB%s: mapped %.2f ms, registered %.2f ms (%d, %d)\n",
           bytes / MIB, huge ? ", huge pages" : "", mapped, ms_since(begin_ns), advised, code);
    bench->api.cuMemHostUnregister(start);
    munmap(memory, (size_t)bytes + 2 * MIB);
}

/* The file's own pages, pinned where they are. */
static void time_file_registered(struct bench *bench)
{
    uint64_t bytes = 256 * MIB < bench->bytes ? 256 * MIB : bench->bytes;
    void *map = mmap(NULL, (size_t)bytes, PROT_READ, MAP_SHARED, bench->descriptor, 0);
    uint64_t begin_ns = clock_ns();
    int code = (int)bench->api.cuMemHostRegister_v2(map, (size_t)bytes, REGISTER_READ_ONLY);
    double registered = ms_since(begin_ns);
    begin_ns = clock_ns();
    if (!code) {
        code = (int)bench->api.cuMemcpyHtoDAsync_v2(bench->target, map, (size_t)bytes,
                                                    bench->shared_stream);
        code = code ? code : (int)bench->api.cuStreamSynchronize(bench->shared_stream);
    }
    double copied = ms_since(begin_ns);
    begin_ns = clock_ns();
    bench->api.cuMemHostUnregister(map);
    printf("pinned    %" PRIu64
           " MiB of the file: %.2f ms, copied in %.2f, given back in %.2f (result "
           "%d)\n",
           bytes / MIB, registered, copied, ms_since(begin_ns), code);
    munmap(map, (size_t)bytes);
}

static void time_buffers(struct bench *bench)
{
    const struct cuda_api *api = &bench->api;
    CUdeviceptr buffers[BUFFER_COUNT];
    uint64_t bytes = bench->bytes / BUFFER_COUNT;
    double made, filled;
    uint64_t begin_ns = clock_ns();
    for (uint32_t i = 0; i < BUFFER_COUNT; i++)
        note(bench, (int)api->cuMemAlloc_v2(&buffers[i], (size_t)bytes));
    made = ms_since(begin_ns);
    begin_ns = clock_ns();
    for (uint32_t i = 0; i < BUFFER_COUNT; i++) {
        note(bench, (int)api->cuMemsetD8Async(buffers[i], 0, (size_t)bytes, bench->shared_stream));
        note(bench, (int)api->cuStreamSynchronize(bench->shared_stream));
    }
    filled = ms_since(begin_ns);
    begin_ns = clock_ns();
    for (uint32_t i = 0; i < BUFFER_COUNT; i++)
        api->cuMemFree_v2(buffers[i]);
    printf(
        "buffers   %u of %.1f MiB: made in %.2f ms, filled and waited for in %.2f, given back in "
        "%.2f\n",
        BUFFER_COUNT, (double)bytes / (double)MIB, made, filled, ms_since(begin_ns));
}

/* Copies from pinned memory, nothing else. */
static void time_link(struct bench *bench, uint64_t piece)
{
    uint64_t room = THREAD_LIMIT * SLOT_LIMIT * 4 * MIB, all = 2048 * MIB;
    uint64_t count = (all < bench->bytes ? all : bench->bytes) / piece;
    uint64_t begin_ns = clock_ns();
    for (uint64_t i = 0; i < count; i++)
        note(bench, (int)bench->api.cuMemcpyHtoDAsync_v2(bench->target + i * piece,
                                                         bench->pinned + i * piece % room,
                                                         (size_t)piece, bench->shared_stream));
    double given = ms_since(begin_ns);
    note(bench, (int)bench->api.cuStreamSynchronize(bench->shared_stream));
    double ms = ms_since(begin_ns);
    printf("link      chunks of %" PRIu64 " KiB: %.1f GB/s; %.1f us each to give\n", piece / 1024,
           (double)(count * piece) / ms / 1e6, given * 1e3 / (double)count);
}

/* ---- All of it ------------------------------------------------------------------------------ */

static enum status start(struct bench *bench, struct error *err)
{
    uint64_t begin_ns = clock_ns();
    TRY(cuda_api_open(&bench->api, &bench->library, err));
    printf("start     library: %.1f ms\n", ms_since(begin_ns));
    begin_ns = clock_ns();
    note(bench, (int)bench->api.cuInit(0));
    printf("start     cuInit: %.1f ms\n", ms_since(begin_ns));
    begin_ns = clock_ns();
    note(bench, (int)bench->api.cuDeviceGet(&bench->device, 0));
    note(bench, (int)bench->api.cuDevicePrimaryCtxRetain(&bench->context, bench->device));
    printf("start     context: %.1f ms\n", ms_since(begin_ns));
    begin_ns = clock_ns();
    note(bench, (int)bench->api.cuCtxSetCurrent(bench->context));
    note(bench, (int)bench->api.cuStreamCreate(&bench->shared_stream, CUDA_STREAM_NON_BLOCKING));
    printf("start     stream: %.2f ms\n", ms_since(begin_ns));
    begin_ns = clock_ns();
    note(bench, (int)bench->api.cuMemAlloc_v2(&bench->target, (size_t)bench->bytes));
    printf("buffers   one of all: %.2f ms\n", ms_since(begin_ns));
    begin_ns = clock_ns();
    note(bench, (int)bench->api.cuMemsetD8Async(bench->target, 0, (size_t)bench->bytes,
                                                bench->shared_stream));
    note(bench, (int)bench->api.cuStreamSynchronize(bench->shared_stream));
    printf("buffers   filled: %.2f ms\n", ms_since(begin_ns));
    return STATUS_OK;
}

static void run_costs(struct bench *bench)
{
    time_pinned(bench, 16, 2 * MIB);
    time_pinned(bench, 16, 2 * MIB);
    time_pinned(bench, 1, 32 * MIB);
    time_pinned(bench, 1, 64 * MIB);
    time_registered(bench, 32 * MIB, false);
    time_registered(bench, 32 * MIB, true);
    time_registered(bench, 64 * MIB, true);
    time_file_registered(bench);
    time_buffers(bench);
    void *memory = NULL;
    note(bench, (int)bench->api.cuMemHostAlloc(&memory, THREAD_LIMIT * SLOT_LIMIT * 4 * MIB,
                                               CUDA_HOST_PORTABLE | CUDA_HOST_MAPPED));
    bench->pinned = memory;
    for (uint64_t piece = MIB / 2; piece <= 16 * MIB; piece *= 2)
        time_link(bench, piece);
}

static void run_ways(struct bench *bench)
{
    static const uint32_t counts[] = { 1, 2, 4, 6, 8, 10, 12, 15, 16 };
    for (int source = 0; source < FROM_NOTHING; source++)
        for (size_t i = 0; i < COUNT_OF(counts); i++)
            run(bench, &(struct way){ .source = (enum source)source,
                                      .threads = counts[i],
                                      .piece_bytes = 2 * MIB,
                                      .slots = 2,
                                      .only_filling = true });
    for (uint64_t piece = 1; piece <= 4; piece *= 2)
        for (size_t i = 3; i < COUNT_OF(counts); i++)
            run(bench, &(struct way){ .source = FROM_FILE,
                                      .threads = counts[i],
                                      .piece_bytes = piece * MIB,
                                      .slots = 2 });
    static const struct way others[] = {
        { FROM_NOTHING, 1, 2 * MIB, 2, false, false, false },
        { FROM_NOTHING, 2, 2 * MIB, 2, false, false, false },
        { FROM_NOTHING, 8, 2 * MIB, 2, true, false, false },
        { FROM_FILE, 8, 2 * MIB, 3, false, false, false },
        { FROM_FILE, 8, 2 * MIB, 4, false, false, false },
        { FROM_FILE, 8, 2 * MIB, 2, true, false, false },
        { FROM_FILE, 12, 2 * MIB, 2, true, false, false },
        { FROM_FILE, 12, 2 * MIB, 3, true, false, false },
        { FROM_FILE, 8, 2 * MIB, 2, false, true, false },
        { FROM_FILE, 12, 2 * MIB, 2, false, true, false },
        { FROM_FILE, 12, 2 * MIB, 3, false, true, false },
        { FROM_FILE, 12, 1 * MIB, 4, false, true, false },
        { FROM_FILE, 15, 1 * MIB, 4, false, false, false },
        { FROM_MAPPING, 8, 2 * MIB, 2, false, false, false },
        { FROM_MAPPING, 12, 2 * MIB, 2, false, false, false },
        { FROM_MAPPING, 15, 2 * MIB, 2, false, false, false },
        { FROM_POPULATED, 12, 2 * MIB, 2, false, false, false },
    };
    for (size_t i = 0; i < COUNT_OF(others); i++)
        run(bench, &others[i]);
}

int main(int count, char **arguments)
{
    struct bench bench = { .repeats = 3 };
    struct error err;
    struct stat info;
    if (count < 2) {
        fprintf(stderr, "usage: bench_upload MODEL [REPEATS]\n");
        return 2;
    }
    if (count > 2)
        bench.repeats = (uint32_t)strtoul(arguments[2], NULL, 10);
    if (bench.repeats > REPEAT_LIMIT)
        bench.repeats = REPEAT_LIMIT;
    bench.descriptor = open(arguments[1], O_RDONLY | O_CLOEXEC);
    if (bench.descriptor < 0 || fstat(bench.descriptor, &info) != 0) {
        perror(arguments[1]);
        return 3;
    }
    bench.bytes = (uint64_t)info.st_size;
    if (start(&bench, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 3;
    }
    if (bench.repeats == 0)
        return bench.failed != 0;
    run_costs(&bench);
    end_section(&bench);
    run_ways(&bench);
    if (bench.first_failed)
        printf("FAILED: result %d\n", bench.first_failed);
    return bench.first_failed != 0;
}
