/* facts.h - what the printers look up in the facts of an audit. */
#ifndef GRETA_REPORT_FACTS_H
#define GRETA_REPORT_FACTS_H

#include "base/text.h"
#include "report/report.h"
#include "report/words.h"

/* The finding with those indices of the verdict; NULL: none. Borrowed. */
const struct finding *facts_finding(const struct report_facts *facts, int32_t analysis,
                                    int32_t finding);
const struct finding *facts_root(const struct report_facts *facts);
/* For DEFECT_SEEN the finding that shows the defect; NULL: no finding does. */
const struct finding *facts_seen(const struct report_facts *facts);
/* The finding the report is about: the root cause, else what shows the defect. NULL: none. */
const struct finding *facts_subject(const struct report_facts *facts);

/* What keeps an audit with enough iterations from being clean: the hypothesis with too few trials.
 * NULL: the iterations themselves are too few, or nothing is. */
const struct hypothesis_verdict *facts_weakest(const struct report_facts *facts);

/* What the column "right culprit" says of a planted fault. */
enum word facts_culprit_word(const struct report_planted *planted);

/* The row an analysis is of; NULL: of none. */
const struct report_row *facts_row_of(const struct report_facts *facts,
                                      const struct analysis *analysis);

/* hypotheses[] by rank, the likeliest first; equal ranks in the order of the enum. */
void facts_ranked(const struct report_facts *facts, enum hypothesis ret[HYPOTHESIS_COUNT]);

struct facts_totals {
    uint64_t planned, done, errors;                  /* iterations */
    uint64_t crashed, hung, interrupted, incomplete; /* rows */
    uint64_t findings, dropped_findings;
    uint64_t confirmed, refuted, not_seen, excluded, inconclusive; /* hypotheses */
    uint64_t planted, detected, culprits, seen;                    /* of the self-test */
};
struct facts_totals facts_totals(const struct report_facts *facts);

enum facts_row_result {
    FACTS_ROW_PASSED,
    FACTS_ROW_FAILED,
    FACTS_ROW_CRASHED,
    FACTS_ROW_HUNG,
    FACTS_ROW_FINDINGS, /* no iteration failed, and yet something is wrong */
    FACTS_ROW_INTERRUPTED,
    FACTS_ROW_INCONCLUSIVE, /* its planted fault never fired */
    FACTS_ROW_INCOMPLETE,   /* fewer iterations than planned, and nothing says why */
    FACTS_ROW_RESULT_COUNT
};
/* What became of the fault that was to be planted: it fired if it did in one row or in the
 * comparison with the host. */
struct report_planting facts_planting(const struct report_facts *facts);

enum facts_row_result facts_row_result(const struct report_row *row);
const char *facts_row_result_name(enum facts_row_result result); /* "passed" */

/* Median; 0 for no values, NaN without memory to sort. */
double facts_median(const double *values, size_t count);

/* The call alone: "launch of rope", "D2H copy", "cuMemFree". Adds to text. */
void facts_call(const struct analyze_place *place, enum report_language language,
                struct text *text);
/* The place of a call in words of the language: "launch of rope, layer 17, step 3, tensor q,
 * stream 0 (forward.c:120)"; for a place without an event, only what it names. Adds to text. */
void facts_place(const struct analyze_place *place, enum report_language language,
                 struct text *text);

/* True where an error surfaced elsewhere than its cause. */
bool facts_seen_elsewhere(const struct finding *finding);

#endif
