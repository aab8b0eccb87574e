/* signal_mask.c - pthread_sigmask and sigprocmask: SIGSEGV is never blocked for the system, because
 * a fault would then kill the process; the program is shown that it is where it asked for that. */
#define _GNU_SOURCE
#include "interpose/pages/pages.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>

typedef int (*mask_function)(int, const sigset_t *, sigset_t *);

/* This thread wants it blocked. */
static PAGES_THREAD_LOCAL bool blocked;
static _Atomic(mask_function) next_thread_mask, next_mask;

bool pages_fault_is_blocked(void)
{
    return blocked;
}

/* At the start, or for a library that is initialised before this one. */
static void find_next(void)
{
    mask_function thread_mask, mask;
    *(void **)&thread_mask = pages_next("pthread_sigmask");
    *(void **)&mask = pages_next("sigprocmask");
    atomic_store(&next_thread_mask, thread_mask);
    atomic_store(&next_mask, mask);
}

/* next: the function that the program called. */
static int set_mask(_Atomic(mask_function) *next, int how, const sigset_t *set, sigset_t *before)
{
    sigset_t changed;
    bool was_blocked = blocked;
    if (!atomic_load(next))
        find_next();
    mask_function function = atomic_load(next);
    if (!function)
        return ENOSYS;
    if (set) {
        changed = *set;
        if (how != SIG_UNBLOCK)
            sigdelset(&changed, SIGSEGV);
    }
    int code = function(how, set ? &changed : NULL, before);
    if (code)
        return code;
    if (before && was_blocked)
        sigaddset(before, SIGSEGV);
    if (set && (how == SIG_SETMASK || sigismember(set, SIGSEGV) == 1))
        blocked = how != SIG_UNBLOCK && sigismember(set, SIGSEGV) == 1;
    return 0;
}

EXPORT int pthread_sigmask(int how, const sigset_t *set, sigset_t *before)
{
    return set_mask(&next_thread_mask, how, set, before);
}

EXPORT int sigprocmask(int how, const sigset_t *set, sigset_t *before)
{
    return set_mask(&next_mask, how, set, before);
}

/* What the process was started with. */
__attribute__((constructor)) static void start(void)
{
    uint64_t mask = 0, unblocked = UINT64_C(1) << (SIGSEGV - 1);
    find_next();
    pages_system_call(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&unblocked, (long)&mask, sizeof(mask),
                      0, 0);
    blocked = (mask & unblocked) != 0;
}
