/* section_stage.c - where exactly it happened: the calls, the bytes, the blocks next to them; and
 * everything else that was found. */
#include "report/sections.h"

#include "report/figures.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- Exact stage ---------------------------------------------------------------------------- */

#define STAGE_BYTES 128
#define PLACE_LIMIT 3

/* Prints one attribute of a place into a cell. */
typedef void (*stage_writer)(const struct doc *doc, const struct analyze_place *place, char *cell);

static void write_call(const struct doc *doc, const struct analyze_place *place, char *cell)
{
    struct text words;
    text_init(&words);
    facts_call(place, doc->language, &words);
    snprintf(cell, STAGE_BYTES, "%s", text_get(&words));
    text_release(&words);
}

static void write_layer(const struct doc *doc, const struct analyze_place *place, char *cell)
{
    (void)doc;
    if (place->scope.layer >= 0)
        snprintf(cell, STAGE_BYTES, "%" PRId32, place->scope.layer);
}

static void write_step(const struct doc *doc, const struct analyze_place *place, char *cell)
{
    (void)doc;
    if (place->scope.step >= 0)
        snprintf(cell, STAGE_BYTES, "%" PRId32, place->scope.step);
}

static void write_tensor(const struct doc *doc, const struct analyze_place *place, char *cell)
{
    (void)doc;
    snprintf(cell, STAGE_BYTES, "%s", place->scope.tensor);
}

static void write_bytes(const struct doc *doc, const struct analyze_place *place, char *cell)
{
    if (place->address == 0 && place->bytes == 0)
        return;
    static const enum word modes[] = { WORD_MODE_NONE, WORD_MODE_READ, WORD_MODE_WRITE,
                                       WORD_MODE_UPDATE };
    snprintf(cell, STAGE_BYTES, "%s 0x%" PRIx64 " + %" PRIu64,
             doc_word(doc, modes[place->mode & 3]), place->address, place->bytes);
}

static void write_buffer(const struct doc *doc, const struct analyze_place *place, char *cell)
{
    (void)doc;
    if (place->buffer[0] && place->operand_name[0])
        snprintf(cell, STAGE_BYTES, "%s (%s)", place->buffer, place->operand_name);
    else if (place->buffer[0] && place->operand != EVENT_NO_OPERAND)
        snprintf(cell, STAGE_BYTES, "%s (%u)", place->buffer, (unsigned)place->operand);
    else
        snprintf(cell, STAGE_BYTES, "%s", place->buffer);
}

static void write_track(const struct doc *doc, const struct analyze_place *place, char *cell)
{
    (void)doc;
    if (place->stream_index != EVENT_NO_STREAM)
        snprintf(cell, STAGE_BYTES, "%" PRIu32 " / %" PRIu32, place->stream_index,
                 place->thread_index);
    else
        snprintf(cell, STAGE_BYTES, "- / %" PRIu32, place->thread_index);
}

static void write_graph(const struct doc *doc, const struct analyze_place *place, char *cell)
{
    (void)doc;
    if (place->epoch || place->node)
        snprintf(cell, STAGE_BYTES, "%u / %" PRIu32, (unsigned)place->epoch, place->node);
}

static void write_iteration(const struct doc *doc, const struct analyze_place *place, char *cell)
{
    (void)doc;
    if (place->iteration)
        snprintf(cell, STAGE_BYTES, "%" PRIu64, place->iteration);
}

static void write_site(const struct doc *doc, const struct analyze_place *place, char *cell)
{
    (void)doc;
    if (place->file[0])
        snprintf(cell, STAGE_BYTES, "%s:%" PRIu32, place->file, place->line);
}

static void write_event(const struct doc *doc, const struct analyze_place *place, char *cell)
{
    (void)doc;
    snprintf(cell, STAGE_BYTES, "%" PRIu64, place->event_id);
}

/* Nothing where no place has the attribute. */
static void stage_row(struct doc *doc, enum word label, stage_writer write,
                      const struct analyze_place *const *places, size_t count)
{
    char cells[PLACE_LIMIT][STAGE_BYTES] = { "", "", "" };
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        write(doc, places[i], cells[i]);
        any = any || cells[i][0];
    }
    if (!any)
        return;
    doc_row_begin(doc);
    doc_cell_word(doc, label);
    for (size_t i = 0; i < count; i++)
        doc_cell_text(doc, cells[i]);
    doc_row_end(doc);
}

static void print_stage_table(struct doc *doc, const struct finding *root)
{
    static const struct {
        enum word label;
        stage_writer write;
    } rows[] = {
        { WORD_STAGE_CALL, write_call },           { WORD_STAGE_LAYER, write_layer },
        { WORD_STAGE_STEP, write_step },           { WORD_STAGE_TENSOR, write_tensor },
        { WORD_STAGE_BYTES, write_bytes },         { WORD_STAGE_BUFFER, write_buffer },
        { WORD_STAGE_TRACK, write_track },         { WORD_STAGE_GRAPH, write_graph },
        { WORD_STAGE_ITERATION, write_iteration }, { WORD_STAGE_SITE, write_site },
        { WORD_STAGE_EVENT, write_event },
    };
    const enum word titles[PLACE_LIMIT] = { finding_is_culprit(root)    ? WORD_STAGE_CAUSE
                                            : root->candidate_count > 1 ? WORD_STAGE_CANDIDATE
                                                                        : WORD_STAGE_SYMPTOM,
                                            WORD_STAGE_OTHER, WORD_STAGE_SEEN };
    const struct analyze_place *all[PLACE_LIMIT] = { &root->cause, &root->other, &root->seen };
    const struct analyze_place *places[PLACE_LIMIT];
    struct doc_column columns[PLACE_LIMIT + 1] = { { WORD_STAGE, false, false } };
    size_t count = 0;
    for (size_t i = 0; i < PLACE_LIMIT; i++)
        if (all[i]->event_id) {
            columns[count + 1] = (struct doc_column){ titles[i], false, true };
            places[count++] = all[i];
        }
    doc_table_begin(doc, columns, count + 1);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        stage_row(doc, rows[i].label, rows[i].write, places, count);
    doc_table_end(doc);
}

/* True if the neighbour is near enough to be printed. */
static bool print_neighbour(struct doc *doc, enum word word, const struct analyze_neighbour *one)
{
    char address[24], bytes[TEXT_BYTES_CAPACITY], distance[24];
    if ((!one->name[0] && one->bytes == 0) || analyze_apart(one) > ANALYZE_NEAR_BYTES)
        return false;
    snprintf(address, sizeof(address), "0x%" PRIx64, one->address);
    snprintf(distance, sizeof(distance), "%" PRIu64, analyze_apart(one));
    doc_item_begin(doc);
    doc_words(doc, word, one->name, address, text_bytes(one->bytes, bytes), distance, NULL);
    doc_item_end(doc);
    return true;
}

static void print_neighbourhood(struct doc *doc, const struct analyze_neighbourhood *near)
{
    char address[24], limit[TEXT_BYTES_CAPACITY];
    if (!near->known)
        return;
    snprintf(address, sizeof(address), "0x%" PRIx64, near->address);
    doc_sentence(doc, WORD_NEAR, address, NULL);
    doc_list_begin(doc);
    bool any = print_neighbour(doc, WORD_NEAR_LIVE, &near->live);
    any |= print_neighbour(doc, WORD_NEAR_BEFORE, &near->before);
    any |= print_neighbour(doc, WORD_NEAR_AFTER, &near->after);
    any |= print_neighbour(doc, WORD_NEAR_FREED, &near->freed);
    if (!any) {
        doc_item_begin(doc);
        doc_words(doc, WORD_NEAR_NOTHING, text_bytes(ANALYZE_NEAR_BYTES, limit), NULL);
        doc_item_end(doc);
    }
    doc_list_end(doc);
}

static void print_candidates(struct doc *doc, const struct finding *root)
{
    char count[24];
    if (root->candidate_count < 2)
        return;
    snprintf(count, sizeof(count), "%" PRIu64, root->candidate_count + root->candidates_left_out);
    doc_sentence(doc, WORD_CANDIDATES, count, NULL);
    doc_list_begin(doc);
    for (uint32_t i = 0; i < root->candidate_count && i < FINDING_CANDIDATE_LIMIT; i++) {
        struct text place;
        text_init(&place);
        facts_place(&root->candidates[i], doc->language, &place);
        doc_item_begin(doc);
        doc_text(doc, text_get(&place));
        doc_item_end(doc);
        text_release(&place);
    }
    if (root->candidates_left_out) {
        doc_item_begin(doc);
        doc_text(doc, "...");
        doc_item_end(doc);
    }
    doc_list_end(doc);
}

void section_stage(struct doc *doc, const struct report_facts *facts)
{
    const struct finding *root = facts_subject(facts);
    doc_heading(doc, 2, "stage", WORD_SECTION_STAGE);
    if (!root) {
        doc_sentence(doc, WORD_STAGE_NONE, NULL);
    } else {
        print_stage_table(doc, root);
        print_neighbourhood(doc, &root->near);
        print_candidates(doc, root);
    }
    if (doc->methods->figures) {
        figure_timeline(doc, facts);
        figure_memory(doc, facts);
    }
}

/* ---- All findings --------------------------------------------------------------------------- */

static void print_finding(struct doc *doc, const struct report_facts *facts, size_t analysis,
                          size_t index)
{
    const struct analysis *from = facts->analyses[analysis];
    const struct finding *finding = &from->findings[index];
    const struct report_row *row = facts_row_of(facts, from);
    char number[48];
    struct text words;
    text_init(&words);
    report_finding_describe(finding, doc->language, &words);
    doc_row_begin(doc);
    snprintf(number, sizeof(number), "%s%zu", row ? row->label : "", index + 1);
    doc_cell_text(doc, number);
    doc_cell_text(doc, report_hypothesis_words(finding->hypothesis)->title[doc->language]);
    doc_cell_word(doc, finding->certainty == FINDING_DIRECT ? WORD_DIRECT : WORD_POSSIBLE);
    doc_cell_text(doc, text_get(&words));
    doc_cell_count(doc, finding->count);
    doc_cell_begin(doc);
    if (finding->consequence_of >= 0) {
        snprintf(number, sizeof(number), "%s%" PRId32, row ? row->label : "",
                 finding->consequence_of + 1);
        doc_words(doc, WORD_FOLLOWS_FROM, number, NULL);
    } else if ((int32_t)index == from->root) {
        doc_words(doc, WORD_FIRST_VIOLATION, NULL);
    } else {
        doc_text(doc, "-");
    }
    doc_cell_end(doc);
    doc_row_end(doc);
    doc->out->failed = doc->out->failed || words.failed;
    text_release(&words);
}

void section_findings(struct doc *doc, const struct report_facts *facts)
{
    static const struct doc_column columns[] = {
        { WORD_NUMBER, false, false },    { WORD_HYPOTHESIS, false, false },
        { WORD_CERTAINTY, false, false }, { WORD_FINDING, false, true },
        { WORD_TIMES, true, false },      { WORD_RELATION, false, false }
    };
    struct facts_totals totals = facts_totals(facts);
    char dropped[24];
    if (totals.findings == 0)
        return;
    doc_heading(doc, 2, "findings", WORD_SECTION_FINDINGS);
    doc_table_begin(doc, columns, COUNT_OF(columns));
    for (size_t i = 0; i < facts->analysis_count; i++)
        for (size_t j = 0; facts->analyses[i] && j < facts->analyses[i]->finding_count; j++)
            print_finding(doc, facts, i, j);
    doc_table_end(doc);
    snprintf(dropped, sizeof(dropped), "%" PRIu64, totals.dropped_findings);
    if (totals.dropped_findings)
        doc_sentence(doc, WORD_FINDINGS_DROPPED, dropped, NULL);
}
