/* flight_layout.c - sizes and checksums of a flight file. */
#include "event/flight_layout.h"

#include <string.h>
#include <xxhash.h>

static uint64_t next_page(uint64_t offset)
{
    return (offset + FLIGHT_PAGE - 1) / FLIGHT_PAGE * FLIGHT_PAGE;
}

struct flight_layout flight_layout_of(uint32_t record_count, uint32_t allocation_count,
                                      uint32_t graph_record_count, bool call_tables,
                                      uint32_t device_count, uint32_t launch_count)
{
    /* 32-bit counts times sizes below 4 KiB: no sum here comes near 64 bits. */
    struct flight_layout layout = { .crumb_offset = FLIGHT_HEADER_BYTES };
    layout.checkpoint_offset = next_page(layout.crumb_offset +
                                         (uint64_t)device_count * sizeof(struct crumb_page));
    layout.allocation_offset = next_page(layout.checkpoint_offset +
                                         2 * sizeof(struct flight_checkpoint_slot));
    layout.graph_offset = next_page(layout.allocation_offset +
                                    (uint64_t)allocation_count * sizeof(struct flight_entry));
    uint64_t tables = call_tables ? 1 : 0;
    layout.stack_offset = next_page(layout.graph_offset +
                                    (uint64_t)graph_record_count * sizeof(struct flight_record));
    layout.name_offset = next_page(layout.stack_offset +
                                   tables * FLIGHT_STACK_COUNT * sizeof(struct flight_stack));
    layout.module_offset = next_page(layout.name_offset +
                                     tables * FLIGHT_NAME_COUNT * sizeof(struct flight_name));
    layout.launch_offset = next_page(layout.module_offset + tables * FLIGHT_MODULE_COUNT *
                                                                sizeof(struct flight_module_entry));
    uint64_t launches = launch_count ? (uint64_t)launch_count + graph_record_count : 0;
    layout.ring_offset = next_page(layout.launch_offset +
                                   launches * sizeof(struct flight_launch_entry));
    layout.file_bytes = next_page(layout.ring_offset +
                                  (uint64_t)record_count * sizeof(struct flight_record));
    return layout;
}

struct flight_header flight_header_of(const struct flight_layout *layout)
{
    struct flight_header header = {
        .version = FLIGHT_VERSION,
        .header_bytes = FLIGHT_HEADER_BYTES,
        .record_bytes = sizeof(struct flight_record),
        .event_bytes = sizeof(struct event),
        .allocation_bytes = sizeof(struct flight_entry),
        .checkpoint_bytes = sizeof(struct flight_checkpoint_slot),
        .crumb_offset = layout->crumb_offset,
        .checkpoint_offset = layout->checkpoint_offset,
        .allocation_offset = layout->allocation_offset,
        .graph_offset = layout->graph_offset,
        .ring_offset = layout->ring_offset,
        .file_bytes = layout->file_bytes,
    };
    memcpy(header.magic, FLIGHT_MAGIC, sizeof(header.magic));
    return header;
}

/* Never 0, which means "nothing here". */
uint32_t flight_short_checksum(const void *bytes, size_t count)
{
    uint32_t sum = (uint32_t)XXH3_64bits(bytes, count);
    return sum ? sum : 1;
}

static uint64_t checksum64(const void *bytes, size_t count)
{
    uint64_t sum = XXH3_64bits(bytes, count);
    return sum ? sum : 1;
}

uint64_t flight_header_checksum(const struct flight_header *header)
{
    return checksum64(header, offsetof(struct flight_header, checksum));
}

uint32_t flight_begin_checksum(const struct event *event)
{
    return flight_short_checksum(event, offsetof(struct event, end_ns));
}

uint32_t flight_end_checksum(const struct event *event)
{
    return flight_short_checksum(&event->end_ns, sizeof(*event) - offsetof(struct event, end_ns));
}

uint64_t flight_entry_checksum(const struct flight_allocation *allocation)
{
    return checksum64(allocation, sizeof(*allocation));
}

uint64_t flight_table_checksum(const void *bytes, size_t count)
{
    return checksum64(bytes, count);
}

void flight_place_areas(struct flight *flight, const struct flight_layout *layout)
{
    uint8_t *data = flight->data;
    flight->counters = (struct flight_counters *)(data + FLIGHT_COUNTERS_OFFSET);
    flight->devices = (struct flight_device_entry *)(data + FLIGHT_DEVICES_OFFSET);
    flight->crumbs = (struct crumb_page *)(data + layout->crumb_offset);
    flight->checkpoints = (struct flight_checkpoint_slot *)(data + layout->checkpoint_offset);
    flight->entries = (struct flight_entry *)(data + layout->allocation_offset);
    flight->graph_records = (struct flight_record *)(data + layout->graph_offset);
    flight->stacks = (struct flight_stack *)(data + layout->stack_offset);
    flight->names = (struct flight_name *)(data + layout->name_offset);
    flight->modules = (struct flight_module_entry *)(data + layout->module_offset);
    flight->launches = (struct flight_launch_entry *)(data + layout->launch_offset);
    flight->ring = (struct flight_record *)(data + layout->ring_offset);
}

uint64_t flight_checkpoint_checksum(const struct flight_checkpoint_slot *slot)
{
    uint64_t head[3] = { slot->sequence, slot->analysed_id, slot->count };
    size_t count = slot->count <= FLIGHT_CHECKPOINT_BYTES ? (size_t)slot->count : 0;
    return checksum64(head, sizeof(head)) ^ XXH3_64bits(slot->bytes, count);
}
