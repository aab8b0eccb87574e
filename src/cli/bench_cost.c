/* bench_cost.c - see bench_cost.h.
 *
 * Machines differ from minute to minute by more than an audit costs. So every level has its device
 * and engine, all are open, and they decode in turn; each run is compared with the run without
 * audit of its own round, and the medians are over rounds. */
#include "cli/bench_cost.h"

#include "base/clock.h"
#include "base/emit.h"
#include "cli/audit_options.h"
#include "device/all/all.h"

#include <stdlib.h>
#include <string.h>

static const enum audit_level levels[] = { AUDIT_OFF, AUDIT_LOG, AUDIT_GUARD };
#define LEVEL_COUNT COUNT_OF(levels)

struct runner {
    enum audit_level level;
    char path[64]; /* of its flight file, removed at the end */
    struct cli_audit *audit;
    struct device *device;
    struct ops ops;
    struct engine *engine;
    double samples_ns[BENCH_COST_ROUND_LIMIT];
};

/* ---- Running -------------------------------------------------------------------------------- */

static enum status open_runner(struct runner *runner, const struct bench_cost_request *request,
                               struct error *err)
{
    struct device_options options = { .thread_count = request->threads };
    snprintf(runner->path, sizeof(runner->path), "greta-cost-%s.flight",
             audit_level_name(runner->level));
    TRY(cli_audit_open(request->invocation, audit_level_name(runner->level), runner->path,
                       request->device, &options, &runner->audit, err));
    if (cli_audit_missing(runner->audit))
        return error_set(err, STATUS_IO, "%s: the cost of recording cannot be measured",
                         cli_audit_missing(runner->audit));
    TRY(all_open(request->device, &options, &runner->device, err));
    TRY(ops_load(&runner->ops, runner->device, CPU_PATH_COUNT, err));
    return engine_open(&runner->ops, request->file, request->report, &request->engine,
                       &runner->engine, err);
}

static void close_runner(struct runner *runner)
{
    engine_close(runner->engine);
    device_close(runner->device);
    cli_audit_discard(runner->audit);
}

static enum status decode(struct runner *runner, const struct bench_cost_request *request,
                          double *ret_ns, struct error *err)
{
    uint32_t id = 1;
    engine_rewind(runner->engine, 0, 0);
    uint64_t start_ns = clock_ns();
    for (uint32_t i = 0; i < request->tokens; i++) {
        int32_t best;
        id = (id * 1103515245u + 12345u) & 0x7FFFFFFFu;
        struct engine_token token = { (int32_t)(id % request->report->config.vocab_size), 0, true };
        TRY(engine_forward(runner->engine, &token, 1, err));
        TRY(engine_argmax(runner->engine, &best, NULL, err));
    }
    *ret_ns = (double)(clock_ns() - start_ns);
    return STATUS_OK;
}

static enum status measure(struct runner *runners, const struct bench_cost_request *request,
                           struct error *err)
{
    struct cli_progress progress;
    double unused;
    cli_progress_begin(&progress, request->invocation, "bench", "rounds");
    enum status status = STATUS_OK;
    for (size_t i = 0; i < LEVEL_COUNT && !status; i++) /* warms up */
        status = decode(&runners[i], request, &unused, err);
    for (uint32_t round = 0; round < request->rounds && !status; round++) {
        status = progress_step(&progress.progress, round, request->rounds, err);
        /* Nobody is always the first. */
        for (size_t i = 0; i < LEVEL_COUNT && !status; i++) {
            struct runner *runner = &runners[(i + round) % LEVEL_COUNT];
            status = decode(runner, request, &runner->samples_ns[round], err);
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
static void summarise(const struct runner *runners, const struct bench_cost_request *request,
                      size_t level, struct quartiles *ret_ms, struct quartiles *ret_cost)
{
    double numbers[BENCH_COST_ROUND_LIMIT];
    for (uint32_t i = 0; i < request->rounds; i++)
        numbers[i] = runners[level].samples_ns[i] / 1e6 / request->tokens;
    *ret_ms = quartiles_of(numbers, request->rounds);
    for (uint32_t i = 0; i < request->rounds; i++)
        numbers[i] = 100 * (runners[level].samples_ns[i] / runners[0].samples_ns[i] - 1);
    *ret_cost = quartiles_of(numbers, request->rounds);
}

static enum status print(const struct runner *runners, const struct bench_cost_request *request,
                         struct error *err)
{
    struct quartiles ms, cost;
    struct emit *emit;
    TRY(emit_create(request->json ? EMIT_JSON : EMIT_TEXT, &emit, err));
    emit_count(emit, "tokens", request->tokens);
    emit_count(emit, "rounds", request->rounds);
    emit_list_begin(emit, "levels");
    for (size_t i = 0; i < LEVEL_COUNT; i++) {
        summarise(runners, request, i, &ms, &cost);
        emit_object_begin(emit, NULL);
        emit_text(emit, "level", audit_level_name(levels[i]));
        emit_real(emit, "ms_per_token", ms.median);
        emit_real(emit, "added_percent", cost.median);
        emit_real(emit, "added_percent_low", cost.low);
        emit_real(emit, "added_percent_high", cost.high);
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
