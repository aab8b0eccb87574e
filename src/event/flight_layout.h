/* flight_layout.h - the bytes of a flight file; writer and reader share it. Little endian, all
 * integers aligned. docs/recording-format.md says the same in words. */
#ifndef GRETA_EVENT_FLIGHT_LAYOUT_H
#define GRETA_EVENT_FLIGHT_LAYOUT_H

#include "event/flight.h"

#define FLIGHT_MAGIC "GRETAFLT"
#define FLIGHT_VERSION 1u
#define FLIGHT_HEADER_BYTES 4096u
#define FLIGHT_PAGE 4096u

/* A record that is being written, or was when the process died. */
#define FLIGHT_BUSY UINT64_MAX

/* Fixed at creation; the checksum (low half of XXH3) covers what stands before it. */
struct flight_header {
    char magic[8];
    uint32_t version;
    uint32_t header_bytes, record_bytes, event_bytes, allocation_bytes, checkpoint_bytes;
    uint32_t record_count, allocation_count, graph_record_count, unused;
    uint64_t crumb_offset, checkpoint_offset, allocation_offset, graph_offset, ring_offset;
    uint64_t file_bytes;
    uint64_t pid, start_wall_ns, start_clock_ns;
    char device[FLIGHT_TEXT_BYTES];
    char command[FLIGHT_TEXT_BYTES];
    uint64_t checksum;
};

/* Behind the header, in its page; changes while the process runs. */
struct flight_counters {
    uint64_t closed;
    uint64_t dropped_count;
    uint64_t allocation_used; /* entries of the table ever used */
    uint64_t graph_used;
};
#define FLIGHT_COUNTERS_OFFSET 2048u

/* The state is the event's id, 0 (never used) or FLIGHT_BUSY. */
struct flight_record {
    uint64_t state;
    uint32_t begin_checksum; /* of the event up to end_ns */
    uint32_t end_checksum;   /* of the event from end_ns, 0 if the end was not seen */
    struct event event;
    uint8_t unused[8];
};
_Static_assert(sizeof(struct flight_record) == 512, "eight cache lines");

struct flight_entry {
    struct flight_allocation allocation;
    uint64_t checksum; /* 0: the entry is not used */
};

/* Two of them, written in turn. */
struct flight_checkpoint_slot {
    uint64_t sequence; /* the larger is the newer; 0: never written */
    uint64_t analysed_id;
    uint64_t count;
    uint64_t checksum; /* of the three above and the bytes */
    uint8_t bytes[FLIGHT_CHECKPOINT_BYTES];
};

/* Offsets and sizes of all areas follow from the three counts. */
struct flight_plan {
    uint64_t crumb_offset, checkpoint_offset, allocation_offset, graph_offset, ring_offset;
    uint64_t file_bytes;
};
struct flight_plan flight_plan_of(uint32_t record_count, uint32_t allocation_count,
                                  uint32_t graph_record_count);

/* Copies a record's event if it is whole, has that id and means something. */
bool flight_record_load(const struct flight_record *source, uint64_t id, struct event *ret);

uint64_t flight_header_checksum(const struct flight_header *header);
uint32_t flight_begin_checksum(const struct event *event);
uint32_t flight_end_checksum(const struct event *event);
uint64_t flight_entry_checksum(const struct flight_allocation *allocation);
uint64_t flight_checkpoint_checksum(const struct flight_checkpoint_slot *slot);

#endif
