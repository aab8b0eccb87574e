/* cmd_bench.c - greta bench: speed of a model, in the table people paste beside each other's.
 * Prompts are arbitrary tokens; tokenizing and sampling are not measured; one run warms up. */
#include "cli/cli.h"

#include "base/clock.h"
#include "base/text.h"
#include "cli/version.h"
#include "device/all/all.h"
#include "engine/engine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct settings {
    const char *model, *device, *kv_type;
    uint32_t prompt, generate, repeats, threads, batch;
    bool json;
};

static const struct settings defaults = {
    .device = "auto", .kv_type = "f16", .prompt = 512, .generate = 128, .repeats = 5
};

#define AT(field) offsetof(struct settings, field)

static const struct cli_option options[] = {
    { "--model|-m", "FILE", CLI_TEXT, AT(model), "model to measure (GGUF)", NULL, true },
    { "--n-prompt|-p", "N", CLI_U32, AT(prompt),
      "tokens of the prompt test (default: 512; 0: none)", NULL, false },
    { "--n-gen|-n", "N", CLI_U32, AT(generate),
      "tokens of the generation test (default: 128; 0: none)", NULL, false },
    { "--repetitions|-r", "N", CLI_U32, AT(repeats), "times each test is run (default: 5)", NULL,
      false },
    { "--threads|-t", "N", CLI_U32, AT(threads), "threads (default: all processors)", NULL, false },
    { "--batch-size|-b|-ub|--ubatch-size", "N", CLI_U32, AT(batch),
      "prompt tokens at a time (default: 512)", NULL, false },
    { "--cache-type|-ctk|-ctv", "TYPE", CLI_TEXT, AT(kv_type),
      "type of keys and values in the cache (default: f16)", "f32 f16 q8_0", false },
    { "--device|-dev", "NAME", CLI_TEXT, AT(device), "host, cuda:N, hip:N or auto (the default)",
      NULL, false },
    { "--json", NULL, CLI_FLAG, AT(json), "JSON with the keys of llama-bench", NULL, false },
};

#define REPEAT_LIMIT 1000u

struct bench {
    const struct cli_invocation *invocation;
    const struct settings *settings;
    struct gguf_file *file;
    struct model_report report;
    struct device *device;
    struct ops ops;
    struct engine *engine;
    struct engine_token *tokens;
    double samples_ns[REPEAT_LIMIT];
};

static void release(struct bench *bench)
{
    engine_close(bench->engine);
    device_close(bench->device);
    gguf_close(bench->file);
    free(bench->tokens);
}

static enum status open_model(struct bench *bench, struct error *err)
{
    const struct settings *settings = bench->settings;
    struct device_options device_options = { .thread_count = settings->threads };
    struct engine_options engine_options = { .batch_limit = settings->batch };
    uint32_t longest = settings->prompt > settings->generate ? settings->prompt
                                                             : settings->generate;
    engine_options.context = longest + 1;
    ASSERT(dtype_from_name(settings->kv_type, &engine_options.kv_dtype));
    TRY(gguf_open(settings->model, &bench->file, err));
    model_check(bench->file, NULL, &bench->report);
    if (model_report_refuses(&bench->report, false))
        return error_set(err, STATUS_REFUSED, "%s: the guard rail refuses it (see greta inspect)",
                         settings->model);
    TRY(all_open(cli_device_name(settings->device), &device_options, &bench->device, err));
    TRY(ops_load(&bench->ops, bench->device, CPU_PATH_COUNT, err));
    TRY(engine_open(&bench->ops, bench->file, &bench->report, &engine_options, &bench->engine,
                    err));
    bench->tokens = calloc(engine_plan(bench->engine)->options.batch_limit, sizeof(*bench->tokens));
    return bench->tokens ? STATUS_OK : error_set(err, STATUS_NO_MEMORY, "no memory to measure");
}

/* Runs count tokens, `at_once` in a batch; the last of each batch wants logits, as in real use. */
static enum status run_tokens(struct bench *bench, uint32_t count, uint32_t at_once,
                              struct error *err)
{
    uint32_t vocab = bench->report.config.vocab_size, id = 1;
    engine_rewind(bench->engine, 0, 0);
    for (uint32_t first = 0; first < count; first += at_once) {
        uint32_t batch = count - first < at_once ? count - first : at_once;
        for (uint32_t i = 0; i < batch; i++) {
            id = (id * 1103515245u + 12345u) & 0x7FFFFFFFu;
            bench->tokens[i] = (struct engine_token){ (int32_t)(id % vocab), 0, i + 1 == batch };
        }
        TRY(engine_forward(bench->engine, bench->tokens, batch, err));
        int32_t best;
        TRY(engine_argmax(bench->engine, &best, err));
    }
    return STATUS_OK;
}

static enum status measure(struct bench *bench, uint32_t count, uint32_t at_once,
                           struct cli_progress *progress, struct error *err)
{
    uint32_t repeats = bench->settings->repeats;
    TRY(run_tokens(bench, count < at_once ? count : at_once, at_once, err)); /* warms up */
    for (uint32_t i = 0; i < repeats; i++) {
        TRY(progress_step(&progress->progress, i, repeats, err));
        uint64_t start_ns = clock_ns();
        TRY(run_tokens(bench, count, at_once, err));
        bench->samples_ns[i] = (double)(clock_ns() - start_ns);
    }
    return STATUS_OK;
}

/* ---- Results -------------------------------------------------------------------------------- */

struct spread {
    double mean, deviation;
};

/* Of value(sample) over all samples; numerator 0: the samples themselves. */
static struct spread spread_of(const struct bench *bench, double numerator)
{
    uint32_t count = bench->settings->repeats;
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < count; i++) {
        double value = numerator > 0 ? numerator / bench->samples_ns[i] : bench->samples_ns[i];
        sum += value;
        squares += value * value;
    }
    double mean = sum / count, variance = squares / count - mean * mean;
    double corrected = count > 1 && variance > 0 ? variance * count / (count - 1) : 0;
    return (struct spread){ mean, sqrt(corrected) };
}

static const char *model_title(const struct bench *bench)
{
    bool exact;
    const struct model_shape *shape = model_shape_of(&bench->report.config, &exact);
    return shape ? shape->title : model_arch_info(bench->report.config.arch)->name;
}

static void print_row(const struct bench *bench, const char *test, uint32_t count)
{
    struct spread speed = spread_of(bench, (double)count * 1e9);
    char size[TEXT_BYTES_CAPACITY], parameters[TEXT_BYTES_CAPACITY];
    printf("| %-16s | %10s | %8s | %-8s | %8s | %10.2f ± %.2f |\n", model_title(bench),
           text_bytes(bench->report.weight_bytes, size),
           text_count(bench->report.parameter_count, parameters), device_info(bench->device)->kind,
           test, speed.mean, speed.deviation);
    fflush(stdout);
}

static void emit_row(struct emit *emit, const struct bench *bench, uint32_t prompt,
                     uint32_t generate)
{
    const struct settings *settings = bench->settings;
    struct spread time = spread_of(bench, 0), speed;
    speed = spread_of(bench, (double)(prompt + generate) * 1e9);
    emit_object_begin(emit, NULL);
    emit_text(emit, "build_commit", GRETA_VERSION);
    emit_text(emit, "cpu_info", device_info(bench->device)->name);
    emit_text(emit, "backends", device_info(bench->device)->kind);
    emit_text(emit, "model_filename", settings->model);
    emit_text(emit, "model_type", model_title(bench));
    emit_count(emit, "model_size", bench->report.weight_bytes);
    emit_count(emit, "model_n_params", bench->report.parameter_count);
    emit_count(emit, "n_batch", engine_plan(bench->engine)->options.batch_limit);
    emit_count(emit, "n_threads", settings->threads);
    emit_text(emit, "type_k", settings->kv_type);
    emit_text(emit, "type_v", settings->kv_type);
    emit_count(emit, "n_prompt", prompt);
    emit_count(emit, "n_gen", generate);
    emit_real(emit, "avg_ns", time.mean);
    emit_real(emit, "stddev_ns", time.deviation);
    emit_real(emit, "avg_ts", speed.mean);
    emit_real(emit, "stddev_ts", speed.deviation);
    emit_list_begin(emit, "samples_ns");
    for (uint32_t i = 0; i < settings->repeats; i++)
        emit_real(emit, NULL, bench->samples_ns[i]);
    emit_list_end(emit);
    emit_list_begin(emit, "samples_ts");
    for (uint32_t i = 0; i < settings->repeats; i++)
        emit_real(emit, NULL, (double)(prompt + generate) * 1e9 / bench->samples_ns[i]);
    emit_list_end(emit);
    emit_object_end(emit);
}

static enum status run_tests(struct bench *bench, struct emit *emit, struct cli_progress *progress,
                             struct error *err)
{
    const struct settings *settings = bench->settings;
    uint32_t batch = engine_plan(bench->engine)->options.batch_limit;
    const struct {
        const char *name;
        uint32_t count, at_once;
    } tests[] = { { "pp", settings->prompt, batch }, { "tg", settings->generate, 1 } };
    if (!emit)
        printf("| %-16s | %10s | %8s | %-8s | %8s | %18s |\n| %s | %s | %s | %s | %s | %s |\n",
               "model", "size", "params", "backend", "test", "t/s", "----------------",
               "---------:", "-------:", "--------", "-------:", "-----------------:");
    for (size_t i = 0; i < COUNT_OF(tests); i++) {
        char test[24];
        if (tests[i].count == 0)
            continue;
        snprintf(test, sizeof(test), "%s%u", tests[i].name, tests[i].count);
        TRY(measure(bench, tests[i].count, tests[i].at_once, progress, err));
        cli_progress_end(progress);
        if (emit)
            emit_row(emit, bench, i == 0 ? tests[i].count : 0, i == 0 ? 0 : tests[i].count);
        else
            print_row(bench, test, tests[i].count);
    }
    return STATUS_OK;
}

static enum status run_all(struct bench *bench, struct error *err)
{
    const struct settings *settings = bench->settings;
    if (!settings->model)
        return error_set(err, STATUS_USAGE, "expected --model FILE, found none");
    if (settings->repeats == 0 || settings->repeats > REPEAT_LIMIT)
        return error_set(err, STATUS_USAGE, "--repetitions: expected 1 to %u, found %u",
                         REPEAT_LIMIT, settings->repeats);
    TRY(open_model(bench, err));
    struct emit *emit = NULL;
    if (settings->json)
        TRY(emit_create(EMIT_JSON, &emit, err));
    struct cli_progress progress;
    cli_progress_begin(&progress, bench->invocation, "bench", "runs");
    if (emit)
        emit_list_begin(emit, "results");
    enum status status = run_tests(bench, emit, &progress, err);
    cli_progress_end(&progress);
    if (emit && !status) {
        emit_list_end(emit);
        status = emit_finish(emit, stdout, err);
    }
    emit_destroy(emit);
    return status;
}

static enum cli_exit run_bench(const struct cli_invocation *invocation)
{
    struct error err;
    struct bench *bench = calloc(1, sizeof(*bench));
    if (!bench)
        return CLI_EXIT_CANNOT;
    bench->invocation = invocation;
    bench->settings = invocation->settings;
    enum status status = run_all(bench, &err);
    release(bench);
    free(bench);
    return status ? cli_fail(invocation, &err) : CLI_EXIT_OK;
}

const struct cli_command cli_bench = {
    .name = "bench",
    .operands = "",
    .summary = "measure the speed of a model",
    .description =
        "Measures tokens per second of reading a prompt (pp) and of writing (tg), each repeated, "
        "and "
        "prints the mean and standard deviation in the form of llama-bench, so that both can be "
        "compared. Machines differ from minute to minute: compare only what was measured in turn.",
    .examples = "  greta bench -m model.gguf -p 512 -n 128\n",
    .options = options,
    .option_count = COUNT_OF(options),
    .settings_bytes = sizeof(defaults),
    .defaults = &defaults,
    .run = run_bench,
};
