/* memory_limit.h - proves that code needs at most this much memory.
 *
 * While the limit is on, the address space of the process cannot grow by more: heap, stacks and
 * mappings together, whoever asks. Code that needs more gets NULL from malloc, as on a full
 * machine, so this also walks the paths that deal with that. */
#ifndef GRETA_TESTS_MEMORY_LIMIT_H
#define GRETA_TESTS_MEMORY_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/* False under sanitizers, which reserve address space as they go: begin and end do nothing then. */
bool memory_limit_works(void);

/* Returns the limit there was, for memory_limit_end. */
uint64_t memory_limit_begin(uint64_t growth_bytes);
void memory_limit_end(uint64_t limit_before);

#endif
