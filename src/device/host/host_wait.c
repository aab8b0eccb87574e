/* host_wait.c - see host_wait.h. */
#define _GNU_SOURCE /* syscall */
#include "device/host/host_wait.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* About 20 us: longer than the gap between two launches, shorter than a time slice. */
#define SPIN_LIMIT 2000
/* A thread that may yield does so after about 4 us. */
#define YIELD_FROM 400
#define YIELD_EVERY 100

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

void host_word_wake(struct host_word *word)
{
    if (__atomic_load_n(&word->sleepers, __ATOMIC_SEQ_CST))
        syscall(SYS_futex, &word->value, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void host_word_bump(struct host_word *word)
{
    host_word_add(word, 1);
    host_word_wake(word);
}

void host_word_wait(struct host_word *word, uint32_t seen, enum host_patience patience)
{
    int spins = patience == HOST_WAIT_SLEEPING ? 0 : SPIN_LIMIT;
    for (int i = 0; i < spins; i++) {
        if (host_word_load(word) != seen)
            return;
        if (patience == HOST_WAIT_GIVING_WAY && i >= YIELD_FROM && i % YIELD_EVERY == 0)
            sched_yield();
        else
            relax();
    }
    /* The kernel compares again: a change between our look and the sleep is not missed. */
    __atomic_add_fetch(&word->sleepers, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&word->value, __ATOMIC_SEQ_CST) == seen)
        syscall(SYS_futex, &word->value, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
    __atomic_sub_fetch(&word->sleepers, 1, __ATOMIC_SEQ_CST);
}
