/* order_buffers.c - memory that is made and given back: its ledger entry, its shadow, and whether
 * all work with it was in order before it went.
 *
 * A shadow's first interval is not in order->interval_count: with a shadow that goes all but that
 * one leave it. */
#include "analyze/analyze_impl.h"

#include <string.h>

void order_buffer_create(struct analyzer *analyzer, const struct event *event)
{
    struct order *order = &analyzer->order;
    if (event->access_count == 0)
        return;
    const struct event_access *range = &event->accesses[0];
    struct ledger_entry entry = { .address = range->address,
                                  .bytes = range->bytes,
                                  .created_id = event->id,
                                  .buffer_index = range->buffer_index,
                                  .generation = range->generation,
                                  .device_index = event->device_index,
                                  .foreign = (event->flags & EVENT_FOREIGN) != 0,
                                  .stack_index = event->stack_index,
                                  .launches = order->launch_count };
    bool fresh = !entry.foreign || (event->flags & EVENT_FRESH);
    entry.content_unknown = !fresh;
    entry.unseen_known = order->unseen_writers;
    entry.unsure_known = order->unsure_writers;
    entry.may_be_told = contents_may_be_told(order, order_thread(order, event->thread_index));
    if (entry.foreign && event->buffer.graph_id)
        entry.stack_index = 0; /* the graph's: it takes it and gives it back each time it is run */
    memcpy(entry.name, event->scope.tensor, sizeof(entry.name));
    struct ledger_entry *old = ledger_find(&analyzer->ledger, event->device_index,
                                           range->buffer_index);
    if (old && old->created_id == event->id)
        return; /* the file's table of allocations named it before */
    if (entry.foreign && entry.stack_index)
        entry.stack_ordinal = analyze_note_made(analyzer, entry.stack_index);
    if (old && old->shadow.count)
        order->interval_count -= old->shadow.count - 1;
    struct ledger_entry *added = ledger_add(&analyzer->ledger, &entry);
    /* Imported host memory has contents already; fresh memory has none. */
    if (added &&
        !shadow_init(&added->shadow, range->bytes, event->buffer.imported_address != 0 || !fresh))
        analyzer->ledger.forgotten++;
}

/* What a free is ordered after. In a foreign program it may be work of a stream (stream-ordered
 * memory); else it comes after what its thread had waited for. */
static const struct vclock *clock_of_free(struct order *order, const struct event *event,
                                          const struct thread_state *thread)
{
    struct stream_state *stream = order_stream(order, event);
    if (!(event->flags & EVENT_STREAM_ORDERED) || !stream)
        return &thread->clock;
    stream->used = true;
    vclock_join(&stream->clock, &thread->clock);
    order_join_default_streams(order, stream, event->flags);
    return &stream->clock;
}

void order_buffer_destroy(struct analyzer *analyzer, const struct event *event,
                          struct thread_state *thread)
{
    bool foreign = (event->flags & EVENT_FOREIGN) != 0;
    if (foreign && (event->outcome == EVENT_FAILED || event->buffer.graph_id))
        return; /* it did not go, or goes when its graph is run */
    if (event->access_count == 0)
        return;
    struct ledger_entry *entry = ledger_find(&analyzer->ledger, event->device_index,
                                             event->accesses[0].buffer_index);
    /* Another thread may have got the same place since, and its event may have come first. */
    if (!entry || entry->generation != event->accesses[0].generation)
        return;
    /* On a lost device nothing runs any more. A free that waits for the device is in order. */
    bool waits = foreign && (event->flags & EVENT_SYNCHRONOUS);
    if (!analyze_is_lost(analyzer, event) && !waits)
        shadow_destroy_check(analyzer, event, clock_of_free(&analyzer->order, event, thread),
                             entry);
    if (entry->shadow.count)
        analyzer->order.interval_count -= entry->shadow.count - 1;
    ledger_remove(&analyzer->ledger, event->device_index, event->accesses[0].buffer_index,
                  event->id);
    if (waits && event->outcome == EVENT_DONE)
        order_wait_for_all(&analyzer->order, thread, event->end_ns);
    for (uint32_t i = 0; (event->flags & EVENT_MAY_WAIT) && i < VCLOCK_STREAM_LIMIT; i++)
        if (analyzer->order.streams[i].used)
            order_tell(&analyzer->order, &analyzer->order.streams[i].clock);
}
