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
 * Taken as no order: that one call's event has a smaller id than another's. */
#include "analyze/analyze_impl.h"

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

/* ---- Finding -------------------------------------------------------------------------------- */

struct stream_state *order_stream(const struct order *order, uint32_t stream_index)
{
    return stream_index < VCLOCK_STREAM_LIMIT
               ? (struct stream_state *)(uintptr_t)&order->streams[stream_index]
               : NULL;
}

static struct thread_state *thread_of(struct order *order, uint32_t thread_index)
{
    /* Threads beyond the limit share one clock: they see more order than there is. */
    uint32_t place = thread_index < THREAD_LIMIT ? thread_index : THREAD_LIMIT - 1;
    struct thread_state *thread = &order->threads[place];
    thread->used = true;
    return thread;
}

struct mark_state *order_mark(const struct order *order, uint64_t object)
{
    uint32_t place = idmap_find(&order->mark_map, object);
    return place == IDMAP_NONE ? NULL : &order->marks[place];
}

/* The mark, made if need be: in a new place, or in that of the oldest one. */
static struct mark_state *take_mark(struct order *order, uint64_t object)
{
    struct mark_state *mark = order_mark(order, object);
    if (mark)
        return mark;
    ASSERT(order->marks); /* or order_init has failed */
    uint32_t place = order->mark_count++ % MARK_LIMIT;
    mark = &order->marks[place];
    if (order->mark_count > MARK_LIMIT)
        idmap_remove(&order->mark_map, mark->object);
    *mark = (struct mark_state){ .object = object };
    idmap_set(&order->mark_map, object, place);
    return mark;
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

/* ---- Work ----------------------------------------------------------------------------------- */

static void do_accesses(struct analyzer *analyzer, const struct work *work, bool writes)
{
    const struct event *event = work->event;
    for (uint32_t i = 0; i < event->access_count; i++) {
        const struct event_access *access = &event->accesses[i];
        if (writes != ((access->mode & EVENT_WRITE) != 0))
            continue;
        struct ledger_entry *entry = ledger_find(&analyzer->ledger, access->buffer_index);
        bool known = entry && entry->generation == access->generation && entry->shadow.count;
        analyze_count(analyzer, HYPOTHESIS_MISSING_SYNC, known, 1);
        if (!writes || access->mode == EVENT_UPDATE)
            analyze_count(analyzer, HYPOTHESIS_UNINITIALISED_READ, known && !entry->content_unknown,
                          1);
        if (known)
            shadow_access(analyzer, work, access, entry, writes);
    }
}

static void do_work(struct analyzer *analyzer, const struct event *event,
                    const struct event *replay, uint32_t node)
{
    struct order *order = &analyzer->order;
    const struct event *call = replay ? replay : event;
    struct stream_state *stream = order_stream(order, call->stream_index);
    if (!stream) {
        analyze_count(analyzer, HYPOTHESIS_MISSING_SYNC, 0, event->access_count);
        return;
    }
    stream->used = true;
    struct thread_state *thread = thread_of(order, call->thread_index);
    uint32_t thread_place = (uint32_t)(thread - order->threads);
    if (stream->joined_thread != thread_place || stream->joined_serial != thread->serial) {
        vclock_join(&stream->clock, &thread->clock);
        stream->joined_thread = thread_place;
        stream->joined_serial = thread->serial;
    }
    stream->last_id = call->id;
    stream->waits_mark = 0;
    struct work work = { .event = event,
                         .replay = replay,
                         .node = node,
                         .stream = call->stream_index,
                         .tick = ++stream->clock.ticks[call->stream_index],
                         .clock = &stream->clock };
    analyze_work(analyzer, &work);
    /* A launch may read and write the same bytes: its reads come first. */
    do_accesses(analyzer, &work, false);
    do_accesses(analyzer, &work, true);
}

static void do_replay(struct analyzer *analyzer, const struct event *event)
{
    struct graph *graph = graphs_find(&analyzer->graphs, event->cause_id);
    if (!graph)
        graph = graphs_find_handle(&analyzer->graphs, event->object);
    uint64_t *budget = &analyzer->order.replay_budget;
    if (graph && graph->count > *budget)
        graph = NULL;
    if (!graph || graph->missing || graph->count == 0) {
        /* What it touches is not known. */
        analyze_count(analyzer, HYPOTHESIS_MISSING_SYNC, 0, 1);
        analyze_count(analyzer, HYPOTHESIS_UNINITIALISED_READ, 0, 1);
    }
    if (!graph)
        return;
    if (event->object)
        graph->handle = event->object;
    *budget -= graph->count;
    for (size_t i = 0; i < graph->count; i++)
        do_work(analyzer, &graph->records[i], event, (uint32_t)i + 1);
}

/* ---- Events --------------------------------------------------------------------------------- */

static void create_buffer(struct analyzer *analyzer, const struct event *event)
{
    struct order *order = &analyzer->order;
    if (event->access_count == 0)
        return;
    const struct event_access *range = &event->accesses[0];
    struct ledger_entry entry = { .address = range->address,
                                  .bytes = range->bytes,
                                  .created_id = event->id,
                                  .buffer_index = range->buffer_index,
                                  .generation = range->generation };
    memcpy(entry.name, event->scope.tensor, sizeof(entry.name));
    struct ledger_entry *old = ledger_find(&analyzer->ledger, range->buffer_index);
    if (old && old->created_id == event->id)
        return; /* a file's table told of it already */
    if (old && old->shadow.count)
        order->interval_count -= old->shadow.count - 1;
    struct ledger_entry *added = ledger_add(&analyzer->ledger, &entry);
    /* Of an import the event names the memory it came from. */
    if (added && !shadow_init(&added->shadow, range->bytes, event->host_address != 0))
        analyzer->ledger.forgotten++;
}

static void destroy_buffer(struct analyzer *analyzer, const struct event *event,
                           const struct thread_state *thread)
{
    if (event->access_count == 0)
        return;
    struct ledger_entry *entry = ledger_find(&analyzer->ledger, event->accesses[0].buffer_index);
    /* Another thread may have had its place already, and told so first. */
    if (!entry || entry->generation != event->accesses[0].generation)
        return;
    /* On a lost device nothing runs any more. */
    if (!analyzer->first_fault_id)
        shadow_destroy_check(analyzer, event, &thread->clock, entry);
    if (entry->shadow.count)
        analyzer->order.interval_count -= entry->shadow.count - 1;
    ledger_remove(&analyzer->ledger, event->accesses[0].buffer_index, event->id);
}

static void mark_event(struct order *order, const struct event *event, struct thread_state *thread)
{
    struct stream_state *stream = order_stream(order, event->stream_index);
    if (event->kind == EVENT_MARK_SYNC) {
        const struct mark_state *mark = order_mark(order, event->object);
        if (mark && event->outcome != EVENT_PENDING)
            order_thread_waited(order, thread, &mark->clock, event->end_ns);
        return;
    }
    if (!stream)
        return;
    if (event->kind == EVENT_MARK_RECORD) {
        struct mark_state *mark = take_mark(order, event->object);
        /* The stream is also after what its caller had waited for. */
        vclock_join(&stream->clock, &thread->clock);
        mark->clock = stream->clock;
        mark->record_id = event->id;
        mark->stream = event->stream_index;
        return;
    }
    const struct mark_state *mark = order_mark(order, event->object);
    if (mark)
        vclock_join(&stream->clock, &mark->clock);
    stream->waits_mark = event->object + 1;
}

static void graph_event(struct analyzer *analyzer, const struct event *event)
{
    struct stream_state *stream = order_stream(&analyzer->order, event->stream_index);
    if (event->kind == EVENT_GRAPH_BEGIN && stream)
        stream->capture_id = event->id;
    if (event->kind == EVENT_GRAPH_END) {
        uint64_t id = event->cause_id ? event->cause_id : stream ? stream->capture_id : 0;
        struct graph *graph = graphs_find(&analyzer->graphs, id);
        if (graph && event->object)
            graph->handle = event->object;
        analyzer->graphs.last_ended = id;
        if (stream)
            stream->capture_id = 0;
    }
    if (event->kind == EVENT_GRAPH_REPLAY)
        do_replay(analyzer, event);
    if (event->kind == EVENT_GRAPH_DESTROY)
        graphs_remove(&analyzer->graphs, event->object);
}

/* Everything is done when the device is closed. */
static void close_device(struct order *order, struct thread_state *thread, uint64_t end_ns)
{
    for (uint32_t i = 0; i < VCLOCK_STREAM_LIMIT; i++)
        if (order->streams[i].used)
            order_thread_waited(order, thread, &order->streams[i].clock, end_ns);
}

static void work_event(struct analyzer *analyzer, const struct event *event)
{
    const struct stream_state *stream = order_stream(&analyzer->order, event->stream_index);
    bool recordable = event->kind == EVENT_LAUNCH || event->kind == EVENT_FILL ||
                      event->kind == EVENT_COPY_WITHIN;
    uint64_t graph_id = 0;
    if (recordable)
        graph_id = event->object ? event->object : stream ? stream->capture_id : 0;
    if (graph_id)
        graphs_record(&analyzer->graphs, graph_id, event);
    else
        do_work(analyzer, event, NULL, 0);
    if (event->kind == EVENT_COPY_OUT || event->kind == EVENT_COPY_IN)
        order_ticket_start(&analyzer->order, event);
}

void order_event(struct analyzer *analyzer, const struct event *event)
{
    struct order *order = &analyzer->order;
    struct thread_state *thread = thread_of(order, event->thread_index);
    raise_floor(order, event->begin_ns);
    if (order->replay_budget < REPLAYED_AT_FIRST)
        order->replay_budget += REPLAYED_PER_EVENT;
    if (event->outcome == EVENT_REFUSED)
        return;
    catch_up(order, thread, event->begin_ns);
    bool over = event->outcome != EVENT_PENDING;
    switch (event->kind) {
    case EVENT_BUFFER_CREATE:
        if (event->outcome == EVENT_DONE)
            create_buffer(analyzer, event);
        break;
    case EVENT_BUFFER_DESTROY:
        destroy_buffer(analyzer, event, thread);
        break;
    case EVENT_STREAM_CREATE: {
        struct stream_state *stream = order_stream(order, event->stream_index);
        if (stream) {
            stream->used = true;
            stream->capture_id = 0;
            vclock_join(&stream->clock, &thread->clock);
        }
        break;
    }
    case EVENT_STREAM_SYNC:
    case EVENT_STREAM_DESTROY: {
        struct stream_state *stream = order_stream(order, event->stream_index);
        if (stream && over)
            order_thread_waited(order, thread, &stream->clock, event->end_ns);
        break;
    }
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
            work_event(analyzer, event);
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
        close_device(order, thread, event->end_ns);
        break;
    default:
        break;
    }
}
