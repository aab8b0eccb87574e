/* section_verdicts.c - every hypothesis with its verdict and what it rests on; what to do next. */
#include "report/sections.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum doc_tone sections_verdict_tone(enum verdict verdict)
{
    static const enum doc_tone tones[] = {
        [VERDICT_CONFIRMED] = DOC_BAD,     [VERDICT_REFUTED] = DOC_GOOD,
        [VERDICT_NOT_SEEN] = DOC_QUIET,    [VERDICT_EXCLUDED] = DOC_QUIET,
        [VERDICT_INCONCLUSIVE] = DOC_OPEN,
    };
    return tones[verdict];
}

/* ---- Evidence ------------------------------------------------------------------------------- */

void sections_evidence(const struct report_facts *facts, enum hypothesis hypothesis,
                       enum report_language language, struct text *text)
{
    const struct hypothesis_verdict *one = &facts->verdict.hypotheses[hypothesis];
    const struct hypothesis_info *info = hypothesis_info(hypothesis);
    char checked[24], total[24], trials[24], bound[SECTIONS_BOUND_BYTES];
    snprintf(trials, sizeof(trials), "%" PRIu64, one->trials);
    snprintf(checked, sizeof(checked), "%" PRIu64, one->checked);
    snprintf(total, sizeof(total), "%" PRIu64, one->total);
    sections_bound(one->bound, bound);
    const struct report_hypothesis_words *words = report_hypothesis_words(hypothesis);
    const char *unit = one->total == 1 ? words->unit[language] : words->units[language];
    const char *arguments[] = { checked, total, unit, bound, trials };
    if (one->verdict == VERDICT_EXCLUDED) {
        const char *by = one->excluded_by ? one->excluded_by : "-";
        if (strcmp(by, "device-close") == 0)
            by = words_get(language, WORD_EXCLUDED_DEVICE_CLOSE);
        words_fill(text, words_get(language, WORD_EVIDENCE_EXCLUDED), &by, 1);
        return;
    }
    enum word word = one->total == 0   ? WORD_EVIDENCE_NONE
                     : info->exact     ? WORD_EVIDENCE_EXACT
                     : one->bound >= 1 ? WORD_EVIDENCE_NO_BOUND
                     : one->bound > 0
                         ? info->bound_each ? WORD_EVIDENCE_BOUND_EACH : WORD_EVIDENCE_BOUND
                         : WORD_EVIDENCE_STATISTICAL;
    words_fill(text, words_get(language, word), arguments, COUNT_OF(arguments));
}

static void print_evidence(struct doc *doc, const struct report_facts *facts,
                           enum hypothesis hypothesis)
{
    const struct hypothesis_verdict *one = &facts->verdict.hypotheses[hypothesis];
    const struct finding *finding = facts_finding(facts, one->analysis, one->finding);
    struct text words;
    text_init(&words);
    if (finding) {
        report_finding_describe(finding, doc->language, &words);
        text_add(&words, ". ");
    }
    /* That nothing was counted says nothing where something was found. */
    if (!finding || one->total > 0)
        sections_evidence(facts, hypothesis, doc->language, &words);
    doc_cell_text(doc, text_get(&words));
    doc->out->failed = doc->out->failed || words.failed;
    text_release(&words);
}

static void print_verdict(struct doc *doc, const struct report_facts *facts,
                          enum hypothesis hypothesis)
{
    static const enum word states[] = { [SELF_TEST_ABSENT] = WORD_SELF_TEST_ABSENT,
                                        [SELF_TEST_PASSED] = WORD_SELF_TEST_PASSED,
                                        [SELF_TEST_FAILED] = WORD_SELF_TEST_FAILED };
    const struct hypothesis_verdict *one = &facts->verdict.hypotheses[hypothesis];
    const struct hypothesis_info *info = hypothesis_info(hypothesis);
    doc_row_begin(doc);
    doc_cell_count(doc, one->rank);
    doc_cell_begin(doc);
    doc_text(doc, report_hypothesis_words(hypothesis)->title[doc->language]);
    doc_text(doc, " ");
    doc_code(doc, info->slug);
    doc_cell_end(doc);
    doc_cell_badge(doc, words_verdict(doc->language, one->verdict),
                   sections_verdict_tone(one->verdict));
    print_evidence(doc, facts, hypothesis);
    doc_cell_text(doc, one->missing == VERDICT_MISSING_NOTHING
                           ? NULL
                           : report_missing_words(one->missing, doc->language));
    doc_cell_code(doc, audit_level_name(info->level));
    doc_cell_word(doc, states[facts->self_test[hypothesis]]);
    doc_row_end(doc);
}

static void print_detector(struct doc *doc, enum hypothesis hypothesis)
{
    const struct hypothesis_info *info = hypothesis_info(hypothesis);
    doc_item_begin(doc);
    doc_code(doc, info->slug);
    doc_text(doc, ": ");
    doc_text(doc, report_hypothesis_words(hypothesis)->detector[doc->language]);
    doc_item_end(doc);
}

void section_verdicts(struct doc *doc, const struct report_facts *facts)
{
    static const struct doc_column columns[] = {
        { WORD_RANK, true, false },       { WORD_HYPOTHESIS, false, false },
        { WORD_VERDICT, false, false },   { WORD_EVIDENCE, false, true },
        { WORD_MISSING, false, true },    { WORD_NEEDS_LEVEL, false, false },
        { WORD_SELF_TEST, false, false },
    };
    enum hypothesis ranked[HYPOTHESIS_COUNT];
    facts_ranked(facts, ranked);
    doc_heading(doc, 2, "verdicts", WORD_SECTION_VERDICTS);
    doc_sentence(doc, WORD_VERDICTS_READING, NULL);
    doc_table_begin(doc, columns, COUNT_OF(columns));
    for (size_t i = 0; i < HYPOTHESIS_COUNT; i++)
        print_verdict(doc, facts, ranked[i]);
    doc_table_end(doc);
    doc_fold_begin(doc);
    doc_words(doc, WORD_SECTION_DETECTORS, NULL);
    doc_fold_body(doc);
    doc_list_begin(doc);
    for (size_t i = 0; i < HYPOTHESIS_COUNT; i++)
        print_detector(doc, ranked[i]);
    doc_list_end(doc);
    doc_fold_end(doc);
}

/* ---- What to do ----------------------------------------------------------------------------- */

void section_recommendations(struct doc *doc, const struct report_facts *facts)
{
    enum hypothesis ranked[HYPOTHESIS_COUNT];
    bool any = false;
    facts_ranked(facts, ranked);
    doc_heading(doc, 2, "recommendations", WORD_SECTION_RECOMMENDATIONS);
    doc_list_begin(doc);
    for (size_t i = 0; i < HYPOTHESIS_COUNT; i++) {
        const struct report_hypothesis_words *words = report_hypothesis_words(ranked[i]);
        const struct hypothesis_verdict *one = &facts->verdict.hypotheses[ranked[i]];
        const struct finding *finding = facts_finding(facts, one->analysis, one->finding);
        /* What follows from something else goes when that is fixed. */
        if (one->verdict != VERDICT_CONFIRMED || (finding && finding->consequence_of >= 0))
            continue;
        any = true;
        doc_item_begin(doc);
        doc_strong(doc, words->title[doc->language]);
        doc_text(doc, ": ");
        doc_text(doc, words->advice[doc->language]);
        doc_item_end(doc);
    }
    if (!any) {
        doc_item_begin(doc);
        doc_words(doc, facts->verdict.outcome == AUDIT_CLEAN ? WORD_ADVICE_CLEAN : WORD_ADVICE_NONE,
                  NULL);
        doc_item_end(doc);
    }
    doc_list_end(doc);
}

/* The slugs of the inconclusive hypotheses that lack `missing`; false: none does. */
static bool add_slugs(const struct report_facts *facts, enum verdict_missing missing,
                      struct text *slugs)
{
    for (int i = 0; i < HYPOTHESIS_COUNT; i++) {
        const struct hypothesis_verdict *one = &facts->verdict.hypotheses[i];
        if (one->verdict != VERDICT_INCONCLUSIVE || one->missing != missing)
            continue;
        text_add(slugs, slugs->length ? ", " : "");
        text_add(slugs, hypothesis_info((enum hypothesis)i)->slug);
    }
    return slugs->length > 0;
}

static void print_missing_steps(struct doc *doc, const struct report_facts *facts)
{
    static const enum word steps[] = {
        [VERDICT_MISSING_NOTHING] = WORD_STEP_NOTHING,
        [VERDICT_MISSING_DETECTOR] = WORD_STEP_DETECTOR,
        [VERDICT_MISSING_LEVEL] = WORD_STEP_LEVEL,
        [VERDICT_MISSING_SELF_TEST] = WORD_STEP_SELF_TEST,
        [VERDICT_MISSING_SELF_TEST_PASS] = WORD_STEP_SELF_TEST_PASS,
        [VERDICT_MISSING_RECORDING] = WORD_STEP_RECORDING,
        [VERDICT_MISSING_RECORDS] = WORD_STEP_RECORDS,
        [VERDICT_MISSING_COVERAGE] = WORD_STEP_COVERAGE,
        [VERDICT_MISSING_EXERCISE] = WORD_STEP_EXERCISE,
        [VERDICT_MISSING_EQUAL_RUNS] = WORD_STEP_EQUAL_RUNS,
        [VERDICT_MISSING_CERTAINTY] = WORD_STEP_CERTAINTY,
        [VERDICT_MISSING_COMPARISON] = WORD_STEP_COMPARISON,
        [VERDICT_MISSING_END] = WORD_STEP_END,
    };
    _Static_assert(COUNT_OF(steps) == VERDICT_MISSING_COUNT, "a step for everything missing");
    for (int i = 0; i < VERDICT_MISSING_COUNT; i++) {
        struct text slugs;
        text_init(&slugs);
        if (add_slugs(facts, (enum verdict_missing)i, &slugs)) {
            doc_item_begin(doc);
            doc_words(doc, steps[i], text_get(&slugs), NULL);
            doc_item_end(doc);
        }
        doc->out->failed = doc->out->failed || slugs.failed;
        text_release(&slugs);
    }
}

void section_next_steps(struct doc *doc, const struct report_facts *facts)
{
    static const enum word first[] = {
        [AUDIT_CLEAN] = WORD_NEXT_CLEAN,
        [AUDIT_ROOT_CAUSE] = WORD_NEXT_ROOT_CAUSE,
        [AUDIT_DEFECT_SEEN] = WORD_NEXT_DEFECT_SEEN,
        [AUDIT_NOT_SEEN] = WORD_NEXT_NOT_SEEN,
        [AUDIT_NOT_REPRODUCED] = WORD_NEXT_NOT_REPRODUCED,
        [AUDIT_INCONCLUSIVE] = WORD_NEXT_INCONCLUSIVE,
    };
    _Static_assert(COUNT_OF(first) == AUDIT_OUTCOME_COUNT, "every outcome has a next step");
    char done[24], least[24], trials[24];
    enum word next = first[facts->verdict.outcome];
    snprintf(done, sizeof(done), "%" PRIu64, facts->verdict.iterations);
    snprintf(least, sizeof(least), "%u", VERDICT_TRIALS_LEAST);
    const struct hypothesis_verdict *weakest = facts_weakest(facts);
    snprintf(trials, sizeof(trials), "%" PRIu64, weakest ? weakest->trials : 0);
    if (facts->verdict.outcome == AUDIT_NOT_SEEN && weakest)
        next = WORD_NEXT_NOT_SEEN_WEAK;
    doc_heading(doc, 2, "next-steps", WORD_SECTION_NEXT_STEPS);
    doc_list_begin(doc);
    if (facts->partial) {
        doc_item_begin(doc);
        doc_words(doc, WORD_NEXT_RESUME, facts->identity.id, NULL);
        doc_item_end(doc);
    }
    const struct finding *reported = facts_subject(facts);
    bool window = reported && reported->cause.foreign && reported->candidate_count > 1;
    doc_item_begin(doc);
    doc_words(doc, window ? WORD_NEXT_NARROW : next, facts->identity.id, done, least,
              weakest ? hypothesis_info(facts->verdict.weakest)->slug : "", trials, NULL);
    doc_item_end(doc);
    print_missing_steps(doc, facts);
    doc_list_end(doc);
}
