/* map.c - a hash table of indices. Half of its slots stay free, so searches are short; nothing is
 * ever removed. */
#include "tokenizer/tokenizer_impl.h"

#include "base/clock.h"

#include <stdlib.h>
#include <sys/random.h>
#include <xxhash.h>

#define SLOTS_AT_FIRST 1024u

void tokenizer_map_init(struct tokenizer_map *map)
{
    *map = (struct tokenizer_map){ 0 };
    /* Without a source of randomness the time is the seed: the author of a file does not know it
     * either. */
    if (getrandom(&map->seed, sizeof(map->seed), 0) != (ssize_t)sizeof(map->seed))
        map->seed = clock_ns();
}

void tokenizer_map_release(struct tokenizer_map *map)
{
    free(map->slots);
    *map = (struct tokenizer_map){ 0 };
}

uint32_t tokenizer_map_hash(const struct tokenizer_map *map, const void *bytes, size_t count)
{
    return (uint32_t)XXH3_64bits_withSeed(bytes, count, map->seed);
}

struct tokenizer_map_slot *tokenizer_map_find(const struct tokenizer_map *map, uint32_t hash,
                                              tokenizer_map_equal equal, const void *owner,
                                              const void *key)
{
    if (map->slot_count == 0)
        return NULL;
    for (size_t at = hash & (map->slot_count - 1);; at = (at + 1) & (map->slot_count - 1)) {
        struct tokenizer_map_slot *slot = &map->slots[at];
        if (slot->index_plus_one == 0)
            return NULL;
        if (slot->hash == hash && equal(owner, slot->index_plus_one - 1, key))
            return slot;
    }
}

static void put(struct tokenizer_map *map, struct tokenizer_map_slot slot)
{
    size_t at = slot.hash & (map->slot_count - 1);
    while (map->slots[at].index_plus_one)
        at = (at + 1) & (map->slot_count - 1);
    map->slots[at] = slot;
}

static bool grow(struct tokenizer_map *map)
{
    struct tokenizer_map larger = *map;
    larger.slot_count = map->slot_count ? map->slot_count * 2 : SLOTS_AT_FIRST;
    larger.slots = calloc(larger.slot_count, sizeof(*larger.slots));
    if (!larger.slots)
        return false;
    for (size_t i = 0; i < map->slot_count; i++)
        if (map->slots[i].index_plus_one)
            put(&larger, map->slots[i]);
    free(map->slots);
    *map = larger;
    return true;
}

bool tokenizer_map_add(struct tokenizer_map *map, uint32_t hash, uint32_t index)
{
    if (map->used >= map->slot_count / 2 && !grow(map))
        return false;
    put(map, (struct tokenizer_map_slot){ hash, index + 1 });
    map->used++;
    return true;
}
