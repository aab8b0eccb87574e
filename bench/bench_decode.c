/* bench_decode.c - what a decode step costs through the device: a step of real shape is run as ops,
 * and the time inside kernels is held against the time of the step.
 *
 *     bench_decode [--shape tinyllama|llama3-1b|tiny] [--type q4_k|q8_0|...] [--threads N] [--steps
 * N]
 *
 * Weights are random bytes with harmless scales; speed does not depend on them. Prints enqueue cost
 * per launch, tokens per second, bytes of weights per second, and the share of the step in which
 * the threads were not in a kernel: for each place the cores were in (bench_probe.h), with the
 * round trip between them that told. Steps in which they moved are left out. */
#include "base/clock.h"
#include "base/parallel.h"
#include "bench_probe.h"
#include "device/host/host.h"
#include "model/model.h"
#include "ops/host/kernels.h"
#include "ops/ops.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Kernels that are timed ----------------------------------------------------------------- */

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

/* A step's launches, by the number of their event: more in a row than a step has. */
#define LAUNCH_LIMIT 4096
#define LAUNCH_SLOT(call) ((call)->launch_id % LAUNCH_LIMIT)

/* Ticks spent in kernels, by thread and launch: a shared counter would cost more than what it
 * measures. */
#define THREAD_LIMIT 64
struct thread_ticks {
    uint64_t of[LAUNCH_LIMIT]; /* atomic; written by its thread alone */
    uint64_t unused[8];
};
static struct thread_ticks kernel_time[THREAD_LIMIT];

static struct thread_ticks *my_ticks(void)
{
    static uint32_t next;
    static _Thread_local struct thread_ticks *mine;
    if (!mine)
        mine = &kernel_time[__atomic_fetch_add(&next, 1, __ATOMIC_RELAXED) % THREAD_LIMIT];
    return mine;
}

/* When a launch began: written by whoever does its first tile. */
static struct launch_start {
    uint64_t ticks; /* 0: not in this step */
    uint32_t op;
} starts[LAUNCH_LIMIT];

static inline uint64_t now_ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return clock_ns();
#endif
}

static const struct device_image *timed_image;

static const struct device_kernel_entry *find_kernel(const char *op)
{
    for (size_t i = 0; i < timed_image->count; i++)
        if (strcmp(timed_image->entries[i].op, op) == 0)
            return &timed_image->entries[i];
    abort();
}

#define TIMED(op)                                                                                  \
    static void timed_##op(const struct device_host_call *call, uint64_t tile)                     \
    {                                                                                              \
        static device_host_kernel kernel;                                                          \
        device_host_kernel found = __atomic_load_n(&kernel, __ATOMIC_RELAXED);                     \
        if (!found) {                                                                              \
            found = find_kernel(#op)->host;                                                        \
            __atomic_store_n(&kernel, found, __ATOMIC_RELAXED);                                    \
        }                                                                                          \
        uint64_t *mine = &my_ticks()->of[LAUNCH_SLOT(call)];                                       \
        uint64_t start = now_ticks();                                                              \
        if (tile == 0)                                                                             \
            starts[LAUNCH_SLOT(call)] = (struct launch_start){ start, OP_##op };                   \
        found(call, tile);                                                                         \
        __atomic_store_n(mine, *mine + now_ticks() - start, __ATOMIC_RELAXED);                     \
    }
FOR_EACH_OP(TIMED)

#define OP_NAME(op) #op,
#define TIMED_ENTRY(name) { .op = #name, .host = timed_##name },
static struct device_kernel_entry timed_entries[] = { FOR_EACH_OP(TIMED_ENTRY) };
static const struct device_image timing_image = { timed_entries, COUNT_OF(timed_entries) };

/* ---- A model -------------------------------------------------------------------------------- */

struct bench {
    const struct model_shape *shape;
    enum dtype dtype;
    struct device *device;
    struct ops ops;
    struct ops_target target;
    struct error err;
    uint64_t launches, weight_bytes;
    struct device_view *layers; /* q k v o gate up down norm1 norm2 keys values, for each layer */
    struct device_view table, output, output_norm, rope;
    struct device_view x, h, q, k, v, a, o, gate, up, logits, best, packed_width, packed_query,
        packed_feed, ids, positions, starts, slots;
};

enum { Q, K, V, O, GATE, UP, DOWN, NORM1, NORM2, KEYS, VALUES, PARTS };

#define MUST(bench, call)                                                                          \
    do {                                                                                           \
        if (call) {                                                                                \
            fprintf(stderr, "bench_decode: %s\n", (bench)->err.text);                              \
            exit(3);                                                                               \
        }                                                                                          \
    } while (0)

#define CONTEXT 512u

static struct device_view new_view(struct bench *bench, enum dtype dtype, uint64_t width,
                                   uint64_t rows)
{
    struct device_view view = { .dtype = dtype,
                                .shape = shape_make(2, (uint64_t[]){ width, rows }) };
    uint64_t bytes = 0;
    if (!shape_bytes(&view.shape, dtype, &bytes))
        exit(3);
    MUST(bench, device_buffer_create(bench->device, bytes, "bench", DEVICE_HERE, &view.buffer,
                                     &bench->err));
    /* Normal numbers in every type, and after every op: subnormal ones would cost extra. */
    MUST(bench,
         device_fill(bench->device, bench->target.stream, &view, 0x2D, DEVICE_HERE, &bench->err));
    return view;
}

static struct device_view new_weights(struct bench *bench, uint64_t k, uint64_t rows)
{
    struct device_view view = new_view(bench, bench->dtype, k, rows);
    uint64_t bytes = 0;
    if (shape_bytes(&view.shape, bench->dtype, &bytes))
        bench->weight_bytes += bytes;
    return view;
}

static struct device_view new_packed(struct bench *bench, uint64_t k)
{
    return new_view(bench, DTYPE_I8, ops_packed_row_bytes(&bench->ops, bench->dtype, k, 1), 1);
}

static void make_model(struct bench *bench)
{
    const struct model_shape *shape = bench->shape;
    uint64_t width = shape->embedding_length, query = (uint64_t)shape->head_count * shape->head_dim;
    uint64_t kv = (uint64_t)shape->head_count_kv * shape->head_dim;
    uint64_t feed = shape->feed_forward_length;
    bench->layers = calloc((size_t)shape->block_count * PARTS, sizeof(*bench->layers));
    for (uint32_t i = 0; bench->layers && i < shape->block_count; i++) {
        struct device_view *layer = bench->layers + (size_t)i * PARTS;
        layer[Q] = new_weights(bench, width, query);
        layer[K] = new_weights(bench, width, kv);
        layer[V] = new_weights(bench, width, kv);
        layer[O] = new_weights(bench, query, width);
        layer[GATE] = new_weights(bench, width, feed);
        layer[UP] = new_weights(bench, width, feed);
        layer[DOWN] = new_weights(bench, feed, width);
        layer[NORM1] = new_view(bench, DTYPE_F32, width, 1);
        layer[NORM2] = new_view(bench, DTYPE_F32, width, 1);
        layer[KEYS] = new_view(bench, DTYPE_F16, kv, CONTEXT);
        layer[VALUES] = new_view(bench, DTYPE_F16, kv, CONTEXT);
    }
    bench->output = new_weights(bench, width, shape->vocab_size);
    bench->table = bench->output;
    bench->output_norm = new_view(bench, DTYPE_F32, width, 1);
    bench->rope = new_view(bench, DTYPE_F32, shape->head_dim, CONTEXT);
    bench->x = new_view(bench, DTYPE_F32, width, 1);
    bench->h = new_view(bench, DTYPE_F32, width, 1);
    bench->q = new_view(bench, DTYPE_F32, query, 1);
    bench->a = new_view(bench, DTYPE_F32, query, 1);
    bench->k = new_view(bench, DTYPE_F32, kv, 1);
    bench->v = new_view(bench, DTYPE_F32, kv, 1);
    bench->o = new_view(bench, DTYPE_F32, width, 1);
    bench->gate = new_view(bench, DTYPE_F32, feed, 1);
    bench->up = new_view(bench, DTYPE_F32, feed, 1);
    bench->logits = new_view(bench, DTYPE_F32, shape->vocab_size, 1);
    bench->packed_width = new_packed(bench, width);
    bench->packed_query = new_packed(bench, query);
    bench->packed_feed = new_packed(bench, feed);
    struct device_view *indices[] = { &bench->best, &bench->ids, &bench->positions, &bench->starts,
                                      &bench->slots };
    for (size_t i = 0; i < COUNT_OF(indices); i++) {
        *indices[i] = new_view(bench, DTYPE_I32, 1, 1);
        MUST(bench, device_fill(bench->device, bench->target.stream, indices[i], 0, DEVICE_HERE,
                                &bench->err));
    }
}

static void step(struct bench *bench)
{
    const struct ops_target *target = &bench->target;
    struct error *err = &bench->err;
    uint32_t head_dim = bench->shape->head_dim;
    float scale = 1 / sqrtf((float)head_dim);
    struct ops_packing width = { &bench->packed_width, bench->dtype };
    struct ops_packing query = { &bench->packed_query, bench->dtype };
    struct ops_packing feed = { &bench->packed_feed, bench->dtype };
    MUST(bench, ops_embed(target, &bench->table, &bench->ids, &bench->x, err));
    for (uint32_t i = 0; i < bench->shape->block_count; i++) {
        struct device_view *w = bench->layers + (size_t)i * PARTS;
        const struct device_view *qkv[] = { &w[Q], &w[K], &w[V] };
        const struct device_view *qkv_out[] = { &bench->q, &bench->k, &bench->v };
        const struct device_view *gate_up[] = { &w[GATE], &w[UP] };
        const struct device_view *gate_up_out[] = { &bench->gate, &bench->up };
        MUST(bench, ops_rms_norm(target, &bench->x, i ? &bench->o : NULL, &w[NORM1], &bench->h,
                                 &width, 1e-5f, err));
        MUST(bench, ops_matmul_group(target, 3, qkv, &bench->packed_width, NULL, qkv_out, err));
        MUST(bench, ops_rope(target, &bench->q, &bench->k, &bench->positions, &bench->rope,
                             head_dim, true, err));
        MUST(bench,
             ops_kv_append(target, &bench->k, &bench->v, &bench->slots, &w[KEYS], &w[VALUES], err));
        MUST(bench,
             ops_attention(target, &bench->q, &w[KEYS], &w[VALUES], &bench->starts,
                           &bench->positions, &bench->a, &query, head_dim, scale, false, err));
        MUST(bench, ops_matmul(target, &w[O], &bench->packed_query, NULL, &bench->o, err));
        MUST(bench,
             ops_rms_norm(target, &bench->x, &bench->o, &w[NORM2], &bench->h, &width, 1e-5f, err));
        MUST(bench,
             ops_matmul_group(target, 2, gate_up, &bench->packed_width, NULL, gate_up_out, err));
        MUST(bench, ops_swiglu(target, &bench->gate, &bench->up, &bench->gate, &feed, err));
        MUST(bench, ops_matmul(target, &w[DOWN], &bench->packed_feed, NULL, &bench->o, err));
    }
    MUST(bench, ops_rms_norm(target, &bench->x, &bench->o, &bench->output_norm, &bench->h, &width,
                             1e-5f, err));
    MUST(bench,
         ops_matmul(target, &bench->output, &bench->packed_width, NULL, &bench->logits, err));
    MUST(bench, ops_argmax(target, &bench->logits, &bench->best, err));
    bench->launches = 1 + 10 * (uint64_t)bench->shape->block_count + 3;
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static const char *option(int count, char **arguments, const char *name, const char *fallback)
{
    for (int i = 1; i + 1 < count; i++)
        if (strcmp(arguments[i], name) == 0)
            return arguments[i + 1];
    return fallback;
}

/* ---- Measuring ------------------------------------------------------------------------------ */

struct launch_times {
    uint64_t start, wall, kernel; /* ticks: until the next launch began; in tiles, of all threads */
    uint32_t op;
};

struct step_times {
    double wall_ms, outside_percent, enqueue_ns, ping_pong_ns;
    uint64_t ticks, first_wait; /* of the step; until the first tile */
    enum placement placement;   /* PLACEMENT_COUNT: changed meanwhile */
    size_t launch_count;
    struct launch_times *launches; /* owned, in order */
};

static int by_start(const void *left, const void *right)
{
    const struct launch_times *a = left, *b = right;
    return (a->start > b->start) - (a->start < b->start);
}

static void forget_launches(void)
{
    memset(starts, 0, sizeof(starts));
    for (size_t i = 0; i < THREAD_LIMIT; i++)
        for (size_t slot = 0; slot < LAUNCH_LIMIT; slot++)
            __atomic_store_n(&kernel_time[i].of[slot], 0, __ATOMIC_RELAXED);
}

/* What the kernels of a step left behind, once the stream is idle. */
static void collect_launches(struct step_times *times, uint64_t start_ticks, uint64_t end_ticks)
{
    times->launch_count = 0;
    for (size_t slot = 0; slot < LAUNCH_LIMIT; slot++) {
        if (starts[slot].ticks < start_ticks)
            continue; /* none, or of the step before */
        struct launch_times *launch = &times->launches[times->launch_count++];
        *launch = (struct launch_times){ .start = starts[slot].ticks, .op = starts[slot].op };
        for (size_t i = 0; i < THREAD_LIMIT; i++)
            launch->kernel += __atomic_load_n(&kernel_time[i].of[slot], __ATOMIC_RELAXED);
    }
    qsort(times->launches, times->launch_count, sizeof(*times->launches), by_start);
    for (size_t i = 0; i < times->launch_count; i++)
        times->launches[i].wall = (i + 1 < times->launch_count ? times->launches[i + 1].start
                                                               : end_ticks) -
                                  times->launches[i].start;
}

static void measure_step(struct bench *bench, uint32_t threads, struct step_times *times)
{
    struct device_stream stream = bench->target.stream;
    uint64_t in_kernels = 0;
    enum placement placement = probe_placement(&times->ping_pong_ns);
    forget_launches();
    /* Decoding, a step follows the one before at once: the threads are awake, and caches hold what
     * that one left. */
    step(bench);
    MUST(bench, device_stream_sync(bench->device, stream, DEVICE_HERE, &bench->err));
    uint64_t start_ticks = now_ticks(), start = clock_ns();
    step(bench);
    uint64_t queued = clock_ns();
    MUST(bench, device_stream_sync(bench->device, stream, DEVICE_HERE, &bench->err));
    uint64_t end = clock_ns(), end_ticks = now_ticks();
    collect_launches(times, start_ticks, end_ticks);
    for (size_t i = 0; i < times->launch_count; i++)
        in_kernels += times->launches[i].kernel;
    times->ticks = end_ticks - start_ticks;
    times->first_wait = times->launch_count ? times->launches[0].start - start_ticks : 0;
    times->wall_ms = (double)(end - start) / 1e6;
    times->enqueue_ns = (double)(queued - start) / (double)bench->launches;
    times->outside_percent = 100 * (1 - (double)in_kernels / ((double)times->ticks * threads));
    times->placement = probe_placement(NULL) == placement ? placement : PLACEMENT_COUNT;
}

/* By placement, and by duration within one. */
static int by_place_and_wall(const void *left, const void *right)
{
    const struct step_times *a = left, *b = right;
    if (a->placement != b->placement)
        return a->placement < b->placement ? -1 : 1;
    return (a->wall_ms > b->wall_ms) - (a->wall_ms < b->wall_ms);
}

/* The middle of many ticks, which it sorts. */
static double middle(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), by_value);
    return values[count / 2];
}

/* Where the time goes: for each launch of a step the middle of its durations and of its time
 * outside kernels over all steps, then summed by op. What disturbs a step disturbs few of its
 * launches, and each time others. */
static void print_ops(const struct step_times *times, size_t steps, uint32_t threads)
{
    static const char *const names[] = { FOR_EACH_OP(OP_NAME) };
    double wall[OP_COUNT] = { 0 }, outside[OP_COUNT] = { 0 }, all = 0, all_outside = 0;
    double *values = calloc(steps, sizeof(*values));
    if (!values)
        exit(3);
    for (size_t i = 0; i < steps; i++)
        values[i] = (double)times[i].first_wait;
    double first_wait = middle(values, steps);
    for (size_t launch = 0; launch < times[0].launch_count; launch++) {
        uint32_t op = times[0].launches[launch].op;
        for (size_t i = 0; i < steps; i++)
            values[i] = (double)times[i].launches[launch].wall;
        wall[op] += middle(values, steps);
        for (size_t i = 0; i < steps; i++)
            values[i] = (double)times[i].launches[launch].wall -
                        (double)times[i].launches[launch].kernel / threads;
        outside[op] += middle(values, steps);
    }
    free(values);
    for (uint32_t op = 0; op < OP_COUNT; op++) {
        all += wall[op];
        all_outside += outside[op];
    }
    all += first_wait;
    printf("%-14s %10s %12s   (sums of every launch's middle)\n", "op", "% of step", "% outside");
    printf("%-14s %10.2f %12.2f\n", "(until first)", 100 * first_wait / all,
           100 * first_wait / all);
    for (uint32_t op = 0; op < OP_COUNT; op++)
        if (wall[op] > 0)
            printf("%-14s %10.2f %12.2f\n", names[op], 100 * wall[op] / all,
                   100 * outside[op] / all);
    printf("%-14s %10.2f %12.2f\n", "all", 100.0, 100 * (all_outside + first_wait) / all);
}

/* Prints the middle of a field over all steps, and what all but a tenth at each end lie within. */
static void print_field(const struct step_times *times, size_t steps, size_t offset,
                        const char *name, const char *unit)
{
    double *values = calloc(steps, sizeof(*values));
    if (!values)
        exit(3);
    for (size_t i = 0; i < steps; i++)
        memcpy(&values[i], (const char *)&times[i] + offset, sizeof(*values));
    qsort(values, steps, sizeof(*values), by_value);
    printf("%-9s %8.2f %s  (%.2f to %.2f)\n", name, values[steps / 2], unit, values[steps / 10],
           values[steps - 1 - steps / 10]);
    free(values);
}

/* Steps in one place, by duration. */
static void print_place(const struct bench *bench, const struct step_times *times, size_t steps,
                        uint32_t threads)
{
    bool moved = times[0].placement == PLACEMENT_COUNT;
    printf("\n%s: %zu steps\n", moved ? "moved meanwhile" : placement_name(times[0].placement),
           steps);
    if (moved || steps < 3)
        return;
    print_field(times, steps, offsetof(struct step_times, ping_pong_ns), "ping-pong", "ns");
    print_field(times, steps, offsetof(struct step_times, wall_ms), "step", "ms");
    double wall_ms = times[steps / 2].wall_ms;
    printf("decode    %8.2f tok/s, weights at %.1f GB/s\n", 1e3 / wall_ms,
           (double)bench->weight_bytes / 1e6 / wall_ms);
    print_field(times, steps, offsetof(struct step_times, outside_percent), "outside",
                "% of the threads' time not in kernels");
    print_field(times, steps, offsetof(struct step_times, enqueue_ns), "enqueue", "ns per launch");
    print_ops(times, steps, threads);
}

int main(int count, char **arguments)
{
    struct bench bench = { .shape = model_shape_find(
                               option(count, arguments, "--shape", "tinyllama")) };
    uint32_t threads = (uint32_t)strtoul(option(count, arguments, "--threads", "0"), NULL, 10);
    size_t steps = strtoul(option(count, arguments, "--steps", "30"), NULL, 10);
    struct device_options options = { .thread_count = threads };
    if (!threads)
        threads = parallel_processor_count();
    if (!bench.shape || steps < 3 || steps > 10000 ||
        !dtype_from_name(option(count, arguments, "--type", "Q4_K"), &bench.dtype)) {
        fprintf(stderr,
                "usage: bench_decode [--shape NAME] [--type TYPE] [--threads N] [--steps N]\n");
        return 2;
    }
    MUST(&bench, host_device_open(&options, &bench.device, &bench.err));
    timed_image = host_kernels_image(cpu_path_best());
    for (size_t i = 0; i < COUNT_OF(timed_entries); i++) {
        timed_entries[i].takes_runs = find_kernel(timed_entries[i].op)->takes_runs;
        timed_entries[i].reads = find_kernel(timed_entries[i].op)->reads;
    }
    bench.ops = (struct ops){ .device = bench.device, .host_path = cpu_path_best() };
    bench.target = (struct ops_target){ &bench.ops, { 0, 0 }, DEVICE_HERE };
    MUST(&bench, device_module_load(bench.device, &timing_image, DEVICE_HERE, &bench.err));
    MUST(&bench, device_stream_create(bench.device, DEVICE_HERE, &bench.target.stream, &bench.err));
    make_model(&bench);
    struct step_times *times = calloc(steps, sizeof(*times));
    if (!times)
        return 3;
    for (size_t i = 0; i < steps; i++)
        if (!(times[i].launches = calloc(LAUNCH_LIMIT, sizeof(*times[i].launches))))
            return 3;
    for (size_t i = 0; i < steps + 2; i++)
        measure_step(&bench, threads, &times[i < 2 ? 0 : i - 2]); /* two to warm up */
    qsort(times, steps, sizeof(*times), by_place_and_wall);
    printf("%s %s, %s, %u threads, %llu launches, %.0f MB of weights\n", bench.shape->title,
           dtype_name(bench.dtype), cpu_path_name(cpu_path_best()), threads,
           (unsigned long long)bench.launches, (double)bench.weight_bytes / 1e6);
    for (size_t first = 0, end; first < steps; first = end) {
        for (end = first; end < steps && times[end].placement == times[first].placement; end++)
            ;
        print_place(&bench, times + first, end - first, threads);
    }
    device_close(bench.device);
    free(bench.layers);
    for (size_t i = 0; i < steps; i++)
        free(times[i].launches);
    free(times);
    return 0;
}
