/* clock.h - a clock for measuring: nanoseconds that never go backwards. */
#ifndef GRETA_BASE_CLOCK_H
#define GRETA_BASE_CLOCK_H

#include <stdint.h>

uint64_t clock_ns(void);

#endif
