/* colour.h - colours of statuses, verdicts, errors and headings. run.c decides once whether colours
 * are used: --color, NO_COLOR, TERM, and whether the output is a terminal. */
#ifndef GRETA_CLI_COLOUR_H
#define GRETA_CLI_COLOUR_H

#include "base/status.h"

#include <stdbool.h>
#include <stdio.h>

enum cli_colour {
    CLI_COLOUR_GOOD,
    CLI_COLOUR_BAD,
    CLI_COLOUR_UNSURE,
    CLI_COLOUR_HEADING,
    CLI_COLOUR_COUNT
};

/* Escapes to put around text; "" where `on` is false. */
const char *cli_colour_begin(bool on, enum cli_colour colour);
const char *cli_colour_end(bool on);

/* Writes text; if `on`, statuses and verdicts in it are coloured. */
void cli_put_coloured(FILE *out, bool on, const char *text);
/* The same for a text whose first line is a heading. */
void cli_put_table(FILE *out, bool on, const char *text);

#endif
