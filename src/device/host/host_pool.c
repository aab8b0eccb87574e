/* host_pool.c - the workers that share a launch's tiles.
 *
 * The stream that launches is worker 0; the pool has one thread less than there are processors to
 * use, so two cores run two threads. Every stream has one job for its whole life. Workers help any
 * stream that has tiles left.
 *
 * The tiles of a launch are divided into shares of neighbours, one for each worker. A worker takes
 * from its own share, whose line stays in its cache, and from those of others only when that is
 * empty: a line that all claim from goes from core to core with every claim, and between two dies
 * that takes as long as a small tile.
 *
 * Tiles are claimed by a compare-and-swap on a share's word, which carries the launch's sequence
 * number. A share with an older number is as yet untouched: nobody has to write all of them when a
 * launch begins. Whoever claims tiles knows that the launch cannot end, nor the job's data change,
 * before they are done. */
#include "device/host/host_impl.h"

#include <stdlib.h>
#include <string.h>

#define TILE_BITS 32u
#define TILE_MASK 0xFFFFFFFFu
/* Sequence numbers are compared by their difference; before a share's could be so old that it seems
 * new, all are written. The first launches come past this point, so that it is no rare one. */
#define RENEW_EVERY (1u << 30)
#define FIRST_SEQUENCE (UINT32_MAX - 100)

/* Memory a worker will read: addresses, never followed. Atomic. */
struct fetch {
    uint64_t address, bytes;
};

/* Workers that are told what to fetch: beyond, who gets which run is anybody's guess. */
#define FETCH_LIMIT 8u
/* A part of the second cache, about what memory gives in the time of a small kernel. */
#define FETCH_BYTES ((uint64_t)128 << 10)

struct host_worker {
    struct host_pool *pool;
    uint32_t index;
    void *scratch; /* made before its thread, freed after it */
};

struct host_pool {
    /* Bumped when a job has tiles, or the end has come. */
    _Alignas(HOST_LINE_BYTES) struct host_word work;
    _Alignas(HOST_LINE_BYTES) struct fetch fetches[FETCH_LIMIT];
    _Alignas(HOST_LINE_BYTES) uint32_t stopping; /* atomic */
    pthread_mutex_t lock; /* guards the jobs; held by workers only while they look */
    struct host_job *jobs[CRUMB_STREAM_LIMIT];
    uint32_t helpers[CRUMB_STREAM_LIMIT]; /* workers inside each job */
    pthread_cond_t left;                  /* a helper left a job */
    uint32_t thread_count;
    pthread_t threads[HOST_THREAD_LIMIT];
    struct host_worker workers[HOST_THREAD_LIMIT];
};

/* ---- Tiles ---------------------------------------------------------------------------------- */

/* A run is what a worker claims at a time: neighbouring tiles of one share. Of its own share a
 * worker takes half at once, then ever smaller parts: so claims are few, and those who come to help
 * find something until the end. A helper takes what leaves as much for everybody: each time it
 * comes, the share's line has to come from its owner's core and go back. */

struct tile_run {
    uint64_t first, end;
};

/* A worker in a launch. */
struct tile_work {
    const struct host_pool *pool;
    struct host_job *job;
    void *scratch;
    uint64_t launch;
    uint32_t own; /* share */
    bool going;   /* has a run in hand */
    struct tile_run run;
    uint64_t next_run, previous_end; /* as in struct device_host_call */
    uint32_t done;                   /* tiles that are not in job->done yet */
    uint32_t done_target;
};

static uint32_t share_count(const struct host_pool *pool)
{
    return pool->thread_count + 1;
}

/* The first tile of a share. Rounded up, so that the stream's thread has one of every launch. */
static uint64_t share_begin(const struct host_pool *pool, uint64_t tile_count, uint32_t share)
{
    uint64_t shares = share_count(pool);
    return (tile_count * share + shares - 1) / shares;
}

static uint64_t launch_tiles(uint64_t launch)
{
    return launch & TILE_MASK;
}

/* The tiles of a share that are not claimed. False: the launch is over. */
static bool share_rest(const struct host_pool *pool, uint64_t launch, uint32_t share,
                       uint64_t taken, struct tile_run *rest)
{
    int32_t newer = (int32_t)((uint32_t)(taken >> TILE_BITS) - (uint32_t)(launch >> TILE_BITS));
    rest->first = newer ? share_begin(pool, launch_tiles(launch), share) : taken & TILE_MASK;
    rest->end = share_begin(pool, launch_tiles(launch), share + 1);
    return newer <= 0;
}

/* How many of the tiles that are left of a share, at least one, the next run gets. */
static uint64_t run_length(const struct tile_work *work, uint32_t share,
                           const struct tile_run *rest)
{
    uint64_t left = rest->end - rest->first, workers = share_count(work->pool);
    if (workers == 1)
        return left;
    if (share != work->own)
        return (left + workers - 1) / workers;
    uint64_t half = (rest->end - share_begin(work->pool, launch_tiles(work->launch), share)) / 2;
    uint64_t length = left > half ? left - half : left / (workers + 1);
    return length ? length : 1;
}

/* Takes the next run of a share, if anything is left. */
static bool claim_from(struct tile_work *work, uint32_t share)
{
    uint64_t *word = &work->job->shares[share].taken;
    uint64_t taken = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    struct tile_run rest;
    while (share_rest(work->pool, work->launch, share, taken, &rest) && rest.first < rest.end) {
        uint64_t end = rest.first + run_length(work, share, &rest);
        uint64_t now = (work->launch & ~(uint64_t)TILE_MASK) | end;
        if (__atomic_compare_exchange_n(word, &taken, now, true, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
            work->run = (struct tile_run){ rest.first, end };
            work->next_run = share == work->own && end < rest.end ? end : DEVICE_NO_TILE;
            return true;
        }
    }
    return false;
}

/* From a share that is not the worker's own. */
static bool claim_from_others(struct tile_work *work)
{
    uint32_t count = share_count(work->pool);
    for (uint32_t i = 1; i < count; i++)
        if (claim_from(work, (work->own + i) % count))
            return true;
    return false;
}

/* True: these were the launch's last. */
static bool count_done(struct tile_work *work)
{
    uint32_t done = host_word_add(&work->job->done, work->done);
    work->done = 0;
    if (done != work->done_target)
        return false;
    host_word_wake(&work->job->done);
    return true;
}

static void call_kernel(const struct tile_work *work)
{
    const struct device_command *command = work->job->command;
    struct device_host_call call = { .params = command->params,
                                     .operands = command->operands,
                                     .scratch = work->scratch,
                                     .crumbs = work->job->crumbs,
                                     .launch_id = command->event_id,
                                     .run_end = work->run.end,
                                     .next_run = work->next_run,
                                     .previous_end = work->previous_end };
    if (command->kernel.host->takes_runs) {
        command->kernel.host->host(&call, work->run.first);
        return;
    }
    for (uint64_t tile = work->run.first; tile < work->run.end; tile++)
        command->kernel.host->host(&call, tile);
}

/* All that is to be had, from the run in hand on; runs where a fault is caught. After a fault the
 * rest of the tiles are not run, only counted. */
static void run_tiles(void *context)
{
    struct tile_work *work = context;
    while (work->going) {
        if (!__atomic_load_n(&work->job->faulted, __ATOMIC_ACQUIRE))
            call_kernel(work);
        work->done += (uint32_t)(work->run.end - work->run.first);
        work->previous_end = work->run.end;
        /* Counted before others' shares are looked at, which takes its time: they may wait for just
         * these. From then on the launch may be over, and there is nothing to claim of it. */
        work->going = claim_from(work, work->own) || (!count_done(work) && claim_from_others(work));
    }
}

static void do_tiles(const struct host_pool *pool, struct host_job *job, uint32_t own,
                     void *scratch)
{
    struct tile_work work = { .pool = pool, .job = job, .scratch = scratch, .own = own };
    struct fault_info info;
    work.launch = __atomic_load_n(&job->launch, __ATOMIC_ACQUIRE);
    work.going = claim_from(&work, own) || claim_from_others(&work);
    if (!work.going)
        return;
    /* While a claimed tile is not counted the launch cannot be over, nor the job change. */
    work.done_target = job->done_target;
    while (!fault_run(run_tiles, &work, &info))
        if (!__atomic_exchange_n(&job->faulted, 1, __ATOMIC_ACQ_REL))
            job->fault = info; /* and once more, from the run with the fault on */
}

/* Every share as it is at the beginning of a launch: only before that is known. */
static void renew_shares(const struct host_pool *pool, struct host_job *job, uint64_t launch)
{
    for (uint32_t i = 0; i < share_count(pool); i++)
        __atomic_store_n(&job->shares[i].taken,
                         (launch & ~(uint64_t)TILE_MASK) |
                             share_begin(pool, launch_tiles(launch), i),
                         __ATOMIC_RELAXED);
}

void host_job_init(struct host_job *job)
{
    *job = (struct host_job){ .launch = (uint64_t)FIRST_SEQUENCE << TILE_BITS };
    for (size_t i = 0; i < COUNT_OF(job->shares); i++)
        job->shares[i].taken = job->launch;
}

void host_pool_begin(struct host_pool *pool, struct host_job *job)
{
    uint64_t tile_count = job->command->tile_count;
    ASSERT(tile_count <= TILE_MASK);
    uint32_t sequence = (uint32_t)(job->launch >> TILE_BITS) + 1;
    uint64_t launch = (uint64_t)sequence << TILE_BITS | tile_count;
    job->done_target += (uint32_t)tile_count;
    __atomic_store_n(&job->faulted, 0, __ATOMIC_RELAXED);
    if (sequence % RENEW_EVERY == 0)
        renew_shares(pool, job, launch);
    __atomic_store_n(&job->launch, launch, __ATOMIC_RELEASE);
    if (pool->thread_count && tile_count > 1)
        host_word_bump(&pool->work);
}

void host_pool_finish(struct host_pool *pool, struct host_job *job, void *scratch)
{
    do_tiles(pool, job, 0, scratch);
    for (;;) {
        uint32_t done = host_word_load(&job->done);
        if (done == job->done_target)
            return;
        host_word_wait(&job->done, done, HOST_WAIT_SPINNING);
    }
}

/* ---- Fetching ------------------------------------------------------------------------------- */

void host_pool_announce(struct host_pool *pool, const struct device_command *command)
{
    struct device_host_call call = { .params = command->params, .operands = command->operands };
    uint32_t count = pool->thread_count < FETCH_LIMIT ? pool->thread_count : FETCH_LIMIT;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t address = 0, bytes = 0;
        uint64_t tile = share_begin(pool, command->tile_count, i + 1);
        if (tile < command->tile_count)
            address = (uint64_t)(uintptr_t)command->kernel.host->reads(&call, tile, &bytes);
        __atomic_store_n(&pool->fetches[i].bytes, bytes, __ATOMIC_RELAXED);
        __atomic_store_n(&pool->fetches[i].address, address, __ATOMIC_RELAXED);
    }
}

/* Fetches what was announced for a worker, until there is work. *last: the address it did last. A
 * prefetch of memory that is gone does nothing. */
static void fetch_ahead(const struct host_pool *pool, uint32_t worker, uint32_t seen,
                        uint64_t *last)
{
    if (worker >= FETCH_LIMIT)
        return;
    uint64_t address = __atomic_load_n(&pool->fetches[worker].address, __ATOMIC_RELAXED);
    uint64_t bytes = __atomic_load_n(&pool->fetches[worker].bytes, __ATOMIC_RELAXED);
    if (address == *last || address == 0)
        return;
    *last = address;
    bytes = bytes < FETCH_BYTES ? bytes : FETCH_BYTES;
    for (uint64_t at = 0; at < bytes; at += 64) {
        if (at % 1024 == 0 && host_word_load(&pool->work) != seen)
            return;
        __builtin_prefetch((const void *)(uintptr_t)(address + at), 0, 2);
    }
}

/* ---- Workers -------------------------------------------------------------------------------- */

/* own: the share of who asks, which is looked at first. */
static bool has_tiles(const struct host_pool *pool, const struct host_job *job, uint32_t own)
{
    uint64_t launch = __atomic_load_n(&job->launch, __ATOMIC_ACQUIRE);
    uint32_t count = share_count(pool);
    for (uint32_t i = 0; i < count; i++) {
        struct tile_run rest;
        uint32_t share = (own + i) % count;
        uint64_t taken = __atomic_load_n(&job->shares[share].taken, __ATOMIC_ACQUIRE);
        if (share_rest(pool, launch, share, taken, &rest) && rest.first < rest.end)
            return true;
    }
    return false;
}

/* A job with tiles left, held until give_job; NULL if there is none. */
static struct host_job *take_job(struct host_pool *pool, uint32_t own, uint32_t *ret_index)
{
    struct host_job *found = NULL;
    pthread_mutex_lock(&pool->lock);
    for (uint32_t i = 0; i < CRUMB_STREAM_LIMIT && !found; i++) {
        if (pool->jobs[i] && has_tiles(pool, pool->jobs[i], own)) {
            found = pool->jobs[i];
            pool->helpers[i]++;
            *ret_index = i;
        }
    }
    pthread_mutex_unlock(&pool->lock);
    return found;
}

static void give_job(struct host_pool *pool, uint32_t index)
{
    pthread_mutex_lock(&pool->lock);
    if (--pool->helpers[index] == 0)
        pthread_cond_broadcast(&pool->left);
    pthread_mutex_unlock(&pool->lock);
}

static void *worker(void *argument)
{
    const struct host_worker *self = argument;
    struct host_pool *pool = self->pool;
    uint64_t last_fetched = 0;
    uint32_t own = self->index + 1; /* the stream's thread has share 0 */
    while (!__atomic_load_n(&pool->stopping, __ATOMIC_ACQUIRE)) {
        uint32_t seen = host_word_load(&pool->work);
        uint32_t index;
        struct host_job *job = take_job(pool, own, &index);
        if (job) {
            do_tiles(pool, job, own, self->scratch);
            give_job(pool, index);
        } else {
            fetch_ahead(pool, self->index, seen, &last_fetched);
            host_word_wait(&pool->work, seen, HOST_WAIT_GIVING_WAY);
        }
    }
    return NULL;
}

/* ---- Life ----------------------------------------------------------------------------------- */

static bool start_worker(struct host_pool *pool)
{
    struct host_worker *self = &pool->workers[pool->thread_count];
    *self = (struct host_worker){ pool, pool->thread_count,
                                  aligned_alloc(64, DEVICE_SCRATCH_BYTES) };
    if (!self->scratch ||
        pthread_create(&pool->threads[pool->thread_count], NULL, worker, self) != 0) {
        free(self->scratch);
        return false;
    }
    pool->thread_count++;
    return true;
}

enum status host_pool_create(uint32_t thread_count, struct host_pool **ret_pool, struct error *err)
{
    struct host_pool *pool = aligned_alloc(_Alignof(struct host_pool), sizeof(*pool));
    if (!pool)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the kernel pool");
    memset(pool, 0, sizeof(*pool));
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->left, NULL);
    if (thread_count > HOST_THREAD_LIMIT)
        thread_count = HOST_THREAD_LIMIT;
    /* A thread that cannot be started is done without: slower, not wrong. */
    while (pool->thread_count + 1 < thread_count && start_worker(pool))
        ;
    *ret_pool = pool;
    return STATUS_OK;
}

void host_pool_destroy(struct host_pool *pool)
{
    if (!pool)
        return;
    __atomic_store_n(&pool->stopping, 1, __ATOMIC_RELEASE);
    host_word_bump(&pool->work);
    for (uint32_t i = 0; i < pool->thread_count; i++) {
        pthread_join(pool->threads[i], NULL);
        free(pool->workers[i].scratch);
    }
    pthread_mutex_destroy(&pool->lock);
    pthread_cond_destroy(&pool->left);
    free(pool);
}

void host_pool_add(struct host_pool *pool, uint32_t stream_index, struct host_job *job)
{
    pthread_mutex_lock(&pool->lock);
    pool->jobs[stream_index] = job;
    pthread_mutex_unlock(&pool->lock);
}

void host_pool_remove(struct host_pool *pool, uint32_t stream_index)
{
    pthread_mutex_lock(&pool->lock);
    pool->jobs[stream_index] = NULL;
    while (pool->helpers[stream_index])
        pthread_cond_wait(&pool->left, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}
