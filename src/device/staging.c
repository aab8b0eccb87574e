/* staging.c - see staging.h. Takes its own lock; calls the common layer only to report events. */
#include "device/staging.h"

#include <inttypes.h>
#include <stdlib.h>

struct device_staging_ring {
    pthread_mutex_t lock;   /* guards the states, generations and orders of the slots */
    pthread_cond_t changed; /* a slot that somebody filled is queued or given back */
    struct staging_slot *slots;
    uint32_t count;
    uint64_t next_order;
    struct staging_slot *last; /* given out; NULL: none yet */
};

/* Slots that get their memory at open: what a loop of small copies needs, and enough to find out
 * that such memory is available. */
#define MADE_AT_ONCE 2u

static enum status make_memory(struct device *device, struct staging_slot *slot, struct error *err)
{
    return device->methods->staging_create(device, device->options.staging_slot_bytes,
                                           &slot->memory, err);
}

enum status staging_create(struct device *device, struct error *err)
{
    struct device_staging_ring *ring = calloc(1, sizeof(*ring));
    uint32_t count = device->options.staging_slot_count;
    if (ring)
        ring->slots = calloc(count, sizeof(*ring->slots));
    if (!ring || !ring->slots) {
        free(ring);
        return error_set(err, STATUS_NO_MEMORY, "no memory for staging");
    }
    pthread_mutex_init(&ring->lock, NULL);
    pthread_cond_init(&ring->changed, NULL);
    device->staging = ring;
    enum status status = STATUS_OK;
    while (ring->count < count && !status) {
        struct staging_slot *slot = &ring->slots[ring->count++];
        staging_view_create(device, slot);
        if (ring->count <= MADE_AT_ONCE || !device->staging_late)
            status = make_memory(device, slot, err);
        if (!status)
            status = device->methods->mark_create(device, &slot->mark, err);
    }
    if (status)
        staging_destroy(device);
    return status;
}

void staging_destroy(struct device *device)
{
    struct device_staging_ring *ring = device->staging;
    if (!ring)
        return;
    for (uint32_t i = 0; i < ring->count; i++) {
        struct staging_slot *slot = &ring->slots[i];
        staging_view_destroy(device, slot);
        if (slot->mark)
            device->methods->mark_destroy(device, slot->mark);
        if (slot->memory)
            device->methods->staging_destroy(device, slot->memory,
                                             device->options.staging_slot_bytes);
    }
    pthread_cond_destroy(&ring->changed);
    pthread_mutex_destroy(&ring->lock);
    free(ring->slots);
    free(ring);
    device->staging = NULL;
}

/* With the lock held: of the stream's copies in the one that was queued first. NULL: none. */
static struct staging_slot *find_own_leaving(const struct device_staging_ring *ring,
                                             const void *stream)
{
    struct staging_slot *oldest = NULL;
    for (uint32_t i = 0; stream && i < ring->count; i++) {
        struct staging_slot *slot = &ring->slots[i];
        if (slot->state == STAGING_LEAVING && slot->stream == stream &&
            (!oldest || slot->order < oldest->order))
            oldest = slot;
    }
    return oldest;
}

/* With the lock held: of the slots queued after `after` (NULL: of all), the one whose copy in was
 * queued first; NULL if there is none. */
static struct staging_slot *find_oldest_leaving(const struct device_staging_ring *ring,
                                                const struct staging_slot *after)
{
    struct staging_slot *oldest = NULL;
    for (uint32_t i = 0; i < ring->count; i++) {
        struct staging_slot *slot = &ring->slots[i];
        if (slot->state == STAGING_LEAVING && (!after || slot->order > after->order) &&
            (!oldest || slot->order < oldest->order))
            oldest = slot;
    }
    return oldest;
}

/* With the lock held: a slot whose copy is done although that of `oldest` is not. Copies of the
 * same stream as `oldest` cannot be done before it and are not checked. */
static struct staging_slot *find_left(struct device *device, const struct staging_slot *oldest)
{
    struct staging_slot *slot = find_oldest_leaving(device->staging, oldest);
    while (slot &&
           (slot->stream == oldest->stream || !device->methods->mark_passed(device, slot->mark)))
        slot = find_oldest_leaving(device->staging, slot);
    return slot;
}

/* With the lock held: a free slot, first of those that have memory. */
static struct staging_slot *find_unused(const struct device_staging_ring *ring)
{
    struct staging_slot *found = NULL;
    for (uint32_t i = 0; i < ring->count; i++) {
        struct staging_slot *slot = &ring->slots[i];
        if (slot->state == STAGING_FREE && (!found || (slot->memory && !found->memory)))
            found = slot;
    }
    return found;
}

/* With the lock held. The oldest copy is checked first: no other of its stream is done before it,
 * and if copies are few and small its memory is still in the caches. A stream with copies in flight
 * leaves the slots of other streams to them. */
static struct staging_slot *find_free(struct device *device, const void *stream)
{
    struct device_staging_ring *ring = device->staging;
    struct staging_slot *own = find_own_leaving(ring, stream);
    struct staging_slot *oldest = own ? own : find_oldest_leaving(ring, NULL);
    if (!oldest || !device->methods->mark_passed(device, oldest->mark)) {
        struct staging_slot *slot = find_unused(ring);
        if (slot)
            return slot;
        oldest = oldest && !own ? find_left(device, oldest) : NULL;
        if (!oldest)
            return NULL;
    }
    if (device->completions_lag &&
        (device->options.completions || device->options.copy_completions))
        device_report_completion(device, oldest->stream_index, oldest->event_id);
    oldest->state = STAGING_FREE;
    oldest->generation++;
    return oldest;
}

static bool is_any_filling(const struct device_staging_ring *ring)
{
    for (uint32_t i = 0; i < ring->count; i++)
        if (ring->slots[i].state == STAGING_FILLING)
            return true;
    return false;
}

/* A planted bug: the slot that was given out last, once more; else NULL. */
static struct staging_slot *take_again(struct device *device)
{
    const struct device_tamper *tamper = &device->tamper;
    if (!tamper->take_again || !tamper->take_again(tamper->context))
        return NULL;
    pthread_mutex_lock(&device->staging->lock);
    struct staging_slot *last = device->staging->last;
    pthread_mutex_unlock(&device->staging->lock);
    return last;
}

static struct staging_slot *take(struct device *device, enum staging_state state,
                                 const void *stream, bool waits, uint32_t *ret_in_use)
{
    struct device_staging_ring *ring = device->staging;
    struct error unused;
    struct staging_slot *slot;
    pthread_mutex_lock(&ring->lock);
    while (!(slot = find_free(device, stream)) && waits) {
        struct staging_slot *own = find_own_leaving(ring, stream);
        struct staging_slot *oldest = own ? own : find_oldest_leaving(ring, NULL);
        if (!oldest && !is_any_filling(ring))
            break;
        if (!oldest) {
            pthread_cond_wait(&ring->changed, &ring->lock);
            continue;
        }
        void *mark = oldest->mark;
        pthread_mutex_unlock(&ring->lock);
        /* A failure means that the device is lost. */
        enum status status = device->methods->mark_sync(device, mark, &unused);
        pthread_mutex_lock(&ring->lock);
        if (status)
            break;
    }
    *ret_in_use = ring->count;
    if (slot) {
        staging_view_close(device, slot);
        slot->state = state;
        slot->generation++;
        slot->order = ring->next_order++;
        ring->last = slot;
    }
    pthread_mutex_unlock(&ring->lock);
    return slot;
}

struct staging_slot *staging_take(struct device *device, enum staging_state state,
                                  const void *stream, bool waits, uint32_t *ret_in_use)
{
    struct device_staging_ring *ring = device->staging;
    struct error unused;
    struct staging_slot *slot = take_again(device);
    if (slot)
        return slot;
    /* Without the lock: others need not wait for the memory. */
    while ((slot = take(device, state, stream, waits, ret_in_use)) && !slot->memory &&
           make_memory(device, slot, &unused)) {
        pthread_mutex_lock(&ring->lock);
        slot->state = STAGING_UNUSABLE;
        slot->generation++;
        pthread_cond_broadcast(&ring->changed);
        pthread_mutex_unlock(&ring->lock);
    }
    return slot;
}

void staging_queued(struct device *device, struct staging_slot *slot)
{
    pthread_mutex_lock(&device->staging->lock);
    if (slot->state == STAGING_FILLING) /* else it was given out twice: a planted bug */
        slot->state = STAGING_LEAVING;
    pthread_cond_broadcast(&device->staging->changed);
    pthread_mutex_unlock(&device->staging->lock);
}

void staging_give_back(struct device *device, struct staging_slot *slot)
{
    pthread_mutex_lock(&device->staging->lock);
    ASSERT(slot->state != STAGING_FREE);
    staging_view_close(device, slot);
    slot->state = STAGING_FREE;
    slot->generation++;
    pthread_cond_broadcast(&device->staging->changed);
    pthread_mutex_unlock(&device->staging->lock);
}

struct device_ticket staging_ticket(const struct device *device, const struct staging_slot *slot)
{
    return (struct device_ticket){ (uint32_t)(slot - device->staging->slots) + 1,
                                   slot->generation };
}

struct staging_slot *staging_find(struct device *device, struct device_ticket ticket)
{
    struct device_staging_ring *ring = device->staging;
    if (ticket.index == 0 || ticket.index > ring->count || ticket.generation % 2 == 0)
        return NULL;
    struct staging_slot *slot = &ring->slots[ticket.index - 1];
    pthread_mutex_lock(&ring->lock);
    bool same = slot->generation == ticket.generation &&
                (slot->state == STAGING_LANDING || slot->state == STAGING_HELD);
    pthread_mutex_unlock(&ring->lock);
    return same ? slot : NULL;
}

bool staging_hold(struct device *device, struct staging_slot *slot)
{
    pthread_mutex_lock(&device->staging->lock);
    bool landing = slot->state == STAGING_LANDING;
    if (landing)
        slot->state = STAGING_HELD;
    pthread_mutex_unlock(&device->staging->lock);
    return landing;
}
