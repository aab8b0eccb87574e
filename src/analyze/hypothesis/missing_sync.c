/* missing_sync.c - two accesses to the same bytes, at least one a write, and nothing that orders
 * them; or bytes that the host used without waiting for their copy. Two copies are
 * overlapping_copies.c's. */
#include "analyze/analyze_impl.h"

static bool host_is_after(struct analyzer *analyzer, const struct event *event,
                          const struct ticket_state *ticket)
{
    uint32_t thread = event->thread_index < THREAD_LIMIT ? event->thread_index : THREAD_LIMIT - 1;
    return vclock_covers(&analyzer->order.threads[thread].clock, ticket->stream, ticket->tick);
}

/* The host reads a ticket. */
static void on_redeem(struct analyzer *analyzer, const struct event *event)
{
    if (event->outcome != EVENT_DONE)
        return;
    analyze_count(analyzer, HYPOTHESIS_MISSING_SYNC, 1, 1);
    const struct ticket_state *ticket = order_ticket(&analyzer->order, event->device_index,
                                                     event->ticket.ticket);
    if (event->ticket.waited == 1 || (ticket && host_is_after(analyzer, event, ticket)))
        return;
    struct finding draft = finding_draft(HYPOTHESIS_MISSING_SYNC, FINDING_DIRECT);
    draft.attribution = FINDING_CULPRIT;
    uint64_t copy_id = ticket ? ticket->copy_id : event->cause_id;
    draft.cause = place_of_id(analyzer, copy_id, 0);
    draft.cause.kind = EVENT_COPY_OUT;
    draft.seen = place_of_event(analyzer, event);
    draft.order_id = copy_id;
    finding_add(analyzer, &draft);
}

/* The bytes at a copy's origin changed while it ran, and no declared access did it. */
static void on_hash(struct analyzer *analyzer, const struct event *event)
{
    if (event->transfer.source_before == event->transfer.source_after)
        return;
    struct finding draft = finding_draft(HYPOTHESIS_MISSING_SYNC, FINDING_POSSIBLE);
    draft.cause = place_of_id(analyzer, event->cause_id, 0);
    draft.expected = event->transfer.source_before;
    draft.found = event->transfer.source_after;
    finding_set_reason(&draft, REASON_SOURCE_CHANGED);
    finding_add(analyzer, &draft);
}

/* The program touched what a copy was still to write. */
static void on_host_access(struct analyzer *analyzer, const struct event *event)
{
    analyze_count(analyzer, HYPOTHESIS_MISSING_SYNC, 1, 1);
    if (finding_is_reuse(event))
        return; /* staging_reuse.c's */
    struct finding draft = finding_of_host_access(analyzer, HYPOTHESIS_MISSING_SYNC, event);
    finding_add(analyzer, &draft);
}

static void on_event(struct analyzer *analyzer, const struct event *event)
{
    if (event->kind == EVENT_HOST_ACCESS)
        on_host_access(analyzer, event);
    else if (event->kind == EVENT_TICKET_REDEEM)
        on_redeem(analyzer, event);
    else if (event->kind == EVENT_TRANSFER_HASH)
        on_hash(analyzer, event);
}

/* A stream was destroyed, and no one had waited for its work. */
static void on_abandoned(struct analyzer *analyzer, const struct conflict *conflict)
{
    struct finding draft = finding_draft(HYPOTHESIS_MISSING_SYNC, FINDING_POSSIBLE);
    draft.cause = place_of_event(analyzer, conflict->event);
    draft.other = place_of_id(analyzer, conflict->earlier.event_id, 0);
    finding_set_reason(&draft, REASON_ABANDONED);
    finding_add(analyzer, &draft);
}

static void on_conflict(struct analyzer *analyzer, const struct conflict *conflict)
{
    if (conflict->kind == CONFLICT_ABANDONED)
        on_abandoned(analyzer, conflict);
    if (conflict->kind != CONFLICT_UNORDERED ||
        (event_is_copy(conflict->event->kind) && event_is_copy(conflict->earlier.kind)))
        return;
    finding_add_conflict(analyzer, HYPOTHESIS_MISSING_SYNC, conflict);
}

const struct hypothesis_detector detector_missing_sync = {
    .info = { .slug = "missing-sync", .level = AUDIT_LOG, .exact = true },
    .event = on_event,
    .conflict = on_conflict,
};
