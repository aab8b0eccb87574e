/* parallel.h - one piece of work cut into independent parts, done by several threads.
 *
 * For bulk work of milliseconds and more (quantising, hashing): threads are started and joined in
 * the call. Parts are taken in order, one at a time, so uneven parts and a busy core cost little.
 * Results must not depend on who did which part. */
#ifndef GRETA_BASE_PARALLEL_H
#define GRETA_BASE_PARALLEL_H

#include <stdint.h>

/* Does part part_index; called from any of the threads, never twice for one index. */
typedef void (*parallel_part)(void *context, uint64_t part_index);

/* Returns when all parts are done. thread_count 0: as many as there are processors for us. A thread
 * that cannot be started is done without. */
void parallel_run(uint64_t part_count, uint32_t thread_count, parallel_part part, void *context);

/* Processors this process may run on; at least 1. */
uint32_t parallel_processor_count(void);

#endif
