/* gpu_inspect.c - memory looked at for the audit, by a kernel in stream order.
 *
 * Inspections of one call are gathered into one kernel, launched before the stream is given
 * anything else. It writes what it found into slots of pinned memory; whoever waits for the stream,
 * or for a mark, collects what is done by then and reports it before the wait is over. Bytes of the
 * host (a staging slot) are hashed when they are collected: until then nobody may change them.
 *
 * A graph is replayed because its launches are many and short: a kernel behind each would cost as
 * much again. So its memory is swept once, at its end: every canary, and what every output holds
 * then. From the first time a sweep finds something, the graph is replayed with a kernel behind
 * every command, so that the next time the command is known. Its slots are used again by every
 * replay: the one before is collected first. A sweep that found nothing is evidence for nobody who
 * waits: it is told when the device has work again, so that it does not stand between two replays.
 *
 * An inspection is never seen in the place of the call it belongs to: behind a launch it leaves no
 * crumbs, beside a copy (which cannot leave any) it leaves the copy's. On a device without the
 * kernel every inspection is reported as failed. */
#include "device/gpu/gpu_impl.h"

#include <stdlib.h>
#include <string.h>

/* Groups of a stream that may wait to be collected. */
#define GROUP_LIMIT 1024u
#define GROUP_THREADS 256u
#define GROUP_SHARED_BYTES (GROUP_THREADS / 32u * 2u * sizeof(uint64_t))
/* Values a block looks at before it is worth having another. */
#define PART_VALUES 8192u

/* What is kept of a command until it is reported. */
struct item {
    struct device_inspection inspection;
    struct event_scope scope;
    const struct device_contract *contract;
    const void *staging; /* to be hashed here; else NULL */
    struct device_rows rows;
    uint8_t region, region_count;
};

/* One kernel's worth. */
struct group {
    uint64_t event_id;
    uint32_t item_count, region_count;
    struct item *items;                      /* borrowed, like the rest */
    struct gpu_operand *regions;             /* pinned */
    struct gpu_inspect_slot *slots;          /* pinned: one for each region */
    uint64_t regions_address, slots_address; /* for the device */
};

/* Groups, each with room for as many regions. */
struct groups {
    struct group *list;
    struct item *items;
    void *pinned;
};

struct gpu_inspections {
    struct groups groups; /* GROUP_LIMIT of them */
    uint64_t given, told; /* under inspect_lock */
    bool gathering;       /* into the group that is given next */
};

struct gpu_graph_inspections {
    struct gpu_graph_inspections *next; /* of the device; under inspect_lock */
    const struct gpu_stream *stream;
    struct groups groups;
    uint32_t count; /* that are launched */
    bool sweep, gathering;
    bool alarmed;        /* atomic; a sweep found something */
    uint64_t pending_id; /* the replay that was not collected yet; 0: none */
    uint64_t clean_id;   /* the replay whose sweep found nothing and was not told yet; 0: none */
};

/* ---- Groups --------------------------------------------------------------------------------- */

static void release_groups(struct gpu_device *gpu, struct groups *groups)
{
    if (groups->pinned)
        gpu->runtime.pinned_destroy(gpu->runtime.self, groups->pinned);
    free(groups->list);
    free(groups->items);
    *groups = (struct groups){ 0 };
}

static bool make_groups(struct gpu_device *gpu, uint32_t count, uint32_t regions,
                        struct groups *groups)
{
    uint64_t slots_bytes = (uint64_t)count * regions * sizeof(struct gpu_inspect_slot);
    uint64_t bytes = slots_bytes + (uint64_t)count * regions * sizeof(struct gpu_operand), address;
    groups->list = calloc(count, sizeof(*groups->list));
    groups->items = calloc((size_t)count * regions, sizeof(*groups->items));
    if (!groups->list || !groups->items ||
        gpu->runtime.pinned_create(gpu->runtime.self, bytes, &groups->pinned, &address)) {
        groups->pinned = NULL;
        release_groups(gpu, groups);
        return false;
    }
    memset(groups->pinned, 0, (size_t)bytes);
    for (uint32_t i = 0; i < count; i++) {
        struct group *group = &groups->list[i];
        group->items = groups->items + (size_t)i * regions;
        group->slots = (struct gpu_inspect_slot *)groups->pinned + (size_t)i * regions;
        group->slots_address = address + (uint64_t)i * regions * sizeof(*group->slots);
        uint64_t place = slots_bytes + (uint64_t)i * regions * sizeof(*group->regions);
        group->regions = (struct gpu_operand *)(void *)((uint8_t *)groups->pinned + place);
        group->regions_address = address + place;
    }
    return true;
}

static bool is_done(const struct group *group)
{
    for (uint32_t i = 0; i < group->region_count; i++)
        if (!__atomic_load_n(&group->slots[i].done, __ATOMIC_ACQUIRE))
            return false;
    return true;
}

static void clear_slots(const struct group *group)
{
    memset(group->slots, 0, group->region_count * sizeof(*group->slots));
}

/* ---- Reporting ------------------------------------------------------------------------------ */

static void report_item(struct gpu_device *gpu, const struct gpu_stream *stream,
                        const struct item *item, uint64_t event_id,
                        const struct device_inspection_result *result)
{
    /* What is told of a command; the rest of it is large, and nobody's business any more. */
    struct device_command *command = &gpu->inspected;
    command->inspection = item->inspection;
    command->scope = item->scope;
    command->contract = item->contract;
    device_report_inspection(&gpu->device, stream->index, command, event_id, result);
}

static uint64_t values_of(const struct item *item)
{
    return item->inspection.what == DEVICE_INSPECT_SCAN
               ? item->rows.row_count * (item->rows.row_bytes / sizeof(float))
               : 0;
}

/* True if something was found that should not be there. */
static bool report_group(struct gpu_device *gpu, const struct gpu_stream *stream,
                         const struct group *group, uint64_t event_id, bool failed)
{
    const struct gpu_inspect_slot *slots = group->slots;
    bool alarm = false;
    for (uint32_t i = 0; i < group->item_count; i++) {
        const struct item *item = &group->items[i];
        struct device_inspection_result result = { .failed = failed };
        if (item->staging && !failed)
            result.digest = device_digest(item->staging, item->rows.row_bytes, item->rows.row_count,
                                          item->rows.row_bytes);
        for (uint32_t r = item->region; r < (uint32_t)item->region + item->region_count; r++) {
            if (slots[r].value && !result.found)
                result.first = slots[r].first;
            result.digest = slots[r].value;
            result.found += slots[r].value;
        }
        result.count = values_of(item);
        alarm = alarm || (item->inspection.what != DEVICE_INSPECT_DIGEST && result.found);
        report_item(gpu, stream, item, event_id, &result);
    }
    return alarm;
}

/* With inspect_lock held. */
static void collect_stream(struct gpu_device *gpu, struct gpu_stream *stream, bool failed)
{
    struct gpu_inspections *inspections = stream->inspections;
    while (inspections && inspections->told < inspections->given) {
        const struct group *group = &inspections->groups.list[inspections->told % GROUP_LIMIT];
        if (!failed && !is_done(group))
            return;
        report_group(gpu, stream, group, group->event_id, failed);
        inspections->told++;
    }
}

/* With inspect_lock held. The slots may be of the next replay already: they are not looked at. */
static void tell_clean(struct gpu_device *gpu, struct gpu_graph_inspections *graph)
{
    const struct group *sweep = &graph->groups.list[0];
    for (uint32_t i = 0; graph->clean_id && i < sweep->item_count; i++) {
        struct device_inspection_result result = { .count = values_of(&sweep->items[i]) };
        report_item(gpu, graph->stream, &sweep->items[i], graph->clean_id, &result);
    }
    graph->clean_id = 0;
}

static bool is_clean(const struct gpu_graph_inspections *graph)
{
    const struct group *sweep = &graph->groups.list[0];
    for (uint32_t i = 0; i < sweep->region_count; i++)
        if (sweep->slots[i].value)
            return false;
    return graph->sweep;
}

static void collect_graph(struct gpu_device *gpu, struct gpu_graph_inspections *graph)
{
    bool alarm = false;
    for (uint32_t i = 0; i < graph->count; i++)
        if (!is_done(&graph->groups.list[i]))
            return;
    if (is_clean(graph)) {
        tell_clean(gpu, graph); /* of the replay before */
        graph->clean_id = graph->pending_id;
        graph->pending_id = 0;
        __atomic_store_n(&gpu->clean_untold, true, __ATOMIC_RELAXED);
        return;
    }
    for (uint32_t i = 0; i < graph->count; i++)
        if (report_group(gpu, graph->stream, &graph->groups.list[i], graph->pending_id, false))
            alarm = true;
    if (alarm)
        __atomic_store_n(&graph->alarmed, true, __ATOMIC_RELAXED);
    graph->pending_id = 0;
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
            collect_graph(gpu, graph);
    pthread_mutex_unlock(&gpu->inspect_lock);
}

void gpu_inspect_tell(struct gpu_device *gpu)
{
    if (!__atomic_load_n(&gpu->clean_untold, __ATOMIC_RELAXED))
        return;
    pthread_mutex_lock(&gpu->inspect_lock);
    __atomic_store_n(&gpu->clean_untold, false, __ATOMIC_RELAXED);
    for (struct gpu_graph_inspections *graph = gpu->graph_inspections; graph; graph = graph->next)
        tell_clean(gpu, graph);
    pthread_mutex_unlock(&gpu->inspect_lock);
}

/* ---- Gathering ------------------------------------------------------------------------------ */

static void add_region(struct group *group, struct item *item, const struct device_rows *rows,
                       uint32_t kind, uint8_t byte)
{
    bool dense = rows->row_count <= 1 || rows->stride_bytes == rows->row_bytes;
    group->regions[group->region_count++] = (struct gpu_operand){
        .address = rows->address,
        .row_stride_bytes = rows->stride_bytes,
        .width = dense ? rows->row_bytes * rows->row_count : rows->row_bytes,
        .rows = dense ? 1 : rows->row_count,
        .dtype = kind,
        .unused = byte,
    };
    item->region_count++;
}

static void add_item(struct group *group, const struct device_command *command)
{
    struct item *item = &group->items[group->item_count++];
    *item = (struct item){ .inspection = command->inspection,
                           .scope = command->scope,
                           .contract = command->contract,
                           .staging = command->staging,
                           .rows = command->source,
                           .region = (uint8_t)group->region_count };
    group->event_id = command->event_id;
    switch (command->inspection.what) {
    case DEVICE_INSPECT_DIGEST:
        if (!command->staging)
            add_region(group, item, &command->source, GPU_INSPECT_DIGEST, 0);
        break;
    case DEVICE_INSPECT_SCAN:
        add_region(group, item, &command->source, GPU_INSPECT_SCAN, 0);
        break;
    case DEVICE_INSPECT_CANARY:
        if (command->source.row_bytes)
            add_region(group, item, &command->source, GPU_INSPECT_CANARY, command->byte);
        if (command->target.row_bytes)
            add_region(group, item, &command->target, GPU_INSPECT_CANARY, command->byte);
        break;
    }
}

/* No item has more than two regions. */
static bool is_full(const struct group *group)
{
    return group->region_count + 2 > GPU_OPERAND_LIMIT || group->item_count == GPU_OPERAND_LIMIT;
}

static uint32_t parts_of(const struct gpu_operand *region)
{
    uint64_t per_value = region->dtype == GPU_INSPECT_DIGEST ? sizeof(uint64_t)
                         : region->dtype == GPU_INSPECT_SCAN ? sizeof(float)
                                                             : 1;
    uint64_t parts = region->width / per_value / PART_VALUES + 1;
    return parts > GPU_INSPECT_PARTS ? GPU_INSPECT_PARTS : (uint32_t)parts;
}

/* Regions [first, first + count) of the group, in one kernel. */
static int launch_regions(struct gpu_device *gpu, const struct gpu_stream *stream,
                          const struct group *group, uint32_t first, uint32_t count)
{
    const struct gpu_runtime *runtime = &gpu->runtime;
    struct gpu_inspect_params params = { .slots = group->slots_address +
                                                  first * sizeof(*group->slots) };
    struct gpu_call call = { .page = gpu->page_address, .workspace = stream->workspace };
    struct gpu_grid grid = { 1, count, GROUP_THREADS, GROUP_SHARED_BYTES };
    if (group->items[0].inspection.what == DEVICE_INSPECT_DIGEST) {
        call.crumbs = stream->crumbs;
        call.entered = group->event_id;
        call.finished = group->event_id - 1;
    }
    if (count > GPU_OPERAND_LIMIT)
        params.table = group->regions_address + first * sizeof(*group->regions);
    else
        memcpy(call.operands, group->regions + first, count * sizeof(*group->regions));
    memcpy(call.params, &params, sizeof(params));
    for (uint32_t i = first; i < first + count; i++) {
        uint32_t parts = parts_of(&group->regions[i]);
        grid.x = parts > grid.x ? parts : grid.x;
    }
    return runtime->launch(runtime->self, gpu->inspect_function, &grid, stream->handle, &call);
}

/* ---- Outside of graphs ---------------------------------------------------------------------- */

enum status gpu_inspect_flush(struct gpu_device *gpu, struct gpu_stream *stream, struct error *err)
{
    struct gpu_inspections *inspections = stream->inspections;
    if (!inspections || !inspections->gathering)
        return STATUS_OK;
    const struct group *group = &inspections->groups.list[inspections->given % GROUP_LIMIT];
    inspections->gathering = false;
    clear_slots(group);
    if (stream->last_id != group->event_id) /* it comes before its copy */
        gpu_stream_note(stream, group->event_id, "copy", &group->items[0].scope, NULL);
    int code = launch_regions(gpu, stream, group, 0, group->region_count);
    pthread_mutex_lock(&gpu->inspect_lock);
    if (code)
        report_group(gpu, stream, group, group->event_id, true);
    else
        inspections->given++;
    pthread_mutex_unlock(&gpu->inspect_lock);
    GPU_TRY(gpu, code, "inspection", err);
    return STATUS_OK;
}

static uint64_t count_waiting(struct gpu_device *gpu, const struct gpu_inspections *inspections)
{
    pthread_mutex_lock(&gpu->inspect_lock);
    uint64_t waiting = inspections->given - inspections->told;
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
    if (code && gpu_failed(gpu, code, "inspection", &unused))
        return false;
    gpu_inspect_collect(gpu);
    return count_waiting(gpu, inspections) < GROUP_LIMIT;
}

static bool make_inspections(struct gpu_device *gpu, struct gpu_stream *stream)
{
    if (stream->inspections)
        return true;
    struct gpu_inspections *inspections = calloc(1, sizeof(*inspections));
    if (!inspections || !make_groups(gpu, GROUP_LIMIT, GPU_OPERAND_LIMIT, &inspections->groups)) {
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
        const struct group *group = &inspections->groups.list[inspections->given % GROUP_LIMIT];
        if (is_full(group) || group->event_id != command->event_id)
            TRY(gpu_inspect_flush(gpu, stream, err));
    }
    TRY(gpu_make_workspace(gpu, stream, err));
    if (!gpu->inspect_function || !make_inspections(gpu, stream) || !has_room(gpu, stream)) {
        const struct device_inspection_result unseen = { .failed = true };
        device_report_inspection(&gpu->device, stream->index, command, command->event_id, &unseen);
        return STATUS_OK;
    }
    inspections = stream->inspections;
    struct group *group = &inspections->groups.list[inspections->given % GROUP_LIMIT];
    if (!inspections->gathering)
        group->item_count = group->region_count = 0;
    inspections->gathering = true;
    add_item(group, command);
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
            collect_graph(gpu, graph);
        tell_clean(gpu, graph);
        graph->pending_id = 0;
        graph->stream = NULL;
    }
    gpu->inspecting[stream->index] = NULL;
    stream->inspections = NULL;
    pthread_mutex_unlock(&gpu->inspect_lock);
    if (!inspections)
        return;
    release_groups(gpu, &inspections->groups);
    free(inspections);
}

/* ---- In graphs ------------------------------------------------------------------------------ */

/* Of damage that a sweep finds beside a buffer that several commands wrote: nobody's. */
static const struct device_contract no_op = { .name = "" };
static const struct event_scope no_scope = { -1, -1, "" };

/* The item of the sweep that looks at the same memory, or NULL. */
static struct item *find_same(const struct group *sweep, const struct device_command *command)
{
    for (uint32_t i = 0; i < sweep->item_count; i++) {
        struct item *item = &sweep->items[i];
        if (item->inspection.what == command->inspection.what &&
            item->inspection.access.address == command->inspection.access.address &&
            item->inspection.access.bytes == command->inspection.access.bytes)
            return item;
    }
    return NULL;
}

static void add_to_sweep(struct group *sweep, const struct device_command *command)
{
    struct item *same = find_same(sweep, command);
    if (!same) {
        add_item(sweep, command);
    } else if (command->inspection.what == DEVICE_INSPECT_SCAN) {
        same->scope = command->scope; /* what is there in the end is the last one's */
        same->contract = command->contract;
    } else {
        same->scope = no_scope;
        same->contract = &no_op;
    }
}

/* Canaries first: they are small, and a kernel of their own. */
static void fill_sweep(struct group *sweep, const struct device_command *commands, size_t count)
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
    const struct group *sweep = &graph->groups.list[0];
    uint32_t small = 0;
    while (small < sweep->region_count && sweep->regions[small].dtype == GPU_INSPECT_CANARY)
        small++;
    graph->count = 1;
    int code = small ? launch_regions(gpu, graph->stream, sweep, 0, small) : 0;
    if (!code && sweep->region_count > small)
        code = launch_regions(gpu, graph->stream, sweep, small, sweep->region_count - small);
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
    if (!graph || !make_groups(gpu, sweep ? 1 : wanted, sweep ? 2 * wanted : GPU_OPERAND_LIMIT,
                               &graph->groups)) {
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
    const struct group *group = &graph->groups.list[graph->count++];
    graph->gathering = false;
    return launch_regions(gpu, graph->stream, group, 0, group->region_count);
}

int gpu_inspect_graph_add(struct gpu_device *gpu, struct gpu_graph_inspections *graph,
                          const struct device_command *command)
{
    if (!graph || graph->sweep)
        return 0; /* without memory for them: as many as are not reported were not made */
    struct group *group = &graph->groups.list[graph->count];
    if (graph->gathering && (is_full(group) || group->event_id != command->event_id)) {
        int code = gpu_inspect_graph_flush(gpu, graph);
        if (code)
            return code;
        group = &graph->groups.list[graph->count];
    }
    graph->gathering = true;
    add_item(group, command);
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
        clear_slots(&graph->groups.list[i]);
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
    release_groups(gpu, &graph->groups);
    free(graph);
}
