/* overlapping_copies.c - two copies or fills in flight, unordered, with bytes in common: on the
 * device, or in the host memory they land in. */
#include "analyze/analyze_impl.h"

#include "base/size.h"

static bool ranges_meet(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes)
{
    return a_bytes && b_bytes && (a < b ? b - a < a_bytes : a - b < b_bytes);
}

/* Two copies that use one place of host memory at the same time. */
static void check_host_ranges(struct analyzer *analyzer, const struct event *event)
{
    struct order *order = &analyzer->order;
    const struct stream_state *stream = order_stream(order, event);
    uint32_t count = min_u64(order->ticket_count, TICKET_LIMIT);
    if (!event->copy.host_address || !event->copy.bytes || !stream)
        return;
    for (uint32_t i = 0; i < count; i++) {
        const struct ticket_state *ticket = &order->tickets[i];
        /* A copy in that takes a slot in use is staging_reuse.c's. */
        if (ticket->use != TICKET_LANDING ||
            (ticket->ticket == event->copy.ticket && ticket->device_index == event->device_index &&
             event->kind != EVENT_COPY_OUT) ||
            !ranges_meet(ticket->host_address, ticket->bytes, event->copy.host_address,
                         event->copy.bytes) ||
            ticket->stream == order_place_of(order, event) ||
            vclock_covers(&stream->clock, ticket->stream, ticket->tick))
            continue;
        struct finding draft = finding_draft(HYPOTHESIS_OVERLAPPING_COPIES, FINDING_DIRECT);
        draft.attribution = FINDING_CULPRIT;
        draft.cause = place_of_event(analyzer, event);
        draft.other = place_of_id(analyzer, ticket->copy_id, 0);
        draft.expected = ticket->host_address;
        draft.found = event->copy.host_address;
        finding_add(analyzer, &draft);
        return;
    }
}

static void on_event(struct analyzer *analyzer, const struct event *event)
{
    if ((event->kind == EVENT_COPY_OUT || event->kind == EVENT_COPY_IN) &&
        event->outcome != EVENT_REFUSED)
        check_host_ranges(analyzer, event);
}

static void on_work(struct analyzer *analyzer, const struct work *work)
{
    if (event_is_copy(work->event->kind))
        analyze_count(analyzer, HYPOTHESIS_OVERLAPPING_COPIES, 1, 1);
}

static void on_conflict(struct analyzer *analyzer, const struct conflict *conflict)
{
    if (conflict->kind == CONFLICT_UNORDERED && event_is_copy(conflict->event->kind) &&
        event_is_copy(conflict->earlier.kind))
        finding_add_conflict(analyzer, HYPOTHESIS_OVERLAPPING_COPIES, conflict);
}

const struct hypothesis_detector detector_overlapping_copies = {
    .info = { .slug = "overlapping-copies", .level = AUDIT_LOG, .exact = true },
    .event = on_event,
    .work = on_work,
    .conflict = on_conflict,
};
