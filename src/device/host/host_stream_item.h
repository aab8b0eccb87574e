/* host_stream_item.h - what stands in a stream's queue, and the marks and graphs it may name. Both
 * are counted, so that destroying one does not pull it from under queued work. */
#ifndef GRETA_DEVICE_HOST_HOST_STREAM_ITEM_H
#define GRETA_DEVICE_HOST_HOST_STREAM_ITEM_H

#include "device/host/host_impl.h"

struct host_mark {
    uint64_t recorded; /* atomic: records given so far */
    uint64_t passed;   /* atomic: the latest of them that a stream came past */
    struct host_word passed_word;
    uint32_t users; /* atomic: the handle, and queued items; the last one frees */
};

/* A record or wait is about to be queued: the value it is for. Counts a user. */
uint64_t host_mark_next(struct host_mark *mark);
uint64_t host_mark_use(struct host_mark *mark);
/* From the stream's thread. Both give up the user that was counted. */
void host_mark_pass(struct host_mark *mark, uint64_t value);
void host_mark_wait_for(struct host_mark *mark, uint64_t value);

struct host_graph {
    const struct device_command *commands; /* borrowed */
    size_t count;
    uint32_t replays; /* atomic: queued or running */
    struct host_word replays_word;
    uint32_t users; /* atomic: the handle, and replays; the last one frees */
};

void host_graph_use(struct host_graph *graph);
void host_graph_unuse(struct host_graph *graph);

enum item_kind { ITEM_COMMAND, ITEM_GRAPH, ITEM_MARK_RECORD, ITEM_MARK_WAIT, ITEM_STOP };

struct stream_item {
    enum item_kind kind;
    struct device_command command;
    struct host_graph *graph;
    uint64_t event_id; /* of a replay */
    struct host_mark *mark;
    uint64_t mark_value;
};

#endif
