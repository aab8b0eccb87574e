/* audit_options.h - --audit and --flight of the commands that run a model: the device options of a
 * level, the flight file, live analysis, and its findings. A recording that cannot be made as
 * requested is refused before the run. */
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
struct inject;

/* level NULL: off, or log if there is a flight file. Fills options for the device, which must be
 * closed before cli_audit_finish. device_name is written to the file. Fails if the recording cannot
 * be written, or if a file of that name exists. */
MUST_CHECK enum status cli_audit_open(const struct cli_invocation *invocation, const char *level,
                                      const char *flight_path, const char *device_name,
                                      struct device_options *options, struct cli_audit **ret_audit,
                                      struct error *err);
/* Ends recording and analysis; the device must be closed. NULL is fine, and so is a second call. */
void cli_audit_finish(struct cli_audit *audit);

/* After cli_audit_finish; NULL is an audit at level off. */
enum cli_audit_answer {
    CLI_AUDIT_NOT_ASKED, /* off */
    CLI_AUDIT_NOTHING,   /* nothing was found */
    CLI_AUDIT_FINDINGS,
    CLI_AUDIT_UNKNOWN, /* the analysis failed, or what it was to find was never there */
};
enum cli_audit_answer cli_audit_answer(const struct cli_audit *audit);
/* Why the answer is CLI_AUDIT_UNKNOWN. */
const char *cli_audit_unknown_reason(const struct cli_audit *audit);
/* Call it before the device is closed. Warns if no call matched spec: the fault was never planted,
 * and that nothing is found says nothing. audit and inject may be NULL. */
void cli_audit_check_planted(const struct cli_invocation *invocation, struct cli_audit *audit,
                             const struct inject *inject, const char *spec);
size_t cli_audit_finding_count(const struct cli_audit *audit);
/* Prints level, events, findings and the path of the recording to stderr; nothing at level off. */
void cli_audit_print(struct cli_audit *audit);
/* The same as a JSON object that the caller owns; NULL at level off, or without memory. */
json_t *cli_audit_json(const struct cli_audit *audit);

/* Finishes and prints if that was not done. NULL is fine. */
void cli_audit_close(struct cli_audit *audit);
/* The same without printing, and the flight file is removed: for measuring. */
void cli_audit_discard(struct cli_audit *audit);

/* --inject help: prints the faults, one per line. */
enum cli_exit cli_list_faults(void);

#endif
