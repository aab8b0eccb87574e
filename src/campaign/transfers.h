/* transfers.h - every copy path of a device, in children: one for each kind of staging memory and
 * each way to order copies. */
#ifndef GRETA_CAMPAIGN_TRANSFERS_H
#define GRETA_CAMPAIGN_TRANSFERS_H

#include "campaign/child.h"
#include "campaign/identity.h"
#include "report/report.h"

#define TRANSFERS_PATH_LIMIT 96u
#define TRANSFERS_CHILD_LIMIT 8u

struct transfers_report {
    struct report_transfer paths[TRANSFERS_PATH_LIMIT];
    size_t count;
    char names[TRANSFERS_PATH_LIMIT][96];
    char notes[TRANSFERS_PATH_LIMIT][160];
    struct analyzer *analyzers[TRANSFERS_CHILD_LIMIT]; /* of what the children recorded; owned */
    size_t analyzer_count;
    uint64_t copies, mismatches;    /* of all paths */
    uint64_t runs_done, runs_total; /* for the watcher */
    struct report_planting planting;
    bool failed;     /* a child died or failed */
    char error[512]; /* its first error; "" */
};

/* quick: two ways to order copies instead of three, no timing and no weights: what every audit
 * does. copies: of each path. */
MUST_CHECK enum status transfers_run(const struct campaign_options *options,
                                     const struct child_setup *setup,
                                     const struct audit_model *model, uint32_t copies, bool quick,
                                     struct transfers_report *report, struct error *err);
void transfers_release(struct transfers_report *report); /* an empty struct is fine */

#endif
