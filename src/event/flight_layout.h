/* flight_layout.h - the bytes of a flight file; writer and reader share it. Little endian, all
 * integers aligned. docs/recording-format.md says the same in words. */
#ifndef GRETA_EVENT_FLIGHT_LAYOUT_H
#define GRETA_EVENT_FLIGHT_LAYOUT_H

#include "base/mapfile.h"
#include "event/flight.h"

#include <pthread.h>

#define FLIGHT_MAGIC "GRETAFLT"
#define FLIGHT_VERSION 5u
#define FLIGHT_VERSION_WITHOUT_LAUNCHES 4u /* the same but for its table of launches: read as it is */
#define FLIGHT_VERSION_OLDEST 2u /* still read: flight_old.c makes them this version */
#define FLIGHT_HEADER_BYTES 4096u
#define FLIGHT_PAGE 4096u

/* A record that is being written, or was when the process died. */
#define FLIGHT_BUSY UINT64_MAX

/* Fixed at creation; the checksum (low half of XXH3) covers what stands before it. */
struct flight_header {
    char magic[8];
    uint32_t version;
    uint32_t header_bytes, record_bytes, event_bytes, allocation_bytes, checkpoint_bytes;
    uint32_t record_count, allocation_count, graph_record_count;
    uint32_t call_tables;  /* 1: the file has tables of stacks, names and modules; else 0 */
    uint32_t device_count; /* that it has room for: pages of crumbs, entries of devices */
    uint32_t launch_count; /* of the table of launches, which also has graph_record_count entries
                              for those of graphs; 0: there is no such table */
    uint64_t crumb_offset, checkpoint_offset, allocation_offset, graph_offset, ring_offset;
    uint64_t file_bytes;
    uint64_t pid, start_wall_ns, start_clock_ns;
    char device[FLIGHT_TEXT_BYTES];
    char command[FLIGHT_TEXT_BYTES];
    uint64_t checksum;
};

/* After the header, in its page; changes while the process runs. */
struct flight_counters {
    uint64_t closed;
    uint64_t dropped_count;
    uint64_t allocation_used; /* entries of the table ever used */
    uint64_t graph_used;
    /* For a foreign program. */
    uint64_t stack_used, name_used, module_used;
    uint64_t observed_ns; /* spent in observing its calls */
    uint64_t observed_count;
    uint64_t
        first_kept_id; /* of a packed recording: events before it were left out; 0: none were */
};
#define FLIGHT_COUNTERS_OFFSET 2048u

/* Device number i is the i-th, after the counters. A checksum of 0: none was opened. */
struct flight_device_entry {
    struct flight_device device;
    uint64_t checksum;
};
#define FLIGHT_DEVICES_OFFSET 2304u
_Static_assert(FLIGHT_COUNTERS_OFFSET + sizeof(struct flight_counters) <= FLIGHT_DEVICES_OFFSET &&
                   FLIGHT_DEVICES_OFFSET +
                           FLIGHT_DEVICE_LIMIT * sizeof(struct flight_device_entry) <=
                       FLIGHT_HEADER_BYTES,
               "they share the header's page");

/* The event's id comes last: it is 0 where nothing was written, and FLIGHT_BUSY meanwhile. The
 * checksums are of the event with its id. */
struct flight_record {
    struct event event;
    uint32_t begin_checksum; /* of the event up to end_ns */
    uint32_t end_checksum;   /* of the event from end_ns, 0 if the end was not seen */
};
_Static_assert(sizeof(struct flight_record) == 512, "eight cache lines");

struct flight_entry {
    struct flight_allocation allocation;
    uint64_t checksum; /* 0: the entry is not used */
};

/* Where calls of a foreign program come from; in tables that only grow. A checksum of 0: not
 * written yet. */
struct flight_stack {
    uint32_t count, unused;
    uint64_t frames[FLIGHT_STACK_FRAMES]; /* return addresses, the innermost first */
    uint64_t checksum;
};
struct flight_name {
    char text[FLIGHT_NAME_BYTES];
    uint64_t checksum;
};
struct flight_module_entry {
    struct flight_module module;
    uint64_t checksum;
};
/* Written once, and once more when the call has ended. */
struct flight_launch_entry {
    struct flight_launch launch;
    uint64_t checksum;
};
_Static_assert(sizeof(struct flight_launch_entry) == 128, "two cache lines");
#define FLIGHT_STACK_COUNT 8192u
#define FLIGHT_NAME_COUNT 4096u
#define FLIGHT_MODULE_COUNT 1024u

/* Two of them, written in turn. */
struct flight_checkpoint_slot {
    uint64_t sequence; /* the larger is the newer; 0: never written */
    uint64_t analysed_id;
    uint64_t count;
    uint64_t checksum; /* of the three above and the bytes */
    uint8_t bytes[FLIGHT_CHECKPOINT_BYTES];
};

/* Offsets and sizes of all areas follow from the counts and whether there are call tables. */
struct flight_layout {
    uint64_t crumb_offset, checkpoint_offset, allocation_offset, graph_offset;
    uint64_t stack_offset, name_offset, module_offset; /* empty areas without call tables */
    uint64_t launch_offset;                            /* an empty area without that table */
    uint64_t ring_offset;
    uint64_t file_bytes;
};
struct flight_layout flight_layout_of(uint32_t record_count, uint32_t allocation_count,
                                      uint32_t graph_record_count, bool call_tables,
                                      uint32_t device_count, uint32_t launch_count);

/* A header of the current version: magic, sizes and offsets. Counts, process, times, names and the
 * checksum are the caller's to fill. */
struct flight_header flight_header_of(const struct flight_layout *layout);

/* The writer: file, and what stands where in it. */
struct flight {
    uint8_t *data; /* the mapping */
    uint64_t size;
    uint32_t record_count, allocation_count,
        graph_record_count; /* of this process, not the file's: see flight_attach */
    uint32_t device_count, launch_count;
    uint64_t last_id; /* of all devices that take their ids here */
    bool call_tables, attached;
    struct flight_counters *counters;
    struct flight_device_entry *devices;
    struct crumb_page *crumbs; /* a page for each device */
    struct flight_record *ring;
    struct flight_record *graph_records;
    struct flight_entry *entries;
    struct flight_checkpoint_slot *checkpoints;
    struct flight_stack *stacks;
    struct flight_name *names;
    struct flight_module_entry *modules;
    struct flight_launch_entry *launches;
    uint32_t graph_launches; /* atomic: places of graphs that were given */
    pthread_mutex_t lock; /* guards the tables, checkpoints and their counters */
    uint64_t checkpoint_sequence;
};
/* Sets the pointers into the mapping. */
void flight_place_areas(struct flight *flight, const struct flight_layout *layout);

/* The file's header, if it is one that this greta can read; *ret_layout: where its areas are. */
MUST_CHECK enum status flight_check_header(const void *bytes, uint64_t size, const char *name,
                                           struct flight_header *ret_header,
                                           struct flight_layout *ret_layout, struct error *err);

/* A file of an earlier version that flight_convert_old can read? */
bool flight_is_old(const void *bytes, uint64_t size);
/* *ret_bytes: a file of this version with the same content; free it. */
MUST_CHECK enum status flight_convert_old(const void *bytes, uint64_t size, const char *name,
                                          uint8_t **ret_bytes, uint64_t *ret_size,
                                          struct error *err);
MUST_CHECK enum status flight_check_number(const char *name, const char *field, uint64_t offset,
                                           uint64_t expected, uint64_t found, struct error *err);

/* Takes the map or the bytes; they are released with the reader, and also on failure. */
MUST_CHECK enum status flight_open_mapped(struct mapfile *map, const char *name,
                                          struct flight_reader **ret_reader, struct error *err);
MUST_CHECK enum status flight_open_owned(uint8_t *bytes, uint64_t size, const char *name,
                                         struct flight_reader **ret_reader, struct error *err);

/* Copies a record's event if it is whole, has that id and means something. */
bool flight_record_load(const struct flight_record *source, uint64_t id, struct event *ret);

uint64_t flight_header_checksum(const struct flight_header *header);
uint32_t flight_begin_checksum(const struct event *event);
uint32_t flight_end_checksum(const struct event *event);
uint64_t flight_entry_checksum(const struct flight_allocation *allocation);
uint64_t flight_table_checksum(const void *bytes, size_t count);
uint32_t flight_short_checksum(const void *bytes, size_t count);
uint64_t flight_checkpoint_checksum(const struct flight_checkpoint_slot *slot);

#endif
