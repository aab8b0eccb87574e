/* adverse.c - see adverse.h. */
#include "adverse.h"

#include <stdlib.h>
#include <string.h>

static uint64_t state; /* of the random numbers; 0: not asked yet */

bool adverse_wanted(void)
{
    static int wanted = -1;
    const char *seed = wanted < 0 ? getenv("FAKE_GPU_ADVERSE") : NULL;
    if (wanted < 0) {
        wanted = seed != NULL;
        state = seed ? strtoull(seed, NULL, 10) * 2 + 1 : 1;
    }
    return wanted;
}

bool adverse_chance(uint32_t times)
{
    if (!adverse_wanted())
        return false;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state >> 33) % times == 0;
}

void adverse_before(struct adverse_trail *trail, uint64_t crumbs, uint64_t waits)
{
    if (!adverse_wanted() || !crumbs)
        return;
    if (trail->waits != waits)
        trail->count = 0;
    trail->waits = waits;
    if (trail->count == ADVERSE_KERNELS) {
        memmove(trail->words[0], trail->words[1], sizeof(trail->words) - sizeof(trail->words[0]));
        trail->count--;
    }
    memcpy(trail->words[trail->count++], (const void *)(uintptr_t)crumbs, sizeof(trail->words[0]));
}

void adverse_break(struct adverse_trail *trail)
{
    trail->count = 0;
}

void adverse_fault(const struct adverse_trail *trail, uint64_t crumbs, bool early)
{
    uint64_t *line = (uint64_t *)(uintptr_t)crumbs;
    if (!adverse_wanted() || !crumbs || !trail->count || adverse_chance(3))
        return;
    const uint64_t *before = trail->words[trail->count - 1];
    if (adverse_chance(4)) { /* it had stored all but its number */
        line[2] = before[2];
        return;
    }
    uint32_t back = 1;
    while (early && back < trail->count && adverse_chance(2))
        back++;
    memcpy(line, trail->words[trail->count - back], sizeof(trail->words[0]));
}
