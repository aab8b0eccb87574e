/* bench_launches.c - see bench_launches.h. */
#include "bench_launches.h"

#include "base/clock.h"
#include "ops/host/kernels.h"

#include <stdlib.h>
#include <string.h>

#define FOR_EACH_OP(DO)                                                                            \
    DO(embed)                                                                                      \
    DO(rms_norm)                                                                                   \
    DO(act_pack)                                                                                   \
    DO(matmul)                                                                                     \
    DO(matmul_group)                                                                               \
    DO(rope_table)                                                                                 \
    DO(rope)                                                                                       \
    DO(kv_append)                                                                                  \
    DO(attention)                                                                                  \
    DO(swiglu)                                                                                     \
    DO(add)                                                                                        \
    DO(argmax)

#define OP_NUMBER(op) OP_##op,
enum { FOR_EACH_OP(OP_NUMBER) OP_COUNT };

/* A thread's part in a launch: a shared counter would cost more than what it measures. */
struct presence {
    uint64_t first, last; /* its first tile began, its last one ended; first == 0: none */
    uint64_t kernel;
    uint32_t op;
};

/* Launches by the number of their event. Written by its thread alone, read while nothing runs. */
#define THREAD_LIMIT 64
static struct thread_presence {
    _Alignas(128) struct presence of[LAUNCH_LIMIT];
} presences[THREAD_LIMIT];
static uint32_t thread_count; /* atomic */

static struct presence *my_presence(const struct device_host_call *call)
{
    static _Thread_local struct thread_presence *mine;
    if (!mine)
        mine = &presences[__atomic_fetch_add(&thread_count, 1, __ATOMIC_RELAXED) % THREAD_LIMIT];
    return &mine->of[call->launch_id % LAUNCH_LIMIT];
}

uint64_t launches_now(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return clock_ns();
#endif
}

/* ---- Kernels that are timed ----------------------------------------------------------------- */

static device_host_kernel kernels[OP_COUNT];

static void run_timed(const struct device_host_call *call, uint64_t tile, uint32_t op)
{
    struct presence *mine = my_presence(call);
    uint64_t start = launches_now();
    kernels[op](call, tile);
    uint64_t end = launches_now();
    mine->op = op;
    mine->first = mine->first ? mine->first : start;
    mine->kernel += end - start;
    mine->last = end;
}

#define TIMED(op)                                                                                  \
    static void timed_##op(const struct device_host_call *call, uint64_t tile)                     \
    {                                                                                              \
        run_timed(call, tile, OP_##op);                                                            \
    }
FOR_EACH_OP(TIMED)

#define TIMED_NAME(name) #name,
static const char *const op_names[] = { FOR_EACH_OP(TIMED_NAME) };
#define TIMED_ENTRY(name) { .host = timed_##name },
static struct device_kernel_entry entries[] = { FOR_EACH_OP(TIMED_ENTRY) };
static const struct device_image image = { entries, COUNT_OF(entries) };

const struct device_image *launches_image(enum cpu_path path)
{
    const struct device_image *plain = host_kernels_image(path);
    for (size_t i = 0; i < plain->count; i++) {
        for (size_t op = 0; op < OP_COUNT; op++) {
            if (strcmp(plain->entries[i].contract->name, op_names[op]) == 0) {
                entries[op].contract = plain->entries[i].contract;
                kernels[op] = plain->entries[i].host;
                entries[op].takes_runs = plain->entries[i].takes_runs;
                entries[op].reads = plain->entries[i].reads;
            }
        }
    }
    return &image;
}

size_t launches_op_count(void)
{
    return OP_COUNT;
}

const char *launches_op_name(uint32_t op)
{
    return op_names[op];
}

/* ---- What they left ------------------------------------------------------------------------- */

void launches_forget(void)
{
    uint32_t threads = __atomic_load_n(&thread_count, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < threads && i < THREAD_LIMIT; i++)
        memset(&presences[i], 0, sizeof(presences[i]));
}

/* The first and last tick of one launch; false if it did not begin in that time. */
static bool find_span(size_t slot, uint64_t start_ticks, uint64_t *ret_first, uint64_t *ret_last,
                      uint32_t *ret_op)
{
    *ret_first = UINT64_MAX;
    *ret_last = 0;
    for (size_t i = 0; i < THREAD_LIMIT; i++) {
        const struct presence *presence = &presences[i].of[slot];
        if (presence->first < start_ticks)
            continue; /* none, or of the step before */
        *ret_op = presence->op;
        *ret_first = presence->first < *ret_first ? presence->first : *ret_first;
        *ret_last = presence->last > *ret_last ? presence->last : *ret_last;
    }
    return *ret_last > 0;
}

/* All but the parts for which the next launch must be known. LAUNCH_HANDED: its last tick. */
static bool collect(size_t slot, uint64_t start_ticks, uint32_t threads, struct launch_times *times)
{
    uint64_t first, last;
    uint32_t absent = threads;
    if (!find_span(slot, start_ticks, &first, &last, &times->op))
        return false;
    memset(times->ticks, 0, sizeof(times->ticks));
    times->ticks[LAUNCH_START] = first;
    times->ticks[LAUNCH_HANDED] = last;
    for (size_t i = 0; i < THREAD_LIMIT; i++) {
        const struct presence *presence = &presences[i].of[slot];
        if (presence->first < start_ticks)
            continue;
        absent -= absent > 0;
        times->ticks[LAUNCH_KERNEL] += presence->kernel;
        times->ticks[LAUNCH_LATE] += presence->first - first;
        times->ticks[LAUNCH_BETWEEN] += presence->last - presence->first - presence->kernel;
        times->ticks[LAUNCH_EARLY] += last - presence->last;
    }
    times->ticks[LAUNCH_ABSENT] = absent * (last - first);
    return true;
}

static int by_start(const void *left, const void *right)
{
    uint64_t a = ((const struct launch_times *)left)->ticks[LAUNCH_START];
    uint64_t b = ((const struct launch_times *)right)->ticks[LAUNCH_START];
    return (a > b) - (a < b);
}

size_t launches_collect(uint64_t start_ticks, uint64_t end_ticks, uint32_t threads,
                        struct launch_times *times)
{
    size_t count = 0;
    for (size_t slot = 0; slot < LAUNCH_LIMIT; slot++)
        count += collect(slot, start_ticks, threads, &times[count]);
    qsort(times, count, sizeof(*times), by_start);
    for (size_t i = 0; i < count; i++) {
        uint64_t next = i + 1 < count ? times[i + 1].ticks[LAUNCH_START] : end_ticks;
        times[i].ticks[LAUNCH_WALL] = next - times[i].ticks[LAUNCH_START];
        times[i].ticks[LAUNCH_HANDED] = threads * (next - times[i].ticks[LAUNCH_HANDED]);
    }
    return count;
}
