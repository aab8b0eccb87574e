/* host_mark.c - marks and graphs of the host device. */
#include "device/host/host_stream_item.h"

#include <stdlib.h>

/* ---- Marks ---------------------------------------------------------------------------------- */

static void unuse(struct host_mark *mark)
{
    if (__atomic_sub_fetch(&mark->users, 1, __ATOMIC_ACQ_REL) == 0)
        free(mark);
}

uint64_t host_mark_next(struct host_mark *mark)
{
    __atomic_add_fetch(&mark->users, 1, __ATOMIC_RELAXED);
    return __atomic_add_fetch(&mark->recorded, 1, __ATOMIC_ACQ_REL);
}

uint64_t host_mark_use(struct host_mark *mark)
{
    __atomic_add_fetch(&mark->users, 1, __ATOMIC_RELAXED);
    return __atomic_load_n(&mark->recorded, __ATOMIC_ACQUIRE);
}

void host_mark_pass(struct host_mark *mark, uint64_t value)
{
    /* Records of two streams may come in any order; the latest given counts. */
    uint64_t passed = __atomic_load_n(&mark->passed, __ATOMIC_RELAXED);
    while (passed < value && !__atomic_compare_exchange_n(&mark->passed, &passed, value, true,
                                                          __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
    host_word_bump(&mark->passed_word);
    unuse(mark);
}

static void wait_until(struct host_mark *mark, uint64_t value)
{
    for (;;) {
        uint32_t seen = host_word_load(&mark->passed_word);
        if (__atomic_load_n(&mark->passed, __ATOMIC_ACQUIRE) >= value)
            return;
        host_word_wait(&mark->passed_word, seen, HOST_WAIT_SPINNING);
    }
}

void host_mark_wait_for(struct host_mark *mark, uint64_t value)
{
    wait_until(mark, value);
    unuse(mark);
}

enum status host_mark_create(struct device *device, void **ret_mark, struct error *err)
{
    (void)device;
    struct host_mark *mark = calloc(1, sizeof(*mark));
    if (!mark)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a mark");
    mark->users = 1;
    *ret_mark = mark;
    return STATUS_OK;
}

void host_mark_destroy(struct device *device, void *mark)
{
    (void)device;
    unuse(mark);
}

enum status host_mark_sync(struct device *device, void *argument, struct error *err)
{
    struct host_mark *mark = argument;
    wait_until(mark, __atomic_load_n(&mark->recorded, __ATOMIC_ACQUIRE));
    return device_is_lost(device) ? device_set_lost(device, "mark sync", err) : STATUS_OK;
}

bool host_mark_passed(struct device *device, void *argument)
{
    struct host_mark *mark = argument;
    (void)device;
    return __atomic_load_n(&mark->passed, __ATOMIC_ACQUIRE) >=
           __atomic_load_n(&mark->recorded, __ATOMIC_ACQUIRE);
}

/* ---- Graphs --------------------------------------------------------------------------------- */

enum status host_graph_create(struct device *device, void *stream,
                              const struct device_command *commands, size_t count, void **ret_graph,
                              struct error *err)
{
    (void)device;
    (void)stream;
    struct host_graph *graph = calloc(1, sizeof(*graph));
    if (!graph)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a graph");
    graph->commands = commands;
    graph->count = count;
    graph->users = 1;
    *ret_graph = graph;
    return STATUS_OK;
}

static void drop_graph(struct host_graph *graph)
{
    if (__atomic_sub_fetch(&graph->users, 1, __ATOMIC_ACQ_REL) == 0)
        free(graph);
}

void host_graph_use(struct host_graph *graph)
{
    __atomic_add_fetch(&graph->users, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&graph->replays, 1, __ATOMIC_RELAXED);
}

void host_graph_unuse(struct host_graph *graph)
{
    __atomic_sub_fetch(&graph->replays, 1, __ATOMIC_RELEASE);
    host_word_bump(&graph->replays_word);
    drop_graph(graph);
}

/* Waits for its replays: the commands belong to the caller and go with it. */
void host_graph_destroy(struct device *device, void *argument)
{
    struct host_graph *graph = argument;
    (void)device;
    for (;;) {
        uint32_t seen = host_word_load(&graph->replays_word);
        if (__atomic_load_n(&graph->replays, __ATOMIC_ACQUIRE) == 0)
            break;
        host_word_wait(&graph->replays_word, seen, HOST_WAIT_SPINNING);
    }
    drop_graph(graph);
}
