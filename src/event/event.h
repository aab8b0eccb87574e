/* event.h - what happened on a device, as values of one schema.
 *
 * The device layer reports every call, refusal, completion, trap and fault to one observer. A
 * flight file, live analysis and a foreign program seen by interposition all produce and consume
 * this same stream; nothing above needs to know who is listening.
 *
 * A call is told twice: at its beginning, before anything reaches the device (so that the evidence
 * is there if the process dies in it), and at its end, with the outcome. Things that are not calls
 * (a trap, a fault, a completion) are told once, as ends. Events of one device have ids that only
 * grow; begin and end of a call share one.
 *
 * Every number below is in flight files and is frozen (event/numbers.def): it never changes, and is
 * never given to anything else. New values come last. */
#ifndef GRETA_EVENT_EVENT_H
#define GRETA_EVENT_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Kinds ---------------------------------------------------------------------------------- */

enum event_kind {
    EVENT_DEVICE_OPEN = 0,
    EVENT_DEVICE_CLOSE = 1,
    EVENT_BUFFER_CREATE = 2,
    EVENT_BUFFER_DESTROY = 3,
    EVENT_STREAM_CREATE = 4,
    EVENT_STREAM_DESTROY = 5,
    EVENT_STREAM_SYNC = 6, /* the host waits for all work of a stream */
    EVENT_MARK_RECORD = 7, /* a stream will pass a mark (a runtime's "event") */
    EVENT_MARK_WAIT = 8,   /* a stream waits for a mark */
    EVENT_MARK_SYNC = 9,   /* the host waits for a mark */
    EVENT_COPY_IN = 10,    /* one for each staging slot's worth; cause_id: the first of them */
    EVENT_COPY_OUT = 11,
    EVENT_COPY_WITHIN = 12,
    EVENT_FILL = 13,
    EVENT_MODULE_LOAD = 14,
    EVENT_LAUNCH = 15,
    EVENT_GRAPH_BEGIN = 16,
    EVENT_GRAPH_END = 17,
    EVENT_GRAPH_REPLAY = 18,
    EVENT_GRAPH_DESTROY = 19,
    EVENT_TICKET_REDEEM = 20,  /* the host reads the bytes of a copy out */
    EVENT_TICKET_RELEASE = 21, /* their staging slot may be used again */
    EVENT_COMPLETION = 22,     /* the work of an earlier call (cause_id) is done; told before its
                             staging slot can be taken again */
    EVENT_TRAP = 23,           /* a kernel met an index past its bound and skipped the access */
    EVENT_FAULT = 24,          /* the device made an illegal access and is lost; found: enum
                             event_address, how host_address is known */
    EVENT_CANARY = 25, /* bytes beside a buffer are not what was put there; cause_id: the launch
                     after which it was seen, 0 if only that it was before now */
    EVENT_RUN = 26,    /* an iteration of a workload begins; object: its number, found: a key,
                     equal for iterations that must give equal results */
    EVENT_TRANSFER_HASH = 27, /* of the bytes of an earlier copy (cause_id): expected: where they
                            came from, before; host_address: the same place, after; found: where
                            they landed */
    EVENT_SCAN = 28, /* values written by an earlier launch (cause_id, operand) were looked at:
                   expected: how many, found: how many are not finite, host_address:
                   index of the first of those */
    EVENT_SOURCE_CHANGED = 29, /* of a foreign program: the pinned host memory that an earlier copy
                             (cause_id) reads was rewritten before anybody waited for the copy;
                             expected: digest when it was queued, found: now */
    EVENT_HIDDEN_ORDER = 30,   /* of a foreign program: from here on the stream is ordered in a way
                             that is not seen (a host function, a value in memory, another process) */
    EVENT_CALL = 31,    /* of a foreign program: another call, told because it failed, or because
                      it had a number and is about a graph that is being captured */
    EVENT_OP_HASH = 32, /* digest of an operand of an earlier launch (cause_id, operand); found:
                      the digest; accesses[0].mode: EVENT_READ right before the launch,
                      EVENT_WRITE right after it */
    EVENT_KIND_COUNT
};

const char *event_kind_name(enum event_kind kind); /* "copy-out": a stable slug */

enum event_phase { EVENT_BEGIN = 0, EVENT_END = 1 };

enum event_outcome {
    EVENT_PENDING = 0, /* begun, no end seen: where a dead process died */
    EVENT_DONE = 1,
    EVENT_FAILED = 2,  /* the device or its runtime said no */
    EVENT_REFUSED = 3, /* a check of ours said no; the device was not asked */
    EVENT_OUTCOME_COUNT
};

const char *event_outcome_name(enum event_outcome outcome);

/* Which check refused a call. */
enum event_check {
    EVENT_CHECK_NONE = 0,
    EVENT_CHECK_LOST = 1,       /* the device faulted before */
    EVENT_CHECK_HANDLE = 2,     /* no such buffer, stream, mark, graph or ticket */
    EVENT_CHECK_GENERATION = 3, /* it was destroyed; expected: generation asked for, found: now */
    EVENT_CHECK_VIEW_END = 4,   /* expected: bytes of the buffer, found: last byte the view needs */
    EVENT_CHECK_BYTES = 5,      /* expected: bytes of the view, found: bytes asked for */
    EVENT_CHECK_ALIGNMENT = 6,  /* expected: alignment, found: offset */
    EVENT_CHECK_READ_ONLY = 7,  /* a write to memory that was imported to be read */
    EVENT_CHECK_OPERANDS = 8,   /* expected and found: number of operands, or a missing one */
    EVENT_CHECK_DTYPE = 9,      /* expected: a set of types as bits, found: the type */
    EVENT_CHECK_SHAPE = 10,     /* expected: extent by the contract, found: extent of the view */
    EVENT_CHECK_STRIDE = 11,    /* expected: least stride in bytes, found */
    EVENT_CHECK_PARAMETER = 12, /* expected: bound or size, found */
    EVENT_CHECK_GEOMETRY = 13,  /* expected: most tiles or groups, found */
    EVENT_CHECK_STAGING = 14,   /* no free slot: expected slots, found in use */
    EVENT_CHECK_TICKET = 15,    /* redeemed or released twice, or not yet redeemed */
    EVENT_CHECK_CAPTURE = 16,   /* not while a graph is recorded, or only then */
    EVENT_CHECK_STALE_GRAPH = 17, /* a buffer of the graph was destroyed since it was recorded */
    EVENT_CHECK_MEMORY = 18,      /* expected: bytes available, found: bytes asked for */
    EVENT_CHECK_POINTER = 19, /* the runtime says otherwise: expected: bytes of the view, found: how
                               * many from its address on it says are this device's memory */
    EVENT_CHECK_DIRECTION = 20, /* expected, found: enum event_side of the operand's address */
    EVENT_CHECK_COUNT
};

const char *event_check_name(enum event_check check); /* "view-end": a stable slug */

enum event_side { EVENT_SIDE_UNKNOWN = 0, EVENT_SIDE_DEVICE = 1, EVENT_SIDE_HOST = 2 };

/* The error state of a stream, as asked around a copy. */
enum event_state {
    EVENT_STATE_NOT_ASKED = 0,
    EVENT_STATE_CLEAR = 1,
    EVENT_STATE_ERROR = 2,
};

/* Whose number `code` is. */
enum event_code_of {
    EVENT_CODE_UNSAID = 0,  /* there is no code; or a file of version 2, which does not say */
    EVENT_CODE_GRETA = 1,   /* enum status: greta failed the call itself */
    EVENT_CODE_OS = 2,      /* errno */
    EVENT_CODE_RUNTIME = 3, /* the GPU runtime's own, as it returned it */
    EVENT_CODE_OF_COUNT
};

const char *event_code_of_name(enum event_code_of of); /* "runtime": a stable slug */

/* ---- The event ------------------------------------------------------------------------------ */

/* EVENT_MAYBE, beside EVENT_UPDATE: a foreign kernel was given the pointer; what it does with it,
 * and how far from it, is not known. */
enum event_access_mode { EVENT_READ = 1, EVENT_WRITE = 2, EVENT_UPDATE = 3, EVENT_MAYBE = 4 };

/* A range of device memory that a call may touch. Addresses are shown, never usable. */
struct event_access {
    uint64_t address; /* first byte; 0 if the buffer is not known, or the view was refused */
    uint64_t bytes;   /* to the last byte it may touch; 0 of a view that was refused */
    uint32_t buffer_index;
    uint16_t generation; /* of the handle, cut to 16 bits: enough to tell neighbours apart */
    uint8_t mode;        /* enum event_access_mode */
    uint8_t operand;     /* position in the op's list */
};

/* In a mode beside EVENT_UPDATE: rows that indices choose are written, nothing is read, and what is
 * not chosen stays as it was. */
#define EVENT_SCATTERED 8

/* The most operands an op can have. */
#define EVENT_ACCESS_LIMIT 12

/* How the address of a fault is known: `found` of the event. */
enum event_address {
    EVENT_ADDRESS_UNKNOWN = 0,
    EVENT_ADDRESS_CAUGHT = 1,     /* of the access itself */
    EVENT_ADDRESS_RUNTIME = 2,    /* of its page, as the runtime says */
    EVENT_ADDRESS_KERNEL_LOG = 3, /* of its page, from the log of the operating system's kernel */
    EVENT_ADDRESS_COUNT
};

/* What else there is to a call; bits of struct event's flags. Those from EVENT_SYNCHRONOUS to
 * EVENT_CACHED_MEMORY, and from EVENT_STAGED on, are of foreign programs only. */
enum event_flag {
    EVENT_FOREIGN = 1,       /* seen by interposition: nothing was checked before the call, and what
                                `check` says did not stop it */
    EVENT_SYNCHRONOUS = 2,   /* of a copy or fill: the host waits for it; of a free: for all work */
    EVENT_PAGEABLE = 4,      /* of a copy: its host memory is not known to be pinned */
    EVENT_LEGACY_STREAM = 8, /* a default stream that waits for blocking ones, and they for it */
    EVENT_BLOCKING = 16,     /* a stream that does so */
    EVENT_ALL_STREAMS = 32,  /* of a wait: for all of them; of a copy: in order with the work of
                                all of them */
    EVENT_HOST_MEMORY = 64,  /* of a buffer: pinned host memory */
    EVENT_STREAM_ORDERED = 128, /* of a buffer made or destroyed: when its stream gets there */
    EVENT_PARTIAL = 256,        /* of a launch: it has pointers that are not in the list */
    EVENT_HOST_SOURCE = 512,    /* of a copy: accesses[1] is host memory it reads or writes */
    EVENT_CACHED_MEMORY = 1024, /* of a buffer: a caching allocator keeps it */
    EVENT_CAUGHT = 2048,        /* of a fault: the access was caught inside the call that cause_id
                                   names. Without it no launch is known, and cause_id is 0 */
    EVENT_COPY_ENGINE = 4096,   /* of a fault: the hardware says that a copy made the access */
    EVENT_STAGED = 8192,        /* of a copy: the host waits for the work before it in its stream,
                                   and not for the copy itself */
    EVENT_MAY_WAIT = 16384,     /* of a copy, fill or free: whether the host waits is documented
                                   nowhere */
    EVENT_MAY_TELL = 32768,     /* of work: it may write memory that the host can read, who may see
                                   there that all before it is done; of a rewritten source: the
                                   host may have seen that its copy was done */
};

#define EVENT_OP_BYTES 24
#define EVENT_TENSOR_BYTES 40
#define EVENT_FILE_BYTES 28

/* Where in the computation a call stands; -1 where there is none. */
struct event_scope {
    int32_t step;
    int32_t layer;
    char tensor[EVENT_TENSOR_BYTES]; /* label of what is computed or copied; may be empty */
};

/* Fixed size, no pointers: the same bytes in memory and in a flight file. */
struct event {
    uint64_t id;
    uint64_t cause_id;     /* the event this one follows from; 0 if none */
    uint64_t begin_ns;     /* monotonic */
    uint64_t object;       /* as the kind says: ticket (a copy in: its staging slot, numbered as
                              tickets are), mark, graph, buffer; of a launch, fill or copy within
                              that was recorded into a graph and not run: its graph-begin; of a
                              fault inside a graph: the recorded launch */
    uint64_t bytes;        /* of a copy, fill or buffer */
    uint64_t host_address; /* of a copy, redeem, release: the staging memory; of a buffer: what was
                              imported, 0 for fresh memory; of a fault: the access, if known */
    uint32_t stream_index;
    uint32_t thread_index; /* of the calling host thread, in order of first appearance */
    uint8_t kind;          /* enum event_kind */
    uint8_t access_count;
    uint16_t epoch; /* which replay of a graph; of a copy, redeem, release: generation of the
                       ticket or slot, cut to 16 bits */
    uint32_t line;  /* of the call site */
    struct event_scope scope;
    char op[EVENT_OP_BYTES];     /* name of the op, kernel or buffer */
    char file[EVENT_FILE_BYTES]; /* of the call site */
    uint16_t flags;              /* enum event_flag */
    /* Of a foreign call, at its beginning: the check it will not pass, and the operand; so that
     * they are known of a call the process died in. */
    uint8_t begin_check, begin_operand;
    /* Of a foreign program; numbers of tables in the flight file, 0: none. */
    uint32_t stack_index; /* who called */
    uint32_t name_index;  /* the kernel's full name, of which op has the beginning */
    struct event_access accesses[EVENT_ACCESS_LIMIT];

    /* Known at the end. */
    uint64_t end_ns;
    /* What the check compared; bound and index of a trap; of a redeemed ticket: hash of its bytes
     * (0 where the device was not asked for hashes), and 1 if the copy was waited for; of a copy
     * in or out: error state of its stream (enum event_state) before it and behind it; of a fresh
     * buffer, expected: the byte it holds; of a canary: bytes of the buffer, and offset of the
     * first damaged byte from its start (may be negative). */
    uint64_t expected, found;
    int32_t code;        /* 0 is success, or a check of ours said no; code_of says whose it is */
    uint8_t phase : 4;   /* enum event_phase: the low half of its byte */
    uint8_t code_of : 4; /* enum event_code_of */
    uint8_t outcome;     /* enum event_outcome */
    uint8_t check;       /* enum event_check */
    uint8_t operand;     /* which operand the check or trap is about; 255: none */
};

#define EVENT_NO_OPERAND 255u
#define EVENT_NO_STREAM UINT32_MAX

/* True of a call that went into a graph instead of being run: its object is the graph-begin. Copies
 * in and out are recorded by foreign programs only; the object of others is a ticket. */
static inline bool event_is_recorded(const struct event *event)
{
    bool copies = event->kind == EVENT_COPY_IN || event->kind == EVENT_COPY_OUT;
    return event->object != 0 &&
           (event->kind == EVENT_LAUNCH || event->kind == EVENT_FILL ||
            event->kind == EVENT_COPY_WITHIN || (copies && (event->flags & EVENT_FOREIGN)));
}

/* Copies text into a fixed field, cut if need be, always ended. */
void event_set_text(char *field, size_t field_bytes, const char *text);

/* ---- The observer --------------------------------------------------------------------------- */

/* Called from any thread, on the hot path: must not block, allocate or call the device. The event
 * is borrowed for the call. */
struct event_observer {
    void (*notify)(void *context, const struct event *event);
    void *context;
};

#endif
