/* host_wait.h - waiting for a word to change: a short spin, then sleep.
 *
 * Spinning bridges the microseconds between two launches. Sleeping gives the processor to other
 * threads, one of which may be the thread that is waited for. */
#ifndef GRETA_DEVICE_HOST_HOST_WAIT_H
#define GRETA_DEVICE_HOST_HOST_WAIT_H

#include <stdbool.h>
#include <stdint.h>

/* A word and the number of threads that sleep on it. */
struct host_word {
    uint32_t value;    /* atomic; any change counts */
    uint32_t sleepers; /* atomic */
};

static inline uint32_t host_word_load(const struct host_word *word)
{
    return __atomic_load_n(&word->value, __ATOMIC_ACQUIRE);
}

/* Changes the word and wakes all threads that wait for it. They see all earlier writes. */
void host_word_bump(struct host_word *word);

/* The two halves of host_word_bump, for a word that counts: adds to it and returns the new value;
 * wakes the waiters. */
static inline uint32_t host_word_add(struct host_word *word, uint32_t count)
{
    return __atomic_add_fetch(&word->value, count, __ATOMIC_SEQ_CST);
}
void host_word_wake(struct host_word *word);

/* How to wait. */
enum host_patience {
    HOST_WAIT_SPINNING,   /* spin briefly, then sleep */
    HOST_WAIT_GIVING_WAY, /* the same, but yields the processor between looks. That may cost a time
                             slice: not for a thread that all others wait for */
    HOST_WAIT_SLEEPING,   /* a long wait is expected: sleep at once */
};

/* Returns when the word is no longer `seen`; may return early. */
void host_word_wait(struct host_word *word, uint32_t seen, enum host_patience patience);

#endif
