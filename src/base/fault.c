/* fault.c - see fault.h. One handler for SIGSEGV and SIGBUS in the whole process. */
#define _GNU_SOURCE /* SI_KERNEL, MAP_ANONYMOUS */
#include "base/fault.h"

#include "base/status.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

struct frame {
    sigjmp_buf back;
    struct fault_info info;
};

static _Thread_local struct frame *volatile current;
static struct sigaction previous_segv, previous_bus;

/* ---- Ranges --------------------------------------------------------------------------------- */

/* A model has at most this many shards; more mappings are not watched. */
#define RANGE_LIMIT 1024u

/* The lock guards the assignment of places; the handler reads without it. An address of 0 means
 * free. */
static struct range {
    uintptr_t address; /* atomic; set last, cleared first */
    size_t bytes;
    uint32_t faulted;      /* atomic */
} ranges[RANGE_LIMIT + 1]; /* place 0 is never used */
static pthread_mutex_t ranges_lock = PTHREAD_MUTEX_INITIALIZER;

uint32_t fault_watch(const void *address, size_t bytes)
{
    uint32_t place = 0;
    fault_install();
    pthread_mutex_lock(&ranges_lock);
    for (uint32_t i = 1; i <= RANGE_LIMIT && !place; i++)
        if (!ranges[i].address)
            place = i;
    if (place) {
        ranges[place].bytes = bytes;
        ranges[place].faulted = 0;
        __atomic_store_n(&ranges[place].address, (uintptr_t)address, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&ranges_lock);
    return place;
}

void fault_unwatch(uint32_t place)
{
    if (place)
        __atomic_store_n(&ranges[place].address, 0, __ATOMIC_RELEASE);
}

bool fault_was_seen(uint32_t place)
{
    return place && __atomic_load_n(&ranges[place].faulted, __ATOMIC_ACQUIRE);
}

/* Runs in the handler. Maps zeros from the page of the fault to the end of the range, so that the
 * reader goes on. */
static bool patch_range(uintptr_t fault)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (uint32_t i = 1; i <= RANGE_LIMIT; i++) {
        uintptr_t begin = __atomic_load_n(&ranges[i].address, __ATOMIC_ACQUIRE);
        if (!begin || fault < begin || fault - begin >= ranges[i].bytes)
            continue;
        uintptr_t from = fault / page * page;
        size_t bytes = (begin + ranges[i].bytes - from + page - 1) / page * page;
        if (mmap((void *)from, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
            MAP_FAILED)
            return false;
        __atomic_store_n(&ranges[i].faulted, 1, __ATOMIC_RELEASE);
        return true;
    }
    return false;
}

/* ---- Guarded memory ------------------------------------------------------------------------- */

/* Staging slots of a few devices. */
#define GUARD_LIMIT 256u

/* As the ranges above. */
static struct guard {
    uintptr_t address; /* atomic; set last, cleared first */
    size_t bytes;
    bool (*met)(void *context, uint64_t address);
    void *context;
} guards[GUARD_LIMIT + 1]; /* place 0 is never used */

uint32_t fault_guard(const void *address, size_t bytes,
                     bool (*met)(void *context, uint64_t address), void *context)
{
    uint32_t place = 0;
    fault_install();
    pthread_mutex_lock(&ranges_lock);
    for (uint32_t i = 1; i <= GUARD_LIMIT && !place; i++)
        if (!guards[i].address)
            place = i;
    if (place) {
        guards[place].bytes = bytes;
        guards[place].met = met;
        guards[place].context = context;
        __atomic_store_n(&guards[place].address, (uintptr_t)address, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&ranges_lock);
    return place;
}

void fault_unguard(uint32_t place)
{
    if (place)
        __atomic_store_n(&guards[place].address, 0, __ATOMIC_RELEASE);
}

static bool meet_guard(uintptr_t fault)
{
    for (uint32_t i = 1; i <= GUARD_LIMIT; i++) {
        uintptr_t begin = __atomic_load_n(&guards[i].address, __ATOMIC_ACQUIRE);
        if (begin && fault >= begin && fault - begin < guards[i].bytes)
            return guards[i].met(guards[i].context, (uint64_t)fault);
    }
    return false;
}

/* ---- The handler ---------------------------------------------------------------------------- */

/* By a process (kill, raise), not by an access. */
static bool is_sent(const siginfo_t *info)
{
    return info->si_code <= 0;
}

static void chain(int signal_number, siginfo_t *info, void *context)
{
    const struct sigaction *previous = signal_number == SIGBUS ? &previous_bus : &previous_segv;
    if (previous->sa_flags & SA_SIGINFO) {
        previous->sa_sigaction(signal_number, info, context);
        return;
    }
    if (previous->sa_handler != SIG_DFL && previous->sa_handler != SIG_IGN) {
        previous->sa_handler(signal_number);
        return;
    }
    /* The access happens again on return, and then the default action. */
    struct sigaction plain = { .sa_handler = SIG_DFL };
    sigaction(signal_number, &plain, NULL);
    if (is_sent(info))
        raise(signal_number); /* nothing happens again: comes once the handler has returned */
}

static void on_fault(int signal_number, siginfo_t *info, void *context)
{
    struct frame *frame = current;
    if (is_sent(info)) {
        chain(signal_number, info, context);
        return;
    }
    if (signal_number == SIGSEGV && info->si_code == SEGV_ACCERR &&
        meet_guard((uintptr_t)info->si_addr))
        return;
    if (!frame) {
        if (signal_number != SIGBUS || !patch_range((uintptr_t)info->si_addr))
            chain(signal_number, info, context);
        return;
    }
    /* A non-canonical address is a general protection fault: the processor does not say which
     * address it was. */
    frame->info.address_known = info->si_code != SI_KERNEL;
    frame->info.address = frame->info.address_known ? (uint64_t)(uintptr_t)info->si_addr : 0;
    current = NULL;
    /* The handler is left by a jump that does not restore the signal mask (saving it costs a call
     * for every tile). If the signal was blocked when it was delivered, the next fault would kill
     * the process. */
    const ucontext_t *interrupted = context;
    pthread_sigmask(SIG_SETMASK, &interrupted->uc_sigmask, NULL);
    siglongjmp(frame->back, 1);
}

/* Unless it is ours already: another part of the process may have installed its own in the
 * meantime. */
static void install(int signal_number, struct sigaction *previous)
{
    /* Not blocked in the handler, which is left by a jump that does not restore the mask. */
    struct sigaction action = { .sa_sigaction = on_fault,
                                .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK };
    struct sigaction current_action;
    sigemptyset(&action.sa_mask);
    sigaction(signal_number, NULL, &current_action);
    if ((current_action.sa_flags & SA_SIGINFO) && current_action.sa_sigaction == on_fault)
        return;
    *previous = current_action;
    sigaction(signal_number, &action, NULL);
}

void fault_install(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    install(SIGSEGV, &previous_segv);
    install(SIGBUS, &previous_bus);
    pthread_mutex_unlock(&lock);
}

bool fault_run(void (*body)(void *context), void *context, struct fault_info *ret_info)
{
    struct frame frame;
    frame.info = (struct fault_info){ .address_known = false };
    ASSERT(!current);
    if (sigsetjmp(frame.back, 0)) {
        *ret_info = frame.info;
        return false;
    }
    current = &frame;
    body(context);
    current = NULL;
    return true;
}

struct copying {
    void *target;
    const void *source;
    size_t bytes;
};

static void copy(void *context)
{
    const struct copying *copying = context;
    memcpy(copying->target, copying->source, copying->bytes);
}

bool fault_copy(void *target, const void *source, size_t bytes)
{
    struct copying copying = { target, source, bytes };
    struct fault_info unused;
    return fault_run(copy, &copying, &unused);
}
