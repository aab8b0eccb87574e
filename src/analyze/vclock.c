/* vclock.c - see vclock.h. */
#include "analyze/vclock.h"

void vclock_join(struct vclock *clock, const struct vclock *other)
{
    for (uint32_t i = 0; i < VCLOCK_STREAM_LIMIT; i++)
        if (other->ticks[i] > clock->ticks[i])
            clock->ticks[i] = other->ticks[i];
}
