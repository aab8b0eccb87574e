/* gpu_inspect.c - inspects memory for the audit, with a kernel in stream order.
 *
 * The inspections of one call are gathered into one kernel, which is launched before any other work
 * of the stream. The kernel writes its results into slots of pinned memory. A wait for the stream
 * or for a mark collects the results that are ready and reports them before it returns. Host bytes
 * (a staging slot) are hashed at that point, so they must not change until then.
 *
 * An inspection is never mistaken for the call it belongs to: after a launch it leaves no crumbs,
 * and next to a copy, which cannot leave any, it leaves the copy's. On a device without the kernel
 * every inspection is reported as failed. */
#include "device/gpu/gpu_inspect_impl.h"

#include <stdlib.h>

/* Groups of a stream that may wait to be collected. */
#define GROUP_LIMIT 1024u

struct gpu_inspections {
    struct gpu_inspect_groups groups; /* GROUP_LIMIT of them */
    uint64_t given, reported;         /* under inspect_lock */
    bool gathering;                   /* into the group that is given next */
};

/* ---- Collecting ----------------------------------------------------------------------------- */

/* With inspect_lock held. */
static void collect_stream(struct gpu_device *gpu, struct gpu_stream *stream, bool failed)
{
    struct gpu_inspections *inspections = stream->inspections;
    while (inspections && inspections->reported < inspections->given) {
        const struct gpu_inspect_group *group =
            &inspections->groups.list[inspections->reported % GROUP_LIMIT];
        if (!failed && !gpu_inspect_group_is_done(group))
            return;
        gpu_inspect_group_report(gpu, stream, group, group->event_id, failed);
        inspections->reported++;
    }
}

void gpu_inspect_collect(struct gpu_device *gpu)
{
    if (!__atomic_load_n(&gpu->inspects, __ATOMIC_RELAXED))
        return;
    pthread_mutex_lock(&gpu->inspect_lock);
    for (uint32_t i = 0; i < CRUMB_STREAM_LIMIT; i++)
        if (gpu->inspecting[i])
            collect_stream(gpu, gpu->inspecting[i], false);
    for (struct gpu_graph_inspections *graph = gpu->graph_inspections; graph; graph = graph->next)
        if (graph->pending_id)
            gpu_inspect_graph_collect(gpu, graph);
    pthread_mutex_unlock(&gpu->inspect_lock);
}

void gpu_inspect_tell(struct gpu_device *gpu)
{
    if (!__atomic_load_n(&gpu->clean_unreported, __ATOMIC_RELAXED))
        return;
    pthread_mutex_lock(&gpu->inspect_lock);
    __atomic_store_n(&gpu->clean_unreported, false, __ATOMIC_RELAXED);
    for (struct gpu_graph_inspections *graph = gpu->graph_inspections; graph; graph = graph->next)
        gpu_inspect_graph_tell_clean(gpu, graph);
    pthread_mutex_unlock(&gpu->inspect_lock);
}

/* ---- Giving --------------------------------------------------------------------------------- */

enum status gpu_inspect_flush(struct gpu_device *gpu, struct gpu_stream *stream, struct error *err)
{
    struct gpu_inspections *inspections = stream->inspections;
    if (!inspections || !inspections->gathering)
        return STATUS_OK;
    const struct gpu_inspect_group *group =
        &inspections->groups.list[inspections->given % GROUP_LIMIT];
    inspections->gathering = false;
    gpu_inspect_group_clear(group);
    if (stream->last_id != group->event_id) { /* it comes before its copy or launch */
        const struct gpu_inspect_item *first = &group->items[0];
        gpu_stream_note(
            stream, &(struct gpu_history){ .event_id = group->event_id,
                                           .op = first->contract ? first->contract->name : "copy",
                                           .scope = first->scope });
    }
    int code = gpu_inspect_group_launch(gpu, stream, group, 0, group->region_count);
    pthread_mutex_lock(&gpu->inspect_lock);
    if (code)
        gpu_inspect_group_report(gpu, stream, group, group->event_id, true);
    else
        inspections->given++;
    pthread_mutex_unlock(&gpu->inspect_lock);
    GPU_TRY(gpu, code, "inspection", err);
    return STATUS_OK;
}

static uint64_t count_waiting(struct gpu_device *gpu, const struct gpu_inspections *inspections)
{
    pthread_mutex_lock(&gpu->inspect_lock);
    uint64_t waiting = inspections->given - inspections->reported;
    pthread_mutex_unlock(&gpu->inspect_lock);
    return waiting;
}

/* Room for one more group; waits for the stream where there is none. */
static bool has_room(struct gpu_device *gpu, struct gpu_stream *stream)
{
    const struct gpu_inspections *inspections = stream->inspections;
    if (inspections->gathering || count_waiting(gpu, inspections) < GROUP_LIMIT)
        return true;
    struct error unused;
    int code = gpu->runtime.stream_sync(gpu->runtime.self, stream->handle);
    if (code) {
        (void)gpu_failed(gpu, code, "inspection", &unused);
        return false;
    }
    gpu_inspect_collect(gpu);
    return count_waiting(gpu, inspections) < GROUP_LIMIT;
}

static bool make_inspections(struct gpu_device *gpu, struct gpu_stream *stream)
{
    if (stream->inspections)
        return true;
    struct gpu_inspections *inspections = calloc(1, sizeof(*inspections));
    if (!inspections ||
        !gpu_inspect_groups_init(gpu, GROUP_LIMIT, GPU_OPERAND_LIMIT, &inspections->groups)) {
        free(inspections);
        return false;
    }
    pthread_mutex_lock(&gpu->inspect_lock);
    stream->inspections = inspections;
    gpu->inspecting[stream->index] = stream;
    __atomic_store_n(&gpu->inspects, true, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&gpu->inspect_lock);
    return true;
}

enum status gpu_inspect_submit(struct gpu_device *gpu, struct gpu_stream *stream,
                               const struct device_command *command, struct error *err)
{
    gpu_enter(gpu);
    struct gpu_inspections *inspections = stream->inspections;
    if (inspections && inspections->gathering) {
        const struct gpu_inspect_group *group =
            &inspections->groups.list[inspections->given % GROUP_LIMIT];
        if (gpu_inspect_group_is_full(group) || group->event_id != command->event_id)
            TRY(gpu_inspect_flush(gpu, stream, err));
    }
    TRY(gpu_make_workspace(gpu, stream, err));
    if (!gpu->inspect_function || !make_inspections(gpu, stream) || !has_room(gpu, stream)) {
        const struct device_inspection_result unseen = { .failed = true };
        device_report_inspection(&gpu->device, stream->index, command, command->event_id, &unseen);
        return STATUS_OK;
    }
    inspections = stream->inspections;
    struct gpu_inspect_group *group = &inspections->groups.list[inspections->given % GROUP_LIMIT];
    if (!inspections->gathering)
        group->item_count = group->region_count = 0;
    inspections->gathering = true;
    gpu_inspect_group_add(group, command);
    return STATUS_OK;
}

void gpu_inspect_stream_release(struct gpu_device *gpu, struct gpu_stream *stream)
{
    struct gpu_inspections *inspections = stream->inspections;
    pthread_mutex_lock(&gpu->inspect_lock);
    /* The stream was waited for: what is not done now never will be. */
    collect_stream(gpu, stream, false);
    collect_stream(gpu, stream, true);
    for (struct gpu_graph_inspections *graph = gpu->graph_inspections; graph; graph = graph->next) {
        if (graph->stream != stream)
            continue;
        if (graph->pending_id)
            gpu_inspect_graph_collect(gpu, graph);
        gpu_inspect_graph_tell_clean(gpu, graph);
        graph->pending_id = 0;
        graph->stream = NULL;
    }
    gpu->inspecting[stream->index] = NULL;
    stream->inspections = NULL;
    pthread_mutex_unlock(&gpu->inspect_lock);
    if (!inspections)
        return;
    gpu_inspect_groups_release(gpu, &inspections->groups);
    free(inspections);
}
