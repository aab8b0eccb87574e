/* compare_host.h - greta audit --compare host: which op is wrong on this GPU? */
#ifndef GRETA_CAMPAIGN_COMPARE_HOST_H
#define GRETA_CAMPAIGN_COMPARE_HOST_H

#include "campaign/child.h"
#include "campaign/identity.h"
#include "report/report.h"

#define COMPARE_ROW_LIMIT 64u

struct compare_host {
    struct report_compare report; /* its arrays and texts are here */
    struct report_compare_row rows[COMPARE_ROW_LIMIT], first;
    json_t *lines; /* owner of the texts; NULL */
    char error[512];
};

/* STATUS_REFUSED where the device is the host itself. */
MUST_CHECK enum status compare_host_check(const struct identity *identity, struct error *err);
MUST_CHECK enum status compare_host_run(const struct campaign_options *options,
                                        const struct child_setup *setup,
                                        const struct audit_model *model,
                                        struct compare_host *compare, struct error *err);
void compare_host_release(struct compare_host *compare);

#endif
