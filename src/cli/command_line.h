/* command_line.h - the command line as it was typed, for reports. */
#ifndef GRETA_CLI_COMMAND_LINE_H
#define GRETA_CLI_COMMAND_LINE_H

#include "cli/cli.h"

/* Puts words with spaces in quotes; adds to text. */
void cli_add_command_line(struct text *text, const struct cli_environment *environment);

#endif
