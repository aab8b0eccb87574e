/* scenes_traps_process.c - the program's scenes in which page traps meet what else a process does:
 * signals, threads, forks, system calls. See scenes_traps.c. */
#define _GNU_SOURCE /* syscall */
#include "scenes.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096 };

__attribute__((noinline)) static unsigned char look_at(const volatile unsigned char *bytes)
{
    return *bytes;
}

static void copy_out(struct scene *scene)
{
    cuMemcpyDtoHAsync_v2(scene->pinned, scene->a, BYTES, scene->first);
}

/* ---- Signals -------------------------------------------------------------------------------- */

static sigjmp_buf back;
static volatile int caught;
static void *volatile caught_at;
static volatile int on_own_stack, user_signal_blocked;
static char own_stack[64 * 1024];
static const unsigned char *also_read; /* by the handler itself */

static void on_fault(int number, siginfo_t *info, void *context)
{
    sigset_t now;
    char here;
    (void)context;
    pthread_sigmask(SIG_BLOCK, NULL, &now);
    user_signal_blocked = sigismember(&now, SIGUSR1) == 1 && sigismember(&now, number) == 1;
    on_own_stack = &here >= own_stack && &here < own_stack + sizeof(own_stack);
    if (also_read)
        look_at(also_read);
    caught_at = info->si_addr;
    caught++;
    siglongjmp(back, 1);
}

/* A program that finds out what it can read by its own handler, before the first trap and after. */
static int try(unsigned char *bytes)
{
    if (sigsetjmp(back, 1) == 0)
        return look_at(bytes);
    return -1;
}

void own_handler(struct scene *scene)
{
    struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK },
                     now;
    stack_t stack = { .ss_sp = own_stack, .ss_size = sizeof(own_stack) };
    unsigned char *mine = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaltstack(&stack, NULL);
    sigaddset(&action.sa_mask, SIGUSR1);
    sigaction(SIGSEGV, &action, NULL);
    printf("before %d\n", try(mine));
    copy_out(scene);
    also_read = scene->pinned;
    printf("mine %d %d\n", try(mine), caught_at == mine);
    copy_out(scene);
    printf("early %d, caught %d\n", try(scene->pinned), caught);
    printf("own stack %d, mask %d\n", on_own_stack, user_signal_blocked);
    sigaction(SIGSEGV, NULL, &now);
    printf("mine still %d %d\n", now.sa_sigaction == on_fault,
           now.sa_flags == (SA_SIGINFO | SA_ONSTACK));
    printf("replaced %d\n", signal(SIGSEGV, SIG_IGN) != SIG_ERR);
    raise(SIGSEGV);
    printf("ignored %d\n", signal(SIGSEGV, SIG_DFL) == SIG_IGN);
    cuStreamSynchronize(scene->first);
}

static volatile int steps;

static void on_step(int number)
{
    (void)number;
    steps++;
}

/* A program that uses the signal of single steps itself, and blocks it where a step is needed. */
void own_step_handler(struct scene *scene)
{
    sigset_t blocked, now;
    signal(SIGTRAP, on_step);
    cuMemcpyDtoHAsync_v2(scene->pinned + 100, scene->a, 100, scene->first);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTRAP);
    pthread_sigmask(SIG_BLOCK, &blocked, NULL);
    raise(SIGTRAP);
    int seen = look_at(scene->pinned);
    printf("neighbour %d, steps %d\n", seen, steps); /* blocked: none */
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    printf("blocked %d\n", sigismember(&now, SIGTRAP));
    pthread_sigmask(SIG_UNBLOCK, &blocked, NULL);
    printf("steps %d\n", steps);
    printf("neighbour %d\n", look_at(scene->pinned));
    raise(SIGTRAP);
    printf("steps %d\n", steps);
    cuStreamSynchronize(scene->first);
}

/* A fault of the program's own, with a trap set: it ends the process as ever. */
void null_read(struct scene *scene)
{
    copy_out(scene);
    fflush(stdout);
    look_at(*(unsigned char *volatile *)&(unsigned char *){ NULL });
}

/* A fault while its signal is blocked would kill the process. */
void blocked_signals(struct scene *scene)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    copy_out(scene);
    printf("early %d\n", look_at(scene->pinned));
    cuStreamSynchronize(scene->first);
    pthread_sigmask(SIG_UNBLOCK, &all, &before);
    printf("was blocked %d\n", sigismember(&before, SIGSEGV));
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    printf("is blocked %d\n", sigismember(&before, SIGSEGV));
}

/* The signal is taken by a system call, which cannot be seen. */
void signal_taken(struct scene *scene)
{
    struct {
        void (*handler)(int);
        unsigned long flags;
        void (*restorer)(void);
        unsigned long mask;
    } normal = { SIG_DFL, 0, NULL, 0 };
    copy_out(scene);
    cuStreamSynchronize(scene->first);
    syscall(SYS_rt_sigaction, SIGSEGV, &normal, NULL, sizeof(normal.mask));
    copy_out(scene);
    printf("early %d\n", look_at(scene->pinned));
    cuStreamSynchronize(scene->first);
}

/* ---- Threads and processes ------------------------------------------------------------------ */

enum { READERS = 8, ROUNDS = 50 };

static pthread_barrier_t ready, done;

static void *read_often(void *context)
{
    const struct scene *scene = context;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(&ready);
        look_at(scene->pinned + (i % 16) * PAGE);
        pthread_barrier_wait(&done);
    }
    return NULL;
}

/* All of them too early, at once. */
void trap_crowd(struct scene *scene)
{
    pthread_t readers[READERS];
    pthread_barrier_init(&ready, NULL, READERS + 1);
    pthread_barrier_init(&done, NULL, READERS + 1);
    for (int i = 0; i < READERS; i++)
        pthread_create(&readers[i], NULL, read_often, scene);
    for (int i = 0; i < ROUNDS; i++) {
        copy_out(scene);
        pthread_barrier_wait(&ready);
        pthread_barrier_wait(&done);
        cuStreamSynchronize(scene->first);
    }
    for (int i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    printf("all read\n");
}

/* The child's memory is not the device's. */
void forked(struct scene *scene)
{
    int state = 1;
    copy_out(scene);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(look_at(scene->pinned + PAGE) == 0 ? 0 : 2);
    waitpid(child, &state, 0);
    cuStreamSynchronize(scene->first);
    printf("child %d\n", WIFEXITED(state) ? WEXITSTATUS(state) : -1);
}

/* ---- System calls --------------------------------------------------------------------------- */

static int own_file(void)
{
    FILE *file = tmpfile();
    return file ? fileno(file) : -1;
}

void early_system_write(struct scene *scene)
{
    int file = own_file();
    copy_out(scene);
    printf("written %zd\n", write(file, scene->pinned, BYTES));
    cuStreamSynchronize(scene->first);
}

void late_system_read(struct scene *scene)
{
    static const unsigned char bytes[100];
    int file = own_file();
    if (write(file, bytes, sizeof(bytes)) != (ssize_t)sizeof(bytes))
        return;
    cuMemcpyHtoDAsync_v2(scene->a, scene->pinned, BYTES, scene->first);
    /* At the end of the file nothing is read, and nothing is wrong. */
    printf("at the end %zd\n", read(file, scene->pinned, BYTES));
    printf("read %zd\n", pread(file, scene->pinned, BYTES, 0));
    cuStreamSynchronize(scene->first);
}

void early_file_write(struct scene *scene)
{
    FILE *file = tmpfile();
    copy_out(scene);
    printf("written %zu\n", file ? fwrite(scene->pinned, 1, BYTES, file) : 0);
    cuStreamSynchronize(scene->first);
}

/* Into and out of the bytes next to the copy's, and from its source. */
void neighbour_system_calls(struct scene *scene)
{
    int file = own_file();
    cuMemcpyDtoHAsync_v2(scene->pinned + 1000, scene->a, PAGE, scene->first);
    cuMemcpyHtoDAsync_v2(scene->b, scene->pinned + 4 * PAGE, PAGE, scene->first);
    printf("written %zd\n", write(file, scene->pinned, 1000));
    printf("written %zd\n", write(file, scene->pinned + 4 * PAGE, PAGE));
    printf("read %zd\n", pread(file, scene->pinned + 1000 + PAGE, 500, 0));
    cuStreamSynchronize(scene->first);
}

void ring(struct scene *scene)
{
    copy_out(scene);
    printf("ring %ld\n", syscall(SYS_io_uring_setup, 0, NULL) < 0 ? -1L : 0L);
    printf("early %d\n", look_at(scene->pinned));
    cuStreamSynchronize(scene->first);
}
