/* idmap.c - see idmap.h. */
#include "analyze/idmap.h"

#include <stdlib.h>

static uint32_t place_of(const struct idmap *map, uint64_t key)
{
    return (uint32_t)((key * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & map->mask;
}

bool idmap_init(struct idmap *map, uint32_t limit)
{
    uint32_t places = 16;
    while (places / 2 < limit)
        places *= 2;
    *map = (struct idmap){ .keys = calloc(places, sizeof(*map->keys)),
                           .values = malloc(places * sizeof(*map->values)),
                           .mask = places - 1 };
    if (map->values)
        idmap_clear(map);
    return map->keys && map->values;
}

void idmap_clear(struct idmap *map)
{
    for (uint32_t i = 0; i <= map->mask; i++)
        map->values[i] = IDMAP_NONE;
    map->count = 0;
}

void idmap_release(struct idmap *map)
{
    free(map->keys);
    free(map->values);
    *map = (struct idmap){ 0 };
}

/* The place of key, or the free one where it would go. */
static uint32_t find_place(const struct idmap *map, uint64_t key)
{
    uint32_t place = place_of(map, key);
    while (map->values[place] != IDMAP_NONE && map->keys[place] != key)
        place = (place + 1) & map->mask;
    return place;
}

uint32_t idmap_find(const struct idmap *map, uint64_t key)
{
    return map->values[find_place(map, key)];
}

bool idmap_set(struct idmap *map, uint64_t key, uint32_t value)
{
    uint32_t place = find_place(map, key);
    if (map->values[place] == IDMAP_NONE) {
        if (map->count > map->mask / 2)
            return false;
        map->count++;
    }
    map->keys[place] = key;
    map->values[place] = value;
    return true;
}

void idmap_remove(struct idmap *map, uint64_t key)
{
    uint32_t hole = find_place(map, key);
    if (map->values[hole] == IDMAP_NONE)
        return;
    map->count--;
    /* Whoever was pushed past the hole moves back, so that searches need no tombstones. */
    for (uint32_t at = (hole + 1) & map->mask; map->values[at] != IDMAP_NONE;
         at = (at + 1) & map->mask) {
        uint32_t wanted = place_of(map, map->keys[at]);
        if (((at - wanted) & map->mask) < ((at - hole) & map->mask))
            continue;
        map->keys[hole] = map->keys[at];
        map->values[hole] = map->values[at];
        hole = at;
    }
    map->values[hole] = IDMAP_NONE;
}
