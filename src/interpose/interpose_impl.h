/* interpose_impl.h - shared by the files of interpose/: the one state of a traced process.
 *
 * Everything here runs inside somebody else's program: bounded memory, no signal handlers, no
 * output, no runtime calls except those of struct interpose_backend. One lock guards all tables; it
 * is never held across a call of the program. */
#ifndef GRETA_INTERPOSE_INTERPOSE_IMPL_H
#define GRETA_INTERPOSE_INTERPOSE_IMPL_H

#include "event/flight.h"
#include "interpose/interpose.h"
#include "interpose/traps.h"

#include <limits.h>
#include <pthread.h>

/* ---- Memory --------------------------------------------------------------------------------- */

/* Memory that the program has or had. A freed block stays until its addresses are allocated again.
 */
struct block {
    uint64_t address, bytes;
    uint64_t created_id, freed_id; /* events; freed_id 0: alive */
    uint32_t index;                /* as events name it */
    uint64_t context;              /* its owner; 0: not known */
    uint8_t memory;                /* enum interpose_memory */
    bool slow;                     /* the host reads it slowly */
    bool parted; /* a kernel received a pointer into its middle, so pointers may stand for parts of
                    the block */
};

/* By ascending address, without overlaps. */
struct blocks {
    struct block *list;
    size_t count, capacity, freed_count;
    uint32_t next_index;
};

/* The block that holds the address, alive or freed; NULL if none is known. */
struct block *block_find(const struct blocks *blocks, uint64_t address);
/* A block that is alive and overlaps the range, or NULL. */
struct block *block_overlapped(const struct blocks *blocks, uint64_t address, uint64_t bytes);
/* Adds a block and drops the freed blocks that it covers; no live block may be there. False without
 * memory. */
bool block_add(struct blocks *blocks, const struct block *block);
void block_free(struct blocks *blocks, struct block *block, uint64_t freed_id);
void block_revive(struct blocks *blocks, struct block *block);
enum event_side block_side(const struct block *block); /* NULL: unknown */
/* True if the host can read there what the device writes: pinned, registered and managed memory. */
bool block_is_shown(const struct block *block);

/* ---- Streams, marks, graphs ----------------------------------------------------------------- */

#define STREAM_TRACKED_LIMIT 1024u
#define MARK_TRACKED_LIMIT 4096u
#define GRAPH_TRACKED_LIMIT 1024u
#define HIDDEN_CAPTURE_LIMIT 64u

struct tracked_stream {
    struct interpose_stream key;
    uint32_t index; /* as events name it */
    bool blocking, legacy, destroyed;
    uint64_t capture_id; /* event of the graph-begin while it is captured; else 0 */
    uint64_t queued;     /* work given so far, as a count */
    uint64_t done;       /* of that work, how much was waited for */
    bool hidden;         /* has order that cannot be seen */
    uint64_t gate; /* the last work that may wait for the host, such as a kernel that reads a flag
                      in host memory; 0: none */
};

/* A runtime's event, as it was last recorded. */
struct tracked_mark {
    uint64_t handle;
    uint64_t capture_id; /* recorded in a capture: gives no order outside of it */
    uint32_t stream;     /* place in the table of streams */
    uint64_t queued;     /* the stream's count then */
};

struct tracked_graph {
    uint64_t handle; /* of a graph or an executable one */
    uint64_t id;     /* event of its graph-begin */
    bool executable, changed;
    bool tells; /* has order that cannot be seen, such as a host function */
    uint16_t replays;
};

/* ---- Queued work with pinned host memory ---------------------------------------------------- */

#define PENDING_LIMIT 256u

/* Samples of a copy's source; also the part of it that is being read. */
#define PENDING_SAMPLE_BYTES 16384u

struct pending_copy {
    uint64_t event_id;
    uint64_t address, bytes;
    uint64_t digest;
    uint32_t stream; /* place in the table of streams */
    uint64_t queued; /* the stream's count, this copy included */
    bool registered; /* the program's memory, not the runtime's */
    bool whole;      /* every byte is compared, not samples */
    bool writes;     /* the device writes there, so the contents change without the host */
    bool shared; /* another stream waits for its stream, so a wait for that one may cover this copy
                  */
    bool reported; /* the host may have learned in an unseen way that the copy is done */
};

/* Copies whose host memory is protected (trapped.c). */
#define TRAPPED_LIMIT 4097u /* one more than there can be traps, so that a trap is refused */
#define TRAPPED_PAGE_BYTES 4096u
struct trapped_copy;

/* ---- Names ---------------------------------------------------------------------------------- */

#define NAME_CACHE 4096u

struct cached_name {
    uint64_t function;
    uint32_t name_index;
    char op[EVENT_OP_BYTES];
};

/* ---- Grid numbers --------------------------------------------------------------------------- */

#define GRID_COUNT_LIMIT 64u

/* The launches of a context; atomic but for the context. */
struct grid_count {
    uint64_t context;
    uint64_t begun, returned; /* returned: with success */
};

/* ---- All of it ------------------------------------------------------------------------------ */

struct interpose {
    const struct interpose_backend *backend;
    struct flight *flight;
    char path[PATH_MAX]; /* of the recording, without ".flight" */
    struct event_observer observer;
    bool disabled; /* a forked child: the recording is its parent's */
    uint32_t process_id;
    uint64_t last_id;                   /* atomic */
    uint64_t launches;                  /* atomic: ordinals given */
    uint64_t narrow_first, narrow_last; /* 0: no rerun */
    uint64_t narrow_waited;             /* atomic: the last of these launches that is known to be
                                           done */
    bool fault_reported;                /* atomic */
    uint64_t other_grids;               /* atomic: numbers that other work may have taken */
    pthread_mutex_t lock;               /* guards all below */
    struct blocks blocks;
    struct tracked_stream *streams;
    size_t stream_count;
    struct tracked_mark *marks;
    size_t mark_count;
    struct tracked_graph *graphs;
    size_t graph_count;
    struct pending_copy pending[PENDING_LIMIT];
    size_t pending_count;
    uint8_t samples[PENDING_SAMPLE_BYTES]; /* of the source that is being compared */
    uint64_t started_ns, compared_bytes;   /* what comparing whole sources has cost (digest.c) */
    struct trapped_copy *trapped;          /* TRAPPED_LIMIT; NULL: there are no page traps */
    size_t trapped_count;
    uint64_t trapped_id; /* the last that was given */
    struct trap_listener listener;
    bool pending_blind; /* a write did not fit: no source is compared until all work is done */
    /* Pointers that the program passed in a way that is not followed: a kernel may have a pointer
     * to host memory in a variable; another process may have memory or events of this one. */
    bool kernels_may_tell, all_may_tell;
    bool copies_may_wait; /* synchronous ones */
    bool unseen_writes;   /* to device memory, as all_may_tell says of other processes */
    bool addresses_told;  /* a copy to the device was marked with EVENT_HAS_ADDRESSES */
    /* Captures with order that cannot be seen, such as a host function: their graphs have it too.
     */
    uint64_t hidden_captures[HIDDEN_CAPTURE_LIMIT];
    size_t hidden_capture_count; /* ever */
    struct cached_name *names;   /* NAME_CACHE, by hash of the function */
    uint64_t lowest, highest;    /* addresses of all blocks ever */
    struct grid_count grid_counts[GRID_COUNT_LIMIT];
    size_t grid_count_count;
};

/* Begins an event: id, time, thread, call stack. Returns false, with the call closed, if nothing is
 * recorded. `site` quickly distinguishes the call sites of a thread. */
bool translate_open(struct interpose *interpose, struct interpose_call *call, enum event_kind kind,
                    const char *name, uint64_t site);
/* The event gets the name of the range that its thread is in. */
void ranges_name(struct event *event);
/* The same without a call stack, for what is no call; usable in a signal handler. */
bool translate_open_without_stack(struct interpose *interpose, struct interpose_call *call,
                                  enum event_kind kind);
/* Writes the event; the runtime may be called now. */
void translate_tell(struct interpose *interpose, struct interpose_call *call);
/* Writes an event with its end at once. */
void translate_tell_done(struct interpose *interpose, struct interpose_call *call);

/* Sets what is wrong with a call, unless something worse was set before. */
void translate_check(struct interpose_call *call, enum event_check check, uint8_t operand,
                     uint64_t expected, uint64_t found);

/* Ends the call and updates the tables for its outcome. Takes the lock. */
void translate_settle(struct interpose *interpose, struct interpose_call *call);

/* launch_facts.c: a launch begins, with its ordinal and graph known; and ends. Without the lock. */
void launch_facts_begin(struct interpose *interpose, struct interpose_call *call,
                        const struct interpose_launch *launch);
void launch_facts_end(struct interpose *interpose, struct interpose_call *call);
/* Any call begins: it may take numbers of grids too. */
void launch_facts_other(struct interpose *interpose, const struct event *event);
void launch_facts_graph(struct interpose *interpose); /* was instantiated */

/* With the lock held: */

/* Finds or adds the stream; NULL if there is no room. stream NULL: the legacy default stream of
 * context 0. A call on a destroyed stream is marked. */
struct tracked_stream *stream_use(struct interpose *interpose, struct interpose_call *call,
                                  const struct interpose_stream *stream);
/* Adds an access to a call, and sets what is wrong with the range: past the end, or freed. Returns
 * the block, or NULL. */
const struct block *translate_access(struct interpose *interpose, struct interpose_call *call,
                                     uint8_t operand, uint8_t mode, uint64_t address,
                                     uint64_t bytes);
/* A copy to the device: marks it if its bytes hold addresses of device memory, so that a kernel may
 * get them from there. source: NULL if it lies in memory that was not seen. */
void addresses_look(struct interpose *interpose, struct interpose_call *call,
                    const struct block *source, uint64_t address, uint64_t bytes);
/* The destruction of a stream has ended. */
void stream_settle(struct interpose *interpose, const struct interpose_call *call);
/* Adds work to a stream, with the waits that follow from default streams. */
void stream_queue(struct interpose *interpose, struct tracked_stream *stream);
/* A copy reads pinned memory of the block: remembers a digest of its contents, unless the device
 * may change them. */
void pending_add(struct interpose *interpose, struct interpose_call *call,
                 const struct block *block, uint64_t address, uint64_t bytes,
                 const struct tracked_stream *stream);
/* True if there is time for a digest of every byte, twice (it counts as taken). */
bool digest_can_be_whole(struct interpose *interpose, const struct block *block, uint64_t bytes);
/* Digest of the copy's source; 0: it cannot be read (readable bytes never give 0). */
uint64_t digest_of(struct interpose *interpose, const struct pending_copy *copy);
/* Queued work of the stream may write host memory there: copies whose source is there are compared
 * for the last time. */
void pending_write(struct interpose *interpose, uint64_t address, uint64_t bytes,
                   const struct tracked_stream *stream);
#define PENDING_EVERYWHERE UINT64_MAX /* bytes from address 0: the place is not known */
/* Another stream waits for this stream's work so far. */
void pending_share(struct interpose *interpose, size_t stream, uint64_t queued);
/* A wait begins: were the sources of the copies it waits for rewritten? A wait has ended: these
 * copies are done. stream: place in the table, SIZE_MAX: all. */
void pending_look(struct interpose *interpose, size_t stream, uint64_t queued);
void pending_done(struct interpose *interpose, size_t stream, uint64_t queued);
/* From here on the host may know, in a way that is not seen, that this work is done: rewriting a
 * source may be correct from now on. */
void pending_tell(struct interpose *interpose, size_t stream, uint64_t queued);
/* The work that was just given to the stream may tell the host that earlier work is done, or may
 * hold the stream back. */
void pending_tell_before(struct interpose *interpose, struct tracked_stream *stream, bool gate);
/* The memory is freed: it must not be read any more. */
void pending_forget(struct interpose *interpose, uint64_t address, uint64_t bytes);
/* Page traps on the host memory that the work just given to the stream uses. The memory is
 * protected when the call has ended. True: if the host looks there for a sign that earlier work is
 * done, that is seen, and wrong. */
bool trapped_watch(struct interpose *interpose, struct interpose_call *call, uint64_t address,
                   uint64_t bytes, bool source, const struct tracked_stream *stream);
/* The same for a kernel that received a pointer there: only what changes after the program read it
 * counts. */
void trapped_watch_kernel(struct interpose *interpose, struct interpose_call *call,
                          uint64_t address, uint64_t bytes, const struct tracked_stream *stream);
void trapped_settle(struct interpose *interpose, struct interpose_call *call);
/* The host may have learned in an unseen way that these copies are done: they are let go. */
void trapped_tell(struct interpose *interpose, size_t stream, uint64_t queued);
/* As pending_done, pending_share and pending_forget. */
void trapped_done(struct interpose *interpose, size_t stream, uint64_t queued);
void trapped_share(struct interpose *interpose, size_t stream, uint64_t queued);
void trapped_forget(struct interpose *interpose, uint64_t address, uint64_t bytes);
/* The program was seen to write what the copy reads. */
bool trapped_was_rewritten(struct interpose *interpose, uint64_t event_id);
/* The runtime may read or write there itself. */
void trapped_open(struct interpose *interpose, uint64_t address, uint64_t bytes);
void graph_settle(struct interpose *interpose, struct interpose_call *call);
struct tracked_graph *graph_find(const struct interpose *interpose, uint64_t handle);
/* The graph's id; makes the graph's event if there is none yet. */
uint64_t graph_take(struct interpose *interpose, uint64_t handle);

/* Without a lock: begins to watch, if the library of page traps is there. */
void trapped_start(struct interpose *interpose);

/* Number of the calling stack in the flight file, or 0. */
uint32_t stack_capture(struct interpose *interpose, uint64_t site);
/* Number of a stack that somebody else unwound. */
uint32_t stack_number(struct interpose *interpose, const uint64_t *frames, size_t count);
/* The flight file is closed: its numbers are void. */
void stack_forget(const struct flight *flight);
/* The short name of a kernel: the function without namespace and arguments. */
void name_shorten(const char *name, char ret_op[EVENT_OP_BYTES]);

#endif
