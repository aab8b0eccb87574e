/* figure_chain.c - the causal chain as boxes from top to bottom, in the order of time. */
#include "report/figures.h"

#include "report/svg.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define BOX_WIDTH 356.0
#define BOX_HEIGHT 82.0
#define GAP 46.0 /* between boxes: an arrow and its words */
#define MARGIN 2.0

struct link {
    const struct analyze_place *place;
    enum word label;
    const char *class;
};

static void draw_box(struct doc *doc, const struct link *link, double y)
{
    const struct analyze_place *place = link->place;
    char layer[32] = "", step[32] = "";
    struct text where;
    text_init(&where);
    svg_rect(doc, MARGIN, y, BOX_WIDTH, BOX_HEIGHT, link->class, NULL);
    svg_text(doc, MARGIN + 12, y + 19, "start", "label", doc_word(doc, link->label), 40);
    analyze_add_kind(&where, place->kind, doc->language, place->op);
    svg_text(doc, MARGIN + 12, y + 37, "start", "title", text_get(&where), 44);
    text_clear(&where);
    if (place->scope.layer >= 0) {
        snprintf(layer, sizeof(layer), "%" PRId32, place->scope.layer);
        words_fill(&where, doc_word(doc, WORD_PLACE_LAYER), (const char *const[]){ layer }, 1);
    }
    if (place->scope.step >= 0) {
        snprintf(step, sizeof(step), "%" PRId32, place->scope.step);
        text_add(&where, where.length ? ", " : "");
        words_fill(&where, doc_word(doc, WORD_PLACE_STEP), (const char *const[]){ step }, 1);
    }
    if (place->scope.tensor[0]) {
        text_add(&where, where.length ? ", " : "");
        text_add(&where, place->scope.tensor);
    }
    svg_text(doc, MARGIN + 12, y + 55, "start", "plain", text_get(&where), 52);
    text_clear(&where);
    if (place->stream_index != EVENT_NO_STREAM) {
        snprintf(step, sizeof(step), "%" PRIu32, place->stream_index);
        words_fill(&where, doc_word(doc, WORD_PLACE_STREAM), (const char *const[]){ step }, 1);
    }
    if (place->file[0])
        text_addf(&where, "%s%s:%" PRIu32, where.length ? ", " : "", place->file, place->line);
    svg_text(doc, MARGIN + 12, y + 72, "start", "plain", text_get(&where), 52);
    doc->out->failed = doc->out->failed || where.failed;
    text_release(&where);
}

static void draw_arrow(struct doc *doc, const struct analyze_place *from,
                       const struct analyze_place *to, double y)
{
    char later[32], event[24];
    double x = MARGIN + 40;
    double passed_ms = ((double)to->time_ns - (double)from->time_ns) / 1e6;
    struct text words;
    svg_line(doc, x, y, x, y + GAP - 8, "arrow");
    svg_arrow_head(doc, x, y + GAP - 1);
    snprintf(later, sizeof(later), "%.3f", fabs(passed_ms));
    snprintf(event, sizeof(event), "%" PRIu64, to->event_id);
    text_init(&words);
    words_fill(&words, doc_word(doc, passed_ms < 0 ? WORD_CHAIN_EARLIER : WORD_CHAIN_LATER),
               (const char *const[]){ later, event }, 2);
    svg_text(doc, x + 16, y + GAP / 2 + 3, "start", "plain", text_get(&words), 50);
    text_release(&words);
}

static uint64_t consequences(const struct report_facts *facts)
{
    const struct analysis *from = facts->analyses[facts->verdict.root_analysis];
    uint64_t count = 0;
    for (size_t i = 0; i < from->finding_count; i++)
        count += from->findings[i].consequence_of == facts->verdict.root_finding;
    return count;
}

void figure_chain(struct doc *doc, const struct report_facts *facts)
{
    const struct finding *root = facts_root(facts);
    if (!root || root->cause.event_id == 0)
        return;
    struct link links[3];
    size_t count = 0;
    const struct link other = { &root->other, WORD_CHAIN_OTHER, "box" };
    bool has_other = root->other.event_id != 0;
    bool other_first = has_other && root->other.event_id < root->cause.event_id;
    if (other_first)
        links[count++] = other;
    links[count++] = (struct link){ &root->cause, WORD_CHAIN_CAUSE, "box cause" };
    if (has_other && !other_first)
        links[count++] = other;
    if (facts_seen_elsewhere(root))
        links[count++] = (struct link){ &root->seen, WORD_CHAIN_SEEN, "box seen" };
    uint64_t following = consequences(facts);
    double height = (double)count * BOX_HEIGHT + (double)(count - 1) * GAP + 2 * MARGIN +
                    (following ? 26 : 0);
    const char *caption = doc_word(doc, WORD_FIGURE_CHAIN);
    svg_begin(doc, caption, BOX_WIDTH + 2 * MARGIN, height, BOX_WIDTH * 0.8);
    for (size_t i = 0; i < count; i++) {
        double y = MARGIN + (BOX_HEIGHT + GAP) * (double)i;
        draw_box(doc, &links[i], y);
        if (i + 1 < count)
            draw_arrow(doc, links[i].place, links[i + 1].place, y + BOX_HEIGHT);
    }
    if (following) {
        char number[24];
        struct text words;
        text_init(&words);
        snprintf(number, sizeof(number), "%" PRIu64, following);
        words_fill(&words, doc_word(doc, WORD_CHAIN_FOLLOWING), (const char *const[]){ number }, 1);
        svg_text(doc, MARGIN + 12, height - 8, "start", "plain", text_get(&words), 60);
        text_release(&words);
    }
    svg_end(doc, caption);
}
