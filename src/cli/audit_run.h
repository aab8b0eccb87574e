/* audit_run.h - runs what a command line of greta audit asks for, and prints its result. */
#ifndef GRETA_CLI_AUDIT_RUN_H
#define GRETA_CLI_AUDIT_RUN_H

#include "campaign/campaign.h"
#include "cli/cli.h"

enum audit_run_kind {
    AUDIT_RUN_MATRIX,
    AUDIT_RUN_SELF_TEST,
    AUDIT_RUN_TRANSFERS,
    AUDIT_RUN_COMPARE
};

struct audit_run {
    const struct cli_invocation *invocation;
    enum audit_run_kind kind;
    uint32_t copies; /* on each path; AUDIT_RUN_TRANSFERS only */
    bool json;
    struct campaign_options campaign; /* audit_run fills the watcher in */
};

/* The exit code of greta audit. */
enum cli_exit audit_run(struct audit_run *run);

/* Prints why an audit could not run. The exit code is never 1: that would mean that the audited run
 * is faulty. */
enum cli_exit audit_run_fail(const struct cli_invocation *invocation, const struct error *err);

#endif
