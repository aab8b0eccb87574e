/* table.c - the traps: which pages are protected how.
 *
 * A page has the strictest protection that any trap on it wants. A trap that was met, or whose copy
 * touches memory that is not the program's to protect, stays in the table without protecting, until
 * it is removed. */
#define _GNU_SOURCE
#include "interpose/pages/table.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* How many traps may be set before the process is looked at again. */
#define SURVEY_INTERVAL 1024u

_Atomic(unsigned) pages_active;
struct pages_table pages_table = { .lock = PTHREAD_MUTEX_INITIALIZER };

void pages_lock(uint64_t *ret_mask)
{
    uint64_t all = UINT64_MAX;
    pages_system_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)ret_mask, sizeof(all), 0,
                      0);
    pthread_mutex_lock(&pages_table.lock);
}

void pages_unlock(uint64_t mask)
{
    pthread_mutex_unlock(&pages_table.lock);
    pages_system_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, sizeof(mask), 0, 0);
}

/* ---- Protection ----------------------------------------------------------------------------- */

bool trap_is_protecting(const struct trap *trap)
{
    return trap->first < trap->last;
}

static int protection_at(uint64_t page, uint64_t *ret_last)
{
    int protection = PROT_READ | PROT_WRITE;
    for (size_t i = 0; i < OPENING_LIMIT; i++) {
        const struct span *opening = &pages_table.openings[i];
        if (opening->first <= page && page < opening->last) {
            if (opening->last < *ret_last)
                *ret_last = opening->last;
            return protection;
        }
        if (opening->first > page && opening->first < *ret_last && opening->first < opening->last)
            *ret_last = opening->first;
    }
    for (size_t i = 0; i < pages_table.count; i++) {
        const struct trap *trap = &pages_table.traps[i];
        if (!trap_is_protecting(trap) || trap->last <= page)
            continue;
        if (trap->first > page) {
            *ret_last = trap->first < *ret_last ? trap->first : *ret_last;
            continue;
        }
        *ret_last = trap->last < *ret_last ? trap->last : *ret_last;
        protection = trap->source || trap->readable ? protection & PROT_READ : PROT_NONE;
    }
    return protection;
}

/* Gives the pages the protection that the table wants. False: the system refused. */
bool pages_apply(uint64_t first, uint64_t last)
{
    bool good = true;
    for (uint64_t at = first; at < last;) {
        uint64_t next = last;
        int protection = protection_at(at, &next);
        good = pages_system_call(SYS_mprotect, (long)at, (long)(next - at), protection, 0, 0, 0) ==
                   0 &&
               good;
        at = next;
    }
    return good;
}

void pages_note_lifted(uint64_t first, uint64_t last)
{
    pages_table.lifted[pages_table.lifted_count++ % LIFTED_LIMIT] = (struct span){ first, last };
}

/* The trap protects these pages no longer; they are its first, its last, or all. */
static void lift(struct trap *trap, uint64_t first, uint64_t last)
{
    if (first == trap->first)
        trap->first = last;
    else
        trap->last = first;
    if (!trap_is_protecting(trap)) {
        trap->first = trap->last = 0;
        atomic_fetch_sub(&pages_active, 1);
    }
    pages_note_lifted(first, last);
    pages_apply(first, last);
}

void trap_lift(struct trap *trap)
{
    if (trap_is_protecting(trap))
        lift(trap, trap->first, trap->last);
}

/* Only the page: the first or the last of the trap, where other memory may be as well. */
void trap_lift_page(struct trap *trap, uint64_t page)
{
    if (page == trap->first || page == trap->last - PAGE_BYTES)
        lift(trap, page, page + PAGE_BYTES);
    else
        trap_lift(trap);
}

/* ---- Setting and removing ------------------------------------------------------------------- */

static void report(enum event_traps state)
{
    for (size_t i = 0; i < pages_table.listener_count; i++)
        pages_table.listeners[i]->changed(pages_table.listeners[i]->context, state);
}

void pages_open_all(void)
{
    uint64_t mask;
    if (!atomic_load_explicit(&pages_active, memory_order_relaxed))
        return;
    pages_lock(&mask);
    for (size_t i = 0; i < pages_table.count; i++)
        trap_lift(&pages_table.traps[i]);
    looks_forget_all();
    pages_unlock(mask);
}

void pages_switch_off(enum event_traps reason)
{
    uint64_t mask;
    pages_open_all();
    pages_lock(&mask);
    bool was_on = !pages_table.off;
    pages_table.off = true;
    pages_unlock(mask);
    if (was_on)
        report(reason);
}

static bool listen(const struct trap_listener *listener)
{
#if defined(__x86_64__)
    uint64_t mask;
    bool room = false;
    if (sysconf(_SC_PAGESIZE) != (long)PAGE_BYTES)
        return false;
    pages_lock(&mask);
    if (pages_table.listener_count < LISTENER_LIMIT) {
        pages_table.listeners[pages_table.listener_count++] = listener;
        pages_table.process = pages_system_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
        room = true;
    }
    pages_unlock(mask);
    return room;
#else
    (void)listener;
    return false;
#endif
}

/* With the lock held. EVENT_TRAPS_ON: there is room for another one. */
static enum event_traps look_for_room(void)
{
    enum event_traps reason = EVENT_TRAPS_ON;
    if (pages_table.until_survey-- == 0) {
        pages_survey(&pages_table.room, &reason);
        pages_table.until_survey = SURVEY_INTERVAL;
        if (reason != EVENT_TRAPS_ON)
            return reason;
    }
    if (pages_table.count < TRAP_LIMIT && atomic_load(&pages_active) < pages_table.room)
        return EVENT_TRAPS_ON;
    return EVENT_TRAPS_LIMIT;
}

/* As far as is remembered, or as the system says. With the lock held. */
static bool is_writable(uint64_t first, uint64_t last)
{
    for (size_t i = 0; i < WRITABLE_LIMIT; i++)
        if (pages_table.writable[i].first <= first && last <= pages_table.writable[i].last)
            return true;
    if (!pages_is_writable(first, last - first))
        return false;
    pages_table.writable[pages_table.writable_count++ % WRITABLE_LIMIT] = (struct span){ first,
                                                                                         last };
    return true;
}

/* With the lock held. */
static bool set(const struct trap_listener *listener, const struct trap_range *range)
{
    uint64_t first = range->address & PAGE_MASK;
    uint64_t last = (range->address + range->bytes + PAGE_BYTES - 1) & PAGE_MASK;
    uint64_t lowest = (range->lowest + PAGE_BYTES - 1) & PAGE_MASK;
    uint64_t highest = range->highest & PAGE_MASK;
    first = first < lowest ? lowest : first;
    last = last > highest ? highest : last;
    if (first >= last || (range->registered && !is_writable(lowest, highest)))
        return false;
    struct trap *trap = &pages_table.traps[pages_table.count++];
    *trap = (struct trap){ .listener = listener,
                           .id = range->id,
                           .address = range->address,
                           .bytes = range->bytes,
                           .first = first,
                           .last = last,
                           .source = range->source,
                           .kernel = range->kernel };
    atomic_fetch_add(&pages_active, 1);
    if (pages_apply(first, last))
        return true;
    trap_lift(trap);
    pages_table.count--;
    return false;
}

static bool add(const struct trap_listener *listener, const struct trap_range *range)
{
    uint64_t mask;
    if (!range->bytes || range->address + range->bytes < range->address || !pages_take_signal())
        return false;
    if (atomic_fetch_add_explicit(&pages_table.adds, 1, memory_order_relaxed) % SURVEY_INTERVAL ==
        0)
        pages_find_drivers(); /* without the lock: the dynamic linker has its own */
    pages_lock(&mask);
    bool good = false, off = pages_table.off;
    enum event_traps reason = off ? EVENT_TRAPS_ON : look_for_room();
    if (!off && reason == EVENT_TRAPS_ON)
        good = set(listener, range);
    bool first_limit = reason == EVENT_TRAPS_LIMIT && !pages_table.limit_reported;
    pages_table.limit_reported = pages_table.limit_reported || first_limit;
    pages_unlock(mask);
    if (first_limit)
        report(reason);
    else if (reason != EVENT_TRAPS_ON && reason != EVENT_TRAPS_LIMIT)
        pages_switch_off(reason);
    return good;
}

static void drop(size_t place)
{
    trap_lift(&pages_table.traps[place]);
    if (pages_table.traps[place].kernel)
        looks_forget(&pages_table.traps[place]);
    pages_table.traps[place] = pages_table.traps[--pages_table.count];
}

static void remove_trap(const struct trap_listener *listener, uint64_t id)
{
    uint64_t mask;
    pages_lock(&mask);
    for (size_t i = 0; i < pages_table.count; i++)
        if (pages_table.traps[i].listener == listener && pages_table.traps[i].id == id) {
            drop(i);
            break;
        }
    pages_unlock(mask);
}

bool trap_shares_pages(const struct trap *trap, uint64_t address, uint64_t bytes)
{
    return trap_is_protecting(trap) && trap->first < address + bytes && address < trap->last;
}

static bool settle(const struct trap_listener *listener, uint64_t id,
                   struct trap_access *ret_access, uint64_t ret_frames[TRAP_FRAME_LIMIT])
{
    uint64_t mask;
    bool found = false;
    pages_lock(&mask);
    for (size_t i = 0; i < pages_table.count; i++) {
        struct trap *trap = &pages_table.traps[i];
        if (trap->listener != listener || trap->id != id || !trap_is_protecting(trap))
            continue;
        uint64_t first = trap->first, last = trap->last;
        trap_lift(trap); /* it is about to be removed */
        size_t opening = pages_take_opening(first, last);
        if (opening == OPENING_LIMIT)
            break;
        found = looks_settle(trap, ret_access, ret_frames);
        pages_end_opening(opening);
        break;
    }
    pages_unlock(mask);
    return found;
}

static void open_range(uint64_t address, uint64_t bytes)
{
    uint64_t mask;
    if (!atomic_load_explicit(&pages_active, memory_order_relaxed))
        return;
    pages_lock(&mask);
    for (size_t i = 0; i < pages_table.count; i++)
        if (trap_shares_pages(&pages_table.traps[i], address, bytes)) {
            trap_lift(&pages_table.traps[i]);
            looks_forget(&pages_table.traps[i]);
        }
    pages_unlock(mask);
}

void pages_forget(uint64_t address, uint64_t bytes)
{
    uint64_t mask;
    open_range(address, bytes);
    if (!atomic_load_explicit(&pages_table.adds, memory_order_relaxed))
        return;
    pages_lock(&mask);
    for (size_t i = 0; i < WRITABLE_LIMIT; i++)
        if (pages_table.writable[i].first < address + bytes &&
            address < pages_table.writable[i].last)
            pages_table.writable[i] = (struct span){ 0, 0 };
    pages_unlock(mask);
}

EXPORT const struct interpose_traps greta_traps = { listen, add, remove_trap, settle, open_range };
