/* pulse.c - see pulse.h. */
#include "campaign/pulse.h"

#include "base/clock.h"
#include "device/device.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

/* Looks within the limit. */
#define LOOKS 16u
#define LOOK_LEAST_NS UINT64_C(10000000)
#define LOOK_MOST_NS UINT64_C(200000000) /* what time between looks counts for at most */
/* A process works that uses at least this part of a processor: the looks themselves use less. */
#define BUSY_PART 20u
/* The host works by itself for so many limits, then it is silence. */
#define PATIENCE_LIMITS 20u

struct pulse {
    struct pulse_listener listener;
    uint64_t look_ns;
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t stopped;
    bool stopping, on_device;
    struct device *device;
    struct pulse_watch watch; /* of the thread */
};

bool pulse_is_alive(struct pulse_watch *watch, const struct pulse_sight *sight)
{
    static const struct crumb_page none;
    uint64_t before_ns = watch->crumbs.stall.looked_ns;
    bool moved = crumb_watch_look(&watch->crumbs, sight->crumbs ? sight->crumbs : &none, false,
                                  sight->now_ns);
    uint64_t gap_ns = before_ns && sight->now_ns > before_ns ? sight->now_ns - before_ns : 0;
    bool works = sight->processor_ns - watch->processor_ns > gap_ns / BUSY_PART ||
                 sight->reads != watch->reads;
    watch->processor_ns = sight->processor_ns;
    watch->reads = sight->reads;
    if (moved || sight->on_device) {
        watch->host_only_ns = 0;
        return moved;
    }
    watch->host_only_ns += gap_ns;
    return works && watch->host_only_ns <= watch->patience_ns;
}

static uint64_t ns_of(const struct timeval *time)
{
    return (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_usec * 1000u;
}

/* Processor time; pages that came from a file and blocks that were read. */
static void add_usage(struct pulse_sight *sight)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0)
        return;
    sight->processor_ns = ns_of(&usage.ru_utime) + ns_of(&usage.ru_stime);
    sight->reads = (uint64_t)usage.ru_majflt + (uint64_t)usage.ru_inblock;
}

/* Sleeps; true when asked to stop. The lock is held. */
static bool pause_for(struct pulse *pulse)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t ns = (uint64_t)until.tv_nsec + pulse->look_ns;
    until.tv_sec += (time_t)(ns / 1000000000u);
    until.tv_nsec = (long)(ns % 1000000000u);
    while (!pulse->stopping && pthread_cond_timedwait(&pulse->stopped, &pulse->lock, &until) == 0)
        ;
    return pulse->stopping;
}

static void *run(void *argument)
{
    struct pulse *pulse = argument;
    bool unreported = false;
    pthread_mutex_lock(&pulse->lock);
    while (!pause_for(pulse)) {
        struct pulse_sight sight = { .now_ns = clock_ns(), .on_device = pulse->on_device };
        add_usage(&sight);
        if (pulse->device) /* the lock is held: it stays open meanwhile */
            sight.crumbs = device_show_crumbs(pulse->device);
        unreported = pulse_is_alive(&pulse->watch, &sight) || unreported;
        if (unreported)
            unreported = !pulse->listener.beat(pulse->listener.context, &pulse->watch,
                                               sight.on_device);
    }
    pthread_mutex_unlock(&pulse->lock);
    return NULL;
}

struct pulse *pulse_start(uint64_t limit_ns, struct pulse_listener listener)
{
    struct pulse *pulse = calloc(1, sizeof(*pulse));
    if (!pulse)
        return NULL;
    pulse->listener = listener;
    pulse->look_ns = limit_ns / LOOKS;
    if (pulse->look_ns < LOOK_LEAST_NS)
        pulse->look_ns = LOOK_LEAST_NS;
    if (pulse->look_ns > LOOK_MOST_NS)
        pulse->look_ns = LOOK_MOST_NS;
    pulse->watch.patience_ns = PATIENCE_LIMITS * limit_ns;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&pulse->stopped, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&pulse->lock, NULL);
    if (pthread_create(&pulse->thread, NULL, run, pulse) == 0)
        return pulse;
    pthread_cond_destroy(&pulse->stopped);
    pthread_mutex_destroy(&pulse->lock);
    free(pulse);
    return NULL;
}

void pulse_stop(struct pulse *pulse)
{
    if (!pulse)
        return;
    pthread_mutex_lock(&pulse->lock);
    pulse->stopping = true;
    pthread_cond_signal(&pulse->stopped);
    pthread_mutex_unlock(&pulse->lock);
    pthread_join(pulse->thread, NULL);
    pthread_cond_destroy(&pulse->stopped);
    pthread_mutex_destroy(&pulse->lock);
    free(pulse);
}

void pulse_set_device(struct pulse *pulse, struct device *device)
{
    if (!pulse)
        return;
    pthread_mutex_lock(&pulse->lock);
    pulse->device = device;
    pthread_mutex_unlock(&pulse->lock);
}

void pulse_set_phase(struct pulse *pulse, bool on_device)
{
    if (!pulse)
        return;
    pthread_mutex_lock(&pulse->lock);
    pulse->on_device = on_device;
    pthread_mutex_unlock(&pulse->lock);
}
