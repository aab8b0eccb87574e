/* host_impl.h - what the files of the host device share. */
#ifndef GRETA_DEVICE_HOST_HOST_IMPL_H
#define GRETA_DEVICE_HOST_HOST_IMPL_H

#include "base/fault.h"
#include "device/device_impl.h"
#include "device/host/host_wait.h"

/* ---- Memory (host_memory.c) ----------------------------------------------------------------- */

/* A mapping: guard page, pages with the memory at their end, guard page. */
struct host_memory {
    uint8_t *map;
    size_t map_bytes;
    uint8_t *pages; /* what may be touched, without the guards */
    size_t pages_bytes;
    bool imported;            /* the caller's, or a copy of that; map is NULL */
    struct host_chunk *chunk; /* where the copy is; NULL: in place */
};

/* Freed memory that stays unusable for a while, oldest first. */
struct host_quarantine {
    pthread_mutex_t lock; /* guards the rest */
    struct host_quarantine_entry *head, *tail;
    uint64_t bytes, limit_bytes;
};

void host_quarantine_init(struct host_quarantine *quarantine, uint64_t limit_bytes);
void host_quarantine_release(struct host_quarantine *quarantine);

enum status host_memory_create(struct device *device, uint64_t bytes,
                               struct device_memory *ret_memory, struct error *err);
enum status host_memory_import(struct device *device, const void *bytes, uint64_t count,
                               struct device_memory *ret_memory, struct error *err);
void host_memory_destroy(struct device *device, struct device_memory *memory);
uint64_t host_memory_damage(struct device *device, const struct device_memory *memory,
                            int64_t *ret_offset);

/* ---- Imports (host_import.c) ---------------------------------------------------------------- */

struct host_chunk;
struct host_device;

/* A buffer of the chunk was destroyed. */
void host_import_release(struct host_device *host, struct host_chunk *chunk);

/* ---- Tiles of a launch (host_job.c) --------------------------------------------------------- */

#define HOST_THREAD_LIMIT DEVICE_THREAD_LIMIT /* of the pool */
/* Data that different cores write is never in the same cache line, nor in adjacent lines that are
 * fetched together. */
#define HOST_LINE_BYTES 128

/* The tiles of a launch that one worker takes first; others take from them when they run out. */
struct host_share {
    _Alignas(HOST_LINE_BYTES) uint64_t taken; /* atomic: sequence << 32 | next tile */
};

/* One launch at a time per stream; lives as long as the stream. */
struct host_job {
    /* Written by the stream's thread: first all other fields, then `launch`. They do not change
     * until all tiles are done. */
    _Alignas(HOST_LINE_BYTES) uint64_t launch; /* atomic: sequence << 32 | tile count */
    uint32_t done_target;                      /* what `done` is when this launch is done */
    uint32_t share_count;                      /* never changes */
    const struct device_command *command;
    struct crumb_page *crumbs;
    uint32_t faulted; /* atomic */
    struct fault_info fault;
    /* Counts the tiles of all launches; the thread that adds a launch's last tile wakes waiters. */
    _Alignas(HOST_LINE_BYTES) struct host_word done;
    struct host_share shares[HOST_THREAD_LIMIT + 1]; /* of the stream's thread, of each worker */
};

void host_job_init(struct host_job *job, uint32_t share_count);
/* The first tile of a share. For share == share_count it is tile_count. */
uint64_t host_share_begin(uint32_t share_count, uint64_t tile_count, uint32_t share);
/* Publishes job->command. */
void host_job_begin(struct host_job *job);
/* Runs tiles until there are none left to claim. own: index of the worker's share. */
void host_job_work(struct host_job *job, uint32_t own, void *scratch);
/* The same for the stream's thread; returns when all tiles are done. */
void host_job_finish(struct host_job *job, void *scratch);
/* own: the caller's share, which is checked first. */
bool host_job_has_tiles(const struct host_job *job, uint32_t own);

/* ---- Workers (host_pool.c) ------------------------------------------------------------------ */

struct host_pool;

enum status host_pool_create(uint32_t thread_count, struct host_pool **ret_pool, struct error *err);
void host_pool_destroy(struct host_pool *pool); /* NULL is fine */
/* From now on, until host_pool_remove, workers take tiles of the stream's job. */
void host_pool_add(struct host_pool *pool, uint32_t stream_index, struct host_job *job);
void host_pool_remove(struct host_pool *pool, uint32_t stream_index);
/* Begins job->command: workers may take its tiles at once. */
void host_pool_begin(struct host_pool *pool, struct host_job *job);
/* Threads that run tiles of a launch, including the stream's own; a job has one share for each. */
uint32_t host_pool_workers(const struct host_pool *pool);
/* Announces a later launch of a kernel that has `reads`: idle workers prefetch what they will read
 * first. */
void host_pool_announce(struct host_pool *pool, const struct device_command *command);

/* ---- Streams and marks (host_stream.c) ------------------------------------------------------ */

enum status host_stream_create(struct device *device, uint32_t stream_index, void **ret_stream,
                               struct error *err);
void host_stream_destroy(struct device *device, void *stream);
enum status host_stream_sync(struct device *device, void *stream, struct error *err);
enum status host_stream_query(struct device *device, void *stream, struct error *err);
enum status host_stream_submit(struct device *device, void *stream,
                               const struct device_command *command, struct error *err);

enum status host_mark_create(struct device *device, void **ret_mark, struct error *err);
void host_mark_destroy(struct device *device, void *mark);
enum status host_mark_record(struct device *device, void *stream, void *mark, struct error *err);
enum status host_mark_wait(struct device *device, void *stream, void *mark, struct error *err);
enum status host_mark_sync(struct device *device, void *mark, struct error *err);
bool host_mark_passed(struct device *device, void *mark);

enum status host_graph_create(struct device *device, void *stream,
                              const struct device_command *commands, size_t count, void **ret_graph,
                              struct error *err);
enum status host_graph_replay(struct device *device, void *stream, void *graph, uint64_t event_id,
                              const struct event_scope *scope, struct error *err);
void host_graph_destroy(struct device *device, void *graph);

/* Looks at memory for the audit and reports what it saw (host_inspect.c). */
void host_inspect(struct device *device, uint32_t stream_index,
                  const struct device_command *command, uint64_t event_id);

/* ---- The device (host_device.c) ------------------------------------------------------------- */

struct host_device {
    struct device device; /* the common part, first */
    struct host_pool *pool;
    struct host_quarantine quarantine;
    pthread_mutex_t import_lock; /* guards the chunk and its count of users */
    struct host_chunk *chunk;    /* where the next copy goes; NULL: none yet, or all are gone */
};

static inline struct host_device *host_of(struct device *device)
{
    return (struct host_device *)device;
}

#endif
