/* finding.h - what the analysis found, in sentences of either language. Part of report.h.
 *
 * analyze/ gives facts and stable names; every sentence about them is made here. Names of ops,
 * tensors, files and checks are the same in both languages. They come from outside: shown
 * printably, and cut to REPORT_NAME_LIMIT bytes. */
#ifndef GRETA_REPORT_FINDING_H
#define GRETA_REPORT_FINDING_H

#include "analyze/analyze.h"
#include "base/text.h"

enum report_language { REPORT_ENGLISH, REPORT_SPANISH, REPORT_LANGUAGE_COUNT };

#define REPORT_NAME_LIMIT 80

/* All of these add to text, which says whether memory sufficed. */

/* One sentence: "rope, tensor rope_qk, layer 17, step 3 (event 610, stream 1, forward.c:113) read
 * index 2139062143 (bound 1024) from operand positions ..."; for text, Markdown, SARIF. */
void report_finding_describe(const struct finding *finding, enum report_language language,
                             struct text *text);
/* The same in brief: who did what, with the numbers, and where it surfaced. */
void report_finding_headline(const struct finding *finding, enum report_language language,
                             struct text *text);
/* What the cause did, alone: "read index 2139062143 (bound 1024) ...". */
void report_finding_act(const struct finding *finding, enum report_language language,
                        struct text *text);

/* A call as a noun, with a name where it is not "": "D2H copy of logits". */
void report_add_kind(struct text *text, uint8_t kind, enum report_language language,
                     const char *name);
/* "the ", "la ", "el ": what stands before that noun. */
const char *report_kind_article(uint8_t kind, enum report_language language);

/* "killed by signal 9 (SIGKILL)" */
void report_ending_words(struct run_ending ending, enum report_language language,
                         struct text *text);

/* "exit status 98: ...": why a gate of `greta trace` fails a program that succeeded.
 * nothing_checked: no call was seen; otherwise the verdict is inconclusive. */
void report_gate_words(int32_t exit_code, bool nothing_checked, enum report_language language,
                       struct text *text);

/* Clauses without an end; static. */
const char *report_reason_words(enum finding_reason reason, enum report_language language);
const char *report_missing_words(enum verdict_missing missing, enum report_language language);

struct report_hypothesis_words {
    const char *title[REPORT_LANGUAGE_COUNT];    /* "Missing synchronisation" */
    const char *detector[REPORT_LANGUAGE_COUNT]; /* how it is found, one sentence */
    const char *unit[REPORT_LANGUAGE_COUNT];     /* one of what `checked` counts: "access" */
    const char *units[REPORT_LANGUAGE_COUNT];    /* several: "accesses" */
    const char *advice[REPORT_LANGUAGE_COUNT];   /* what to do when it is confirmed */
};
const struct report_hypothesis_words *report_hypothesis_words(enum hypothesis hypothesis);

#endif
