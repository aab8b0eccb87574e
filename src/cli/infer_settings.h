/* infer_settings.h - the command line of greta infer. */
#ifndef GRETA_CLI_INFER_SETTINGS_H
#define GRETA_CLI_INFER_SETTINGS_H

#include "cli/cli.h"

struct infer_settings {
    const char *model, *prompt_file, *binary_file, *separator, *device, *expect, *inject;
    const char *kv_type, *key_type, *value_type, *d2h_mode, *gpu_layers, *flash_attention;
    const char *tap_folder, *logits_path, *audit, *flight, *grammar, *json_schema;
    struct cli_text_list prompts, stops, taps;
    int32_t max_tokens, seed, repeat_last_n;
    uint32_t context, batch, micro_batch, threads, batch_threads, parallel, top_k;
    float temperature, top_p, min_p, repeat_penalty, presence_penalty, frequency_penalty;
    bool greedy, ignore_end, special, json, escape, show_prompt;
    bool check_tensors, allow_nan, list_devices, quiet;
    const char *system, *chat_template, *reasoning, *tools;
    bool converse, once; /* a conversation; one answer of a conversation */
    bool map, lock, warmup, verbose; /* these and keep are ignored */
    int32_t keep;
};

extern const struct infer_settings infer_defaults, chat_defaults;

#define INFER_OPTION_COUNT 62
extern const struct cli_option infer_options[INFER_OPTION_COUNT];
#define INFER_REFUSAL_COUNT 17
extern const struct cli_refusal infer_refusals[INFER_REFUSAL_COUNT];

#endif
