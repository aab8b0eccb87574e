/* section_callers.c - of a foreign program: who made the calls that findings name. */
#include "report/sections.h"

#include <inttypes.h>
#include <stdio.h>

/* A report with more is too long to read; summary.json has them all. */
#define SHOWN_LIMIT 32u

static void print_frames(struct doc *doc, const struct report_facts *facts, size_t analysis,
                         const struct analyze_place *place)
{
    struct report_frame frames[REPORT_FRAME_LIMIT];
    size_t count = facts->callers.stack(facts->callers.context, analysis, place->stack_index,
                                        frames, COUNT_OF(frames));
    doc_list_begin(doc);
    for (size_t i = 0; i < count; i++) {
        char offset[32], line[sizeof(frames[i].source) + 16];
        snprintf(offset, sizeof(offset), "+0x%" PRIx64 " ", frames[i].offset);
        doc_item_begin(doc);
        doc_code(doc, frames[i].function[0] ? frames[i].function : frames[i].file);
        doc_text(doc, offset);
        if (frames[i].function[0])
            doc_code(doc, frames[i].file);
        if (frames[i].line) {
            snprintf(line, sizeof(line), "%s:%" PRIu32, frames[i].source, frames[i].line);
            doc_text(doc, " ");
            doc_code(doc, line);
        }
        doc_item_end(doc);
    }
    doc_list_end(doc);
}

static void print_place(struct doc *doc, const struct report_facts *facts, size_t analysis,
                        const struct analyze_place *place)
{
    char name[512], event[24];
    const struct report_callers *callers = &facts->callers;
    if (!place->foreign || !place->stack_index)
        return;
    bool known = place->name_index &&
                 callers->kernel(callers->context, analysis, place->name_index, name, sizeof(name));
    snprintf(event, sizeof(event), "%" PRIu64, place->event_id);
    doc_sentence(doc, WORD_CALLED_BY, known ? name : place->op, event, NULL);
    print_frames(doc, facts, analysis, place);
}

void section_callers(struct doc *doc, const struct report_facts *facts)
{
    size_t shown = 0;
    if (!facts->callers.stack || facts_totals(facts).findings == 0)
        return;
    doc_heading(doc, 2, "callers", WORD_SECTION_CALLERS);
    for (size_t i = 0; i < facts->analysis_count; i++)
        for (size_t j = 0; facts->analyses[i] && j < facts->analyses[i]->finding_count; j++) {
            const struct finding *finding = &facts->analyses[i]->findings[j];
            if (shown++ == SHOWN_LIMIT)
                return;
            print_place(doc, facts, i, &finding->cause);
            print_place(doc, facts, i, &finding->other);
            print_place(doc, facts, i, &finding->seen);
        }
}
