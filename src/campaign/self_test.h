/* self_test.h - is the instrument any good? Every fault that can be planted is planted, each in a
 * child of its own, and must be found: the right hypothesis and the right culprit. Clean runs must
 * have no finding at all. */
#ifndef GRETA_CAMPAIGN_SELF_TEST_H
#define GRETA_CAMPAIGN_SELF_TEST_H

#include "campaign/child.h"
#include "campaign/identity.h"
#include "report/report.h"

/* What a row needs beyond its run; bits. */
enum self_test_needs {
    /* Only runs that differ in one thing show it: it must be among the findings, and gone
       when the copies take the other path, on which nothing is planted. */
    SELF_TEST_COMPARED = 1,
    /* It shows as an access to memory that guards took away. Where guards are canaries alone there
     * is no such access (device_info.guards_fault): the row is not planted, and says so. */
    SELF_TEST_FAULTING_GUARDS = 2,
    /* One run shows where it surfaces, not what did it: a finding that claims a culprit is wrong.
     */
    SELF_TEST_ONLY_SEEN = 4,
    /* JOB_BUSY only: graphs are launched as well. */
    SELF_TEST_REPLAYS = 8,
    /* The op that made it is found as a search finds it: with every op's operands hashed and
     * scanned (search.h). */
    SELF_TEST_SEARCHED = 16,
    SELF_TEST_EXPERTS = 32, /* the model with experts */
};
/* JOB_BUSY only: how many streams, stored above these bits. */
#define SELF_TEST_STREAMS(count) ((count) << 8)
#define SELF_TEST_STREAM_COUNT(needs) ((needs) >> 8)

/* A fault, where it is planted, and what must be found. */
struct self_test_row {
    const char *fault; /* slug */
    const char *spec;  /* as inject_parse reads it */
    unsigned work;     /* enum job_work */
    enum audit_level level;
    enum hypothesis hypothesis;
    /* The culprit, or with SELF_TEST_ONLY_SEEN where it is seen: */
    const char *op; /* op of a launch, or the kind of a call: "copy-out" */
    int32_t layer, step;
    const char *tensor;  /* label */
    uint32_t iterations; /* 0: 2 */
    unsigned needs;      /* enum self_test_needs */
};

/* self_test_rows.c */
extern const struct self_test_row self_test_rows[];
extern const size_t self_test_row_count;

struct self_test {
    struct report_planted *planted; /* self_test_row_count; owned */
    size_t planted_count;
    char (*notes)[160];      /* texts of planted[i].note; owned */
    uint64_t clean_findings; /* of the clean runs: must be 0 */
    enum self_test_state states[HYPOTHESIS_COUNT];
    bool passed;
};

/* The workload that the rows' places refer to: a short run, whatever the audit's own workload is.
 */
struct job self_test_job(const char *device, const char *model, const char *label);

/* Plants everything. STATUS_INTERRUPTED and what keeps children from starting are errors; a fault
 * that is not found is a result. */
MUST_CHECK enum status self_test_run(const struct campaign_options *options,
                                     const struct identity *identity, struct self_test *ret_test,
                                     struct error *err);
void self_test_release(struct self_test *test);
/* Where the row plants its fault, without an event. */
void self_test_set_place(const struct self_test_row *row, struct analyze_place *ret_place);

/* Results are kept for each binary and device. A result that cannot be saved is made again by the
 * next audit.
 */
void self_test_save(const struct campaign_options *options, const struct identity *identity,
                    const struct self_test *test);
/* The kept results: what was planted and found, and the states; no culprits. False if there are
 * none for this binary and device. Release with self_test_release. */
bool self_test_load(const struct campaign_options *options, const struct identity *identity,
                    struct self_test *ret_test);

/* True if the finding that an analysis calls the root cause (with SELF_TEST_ONLY_SEEN: the defect,
 * and no root cause) is what the row expects. *ret_culprit_ok: also in its op, layer, step and
 * tensor. */
bool self_test_matches(const struct self_test_row *row, const struct analysis *analysis,
                       bool *ret_culprit_ok);
/* "rope", or the kind of a call that has no op: "copy-out". */
const char *place_op(const struct analyze_place *place);

#endif
