/* figure_timeline.c - streams as tracks: what they did around the root cause, or at the end of the
 * recording. At most ITEM_LIMIT events are drawn, whatever the file holds. */
#include "report/figures.h"

#include "base/size.h"

#include "report/events.h"
#include "report/svg.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define ITEM_LIMIT 400u
#define WHOLE_EVENTS 64u /* drawn of a recording without a finding: the last */
#define BEFORE_CAUSE 16u /* events drawn before the cause */
#define AFTER_SEEN 6u    /* and after the error was seen */
#define TRACK_LIMIT 9u   /* the host's and eight streams */
#define WIDTH 900.0
#define LEFT 94.0
#define TRACK_HEIGHT 34.0
#define TOP 20.0

struct item {
    uint64_t id, begin_ns, end_ns;
    uint32_t track; /* 0: host; stream + 1 */
    const char *class;
    char name[EVENT_TENSOR_BYTES];
    char title[160];
};

struct timeline {
    const struct flight_info *info;
    struct item items[ITEM_LIMIT];
    size_t count;
    uint64_t track_end_ns[TRACK_LIMIT]; /* of the last completion */
    bool used[TRACK_LIMIT];             /* has items */
    uint32_t track_count;               /* of those used */
    bool completes;                     /* some work is drawn to its completion */
    uint64_t from_ns, to_ns;
    uint64_t cause_id, seen_id;
};

static const char *class_of(const struct timeline *timeline, const struct event *event)
{
    if (event->id == timeline->cause_id)
        return "work cause";
    if (event->outcome == EVENT_FAILED || event->outcome == EVENT_REFUSED)
        return "work failed";
    switch (event->kind) {
    case EVENT_LAUNCH:
    case EVENT_GRAPH_REPLAY:
        return "work launch";
    case EVENT_COPY_IN:
    case EVENT_COPY_OUT:
    case EVENT_COPY_WITHIN:
    case EVENT_FILL:
        return "work copy";
    default:
        return "work wait";
    }
}

/* Calls in which the host or a stream waits, and work: the rest is bookkeeping. */
static bool is_drawn(const struct event *event)
{
    return events_is_stream_work(event) || event->kind == EVENT_STREAM_SYNC ||
           event->kind == EVENT_MARK_SYNC || event->kind == EVENT_TICKET_REDEEM ||
           event->kind == EVENT_MARK_RECORD || event->kind == EVENT_MARK_WAIT;
}

static uint32_t track_of(const struct event *event)
{
    bool host = event->kind == EVENT_STREAM_SYNC || event->kind == EVENT_MARK_SYNC ||
                event->kind == EVENT_TICKET_REDEEM || event->stream_index == EVENT_NO_STREAM;
    return host ? 0 : event->stream_index < TRACK_LIMIT - 1 ? event->stream_index + 1 : UINT32_MAX;
}

static void complete_item(struct timeline *timeline, const struct event *completion)
{
    uint64_t end_ns = events_since(timeline->info, completion->begin_ns);
    uint32_t track = track_of(completion);
    if (track >= TRACK_LIMIT)
        return;
    for (size_t i = timeline->count; i-- > 0;) {
        struct item *item = &timeline->items[i];
        if (item->id != completion->cause_id || item->track != track)
            continue;
        if (item->begin_ns < timeline->track_end_ns[track])
            item->begin_ns = timeline->track_end_ns[track];
        item->end_ns = max_u64(end_ns, item->begin_ns);
        timeline->completes = true;
        break;
    }
    if (end_ns > timeline->track_end_ns[track])
        timeline->track_end_ns[track] = end_ns;
}

static void add_item(struct timeline *timeline, const struct event *event)
{
    uint32_t track = track_of(event);
    if (timeline->count == ITEM_LIMIT || track >= TRACK_LIMIT)
        return;
    struct item *item = &timeline->items[timeline->count++];
    *item = (struct item){ .id = event->id,
                           .begin_ns = events_since(timeline->info, event->begin_ns),
                           .track = track,
                           .class = class_of(timeline, event) };
    item->end_ns = item->begin_ns + events_duration(event);
    snprintf(item->name, sizeof(item->name), "%s",
             event->op[0] || !event->scope.tensor[0] ? events_name(event) : event->scope.tensor);
    snprintf(item->title, sizeof(item->title), "#%" PRIu64 " %s %s %s (%" PRId32 ", %" PRId32 ")",
             event->id, event_kind_name(event->kind), event->op, event->scope.tensor,
             event->scope.layer, event->scope.step);
    timeline->track_count += !timeline->used[track];
    timeline->used[track] = true;
}

static void collect(struct timeline *timeline, const struct flight_reader *reader, bool whole)
{
    const struct flight_info *info = timeline->info;
    uint64_t id = info->first_id, last = info->last_id;
    if (!whole) {
        id = timeline->cause_id > BEFORE_CAUSE ? timeline->cause_id - BEFORE_CAUSE : 0;
        uint64_t end = max_u64(timeline->seen_id, timeline->cause_id);
        last = end < UINT64_MAX - AFTER_SEEN ? end + AFTER_SEEN : end;
    } else if (info->last_id - info->first_id > WHOLE_EVENTS) {
        id = info->last_id - WHOLE_EVENTS;
    }
    struct event event;
    while (flight_next(reader, &id, &event) && event.id <= last) {
        if (event.kind == EVENT_COMPLETION)
            complete_item(timeline, &event);
        else if (is_drawn(&event))
            add_item(timeline, &event);
        if (timeline->count == ITEM_LIMIT)
            break;
    }
}

static void find_span(struct timeline *timeline)
{
    timeline->from_ns = UINT64_MAX;
    for (size_t i = 0; i < timeline->count; i++) {
        const struct item *item = &timeline->items[i];
        /* A wait may be much longer than all the work: it is cut where the work ends. */
        bool waits = item->track == 0;
        uint64_t end_ns = waits ? item->begin_ns : item->end_ns;
        if (item->begin_ns < timeline->from_ns)
            timeline->from_ns = item->begin_ns;
        if (end_ns > timeline->to_ns)
            timeline->to_ns = end_ns;
    }
    if (timeline->to_ns <= timeline->from_ns)
        timeline->to_ns = timeline->from_ns + 1;
    timeline->to_ns += (timeline->to_ns - timeline->from_ns) / 10 + 1;
}

static double place_x(const struct timeline *timeline, uint64_t time_ns)
{
    double span = (double)(timeline->to_ns - timeline->from_ns);
    return LEFT + ((double)time_ns - (double)timeline->from_ns) / span * (WIDTH - LEFT - 8);
}

/* Tracks without work take no room. */
static double track_y(const struct timeline *timeline, uint32_t track)
{
    uint32_t above = 0;
    for (uint32_t i = 0; i < track; i++)
        above += timeline->used[i];
    return TOP + above * TRACK_HEIGHT;
}

static void draw_tracks(struct doc *doc, const struct timeline *timeline)
{
    for (uint32_t i = 0; i < TRACK_LIMIT; i++) {
        if (!timeline->used[i])
            continue;
        double y = track_y(timeline, i);
        char number[16];
        struct text name;
        text_init(&name);
        snprintf(number, sizeof(number), "%u", (unsigned)(i - 1));
        if (i == 0)
            text_add(&name, doc_word(doc, WORD_TIMELINE_HOST));
        else
            words_fill(&name, doc_word(doc, WORD_PLACE_STREAM), (const char *const[]){ number }, 1);
        svg_text(doc, LEFT - 8, y + 21, "end", "plain", text_get(&name), 12);
        svg_line(doc, LEFT, y + TRACK_HEIGHT - 1, WIDTH - 8, y + TRACK_HEIGHT - 1, "grid");
        text_release(&name);
    }
}

/* The words stand next to the line: the cause's before it, the other's after it. */
static void draw_marker(struct doc *doc, const struct timeline *timeline, double x, enum word word,
                        const char *anchor)
{
    svg_text(doc, anchor[0] == 'e' ? x - 4 : x + 4, TOP - 6, anchor, "title", doc_word(doc, word),
             20);
    svg_line(doc, x, TOP - 16, x, TOP + timeline->track_count * TRACK_HEIGHT, "marker");
}

/* Where an item is drawn; false: past the end. */
static bool place_item(const struct timeline *timeline, const struct item *item, double *ret_x,
                       double *ret_width)
{
    if (item->begin_ns > timeline->to_ns)
        return false;
    double x = place_x(timeline, item->begin_ns);
    double end = place_x(timeline, min_u64(item->end_ns, timeline->to_ns));
    *ret_x = x;
    *ret_width = end - x < 3 ? 3 : end - x; /* thinner ones vanish on paper */
    return true;
}

/* Bars first, then words: no bar covers a name. */
static void draw_items(struct doc *doc, const struct timeline *timeline)
{
    double x, width;
    for (size_t i = 0; i < timeline->count; i++) {
        const struct item *item = &timeline->items[i];
        if (place_item(timeline, item, &x, &width))
            svg_rect(doc, x, track_y(timeline, item->track) + 5, width, TRACK_HEIGHT - 11,
                     item->class, item->title);
    }
    double named[TRACK_LIMIT] = { 0 }; /* up to where a track has names */
    for (size_t i = 0; i < timeline->count; i++) {
        const struct item *item = &timeline->items[i];
        if (!place_item(timeline, item, &x, &width))
            continue;
        size_t room = (size_t)((width - 6) / 6.6);
        if (width > 30 && x >= named[item->track]) {
            svg_text(doc, x + 4, track_y(timeline, item->track) + 21, "start", "inbar", item->name,
                     room);
            named[item->track] = x + width;
        }
        if (item->id == timeline->cause_id)
            draw_marker(doc, timeline, x, WORD_CHAIN_CAUSE, x > LEFT + 60 ? "end" : "start");
        else if (item->id == timeline->seen_id)
            draw_marker(doc, timeline, x, WORD_CHAIN_SURFACED, x < WIDTH - 120 ? "start" : "end");
    }
}

static void draw_axis(struct doc *doc, const struct timeline *timeline, double y)
{
    for (int i = 0; i <= 2; i++) {
        char number[40];
        uint64_t time_ns = timeline->from_ns +
                           (timeline->to_ns - timeline->from_ns) / 2 * (uint64_t)i;
        double x = place_x(timeline, time_ns);
        snprintf(number, sizeof(number), "%.3f", (double)time_ns / 1e6);
        svg_line(doc, x, y - 2, x, y + 3, "axis");
        svg_text(doc, x, y + 15, i == 0 ? "start" : i == 2 ? "end" : "middle", "tick", number, 16);
    }
}

static void draw(struct doc *doc, struct timeline *timeline, bool whole)
{
    static const struct svg_key keys[] = { { "launch", WORD_LEGEND_LAUNCH },
                                           { "copy", WORD_LEGEND_COPY },
                                           { "wait", WORD_LEGEND_WAIT },
                                           { "cause", WORD_LEGEND_CAUSE },
                                           { "failed", WORD_LEGEND_FAILED } };
    const char *caption = doc_word(doc, whole ? WORD_FIGURE_TIMELINE_WHOLE : WORD_FIGURE_TIMELINE);
    double bottom = TOP + timeline->track_count * TRACK_HEIGHT;
    find_span(timeline);
    svg_begin(doc, "time", caption, WIDTH, bottom + 26, 300);
    draw_tracks(doc, timeline);
    draw_items(doc, timeline);
    draw_axis(doc, timeline, bottom + 4);
    svg_end(doc, caption, keys, COUNT_OF(keys));
    if (!timeline->completes)
        doc_sentence(doc, WORD_TIMELINE_CALLS, NULL);
}

void figure_timeline(struct doc *doc, const struct report_facts *facts)
{
    const struct finding *root = facts_subject(facts);
    struct flight_reader *reader;
    struct error ignored;
    if (!facts->flight_path || flight_open(facts->flight_path, &reader, &ignored)) {
        doc_sentence(doc, WORD_NO_RECORDING, NULL);
        return;
    }
    struct timeline *timeline = calloc(1, sizeof(*timeline));
    if (!timeline) {
        doc->out->failed = true;
        flight_reader_close(reader);
        return;
    }
    timeline->info = flight_info(reader);
    timeline->cause_id = root ? root->cause.event_id : 0;
    timeline->seen_id = root ? root->seen.event_id : 0;
    bool whole = timeline->cause_id < timeline->info->first_id ||
                 timeline->cause_id > timeline->info->last_id || timeline->cause_id == 0;
    collect(timeline, reader, whole);
    if (timeline->count > 0)
        draw(doc, timeline, whole);
    else
        doc_sentence(doc, WORD_NO_RECORDING, NULL);
    free(timeline);
    flight_reader_close(reader);
}
