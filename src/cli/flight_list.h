/* flight_list.h - the recordings of a folder, one a row. */
#ifndef GRETA_CLI_FLIGHT_LIST_H
#define GRETA_CLI_FLIGHT_LIST_H

#include "cli/cli.h"

/* Files whose names end in .flight or .flight.zst, the oldest first: when and by what they were
 * made, how they ended, what the analysis finds. One that cannot be read is a row that says why. */
MUST_CHECK enum status flight_list(struct emit *emit, const struct cli_invocation *invocation,
                                   const char *folder, struct error *err);

#endif
