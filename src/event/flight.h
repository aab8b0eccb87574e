/* flight.h - the flight file: events on disk before the fault.
 *
 * The file is allocated in full when it is created and mapped shared, so what was written is there
 * however the process ends (abort, kill -9; not a power cut). Layout: docs/recording-format.md.
 *
 * Writing takes no lock: an event's id says which record of the ring is its own. If two events a
 * whole ring apart meet in one record, the later one is dropped and counted. Buffers and graphs are
 * kept in tables of their own, since the ring forgets; these few events take a lock. */
#ifndef GRETA_EVENT_FLIGHT_H
#define GRETA_EVENT_FLIGHT_H

#include "base/status.h"
#include "event/crumb.h"
#include "event/event.h"

/* ---- Writing -------------------------------------------------------------------------------- */

struct flight;

#define FLIGHT_TEXT_BYTES 256
#define FLIGHT_DEVICE_LIMIT EVENT_DEVICE_LIMIT
#define FLIGHT_CHECKPOINT_BYTES 65536

struct flight_options {
    uint32_t record_count;       /* of the ring; 0: 65,536 (32 MiB) */
    uint32_t allocation_count;   /* of the table of buffers; 0: 8,192 */
    uint32_t graph_record_count; /* launches recorded in graphs; 0: 4,096 */
    uint32_t device_count;       /* that may report to it; 0: 1, at most FLIGHT_DEVICE_LIMIT */
    const char *device;          /* name, for the header */
    const char *command;         /* what was run, for the header */
    bool keeps_old;   /* a file under this name is refused (STATUS_EXISTS), never replaced */
    bool call_tables; /* of a foreign program: room for stacks, names and modules (5 MiB) */
    uint32_t launch_count; /* newest launches whose shape and arguments are kept; besides them those
                              of graphs, as many as graph records. 0: no such table */
};

/* Replaces an older flight file, unless keeps_old, and no other file. Fails, and leaves no file,
 * where the disk has no room for all of it. */
MUST_CHECK enum status flight_create(const char *path, const struct flight_options *options,
                                     struct flight **ret_flight, struct error *err);
/* Marks the file as closed in order. NULL is fine. */
void flight_close(struct flight *flight);
/* Marks it closed and leaves everything in place: for a process whose threads may still write. */
void flight_mark_closed(struct flight *flight);

/* Give this to the device; lives as long as the flight. */
struct event_observer flight_observer(struct flight *flight);
/* In the file, for the first device to use; lives as long as the flight. */
struct crumb_page *flight_crumbs(struct flight *flight);
/* The same for one of several devices; device_index below the options' device_count. */
struct crumb_page *flight_device_crumbs(struct flight *flight, uint32_t device_index);
uint32_t flight_device_count(const struct flight *flight);
/* Where devices that report to one flight take the ids of their events from; lives as long as the
 * flight. */
uint64_t *flight_event_ids(struct flight *flight);

/* Keeps the analyzer's state: events up to analysed_id need not stay in the ring. At most
 * FLIGHT_CHECKPOINT_BYTES. A process that dies in the call leaves the checkpoint before. */
void flight_checkpoint(struct flight *flight, uint64_t analysed_id, const void *bytes,
                       size_t count);

/* An existing file that another process writes: for flight_peek, flight_crumbs and
 * flight_checkpoint while it does. flight_close lets go of it and does not mark it closed. */
MUST_CHECK enum status flight_attach(const char *path, struct flight **ret_flight,
                                     struct error *err);

bool flight_is_attached(const struct flight *flight);

enum flight_state {
    FLIGHT_ABSENT, /* not written yet, or being written */
    FLIGHT_OPEN,   /* a call that has begun and not ended */
    FLIGHT_WHOLE,
    FLIGHT_GONE /* a later event took its place */
};

/* The event with that id as it stands now, for a thread that follows the writers: takes no lock and
 * never holds one up. Fills *ret_event for FLIGHT_OPEN and FLIGHT_WHOLE. */
enum flight_state flight_peek(const struct flight *flight, uint64_t id, struct event *ret_event);
/* Makes the pages of the next `count` events from id on ready to be written. The thread that
 * follows the writers calls it, so that none of them waits for a page. */
void flight_prepare(const struct flight *flight, uint64_t id, uint32_t count);
/* Events the ring holds. */
uint32_t flight_record_count(const struct flight *flight);

/* ---- Where foreign calls come from ---------------------------------------------------------- */

#define FLIGHT_STACK_FRAMES 30
#define FLIGHT_NAME_BYTES 504
#define FLIGHT_PATH_BYTES 224

/* A file that is mapped as code. */
struct flight_module {
    uint64_t start, end; /* addresses of its code */
    uint64_t bias;       /* address minus the address in the file's symbol tables */
    char path[FLIGHT_PATH_BYTES];
};

/* Each returns a number for struct event, or 0 where there is no room; takes a lock. The same twice
 * gives two numbers: the caller remembers what it added. */
uint32_t flight_add_stack(struct flight *flight, const uint64_t *frames, size_t count);
uint32_t flight_add_name(struct flight *flight, const char *text);
void flight_add_module(struct flight *flight, const struct flight_module *module);
/* Adds the time spent observing that many calls. */
void flight_add_cost(struct flight *flight, uint64_t ns, uint64_t count);

/* ---- Launches of foreign programs ----------------------------------------------------------- */

#define FLIGHT_RANGE_LIMIT 12u
#define FLIGHT_RANGES_UNKNOWN UINT32_MAX

/* What tells a launch from others of its kernel, to be compared with what the hardware says. */
struct flight_launch {
    uint64_t event_id;
    uint64_t context; /* any number that identifies it; 0: not known */
    /* The driver numbers the grids of a context from 1. Other work may take numbers too, so this
     * launch has one from least to most, both included. 0: nothing is known; most UINT64_MAX: no
     * bound. */
    uint64_t number_least, number_most;
    uint32_t grid[3], block[3];
    uint64_t argument_hash; /* of the bytes of all ranges, in order */
    uint32_t range_count;   /* FLIGHT_RANGES_UNKNOWN: the arguments are not known */
    uint32_t argument_bytes;
    struct flight_range {
        uint16_t offset, bytes;
    } ranges[FLIGHT_RANGE_LIMIT]; /* the arguments without the gaps between them, ascending */
};

/* The place for the launch's facts in the table, or 0 where there is none. ordinal: of the process;
 * a newer launch takes the place of an old one. in_graph: recorded, not run; these keep theirs. */
uint32_t flight_launch_place(struct flight *flight, uint64_t ordinal, bool in_graph);
/* Writes them there, or writes them once more. Takes no lock. */
void flight_set_launch(struct flight *flight, uint32_t place, const struct flight_launch *launch);

/* Bytes one after the other, hashed as one; however they are cut the hash is the same. */
#define FLIGHT_PIECE_LIMIT 96u
struct flight_piece {
    const void *bytes;
    size_t count;
};
uint64_t flight_hash_pieces(const struct flight_piece *pieces, size_t count);

/* ---- Keeping -------------------------------------------------------------------------------- */

/* What a packed recording's name ends in. */
#define FLIGHT_PACKED_SUFFIX ".zst"
/* How many events are kept of a recording in which nothing was found: a few iterations to look at.
 */
#define FLIGHT_CLEAN_EVENTS 8192u

/* Writes the recording to packed_path as a zstd frame, which flight_open reads like the original.
 * keep_events: keeps only that many of the newest events if the recording ended in order and all
 * earlier ones were analysed; 0: keeps all. Replaces packed_path, leaves path. STATUS_LIMIT for a
 * recording that is too large to be read back. */
MUST_CHECK enum status flight_pack(const char *path, const char *packed_path, uint64_t keep_events,
                                   struct error *err);

/* ---- Reading -------------------------------------------------------------------------------- */

struct flight_reader;

struct flight_info {
    uint32_t version;      /* as it was written */
    uint32_t device_count; /* that it has room for */
    uint64_t pid;
    uint64_t start_wall_ns; /* since 1970; the event clock read start_clock_ns then */
    uint64_t start_clock_ns;
    bool closed; /* in order; else the process died or still runs */
    char device[FLIGHT_TEXT_BYTES];
    char command[FLIGHT_TEXT_BYTES];
    uint64_t first_id, last_id; /* of the ring; 0 and 0 if it is empty */
    uint64_t analysed_id;       /* of the last checkpoint */
    uint64_t lost_count;        /* overwritten before they were analysed */
    uint64_t dropped_count;     /* dropped because two met in one record, or did not fit a table */
    uint64_t left_out_count;    /* analysed, and not kept when the recording was packed */
    uint64_t damaged_count;     /* torn by the end of the process, or damaged since */
    bool foreign;               /* has tables of stacks, names and modules */
    uint64_t observed_ns, observed_count;
};

/* A device that reported to the file. */
struct flight_device {
    uint64_t opened_id; /* event */
    char kind[EVENT_OP_BYTES];
    char name[EVENT_TENSOR_BYTES];
};

struct flight_allocation {
    uint64_t address, bytes;
    uint64_t created_id, destroyed_id; /* 0: alive */
    uint32_t buffer_index;
    uint16_t generation, device_index;
    char name[EVENT_TENSOR_BYTES];
};

/* Compressed with flight_pack or zstd, or not. */
MUST_CHECK enum status flight_open(const char *path, struct flight_reader **ret_reader,
                                   struct error *err);
/* For tests and fuzzing; bytes are borrowed. */
MUST_CHECK enum status flight_open_memory(const void *bytes, uint64_t size, const char *name,
                                          struct flight_reader **ret_reader, struct error *err);
void flight_reader_close(struct flight_reader *reader); /* NULL is fine */

const struct flight_info *flight_info(const struct flight_reader *reader);
/* The page as the process left it; borrowed. */
const struct crumb_page *flight_reader_crumbs(const struct flight_reader *reader);
/* The same of one of several devices; NULL if the file has no room for it. */
const struct crumb_page *flight_reader_device_crumbs(const struct flight_reader *reader,
                                                     uint32_t device_index);
/* False if no such device was opened. */
bool flight_device_at(const struct flight_reader *reader, uint32_t device_index,
                      struct flight_device *ret_device);

/* The first event with an id of at least *id, in order; sets *id to the one after. False at the
 * end. Every text of the event ends, every enum is in range. */
bool flight_next(const struct flight_reader *reader, uint64_t *id, struct event *ret_event);

size_t flight_allocation_count(const struct flight_reader *reader);
const struct flight_allocation *flight_allocation_at(const struct flight_reader *reader,
                                                     size_t index);
/* Launches, fills and copies of graph templates, in the order they were recorded (their event's
 * object: the graph-begin). False past the end, and for one that is damaged. */
size_t flight_graph_launch_count(const struct flight_reader *reader);
bool flight_graph_launch(const struct flight_reader *reader, size_t index, struct event *ret_event);

/* By their number in an event; false, or NULL, if there is none. The name is borrowed. */
bool flight_stack(const struct flight_reader *reader, uint32_t number,
                  uint64_t ret_frames[FLIGHT_STACK_FRAMES], size_t *ret_count);
bool flight_name(const struct flight_reader *reader, uint32_t number,
                 char ret_text[FLIGHT_NAME_BYTES]);
/* By launch.facts_index of the event with that id. False if there are none, or if a newer launch
 * has taken their place. */
bool flight_launch_at(const struct flight_reader *reader, uint32_t place, uint64_t event_id,
                      struct flight_launch *ret_launch);
/* From 0; false past the end. One that is damaged has an empty path. */
bool flight_module_at(const struct flight_reader *reader, size_t index,
                      struct flight_module *ret_module);

/* The newest whole checkpoint, borrowed; false if there is none. */
bool flight_last_checkpoint(const struct flight_reader *reader, const void **ret_bytes,
                            size_t *ret_count);

#endif
