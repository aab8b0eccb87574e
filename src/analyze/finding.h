/* finding.h - what the analysis found, as facts: part of analyze.h.
 *
 * A finding names its hypothesis, the calls, and numbers whose meaning its kind of defect gives
 * (finding_defect). Names are stable; sentences are made in report/. */
#ifndef GRETA_ANALYZE_FINDING_H
#define GRETA_ANALYZE_FINDING_H

#include "analyze/hardware.h"
#include "base/status.h"
#include "event/event.h"

enum hypothesis {
    HYPOTHESIS_SIZE_MISMATCH,
    HYPOTHESIS_USE_AFTER_FREE,
    HYPOTHESIS_MISSING_SYNC,
    HYPOTHESIS_BAD_POINTER,
    HYPOTHESIS_STAGING_REUSE,
    HYPOTHESIS_OVERLAPPING_COPIES,
    HYPOTHESIS_KERNEL_FAULT,
    HYPOTHESIS_CONTRACT_BREACH,
    HYPOTHESIS_STALE_GRAPH,
    HYPOTHESIS_UNINITIALISED_READ,
    HYPOTHESIS_SILENT_CORRUPTION,
    HYPOTHESIS_RUNTIME_DEFECT,
    HYPOTHESIS_NON_DETERMINISM,
    HYPOTHESIS_HANG,
    HYPOTHESIS_NUMERIC,
    HYPOTHESIS_LEAK,
    HYPOTHESIS_COUNT
};

/* ---- Findings ------------------------------------------------------------------------------- */

/* A call as a finding names it. event_id 0: none. */
struct analyze_place {
    uint64_t event_id;
    uint64_t time_ns; /* when it was called, on the event clock */
    uint8_t kind;     /* enum event_kind */
    char op[EVENT_OP_BYTES];
    struct event_scope scope;
    char file[EVENT_FILE_BYTES];
    uint32_t line;
    uint32_t stream_index, thread_index;
    uint16_t device_index; /* as struct event has it: which device stream and buffer are of */
    uint16_t epoch;        /* of a graph's replay; 0 outside */
    uint32_t node;         /* launch within the graph, from 1; 0 outside */
    uint64_t iteration;    /* of the workload; 0 before the first */
    /* Foreign programs: op is the runtime's function or the kernel. */
    bool foreign;
    uint32_t stack_index, name_index; /* as struct event has them */
    uint64_t ordinal;                 /* of a launch: launch number in its process, from 1 */
    /* The bytes at stake. */
    uint8_t operand;                   /* EVENT_NO_OPERAND if none */
    char operand_name[EVENT_OP_BYTES]; /* as the op's contract has it; "" if not known */
    uint8_t mode;                      /* enum event_access_mode */
    uint64_t address, bytes;
    uint32_t buffer_index;
    uint16_t generation;
    char buffer[EVENT_TENSOR_BYTES]; /* its name */
};

/* A buffer that holds an address or is near it. */
struct analyze_neighbour {
    uint64_t address, bytes;
    uint64_t created_id, destroyed_id; /* destroyed_id 0: alive */
    int64_t distance;                  /* from its nearest byte to the address; 0: inside */
    char name[EVENT_TENSOR_BYTES];
};

/* Buffers further from an address than this say nothing about it, and are not named in words. */
#define ANALYZE_NEAR_BYTES (UINT64_C(4) << 20)
/* Bytes between the neighbour and the address. */
uint64_t analyze_apart(const struct analyze_neighbour *neighbour);

/* What lies at a faulting address. name "" where there is none. */
struct analyze_neighbourhood {
    bool known; /* the address is known at all */
    uint64_t address;
    struct analyze_neighbour live;          /* holds the address */
    struct analyze_neighbour before, after; /* nearest live ones */
    struct analyze_neighbour freed;         /* held it, most recently destroyed */
};

enum finding_certainty {
    FINDING_DIRECT,  /* a violation that was seen */
    FINDING_POSSIBLE /* one explanation among several, `reason` says why */
};

/* What `cause` is: a culprit only if the evidence leaves no other call. Set by each detector; a
 * finding that is only possible or has several candidates is never more than FINDING_SEEN_AT. */
enum finding_attribution {
    FINDING_SEEN_AT, /* where the defect was seen; what did it is not known */
    FINDING_CULPRIT, /* what did it */
    FINDING_ATTRIBUTION_COUNT
};
const char *finding_attribution_name(enum finding_attribution attribution); /* "seen-at" */

#define FINDING_CANDIDATE_LIMIT 32
#define FINDING_WRAP_LIMIT                                                                         \
    16 /* the most times 2^32 by which a wrapped index is assumed to be off */

/* Why a finding is only possible, how its candidates are ranked, or how a hang came about. */
enum finding_reason {
    REASON_NONE,
    REASON_NO_LAUNCH_KNOWN,
    REASON_SEVERAL_LAUNCHES,
    REASON_NEAR_ADDRESS,
    REASON_GAPS,
    REASON_REPLAY_UNKNOWN,
    REASON_STREAM_BEGAN,
    REASON_CANARY_LATE,
    REASON_CANARY_WINDOW,
    REASON_NEEDS_COMPARISON,
    REASON_SOURCE_CHANGED,
    REASON_INPUT_NOT_SCANNED,
    REASON_STREAM_INSIDE,
    REASON_LOST_WAKEUP,
    REASON_WAITS_FOR_MARK,
    REASON_NOT_STARTED,
    REASON_KERNEL_ACCESS,
    REASON_HIDDEN_ORDER,
    REASON_ABANDONED,
    REASON_WINDOW,
    REASON_ROW_GAPS,
    REASON_RUNTIME_ACCEPTED,
    REASON_MAY_WAIT,
    REASON_UNSEEN_ORDER,
    REASON_HELD_BACK,
    REASON_ADDRESS_REUSED,
    REASON_STREAM_ACCEPTED,
    REASON_KEPT,
    REASON_INPUT_DIFFERS,
    REASON_BETWEEN_HASHES,
    REASON_BEFORE_HASHES,
    REASON_UNWATCHED,
    REASON_PARTLY_WRITTEN,
    REASON_UNSEEN_WRITER,
    REASON_KERNEL_READS,
    REASON_FLAG,
    REASON_DUMP_DIFFERS,
    REASON_DUMP_PARTLY,
    REASON_DUMP_SEVERAL,
    REASON_DUMP_GRIDS,
    REASON_COUNT
};
const char *finding_reason_name(enum finding_reason reason);    /* "near-address"; NONE: "" */
enum finding_reason finding_reason_from_name(const char *name); /* REASON_NONE: not one of ours */

/* A pointer among the arguments of a launch, and the memory it leads to. */
struct finding_pointer {
    uint8_t operand;
    uint64_t address;
    uint64_t buffer_address, buffer_bytes;
    uint64_t created_id, destroyed_id; /* created_id 0: the memory is forgotten; destroyed_id 0: it
                                          is alive */
    uint32_t stack_index;              /* of the call that made it */
    char buffer[EVENT_TENSOR_BYTES];   /* its name */
};

struct finding {
    enum hypothesis hypothesis;
    enum finding_certainty certainty;
    enum finding_attribution attribution;
    struct analyze_place cause; /* what did it, or where it was seen: attribution says which */
    struct analyze_place other; /* the other side: the free, the earlier write, the copy */
    struct analyze_place seen;  /* where an error surfaced, if it was elsewhere */
    struct analyze_place moved; /* hangs: the last work that moved on the device */
    uint64_t moved_ago_ns;      /* how long before; both 0 if nothing was seen to move */
    uint8_t check;              /* enum event_check that said no, or 0 */
    /* Its numbers, or bytes, hashes, counts, as the hypothesis says. For a kernel fault: address
     * and bytes of the buffer of the operand that the fault's address is compared with; 0: there is
     * none. */
    uint64_t expected, found;
    struct analyze_neighbourhood near;
    /* Launches that may have done it, the likeliest first; that one is the cause. A count of 1: it
     * was that launch; 0: the cause was seen doing it. */
    uint32_t candidate_count;
    struct analyze_place candidates[FINDING_CANDIDATE_LIMIT];
    uint64_t candidates_left_out; /* further candidates, the least likely, that did not fit */
    uint64_t order_id;            /* id of the first event of the violation: its place in time */
    uint64_t count;               /* how often, at this op, operand and check */
    int32_t consequence_of;       /* index of the finding it follows from; -1: of none */
    enum finding_reason reason;   /* REASON_NONE where nothing is to be said */
    /* The grid that failed in a kernel fault, borrowed from the analyzer; NULL: there is no GPU
     * core dump. The pointers are the cause's. */
    const struct hardware_grid *hardware;
    uint32_t pointer_count;
    struct finding_pointer pointers[EVENT_ACCESS_LIMIT];
};

/* A violation that was seen, and whose culprit is known. */
bool finding_is_culprit(const struct finding *finding);

/* ---- What exactly was found ----------------------------------------------------------------- */

/* What the cause did. It follows from the finding's other fields. */
enum finding_defect {
    DEFECT_FREED_TWICE,
    DEFECT_FREED_BEFORE,
    DEFECT_STALE_HANDLE,
    DEFECT_FREED_ACCESSED,
    DEFECT_FREED_IN_USE,
    DEFECT_WORK_ABANDONED,
    DEFECT_SOURCE_CHANGED,
    DEFECT_READ_EARLY,
    DEFECT_UNORDERED_WRITE,
    DEFECT_UNORDERED_READ,
    DEFECT_SOURCE_REWRITTEN,
    DEFECT_TICKET_RELEASED,
    DEFECT_SLOT_IN_USE,
    DEFECT_ILLEGAL_ACCESS,
    DEFECT_MAYBE_ILLEGAL_ACCESS,
    DEFECT_PROCESS_ENDED,
    DEFECT_GRAPH_BUFFER_DESTROYED,
    DEFECT_UNWRITTEN_READ,
    DEFECT_TRANSFER_CHANGED,
    DEFECT_WRITE_OUTSIDE,
    DEFECT_RESULT_DIFFERS,
    DEFECT_OPERAND_DIFFERS,
    DEFECT_NO_PROGRESS,
    DEFECT_NOT_RETURNED,
    DEFECT_NEVER_FREED,
    DEFECT_INDEX_PAST_BOUND,
    DEFECT_NOT_FINITE,
    DEFECT_DEVICE_LIMIT,
    DEFECT_PAST_ALLOCATION,
    DEFECT_INSIDE_ALLOCATION,
    DEFECT_WRONG_DIRECTION,
    DEFECT_STREAM_DESTROYED,
    DEFECT_UNKNOWN_ADDRESS,
    DEFECT_VIEW_PAST_BUFFER,
    DEFECT_BYTES_PAST_VIEW,
    DEFECT_TOO_FEW_BYTES,
    DEFECT_MISALIGNED,
    DEFECT_READ_ONLY,
    DEFECT_OPERAND_COUNT,
    DEFECT_OPERAND_MISSING,
    DEFECT_WRONG_DTYPE,
    DEFECT_WRONG_SHAPE,
    DEFECT_WRONG_STRIDE,
    DEFECT_WRONG_PARAMETER,
    DEFECT_TOO_MANY_TILES,
    DEFECT_UNKNOWN_TO_RUNTIME,
    DEFECT_REFUSED,
    DEFECT_HOST_READ_EARLY,
    DEFECT_HOST_WRITE_EARLY,
    DEFECT_HOST_REWRITE,
    DEFECT_HOST_READ_CHANGED,
    DEFECT_HOST_READ_RELEASED,
    DEFECT_COUNT
};

enum parameter_type {
    PARAMETER_COUNT,
    PARAMETER_BYTES,
    PARAMETER_ADDRESS,
    PARAMETER_OFFSET, /* signed */
    PARAMETER_HASH,
    PARAMETER_DURATION /* ns */
};

/* What `expected` and `found` of such a finding are; name NULL: nothing. */
struct finding_defect_info {
    const char *slug; /* "index-past-bound" */
    struct finding_parameter {
        const char *name; /* "bound" */
        enum parameter_type type;
    } expected, found;
};

enum finding_defect finding_defect(const struct finding *finding);
const struct finding_defect_info *finding_defect_info(enum finding_defect defect);

/* Where a fault's address lies relative to the buffer of the operand it is compared with. */
struct finding_miss {
    enum finding_miss_side {
        MISS_UNKNOWN, /* or inside */
        MISS_BEFORE_START,
        MISS_PAST_END,
        MISS_WRAPPED_BELOW, /* by a multiple of 2^32, from a byte of the buffer */
        MISS_WRAPPED_ABOVE
    } side;
    uint64_t bytes; /* 1: the first byte outside */
    uint32_t wraps; /* times 2^32 */
};
struct finding_miss finding_miss(const struct finding *finding);
const char *finding_miss_name(enum finding_miss_side side); /* "past-end"; UNKNOWN: NULL */

/* Why the first of several candidates is ranked first. */
enum finding_ranking {
    RANKING_NONE, /* there are not several */
    RANKING_NEAR_ADDRESS,
    RANKING_BEGUN_FIRST, /* those known to have begun, then in the order of their calls */
    RANKING_CALL_ORDER,
    RANKING_DATA_FLOW,   /* where the values were seen, then what wrote its inputs */
    RANKING_NEAR_DAMAGE, /* those that write nearest to a damaged canary */
    RANKING_COUNT
};
enum finding_ranking finding_ranking(const struct finding *finding);
const char *finding_ranking_name(enum finding_ranking ranking); /* NONE: NULL */

#endif
