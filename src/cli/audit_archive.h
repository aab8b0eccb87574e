/* audit_archive.h - greta audit list, show and prune. */
#ifndef GRETA_CLI_AUDIT_ARCHIVE_H
#define GRETA_CLI_AUDIT_ARCHIVE_H

#include "cli/cli.h"

struct audit_archive_settings {
    uint32_t keep; /* CAMPAIGN_KEEP_ALL: not given */
    uint32_t older_days;
    bool unfinished, dry_run;
};

/* The first operand is list, show or prune. */
bool audit_archive_is_asked(const struct cli_invocation *invocation);
MUST_CHECK enum status audit_archive_run(const struct cli_invocation *invocation,
                                         const char *artifacts, bool json,
                                         const struct audit_archive_settings *settings,
                                         struct error *err);

#endif
