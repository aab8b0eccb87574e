/* host_pool.c - the workers that share a launch's tiles.
 *
 * The stream that launches is worker 0; the pool has one thread less than there are processors to
 * use, so two cores run two threads. Every stream has one job for its whole life. Tiles are claimed
 * by a compare-and-swap on the job's claim word, which carries the launch's sequence number:
 * whoever claims tiles knows that the job cannot end, nor its data change, before they are
 * done. Workers help any stream that has tiles left. */
#include "device/host/host_impl.h"

#include <stdlib.h>
#include <string.h>

#define THREAD_LIMIT 256u
#define TILE_BITS 32u
#define TILE_MASK 0xFFFFFFFFu

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
    _Alignas(64) struct host_word work; /* bumped when a job has tiles, or the end has come */
    _Alignas(64) struct fetch fetches[FETCH_LIMIT];
    _Alignas(64) uint32_t stopping; /* atomic */
    pthread_mutex_t lock;           /* guards the jobs; held by workers only while they look */
    struct host_job *jobs[CRUMB_STREAM_LIMIT];
    uint32_t helpers[CRUMB_STREAM_LIMIT]; /* workers inside each job */
    pthread_cond_t left;                  /* a helper left a job */
    uint32_t thread_count;
    pthread_t threads[THREAD_LIMIT];
    struct host_worker workers[THREAD_LIMIT];
};

/* ---- Tiles ---------------------------------------------------------------------------------- */

/* A run is what a worker claims at a time: neighbouring tiles, a part of what is left; so claims
 * are few, and the last ones small enough that all workers end together. The next run is claimed
 * before the one in hand is done, so that a kernel can fetch its beginning in time; but the last
 * tiles are left for whoever has nothing in hand. */
#define RUNS_PER_WORKER 3u

struct tile_run {
    uint64_t first, end;
};

/* What fault_run needs: a worker's run, and those beside it. */
struct tile_work {
    struct host_job *job;
    void *scratch;
    struct tile_run run;
    uint64_t next_run, previous_end; /* as in struct device_host_call */
};

static void run_tiles(void *context)
{
    struct tile_work *work = context;
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

/* How many of the tiles that are left, at least one, the next run gets. */
static uint64_t run_length(const struct host_pool *pool, uint64_t tiles_left)
{
    /* Alone, one run is all. */
    uint64_t workers = (uint64_t)pool->thread_count + 1;
    uint64_t length = tiles_left / (workers > 1 ? RUNS_PER_WORKER * workers : 1);
    return length ? length : 1;
}

/* Takes the next tiles, unless `kept` or fewer are left: then false, and run->first is the one that
 * would have been next. */
static bool claim_run(const struct host_pool *pool, struct host_job *job, uint64_t kept,
                      struct tile_run *run)
{
    uint64_t claim = __atomic_load_n(&job->claim, __ATOMIC_ACQUIRE);
    for (;;) {
        uint64_t tile = claim & TILE_MASK;
        /* Acquire: a count of the next launch comes with that launch's claim, and the swap fails.
         */
        uint64_t tile_count = __atomic_load_n(&job->tile_count, __ATOMIC_ACQUIRE);
        run->first = tile;
        if (tile >= tile_count || tile_count - tile <= kept)
            return false;
        uint64_t length = run_length(pool, tile_count - tile);
        if (__atomic_compare_exchange_n(&job->claim, &claim, claim + length, true, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
            *run = (struct tile_run){ tile, tile + length };
            return true;
        }
    }
}

static void do_tiles(const struct host_pool *pool, struct host_job *job, void *scratch)
{
    struct tile_work work = { .job = job, .scratch = scratch };
    uint64_t done = 0;
    bool going = claim_run(pool, job, 0, &work.run);
    if (!going)
        return;
    /* From here to the end of this function the launch cannot be over, nor its counts change. */
    uint64_t tile_count = __atomic_load_n(&job->tile_count, __ATOMIC_RELAXED);
    while (going) {
        struct tile_run next;
        struct fault_info info;
        bool ahead = claim_run(pool, job, (uint64_t)pool->thread_count + 1, &next);
        work.next_run = next.first < tile_count ? next.first : DEVICE_NO_TILE;
        /* After a fault the rest of the tiles are not run, only counted. */
        if (!__atomic_load_n(&job->faulted, __ATOMIC_ACQUIRE) &&
            !fault_run(run_tiles, &work, &info) &&
            !__atomic_exchange_n(&job->faulted, 1, __ATOMIC_ACQ_REL))
            job->fault = info;
        done += work.run.end - work.run.first;
        work.previous_end = work.run.end;
        going = ahead || claim_run(pool, job, 0, &next);
        work.run = next;
    }
    if (__atomic_add_fetch(&job->done_count, done, __ATOMIC_ACQ_REL) == tile_count)
        host_word_bump(&job->done);
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
    do_tiles(pool, job, scratch);
    while (__atomic_load_n(&job->done_count, __ATOMIC_ACQUIRE) < command->tile_count) {
        host_word_wait(&job->done, seen, HOST_WAIT_SPINNING);
        seen = host_word_load(&job->done);
    }
}

/* ---- Fetching ------------------------------------------------------------------------------- */

void host_pool_announce(struct host_pool *pool, const struct device_command *command)
{
    struct device_host_call call = { .params = command->params, .operands = command->operands };
    uint32_t count = pool->thread_count < FETCH_LIMIT ? pool->thread_count : FETCH_LIMIT;
    uint64_t tile = 0;
    for (uint32_t i = 0; i < count; i++) {
        /* The stream's own thread claims first, and everybody two runs at once. */
        uint64_t address = 0, bytes = 0;
        for (size_t run = 0; run < 2 && tile < command->tile_count; run++)
            tile += run_length(pool, command->tile_count - tile);
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
    const struct host_worker *self = argument;
    struct host_pool *pool = self->pool;
    uint64_t last_fetched = 0;
    while (!__atomic_load_n(&pool->stopping, __ATOMIC_ACQUIRE)) {
        uint32_t seen = host_word_load(&pool->work);
        uint32_t index;
        struct host_job *job = take_job(pool, &index);
        if (job) {
            do_tiles(pool, job, self->scratch);
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
    if (thread_count > THREAD_LIMIT)
        thread_count = THREAD_LIMIT;
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
