/* hang.c - a call that does not return within the limit: who waits for what. */
#include "analyze/analyze_impl.h"

/* A chain of marks longer than this is a circle. */
#define CHAIN_LIMIT 8u

/* The stream a call waits for; EVENT_NO_STREAM if that is not known. */
static uint32_t stream_of(struct analyzer *analyzer, const struct event *event)
{
    if (event->kind == EVENT_TICKET_REDEEM || event->kind == EVENT_TICKET_RELEASE) {
        const struct ticket_state *ticket = order_ticket(&analyzer->order, event->ticket.ticket);
        return ticket ? ticket->stream : EVENT_NO_STREAM;
    }
    if (event->kind == EVENT_MARK_SYNC) {
        const struct mark_state *mark = order_mark(&analyzer->order, event->mark.mark);
        return mark ? mark->stream : EVENT_NO_STREAM;
    }
    return event->stream_index;
}

/* Follows the stream, and the marks it waits for, to a launch that does not end. */
static void find_culprit(struct analyzer *analyzer, const struct crumb_page *crumbs,
                         uint32_t stream_index, struct finding *draft)
{
    finding_set_reason(draft, REASON_NOT_STARTED);
    for (uint32_t hop = 0; hop < CHAIN_LIMIT; hop++) {
        const struct stream_state *stream = order_stream(&analyzer->order, stream_index);
        if (!stream || !crumbs || stream_index >= CRUMB_STREAM_LIMIT)
            return;
        const struct crumb_stream *crumb = &crumbs->streams[stream_index];
        uint64_t entered = crumb_entered(crumb), finished = crumb_finished(crumb);
        if (entered > finished) {
            bool exact = crumb_order(crumbs) == CRUMB_ORDER_EXACT;
            draft->cause = place_of_crumb(analyzer, crumb);
            draft->attribution = FINDING_CULPRIT;
            draft->certainty = exact ? FINDING_DIRECT : FINDING_POSSIBLE;
            finding_set_reason(draft, exact ? REASON_STREAM_INSIDE : REASON_STREAM_BEGAN);
            return;
        }
        if (stream->last_id && stream->last_id <= finished) {
            finding_set_reason(draft, REASON_LOST_WAKEUP);
            return;
        }
        if (!stream->waits_mark)
            return;
        const struct mark_state *mark = order_mark(&analyzer->order, stream->waits_mark - 1);
        finding_set_reason(draft, REASON_WAITS_FOR_MARK);
        if (!mark)
            return;
        draft->other = place_of_id(analyzer, mark->record_id, 0);
        stream_index = mark->stream;
    }
}

void analyze_watch(struct analyzer *analyzer, const struct crumb_page *crumbs,
                   const struct event *pending, uint64_t now_ns)
{
    if (now_ns < pending->begin_ns || now_ns - pending->begin_ns < analyzer->options.hang_limit_ns)
        return;
    for (size_t i = 0; i < analyzer->result.finding_count; i++) {
        const struct finding *known = &analyzer->result.findings[i];
        if (known->hypothesis == HYPOTHESIS_HANG && known->order_id == pending->id)
            return; /* told already */
    }
    struct finding draft = finding_draft(HYPOTHESIS_HANG, FINDING_DIRECT);
    draft.seen = place_of_wait(analyzer, pending);
    draft.cause = draft.seen;
    find_culprit(analyzer, crumbs, stream_of(analyzer, pending), &draft);
    draft.expected = analyzer->options.hang_limit_ns;
    draft.found = now_ns - pending->begin_ns;
    draft.order_id = pending->id;
    finding_add(analyzer, &draft);
}

static void on_event(struct analyzer *analyzer, const struct event *event)
{
    if (event_is_wait(event->kind) && event->outcome != EVENT_REFUSED)
        analyze_count(analyzer, HYPOTHESIS_HANG, event->outcome != EVENT_PENDING, 1);
}

static void on_finish(struct analyzer *analyzer)
{
    const struct history *history = &analyzer->history;
    if (analyzer->first_fault_id)
        return;
    for (uint64_t at = history_first(history); at < history->count; at++) {
        const struct event *event = &history_at(history, at)->event;
        if (event->outcome == EVENT_PENDING)
            analyze_watch(analyzer, analyzer->crumbs, event, analyzer->now_ns);
    }
}

const struct hypothesis_detector detector_hang = {
    .info = { .slug = "hang", .level = AUDIT_LOG, .exact = false },
    .event = on_event,
    .finish = on_finish,
};
