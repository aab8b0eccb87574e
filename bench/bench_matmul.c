/* bench_matmul.c - how near matmul on the host comes to what the machine can do.
 *
 * One activation row: bytes of weights per second, against reading the same bytes and nothing else.
 * Many rows: multiply-adds per second, against a loop of the instruction the kernel is made of.
 * Every sample stands between two samples of its ceiling, and the ratio is taken with their mean:
 * neighbours and placement change the machine from second to second, so that only figures taken
 * side by side can be compared. Shown are medians, and the quartiles of the ratio.
 *
 * usage: bench_matmul [--json] [--path NAME] [--dtype NAME] [--threads N] [--repeats N] [--rows N]
 *                     [--k N]
 */
#include "base/clock.h"
#include "base/emit.h"
#include "ops/host/matmul.h"
#include "tensor/quant.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench_peaks.h"

/* Far beyond the last cache; the weights are a file mapping of 4 KiB pages, as in real use. */
#define BUFFER_BYTES ((size_t)640 << 20)
#define K_LIMIT 65536
#define OUTPUT_ROWS 14336
/* Rows of weights of the matmul with many activation rows: more would only take longer. */
#define MANY_OUTPUT_ROWS 4096
#define THREAD_LIMIT 8
#define REPEAT_LIMIT 101

struct options {
    bool json;
    enum cpu_path path;
    int dtype; /* -1: all */
    size_t threads;
    size_t repeats;
    size_t rows;
    size_t k; /* of a weight row; a multiple of 256 */
};

struct bench {
    struct options options;
    uint8_t *buffer; /* BUFFER_BYTES of weights */
    uint8_t *activations;
    float *output;
    float *values; /* of one activation row */
    uint8_t *scratch[THREAD_LIMIT];
};

/* The work of one thread. */
struct job {
    const struct bench *bench;
    const struct host_matmul_kernel *kernel;
    enum bench_peak peak;
    struct host_matmul_task task; /* the whole matmul; each thread takes its share of the rows */
    size_t matrices;              /* one after the other in the buffer */
    size_t thread;
    size_t thread_count;
    uint64_t result; /* keeps the work alive */
};

typedef void *(*job_function)(void *job);

static void *read_share(void *argument)
{
    struct job *job = argument;
    size_t share = BUFFER_BYTES / job->thread_count;
    job->result = bench_read(job->bench->buffer + job->thread * share, share);
    return NULL;
}

static void *peak_share(void *argument)
{
    struct job *job = argument;
    job->result = bench_peak_run(job->peak);
    return NULL;
}

static void *multiply_share(void *argument)
{
    struct job *job = argument;
    struct host_matmul_task task = job->task;
    size_t rows = task.weight_rows;
    /* Whole tiles of 16 rows, as an op layer would cut. */
    size_t begin = rows / 16 * job->thread / job->thread_count * 16;
    size_t end = rows / 16 * (job->thread + 1) / job->thread_count * 16;
    task.scratch = job->bench->scratch[job->thread];
    task.weight_rows = end - begin;
    task.output += begin;
    for (size_t m = 0; m < job->matrices; m++) {
        task.weights = job->task.weights + (m * rows + begin) * task.weight_row_bytes;
        host_matmul(job->kernel, &task);
    }
    return NULL;
}

/* Seconds from the start of the first thread to the end of the last. */
static double run_threads(job_function function, const struct job *job, size_t thread_count)
{
    pthread_t threads[THREAD_LIMIT];
    struct job jobs[THREAD_LIMIT];
    uint64_t begin_ns = clock_ns();
    for (size_t t = 0; t < thread_count; t++) {
        jobs[t] = *job;
        jobs[t].thread = t;
        jobs[t].thread_count = thread_count;
        if (t > 0 && pthread_create(&threads[t], NULL, function, &jobs[t]))
            abort();
    }
    function(&jobs[0]);
    for (size_t t = 1; t < thread_count; t++)
        pthread_join(threads[t], NULL);
    return (double)(clock_ns() - begin_ns) * 1e-9;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

struct figures {
    double ceiling; /* medians, in units of 1e9 per second */
    double reached;
    double ratio;
    double ratio_low; /* quartiles */
    double ratio_high;
};

/* work and ceiling_work: what one run of each does, in bytes or multiply-adds. */
static struct figures measure(const struct bench *bench, const struct job *job, double work,
                              job_function ceiling, double ceiling_work, size_t threads)
{
    double ceilings[REPEAT_LIMIT];
    double reached[REPEAT_LIMIT];
    double ratios[REPEAT_LIMIT];
    size_t count = bench->options.repeats;
    run_threads(multiply_share, job, threads);
    double before = ceiling_work / run_threads(ceiling, job, threads) * 1e-9;
    for (size_t i = 0; i < count; i++) {
        reached[i] = work / run_threads(multiply_share, job, threads) * 1e-9;
        double after = ceiling_work / run_threads(ceiling, job, threads) * 1e-9;
        ceilings[i] = (before + after) / 2;
        ratios[i] = reached[i] / ceilings[i];
        before = after;
    }
    qsort(ceilings, count, sizeof(double), compare_doubles);
    qsort(reached, count, sizeof(double), compare_doubles);
    qsort(ratios, count, sizeof(double), compare_doubles);
    return (struct figures){
        .ceiling = ceilings[count / 2],
        .reached = reached[count / 2],
        .ratio = ratios[count / 2],
        .ratio_low = ratios[count / 4],
        .ratio_high = ratios[count - 1 - count / 4],
    };
}

/* Random weights with sane scales: one row encoded, repeated through the buffer. */
static void fill_weights(struct bench *bench, enum dtype dtype, size_t row_bytes)
{
    float *values = bench->values;
    uint32_t state = 1;
    for (size_t i = 0; i < bench->options.k; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = (float)(int32_t)state * 0x1p-34f;
    }
    if (quant_can_encode(dtype))
        quant_encode_row(dtype, values, bench->options.k, bench->buffer);
    else
        memset(bench->buffer, 0x11, row_bytes);
    for (size_t at = row_bytes; at + row_bytes <= BUFFER_BYTES; at += row_bytes)
        memcpy(bench->buffer + at, bench->buffer, row_bytes);
}

static enum bench_peak peak_of(const struct bench *bench, const struct host_matmul_kernel *kernel,
                               enum dtype dtype)
{
    if (bench->options.path == CPU_PATH_AVX2 && kernel->act_format == HOST_ACT_Q8)
        return dtype == DTYPE_Q8_0 ? BENCH_PEAK_BYTES_2 : BENCH_PEAK_BYTES;
    if (bench->options.path != CPU_PATH_AVX512)
        return BENCH_PEAK_FMA_256;
    switch (kernel->act_format) {
    case HOST_ACT_Q8:
        return BENCH_PEAK_VNNI;
    case HOST_ACT_BF16:
        return BENCH_PEAK_BF16;
    default:
        return BENCH_PEAK_FMA;
    }
}

static void emit_figures(struct emit *emit, enum dtype dtype, size_t rows, size_t threads,
                         const char *ceiling_name, const struct figures *figures)
{
    emit_object_begin(emit, NULL);
    emit_text(emit, "dtype", dtype_name(dtype));
    emit_count(emit, "rows", rows);
    emit_count(emit, "threads", threads);
    emit_text(emit, "ceiling", ceiling_name);
    emit_real(emit, "ceiling_g_per_s", figures->ceiling);
    emit_real(emit, "reached_g_per_s", figures->reached);
    emit_real(emit, "ratio", figures->ratio);
    emit_real(emit, "ratio_low", figures->ratio_low);
    emit_real(emit, "ratio_high", figures->ratio_high);
    emit_object_end(emit);
}

static void bench_dtype(struct bench *bench, enum dtype dtype, struct emit *emit)
{
    const struct host_matmul_kernel *kernel = host_matmul_kernel(bench->options.path, dtype);
    const size_t k = bench->options.k;
    uint64_t row_bytes;
    if (!kernel || !dtype_row_bytes(dtype, k, &row_bytes))
        return;
    fill_weights(bench, dtype, row_bytes);
    size_t act_bytes = host_act_row_bytes(kernel->act_format, k);
    float *values = bench->values;
    for (size_t a = 0; a < bench->options.rows; a++) {
        for (size_t i = 0; i < k; i++)
            values[i] = (float)((i * 7 + a * 3) % 29) * 0.1f - 1.4f;
        host_act_pack(bench->options.path, kernel->act_format, values, k,
                      bench->activations + a * act_bytes);
    }
    struct job job = {
        .bench = bench,
        .kernel = kernel,
        .peak = peak_of(bench, kernel, dtype),
        .matrices = BUFFER_BYTES / (OUTPUT_ROWS * row_bytes),
        .task = { .dtype = dtype,
                  .k = k,
                  .weights = bench->buffer,
                  .weight_row_bytes = row_bytes,
                  .weight_rows = OUTPUT_ROWS,
                  .activations = bench->activations,
                  .activation_row_bytes = act_bytes,
                  .activation_rows = 1,
                  .output = bench->output,
                  .output_stride = OUTPUT_ROWS },
    };
    for (size_t t = 1; t <= bench->options.threads; t++) {
        double bytes = (double)job.matrices * OUTPUT_ROWS * (double)row_bytes;
        struct figures figures = measure(bench, &job, bytes, read_share, (double)BUFFER_BYTES, t);
        emit_figures(emit, dtype, 1, t, "read bytes", &figures);
    }
    job.matrices = 1;
    job.task.weight_rows = MANY_OUTPUT_ROWS;
    job.task.activation_rows = bench->options.rows;
    for (size_t t = 1; t <= bench->options.threads; t++) {
        double products = (double)k * MANY_OUTPUT_ROWS * (double)bench->options.rows;
        struct figures figures = measure(bench, &job, products, peak_share,
                                         (double)t * bench_peak_products(job.peak), t);
        emit_figures(emit, dtype, bench->options.rows, t, bench_peak_name(job.peak), &figures);
    }
}

/* A file without a name, filled and mapped read-write. */
static uint8_t *map_file(size_t bytes)
{
    FILE *file = tmpfile();
    if (!file || ftruncate(fileno(file), (off_t)bytes))
        return NULL;
    void *mapping = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    fclose(file);
    return mapping == MAP_FAILED ? NULL : mapping;
}

static int usage(void)
{
    fprintf(stderr, "usage: bench_matmul [--json] [--path NAME] [--dtype NAME] [--threads N] "
                    "[--repeats N] [--rows N] [--k N]\n");
    return 2;
}

static bool parse_path(const char *name, enum cpu_path *ret_path)
{
    for (int path = 0; path < CPU_PATH_COUNT; path++) {
        if (strcmp(name, cpu_path_name((enum cpu_path)path)) == 0 &&
            cpu_path_is_supported((enum cpu_path)path)) {
            *ret_path = (enum cpu_path)path;
            return true;
        }
    }
    return false;
}

/* An option with a whole number above zero. */
static bool parse_count(const char *word, const char *value, struct options *options)
{
    const struct {
        const char *word;
        size_t *count;
    } counts[] = { { "--threads", &options->threads },
                   { "--repeats", &options->repeats },
                   { "--rows", &options->rows },
                   { "--k", &options->k } };
    char *end;
    long number = strtol(value, &end, 10);
    for (size_t i = 0; i < COUNT_OF(counts); i++)
        if (strcmp(word, counts[i].word) == 0 && number > 0 && number <= INT_MAX && !*end) {
            *counts[i].count = (size_t)number;
            return true;
        }
    return false;
}

/* One with a value. */
static bool parse_option(const char *word, const char *value, struct options *options)
{
    enum dtype dtype;
    if (strcmp(word, "--path") == 0)
        return parse_path(value, &options->path);
    if (strcmp(word, "--dtype") == 0 && dtype_from_name(value, &dtype)) {
        options->dtype = (int)dtype;
        return true;
    }
    return parse_count(word, value, options);
}

static bool parse_options(int count, char **words, struct options *options)
{
    for (int i = 1; i < count; i++) {
        if (strcmp(words[i], "--json") == 0)
            options->json = true;
        else if (i + 1 == count || !parse_option(words[i], words[i + 1], options))
            return false;
        else
            i++;
    }
    return options->threads <= THREAD_LIMIT && options->repeats <= REPEAT_LIMIT &&
           options->k % 256 == 0 && options->k <= K_LIMIT;
}

static bool bench_init(struct bench *bench)
{
    bench->buffer = map_file(BUFFER_BYTES);
    /* F32 rows are the largest. */
    bench->activations = aligned_alloc(64, bench->options.rows *
                                               host_act_row_bytes(HOST_ACT_F32, bench->options.k));
    bench->output = malloc(bench->options.rows * OUTPUT_ROWS * sizeof(float));
    bench->values = malloc(bench->options.k * sizeof(float));
    bool complete = bench->buffer && bench->activations && bench->output && bench->values;
    for (size_t t = 0; t < bench->options.threads; t++) {
        size_t bytes = 0;
        for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
            const struct host_matmul_kernel *kernel = host_matmul_kernel(bench->options.path,
                                                                         (enum dtype)dtype);
            size_t needed = kernel ? host_matmul_scratch_bytes(kernel, bench->options.k) : 0;
            bytes = needed > bytes ? needed : bytes;
        }
        bench->scratch[t] = aligned_alloc(64, bytes);
        complete = complete && bench->scratch[t];
    }
    return complete;
}

int main(int count, char **words)
{
    static const enum dtype dtypes[] = { DTYPE_Q8_0, DTYPE_Q4_0, DTYPE_Q4_K, DTYPE_Q5_K,
                                         DTYPE_Q6_K, DTYPE_F16,  DTYPE_BF16, DTYPE_F32 };
    struct bench bench = { .options = { .path = cpu_path_best(),
                                        .dtype = -1,
                                        .threads = 2,
                                        .repeats = 9,
                                        .rows = 512,
                                        .k = 4096 } };
    struct emit *emit = NULL;
    struct error err;
    if (!parse_options(count, words, &bench.options))
        return usage();
    if (!bench_init(&bench) ||
        emit_create(bench.options.json ? EMIT_JSON : EMIT_TEXT, &emit, &err)) {
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the process ends here */
        fprintf(stderr, "bench_matmul: not enough memory or disk\n");
        return 3;
    }
    emit_text(emit, "path", cpu_path_name(bench.options.path));
    emit_list_begin(emit, "products");
    for (size_t i = 0; i < COUNT_OF(dtypes); i++) {
        if (bench.options.dtype < 0 || bench.options.dtype == (int)dtypes[i])
            bench_dtype(&bench, dtypes[i], emit);
    }
    emit_list_end(emit);
    enum status status = emit_finish(emit, stdout, &err);
    emit_destroy(emit);
    return status ? 1 : 0;
}
