/* clock.h - time for measuring: nanoseconds that only go forward. */
#ifndef GRETA_BASE_CLOCK_H
#define GRETA_BASE_CLOCK_H

#include <stdint.h>

uint64_t clock_ns(void);

#endif
