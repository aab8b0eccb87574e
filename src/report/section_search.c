/* section_search.c - the search for the op that makes equal runs differ, or values not finite. */
#include "report/sections.h"

#include <string.h>

/* What a step looked at, by its slug. */
static const struct {
    const char *slug;
    const char *words[REPORT_LANGUAGE_COUNT];
} looks[] = {
    { "every-op",
      { "inputs and outputs of every op, caches cleared before each run",
        "entradas y salidas de cada operación, cachés a cero antes de cada ejecución" } },
    { "outputs",
      { "outputs of every op but caches", "salidas de cada operación salvo las cachés" } },
    { "every-8th", { "outputs of every 8th op", "salidas de una de cada 8 operaciones" } },
    { "every-64th", { "outputs of every 64th op", "salidas de una de cada 64 operaciones" } },
    { "one-op", { "the output of one op", "la salida de una operación" } },
    { "two-ops", { "the outputs of two ops", "las salidas de dos operaciones" } },
    { "results", { "results alone, no op hashed", "solo los resultados, ninguna operación" } },
    { "scan-every-op",
      { "outputs of every op, for values that are not finite",
        "salidas de cada operación, en busca de valores no finitos" } },
    { "scan-f32-cache",
      { "the same with a cache of F32, which can be scanned too",
        "lo mismo con una caché F32, que también se puede examinar" } },
};

static const char *look_words(enum report_language language, const char *slug)
{
    for (size_t i = 0; i < COUNT_OF(looks); i++)
        if (strcmp(looks[i].slug, slug) == 0)
            return looks[i].words[language];
    return slug;
}

static const enum word result_words[] = {
    [REPORT_SEARCH_CULPRIT] = WORD_SEARCH_CULPRIT,
    [REPORT_SEARCH_INTERVAL] = WORD_SEARCH_INTERVAL,
    [REPORT_SEARCH_SEEN] = WORD_SEARCH_SEEN,
    [REPORT_SEARCH_NOT_SEEN] = WORD_SEARCH_NOT_SEEN,
};
_Static_assert(COUNT_OF(result_words) == REPORT_SEARCH_RESULT_COUNT, "every result has words");

static const enum word conclusions[] = {
    [REPORT_SEARCH_CULPRIT] = WORD_SEARCH_FOUND,
    [REPORT_SEARCH_INTERVAL] = WORD_SEARCH_NARROWED,
    [REPORT_SEARCH_SEEN] = WORD_SEARCH_ONLY_SEEN,
    [REPORT_SEARCH_NOT_SEEN] = WORD_SEARCH_NOT_AGAIN,
};

enum word sections_search_conclusion(const struct report_search *search)
{
    return conclusions[search->result];
}

bool sections_search_vanished(const struct report_search *search)
{
    return search->step_count && search->result != REPORT_SEARCH_NOT_SEEN &&
           search->steps[0].result == REPORT_SEARCH_NOT_SEEN;
}

void section_search(struct doc *doc, const struct report_facts *facts)
{
    static const struct doc_column columns[] = { { WORD_LOOKED_AT, false, true },
                                                 { WORD_RUNS, true, false },
                                                 { WORD_COMPARED, true, false },
                                                 { WORD_RESULT, false, false } };
    const struct report_search *search = facts->search;
    if (!search)
        return;
    doc_heading(doc, 2, "search", WORD_SECTION_SEARCH);
    doc_sentence(doc, WORD_SEARCH_READING, NULL);
    doc_table_begin(doc, columns, COUNT_OF(columns));
    for (size_t i = 0; i < search->step_count; i++) {
        const struct report_search_step *step = &search->steps[i];
        doc_row_begin(doc);
        doc_cell_text(doc, look_words(doc->language, step->what));
        doc_cell_count(doc, step->runs);
        doc_cell_count(doc, step->compared);
        doc_cell_badge(doc, doc_word(doc, result_words[step->result]),
                       step->result == REPORT_SEARCH_CULPRIT    ? DOC_BAD
                       : step->result == REPORT_SEARCH_NOT_SEEN ? DOC_QUIET
                                                                : DOC_OPEN);
        doc_row_end(doc);
    }
    doc_table_end(doc);
    doc_sentence(doc, sections_search_conclusion(search), NULL);
    if (sections_search_vanished(search))
        doc_sentence(doc, WORD_SEARCH_VANISHED, NULL);
}
