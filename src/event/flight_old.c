/* flight_old.c - files of versions 2 and 3 become files of the current version before anything else
 * reads them.
 *
 * Both had the same areas in the same places with records and entries of the same sizes, so a copy
 * of the file is converted in place: header, records and allocations, with new checksums. What does
 * not pass its checksum becomes a record that does not pass the new one either. Version 2 did not
 * say whose number a code is; the byte was 0. */
#include "event/flight_old.h"
#include "event/flight_layout.h"

#include <stdlib.h>
#include <string.h>

/* ---- What they were ------------------------------------------------------------------------- */

struct old_record {
    uint64_t state;
    uint32_t begin_checksum, end_checksum;
    struct old_event event;
};
_Static_assert(sizeof(struct old_record) == sizeof(struct flight_record), "converted in place");

struct old_allocation {
    uint64_t address, bytes, created_id, destroyed_id;
    uint32_t buffer_index, generation;
    char name[EVENT_TENSOR_BYTES];
};
_Static_assert(sizeof(struct old_allocation) == sizeof(struct flight_allocation), "in place");

struct old_header {
    char magic[8];
    uint32_t version;
    uint32_t header_bytes, record_bytes, event_bytes, allocation_bytes, checkpoint_bytes;
    uint32_t record_count, allocation_count, graph_record_count, call_tables;
    uint64_t crumb_offset, checkpoint_offset, allocation_offset, graph_offset, ring_offset;
    uint64_t file_bytes;
    uint64_t pid, start_wall_ns, start_clock_ns;
    char device[FLIGHT_TEXT_BYTES];
    char command[FLIGHT_TEXT_BYTES];
    uint64_t checksum;
};

struct conversion {
    uint8_t *bytes;
    struct old_header header;
    struct flight_layout layout;
    struct flight_old_file file;
};

/* ---- Records -------------------------------------------------------------------------------- */

static bool is_whole(const struct old_record *record)
{
    const struct old_event *event = &record->event;
    size_t end = offsetof(struct old_event, end_ns);
    return record->begin_checksum == flight_short_checksum(event, end) &&
           (!record->end_checksum ||
            record->end_checksum == flight_short_checksum(&event->end_ns, sizeof(*event) - end)) &&
           event->id == record->state;
}

static void convert_record(const struct conversion *conversion, uint8_t *place)
{
    struct old_record old;
    struct flight_record record = { 0 };
    memcpy(&old, place, sizeof(old));
    if (old.state != 0 && old.state != FLIGHT_BUSY && is_whole(&old)) {
        if (old.end_checksum == 0) { /* what a begun call was written with */
            old.event.check = old.event.begin_check;
            old.event.operand = old.event.begin_check ? old.event.begin_operand : EVENT_NO_OPERAND;
            old.event.expected = old.event.found = 0;
        }
        record.event = flight_old_event(&conversion->file, &old.event);
        record.begin_checksum = flight_begin_checksum(&record.event);
        record.end_checksum = old.end_checksum ? flight_end_checksum(&record.event) : 0;
    }
    record.event.id = old.state;
    memcpy(place, &record, sizeof(record));
}

static void convert_allocation(uint8_t *place)
{
    struct old_allocation old;
    struct flight_entry entry = { 0 };
    memcpy(&old, place, sizeof(old));
    memcpy(&entry.checksum, place + sizeof(old), sizeof(entry.checksum));
    if (entry.checksum == 0)
        return;
    bool whole = entry.checksum == flight_table_checksum(&old, sizeof(old));
    entry.allocation = (struct flight_allocation){ .address = old.address,
                                                   .bytes = old.bytes,
                                                   .created_id = old.created_id,
                                                   .destroyed_id = old.destroyed_id,
                                                   .buffer_index = old.buffer_index,
                                                   .generation = (uint16_t)old.generation };
    memcpy(entry.allocation.name, old.name, sizeof(entry.allocation.name));
    entry.checksum = flight_entry_checksum(&entry.allocation) ^ (whole ? 0 : 1);
    memcpy(place, &entry, sizeof(entry));
}

/* ---- The file ------------------------------------------------------------------------------- */

static const struct old_record *ring_record(const struct conversion *conversion, uint32_t index)
{
    return (const struct old_record *)(conversion->bytes + conversion->layout.ring_offset) + index;
}

/* The kind of device is in the event of its opening; a foreign program's file names the runtime. */
static void find_runtime(struct conversion *conversion)
{
    const char *device = conversion->header.device; /* of a foreign program: whose runtime it was */
    conversion->file.runtime = strncmp(device, "CUDA", sizeof("CUDA")) == 0 ? EVENT_ERROR_CUDA
                               : strncmp(device, "AMD", sizeof("AMD")) == 0 ? EVENT_ERROR_HIP
                                                                            : EVENT_ERROR_RUNTIME;
    for (uint32_t i = 0; i < conversion->header.record_count; i++) {
        const struct old_record *record = ring_record(conversion, i);
        if (record->event.kind != EVENT_DEVICE_OPEN || !is_whole(record))
            continue;
        if (flight_old_domain(&record->event))
            conversion->file.runtime = flight_old_domain(&record->event);
    }
}

static void convert_header(const struct conversion *conversion)
{
    const struct old_header *old = &conversion->header;
    const struct flight_layout *layout = &conversion->layout;
    struct flight_header header = flight_header_of(layout);
    header.record_count = old->record_count;
    header.allocation_count = old->allocation_count;
    header.graph_record_count = old->graph_record_count;
    header.call_tables = old->call_tables;
    header.device_count = 1;
    header.pid = old->pid;
    header.start_wall_ns = old->start_wall_ns;
    header.start_clock_ns = old->start_clock_ns;
    memcpy(header.device, old->device, sizeof(header.device));
    memcpy(header.command, old->command, sizeof(header.command));
    header.checksum = flight_header_checksum(&header);
    /* After it in its page only the counters have a meaning; they did not change. */
    memset(conversion->bytes, 0, FLIGHT_COUNTERS_OFFSET);
    memset(conversion->bytes + FLIGHT_DEVICES_OFFSET, 0,
           FLIGHT_HEADER_BYTES - FLIGHT_DEVICES_OFFSET);
    memcpy(conversion->bytes, &header, sizeof(header));
}

static void convert_all(const struct conversion *conversion)
{
    const struct flight_layout *layout = &conversion->layout;
    const struct old_header *header = &conversion->header;
    uint8_t *bytes = conversion->bytes;
    for (uint32_t i = 0; i < header->record_count; i++)
        convert_record(conversion, bytes + layout->ring_offset + i * sizeof(struct old_record));
    for (uint32_t i = 0; i < header->graph_record_count; i++)
        convert_record(conversion, bytes + layout->graph_offset + i * sizeof(struct old_record));
    for (uint32_t i = 0; i < header->allocation_count; i++)
        convert_allocation(bytes + layout->allocation_offset + i * sizeof(struct flight_entry));
    convert_header(conversion);
}

/* The header, compared with what its version had; *ret_layout: where its areas are. */
static enum status check_header(const uint8_t *bytes, uint64_t size, const char *name,
                                struct conversion *conversion, struct error *err)
{
    struct old_header *header = &conversion->header;
    memcpy(header, bytes, sizeof(*header));
#define CHECK_FIELD(field, expected)                                                               \
    TRY(flight_check_number(name, #field, offsetof(struct old_header, field), (expected),          \
                            header->field, err))
    CHECK_FIELD(header_bytes, FLIGHT_HEADER_BYTES);
    CHECK_FIELD(record_bytes, sizeof(struct old_record));
    CHECK_FIELD(event_bytes, sizeof(struct old_event));
    CHECK_FIELD(allocation_bytes, sizeof(struct flight_entry));
    CHECK_FIELD(checkpoint_bytes, sizeof(struct flight_checkpoint_slot));
    if (header->record_count == 0)
        CHECK_FIELD(record_count, 1);
    if (header->call_tables > 1)
        CHECK_FIELD(call_tables, 1);
    conversion->layout = flight_layout_of(header->record_count, header->allocation_count,
                                          header->graph_record_count, header->call_tables == 1, 1, 0);
    CHECK_FIELD(ring_offset, conversion->layout.ring_offset);
    CHECK_FIELD(file_bytes, conversion->layout.file_bytes);
    if (size < conversion->layout.file_bytes)
        return flight_check_number(name, "file_bytes", (size_t)size, conversion->layout.file_bytes,
                                   size, err);
    CHECK_FIELD(checksum, flight_table_checksum(header, offsetof(struct old_header, checksum)));
#undef CHECK_FIELD
    return STATUS_OK;
}

bool flight_is_old(const void *bytes, uint64_t size)
{
    const struct flight_header *header = bytes;
    return size >= FLIGHT_HEADER_BYTES &&
           memcmp(header->magic, FLIGHT_MAGIC, sizeof(header->magic)) == 0 &&
           header->version >= FLIGHT_VERSION_OLDEST &&
           header->version < FLIGHT_VERSION_WITHOUT_LAUNCHES;
}

enum status flight_convert_old(const void *bytes, uint64_t size, const char *name,
                               uint8_t **ret_bytes, uint64_t *ret_size, struct error *err)
{
    struct conversion conversion = { 0 };
    TRY(check_header(bytes, size, name, &conversion, err));
    conversion.bytes = malloc((size_t)conversion.layout.file_bytes);
    if (!conversion.bytes)
        return error_set(err, STATUS_NO_MEMORY, "%s: no memory to convert version %u", name,
                         conversion.header.version);
    memcpy(conversion.bytes, bytes, (size_t)conversion.layout.file_bytes);
    conversion.file.process_id = (uint32_t)conversion.header.pid;
    find_runtime(&conversion);
    convert_all(&conversion);
    *ret_bytes = conversion.bytes;
    *ret_size = conversion.layout.file_bytes;
    return STATUS_OK;
}
