/* gpu_graph.c - graphs: recorded by letting a stream of the runtime capture the commands.
 *
 * Every kernel of a graph leaves its number; the first one also the event of the replay, and its
 * call is set again before each. */
#include "device/gpu/gpu_impl.h"

#include <stdlib.h>

_Static_assert(DEVICE_GPU_JOIN_LIMIT <= CRUMB_JOIN_LIMIT, "crumbs are read by that limit");

/* Launches of the graph from command `at` on that nothing comes between, at most
 * DEVICE_GPU_JOIN_LIMIT; returns how many. Inspections that are made at the graph's end, or not at
 * all, are nothing. ret_places: which commands they are. */
static uint32_t find_launches(const struct gpu_graph *graph, const struct gpu_recording *recording,
                              size_t at, const struct device_command **ret_launches,
                              size_t *ret_places)
{
    bool skip = !gpu_inspect_graph_is_exact(recording->inspections);
    uint32_t count = 0;
    for (; at < graph->command_count && count < DEVICE_GPU_JOIN_LIMIT; at++) {
        const struct device_command *command = &graph->commands[at];
        if (command->kind == DEVICE_COMMAND_LAUNCH) {
            ret_places[count] = at;
            ret_launches[count++] = command;
        } else if (command->kind != DEVICE_COMMAND_INSPECT || !skip) {
            break;
        }
    }
    return count;
}

/* One launch, or several from `at` on that can be one; says how many, and which command is the last
 * of them. A kernel of several leaves the number of the first, and how many they are. */
static enum status capture_launch(struct gpu_device *gpu, struct gpu_stream *stream,
                                  const struct gpu_graph *graph, struct gpu_recording *recording,
                                  size_t at, uint64_t node, uint32_t *ret_taken, size_t *ret_last,
                                  struct error *err)
{
    const struct gpu_runtime *runtime = &gpu->runtime;
    const struct device_command *command = &graph->commands[at];
    /* What the stream did before the graph has ended when the graph begins. */
    struct gpu_before before = { true, graph->commands, at };
    struct gpu_prepared prepared; /* large: only what is used is written */
    const struct device_command *launches[DEVICE_GPU_JOIN_LIMIT];
    size_t places[DEVICE_GPU_JOIN_LIMIT];
    uint32_t count = find_launches(graph, recording, at, launches, places);
    *ret_taken = gpu_prepare_joined(gpu, stream, launches, count, node, before, &prepared);
    if (*ret_taken == 0) {
        gpu_prepare(gpu, stream, command, node, before, &prepared);
        *ret_taken = 1;
    }
    *ret_last = places[*ret_taken - 1];
    for (uint32_t i = 0; i < prepared.count; i++) {
        prepared.calls[i].node = crumb_node_of(node, *ret_taken);
        GPU_TRY(gpu,
                runtime->launch(runtime->self, prepared.functions[i], &prepared.grids[i],
                                stream->handle, &prepared.calls[i]),
                command->contract->name, err);
        if (recording->first_node)
            continue;
        GPU_TRY(gpu, runtime->capture_node(runtime->self, stream->handle, &recording->first_node),
                "graph", err);
        recording->first_function = prepared.functions[i];
        recording->first_grid = prepared.grids[i];
        recording->first_call = prepared.calls[i];
    }
    return STATUS_OK;
}

static enum status capture(struct gpu_device *gpu, struct gpu_stream *stream,
                           const struct gpu_graph *graph, struct gpu_recording *recording,
                           struct error *err)
{
    struct gpu_graph_inspections *inspections = recording->inspections;
    /* Inspections do not count: they belong to the command before them. */
    uint64_t node = 0;
    for (size_t i = 0; i < graph->command_count; i++) {
        const struct device_command *command = &graph->commands[i];
        if (command->kind == DEVICE_COMMAND_INSPECT) {
            GPU_TRY(gpu, gpu_inspect_graph_add(gpu, inspections, command), "graph", err);
            continue;
        }
        GPU_TRY(gpu, gpu_inspect_graph_flush(gpu, inspections), "graph", err);
        node++;
        if (command->kind == DEVICE_COMMAND_LAUNCH) {
            uint32_t taken = 1;
            TRY(capture_launch(gpu, stream, graph, recording, i, node, &taken, &i, err));
            node += taken - 1;
        } else {
            GPU_TRY(gpu, gpu_transfer(gpu, stream, command), device_command_name(command), err);
        }
    }
    GPU_TRY(gpu, gpu_inspect_graph_end(gpu, inspections), "graph", err);
    return STATUS_OK;
}

static void release_recording(struct gpu_device *gpu, struct gpu_recording *recording)
{
    const struct gpu_runtime *runtime = &gpu->runtime;
    if (recording->graph || recording->exec)
        runtime->graph_destroy(runtime->self, recording->graph, recording->exec);
    gpu_inspect_graph_destroy(gpu, recording->inspections);
    *recording = (struct gpu_recording){ 0 };
}

static void release(struct gpu_device *gpu, struct gpu_graph *graph)
{
    release_recording(gpu, &graph->swept);
    release_recording(gpu, &graph->exact);
    free(graph->nodes);
    free(graph);
}

static enum status record(struct gpu_device *gpu, struct gpu_stream *stream,
                          const struct gpu_graph *graph, bool sweep,
                          struct gpu_recording *recording, struct error *err)
{
    const struct gpu_runtime *runtime = &gpu->runtime;
    recording->inspections = gpu_inspect_graph_create(gpu, stream, graph->commands,
                                                      graph->command_count, sweep);
    GPU_TRY(gpu, runtime->capture_begin(runtime->self, stream->handle), "graph", err);
    enum status status = capture(gpu, stream, graph, recording, err);
    int code = runtime->capture_end(runtime->self, stream->handle, &recording->graph,
                                    &recording->exec);
    if (!status && code)
        status = gpu_failed(gpu, code, "graph", err);
    return status;
}

static void note_nodes(struct gpu_graph *graph)
{
    for (size_t i = 0; i < graph->command_count; i++)
        if (graph->commands[i].kind != DEVICE_COMMAND_INSPECT)
            graph->nodes[graph->count++] = (struct gpu_graph_node){
                device_command_name(&graph->commands[i]), graph->commands[i].scope,
                graph->commands[i].kind == DEVICE_COMMAND_LAUNCH
            };
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
    graph->commands = commands;
    graph->command_count = count;
    graph->stream = stream;
    note_nodes(graph);
    gpu_enter(gpu);
    enum status status = gpu_inspect_flush(gpu, stream, err);
    if (!status)
        status = gpu_make_workspace(gpu, stream, err);
    if (!status)
        status = record(gpu, stream, graph, true, &graph->swept, err);
    if (status)
        release(gpu, graph);
    else
        *ret_graph = graph;
    return status;
}

/* The exact one from the first alarm on, if it can be made. */
static struct gpu_recording *choose(struct gpu_device *gpu, struct gpu_stream *stream,
                                    struct gpu_graph *graph)
{
    struct error unused;
    if (!gpu_inspect_graph_is_alarmed(graph->swept.inspections))
        return &graph->swept;
    if (!graph->exact.exec && record(gpu, stream, graph, false, &graph->exact, &unused))
        release_recording(gpu, &graph->exact);
    return graph->exact.exec ? &graph->exact : &graph->swept;
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
    struct gpu_recording *recording = choose(gpu, stream, graph);
    GPU_TRY(gpu, gpu_inspect_graph_replay(gpu, recording->inspections, event_id), "graph replay",
            err);
    if (recording->first_node) {
        recording->first_call.entered = event_id;
        recording->first_call.finished = stream->last_id;
        GPU_TRY(gpu,
                runtime->graph_set_call(runtime->self, recording->exec, recording->first_node,
                                        recording->first_function, &recording->first_grid,
                                        &recording->first_call),
                "graph replay", err);
    }
    GPU_TRY(gpu, runtime->graph_launch(runtime->self, recording->exec, stream->handle),
            "graph replay", err);
    gpu_stream_note(stream, &(struct gpu_history){ .event_id = event_id,
                                                   .op = "graph replay",
                                                   .scope = *scope,
                                                   .graph = graph });
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
