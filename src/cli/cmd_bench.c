/* cmd_bench.c - greta bench: the speed of a model, in the format of llama-bench. Prompts are
 * arbitrary tokens. Decode goes on from the prompt of its test, or else from one arbitrary token,
 * and takes the likeliest token each time, as greedy decoding does. Tokenizing and sampling are not
 * measured. The first run of each test is a warm-up. */
#include "campaign/campaign.h"
#include "cli/audit_options.h"
#include "cli/bench_cost.h"
#include "cli/bench_measure.h"
#include "cli/bench_report.h"
#include "cli/bench_settings.h"
#include "cli/bench_tests.h"
#include "cli/cli.h"
#include "cli/default_model.h"
#include "cli/device_choice.h"
#include "cli/engine_load.h"

#include "base/parallel.h"
#include "base/size.h"
#include "device/all/all.h"
#include "inject/inject.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define REPEAT_LIMIT 1000u
#define BATCH_DEFAULT 2048u
#define SEQUENCE_LIMIT 4096u

struct bench {
    const struct cli_invocation *invocation;
    const struct bench_settings *settings;
    struct default_model bundled;
    const char *model; /* path of the named or the bundled model */
    struct bench_tests tests;
    struct gguf_file *file;
    struct model_report report;
    struct engine_options engine_options;
    char device_name[ALL_NAME_BYTES];
    struct cli_audit *audit;
    struct device *device;
    struct inject_spec spec;
    struct inject *inject; /* NULL: no fault is planted; ends with the device */
    bool stopped;          /* stop was called */
    struct ops ops;
    struct engine *engine;
    struct bench_measure measure;
    double samples_ns[REPEAT_LIMIT];
    uint64_t trap_count; /* known when the device is closed */
};

/* Closes engine and device, and finishes the audit. */
static void stop(struct bench *bench)
{
    if (!bench->device && bench->audit && !bench->stopped) { /* nothing was recorded */
        cli_audit_discard(bench->audit);
        bench->audit = NULL;
    }
    bench->stopped = true;
    engine_close(bench->engine);
    cli_audit_check_planted(bench->invocation, bench->audit, bench->inject,
                            bench->settings->inject);
    if (bench->device)
        bench->trap_count = device_trap_count(bench->device);
    device_close(bench->device);
    cli_audit_finish(bench->audit);
    bench->engine = NULL;
    bench->device = NULL;
    bench->inject = NULL; /* the device owned it */
}

static void release(struct bench *bench)
{
    stop(bench);
    cli_audit_close(bench->audit);
    gguf_close(bench->file);
    bench_measure_release(&bench->measure);
}

/* ---- The model ------------------------------------------------------------------------------ */

static uint32_t batch_asked(const struct bench_settings *settings)
{
    return settings->batch ? settings->batch : BATCH_DEFAULT;
}

/* Lists the tests and picks the device; opens nothing but the file. */
static enum status prepare_model(struct bench *bench, struct error *err)
{
    const struct bench_settings *settings = bench->settings;
    if (settings->sequences < 1 || settings->sequences > SEQUENCE_LIMIT)
        return error_set(err, STATUS_USAGE, "--parallel: expected 1 to %u sequences, found %u",
                         SEQUENCE_LIMIT, settings->sequences);
    struct engine_options engine_options = { .sequence_limit = settings->sequences };
    for (size_t i = 0; i < bench->tests.count; i++) {
        const struct bench_test *test = &bench->tests.items[i];
        uint32_t needed = test->depth + test->prompt + test->generate + 1;
        if (needed > engine_options.context)
            engine_options.context = needed;
    }
    TRY(cli_cache_type(settings->kv_type, settings->key_type, settings->value_type,
                       &engine_options.kv_dtype, err));
    TRY(cli_device_name(settings->device, settings->gpu_layers, bench->device_name,
                        sizeof(bench->device_name), err));
    TRY(cli_check_threads(settings->threads, err));
    /* "auto" becomes a device that exists, because the size of a batch depends on it. */
    char asked[sizeof(bench->device_name)];
    snprintf(asked, sizeof(asked), "%s", bench->device_name);
    all_resolve(asked, ops_gpu_image(), bench->device_name);
    cli_warn_no_gpu(bench->invocation, settings->gpu_layers, asked, bench->device_name);
    TRY(gguf_open(bench->model, &bench->file, err));
    model_check(bench->file, NULL, &bench->report);
    if (model_report_refuses(&bench->report, false))
        return error_set(err, STATUS_REFUSED, "%s: the guard rail refuses it (see greta inspect)",
                         bench->model);
    bool on_host = strcmp(bench->device_name, "host") == 0;
    uint32_t batch = settings->micro_batch ? settings->micro_batch : engine_batch_default(!on_host);
    batch = min_u64(batch_asked(settings), batch);
    engine_options.batch_limit = max_u64(batch, settings->sequences);
    bench->engine_options = engine_options;
    return STATUS_OK;
}

/* Steps go on from test to test. A prompt has a step for each of its batches, so at most one for
 * each token; each test is also run once to warm up. */
static uint64_t most_steps(const struct bench *bench)
{
    uint64_t steps = 0;
    for (size_t i = 0; i < bench->tests.count; i++) {
        const struct bench_test *test = &bench->tests.items[i];
        steps += ((uint64_t)test->depth + test->prompt + test->generate + 1) *
                 ((uint64_t)bench->settings->repeats + 1);
    }
    return steps;
}

static enum status open_model(struct bench *bench, struct error *err)
{
    const struct bench_settings *settings = bench->settings;
    struct device_options device_options = { .thread_count = settings->threads,
                                             .gpu_image = ops_gpu_image() };
    if (settings->inject) {
        struct campaign_extent extent = { .step_limit = most_steps(bench) };
        TRY(campaign_check_inject(settings->inject, bench->file, &extent, err));
        TRY(inject_parse(settings->inject, &bench->spec, err));
    }
    TRY(cli_audit_open(bench->invocation, settings->audit, settings->flight, bench->device_name,
                       &device_options, &bench->audit, err));
    TRY(all_open(bench->device_name, &device_options, &bench->device, err));
    if (settings->inject) {
        TRY(inject_install(bench->device, &bench->spec, &bench->inject, err));
        cli_warn(bench->invocation, "a fault is planted: %s", settings->inject);
    }
    TRY(ops_load(&bench->ops, bench->device, CPU_PATH_COUNT, err));
    TRY(cli_engine_open(bench->invocation, &bench->ops, bench->file, &bench->report,
                        &bench->engine_options, &bench->engine, err));
    bench->measure = (struct bench_measure){ .engine = bench->engine,
                                             .vocab_size = bench->report.config.vocab_size,
                                             .sequences = settings->sequences,
                                             .repeats = settings->repeats,
                                             .no_warmup = settings->no_warmup,
                                             .run_count = (uint64_t)settings->repeats *
                                                          bench->tests.count };
    return bench_measure_init(&bench->measure, err);
}

/* ---- Measuring ------------------------------------------------------------------------------ */

static enum status run_tests(struct bench *bench, struct bench_report *report,
                             struct cli_progress *progress, struct error *err)
{
    const struct bench_settings *settings = bench->settings;
    struct bench_result result = { .model_path = bench->model,
                                   .file = bench->file,
                                   .report = &bench->report,
                                   .device = device_info(bench->device),
                                   .budget = engine_budget(bench->engine),
                                   .batch = batch_asked(settings),
                                   .threads = settings->threads ? settings->threads
                                                                : parallel_processor_count(),
                                   .samples_ns = bench->samples_ns,
                                   .sample_count = settings->repeats };
    bench->measure.progress = &progress->progress;
    for (size_t i = 0; i < bench->tests.count; i++) {
        result.test = bench->tests.items[i];
        result.test_time = (int64_t)time(NULL);
        TRY(bench_measure_run(&bench->measure, &result.test, bench->samples_ns, err));
        cli_progress_end(progress);
        TRY(bench_report_add(report, &result, err));
    }
    return STATUS_OK;
}

static enum status finish(struct bench *bench, struct bench_report *report, struct error *err)
{
    stop(bench);
    json_t *audit = cli_audit_json(bench->audit);
    enum status status = bench_report_finish(report, audit, err);
    json_decref(audit);
    if (!status && bench->trap_count && cli_audit_answer(bench->audit) != CLI_AUDIT_FINDINGS)
        status = error_set(err, STATUS_REFUSED,
                           "an index was past its bound and the access was skipped: the speed is "
                           "not that of a sound run (--audit log names the launch)");
    return status;
}

static enum bench_form form_of(const struct bench_settings *settings)
{
    static const char *const names[] = {
        [BENCH_MD] = "md", [BENCH_JSON] = "json", [BENCH_JSONL] = "jsonl", [BENCH_CSV] = "csv"
    };
    _Static_assert(COUNT_OF(names) == BENCH_FORM_COUNT, "every form has a name");
    for (int form = 0; form < BENCH_FORM_COUNT && !settings->json; form++)
        if (strcasecmp(names[form], settings->form) == 0)
            return (enum bench_form)form;
    return BENCH_JSON;
}

static enum status measure_audit(struct bench *bench, struct error *err)
{
    const struct bench_settings *settings = bench->settings;
    struct bench_cost_request request = { .invocation = bench->invocation,
                                          .file = bench->file,
                                          .report = &bench->report,
                                          .engine = bench->engine_options,
                                          .device = bench->device_name,
                                          .threads = settings->threads,
                                          .rounds = settings->repeats,
                                          .json = form_of(settings) == BENCH_JSON };
    for (size_t i = 0; i < bench->tests.count && !request.tokens; i++)
        request.tokens = bench->tests.items[i].generate;
    if (!request.tokens)
        return error_set(err, STATUS_USAGE, "--audit-cost: expected -n N, found only zeros");
    return bench_cost_run(&request, err);
}

static enum status run_all(struct bench *bench, struct error *err)
{
    const struct bench_settings *settings = bench->settings;
    TRY(default_model_path(settings->model, &bench->bundled, &bench->model, err));
    if (settings->repeats == 0 || settings->repeats > REPEAT_LIMIT)
        return error_set(err, STATUS_USAGE, "--repetitions: expected 1 to %u, found %u",
                         REPEAT_LIMIT, settings->repeats);
    struct bench_test_texts texts = { settings->prompts, settings->generates, settings->depths,
                                      &settings->pairs };
    TRY(bench_tests_list(&texts, &bench->tests, err));
    TRY(prepare_model(bench, err));
    if (settings->audit_cost && (settings->audit || settings->flight || settings->inject))
        return error_set(err, STATUS_USAGE,
                         "--audit-cost: expected no --audit, --flight or --inject with it: it runs "
                         "every level itself");
    if (settings->audit_cost)
        return measure_audit(bench, err);
    TRY(open_model(bench, err));
    struct bench_report *report;
    TRY(bench_report_create(form_of(settings), &report, err));
    struct cli_progress progress;
    cli_progress_begin(&progress, bench->invocation, "bench", "runs");
    enum status status = run_tests(bench, report, &progress, err);
    cli_progress_end(&progress);
    if (!status)
        status = finish(bench, report, err);
    bench_report_destroy(report);
    return status;
}

/* Findings are not success, however fast the run was; nor is a device that faulted. */
static enum cli_exit exit_of(const struct bench *bench, enum status status, const struct error *err)
{
    if (status) {
        enum cli_exit code = cli_fail(bench->invocation, err);
        return status == STATUS_LOST ? CLI_EXIT_FAILED : code;
    }
    size_t count = cli_audit_finding_count(bench->audit);
    switch (cli_audit_answer(bench->audit)) {
    case CLI_AUDIT_FINDINGS:
        fprintf(stderr, "Audit findings: the speed was measured, and the audit has %zu %s\n", count,
                count == 1 ? "finding" : "findings");
        return CLI_EXIT_FAILED;
    case CLI_AUDIT_UNKNOWN:
        return CLI_EXIT_UNDECIDED;
    default:
        return CLI_EXIT_OK;
    }
}

static enum cli_exit run_bench(const struct cli_invocation *invocation)
{
    const struct bench_settings *settings = invocation->settings;
    struct error err;
    if (settings->list_devices)
        return cli_list_devices(invocation, settings->json);
    if (settings->inject && strcmp(settings->inject, "help") == 0)
        return cli_list_faults();
    struct bench *bench = calloc(1, sizeof(*bench));
    if (!bench)
        return CLI_EXIT_CANNOT;
    bench->invocation = invocation;
    bench->settings = settings;
    enum status status = run_all(bench, &err);
    stop(bench);
    enum cli_exit code = exit_of(bench, status, &err);
    release(bench);
    free(bench);
    return code;
}

const struct cli_command cli_bench = {
    .name = "bench",
    .operands = "",
    .summary = "measure the speed of a model",
    .description =
        "Measures tokens per second of prefill (pp) and decode (tg), each repeated, and prints the "
        "mean and standard deviation in the format of llama-bench, so that both can be compared: "
        "columns, JSON keys and options have the same names. The speed of a machine changes from "
        "minute to minute: compare only what was measured in turn. Prompts are arbitrary tokens; "
        "decode goes on from the prompt of its test (-pg), or else from one arbitrary token, and "
        "takes the likeliest token each time; on a GPU the next step is queued before that one is "
        "waited for, as greta infer --greedy does it.\n\n"
        "--audit-cost measures the audit levels: a model is open for each of off, log and guard, "
        "they decode in turn, and each run is compared with the run without audit of the same "
        "round. The weights are in memory twice (guard has its own copy).\n\n"
        "Exit status 1 if --audit found something, a kernel met an index past its bound or the "
        "device faulted, 3 if it could not run or be recorded, 4 if the audit could not be "
        "finished or its planted fault never fired.",
    .examples = "  greta bench   # the model that comes with greta\n"
                "  greta bench -m model.gguf -p 512 -n 128\n"
                "  greta bench -m model.gguf -p 0 -n 64 -d 0,2048 -o json   # short and long "
                "context\n",
    .options = bench_options,
    .option_count = BENCH_OPTION_COUNT,
    .settings_bytes = sizeof(bench_defaults),
    .defaults = &bench_defaults,
    .run = run_bench,
};
