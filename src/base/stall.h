/* stall.h - how long nothing has moved, as seen by a thread that looks again and again.
 *
 * Only time that was watched counts: if the looking thread was kept from running (stopped, swapped
 * out, the machine asleep), so was perhaps what it watches, and the gap says nothing. */
#ifndef GRETA_BASE_STALL_H
#define GRETA_BASE_STALL_H

#include <stdbool.h>
#include <stdint.h>

/* The most that the time between two looks counts for. A look is due every 5 to 20 ms. */
#define STALL_GAP_NS UINT64_C(200000000)

struct stall {
    uint64_t looked_ns; /* 0: never */
    uint64_t still_ns;  /* time watched without a movement */
};

/* moved: something moved since the look before. */
static inline void stall_look(struct stall *stall, bool moved, uint64_t now_ns)
{
    uint64_t gap = stall->looked_ns && now_ns > stall->looked_ns ? now_ns - stall->looked_ns : 0;
    if (gap > STALL_GAP_NS)
        gap = STALL_GAP_NS;
    stall->still_ns = moved ? 0 : stall->still_ns + gap;
    stall->looked_ns = now_ns;
}

#endif
