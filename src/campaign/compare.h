/* compare.h - an audit compared with earlier ones: the baseline, and how the diagnosis evolved. */
#ifndef GRETA_CAMPAIGN_COMPARE_H
#define GRETA_CAMPAIGN_COMPARE_H

#include "report/earlier.h"
#include "report/report.h"

/* The audit to compare with, and the differences from it. */
struct comparison {
    bool open;
    struct report_summary summary;
    struct report_difference *differences; /* owned */
    size_t difference_count;
    struct report_timing *timings; /* owned */
    size_t timing_count;
    struct text *texts; /* owned: sentences of our own findings */
    size_t text_count;
};

/* Reads FOLDER/summary.json; a clear error for a damaged one. */
MUST_CHECK enum status comparison_open(struct comparison *comparison, const char *folder,
                                       struct error *err);
/* Fills differences and timings from the facts, and puts both into the facts. */
MUST_CHECK enum status comparison_make(struct comparison *comparison, struct report_facts *facts,
                                       struct error *err);
void comparison_release(struct comparison *comparison); /* an empty struct is fine */

/* Finished audits of the same workload below the artifacts folder, oldest first; damaged ones are
 * left out. */
struct history {
    struct report_summary *summaries; /* owned */
    struct report_earlier *earlier;   /* owned; borrows the summaries' texts */
    size_t count;
};
void history_open(struct history *history, const char *artifacts, const char *own_id,
                  const char *workload);
void history_release(struct history *history);

#endif
