/* bench_decode.c - what a decode step costs through the device: a step of real shape is run as ops,
 * and the time inside kernels is compared with the time of the step.
 *
 *     bench_decode [--shape tinyllama|llama3-1b|tiny] [--type q4_k|q8_0|...] [--threads N] [--steps
 * N]
 *
 * Weights are random bytes with harmless scales; speed does not depend on them. Prints enqueue cost
 * per launch, tokens per second, bytes of weights per second, and the share of the step in which
 * the threads were not in a kernel: for each place the cores were in (bench_probe.h), with the
 * round trip that showed it. Steps in which they moved are left out. */
#include "base/clock.h"
#include "base/parallel.h"
#include "bench_launches.h"
#include "bench_probe.h"
#include "device/host/host.h"
#include "model/model.h"
#include "ops/ops.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
                           &bench->positions, &bench->a, &query,
                           &(struct ops_attention_settings){ .head_dim = head_dim, .scale = scale },
                           err));
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
    MUST(bench, ops_argmax(target, &bench->logits, &bench->best, NULL, err));
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

struct step_times {
    double wall_ms, outside_percent, enqueue_ns, ping_pong_ns;
    uint64_t ticks, first_wait; /* of the step; until the first tile */
    enum placement placement;   /* PLACEMENT_COUNT: changed meanwhile */
    size_t launch_count;
    struct launch_times *launches; /* owned, in order */
};

static void measure_step(struct bench *bench, uint32_t threads, struct step_times *times)
{
    struct device_stream stream = bench->target.stream;
    uint64_t in_kernels = 0;
    enum placement placement = probe_placement(&times->ping_pong_ns);
    launches_forget();
    /* Decoding, a step follows the one before at once: the threads are awake, and caches hold what
     * that one left. */
    step(bench);
    MUST(bench, device_stream_sync(bench->device, stream, DEVICE_HERE, &bench->err));
    uint64_t start_ticks = launches_now(), start = clock_ns();
    step(bench);
    uint64_t queued = clock_ns();
    MUST(bench, device_stream_sync(bench->device, stream, DEVICE_HERE, &bench->err));
    uint64_t end = clock_ns(), end_ticks = launches_now();
    times->launch_count = launches_collect(start_ticks, end_ticks, threads, times->launches);
    for (size_t i = 0; i < times->launch_count; i++)
        in_kernels += times->launches[i].ticks[LAUNCH_KERNEL];
    times->ticks = end_ticks - start_ticks;
    times->first_wait = times->launch_count ? times->launches[0].ticks[LAUNCH_START] - start_ticks
                                            : 0;
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

/* The median over all steps of one part of a launch. */
static double middle_part(const struct step_times *times, size_t steps, size_t launch,
                          enum launch_part part, double *values)
{
    for (size_t i = 0; i < steps; i++)
        values[i] = (double)times[i].launches[launch].ticks[part];
    return middle(values, steps);
}

static void print_shares(const char *name, const double *sums, double all, uint32_t threads)
{
    double outside = 0;
    for (size_t part = LAUNCH_LATE; part < LAUNCH_PART_COUNT; part++)
        outside += sums[part] / threads;
    printf("%-14s %10.2f %10.2f  ", name, 100 * sums[LAUNCH_WALL] / all, 100 * outside / all);
    for (size_t part = LAUNCH_LATE; part < LAUNCH_PART_COUNT; part++)
        printf(" %8.3f", 100 * sums[part] / threads / all);
    printf("\n");
}

/* Where the time goes: for each launch of a step the middle of its durations and of its time
 * outside kernels over all steps, then summed by op. What disturbs a step disturbs few of its
 * launches, and each time others. */
static void print_ops(const struct step_times *times, size_t steps, uint32_t threads)
{
    size_t op_count = launches_op_count();
    double all[LAUNCH_PART_COUNT] = { 0 };
    double(*sums)[LAUNCH_PART_COUNT] = calloc(op_count, sizeof(*sums));
    double *values = calloc(steps, sizeof(*values));
    if (!sums || !values)
        exit(3);
    for (size_t i = 0; i < steps; i++)
        values[i] = (double)times[i].first_wait;
    double first_wait = middle(values, steps);
    for (size_t launch = 0; launch < times[0].launch_count; launch++) {
        for (size_t part = LAUNCH_WALL; part < LAUNCH_PART_COUNT; part++) {
            double ticks = middle_part(times, steps, launch, (enum launch_part)part, values);
            sums[times[0].launches[launch].op][part] += ticks;
            all[part] += ticks;
        }
    }
    double whole = all[LAUNCH_WALL] + first_wait;
    printf("%-14s %10s %10s   %8s %8s %8s %8s %8s   (sums of every launch's middle)\n", "op",
           "% of step", "% outside", "late", "between", "early", "absent", "handed");
    printf("%-14s %10.2f %10.2f\n", "(until first)", 100 * first_wait / whole,
           100 * first_wait / whole);
    for (uint32_t op = 0; op < op_count; op++)
        if (sums[op][LAUNCH_WALL] > 0)
            print_shares(launches_op_name(op), sums[op], whole, threads);
    all[LAUNCH_WALL] = whole;
    print_shares("all", all, whole, threads);
    free(values);
    free(sums);
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
    bench.ops = (struct ops){ .device = bench.device, .host_path = cpu_path_best() };
    bench.target = (struct ops_target){ &bench.ops, { 0, 0 }, DEVICE_HERE };
    MUST(&bench, device_module_load(bench.device, launches_image(cpu_path_best()), DEVICE_HERE,
                                    &bench.err));
    MUST(&bench, device_stream_create(bench.device, DEVICE_HERE, &bench.target.stream, &bench.err));
    make_model(&bench);
    struct step_times *times = calloc(steps, sizeof(*times));
    if (!times)
        return 3;
    for (size_t i = 0; i < steps; i++)
        if (!(times[i].launches = calloc(LAUNCH_LIMIT, sizeof(*times[i].launches)))) {
            free(times);
            return 3;
        }
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
