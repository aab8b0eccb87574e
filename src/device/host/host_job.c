/* host_job.c - a launch's tiles, shared by its workers.
 *
 * They are divided into shares of neighbouring tiles, one for each worker. A worker takes tiles
 * from its own share, whose cache line stays with it, and from other shares only when its own is
 * empty: a line from which all workers claim moves between cores with every claim, and between two
 * dies that takes as long as a small tile.
 *
 * Tiles are claimed by a compare-and-swap on the share's word, which contains the launch's sequence
 * number. A share with an older number is untouched so far, so a launch can begin without writing
 * all shares. Once a worker has claimed tiles, the launch cannot end and the job's data cannot
 * change before they are done. */
#include "device/host/host_impl.h"

#define TILE_BITS 32u
#define TILE_MASK 0xFFFFFFFFu
/* Sequence numbers are compared by their difference; before a share's could be so old that it seems
 * new, all are written. The first launches come past this point, so that it is no rare one. */
#define RENEW_EVERY (1u << 30)
#define FIRST_SEQUENCE (UINT32_MAX - 100)

/* A run is what a worker claims at a time: neighbouring tiles of one share. From its own share a
 * worker takes half of the rest each time, so that claims are few and helpers find tiles until the
 * end. A helper takes an equal part of the rest, because each of its claims moves the share's cache
 * line away from the owner's core and back. */

struct tile_run {
    uint64_t first, end;
};

/* A worker in a launch. */
struct tile_work {
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

uint64_t host_share_begin(uint32_t share_count, uint64_t tile_count, uint32_t share)
{
    /* Rounded up, so that the stream's thread has a tile of every launch. */
    return (tile_count * share + share_count - 1) / share_count;
}

static uint64_t launch_tiles(uint64_t launch)
{
    return launch & TILE_MASK;
}

/* The tiles of a share that are not claimed. False: the launch is over. */
static bool share_rest(const struct host_job *job, uint64_t launch, uint32_t share, uint64_t taken,
                       struct tile_run *rest)
{
    int32_t newer = (int32_t)((uint32_t)(taken >> TILE_BITS) - (uint32_t)(launch >> TILE_BITS));
    rest->first = newer ? host_share_begin(job->share_count, launch_tiles(launch), share)
                        : taken & TILE_MASK;
    rest->end = host_share_begin(job->share_count, launch_tiles(launch), share + 1);
    return newer <= 0;
}

/* How many of the tiles that are left of a share, at least one, the next run gets. */
static uint64_t run_length(const struct tile_work *work, uint32_t share,
                           const struct tile_run *rest)
{
    uint64_t left = rest->end - rest->first, workers = work->job->share_count;
    if (workers == 1)
        return left;
    if (share != work->own)
        return (left + workers - 1) / workers;
    uint64_t half = (rest->end -
                     host_share_begin(work->job->share_count, launch_tiles(work->launch), share)) /
                    2;
    uint64_t length = left > half ? left - half : left / (workers + 1);
    return length ? length : 1;
}

/* Takes the next run of a share, if anything is left. */
static bool claim_from(struct tile_work *work, uint32_t share)
{
    uint64_t *word = &work->job->shares[share].taken;
    uint64_t taken = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    struct tile_run rest;
    while (share_rest(work->job, work->launch, share, taken, &rest) && rest.first < rest.end) {
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
    uint32_t count = work->job->share_count;
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

/* Does the current run and all others that can be claimed; runs where faults are caught. After a
 * fault the remaining tiles are counted but not run. */
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

void host_job_work(struct host_job *job, uint32_t own, void *scratch)
{
    struct tile_work work = { .job = job, .scratch = scratch, .own = own };
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
static void renew_shares(struct host_job *job, uint64_t launch)
{
    for (uint32_t i = 0; i < job->share_count; i++)
        __atomic_store_n(&job->shares[i].taken,
                         (launch & ~(uint64_t)TILE_MASK) |
                             host_share_begin(job->share_count, launch_tiles(launch), i),
                         __ATOMIC_RELAXED);
}

void host_job_init(struct host_job *job, uint32_t share_count)
{
    *job = (struct host_job){ .launch = (uint64_t)FIRST_SEQUENCE << TILE_BITS,
                              .share_count = share_count };
    for (size_t i = 0; i < COUNT_OF(job->shares); i++)
        job->shares[i].taken = job->launch;
}

void host_job_begin(struct host_job *job)
{
    uint64_t tile_count = job->command->tile_count;
    ASSERT(tile_count <= TILE_MASK);
    uint32_t sequence = (uint32_t)(job->launch >> TILE_BITS) + 1;
    uint64_t launch = (uint64_t)sequence << TILE_BITS | tile_count;
    job->done_target += (uint32_t)tile_count;
    __atomic_store_n(&job->faulted, 0, __ATOMIC_RELAXED);
    if (sequence % RENEW_EVERY == 0)
        renew_shares(job, launch);
    __atomic_store_n(&job->launch, launch, __ATOMIC_RELEASE);
}

void host_job_finish(struct host_job *job, void *scratch)
{
    host_job_work(job, 0, scratch);
    for (;;) {
        uint32_t done = host_word_load(&job->done);
        if (done == job->done_target)
            return;
        host_word_wait(&job->done, done, HOST_WAIT_SPINNING);
    }
}

bool host_job_has_tiles(const struct host_job *job, uint32_t own)
{
    uint64_t launch = __atomic_load_n(&job->launch, __ATOMIC_ACQUIRE);
    uint32_t count = job->share_count;
    for (uint32_t i = 0; i < count; i++) {
        struct tile_run rest;
        uint32_t share = (own + i) % count;
        uint64_t taken = __atomic_load_n(&job->shares[share].taken, __ATOMIC_ACQUIRE);
        if (share_rest(job, launch, share, taken, &rest) && rest.first < rest.end)
            return true;
    }
    return false;
}
