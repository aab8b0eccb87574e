/* device.h - the one door to memory and processors that do the work: the CPU, a GPU.
 *
 * Everything above holds handles and views, never addresses. Every entry checks before it forwards
 * (handles, lifetime, bounds, alignment, contracts: always on, constant time per operand), returns
 * a status, and tells one observer what was asked and what came of it.
 *
 * Order. Work of one stream happens in the order it was given; work of two streams has no order
 * unless a mark makes one. Calls return when the work is queued. An illegal access makes the device
 * lost: the next checked call says so and names the first fault, as does every call after it.
 *
 * Bytes out. A copy out returns a ticket. Its bytes can be had only by redeeming it, which waits
 * and checks; they stay valid until the ticket is released. There is no other way to read device
 * memory.
 *
 * Threads. Any thread may call; calls on one stream are serialised inside. A handle belongs to the
 * device that made it. Everything a device made is gone when it is closed. */
#ifndef GRETA_DEVICE_DEVICE_H
#define GRETA_DEVICE_DEVICE_H

#include "base/status.h"
#include "device/abi/abi.h"
#include "event/crumb.h"
#include "event/event.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct device;

/* ---- Options: chosen by the audit level, fixed at open -------------------------------------- */

enum device_staging { DEVICE_STAGING_PINNED, DEVICE_STAGING_PAGEABLE };

/* How a copy out is ordered with the work before it, to prove or refute a fix. */
enum device_d2h_mode {
    DEVICE_D2H_TICKET, /* queued; redeeming waits for it */
    DEVICE_D2H_SYNC,   /* wait for the stream, copy, wait again */
    DEVICE_D2H_EVENT,  /* record a mark behind it, wait for the mark */
    DEVICE_D2H_PLAIN,  /* redeeming does not wait: only to show what that breaks, under audit */
    DEVICE_D2H_COUNT
};

const char *device_d2h_mode_name(enum device_d2h_mode mode);

/* Imported memory, without guards: large pieces are copied into huge pages where the machine has
 * plenty of memory; or as said. */
enum device_imports { DEVICE_IMPORTS_AUTO, DEVICE_IMPORTS_IN_PLACE, DEVICE_IMPORTS_COPIED };

struct device_gpu_image; /* below */

/* Which launches have their operands hashed, inputs right before and outputs right after them
 * (EVENT_OP_HASH). Launches are counted from 0 in each run (device_run_begin). Launches that are
 * recorded into a graph are never hashed. */
struct device_hash_choice {
    uint32_t every;       /* 1: each one; 0: none */
    uint32_t first, last; /* no launch before `first`, none after `last`; last 0: no end */
    bool plain_outputs;   /* only F32 outputs that are written as a whole: the others hold bytes of
                             earlier runs (rows that no index chose, padding) */
};

/* The most threads a host device has. */
#define DEVICE_THREAD_LIMIT 256u

struct device_options {
    struct event_observer observer; /* notify NULL: nobody listens */
    struct crumb_page *crumbs;      /* NULL: the device makes its own */
    bool guards;                    /* memory beside each buffer faults, or holds a canary */
    bool poison;                    /* fresh and freed memory holds DEVICE_POISON */
    uint64_t quarantine_bytes;      /* freed memory kept unusable up to this much, oldest first */
    enum device_staging staging;
    enum device_d2h_mode d2h_mode;
    uint32_t staging_slot_count; /* 0: 16, on a GPU 24 */
    uint64_t staging_slot_bytes; /* 0: 1 MiB, on a GPU 2 */
    uint32_t thread_count;       /* of the host device; 0: all processors */
    enum device_imports imports; /* of the host device */
    /* A GPU is opened only if its chip can run code of this image; NULL: any GPU. */
    const struct device_gpu_image *gpu_image;
    /* Of a GPU: read instead of /dev/kmsg; NULL: that. Borrowed while the device is opened. */
    const char *kernel_log;
    bool serialise;        /* every call waits for its work, a replay after each of its calls:
                              one launch is in flight at a time */
    bool completions;      /* tell the observer when queued work is done */
    bool copy_completions; /* the same, of copies in and out only; on a GPU, in only */
    /* What follows costs something and is told to the observer only. */
    bool hash_results;   /* a redeemed ticket's event has the XXH3 of its bytes */
    bool ask_errors;     /* the stream's error state is asked before and after each copy */
    bool ask_pointers;   /* the runtime is asked what every address is, before it is used */
    bool verify;         /* every copy is hashed at both ends: EVENT_TRANSFER_HASH */
    uint32_t scan_every; /* every n-th launch's F32 outputs are looked at: EVENT_SCAN; 0: none */
    struct device_hash_choice hash_ops; /* operands of launches are hashed: EVENT_OP_HASH */
};

/* A quiet-looking byte would hide; this one is a huge negative number in every float type. */
#define DEVICE_POISON 0xFBu

/* ---- Handles -------------------------------------------------------------------------------- */

/* By value. A zero handle is nobody's. The generation tells a handle from its successor in the same
 * place, so using one after its destruction is found, not followed. */
struct device_buffer {
    uint32_t index, generation;
};
struct device_stream {
    uint32_t index, generation;
};
struct device_mark {
    uint32_t index, generation;
};
struct device_graph {
    uint32_t index, generation;
};
struct device_ticket {
    uint32_t index, generation;
};

/* A typed window of a buffer: rows of shape.dims[0] values, row_stride_bytes apart (0: close
 * together). */
struct device_view {
    struct device_buffer buffer;
    enum dtype dtype;
    struct shape shape;
    uint64_t offset_bytes;
    uint64_t row_stride_bytes;
};

/* Where a call stands in the source; DEVICE_HERE at the call. */
struct device_site {
    const char *file; /* static */
    uint32_t line;
};
#define DEVICE_HERE ((struct device_site){ __FILE__, __LINE__ })

/* ---- Contracts ------------------------------------------------------------------------------ */

#define DEVICE_OPERAND_LIMIT EVENT_ACCESS_LIMIT
#define DEVICE_PARAMS_LIMIT_BYTES 128

/* Among an operand's types: its rows begin at multiples of this many bytes. */
#define DEVICE_ROWS_ALIGNED (UINT64_C(1) << 63)
#define DEVICE_ROW_ALIGNMENT 16u

/* One operand of an op. The shape is a list of names, the fastest dimension first: "width,rows". A
 * name stands for one extent in the whole contract; a number stands for itself. */
struct device_operand_rule {
    const char *name;
    uint8_t mode;        /* enum event_access_mode */
    bool optional;       /* may be absent: a zero buffer handle */
    bool strided;        /* rows may be further apart than their length */
    uint64_t dtype_bits; /* bit 1 << enum dtype for each allowed type; DEVICE_ROWS_ALIGNED */
    const char *shape;
};

/* A check of the parameters against the extents; sets what it compared and returns false if they
 * do not agree. */
struct device_contract_call;
typedef bool (*device_param_check)(const struct device_contract_call *call, uint64_t *ret_expected,
                                   uint64_t *ret_found);

/* The extent a name of the contract's shapes stands for in this launch; 0 if none. */
uint64_t device_contract_extent(const struct device_contract_call *call, const char *name);
const void *device_contract_params(const struct device_contract_call *call);

/* No device counts further. */
#define DEVICE_TILE_LIMIT ((uint64_t)UINT32_MAX)

struct device_contract {
    const char *name; /* stable slug of the op */
    struct device_operand_rule operands[DEVICE_OPERAND_LIMIT];
    uint8_t operand_count;
    uint32_t params_bytes;
    uint64_t tile_limit;      /* most tiles of a launch; 0: DEVICE_TILE_LIMIT */
    device_param_check check; /* or NULL */
};

/* ---- Kernels -------------------------------------------------------------------------------- */

/* What a host kernel sees of its operands. data is NULL for an absent one. */
struct device_host_operand {
    void *data;
    uint64_t row_stride_bytes;
    enum dtype dtype;
    struct shape shape;
};

struct device_host_call {
    const void *params;
    const struct device_host_operand *operands;
    void *scratch; /* DEVICE_SCRATCH_BYTES of this worker, 64-byte aligned */
    struct crumb_page *crumbs;
    uint64_t launch_id;
    /* The worker's tiles are tile_index .. run_end - 1. Then it most likely goes on with next_run,
     * if that is not DEVICE_NO_TILE; before, it did a run that ended at previous_end, if that is
     * not 0, and its scratch is as it was left then. */
    uint64_t run_end, next_run, previous_end;
};
#define DEVICE_NO_TILE UINT64_MAX
#define DEVICE_SCRATCH_BYTES ((size_t)4 << 20)

/* Does one tile of a launch, or all of the worker's run: see device_kernel_entry. No locks, no
 * allocation, no order between tiles. */
typedef void (*device_host_kernel)(const struct device_host_call *call, uint64_t tile_index);

/* For kernels that take indices from memory: true if index < bound; else leaves a trap, and the
 * kernel must skip the access. */
bool device_index_ok(const struct device_host_call *call, uint32_t operand, uint64_t index,
                     uint64_t bound);

/* On a GPU a launch becomes steps: one kernel each, run in order. */
struct device_gpu_chip {
    uint32_t processor_count; /* multiprocessors, compute units */
    uint32_t shared_bytes;    /* that a block can have */
    uint64_t processor_shared_bytes;
    uint32_t thread_limit; /* of a block, as the kernels are built for it */
    uint32_t features;     /* DEVICE_GPU_ bits of the code that was loaded */
};

/* What code for a chip may use. */
#define DEVICE_GPU_TEAM_MATRIX 1u /* matrix units of 32 threads */
#define DEVICE_GPU_WARPGROUPS 2u  /* and those of 128 */

struct device_gpu_request {
    const void *params;
    const struct device_host_operand *operands; /* data is an address of the device */
    uint8_t operand_count;
    const struct device_gpu_chip *chip;
};

#define DEVICE_GPU_ABSENT 0xFFu
struct device_gpu_step {
    uint32_t kernel; /* index into the image's kernel names */
    uint32_t grid_x, grid_y;
    uint32_t threads; /* of a block */
    uint32_t shared_bytes;
    uint32_t words[GPU_WORD_LIMIT];
    /* Which operand of the launch is the kernel's i-th; DEVICE_GPU_ABSENT: none. Of several
     * launches as one, operands count on from one to the next. */
    uint8_t operands[GPU_OPERAND_LIMIT];
    uint8_t params_of; /* of several launches: whose params the kernel has */
    /* Bit i: the kernel reads its i-th operand before the kernels before it have ended, which is
     * right only if none of them writes it. Where that is not known the call says wait_first, and
     * the kernel waits for them before it reads anything; only a graph knows. Weights, which
     * nothing writes that lets a kernel begin early, need no bit. */
    uint32_t early_operands;
};

/* How a launch is done on this chip: fills steps, returns how many. No work: 0. */
#define DEVICE_GPU_STEP_LIMIT 40
typedef uint32_t (*device_gpu_plan)(const struct device_gpu_request *request,
                                    struct device_gpu_step steps[DEVICE_GPU_STEP_LIMIT]);

/* Launches of a graph that follow each other, as one: for the first *ret_taken of `count`, fills
 * steps and returns how many; 0: each on its own. All operands are left as they would be. Where
 * only one is taken, its kernel may ask for what those behind it read. plans: of each, which says
 * what it is. */
#define DEVICE_GPU_JOIN_LIMIT 3
typedef uint32_t (*device_gpu_join)(const struct device_gpu_request *requests,
                                    const device_gpu_plan *plans, uint32_t count,
                                    struct device_gpu_step steps[DEVICE_GPU_STEP_LIMIT],
                                    uint32_t *ret_taken);

/* Machine code or PTX for one chip. */
struct device_gpu_code {
    const char *vendor;      /* "cuda" or "hip" */
    const char *chip;        /* "sm_90", "gfx942" */
    const char *bytes, *end; /* behind the last byte stands a zero, as PTX wants it */
    uint32_t features;       /* DEVICE_GPU_ bits */
};

struct device_gpu_entry {
    const char *op;
    device_gpu_plan plan;
};
struct device_gpu_image {
    const struct device_gpu_entry *entries;
    size_t count;
    const struct device_gpu_code *codes; /* tried in order: the first that the chip takes is used */
    size_t code_count;
    const char *const *kernels; /* names of all kernels in the code */
    size_t kernel_count;
    device_gpu_join join; /* NULL: nothing is joined */
};

/* Where a tile begins to read memory that no launch before it writes: worth asking for while a
 * worker has nothing else to do. *ret_bytes: how much is read from there on, by this tile and the
 * next. */
typedef const void *(*device_host_reads)(const struct device_host_call *call, uint64_t tile_index,
                                         uint64_t *ret_bytes);

/* The kernels of the host, by op name. */
struct device_kernel_entry {
    const char *op;
    device_host_kernel host;
    bool takes_runs;         /* is called once for a run of tiles, not for each */
    device_host_reads reads; /* NULL: not worth it */
};
struct device_image {
    const struct device_kernel_entry *entries;
    size_t count;
};

/* ---- Device --------------------------------------------------------------------------------- */

struct device_info {
    char kind[16];  /* "host", "cuda", "hip" */
    char name[128]; /* "AMD EPYC, 2 threads" */
    char driver[64];
    uint64_t memory_bytes; /* in all */
    uint64_t alignment;    /* of a buffer's first byte */
    bool replay_pays;      /* replaying a graph costs much less than its launches */
    bool own_memory;       /* across a link: much is better copied in by a stream than imported */
    uint32_t gpu_features; /* DEVICE_GPU_ bits of the kernels that were loaded */
    /* Opened with guards: what lies behind a buffer's end, and what was freed, faults. A GPU whose
     * runtime cannot map memory into address ranges has canaries alone. */
    bool guards_fault;
};

const struct device_info *device_info(const struct device *device);
void device_close(struct device *device); /* waits for queued work; NULL is fine */

/* STATUS_OK, or STATUS_LOST with the first fault in words. */
MUST_CHECK enum status device_check(struct device *device, struct error *err);

/* An iteration of a workload begins: tells EVENT_RUN. Iterations with the same key must give the
 * same results. */
void device_run_begin(struct device *device, uint64_t iteration, uint64_t key);

/* Bytes of live buffers, and the most there ever were. */
uint64_t device_used_bytes(const struct device *device);
uint64_t device_peak_bytes(const struct device *device);

/* Indices past their bound that kernels met so far; each access was skipped, so what was computed
 * from it is wrong. */
uint64_t device_trap_count(const struct device *device);

/* ---- Buffers -------------------------------------------------------------------------------- */

/* Buffers of so many bytes in all (each counted up to info.alignment) are made next: where nobody
 * watches the device they may lie in one allocation, which is had much faster. A hint: what cannot
 * be had shows when they are made. */
void device_reserve(struct device *device, uint64_t bytes);
/* bytes > 0. The memory holds zeros or, with poison, DEVICE_POISON. */
MUST_CHECK enum status device_buffer_create(struct device *device, uint64_t bytes, const char *name,
                                            struct device_site site,
                                            struct device_buffer *ret_buffer, struct error *err);
/* Read-only memory of the host, used in place where the device can and options allow, else copied.
 * It must outlive the buffer unless device_buffer_is_copy. */
MUST_CHECK enum status device_buffer_import(struct device *device, const void *bytes,
                                            uint64_t count, const char *name,
                                            struct device_site site,
                                            struct device_buffer *ret_buffer, struct error *err);
/* Is the buffer an import that was copied? */
bool device_buffer_is_copy(struct device *device, struct device_buffer buffer);
/* From now on the buffer is only read, as an import is: whoever would write it is refused. */
MUST_CHECK enum status device_buffer_seal(struct device *device, struct device_buffer buffer,
                                          struct error *err);
/* At once, whatever is queued: freeing early is a bug this layer must be able to show. With guards,
 * the canary is checked. */
MUST_CHECK enum status device_buffer_destroy(struct device *device, struct device_buffer buffer,
                                             struct device_site site, struct error *err);
/* 0 for a dead handle. */
uint64_t device_buffer_bytes(const struct device *device, struct device_buffer buffer);

/* ---- Streams and marks ---------------------------------------------------------------------- */

MUST_CHECK enum status device_stream_create(struct device *device, struct device_site site,
                                            struct device_stream *ret_stream, struct error *err);
MUST_CHECK enum status device_stream_destroy(struct device *device, struct device_stream stream,
                                             struct device_site site, struct error *err);
MUST_CHECK enum status device_stream_sync(struct device *device, struct device_stream stream,
                                          struct device_site site, struct error *err);
/* What the calls on a stream are part of, from now on; NULL: nothing. Copied. */
void device_scope_set(struct device *device, struct device_stream stream,
                      const struct event_scope *scope);
/* What that is now; nothing of a stream that is gone. */
struct event_scope device_scope(struct device *device, struct device_stream stream);

MUST_CHECK enum status device_mark_create(struct device *device, struct device_mark *ret_mark,
                                          struct error *err);
void device_mark_destroy(struct device *device, struct device_mark mark);
/* The mark is passed when all earlier work of the stream is done. Recording again moves it. */
MUST_CHECK enum status device_mark_record(struct device *device, struct device_stream stream,
                                          struct device_mark mark, struct device_site site,
                                          struct error *err);
/* Later work of the stream begins after the mark's last record so far; none: does nothing. */
MUST_CHECK enum status device_mark_wait(struct device *device, struct device_stream stream,
                                        struct device_mark mark, struct device_site site,
                                        struct error *err);
MUST_CHECK enum status device_mark_sync(struct device *device, struct device_mark mark,
                                        struct device_site site, struct error *err);

/* ---- Bytes ---------------------------------------------------------------------------------- */

/* bytes must be all of the view. The source is read before the call returns; much of it by several
 * threads, so that the link is what limits it. STATUS_IO where it cannot be read, as of a mapped
 * file that became shorter. */
MUST_CHECK enum status device_copy_in(struct device *device, struct device_stream stream,
                                      const struct device_view *target, const void *source,
                                      uint64_t bytes, struct device_site site, struct error *err);
/* The same, with bytes that somebody reads straight into staging: [at, at + bytes) of them, into
 * target. In the calling thread, in order, at most a slot's worth at a time; the stream is locked
 * meanwhile. Who has much to copy does it from several threads, on a stream each. */
struct device_reader {
    enum status (*read)(void *context, uint64_t at, void *target, uint64_t bytes,
                        struct error *err);
    void *context;
};
MUST_CHECK enum status device_copy_in_read(struct device *device, struct device_stream stream,
                                           const struct device_view *target,
                                           const struct device_reader *reader, uint64_t bytes,
                                           struct device_site site, struct error *err);
/* Both views have the same size. */
MUST_CHECK enum status device_copy_within(struct device *device, struct device_stream stream,
                                          const struct device_view *target,
                                          const struct device_view *source, struct device_site site,
                                          struct error *err);
MUST_CHECK enum status device_fill(struct device *device, struct device_stream stream,
                                   const struct device_view *target, uint8_t byte,
                                   struct device_site site, struct error *err);

/* At most staging_slot_bytes. STATUS_BUSY when all slots are taken: release a ticket first. */
MUST_CHECK enum status device_copy_out(struct device *device, struct device_stream stream,
                                       const struct device_view *source, struct device_site site,
                                       struct device_ticket *ret_ticket, struct error *err);
/* Waits for the copy, checks the device, hands out its bytes until device_ticket_release. */
MUST_CHECK enum status device_ticket_redeem(struct device *device, struct device_ticket ticket,
                                            struct device_site site, const void **ret_bytes,
                                            uint64_t *ret_count, struct error *err);
MUST_CHECK enum status device_ticket_release(struct device *device, struct device_ticket ticket,
                                             struct device_site site, struct error *err);

/* Any size, in chunks through staging, into memory of the caller; returns when all is there. */
MUST_CHECK enum status device_read(struct device *device, struct device_stream stream,
                                   const struct device_view *source, void *target,
                                   struct device_site site, struct error *err);

/* ---- Launches ------------------------------------------------------------------------------- */

/* The kernels of the image are found by op name; the image must outlive the device. */
MUST_CHECK enum status device_module_load(struct device *device, const struct device_image *image,
                                          struct device_site site, struct error *err);
/* The same for a GPU. STATUS_UNSUPPORTED where no code of the image is for its chip. */
MUST_CHECK enum status device_gpu_module_load(struct device *device,
                                              const struct device_gpu_image *image,
                                              struct device_site site, struct error *err);

struct device_launch {
    const struct device_contract *contract;
    const void *params; /* contract->params_bytes; copied */
    struct device_view operands[DEVICE_OPERAND_LIMIT];
    uint8_t operand_count;
    uint64_t tile_count;
};

MUST_CHECK enum status device_launch(struct device *device, struct device_stream stream,
                                     const struct device_launch *launch, struct device_site site,
                                     struct error *err);

/* ---- Graphs --------------------------------------------------------------------------------- */

/* Launches, fills and copies within, given to the stream between begin and end, are checked and
 * recorded, not run. */
MUST_CHECK enum status device_graph_begin(struct device *device, struct device_stream stream,
                                          struct device_site site, struct error *err);
MUST_CHECK enum status device_graph_end(struct device *device, struct device_stream stream,
                                        struct device_site site, struct device_graph *ret_graph,
                                        struct error *err);
/* Refused if a buffer of the graph is gone. */
MUST_CHECK enum status device_graph_replay(struct device *device, struct device_stream stream,
                                           struct device_graph graph, struct device_site site,
                                           struct error *err);
MUST_CHECK enum status device_graph_destroy(struct device *device, struct device_graph graph,
                                            struct device_site site, struct error *err);

#endif
