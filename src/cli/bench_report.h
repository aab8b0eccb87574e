/* bench_report.h - prints results of greta bench in the formats of llama-bench, so that both can be
 * compared. */
#ifndef GRETA_CLI_BENCH_REPORT_H
#define GRETA_CLI_BENCH_REPORT_H

#include "cli/bench_tests.h"

#include "engine/engine.h"

#include <jansson.h>

struct bench_result {
    struct bench_test test;
    const char *model_path;
    const struct gguf_file *file;
    const struct model_report *report;
    const struct device_info *device;
    const struct engine_budget *budget;
    uint32_t batch;   /* as requested; the engine's budget has the actual one */
    uint32_t threads; /* in use */
    const double *samples_ns;
    uint32_t sample_count;
    int64_t test_time; /* seconds since 1970, when it began */
};

enum bench_form { BENCH_MD, BENCH_JSON, BENCH_JSONL, BENCH_CSV, BENCH_FORM_COUNT };

/* "md json jsonl csv", in the order of the enum. */
#define BENCH_FORMS "md json jsonl csv"

struct bench_report;

/* Prints to standard output: rows of md, jsonl and csv as they come, json at the end. */
MUST_CHECK enum status bench_report_create(enum bench_form form, struct bench_report **ret_report,
                                           struct error *err);
MUST_CHECK enum status bench_report_add(struct bench_report *report,
                                        const struct bench_result *result, struct error *err);
/* audit: of the whole run, for the rows of json and the last line of jsonl; borrowed, may be NULL.
 */
MUST_CHECK enum status bench_report_finish(struct bench_report *report, json_t *audit,
                                           struct error *err);
void bench_report_destroy(struct bench_report *report); /* NULL is fine */

#endif
