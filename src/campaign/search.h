/* search.h - finds what made equal runs differ, or the first NaN: repeats them with the operands of
 * launches hashed (or outputs scanned) in stream order, until the first op that goes wrong is
 * known.
 *
 * Hashing takes time and changes what overlaps, so that a difference may not come while every op is
 * hashed. Then it is tried with fewer hashes, and the narrowest interval that they leave is the
 * answer: between an op that agrees and one that differs. An interval is not a culprit. */
#ifndef GRETA_CAMPAIGN_SEARCH_H
#define GRETA_CAMPAIGN_SEARCH_H

#include "campaign/campaign.h"
#include "campaign/child.h"
#include "report/report.h"

#define SEARCH_STEP_LIMIT 24u

/* What a try showed. */
struct search_look {
    uint32_t runs;     /* iterations */
    uint64_t compared; /* operands hashed and compared, or launches scanned */
    bool seen;         /* the defect came */
    bool culprit;      /* and one op is the culprit */
    uint64_t agreed;   /* launches of a run, from 1: the last that agreed, 0: none */
    uint64_t differs;  /* the first that differs; 0: none that was hashed */
    uint64_t launches; /* of a run */
};

/* ---- The order of tries (search_ladder.c) ---------------------------------------------------- */

/* Runs the workload once as `how` says. kv_f32: with an F32 cache. */
struct search_try {
    const char *slug; /* of report_search_step */
    struct job_search how;
    bool kv_f32;
};
typedef enum status (*search_runner)(void *context, const struct search_try *try,
                                     struct search_look *ret_look, struct error *err);

struct search_record {
    struct report_search_step steps[SEARCH_STEP_LIMIT];
    size_t count;
    enum report_search_result result;
    int best; /* the step that showed most; -1: the defect never came again */
};

/* hypothesis: HYPOTHESIS_NON_DETERMINISM or HYPOTHESIS_NUMERIC. */
MUST_CHECK enum status search_ladder(enum hypothesis hypothesis, search_runner run, void *context,
                                     struct search_record *ret_record, struct error *err);

/* ---- The search of an audit (search.c) ------------------------------------------------------- */

struct search {
    bool made;
    enum hypothesis hypothesis;
    struct search_record record;
    struct analyzer *analyzer; /* of the best step; NULL */
};

/* True if the analysis shows a defect of which only the place where it was seen is known, and a
 * search can find more. */
bool search_is_wanted(const struct analysis *analysis, enum hypothesis *ret_hypothesis,
                      uint64_t *ret_iteration);
/* base: the job of the row it was seen in; iteration: where it was seen first. */
MUST_CHECK enum status search_run(const struct campaign_options *options,
                                  const struct child_setup *setup, const struct job *base,
                                  enum hypothesis hypothesis, uint64_t iteration,
                                  struct search *ret_search, struct error *err);
void search_release(struct search *search);

#endif
