/* infer_report.h - what greta infer prints: the text of each prompt, whole and in order, or a line
 * of JSON for each token; then the summary of the run. */
#ifndef GRETA_CLI_INFER_REPORT_H
#define GRETA_CLI_INFER_REPORT_H

#include "cli/audit_options.h"
#include "session/session.h"

/* Text as it comes. With several prompts, the one whose turn it is is shown at once; the text of
 * the others is held until their turn. */
struct infer_output {
    bool json;
    bool quiet;   /* nothing on standard error between prompts */
    size_t count; /* prompts */
    size_t turn;
    struct text *held; /* count; owned */
    bool *ended;       /* count; owned */
    bool headed;       /* the line that announces the prompt at its turn was written */
};

MUST_CHECK enum status infer_output_open(struct infer_output *output, bool json, size_t count,
                                         struct error *err);
/* Takes a token or an end; writes what can be shown now to standard output. */
void infer_output_event(struct infer_output *output, const struct session_event *event);
/* Nothing more comes: shows the rest. STATUS_NO_MEMORY if some text was lost. */
MUST_CHECK enum status infer_output_finish(struct infer_output *output, struct error *err);
void infer_output_release(struct infer_output *output);

/* The result of a prompt. */
struct infer_result {
    enum session_reason reason; /* SESSION_RUNNING: it was interrupted */
    uint32_t token_count;       /* written */
    uint32_t read_count;        /* tokens of the prompt */
};

/* How a run ended: its STATUS, the same on standard error and in JSON, and its exit status. */
enum infer_ending {
    INFER_OK,
    INFER_FAILED,       /* the text is not there, or not to be trusted */
    INFER_INTERRUPTED,  /* by Ctrl-C or SIGTERM: what was written stays */
    INFER_FINDINGS,     /* the text is there, and the audit found something */
    INFER_INCONCLUSIVE, /* the text is there, and the audit could not be finished */
    INFER_ENDING_COUNT
};

struct infer_summary {
    const struct cli_invocation *invocation;
    bool json;
    uint64_t seed; /* of the first prompt; the others follow */
    uint64_t load_ns, total_ns;
    uint64_t peak_bytes; /* of buffers on the device */
    struct engine_budget budget;
    struct cli_audit *audit; /* finished, or NULL */
    const struct infer_result *results;
    size_t count; /* of results */
    struct session_timing timing;
};

/* err: why it failed, or NULL. */
enum infer_ending infer_ending_of(const struct infer_summary *summary, const struct error *err);
enum cli_exit infer_exit_of(enum infer_ending ending, const struct error *err);

/* Prints timings, STATUS, memory and the audit's findings on standard error (with --quiet only
 * STATUS and findings of a run that is not OK); with json also a last line on standard output. err:
 * why it failed, or NULL. */
void infer_print_summary(const struct infer_summary *summary, const struct error *err);

#endif
