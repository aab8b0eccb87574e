/* bench_cost.c - see bench_cost.h.
 *
 * Machines differ from minute to minute by more than an audit costs. So every level has its device
 * and engine, all are open, and they decode in turn; each run is compared with the run without
 * audit of its own round, and the medians are over rounds. */
#include "cli/bench_cost.h"

#include "base/clock.h"
#include "base/emit.h"
#include "cli/audit_options.h"
#include "cli/engine_load.h"
#include "device/all/all.h"

#include <stdlib.h>
#include <time.h>

static const enum audit_level levels[] = { AUDIT_OFF, AUDIT_LOG, AUDIT_GUARD };
#define LEVEL_COUNT COUNT_OF(levels)

/* Of one run: time, and processor time of all threads, which other programs disturb less. */
struct sample {
    double wall_ns, cpu_ns;
};

struct runner {
    enum audit_level level;
    struct cli_audit *audit;
    struct device *device;
    struct ops ops;
    struct engine *engine;
    struct sample samples[BENCH_COST_ROUND_LIMIT];
};

/* ---- Running -------------------------------------------------------------------------------- */

static enum status open_runner(struct runner *runner, const struct bench_cost_request *request,
                               struct error *err)
{
    struct device_options options = { .thread_count = request->threads,
                                      .gpu_image = ops_gpu_image() };
    TRY(cli_audit_open(request->invocation, audit_level_name(runner->level), NULL, request->device,
                       &options, &runner->audit, err));
    TRY(all_open(request->device, &options, &runner->device, err));
    TRY(ops_load(&runner->ops, runner->device, CPU_PATH_COUNT, err));
    return cli_engine_open(request->invocation, &runner->ops, request->file, request->report,
                           &request->engine, &runner->engine, err);
}

static void close_runner(struct runner *runner)
{
    engine_close(runner->engine);
    device_close(runner->device);
    cli_audit_discard(runner->audit);
}

static double cpu_ns(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec * 1e9 + (double)used.tv_nsec;
}

/* As greta infer --greedy does it: where it pays a step is queued before the id of the one before
 * is waited for. */
static enum status decode(struct runner *runner, const struct bench_cost_request *request,
                          struct sample *ret_sample, struct error *err)
{
    int32_t best = -1; /* of the step before; -1: none */
    engine_rewind(runner->engine, 0, 0);
    uint64_t start_ns = clock_ns();
    double start_cpu_ns = cpu_ns();
    bool ahead = engine_ahead_pays(runner->engine);
    for (uint32_t i = 0; i < request->tokens; i++) {
        int32_t known = best < 0 ? 1 : best;
        struct engine_token token = { i && ahead ? ENGINE_TOKEN_FROM_DEVICE : known, 0, true };
        TRY(engine_forward(runner->engine, &token, 1, err));
        TRY(engine_argmax_submit(runner->engine, err));
        if (i || !ahead)
            TRY(engine_argmax_wait(runner->engine, &best, err));
    }
    if (request->tokens && ahead)
        TRY(engine_argmax_wait(runner->engine, &best, err));
    *ret_sample = (struct sample){ (double)(clock_ns() - start_ns), cpu_ns() - start_cpu_ns };
    return STATUS_OK;
}

static enum status measure(struct runner *runners, const struct bench_cost_request *request,
                           struct error *err)
{
    struct cli_progress progress;
    struct sample unused;
    cli_progress_begin(&progress, request->invocation, "bench", "rounds");
    enum status status = STATUS_OK;
    for (size_t i = 0; i < LEVEL_COUNT && !status; i++) /* warms up */
        status = decode(&runners[i], request, &unused, err);
    for (uint32_t round = 0; round < request->rounds && !status; round++) {
        status = progress_step(&progress.progress, round, request->rounds, err);
        /* Nobody is always the first. */
        for (size_t i = 0; i < LEVEL_COUNT && !status; i++) {
            struct runner *runner = &runners[(i + round) % LEVEL_COUNT];
            status = decode(runner, request, &runner->samples[round], err);
        }
    }
    cli_progress_end(&progress);
    return status;
}

/* ---- Results -------------------------------------------------------------------------------- */

static int compare_numbers(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

struct quartiles {
    double low, median, high;
};

/* Sorts the numbers. */
static struct quartiles quartiles_of(double *numbers, uint32_t count)
{
    qsort(numbers, count, sizeof(*numbers), compare_numbers);
    uint32_t last = count - 1;
    double median = (numbers[last / 2] + numbers[(last + 1) / 2]) / 2;
    return (struct quartiles){ numbers[last / 4], median, numbers[last - last / 4] };
}

/* Milliseconds of a token, and what the level adds to the run beside it, in percent. */
struct cost {
    struct quartiles ms, added;
};

static struct cost cost_of(const struct runner *runners, const struct bench_cost_request *request,
                           size_t level, bool cpu)
{
    double ms[BENCH_COST_ROUND_LIMIT], added[BENCH_COST_ROUND_LIMIT];
    for (uint32_t i = 0; i < request->rounds; i++) {
        const struct sample *sample = &runners[level].samples[i], *off = &runners[0].samples[i];
        double ns = cpu ? sample->cpu_ns : sample->wall_ns;
        ms[i] = ns / 1e6 / request->tokens;
        added[i] = 100 * (ns / (cpu ? off->cpu_ns : off->wall_ns) - 1);
    }
    return (struct cost){ quartiles_of(ms, request->rounds), quartiles_of(added, request->rounds) };
}

static enum status print(const struct runner *runners, const struct bench_cost_request *request,
                         struct error *err)
{
    struct emit *emit;
    TRY(emit_create(request->json ? EMIT_JSON : EMIT_TEXT, &emit, err));
    emit_count(emit, "tokens", request->tokens);
    emit_count(emit, "rounds", request->rounds);
    emit_list_begin(emit, "levels");
    for (size_t i = 0; i < LEVEL_COUNT; i++) {
        struct cost wall = cost_of(runners, request, i, false);
        struct cost cpu = cost_of(runners, request, i, true);
        emit_object_begin(emit, NULL);
        emit_text(emit, "level", audit_level_name(levels[i]));
        emit_real(emit, "ms_per_token", wall.ms.median);
        emit_real(emit, "added_percent", wall.added.median);
        emit_real(emit, "added_percent_low", wall.added.low);
        emit_real(emit, "added_percent_high", wall.added.high);
        emit_real(emit, "cpu_ms_per_token", cpu.ms.median);
        emit_real(emit, "cpu_added_percent", cpu.added.median);
        emit_object_end(emit);
    }
    emit_list_end(emit);
    emit_note(emit, "added_percent", "medians and quartiles over rounds, against off beside it");
    enum status status = emit_finish(emit, stdout, err);
    emit_destroy(emit);
    return status;
}

enum status bench_cost_run(const struct bench_cost_request *request, struct error *err)
{
    struct runner *runners = calloc(LEVEL_COUNT, sizeof(*runners));
    if (!runners)
        return error_set(err, STATUS_NO_MEMORY, "no memory to measure");
    enum status status = STATUS_OK;
    for (size_t i = 0; i < LEVEL_COUNT && !status; i++) {
        runners[i].level = levels[i];
        status = open_runner(&runners[i], request, err);
    }
    if (!status)
        status = measure(runners, request, err);
    for (size_t i = 0; i < LEVEL_COUNT; i++)
        close_runner(&runners[i]);
    if (!status)
        status = print(runners, request, err);
    free(runners);
    return status;
}
