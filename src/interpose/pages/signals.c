/* signals.c - SIGSEGV: our handler before the program's.
 *
 * Until the first trap is set the signal is the program's alone. From then on sigaction and signal
 * change what our handler calls, and show the program what it set itself. A fault that is not on a
 * protected page is handed on just as the system would deliver it: with the program's flags, mask
 * and alternate stack; siglongjmp out of its handler works. All protection is lifted before that,
 * so that a handler never meets a trap.
 *
 * A fault while the signal is blocked would kill the process. So it is never blocked for the
 * system, only in what the program is shown. */
#define _GNU_SOURCE
#include "interpose/pages/pages.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define SIGNAL_LIMIT 65

typedef int (*action_function)(int, const struct sigaction *, struct sigaction *);
typedef int (*mask_function)(int, const sigset_t *, sigset_t *);

static void on_fault(int number, siginfo_t *info, void *context);

/* Under the lock of the table of traps. */
static struct sigaction wanted; /* the program's, once installed */
static bool installed;
/* The program's handler of that signal wants SIGSEGV blocked while it runs. */
static _Atomic(bool) blocks_fault[SIGNAL_LIMIT];
/* This thread wants it blocked. */
static PAGES_THREAD_LOCAL bool blocked;

/* ---- The system's side ---------------------------------------------------------------------- */

static int system_action(int number, const struct sigaction *action, struct sigaction *before)
{
    static _Atomic(action_function) next;
    action_function function = atomic_load(&next);
    if (!function) {
        *(void **)&function = pages_next("sigaction");
        atomic_store(&next, function);
    }
    if (!function) {
        errno = ENOSYS;
        return -1;
    }
    return function(number, action, before);
}

static bool is_default(const struct sigaction *action)
{
    return action->sa_handler == SIG_DFL || action->sa_handler == SIG_IGN;
}

static int install(void)
{
    struct sigaction ours = { .sa_sigaction = on_fault };
    int kept = SA_ONSTACK | SA_NODEFER | SA_RESTART;
    ours.sa_flags = SA_SIGINFO |
                    (is_default(&wanted) ? SA_ONSTACK | SA_RESTART : wanted.sa_flags & kept);
    ours.sa_mask = wanted.sa_mask;
    if (is_default(&wanted))
        sigemptyset(&ours.sa_mask);
    return system_action(SIGSEGV, &ours, NULL);
}

bool pages_take_signal(void)
{
    struct sigaction now;
    uint64_t mask;
    pages_lock(&mask);
    bool good = system_action(SIGSEGV, NULL, &now) == 0;
    bool ours = good && (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_fault;
    bool taken = good && installed && !ours;
    if (good && !installed) {
        wanted = now;
        good = installed = install() == 0;
    }
    pages_unlock(mask);
    if (taken)
        pages_switch_off(EVENT_TRAPS_SIGNAL);
    return good && !taken;
}

/* ---- The program's handler ------------------------------------------------------------------ */

/* As if there had been no handler: the instruction is tried again, or the signal sent again, and
 * the process ends by it. */
static void end_process(const siginfo_t *info)
{
    struct sigaction normal = { .sa_handler = SIG_DFL };
    system_action(SIGSEGV, &normal, NULL);
    if (info->si_code <= 0)
        pages_system_call(SYS_tgkill, pages_system_call(SYS_getpid, 0, 0, 0, 0, 0, 0),
                          pages_system_call(SYS_gettid, 0, 0, 0, 0, 0, 0), SIGSEGV, 0, 0, 0);
}

static void hand_on(int number, siginfo_t *info, void *context)
{
    struct sigaction action;
    uint64_t mask;
    bool sent = info->si_code <= 0; /* by a process; else by an instruction */
    pages_open_all();
    pages_lock(&mask);
    action = wanted;
    if (wanted.sa_flags & (int)SA_RESETHAND)
        wanted.sa_handler = SIG_DFL;
    pages_unlock(mask);
    if (action.sa_handler == SIG_IGN && sent)
        return;
    if (is_default(&action) || (blocked && !sent))
        end_process(info);
    else if (action.sa_flags & SA_SIGINFO)
        action.sa_sigaction(number, info, context);
    else
        action.sa_handler(number);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
#if defined(__x86_64__)
    const ucontext_t *machine = context;
    uint64_t pc = (uint64_t)machine->uc_mcontext.gregs[REG_RIP];
    bool writes = machine->uc_mcontext.gregs[REG_ERR] & 2;
    int kept = errno;
    if (info->si_code == SEGV_ACCERR &&
        pages_take_fault((uint64_t)(uintptr_t)info->si_addr, writes, pc)) {
        errno = kept;
        return;
    }
    errno = kept;
#endif
    hand_on(number, info, context);
}

/* ---- What the program calls ----------------------------------------------------------------- */

static int fault_action(const struct sigaction *action, struct sigaction *before)
{
    uint64_t mask;
    int code = 0;
    pages_lock(&mask);
    bool ours = installed;
    struct sigaction shown = wanted;
    if (ours && action) {
        wanted = *action;
        code = install();
    }
    pages_unlock(mask);
    if (!ours)
        return system_action(SIGSEGV, action, before);
    if (before)
        *before = shown;
    return code;
}

EXPORT int sigaction(int number, const struct sigaction *action, struct sigaction *before)
{
    struct sigaction changed;
    if (number == SIGSEGV)
        return fault_action(action, before);
    if (number <= 0 || number >= SIGNAL_LIMIT)
        return system_action(number, action, before);
    bool blocks_now = atomic_load(&blocks_fault[number]);
    if (action) {
        changed = *action;
        sigdelset(&changed.sa_mask, SIGSEGV);
    }
    int code = system_action(number, action ? &changed : NULL, before);
    if (code == 0 && before && blocks_now)
        sigaddset(&before->sa_mask, SIGSEGV);
    if (code == 0 && action)
        atomic_store(&blocks_fault[number], sigismember(&action->sa_mask, SIGSEGV) == 1);
    return code;
}

static sighandler_t set_handler(int number, sighandler_t handler, int flags)
{
    struct sigaction action = { .sa_handler = handler }, before;
    action.sa_flags = flags;
    sigemptyset(&action.sa_mask);
    if (!(flags & SA_NODEFER))
        sigaddset(&action.sa_mask, number);
    return sigaction(number, &action, &before) == 0 ? before.sa_handler : SIG_ERR;
}

EXPORT sighandler_t signal(int number, sighandler_t handler)
{
    return set_handler(number, handler, SA_RESTART);
}

EXPORT sighandler_t sysv_signal(int number, sighandler_t handler);
EXPORT sighandler_t sysv_signal(int number, sighandler_t handler)
{
    return set_handler(number, handler, (int)SA_RESETHAND | SA_NODEFER);
}

EXPORT sighandler_t __sysv_signal(int number, sighandler_t handler);
EXPORT sighandler_t __sysv_signal(int number, sighandler_t handler)
{
    return sysv_signal(number, handler);
}

/* name: of the function that the program called. */
static int set_mask(const char *name, int how, const sigset_t *set, sigset_t *before)
{
    mask_function next;
    sigset_t changed;
    bool was_blocked = blocked;
    *(void **)&next = pages_next(name);
    if (!next)
        return ENOSYS;
    if (set) {
        changed = *set;
        if (how != SIG_UNBLOCK)
            sigdelset(&changed, SIGSEGV);
    }
    int code = next(how, set ? &changed : NULL, before);
    if (code)
        return code;
    if (before && was_blocked)
        sigaddset(before, SIGSEGV);
    if (set && (how == SIG_SETMASK || sigismember(set, SIGSEGV) == 1))
        blocked = how != SIG_UNBLOCK && sigismember(set, SIGSEGV) == 1;
    return code;
}

EXPORT int pthread_sigmask(int how, const sigset_t *set, sigset_t *before)
{
    return set_mask("pthread_sigmask", how, set, before);
}

EXPORT int sigprocmask(int how, const sigset_t *set, sigset_t *before)
{
    return set_mask("sigprocmask", how, set, before);
}

/* What the process was started with. */
__attribute__((constructor)) static void start(void)
{
    uint64_t mask = 0, unblocked = UINT64_C(1) << (SIGSEGV - 1);
    pages_system_call(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&unblocked, (long)&mask, sizeof(mask),
                      0, 0);
    blocked = (mask & unblocked) != 0;
}
