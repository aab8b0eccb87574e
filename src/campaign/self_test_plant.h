/* self_test_plant.h - one run of the self-test: a child with a planted fault, which must be found,
 * or a clean child, in which nothing may be found. */
#ifndef GRETA_CAMPAIGN_SELF_TEST_PLANT_H
#define GRETA_CAMPAIGN_SELF_TEST_PLANT_H

#include "campaign/self_test.h"

/* What all runs of a self-test have in common. */
struct self_test_bench {
    const struct campaign_options *options;
    struct child_setup setup;
    struct child_step step;            /* the run that is made */
    struct audit_model model, experts; /* the small one, and that with experts */
    bool guards_fault;                 /* on this device */
    char folder[FILES_PATH_BYTES];
};

/* A fault that cannot show on this device: neither found nor missed. */
bool self_test_is_absent(const struct self_test_bench *bench, const struct self_test_row *row);
/* Plants the row's fault and looks for it. note: why it was missed, or what was found; borrowed by
 * *planted. */
MUST_CHECK enum status self_test_plant(struct self_test_bench *bench,
                                       const struct self_test_row *row,
                                       struct report_planted *planted, char *note,
                                       size_t note_bytes, struct error *err);

/* Nothing is planted: each finding is a false alarm and is added to *findings. */
enum self_test_clean { SELF_TEST_CLEAN_PLAIN, SELF_TEST_CLEAN_STRESS, SELF_TEST_CLEAN_SEARCHED };
MUST_CHECK enum status self_test_run_clean(struct self_test_bench *bench,
                                           enum self_test_clean which, uint64_t *findings,
                                           struct error *err);

#endif
