/* event_numbers.h - the numbers in events, and their names: part of event.h.
 *
 * Every number below is in flight files and is frozen (event/numbers.def): it never changes, and is
 * never given to anything else. New values come last. */
#ifndef GRETA_EVENT_EVENT_NUMBERS_H
#define GRETA_EVENT_EVENT_NUMBERS_H

/* ---- Calls ---------------------------------------------------------------------------------- */

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
    /* The work of an earlier call (cause_id) is done; reported before its staging slot can be taken
     * again. */
    EVENT_COMPLETION = 22,
    EVENT_TRAP = 23,  /* a kernel met an index past its bound and skipped the access */
    EVENT_FAULT = 24, /* the device made an illegal access and is lost */
    /* Bytes next to a buffer have changed. cause_id: the work after which that was seen; 0: some
     * time before now. They are checked, and restored, after each launch that writes the buffer,
     * and after a replay of such launches. damaged_bytes 0: a check could not be made; reported
     * once. */
    EVENT_CANARY = 25,
    EVENT_RUN = 26,           /* an iteration of a workload begins */
    EVENT_TRANSFER_HASH = 27, /* of the bytes of an earlier copy (cause_id) */
    /* Values that an earlier launch wrote (cause_id, operand) were looked at. */
    EVENT_SCAN = 28,
    /* Foreign programs only: the pinned host memory that an earlier copy (cause_id) reads was
     * rewritten before the host waited for the copy. */
    EVENT_SOURCE_CHANGED = 29,
    /* Foreign programs only: from here on the stream is ordered in a way that is not seen (a host
     * function, a value in memory, another process). */
    EVENT_HIDDEN_ORDER = 30,
    /* Foreign programs only: another call, recorded because it failed, or because it concerns a
       graph that is being captured. */
    EVENT_CALL = 31,
    EVENT_OP_HASH = 32, /* digest of an operand of an earlier launch (cause_id, operand) */
    /* Foreign programs only: the program touched host memory that an earlier copy or fill
     * (cause_id) was still using. EVENT_MAY_TELL: it may have been a look at a flag. */
    /* In greta itself: a caller touched staging memory before it had redeemed the ticket of the
     * copy (cause_id), or after its release (EVENT_CHECK_TICKET). */
    EVENT_HOST_ACCESS = 33,
    EVENT_HOST_TRAPS = 34, /* foreign programs only: such memory is watched, or no longer */
    EVENT_KIND_COUNT
};

const char *event_kind_name(enum event_kind kind); /* "copy-out": a stable slug */

enum event_phase { EVENT_BEGIN = 0, EVENT_END = 1 };

enum event_outcome {
    EVENT_PENDING = 0, /* begun, no end seen: where a dead process died */
    EVENT_DONE = 1,
    EVENT_FAILED = 2,  /* the device or its runtime said no */
    EVENT_REFUSED = 3, /* a check of greta refused it; the device was not called */
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
enum event_error_domain {
    EVENT_ERROR_NONE = 0,    /* there is no code, or a file of version 2 does not say */
    EVENT_ERROR_GRETA = 1,   /* enum status: greta failed the call itself */
    EVENT_ERROR_ERRNO = 2,   /* of the operating system */
    EVENT_ERROR_RUNTIME = 3, /* of a GPU runtime; a file of version 3 that does not say which */
    EVENT_ERROR_CUDA = 4,    /* CUresult or cudaError_t, as the runtime returned it */
    EVENT_ERROR_HIP = 5,     /* hipError_t */
    EVENT_ERROR_DOMAIN_COUNT
};

const char *event_error_domain_name(enum event_error_domain domain); /* "cuda": a stable slug */
/* The domain of the codes of a device of that kind ("cuda", "hip"); EVENT_ERROR_NONE for a device
 * without a runtime of its own. */
enum event_error_domain event_error_domain_of(const char *device_kind);

/* ---- Memory --------------------------------------------------------------------------------- */

/* EVENT_MAYBE, set together with EVENT_UPDATE: a foreign kernel received the pointer. Whether it
 * reads or writes there, and how many bytes, is not known. Together with EVENT_READ: its code shows
 * that it does not write there. */
enum event_access_mode { EVENT_READ = 1, EVENT_WRITE = 2, EVENT_UPDATE = 3, EVENT_MAYBE = 4 };

/* Set in a mode together with EVENT_UPDATE: rows that indices choose are written, nothing is read,
 * and what is not chosen stays as it was. */
#define EVENT_SCATTERED 8

/* The bytes of a foreign copy to the device that are looked at for EVENT_HAS_ADDRESSES. */
#define EVENT_ADDRESSES_LOOKED 65536u
/* What became of page traps on host memory. */
enum event_traps {
    EVENT_TRAPS_ON = 0,
    EVENT_TRAPS_LIMIT = 1,   /* for now no more ranges fit into the process's mappings */
    EVENT_TRAPS_SIGNAL = 2,  /* off: the program took SIGSEGV in a way that is not seen */
    EVENT_TRAPS_RING = 3,    /* off: it uses io_uring, which fails on protected memory */
    EVENT_TRAPS_ASYNC = 4,   /* off: it uses the kernel's asynchronous I/O, likewise */
    EVENT_TRAPS_REFUSED = 5, /* off: memory cannot be protected here */
    EVENT_TRAPS_COUNT
};

const char *event_traps_name(enum event_traps state); /* "io-uring": a stable slug */

/* ---- Faults and flags ----------------------------------------------------------------------- */

/* How the address of a fault is known. */
enum event_address {
    EVENT_ADDRESS_UNKNOWN = 0,
    EVENT_ADDRESS_CAUGHT = 1,     /* of the access itself */
    EVENT_ADDRESS_RUNTIME = 2,    /* of its page, as the runtime says */
    EVENT_ADDRESS_KERNEL_LOG = 3, /* of its page, from the log of the operating system's kernel */
    EVENT_ADDRESS_COUNT
};

/* Further properties of a call; bits of struct event's flags. Those from EVENT_SYNCHRONOUS to
 * EVENT_CACHED_MEMORY, and from EVENT_STAGED to EVENT_MAY_TELL, are of foreign programs only. */
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
    EVENT_MAY_TELL =
        32768, /* of work: it may write memory from which the host learns that earlier work is done;
                  of a rewritten source: the host may have learned that its copy was done; of an
                  access of the host: it may have been a look at a flag */
    EVENT_SWEPT = 65536,  /* of a canary: the work ran alone, and all canaries of the device
                             were checked after the work before it */
    EVENT_FRESH = 131072, /* of a buffer of a foreign program: device memory of its own, in which
                             nothing was written yet */
    EVENT_HAS_ADDRESSES = 262144, /* of a foreign copy to the device: among its bytes is an address
                                     of device memory, or they could not be looked at */
    EVENT_SAMPLED = 524288, /* of a foreign copy: its host memory is not watched for changes, or
                               only in samples */
    EVENT_WATCHED = 1048576, /* of foreign work: page traps show what the host reads of all host
                                memory that it may write, as far as greta knows that memory */
    EVENT_UNSEEN_WRITES = 2097152, /* of a foreign copy of device memory: others may have written
                                      there, such as another process or a network card */
};

#endif
