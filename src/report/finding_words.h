/* finding_words.h - the sentences about findings, as templates (template.h); words/defects.def and
 * words/clauses.def have them. The names in braces are those of finding_fill.c and of the finding's
 * parameters (finding_defect_info). */
#ifndef GRETA_REPORT_FINDING_WORDS_H
#define GRETA_REPORT_FINDING_WORDS_H

#include "report/finding.h"
#include "report/template.h"

enum clause {
    /* A call, and what identifies it; only the first part of it in brief. */
    CLAUSE_PLACE,
    CLAUSE_CALL,
    CLAUSE_CALL_IN_BRIEF,
    CLAUSE_ONE_OF,
    /* An operand: by its name, by its buffer, by neither; after its articles. */
    CLAUSE_OPERAND,
    CLAUSE_BUFFER,
    CLAUSE_MEMORY,
    CLAUSE_THE,
    CLAUSE_THE_FEMININE,
    CLAUSE_OF,
    CLAUSE_OF_FEMININE,
    CLAUSE_FROM, /* after a word that needs no "of" in English */
    CLAUSE_FROM_FEMININE,
    /* What stands after the act. */
    CLAUSE_FREED,
    CLAUSE_FREED_BY,
    CLAUSE_REFUSED,
    CLAUSE_SAME_INPUTS,
    CLAUSE_SAME_SOURCE,
    CLAUSE_LAST_AGREED,
    CLAUSE_BEFORE_START,
    CLAUSE_PAST_END,
    CLAUSE_WRAPPED_BELOW,
    CLAUSE_WRAPPED_ABOVE,
    CLAUSE_ADDRESS,
    CLAUSE_NEAR_LIVE,
    CLAUSE_NEAR_FREED,
    CLAUSE_NEAR_BEFORE,
    CLAUSE_NEAR_AFTER,
    CLAUSE_DUMP,
    CLAUSE_DUMP_IN_BRIEF,
    CLAUSE_SURFACED,
    CLAUSE_CANDIDATES,
    CLAUSE_MORE,
    CLAUSE_NOT_THE_CAUSE,
    CLAUSE_REASON,
    CLAUSE_TIMES,
    CLAUSE_COUNT
};

const char *words_clause(enum clause clause, enum report_language language);
/* What the cause did, right after its name. */
const char *words_defect(enum finding_defect defect, enum report_language language);

/* ---- Filling in ------------------------------------------------------------------------------ */

/* What a template is filled from. */
struct telling {
    const struct finding *finding;
    enum report_language language;
    bool brief; /* a headline: no events, streams, tensors or places in the source */
    const struct analyze_place *place;         /* for CLAUSE_PLACE and its parts */
    const struct analyze_neighbour *neighbour; /* for CLAUSE_NEAR_* */
    uint64_t number;
};

void tell_clause(const struct telling *telling, enum clause clause, struct text *text);
/* finding_fill.c; context: struct telling. */
bool tell_name(const void *context, struct text_view name, struct text *text);
/* True if a template of that kind of defect may have the name; info NULL: any template. */
bool tell_knows(const struct finding_defect_info *info, struct text_view name);
/* A call without its article. */
void tell_place(const struct telling *telling, const struct analyze_place *place,
                struct text *text);

#endif
