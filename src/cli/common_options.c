/* common_options.c - the options of every command. */
#include "cli/cli.h"

#include <string.h>

#define AT(field) offsetof(struct cli_common, field)

const struct cli_option cli_common_options[CLI_COMMON_OPTION_COUNT] = {
    { "--color|--colour", "WHEN", CLI_TEXT, AT(colour),
      "colours (default: auto, on a terminal unless NO_COLOR is set or TERM is dumb); without "
      "WHEN: "
      "always",
      CLI_COLOUR_VALUES, false },
    { "--quiet|-q", NULL, CLI_FLAG, AT(quiet),
      "no progress and no summary on standard error; errors and warnings stay", NULL, false },
};

/* The command has an option of that name itself, with another meaning. */
static bool is_replaced(const struct cli_command *command, const struct cli_option *common)
{
    for (size_t i = 0; i < command->option_count; i++)
        if (strcmp(command->options[i].names, common->names) == 0)
            return true;
    return false;
}

const struct cli_option *cli_command_option(const struct cli_command *command, size_t index)
{
    if (index < command->option_count)
        return &command->options[index];
    index -= command->option_count;
    for (size_t i = 0; i < CLI_COMMON_OPTION_COUNT; i++)
        if (!is_replaced(command, &cli_common_options[i]) && index-- == 0)
            return &cli_common_options[i];
    return NULL;
}
