/* idmap.h - from an id to a small number. Fixed capacity, so that no input makes it grow; linear
 * probing with removal by shifting back. */
#ifndef GRETA_ANALYZE_IDMAP_H
#define GRETA_ANALYZE_IDMAP_H

#include <stdbool.h>
#include <stdint.h>

struct idmap {
    uint64_t *keys;
    uint32_t *values; /* IDMAP_NONE: the place is free */
    uint32_t mask;    /* places - 1; at most half of them are used */
    uint32_t count;
};

#define IDMAP_NONE UINT32_MAX

/* Room for limit ids. False without memory. */
bool idmap_init(struct idmap *map, uint32_t limit);
void idmap_release(struct idmap *map);
void idmap_clear(struct idmap *map);
/* IDMAP_NONE if it is not there. */
uint32_t idmap_find(const struct idmap *map, uint64_t key);
/* Adds or replaces; false if there is no room. */
bool idmap_set(struct idmap *map, uint64_t key, uint32_t value);
void idmap_remove(struct idmap *map, uint64_t key);

#endif
