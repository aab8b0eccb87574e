/* bench_cost.h - greta bench --audit-cost: what each audit level adds to a decode step. */
#ifndef GRETA_CLI_BENCH_COST_H
#define GRETA_CLI_BENCH_COST_H

#include "cli/cli.h"
#include "engine/engine.h"

#define BENCH_COST_ROUND_LIMIT 1000u

struct bench_cost_request {
    const struct cli_invocation *invocation;
    const struct gguf_file *file;
    const struct model_report *report;
    struct engine_options engine;
    const char *device;
    uint32_t threads; /* 0: all processors */
    uint32_t tokens;  /* decoded in a run */
    uint32_t rounds;  /* runs of each level; 1 to BENCH_COST_ROUND_LIMIT */
    bool json;
};

/* Decodes without audit, at log and at guard, in turn, round by round. Prints medians, what each
 * level adds to the run without audit, and the spread. */
MUST_CHECK enum status bench_cost_run(const struct bench_cost_request *request, struct error *err);

#endif
