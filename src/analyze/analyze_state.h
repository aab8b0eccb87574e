/* analyze_state.h - what the analysis knows at a point of the stream of events: of memory, of the
 * recent past, and of what happened before what (of graphs: graphs.h).
 *
 * Everything here is bounded whatever the events say. What does not fit is counted, and the counts
 * keep a verdict from claiming more than was looked at. One thread at a time. */
#ifndef GRETA_ANALYZE_ANALYZE_STATE_H
#define GRETA_ANALYZE_ANALYZE_STATE_H

#include "analyze/analyze.h"
#include "analyze/graphs.h"
#include "analyze/idmap.h"
#include "analyze/vclock.h"

/* ---- Work ----------------------------------------------------------------------------------- */

/* A launch, copy or fill that a stream does: a call, or one node of a graph's replay. */
struct work {
    const struct event *event;  /* the call; of a replay: the recorded one */
    const struct event *replay; /* NULL outside graphs */
    uint32_t node;              /* from 1; 0 outside */
    uint32_t stream;            /* its place: see order_place */
    uint64_t tick;
    const struct vclock *clock; /* what happened before it, and itself */
};

/* The call that touched a byte, small enough to keep for each range. stream TOUCH_NONE: no call, or
 * none that matters. */
struct touch {
    uint64_t event_id; /* of the call or the replay */
    uint64_t tick;
    uint32_t node;
    uint8_t stream /* its place */, kind, operand, mode;
};
#define TOUCH_NONE 255u

/* ---- Memory --------------------------------------------------------------------------------- */

#define SHADOW_READER_LIMIT 3u

/* Bytes [start, end) of a buffer that were all last touched by the same work. */
struct shadow_interval {
    uint64_t start, end;
    struct touch write;
    struct touch reads[SHADOW_READER_LIMIT]; /* since that write: the last read of each stream */
    uint8_t read_count;
    bool written; /* it was written, or that is not known */
};

/* Intervals in order, without gaps: they cover the buffer. */
struct shadow {
    struct shadow_interval *intervals;
    uint32_t count, capacity;
};

#define LEDGER_LIVE_LIMIT 32768u
#define LEDGER_FREED_LIMIT 1024u

struct ledger_entry {
    uint64_t address, bytes;
    uint64_t created_id, destroyed_id; /* 0: alive */
    uint32_t buffer_index;             /* of its device */
    uint16_t generation, device_index;
    bool content_unknown; /* made before the first event that is known, or events were lost since;
                             of a foreign program: something unseen may have written there */
    uint64_t unseen_known, unsure_known; /* order.unseen_writers and unsure_writers then */
    bool may_be_told;       /* a kernel that the host may tell of it was running when it was made */
    uint64_t losses_known;  /* ledger.losses when the shadow was last updated */
    uint32_t stack_index;   /* of a foreign program: who made it */
    uint32_t stack_ordinal; /* which of the allocations of that stack, from 1; 0: not known */
    uint64_t used_id;       /* of the last work with it; 0: none */
    uint64_t launches;      /* launches before it was created */
    bool foreign;
    char name[EVENT_TENSOR_BYTES];
    struct shadow shadow;
};

struct ledger {
    struct ledger_entry *live; /* places; bytes 0: free */
    uint32_t *free_places;     /* stack of places below `used` that are free */
    size_t live_capacity, free_capacity;
    uint32_t free_count, used;
    struct idmap by_index;      /* and device */
    struct ledger_entry *freed; /* ring of LEDGER_FREED_LIMIT */
    uint64_t freed_count;       /* ever */
    uint64_t forgotten;         /* buffers there was no room for */
    uint64_t losses;            /* times that events were lost: anything may have been written */
};

bool ledger_init(struct ledger *ledger);
void ledger_release(struct ledger *ledger);
/* NULL if there is no room; borrowed until the next is added. A living buffer of the same index
 * counts as destroyed. */
struct ledger_entry *ledger_add(struct ledger *ledger, const struct ledger_entry *entry);
/* Moves it to the freed ones; shadow is released. NULL if it is not known. */
const struct ledger_entry *ledger_remove(struct ledger *ledger, uint16_t device_index,
                                         uint32_t buffer_index, uint64_t destroyed_id);
/* A buffer that was destroyed before anything else is known. */
void ledger_add_freed(struct ledger *ledger, const struct ledger_entry *entry);
/* The living one, or NULL. */
struct ledger_entry *ledger_find(const struct ledger *ledger, uint16_t device_index,
                                 uint32_t buffer_index);
/* The buffer with that generation, alive or recently freed. */
const struct ledger_entry *ledger_find_generation(const struct ledger *ledger,
                                                  uint16_t device_index, uint32_t buffer_index,
                                                  uint16_t generation);
/* What memory of the device there is around the address. */
void ledger_neighbourhood(const struct ledger *ledger, uint16_t device_index, uint64_t address,
                          struct analyze_neighbourhood *ret);

/* ---- The recent past ------------------------------------------------------------------------ */

/* Traps, scans and errors name earlier calls, so the last of them are kept. */
#define HISTORY_LIMIT 8192u

struct history_entry {
    struct event event;
    uint64_t iteration;
    bool scanned, scanned_bad; /* its outputs were looked at; some were not finite */
    uint16_t scanned_operands; /* which of them: bit for each */
    /* For a launch whose operands are hashed (op_hashes.c). */
    uint64_t op_key;                       /* 0: not known yet */
    uint16_t inputs_hashed, inputs_differ; /* bit for each operand */
    uint32_t run_launch;                   /* which launch of its run, from 1 */
    bool outputs_agree, outputs_differ;    /* with those of an earlier equal run, as far as known */
    /* Ticks of the work in its stream; a replay has one for each of its nodes. 0: not known. */
    uint64_t first_tick, last_tick;
};

struct history {
    struct history_entry *entries; /* ring of HISTORY_LIMIT, by ascending id */
    uint64_t count;                /* ever */
    /* By place in the ring: what had ended when the work began or the buffer was created, its own
     * stream excepted. NULL below level guard, where it is not needed. */
    struct vclock *clocks;
};

void history_add(struct history *history, const struct event *event, uint64_t iteration);
/* Gives the call that was added last, if it has that id, a tick of its stream (a replay gets one
 * for each node). 0: it is no work. */
void history_stamp(struct history *history, uint64_t event_id, uint64_t tick,
                   const struct vclock *clock);
struct history_entry *history_find(const struct history *history, uint64_t event_id);
/* Position of the first entry with an id of at least event_id; from history_first to count. */
uint64_t history_first(const struct history *history);
uint64_t history_lower(const struct history *history, uint64_t event_id);
struct history_entry *history_at(const struct history *history, uint64_t position);

/* ---- Order ---------------------------------------------------------------------------------- */

#define THREAD_LIMIT 64u
#define MARK_LIMIT 4096u
#define TICKET_LIMIT 1024u

struct stream_state {
    bool known; /* this place is the stream's */
    uint16_t device_index;
    uint32_t stream_index; /* of its device */
    bool used;
    struct vclock clock;
    uint64_t capture_id; /* of graph-begin while one is recorded; else 0 */
    uint32_t joined_thread;
    uint64_t joined_serial; /* of that thread's syncs, already in the clock */
    uint64_t last_id;       /* of the work given last */
    uint64_t waits_mark;    /* the mark it waited for last, plus 1; 0: none since its last work */
    uint64_t waited_id;     /* last work that was waited for */
    uint64_t completed_id;  /* last work that the device reported as done, before any fault */
    bool legacy, blocking;  /* of a foreign program: streams that wait for one another */
    bool hidden;            /* the program orders work through it in a way that is not seen */
    uint64_t gate_tick;     /* of its last kernel that the host may hold back; 0: none */
};

struct thread_state {
    bool used;
    struct vclock clock;    /* what it waited for */
    struct vclock previous; /* the clock before its last wait, which may still be going on */
    uint64_t ended_ns;      /* of its last wait */
    uint64_t serial;        /* changes with the clock */
    uint64_t seen_serial;   /* order.sync_serial when it last looked */
    uint64_t last_id;       /* of the call it made last */
};

struct mark_state {
    uint64_t object; /* of its device */
    uint16_t device_index;
    uint64_t record_id; /* event; 0: never recorded */
    uint32_t stream;    /* its place */
    uint64_t last_id;   /* of the stream's work then */
    struct vclock clock;
};

/* FILLING: used by a copy in, until its completion is reported or until some moment that is not
 * recorded. */
enum ticket_use { TICKET_FREE, TICKET_LANDING, TICKET_HELD, TICKET_FILLING };

struct ticket_state {
    uint32_t ticket; /* of its device */
    uint16_t device_index;
    enum ticket_use use;
    uint16_t generation;
    uint64_t copy_id;
    uint64_t host_address, bytes;
    uint32_t stream; /* its place */
    uint64_t tick;
    struct vclock clock;
};

struct order {
    struct stream_state streams[VCLOCK_STREAM_LIMIT];        /* by place */
    uint8_t places[EVENT_DEVICE_LIMIT][VCLOCK_STREAM_LIMIT]; /* plus 1; 0: none yet */
    struct thread_state threads[THREAD_LIMIT];
    struct mark_state *marks;
    struct idmap mark_map;
    struct ticket_state *tickets;
    struct idmap ticket_map;
    uint32_t mark_count, ticket_count;
    bool completions;     /* completions are reported: one was seen */
    uint64_t sync_serial; /* of all threads' waits */
    /* Work that the host of a foreign program may know to be done in a way that is not seen. What
     * rests on its not being done is only possible. */
    struct vclock maybe_known;
    /* Every later call is ordered after `floor`: the waits that ended well before now. */
    struct vclock floor, filling, waiting;
    uint64_t filling_ns, waiting_ns; /* end of the last wait in each; 0: empty */
    uint64_t interval_count;         /* of all shadows */
    uint64_t interval_limit;
    uint64_t launch_count;
    uint64_t replay_budget; /* launches of replays that may still be followed */
    /* Foreign programs: work so far that may have written anywhere, because it may have got
     * addresses that were not seen; and work that may have got them from a copy of which only the
     * beginning was looked at. */
    uint64_t unseen_writers, unsure_writers;
    bool has_addresses, has_unlooked; /* such copies were made */
    uint64_t forgotten_accesses; /* not compared with earlier ones, or not kept for later ones */
};

bool order_init(struct order *order);
void order_release(struct order *order);

struct analyzer;

/* Takes an event into the clocks and shadows; passes work and conflicts to the hypotheses. */
void order_event(struct analyzer *analyzer, const struct event *event);
/* Events were lost here. */
void order_forget(struct order *order);
struct ticket_state *order_ticket(const struct order *order, uint16_t device_index,
                                  uint32_t ticket);
/* The thread's wait is over: it is after what the clock covers. */
void order_thread_waited(struct order *order, struct thread_state *thread,
                         const struct vclock *clock, uint64_t end_ns);
/* A copy took a slot; its ticket was redeemed or released; it is done. */
void order_ticket_start(struct order *order, const struct event *event);
void order_ticket_end(struct order *order, const struct event *event, struct thread_state *thread);
void order_copy_completed(struct analyzer *analyzer, const struct event *event);
/* The host waits for a stream, or for all of them. */
void order_sync(struct order *order, const struct event *event, struct thread_state *thread);
void order_wait_for_all(struct order *order, struct thread_state *thread, uint64_t end_ns);

/* Places (order_places.c).
 *
 * Streams of all devices share one list, and a stream's place in it is its place in every clock.
 * With a single device, a stream's place is its index. */
#define NO_STREAM_PLACE VCLOCK_STREAM_LIMIT
/* NO_STREAM_PLACE if it has none. */
uint32_t order_place(const struct order *order, uint16_t device_index, uint32_t stream_index);
uint32_t order_place_of(const struct order *order, const struct event *event);
/* Gives it a place if need be; none where there is no room. */
void order_take_place(struct order *order, uint16_t device_index, uint32_t stream_index);
/* NULL where there is none. */
struct stream_state *order_stream_at(const struct order *order, uint32_t place);
struct stream_state *order_stream(const struct order *order, const struct event *event);
struct thread_state *order_thread(struct order *order, uint32_t thread_index);
/* NULL if it was never recorded. */
struct mark_state *order_mark(const struct order *order, uint16_t device_index, uint64_t object);
/* The mark, made if need be: in a new place, or in that of the oldest one. */
struct mark_state *order_take_mark(struct order *order, uint16_t device_index, uint64_t object);

/* Work (order_work.c): a copy, fill or launch that did not fail, and the replay of a graph. */
void order_work(struct analyzer *analyzer, const struct event *event);
void order_replay(struct analyzer *analyzer, const struct event *event);
/* From now on the host of a foreign program may know that all work the clock covers is done. */
void order_tell(struct order *order, const struct vclock *clock);
/* True if the stream's work up to `tick` comes after a kernel of a foreign program that the host
 * may hold back, and that is not known to be done. clock: what the host waited for. */
bool order_held_back(const struct order *order, uint32_t place, uint64_t tick,
                     const struct vclock *clock);
/* In a foreign program work of a legacy default stream comes after the work that blocking streams
 * were given before, and their later work comes after it. flags: of the event. */
void order_join_default_streams(struct order *order, struct stream_state *stream, uint32_t flags);

/* What memory of foreign programs holds (contents.c). */
void contents_note(struct order *order, const struct event *event);
/* Memory is made: a kernel that reads host memory may still run, and may be given the address. */
bool contents_may_be_told(const struct order *order, const struct thread_state *thread);
/* The work gets at the memory: what may have been written there, unseen or by a kernel? */
void contents_update(const struct order *order, struct ledger_entry *entry,
                     const struct event *event, const struct event_access *access);

/* Memory (order_buffers.c). */
void order_buffer_create(struct analyzer *analyzer, const struct event *event);
void order_buffer_destroy(struct analyzer *analyzer, const struct event *event,
                          struct thread_state *thread);

enum conflict_kind {
    CONFLICT_UNORDERED, /* two calls touch a byte without order, at least one writes */
    CONFLICT_FREED,     /* work not done when its buffer is destroyed */
    CONFLICT_UNWRITTEN, /* read before it was written */
    CONFLICT_ABANDONED, /* a stream is destroyed while no one has waited for its work; entry NULL */
};

struct conflict {
    enum conflict_kind kind;
    const struct work *work;           /* the later one; NULL for CONFLICT_FREED */
    const struct event *event;         /* of the later one; the destroy for CONFLICT_FREED */
    struct touch earlier;              /* not for CONFLICT_UNWRITTEN */
    const struct event_access *access; /* of the later one */
    const struct ledger_entry *entry;
    uint64_t start, bytes; /* the range, as addresses */
};

/* One access of the work: its read, or with `writes` its write. First come all reads of a launch,
 * then its writes. */
void shadow_access(struct analyzer *analyzer, const struct work *work,
                   const struct event_access *access, struct ledger_entry *entry, bool writes);
/* True if the copy the slot was last used for is not known to be over, or its bytes are held. */
bool order_slot_busy(const struct order *order, const struct ticket_state *ticket,
                     const struct event *event);
/* The buffer is destroyed: reports a conflict for each use of it that is not known to be done. */
void shadow_destroy_check(struct analyzer *analyzer, const struct event *event,
                          const struct vclock *clock, const struct ledger_entry *entry);
bool shadow_init(struct shadow *shadow, uint64_t bytes, bool written);
/* Anything may have been written there. */
void shadow_fill(struct shadow *shadow);
/* Events were lost: anything may have been written, and no touch can collide with what comes later
 * (order_forget). */
void shadow_forget(struct order *order, struct shadow *shadow);
void shadow_release(struct shadow *shadow);

#endif
