/* order_work.c - work in its order: when it comes in its stream, what it touches, which work a
 * replay stands for.
 *
 * Each call that is work is a tick of its stream's clock, which then covers what its thread had
 * waited for. Hypotheses see it before its accesses; its reads come before its writes. Work that is
 * recorded into a graph is no tick: it is kept, and done with each replay. */
#include "analyze/analyze_impl.h"

void order_join_default_streams(struct order *order, struct stream_state *stream, uint32_t flags)
{
    stream->legacy = (flags & EVENT_LEGACY_STREAM) != 0;
    stream->blocking = (flags & EVENT_BLOCKING) != 0;
    if (!stream->legacy && !stream->blocking)
        return;
    for (uint32_t i = 0; i < VCLOCK_STREAM_LIMIT; i++) {
        const struct stream_state *other = &order->streams[i];
        if (other->used && other != stream &&
            (stream->legacy ? other->blocking || other->legacy : other->legacy))
            vclock_join(&stream->clock, &other->clock);
    }
}

void order_tell(struct order *order, const struct vclock *clock)
{
    vclock_join(&order->maybe_known, clock);
}

/* Copies of a flag are seen whole; of more bytes none promises which arrives last, so that who
 * reads them knows of what is before the copy only. */
#define FLAG_BYTES 64u

/* The host may read what this work writes. */
static void tell_of(struct order *order, struct stream_state *stream, const struct work *work)
{
    struct vclock clock = stream->clock;
    if (event_is_copy(work->event->kind) && work->event->copy.bytes > FLAG_BYTES)
        clock.ticks[work->stream]--;
    order_tell(order, &clock);
    if (work->event->kind == EVENT_LAUNCH)
        stream->gate_tick = work->tick;
}

bool order_held_back(const struct order *order, uint32_t place, uint64_t tick,
                     const struct vclock *clock)
{
    const struct stream_state *stream = order_stream_at(order, place);
    for (uint32_t i = 0; stream && i < VCLOCK_STREAM_LIMIT; i++) {
        uint64_t gate = order->streams[i].gate_tick;
        /* Another stream's kernel comes before this work if this stream has waited for it. */
        bool before = i == place ? gate <= tick : vclock_covers(&stream->clock, i, gate);
        if (gate && before && !vclock_covers(clock, i, gate))
            return true;
    }
    return false;
}

/* A copy that is in order with the work of all streams: it comes after what they have, and what
 * they are given from now on comes after it. */
static void order_all(struct order *order, struct stream_state *stream)
{
    for (uint32_t i = 0; i < VCLOCK_STREAM_LIMIT; i++)
        vclock_join(&stream->clock, &order->streams[i].clock);
}

static void spread(struct order *order, const struct stream_state *stream)
{
    for (uint32_t i = 0; i < VCLOCK_STREAM_LIMIT; i++)
        vclock_join(&order->streams[i].clock, &stream->clock);
}

/* In foreign programs only reads by copies are looked at, and only of memory whose contents are
 * known: of other memory nothing is claimed. */
static void count_contents(struct analyzer *analyzer, const struct event *event,
                           const struct event_access *access, bool known)
{
    bool reads = !(access->mode & EVENT_WRITE) || access->mode == EVENT_UPDATE;
    if (event->flags & EVENT_FOREIGN)
        reads = reads && known && event_is_copy(event->kind);
    if (reads)
        analyze_count(analyzer, HYPOTHESIS_UNINITIALISED_READ, known, 1);
}

static void do_accesses(struct analyzer *analyzer, const struct work *work, bool writes)
{
    const struct event *event = work->event;
    for (uint32_t i = 0; i < event->access_count; i++) {
        const struct event_access *access = &event->accesses[i];
        if (writes != ((access->mode & EVENT_WRITE) != 0))
            continue;
        struct ledger_entry *entry = ledger_find(&analyzer->ledger, event->device_index,
                                                 access->buffer_index);
        bool known = entry && entry->generation == access->generation && entry->shadow.count;
        if (known && entry->losses_known != analyzer->ledger.losses) {
            entry->losses_known = analyzer->ledger.losses;
            entry->content_unknown = true;
            shadow_forget(&analyzer->order, &entry->shadow);
        }
        analyze_count(analyzer, HYPOTHESIS_MISSING_SYNC, known, 1);
        if (known)
            contents_update(&analyzer->order, entry, event, access);
        count_contents(analyzer, event, access, known && !entry->content_unknown);
        if (!known)
            continue;
        entry->used_id = work->replay ? work->replay->id : event->id;
        shadow_access(analyzer, work, access, entry, writes);
    }
}

static void do_work(struct analyzer *analyzer, const struct event *event,
                    const struct event *replay, uint32_t node)
{
    struct order *order = &analyzer->order;
    const struct event *call = replay ? replay : event;
    uint32_t place = order_place_of(order, call);
    struct stream_state *stream = order_stream_at(order, place);
    if (!stream) {
        analyze_count(analyzer, HYPOTHESIS_MISSING_SYNC, 0, event->access_count);
        return;
    }
    stream->used = true;
    order->launch_count += event->kind == EVENT_LAUNCH;
    struct thread_state *thread = order_thread(order, call->thread_index);
    uint32_t thread_place = (uint32_t)(thread - order->threads);
    if (stream->joined_thread != thread_place || stream->joined_serial != thread->serial) {
        vclock_join(&stream->clock, &thread->clock);
        stream->joined_thread = thread_place;
        stream->joined_serial = thread->serial;
    }
    if (call->flags & EVENT_FOREIGN)
        order_join_default_streams(order, stream, call->flags);
    bool all = event_is_copy(event->kind) && (event->flags & EVENT_ALL_STREAMS);
    if (all)
        order_all(order, stream);
    stream->last_id = call->id;
    stream->waits_mark = 0;
    struct work work = { .event = event,
                         .replay = replay,
                         .node = node,
                         .stream = place,
                         .tick = ++stream->clock.ticks[place],
                         .clock = &stream->clock };
    history_stamp(&analyzer->history, call->id, work.tick, work.clock);
    contents_note(order, event);
    analyze_work(analyzer, &work);
    /* A launch may read and write the same bytes: its reads come first. */
    do_accesses(analyzer, &work, false);
    do_accesses(analyzer, &work, true);
    if (all)
        spread(order, stream);
    if (event->flags & EVENT_MAY_TELL)
        tell_of(order, stream, &work);
}

void order_replay(struct analyzer *analyzer, const struct event *event)
{
    bool foreign = (event->flags & EVENT_FOREIGN) != 0;
    struct graph *graph = graphs_find(&analyzer->graphs, event->cause_id);
    if (!graph && (foreign || !event->cause_id))
        graph = graphs_find_handle(&analyzer->graphs, event->device_index, event->graph.handle);
    uint64_t *budget = &analyzer->order.replay_budget;
    if (graph && graph->count > *budget)
        graph = NULL;
    bool whole = graph_is_whole(graph);
    if (!whole) {
        /* What it touches is not known. */
        analyze_count(analyzer, HYPOTHESIS_MISSING_SYNC, 0, 1);
        if (!foreign)
            analyze_count(analyzer, HYPOTHESIS_UNINITIALISED_READ, 0, 1);
        contents_note(&analyzer->order, event);
    }
    struct stream_state *stream = order_stream(&analyzer->order, event);
    /* A graph of which not all is known may tell the host of anything before it. */
    if (foreign && stream && !whole)
        order_tell(&analyzer->order, &stream->clock);
    if (!foreign && !whole)
        analyze_forget(analyzer);
    if ((event->flags & EVENT_MAY_TELL) && stream) /* a host function in it, or the like */
        stream->hidden = true;
    if (!graph)
        return;
    if (event->graph.handle)
        graph->handle = event->graph.handle;
    *budget -= graph->count;
    for (size_t i = 0; i < graph->count; i++)
        do_work(analyzer, &graph->records[i], event, (uint32_t)i + 1);
    if ((event->flags & EVENT_MAY_TELL) && stream)
        order_tell(&analyzer->order, &stream->clock);
}

void order_work(struct analyzer *analyzer, const struct event *event)
{
    const struct stream_state *stream = order_stream(&analyzer->order, event);
    bool recordable = event->kind == EVENT_LAUNCH || event->kind == EVENT_FILL ||
                      event->kind == EVENT_COPY_WITHIN;
    bool foreign = (event->flags & EVENT_FOREIGN) != 0;
    uint64_t graph_id = event_graph_id(event);
    if (!graph_id && !foreign && recordable && stream)
        graph_id = stream->capture_id;
    struct thread_state *thread = order_thread(&analyzer->order, event->thread_index);
    bool done = !graph_id && event->outcome == EVENT_DONE;
    if (done && (event->flags & EVENT_STAGED)) /* for what was there before it */
        order_sync(&analyzer->order, event, thread);
    if (graph_id)
        graphs_record(&analyzer->graphs, graph_id, event);
    else
        do_work(analyzer, event, NULL, 0);
    if ((event->kind == EVENT_COPY_OUT || event->kind == EVENT_COPY_IN) && !foreign)
        order_ticket_start(&analyzer->order, event);
    if (done && (event->flags & EVENT_SYNCHRONOUS))
        order_sync(&analyzer->order, event, thread);
    if (done && (event->flags & (EVENT_MAY_WAIT | EVENT_STAGED)) && stream)
        order_tell(&analyzer->order, &stream->clock);
}
