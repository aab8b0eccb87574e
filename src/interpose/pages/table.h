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

#endif
