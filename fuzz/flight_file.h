/* flight_file.h - the header of a small flight file in memory, for fuzzing targets. */
#ifndef GRETA_FUZZ_FLIGHT_FILE_H
#define GRETA_FUZZ_FLIGHT_FILE_H

#include "event/flight_layout.h"

#include <string.h>

/* The file is zero otherwise; the checksum is not set. */
static inline void flight_file_begin(uint8_t *file, const struct flight_layout *layout,
                                     uint32_t record_count, uint32_t allocation_count,
                                     uint32_t graph_record_count, bool call_tables)
{
    struct flight_header *header = (struct flight_header *)file;
    *header = (struct flight_header){ .version = FLIGHT_VERSION,
                                      .header_bytes = FLIGHT_HEADER_BYTES,
                                      .record_bytes = sizeof(struct flight_record),
                                      .event_bytes = sizeof(struct event),
                                      .allocation_bytes = sizeof(struct flight_entry),
                                      .checkpoint_bytes = sizeof(struct flight_checkpoint_slot),
                                      .record_count = record_count,
                                      .allocation_count = allocation_count,
                                      .graph_record_count = graph_record_count,
                                      .call_tables = call_tables ? 1 : 0,
                                      .device_count = 1,
                                      .ring_offset = layout->ring_offset,
                                      .file_bytes = layout->file_bytes };
    memcpy(header->magic, FLIGHT_MAGIC, sizeof(header->magic));
}

#endif
