/* infer_report.h - what greta infer says of a run: a line for each token, and the end. */
#ifndef GRETA_CLI_INFER_REPORT_H
#define GRETA_CLI_INFER_REPORT_H

#include "generate/generate.h"

struct infer_summary {
    bool json;
    uint64_t seed;
    uint64_t load_ns, total_ns;
    uint64_t peak_bytes; /* of buffers on the device */
    const struct engine_plan *plan;
    struct generate_result result;
    struct generate_timing timing;
};

/* A line of JSON on standard output. */
void infer_print_token(const struct generate_event *event);

/* Timings, STATUS and memory on standard error; with json also a last line on standard output. err:
 * why it failed, or NULL. */
void infer_print_summary(const struct infer_summary *summary, const struct error *err);

#endif
