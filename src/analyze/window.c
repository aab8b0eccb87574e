/* window.c - which calls of a foreign program may have made an illegal access.
 *
 * A foreign program leaves no breadcrumbs: the fault lies between the last wait of a stream and the
 * call that reported it. Every launch in that window is a candidate, and so is a launch whose call
 * had not returned; a copy or fill is one only if its memory was freed meanwhile, because it
 * touches what it declares and nothing else. One candidate is the culprit only if no record is
 * missing. */
#include "analyze/analyze_impl.h"

static bool may_have_run(const struct event *event)
{
    return event->outcome == EVENT_DONE || event->outcome == EVENT_PENDING;
}

/* Host memory that was never registered is not in the ledger, and is not the device's to miss. */
static bool was_freed(const struct analyzer *analyzer, const struct event *event, uint64_t fault_id)
{
    for (uint32_t i = 0; i < event->access_count; i++) {
        const struct event_access *access = &event->accesses[i];
        const struct ledger_entry *entry = ledger_find_generation(
            &analyzer->ledger, event->device_index, access->buffer_index, access->generation);
        if (entry && entry->destroyed_id && entry->destroyed_id < fault_id)
            return true;
    }
    return false;
}

bool window_holds(const struct analyzer *analyzer, const struct event *event, uint64_t fault_id)
{
    const struct stream_state *stream = order_stream(&analyzer->order, event);
    if (!may_have_run(event) || event_graph_id(event) || (stream && event->id <= stream->waited_id))
        return false;
    if (event->kind == EVENT_LAUNCH || event->kind == EVENT_GRAPH_REPLAY)
        return true;
    return event_is_work(event->kind) && was_freed(analyzer, event, fault_id);
}

/* The history keeps the newest calls: older work of a stream that no one waited for is forgotten.
 */
static bool has_forgotten_work(const struct analyzer *analyzer)
{
    const struct history *history = &analyzer->history;
    uint64_t first = history_first(history);
    if (first == 0 || first == history->count)
        return first != 0;
    uint64_t first_id = history_at(history, first)->event.id;
    for (uint32_t i = 0; i < VCLOCK_STREAM_LIMIT; i++) {
        const struct stream_state *stream = &analyzer->order.streams[i];
        if (stream->used && stream->last_id > stream->waited_id && stream->waited_id < first_id)
            return true;
    }
    return false;
}

bool window_has_gaps(const struct analyzer *analyzer)
{
    return suspects_have_gaps(analyzer) || has_forgotten_work(analyzer);
}

/* If there are too many candidates, the first ones and the last one are kept and the others are
 * counted. */
static void add_candidate(const struct analyzer *analyzer, const struct event *event,
                          struct finding *draft)
{
    uint32_t place = FINDING_CANDIDATE_LIMIT - 1;
    if (draft->candidate_count < FINDING_CANDIDATE_LIMIT)
        place = draft->candidate_count++;
    else
        draft->candidates_left_out++;
    draft->candidates[place] = place_of_event(analyzer, event);
}

void suspects_in_window(const struct analyzer *analyzer, const struct event *fault,
                        struct finding *draft)
{
    const struct history *history = &analyzer->history;
    uint64_t end = history_lower(history, fault->id);
    for (uint64_t at = history_first(history); at < end; at++) {
        const struct event *event = &history_at(history, at)->event;
        if (event->device_index == fault->device_index && window_holds(analyzer, event, fault->id))
            add_candidate(analyzer, event, draft);
    }
    bool gaps = window_has_gaps(analyzer);
    if (draft->candidate_count)
        draft->cause = draft->candidates[0];
    if (draft->candidate_count == 1 && !gaps)
        return;
    draft->certainty = FINDING_POSSIBLE;
    finding_set_reason(draft, draft->candidate_count == 0   ? REASON_NO_LAUNCH_KNOWN
                              : draft->candidate_count == 1 ? REASON_GAPS
                                                            : REASON_WINDOW);
}
