/* device.h - memory and compute of one device: the CPU or a GPU. For users of a device. Opening one
 * takes device/options.h; writing an op or a backend takes device/kernel.h.
 *
 * Callers hold handles and views, never addresses. Every call checks its handles, lifetimes, bounds
 * and alignment first, returns a status, and reports itself to one observer.
 *
 * Order. Work on one stream runs in submission order; two streams are unordered unless a mark
 * orders them. Calls return once the work is queued. An illegal access makes the device lost: the
 * next checked call fails and names the first fault, as does every call after it.
 *
 * Reading results. A copy out returns a ticket. Its bytes can only be read by redeeming the ticket,
 * which waits for the copy and checks it; they stay valid until the ticket is released.
 *
 * Destroying. Destroy and release return nothing. With a stale handle they are refused, like any
 * call, and device_check reports it.
 *
 * Threads. Any thread may call; calls on one stream are serialised internally. A handle belongs to
 * the device that made it. Closing the device releases everything it made. */
#ifndef GRETA_DEVICE_DEVICE_H
#define GRETA_DEVICE_DEVICE_H

#include "base/status.h"
#include "event/event.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct device;
struct device_image; /* kernels for the host, for a GPU: device/kernel.h */
struct device_gpu_image;

/* ---- Handles -------------------------------------------------------------------------------- */

/* Handles are passed by value; a zero handle is invalid. When a slot is reused its generation
 * changes, so a stale handle is refused instead of reaching the slot's new owner. */
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

/* Part of a buffer, seen as rows of shape.dims[0] values that begin row_stride_bytes apart (0:
 * contiguous rows). */
struct device_view {
    struct device_buffer buffer;
    enum dtype dtype;
    struct shape shape;
    uint64_t offset_bytes;
    uint64_t row_stride_bytes;
};

/* The source line of a call; pass DEVICE_HERE. */
struct device_site {
    const char *file; /* static */
    uint32_t line;
};
#define DEVICE_HERE ((struct device_site){ __FILE__, __LINE__ })

/* ---- Device --------------------------------------------------------------------------------- */

struct device_info {
    char kind[16];  /* "host", "cuda", "hip" */
    char name[128]; /* "AMD EPYC, 2 threads" */
    char driver[64];
    uint64_t memory_bytes; /* in total */
    uint64_t alignment;    /* of the first byte of a buffer */
    bool replay_pays;      /* replaying a graph costs much less than its launches */
    bool own_memory; /* reached over a link: upload large data by a stream, do not import it */
    bool is_gpu;     /* its kernels are loaded by device_gpu_module_load */
    uint32_t gpu_features; /* DEVICE_GPU_ bits (device/kernel.h) of the loaded kernels */
    /* With guards, accesses past a buffer's end or to freed memory fault. A GPU whose runtime
     * cannot map memory into address ranges only has canaries. */
    bool guards_fault;
};

const struct device_info *device_info(const struct device *device);
void device_close(struct device *device); /* waits for queued work; NULL is fine */

/* STATUS_OK, STATUS_LOST with a description of the first fault, or the error of the first destroy
 * or release that was refused. */
MUST_CHECK enum status device_check(struct device *device, struct error *err);

/* Begins an iteration of a workload: EVENT_RUN. Iterations with the same key must give the same
 * results. */
void device_run_begin(struct device *device, uint64_t iteration, uint64_t key);

/* The crumb page as the kernels have written it so far: from any thread, also while others wait.
 * Borrowed until the device is closed. */
const struct crumb_page *device_show_crumbs(struct device *device);

/* Bytes of live buffers now, and at their peak. */
uint64_t device_used_bytes(const struct device *device);
uint64_t device_peak_bytes(const struct device *device);

/* Out-of-range indices that kernels have met so far. Each of those accesses was skipped, so results
 * computed from it are wrong. */
uint64_t device_trap_count(const struct device *device);

/* Loads kernels: from now on, launches may name the contracts of the image's ops. The image must
 * outlive the device. Refused, with nothing loaded, if an op is there twice or has no kernel, or if
 * a shape of its contract is malformed. On a GPU STATUS_UNSUPPORTED can also mean that the image
 * has no code for its chip. */
MUST_CHECK enum status device_module_load(struct device *device, const struct device_image *image,
                                          struct device_site site, struct error *err);
MUST_CHECK enum status device_gpu_module_load(struct device *device,
                                              const struct device_gpu_image *image,
                                              struct device_site site, struct error *err);

/* ---- Buffers -------------------------------------------------------------------------------- */

/* A hint: buffers of this many bytes in total, each rounded up to info.alignment, are created next.
 * Without guards they may share one allocation, which is much faster. */
void device_reserve(struct device *device, uint64_t bytes);
/* bytes > 0. The memory holds zeros or, with poison, DEVICE_POISON. */
MUST_CHECK enum status device_buffer_create(struct device *device, uint64_t bytes, const char *name,
                                            struct device_site site,
                                            struct device_buffer *ret_buffer, struct error *err);
/* Read-only host memory, used in place if the device can and the options allow it, otherwise
 * copied. It must outlive the buffer unless device_buffer_is_copy. */
MUST_CHECK enum status device_buffer_import(struct device *device, const void *bytes,
                                            uint64_t count, const char *name,
                                            struct device_site site,
                                            struct device_buffer *ret_buffer, struct error *err);
/* True if the buffer is an import that was copied. */
bool device_buffer_is_copy(struct device *device, struct device_buffer buffer);
/* Makes the buffer read-only, as an import is: later writes are refused. */
MUST_CHECK enum status device_buffer_seal(struct device *device, struct device_buffer buffer,
                                          struct error *err);
/* Frees immediately, even with work queued: freeing too early is a bug that this layer must be able
 * to show. With guards the canary is checked. */
void device_buffer_destroy(struct device *device, struct device_buffer buffer,
                           struct device_site site);
/* The size of the buffer; 0 for a stale handle. */
uint64_t device_buffer_bytes(const struct device *device, struct device_buffer buffer);

/* ---- Streams and marks ---------------------------------------------------------------------- */

MUST_CHECK enum status device_stream_create(struct device *device, struct device_site site,
                                            struct device_stream *ret_stream, struct error *err);
/* Waits for the stream's work. */
void device_stream_destroy(struct device *device, struct device_stream stream,
                           struct device_site site);
MUST_CHECK enum status device_stream_sync(struct device *device, struct device_stream stream,
                                          struct device_site site, struct error *err);
/* The layer and step that later calls on the stream belong to; NULL: none. Copied. */
void device_scope_set(struct device *device, struct device_stream stream,
                      const struct event_scope *scope);
/* The current scope; an empty one if the stream is gone. */
struct event_scope device_scope(struct device *device, struct device_stream stream);

/* A mark is a point in a stream, passed when all work before it is done. A runtime calls it an
 * event. Recording it again moves it. */
MUST_CHECK enum status device_mark_create(struct device *device, struct device_mark *ret_mark,
                                          struct error *err);
void device_mark_destroy(struct device *device, struct device_mark mark);
MUST_CHECK enum status device_mark_record(struct device *device, struct device_stream stream,
                                          struct device_mark mark, struct device_site site,
                                          struct error *err);
/* Later work of the stream waits for the mark's latest record; does nothing if there is none. */
MUST_CHECK enum status device_mark_wait(struct device *device, struct device_stream stream,
                                        struct device_mark mark, struct device_site site,
                                        struct error *err);
MUST_CHECK enum status device_mark_sync(struct device *device, struct device_mark mark,
                                        struct device_site site, struct error *err);

/* ---- Copies --------------------------------------------------------------------------------- */

/* bytes must be the size of the view. The source has been read when the call returns; a large one
 * is read by several threads. STATUS_IO if it cannot be read, for example because a mapped file was
 * truncated. */
MUST_CHECK enum status device_copy_in(struct device *device, struct device_stream stream,
                                      const struct device_view *target, const void *source,
                                      uint64_t bytes, struct device_site site, struct error *err);
/* Copies in what a reader puts straight into staging: read fills target with the source's bytes
 * [at, at + bytes). It is called on this thread, in order, for at most one staging slot at a time,
 * with the stream locked. For large copies, use several threads with a stream each. */
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
/* Waits for the copy and checks the device. The bytes stay valid until device_ticket_release. */
MUST_CHECK enum status device_ticket_redeem(struct device *device, struct device_ticket ticket,
                                            struct device_site site, const void **ret_bytes,
                                            uint64_t *ret_count, struct error *err);
/* If the ticket was not redeemed, waits for its copy. */
void device_ticket_release(struct device *device, struct device_ticket ticket,
                           struct device_site site);

/* Copies a view of any size into the caller's memory, in chunks through staging, and waits. */
MUST_CHECK enum status device_read(struct device *device, struct device_stream stream,
                                   const struct device_view *source, void *target,
                                   struct device_site site, struct error *err);

/* ---- Graphs --------------------------------------------------------------------------------- */

/* Between begin and end, the stream's launches, fills and copies within the device are checked and
 * recorded instead of run. */
MUST_CHECK enum status device_graph_begin(struct device *device, struct device_stream stream,
                                          struct device_site site, struct error *err);
MUST_CHECK enum status device_graph_end(struct device *device, struct device_stream stream,
                                        struct device_site site, struct device_graph *ret_graph,
                                        struct error *err);
/* Refused if a buffer of the graph is gone. */
MUST_CHECK enum status device_graph_replay(struct device *device, struct device_stream stream,
                                           struct device_graph graph, struct device_site site,
                                           struct error *err);
void device_graph_destroy(struct device *device, struct device_graph graph,
                          struct device_site site);

#endif
