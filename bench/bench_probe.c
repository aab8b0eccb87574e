/* bench_probe.c - see bench_probe.h. */
#define _GNU_SOURCE /* pthread_setaffinity_np */
#include "bench_probe.h"

#include "base/clock.h"
#include "base/parallel.h"
#include "bench_peaks.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* Round trips that tell the placements apart, ns: measured modes are 29, 65 and 190 and more. */
#define ONE_CORE_BELOW_NS 45.0
#define TWO_DIES_FROM_NS 125.0

#define ROUNDS 400u
#define BATCHES 24u

/* Shares of the wall time of all processors, and a least amount: the counters tick every 10 ms. */
#define DISTURBED_SHARE 0.04
#define DISTURBED_SECONDS 0.03

const char *placement_name(enum placement placement)
{
    static const char *const names[] = { "one core", "one die", "two dies" };
    return names[placement];
}

/* ---- Ping-pong ------------------------------------------------------------------------------ */

struct court {
    _Alignas(64) uint32_t ball; /* atomic: counts hits; even: the server's turn */
    _Alignas(64) cpu_set_t processors[2];
    double best_ns;
};

static void wait_for(uint32_t *ball, uint32_t value)
{
    while (__atomic_load_n(ball, __ATOMIC_ACQUIRE) != value)
        ;
}

static void *return_balls(void *context)
{
    struct court *court = context;
    pthread_setaffinity_np(pthread_self(), sizeof(cpu_set_t), &court->processors[1]);
    for (uint32_t i = 0; i < ROUNDS * BATCHES; i++) {
        wait_for(&court->ball, 2 * i + 1);
        __atomic_store_n(&court->ball, 2 * i + 2, __ATOMIC_RELEASE);
    }
    return NULL;
}

static void *serve_balls(void *context)
{
    struct court *court = context;
    pthread_setaffinity_np(pthread_self(), sizeof(cpu_set_t), &court->processors[0]);
    for (uint32_t batch = 0; batch < BATCHES; batch++) {
        uint64_t start = clock_ns();
        for (uint32_t i = batch * ROUNDS; i < (batch + 1) * ROUNDS; i++) {
            __atomic_store_n(&court->ball, 2 * i + 1, __ATOMIC_RELEASE);
            wait_for(&court->ball, 2 * i + 2);
        }
        /* The best batch: one in which no thread lost its processor. */
        double ns = (double)(clock_ns() - start) / ROUNDS;
        court->best_ns = batch == 0 || ns < court->best_ns ? ns : court->best_ns;
    }
    return NULL;
}

/* Between the first two processors this process may use; 0 if there is only one. */
static double ping_pong_ns(void)
{
    struct court court = { .ball = 0 };
    cpu_set_t allowed;
    int found = 0;
    if (sched_getaffinity(0, sizeof(allowed), &allowed))
        return 0;
    for (int i = 0; i < CPU_SETSIZE && found < 2; i++) {
        if (CPU_ISSET(i, &allowed)) {
            CPU_ZERO(&court.processors[found]);
            CPU_SET(i, &court.processors[found++]);
        }
    }
    pthread_t threads[2];
    if (found < 2 || pthread_create(&threads[0], NULL, return_balls, &court))
        return 0;
    if (pthread_create(&threads[1], NULL, serve_balls, &court))
        serve_balls(&court);
    else
        pthread_join(threads[1], NULL);
    pthread_join(threads[0], NULL);
    return court.best_ns;
}

enum placement probe_placement(double *ret_ping_pong_ns)
{
    double ns = ping_pong_ns();
    if (ret_ping_pong_ns)
        *ret_ping_pong_ns = ns;
    return ns < ONE_CORE_BELOW_NS  ? PLACED_ONE_CORE
           : ns < TWO_DIES_FROM_NS ? PLACED_ONE_DIE
                                   : PLACED_TWO_DIES;
}

/* ---- Reading -------------------------------------------------------------------------------- */

struct reading {
    const uint8_t *bytes;
    size_t part_bytes;
    uint64_t mixed;
};

static void read_part(void *context, uint64_t part)
{
    struct reading *reading = context;
    uint64_t mixed = bench_read(reading->bytes + part * reading->part_bytes, reading->part_bytes);
    __atomic_xor_fetch(&reading->mixed, mixed, __ATOMIC_RELAXED);
}

#define READ_PARTS 128u
#define READ_LIMIT_BYTES ((size_t)512 << 20)

struct probe probe_take(const uint8_t *bytes, size_t count)
{
    struct probe probe;
    probe.placement = probe_placement(&probe.ping_pong_ns);
    size_t read_bytes = count < READ_LIMIT_BYTES ? count : READ_LIMIT_BYTES;
    struct reading reading = { .bytes = bytes, .part_bytes = read_bytes / READ_PARTS };
    uint64_t start = clock_ns();
    parallel_run(READ_PARTS, 0, read_part, &reading);
    probe.read_gb_per_s = (double)(reading.part_bytes * READ_PARTS) / (double)(clock_ns() - start);
    return probe;
}

/* ---- Processor time ------------------------------------------------------------------------- */

static double all_seconds(void)
{
    unsigned long long user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, soft = 0,
                       steal = 0;
    FILE *file = fopen("/proc/stat", "r");
    if (!file)
        return 0;
    /* NOLINTNEXTLINE(cert-err34-c): the kernel's own numbers, as many as are asked for */
    int fields = fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system,
                        &idle, &wait, &irq, &soft, &steal);
    fclose(file);
    double ticks = (double)(user + nice + system + irq + soft + steal);
    return fields == 8 ? ticks / (double)sysconf(_SC_CLK_TCK) : 0;
}

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

struct processor_time processor_time_now(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (struct processor_time){ .all = all_seconds(),
                                    .own = seconds(usage.ru_utime) + seconds(usage.ru_stime),
                                    .wall = (double)clock_ns() / 1e9 };
}

bool was_disturbed(const struct processor_time *before, const struct processor_time *after)
{
    double others = (after->all - before->all) - (after->own - before->own);
    double allowed = DISTURBED_SHARE * (after->wall - before->wall) * parallel_processor_count();
    return others > (allowed > DISTURBED_SECONDS ? allowed : DISTURBED_SECONDS);
}
