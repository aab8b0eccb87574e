/* analyze_impl.h - shared by the files of analyze/: the analyzer, the interface of a hypothesis,
 * and how findings are made. What it knows of memory and order is in analyze_state.h. One thread at
 * a time. */
#ifndef GRETA_ANALYZE_ANALYZE_IMPL_H
#define GRETA_ANALYZE_ANALYZE_IMPL_H

#include "analyze/analyze_state.h"

/* ---- Hypotheses ----------------------------------------------------------------------------- */

struct hypothesis_detector {
    struct hypothesis_info info;
    /* Each may be NULL. For one event they are called in this order: event, work, conflict. */
    void (*event)(struct analyzer *analyzer, const struct event *event);
    void (*work)(struct analyzer *analyzer, const struct work *work);
    void (*conflict)(struct analyzer *analyzer, const struct conflict *conflict);
    /* At the end: pending calls, crumbs. Sets coverage.ran if it depends on more than the level. */
    void (*finish)(struct analyzer *analyzer);
};

extern const struct hypothesis_detector detector_size_mismatch, detector_use_after_free,
    detector_missing_sync, detector_bad_pointer, detector_staging_reuse,
    detector_overlapping_copies, detector_kernel_fault, detector_contract_breach,
    detector_stale_graph, detector_uninitialised_read, detector_silent_corruption,
    detector_runtime_defect, detector_non_determinism, detector_hang, detector_numeric,
    detector_leak;

const struct hypothesis_detector *hypothesis_detector(enum hypothesis hypothesis);

/* Results that were redeemed, for non-determinism. */
#define RESULT_LIMIT 16384u
#define RESULT_NTH_LIMIT 1024u /* different ones in an iteration; the rest count as unchecked */

struct result_entry {
    uint64_t key;  /* hash of run, step, layer, tensor, and how often they occurred before in this
                      iteration */
    uint64_t hash; /* of the bytes */
    uint64_t copy_id, iteration;
};

struct results {
    struct result_entry *entries;
    uint32_t count;
    struct idmap map;
    uint64_t run_key;
    bool in_run;
    bool compared;      /* a result of this iteration was compared with an earlier one's */
    int32_t first_step; /* of the iteration (steps need not begin at 0 in each); -1: none */
    struct idmap nth;   /* how often (step, layer, tensor) was redeemed in this iteration */
};

/* Digests of operands of launches, the first of each; the table is made when the first one comes.
 */
#define OP_HASH_LIMIT (1u << 18)

/* Results of one iteration that differ and wait for its end. */
#define OP_HASH_HELD_LIMIT 16u

struct op_hashes_held {
    struct finding draft;
    uint64_t writer_id;   /* of the launch that wrote what was copied out; 0: not known */
    bool agrees, differs; /* its outputs, as far as they are known */
};

struct op_hashes {
    struct op_hashes_held *held;
    uint32_t held_count;
    struct result_entry *entries; /* copy_id: of the launch */
    uint32_t count;
    struct idmap map;
    struct idmap nth;                     /* how often (step, layer, tensor, op) was launched */
    uint64_t agreed_id, agreed_before_id; /* the last two launches whose outputs agreed */
    int32_t finding;                      /* first of this iteration; -1: none */
    bool whole;                           /* the iteration was recorded from its beginning */
    uint32_t launches;                    /* of this iteration */
};

/* non_determinism.c: what equal results of equal iterations have in common. */
uint64_t results_mix(uint64_t hash, uint64_t value);
uint64_t results_key(struct results *results, const struct event *call);

void op_hashes_release(struct op_hashes *hashes);
void op_hashes_begin_run(struct op_hashes *hashes, bool warming);
void op_hashes_count_launch(struct analyzer *analyzer, const struct event *event);
/* Keeps a result that differs until the iteration is over, when its cause can be known. False if no
 * operands are hashed: the caller adds the finding now. */
bool op_hashes_hold(struct analyzer *analyzer, const struct finding *draft,
                    const struct event *copy);
/* The iteration is over. */
void op_hashes_flush(struct analyzer *analyzer);
/* EVENT_OP_HASH. */
void op_hashes_add(struct analyzer *analyzer, const struct event *event);

/* Ranges that are known to hold values that are not finite, newest last. */
#define BAD_RANGE_LIMIT 64u

struct bad_range {
    uint64_t address, bytes; /* of the device's memory */
    uint16_t device_index;
    int32_t finding;
};

/* How a device was lost. */
struct device_loss {
    uint64_t fault_id; /* the first; 0: none */
    /* The first call that failed because the device was lost. */
    struct analyze_place first_failure;
    struct event unplaced_fault; /* id 0: none; a fault caught in no launch, evaluated at the end */
    struct analyze_neighbourhood unplaced_near; /* the memory around it when it happened */
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
    struct op_hashes op_hashes;
    struct bad_range bad_ranges[BAD_RANGE_LIMIT];
    uint64_t bad_range_count;   /* ever */
    struct idmap made_by_stack; /* foreign programs: how many allocations a call stack made */
    bool warming;               /* the events only rebuild the state; they were counted before */
    bool finished;
    uint64_t iteration;
    uint64_t first_id;         /* of the first event that is known */
    uint64_t last_id, last_ns; /* of the events so far */
    uint64_t gap_id;           /* the last event before records were lost; 0: none were */
    bool canary_unseen;        /* a check of a canary could not be made */
    bool device_closed;
    struct device_loss losses[EVENT_DEVICE_LIMIT];
    uint32_t crumb_page_count; /* devices that have one */
    /* At the end. */
    const struct crumb_page *crumbs; /* crumb_page_count of them; NULL: there are none */
    uint64_t now_ns;
    bool process_dead; /* the process is gone and did not close the recording */
    struct hardware_evidence hardware; /* grid_count 0: there is none */
};

/* Adds to coverage, unless the events were counted before. */
void analyze_count(struct analyzer *analyzer, enum hypothesis hypothesis, uint64_t checked,
                   uint64_t total);
/* subjects.c */
void subjects_note(struct analyze_subjects *subjects, const struct event *event);
/* Calls every hypothesis. */
void analyze_work(struct analyzer *analyzer, const struct work *work);
void analyze_conflict(struct analyzer *analyzer, const struct conflict *conflict);
/* The device's page. crumbs: the pages of all devices, one after the other. NULL if it has none. */
static inline const struct crumb_page *analyze_page(const struct analyzer *analyzer,
                                                    const struct crumb_page *crumbs,
                                                    uint16_t device_index)
{
    return crumbs && device_index < analyzer->crumb_page_count ? &crumbs[device_index] : NULL;
}

/* The device was lost before now. */
static inline bool analyze_is_lost(const struct analyzer *analyzer, const struct event *event)
{
    return analyzer->losses[event->device_index].fault_id != 0;
}

/* A call that has not returned by now_ns hangs if both it and the crumbs (crumb_watch.h) have stood
 * still for longer than the limit. Also called while the process runs. */
void analyze_watch(struct analyzer *analyzer, const struct crumb_page *crumbs,
                   const struct event *pending, uint64_t now_ns);
/* This call stack of a foreign program allocated memory; returns how often it has. 0: there are too
 * many stacks to count for each. */
uint32_t analyze_note_made(struct analyzer *analyzer, uint32_t stack_index);
/* Events are missing. Conclusions that rest on something not having happened are dropped. */
void analyze_forget(struct analyzer *analyzer);
/* Events before this id are missing: torn, damaged, or overwritten. */
void analyze_gap(struct analyzer *analyzer, uint64_t until);
/* The same for records that were gone before they could be read; they are counted. */
void analyze_lost(struct analyzer *analyzer, uint64_t count);
/* The number of buffers and recorded launches for which there was no room. What is done with them
 * is not seen, so they count as lost. */
uint64_t analyze_forgotten(const struct analyzer *analyzer);

static inline bool event_is_work(uint8_t kind)
{
    return event_is_copy(kind) || kind == EVENT_LAUNCH;
}

/* A check failed. The call was refused or, in a foreign program, made all the same. */
static inline bool event_is_violation(const struct event *event)
{
    if (event->outcome == EVENT_REFUSED)
        return true;
    if (!(event->flags & EVENT_FOREIGN) || event->check == EVENT_CHECK_NONE ||
        event->check == EVENT_CHECK_LOST)
        return false;
    /* The freed memory may have been allocated by a call that was not recorded, so a free that the
     * runtime accepted is no violation. */
    return event->kind != EVENT_BUFFER_DESTROY || event->outcome != EVENT_DONE;
}

/* This call failed because the device is lost. */
static inline bool event_is_lost(const struct event *event)
{
    return event->check == EVENT_CHECK_LOST &&
           (event->outcome == EVENT_REFUSED || (event->flags & EVENT_FOREIGN));
}

static inline bool event_is_wait(uint8_t kind)
{
    return kind == EVENT_STREAM_SYNC || kind == EVENT_MARK_SYNC || kind == EVENT_TICKET_REDEEM ||
           kind == EVENT_STREAM_DESTROY;
}

/* ---- Findings ------------------------------------------------------------------------------- */

/* A finding with nothing in it: no places, consequence of nothing. */
struct finding finding_draft(enum hypothesis hypothesis, enum finding_certainty certainty);
/* Keeps the finding, or counts it with an equal one. Returns its index, or -1 if it was not kept.
 */
int32_t finding_add(struct analyzer *analyzer, const struct finding *draft);
/* The finding's fields that follow from the refused call alone. */
/* EVENT_HOST_ACCESS: of memory that a copy reads, or of a released ticket; else of memory that work
 * is still to write. */
bool finding_is_reuse(const struct event *event);
struct finding finding_of_host_access(const struct analyzer *analyzer, enum hypothesis hypothesis,
                                      const struct event *event);
struct finding finding_of_refusal(const struct analyzer *analyzer, enum hypothesis hypothesis,
                                  const struct event *event);
void finding_add_refusal(struct analyzer *analyzer, enum hypothesis hypothesis,
                         const struct event *event);
/* Foreign programs: makes the finding possible instead of direct, with the reason, if the conflict
 * rests on something uncertain. */
void finding_weigh(const struct analyzer *analyzer, const struct conflict *conflict,
                   struct finding *finding);
/* Two accesses without order: the later one is the cause. */
void finding_add_conflict(struct analyzer *analyzer, enum hypothesis hypothesis,
                          const struct conflict *conflict);
/* consequence.c. The index of the finding that this one follows from; -1: none is known. */
int32_t finding_origin(const struct analyzer *analyzer, const struct finding *finding);
/* True if following consequence_of from `from` (-1: none) leads to `target`. Then `target` must not
 * be made a consequence of `from`. */
bool finding_leads_to(const struct analysis *result, int32_t from, size_t target);
/* Traps are reported late: links earlier findings that follow from the one that was just added. */
void finding_relink(struct analyzer *analyzer, size_t added);
/* Fills in what the contracts call the operands that findings name. */
void finding_name_operands(struct analyzer *analyzer);
/* Sorts the findings by order_id and finds the root among them. */
MUST_CHECK enum status finding_sort(struct analyzer *analyzer, struct error *err);

static inline void finding_set_reason(struct finding *finding, enum finding_reason reason)
{
    finding->reason = reason;
}

struct analyze_place place_of_event(const struct analyzer *analyzer, const struct event *event);
struct analyze_place place_of_work(const struct analyzer *analyzer, const struct work *work);
/* From the history or a graph's template; only the id is set if neither has it any more. */
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
/* The copy that the wait is for; the wait itself if it is for something else. */
struct analyze_place place_of_wait(const struct analyzer *analyzer, const struct event *event);
/* The call with that id, or the node of the replay with that id; NULL if it is forgotten. */
const struct event *analyze_find_call(const struct analyzer *analyzer, uint64_t event_id,
                                      uint32_t node);
/* The access with that operand, or NULL. */
const struct event_access *event_operand(const struct event *event, uint8_t operand);

/* How far the streams had got (progress.c). */
struct progress {
    /* By place of the stream. */
    uint64_t entered[VCLOCK_STREAM_LIMIT]; /* the launch that left its crumb last */
    uint64_t done[VCLOCK_STREAM_LIMIT];    /* all work of the stream up to this id has ended */
};
/* Uses only calls before that id. */
void progress_find(const struct analyzer *analyzer, uint64_t before_id,
                   struct progress *ret_progress);

/* Finds the launches that may have made the illegal access (suspects.c) and makes them the draft's
 * candidates, the likeliest its cause. The draft is direct if only one launch is left, otherwise
 * possible, with the reason. fault: the event; id 0: the process died without one. draft->near must
 * be set. Returns the number of candidates. */
uint64_t suspects_find(const struct analyzer *analyzer, const struct event *fault,
                       struct finding *draft);
/* The same for a foreign program, which leaves no breadcrumbs (window.c): the work since the last
 * wait of each stream. fault: the event. */
void suspects_in_window(const struct analyzer *analyzer, const struct event *fault,
                        struct finding *draft);
/* The event, before the fault, is work that may have made it; and true if more may be missing. */
bool window_holds(const struct analyzer *analyzer, const struct event *event, uint64_t fault_id);
bool window_has_gaps(const struct analyzer *analyzer);
/* hardware.c. The same by what the hardware says; false, and nothing done, if it says nothing. */
bool suspects_by_hardware(const struct analyzer *analyzer, const struct event *fault,
                          struct finding *draft);
/* The grid whose arguments name this launch of greta's own (node: of a replay); NULL: none does. */
const struct hardware_grid *hardware_find_own(const struct analyzer *analyzer, uint64_t event_id,
                                              uint32_t node);
/* True if a dump names launches of greta's own. */
bool hardware_names_own(const struct analyzer *analyzer);
void hardware_add_pointers(const struct analyzer *analyzer, struct finding *finding);
/* True if records are missing among the calls that the history keeps. */
bool suspects_have_gaps(const struct analyzer *analyzer);
/* Finds the launches that may have damaged a canary (damage.c) and makes them the draft's
 * candidates. Its cause is the place where the damage was seen; if one launch is left, that launch
 * is the cause and the culprit. */
void damage_find(const struct analyzer *analyzer, const struct event *canary,
                 struct finding *draft);
/* nearness.c. From the address to the nearest byte of the range; 0: it is one of them. */
uint64_t access_distance(const struct event_access *access, uint64_t address);
/* False if the address is so far away that it says nothing about the range. */
bool access_is_near(const struct event_access *access, uint64_t address);
/* By how many times 2^32 the address misses a byte of the range's buffer; 0: it does not, or by
 * more than a wrapped index explains. */
uint32_t access_wraps(const struct analyzer *analyzer, uint16_t device_index,
                      const struct event_access *access, uint64_t address);

/* The finding whose wrong bytes reach the call, by data flow through the history; -1: none is
 * known. */
int32_t flow_origin(const struct analyzer *analyzer, uint64_t event_id);
/* The launches that wrote the call's inputs through outputs that were not scanned, each once.
 * Stores at most capacity and returns how many there are. 0: all inputs were scanned, or came from
 * no launch. */
uint32_t flow_unscanned_writers(const struct analyzer *analyzer, const struct event *event,
                                const struct history_entry **ret_writers, uint32_t capacity);

/* ---- Saving --------------------------------------------------------------------------------- */

/* restore.c: findings and counters of a checkpoint; false, and nothing changed, if it makes no
 * sense. */
bool analyzer_restore(struct analyzer *analyzer, const void *bytes, size_t count);
/* Reads all that a flight file knows into a fresh analyzer and finishes it. */
MUST_CHECK enum status analyze_reader(struct analyzer *analyzer, const struct flight_reader *reader,
                                      struct error *err);

#endif
