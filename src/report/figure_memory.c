/* figure_memory.c - the memory map: buffers in the order of their addresses, one line each, with
 * the address of the fault among them. Lengths of bars are logarithms of sizes: buffers differ by a
 * factor of a million. */
#include "report/figures.h"

#include "base/size.h"

#include "report/svg.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define WIDTH 760.0
#define LINE 19.0
#define ADDRESS_X 4.0
#define BAR_X 150.0
#define BAR_WIDTH 190.0
#define NAME_X (BAR_X + BAR_WIDTH + 86)
#define LINE_LIMIT 41u /* buffers drawn; those nearest to the fault */

static int by_address(const void *a, const void *b)
{
    const struct flight_allocation *x = *(const struct flight_allocation *const *)a;
    const struct flight_allocation *y = *(const struct flight_allocation *const *)b;
    if (x->address != y->address)
        return x->address < y->address ? -1 : 1;
    return (x->created_id > y->created_id) - (x->created_id < y->created_id);
}

/* Those that were there at the moment, alive or freed, sorted; the caller's; NULL without memory.
 */
static const struct flight_allocation **sorted_allocations(const struct flight_reader *reader,
                                                           uint64_t moment, size_t *ret_count)
{
    size_t count = flight_allocation_count(reader), kept = 0;
    const struct flight_allocation **sorted = malloc((count + 1) * sizeof(*sorted));
    if (!sorted)
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (flight_allocation_at(reader, i)->created_id <= moment)
            sorted[kept++] = flight_allocation_at(reader, i);
    qsort(sorted, kept, sizeof(*sorted), by_address);
    *ret_count = kept;
    return sorted;
}

static bool is_place(const struct analyze_place *place, const struct flight_allocation *one)
{
    return place->event_id && place->buffer[0] && place->buffer_index == one->buffer_index &&
           place->generation == (uint16_t)one->generation;
}

static bool is_neighbour(const struct analyze_neighbour *near, const struct flight_allocation *one)
{
    return near->bytes && near->created_id == one->created_id && near->address == one->address;
}

/* Names are not enough: several buffers may have one. */
static bool is_named(const struct finding *root, const struct flight_allocation *one)
{
    return (is_place(&root->cause, one) || is_place(&root->other, one) ||
            is_neighbour(&root->near.live, one) || is_neighbour(&root->near.freed, one));
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return max_u64(a, b);
}

/* The event as of which memory is shown: the last that has to do with the finding. */
static uint64_t moment_of(const struct finding *finding)
{
    return later(finding->order_id, later(finding->cause.event_id,
                                          later(finding->other.event_id, finding->seen.event_id)));
}

static void draw_buffer(struct doc *doc, const struct finding *root, uint64_t moment,
                        const struct flight_allocation *one, double y)
{
    char text[64], size[TEXT_BYTES_CAPACITY];
    double length = log2((double)one->bytes + 2) / 40 * BAR_WIDTH;
    bool freed = one->destroyed_id != 0 && one->destroyed_id <= moment;
    snprintf(text, sizeof(text), "0x%" PRIx64, one->address);
    svg_text(doc, ADDRESS_X, y + 14, "start", "mono", text, 20);
    svg_rect(doc, BAR_X, y + 4, fmin(length, BAR_WIDTH), LINE - 7,
             is_named(root, one) ? (freed ? "buffer named freed" : "buffer named")
             : freed             ? "buffer freed"
                                 : "buffer",
             one->name);
    svg_text(doc, BAR_X + BAR_WIDTH + 80, y + 14, "end", "tick", text_bytes(one->bytes, size), 16);
    snprintf(text, sizeof(text), "%.44s%s%s", one->name, freed ? ", " : "",
             freed ? doc_word(doc, WORD_MEMORY_FREED) : "");
    svg_text(doc, NAME_X, y + 14, "start", is_named(root, one) ? "title" : "plain", text, 46);
}

static void draw_fault(struct doc *doc, uint64_t address, double y)
{
    char text[96];
    snprintf(text, sizeof(text), "0x%" PRIx64 "  %s", address, doc_word(doc, WORD_MEMORY_FAULT));
    svg_rect(doc, ADDRESS_X - 2, y + 1, WIDTH - ADDRESS_X, LINE - 2, "fault", NULL);
    svg_text(doc, ADDRESS_X + 2, y + 14, "start", "title", text, 60);
}

static void draw_map(struct doc *doc, const struct finding *root, uint64_t moment,
                     const struct flight_allocation *const *sorted, size_t count)
{
    bool known = root->near.known;
    /* The first buffer past the fault; where there is no address, the first that is named. */
    size_t at = 0;
    while (at < count &&
           (known ? sorted[at]->address <= root->near.address : !is_named(root, sorted[at])))
        at++;
    size_t middle = at < count || known ? at : 0;
    size_t from = middle > LINE_LIMIT / 2 ? middle - LINE_LIMIT / 2 : 0;
    size_t to = from + LINE_LIMIT < count ? from + LINE_LIMIT : count;
    static const struct svg_key keys[] = { { "buffer", WORD_MEMORY_LIVE },
                                           { "buffer freed", WORD_MEMORY_FREED },
                                           { "buffer named", WORD_MEMORY_NAMED } };
    const char *caption = doc_word(doc, WORD_FIGURE_MEMORY);
    double lines = (double)(to - from) + (known ? 1 : 0), y = 2;
    doc_fold_begin(doc);
    doc_words(doc, WORD_MEMORY_MAP, NULL);
    doc_fold_body(doc);
    svg_begin(doc, "memory", caption, WIDTH, lines * LINE + 4, 460);
    for (size_t i = from; i <= to; i++) {
        if (known && i == at) {
            draw_fault(doc, root->near.address, y);
            y += LINE;
        }
        if (i < to) {
            draw_buffer(doc, root, moment, sorted[i], y);
            y += LINE;
        }
    }
    svg_end(doc, caption, keys, COUNT_OF(keys));
    if (to - from < count) {
        char more[24];
        snprintf(more, sizeof(more), "%zu", count - (to - from));
        doc_sentence(doc, WORD_MEMORY_MORE, more, NULL);
    }
    doc_fold_end(doc);
}

void figure_memory(struct doc *doc, const struct report_facts *facts)
{
    const struct finding *finding = facts_subject(facts);
    struct flight_reader *reader;
    struct error ignored;
    if (!finding || !facts->flight_path || flight_open(facts->flight_path, &reader, &ignored))
        return;
    uint64_t moment = moment_of(finding);
    size_t count = 0;
    const struct flight_allocation **sorted = sorted_allocations(reader, moment, &count);
    if (!sorted)
        doc->out->failed = true;
    else if (count > 0)
        draw_map(doc, finding, moment, sorted, count);
    free(sorted);
    flight_reader_close(reader);
}
