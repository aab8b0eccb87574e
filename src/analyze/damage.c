/* damage.c - which launches may have damaged a canary.
 *
 * The canaries of a buffer are checked, and put back, after each launch that writes it (after a
 * replay of such launches: somewhere in it, at the latest at its end). So what a check finds was
 * done after the last check before it, by any launch of any stream: an overrun need not be one of
 * the buffer's own writer. Excluded is a launch
 * - that was over before such an earlier check, or before the buffer was made;
 * - that began after the check which found the damage.
 * Both by the order that order.c knows, never by ids alone. Copies and fills touch what they
 * declare and nothing else.
 *
 * One launch left is the culprit, if nothing is missing among the calls that are remembered.
 * Several are candidates, in this order: first those that write near the damaged bytes, the nearest
 * first, then the others; among equals in the order of their calls. */
#include "analyze/analyze_impl.h"

#include <string.h>

/* As much is checked on each side after a launch (device/inspect.c), more only when the buffer is
 * destroyed: then damage further away says nothing of when. */
#define CHECKED_BYTES 64u

struct rank {
    uint64_t distance; /* from what it writes to the damage; UINT64_MAX: far */
    uint64_t event_id;
    uint32_t node;
};

struct search {
    const struct analyzer *analyzer;
    const struct event *canary;
    const struct history_entry *check; /* the call after which it was seen; NULL: not known */
    bool blind;                        /* order is not known: nothing is excluded by it */
    struct vclock over;                /* work that was over before an earlier check */
    struct finding *draft;
    struct rank ranks[FINDING_CANDIDATE_LIMIT]; /* of draft->candidates */
    uint32_t kept;
    uint64_t count; /* of all */
    bool nameless;  /* one of them is a replay of which nothing more is known */
};

/* ---- Order ---------------------------------------------------------------------------------- */

static const struct vclock *clock_of(const struct search *search, const struct history_entry *entry)
{
    const struct history *history = &search->analyzer->history;
    return history->clocks ? &history->clocks[entry - history->entries] : NULL;
}

/* Work that has a tick was done by a stream that has a place. */
static bool has_ticks(const struct history_entry *entry)
{
    return entry->first_tick != 0;
}

static uint32_t place_in_clocks(const struct search *search, const struct history_entry *entry)
{
    return order_place_of(&search->analyzer->order, &entry->event);
}

/* Canaries of a device are damaged by its own work. */
static bool is_elsewhere(const struct search *search, const struct event *event)
{
    return event->device_index != search->canary->device_index;
}

/* Is it known that the work was over before this check? */
static bool is_before_check(const struct search *search, const struct history_entry *entry)
{
    if (!has_ticks(entry))
        return false;
    uint32_t stream = place_in_clocks(search, entry);
    if (search->check)
        return search->check != entry && has_ticks(search->check) &&
               vclock_covers(clock_of(search, search->check), stream, entry->last_tick);
    /* Seen by the host: what its thread had waited for. */
    uint32_t thread = search->canary->thread_index;
    const struct order *order = &search->analyzer->order;
    return thread < THREAD_LIMIT &&
           vclock_covers(&order->threads[thread].clock, stream, entry->last_tick);
}

static bool is_after_check(const struct search *search, const struct history_entry *entry)
{
    const struct history_entry *check = search->check;
    if (!check || !has_ticks(check) || !has_ticks(entry))
        return false;
    uint32_t stream = place_in_clocks(search, check);
    if (place_in_clocks(search, entry) == stream)
        return entry->first_tick > check->last_tick;
    return !search->blind && vclock_covers(clock_of(search, entry), stream, check->last_tick);
}

static bool is_over(const struct search *search, const struct history_entry *entry)
{
    return has_ticks(entry) &&
           vclock_covers(&search->over, place_in_clocks(search, entry), entry->last_tick);
}

/* ---- Earlier checks ------------------------------------------------------------------------- */

static bool writes_buffer(const struct search *search, const struct event *launch)
{
    const struct event_access *damaged = &search->canary->accesses[0];
    for (uint32_t i = 0; i < launch->access_count; i++) {
        const struct event_access *access = &launch->accesses[i];
        if ((access->mode & EVENT_WRITE) && access->buffer_index == damaged->buffer_index &&
            access->generation == damaged->generation)
            return true;
    }
    return false;
}

static const struct graph *graph_of(const struct search *search, const struct event *replay)
{
    const struct graph *graph = graphs_find(&search->analyzer->graphs, replay->cause_id);
    return graph_is_whole(graph) ? graph : NULL;
}

/* Was the canary checked after this call? */
static bool is_checked(const struct search *search, const struct event *call)
{
    if (call->outcome != EVENT_DONE || event_graph_id(call))
        return false;
    if (call->kind == EVENT_LAUNCH)
        return writes_buffer(search, call);
    const struct graph *graph = call->kind == EVENT_GRAPH_REPLAY ? graph_of(search, call) : NULL;
    for (size_t i = 0; graph && i < graph->count; i++)
        if (graph->records[i].kind == EVENT_LAUNCH && writes_buffer(search, &graph->records[i]))
            return true;
    return false;
}

/* Are the damaged bytes among those that are checked after each launch? */
static bool is_at_edge(const struct event *canary)
{
    int64_t offset = canary->canary.offset;
    return canary->cause_id ||
           (offset < 0 ? offset >= -(int64_t)CHECKED_BYTES
                       : (uint64_t)offset < canary->canary.buffer_bytes + CHECKED_BYTES);
}

/* Adds what was over before the call, and the call itself if it was work. */
static void add_over(struct search *search, const struct history_entry *entry)
{
    vclock_join(&search->over, clock_of(search, entry));
    if (!has_ticks(entry))
        return;
    uint32_t stream = place_in_clocks(search, entry);
    if (search->over.ticks[stream] < entry->last_tick)
        search->over.ticks[stream] = entry->last_tick;
}

static void find_over(struct search *search)
{
    const struct history *history = &search->analyzer->history;
    const struct event_access *damaged = &search->canary->accesses[0];
    bool at_edge = is_at_edge(search->canary);
    for (uint64_t at = history_first(history); at < history->count; at++) {
        const struct history_entry *entry = history_at(history, at);
        const struct event *event = &entry->event;
        if (is_elsewhere(search, event))
            continue;
        bool made = event->kind == EVENT_BUFFER_CREATE && event->outcome == EVENT_DONE &&
                    event->access_count &&
                    event->accesses[0].buffer_index == damaged->buffer_index &&
                    event->accesses[0].generation == damaged->generation;
        if (made || (at_edge && is_before_check(search, entry) && is_checked(search, event)))
            add_over(search, entry);
    }
}

/* ---- Candidates ----------------------------------------------------------------------------- */

static bool is_first(const struct rank *a, const struct rank *b)
{
    if (a->distance != b->distance)
        return a->distance < b->distance;
    return a->event_id != b->event_id ? a->event_id < b->event_id : a->node < b->node;
}

static uint64_t distance_of(const struct search *search, const struct event *launch)
{
    uint64_t address = search->canary->canary.address, least = UINT64_MAX;
    for (uint32_t i = 0; i < launch->access_count; i++) {
        const struct event_access *access = &launch->accesses[i];
        uint64_t distance = access_distance(access, address);
        if ((access->mode & EVENT_WRITE) && access_is_near(access, address) && distance < least)
            least = distance;
    }
    return least;
}

/* launch: what it is; call: that, or the replay. */
static void suspect(struct search *search, const struct event *launch, const struct event *call,
                    uint32_t node)
{
    struct finding *draft = search->draft;
    struct rank rank = { distance_of(search, launch), call->id, node };
    uint32_t place = search->kept;
    search->count++;
    while (place > 0 && is_first(&rank, &search->ranks[place - 1]))
        place--;
    if (place == FINDING_CANDIDATE_LIMIT)
        return;
    if (search->kept < FINDING_CANDIDATE_LIMIT)
        search->kept++;
    uint32_t moved = search->kept - place - 1;
    memmove(&search->ranks[place + 1], &search->ranks[place], moved * sizeof(rank));
    memmove(&draft->candidates[place + 1], &draft->candidates[place],
            moved * sizeof(draft->candidates[0]));
    search->ranks[place] = rank;
    draft->candidates[place] = place_of_id(search->analyzer, call->id, node);
}

static void suspect_call(struct search *search, const struct event *call)
{
    if (call->kind == EVENT_LAUNCH) {
        suspect(search, call, call, 0);
        return;
    }
    const struct graph *graph = graph_of(search, call);
    for (size_t i = 0; graph && i < graph->count; i++)
        if (graph->records[i].kind == EVENT_LAUNCH)
            suspect(search, &graph->records[i], call, (uint32_t)i + 1);
    if (!graph) {
        suspect(search, call, call, 0);
        search->nameless = true;
    }
}

/* Work that is not remembered any more and was not over: at most so much. */
static uint64_t count_forgotten(const struct search *search)
{
    const struct history *history = &search->analyzer->history;
    uint64_t first[VCLOCK_STREAM_LIMIT], forgotten = 0;
    const struct stream_state *streams = search->analyzer->order.streams;
    for (uint32_t i = 0; i < VCLOCK_STREAM_LIMIT; i++)
        first[i] = streams[i].clock.ticks[i] + 1;
    for (uint64_t at = history_first(history); at < history->count; at++) {
        const struct history_entry *entry = history_at(history, at);
        uint32_t stream = has_ticks(entry) ? place_in_clocks(search, entry) : NO_STREAM_PLACE;
        if (stream != NO_STREAM_PLACE && entry->first_tick < first[stream])
            first[stream] = entry->first_tick;
    }
    for (uint32_t i = 0; i < VCLOCK_STREAM_LIMIT; i++)
        if (streams[i].device_index == search->canary->device_index &&
            first[i] - 1 > search->over.ticks[i])
            forgotten += first[i] - 1 - search->over.ticks[i];
    return forgotten;
}

/* Order may be taken for more than it is where records are missing; and threads beyond the limit
 * share one clock. */
static bool is_blind(const struct search *search)
{
    const struct analyzer *analyzer = search->analyzer;
    return !analyzer->history.clocks || analyzer->canary_unseen || analyzer->gap_id ||
           analyzer->first_id > 1 || suspects_have_gaps(analyzer) ||
           analyzer->order.threads[THREAD_LIMIT - 1].used || !search->canary->access_count ||
           (search->canary->cause_id && !(search->check && has_ticks(search->check)));
}

void damage_find(const struct analyzer *analyzer, const struct event *canary, struct finding *draft)
{
    const struct history *history = &analyzer->history;
    struct search search = { .analyzer = analyzer, .canary = canary, .draft = draft };
    if (canary->cause_id)
        search.check = history_find(history, draft->cause.event_id);
    search.blind = is_blind(&search);
    if (!search.blind)
        find_over(&search);
    for (uint64_t at = history_first(history); at < history->count; at++) {
        const struct history_entry *entry = history_at(history, at);
        const struct event *event = &entry->event;
        bool runs = event->kind == EVENT_LAUNCH || event->kind == EVENT_GRAPH_REPLAY;
        if (runs && !is_elsewhere(&search, event) && !event_graph_id(event) &&
            event->outcome != EVENT_REFUSED && !is_over(&search, entry) &&
            !is_after_check(&search, entry))
            suspect_call(&search, event);
    }
    uint64_t forgotten = count_forgotten(&search);
    draft->candidate_count = search.kept;
    draft->candidates_left_out = search.count - search.kept + forgotten;
    if (search.count == 1 && !forgotten && !search.blind && !search.nameless) {
        /* The place where it was seen knows the operand. */
        if (draft->candidates[0].event_id != draft->cause.event_id ||
            draft->candidates[0].node != draft->cause.node)
            draft->cause = draft->candidates[0];
        draft->attribution = FINDING_CULPRIT;
        return;
    }
    finding_set_reason(draft, search.count == 0           ? REASON_CANARY_LATE
                              : search.blind || forgotten ? REASON_GAPS
                              : search.count == 1         ? REASON_REPLAY_UNKNOWN
                                                          : REASON_CANARY_WINDOW);
}
