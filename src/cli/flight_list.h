/* flight_list.h - lists the recordings of a folder, one per row. */
#ifndef GRETA_CLI_FLIGHT_LIST_H
#define GRETA_CLI_FLIGHT_LIST_H

#include "cli/cli.h"

/* Lists files whose names end in .flight or .flight.zst, the oldest first: when and by which
 * command they were made, how they ended, what the analysis finds. A file that cannot be read has a
 * row that says why. */
MUST_CHECK enum status flight_list(struct emit *emit, const struct cli_invocation *invocation,
                                   const char *folder, struct error *err);

#endif
