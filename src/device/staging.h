/* staging.h - slots of host memory through which all bytes to and from the device go.
 *
 *     free --take--> filling (copy in) --queued--> leaving --mark passed--> free
 *     free --take--> landing (copy out, queued) --redeem--> held --release--> free
 *
 * For a copy in, the slot belongs to the thread that fills it, and from queueing on to the queue,
 * until its mark is passed. For a copy out, it belongs to its ticket until that is released. A
 * caller never waits on its own ticket: when tickets hold all slots, a copy is refused with
 * STATUS_BUSY.
 *
 * Pinned memory takes milliseconds to make. Unless the caller chose the number of slots, most get
 * their memory at first use. A slot whose memory cannot be made is not used. */
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
    void *memory;                 /* staging_slot_bytes; NULL: not made yet */
    void *mark;                   /* of the backend; passed when the queued copy is done */
    uint64_t bytes;               /* of the copy */
    uint64_t event_id;            /* of the copy */
    uint32_t stream_index;        /* copy in only; set if there is an observer */
    const void *stream;           /* queued copy in: the backend's stream, only compared */
    uint64_t order;               /* in which slots were taken; the smallest is the oldest */
    struct transfer_check *check; /* copy out that is verified and not yet read */
    /* With guards: what callers read of a redeemed ticket. It is closed before that and after the
     * release, so that a pointer kept from an earlier ticket faults. NULL: they read `memory`. */
    void *view;
    uint32_t view_guard; /* its place in base/fault.h */
    struct device *device;
};

/* Takes a free slot and puts it into `state`: STAGING_FILLING or STAGING_LANDING. If none is free
 * and `waits`, waits for the oldest copy in. NULL if all slots belong to tickets (*ret_in_use of
 * them) or, without `waits`, if none is free: a caller that has slots already goes on with those.
 * stream: for a copy in, the backend's stream. Its own earlier copies are checked and waited for
 * first, so that threads with a stream each do not all wait for the same slot. May be NULL. */
struct staging_slot *staging_take(struct device *device, enum staging_state state,
                                  const void *stream, bool waits, uint32_t *ret_in_use);
/* Called when the copy in from a filled slot is queued, followed by its mark. */
void staging_queued(struct device *device, struct staging_slot *slot);
void staging_give_back(struct device *device, struct staging_slot *slot);

struct device_ticket staging_ticket(const struct device *device, const struct staging_slot *slot);
/* The slot of a ticket, or NULL. */
struct staging_slot *staging_find(struct device *device, struct device_ticket ticket);
/* The bytes of a slot whose copy out has landed, for the ticket's owner. */
const void *staging_show(struct device *device, struct staging_slot *slot);
/* Changes landing to held; false if it was not landing. */
bool staging_hold(struct device *device, struct staging_slot *slot);

#endif
