/* faults.c - what a fault or a system call on a protected page means, and what becomes of the traps
 * in a forked child.
 *
 * An access to bytes that a copy uses is reported, and the copy's memory is no longer protected. An
 * access to a neighbour of them is executed as a single step, with the page open. */
#define _GNU_SOURCE
#include "interpose/pages/table.h"

#include <string.h>
#include <sys/syscall.h>

/* A fault where protection was lifted just now is another thread's; so often, and it is one of the
 * program's own. */
#define RETRY_LIMIT 16u
/* At most this many accesses to neighbours of one copy are single steps, which take microseconds;
 * then the page is no longer protected. */
#define STEP_LIMIT 256u
/* Pages that one instruction can touch. */
#define STEP_PAGE_LIMIT 4u

/* ---- Faults --------------------------------------------------------------------------------- */

static bool is_used(const struct trap *trap, uint64_t address, uint64_t bytes, bool writes)
{
    return trap->address < address + bytes && address < trap->address + trap->bytes &&
           (writes || !trap->source);
}

/* Was the page protected until just now, so that trying again helps? */
static bool was_lifted(uint64_t page, uint64_t pc)
{
    static PAGES_THREAD_LOCAL struct {
        uint64_t page, pc, lifted_count;
        unsigned count;
    } retry;
    bool found = false;
    for (size_t i = 0; i < LIFTED_LIMIT; i++)
        found = found || (pages_table.lifted[i].first <= page && page < pages_table.lifted[i].last);
    if (!found)
        return false;
    if (retry.page != page || retry.pc != pc || retry.lifted_count != pages_table.lifted_count)
        retry.count = 0;
    retry.page = page;
    retry.pc = pc;
    retry.lifted_count = pages_table.lifted_count;
    return retry.count++ < RETRY_LIMIT;
}

/* ---- Single steps --------------------------------------------------------------------------- */

/* Places in the table of openings, as numbers from 1. */
static PAGES_THREAD_LOCAL size_t stepping[STEP_PAGE_LIMIT];

size_t pages_take_opening(uint64_t first, uint64_t last)
{
    size_t place = 0;
    while (place < OPENING_LIMIT &&
           pages_table.openings[place].first < pages_table.openings[place].last)
        place++;
    if (place == OPENING_LIMIT)
        return place;
    pages_table.openings[place] = (struct span){ first, last };
    pages_note_lifted(first, last);
    pages_apply(first, last);
    return place;
}

void pages_end_opening(size_t place)
{
    struct span span = pages_table.openings[place];
    pages_table.openings[place] = (struct span){ 0, 0 };
    pages_apply(span.first, span.last);
}

/* Opens the page for this thread's next instruction. False: there is no room. */
static bool open_for_step(uint64_t page)
{
    for (size_t i = 0; i < STEP_PAGE_LIMIT; i++) {
        if (stepping[i])
            continue;
        size_t place = pages_take_opening(page, page + PAGE_BYTES);
        stepping[i] = place < OPENING_LIMIT ? place + 1 : 0;
        return place < OPENING_LIMIT;
    }
    return false;
}

void pages_stepped(void)
{
    uint64_t mask;
    pages_lock(&mask);
    for (size_t i = 0; i < STEP_PAGE_LIMIT; i++)
        if (stepping[i]) {
            pages_end_opening(stepping[i] - 1);
            stepping[i] = 0;
        }
    pages_unlock(mask);
}

/* ---- What a fault is ------------------------------------------------------------------------ */

struct found {
    struct trap met; /* whose bytes the program touched first; listener NULL: none */
    bool any, neighbour;
    struct trap *looked; /* of a kernel: the program reads its memory */
};

/* Nothing is known any more of what the program and the device tell each other there. */
static void stop_looking(void)
{
    looks_forget_all();
    for (size_t i = 0; i < pages_table.count; i++)
        if (pages_table.traps[i].kernel)
            trap_lift(&pages_table.traps[i]);
}

/* An access of the program to memory that a kernel may use. */
static void look(struct trap *trap, bool writes, struct found *found)
{
    if (trap->steps++ >= STEP_LIMIT) {
        stop_looking(); /* what it writes is no longer seen */
        return;
    }
    found->neighbour = true;
    if (writes)
        looks_forget_all();
    else
        found->looked = trap;
}

/* Lifts what protects the page, unless the access is to a neighbour, which is left to a step. */
static void lift_for_fault(uint64_t address, bool writes, bool silent, struct found *found)
{
    uint64_t page = address & PAGE_MASK;
    for (size_t i = 0; i < pages_table.count; i++) {
        struct trap *trap = &pages_table.traps[i];
        if (!trap_is_protecting(trap) || page < trap->first || page >= trap->last)
            continue;
        found->any = true;
        bool used = is_used(trap, address, 1, writes), inside = trap->listener->is_inside();
        if (trap->kernel && used && !silent && !inside) {
            look(trap, writes, found);
            continue;
        }
        if (trap->kernel && (used || silent || inside))
            looks_forget(trap);
        else if (used && !silent && !inside && !trap->met && !found->met.listener)
            found->met = *trap;
        trap->met = trap->met || used;
        if (used || silent || inside)
            trap_lift(trap);
        else if (trap->steps++ < STEP_LIMIT)
            found->neighbour = true;
        else
            trap_lift_page(trap, page);
    }
}

/* 0: it is an access of the driver's own threads, or of a call of it that is not wrapped. */
static size_t stack_of(uint64_t pc, bool instruction, uint64_t frames[TRAP_FRAME_LIMIT])
{
    size_t count = pages_walk(pc, instruction, frames);
    for (size_t i = 0; i < count; i++)
        if (pages_is_driver(frames[i]))
            return 0;
    return count;
}

static void set_stack(size_t place, uint64_t pc)
{
    uint64_t mask, frames[TRAP_FRAME_LIMIT];
    size_t count = stack_of(pc, true, frames);
    pages_lock(&mask);
    looks_set_frames(place, pc, frames, count);
    pages_unlock(mask);
}

static void tell(const struct trap_listener *listener, struct trap_access *access, uint64_t pc,
                 bool instruction)
{
    uint64_t frames[TRAP_FRAME_LIMIT];
    access->frames = frames;
    access->frame_count = stack_of(pc, instruction, frames);
    if (access->frame_count)
        listener->accessed(listener->context, access);
}

/* With the lock held. */
static enum pages_fault decide(uint64_t address, bool writes, uint64_t pc, struct found *found,
                               size_t *ret_look)
{
    bool forked = pages_table.process != pages_system_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
    uint64_t page = address & PAGE_MASK;
    lift_for_fault(address, writes, forked, found);
    if (!found->any)
        return was_lifted(page, pc) ? PAGES_FAULT_AGAIN : PAGES_FAULT_OTHER;
    if (!found->neighbour)
        return PAGES_FAULT_AGAIN;
    if (found->looked && looks_again(found->looked, address, pc)) {
        stop_looking(); /* it waits for a flag */
        return PAGES_FAULT_AGAIN;
    }
    if (open_for_step(page)) {
        if (found->looked && !looks_add(found->looked, address, pc, ret_look)) {
            found->looked->readable = true;
            pages_apply(found->looked->first, found->looked->last);
        }
        return PAGES_FAULT_STEP;
    }
    for (size_t i = 0; i < pages_table.count; i++)
        if (trap_shares_pages(&pages_table.traps[i], page, PAGE_BYTES))
            trap_lift_page(&pages_table.traps[i], page);
    return PAGES_FAULT_AGAIN;
}

enum pages_fault pages_take_fault(uint64_t address, bool writes, uint64_t pc)
{
    uint64_t mask;
    struct found found = { .any = false };
    size_t place = SIZE_MAX;
    pages_lock(&mask);
    enum pages_fault fault = decide(address, writes, pc, &found, &place);
    pages_unlock(mask);
    if (place != SIZE_MAX)
        set_stack(place, pc);
    if (found.met.listener) {
        struct trap_access access = { .id = found.met.id, .address = address, .writes = writes };
        tell(found.met.listener, &access, pc, true);
    }
    return fault;
}

/* ---- System calls --------------------------------------------------------------------------- */

void pages_touch_begin(struct pages_touch *touch, uint64_t address, uint64_t bytes, bool writes)
{
    uint64_t mask;
    *touch = (struct pages_touch){ .opening = OPENING_LIMIT, .address = address, .writes = writes };
    if (!bytes || address + bytes < address)
        return;
    uint64_t first = address & PAGE_MASK;
    uint64_t last = (address + bytes + PAGE_BYTES - 1) & PAGE_MASK;
    bool found = false;
    pages_lock(&mask);
    for (size_t i = 0; i < pages_table.count; i++) {
        const struct trap *trap = &pages_table.traps[i];
        if (!trap_shares_pages(trap, address, bytes))
            continue;
        found = true;
        if (trap->kernel && writes)
            looks_forget_all();
        if (!trap->kernel && !trap->met && is_used(trap, address, bytes, writes) &&
            touch->count < PAGES_TOUCH_LIMIT && !trap->listener->is_inside()) {
            touch->traps[touch->count].listener = trap->listener;
            touch->traps[touch->count].id = trap->id;
            touch->traps[touch->count].address = trap->address;
            touch->traps[touch->count++].bytes = trap->bytes;
        }
    }
    if (found)
        touch->opening = pages_take_opening(first, last);
    pages_unlock(mask);
    if (found && touch->opening == OPENING_LIMIT)
        pages_forget(address, bytes);
}

/* Is the copy still queued, for all the program knows? */
static bool take_trap(const struct trap_listener *listener, uint64_t id)
{
    for (size_t i = 0; i < pages_table.count; i++) {
        struct trap *trap = &pages_table.traps[i];
        if (trap->listener != listener || trap->id != id)
            continue;
        bool first = !trap->met;
        trap->met = true;
        trap_lift(trap);
        return first;
    }
    return false;
}

void pages_touch_end(const struct pages_touch *touch, uint64_t bytes, uint64_t caller)
{
    uint64_t mask, end = touch->address + bytes;
    bool taken[PAGES_TOUCH_LIMIT] = { false };
    if (!touch->count && touch->opening == OPENING_LIMIT)
        return;
    pages_lock(&mask);
    for (size_t i = 0; i < touch->count; i++)
        if (touch->traps[i].address < end &&
            touch->address < touch->traps[i].address + touch->traps[i].bytes)
            taken[i] = take_trap(touch->traps[i].listener, touch->traps[i].id);
    if (touch->opening < OPENING_LIMIT)
        pages_end_opening(touch->opening);
    pages_unlock(mask);
    for (size_t i = 0; i < touch->count; i++) {
        uint64_t from = touch->traps[i].address > touch->address ? touch->traps[i].address
                                                                 : touch->address;
        uint64_t to = touch->traps[i].address + touch->traps[i].bytes;
        struct trap_access access = { .id = touch->traps[i].id,
                                      .address = from,
                                      .bytes = (to < end ? to : end) - from,
                                      .writes = touch->writes };
        if (taken[i])
            tell(touch->traps[i].listener, &access, caller, false);
    }
}

/* ---- Forks ---------------------------------------------------------------------------------- */

static uint64_t fork_mask;

static void before_fork(void)
{
    uint64_t mask;
    pages_lock(&mask);
    fork_mask = mask;
}

static void after_fork(void)
{
    pages_unlock(fork_mask);
}

/* The child has no device and no copies; its memory is as without traps. */
static void in_child(void)
{
    uint64_t mask = fork_mask;
    pthread_mutex_init(&pages_table.lock, NULL);
    memset(pages_table.openings, 0, sizeof(pages_table.openings));
    for (size_t i = 0; i < pages_table.count; i++)
        trap_lift(&pages_table.traps[i]);
    pages_table.count = 0;
    pages_table.off = true;
    pages_system_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, sizeof(mask), 0, 0);
}

__attribute__((constructor)) static void start(void)
{
    pthread_atfork(before_fork, after_fork, in_child);
}
