/* pages.h - shared by the files of libgreta_trace_pages.so (interpose/traps.h).
 *
 * It lives in somebody else's program: no memory is allocated, nothing is printed, and what the
 * program does with its signals and system calls comes to the same as without it. One lock guards
 * the table of traps; whoever holds it has all signals blocked and touches no memory of the
 * program. */
#ifndef GRETA_INTERPOSE_PAGES_PAGES_H
#define GRETA_INTERPOSE_PAGES_PAGES_H

#include "interpose/traps.h"

#include <signal.h>
#include <stdatomic.h>

#define EXPORT __attribute__((visibility("default")))
#define PAGE_BYTES UINT64_C(4096)
#define PAGE_MASK (~(PAGE_BYTES - 1))

/* For variables that a signal handler reads: no memory is made for them at the first use. */
#define PAGES_THREAD_LOCAL _Thread_local __attribute__((tls_model("initial-exec")))

/* The system call itself, not the program's or this library's function of that name. Returns a
 * negative error number. */
long pages_system_call(long number, long a, long b, long c, long d, long e, long f);

/* What the program would call without this library; NULL: there is no such function. */
void *pages_next(const char *name);

/* ---- The table (table.c) -------------------------------------------------------------------- */

/* How many traps protect memory: while it is 0, system calls need no look at the table. */
extern _Atomic(unsigned) pages_active;

/* With the signals blocked; they are as before after the unlocking. */
void pages_lock(uint64_t *ret_mask);
void pages_unlock(uint64_t mask);

enum pages_fault {
    PAGES_FAULT_OTHER, /* none of ours */
    PAGES_FAULT_AGAIN, /* the instruction may be tried again */
    PAGES_FAULT_STEP   /* it alone, then pages_stepped is to be called in the same thread */
};
enum pages_fault pages_take_fault(uint64_t address, bool writes, uint64_t pc);
void pages_stepped(void);
/* Lifts all protection; traps that are set later protect again. */
void pages_open_all(void);
/* Lifts all protection for good, for a reason. */
void pages_switch_off(enum event_traps reason);
/* The program changes the mapping itself: its traps are forgotten. */
void pages_forget(uint64_t address, uint64_t bytes);

/* A system call that uses the memory, or is about to. */
#define PAGES_TOUCH_LIMIT 8u
struct pages_touch {
    size_t count, opening;
    struct {
        const struct trap_listener *listener;
        uint64_t id, address, bytes; /* the copy's */
    } traps[PAGES_TOUCH_LIMIT];
    uint64_t address;
    bool writes;
};
/* From here on the system may use the bytes. */
void pages_touch_begin(struct pages_touch *touch, uint64_t address, uint64_t bytes, bool writes);
/* It has used that many of them; caller: where the program goes on. Traps on other bytes of the
 * same pages are set again. */
void pages_touch_end(const struct pages_touch *touch, uint64_t bytes, uint64_t caller);

/* ---- Signals (signals.c) -------------------------------------------------------------------- */

/* Makes sure that faults come to this library. False: something else has the signal now. */
bool pages_take_signal(void);
/* signal_mask.c: the program wants SIGSEGV blocked in this thread. */
bool pages_fault_is_blocked(void);

/* ---- The process (process.c) ---------------------------------------------------------------- */

/* Looks for the drivers and runtimes that the process has loaded; without the lock. */
void pages_find_drivers(void);
/* Looks at the process's mappings; with the lock, as the next. ret_room: how many more ranges may
 * be protected; ret_reason: what forbids traps, or EVENT_TRAPS_ON. */
void pages_survey(size_t *ret_room, enum event_traps *ret_reason);
/* Is all of the range readable and writable? */
bool pages_is_writable(uint64_t address, uint64_t bytes);
/* Is it the code of a driver or runtime? As of the last look. */
bool pages_is_driver(uint64_t address);
/* The stack above an address in it; returns how many frames. instruction: the address is that of an
 * instruction that was not finished, not a return address. */
size_t pages_walk(uint64_t address, bool instruction, uint64_t frames[TRAP_FRAME_LIMIT]);

#endif
