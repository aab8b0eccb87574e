/* lock.h - one audit per device at a time, and an environment in which its runtime does one thing
 * after another. */
#ifndef GRETA_CAMPAIGN_LOCK_H
#define GRETA_CAMPAIGN_LOCK_H

#include "campaign/identity.h"

/* Held until device_lock_release, or until the process is gone, however it went. */
struct device_lock {
    int file; /* -1: not held */
};

/* STATUS_BUSY with the holder's process where another audit has it. Initialises *lock whatever the
 * outcome. */
MUST_CHECK enum status device_lock_take(struct device_lock *lock, const char *folder,
                                        const struct identity *identity, struct error *err);
void device_lock_release(struct device_lock *lock);

/* "NAME=value" of everything that makes the runtimes serialise; ends in NULL. */
extern const char *const lock_environment[];

/* environment with lock_environment in place of variables of the same names; the caller's (free),
 * its texts borrowed. NULL without memory. */
const char **lock_environment_join(const char *const *environment);

#endif
