/* late.c - queues of work, and doing it in order. */
#include "late.h"

#include "adverse.h"

#include <pthread.h>
#include <stdlib.h>

struct late_work {
    void (*run)(void *work); /* NULL: the queue waits for a mark */
    void *work;
    struct late_mark mark;
    struct late_work *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* held while work is done */
static struct late_queue *queues;

bool late_wanted(void)
{
    static int wanted = -1;
    if (wanted < 0)
        wanted = getenv("FAKE_GPU_LATE") != NULL;
    return wanted;
}

void late_add_queue(struct late_queue *queue, int device)
{
    queue->device = device;
    pthread_mutex_lock(&lock);
    queue->next = queues;
    queues = queue;
    pthread_mutex_unlock(&lock);
}

static bool append(struct late_queue *queue, struct late_work item)
{
    struct late_work *kept = malloc(sizeof(*kept));
    if (!kept)
        return false;
    *kept = item;
    pthread_mutex_lock(&lock);
    if (queue->last)
        queue->last->next = kept;
    else
        queue->first = kept;
    queue->last = kept;
    queue->given++;
    pthread_mutex_unlock(&lock);
    return true;
}

bool late_give(struct late_queue *queue, void (*run)(void *work), void *work)
{
    return append(queue, (struct late_work){ .run = run, .work = work });
}

bool late_give_wait(struct late_queue *queue, const struct late_mark *mark)
{
    return append(queue, (struct late_work){ .mark = *mark });
}

void late_place_mark(struct late_queue *queue, struct late_mark *ret_mark)
{
    pthread_mutex_lock(&lock);
    *ret_mark = (struct late_mark){ queue, queue->given };
    pthread_mutex_unlock(&lock);
}

static void do_until(struct late_queue *queue, uint64_t place);

static struct late_work *take_first(struct late_queue *queue)
{
    struct late_work *item = queue->first;
    queue->first = item->next;
    if (!queue->first)
        queue->last = NULL;
    queue->done++;
    return item;
}

/* The wait stays the first of its queue until the mark is reached: what comes after it must not run
 * before. Reaching the mark may have needed this queue too, which then has passed the wait. */
static void pass_wait(struct late_queue *queue)
{
    const struct late_work *wait = queue->first;
    struct late_mark mark = wait->mark;
    bool was_waiting = queue->is_waiting;
    queue->is_waiting = true;
    if (mark.queue)
        do_until(mark.queue, mark.place);
    queue->is_waiting = was_waiting;
    if (queue->first != wait)
        return;
    queue->waits++;
    free(take_first(queue));
}

static void do_one(struct late_queue *queue)
{
    if (!queue->first->run) {
        pass_wait(queue);
        return;
    }
    struct late_work *item = take_first(queue);
    item->run(item->work);
    free(item->work);
    free(item);
}

/* Some work of queues that the caller does not wait for. A queue that waits for a mark is left
 * alone: its next item comes after the mark. */
static void do_others(void)
{
    for (struct late_queue *other = queues; other; other = other->next)
        while (!other->is_waiting && other->first && adverse_chance(3))
            do_one(other);
}

/* With the lock held. A mark is placed before it is waited for, so no two queues wait for each
 * other; the work is taken out first all the same, and done once. */
static void do_until(struct late_queue *queue, uint64_t place)
{
    while (queue->done < place) {
        if (adverse_wanted())
            do_others();
        if (queue->done >= place)
            break;
        if (!queue->first)
            abort(); /* a mark after the last work given */
        do_one(queue);
    }
}

void late_do_mark(const struct late_mark *mark)
{
    pthread_mutex_lock(&lock);
    if (mark->queue) {
        do_until(mark->queue, mark->place);
        mark->queue->waits++;
    }
    pthread_mutex_unlock(&lock);
}

void late_do_queue(struct late_queue *queue)
{
    pthread_mutex_lock(&lock);
    do_until(queue, queue->given);
    queue->waits++;
    pthread_mutex_unlock(&lock);
}

void late_do_all(int device)
{
    pthread_mutex_lock(&lock);
    for (struct late_queue *queue = queues; queue; queue = queue->next)
        if (queue->device == device)
            do_until(queue, queue->given);
    pthread_mutex_unlock(&lock);
}
