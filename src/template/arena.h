/* arena.h - memory that is released all at once, up to a limit.
 *
 * Values may contain themselves, so that counting references would leak; a rendering takes all its
 * memory from here instead. */
#ifndef GRETA_TEMPLATE_ARENA_H
#define GRETA_TEMPLATE_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct arena_chunk;

struct arena {
    struct arena_chunk *chunks; /* the newest first */
    size_t used, capacity;      /* of the newest */
    uint64_t taken_bytes, limit_bytes;
    int exhausted; /* 1: the limit, 2: no memory */
};

/* Zeroed and aligned for anything; NULL if the limit is reached or there is no memory. */
void *arena_take(struct arena *arena, uint64_t bytes);
void arena_release(struct arena *arena);

#endif
