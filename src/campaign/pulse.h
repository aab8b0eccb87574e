/* pulse.h - the worker's sign of life: a thread that checks whether anything moves and reports it
 * to the auditor.
 *
 * While the device works, crumbs that move are life; a prefill of many launches is one call and one
 * token, and moves all the time. A wait that spins uses the processor and is no progress, so the
 * processor counts only while the host works by itself: it opens the device, loads the model, reads
 * weights, analyses what is left. That may take long, but not for ever. */
#ifndef GRETA_CAMPAIGN_PULSE_H
#define GRETA_CAMPAIGN_PULSE_H

#include "base/status.h"
#include "event/crumb_watch.h"

struct device;
struct pulse;

/* What one look sees. */
struct pulse_sight {
    uint64_t now_ns;
    bool on_device;                  /* iterations run; else the host works */
    const struct crumb_page *crumbs; /* NULL: no device is open */
    uint64_t processor_ns, reads;    /* of the process so far */
};

struct pulse_watch {
    struct crumb_watch crumbs;
    uint64_t processor_ns, reads;
    uint64_t host_only_ns; /* how long the host's own work has been the only sign of life */
    uint64_t patience_ns;  /* how long that counts as life */
};

/* True if the worker is alive. */
bool pulse_is_alive(struct pulse_watch *watch, const struct pulse_sight *sight);

/* Called from the thread when something has moved, and at every later look until it returns true
 * (the auditor was informed). */
struct pulse_listener {
    bool (*beat)(void *context, const struct pulse_watch *watch, bool on_device);
    void *context;
};

/* limit_ns: silence for longer is a hang. NULL if the thread cannot be started; then fewer signs of
 * life are reported.
 */
struct pulse *pulse_start(uint64_t limit_ns, struct pulse_listener listener);
void pulse_stop(struct pulse *pulse); /* NULL is fine */
/* Sets the device to watch. Set it to NULL before the device is closed. */
void pulse_set_device(struct pulse *pulse, struct device *device);
void pulse_set_phase(struct pulse *pulse, bool on_device);

#endif
