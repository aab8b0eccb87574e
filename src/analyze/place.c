/* place.c - a call as a finding names it. */
#include "analyze/analyze_impl.h"

#include <string.h>

const struct event_access *event_operand(const struct event *event, uint8_t operand)
{
    for (uint32_t i = 0; i < event->access_count; i++)
        if (event->accesses[i].operand == operand)
            return &event->accesses[i];
    return NULL;
}

void place_set_access(const struct analyzer *analyzer, struct analyze_place *place,
                      const struct event_access *access)
{
    place->operand = access->operand;
    place->mode = access->mode;
    place->address = access->address;
    place->bytes = access->bytes;
    place->buffer_index = access->buffer_index;
    place->generation = access->generation;
    const struct ledger_entry *entry = ledger_find_generation(
        &analyzer->ledger, place->device_index, access->buffer_index, access->generation);
    if (entry)
        memcpy(place->buffer, entry->name, sizeof(place->buffer));
}

struct analyze_place place_of_event(const struct analyzer *analyzer, const struct event *event)
{
    const struct history_entry *known = history_find(&analyzer->history, event->id);
    struct analyze_place place = {
        .event_id = event->id,
        .time_ns = event->begin_ns,
        .kind = event->kind,
        .scope = event->scope,
        .line = event->line,
        .stream_index = event->stream_index,
        .device_index = event->device_index,
        .thread_index = event->thread_index,
        .epoch = event->kind == EVENT_GRAPH_REPLAY ? event->graph.epoch : 0,
        .iteration = known ? known->iteration : analyzer->iteration,
        .foreign = (event->flags & EVENT_FOREIGN) != 0,
        .stack_index = event->stack_index,
        .name_index = event->kind == EVENT_LAUNCH ? event->launch.name_index : 0,
        .operand = EVENT_NO_OPERAND
    };
    if (place.foreign && event->kind == EVENT_LAUNCH)
        place.ordinal = event->launch.ordinal;
    if (place.foreign && event->kind == EVENT_GRAPH_REPLAY)
        place.ordinal = event->graph.ordinal;
    memcpy(place.op, event->op, sizeof(place.op));
    memcpy(place.file, event->file, sizeof(place.file));
    /* A copy, a fill and a buffer have only one range that can be meant. */
    if (event->access_count && event->kind != EVENT_LAUNCH)
        place_set_access(analyzer, &place, &event->accesses[0]);
    return place;
}

/* A node of a graph, as the replay that ran it. */
static struct analyze_place place_of_node(const struct analyzer *analyzer,
                                          const struct event *record, const struct event *replay,
                                          uint32_t node)
{
    struct analyze_place place = place_of_event(analyzer, record);
    const struct history_entry *known = history_find(&analyzer->history, replay->id);
    place.event_id = replay->id;
    place.time_ns = replay->begin_ns;
    place.stream_index = replay->stream_index;
    place.thread_index = replay->thread_index;
    place.epoch = replay->graph.epoch;
    place.node = node;
    place.iteration = known ? known->iteration : analyzer->iteration;
    /* What a graph was recorded in says nothing of when it runs. */
    place.scope.step = replay->scope.step;
    return place;
}

struct analyze_place place_of_work(const struct analyzer *analyzer, const struct work *work)
{
    return work->replay ? place_of_node(analyzer, work->event, work->replay, work->node)
                        : place_of_event(analyzer, work->event);
}

struct analyze_place place_of_id(const struct analyzer *analyzer, uint64_t event_id, uint32_t node)
{
    const struct history_entry *entry = history_find(&analyzer->history, event_id);
    uint32_t recorded_node;
    uint64_t graph_id;
    if (entry && node && entry->event.kind == EVENT_GRAPH_REPLAY) {
        const struct graph *graph = graphs_find(&analyzer->graphs, entry->event.cause_id);
        if (graph && node <= graph->count)
            return place_of_node(analyzer, &graph->records[node - 1], &entry->event, node);
    }
    if (entry)
        return place_of_event(analyzer, &entry->event);
    const struct event *record = graphs_find_record(&analyzer->graphs, event_id, &recorded_node,
                                                    &graph_id);
    if (record) {
        struct analyze_place place = place_of_event(analyzer, record);
        place.node = recorded_node;
        return place;
    }
    return (struct analyze_place){ .event_id = event_id,
                                   .kind = EVENT_LAUNCH,
                                   .scope = { -1, -1, "" },
                                   .stream_index = EVENT_NO_STREAM,
                                   .operand = EVENT_NO_OPERAND };
}

const struct event *analyze_find_call(const struct analyzer *analyzer, uint64_t event_id,
                                      uint32_t node)
{
    const struct history_entry *entry = history_find(&analyzer->history, event_id);
    uint32_t unused_node;
    uint64_t unused_graph;
    if (!entry)
        return graphs_find_record(&analyzer->graphs, event_id, &unused_node, &unused_graph);
    if (entry->event.kind != EVENT_GRAPH_REPLAY || node == 0)
        return &entry->event;
    const struct graph *graph = graphs_find(&analyzer->graphs, entry->event.cause_id);
    return graph && node <= graph->count ? &graph->records[node - 1] : NULL;
}

/* ---- What is reported about a call ---------------------------------------------------------- */

/* Which node of the replayed graph is meant: by its id where that is given, else by name. */
static uint32_t find_node(const struct graph *graph, const struct event *event)
{
    uint64_t node_id = event->kind == EVENT_FAULT ? event->fault.node_id : 0;
    for (size_t i = 0; i < graph->count; i++)
        if (node_id && graph->records[i].id == node_id)
            return (uint32_t)i + 1;
    for (size_t i = 0; i < graph->count; i++) {
        const struct event *record = &graph->records[i];
        if (event->op[0] && strcmp(record->op, event->op) == 0 &&
            record->scope.layer == event->scope.layer &&
            strcmp(record->scope.tensor, event->scope.tensor) == 0)
            return (uint32_t)i + 1;
    }
    return 0;
}

/* The last replay of a graph before now; NULL if it is forgotten. */
static const struct event *last_replay(const struct analyzer *analyzer, uint64_t graph_id)
{
    const struct history *history = &analyzer->history;
    for (uint64_t at = history->count; at > history_first(history); at--) {
        const struct event *event = &history_at(history, at - 1)->event;
        if (event->kind == EVENT_GRAPH_REPLAY && event->cause_id == graph_id)
            return event;
    }
    return NULL;
}

struct analyze_place place_of_fault(const struct analyzer *analyzer, const struct event *event)
{
    const struct history_entry *entry = history_find(&analyzer->history, event->cause_id);
    uint32_t node;
    uint64_t graph_id;
    const struct event *record = graphs_find_record(&analyzer->graphs, event->cause_id, &node,
                                                    &graph_id);
    if (record) {
        const struct event *replay = last_replay(analyzer, graph_id);
        if (replay)
            return place_of_node(analyzer, record, replay, node);
    }
    if (entry && entry->event.kind == EVENT_GRAPH_REPLAY) {
        const struct graph *graph = graphs_find(&analyzer->graphs, entry->event.cause_id);
        node = graph ? find_node(graph, event) : 0;
        if (node)
            return place_of_node(analyzer, &graph->records[node - 1], &entry->event, node);
    }
    struct analyze_place place = place_of_id(analyzer, event->cause_id, 0);
    /* The event itself may know more than what is remembered. */
    if (place.op[0] == '\0' && event->op[0]) {
        memcpy(place.op, event->op, sizeof(place.op));
        place.scope = event->scope;
        if (event->stream_index != EVENT_NO_STREAM)
            place.stream_index = event->stream_index;
    }
    return place;
}

struct analyze_place place_of_remark(const struct analyzer *analyzer, const struct event *event)
{
    struct analyze_place place = place_of_fault(analyzer, event);
    place.operand = event->operand;
    const struct event *call = analyze_find_call(analyzer, place.event_id, place.node);
    const struct event_access *access = call ? event_operand(call, event->operand) : NULL;
    if (access)
        place_set_access(analyzer, &place, access);
    return place;
}

struct analyze_place place_of_crumb(const struct analyzer *analyzer,
                                    const struct crumb_stream *crumbs)
{
    uint64_t id = crumb_entered(crumbs);
    uint32_t launches, node = crumb_node(crumbs, &launches);
    const struct history_entry *entry = history_find(&analyzer->history, id);
    const struct graph *graph = NULL;
    if (entry && entry->event.kind == EVENT_GRAPH_REPLAY)
        graph = graphs_find(&analyzer->graphs, entry->event.cause_id);
    if (graph && graph->count && node)
        return place_of_id(analyzer, id, (node - 1) % (uint32_t)graph->count + 1);
    return place_of_id(analyzer, id, 0);
}

/* A redeem that was refused before its ticket was looked at: of the copies its thread made last. */
static const struct event *last_copy_out(const struct analyzer *analyzer, const struct event *wait)
{
    const struct history *history = &analyzer->history;
    for (uint64_t at = history->count; at > history_first(history); at--) {
        const struct event *event = &history_at(history, at - 1)->event;
        if (event->kind == EVENT_COPY_OUT && event->outcome == EVENT_DONE &&
            event->thread_index == wait->thread_index && event->device_index == wait->device_index)
            return event;
    }
    return NULL;
}

struct analyze_place place_of_wait(const struct analyzer *analyzer, const struct event *event)
{
    if (event->kind == EVENT_TICKET_REDEEM || event->kind == EVENT_TICKET_RELEASE) {
        const struct ticket_state *ticket = order_ticket(&analyzer->order, event->device_index,
                                                         event->ticket.ticket);
        uint64_t copy_id = ticket ? ticket->copy_id : event->cause_id;
        const struct history_entry *copy = history_find(&analyzer->history, copy_id);
        const struct event *waited = copy && copy->event.kind == EVENT_COPY_OUT ? &copy->event
                                                                                : NULL;
        if (!waited && event->outcome == EVENT_REFUSED)
            waited = last_copy_out(analyzer, event);
        if (waited)
            return place_of_event(analyzer, waited);
    }
    return place_of_event(analyzer, event);
}

struct analyze_place place_of_touch(const struct analyzer *analyzer, const struct touch *touch,
                                    const struct ledger_entry *entry, uint64_t start,
                                    uint64_t bytes)
{
    struct analyze_place place = place_of_id(analyzer, touch->event_id, touch->node);
    place.kind = touch->kind;
    const struct stream_state *stream = order_stream_at(&analyzer->order, touch->stream);
    if (stream) {
        place.device_index = stream->device_index;
        place.stream_index = stream->stream_index;
    }
    place.node = touch->node;
    place.operand = touch->operand;
    place.mode = touch->mode;
    place.address = start;
    place.bytes = bytes;
    place.buffer_index = entry->buffer_index;
    place.generation = entry->generation;
    memcpy(place.buffer, entry->name, sizeof(place.buffer));
    return place;
}
