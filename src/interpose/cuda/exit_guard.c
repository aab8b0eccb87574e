/* exit_guard.c - a program that goes on after a GPU core dump ends with its own exit status.
 *
 * After a dump without abort the driver may crash when the process exits: in its own destructors,
 * or below those of the CUDA runtime. The program has said by then what it has to say. So if it
 * calls exit (or returns from main) after the fault, and then a signal comes from the driver's
 * code, the process ends there with the status it asked for. Every other crash stays what it is,
 * also one of a function of the program that the driver called. */
#define _GNU_SOURCE /* on_exit, dl_iterate_phdr */
#include "interpose/cuda/preload.h"

#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

static const int signals[] = { SIGSEGV, SIGBUS, SIGABRT };
enum { SIGNAL_COUNT = sizeof(signals) / sizeof(signals[0]) };
#define FRAME_LIMIT 64u
#define FLUSH_SECONDS 5u

/* Set once, before any handler can run. */
static struct {
    pthread_once_t begun;
    uintptr_t start, end;         /* the driver's addresses */
    uintptr_t own_start, own_end; /* the program's */
    int status;                   /* that the program asked for */
    struct sigaction before[SIGNAL_COUNT];
} guard = { .begun = PTHREAD_ONCE_INIT };

static int find_driver(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    const char *slash = strrchr(info->dlpi_name, '/');
    for (int i = 0; i < info->dlpi_phnum && !info->dlpi_name[0] && !guard.own_end; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X)) {
            guard.own_start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            guard.own_end = guard.own_start + info->dlpi_phdr[i].p_memsz;
        }
    if (strncmp(slash ? slash + 1 : info->dlpi_name, "libcuda.so", 10) != 0)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        uintptr_t end = start + info->dlpi_phdr[i].p_memsz;
        if (info->dlpi_phdr[i].p_type != PT_LOAD)
            continue;
        guard.start = guard.end ? guard.start : start;
        guard.end = end;
    }
    return 1;
}

struct frames {
    unsigned count;
    bool driver; /* one of them is the driver's, */
    bool own;    /* or the program's, which the driver may have called */
};

static _Unwind_Reason_Code look_at_frame(struct _Unwind_Context *context, void *argument)
{
    struct frames *frames = argument;
    uintptr_t address = _Unwind_GetIP(context);
    frames->driver = frames->driver || (address >= guard.start && address < guard.end);
    frames->own = address >= guard.own_start && address < guard.own_end;
    return ++frames->count < FRAME_LIMIT && !frames->driver && !frames->own ? _URC_NO_REASON
                                                                            : _URC_NORMAL_STOP;
}

static void end_now(int number)
{
    (void)number;
    _exit(guard.status);
}

static void on_crash(int number, siginfo_t *info, void *unused)
{
    struct frames frames = { 0, false, false };
    (void)unused;
    _Unwind_Backtrace(look_at_frame, &frames);
    if (!frames.driver) {
        /* Not ours: the instruction fails again, or the signal is sent again. */
        for (size_t i = 0; i < SIGNAL_COUNT; i++)
            sigaction(signals[i], &guard.before[i], NULL);
        if (info->si_code <= 0)
            raise(number);
        return;
    }
    /* What is still in buffers would have been written. If that hangs on a lock it is given up. */
    struct sigaction give_up = { .sa_handler = end_now };
    sigset_t set;
    sigemptyset(&give_up.sa_mask);
    sigaction(SIGALRM, &give_up, NULL);
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    alarm(FLUSH_SECONDS);
    fflush(NULL);
    _exit(guard.status);
}

/* The program exits: the first of its handlers that runs. */
static void on_leaving(int status, void *unused)
{
    struct sigaction action = { .sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_NODEFER };
    (void)unused;
    sigemptyset(&action.sa_mask);
    guard.status = status;
    for (size_t i = 0; i < SIGNAL_COUNT; i++)
        sigaction(signals[i], &action, &guard.before[i]);
}

static void begin(void)
{
    dl_iterate_phdr(find_driver, NULL);
    struct frames frames = { FRAME_LIMIT - 1, false, false };
    _Unwind_Backtrace(look_at_frame, &frames); /* loads what it needs, now */
    if (guard.end)
        on_exit(on_leaving, NULL);
}

void cuda_guard_exit(void)
{
    pthread_once(&guard.begun, begin);
}
