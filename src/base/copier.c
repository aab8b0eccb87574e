/* copier.c - see copier.h.
 *
 * Parts wait in a ring whose cells are passed between threads by sequence numbers, so that no
 * thread holds a lock to take or add one. With a lock, fifteen threads that each want it every
 * forty microseconds sleep for it, and wake some fifty microseconds late. For the same reason a
 * thread looks for the next part for a while before it sleeps. The lock is for sleeping only. */
#include "base/copier.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/parallel.h"
#include "base/size.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

/* More threads do not copy faster than memory allows. */
#define THREAD_LIMIT 16u
/* Small enough that the oldest copy is done soon, large enough that taking it costs nothing. */
#define PART_BYTES ((size_t)256 << 10)
/* Parts that can wait, a power of two. A caller with more does them itself. */
#define CELL_COUNT 256u
/* How long a thread looks for work before it sleeps. */
#define AWAKE_NS ((uint64_t)150000)

struct part {
    struct copier_job *job;
    size_t at, bytes;
};

/* sequence == turn: the cell may be filled; turn + 1: it may be emptied; after that it is the next
 * turn's. */
struct cell {
    _Alignas(64) uint64_t sequence; /* atomic */
    struct part part;
};

struct copier {
    struct cell cells[CELL_COUNT];
    _Alignas(64) uint64_t given; /* atomic: cells filled so far */
    _Alignas(64) uint64_t taken; /* atomic: cells emptied so far */
    _Alignas(64) uint32_t idle;  /* atomic: threads that sleep for parts */
    uint32_t waiting;            /* atomic: callers that sleep for the end of a job */
    pthread_mutex_t lock;        /* guards the rest, and goes with the conditions */
    pthread_cond_t parts;        /* there are parts, or the copier is being destroyed */
    pthread_cond_t landed;       /* a job is done */
    uint32_t wanted, started;    /* threads */
    bool stopping;               /* atomic too */
    pthread_t threads[THREAD_LIMIT];
};

/* ---- The ring ------------------------------------------------------------------------------- */

/* False: the ring is full. */
static bool give_part(struct copier *copier, const struct part *part)
{
    uint64_t turn = __atomic_load_n(&copier->given, __ATOMIC_RELAXED);
    for (;;) {
        struct cell *cell = &copier->cells[turn % CELL_COUNT];
        uint64_t sequence = __atomic_load_n(&cell->sequence, __ATOMIC_ACQUIRE);
        if (sequence < turn)
            return false;
        if (sequence > turn) {
            turn = __atomic_load_n(&copier->given, __ATOMIC_RELAXED);
        } else if (__atomic_compare_exchange_n(&copier->given, &turn, turn + 1, true,
                                               __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            cell->part = *part;
            __atomic_store_n(&cell->sequence, turn + 1, __ATOMIC_SEQ_CST);
            return true;
        }
    }
}

/* False: the ring is empty. */
static bool take_part(struct copier *copier, struct part *ret_part)
{
    uint64_t turn = __atomic_load_n(&copier->taken, __ATOMIC_RELAXED);
    for (;;) {
        struct cell *cell = &copier->cells[turn % CELL_COUNT];
        uint64_t sequence = __atomic_load_n(&cell->sequence, __ATOMIC_SEQ_CST);
        if (sequence < turn + 1)
            return false;
        if (sequence > turn + 1) {
            turn = __atomic_load_n(&copier->taken, __ATOMIC_RELAXED);
        } else if (__atomic_compare_exchange_n(&copier->taken, &turn, turn + 1, true,
                                               __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            *ret_part = cell->part;
            __atomic_store_n(&cell->sequence, turn + CELL_COUNT, __ATOMIC_RELEASE);
            return true;
        }
    }
}

/* ---- Parts ---------------------------------------------------------------------------------- */

static void do_part(struct copier *copier, const struct part *part)
{
    struct copier_job *job = part->job;
    size_t all = job->bytes;
    if (!fault_copy(job->target + part->at, job->source + part->at, part->bytes))
        __atomic_store_n(&job->failed, true, __ATOMIC_RELAXED);
    /* After the last part the job belongs to its owner again and must not be read here any more. */
    if (__atomic_add_fetch(&job->finished, part->bytes, __ATOMIC_SEQ_CST) == all &&
        __atomic_load_n(&copier->waiting, __ATOMIC_SEQ_CST)) {
        pthread_mutex_lock(&copier->lock);
        pthread_cond_broadcast(&copier->landed);
        pthread_mutex_unlock(&copier->lock);
    }
}

/* Looks for a part for at most AWAKE_NS, without sleeping. */
static bool look_for_part(struct copier *copier, struct part *ret_part)
{
    uint64_t begin_ns = clock_ns();
    do {
        if (take_part(copier, ret_part))
            return true;
        sched_yield();
    } while (clock_ns() - begin_ns < AWAKE_NS &&
             !__atomic_load_n(&copier->stopping, __ATOMIC_RELAXED));
    return false;
}

/* Sleeps until there is a part. False: the copier is being destroyed. */
static bool sleep_for_part(struct copier *copier, struct part *ret_part)
{
    bool found;
    pthread_mutex_lock(&copier->lock);
    __atomic_add_fetch(&copier->idle, 1, __ATOMIC_SEQ_CST);
    while (!(found = take_part(copier, ret_part)) && !copier->stopping)
        pthread_cond_wait(&copier->parts, &copier->lock);
    __atomic_sub_fetch(&copier->idle, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&copier->lock);
    return found;
}

static void *work(void *argument)
{
    struct copier *copier = argument;
    struct part part;
    while (look_for_part(copier, &part) || sleep_for_part(copier, &part))
        do_part(copier, &part);
    return NULL;
}

/* ---- Copies --------------------------------------------------------------------------------- */

/* If a thread cannot be started, the others do the work, and it is not tried again. */
static void start_threads(struct copier *copier)
{
    pthread_mutex_lock(&copier->lock);
    while (copier->started < copier->wanted) {
        if (pthread_create(&copier->threads[copier->started], NULL, work, copier) == 0)
            copier->started++;
        else
            copier->wanted = copier->started;
    }
    pthread_mutex_unlock(&copier->lock);
}

static void wake(struct copier *copier, bool all)
{
    if (!__atomic_load_n(&copier->idle, __ATOMIC_SEQ_CST))
        return;
    pthread_mutex_lock(&copier->lock);
    if (all)
        pthread_cond_broadcast(&copier->parts);
    else
        pthread_cond_signal(&copier->parts);
    pthread_mutex_unlock(&copier->lock);
}

void copier_start(struct copier *copier, struct copier_job *job, void *target, const void *source,
                  size_t bytes)
{
    *job = (struct copier_job){ .target = target, .source = source, .bytes = bytes };
    if (bytes == 0)
        return;
    start_threads(copier);
    for (size_t at = 0; at < bytes; at += PART_BYTES) {
        size_t left = bytes - at;
        struct part part = { job, at, left < PART_BYTES ? left : PART_BYTES };
        if (!give_part(copier, &part))
            do_part(copier, &part);
    }
    wake(copier, bytes > PART_BYTES);
}

static bool is_done(const struct copier_job *job)
{
    return __atomic_load_n(&job->finished, __ATOMIC_SEQ_CST) == job->bytes;
}

bool copier_wait(struct copier *copier, struct copier_job *job)
{
    struct part part;
    uint64_t begin_ns = clock_ns();
    while (!is_done(job)) {
        if (take_part(copier, &part)) { /* of this job or of another */
            do_part(copier, &part);
            begin_ns = clock_ns();
        } else if (clock_ns() - begin_ns < AWAKE_NS) {
            sched_yield();
        } else {
            break; /* only when none is left: there may be no other thread to do them */
        }
    }
    pthread_mutex_lock(&copier->lock);
    __atomic_add_fetch(&copier->waiting, 1, __ATOMIC_SEQ_CST);
    while (!is_done(job))
        pthread_cond_wait(&copier->landed, &copier->lock);
    __atomic_sub_fetch(&copier->waiting, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&copier->lock);
    return !__atomic_load_n(&job->failed, __ATOMIC_RELAXED);
}

/* ---- Life ----------------------------------------------------------------------------------- */

enum status copier_create(uint32_t thread_limit, struct copier **ret_copier, struct error *err)
{
    struct copier *copier = aligned_alloc(_Alignof(struct copier), sizeof(*copier));
    if (!copier)
        return error_set(err, STATUS_NO_MEMORY, "no memory for threads that copy");
    *copier = (struct copier){ .given = 0 };
    for (uint64_t i = 0; i < CELL_COUNT; i++)
        copier->cells[i].sequence = i;
    pthread_mutex_init(&copier->lock, NULL);
    pthread_cond_init(&copier->parts, NULL);
    pthread_cond_init(&copier->landed, NULL);
    uint32_t spare = parallel_processor_count() - 1; /* one is the caller's */
    copier->wanted = min_u64(spare, thread_limit);
    copier->wanted = min_u64(copier->wanted, THREAD_LIMIT);
    fault_install();
    *ret_copier = copier;
    return STATUS_OK;
}

void copier_destroy(struct copier *copier)
{
    if (!copier)
        return;
    pthread_mutex_lock(&copier->lock);
    __atomic_store_n(&copier->stopping, true, __ATOMIC_RELAXED);
    pthread_cond_broadcast(&copier->parts);
    pthread_mutex_unlock(&copier->lock);
    for (uint32_t i = 0; i < copier->started; i++)
        pthread_join(copier->threads[i], NULL);
    pthread_cond_destroy(&copier->parts);
    pthread_cond_destroy(&copier->landed);
    pthread_mutex_destroy(&copier->lock);
    free(copier);
}
