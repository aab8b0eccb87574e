/* order.c - what happened before what.
 *
 * Taken as order:
 * - Work of one stream happens in the order it was given.
 * - Later work of a stream happens after the marks it waited for, as they were last recorded.
 * - Work happens after everything the calling thread had waited for when it called.
 * - A host thread that waited (for a stream, a mark, a ticket; a stream's destruction waits too)
 *   is after the work it waited for, as it was given when the wait began.
 * - Host threads among each other: how they wait for one another cannot be seen here. A call that
 *   began after another thread's wait was over counts as after it. So a missing wait between two
 *   host threads shows only if their calls overlap in time.
 * Taken as no order: that one call's event has a smaller id than another's.
 *
 * Here are the waits and which event does what; the places of streams, threads and marks are in
 * order_places.c, work is in order_work.c, memory that comes and goes in order_buffers.c, staging
 * slots in tickets.c. */
#include "analyze/analyze_impl.h"

#include "base/size.h"

#include <stdlib.h>
#include <string.h>

/* Ids are given a moment after the clock is read: so much apart, two threads' calls are surely in
 * the order of their times. */
#define FLOOR_SLACK_NS UINT64_C(1000000)
/* 120 bytes each. */
#define INTERVALS_IN_ALL 131072u
/* A file of nothing but replays of large graphs must not take hours: so many launches to begin
 * with, and so many more with every event. A step of a model has some hundreds. */
#define REPLAYED_AT_FIRST (UINT64_C(1) << 26)
#define REPLAYED_PER_EVENT 4096u

bool order_init(struct order *order)
{
    order->marks = calloc(MARK_LIMIT, sizeof(*order->marks));
    order->tickets = calloc(TICKET_LIMIT, sizeof(*order->tickets));
    order->interval_limit = INTERVALS_IN_ALL;
    order->replay_budget = REPLAYED_AT_FIRST;
    return idmap_init(&order->mark_map, MARK_LIMIT) &&
           idmap_init(&order->ticket_map, TICKET_LIMIT) && order->marks && order->tickets;
}

void order_release(struct order *order)
{
    free(order->marks);
    free(order->tickets);
    idmap_release(&order->mark_map);
    idmap_release(&order->ticket_map);
}

/* ---- Host threads --------------------------------------------------------------------------- */

/* Takes over what other threads had waited for when this call began. */
static void catch_up(struct order *order, struct thread_state *thread, uint64_t begin_ns)
{
    if (thread->seen_serial == order->sync_serial)
        return;
    bool all = true;
    for (uint32_t i = 0; i < THREAD_LIMIT; i++) {
        const struct thread_state *other = &order->threads[i];
        if (!other->used || other == thread || other->serial == 0)
            continue;
        bool over = begin_ns >= other->ended_ns;
        const struct vclock *clock = over ? &other->clock : &other->previous;
        vclock_join(&thread->clock, clock);
        vclock_join(&thread->previous, clock);
        all = all && over;
    }
    thread->serial++;
    if (all)
        thread->seen_serial = order->sync_serial;
}

void order_thread_waited(struct order *order, struct thread_state *thread,
                         const struct vclock *clock, uint64_t end_ns)
{
    thread->previous = thread->clock;
    vclock_join(&thread->clock, clock);
    if (end_ns > thread->ended_ns)
        thread->ended_ns = end_ns;
    thread->serial++;
    order->sync_serial++;
    vclock_join(&order->filling, clock);
    if (end_ns > order->filling_ns)
        order->filling_ns = end_ns;
}

/* Waits that were over long before this call are before everything that comes. */
static void raise_floor(struct order *order, uint64_t begin_ns)
{
    if (order->waiting_ns && begin_ns > order->waiting_ns + FLOOR_SLACK_NS) {
        vclock_join(&order->floor, &order->waiting);
        order->waiting_ns = 0;
    }
    if (!order->waiting_ns && order->filling_ns) {
        order->waiting = order->filling;
        order->waiting_ns = order->filling_ns;
        memset(&order->filling, 0, sizeof(order->filling));
        order->filling_ns = 0;
    }
}

/* ---- Events --------------------------------------------------------------------------------- */

static void mark_event(struct order *order, const struct event *event, struct thread_state *thread)
{
    struct stream_state *stream = order_stream(order, event);
    if (event->kind == EVENT_MARK_SYNC) {
        const struct mark_state *mark = order_mark(order, event->device_index, event->mark.mark);
        if (mark && event->outcome != EVENT_PENDING)
            order_thread_waited(order, thread, &mark->clock, event->end_ns);
        struct stream_state *waited = mark ? order_stream_at(order, mark->stream) : NULL;
        if (waited && event->outcome == EVENT_DONE && mark->last_id > waited->waited_id)
            waited->waited_id = mark->last_id;
        return;
    }
    if (!stream)
        return;
    if (event->kind == EVENT_MARK_RECORD) {
        struct mark_state *mark = order_take_mark(order, event->device_index, event->mark.mark);
        /* The stream is also after what its caller had waited for. */
        vclock_join(&stream->clock, &thread->clock);
        if (event->flags & EVENT_FOREIGN)
            order_join_default_streams(order, stream, event->flags);
        stream->used = true;
        mark->clock = stream->clock;
        mark->last_id = stream->last_id;
        mark->record_id = event->id;
        mark->stream = order_place_of(order, event);
        return;
    }
    const struct mark_state *mark = order_mark(order, event->device_index, event->mark.mark);
    if (mark)
        vclock_join(&stream->clock, &mark->clock);
    stream->waits_mark = event->mark.mark + 1;
}

static void graph_event(struct analyzer *analyzer, const struct event *event)
{
    struct stream_state *stream = order_stream(&analyzer->order, event);
    bool foreign = (event->flags & EVENT_FOREIGN) != 0; /* says of each call where it goes */
    if (event->kind == EVENT_GRAPH_BEGIN && stream && !foreign)
        stream->capture_id = event->id;
    if (event->kind == EVENT_GRAPH_END) {
        uint64_t id = event->cause_id ? event->cause_id : stream ? stream->capture_id : 0;
        struct graph *graph = graphs_find(&analyzer->graphs, id);
        if (graph && event->graph.handle)
            graph->handle = event->graph.handle;
        if (graph)
            graph->ended = true;
        analyzer->graphs.last_ended = id;
        if (stream)
            stream->capture_id = 0;
    }
    if (event->kind == EVENT_GRAPH_REPLAY)
        order_replay(analyzer, event);
    struct graph *gone = NULL;
    if (event->kind == EVENT_GRAPH_DESTROY && foreign)
        gone = graphs_find(&analyzer->graphs, event->cause_id);
    if (gone)
        gone->handle = event->graph.handle;
    /* What ran when a device was lost is looked into at the end: it must be known then. */
    if (event->kind == EVENT_GRAPH_DESTROY && !analyze_is_lost(analyzer, event))
        graphs_remove(&analyzer->graphs, event->device_index, event->graph.handle);
}

void order_wait_for_all(struct order *order, struct thread_state *thread, uint64_t end_ns)
{
    for (uint32_t i = 0; i < VCLOCK_STREAM_LIMIT; i++) {
        struct stream_state *stream = &order->streams[i];
        if (!stream->used)
            continue;
        order_thread_waited(order, thread, &stream->clock, end_ns);
        stream->waited_id = stream->last_id;
    }
}

/* Waits, completions and releases may be among the lost events: whatever comes later is taken as
 * ordered after everything before the gap, so that no conflict across it is claimed. */
void order_forget(struct order *order)
{
    struct vclock all = { 0 };
    for (uint32_t i = 0; i < VCLOCK_STREAM_LIMIT; i++)
        if (order->streams[i].used)
            vclock_join(&all, &order->streams[i].clock);
    for (uint32_t i = 0; i < VCLOCK_STREAM_LIMIT; i++)
        if (order->streams[i].used)
            vclock_join(&order->streams[i].clock, &all);
    for (uint32_t i = 0; i < THREAD_LIMIT; i++) {
        vclock_join(&order->threads[i].clock, &all);
        vclock_join(&order->threads[i].previous, &all);
    }
    vclock_join(&order->floor, &all);
    order->has_addresses = true; /* one of the calls may have been such a copy */
    for (uint32_t i = 0; i < TICKET_LIMIT; i++)
        order->tickets[i].use = TICKET_FREE;
}

void order_sync(struct order *order, const struct event *event, struct thread_state *thread)
{
    struct stream_state *stream = order_stream(order, event);
    if (event->flags & EVENT_ALL_STREAMS) {
        if (event->outcome == EVENT_DONE)
            order_wait_for_all(order, thread, event->end_ns);
        return;
    }
    if (!stream)
        return;
    if (event->flags & EVENT_FOREIGN)
        order_join_default_streams(order, stream, event->flags);
    order_thread_waited(order, thread, &stream->clock, event->end_ns);
    if (event->outcome == EVENT_DONE)
        stream->waited_id = stream->last_id;
}

/* Destroying a stream of a foreign runtime does not wait: its work goes on, and the stream can no
 * longer be waited for. */
static void abandon_stream(struct analyzer *analyzer, const struct event *event,
                           const struct thread_state *thread)
{
    const struct order *order = &analyzer->order;
    uint32_t index = order_place_of(order, event);
    const struct stream_state *stream = order_stream_at(order, index);
    uint32_t count = min_u64(order->mark_count, MARK_LIMIT);
    /* A mark that was recorded after the work can still be waited for instead. */
    for (uint32_t i = 0; stream && i < count; i++)
        if (order->marks[i].stream == index && order->marks[i].last_id == stream->last_id)
            return;
    if (!stream || !stream->last_id || event->outcome != EVENT_DONE ||
        analyze_is_lost(analyzer, event) ||
        vclock_covers(&thread->clock, index, stream->clock.ticks[index]))
        return;
    struct conflict conflict = { .kind = CONFLICT_ABANDONED,
                                 .event = event,
                                 .earlier = { .event_id = stream->last_id,
                                              .tick = stream->clock.ticks[index],
                                              .stream = (uint8_t)index } };
    analyze_conflict(analyzer, &conflict);
}

static void stream_event(struct analyzer *analyzer, const struct event *event,
                         struct thread_state *thread)
{
    struct order *order = &analyzer->order;
    struct stream_state *stream = order_stream(order, event);
    bool foreign = (event->flags & EVENT_FOREIGN) != 0;
    if (event->kind == EVENT_STREAM_CREATE && stream) {
        stream->used = true;
        stream->capture_id = 0;
        vclock_join(&stream->clock, &thread->clock);
    } else if (event->kind == EVENT_HIDDEN_ORDER && stream) {
        contents_note(order, event);
        stream->hidden = true;
        order_tell(order, &stream->clock);
    } else if (event->kind == EVENT_STREAM_DESTROY && foreign) {
        abandon_stream(analyzer, event, thread);
    } else if (event->kind == EVENT_STREAM_DESTROY || event->kind == EVENT_STREAM_SYNC) {
        if (event->outcome != EVENT_PENDING)
            order_sync(order, event, thread);
    }
}

void order_event(struct analyzer *analyzer, const struct event *event)
{
    struct order *order = &analyzer->order;
    struct thread_state *thread = order_thread(order, event->thread_index);
    raise_floor(order, event->begin_ns);
    if (order->replay_budget < REPLAYED_AT_FIRST)
        order->replay_budget += REPLAYED_PER_EVENT;
    if (event->outcome == EVENT_REFUSED)
        return;
    catch_up(order, thread, event->begin_ns);
    bool over = event->outcome != EVENT_PENDING;
    switch (event->kind) {
    case EVENT_BUFFER_CREATE:
        history_stamp(&analyzer->history, event->id, 0, &thread->clock);
        if (event->outcome == EVENT_DONE)
            order_buffer_create(analyzer, event);
        break;
    case EVENT_BUFFER_DESTROY:
        order_buffer_destroy(analyzer, event, thread);
        break;
    case EVENT_STREAM_CREATE:
    case EVENT_STREAM_SYNC:
    case EVENT_STREAM_DESTROY:
    case EVENT_HIDDEN_ORDER:
        stream_event(analyzer, event, thread);
        break;
    case EVENT_MARK_RECORD:
    case EVENT_MARK_WAIT:
    case EVENT_MARK_SYNC:
        mark_event(order, event, thread);
        break;
    case EVENT_COPY_IN:
    case EVENT_COPY_OUT:
    case EVENT_COPY_WITHIN:
    case EVENT_FILL:
    case EVENT_LAUNCH:
        if (event->outcome != EVENT_FAILED)
            order_work(analyzer, event);
        break;
    case EVENT_GRAPH_BEGIN:
    case EVENT_GRAPH_END:
    case EVENT_GRAPH_REPLAY:
    case EVENT_GRAPH_DESTROY:
        if (event->outcome != EVENT_FAILED)
            graph_event(analyzer, event);
        break;
    case EVENT_TICKET_REDEEM:
    case EVENT_TICKET_RELEASE:
        if (over)
            order_ticket_end(order, event, thread);
        break;
    case EVENT_COMPLETION:
        order_copy_completed(analyzer, event);
        break;
    case EVENT_DEVICE_CLOSE:
        order_wait_for_all(order, thread, event->end_ns); /* everything is done then */
        break;
    default:
        break;
    }
}
