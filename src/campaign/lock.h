/* lock.h - one audit per device at a time, one process per audit's folder, and an environment in
 * which a device's runtime does one thing after another. */
#ifndef GRETA_CAMPAIGN_LOCK_H
#define GRETA_CAMPAIGN_LOCK_H

#include "campaign/identity.h"

/* Held until device_lock_release or until the process is gone. */
struct device_lock {
    int file; /* -1: not held */
};

/* STATUS_BUSY with the holder's process where another audit has it. Initialises *lock whatever the
 * outcome. */
MUST_CHECK enum status device_lock_take(struct device_lock *lock, const char *folder,
                                        const struct identity *identity, struct error *err);
void device_lock_release(struct device_lock *lock);

/* Says that a process works in an audit's folder: FOLDER/lock. Held until folder_lock_release,
 * which removes the file, or until the process is gone. */
struct folder_lock {
    int folder, file; /* -1: not held */
};

/* STATUS_BUSY with the holder's process where another one has it. Initialises *lock whatever the
 * outcome. */
MUST_CHECK enum status folder_lock_take(struct folder_lock *lock, const char *path,
                                        struct error *err);
/* The same of an open folder, which stays the caller's; path is for errors. */
MUST_CHECK enum status folder_lock_take_in(struct folder_lock *lock, int folder, const char *path,
                                           struct error *err);
void folder_lock_release(struct folder_lock *lock);
/* The process that works in the open folder; 0: none. */
uint64_t folder_lock_holder(int folder);

/* "NAME=value" of everything that makes the runtimes serialise; ends in NULL. */
extern const char *const lock_environment[];

/* environment with lock_environment in place of variables of the same names; the caller's (free),
 * its texts borrowed. NULL without memory. */
const char **lock_environment_join(const char *const *environment);

#endif
