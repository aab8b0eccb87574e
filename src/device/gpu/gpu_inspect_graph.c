/* gpu_inspect_graph.c - inspections of graphs.
 *
 * A graph is replayed because its launches are many and short; an inspection after each of them
 * would double their cost. So the memory is swept once, at the end of the graph: all canaries, and
 * the final contents of all outputs. After the first sweep that finds something, the graph is
 * replayed with an inspection after every command, so that the next finding names its command. All
 * replays use the same slots, so the results of one are collected before the next begins. A sweep
 * that found nothing is urgent for no caller: it is reported once the device has work again, so
 * that reporting does not delay the next replay. */
#include "device/gpu/gpu_inspect_impl.h"

#include <stdlib.h>

/* ---- Reporting ------------------------------------------------------------------------------ */

void gpu_inspect_graph_tell_clean(struct gpu_device *gpu, struct gpu_graph_inspections *graph)
{
    const struct gpu_inspect_group *sweep = &graph->groups.list[0];
    for (uint32_t i = 0; graph->clean_id && i < sweep->item_count; i++) {
        struct device_inspection_result result = { .count = gpu_inspect_item_values(
                                                       &sweep->items[i]) };
        gpu_inspect_item_report(gpu, graph->stream, &sweep->items[i], graph->clean_id, &result);
    }
    graph->clean_id = 0;
}

static bool is_clean(const struct gpu_graph_inspections *graph)
{
    const struct gpu_inspect_group *sweep = &graph->groups.list[0];
    for (uint32_t i = 0; i < sweep->region_count; i++)
        if (sweep->slots[i].value)
            return false;
    return graph->sweep;
}

void gpu_inspect_graph_collect(struct gpu_device *gpu, struct gpu_graph_inspections *graph)
{
    bool alarm = false;
    for (uint32_t i = 0; i < graph->count; i++)
        if (!gpu_inspect_group_is_done(&graph->groups.list[i]))
            return;
    if (is_clean(graph)) {
        gpu_inspect_graph_tell_clean(gpu, graph); /* of the replay before */
        graph->clean_id = graph->pending_id;
        graph->pending_id = 0;
        __atomic_store_n(&gpu->clean_unreported, true, __ATOMIC_RELAXED);
        return;
    }
    for (uint32_t i = 0; i < graph->count; i++)
        if (gpu_inspect_group_report(gpu, graph->stream, &graph->groups.list[i], graph->pending_id,
                                     false))
            alarm = true;
    if (alarm)
        __atomic_store_n(&graph->alarmed, true, __ATOMIC_RELAXED);
    graph->pending_id = 0;
}

/* ---- Capturing ------------------------------------------------------------------------------ */

/* The op named for damage around a buffer that several commands wrote: none. */
static const struct device_contract no_op = { .name = "" };
static const struct event_scope no_scope = { -1, -1, "" };

/* The item of the sweep that looks at the same memory, or NULL. */
static struct gpu_inspect_item *find_same(const struct gpu_inspect_group *sweep,
                                          const struct device_command *command)
{
    for (uint32_t i = 0; i < sweep->item_count; i++) {
        struct gpu_inspect_item *item = &sweep->items[i];
        if (item->inspection.what == command->inspection.what &&
            item->inspection.access.address == command->inspection.access.address &&
            item->inspection.access.bytes == command->inspection.access.bytes)
            return item;
    }
    return NULL;
}

static void add_to_sweep(struct gpu_inspect_group *sweep, const struct device_command *command)
{
    struct gpu_inspect_item *same = find_same(sweep, command);
    if (!same) {
        gpu_inspect_group_add(sweep, command);
    } else if (command->inspection.what == DEVICE_INSPECT_SCAN) {
        same->scope = command->scope; /* what is there in the end is the last one's */
        same->contract = command->contract;
    } else {
        same->scope = no_scope;
        same->contract = &no_op;
    }
}

/* Without memory for them none is looked at. */
static void report_unseen(struct gpu_device *gpu, const struct gpu_stream *stream,
                          const struct device_command *commands, size_t count)
{
    const struct device_inspection_result unseen = { .failed = true };
    for (size_t i = 0; i < count; i++)
        if (commands[i].kind == DEVICE_COMMAND_INSPECT &&
            commands[i].inspection.what == DEVICE_INSPECT_CANARY)
            device_report_inspection(&gpu->device, stream->index, &commands[i],
                                     commands[i].event_id, &unseen);
}

/* Canaries first: they are small, and a kernel of their own. */
static void fill_sweep(struct gpu_inspect_group *sweep, const struct device_command *commands,
                       size_t count)
{
    static const enum device_inspect order[] = { DEVICE_INSPECT_CANARY, DEVICE_INSPECT_SCAN };
    for (size_t kind = 0; kind < COUNT_OF(order); kind++)
        for (size_t i = 0; i < count; i++)
            if (commands[i].kind == DEVICE_COMMAND_INSPECT &&
                commands[i].inspection.what == order[kind])
                add_to_sweep(sweep, &commands[i]);
}

static int launch_sweep(struct gpu_device *gpu, struct gpu_graph_inspections *graph)
{
    const struct gpu_inspect_group *sweep = &graph->groups.list[0];
    uint32_t small = 0;
    while (small < sweep->region_count && sweep->regions[small].what == GPU_INSPECT_CANARY)
        small++;
    graph->count = 1;
    int code = small ? gpu_inspect_group_launch(gpu, graph->stream, sweep, 0, small) : 0;
    if (!code && sweep->region_count > small)
        code = gpu_inspect_group_launch(gpu, graph->stream, sweep, small,
                                        sweep->region_count - small);
    return code;
}

struct gpu_graph_inspections *gpu_inspect_graph_create(struct gpu_device *gpu,
                                                       const struct gpu_stream *stream,
                                                       const struct device_command *commands,
                                                       size_t count, bool sweep)
{
    uint32_t wanted = 0;
    for (size_t i = 0; i < count; i++)
        wanted += commands[i].kind == DEVICE_COMMAND_INSPECT;
    struct gpu_graph_inspections *graph = NULL;
    if (wanted && gpu->inspect_function)
        graph = calloc(1, sizeof(*graph));
    if (!graph ||
        !gpu_inspect_groups_init(gpu, sweep ? 1 : wanted, sweep ? 2 * wanted : GPU_OPERAND_LIMIT,
                                 &graph->groups)) {
        report_unseen(gpu, stream, commands, count);
        free(graph);
        return NULL;
    }
    graph->stream = stream;
    graph->sweep = sweep;
    if (sweep)
        fill_sweep(&graph->groups.list[0], commands, count);
    pthread_mutex_lock(&gpu->inspect_lock);
    graph->next = gpu->graph_inspections;
    gpu->graph_inspections = graph;
    __atomic_store_n(&gpu->inspects, true, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&gpu->inspect_lock);
    return graph;
}

int gpu_inspect_graph_flush(struct gpu_device *gpu, struct gpu_graph_inspections *graph)
{
    if (!graph || graph->sweep || !graph->gathering)
        return 0;
    const struct gpu_inspect_group *group = &graph->groups.list[graph->count++];
    graph->gathering = false;
    return gpu_inspect_group_launch(gpu, graph->stream, group, 0, group->region_count);
}

int gpu_inspect_graph_add(struct gpu_device *gpu, struct gpu_graph_inspections *graph,
                          const struct device_command *command)
{
    if (!graph || graph->sweep)
        return 0; /* without memory for them: as many as are not reported were not made */
    struct gpu_inspect_group *group = &graph->groups.list[graph->count];
    if (graph->gathering &&
        (gpu_inspect_group_is_full(group) || group->event_id != command->event_id)) {
        int code = gpu_inspect_graph_flush(gpu, graph);
        if (code)
            return code;
        group = &graph->groups.list[graph->count];
    }
    graph->gathering = true;
    gpu_inspect_group_add(group, command);
    return 0;
}

int gpu_inspect_graph_end(struct gpu_device *gpu, struct gpu_graph_inspections *graph)
{
    if (graph && graph->sweep)
        return launch_sweep(gpu, graph);
    return gpu_inspect_graph_flush(gpu, graph);
}

bool gpu_inspect_graph_is_exact(const struct gpu_graph_inspections *graph)
{
    return graph && !graph->sweep;
}

bool gpu_inspect_graph_is_alarmed(const struct gpu_graph_inspections *graph)
{
    return graph && __atomic_load_n(&graph->alarmed, __ATOMIC_RELAXED);
}

int gpu_inspect_graph_replay(struct gpu_device *gpu, struct gpu_graph_inspections *graph,
                             uint64_t event_id)
{
    if (!graph)
        return 0;
    pthread_mutex_lock(&gpu->inspect_lock);
    bool pending = graph->pending_id != 0;
    pthread_mutex_unlock(&gpu->inspect_lock);
    if (pending) {
        int code = gpu->runtime.stream_sync(gpu->runtime.self, graph->stream->handle);
        if (code)
            return code;
        gpu_inspect_collect(gpu);
    }
    pthread_mutex_lock(&gpu->inspect_lock);
    for (uint32_t i = 0; i < graph->count; i++)
        gpu_inspect_group_clear(&graph->groups.list[i]);
    graph->pending_id = event_id;
    pthread_mutex_unlock(&gpu->inspect_lock);
    return 0;
}

void gpu_inspect_graph_destroy(struct gpu_device *gpu, struct gpu_graph_inspections *graph)
{
    if (!graph)
        return;
    if (graph->stream && graph->pending_id && !device_is_lost(&gpu->device) &&
        !gpu->runtime.stream_sync(gpu->runtime.self, graph->stream->handle))
        gpu_inspect_collect(gpu);
    gpu_inspect_tell(gpu);
    pthread_mutex_lock(&gpu->inspect_lock);
    struct gpu_graph_inspections **at = &gpu->graph_inspections;
    while (*at != graph)
        at = &(*at)->next;
    *at = graph->next;
    pthread_mutex_unlock(&gpu->inspect_lock);
    gpu_inspect_groups_release(gpu, &graph->groups);
    free(graph);
}
