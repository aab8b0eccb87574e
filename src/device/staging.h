/* staging.h - slots of host memory through which all bytes to and from the device go.
 *
 *     free --take--> filling (copy in) --queued--> leaving --mark passed--> free
 *     free --take--> landing (copy out, queued) --redeem--> held --release--> free
 *
 * A slot of a copy in belongs to whoever fills it until it is queued, then to the queue until its
 * mark is passed; one of a copy out belongs to its ticket until that is released. Nobody waits for
 * a ticket of his own: with all slots held a copy is told to come back later.
 *
 * Pinned memory takes milliseconds to make: where nobody said how many slots he wants, most get
 * theirs when they are wanted for the first time. One that cannot have any is not used. */
#ifndef GRETA_DEVICE_STAGING_H
#define GRETA_DEVICE_STAGING_H

#include "device/device_core.h"

enum staging_state {
    STAGING_FREE,
    STAGING_FILLING,
    STAGING_LEAVING,
    STAGING_LANDING,
    STAGING_HELD,
    STAGING_UNUSABLE
};

struct staging_slot {
    enum staging_state state;
    uint32_t generation;          /* odd while taken */
    void *memory;                 /* staging_slot_bytes of it; NULL: not made yet */
    void *mark;                   /* the backend's: passed when the queued copy is done */
    uint64_t bytes;               /* of the copy */
    uint64_t event_id;            /* of the copy */
    uint32_t stream_index;        /* of a copy in; where somebody listens */
    const void *stream;           /* of a copy in that is queued: the backend's, compared only */
    uint64_t order;               /* of taking: the smallest is the oldest */
    struct transfer_check *check; /* of a copy out that is verified and was not read yet */
};

/* A free slot, now in `state`: STAGING_FILLING or STAGING_LANDING. If none is free: waits for the
 * oldest copy in, or NULL where all belong to tickets (*ret_in_use of them). Who fills slots
 * already does not wait, so that he goes on with those: NULL then. stream: of a copy in, the
 * backend's: its own earlier copies are asked and waited for before those of others, so that
 * threads with a stream each do not all ask for the same. NULL: of none. */
struct staging_slot *staging_take(struct device *device, enum staging_state state,
                                  const void *stream, bool waits, uint32_t *ret_in_use);
/* The copy in from a filled slot is queued, and its mark behind it. */
void staging_queued(struct device *device, struct staging_slot *slot);
void staging_give_back(struct device *device, struct staging_slot *slot);

struct device_ticket staging_ticket(const struct device *device, const struct staging_slot *slot);
/* The slot of a ticket, or NULL. */
struct staging_slot *staging_find(struct device *device, struct device_ticket ticket);
/* Changes landing to held; false if it was not landing. */
bool staging_hold(struct device *device, struct staging_slot *slot);

#endif
