/* sections.h - the parts of a report, in the order they are read; each prints nothing if it has no
 * content. */
#ifndef GRETA_REPORT_SECTIONS_H
#define GRETA_REPORT_SECTIONS_H

#include "report/doc.h"
#include "report/facts.h"

/* section_summary.c */
void section_head(struct doc *doc, const struct report_facts *facts);
/* The device's name, in which the host counts its threads in English; adds to text. */
void sections_device(const struct report_identity *identity, enum report_language language,
                     struct text *text);
void section_summary(struct doc *doc, const struct report_facts *facts);

/* section_stage.c */
void section_stage(struct doc *doc, const struct report_facts *facts);
void section_findings(struct doc *doc, const struct report_facts *facts);

/* section_callers.c */
void section_callers(struct doc *doc, const struct report_facts *facts);

/* section_verdicts.c */
void section_verdicts(struct doc *doc, const struct report_facts *facts);
void section_recommendations(struct doc *doc, const struct report_facts *facts);
void section_next_steps(struct doc *doc, const struct report_facts *facts);

/* section_runs.c */
void section_matrix(struct doc *doc, const struct report_facts *facts);
void section_interventions(struct doc *doc, const struct report_facts *facts);
void section_ablation(struct doc *doc, const struct report_facts *facts);
void section_transfers(struct doc *doc, const struct report_facts *facts);

/* section_search.c */
void section_search(struct doc *doc, const struct report_facts *facts);
/* A sentence: what the search came to; and whether looking at every op made the defect go away. */
enum word sections_search_conclusion(const struct report_search *search);
bool sections_search_vanished(const struct report_search *search);

/* compare.c */
/* "rope, layer 2, step 3 (src/engine/forward.c:113): x[0][5] is 3.5, the host computes ..." */
void compare_describe(const struct report_compare_row *row, enum report_language language,
                      struct text *text);
void section_compare(struct doc *doc, const struct report_facts *facts);

/* section_self_test.c */
void section_self_test(struct doc *doc, const struct report_facts *facts);

/* section_history.c */
void section_evolution(struct doc *doc, const struct report_facts *facts);
void section_baseline(struct doc *doc, const struct report_facts *facts);
void section_artifacts(struct doc *doc, const struct report_facts *facts);
void section_evidence(struct doc *doc, const struct report_facts *facts);

/* section_verdicts.c: what a verdict rests on, in words; adds to text. */
void sections_evidence(const struct report_facts *facts, enum hypothesis hypothesis,
                       enum report_language language, struct text *text);
enum doc_tone sections_verdict_tone(enum verdict verdict);

/* document.c: what stands before the contents, and all sections. */
void document_head(struct doc *doc, const struct report_facts *facts);
void document_body(struct doc *doc, const struct report_facts *facts);

/* A bound of 3/n as "1.23 %"; "" for 0. buffer has SECTIONS_BOUND_BYTES. */
#define SECTIONS_BOUND_BYTES 32
const char *sections_bound(double bound, char *buffer);

#endif
