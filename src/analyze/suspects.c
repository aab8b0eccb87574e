/* suspects.c - which launches may have made an illegal access that was not caught in one of them.
 *
 * Evidence excludes; what is left are the suspects. A launch is excluded
 * - when the host waited for it, or for something that comes after it: a stream, a mark, a ticket;
 * - when a later launch of its stream left its crumb;
 * - when it is ordered before such work by marks, through any number of streams;
 * - when the crumbs show that its stream had not got as far (enum crumb_order says how far after
 *   the last crumb a stream may be).
 * - when a GPU core dump of the fault names its launches (hardware.h), and this is none of them.
 * Copies and fills touch what they declare and nothing else: they are suspects only where that
 * memory was given back meanwhile, or where the hardware says that a copy did it; in which case no
 * launch did.
 *
 * One suspect is a culprit. Several are candidates, in this order: first those with memory at or
 * near the address of the fault, the nearest first, then those with memory 2^32 bytes from it, then
 * the others; among equals those that are known to have begun before those that may have; then in
 * the order of their calls. */
#include "analyze/analyze_impl.h"

#include "base/size.h"

#include <string.h>

/* ---- Ranks ---------------------------------------------------------------------------------- */

/* How far a suspect is from what is known to have begun. */
enum depth {
    DEPTH_BEGUN, /* its crumb is there */
    DEPTH_NEXT,  /* the next of its stream */
    DEPTH_EARLY  /* later: only if it began before those before it had ended */
};

/* Addresses are those of pages, as a rule. */
#define PAGE_BITS 12
#define PAGES_WRAPPED (UINT32_MAX - 1)
#define PAGES_FAR UINT32_MAX

struct rank {
    uint32_t pages; /* from its memory to the address; or one of the two above */
    enum depth depth;
    uint64_t event_id;
    uint32_t node;
};

struct suspects {
    const struct analyzer *analyzer;
    const struct event *fault;
    const struct crumb_page *page; /* of the device that faulted; NULL: it has none */
    struct finding *draft;
    struct rank ranks[FINDING_CANDIDATE_LIMIT]; /* of draft->candidates */
    uint32_t kept;
    uint64_t count; /* of all */
    bool nameless;  /* one of them is a replay of which nothing more is known */
    bool by_dump;   /* only launches that the dump of the fault names are suspects */
};

static bool is_before(const struct rank *a, const struct rank *b)
{
    if (a->pages != b->pages)
        return a->pages < b->pages;
    if (a->depth != b->depth)
        return a->depth < b->depth;
    if (a->event_id != b->event_id)
        return a->event_id < b->event_id;
    return a->node < b->node;
}

static uint32_t pages_of(const struct suspects *suspects, uint64_t event_id, uint32_t node)
{
    const struct analyze_neighbourhood *near = &suspects->draft->near;
    const struct event *call = analyze_find_call(suspects->analyzer, event_id, node);
    uint32_t least = PAGES_FAR;
    for (uint32_t i = 0; near->known && call && i < call->access_count; i++) {
        const struct event_access *access = &call->accesses[i];
        uint32_t pages = PAGES_FAR;
        if (access_is_near(access, near->address))
            pages = (uint32_t)(access_distance(access, near->address) >> PAGE_BITS);
        else if (access_wraps(suspects->analyzer, call->device_index, access, near->address))
            pages = PAGES_WRAPPED;
        least = min_u64(pages, least);
    }
    return least;
}

static void suspect(struct suspects *suspects, const struct event *call, uint32_t node,
                    enum depth depth)
{
    struct rank rank = { pages_of(suspects, call->id, node), depth, call->id, node };
    struct finding *draft = suspects->draft;
    uint32_t place = suspects->kept;
    const struct hardware_grid *grid = NULL;
    if (suspects->by_dump) {
        grid = hardware_find_own(suspects->analyzer, call->id, node);
        if (!grid)
            return;
        draft->hardware = grid;
    }
    suspects->count++;
    suspects->nameless = suspects->nameless || (call->kind == EVENT_GRAPH_REPLAY && !node);
    while (place > 0 && is_before(&rank, &suspects->ranks[place - 1]))
        place--;
    if (place == FINDING_CANDIDATE_LIMIT)
        return;
    if (suspects->kept < FINDING_CANDIDATE_LIMIT)
        suspects->kept++;
    uint32_t moved = suspects->kept - place - 1;
    memmove(&suspects->ranks[place + 1], &suspects->ranks[place], moved * sizeof(rank));
    memmove(&draft->candidates[place + 1], &draft->candidates[place],
            moved * sizeof(draft->candidates[0]));
    suspects->ranks[place] = rank;
    draft->candidates[place] = place_of_id(suspects->analyzer, call->id, node);
    if (draft->candidates[place].stream_index == EVENT_NO_STREAM)
        draft->candidates[place].stream_index = call->stream_index;
    draft->candidates[place].device_index = call->device_index;
}

/* ---- A stream's work, one after the other ---------------------------------------------------- */

enum reach {
    REACH_BEGUN, /* up to here all is done, or has begun */
    REACH_NEXT,  /* at launches that one kernel does, the first after those that have begun */
    REACH_EARLY, /* after them: launches that may have begun early */
    REACH_OVER   /* the stream cannot be as far as this */
};

struct walk {
    enum reach reach;
    uint32_t joined;              /* launches taken as the next kernel's */
    uint64_t joined_id;           /* the replay they are of */
    const struct event *previous; /* replay before, NULL: the stream did something else */
};

/* Memory that the copy or fill declares was not there any more. */
static bool has_lost_memory(const struct analyzer *analyzer, const struct event *call,
                            uint64_t before_id)
{
    for (uint32_t i = 0; i < call->access_count; i++) {
        const struct event_access *access = &call->accesses[i];
        const struct ledger_entry *entry = ledger_find_generation(
            &analyzer->ledger, call->device_index, access->buffer_index, access->generation);
        if (!entry || (entry->destroyed_id && entry->destroyed_id < before_id))
            return true;
    }
    return false;
}

/* Work that is not known to have begun. record: what it is; call: that, or the replay. */
static void pass_waiting(struct suspects *suspects, struct walk *walk, const struct event *record,
                         const struct event *call, uint32_t node)
{
    enum crumb_order order = suspects->page ? crumb_order(suspects->page) : CRUMB_ORDER_UNKNOWN;
    bool by_copy = (suspects->fault->flags & EVENT_COPY_ENGINE) != 0;
    if (order == CRUMB_ORDER_EXACT || walk->reach == REACH_OVER)
        return;
    if (record->kind != EVENT_LAUNCH) {
        if (walk->reach == REACH_BEGUN &&
            (by_copy || has_lost_memory(suspects->analyzer, record, suspects->fault->id)))
            suspect(suspects, call, node, DEPTH_NEXT);
        /* Nothing overtakes a copy; without crumbs it may have been done. */
        if (walk->reach != REACH_BEGUN && suspects->page)
            walk->reach = REACH_OVER;
        return;
    }
    if (walk->reach == REACH_BEGUN) {
        walk->reach = REACH_NEXT;
        walk->joined = 0;
        walk->joined_id = call->id;
    }
    bool joined = walk->joined == 0 || (node && walk->joined_id == call->id);
    if (walk->reach == REACH_NEXT && joined && walk->joined < CRUMB_JOIN_LIMIT)
        walk->joined++;
    else
        walk->reach = order == CRUMB_ORDER_NEXT ? REACH_OVER : REACH_EARLY;
    if (walk->reach != REACH_OVER && !by_copy)
        suspect(suspects, call, node, walk->reach == REACH_NEXT ? DEPTH_NEXT : DEPTH_EARLY);
}

/* Work whose crumb is there, and which is not known to have ended. */
static void pass_begun(struct suspects *suspects, const struct event *record,
                       const struct event *call, uint32_t node)
{
    bool by_copy = (suspects->fault->flags & EVENT_COPY_ENGINE) != 0;
    /* A copy that has a crumb is looked at by a kernel (device/inspect.c). */
    if (record->kind == EVENT_LAUNCH ? !by_copy : by_copy || suspects->page)
        suspect(suspects, call, node, DEPTH_BEGUN);
}

/* The crumb's number may be the one that the replay before left: then the first kernel of this
 * replay had not stored its own. */
static bool may_be_stale(const struct suspects *suspects, const struct walk *walk, uint32_t node)
{
    const struct graph *graph =
        walk->previous ? graphs_find(&suspects->analyzer->graphs, walk->previous->cause_id) : NULL;
    return graph && node <= graph->count && node + CRUMB_JOIN_LIMIT > graph->count;
}

static void pass_replay(struct suspects *suspects, struct walk *walk, const struct event *replay,
                        bool begun)
{
    const struct analyzer *analyzer = suspects->analyzer;
    const struct graph *graph = graphs_find(&analyzer->graphs, replay->cause_id);
    uint32_t launches = 1, node = 0;
    if (!graph_is_whole(graph)) {
        if (walk->reach != REACH_OVER)
            suspect(suspects, replay, 0, begun ? DEPTH_BEGUN : DEPTH_NEXT);
        return;
    }
    if (begun)
        node = crumb_node(&suspects->page->streams[replay->stream_index], &launches);
    if (node > graph->count || node == 0) {
        begun = false; /* its first kernel has not stored its number */
    } else if (may_be_stale(suspects, walk, node)) {
        struct walk first = { .reach = REACH_BEGUN };
        for (uint32_t i = 1; i < node && first.joined < CRUMB_JOIN_LIMIT; i++)
            pass_waiting(suspects, &first, &graph->records[i - 1], replay, i);
    }
    for (uint32_t i = begun ? node : 1; i <= graph->count; i++) {
        const struct event *record = &graph->records[i - 1];
        if (begun && i < node + launches)
            pass_begun(suspects, record, replay, i);
        else
            pass_waiting(suspects, walk, record, replay, i);
    }
}

static void pass_call(struct suspects *suspects, struct walk *walk, const struct event *event,
                      const struct progress *progress, uint32_t stream)
{
    bool replay = event->kind == EVENT_GRAPH_REPLAY;
    bool begun = event->id == progress->entered[stream];
    if (event->kind == EVENT_MARK_WAIT) {
        if (walk->reach != REACH_BEGUN && suspects->page)
            walk->reach = REACH_OVER;
        return;
    }
    if ((!replay && !event_is_work(event->kind)) || event_graph_id(event) ||
        event->outcome == EVENT_REFUSED)
        return;
    if (event->id > progress->done[stream]) {
        if (replay)
            pass_replay(suspects, walk, event, begun);
        else if (begun)
            pass_begun(suspects, event, event, 0);
        else
            pass_waiting(suspects, walk, event, event, 0);
    }
    walk->previous = replay ? event : NULL;
}

/* A launch that was begun so long ago that it is not remembered. */
static void pass_forgotten(struct suspects *suspects, const struct progress *progress)
{
    for (uint32_t i = 0; i < VCLOCK_STREAM_LIMIT; i++) {
        const struct stream_state *stream = &suspects->analyzer->order.streams[i];
        uint64_t id = progress->entered[i];
        struct event event = { .id = id,
                               .kind = EVENT_LAUNCH,
                               .device_index = stream->device_index,
                               .stream_index = stream->stream_index };
        if (id > progress->done[i] && stream->device_index == suspects->fault->device_index &&
            !history_find(&suspects->analyzer->history, id))
            suspect(suspects, &event, 0, DEPTH_BEGUN);
    }
}

/* ---- All of it ------------------------------------------------------------------------------ */

bool suspects_have_gaps(const struct analyzer *analyzer)
{
    const struct history *history = &analyzer->history;
    uint64_t first = history_first(history);
    return analyzer->result.damaged_count || analyzer->result.dropped_count ||
           (analyzer->gap_id &&
            (first == history->count || analyzer->gap_id >= history_at(history, first)->event.id));
}

static void pass_all(struct suspects *suspects)
{
    const struct analyzer *analyzer = suspects->analyzer;
    const struct event *fault = suspects->fault;
    const struct history *history = &analyzer->history;
    struct walk walks[VCLOCK_STREAM_LIMIT] = { 0 };
    struct progress progress;
    uint64_t end = fault->id ? history_lower(history, fault->id) : history->count;
    progress_find(analyzer, fault->id ? fault->id : UINT64_MAX, &progress);
    pass_forgotten(suspects, &progress);
    for (uint64_t at = history_first(history); at < end; at++) {
        const struct event *event = &history_at(history, at)->event;
        uint32_t stream = order_place_of(&analyzer->order, event);
        if (event->device_index == fault->device_index && stream != NO_STREAM_PLACE)
            pass_call(suspects, &walks[stream], event, &progress, stream);
    }
}

uint64_t suspects_find(const struct analyzer *analyzer, const struct event *fault,
                       struct finding *draft)
{
    struct suspects suspects = { .analyzer = analyzer,
                                 .fault = fault,
                                 .page = analyze_page(analyzer, analyzer->crumbs,
                                                      fault->device_index),
                                 .draft = draft,
                                 .by_dump = hardware_names_own(analyzer) };
    pass_all(&suspects);
    bool differs = suspects.by_dump && suspects.count == 0;
    if (differs) { /* nothing that may have run is what the dump shows */
        suspects.by_dump = false;
        pass_all(&suspects);
    }
    draft->candidate_count = suspects.kept;
    draft->candidates_left_out = suspects.count - suspects.kept;
    if (suspects.kept)
        draft->cause = draft->candidates[0];
    bool gaps = suspects_have_gaps(analyzer);
    /* The dump names its launch by itself: records that are missing are of others. */
    if (suspects.count == 1 && !differs && (!gaps || suspects.by_dump) && !suspects.nameless)
        return 1;
    bool by_address = suspects.kept && suspects.ranks[0].pages != PAGES_FAR;
    draft->certainty = FINDING_POSSIBLE;
    finding_set_reason(draft, differs                       ? REASON_DUMP_DIFFERS
                              : suspects.count == 0         ? REASON_NO_LAUNCH_KNOWN
                              : suspects.count == 1 && gaps ? REASON_GAPS
                              : suspects.count == 1         ? REASON_REPLAY_UNKNOWN
                              : by_address                  ? REASON_NEAR_ADDRESS
                                                            : REASON_SEVERAL_LAUNCHES);
    return suspects.count;
}
