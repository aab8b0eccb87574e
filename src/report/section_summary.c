/* section_summary.c - what an audit is of, and what came out. */
#include "report/sections.h"

#include "report/figures.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Nothing where it is not known. */
static void add_fact(struct doc *doc, enum word label, const char *value, bool code)
{
    if (!value || !value[0])
        return;
    doc_fact_begin(doc, label);
    if (code)
        doc_code(doc, value);
    else
        doc_text(doc, value);
    doc_fact_end(doc, label);
}

void sections_device(const struct report_identity *identity, enum report_language language,
                     struct text *text)
{
    const char *name = identity->device_name ? identity->device_name : "";
    const char *kind = identity->device_kind ? identity->device_kind : "";
    const char *comma = strrchr(name, ',');
    char *end, processor[128], threads[24];
    if (strcmp(kind, "foreign") == 0) {
        text_add(text, words_get(language, WORD_DEVICE_FOREIGN));
        return;
    }
    uint64_t count = strcmp(kind, "host") == 0 && comma ? strtoull(comma + 1, &end, 10) : 0;
    if (count == 0 || strncmp(end, " thread", strlen(" thread")) != 0) {
        text_add(text, name);
        return;
    }
    snprintf(processor, sizeof(processor), "%.*s", (int)(comma - name), name);
    words_add(text, language, WORD_DEVICE_THREADS, processor, words_number(count, threads), NULL);
}

static enum doc_tone outcome_tone(enum audit_outcome outcome)
{
    return outcome == AUDIT_CLEAN                                        ? DOC_GOOD
           : outcome == AUDIT_ROOT_CAUSE || outcome == AUDIT_DEFECT_SEEN ? DOC_BAD
                                                                         : DOC_OPEN;
}

/* A banner, so that a planted fault is not taken for a real one. */
static void print_planted(struct doc *doc, const struct report_facts *facts)
{
    struct report_planting planting = facts_planting(facts);
    if (!planting.fault)
        return;
    doc_banner_begin(doc);
    doc_badge(doc, doc_word(doc, WORD_PLANTED_FAULT), DOC_BAD);
    doc_text(doc, " ");
    doc_code(doc, planting.fault);
    doc_text(doc, ": ");
    doc_text(doc, report_planting_words(&planting, doc->language));
    doc_text(doc, ".");
    doc_banner_end(doc);
}

void section_head(struct doc *doc, const struct report_facts *facts)
{
    const struct report_identity *identity = &facts->identity;
    struct text headline, device, ending;
    text_init(&headline);
    text_init(&device);
    text_init(&ending);
    report_headline(facts, doc->language, &headline);
    sections_device(identity, doc->language, &device);
    if (facts->program)
        report_ending_words(facts->program->ending, doc->language, &ending);
    doc->methods->heading(doc, 1, "top", text_get(&headline));
    doc->out->failed = doc->out->failed || headline.failed;
    text_release(&headline);
    print_planted(doc, facts);
    doc_facts_begin(doc);
    doc_fact_begin(doc, WORD_OUTCOME);
    doc_badge(doc, words_outcome(doc->language, facts->verdict.outcome),
              outcome_tone(facts->verdict.outcome));
    doc_fact_end(doc, WORD_OUTCOME);
    add_fact(doc, WORD_SEVERITY, words_severity(doc->language, report_severity(facts)), false);
    add_fact(doc, WORD_AUDIT, identity->id, true);
    add_fact(doc, WORD_DATE, identity->date, false);
    add_fact(doc, WORD_COMMIT, identity->commit, true);
    add_fact(doc, WORD_AUTHOR, identity->author, false);
    add_fact(doc, WORD_MODEL, identity->model_name ? identity->model_name : identity->model_path,
             false);
    add_fact(doc, WORD_DEVICE, text_get(&device), false);
    add_fact(doc, WORD_COMMAND, identity->command, true);
    add_fact(doc, WORD_PROGRAM_END, text_get(&ending), false);
    doc_facts_end(doc);
    doc->out->failed = doc->out->failed || device.failed || ending.failed;
    text_release(&device);
    text_release(&ending);
}

/* ---- Summary -------------------------------------------------------------------------------- */

static void print_outcome(struct doc *doc, const struct report_facts *facts)
{
    struct facts_totals totals = facts_totals(facts);
    char done[24], open[24], bound[SECTIONS_BOUND_BYTES];
    snprintf(done, sizeof(done), "%" PRIu64, facts->verdict.iterations);
    snprintf(open, sizeof(open), "%" PRIu64, totals.inconclusive);
    sections_bound(facts->verdict.bound, bound);
    doc_paragraph_begin(doc);
    switch (facts->verdict.outcome) {
    case AUDIT_CLEAN:
        doc_words(doc, WORD_SUMMARY_CLEAN, done, bound, NULL);
        break;
    case AUDIT_DEFECT_SEEN:
        doc_words(doc, WORD_SUMMARY_DEFECT_SEEN, NULL);
        break;
    case AUDIT_NOT_SEEN:
        doc_words(doc, facts->verdict.bound < 1 ? WORD_SUMMARY_NOT_SEEN : WORD_SUMMARY_NOT_SEEN_FEW,
                  done, bound, NULL);
        break;
    case AUDIT_ROOT_CAUSE: {
        const struct finding *root = facts_root(facts);
        doc_words(doc, WORD_SUMMARY_ROOT_CAUSE,
                  root ? report_hypothesis_words(root->hypothesis)->title[doc->language] : "-",
                  NULL);
        break;
    }
    case AUDIT_NOT_REPRODUCED:
        doc_words(doc,
                  facts->verdict.bound < 1 ? WORD_SUMMARY_NOT_REPRODUCED
                                           : WORD_SUMMARY_NOT_REPRODUCED_FEW,
                  done, bound, NULL);
        break;
    default:
        doc_words(doc, WORD_SUMMARY_INCONCLUSIVE, open, NULL);
    }
    doc_paragraph_end(doc);
}

/* The headline's finding with everything that identifies it. */
static void print_detail(struct doc *doc, const struct finding *finding)
{
    struct text words;
    text_init(&words);
    report_finding_describe(finding, doc->language, &words);
    doc_sentence(doc, WORD_IN_DETAIL, text_get(&words), NULL);
    doc->out->failed = doc->out->failed || words.failed;
    text_release(&words);
}

static void print_counts(struct doc *doc, const struct report_facts *facts)
{
    struct facts_totals totals = facts_totals(facts);
    char rows[24], done[24], planned[24], errors[24], findings[24];
    snprintf(rows, sizeof(rows), "%zu", facts->row_count);
    snprintf(done, sizeof(done), "%" PRIu64, totals.done);
    snprintf(planned, sizeof(planned), "%" PRIu64, totals.planned);
    snprintf(errors, sizeof(errors), "%" PRIu64, totals.errors);
    snprintf(findings, sizeof(findings), "%" PRIu64, totals.findings);
    if (facts->row_count > 0)
        doc_sentence(doc, WORD_SUMMARY_COUNTS, done, planned, rows, errors, findings, NULL);
}

void section_summary(struct doc *doc, const struct report_facts *facts)
{
    const struct finding *reported = facts_subject(facts);
    doc_heading(doc, 2, "summary", WORD_SECTION_SUMMARY);
    print_outcome(doc, facts);
    if (reported)
        print_detail(doc, reported);
    if (facts->expected_fault)
        doc_sentence(doc, WORD_EXPECTED_FAULT, facts->expected_fault, NULL);
    print_counts(doc, facts);
    if (facts->partial)
        doc_sentence(doc, WORD_PARTIAL, facts->identity.id, NULL);
    if (reported && doc->methods->figures)
        figure_chain(doc, facts);
}
