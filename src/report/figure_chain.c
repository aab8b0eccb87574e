/* figure_chain.c - the causal chain as boxes from top to bottom, in the order of time. */
#include "report/figures.h"

#include "report/escape.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

struct link {
    const struct analyze_place *place;
    enum word label;
    const char *class;
    bool acts; /* what the finding says was done was done here */
};

/* "layer 2, step 3, logits" */
static void add_scope(struct doc *doc, const struct analyze_place *place, struct text *text)
{
    char number[32];
    if (place->scope.layer >= 0) {
        snprintf(number, sizeof(number), "%" PRId32, place->scope.layer);
        text_add(text, ", ");
        words_fill(text, doc_word(doc, WORD_PLACE_LAYER), (const char *const[]){ number }, 1);
    }
    if (place->scope.step >= 0) {
        snprintf(number, sizeof(number), "%" PRId32, place->scope.step);
        text_add(text, ", ");
        words_fill(text, doc_word(doc, WORD_PLACE_STEP), (const char *const[]){ number }, 1);
    }
}

/* "rope_qk, stream 1, forward.c:113" */
static void add_site(struct doc *doc, const struct analyze_place *place, struct text *text)
{
    char number[32];
    if (place->op[0])
        text_add(text, place->scope.tensor);
    if (place->stream_index != EVENT_NO_STREAM) {
        snprintf(number, sizeof(number), "%" PRIu32, place->stream_index);
        text_add(text, text->length ? ", " : "");
        words_fill(text, doc_word(doc, WORD_PLACE_STREAM), (const char *const[]){ number }, 1);
    }
    if (place->file[0])
        text_addf(text, "%s%s:%" PRIu32, text->length ? ", " : "", place->file, place->line);
}

static void add_element(struct doc *doc, const char *element, struct text *words)
{
    if (words->length > 0) {
        text_addf(doc->out, "<p><%s>", element);
        escape_markup(doc->out, text_get(words));
        text_addf(doc->out, "</%s></p>\n", element);
    }
    doc->out->failed = doc->out->failed || words->failed;
    text_clear(words);
}

static void draw_box(struct doc *doc, const struct finding *finding, const struct link *link)
{
    const struct analyze_place *place = link->place;
    struct text words;
    text_init(&words);
    text_addf(doc->out, "<div class=\"%s\">\n", link->class);
    text_add(&words, doc_word(doc, link->label));
    add_element(doc, "small", &words);
    if (place->op[0])
        facts_call(place, doc->language, &words);
    else
        report_add_kind(&words, place->kind, doc->language, place->scope.tensor);
    add_scope(doc, place, &words);
    add_element(doc, "strong", &words);
    if (link->acts)
        report_finding_act(finding, doc->language, &words);
    add_element(doc, "span", &words);
    add_site(doc, place, &words);
    add_element(doc, "small", &words);
    text_add(doc->out, "</div>\n");
    text_release(&words);
}

static void draw_arrow(struct doc *doc, const struct analyze_place *from,
                       const struct analyze_place *to)
{
    char later[32], event[24];
    double passed_ms = ((double)to->time_ns - (double)from->time_ns) / 1e6;
    struct text words;
    snprintf(later, sizeof(later), "%.3f", fabs(passed_ms));
    snprintf(event, sizeof(event), "%" PRIu64, to->event_id);
    text_init(&words);
    words_fill(&words, doc_word(doc, passed_ms < 0 ? WORD_CHAIN_EARLIER : WORD_CHAIN_LATER),
               (const char *const[]){ later, event }, 2);
    text_add(doc->out, "<p class=\"then\">");
    escape_markup(doc->out, text_get(&words));
    text_add(doc->out, "</p>\n");
    text_release(&words);
}

static uint64_t consequences(const struct report_facts *facts)
{
    uint64_t count = 0;
    if (!facts_root(facts))
        return 0;
    const struct analysis *from = facts->analyses[facts->verdict.root_analysis];
    for (size_t i = 0; i < from->finding_count; i++)
        count += from->findings[i].consequence_of == facts->verdict.root_finding;
    return count;
}

/* The places of the finding in the order of time. */
static size_t make_links(const struct finding *finding, struct link links[3])
{
    size_t count = 0;
    const struct link other = { &finding->other, WORD_CHAIN_OTHER, "box", false };
    bool has_other = finding->other.event_id != 0;
    bool other_first = has_other && finding->other.event_id < finding->cause.event_id;
    bool culprit = finding_is_culprit(finding);
    enum word label = culprit                        ? WORD_CHAIN_CAUSE
                      : finding->candidate_count > 1 ? WORD_CHAIN_CANDIDATE
                                                     : WORD_CHAIN_SEEN;
    if (other_first)
        links[count++] = other;
    links[count++] = (struct link){ &finding->cause, label, culprit ? "box culprit" : "box seen",
                                    true };
    if (has_other && !other_first)
        links[count++] = other;
    if (facts_seen_elsewhere(finding))
        links[count++] = (struct link){ &finding->seen, WORD_CHAIN_SURFACED, "box seen", false };
    return count;
}

void figure_chain(struct doc *doc, const struct report_facts *facts)
{
    const struct finding *finding = facts_subject(facts);
    struct link links[3];
    if (!finding || finding->cause.event_id == 0)
        return;
    size_t count = make_links(finding, links);
    text_add(doc->out, "<figure class=\"chain\">\n");
    for (size_t i = 0; i < count; i++) {
        draw_box(doc, finding, &links[i]);
        if (i + 1 < count)
            draw_arrow(doc, links[i].place, links[i + 1].place);
    }
    uint64_t following = consequences(facts);
    if (following) {
        char number[24];
        snprintf(number, sizeof(number), "%" PRIu64, following);
        doc_sentence(doc, WORD_CHAIN_FOLLOWING, number, NULL);
    }
    text_add(doc->out, "<figcaption>");
    escape_markup(doc->out, doc_word(doc, count > 1 ? WORD_FIGURE_CHAIN : WORD_FIGURE_PLACE));
    text_add(doc->out, "</figcaption>\n</figure>\n");
}
