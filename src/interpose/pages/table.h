/* table.h - the table of traps, for table.c and faults.c. */
#ifndef GRETA_INTERPOSE_PAGES_TABLE_H
#define GRETA_INTERPOSE_PAGES_TABLE_H

#include "interpose/pages/pages.h"

#include <pthread.h>

#define TRAP_LIMIT 4096u
#define LISTENER_LIMIT 4u
#define OPENING_LIMIT 64u
#define LIFTED_LIMIT 256u
#define WRITABLE_LIMIT 64u

struct trap {
    const struct trap_listener *listener;
    uint64_t id, address, bytes;
    uint64_t first, last; /* the protected pages; equal: none */
    bool source, met;
    bool kernel;   /* looks are kept, and nothing is reported before the end */
    bool readable; /* of a kernel: only writing is still watched */
    unsigned steps;
};

struct span {
    uint64_t first, last;
};

struct pages_table {
    _Atomic(uint64_t) adds;
    /* All else under the lock. */
    pthread_mutex_t lock;
    const struct trap_listener *listeners[LISTENER_LIMIT];
    size_t listener_count;
    struct trap traps[TRAP_LIMIT];
    size_t count;
    struct span openings[OPENING_LIMIT]; /* where system calls are at work; equal: free */
    struct span lifted[LIFTED_LIMIT];    /* the latest */
    uint64_t lifted_count;
    struct span writable[WRITABLE_LIMIT]; /* the program's mappings that were looked up */
    uint64_t writable_count;
    size_t room, until_survey;
    long process; /* whose traps these are */
    bool off, limit_reported;
};
extern struct pages_table pages_table;

bool trap_is_protecting(const struct trap *trap);
bool trap_shares_pages(const struct trap *trap, uint64_t address, uint64_t bytes);
/* The trap protects nothing any more. */
void trap_lift(struct trap *trap);
/* Only the page: the first or the last of the trap, where other memory may be as well. */
void trap_lift_page(struct trap *trap, uint64_t page);
/* Gives the pages the protection that the table wants. False: the system refused. */
bool pages_apply(uint64_t first, uint64_t last);
void pages_note_lifted(uint64_t first, uint64_t last);

/* Opens pages for a while, whatever protects them; OPENING_LIMIT: there is no room. */
size_t pages_take_opening(uint64_t first, uint64_t last);
void pages_end_opening(size_t place);

/* ---- Looks (looks.c); with the lock held ---------------------------------------------------- */

void looks_forget(const struct trap *trap);
void looks_forget_all(void);
/* Was the same place read by the same instruction before? */
bool looks_again(const struct trap *trap, uint64_t address, uint64_t pc);
/* Keeps what is there; the page must be open. False: there is no room for more. */
bool looks_add(const struct trap *trap, uint64_t address, uint64_t pc, size_t *ret_place);
/* Its stack, which is unwound without the lock. No frames: it was none of the program's. */
void looks_set_frames(size_t place, uint64_t pc, const uint64_t *frames, size_t count);
/* Did bytes change that the program had read? The first of them. The pages must be open. */
bool looks_settle(const struct trap *trap, struct trap_access *ret_access,
                  uint64_t ret_frames[TRAP_FRAME_LIMIT]);

#endif
