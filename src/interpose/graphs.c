/* graphs.c - captures and graphs: which recorded calls a replay stands for. */
#include "interpose/interpose_impl.h"

struct tracked_graph *graph_find(const struct interpose *interpose, uint64_t handle)
{
    for (size_t i = 0; i < interpose->graph_count; i++)
        if (interpose->graphs[i].handle == handle)
            return &interpose->graphs[i];
    return NULL;
}

/* Finds a graph by its handle, or adds it; NULL if there is no room. */
static struct tracked_graph *track(struct interpose *interpose, uint64_t handle, uint64_t id)
{
    struct tracked_graph *graph = graph_find(interpose, handle);
    if (!graph && interpose->graph_count < GRAPH_TRACKED_LIMIT)
        graph = &interpose->graphs[interpose->graph_count++];
    if (graph)
        *graph = (struct tracked_graph){ .handle = handle, .id = id };
    return graph;
}

uint64_t graph_take(struct interpose *interpose, uint64_t handle)
{
    const struct tracked_graph *graph = graph_find(interpose, handle);
    struct interpose_call call;
    if (graph)
        return graph->id;
    if (!translate_open(interpose, &call, EVENT_GRAPH_BEGIN, "graph", handle))
        return 0;
    translate_tell_done(interpose, &call);
    track(interpose, handle, call.event.id);
    return call.event.id;
}

/* ---- Captures ------------------------------------------------------------------------------- */

void interpose_capture_begin(struct interpose *interpose, struct interpose_call *call,
                             const char *name, const struct interpose_stream *stream)
{
    if (!translate_open(interpose, call, EVENT_GRAPH_BEGIN, name, stream ? stream->handle : 0))
        return;
    pthread_mutex_lock(&interpose->lock);
    const struct tracked_stream *used = stream_use(interpose, call, stream);
    call->argument[0] = used ? (uint64_t)(used - interpose->streams) : STREAM_TRACKED_LIMIT;
    pthread_mutex_unlock(&interpose->lock);
    translate_tell(interpose, call);
}

void interpose_capture_end(struct interpose *interpose, struct interpose_call *call,
                           const char *name, const struct interpose_stream *stream)
{
    if (!translate_open(interpose, call, EVENT_GRAPH_END, name, stream ? stream->handle : 0))
        return;
    pthread_mutex_lock(&interpose->lock);
    const struct tracked_stream *used = stream_use(interpose, call, stream);
    call->event.cause_id = used ? used->capture_id : 0;
    pthread_mutex_unlock(&interpose->lock);
    translate_tell(interpose, call);
}

void interpose_capture_gave(struct interpose *interpose, struct interpose_call *call,
                            uint64_t graph)
{
    if (interpose && call->open)
        call->event.graph.handle = graph;
}

void graph_settle(struct interpose *interpose, struct interpose_call *call)
{
    const struct event *event = &call->event;
    if (event->kind == EVENT_GRAPH_BEGIN) {
        if (event->outcome == EVENT_DONE && call->argument[0] < interpose->stream_count)
            interpose->streams[call->argument[0]].capture_id = event->id;
        return;
    }
    for (size_t i = 0; i < interpose->stream_count && event->cause_id; i++)
        if (interpose->streams[i].capture_id == event->cause_id)
            interpose->streams[i].capture_id = 0;
    if (event->outcome != EVENT_DONE || !event->graph.handle || !event->cause_id)
        return;
    struct tracked_graph *made = track(interpose, event->graph.handle, event->cause_id);
    for (size_t i = 0; made && i < HIDDEN_CAPTURE_LIMIT; i++)
        made->tells = made->tells || interpose->hidden_captures[i] == event->cause_id;
}

/* ---- Graphs --------------------------------------------------------------------------------- */

void interpose_graph_instantiated(struct interpose *interpose, uint64_t graph, uint64_t executable)
{
    if (!interpose || interpose->disabled)
        return;
    launch_facts_graph(interpose);
    pthread_mutex_lock(&interpose->lock);
    const struct tracked_graph *from = graph_find(interpose, graph);
    uint64_t id = from ? from->id : 0;
    bool changed = !from || from->changed, tells = from && from->tells;
    struct tracked_graph *made = track(interpose, executable, id);
    if (made) {
        made->executable = true;
        made->changed = changed;
        made->tells = tells;
    }
    pthread_mutex_unlock(&interpose->lock);
}

void interpose_graph_changed(struct interpose *interpose, uint64_t graph_or_executable)
{
    if (!interpose || interpose->disabled)
        return;
    pthread_mutex_lock(&interpose->lock);
    struct tracked_graph *graph = graph_find(interpose, graph_or_executable);
    if (!graph && graph_or_executable)
        graph = track(interpose, graph_or_executable, 0);
    if (graph)
        graph->changed = true;
    for (size_t i = 0; !graph_or_executable && i < interpose->graph_count; i++)
        interpose->graphs[i].changed = true;
    pthread_mutex_unlock(&interpose->lock);
}

void interpose_graph_launch_begin(struct interpose *interpose, struct interpose_call *call,
                                  const char *name, uint64_t executable,
                                  const struct interpose_stream *stream)
{
    if (!translate_open(interpose, call, EVENT_GRAPH_REPLAY, name, executable))
        return;
    pthread_mutex_lock(&interpose->lock);
    struct tracked_stream *used = stream_use(interpose, call, stream);
    struct tracked_graph *graph = graph_find(interpose, executable);
    if (used) {
        stream_queue(interpose, used);
        pending_write(interpose, 0, PENDING_EVERYWHERE, used);
        /* A kernel in it may write a flag in host memory. */
        trapped_tell(interpose, (size_t)(used - interpose->streams), used->queued - 1);
    }
    call->event.graph.handle = executable;
    if (graph && graph->tells)
        call->event.flags |= EVENT_MAY_TELL;
    if (graph && !graph->changed) {
        call->event.cause_id = graph->id;
        call->event.graph.epoch = ++graph->replays;
    }
    pthread_mutex_unlock(&interpose->lock);
    call->launch_ordinal = __atomic_add_fetch(&interpose->launches, 1, __ATOMIC_RELAXED);
    call->event.graph.ordinal = call->launch_ordinal;
    translate_tell(interpose, call);
}

void interpose_graph_destroyed(struct interpose *interpose, uint64_t graph_or_executable)
{
    if (!interpose || interpose->disabled)
        return;
    pthread_mutex_lock(&interpose->lock);
    struct tracked_graph *graph = graph_find(interpose, graph_or_executable);
    uint64_t id = graph ? graph->id : 0;
    bool last = id != 0;
    if (graph)
        *graph = interpose->graphs[--interpose->graph_count];
    for (size_t i = 0; i < interpose->graph_count; i++)
        last = last && interpose->graphs[i].id != id;
    pthread_mutex_unlock(&interpose->lock);
    struct interpose_call call;
    /* The template is dropped with the last handle that uses it. */
    if (last &&
        translate_open(interpose, &call, EVENT_GRAPH_DESTROY, "graph", graph_or_executable)) {
        call.event.graph.handle = graph_or_executable;
        call.event.cause_id = id;
        translate_tell_done(interpose, &call);
    }
}
