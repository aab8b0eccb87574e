/* host_fault.c - illegal accesses of kernels and copies become values.
 *
 * One handler for SIGSEGV and SIGBUS in the whole process. A thread that runs foreign-looking code
 * says so in a thread-local frame; a fault there jumps back to it. Any other fault goes to whoever
 * was installed before (a sanitizer, a crash reporter, the default). */
#define _GNU_SOURCE /* SI_KERNEL */
#include "device/host/host_impl.h"

#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>

struct frame {
    sigjmp_buf back;
    struct host_fault_info info;
};

static _Thread_local struct frame *volatile current;
static struct sigaction previous_segv, previous_bus;

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
}

static void on_fault(int signal_number, siginfo_t *info, void *context)
{
    struct frame *frame = current;
    if (!frame) {
        chain(signal_number, info, context);
        return;
    }
    /* A non-canonical address is a general protection fault: the processor does not tell which. */
    frame->info.address_known = info->si_code != SI_KERNEL;
    frame->info.address = frame->info.address_known ? (uint64_t)(uintptr_t)info->si_addr : 0;
    current = NULL;
    /* We leave by a jump that does not restore the mask (saving it costs a call for every tile);
     * whoever delivered the signal may have blocked it, and the next fault would kill. */
    const ucontext_t *interrupted = context;
    pthread_sigmask(SIG_SETMASK, &interrupted->uc_sigmask, NULL);
    siglongjmp(frame->back, 1);
}

/* Unless it is ours already: another part of the process may have put its own in the meantime. */
static void install(int signal_number, struct sigaction *previous)
{
    /* Not blocked in the handler: we leave it by a jump that does not restore the mask. */
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

void host_fault_install(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    install(SIGSEGV, &previous_segv);
    install(SIGBUS, &previous_bus);
    pthread_mutex_unlock(&lock);
}

bool host_fault_run(void (*body)(void *context), void *context, struct host_fault_info *ret_info)
{
    struct frame frame;
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
