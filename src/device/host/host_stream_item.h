/* host_stream_item.h - a stream, what stands in its queue, and the marks and graphs that are named
 * there. Both are counted, so that destroying one does not pull it from under queued work. */
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

struct host_stream {
    struct device *device;
    uint32_t index;
    pthread_t thread;
    struct host_job job;
    struct stream_item *items; /* the queue: a ring, as long as host_stream.c makes it */
    void *scratch; /* of its thread, made before it: without memory there is no stream */
    /* Whoever gives writes these, its thread looks at them when it has done all it knows of. */
    _Alignas(HOST_LINE_BYTES) uint64_t given; /* atomic: items written */
    struct host_word given_word;
    uint64_t taken_seen; /* as many items were taken, at least; the giver's own */
    /* Its thread writes these. */
    _Alignas(HOST_LINE_BYTES) uint64_t taken; /* atomic: items done with */
    uint64_t given_seen;                      /* as many were given, at least; its thread's own */
    uint64_t announced; /* the item last announced to the pool; its thread's own */
    /* Whoever waits for its thread writes these. */
    _Alignas(HOST_LINE_BYTES) uint64_t awaited; /* atomic: a thread sleeps until `taken` is this;
                                                   UINT64_MAX: none does */
    struct host_word taken_word;
};

/* ---- host_stream.c, from the stream's thread ------------------------------------------------ */

/* Tells the pool of the next launch that has something to fetch, if it is among the items that are
 * given already and follows soon. */
void host_stream_announce_next(struct host_stream *stream);

/* ---- host_command.c, from the stream's thread ----------------------------------------------- */

/* Both report the completion if the options want it. On a lost device they skip the work; a fault
 * makes the device lost. */
void host_command_do(struct host_stream *stream, const struct device_command *command);
/* A replay: all its commands, as the event with that id. Gives up the user that was counted. */
void host_graph_do(struct host_stream *stream, struct host_graph *graph, uint64_t event_id);

#endif
