/* narrow.h - finds out which of several candidates it was by running the row again with a wait
 * after each launch, so that only one launch is in flight when the fault comes or between two
 * checks of all canaries. And whether a bad index was brought by a copy, by running the row again
 * with every copy hashed. */
#ifndef GRETA_CAMPAIGN_NARROW_H
#define GRETA_CAMPAIGN_NARROW_H

#include "campaign/campaign.h"
#include "campaign/child.h"
#include "report/report.h"

struct narrowing {
    struct analyzer *analyzer; /* of the rerun that singled one call out; NULL: none did */
    char flight[40];           /* its recording, relative to the folder */
    bool is_copy;              /* its root is the cause of what was the row's root */
};

/* The first finding that leaves several launches, where none is the root cause; NULL: none. */
const struct finding *narrow_find(const struct analysis *analysis);
/* The root cause, if it is an index past its bound, and copies were not hashed: a copy may have
 * brought it. NULL: no. */
const struct finding *narrow_find_index(const struct analysis *analysis);
/* base: the job of the row with that finding. *ret_made: what came of it, for the report. */
MUST_CHECK enum status narrow_down(const struct campaign_options *options,
                                   const struct child_setup *setup, const struct job *base,
                                   const struct finding *several, struct narrowing *narrowing,
                                   struct report_intervention *ret_made, struct error *err);
MUST_CHECK enum status narrow_copies(const struct campaign_options *options,
                                     const struct child_setup *setup, const struct job *base,
                                     const struct finding *index, struct narrowing *narrowing,
                                     struct report_intervention *ret_made, struct error *err);
void narrowing_release(struct narrowing *narrowing);

#endif
