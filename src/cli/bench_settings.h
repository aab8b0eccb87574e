/* bench_settings.h - the command line of greta bench. */
#ifndef GRETA_CLI_BENCH_SETTINGS_H
#define GRETA_CLI_BENCH_SETTINGS_H

#include "cli/cli.h"

struct bench_settings {
    const char *model, *device, *kv_type, *key_type, *value_type, *form, *gpu_layers, *flash;
    const char *prompts, *generates, *depths, *audit, *flight, *inject;
    struct cli_text_list pairs;
    uint32_t repeats, threads, batch, micro_batch, sequences;
    bool json, no_warmup, list_devices, audit_cost;
};

extern const struct bench_settings bench_defaults;

#define BENCH_OPTION_COUNT 24
extern const struct cli_option bench_options[BENCH_OPTION_COUNT];

#endif
