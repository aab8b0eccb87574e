/* late.h - work that lies in a stream until somebody waits for it, as on a GPU that is slow: what
 * is freed, overwritten or read too early is then always too early. FAKE_GPU_LATE turns it on. With
 * FAKE_GPU_ADVERSE (adverse.h) other streams' work is done in between. */
#ifndef GRETA_TESTS_FAKE_GPU_LATE_H
#define GRETA_TESTS_FAKE_GPU_LATE_H

#include <stdbool.h>
#include <stdint.h>

struct late_queue {
    struct late_work *first, *last;
    uint64_t given, done;
    uint64_t waits;          /* so far: of the queue for a mark, and of the host for the queue */
    bool is_waiting;         /* its first item is a wait for a mark that has not been reached */
    int device;              /* whose late_do_all does it */
    struct late_queue *next; /* of all: a queue is never freed, marks may name it */
};

/* A place in a queue; nowhere: nothing to wait for. */
struct late_mark {
    struct late_queue *queue;
    uint64_t place;
};

bool late_wanted(void);
void late_add_queue(struct late_queue *queue, int device); /* all zeros */
/* run(work), then free(work), when it is waited for. False: no memory; work is the caller's. */
bool late_give(struct late_queue *queue, void (*run)(void *work), void *work);
/* What is given to the queue from now on comes after the mark. */
bool late_give_wait(struct late_queue *queue, const struct late_mark *mark);
void late_place_mark(struct late_queue *queue, struct late_mark *ret_mark);

/* These do the work. */
void late_do_mark(const struct late_mark *mark);
void late_do_queue(struct late_queue *queue);
void late_do_all(int device);

#endif
