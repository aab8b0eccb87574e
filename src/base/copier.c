/* copier.c - see copier.h. */
#include "base/copier.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

/* More do not copy faster than memory lets them. */
#define THREAD_LIMIT 16u
/* Small enough that the oldest copy is done soon, large enough that taking it costs nothing. */
#define PART_BYTES ((size_t)256 << 10)
/* A thread that sleeps is back some fifty microseconds after it is woken, in which it would have
 * copied a part or two: so it looks for the next part so long before it sleeps, and who waits for
 * the last parts of a copy does the same. */
#define AWAKE_NS ((uint64_t)150000)
/* The lock is held for less time than sleeping for it takes. */
#define LOCK_TRIES 64u

struct copier {
    pthread_mutex_t lock;            /* guards the rest, and every job that is under way */
    pthread_cond_t given;            /* there are parts nobody has begun, or it is over */
    pthread_cond_t landed;           /* a job is done */
    struct copier_job *first, *last; /* with such parts, in the order they were given */
    uint32_t open_count;             /* of them; written with the lock, read without it too */
    uint32_t wanted, started, idle;  /* threads */
    bool stopping;
    pthread_t threads[THREAD_LIMIT];
};

/* ---- Waiting without sleep ------------------------------------------------------------------ */

static void lock_copier(struct copier *copier)
{
    for (uint32_t i = 0; i < LOCK_TRIES; i++)
        if (pthread_mutex_trylock(&copier->lock) == 0)
            return;
    pthread_mutex_lock(&copier->lock);
}

/* With the lock held, which is given up meanwhile: until there are parts, or for AWAKE_NS. */
static void look_for_parts(struct copier *copier)
{
    uint64_t begin_ns = clock_ns();
    pthread_mutex_unlock(&copier->lock);
    while (!__atomic_load_n(&copier->open_count, __ATOMIC_RELAXED) &&
           clock_ns() - begin_ns < AWAKE_NS)
        sched_yield();
    lock_copier(copier);
}

/* The same, until the job is done. */
static void look_for_end(struct copier *copier, const struct copier_job *job)
{
    uint64_t begin_ns = clock_ns();
    pthread_mutex_unlock(&copier->lock);
    while (__atomic_load_n(&job->finished, __ATOMIC_RELAXED) < job->bytes &&
           clock_ns() - begin_ns < AWAKE_NS)
        sched_yield();
    lock_copier(copier);
}

/* ---- Parts ---------------------------------------------------------------------------------- */

static void unlink_job(struct copier *copier, struct copier_job *job)
{
    struct copier_job **at = &copier->first, *before = NULL;
    while (*at != job) {
        before = *at;
        at = &before->next;
    }
    *at = job->next;
    if (copier->last == job)
        copier->last = before;
    __atomic_store_n(&copier->open_count, copier->open_count - 1, __ATOMIC_RELAXED);
}

/* With the lock held, which is given up while it copies: the next part of a job that has one. */
static void do_part(struct copier *copier, struct copier_job *job)
{
    size_t at = job->begun, left = job->bytes - at;
    size_t bytes = left < PART_BYTES ? left : PART_BYTES;
    job->begun += bytes;
    if (job->begun == job->bytes)
        unlink_job(copier, job);
    if (copier->first && copier->idle)
        pthread_cond_signal(&copier->given);
    pthread_mutex_unlock(&copier->lock);
    bool good = fault_copy(job->target + at, job->source + at, bytes);
    lock_copier(copier);
    job->failed = job->failed || !good;
    __atomic_store_n(&job->finished, job->finished + bytes, __ATOMIC_RELAXED);
    if (job->finished == job->bytes)
        pthread_cond_broadcast(&copier->landed);
}

static void *work(void *argument)
{
    struct copier *copier = argument;
    lock_copier(copier);
    for (;;) {
        if (!copier->first && !copier->stopping)
            look_for_parts(copier);
        while (!copier->first && !copier->stopping) {
            copier->idle++;
            pthread_cond_wait(&copier->given, &copier->lock);
            copier->idle--;
        }
        if (!copier->first)
            break;
        do_part(copier, copier->first);
    }
    pthread_mutex_unlock(&copier->lock);
    return NULL;
}

/* ---- Copies --------------------------------------------------------------------------------- */

/* With the lock held. A thread that cannot be started is done without, and not asked for again. */
static void start_threads(struct copier *copier)
{
    while (copier->started < copier->wanted) {
        if (pthread_create(&copier->threads[copier->started], NULL, work, copier) == 0)
            copier->started++;
        else
            copier->wanted = copier->started;
    }
}

void copier_start(struct copier *copier, struct copier_job *job, void *target, const void *source,
                  size_t bytes)
{
    *job = (struct copier_job){ .target = target, .source = source, .bytes = bytes };
    if (bytes == 0)
        return;
    lock_copier(copier);
    start_threads(copier);
    __atomic_store_n(&copier->open_count, copier->open_count + 1, __ATOMIC_RELAXED);
    if (copier->last)
        copier->last->next = job;
    else
        copier->first = job;
    copier->last = job;
    if (copier->idle && bytes > PART_BYTES)
        pthread_cond_broadcast(&copier->given);
    else if (copier->idle)
        pthread_cond_signal(&copier->given);
    pthread_mutex_unlock(&copier->lock);
}

bool copier_wait(struct copier *copier, struct copier_job *job)
{
    lock_copier(copier);
    while (job->begun < job->bytes)
        do_part(copier, job);
    if (job->finished < job->bytes)
        look_for_end(copier, job);
    while (job->finished < job->bytes)
        pthread_cond_wait(&copier->landed, &copier->lock);
    pthread_mutex_unlock(&copier->lock);
    return !job->failed;
}

/* ---- Life ----------------------------------------------------------------------------------- */

enum status copier_create(uint32_t thread_limit, struct copier **ret_copier, struct error *err)
{
    struct copier *copier = calloc(1, sizeof(*copier));
    if (!copier)
        return error_set(err, STATUS_NO_MEMORY, "no memory for threads that copy");
    pthread_mutex_init(&copier->lock, NULL);
    pthread_cond_init(&copier->given, NULL);
    pthread_cond_init(&copier->landed, NULL);
    uint32_t spare = parallel_processor_count() - 1; /* one is the caller's */
    copier->wanted = spare < thread_limit ? spare : thread_limit;
    copier->wanted = copier->wanted < THREAD_LIMIT ? copier->wanted : THREAD_LIMIT;
    fault_install();
    *ret_copier = copier;
    return STATUS_OK;
}

void copier_destroy(struct copier *copier)
{
    if (!copier)
        return;
    pthread_mutex_lock(&copier->lock);
    copier->stopping = true;
    pthread_cond_broadcast(&copier->given);
    pthread_mutex_unlock(&copier->lock);
    for (uint32_t i = 0; i < copier->started; i++)
        pthread_join(copier->threads[i], NULL);
    pthread_cond_destroy(&copier->given);
    pthread_cond_destroy(&copier->landed);
    pthread_mutex_destroy(&copier->lock);
    free(copier);
}
