/* flight_header.c - is it a flight file that this greta can read, and where are its areas? */
#include "event/flight_layout.h"

#include <inttypes.h>
#include <string.h>

enum status flight_check_number(const char *name, const char *field, uint64_t offset,
                                uint64_t expected, uint64_t found, struct error *err)
{
    if (expected == found)
        return STATUS_OK;
    return error_set(err, STATUS_BAD_FILE,
                     "%s: byte %" PRIu64 ": %s: expected %" PRIu64 ", found %" PRIu64, name, offset,
                     field, expected, found);
}

#define CHECK_FIELD(header, name, field, expected, err)                                            \
    TRY(flight_check_number((name), #field, offsetof(struct flight_header, field), (expected),     \
                            (header)->field, (err)))

static enum status check_begin(const struct flight_header *header, const char *name,
                               struct error *err)
{
    if (memcmp(header->magic, FLIGHT_MAGIC, sizeof(header->magic)) != 0)
        return error_set(err, STATUS_BAD_FILE,
                         "%s: byte 0: magic: expected \"%s\", found something else: not a flight "
                         "file",
                         name, FLIGHT_MAGIC);
    if (header->version != FLIGHT_VERSION && header->version != FLIGHT_VERSION_WITHOUT_LAUNCHES)
        return error_set(err, STATUS_UNSUPPORTED,
                         "%s: byte 8: version: expected %u to %u, found %" PRIu32
                         "; read it with the greta that wrote it",
                         name, FLIGHT_VERSION_OLDEST, FLIGHT_VERSION, header->version);
    CHECK_FIELD(header, name, header_bytes, FLIGHT_HEADER_BYTES, err);
    CHECK_FIELD(header, name, record_bytes, sizeof(struct flight_record), err);
    CHECK_FIELD(header, name, event_bytes, sizeof(struct event), err);
    CHECK_FIELD(header, name, allocation_bytes, sizeof(struct flight_entry), err);
    CHECK_FIELD(header, name, checkpoint_bytes, sizeof(struct flight_checkpoint_slot), err);
    if (header->record_count == 0)
        return flight_check_number(name, "record_count",
                                   offsetof(struct flight_header, record_count), 1, 0, err);
    if (header->device_count == 0 || header->device_count > FLIGHT_DEVICE_LIMIT)
        return flight_check_number(
            name, "device_count", offsetof(struct flight_header, device_count),
            header->device_count ? FLIGHT_DEVICE_LIMIT : 1, header->device_count, err);
    if (header->call_tables > 1)
        return flight_check_number(name, "call_tables", offsetof(struct flight_header, call_tables),
                                   1, header->call_tables, err);
    if (header->version == FLIGHT_VERSION_WITHOUT_LAUNCHES && header->launch_count)
        return flight_check_number(name, "launch_count",
                                   offsetof(struct flight_header, launch_count), 0,
                                   header->launch_count, err);
    return STATUS_OK;
}

enum status flight_check_header(const void *bytes, uint64_t size, const char *name,
                                struct flight_header *ret_header, struct flight_layout *ret_layout,
                                struct error *err)
{
    struct flight_header header;
    if (size < FLIGHT_HEADER_BYTES)
        return error_set(err, STATUS_BAD_FILE,
                         "%s: byte 0: header: expected %u bytes, found %" PRIu64
                         ": not a flight file, or cut short",
                         name, FLIGHT_HEADER_BYTES, size);
    memcpy(&header, bytes, sizeof(header));
    TRY(check_begin(&header, name, err));
    struct flight_layout layout = flight_layout_of(header.record_count, header.allocation_count,
                                                   header.graph_record_count,
                                                   header.call_tables == 1, header.device_count,
                                                   header.launch_count);
    CHECK_FIELD(&header, name, ring_offset, layout.ring_offset, err);
    CHECK_FIELD(&header, name, file_bytes, layout.file_bytes, err);
    if (size < layout.file_bytes)
        return error_set(err, STATUS_BAD_FILE,
                         "%s: byte %" PRIu64 ": expected %" PRIu64
                         " bytes in all, found the end: the file is cut short",
                         name, size, layout.file_bytes);
    CHECK_FIELD(&header, name, checksum, flight_header_checksum(&header), err);
    *ret_header = header;
    *ret_layout = layout;
    return STATUS_OK;
}
