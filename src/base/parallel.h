/* parallel.h - work that is cut into independent parts and done by several threads.
 *
 * Meant for bulk work of milliseconds and more (quantizing, hashing): threads are started and
 * joined in the call. Parts are taken in order, one at a time, so uneven parts and a busy core cost
 * little. Results must not depend on which thread did which part. */
#ifndef GRETA_BASE_PARALLEL_H
#define GRETA_BASE_PARALLEL_H

#include <stdint.h>

/* Does part part_index. Called from any of the threads, never twice for the same index. */
typedef void (*parallel_part)(void *context, uint64_t part_index);

/* Returns when all parts are done. thread_count 0: one thread for each processor this process may
 * run on. If a thread cannot be started, the others do its parts. */
void parallel_run(uint64_t part_count, uint32_t thread_count, parallel_part part, void *context);

/* The calling thread's number, from 0, in the order in which threads first called this. One counter
 * and one thread-local serve the whole process. */
uint32_t parallel_thread_index(void);

/* Processors this process may run on; at least 1. */
uint32_t parallel_processor_count(void);

#endif
