/* signals.c - SIGSEGV and SIGTRAP: our handlers before the program's.
 *
 * Until the first trap is set the signals are the program's alone. From then on sigaction and
 * signal change what our handler calls, and show the program what it set itself. A fault that is
 * not on a protected page is handed on just as the system would deliver it: with the program's
 * flags, mask and alternate stack; siglongjmp out of its handler works. All protection is lifted
 * before that, so that a handler never meets a trap.
 *
 * An access that is no finding, to a neighbour of what a copy uses, is executed as a single step:
 * its page is open for one instruction (SIGTRAP) and protected again.
 *
 * A fault while the signal is blocked would kill the process. So it is never blocked for the
 * system, only in what the program is shown (signal_mask.c). */
#define _GNU_SOURCE
#include "interpose/pages/pages.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define SIGNAL_LIMIT 65

typedef int (*action_function)(int, const struct sigaction *, struct sigaction *);

static void on_fault(int number, siginfo_t *info, void *context);
static void on_step(int number, siginfo_t *info, void *context);

/* The signals that are ours first: of faults, and of single steps. */
static struct owned {
    int number;
    void (*handler)(int, siginfo_t *, void *);
    /* Under the lock of the table of traps. */
    struct sigaction wanted; /* the program's, once installed */
    bool installed;
} owned[] = { { .number = SIGSEGV, .handler = on_fault },
              { .number = SIGTRAP, .handler = on_step } };
#define OWNED_COUNT (sizeof(owned) / sizeof(owned[0]))

/* The program's handler of that signal wants SIGSEGV blocked while it runs. */
static _Atomic(bool) blocks_fault[SIGNAL_LIMIT];

/* ---- The system's side ---------------------------------------------------------------------- */

static _Atomic(action_function) next_action;

/* At the start, or for a library that is initialised before this one. */
static void find_next(void)
{
    action_function action;
    *(void **)&action = pages_next("sigaction");
    atomic_store(&next_action, action);
}

static int system_action(int number, const struct sigaction *action, struct sigaction *before)
{
    if (!atomic_load(&next_action))
        find_next();
    action_function function = atomic_load(&next_action);
    if (function)
        return function(number, action, before);
    errno = ENOSYS;
    return -1;
}

static bool is_default(const struct sigaction *action)
{
    return action->sa_handler == SIG_DFL || action->sa_handler == SIG_IGN;
}

static int install(const struct owned *signal)
{
    struct sigaction ours = { .sa_sigaction = signal->handler };
    int kept = SA_ONSTACK | SA_NODEFER | SA_RESTART;
    bool normal = is_default(&signal->wanted);
    ours.sa_flags = SA_SIGINFO |
                    (normal ? SA_ONSTACK | SA_RESTART : signal->wanted.sa_flags & kept);
    ours.sa_mask = signal->wanted.sa_mask;
    if (normal)
        sigemptyset(&ours.sa_mask);
    /* A handler of one of them may be interrupted by the other. */
    for (size_t i = 0; i < OWNED_COUNT; i++)
        if (owned[i].number != signal->number)
            sigdelset(&ours.sa_mask, owned[i].number);
    return system_action(signal->number, &ours, NULL);
}

/* With the lock held. ret_taken: something else has the signal now. */
static bool take(struct owned *signal, bool *ret_taken)
{
    struct sigaction now;
    if (system_action(signal->number, NULL, &now) != 0)
        return false;
    bool ours = (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == signal->handler;
    if (signal->installed) {
        *ret_taken = *ret_taken || !ours;
        return true;
    }
    signal->wanted = now;
    signal->installed = install(signal) == 0;
    return signal->installed;
}

bool pages_take_signal(void)
{
    uint64_t mask;
    bool good = true, taken = false;
    pages_lock(&mask);
    for (size_t i = 0; i < OWNED_COUNT; i++)
        good = take(&owned[i], &taken) && good;
    pages_unlock(mask);
    if (taken)
        pages_switch_off(EVENT_TRAPS_SIGNAL);
    return good && !taken;
}

/* ---- The program's handler ------------------------------------------------------------------ */

/* As if there had been no handler: the instruction is tried again, or the signal sent again, and
 * the process ends by it. */
static void end_process(int number, bool again)
{
    struct sigaction normal = { .sa_handler = SIG_DFL };
    system_action(number, &normal, NULL);
    if (!again)
        pages_system_call(SYS_tgkill, pages_system_call(SYS_getpid, 0, 0, 0, 0, 0, 0),
                          pages_system_call(SYS_gettid, 0, 0, 0, 0, 0, 0), number, 0, 0, 0);
}

static struct owned *owned_signal(int number)
{
    for (size_t i = 0; i < OWNED_COUNT; i++)
        if (owned[i].number == number)
            return &owned[i];
    return NULL;
}

static void hand_on(int number, siginfo_t *info, void *context)
{
    struct owned *signal = owned_signal(number);
    struct sigaction action;
    uint64_t mask;
    bool sent = info->si_code <= 0; /* by a process; else by an instruction */
    pages_open_all();
    pages_lock(&mask);
    action = signal->wanted;
    if (action.sa_flags & (int)SA_RESETHAND)
        signal->wanted.sa_handler = SIG_DFL;
    pages_unlock(mask);
    if (action.sa_handler == SIG_IGN && sent)
        return;
    if (is_default(&action) || (number == SIGSEGV && pages_fault_is_blocked() && !sent))
        end_process(number, number == SIGSEGV && !sent);
    else if (action.sa_flags & SA_SIGINFO)
        action.sa_sigaction(number, info, context);
    else
        action.sa_handler(number);
}

#if defined(__x86_64__)

#define STEP_FLAG 0x100 /* TF: a trap after the next instruction */
#define STEP_MASK (UINT64_C(1) << (SIGTRAP - 1))

/* What the interrupted code has, as the system will restore it. */
static uint64_t *mask_of(ucontext_t *machine)
{
    return (uint64_t *)(void *)&machine->uc_sigmask;
}

/* The instruction that this thread executes alone. pending: the program blocks SIGTRAP, and this one,
 * which waited for it, came while the step needed the signal. */
static PAGES_THREAD_LOCAL struct {
    bool stepping, was_masked, has_pending;
    siginfo_t pending;
} step;

/* The next instruction is executed, then on_step is called. */
static void begin_step(ucontext_t *machine)
{
    if (step.stepping)
        return; /* it touches a second page */
    step.stepping = true;
    step.was_masked = (*mask_of(machine) & STEP_MASK) != 0;
    *mask_of(machine) &= ~STEP_MASK;
    machine->uc_mcontext.gregs[REG_EFL] |= STEP_FLAG;
}

/* Lets the program's signal wait again. It stays blocked until our handler returns, which restores
 * the program's own mask. */
static void put_back_pending(void)
{
    uint64_t mask = STEP_MASK;
    step.has_pending = false;
    pages_system_call(SYS_rt_sigprocmask, SIG_BLOCK, (long)(uintptr_t)&mask, 0, sizeof(mask), 0, 0);
    pages_system_call(SYS_rt_tgsigqueueinfo, pages_system_call(SYS_getpid, 0, 0, 0, 0, 0, 0),
                      pages_system_call(SYS_gettid, 0, 0, 0, 0, 0, 0), SIGTRAP,
                      (long)(uintptr_t)&step.pending, 0, 0);
}

static void end_step(ucontext_t *machine)
{
    if (!step.stepping)
        return;
    step.stepping = false;
    if (step.was_masked)
        *mask_of(machine) |= STEP_MASK;
    machine->uc_mcontext.gregs[REG_EFL] &= ~STEP_FLAG;
    pages_stepped();
    if (step.has_pending)
        put_back_pending();
}

static void on_step(int number, siginfo_t *info, void *context)
{
    bool ours = step.stepping && info->si_code == TRAP_TRACE;
    bool later = !ours && step.stepping && step.was_masked;
    int kept = errno;
    if (ours)
        end_step(context);
    if (later) {
        step.has_pending = true;
        step.pending = *info;
    }
    errno = kept;
    if (!ours && !later)
        hand_on(number, info, context);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    ucontext_t *machine = context;
    uint64_t pc = (uint64_t)machine->uc_mcontext.gregs[REG_RIP];
    bool writes = machine->uc_mcontext.gregs[REG_ERR] & 2;
    int kept = errno;
    enum pages_fault fault = PAGES_FAULT_OTHER;
    if (info->si_code == SEGV_ACCERR)
        fault = pages_take_fault((uint64_t)(uintptr_t)info->si_addr, writes, pc);
    if (fault == PAGES_FAULT_STEP)
        begin_step(machine);
    if (fault == PAGES_FAULT_OTHER)
        end_step(machine); /* it will not be finished */
    errno = kept;
    if (fault == PAGES_FAULT_OTHER)
        hand_on(number, info, context);
}

#else

static void on_step(int number, siginfo_t *info, void *context)
{
    hand_on(number, info, context);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    hand_on(number, info, context);
}

#endif

/* ---- What the program calls ----------------------------------------------------------------- */

/* What the C library adds to the flags of every handler, and shows to the program later: the kernel's
 * SA_RESTORER, which the headers do not name. */
#define SYSTEM_FLAGS 0x04000000

static int owned_action(struct owned *signal, const struct sigaction *action,
                        struct sigaction *before)
{
    uint64_t mask;
    int code = 0;
    pages_lock(&mask);
    bool ours = signal->installed;
    struct sigaction shown = signal->wanted;
    if (ours && action) {
        signal->wanted = *action;
        signal->wanted.sa_flags |= SYSTEM_FLAGS;
        code = install(signal);
    }
    pages_unlock(mask);
    if (!ours)
        return system_action(signal->number, action, before);
    if (before)
        *before = shown;
    return code;
}

EXPORT int sigaction(int number, const struct sigaction *action, struct sigaction *before)
{
    struct sigaction changed;
    struct owned *ours = owned_signal(number);
    if (ours)
        return owned_action(ours, action, before);
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

__attribute__((constructor)) static void start(void)
{
    find_next();
}
