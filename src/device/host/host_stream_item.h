/* host_stream_item.h - a stream, the items of its queue, and the marks and graphs that they name.
 * Marks and graphs are reference-counted, so that destroying one does not free it under queued
 * work. */
#ifndef GRETA_DEVICE_HOST_HOST_STREAM_ITEM_H
#define GRETA_DEVICE_HOST_HOST_STREAM_ITEM_H

#include "device/host/host_impl.h"

struct host_mark {
    uint64_t recorded; /* atomic: records given so far */
    uint64_t passed;   /* atomic: the latest record that a stream has passed */
    struct host_word passed_word;
    uint32_t
        users; /* atomic reference count: the handle and queued items; the last frees the mark */
};

/* The value that a record or wait about to be queued is for. Takes a reference. */
uint64_t host_mark_next(struct host_mark *mark);
uint64_t host_mark_use(struct host_mark *mark);
/* Called from the stream's thread. Both release the reference. */
void host_mark_pass(struct host_mark *mark, uint64_t value);
void host_mark_wait_for(struct host_mark *mark, uint64_t value);

struct host_graph {
    const struct device_command *commands; /* borrowed */
    size_t count;
    uint32_t replays; /* atomic: queued or running */
    struct host_word replays_word;
    uint32_t users; /* atomic reference count: the handle and replays; the last frees the graph */
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
    void *scratch; /* of its thread; allocated before the thread, so that only creating a stream can
                      lack memory */
    /* Written by the submitting thread; the stream's thread reads them when its known items are
     * done. */
    _Alignas(HOST_LINE_BYTES) uint64_t given; /* atomic: items written */
    struct host_word given_word;
    uint64_t taken_seen; /* lower bound of `taken`; used by the submitting thread alone */
    /* Written by the stream's thread. */
    _Alignas(HOST_LINE_BYTES) uint64_t taken; /* atomic: items done with */
    uint64_t given_seen; /* lower bound of `given`; used by the stream's thread alone */
    uint64_t announced;  /* the item last announced to the pool; its thread's own */
    /* Written by threads that wait for the stream's thread. */
    _Alignas(HOST_LINE_BYTES) uint64_t awaited; /* atomic: a thread sleeps until `taken` is this;
                                                   UINT64_MAX: none does */
    struct host_word taken_word;
};

/* ---- host_stream.c, from the stream's thread ------------------------------------------------ */

/* Announces to the pool the next queued launch that has something to prefetch, if it follows soon.
 */
void host_stream_announce_next(struct host_stream *stream);

/* ---- host_command.c, from the stream's thread ----------------------------------------------- */

/* Both report the completion if the options want it. On a lost device they skip the work; a fault
 * makes the device lost. */
void host_command_do(struct host_stream *stream, const struct device_command *command);
/* A replay: all its commands, as the event with that id. Releases the reference. */
void host_graph_do(struct host_stream *stream, struct host_graph *graph, uint64_t event_id);

#endif
