/* bench_cost.c - see bench_cost.h.
 *
 * The speed of a machine changes from minute to minute by more than an audit costs. So every level
 * has its own device and engine, all stay open, and they decode in turn. Each run is compared with
 * the run without audit of the same round; the medians are over rounds. */
#include "cli/bench_cost.h"

#include "base/clock.h"
#include "base/emit.h"
#include "cli/audit_options.h"
#include "cli/engine_load.h"
#include "device/all/all.h"
#include "session/session.h"

#include <stdlib.h>
#include <time.h>

static const enum audit_level levels[] = { AUDIT_OFF, AUDIT_LOG, AUDIT_GUARD };
#define LEVEL_COUNT COUNT_OF(levels)

/* One run: time, and processor time of all threads, which other programs disturb less. */
struct sample {
    double wall_ns, cpu_ns;
};

struct runner {
    enum audit_level level;
    struct cli_audit *audit;
    struct device *device;
    struct ops ops;
    struct engine *engine;
    struct session *session;
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
    TRY(cli_engine_open(request->invocation, &runner->ops, request->file, request->report,
                        &request->engine, &runner->engine, err));
    return session_create(runner->engine, NULL, NULL, &runner->session, err);
}

static void close_runner(struct runner *runner)
{
    session_destroy(runner->session);
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

/* As greta infer --greedy decodes, from an arbitrary token on. */
static enum status decode(struct runner *runner, const struct bench_cost_request *request,
                          struct sample *ret_sample, struct error *err)
{
    static const uint32_t first_id = 1;
    struct session_request wanted = { .ids = &first_id,
                                      .id_count = 1,
                                      .token_limit = request->tokens,
                                      .allow_bad = true,
                                      .sampling = { .top_p = 1, .repeat_penalty = 1 } };
    uint64_t unused, start_ns = clock_ns();
    double start_cpu_ns = cpu_ns();
    TRY(session_add(runner->session, &wanted, &unused, err));
    TRY(session_run(runner->session, err));
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
        /* Every level is first in some round. */
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

/* Sorts the numbers and returns their median. */
static struct quartiles quartiles_of(double *numbers, uint32_t count)
{
    qsort(numbers, count, sizeof(*numbers), compare_numbers);
    uint32_t last = count - 1;
    double median = (numbers[last / 2] + numbers[(last + 1) / 2]) / 2;
    return (struct quartiles){ numbers[last / 4], median, numbers[last - last / 4] };
}

/* Milliseconds per token, and what the level adds to the run without audit, in percent. */
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
    emit_note(emit, "added_percent",
              "medians and quartiles over the rounds; each level is compared with `off` of the "
              "same round");
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
