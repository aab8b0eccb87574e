/* flight_show.h - the summary of a recording: the command that made it, how it ended, where every
 * stream stopped, what the analysis finds. */
#ifndef GRETA_CLI_FLIGHT_SHOW_H
#define GRETA_CLI_FLIGHT_SHOW_H

#include "base/emit.h"
#include "event/flight.h"

MUST_CHECK enum status flight_show(struct emit *emit, const char *path,
                                   const struct flight_reader *reader, struct error *err);

#endif
