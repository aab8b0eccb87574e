/* terminal.c - the verdict table as people see it in a terminal. */
#include "report/facts.h"
#include "report/sections.h"
#include "report/table.h"
#include "report/words.h"

#include <stdio.h>

static void add_row(struct table *table, const struct report_facts *facts,
                    enum hypothesis hypothesis, enum report_language language)
{
    const struct hypothesis_verdict *one = &facts->verdict.hypotheses[hypothesis];
    char rank[16];
    struct text words;
    text_init(&words);
    snprintf(rank, sizeof(rank), "%u", (unsigned)one->rank);
    const struct finding *finding = facts_finding(facts, one->analysis, one->finding);
    if (finding && one->verdict == VERDICT_CONFIRMED)
        report_finding_headline(finding, language, &words);
    else
        sections_evidence(facts, hypothesis, language, &words);
    if (one->missing != VERDICT_MISSING_NOTHING)
        text_addf(&words, " %s: %s", words_get(language, WORD_MISSING),
                  report_missing_words(one->missing, language));
    table_add(table, rank);
    table_add(table, hypothesis_info(hypothesis)->slug);
    table_add(table, words_verdict(language, one->verdict));
    table_add(table, text_get(&words));
    table->cells.failed = table->cells.failed || words.failed;
    text_release(&words);
}

static void add_headline(const struct report_facts *facts, enum report_language language,
                         struct text *text)
{
    struct text line;
    text_init(&line);
    const struct finding *reported = facts_subject(facts);
    if (reported && (finding_is_culprit(reported) || !facts_root(facts)))
        text_addf(&line,
                  "%s: ", words_get(language, facts_root(facts) ? WORD_ROOT_CAUSE : WORD_DEFECT));
    report_headline(facts, language, &line);
    text_add_printable(text, text_view_of(text_get(&line)), SIZE_MAX);
    text_add(text, "\n");
    text->failed = text->failed || line.failed;
    text_release(&line);
}

static void add_search(const struct report_facts *facts, enum report_language language,
                       struct text *text)
{
    if (!facts->search)
        return;
    text_addf(text, "%s: %s\n", words_get(language, WORD_SECTION_SEARCH),
              words_get(language, sections_search_conclusion(facts->search)));
    if (sections_search_vanished(facts->search))
        text_addf(text, "%s\n", words_get(language, WORD_SEARCH_VANISHED));
}

void report_verdict_table(const struct report_facts *facts, enum report_language language,
                          struct text *text)
{
    static const enum word titles[] = { WORD_RANK, WORD_HYPOTHESIS, WORD_VERDICT, WORD_EVIDENCE };
    enum hypothesis ranked[HYPOTHESIS_COUNT];
    struct table table;
    facts_ranked(facts, ranked);
    table_init(&table, COUNT_OF(titles));
    for (size_t i = 0; i < COUNT_OF(titles); i++)
        table_add(&table, words_get(language, titles[i]));
    for (size_t i = 0; i < HYPOTHESIS_COUNT; i++)
        add_row(&table, facts, ranked[i], language);
    table_print(&table, text);
    table_release(&table);
    struct report_planting planting = facts_planting(facts);
    text_add(text, planting.fault ? "\n" : "");
    report_planting_add(&planting, language, text);
    text_addf(text, "\n%s: %s\n", words_get(language, WORD_OUTCOME),
              words_outcome(language, facts->verdict.outcome));
    add_headline(facts, language, text);
    add_search(facts, language, text);
    if (facts->compare) {
        text_add(text, "\n");
        report_compare_table(facts->compare, language, text);
    }
}
