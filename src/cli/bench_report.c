/* bench_report.c - see bench_report.h. */
#include "cli/bench_report.h"

#include "cli/file_type.h"
#include "cli/version.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct bench_report {
    enum bench_form form;
    json_t *rows; /* of json */
    bool begun;   /* the header of a table was printed */
};

/* ---- Words and numbers ---------------------------------------------------------------------- */

struct spread {
    double mean, deviation;
};

/* Statistics of the samples, or of numerator / sample if a numerator is given. */
static struct spread spread_of(const struct bench_result *result, double numerator)
{
    uint32_t count = result->sample_count;
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < count; i++) {
        double sample = result->samples_ns[i];
        sum += numerator > 0 ? numerator / sample : sample;
    }
    double mean = sum / count;
    for (uint32_t i = 0; i < count; i++) {
        double sample = result->samples_ns[i];
        double apart = (numerator > 0 ? numerator / sample : sample) - mean;
        squares += apart * apart;
    }
    return (struct spread){ mean, count > 1 ? sqrt(squares / (count - 1)) : 0 };
}

/* Tokens of the test, times 10^9: divided by a sample in nanoseconds they are tokens per second. */
static double tokens_of(const struct bench_result *result)
{
    return 1e9 * ((double)result->test.prompt + (double)result->test.generate) *
           (double)result->budget->options.sequence_limit;
}

/* "llama 1.1B Q4_K - Medium" */
static void name_model(const struct bench_result *result, char *name, size_t bytes)
{
    const char *arch = model_arch_info(result->report->config.arch)->name;
    double billions = (double)result->report->parameter_count / 1e9;
    uint64_t type;
    struct error absent;
    const char *label = gguf_get_u64(result->file, "general.file_type", &type, &absent)
                            ? "unknown"
                            : cli_file_type_name(type);
    if (billions < 0.1)
        snprintf(name, bytes, "%s %.1fM %s", arch, billions * 1e3, label);
    else
        snprintf(name, bytes, "%s %.1fB %s", arch, billions, label);
}

static void name_test(const struct bench_test *test, uint32_t sequences, char *name, size_t bytes)
{
    int used = 0;
    if (sequences > 1)
        used += snprintf(name, bytes, "%" PRIu32 " x ", sequences);
    if (test->prompt)
        used += snprintf(name + used, bytes - (size_t)used, "pp%" PRIu32, test->prompt);
    if (test->generate)
        used += snprintf(name + used, bytes - (size_t)used, "%stg%" PRIu32, test->prompt ? "+" : "",
                         test->generate);
    if (test->depth)
        snprintf(name + used, bytes - (size_t)used, " @ d%" PRIu32, test->depth);
}

static void name_time(int64_t seconds, char *text, size_t bytes)
{
    time_t when = (time_t)seconds;
    struct tm parts;
    text[0] = '\0';
    if (gmtime_r(&when, &parts))
        strftime(text, bytes, "%Y-%m-%dT%H:%M:%SZ", &parts);
}

/* ---- A row as JSON -------------------------------------------------------------------------- */

static json_t *list_samples(const struct bench_result *result, double numerator)
{
    json_t *list = json_array();
    for (uint32_t i = 0; list && i < result->sample_count; i++) {
        double sample = result->samples_ns[i];
        json_array_append_new(list, numerator > 0 ? json_real(numerator / sample)
                                                  : json_integer((json_int_t)sample));
    }
    return list;
}

/* The keys and their order are those of llama-bench, as far as greta has these values. */
static json_t *make_row(const struct bench_result *result)
{
    struct spread time = spread_of(result, 0), speed = spread_of(result, tokens_of(result));
    const struct engine_options *options = &result->budget->options;
    bool on_host = strcmp(result->device->kind, "host") == 0;
    const char *kv_type = dtype_name(options->kv_dtype);
    char model[96], when[32], kv_lower[16];
    name_model(result, model, sizeof(model));
    name_time(result->test_time, when, sizeof(when));
    size_t i = 0;
    for (; kv_type[i] && i + 1 < sizeof(kv_lower); i++)
        kv_lower[i] = (char)(kv_type[i] >= 'A' && kv_type[i] <= 'Z' ? kv_type[i] + 32 : kv_type[i]);
    kv_lower[i] = '\0';
    json_t *row = json_pack(
        "{s:s, s:i, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:i, s:i, s:i, s:s, s:s, s:i, s:b, s:b, "
        "s:i, s:i, s:i, s:s, s:I, s:I, s:f, s:f, s:o, s:o}",
        "build_commit", "greta-" GRETA_VERSION, "build_number", 0, "cpu_info",
        on_host ? result->device->name : "", "gpu_info", on_host ? "" : result->device->name,
        "backends", result->device->kind, "model_filename", result->model_path, "model_type", model,
        "model_size", (json_int_t)result->report->weight_bytes, "model_n_params",
        (json_int_t)result->report->parameter_count, "n_batch", (int)result->batch, "n_ubatch",
        (int)options->batch_limit, "n_threads", (int)result->threads, "type_k", kv_lower, "type_v",
        kv_lower, "n_gpu_layers", on_host ? 0 : (int)result->report->config.block_count,
        "flash_attn", 1, "use_mmap", 1, "n_prompt", (int)result->test.prompt, "n_gen",
        (int)result->test.generate, "n_depth", (int)result->test.depth, "test_time", when, "avg_ns",
        (json_int_t)time.mean, "stddev_ns", (json_int_t)time.deviation, "avg_ts", speed.mean,
        "stddev_ts", speed.deviation, "samples_ns", list_samples(result, 0), "samples_ts",
        list_samples(result, tokens_of(result)));
    if (row && options->sequence_limit > 1) /* llama-bench has no such column */
        json_object_set_new(row, "n_parallel", json_integer(options->sequence_limit));
    return row;
}

/* ---- Tables --------------------------------------------------------------------------------- */

static void print_md(struct bench_report *report, const struct bench_result *result)
{
    struct spread speed = spread_of(result, tokens_of(result));
    char model[96], test[48], size[32], parameters[32], rate[48];
    double mebibytes = (double)result->report->weight_bytes / 1048576;
    double millions = (double)result->report->parameter_count / 1e6;
    name_model(result, model, sizeof(model));
    name_test(&result->test, result->budget->options.sequence_limit, test, sizeof(test));
    snprintf(size, sizeof(size), "%.2f %s", mebibytes < 1024 ? mebibytes : mebibytes / 1024,
             mebibytes < 1024 ? "MiB" : "GiB");
    snprintf(parameters, sizeof(parameters), "%.2f %s",
             millions < 1000 ? millions : millions / 1000, millions < 1000 ? "M" : "B");
    snprintf(rate, sizeof(rate), "%.2f ± %.2f", speed.mean, speed.deviation);
    if (!report->begun) {
        printf("| %-30s | %10s | %10s | %-10s | %7s | %15s | %20s |\n", "model", "size", "params",
               "backend", "threads", "test", "t/s");
        printf("| %.30s | %.9s: | %.9s: | %.10s | %.6s: | %.14s: | %.19s: |\n",
               "------------------------------", "----------", "----------", "----------",
               "----------", "---------------", "--------------------");
    }
    report->begun = true;
    /* The sign takes two bytes and one column. */
    printf("| %-30s | %10s | %10s | %-10s | %7" PRIu32 " | %15s | %21s |\n", model, size,
           parameters, result->device->kind, result->threads, test, rate);
}

/* A field of a comma-separated line, quoted as llama-bench does. */
static void print_field(const json_t *value, bool first)
{
    char *text = json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY);
    const char *shown = text ? text : json_string_value(value);
    printf("%s\"", first ? "" : ",");
    for (; shown && *shown; shown++)
        printf(*shown == '"' ? "\"\"" : "%c", *shown);
    putchar('"');
    free(text);
}

static void print_csv(struct bench_report *report, json_t *row)
{
    const char *key;
    json_t *value;
    json_object_del(row, "samples_ns");
    json_object_del(row, "samples_ts");
    const char *separator = "";
    json_object_foreach (row, key, value) {
        if (!report->begun)
            printf("%s%s", separator, key);
        separator = ",";
    }
    if (!report->begun)
        putchar('\n');
    report->begun = true;
    bool first = true;
    json_object_foreach (row, key, value) {
        print_field(value, first);
        first = false;
    }
    putchar('\n');
}

/* ---- All of it ------------------------------------------------------------------------------ */

enum status bench_report_create(enum bench_form form, struct bench_report **ret_report,
                                struct error *err)
{
    struct bench_report *report = calloc(1, sizeof(*report));
    if (report)
        *report = (struct bench_report){ .form = form, .rows = json_array() };
    if (!report || !report->rows) {
        bench_report_destroy(report);
        return error_set(err, STATUS_NO_MEMORY, "no memory for results");
    }
    *ret_report = report;
    return STATUS_OK;
}

enum status bench_report_add(struct bench_report *report, const struct bench_result *result,
                             struct error *err)
{
    json_t *row = report->form == BENCH_MD ? NULL : make_row(result);
    if (report->form == BENCH_MD)
        print_md(report, result);
    else if (!row)
        return error_set(err, STATUS_NO_MEMORY, "no memory for results");
    else if (report->form == BENCH_JSON)
        json_array_append(report->rows, row);
    else if (report->form == BENCH_CSV)
        print_csv(report, row);
    else {
        json_dumpf(row, stdout, JSON_REAL_PRECISION(9));
        putchar('\n');
    }
    json_decref(row);
    fflush(stdout);
    return STATUS_OK;
}

enum status bench_report_finish(struct bench_report *report, json_t *audit, struct error *err)
{
    if (report->form == BENCH_JSON) {
        size_t index;
        json_t *row;
        json_array_foreach (report->rows, index, row)
            if (audit)
                json_object_set(row, "audit", audit);
        json_dumpf(report->rows, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
        putchar('\n');
    } else if (report->form == BENCH_JSONL && audit) {
        json_t *line = json_pack("{s:O}", "audit", audit);
        json_dumpf(line, stdout, JSON_REAL_PRECISION(9));
        putchar('\n');
        json_decref(line);
    } else if (report->form == BENCH_MD) {
        printf("\nbuild: greta %s\n", GRETA_VERSION);
    }
    if (fflush(stdout) != 0 || ferror(stdout))
        return error_set(err, STATUS_IO, "cannot write to standard output");
    return STATUS_OK;
}

void bench_report_destroy(struct bench_report *report)
{
    if (report)
        json_decref(report->rows);
    free(report);
}
