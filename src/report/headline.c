/* headline.c - the first line of a report: who did what, with the numbers, and where it surfaced;
 * or how much was looked at, where nothing was found. */
#include "report/facts.h"
#include "report/sections.h"

#include <inttypes.h>
#include <stdio.h>

/* Reruns proved that the planted fault is the cause; the finding shows where that was seen, and not
 * what did it. */
static void add_proved(const struct finding *finding, enum report_language language,
                       struct text *text)
{
    text_add(text, words_get(language, WORD_HEADLINE_PROVED));
    if (!finding)
        return;
    struct finding shown = *finding;
    shown.attribution = FINDING_CULPRIT; /* that it is a symptom is said already */
    text_add(text, "; ");
    text_add(text, words_get(language, WORD_HEADLINE_SEEN));
    report_finding_headline(&shown, language, text);
}

/* The first row whose process did not end in order. */
static const struct report_row *find_ended(const struct report_facts *facts)
{
    for (size_t i = 0; i < facts->row_count; i++)
        if (facts->rows[i].crashed || facts->rows[i].hung)
            return &facts->rows[i];
    return NULL;
}

/* No finding says more than how a process ended. */
static void add_ended(const struct report_row *row, bool is_defect, enum report_language language,
                      struct text *text)
{
    struct text ending;
    char done[24], planned[24];
    text_init(&ending);
    report_ending_words(row->ending, language, &ending);
    snprintf(done, sizeof(done), "%" PRIu64, (uint64_t)row->done);
    snprintf(planned, sizeof(planned), "%" PRIu64, (uint64_t)row->planned);
    const char *arguments[] = { row->label, done, planned, text_get(&ending) };
    words_fill(text, words_get(language, is_defect ? WORD_HEADLINE_ENDED_BAD : WORD_HEADLINE_ENDED),
               arguments, COUNT_OF(arguments));
    text->failed = text->failed || ending.failed;
    text_release(&ending);
}

/* Nothing of a traced program could be looked at. */
static void add_unseen(const struct report_program *program, enum report_language language,
                       struct text *text)
{
    struct text reason;
    text_init(&reason);
    program->add_reason(program->context, 0, language, &reason);
    words_add(text, language, WORD_HEADLINE_UNSEEN, text_get(&reason), NULL);
    text->failed = text->failed || reason.failed;
    text_release(&reason);
}

/* The first row of which evidence could not be kept. */
static const struct report_row *find_unrecorded(const struct report_facts *facts)
{
    for (size_t i = 0; i < facts->row_count; i++)
        if (facts->rows[i].missing && facts->rows[i].fault != REPORT_FAULT_UNFIRED)
            return &facts->rows[i];
    return NULL;
}

/* A planted fault that nothing shows comes first. */
static enum word inconclusive_word(const struct report_facts *facts, uint64_t open_count)
{
    struct report_planting planting = facts_planting(facts);
    if (planting.fault && planting.reported && !planting.fired)
        return WORD_HEADLINE_NEVER_FIRED;
    if (planting.fault && planting.fired && open_count == 0)
        return WORD_HEADLINE_FIRED_UNSEEN;
    return WORD_HEADLINE_INCONCLUSIVE;
}

static enum word word_of(const struct report_facts *facts, uint64_t open_count)
{
    const struct audit_verdict *verdict = &facts->verdict;
    switch (verdict->outcome) {
    case AUDIT_CLEAN:
        return verdict->bound > 0 ? WORD_HEADLINE_CLEAN : WORD_HEADLINE_CLEAN_EXACT;
    case AUDIT_DEFECT_SEEN:
        return WORD_HEADLINE_DEFECT;
    case AUDIT_NOT_SEEN:
        return facts_weakest(facts) ? WORD_HEADLINE_NOT_SEEN_WEAK : WORD_HEADLINE_NOT_SEEN;
    case AUDIT_NOT_REPRODUCED:
        return verdict->bound < 1 ? WORD_HEADLINE_NOT_REPRODUCED : WORD_HEADLINE_NOT_REPRODUCED_FEW;
    default:
        return inconclusive_word(facts, open_count);
    }
}

void report_headline(const struct report_facts *facts, enum report_language language,
                     struct text *text)
{
    const struct finding *finding = facts_subject(facts);
    struct facts_totals totals = facts_totals(facts);
    char done[24], bound[SECTIONS_BOUND_BYTES], least[24], open[24], trials[24];
    bool culprit = finding && finding_is_culprit(finding);
    if (facts->verdict.outcome == AUDIT_DEFECT_SEEN && !finding && facts->compare &&
        facts->compare->first) {
        compare_describe(facts->compare->first, language, text);
        return;
    }
    if (facts->verdict.outcome == AUDIT_ROOT_CAUSE && !culprit) {
        if (facts->compare && facts->compare->first)
            compare_describe(facts->compare->first, language, text);
        else
            add_proved(finding, language, text);
        return;
    }
    if (finding) {
        report_finding_headline(finding, language, text);
        return;
    }
    const struct report_row *ended = find_ended(facts);
    if (ended && (facts->verdict.outcome == AUDIT_DEFECT_SEEN ||
                  facts->verdict.outcome == AUDIT_INCONCLUSIVE)) {
        add_ended(ended, facts->verdict.outcome == AUDIT_DEFECT_SEEN, language, text);
        return;
    }
    const struct report_row *unrecorded = find_unrecorded(facts);
    if (unrecorded && facts->verdict.outcome == AUDIT_INCONCLUSIVE) {
        const char *arguments[] = { unrecorded->label, unrecorded->missing };
        words_fill(text, words_get(language, WORD_HEADLINE_UNRECORDED), arguments,
                   COUNT_OF(arguments));
        return;
    }
    if (facts->program && facts->program->looked_at == REPORT_LOOKED_AT_NOTHING) {
        add_unseen(facts->program, language, text);
        return;
    }
    if (facts->program && facts->verdict.outcome == AUDIT_CLEAN) {
        text_add(text, words_get(language, WORD_HEADLINE_CLEAN_PROGRAM));
        report_subjects_words(&facts->verdict.subjects, language, text);
        return;
    }
    snprintf(done, sizeof(done), "%" PRIu64, facts->verdict.iterations);
    snprintf(least, sizeof(least), "%u", VERDICT_TRIALS_LEAST);
    snprintf(open, sizeof(open), "%" PRIu64, totals.inconclusive);
    sections_bound(facts->verdict.bound, bound);
    const struct hypothesis_verdict *weakest = facts_weakest(facts);
    snprintf(trials, sizeof(trials), "%" PRIu64, weakest ? weakest->trials : 0);
    const char *slug = weakest ? hypothesis_info(facts->verdict.weakest)->slug : "";
    const char *arguments[] = { done, bound, least, open, slug, trials };
    words_fill(text, words_get(language, word_of(facts, totals.inconclusive)), arguments,
               COUNT_OF(arguments));
}
