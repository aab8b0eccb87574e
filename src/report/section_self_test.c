/* section_self_test.c - planted faults against what was found: in the report. */
#include "report/sections.h"

#include <inttypes.h>
#include <stdio.h>

static void add_place(struct doc *doc, const struct analyze_place *place)
{
    struct text words;
    text_init(&words);
    facts_place(place, doc->language, &words);
    doc_cell_text(doc, text_get(&words));
    doc->out->failed = doc->out->failed || words.failed;
    text_release(&words);
}

static void print_planted(struct doc *doc, const struct report_planted *one)
{
    bool ok = one->detected && one->culprit_ok;
    doc_row_begin(doc);
    doc_cell_code(doc, one->fault);
    doc_cell_code(doc, hypothesis_info(one->hypothesis)->slug);
    add_place(doc, &one->planted);
    if (one->absent)
        doc_cell_text(doc, doc_word(doc, WORD_SELF_TEST_ABSENT));
    else
        doc_cell_badge(doc, doc_word(doc, one->detected ? WORD_YES : WORD_NO),
                       one->detected ? DOC_GOOD : DOC_BAD);
    doc_cell_code(doc, one->found_hypothesis < HYPOTHESIS_COUNT
                           ? hypothesis_info(one->found_hypothesis)->slug
                           : NULL);
    add_place(doc, &one->culprit);
    if (one->absent)
        doc_cell_text(doc, NULL);
    else
        doc_cell_badge(doc, doc_word(doc, facts_culprit_word(one)),
                       ok ? DOC_GOOD : DOC_BAD);
    doc_cell_text(doc, one->note);
    doc_row_end(doc);
}

void section_self_test(struct doc *doc, const struct report_facts *facts)
{
    static const struct doc_column columns[] = {
        { WORD_FAULT, false, false },      { WORD_PLANTED_AS, false, false },
        { WORD_PLANTED_AT, false, true },  { WORD_DETECTED, false, false },
        { WORD_FOUND_AS, false, false },   { WORD_CULPRIT, false, true },
        { WORD_CULPRIT_OK, false, false }, { WORD_NOTE, false, false },
    };
    struct facts_totals totals = facts_totals(facts);
    char planted[24], detected[24], culprits[24], seen[24];
    doc_heading(doc, 2, "self-test", WORD_SECTION_SELF_TEST);
    if (facts->self_test_key)
        doc_sentence(doc, WORD_SELF_TEST_KEY, facts->self_test_key, NULL);
    else
        doc_sentence(doc, WORD_SELF_TEST_NO_KEY, NULL);
    if (facts->planted_count == 0)
        return;
    doc_fold_begin(doc);
    snprintf(planted, sizeof(planted), "%" PRIu64, totals.planted);
    snprintf(detected, sizeof(detected), "%" PRIu64, totals.detected);
    snprintf(culprits, sizeof(culprits), "%" PRIu64, totals.culprits);
    snprintf(seen, sizeof(seen), "%" PRIu64, totals.seen);
    doc_words(doc, WORD_SELF_TEST_TOTAL, planted, detected, culprits, seen, NULL);
    doc_fold_body(doc);
    doc_table_begin(doc, columns, COUNT_OF(columns));
    for (size_t i = 0; i < facts->planted_count; i++)
        print_planted(doc, &facts->planted[i]);
    doc_table_end(doc);
    doc_fold_end(doc);
}
