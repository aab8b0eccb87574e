/* vclock.h - vector clocks: for every stream, how much of its work happened before.
 *
 * Each call that is work has a stream and a tick, from 1. It happened before whatever has a clock
 * that covers it. Host threads and marks have clocks too, but do no work of their own that could
 * collide: they only carry what they waited for. */
#ifndef GRETA_ANALYZE_VCLOCK_H
#define GRETA_ANALYZE_VCLOCK_H

#include "event/crumb.h"

#include <stdbool.h>
#include <stdint.h>

/* Streams beyond have no clock; their work is counted as not checked. */
#define VCLOCK_STREAM_LIMIT CRUMB_STREAM_LIMIT

struct vclock {
    uint64_t ticks[VCLOCK_STREAM_LIMIT];
};

static inline bool vclock_covers(const struct vclock *clock, uint32_t stream, uint64_t tick)
{
    return clock->ticks[stream] >= tick;
}

/* Makes clock the least clock that covers both. */
void vclock_join(struct vclock *clock, const struct vclock *other);

#endif
