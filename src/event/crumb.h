/* crumb.h - the page on which kernels leave breadcrumbs and traps.
 *
 * Plain memory of the host that the device can write: what stands here can be read after the device
 * is lost, and, where the page is part of a flight file, after the process is dead. Before a kernel
 * runs, its launch id goes into `entered`; after it, into `finished`. A launch that was entered and
 * not finished is where a stream stopped.
 *
 * All words are written and read with the functions below: the writer may be another thread, a
 * device, or a process that is gone. */
#ifndef GRETA_EVENT_CRUMB_H
#define GRETA_EVENT_CRUMB_H

#include <stdbool.h>
#include <stdint.h>

#define CRUMB_STREAM_LIMIT 64u
#define CRUMB_TRAP_LIMIT 126u

struct crumb_stream {
    uint64_t entered;   /* id of the launch that began last */
    uint64_t finished;  /* id of the launch that ended last */
    uint64_t node;      /* in a replay, which `entered` names: which command of it, from 1 */
    uint64_t unused[5]; /* a cache line for each stream */
};

/* A kernel met an index past its bound, skipped the access and told here. */
struct crumb_trap {
    uint64_t launch_id;
    uint64_t index;
    uint64_t bound;
    uint32_t operand;
    uint32_t written; /* 1 once the rest is there */
};

struct crumb_page {
    struct crumb_stream streams[CRUMB_STREAM_LIMIT];
    uint64_t trap_count; /* claimed; may be larger than CRUMB_TRAP_LIMIT: the rest were not kept */
    uint64_t unused[7];
    struct crumb_trap traps[CRUMB_TRAP_LIMIT];
};

static inline void crumb_enter(struct crumb_stream *stream, uint64_t launch_id)
{
    __atomic_store_n(&stream->entered, launch_id, __ATOMIC_RELEASE);
}

static inline void crumb_finish(struct crumb_stream *stream, uint64_t launch_id)
{
    __atomic_store_n(&stream->finished, launch_id, __ATOMIC_RELEASE);
}

static inline uint64_t crumb_entered(const struct crumb_stream *stream)
{
    return __atomic_load_n(&stream->entered, __ATOMIC_ACQUIRE);
}

static inline uint64_t crumb_finished(const struct crumb_stream *stream)
{
    return __atomic_load_n(&stream->finished, __ATOMIC_ACQUIRE);
}

static inline void crumb_trap_add(struct crumb_page *page, uint64_t launch_id, uint32_t operand,
                                  uint64_t index, uint64_t bound)
{
    uint64_t place = __atomic_fetch_add(&page->trap_count, 1, __ATOMIC_RELAXED);
    if (place >= CRUMB_TRAP_LIMIT)
        return;
    struct crumb_trap *trap = &page->traps[place];
    trap->launch_id = launch_id;
    trap->operand = operand;
    trap->index = index;
    trap->bound = bound;
    __atomic_store_n(&trap->written, 1, __ATOMIC_RELEASE);
}

/* Copies trap number place; false if it is not (or not wholly) there. */
static inline bool crumb_trap_get(const struct crumb_page *page, uint64_t place,
                                  struct crumb_trap *ret)
{
    if (place >= CRUMB_TRAP_LIMIT ||
        __atomic_load_n(&page->traps[place].written, __ATOMIC_ACQUIRE) != 1)
        return false;
    *ret = page->traps[place];
    return true;
}

#endif
