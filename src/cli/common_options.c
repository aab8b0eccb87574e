/* common_options.c - the options of every command. */
#include "cli/cli.h"

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
