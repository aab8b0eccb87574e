/* finding.c - a finding as one sentence: who did what, with the numbers, and where it surfaced. A
 * headline is the same sentence without what identifies the calls. */
#include "report/finding_words.h"

#include <string.h>

/* More candidates than these are counted, not named: in a headline, in the whole sentence. */
#define HEADLINE_CANDIDATES 3u
#define SENTENCE_CANDIDATES 8u

static void tell_number(const struct telling *telling, enum clause clause, uint64_t number,
                        struct text *text)
{
    struct telling of = *telling;
    of.number = number;
    tell_clause(&of, clause, text);
}

/* The culprit: "rope, layer 2, step 3", or that it was one of several. */
static void tell_subject(const struct telling *telling, struct text *text)
{
    const struct finding *finding = telling->finding;
    if (finding->candidate_count > 1)
        tell_number(telling, CLAUSE_ONE_OF, finding->candidate_count + finding->candidates_left_out,
                    text);
    else
        tell_place(telling, &finding->cause, text);
}

static void tell_act(const struct telling *telling, struct text *text)
{
    template_fill(text, words_defect(finding_defect(telling->finding), telling->language),
                  tell_name, telling);
}

static void tell_neighbour(const struct telling *telling, enum clause clause,
                           const struct analyze_neighbour *neighbour, struct text *text)
{
    struct telling of = *telling;
    of.neighbour = neighbour;
    if (neighbour->bytes && analyze_apart(neighbour) <= ANALYZE_NEAR_BYTES)
        tell_clause(&of, clause, text);
}

static void tell_near(const struct telling *telling, struct text *text)
{
    const struct analyze_neighbourhood *near = &telling->finding->near;
    if (!near->known)
        return;
    tell_clause(telling, CLAUSE_ADDRESS, text);
    tell_neighbour(telling, CLAUSE_NEAR_LIVE, &near->live, text);
    tell_neighbour(telling, CLAUSE_NEAR_FREED, &near->freed, text);
    if (near->live.bytes)
        return;
    tell_neighbour(telling, CLAUSE_NEAR_BEFORE, &near->before, text);
    tell_neighbour(telling, CLAUSE_NEAR_AFTER, &near->after, text);
}

/* What the hardware recorded, if it did. */
static void tell_dump(const struct telling *telling, struct text *text)
{
    if (telling->finding->hardware)
        tell_clause(telling, telling->brief ? CLAUSE_DUMP_IN_BRIEF : CLAUSE_DUMP, text);
}

static void tell_surfaced(const struct telling *telling, struct text *text)
{
    const struct finding *finding = telling->finding;
    if (finding->seen.event_id && finding->seen.event_id != finding->cause.event_id)
        tell_clause(telling, CLAUSE_SURFACED, text);
}

static void tell_candidates(const struct telling *telling, struct text *text)
{
    const struct finding *finding = telling->finding;
    uint32_t count = finding->candidate_count,
             shown = telling->brief ? HEADLINE_CANDIDATES : SENTENCE_CANDIDATES;
    if (count < 2)
        return;
    tell_clause(telling, CLAUSE_CANDIDATES, text);
    for (uint32_t i = 0; i < count && i < shown; i++) {
        text_add(text, i ? "; " : "");
        tell_place(telling, &finding->candidates[i], text);
    }
    uint64_t more = finding->candidates_left_out + (count > shown ? count - shown : 0);
    if (more)
        tell_number(telling, CLAUSE_MORE, more, text);
}

/* A symptom is not sold as its cause. */
static void tell_attribution(const struct telling *telling, struct text *text)
{
    const struct finding *finding = telling->finding;
    if (finding->certainty == FINDING_DIRECT && finding->attribution == FINDING_SEEN_AT &&
        finding->candidate_count <= 1 && finding->consequence_of < 0)
        tell_clause(telling, CLAUSE_NOT_THE_CAUSE, text);
}

void report_finding_describe(const struct finding *finding, enum report_language language,
                             struct text *text)
{
    const struct telling full = { .finding = finding, .language = language };
    tell_subject(&full, text);
    tell_act(&full, text);
    if (finding->hypothesis != HYPOTHESIS_SILENT_CORRUPTION)
        tell_near(&full, text);
    tell_dump(&full, text);
    tell_surfaced(&full, text);
    tell_candidates(&full, text);
    tell_attribution(&full, text);
    if (finding->reason)
        tell_clause(&full, CLAUSE_REASON, text);
    if (finding->count > 1)
        tell_number(&full, CLAUSE_TIMES, finding->count, text);
}

void report_finding_headline(const struct finding *finding, enum report_language language,
                             struct text *text)
{
    const struct telling brief = { .finding = finding, .language = language, .brief = true };
    tell_subject(&brief, text);
    tell_act(&brief, text);
    tell_dump(&brief, text);
    tell_surfaced(&brief, text);
    tell_candidates(&brief, text);
    tell_attribution(&brief, text);
}

void report_finding_act(const struct finding *finding, enum report_language language,
                        struct text *text)
{
    const struct telling brief = { .finding = finding, .language = language, .brief = true };
    struct text act;
    text_init(&act);
    tell_act(&brief, &act);
    const char *words = text_get(&act);
    text_add(text, words + strspn(words, ": "));
    text->failed = text->failed || act.failed;
    text_release(&act);
}
