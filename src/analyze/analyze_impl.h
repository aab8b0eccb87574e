/* analyze_impl.h - shared by the files of analyze/: what is known of memory, order and the recent
 * past, and what a hypothesis is to the analyzer.
 *
 * Everything here is bounded whatever the events say. What does not fit is counted, and the counts
 * keep a verdict from claiming more than was looked at. One thread at a time. */
#ifndef GRETA_ANALYZE_ANALYZE_IMPL_H
#define GRETA_ANALYZE_ANALYZE_IMPL_H

#include "analyze/analyze.h"
#include "analyze/idmap.h"
#include "analyze/vclock.h"

/* ---- Work ----------------------------------------------------------------------------------- */

/* A launch, copy or fill that a stream does: a call, or one node of a graph's replay. */
struct work {
    const struct event *event;  /* the call; of a replay: the recorded one */
    const struct event *replay; /* NULL outside graphs */
    uint32_t node;              /* from 1; 0 outside */
    uint32_t stream;
    uint64_t tick;
    const struct vclock *clock; /* what happened before it, itself included */
};

/* Who touched a byte, small enough to keep per range. stream TOUCH_NOBODY: nobody that matters. */
struct touch {
    uint64_t event_id; /* of the call or the replay */
    uint64_t tick;
    uint32_t node;
    uint8_t stream, kind, operand, mode;
};
#define TOUCH_NOBODY 255u

/* ---- Memory --------------------------------------------------------------------------------- */

#define SHADOW_READER_LIMIT 3u

/* Bytes [start, end) of a buffer that were all last touched by the same work. */
struct shadow_interval {
    uint64_t start, end;
    struct touch write;
    struct touch reads[SHADOW_READER_LIMIT]; /* since; the last of each stream */
    uint8_t read_count;
    bool written; /* ever, or not known */
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
    uint32_t buffer_index;
    uint16_t generation;
    bool content_unknown; /* made before the first event that is known */
    char name[EVENT_TENSOR_BYTES];
    struct shadow shadow;
};

struct ledger {
    struct ledger_entry *live; /* places; bytes 0: free */
    uint32_t *free_places;     /* stack of places below `used` that are free */
    size_t live_capacity, free_capacity;
    uint32_t free_count, used;
    struct idmap by_index;
    struct ledger_entry *freed; /* ring of LEDGER_FREED_LIMIT */
    uint64_t freed_count;       /* ever */
    uint64_t forgotten;         /* buffers there was no room for */
};

bool ledger_init(struct ledger *ledger);
void ledger_release(struct ledger *ledger);
/* NULL if there is no room; borrowed until the next is added. A living buffer of the same index
 * counts as destroyed. */
struct ledger_entry *ledger_add(struct ledger *ledger, const struct ledger_entry *entry);
/* Moves it to the freed ones; shadow is released. NULL if it is not known. */
const struct ledger_entry *ledger_remove(struct ledger *ledger, uint32_t buffer_index,
                                         uint64_t destroyed_id);
/* A buffer that was destroyed before anything else is known. */
void ledger_add_freed(struct ledger *ledger, const struct ledger_entry *entry);
/* The living one, or NULL. */
struct ledger_entry *ledger_find(const struct ledger *ledger, uint32_t buffer_index);
/* The same of a generation, living or recently freed. */
const struct ledger_entry *ledger_find_generation(const struct ledger *ledger,
                                                  uint32_t buffer_index, uint16_t generation);
void ledger_neighbourhood(const struct ledger *ledger, uint64_t address,
                          struct analyze_neighbourhood *ret);

/* ---- The recent past ------------------------------------------------------------------------ */

/* Traps, scans and errors name calls that are gone by: these are remembered. */
#define HISTORY_LIMIT 8192u

struct history_entry {
    struct event event;
    uint64_t iteration;
    bool scanned, scanned_bad; /* its outputs were looked at; some were not finite */
};

struct history {
    struct history_entry *entries; /* ring of HISTORY_LIMIT, by ascending id */
    uint64_t count;                /* ever */
};

void history_add(struct history *history, const struct event *event, uint64_t iteration);
struct history_entry *history_find(const struct history *history, uint64_t event_id);
/* Position of the first entry with an id of at least event_id; from history_first to count. */
uint64_t history_first(const struct history *history);
uint64_t history_lower(const struct history *history, uint64_t event_id);
struct history_entry *history_at(const struct history *history, uint64_t position);

/* ---- Graphs --------------------------------------------------------------------------------- */

#define GRAPH_LIMIT 256u
#define GRAPH_RECORD_LIMIT 16384u /* launches of all templates together */

struct graph {
    uint64_t id;     /* of graph-begin */
    uint64_t handle; /* its index for callers; 0 until it is known */
    struct event *records;
    size_t count, capacity;
    uint64_t missing; /* launches there was no room for */
};

struct graphs {
    struct graph items[GRAPH_LIMIT];
    uint32_t count;
    size_t record_count;
    uint64_t forgotten;
    uint64_t last_ended; /* id of the graph recorded last */
};

struct graph *graphs_find(const struct graphs *graphs, uint64_t id);
struct graph *graphs_find_handle(struct graphs *graphs, uint64_t handle);
/* Adds a launch to the template, which is made if need be. */
void graphs_record(struct graphs *graphs, uint64_t graph_id, const struct event *event);
/* A recorded call by its id, or NULL; *ret_node: from 1. */
const struct event *graphs_find_record(const struct graphs *graphs, uint64_t event_id,
                                       uint32_t *ret_node, uint64_t *ret_graph);
void graphs_remove(struct graphs *graphs, uint64_t handle);
void graphs_release(struct graphs *graphs);

/* ---- Order ---------------------------------------------------------------------------------- */

#define THREAD_LIMIT 64u
#define MARK_LIMIT 4096u
#define TICKET_LIMIT 1024u

struct stream_state {
    bool used;
    struct vclock clock;
    uint64_t capture_id; /* of graph-begin while one is recorded; else 0 */
    uint32_t joined_thread;
    uint64_t joined_serial; /* of that thread's syncs, already in the clock */
    uint64_t last_id;       /* of the work given last */
    uint64_t waits_mark;    /* mark waited for last, plus 1; 0: none since its last work */
};

struct thread_state {
    bool used;
    struct vclock clock;    /* what it waited for */
    struct vclock previous; /* the same before its last wait, which may not be over */
    uint64_t ended_ns;      /* of its last wait */
    uint64_t serial;        /* changes with the clock */
    uint64_t seen_serial;   /* of all threads' waits, when it looked last */
    uint64_t last_id;       /* of the call it made last */
};

struct mark_state {
    uint64_t object;
    uint64_t record_id; /* event; 0: never recorded */
    uint32_t stream;
    struct vclock clock;
};

/* FILLING: of a copy in; it is over when its completion is told, or unseen. */
enum ticket_use { TICKET_FREE, TICKET_LANDING, TICKET_HELD, TICKET_FILLING };

struct ticket_state {
    uint64_t object;
    enum ticket_use use;
    uint16_t generation;
    uint64_t copy_id;
    uint64_t host_address, bytes;
    uint32_t stream;
    uint64_t tick;
    struct vclock clock;
};

struct order {
    struct stream_state streams[VCLOCK_STREAM_LIMIT];
    struct thread_state threads[THREAD_LIMIT];
    struct mark_state *marks;
    struct idmap mark_map;
    struct ticket_state *tickets;
    struct idmap ticket_map;
    uint32_t mark_count, ticket_count;
    bool completions;     /* are told: the first was seen */
    uint64_t sync_serial; /* of all threads' waits */
    /* Everything that comes is ordered after `floor`: waits that were over well before now. */
    struct vclock floor, filling, waiting;
    uint64_t filling_ns, waiting_ns; /* end of the last wait in each; 0: empty */
    uint64_t interval_count;         /* of all shadows */
    uint64_t interval_limit;
    uint64_t replay_budget;      /* launches of replays that may still be followed */
    uint64_t forgotten_accesses; /* not held against what came before, or not kept for later */
};

bool order_init(struct order *order);
void order_release(struct order *order);

struct analyzer;

/* Takes an event into the clocks and shadows; tells the hypotheses of work and conflicts. */
void order_event(struct analyzer *analyzer, const struct event *event);
struct ticket_state *order_ticket(const struct order *order, uint64_t object);
struct mark_state *order_mark(const struct order *order, uint64_t object);
/* The thread's wait is over: it is after what the clock covers. */
void order_thread_waited(struct order *order, struct thread_state *thread,
                         const struct vclock *clock, uint64_t end_ns);
/* A copy took a slot; its ticket was redeemed or released; it is done. */
void order_ticket_start(struct order *order, const struct event *event);
void order_ticket_end(struct order *order, const struct event *event, struct thread_state *thread);
void order_copy_completed(struct analyzer *analyzer, const struct event *event);
struct stream_state *order_stream(const struct order *order, uint32_t stream_index);

enum conflict_kind {
    CONFLICT_UNORDERED, /* two pieces of work, at least one writes */
    CONFLICT_FREED,     /* work not done when its buffer is destroyed */
    CONFLICT_UNWRITTEN, /* read before anybody wrote */
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

/* One access of a piece of work. `writes`: first all reads of a launch, then its writes. */
void shadow_access(struct analyzer *analyzer, const struct work *work,
                   const struct event_access *access, struct ledger_entry *entry, bool writes);
/* True if the copy the slot was last used for is not known to be over, or its bytes are held. */
bool order_slot_busy(const struct order *order, const struct ticket_state *ticket,
                     const struct event *event);
/* The buffer goes: tells if work with it is not known to be done. */
void shadow_destroy_check(struct analyzer *analyzer, const struct event *event,
                          const struct vclock *clock, const struct ledger_entry *entry);
bool shadow_init(struct shadow *shadow, uint64_t bytes, bool written);
void shadow_release(struct shadow *shadow);

/* ---- Hypotheses ----------------------------------------------------------------------------- */

struct hypothesis_detector {
    struct hypothesis_info info;
    /* Each may be NULL. Called in this order for one event: event, then work, then conflicts. */
    void (*event)(struct analyzer *analyzer, const struct event *event);
    void (*work)(struct analyzer *analyzer, const struct work *work);
    void (*conflict)(struct analyzer *analyzer, const struct conflict *conflict);
    /* At the end: pending calls, crumbs. Sets coverage.ran where more than the level decides. */
    void (*finish)(struct analyzer *analyzer);
};

extern const struct hypothesis_detector detector_size_mismatch, detector_use_after_free,
    detector_missing_sync, detector_bad_pointer, detector_staging_reuse,
    detector_overlapping_copies, detector_kernel_fault, detector_contract_breach,
    detector_stale_graph, detector_uninitialised_read, detector_silent_corruption,
    detector_runtime_defect, detector_non_determinism, detector_hang, detector_numeric;

const struct hypothesis_detector *hypothesis_detector(enum hypothesis hypothesis);

/* Results that were redeemed, for non-determinism. */
#define RESULT_LIMIT 16384u
#define RESULT_NTH_LIMIT 1024u /* different ones in an iteration; the rest count as unchecked */

struct result_entry {
    uint64_t key;  /* of run, step, layer, tensor and how often before in this iteration */
    uint64_t hash; /* of the bytes */
    uint64_t copy_id, iteration;
};

struct results {
    struct result_entry *entries;
    uint32_t count;
    struct idmap map;
    uint64_t run_key;
    bool in_run;
    bool compared;      /* a result of this iteration was held against an earlier one's */
    int32_t first_step; /* of the iteration: steps may count on from one to the next; -1: none */
    struct idmap nth;   /* how often (step, layer, tensor) was redeemed in this iteration */
};

/* Ranges that are known to hold values that are not finite, newest last. */
#define BAD_RANGE_LIMIT 64u

struct bad_range {
    uint64_t address, bytes;
    int32_t finding;
};

struct analyzer {
    struct analyze_options options;
    struct analysis result;
    size_t finding_capacity;
    struct ledger ledger;
    struct history history;
    struct graphs graphs;
    struct order order;
    struct results results;
    struct bad_range bad_ranges[BAD_RANGE_LIMIT];
    uint64_t bad_range_count; /* ever */
    bool warming;             /* events rebuild the state only: they were counted before */
    bool finished;
    uint64_t iteration;
    uint64_t last_id, last_ns; /* of the events so far */
    uint64_t first_fault_id;   /* event; 0: none */
    bool device_closed;
    /* The first call that failed because the device was lost. */
    struct analyze_place first_failure;
    struct event unplaced_fault; /* id 0: none; its launch is found in the crumbs at the end */
    /* At the end. */
    const struct crumb_page *crumbs;
    uint64_t now_ns;
    bool process_dead; /* not closed in order, and nobody runs any more */
};

/* Adds to coverage, unless the events were counted before. */
void analyze_count(struct analyzer *analyzer, enum hypothesis hypothesis, uint64_t checked,
                   uint64_t total);
/* Tells every hypothesis. */
void analyze_work(struct analyzer *analyzer, const struct work *work);
void analyze_conflict(struct analyzer *analyzer, const struct conflict *conflict);
/* Hangs of calls that have not returned at now_ns; also while the process runs. */
void analyze_watch(struct analyzer *analyzer, const struct crumb_page *crumbs,
                   const struct event *pending, uint64_t now_ns);
/* Records that were gone before they could be read. */
void analyze_lost(struct analyzer *analyzer, uint64_t count);
/* Buffers and recorded launches there was no room for: what is done with them is not seen, and
 * counts as lost. */
uint64_t analyze_forgotten(const struct analyzer *analyzer);

static inline bool event_is_copy(uint8_t kind)
{
    return kind == EVENT_COPY_IN || kind == EVENT_COPY_OUT || kind == EVENT_COPY_WITHIN ||
           kind == EVENT_FILL;
}

static inline bool event_is_work(uint8_t kind)
{
    return event_is_copy(kind) || kind == EVENT_LAUNCH;
}

static inline bool event_is_wait(uint8_t kind)
{
    return kind == EVENT_STREAM_SYNC || kind == EVENT_MARK_SYNC || kind == EVENT_TICKET_REDEEM ||
           kind == EVENT_STREAM_DESTROY;
}

/* ---- Findings ------------------------------------------------------------------------------- */

/* A finding with nothing in it: no places, consequence of nothing. */
struct finding finding_draft(enum hypothesis hypothesis, enum finding_certainty certainty);
/* Keeps it, or counts one more of its like. The index, or -1 if it was not kept. */
int32_t finding_add(struct analyzer *analyzer, const struct finding *draft);
/* What a refused call says of itself. */
struct finding finding_of_refusal(const struct analyzer *analyzer, enum hypothesis hypothesis,
                                  const struct event *event);
void finding_add_refusal(struct analyzer *analyzer, enum hypothesis hypothesis,
                         const struct event *event);
/* Two accesses without order: the later one is the cause. */
void finding_add_conflict(struct analyzer *analyzer, enum hypothesis hypothesis,
                          const struct conflict *conflict);
/* In order of order_id, and the root among them. */
MUST_CHECK enum status finding_sort(struct analyzer *analyzer, struct error *err);

/* Why a finding is only possible; in both languages, since a report has only one. */
enum finding_reason {
    REASON_NO_LAUNCH_KNOWN,
    REASON_DIED_INSIDE,
    REASON_DIED_IN_CALL,
    REASON_SEVERAL_STREAMS,
    REASON_CANARY_LATE,
    REASON_NEEDS_COMPARISON,
    REASON_SOURCE_CHANGED,
    REASON_INPUT_NOT_SCANNED,
    REASON_STREAM_INSIDE,
    REASON_LOST_WAKEUP,
    REASON_WAITS_FOR_MARK,
    REASON_NOT_STARTED,
    REASON_COUNT
};
void finding_set_reason(struct finding *finding, enum finding_reason reason);
const char *finding_reason_words(const struct finding *finding, enum analyze_language language);

struct analyze_place place_of_event(const struct analyzer *analyzer, const struct event *event);
struct analyze_place place_of_work(const struct analyzer *analyzer, const struct work *work);
/* From the history or a template; only the id is known where both forgot it. */
struct analyze_place place_of_id(const struct analyzer *analyzer, uint64_t event_id, uint32_t node);
struct analyze_place place_of_touch(const struct analyzer *analyzer, const struct touch *touch,
                                    const struct ledger_entry *entry, uint64_t start,
                                    uint64_t bytes);
void place_set_access(const struct analyzer *analyzer, struct analyze_place *place,
                      const struct event_access *access);
/* The launch that a fault, trap, scan or canary is about. */
struct analyze_place place_of_fault(const struct analyzer *analyzer, const struct event *event);
struct analyze_place place_of_remark(const struct analyzer *analyzer, const struct event *event);
/* What a stream entered last. */
struct analyze_place place_of_crumb(const struct analyzer *analyzer,
                                    const struct crumb_stream *crumbs);
/* Of a wait: the copy whose bytes it waits for, where it is one; else itself. */
struct analyze_place place_of_wait(const struct analyzer *analyzer, const struct event *event);
/* The call with that id, or the node of the replay with that id; NULL if it is forgotten. */
const struct event *analyze_find_call(const struct analyzer *analyzer, uint64_t event_id,
                                      uint32_t node);
/* The access with that operand, or NULL. */
const struct event_access *event_operand(const struct event *event, uint8_t operand);

/* Which finding's wrong bytes reach the call: by data flow through the history; -1: none known. */
int32_t flow_origin(const struct analyzer *analyzer, uint64_t event_id);
/* True if each range the call read came from a call whose outputs were scanned, or from no call. */
bool flow_inputs_scanned(const struct analyzer *analyzer, const struct event *event);

/* ---- Saving --------------------------------------------------------------------------------- */

/* Findings and counters of a checkpoint; false, and nothing changed, if it makes no sense. */
bool analyzer_restore(struct analyzer *analyzer, const void *bytes, size_t count);
/* Reads all that a flight file knows into a fresh analyzer and finishes it. */
MUST_CHECK enum status analyze_reader(struct analyzer *analyzer, const struct flight_reader *reader,
                                      struct error *err);

#endif
