/* graphs.c - templates of recorded graphs: what a replay does, launch by launch. */
#include "analyze/graphs.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

struct graph *graphs_find(const struct graphs *graphs, uint64_t id)
{
    for (uint32_t i = graphs->count; i > 0; i--) /* the newest are asked for most */
        if (graphs->items[i - 1].id == id)
            return (struct graph *)(uintptr_t)&graphs->items[i - 1];
    return NULL;
}

struct graph *graphs_find_handle(struct graphs *graphs, uint16_t device_index, uint64_t handle)
{
    for (uint32_t i = graphs->count; i > 0 && handle; i--)
        if (graphs->items[i - 1].handle == handle &&
            graphs->items[i - 1].device_index == device_index)
            return &graphs->items[i - 1];
    return NULL;
}

void graphs_record(struct graphs *graphs, uint64_t graph_id, const struct event *event)
{
    struct graph *graph = graphs_find(graphs, graph_id);
    if (!graph) {
        if (graphs->count == GRAPH_LIMIT) {
            graphs->forgotten++;
            return;
        }
        graph = &graphs->items[graphs->count++];
        *graph = (struct graph){ .id = graph_id,
                                 .device_index = event->device_index,
                                 .gaps = graph_id < graphs->lost_until };
    }
    /* A file's table and its ring may both tell of a launch. */
    if (graph->count && graph->records[graph->count - 1].id >= event->id)
        return;
    struct event *records = NULL;
    if (graphs->record_count < GRAPH_RECORD_LIMIT)
        records = array_reserve(graph->records, graph->count, &graph->capacity, sizeof(*records));
    if (!records) {
        graph->gaps = true;
        graphs->forgotten++;
        return;
    }
    graph->records = records;
    graph->records[graph->count++] = *event;
    graphs->record_count++;
}

void graphs_lost(struct graphs *graphs, uint64_t until)
{
    graphs->lost_until = until;
    for (uint32_t i = 0; i < graphs->count; i++)
        graphs->items[i].gaps |= !graphs->items[i].ended;
}

const struct event *graphs_find_record(const struct graphs *graphs, uint64_t event_id,
                                       uint32_t *ret_node, uint64_t *ret_graph)
{
    for (uint32_t i = 0; i < graphs->count; i++) {
        const struct graph *graph = &graphs->items[i];
        for (size_t j = 0; j < graph->count; j++)
            if (graph->records[j].id == event_id) {
                *ret_node = (uint32_t)j + 1;
                *ret_graph = graph->id;
                return &graph->records[j];
            }
    }
    return NULL;
}

void graphs_remove(struct graphs *graphs, uint16_t device_index, uint64_t handle)
{
    struct graph *graph = graphs_find_handle(graphs, device_index, handle);
    if (!graph)
        return;
    free(graph->records);
    graphs->record_count -= graph->count;
    struct graph *last = &graphs->items[graphs->count - 1];
    memmove(graph, graph + 1, (size_t)(last - graph) * sizeof(*graph));
    graphs->count--;
}

void graphs_release(struct graphs *graphs)
{
    for (uint32_t i = 0; i < graphs->count; i++)
        free(graphs->items[i].records);
    graphs->count = 0;
}
