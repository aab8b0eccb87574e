/* bench_launches.h - the host's kernels with a clock around every tile: for each launch, which
 * thread was in a kernel when. One device at a time. */
#ifndef GRETA_BENCH_LAUNCHES_H
#define GRETA_BENCH_LAUNCHES_H

#include "base/cpu.h"
#include "device/kernel.h"

#include <stddef.h>
#include <stdint.h>

/* Where threads were while a launch was the latest: until the first tile of the next one. Sums over
 * all threads but for the first two. */
enum launch_part {
    LAUNCH_START, /* when its first tile began */
    LAUNCH_WALL,  /* until the next launch's first tile */
    LAUNCH_KERNEL,
    LAUNCH_LATE,    /* not yet in it: its first tile began before theirs */
    LAUNCH_BETWEEN, /* two of its kernel calls */
    LAUNCH_EARLY,   /* out of it already: its last tile was not done */
    LAUNCH_ABSENT,  /* had nothing of it to do, or came when it was over */
    LAUNCH_HANDED,  /* its last tile was done, the next launch had not begun */
    LAUNCH_PART_COUNT
};

struct launch_times {
    uint64_t ticks[LAUNCH_PART_COUNT];
    uint32_t op;
};

/* Launches of a step: more in a row than a step has. */
#define LAUNCH_LIMIT 4096

uint64_t launches_now(void); /* ticks */

/* The kernels of a path, timed. */
const struct device_image *launches_image(enum cpu_path path);
size_t launches_op_count(void);
const char *launches_op_name(uint32_t op);

/* Only while no launch is on its way. */
void launches_forget(void);
/* Those that began in start..end, in order, for that many threads. times: LAUNCH_LIMIT of them. */
size_t launches_collect(uint64_t start_ticks, uint64_t end_ticks, uint32_t threads,
                        struct launch_times *times);

#endif
