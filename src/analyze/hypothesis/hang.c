/* hang.c - a call that does not return while nothing moves, for the limit: who waits for what.
 *
 * The time a call takes says nothing: a prefill of thousands of launches is one wait. What counts
 * is that no launch began or ended, and no call was made, for as long (event/crumb_watch.h). Where
 * no thread saw that, as in another program's process, a long wait is a hang only possibly. */
#include "analyze/analyze_impl.h"

/* A chain of marks longer than this is a circle. */
#define CHAIN_LIMIT 8u

/* The place of the stream a call waits for; NO_STREAM_PLACE if that is not known. */
static uint32_t stream_of(struct analyzer *analyzer, const struct event *event)
{
    if (event->kind == EVENT_TICKET_REDEEM || event->kind == EVENT_TICKET_RELEASE) {
        const struct ticket_state *ticket = order_ticket(&analyzer->order, event->device_index,
                                                         event->ticket.ticket);
        return ticket ? ticket->stream : NO_STREAM_PLACE;
    }
    if (event->kind == EVENT_MARK_SYNC) {
        const struct mark_state *mark = order_mark(&analyzer->order, event->device_index,
                                                   event->mark.mark);
        return mark ? mark->stream : NO_STREAM_PLACE;
    }
    return order_place_of(&analyzer->order, event);
}

/* Follows the stream, and the marks it waits for, to a launch that does not end. */
static void find_culprit(struct analyzer *analyzer, const struct crumb_page *crumbs, uint32_t place,
                         struct finding *draft)
{
    finding_set_reason(draft, REASON_NOT_STARTED);
    for (uint32_t hop = 0; hop < CHAIN_LIMIT; hop++) {
        const struct stream_state *stream = order_stream_at(&analyzer->order, place);
        const struct crumb_page *page = stream
                                            ? analyze_page(analyzer, crumbs, stream->device_index)
                                            : NULL;
        if (!page || !stream->known)
            return;
        const struct crumb_stream *crumb = &page->streams[stream->stream_index];
        uint64_t entered = crumb_entered(crumb), finished = crumb_finished(crumb);
        if (entered > finished) {
            bool exact = crumb_order(page) == CRUMB_ORDER_EXACT;
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
        const struct mark_state *mark = order_mark(&analyzer->order, stream->device_index,
                                                   stream->waits_mark - 1);
        finding_set_reason(draft, REASON_WAITS_FOR_MARK);
        if (!mark)
            return;
        draft->other = place_of_id(analyzer, mark->record_id, 0);
        place = mark->stream;
    }
}

/* The host's own work, on which no crumb moves: loading a driver, compiling kernels, copying what
 * is imported. */
static bool is_work_of_host(uint8_t kind)
{
    switch (kind) {
    case EVENT_DEVICE_OPEN:
    case EVENT_DEVICE_CLOSE:
    case EVENT_BUFFER_CREATE:
    case EVENT_MODULE_LOAD:
    case EVENT_GRAPH_BEGIN:
    case EVENT_GRAPH_END:
        return true;
    default:
        return false;
    }
}

/* What moved last on the device, and how long before. */
static void add_movement(const struct analyzer *analyzer, const struct crumb_page *page,
                         uint64_t now_ns, struct finding *draft)
{
    uint64_t moved_ns = __atomic_load_n(&page->moved_ns, __ATOMIC_ACQUIRE);
    uint64_t stream = __atomic_load_n(&page->moved_stream, __ATOMIC_ACQUIRE);
    if (moved_ns == 0 || moved_ns > now_ns || stream >= CRUMB_STREAM_LIMIT)
        return;
    draft->moved = place_of_crumb(analyzer, &page->streams[stream]);
    draft->moved_ago_ns = now_ns - moved_ns;
}

void analyze_watch(struct analyzer *analyzer, const struct crumb_page *crumbs,
                   const struct event *pending, uint64_t now_ns)
{
    uint64_t limit_ns = analyzer->options.hang_limit_ns;
    const struct crumb_page *page = analyze_page(analyzer, crumbs, pending->device_index);
    bool watched = page && crumb_is_watched(page);
    uint64_t still_ns = watched ? __atomic_load_n(&page->still_ns, __ATOMIC_ACQUIRE) : 0;
    if (now_ns < pending->begin_ns || now_ns - pending->begin_ns < limit_ns ||
        is_work_of_host(pending->kind) || (watched && still_ns < limit_ns))
        return;
    for (size_t i = 0; i < analyzer->result.finding_count; i++) {
        const struct finding *known = &analyzer->result.findings[i];
        if (known->hypothesis == HYPOTHESIS_HANG && known->order_id == pending->id)
            return; /* found before */
    }
    struct finding draft = finding_draft(HYPOTHESIS_HANG, FINDING_DIRECT);
    order_take_place(&analyzer->order, pending->device_index, pending->stream_index);
    draft.seen = place_of_wait(analyzer, pending);
    draft.cause = draft.seen;
    find_culprit(analyzer, crumbs, stream_of(analyzer, pending), &draft);
    draft.expected = limit_ns;
    draft.found = watched ? still_ns : now_ns - pending->begin_ns;
    draft.order_id = pending->id;
    if (watched) {
        add_movement(analyzer, page, now_ns, &draft);
    } else {
        draft.certainty = FINDING_POSSIBLE;
        draft.attribution = FINDING_SEEN_AT;
        finding_set_reason(&draft, REASON_UNWATCHED);
    }
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
    for (uint64_t at = history_first(history); at < history->count; at++) {
        const struct event *event = &history_at(history, at)->event;
        if (event->outcome == EVENT_PENDING && !analyze_is_lost(analyzer, event))
            analyze_watch(analyzer, analyzer->crumbs, event, analyzer->now_ns);
    }
}

const struct hypothesis_detector detector_hang = {
    .info = { .slug = "hang", .level = AUDIT_LOG, .exact = false },
    .event = on_event,
    .finish = on_finish,
};
