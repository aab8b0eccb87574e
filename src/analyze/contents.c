/* contents.c - has anything been written to this memory of a foreign program?
 *
 * Copies and memsets say where they write. A kernel may write through each pointer among its
 * arguments, to all of the allocation. It may also have got an address in a way that is not seen:
 * through memory that a copy filled, a variable, host memory. From then on every kernel may have
 * written every buffer that there was, and nothing is said of them. Nor is it once the program gave
 * an address to the device, which a launch that is not seen may use, or memory to others. */
#include "analyze/analyze_impl.h"

void contents_note(struct order *order, const struct event *event)
{
    if (!(event->flags & EVENT_FOREIGN))
        return;
    switch (event->kind) {
    case EVENT_COPY_IN:
    case EVENT_COPY_WITHIN:
    case EVENT_COPY_OUT:
        order->has_addresses = order->has_addresses || (event->flags & EVENT_HAS_ADDRESSES);
        order->unseen_writers += (event->flags & (EVENT_HAS_ADDRESSES | EVENT_UNSEEN_WRITES)) != 0;
        order->has_unlooked = order->has_unlooked || (event->kind == EVENT_COPY_IN &&
                                                      event->copy.bytes > EVENT_ADDRESSES_LOOKED);
        break;
    case EVENT_LAUNCH:
        if (order->has_addresses || (event->flags & (EVENT_PARTIAL | EVENT_MAY_TELL)))
            order->unseen_writers++;
        order->unsure_writers += order->has_unlooked;
        break;
    case EVENT_GRAPH_REPLAY: /* of which not all is known */
    case EVENT_HIDDEN_ORDER: /* values are written, or copies made in batches */
        order->unseen_writers++;
        break;
    default:
        break;
    }
}

bool contents_may_be_told(const struct order *order, const struct thread_state *thread)
{
    for (uint32_t i = 0; i < VCLOCK_STREAM_LIMIT; i++) {
        uint64_t gate = order->streams[i].gate_tick;
        if (gate && !vclock_covers(&thread->clock, i, gate))
            return true;
    }
    return false;
}

void contents_update(const struct order *order, struct ledger_entry *entry,
                     const struct event *event, const struct event_access *access)
{
    if (!entry->foreign || entry->content_unknown)
        return;
    bool kernel = event->kind == EVENT_LAUNCH && (access->mode & EVENT_WRITE);
    if (entry->unseen_known == order->unseen_writers && !kernel)
        return;
    entry->content_unknown = true;
    shadow_fill(&entry->shadow);
}
