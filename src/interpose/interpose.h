/* interpose.h - the GPU calls of a foreign program, as events.
 *
 * A backend's library is loaded into the program (by the CUDA driver, or as a preload library over
 * libamdhip64) and passes the arguments of each call on; here they become events (event/event.h) in
 * a flight file, which greta trace analyses from outside while the program runs.
 * No call is checked first, refused, delayed or changed: what is wrong with a call is recorded with
 * it.
 *
 *     begin function, real call, end function
 *
 * The begin function gets what the program requested and writes the event before the runtime
 * sees the call; the end function adds what came of it. In between the struct interpose_call
 * belongs to the call; it lives in the caller's memory (a wrapper's stack, thread-local storage).
 *
 * All functions may be called from any thread. They never fail, print, raise a signal or call the
 * runtime; a process that is not traced, or whose flight file could not be made, has no struct
 * interpose, and NULL is accepted everywhere. Addresses and handles are numbers here: nothing is
 * read through them but kernel parameters and the pinned host memory of a copy. */
#ifndef GRETA_INTERPOSE_INTERPOSE_H
#define GRETA_INTERPOSE_INTERPOSE_H

#include "event/flight.h"

/* ---- Life ----------------------------------------------------------------------------------- */

enum interpose_runtime { INTERPOSE_CUDA, INTERPOSE_HIP, INTERPOSE_RUNTIME_COUNT };

/* The differences between runtimes; static. */
struct interpose_backend {
    const char *name; /* "cuda": also part of the flight file's name */
    enum interpose_runtime runtime;
    /* True if the device is lost after this code (an illegal address, a failed launch). */
    bool (*is_fatal)(int32_t code);
    /* Waits for all work of the device and returns the runtime's code. Called only in a rerun with
     * --narrow, after each of the launches that it waits for. */
    int32_t (*synchronise)(void);
    /* Is this thread inside a wrapped call? NULL: it is not known, and no page traps are set. */
    bool (*is_inside)(void);
};

struct interpose;

/* Reads the environment that greta trace sets (interpose_variable_*) and makes the flight file of
 * this process. Returns NULL if this process is not traced, or if the file could not be made; a
 * note next to the recordings says so then. Call it once per backend. */
struct interpose *interpose_start(const struct interpose_backend *backend, const char *device);

/* The same with a given folder instead of the environment's: for self-tests. records: size of the
 * ring; 0: as the environment says, or the default. */
struct interpose *interpose_open(const struct interpose_backend *backend, const char *folder,
                                 const char *device, uint32_t records);
/* Ends the recording and frees everything; no call may be open. NULL is fine. */
void interpose_close(struct interpose *interpose);

/* Leaves a note for greta trace next to the recordings that says why this process has no recording,
 * or an incomplete one. `slug` is one of these; `detail` says what was found and may be empty. */
#define INTERPOSE_NOTE_NO_CUPTI "no-cupti"         /* none was found */
#define INTERPOSE_NOTE_BAD_CUPTI "bad-cupti"       /* the one that was named cannot be loaded */
#define INTERPOSE_NOTE_CUPTI_TAKEN "cupti-taken"   /* it refused to subscribe */
#define INTERPOSE_NOTE_NO_RECORDING "no-recording" /* the flight file could not be made */
void interpose_note(const struct interpose_backend *backend, const char *slug, const char *detail);

/* Ends the recording in order; for the library's destructor. */
void interpose_stop(struct interpose *interpose);

/* The recording's path without ".flight"; what else concerns the process stands next to it. */
const char *interpose_path(const struct interpose *interpose);
#define INTERPOSE_SUFFIX_DUMP ".core"      /* a GPU core dump, written by the driver */
#define INTERPOSE_SUFFIX_NO_DUMP ".nocore" /* why none can be: a sentence in English */
/* Leaves a file of that name with a text, unless there is one. */
void interpose_leave(const struct interpose *interpose, const char *suffix, const char *text);

/* Set by greta trace for the program it starts. */
#define INTERPOSE_VARIABLE_FOLDER "GRETA_TRACE_FOLDER"     /* where recordings go; absolute */
#define INTERPOSE_VARIABLE_NARROW "GRETA_TRACE_NARROW"     /* "FIRST-LAST": launches to wait for */
#define INTERPOSE_VARIABLE_COREDUMP "GRETA_TRACE_COREDUMP" /* set: GPU core dumps are wanted */
#define INTERPOSE_VARIABLE_CUPTI "GRETA_TRACE_CUPTI"       /* a libcupti to use; optional */
#define INTERPOSE_VARIABLE_RECORDS "GRETA_TRACE_RECORDS"   /* of the ring; optional */

/* ---- A call --------------------------------------------------------------------------------- */

/* Opaque: only interpose/ reads or sets the fields. */
struct grid_count;
struct interpose_call {
    struct event event;
    bool open;
    bool watched;            /* page traps are to be set when it has ended */
    bool partly_watched;     /* some of its host memory has none */
    uint64_t launch_ordinal; /* of this process, from 1 */
    uint64_t argument[2];
    bool slow_to_read;
    struct flight_launch facts;    /* of a launch that has a place for them */
    struct grid_count *grid_count; /* of its context; NULL: not counted */
};

/* A stream: its handle, and for a default stream its context (or device). */
struct interpose_stream {
    uint64_t context; /* any number that identifies the context */
    uint64_t handle;  /* the runtime's handle, or: */
};
#define INTERPOSE_STREAM_LEGACY UINT64_C(1)     /* the default stream that waits for others */
#define INTERPOSE_STREAM_PER_THREAD UINT64_C(2) /* the default stream of the calling thread */

/* Ends a call with its code, 0 for success. Needed after every begin function that has no end
 * function of its own. */
void interpose_end(struct interpose *interpose, struct interpose_call *call, int32_t code);

/* `name` is always the runtime's function, as its documentation names it ("cuMemcpyDtoHAsync",
 * "hipMemcpy"); static, or borrowed for the call. */

/* ---- Memory --------------------------------------------------------------------------------- */

enum interpose_memory {
    INTERPOSE_DEVICE,     /* cuMemAlloc, hipMalloc */
    INTERPOSE_POOL,       /* in stream order: cuMemAllocAsync, hipMallocAsync */
    INTERPOSE_MAPPED,     /* physical memory mapped at an address: cuMemMap */
    INTERPOSE_MANAGED,    /* cuMemAllocManaged */
    INTERPOSE_PINNED,     /* host memory of the runtime: cuMemHostAlloc, hipHostMalloc */
    INTERPOSE_REGISTERED, /* host memory of the program: cuMemHostRegister */
    INTERPOSE_MEMORY_COUNT
};
/* Added to INTERPOSE_PINNED: write-combined memory, which the host reads a hundred times slower. */
#define INTERPOSE_SLOW_TO_READ 64

/* stream: for INTERPOSE_POOL; otherwise NULL. */
void interpose_alloc_begin(struct interpose *interpose, struct interpose_call *call,
                           const char *name, enum interpose_memory memory, uint64_t bytes,
                           const struct interpose_stream *stream);
void interpose_alloc_end(struct interpose *interpose, struct interpose_call *call, uint64_t address,
                         int32_t code);

/* To be called between begin and end: the context or device that owns the memory; any number but 0.
 */
void interpose_alloc_context(struct interpose *interpose, struct interpose_call *call,
                             uint64_t context);

/* Also for registered and mapped memory (cuMemHostUnregister, cuMemUnmap). stream: for a free in
 * stream order; NULL: the runtime frees at once. bytes: for cuMemUnmap, which may name several
 * mappings; 0: the whole allocation. Do not call it for address 0: that free does nothing. */
void interpose_free_begin(struct interpose *interpose, struct interpose_call *call,
                          const char *name, enum interpose_memory memory, uint64_t address,
                          uint64_t bytes, const struct interpose_stream *stream);

/* A context is destroyed or a device reset: all work is waited for, and its memory is freed. Name
 * the contexts after a successful call, before interpose_end. */
void interpose_reset_begin(struct interpose *interpose, struct interpose_call *call,
                           const char *name);
void interpose_context_gone(struct interpose *interpose, const struct interpose_call *call,
                            uint64_t context);

/* ---- Copies and fills ----------------------------------------------------------------------- */

enum interpose_direction {
    INTERPOSE_TO_DEVICE,
    INTERPOSE_TO_HOST,
    INTERPOSE_WITHIN, /* device to device, peers too */
    INTERPOSE_HOST,   /* host to host */
    INTERPOSE_ANY     /* cudaMemcpyDefault, cuMemcpy: follows from the addresses */
};

struct interpose_copy {
    enum interpose_direction direction; /* as the program asked */
    uint64_t source, target;
    uint64_t bytes; /* of a row */
    /* More than one row (0 and 1: one), and more than one plane of them. */
    uint64_t rows, source_pitch, target_pitch;
    uint64_t planes, source_plane, target_plane; /* bytes from one plane to the next */
    bool source_opaque, target_opaque;           /* an array: it has no address */
    bool sides_unknown; /* it is not known whether an opaque side is host or device memory */
    bool async;         /* has "Async" in its name: see copy_behaviour.def */
    bool peer;          /* between two devices */
    const struct interpose_stream *stream; /* NULL: the legacy default stream */
    uint64_t graph; /* added to this graph by hand, not run (0: run, or captured) */
};
void interpose_copy_begin(struct interpose *interpose, struct interpose_call *call,
                          const char *name, const struct interpose_copy *copy);

/* From here on synchronous copies and fills may wait although copy_behaviour.def says that they do
 * not: the program requested it, for some memory or for a whole context. */
void interpose_copies_may_wait(struct interpose *interpose);

/* From here on device memory may be written in a way that no call shows: by a network card, or by a
 * kernel that gets an address in a form that is no pointer. */
void interpose_unseen_writes(struct interpose *interpose);

/* The runtime may have launched kernels that are not recorded: how it numbers those that are is not
 * known exactly any more. */
void interpose_unseen_launches(struct interpose *interpose);

struct interpose_fill {
    uint64_t target, bytes, rows, pitch; /* bytes of a row; rows 0 and 1: one */
    const struct interpose_stream *stream;
    uint64_t graph;
};
void interpose_fill_begin(struct interpose *interpose, struct interpose_call *call,
                          const char *name, const struct interpose_fill *fill);

/* ---- Launches ------------------------------------------------------------------------------- */

/* The bytes of the parameters. Each aligned 8-byte word that points into a known allocation is
 * taken for a pointer that the kernel may read and write through. */
struct interpose_parameter {
    const void *bytes;
    size_t count;
    size_t offset; /* among all of the kernel's; ascending */
};

/* What a kernel does with each 8-byte word of its parameters, as far as its code proves it. */
enum kernel_use { KERNEL_READS = 1, KERNEL_WRITES = 2 }; /* through an address in the word; bits */
#define KERNEL_PARAMETER_LIMIT 96u
#define KERNEL_WORD_LIMIT 256u
struct kernel_uses {
    uint16_t parameter_count;
    uint16_t sizes[KERNEL_PARAMETER_LIMIT]; /* in bytes */
    uint16_t words[KERNEL_PARAMETER_LIMIT]; /* place of the first word of each */
    uint8_t uses[KERNEL_WORD_LIMIT];        /* 0: no access is made through it */
};

struct interpose_launch {
    const char *kernel; /* the runtime's name, mangled or not; NULL: unknown */
    uint64_t function;  /* its handle: a name is looked up once for each */
    uint32_t grid[3], block[3], shared_bytes;
    const struct interpose_parameter *parameters;
    size_t parameter_count;
    bool parameters_unknown;        /* the sizes are not known: pointers may be missing */
    const struct kernel_uses *uses; /* NULL: any pointer may be read and written through */
    uint64_t context;               /* any number that identifies it; 0: not known */
    const struct interpose_stream *stream;
    uint64_t graph;
};
void interpose_launch_begin(struct interpose *interpose, struct interpose_call *call,
                            const char *name, const struct interpose_launch *launch);

/* ---- Streams, events, waits ----------------------------------------------------------------- */

/* Call it after the stream was created. blocking: the stream and the legacy default stream wait for
 * each other. */
void interpose_stream_created(struct interpose *interpose, const char *name,
                              const struct interpose_stream *stream, bool blocking);
void interpose_stream_destroy_begin(struct interpose *interpose, struct interpose_call *call,
                                    const char *name, const struct interpose_stream *stream);
/* The host waits for a stream; NULL: for all of them. */
void interpose_sync_begin(struct interpose *interpose, struct interpose_call *call,
                          const char *name, const struct interpose_stream *stream);
/* event: the handle. */
void interpose_record_begin(struct interpose *interpose, struct interpose_call *call,
                            const char *name, uint64_t event,
                            const struct interpose_stream *stream);
void interpose_wait_begin(struct interpose *interpose, struct interpose_call *call,
                          const char *name, uint64_t event, const struct interpose_stream *stream);
void interpose_event_sync_begin(struct interpose *interpose, struct interpose_call *call,
                                const char *name, uint64_t event);
/* A query said that the work is done. Call it after the query, and only then. One of stream and
 * event is 0 or NULL. */
void interpose_query_done(struct interpose *interpose, const char *name, uint64_t event,
                          const struct interpose_stream *stream);
/* From here on, order that cannot be seen involves this stream: a host function, a wait for a value
 * in memory, an external semaphore, an event of another process. Findings that rest on its order
 * are only possible. */
void interpose_hidden_order(struct interpose *interpose, const char *name,
                            const struct interpose_stream *stream);

/* From here on any kernel may write memory that the host reads, although none of its parameters
 * says so: the program asked for the device's address of host memory, or for that of a module's
 * variable. by_all_work: copies too, because another process can read what they write. */
void interpose_may_tell(struct interpose *interpose, bool by_all_work);

/* The calling thread begins and ends a range of work that the program gives a name; NULL: it has
 * none that can be read. Calls within it have the name of the innermost one (event_scope.tensor).
 */
void interpose_range_push(const char *name);
void interpose_range_pop(void);

/* ---- Graphs --------------------------------------------------------------------------------- */

/* Calls to a stream that is being captured are recorded, not run. Streams that join the capture by
 * waiting for one of its events are followed. */
void interpose_capture_begin(struct interpose *interpose, struct interpose_call *call,
                             const char *name, const struct interpose_stream *stream);
void interpose_capture_end(struct interpose *interpose, struct interpose_call *call,
                           const char *name, const struct interpose_stream *stream);
/* The graph that the end of a capture gave. Call it between capture_end and interpose_end. */
void interpose_capture_gave(struct interpose *interpose, struct interpose_call *call,
                            uint64_t graph);
/* Call it after success. An executable graph stands for the graph it was made from. */
void interpose_graph_instantiated(struct interpose *interpose, uint64_t graph, uint64_t executable);
/* Its nodes were changed or added by calls that are not followed, so its pointers are not checked
 * any more. 0: this may concern any graph. */
void interpose_graph_changed(struct interpose *interpose, uint64_t graph_or_executable);
void interpose_graph_launch_begin(struct interpose *interpose, struct interpose_call *call,
                                  const char *name, uint64_t executable,
                                  const struct interpose_stream *stream);
void interpose_graph_destroyed(struct interpose *interpose, uint64_t graph_or_executable);

/* ---- Errors --------------------------------------------------------------------------------- */

/* Any other call returned this code; recorded if it is a failure. */
void interpose_failed(struct interpose *interpose, const char *name, int32_t code);

#endif
