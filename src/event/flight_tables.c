/* flight_tables.c - what a flight file has besides records of events: allocations, devices,
 * checkpoints, and where a foreign program's calls come from. Entries are copied out and checked
 * against their checksums, as records are (flight_reader.c). */
#include "event/flight_reader.h"

#include "base/size.h"

#include <stdlib.h>
#include <string.h>

/* ---- Allocations, devices, checkpoints ------------------------------------------------------ */

enum status flight_read_allocations(struct flight_reader *reader, const char *name,
                                    struct error *err)
{
    const struct flight_entry *entries =
        (const struct flight_entry *)(reader->data + reader->layout.allocation_offset);
    size_t limit = reader->header.allocation_count;
    size_t whole = 0;
    for (size_t i = 0; i < limit; i++)
        whole += entries[i].checksum != 0;
    reader->allocations = calloc(whole + 1, sizeof(*reader->allocations));
    if (!reader->allocations)
        return error_set(err, STATUS_NO_MEMORY, "%s: no memory for %zu allocations", name, whole);
    for (size_t i = 0; i < limit && reader->allocation_count < whole; i++) {
        struct flight_entry entry = entries[i];
        if (entry.checksum == 0)
            continue;
        if (entry.checksum != flight_entry_checksum(&entry.allocation)) {
            reader->info.damaged_count++;
            continue;
        }
        flight_end_text(entry.allocation.name, sizeof(entry.allocation.name));
        reader->allocations[reader->allocation_count++] = entry.allocation;
    }
    return STATUS_OK;
}

size_t flight_allocation_count(const struct flight_reader *reader)
{
    return reader->allocation_count;
}

const struct flight_allocation *flight_allocation_at(const struct flight_reader *reader,
                                                     size_t index)
{
    ASSERT(index < reader->allocation_count);
    return &reader->allocations[index];
}

bool flight_device_at(const struct flight_reader *reader, uint32_t device_index,
                      struct flight_device *ret_device)
{
    struct flight_device_entry entry;
    if (device_index >= reader->header.device_count)
        return false;
    memcpy(&entry, reader->data + FLIGHT_DEVICES_OFFSET + device_index * sizeof(entry),
           sizeof(entry));
    if (entry.checksum == 0 ||
        entry.checksum != flight_table_checksum(&entry.device, sizeof(entry.device)))
        return false;
    flight_end_text(entry.device.kind, sizeof(entry.device.kind));
    flight_end_text(entry.device.name, sizeof(entry.device.name));
    *ret_device = entry.device;
    return true;
}

const struct flight_checkpoint_slot *flight_newest_checkpoint(const struct flight_reader *reader)
{
    const struct flight_checkpoint_slot *slots =
        (const struct flight_checkpoint_slot *)(reader->data + reader->layout.checkpoint_offset);
    const struct flight_checkpoint_slot *newest = NULL;
    for (size_t i = 0; i < 2; i++) {
        const struct flight_checkpoint_slot *slot = &slots[i];
        if (slot->checksum == 0 || slot->sequence == 0 || slot->count > FLIGHT_CHECKPOINT_BYTES ||
            slot->checksum != flight_checkpoint_checksum(slot))
            continue;
        if (!newest || slot->sequence > newest->sequence)
            newest = slot;
    }
    return newest;
}

bool flight_last_checkpoint(const struct flight_reader *reader, const void **ret_bytes,
                            size_t *ret_count)
{
    const struct flight_checkpoint_slot *slot = flight_newest_checkpoint(reader);
    if (!slot)
        return false;
    *ret_bytes = slot->bytes;
    *ret_count = (size_t)slot->count;
    return true;
}

/* ---- Where foreign calls come from ---------------------------------------------------------- */

/* The entry's bytes, copied; false if there is no such entry, or not a whole one. */
static bool copy_entry(const struct flight_reader *reader, uint64_t offset, size_t index,
                       size_t limit, size_t bytes, void *ret)
{
    if (reader->header.call_tables != 1 || index >= limit)
        return false;
    memcpy(ret, reader->data + offset + index * bytes, bytes);
    uint64_t checksum;
    memcpy(&checksum, (const uint8_t *)ret + bytes - sizeof(checksum), sizeof(checksum));
    return checksum != 0 && checksum == flight_table_checksum(ret, bytes - sizeof(checksum));
}

bool flight_stack(const struct flight_reader *reader, uint32_t number,
                  uint64_t ret_frames[FLIGHT_STACK_FRAMES], size_t *ret_count)
{
    struct flight_stack stack;
    if (number == 0 || !copy_entry(reader, reader->layout.stack_offset, number - 1,
                                   FLIGHT_STACK_COUNT, sizeof(stack), &stack))
        return false;
    *ret_count = min_u64(stack.count, FLIGHT_STACK_FRAMES);
    memcpy(ret_frames, stack.frames, sizeof(stack.frames));
    return true;
}

bool flight_name(const struct flight_reader *reader, uint32_t number,
                 char ret_text[FLIGHT_NAME_BYTES])
{
    struct flight_name name;
    if (number == 0 || !copy_entry(reader, reader->layout.name_offset, number - 1,
                                   FLIGHT_NAME_COUNT, sizeof(name), &name))
        return false;
    flight_end_text(name.text, sizeof(name.text));
    memcpy(ret_text, name.text, sizeof(name.text));
    return true;
}

bool flight_module_at(const struct flight_reader *reader, size_t index,
                      struct flight_module *ret_module)
{
    struct flight_module_entry entry;
    uint64_t used;
    memcpy(&used,
           reader->data + FLIGHT_COUNTERS_OFFSET + offsetof(struct flight_counters, module_used),
           sizeof(used));
    if (reader->header.call_tables != 1 || index >= used || index >= FLIGHT_MODULE_COUNT)
        return false;
    *ret_module = (struct flight_module){ 0 };
    if (copy_entry(reader, reader->layout.module_offset, index, FLIGHT_MODULE_COUNT, sizeof(entry),
                   &entry)) {
        flight_end_text(entry.module.path, sizeof(entry.module.path));
        *ret_module = entry.module;
    }
    return true;
}
