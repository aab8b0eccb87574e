/* document.c - the report from its first line to its last. */
#include "report/sections.h"

#include <stdio.h>

const char *sections_bound(double bound, char *buffer)
{
    snprintf(buffer, SECTIONS_BOUND_BYTES, "%.3g %%", bound * 100);
    return bound > 0 ? buffer : "";
}

void document_head(struct doc *doc, const struct report_facts *facts)
{
    section_head(doc, facts);
}

void document_body(struct doc *doc, const struct report_facts *facts)
{
    section_summary(doc, facts);
    section_recommendations(doc, facts);
    section_next_steps(doc, facts);
    section_verdicts(doc, facts);
    section_findings(doc, facts);
    section_stage(doc, facts);
    section_callers(doc, facts);
    section_matrix(doc, facts);
    section_compare(doc, facts);
    section_search(doc, facts);
    section_interventions(doc, facts);
    section_ablation(doc, facts);
    section_transfers(doc, facts);
    section_self_test(doc, facts);
    section_evolution(doc, facts);
    section_baseline(doc, facts);
    section_artifacts(doc, facts);
    section_evidence(doc, facts);
}

void report_markdown(const struct report_facts *facts, enum report_language language,
                     struct text *text)
{
    struct doc doc = { .methods = &doc_markdown, .out = text, .language = language };
    document_head(&doc, facts);
    document_body(&doc, facts);
}
