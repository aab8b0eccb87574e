/* gpu_graph.c - graphs: recorded by letting a stream of the runtime capture the commands.
 *
 * Every kernel of a graph leaves its number; the first one also the event of the replay, and its
 * call is set again before each. */
#include "device/gpu/gpu_impl.h"

#include <stdlib.h>

static enum status capture_launch(struct gpu_device *gpu, struct gpu_stream *stream,
                                  struct gpu_graph *graph, const struct device_command *command,
                                  uint64_t node, struct error *err)
{
    const struct gpu_runtime *runtime = &gpu->runtime;
    struct gpu_prepared prepared = { 0 };
    gpu_prepare(gpu, stream, command, node, &prepared);
    for (uint32_t i = 0; i < prepared.count; i++) {
        GPU_TRY(gpu,
                runtime->launch(runtime->self, prepared.functions[i], &prepared.grids[i],
                                stream->handle, &prepared.calls[i]),
                command->contract->name, err);
        if (graph->first_node)
            continue;
        GPU_TRY(gpu, runtime->capture_node(runtime->self, stream->handle, &graph->first_node),
                "graph", err);
        graph->first_function = prepared.functions[i];
        graph->first_grid = prepared.grids[i];
        graph->first_call = prepared.calls[i];
    }
    return STATUS_OK;
}

static enum status capture(struct gpu_device *gpu, struct gpu_stream *stream,
                           struct gpu_graph *graph, const struct device_command *commands,
                           struct error *err)
{
    size_t node = 0; /* inspections do not count: they belong to the command before them */
    for (size_t i = 0; i < graph->count; i++) {
        if (commands[i].kind == DEVICE_COMMAND_INSPECT) {
            GPU_TRY(gpu, gpu_inspect_graph_add(gpu, graph->inspections, &commands[i]), "graph",
                    err);
            continue;
        }
        GPU_TRY(gpu, gpu_inspect_graph_flush(gpu, graph->inspections), "graph", err);
        graph->nodes[node++] = (struct gpu_graph_node){ gpu_command_name(&commands[i]),
                                                        commands[i].scope };
        if (commands[i].kind == DEVICE_COMMAND_LAUNCH)
            TRY(capture_launch(gpu, stream, graph, &commands[i], node, err));
        else
            GPU_TRY(gpu, gpu_transfer(gpu, stream, &commands[i]), gpu_command_name(&commands[i]),
                    err);
    }
    GPU_TRY(gpu, gpu_inspect_graph_flush(gpu, graph->inspections), "graph", err);
    graph->count = node;
    return STATUS_OK;
}

static void release(struct gpu_device *gpu, struct gpu_graph *graph)
{
    const struct gpu_runtime *runtime = &gpu->runtime;
    if (graph->graph || graph->exec)
        runtime->graph_destroy(runtime->self, graph->graph, graph->exec);
    gpu_inspect_graph_destroy(gpu, graph->inspections);
    free(graph->nodes);
    free(graph);
}

static enum status record(struct gpu_device *gpu, struct gpu_stream *stream,
                          struct gpu_graph *graph, const struct device_command *commands,
                          struct error *err)
{
    const struct gpu_runtime *runtime = &gpu->runtime;
    GPU_TRY(gpu, runtime->capture_begin(runtime->self, stream->handle), "graph", err);
    enum status status = capture(gpu, stream, graph, commands, err);
    int code = runtime->capture_end(runtime->self, stream->handle, &graph->graph, &graph->exec);
    if (!status && code)
        status = gpu_failed(gpu, code, "graph", err);
    return status;
}

enum status gpu_graph_create(struct device *device, void *stream,
                             const struct device_command *commands, size_t count, void **ret_graph,
                             struct error *err)
{
    struct gpu_device *gpu = gpu_of(device);
    struct gpu_graph *graph = calloc(1, sizeof(*graph));
    if (graph)
        graph->nodes = calloc(count + 1, sizeof(*graph->nodes));
    if (!graph || !graph->nodes) {
        free(graph);
        return error_set(err, STATUS_NO_MEMORY, "no memory for a graph");
    }
    graph->count = count;
    graph->stream = stream;
    gpu_enter(gpu);
    enum status status = gpu_inspect_flush(gpu, stream, err);
    if (!status)
        status = gpu_make_workspace(gpu, stream, err);
    if (!status)
        graph->inspections = gpu_inspect_graph_create(gpu, stream, commands, count);
    if (!status)
        status = record(gpu, stream, graph, commands, err);
    if (!status)
        status = device_check(device, err);
    if (status)
        release(gpu, graph);
    else
        *ret_graph = graph;
    return status;
}

enum status gpu_graph_replay(struct device *device, void *argument, void *graph_argument,
                             uint64_t event_id, const struct event_scope *scope, struct error *err)
{
    struct gpu_device *gpu = gpu_of(device);
    const struct gpu_runtime *runtime = &gpu->runtime;
    struct gpu_stream *stream = argument;
    struct gpu_graph *graph = graph_argument;
    if (stream != graph->stream)
        return error_set(err, STATUS_UNSUPPORTED,
                         "graph replay: expected the stream it was recorded on, found another");
    gpu_enter(gpu);
    TRY(gpu_inspect_flush(gpu, stream, err));
    GPU_TRY(gpu, gpu_inspect_graph_replay(gpu, graph->inspections, event_id), "graph replay", err);
    if (graph->first_node) {
        graph->first_call.entered = event_id;
        graph->first_call.finished = stream->last_id;
        GPU_TRY(gpu,
                runtime->graph_set_call(runtime->self, graph->exec, graph->first_node,
                                        graph->first_function, &graph->first_grid,
                                        &graph->first_call),
                "graph replay", err);
    }
    GPU_TRY(gpu, runtime->graph_launch(runtime->self, graph->exec, stream->handle), "graph replay",
            err);
    gpu_stream_note(stream, event_id, "graph replay", scope, graph);
    if (device->options.completions)
        gpu_completions_add(gpu, stream, event_id);
    return STATUS_OK;
}

/* No history may name it any longer. */
static void forget(struct gpu_device *gpu, const struct gpu_graph *graph)
{
    pthread_mutex_lock(&gpu->lock);
    for (uint32_t i = 0; i < CRUMB_STREAM_LIMIT; i++)
        for (uint32_t h = 0; gpu->streams[i] && h < GPU_HISTORY; h++)
            if (gpu->streams[i]->history[h].graph == graph)
                gpu->streams[i]->history[h].graph = NULL;
    pthread_mutex_unlock(&gpu->lock);
}

void gpu_graph_destroy(struct device *device, void *argument)
{
    struct gpu_device *gpu = gpu_of(device);
    gpu_enter(gpu);
    forget(gpu, argument);
    release(gpu, argument);
}
