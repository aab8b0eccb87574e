/* arena.c - see arena.h. */
#include "template/arena.h"

#include <stdlib.h>

#define CHUNK_BYTES ((size_t)64 << 10)
#define ALIGNMENT 16u

struct arena_chunk {
    struct arena_chunk *next;
    _Alignas(ALIGNMENT) unsigned char bytes[];
};

static int grow(struct arena *arena, size_t bytes)
{
    size_t capacity = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
    struct arena_chunk *chunk = calloc(1, sizeof(*chunk) + capacity);
    if (!chunk)
        return 2;
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    arena->used = 0;
    arena->capacity = capacity;
    return 0;
}

void *arena_take(struct arena *arena, uint64_t bytes)
{
    if (bytes > arena->limit_bytes - arena->taken_bytes) {
        arena->exhausted = 1;
        return NULL;
    }
    size_t rounded = ((size_t)bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (arena->capacity - arena->used < rounded) {
        arena->exhausted = grow(arena, rounded);
        if (arena->exhausted)
            return NULL;
    }
    void *taken = arena->chunks->bytes + arena->used;
    arena->used += rounded;
    arena->taken_bytes += rounded < arena->limit_bytes - arena->taken_bytes
                              ? rounded
                              : arena->limit_bytes - arena->taken_bytes;
    return taken;
}

void arena_release(struct arena *arena)
{
    while (arena->chunks) {
        struct arena_chunk *next = arena->chunks->next;
        free(arena->chunks);
        arena->chunks = next;
    }
    arena->used = arena->capacity = 0;
}
