/* infer_run.h - the state of greta infer, and how it is opened and released. */
#ifndef GRETA_CLI_INFER_RUN_H
#define GRETA_CLI_INFER_RUN_H

#include "cli/audit_options.h"
#include "cli/cli.h"
#include "cli/infer_capture.h"
#include "cli/infer_grammar.h"
#include "cli/infer_prompts.h"
#include "cli/infer_report.h"
#include "cli/infer_settings.h"

#include "inject/inject.h"
#include "session/session.h"

#include <pthread.h>

/* The device, opened by a thread of its own while prompts become tokens: a GPU's driver and a large
 * vocabulary take their time, and neither needs the other. */
struct infer_opening {
    char name[32];
    struct device_options options;
    struct inject_spec spec; /* where a fault is planted */
    pthread_t thread;
    bool started; /* the thread must be joined */
    enum status status;
    struct error err;
};

/* Everything a run holds, released together. */
struct infer_run {
    const struct cli_invocation *invocation;
    const struct infer_settings *settings;
    struct gguf_file *file;
    struct model_report report;
    struct tokenizer *tokenizer;
    struct infer_prompts texts;
    struct tokenizer_ids *ids;    /* of each text */
    struct infer_result *results; /* count */
    size_t count;                 /* prompts to run: texts, or copies of one */
    struct text stops[CLI_LIST_LIMIT];
    const char *stop_texts[CLI_LIST_LIMIT];
    struct infer_grammar grammar;
    struct cli_audit *audit;
    struct infer_opening opening;
    struct device *device;
    bool stopped;          /* infer_run_stop was called */
    struct inject *inject; /* NULL: no fault is planted; ends with the device */
    struct ops ops;
    struct engine *engine;
    struct infer_capture capture;
    struct infer_output output;
    struct cli_progress progress;
    uint64_t start_ns;
};

/* Prepares a run. Faults of the request are found before the model is read, all others before the
 * first token. Release *run whatever the outcome. */
MUST_CHECK enum status infer_run_prepare(struct infer_run *run, struct error *err);
/* The same for a conversation: without prompts, except for one that begins it. */
MUST_CHECK enum status infer_run_prepare_chat(struct infer_run *run, struct error *err);
/* Nothing more is computed: closes engine and device, and finishes the audit. */
void infer_run_stop(struct infer_run *run);
/* Stops, if that was not done, and releases the rest. */
void infer_run_release(struct infer_run *run);

/* The tokens of a prompt, 0 to count - 1. */
const struct tokenizer_ids *infer_prompt_ids(const struct infer_run *run, size_t prompt);

/* What greta infer does. */
enum cli_exit infer_main(const struct cli_invocation *invocation);
uint64_t infer_choose_seed(const struct infer_settings *settings);

/* context: upper limit of repeat_last_n. */
struct sampler_settings infer_sampling(const struct infer_settings *settings, uint32_t context,
                                       uint64_t seed);

#endif
