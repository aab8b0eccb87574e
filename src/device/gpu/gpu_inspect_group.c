/* gpu_inspect_group.c - inspections that become one kernel: gathered, launched, reported. */
#include "device/gpu/gpu_inspect_impl.h"

#include "base/size.h"

#include <stdlib.h>
#include <string.h>

#define GROUP_THREADS 256u
#define GROUP_SHARED_BYTES (GROUP_THREADS / 32u * 2u * sizeof(uint64_t))
/* Values a block looks at before it is worth having another. */
#define PART_VALUES 8192u

void gpu_inspect_groups_release(struct gpu_device *gpu, struct gpu_inspect_groups *groups)
{
    if (groups->pinned)
        gpu->runtime.pinned_destroy(gpu->runtime.self, groups->pinned);
    free(groups->list);
    free(groups->items);
    *groups = (struct gpu_inspect_groups){ 0 };
}

bool gpu_inspect_groups_init(struct gpu_device *gpu, uint32_t count, uint32_t regions,
                             struct gpu_inspect_groups *groups)
{
    uint64_t slots_bytes = (uint64_t)count * regions * sizeof(struct gpu_inspect_slot);
    uint64_t bytes = slots_bytes + (uint64_t)count * regions * sizeof(struct gpu_region), address;
    groups->list = calloc(count, sizeof(*groups->list));
    groups->items = calloc((size_t)count * regions, sizeof(*groups->items));
    if (!groups->list || !groups->items ||
        gpu->runtime.pinned_create(gpu->runtime.self, bytes, &groups->pinned, &address)) {
        groups->pinned = NULL;
        gpu_inspect_groups_release(gpu, groups);
        return false;
    }
    memset(groups->pinned, 0, (size_t)bytes);
    for (uint32_t i = 0; i < count; i++) {
        struct gpu_inspect_group *group = &groups->list[i];
        group->items = groups->items + (size_t)i * regions;
        group->slots = (struct gpu_inspect_slot *)groups->pinned + (size_t)i * regions;
        group->slots_address = address + (uint64_t)i * regions * sizeof(*group->slots);
        uint64_t place = slots_bytes + (uint64_t)i * regions * sizeof(*group->regions);
        group->regions = (struct gpu_region *)(void *)((uint8_t *)groups->pinned + place);
        group->regions_address = address + place;
    }
    return true;
}

bool gpu_inspect_group_is_done(const struct gpu_inspect_group *group)
{
    for (uint32_t i = 0; i < group->region_count; i++)
        if (!__atomic_load_n(&group->slots[i].done, __ATOMIC_ACQUIRE))
            return false;
    return true;
}

void gpu_inspect_group_clear(const struct gpu_inspect_group *group)
{
    memset(group->slots, 0, group->region_count * sizeof(*group->slots));
}

/* ---- Gathering ------------------------------------------------------------------------------ */

static void add_region(struct gpu_inspect_group *group, struct gpu_inspect_item *item,
                       const struct device_rows *rows, uint32_t what, uint8_t byte)
{
    bool dense = rows->row_count <= 1 || rows->stride_bytes == rows->row_bytes;
    group->regions[group->region_count++] = (struct gpu_region){
        .address = rows->address,
        .row_stride_bytes = rows->stride_bytes,
        .width = dense ? rows->row_bytes * rows->row_count : rows->row_bytes,
        .rows = dense ? 1 : rows->row_count,
        .what = what,
        .byte = byte,
    };
    item->region_count++;
}

void gpu_inspect_group_add(struct gpu_inspect_group *group, const struct device_command *command)
{
    struct gpu_inspect_item *item = &group->items[group->item_count++];
    *item = (struct gpu_inspect_item){ .inspection = command->inspection,
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
bool gpu_inspect_group_is_full(const struct gpu_inspect_group *group)
{
    return group->region_count + 2 > GPU_OPERAND_LIMIT || group->item_count == GPU_OPERAND_LIMIT;
}

static uint32_t parts_of(const struct gpu_region *region)
{
    uint64_t per_value = region->what == GPU_INSPECT_DIGEST ? sizeof(uint64_t)
                         : region->what == GPU_INSPECT_SCAN ? sizeof(float)
                                                            : 1;
    uint64_t parts = region->width / per_value / PART_VALUES + 1;
    return parts > GPU_INSPECT_PARTS ? GPU_INSPECT_PARTS : (uint32_t)parts;
}

/* Before a copy or a launch it leaves that one's crumbs; after a launch it leaves none. */
static bool leaves_crumbs(const struct gpu_inspect_item *item)
{
    const struct device_inspection *inspection = &item->inspection;
    return inspection->what == DEVICE_INSPECT_DIGEST &&
           (inspection->check || inspection->access.mode == EVENT_READ);
}

int gpu_inspect_group_launch(struct gpu_device *gpu, const struct gpu_stream *stream,
                             const struct gpu_inspect_group *group, uint32_t first, uint32_t count)
{
    const struct gpu_runtime *runtime = &gpu->runtime;
    struct gpu_inspect_params params = { .slots = group->slots_address +
                                                  first * sizeof(*group->slots) };
    struct gpu_call call = { .page = gpu->page_address, .workspace = stream->workspace };
    struct gpu_grid grid = { 1, count, GROUP_THREADS, GROUP_SHARED_BYTES };
    if (leaves_crumbs(&group->items[0])) {
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
        grid.x = max_u64(parts, grid.x);
    }
    return runtime->launch(runtime->self, gpu->inspect_function, &grid, stream->handle, &call);
}

/* ---- Reporting ------------------------------------------------------------------------------ */

void gpu_inspect_item_report(struct gpu_device *gpu, const struct gpu_stream *stream,
                             const struct gpu_inspect_item *item, uint64_t event_id,
                             const struct device_inspection_result *result)
{
    /* Only the fields that are reported; the rest of a command is large. */
    struct device_command *command = &gpu->inspected;
    command->inspection = item->inspection;
    command->scope = item->scope;
    command->contract = item->contract;
    device_report_inspection(&gpu->device, stream->index, command, event_id, result);
}

uint64_t gpu_inspect_item_values(const struct gpu_inspect_item *item)
{
    return item->inspection.what == DEVICE_INSPECT_SCAN
               ? item->rows.row_count * (item->rows.row_bytes / sizeof(float))
               : 0;
}

bool gpu_inspect_group_report(struct gpu_device *gpu, const struct gpu_stream *stream,
                              const struct gpu_inspect_group *group, uint64_t event_id, bool failed)
{
    const struct gpu_inspect_slot *slots = group->slots;
    bool alarm = false;
    for (uint32_t i = 0; i < group->item_count; i++) {
        const struct gpu_inspect_item *item = &group->items[i];
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
        result.count = gpu_inspect_item_values(item);
        alarm = alarm || (item->inspection.what != DEVICE_INSPECT_DIGEST && result.found);
        gpu_inspect_item_report(gpu, stream, item, event_id, &result);
    }
    return alarm;
}
