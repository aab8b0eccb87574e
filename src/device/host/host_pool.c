/* host_pool.c - the workers that share a launch's tiles.
 *
 * The stream that launches is worker 0; the pool has one thread less than there are processors to
 * use, so two cores run two threads. Every stream has one job for its whole life. Workers help any
 * stream that has tiles left. */
#include "device/host/host_impl.h"

#include "base/size.h"

#include <stdlib.h>
#include <string.h>

/* Memory a worker will read: addresses, never followed. Atomic. */
struct fetch {
    uint64_t address, bytes;
};

/* Workers that get prefetch hints: with more of them, their runs cannot be predicted. */
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

/* ---- Fetching ------------------------------------------------------------------------------- */

void host_pool_announce(struct host_pool *pool, const struct device_command *command)
{
    struct device_host_call call = { .params = command->params, .operands = command->operands };
    uint32_t count = min_u64(pool->thread_count, FETCH_LIMIT);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t address = 0, bytes = 0;
        uint64_t tile = host_share_begin(host_pool_workers(pool), command->tile_count, i + 1);
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
    bytes = min_u64(bytes, FETCH_BYTES);
    for (uint64_t at = 0; at < bytes; at += 64) {
        if (at % 1024 == 0 && host_word_load(&pool->work) != seen)
            return;
        __builtin_prefetch((const void *)(uintptr_t)(address + at), 0, 2);
    }
}

/* ---- Workers -------------------------------------------------------------------------------- */

uint32_t host_pool_workers(const struct host_pool *pool)
{
    return pool->thread_count + 1;
}

void host_pool_begin(struct host_pool *pool, struct host_job *job)
{
    host_job_begin(job);
    if (pool->thread_count && job->command->tile_count > 1)
        host_word_bump(&pool->work);
}

/* A job with tiles left, held until give_job; NULL if there is none. */
static struct host_job *take_job(struct host_pool *pool, uint32_t own, uint32_t *ret_index)
{
    struct host_job *found = NULL;
    pthread_mutex_lock(&pool->lock);
    for (uint32_t i = 0; i < CRUMB_STREAM_LIMIT && !found; i++) {
        if (pool->jobs[i] && host_job_has_tiles(pool->jobs[i], own)) {
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
            host_job_work(job, own, self->scratch);
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
