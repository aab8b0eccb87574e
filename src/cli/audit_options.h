/* audit_options.h - --audit and --flight of the commands that run a model: what a level asks of the
 * device, the flight file, live analysis, and what it found. What cannot be recorded as asked is
 * refused before the run. */
#ifndef GRETA_CLI_AUDIT_OPTIONS_H
#define GRETA_CLI_AUDIT_OPTIONS_H

#include "analyze/analyze.h"
#include "cli/cli.h"
#include "device/device.h"
#include "device/options.h"

#include <jansson.h>

#define CLI_AUDIT_LEVELS "off log guard verify"
#define CLI_AUDIT_HELP                                                                             \
    "how closely the device is watched (default: off): log records every call and analyses it, "   \
    "guard adds guards and poison, verify hashes every copy; findings give exit status 1"
#define CLI_FLIGHT_HELP                                                                            \
    "new file to record in (default with --audit: greta-DATE-TIME-PROCESS.flight); one that "      \
    "exists is never overwritten"

struct cli_audit;

/* level NULL: off, or log where there is a flight file. Fills options for the device, which must
 * be closed before cli_audit_finish. device_name: for the file. Fails where the recording cannot
 * be written, or a file of that name exists. */
MUST_CHECK enum status cli_audit_open(const struct cli_invocation *invocation, const char *level,
                                      const char *flight_path, const char *device_name,
                                      struct device_options *options, struct cli_audit **ret_audit,
                                      struct error *err);
/* The device is closed: ends recording and analysis. NULL is fine, and so is a second time. */
void cli_audit_finish(struct cli_audit *audit);

/* After cli_audit_finish; NULL is an audit at level off. */
enum cli_audit_answer {
    CLI_AUDIT_NOT_ASKED, /* off */
    CLI_AUDIT_NOTHING,   /* nothing was found */
    CLI_AUDIT_FINDINGS,
    CLI_AUDIT_UNKNOWN, /* the analysis failed */
};
enum cli_audit_answer cli_audit_answer(const struct cli_audit *audit);
size_t cli_audit_finding_count(const struct cli_audit *audit);
/* Level, events, findings and where the recording is, on stderr; nothing at level off. */
void cli_audit_print(struct cli_audit *audit);
/* The same as an object of the caller's; NULL at level off, or without memory. */
json_t *cli_audit_json(const struct cli_audit *audit);

/* Finishes and prints what was not. NULL is fine. */
void cli_audit_close(struct cli_audit *audit);
/* The same without a word, and the flight file is removed: for measuring. */
void cli_audit_discard(struct cli_audit *audit);

/* --inject help: the faults, one a line. */
enum cli_exit cli_list_faults(void);

#endif
