/* audit_sink.h - prints lines about copies from the device to the host, in the format of the first
 * audits, so that scripts for those logs can read these: GRETA_TRACE_MEMCPY, GCORE_D2H_AUDIT,
 * GRETA_D2H_DEBUG. It observes the device's events; the START line is written before the copy
 * begins. */
#ifndef GRETA_CLI_AUDIT_SINK_H
#define GRETA_CLI_AUDIT_SINK_H

#include "cli/cli.h"
#include "event/event.h"

struct audit_sink;

/* True if the environment asks for a log of copies. */
bool audit_sink_is_wanted(const struct cli_environment *environment);

/* *ret_sink is NULL if the environment asks for nothing. STATUS_IO if the log cannot be written;
 * call it again without a log to write to stderr. */
MUST_CHECK enum status audit_sink_create(const struct cli_environment *environment,
                                         struct audit_sink **ret_sink, struct error *err);
/* Call it after the device was closed. NULL is fine. *ret_complete: every line was written. */
void audit_sink_destroy(struct audit_sink *sink, bool *ret_complete);

/* For NULL, an observer without a function. */
struct event_observer audit_sink_observer(struct audit_sink *sink);

#endif
