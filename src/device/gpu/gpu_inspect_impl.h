/* gpu_inspect_impl.h - what the files of inspections share: groups (gpu_inspect_group.c) of streams
 * (gpu_inspect.c) and of graphs (gpu_inspect_graph.c). */
#ifndef GRETA_DEVICE_GPU_GPU_INSPECT_IMPL_H
#define GRETA_DEVICE_GPU_GPU_INSPECT_IMPL_H

#include "device/gpu/gpu_impl.h"

/* What is kept of a command until it is reported. */
struct gpu_inspect_item {
    struct device_inspection inspection;
    struct event_scope scope;
    const struct device_contract *contract;
    const void *staging; /* to be hashed here; else NULL */
    struct device_rows rows;
    uint8_t region, region_count;
};

/* One kernel's worth. */
struct gpu_inspect_group {
    uint64_t event_id;
    uint32_t item_count, region_count;
    struct gpu_inspect_item *items;          /* borrowed, like the rest */
    struct gpu_region *regions;              /* pinned */
    struct gpu_inspect_slot *slots;          /* pinned: one for each region */
    uint64_t regions_address, slots_address; /* for the device */
};

/* Groups, each with room for as many regions. */
struct gpu_inspect_groups {
    struct gpu_inspect_group *list;
    struct gpu_inspect_item *items;
    void *pinned;
};

struct gpu_graph_inspections {
    struct gpu_graph_inspections *next; /* of the device; under inspect_lock */
    const struct gpu_stream *stream;
    struct gpu_inspect_groups groups;
    uint32_t count; /* that are launched */
    bool sweep, gathering;
    bool alarmed;        /* atomic; a sweep found something */
    uint64_t pending_id; /* the replay that was not collected yet; 0: none */
    uint64_t clean_id;   /* the replay whose sweep found nothing, to be reported; 0: none */
};

/* ---- Groups --------------------------------------------------------------------------------- */

/* `count` groups with room for `regions` each. False: there is no memory for them. */
bool gpu_inspect_groups_init(struct gpu_device *gpu, uint32_t count, uint32_t regions,
                             struct gpu_inspect_groups *groups);
void gpu_inspect_groups_release(struct gpu_device *gpu, struct gpu_inspect_groups *groups);

void gpu_inspect_group_add(struct gpu_inspect_group *group, const struct device_command *command);
/* True if there is no room for GPU_OPERAND_LIMIT more regions, which one command may need. */
bool gpu_inspect_group_is_full(const struct gpu_inspect_group *group);
/* Regions [first, first + count) of the group, in one kernel. A code of the runtime. */
int gpu_inspect_group_launch(struct gpu_device *gpu, const struct gpu_stream *stream,
                             const struct gpu_inspect_group *group, uint32_t first, uint32_t count);
void gpu_inspect_group_clear(const struct gpu_inspect_group *group);
bool gpu_inspect_group_is_done(const struct gpu_inspect_group *group);
/* Reports the results; true if any of them is a defect. */
bool gpu_inspect_group_report(struct gpu_device *gpu, const struct gpu_stream *stream,
                              const struct gpu_inspect_group *group, uint64_t event_id,
                              bool failed);

void gpu_inspect_item_report(struct gpu_device *gpu, const struct gpu_stream *stream,
                             const struct gpu_inspect_item *item, uint64_t event_id,
                             const struct device_inspection_result *result);
/* Values a scan looks at; 0 of others. */
uint64_t gpu_inspect_item_values(const struct gpu_inspect_item *item);

/* ---- Graphs, with inspect_lock held --------------------------------------------------------- */

/* Reports the replay that is pending, if all of it is done. */
void gpu_inspect_graph_collect(struct gpu_device *gpu, struct gpu_graph_inspections *graph);
/* Reports a sweep that found nothing. Its slots may be of the next replay already: they are not
 * looked at. */
void gpu_inspect_graph_tell_clean(struct gpu_device *gpu, struct gpu_graph_inspections *graph);

#endif
