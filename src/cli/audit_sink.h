/* audit_sink.h - lines on copies from the device to the host, in the words and fields of the first
 * audits, so that what reads those logs reads these: GRETA_TRACE_MEMCPY, GCORE_D2H_AUDIT,
 * GRETA_D2H_DEBUG. An observer of the device's events; a START is on its way to the file before the
 * copy is. */
#ifndef GRETA_CLI_AUDIT_SINK_H
#define GRETA_CLI_AUDIT_SINK_H

#include "cli/cli.h"
#include "event/event.h"

struct audit_sink;

/* Whether the environment asks for a log of copies. */
bool audit_sink_is_wanted(const struct cli_environment *environment);

/* *ret_sink is NULL where the environment asks for nothing. STATUS_IO where the log cannot be
 * written; the lines go to stderr then if it is called again without one. */
MUST_CHECK enum status audit_sink_create(const struct cli_environment *environment,
                                         struct audit_sink **ret_sink, struct error *err);
/* When the device is closed. NULL is fine. *ret_complete: every line was written. */
void audit_sink_destroy(struct audit_sink *sink, bool *ret_complete);

/* NULL gives nobody. */
struct event_observer audit_sink_observer(struct audit_sink *sink);

#endif
