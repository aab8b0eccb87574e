/* staging.c - see staging.h. Takes its own lock; of the common layer it calls only what tells. */
#include "device/staging.h"

#include <inttypes.h>
#include <stdlib.h>

struct device_staging_ring {
    pthread_mutex_t lock; /* guards the states, generations and orders of the slots */
    struct staging_slot *slots;
    uint32_t count;
    uint64_t next_order;
    struct staging_slot *last; /* given out; NULL: none yet */
};

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
    device->staging = ring;
    enum status status = STATUS_OK;
    while (ring->count < count && !status) {
        struct staging_slot *slot = &ring->slots[ring->count];
        status = device->methods->staging_create(device, device->options.staging_slot_bytes,
                                                 &slot->memory, err);
        if (!status) {
            status = device->methods->mark_create(device, &slot->mark, err);
            ring->count++;
        }
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
        if (slot->mark)
            device->methods->mark_destroy(device, slot->mark);
        device->methods->staging_destroy(device, slot->memory, device->options.staging_slot_bytes);
    }
    pthread_mutex_destroy(&ring->lock);
    free(ring->slots);
    free(ring);
    device->staging = NULL;
}

/* With the lock held. */
static struct staging_slot *find_free(struct device *device)
{
    struct device_staging_ring *ring = device->staging;
    for (uint32_t i = 0; i < ring->count; i++) {
        struct staging_slot *slot = &ring->slots[i];
        if (slot->state == STAGING_FREE)
            return slot;
        if (slot->state == STAGING_FILLING && device->methods->mark_passed(device, slot->mark)) {
            if (device->completions_lag &&
                (device->options.completions || device->options.copy_completions))
                device_report_completion(device, slot->stream_index, slot->event_id);
            slot->state = STAGING_FREE;
            slot->generation++;
            return slot;
        }
    }
    return NULL;
}

static struct staging_slot *find_oldest_filling(struct device_staging_ring *ring)
{
    struct staging_slot *oldest = NULL;
    for (uint32_t i = 0; i < ring->count; i++) {
        struct staging_slot *slot = &ring->slots[i];
        if (slot->state == STAGING_FILLING && (!oldest || slot->order < oldest->order))
            oldest = slot;
    }
    return oldest;
}

struct staging_slot *staging_take(struct device *device, enum staging_state state,
                                  uint32_t *ret_in_use)
{
    struct device_staging_ring *ring = device->staging;
    struct error unused;
    const struct device_tamper *tamper = &device->tamper;
    if (tamper->take_again && tamper->take_again(tamper->context)) {
        pthread_mutex_lock(&ring->lock);
        struct staging_slot *last = ring->last;
        pthread_mutex_unlock(&ring->lock);
        if (last)
            return last;
    }
    for (;;) {
        pthread_mutex_lock(&ring->lock);
        struct staging_slot *slot = find_free(device);
        if (slot) {
            slot->state = state;
            slot->generation++;
            slot->order = ring->next_order++;
            ring->last = slot;
            pthread_mutex_unlock(&ring->lock);
            return slot;
        }
        struct staging_slot *oldest = find_oldest_filling(ring);
        void *mark = oldest ? oldest->mark : NULL;
        *ret_in_use = ring->count;
        pthread_mutex_unlock(&ring->lock);
        if (!mark)
            return NULL;
        /* A failure here is a lost device; its marks count as passed. */
        if (device->methods->mark_sync(device, mark, &unused))
            return NULL;
    }
}

void staging_give_back(struct device *device, struct staging_slot *slot)
{
    pthread_mutex_lock(&device->staging->lock);
    ASSERT(slot->state != STAGING_FREE);
    slot->state = STAGING_FREE;
    slot->generation++;
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
    bool same = slot->generation == ticket.generation && slot->state != STAGING_FILLING;
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
