/* parallel.c - see parallel.h. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* More are of no use for bulk work on one machine; the limit keeps the handles on the stack. */
#define THREAD_LIMIT 64

struct job {
    atomic_uint_fast64_t next_part;
    uint64_t part_count;
    parallel_part part;
    void *context;
};

static void *work(void *argument)
{
    struct job *job = argument;
    for (;;) {
        uint64_t index = atomic_fetch_add_explicit(&job->next_part, 1, memory_order_relaxed);
        if (index >= job->part_count)
            return NULL;
        job->part(job->context, index);
    }
}

uint32_t parallel_processor_count(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) != 0)
        return 1;
    int count = CPU_COUNT(&set);
    return count > 0 ? (uint32_t)count : 1;
}

void parallel_run(uint64_t part_count, uint32_t thread_count, parallel_part part, void *context)
{
    struct job job = { .part_count = part_count, .part = part, .context = context };
    if (thread_count == 0)
        thread_count = parallel_processor_count();
    if (thread_count > THREAD_LIMIT)
        thread_count = THREAD_LIMIT;
    if (thread_count > part_count)
        thread_count = (uint32_t)part_count;
    pthread_t threads[THREAD_LIMIT];
    uint32_t started = 0;
    while (started + 1 < thread_count && pthread_create(&threads[started], NULL, work, &job) == 0)
        started++;
    work(&job);
    while (started > 0)
        pthread_join(threads[--started], NULL);
}

uint32_t parallel_thread_index(void)
{
    static uint32_t next;
    static _Thread_local uint32_t mine; /* plus 1 */
    if (mine == 0)
        mine = __atomic_add_fetch(&next, 1, __ATOMIC_RELAXED);
    return mine - 1;
}
