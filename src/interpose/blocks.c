/* blocks.c - the memory of the program, by address. */
#include "interpose/interpose_impl.h"

#include "base/size.h"

#include <stdlib.h>
#include <string.h>

/* Freed blocks are kept to name what a stale pointer points to; beyond this the table is swept. */
#define FREED_LIMIT 8192u

/* Place of the first block that ends after the address. */
static size_t lower(const struct blocks *blocks, uint64_t address)
{
    size_t low = 0, high = blocks->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct block *block = &blocks->list[middle];
        if (address - block->address < block->bytes || block->address > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

struct block *block_find(const struct blocks *blocks, uint64_t address)
{
    size_t place = lower(blocks, address);
    if (place == blocks->count || blocks->list[place].address > address)
        return NULL;
    return &blocks->list[place];
}

/* Drops the freed blocks of the older half. */
static void sweep(struct blocks *blocks)
{
    uint64_t newest = 0, oldest = UINT64_MAX;
    for (size_t i = 0; i < blocks->count; i++) {
        uint64_t id = blocks->list[i].freed_id;
        newest = max_u64(id, newest);
        oldest = id && id < oldest ? id : oldest;
    }
    uint64_t middle = oldest + (newest - oldest) / 2;
    size_t kept = 0;
    blocks->freed_count = 0;
    for (size_t i = 0; i < blocks->count; i++) {
        const struct block *block = &blocks->list[i];
        if (block->freed_id && block->freed_id <= middle)
            continue;
        blocks->freed_count += block->freed_id != 0;
        blocks->list[kept++] = *block;
    }
    blocks->count = kept;
}

struct block *block_overlapped(const struct blocks *blocks, uint64_t address, uint64_t bytes)
{
    for (size_t i = lower(blocks, address); i < blocks->count; i++) {
        struct block *block = &blocks->list[i];
        if (block->address > address && block->address - address >= bytes)
            break;
        if (!block->freed_id)
            return block;
    }
    return NULL;
}

bool block_add(struct blocks *blocks, const struct block *block)
{
    if (blocks->freed_count > FREED_LIMIT)
        sweep(blocks);
    if (blocks->count == blocks->capacity) {
        size_t capacity = blocks->capacity ? blocks->capacity * 2 : 1024;
        struct block *larger = realloc(blocks->list, capacity * sizeof(*larger));
        if (!larger)
            return false;
        blocks->list = larger;
        blocks->capacity = capacity;
    }
    size_t first = lower(blocks, block->address), last = first;
    while (last < blocks->count && (blocks->list[last].address < block->address ||
                                    blocks->list[last].address - block->address < block->bytes)) {
        blocks->freed_count--;
        last++;
    }
    memmove(&blocks->list[first + 1], &blocks->list[last],
            (blocks->count - last) * sizeof(*blocks->list));
    blocks->count = blocks->count - (last - first) + 1;
    blocks->list[first] = *block;
    return true;
}

void block_free(struct blocks *blocks, struct block *block, uint64_t freed_id)
{
    block->freed_id = freed_id;
    blocks->freed_count++;
}

void block_revive(struct blocks *blocks, struct block *block)
{
    block->freed_id = 0;
    blocks->freed_count--;
}

bool block_is_shown(const struct block *block)
{
    return block && (block->memory == INTERPOSE_PINNED || block->memory == INTERPOSE_REGISTERED ||
                     block->memory == INTERPOSE_MANAGED);
}

enum event_side block_side(const struct block *block)
{
    if (!block || block->memory == INTERPOSE_MANAGED)
        return EVENT_SIDE_UNKNOWN; /* both sides may use managed memory */
    return block->memory == INTERPOSE_PINNED || block->memory == INTERPOSE_REGISTERED
               ? EVENT_SIDE_HOST
               : EVENT_SIDE_DEVICE;
}
