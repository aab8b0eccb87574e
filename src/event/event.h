/* event.h - what happened on a device, as values of one schema.
 *
 * The device layer reports every call, refusal, completion, trap and fault to one observer. A
 * flight file, live analysis and a foreign program seen by interposition all produce and consume
 * this same stream; nothing above needs to know which of them is the observer.
 *
 * A call is reported twice: at its beginning, before anything reaches the device (so that the
 * evidence is there if the process dies in it), and at its end, with the outcome. Things that are
 * not calls (a trap, a fault, a completion) are reported once, as ends. Events of one device have
 * ids that only grow; begin and end of a call share one. */
#ifndef GRETA_EVENT_EVENT_H
#define GRETA_EVENT_EVENT_H

#include "event/event_numbers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- What every event has ------------------------------------------------------------------- */

/* A range of device memory that a call may touch. Addresses are shown, never usable. */
struct event_access {
    uint64_t address; /* first byte; 0 if the buffer is not known, or the view was refused */
    uint64_t bytes;   /* size up to the last byte it may touch; 0 if the view was refused */
    uint32_t buffer_index;
    uint16_t generation; /* of the handle, cut to 16 bits: enough to tell neighbours apart */
    uint8_t mode;        /* enum event_access_mode */
    uint8_t operand;     /* position in the op's list */
};

/* The most operands an op can have. */
#define EVENT_ACCESS_LIMIT 12

#define EVENT_OP_BYTES 24
#define EVENT_TENSOR_BYTES 40
#define EVENT_FILE_BYTES 28

/* Where in the computation a call stands; -1 where there is none. */
struct event_scope {
    int32_t step;
    int32_t layer;
    char tensor[EVENT_TENSOR_BYTES]; /* label of what is computed or copied; may be empty */
};

/* ---- What only some kinds have -------------------------------------------------------------- */

/* EVENT_DEVICE_OPEN. op: the kind of the device; tensor of the scope: its name. */
struct event_device {
    uint8_t domain; /* enum event_error_domain of its runtime's codes */
};

/* EVENT_BUFFER_CREATE, EVENT_BUFFER_DESTROY. The memory is accesses[0]. */
struct event_buffer {
    uint64_t bytes;
    uint64_t imported_address; /* of the host's memory that was imported; 0 for fresh memory */
    uint64_t graph_id;         /* foreign programs only: as in struct event_copy */
    uint32_t buffer_index;     /* 0 until there is one */
    uint8_t fill_byte;         /* what fresh memory holds; 0: not filled */
};

/* EVENT_MARK_RECORD, EVENT_MARK_WAIT, EVENT_MARK_SYNC. */
struct event_mark {
    uint64_t mark;
};

/* EVENT_COPY_IN, EVENT_COPY_OUT, EVENT_COPY_WITHIN, EVENT_FILL. */
struct event_copy {
    uint64_t bytes;
    uint64_t host_address; /* the staging memory, or a foreign program's; 0 if there is none */
    uint64_t graph_id;     /* the graph-begin, if it was recorded into a graph and not run */
    uint32_t ticket;       /* of a copy in: its staging slot, numbered as tickets are; 0: none */
    uint16_t generation;   /* of the ticket or slot, cut to 16 bits */
    uint8_t state_before;  /* enum event_state of the stream before the call */
    uint8_t state_after;   /* and after it */
};

/* EVENT_MODULE_LOAD. */
struct event_module {
    uint64_t kernel_count;
};

/* EVENT_LAUNCH. */
struct event_launch {
    uint64_t graph_id;   /* as in struct event_copy */
    uint64_t ordinal;    /* foreign programs only: which launch of the process, from 1; else 0 */
    uint32_t name_index; /* foreign programs only: index of the kernel's full name (op holds its
                            beginning) in a table of the flight file; 0: none */
    uint32_t facts_index; /* foreign programs only: index of its shape and arguments in a table of
                             the flight file; 0: none */
};

/* EVENT_GRAPH_BEGIN, EVENT_GRAPH_END, EVENT_GRAPH_REPLAY, EVENT_GRAPH_DESTROY. cause_id: the
 * graph-begin, if it is known. */
struct event_graph {
    uint64_t handle;  /* 0 until there is one */
    uint64_t ordinal; /* of a replay: as in struct event_launch */
    uint16_t epoch;   /* which replay of the graph, cut to 16 bits */
};

/* EVENT_TICKET_REDEEM, EVENT_TICKET_RELEASE. */
struct event_ticket {
    uint64_t bytes;
    uint64_t host_address; /* the staging memory */
    uint64_t hash;         /* of the bytes that were read; 0 where hashes were not asked for */
    uint32_t ticket;
    uint16_t generation; /* cut to 16 bits */
    uint8_t waited;      /* 1 if the host waited for the copy first */
};

/* EVENT_TRAP. */
struct event_trap {
    uint64_t index, bound;
};

/* EVENT_FAULT. */
struct event_fault {
    uint64_t address;      /* of the access; 0 if it is not known */
    uint64_t node_id;      /* inside a graph: the recorded launch */
    uint8_t address_known; /* enum event_address */
};

/* EVENT_CANARY. The buffer is accesses[0]. */
struct event_canary {
    uint64_t address; /* of the first damaged byte */
    int64_t offset;   /* of that byte from the start of the buffer; may be negative */
    uint64_t damaged_bytes;
    uint64_t buffer_bytes;
};

/* EVENT_RUN. */
struct event_run {
    uint64_t iteration;
    uint64_t key; /* equal for iterations that must give equal results */
};

/* EVENT_TRANSFER_HASH. */
struct event_transfer_hash {
    uint64_t source_before, source_after; /* where the bytes came from, before the copy and after */
    uint64_t destination;                 /* where they landed */
    uint64_t bytes;
};

/* EVENT_SCAN. */
struct event_scan {
    uint64_t value_count;
    uint64_t bad_count; /* of values that are not finite */
    uint64_t first_bad; /* index of the first of them */
};

/* EVENT_SOURCE_CHANGED. */
struct event_source_change {
    uint64_t address, bytes;
    uint64_t digest_before; /* when the copy was queued */
    uint64_t digest_now;
};

/* EVENT_CALL. */
struct event_call {
    uint64_t handle; /* of the mark it was about; 0: none */
};

/* EVENT_OP_HASH. */
struct event_op_hash {
    uint64_t digest;
    uint8_t when; /* EVENT_READ: right before the launch, EVENT_WRITE: right after it */
};

/* EVENT_HOST_ACCESS. accesses[0]: the bytes, as far as known at least the first, and how. */
struct event_host_access {
    uint64_t address, bytes;           /* bytes 0: of one instruction, whose size is not known */
    uint64_t copy_address, copy_bytes; /* of host memory that the copy or fill uses */
};

/* EVENT_HOST_TRAPS. */
struct event_host_traps {
    uint64_t state; /* enum event_traps */
};

#define EVENT_PAYLOAD_WORDS 4

/* Which of them a kind has. */
enum event_payload {
    EVENT_PAYLOAD_NONE,
    EVENT_PAYLOAD_DEVICE,
    EVENT_PAYLOAD_BUFFER,
    EVENT_PAYLOAD_MARK,
    EVENT_PAYLOAD_COPY,
    EVENT_PAYLOAD_MODULE,
    EVENT_PAYLOAD_LAUNCH,
    EVENT_PAYLOAD_GRAPH,
    EVENT_PAYLOAD_TICKET,
    EVENT_PAYLOAD_TRAP,
    EVENT_PAYLOAD_FAULT,
    EVENT_PAYLOAD_CANARY,
    EVENT_PAYLOAD_RUN,
    EVENT_PAYLOAD_TRANSFER_HASH,
    EVENT_PAYLOAD_SCAN,
    EVENT_PAYLOAD_SOURCE_CHANGE,
    EVENT_PAYLOAD_CALL,
    EVENT_PAYLOAD_OP_HASH,
    EVENT_PAYLOAD_HOST_ACCESS,
    EVENT_PAYLOAD_HOST_TRAPS,
    EVENT_PAYLOAD_COUNT
};

enum event_payload event_payload_of(enum event_kind kind);

/* ---- The event ------------------------------------------------------------------------------ */

/* Fixed size, no pointers: the same bytes in memory and in a flight file. */
struct event {
    uint64_t id;
    uint64_t cause_id; /* the event this one follows from; 0 if none */
    uint64_t begin_ns; /* monotonic */
    uint32_t process_id;
    uint32_t thread_index; /* of the calling host thread, in order of first appearance */
    uint32_t stream_index;
    uint16_t device_index; /* of those that report to one observer, from 0 */
    uint8_t kind;          /* enum event_kind: says which payload there is */
    uint8_t access_count;
    struct event_scope scope;
    char op[EVENT_OP_BYTES];     /* name of the op, kernel or buffer */
    char file[EVENT_FILE_BYTES]; /* of the call site */
    uint32_t flags;              /* enum event_flag */
    uint32_t stack_index; /* foreign programs only: index of the call stack in a table of the flight
                             file; 0: none */
    uint16_t line;        /* of the call site */
    /* What a check of ours found. For a foreign call it is known at the beginning, so that it is
     * there for a call the process died in. */
    uint8_t check;            /* enum event_check */
    uint8_t operand;          /* which operand the check or event is about; 255: none */
    uint64_t expected, found; /* what the check compared */
    union {
        uint64_t words[EVENT_PAYLOAD_WORDS]; /* first: so that {} clears all of it */
        struct event_device device;
        struct event_buffer buffer;
        struct event_mark mark;
        struct event_copy copy;
        struct event_module module;
        struct event_launch launch;
        struct event_graph graph;
        struct event_ticket ticket;
        struct event_trap trap;
        struct event_fault fault;
        struct event_canary canary;
        struct event_run run;
        struct event_transfer_hash transfer;
        struct event_scan scan;
        struct event_source_change source_change;
        struct event_call call;
        struct event_op_hash op_hash;
        struct event_host_access host_access;
        struct event_host_traps host_traps;
    };
    struct event_access accesses[EVENT_ACCESS_LIMIT];

    /* Known at the end. */
    uint64_t end_ns;
    int32_t code;    /* 0: success, or refused by a check of greta, which `check` names */
    uint8_t domain;  /* enum event_error_domain: whose number code is */
    uint8_t phase;   /* enum event_phase */
    uint8_t outcome; /* enum event_outcome */
    uint8_t unused;
};

#define EVENT_NO_OPERAND 255u
/* Devices that can report to one observer. */
#define EVENT_DEVICE_LIMIT 16u
#define EVENT_NO_STREAM UINT32_MAX

static inline bool event_is_copy(uint8_t kind)
{
    return kind == EVENT_COPY_IN || kind == EVENT_COPY_OUT || kind == EVENT_COPY_WITHIN ||
           kind == EVENT_FILL;
}

/* Work of a foreign program: the scope's tensor is the name of the range that the program gave it.
 */
static inline bool event_is_ranged(uint8_t kind)
{
    return event_is_copy(kind) || kind == EVENT_LAUNCH || kind == EVENT_GRAPH_REPLAY;
}

/* The size of the copy, fill, buffer or ticket that the event is about; 0 for other kinds. */
uint64_t event_bytes(const struct event *event);

/* The graph-begin of the graph a launch, copy or fill went into instead of being run; else 0. */
static inline uint64_t event_graph_id(const struct event *event)
{
    if (event->kind == EVENT_LAUNCH)
        return event->launch.graph_id;
    return event_is_copy(event->kind) ? event->copy.graph_id : 0;
}

/* For a launch, copy or fill. */
static inline void event_set_graph_id(struct event *event, uint64_t graph_id)
{
    if (event->kind == EVENT_LAUNCH)
        event->launch.graph_id = graph_id;
    else
        event->copy.graph_id = graph_id;
}

/* Copies text into a fixed field, truncated if necessary, always NUL-terminated. */
void event_set_text(char *field, size_t field_bytes, const char *text);

/* ---- The observer --------------------------------------------------------------------------- */

/* Called from any thread, on the hot path: must not block, allocate or call the device. The event
 * is borrowed for the call. */
struct event_observer {
    void (*notify)(void *context, const struct event *event);
    void *context;
};

#endif
