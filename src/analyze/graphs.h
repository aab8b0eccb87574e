/* graphs.h - templates of recorded graphs, bounded like the rest of what the analysis knows
 * (analyze_state.h). */
#ifndef GRETA_ANALYZE_GRAPHS_H
#define GRETA_ANALYZE_GRAPHS_H

#include "analyze/analyze.h"

#define GRAPH_LIMIT 256u
#define GRAPH_RECORD_LIMIT 16384u /* launches of all templates together */

struct graph {
    uint64_t id;     /* of graph-begin */
    uint64_t handle; /* its index for callers; 0 until it is known */
    uint16_t device_index;
    struct event *records;
    size_t count, capacity;
    bool ended; /* graph-end was seen */
    bool gaps;  /* launches may be missing: there was no room for them, or events were lost */
};

struct graphs {
    struct graph items[GRAPH_LIMIT];
    uint32_t count;
    size_t record_count;
    uint64_t forgotten;
    uint64_t last_ended; /* id of the graph recorded last */
    uint64_t lost_until; /* id of the first event after events were lost; 0: none were */
};

struct graph *graphs_find(const struct graphs *graphs, uint64_t id);
struct graph *graphs_find_handle(struct graphs *graphs, uint16_t device_index, uint64_t handle);
/* Adds a launch to the template, which is made if need be. */
void graphs_record(struct graphs *graphs, uint64_t graph_id, const struct event *event);
/* Events before this id were lost: launches of graphs that were being recorded may be among them.
 */
void graphs_lost(struct graphs *graphs, uint64_t until);
/* True if the graph has launches and all of them are known. graph may be NULL. */
static inline bool graph_is_whole(const struct graph *graph)
{
    return graph && graph->count && !graph->gaps;
}
/* A recorded call by its id, or NULL; *ret_node: from 1. */
const struct event *graphs_find_record(const struct graphs *graphs, uint64_t event_id,
                                       uint32_t *ret_node, uint64_t *ret_graph);
void graphs_remove(struct graphs *graphs, uint16_t device_index, uint64_t handle);
void graphs_release(struct graphs *graphs);

#endif
