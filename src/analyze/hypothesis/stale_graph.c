/* stale_graph.c - a recorded graph replayed after a buffer it names was destroyed. */
#include "analyze/analyze_impl.h"

#include <string.h>

/* The graph a replay names; of a refused one only the handle is known, and that only if it was
 * replayed before or recorded last. */
static const struct graph *graph_of(struct analyzer *analyzer, const struct event *event)
{
    const struct graph *graph = graphs_find(&analyzer->graphs, event->cause_id);
    if (!graph)
        graph = graphs_find_handle(&analyzer->graphs, event->device_index, event->graph.handle);
    if (!graph)
        graph = graphs_find(&analyzer->graphs, analyzer->graphs.last_ended);
    return graph;
}

/* Other memory lies there now. A program that checks its addresses before it launches a graph again
 * (some engines do) may rightly go on with it. */
static bool is_taken_again(const struct analyzer *analyzer, uint16_t device_index,
                           const struct event_access *access)
{
    struct analyze_neighbourhood near = { 0 };
    ledger_neighbourhood(&analyzer->ledger, device_index, access->address, &near);
    return near.live.bytes != 0;
}

/* The first recorded call with a buffer that is not there any more. */
static bool find_stale(struct analyzer *analyzer, const struct event *event, struct finding *draft)
{
    const struct graph *graph = graph_of(analyzer, event);
    for (size_t i = 0; graph && i < graph->count; i++) {
        const struct event *record = &graph->records[i];
        for (uint32_t j = 0; j < record->access_count; j++) {
            const struct event_access *access = &record->accesses[j];
            const struct ledger_entry *entry = ledger_find_generation(
                &analyzer->ledger, record->device_index, access->buffer_index, access->generation);
            const struct ledger_entry *now = ledger_find(&analyzer->ledger, record->device_index,
                                                         access->buffer_index);
            if ((entry && !entry->destroyed_id) || (!entry && !now))
                continue;
            if (record->kind == EVENT_LAUNCH && (record->flags & EVENT_FOREIGN)) {
                draft->certainty = FINDING_POSSIBLE;
                finding_set_reason(draft, REASON_KERNEL_ACCESS);
            } else if ((record->flags & EVENT_FOREIGN) &&
                       is_taken_again(analyzer, record->device_index, access)) {
                draft->certainty = FINDING_POSSIBLE;
                finding_set_reason(draft, REASON_ADDRESS_REUSED);
            }
            struct work work = { .event = record, .replay = event, .node = (uint32_t)i + 1 };
            draft->cause = place_of_work(analyzer, &work);
            place_set_access(analyzer, &draft->cause, access);
            if (entry) {
                draft->other = place_of_id(analyzer, entry->destroyed_id, 0);
                draft->other.kind = EVENT_BUFFER_DESTROY;
            }
            return true;
        }
    }
    return false;
}

static void on_event(struct analyzer *analyzer, const struct event *event)
{
    if (event->kind != EVENT_GRAPH_REPLAY || event->check == EVENT_CHECK_LOST)
        return;
    /* Nothing is known of a foreign program's graph that was changed unseen. */
    bool unknown = (event->flags & EVENT_FOREIGN) && event->cause_id == 0;
    analyze_count(analyzer, HYPOTHESIS_STALE_GRAPH, !unknown, 1);
    if (unknown)
        return;
    bool refused = event->outcome == EVENT_REFUSED;
    if (refused && event->check != EVENT_CHECK_STALE_GRAPH)
        return;
    struct finding draft = finding_draft(HYPOTHESIS_STALE_GRAPH, FINDING_DIRECT);
    draft.attribution = FINDING_CULPRIT;
    draft.cause = place_of_event(analyzer, event);
    draft.check = event->check;
    draft.expected = event->expected;
    draft.found = event->found;
    bool stale = find_stale(analyzer, event, &draft);
    if (refused || stale)
        finding_add(analyzer, &draft);
}

const struct hypothesis_detector detector_stale_graph = {
    .info = { .slug = "stale-graph", .level = AUDIT_LOG, .exact = true },
    .event = on_event,
};
