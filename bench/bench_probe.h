/* bench_probe.h - the state of the machine during a measurement.
 *
 * The cores of a virtual machine move: two of them may share a die, sit on two, or be two threads
 * of one core, and that changes every few seconds. How long a word takes from one to the other and
 * back tells which it is. Other processes disturb too: their processor time is what the machine
 * spent and this process did not. */
#ifndef GRETA_BENCH_PROBE_H
#define GRETA_BENCH_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum placement { PLACED_ONE_CORE, PLACED_ONE_DIE, PLACED_TWO_DIES, PLACEMENT_COUNT };

const char *placement_name(enum placement placement);

struct probe {
    double ping_pong_ns; /* there and back */
    double read_gb_per_s;
    enum placement placement;
};

/* Where the cores are now, within a few milliseconds; *ret_ping_pong_ns, or NULL: the round
 * trip that showed it. */
enum placement probe_placement(double *ret_ping_pong_ns);

/* About 30 ms. bytes: memory to read, at least count, larger than the caches. */
struct probe probe_take(const uint8_t *bytes, size_t count);

/* Processor time spent since boot, in seconds: by everybody (stolen time included), and by this
 * process. */
struct processor_time {
    double all, own, wall;
};

struct processor_time processor_time_now(void);

/* Did others run between the two? Some time always goes to the kernel's own work. */
bool was_disturbed(const struct processor_time *before, const struct processor_time *after);

#endif
