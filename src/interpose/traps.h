/* traps.h - page traps: what libgreta_trace_pages.so offers to the libraries that record calls.
 *
 * While a queued copy uses host memory, the memory's pages are protected: those that the copy
 * writes against every access, those that it reads against writing. The device is not held up by
 * that. An access of the program raises a signal; the library takes it, lifts the protection, lets
 * the access through and reports it. Nothing else of the program changes.
 *
 * The library is preloaded only if greta trace was asked for traps, so its table is a weak symbol.
 */
#ifndef GRETA_INTERPOSE_TRAPS_H
#define GRETA_INTERPOSE_TRAPS_H

#include "event/event_numbers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The frames that are kept of an access's stack. */
#define TRAP_FRAME_LIMIT 32u

/* An access of the program to bytes that a copy uses. */
struct trap_access {
    uint64_t id;             /* of the trap */
    uint64_t address, bytes; /* bytes 0: of one instruction, whose size is not known */
    bool writes;
    bool several; /* of settle: bytes changed at several places that the program had read */
    /* Innermost first, as return addresses: the first one is a byte after the start of the
     * instruction that made the access. */
    const uint64_t *frames;
    size_t frame_count;
};

/* A library that records calls. Its functions may be called in a signal handler, in the thread that
 * made the access, which holds no lock of the listener if is_inside says no. */
struct trap_listener {
    void *context;
    /* Is this thread inside a call of the runtime, or of the listener? What it touches there is no
     * access of the program. */
    bool (*is_inside)(void);
    void (*accessed)(void *context, const struct trap_access *access);
    void (*changed)(void *context, enum event_traps state);
};

struct trap_range {
    uint64_t id; /* of the listener's choice, each once */
    uint64_t address, bytes;
    /* Only whole pages within these bounds are protected. */
    uint64_t lowest, highest;
    bool source;     /* the copy reads there: the host may read too */
    bool kernel;     /* a kernel may use it: accesses are not reported, settle compares */
    bool registered; /* the program's own mapping: whether it is writable is looked up */
};

struct interpose_traps {
    /* False: there are no traps on this machine, or no room for another listener, which must stay
     * valid for ever. */
    bool (*listen)(const struct trap_listener *listener);
    /* False: the memory is not protected. */
    bool (*add)(const struct trap_listener *listener, const struct trap_range *range);
    /* The copy is done, or no longer looked at. No such trap is fine. */
    void (*remove)(const struct trap_listener *listener, uint64_t id);
    /* To be called for a kernel before it is removed: were bytes changed that the program had read?
     */
    bool (*settle)(const struct trap_listener *listener, uint64_t id,
                   struct trap_access *ret_access, uint64_t ret_frames[TRAP_FRAME_LIMIT]);
    /* The runtime is about to use this memory itself: its protection is lifted for good. */
    void (*open)(uint64_t address, uint64_t bytes);
};

extern const struct interpose_traps greta_traps __attribute__((weak, visibility("default")));

#endif
