/* fail_nth.h - makes the N-th call of the operating system or of a library fail, for every N.
 *
 * The linker redirects every call of malloc, mmap, open, pthread_create and so on in the executable
 * to fail_nth_calls.c (--wrap, see cmake/tests_faults.cmake): the tests run the code as it is
 * shipped. A call is known by its site (the address it returns to) and by how often the site was
 * reached before.
 *
 * A sweep runs a scenario once as it is, then once for each call the scenario makes with that call
 * failing, then once more with that call and all that follow it failing, as on a machine that has
 * run out. Calls that are only made on the way out of a failure join the list. After each run:
 *  - the scenario ended: with a status its error repeats in words, or whole, having checked its
 *    own results;
 *  - nothing it took is left: memory, mappings, threads, descriptors. */
#ifndef GRETA_TESTS_FAIL_NTH_H
#define GRETA_TESTS_FAIL_NTH_H

#include "test.h"

#include <stdbool.h>

/* Does the same each time, checks what it gets, gives everything back whatever happens. */
typedef enum status (*fail_nth_scenario)(void *context, struct error *err);

/* most: how often a site is made to fail, at its first call, its second and so on; more of the same
 * tell nothing new, and each is a run. */
void fail_nth_sweep(const char *name, uint32_t most, fail_nth_scenario scenario, void *context);

/* While paused, calls do not count and do not fail: for what a scenario does on its own account. */
void fail_nth_pause(void);
void fail_nth_resume(void);

/* For calls that the linker cannot give us, as those of a library opened at run time: counts one
 * that returns to address and says whether it is to fail. name: static. */
bool fail_nth_is_failing(const void *address, const char *name);

/* Appends the sites that were made to fail, as "offset call" of this executable, to the file that
 * the environment's FAIL_NTH_SITES names; nothing without it. tests/faults/sites.py reads it. */
void fail_nth_write_sites(void);

#endif
