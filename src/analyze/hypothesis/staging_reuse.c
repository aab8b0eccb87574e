/* staging_reuse.c - staging memory used again while somebody still needs what is in it: a slot
 * taken while its ticket is out, a ticket used after its release,
 * a source rewritten before its copy was waited for. */
#include "analyze/analyze_impl.h"

/* Two copies out on two streams, unordered, are overlapping_copies.c's. */
static bool is_overlap(const struct order *order, const struct ticket_state *ticket,
                       const struct event *event)
{
    const struct stream_state *stream = order_stream(order, event);
    return event->kind == EVENT_COPY_OUT && ticket->use == TICKET_LANDING && stream &&
           ticket->stream != order_place_of(order, event) &&
           !vclock_covers(&stream->clock, ticket->stream, ticket->tick);
}

static void on_copy(struct analyzer *analyzer, const struct event *event)
{
    analyze_count(analyzer, HYPOTHESIS_STAGING_REUSE, 1, 1);
    const struct order *order = &analyzer->order;
    if (event->flags & EVENT_FOREIGN)
        return; /* has no tickets; its memory is looked at by the observer */
    const struct ticket_state *ticket =
        event->copy.ticket ? order_ticket(order, event->device_index, event->copy.ticket) : NULL;
    if (!ticket || !order_slot_busy(order, ticket, event) || is_overlap(order, ticket, event))
        return;
    struct finding draft = finding_draft(HYPOTHESIS_STAGING_REUSE, FINDING_DIRECT);
    draft.attribution = FINDING_CULPRIT;
    draft.cause = place_of_event(analyzer, event);
    draft.other = place_of_id(analyzer, ticket->copy_id, 0);
    draft.expected = TICKET_FREE;
    draft.found = ticket->use;
    finding_add(analyzer, &draft);
}

/* The host memory that a queued copy reads was rewritten: its digest is another one. */
static void on_source_changed(struct analyzer *analyzer, const struct event *event)
{
    const struct stream_state *stream = order_stream(&analyzer->order, event);
    struct finding draft = finding_draft(HYPOTHESIS_STAGING_REUSE, FINDING_DIRECT);
    /* Which copy reads what was rewritten too early is known, and that nothing waited for it. */
    draft.attribution = FINDING_CULPRIT;
    draft.cause = place_of_id(analyzer, event->cause_id, 0);
    draft.other = place_of_event(analyzer, event);
    draft.cause.address = event->source_change.address;
    draft.expected = event->source_change.digest_before;
    draft.found = event->source_change.digest_now;
    bool hidden = stream && stream->hidden;
    if (hidden || (event->flags & EVENT_MAY_TELL)) {
        draft.certainty = FINDING_POSSIBLE;
        finding_set_reason(&draft, hidden ? REASON_HIDDEN_ORDER : REASON_UNSEEN_ORDER);
    }
    finding_add(analyzer, &draft);
}

static void on_event(struct analyzer *analyzer, const struct event *event)
{
    if (event->kind == EVENT_HOST_ACCESS && finding_is_reuse(event)) {
        struct finding draft = finding_of_host_access(analyzer, HYPOTHESIS_STAGING_REUSE, event);
        finding_add(analyzer, &draft);
    }
    if (event->kind == EVENT_SOURCE_CHANGED)
        on_source_changed(analyzer, event);
    bool copies = event->kind == EVENT_COPY_OUT || event->kind == EVENT_COPY_IN;
    if (copies && event->outcome != EVENT_REFUSED)
        on_copy(analyzer, event);
    if (event->outcome != EVENT_REFUSED || event->check != EVENT_CHECK_TICKET)
        return;
    struct finding draft = finding_of_refusal(analyzer, HYPOTHESIS_STAGING_REUSE, event);
    struct analyze_place copy = place_of_wait(analyzer, event);
    if (copy.kind == EVENT_COPY_OUT)
        draft.other = copy;
    /* The call itself has no place in the computation; its copy has. */
    if (draft.cause.scope.step < 0 && draft.cause.scope.tensor[0] == '\0')
        draft.cause.scope = draft.other.scope;
    finding_add(analyzer, &draft);
}

const struct hypothesis_detector detector_staging_reuse = {
    .info = { .slug = "staging-reuse", .level = AUDIT_LOG, .exact = true },
    .event = on_event,
};
