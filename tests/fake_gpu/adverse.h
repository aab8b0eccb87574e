/* adverse.h - a GPU that makes it hard to say what ran: FAKE_GPU_ADVERSE=SEED, together
 * with FAKE_GPU_LATE. Streams run in an order of their own, also without a wait, and a kernel that
 * faults may have left no crumb: others of its blocks ran before the first one, or it
 * began before the kernels before it had ended, which then have left none either. Never more than
 * the chip allows. */
#ifndef GRETA_TESTS_FAKE_GPU_ADVERSE_H
#define GRETA_TESTS_FAKE_GPU_ADVERSE_H

#include <stdbool.h>
#include <stdint.h>

/* Kernels of a stream that may have begun before the ones before them, at most. */
#define ADVERSE_KERNELS 4u

/* The crumbs of a stream as they were before each of its last kernels; a wait or a copy is where
 * that begins again. */
struct adverse_trail {
    uint64_t words[ADVERSE_KERNELS][3]; /* entered, finished, node */
    uint32_t count;
    uint64_t waits; /* of the queue, when the last one was added */
};

bool adverse_wanted(void);
/* True once in `times`, at random. */
bool adverse_chance(uint32_t times);
/* A kernel is about to run. crumbs: of its stream. waits: of its queue. */
void adverse_before(struct adverse_trail *trail, uint64_t crumbs, uint64_t waits);
/* Work that is no kernel was done. */
void adverse_break(struct adverse_trail *trail);
/* The kernel faulted. early: kernels of this chip may begin early. */
void adverse_fault(const struct adverse_trail *trail, uint64_t crumbs, bool early);

#endif
