/* commands.c - the table of commands, in the order of --help. */
#include "cli/cli.h"

#include <string.h>

static const struct cli_command *const commands[] = {
    &cli_infer,      &cli_chat,     &cli_audit,      &cli_trace,     &cli_flight,
    &cli_coredump,   &cli_eval,     &cli_bench,      &cli_diff_taps, &cli_inspect,
    &cli_synth,      &cli_quantize, &cli_devices,    &cli_render,    &cli_tokenize,
    &cli_detokenize, &cli_manual,   &cli_completion, &cli_help,
};

size_t cli_command_count(void)
{
    return COUNT_OF(commands);
}

const struct cli_command *cli_command_at(size_t index)
{
    ASSERT(index < COUNT_OF(commands));
    return commands[index];
}

const struct cli_command *cli_command_find(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(commands); i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}
