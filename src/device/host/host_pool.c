/* host_pool.c - the workers that share a launch's tiles.
 *
 * The stream that launches is worker 0; the pool has one thread less than there are processors to
 * use, so two cores run two threads. Every stream has one job for its whole life. A tile is claimed
 * by a compare-and-swap on the job's claim word, which carries the launch's sequence number:
 * whoever claims a tile knows that the job cannot end, nor its data change, before that tile is
 * done. Workers help any stream that has tiles left. */
#include "device/host/host_impl.h"

#include <stdlib.h>
#include <string.h>

#define THREAD_LIMIT 256u
#define TILE_BITS 32u
#define TILE_MASK 0xFFFFFFFFu

struct host_pool {
    struct host_word work; /* bumped when a job has tiles, or the end has come */
    uint32_t stopping;     /* atomic */
    pthread_mutex_t lock;  /* guards the jobs; held by workers only while they look */
    struct host_job *jobs[CRUMB_STREAM_LIMIT];
    uint32_t helpers[CRUMB_STREAM_LIMIT]; /* workers inside each job */
    pthread_cond_t left;                  /* a helper left a job */
    uint32_t thread_count;
    pthread_t threads[THREAD_LIMIT];
};

/* ---- Tiles ---------------------------------------------------------------------------------- */

struct tile_run {
    struct host_job *job;
    void *scratch;
    uint64_t tile;
};

static void run_tile(void *context)
{
    struct tile_run *run = context;
    const struct device_command *command = run->job->command;
    struct device_host_call call = { .params = command->params,
                                     .operands = command->operands,
                                     .scratch = run->scratch,
                                     .crumbs = run->job->crumbs,
                                     .launch_id = command->event_id };
    command->kernel.host(&call, run->tile);
}

/* Takes the next tile; false if there is none. */
static bool claim_tile(struct host_job *job, uint64_t *ret_tile)
{
    uint64_t claim = __atomic_load_n(&job->claim, __ATOMIC_ACQUIRE);
    for (;;) {
        uint64_t tile = claim & TILE_MASK;
        /* Acquire: a count of the next launch comes with that launch's claim, and the swap fails.
         */
        if (tile >= __atomic_load_n(&job->tile_count, __ATOMIC_ACQUIRE))
            return false;
        if (__atomic_compare_exchange_n(&job->claim, &claim, claim + 1, true, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
            *ret_tile = tile;
            return true;
        }
    }
}

static void do_tiles(struct host_job *job, void *scratch)
{
    struct tile_run run = { .job = job, .scratch = scratch };
    while (claim_tile(job, &run.tile)) {
        uint64_t tile_count = __atomic_load_n(&job->tile_count, __ATOMIC_RELAXED);
        struct host_fault_info info;
        /* After a fault the rest of the tiles are not run, only counted. */
        if (!__atomic_load_n(&job->faulted, __ATOMIC_ACQUIRE) &&
            !host_fault_run(run_tile, &run, &info) &&
            !__atomic_exchange_n(&job->faulted, 1, __ATOMIC_ACQ_REL))
            job->fault = info;
        if (__atomic_add_fetch(&job->done_count, 1, __ATOMIC_ACQ_REL) == tile_count)
            host_word_bump(&job->done);
    }
}

void host_pool_run(struct host_pool *pool, struct host_job *job, void *scratch)
{
    const struct device_command *command = job->command;
    ASSERT(command->tile_count <= TILE_MASK);
    if (command->tile_count == 0)
        return;
    uint64_t sequence = (__atomic_load_n(&job->claim, __ATOMIC_RELAXED) >> TILE_BITS) + 1;
    uint32_t seen = host_word_load(&job->done);
    /* All tiles of the last launch are claimed, so nobody takes one until the claim is new. */
    __atomic_store_n(&job->tile_count, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&job->claim, sequence << TILE_BITS, __ATOMIC_RELEASE);
    __atomic_store_n(&job->faulted, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&job->done_count, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&job->tile_count, command->tile_count, __ATOMIC_RELEASE);
    if (pool->thread_count && command->tile_count > 1)
        host_word_bump(&pool->work);
    do_tiles(job, scratch);
    while (__atomic_load_n(&job->done_count, __ATOMIC_ACQUIRE) < command->tile_count) {
        host_word_wait(&job->done, seen);
        seen = host_word_load(&job->done);
    }
}

/* ---- Workers -------------------------------------------------------------------------------- */

static bool has_tiles(struct host_job *job)
{
    uint64_t claim = __atomic_load_n(&job->claim, __ATOMIC_ACQUIRE);
    return (claim & TILE_MASK) < __atomic_load_n(&job->tile_count, __ATOMIC_ACQUIRE);
}

/* A job with tiles left, held until give_job; NULL if there is none. */
static struct host_job *take_job(struct host_pool *pool, uint32_t *ret_index)
{
    struct host_job *found = NULL;
    pthread_mutex_lock(&pool->lock);
    for (uint32_t i = 0; i < CRUMB_STREAM_LIMIT && !found; i++) {
        if (pool->jobs[i] && has_tiles(pool->jobs[i])) {
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
    struct host_pool *pool = argument;
    void *scratch = aligned_alloc(64, DEVICE_SCRATCH_BYTES);
    ASSERT(scratch);
    while (!__atomic_load_n(&pool->stopping, __ATOMIC_ACQUIRE)) {
        uint32_t seen = host_word_load(&pool->work);
        uint32_t index;
        struct host_job *job = take_job(pool, &index);
        if (job) {
            do_tiles(job, scratch);
            give_job(pool, index);
        } else {
            host_word_wait(&pool->work, seen);
        }
    }
    free(scratch);
    return NULL;
}

/* ---- Life ----------------------------------------------------------------------------------- */

enum status host_pool_create(uint32_t thread_count, struct host_pool **ret_pool, struct error *err)
{
    struct host_pool *pool = calloc(1, sizeof(*pool));
    if (!pool)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the kernel pool");
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->left, NULL);
    if (thread_count > THREAD_LIMIT)
        thread_count = THREAD_LIMIT;
    /* A thread that cannot be started is done without: slower, not wrong. */
    while (pool->thread_count + 1 < thread_count &&
           pthread_create(&pool->threads[pool->thread_count], NULL, worker, pool) == 0)
        pool->thread_count++;
    *ret_pool = pool;
    return STATUS_OK;
}

void host_pool_destroy(struct host_pool *pool)
{
    if (!pool)
        return;
    __atomic_store_n(&pool->stopping, 1, __ATOMIC_RELEASE);
    host_word_bump(&pool->work);
    for (uint32_t i = 0; i < pool->thread_count; i++)
        pthread_join(pool->threads[i], NULL);
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
