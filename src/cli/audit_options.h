/* audit_options.h - --audit and --flight of the commands that run a model: what a level asks of the
 * device, the flight file, live analysis, and what it found. A place that cannot be written does
 * not stop the run: what is missing is said. */
#ifndef GRETA_CLI_AUDIT_OPTIONS_H
#define GRETA_CLI_AUDIT_OPTIONS_H

#include "analyze/analyze.h"
#include "cli/cli.h"
#include "device/device.h"

#define CLI_AUDIT_LEVELS "off log guard verify"
#define CLI_AUDIT_HELP                                                                             \
    "how closely the device is watched (default: off): log records every call and analyses it, "   \
    "guard adds guards and poison, verify hashes every copy"
#define CLI_FLIGHT_HELP "where to record (default with --audit: greta.flight)"

struct cli_audit;

/* level NULL: off, or log where there is a flight file. Fills options for the device, which must
 * be closed before cli_audit_close. device_name: for the file. */
MUST_CHECK enum status cli_audit_open(const struct cli_invocation *invocation, const char *level,
                                      const char *flight_path, const char *device_name,
                                      struct device_options *options, struct cli_audit **ret_audit,
                                      struct error *err);
/* Says what was found and what is missing, on stderr. NULL is fine. */
void cli_audit_close(struct cli_audit *audit);
/* The same without a word, and the flight file is removed: for measuring. */
void cli_audit_discard(struct cli_audit *audit);
/* Why nothing is recorded or analysed; NULL if all is well. */
const char *cli_audit_missing(const struct cli_audit *audit);

/* --inject help: the faults, one a line. */
enum cli_exit cli_list_faults(void);

#endif
