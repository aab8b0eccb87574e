/* analyze_verdict.h - an audit's evidence, for the tests of verdicts and outcomes. */
#ifndef GRETA_TESTS_ANALYZE_VERDICT_H
#define GRETA_TESTS_ANALYZE_VERDICT_H

#include "test.h"

#include "analyze/analyze.h"

#include <string.h>

/* An audit in which nothing is missing and nothing was found. */
struct audit {
    struct analysis analysis;
    const struct analysis *analyses[1];
    struct finding findings[4];
    struct verdict_input input;
    struct audit_verdict verdict;
};

static inline void make_clean(struct audit *audit)
{
    memset(audit, 0, sizeof(*audit));
    audit->analysis.level = AUDIT_VERIFY;
    audit->analysis.closed = true;
    audit->analysis.root = audit->analysis.defect = -1;
    audit->analysis.iteration_count = 200;
    audit->analysis.compared_count = 199;
    audit->analysis.findings = audit->findings;
    for (unsigned i = 0; i < HYPOTHESIS_COUNT; i++) {
        audit->analysis.coverage[i] = (struct hypothesis_coverage){ true, 500, 500 };
        audit->input.self_test[i] = SELF_TEST_PASSED;
    }
    audit->analyses[0] = &audit->analysis;
    audit->input.analyses = audit->analyses;
    audit->input.analysis_count = 1;
    audit->input.total_count = audit->input.recorded_count = 200;
}

/* A finding in which one thing did it, at event 10; it follows from nothing. */
static inline struct finding *add_finding(struct audit *audit, enum hypothesis hypothesis)
{
    struct finding *finding = &audit->findings[audit->analysis.finding_count++];
    *finding = (struct finding){ .hypothesis = hypothesis,
                                 .certainty = FINDING_DIRECT,
                                 .attribution = FINDING_CULPRIT,
                                 .cause = { .event_id = 10, .kind = EVENT_LAUNCH },
                                 .order_id = 10,
                                 .count = 1,
                                 .consequence_of = -1 };
    return finding;
}

static inline const struct hypothesis_verdict *decide(struct audit *audit,
                                                      enum hypothesis hypothesis)
{
    verdict_decide(&audit->input, &audit->verdict);
    return &audit->verdict.hypotheses[hypothesis];
}

static inline void check_ranks(const struct audit_verdict *verdict)
{
    bool taken[HYPOTHESIS_COUNT + 1] = { false };
    for (unsigned i = 0; i < HYPOTHESIS_COUNT; i++) {
        uint32_t rank = verdict->hypotheses[i].rank;
        assert_true(rank >= 1 && rank <= HYPOTHESIS_COUNT && !taken[rank]);
        taken[rank] = true;
    }
}

#endif
