/* colour.h - colours of statuses, verdicts, errors and headings. Whether there are any is decided
 * once, in run.c: --color, NO_COLOR, TERM, and whether a terminal is there. */
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

/* Writes text; where `on`, words of statuses and verdicts have their colours. */
void cli_put_coloured(FILE *out, bool on, const char *text);
/* The same of a text whose first line is a heading. */
void cli_put_table(FILE *out, bool on, const char *text);

#endif
