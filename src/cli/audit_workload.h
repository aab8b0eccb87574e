/* audit_workload.h - the options of greta infer after -- on the command line of greta audit, as the
 * workload of an audit. */
#ifndef GRETA_CLI_AUDIT_WORKLOAD_H
#define GRETA_CLI_AUDIT_WORKLOAD_H

#include "base/text.h"
#include "campaign/campaign.h"
#include "cli/cli.h"
#include "cli/default_model.h"
#include "cli/infer_settings.h"
#include "device/all/all.h"

/* Words after --. */
#define AUDIT_WORKLOAD_WORDS 64

/* Owns the memory that the campaign's options borrow. */
struct audit_workload {
    struct infer_settings settings;
    struct text prompt;
    struct default_model default_model;
    char device[ALL_NAME_BYTES];
};

void audit_workload_init(struct audit_workload *workload);
void audit_workload_release(struct audit_workload *workload);

/* From the audit's own command line; NULL: not given there. */
struct audit_workload_line {
    const char *model, *prompt, *prompt_file;
};

/* Parses the words with the option table of greta infer, and reads the prompt. */
MUST_CHECK enum status audit_workload_read(struct audit_workload *workload,
                                           const struct cli_invocation *invocation,
                                           const struct audit_workload_line *line,
                                           struct campaign_options *options, struct error *err);

/* What an audit records is JSON: a text option that is not UTF-8 is refused. */
MUST_CHECK enum status audit_check_texts(const struct cli_option *options, size_t count,
                                         const void *settings, struct error *err);

#endif
