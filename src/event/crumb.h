/* crumb.h - the page on which kernels leave breadcrumbs and traps.
 *
 * Plain memory of the host that the device can write: what stands here can be read after the device
 * is lost, and, where the page is part of a flight file, after the process is dead. When a kernel
 * runs, its launch id goes into `entered`; once it has ended, into `finished`. How soon, and what
 * follows from it, depends on the device: enum crumb_order.
 *
 * All words are written and read with the functions below: the writer may be another thread, a
 * device, or a process that is gone. */
#ifndef GRETA_EVENT_CRUMB_H
#define GRETA_EVENT_CRUMB_H

#include <stdbool.h>
#include <stdint.h>

#define CRUMB_STREAM_LIMIT 64u
#define CRUMB_TRAP_LIMIT 126u

/* What crumbs prove. In every order a launch that has left its crumb began after all work that the
 * stream was given before it had ended. */
enum crumb_order {
    CRUMB_ORDER_UNKNOWN = 0, /* in a file older than this field; taken as CRUMB_ORDER_EARLY */
    /* A launch leaves its crumb before anything else of it runs, and `finished` is stored as soon
     * as it has ended: entered and not finished means that the stream is inside it. */
    CRUMB_ORDER_EXACT = 1,
    /* The first block of a kernel leaves the crumb: other blocks may run before. Only the stream's
     * next kernel, or a wait of the host, stores `finished`: a launch that is entered and not
     * finished may have ended. So what runs is the launch entered last, or the one after it. */
    CRUMB_ORDER_NEXT = 2,
    /* As CRUMB_ORDER_NEXT, but a kernel may begin before earlier kernels have ended, and leaves its
       crumb once they have. So any kernel queued after the one entered last may be running too. */
    CRUMB_ORDER_EARLY = 3,
    CRUMB_ORDER_COUNT
};

/* Maximum number of launches of a graph that one kernel does, leaving one crumb. */
#define CRUMB_JOIN_LIMIT 3u

struct crumb_stream {
    uint64_t entered;   /* id of the launch that began last */
    uint64_t finished;  /* id of the launch that ended last */
    uint64_t node;      /* in a replay, which `entered` names: crumb_node_of() */
    uint64_t unused[5]; /* a cache line for each stream */
};

/* A kernel met an index past its bound, skipped the access and stored this. */
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
    uint64_t order;      /* enum crumb_order; written when the device is opened */
    /* Written by the thread that follows the recording (crumb_watch.h), for an analysis after the
     * end of the process. All 0: no thread followed it. */
    uint64_t watched_ns; /* when it last looked, on the event clock */
    uint64_t still_ns; /* for how long it has watched without a crumb moving or a call being made */
    uint64_t moved_ns; /* when a crumb was last seen to move; 0: never */
    uint64_t moved_stream; /* its stream */
    uint64_t late; /* 1: the device writes another page, which is copied here only after waits */
    uint64_t unused[1];
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

/* The word that a kernel in a graph stores: which recorded call (launch, fill, copy) it does, from
 * 1, and how many launches from there on. */
static inline uint64_t crumb_node_of(uint64_t node, uint32_t launches)
{
    return node | (uint64_t)launches << 32;
}

/* *ret_launches: at least 1. */
static inline uint32_t crumb_node(const struct crumb_stream *stream, uint32_t *ret_launches)
{
    uint64_t word = __atomic_load_n(&stream->node, __ATOMIC_ACQUIRE);
    *ret_launches = word >> 32 ? (uint32_t)(word >> 32) : 1;
    return (uint32_t)word;
}

static inline enum crumb_order crumb_order(const struct crumb_page *page)
{
    uint64_t order = __atomic_load_n(&page->order, __ATOMIC_ACQUIRE);
    return order < CRUMB_ORDER_COUNT ? (enum crumb_order)order : CRUMB_ORDER_UNKNOWN;
}

static inline void crumb_set_order(struct crumb_page *page, enum crumb_order order)
{
    __atomic_store_n(&page->order, (uint64_t)order, __ATOMIC_RELEASE);
}

/* True if a thread saw on this page whether the device makes progress. */
static inline bool crumb_is_watched(const struct crumb_page *page)
{
    return crumb_order(page) != CRUMB_ORDER_UNKNOWN &&
           __atomic_load_n(&page->watched_ns, __ATOMIC_ACQUIRE) != 0 &&
           __atomic_load_n(&page->late, __ATOMIC_ACQUIRE) == 0;
}

static inline void crumb_set_late(struct crumb_page *page, bool late)
{
    __atomic_store_n(&page->late, late, __ATOMIC_RELEASE);
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

/* Traps so far. The host counts them; a GPU that writes this page itself does not, so for it only
 * the traps that were kept are counted. */
static inline uint64_t crumb_trap_total(const struct crumb_page *page)
{
    uint64_t counted = __atomic_load_n(&page->trap_count, __ATOMIC_ACQUIRE), kept = 0;
    struct crumb_trap trap;
    while (crumb_trap_get(page, kept, &trap))
        kept++;
    return counted > kept ? counted : kept;
}

#endif
