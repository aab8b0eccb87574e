/* hold.c - the work of a stream kept back, so that what must be in flight is, and a wakeup that
 * never comes, with a way out. All with the lock held.
 *
 * From the command that carries the fault on, everything given to its stream is kept in order, as
 * is everything of a stream that waits for a mark of it; it is given to the device when the fault
 * has done the rest, or when the host would wait for it. */
#include "inject/inject_impl.h"

#include "base/array.h"

#include <errno.h>
#include <time.h>

/* ---- Keeping back --------------------------------------------------------------------------- */

static bool keep(struct inject *inject, const struct inject_held *item)
{
    struct inject_held *held = array_reserve(inject->held, inject->held_count,
                                             &inject->held_capacity, sizeof(*held));
    if (!held) {
        inject_hold_flush(inject); /* no memory: go on without */
        return false;
    }
    inject->held = held;
    inject->held[inject->held_count++] = *item;
    return true;
}

bool inject_hold_has(const struct inject *inject, const void *stream)
{
    for (size_t i = 0; i < inject->held_stream_count; i++)
        if (inject->held_streams[i] == stream)
            return true;
    return false;
}

static void begin_hold(struct inject *inject, void *stream)
{
    if (!inject_hold_has(inject, stream) && inject->held_stream_count < CRUMB_STREAM_LIMIT)
        inject->held_streams[inject->held_stream_count++] = stream;
}

bool inject_hold_command(struct inject *inject, void *stream, const struct device_command *command)
{
    struct error unused;
    if (inject->hold_wanted && pthread_equal(inject->thread, pthread_self())) {
        inject->hold_wanted = false;
        /* What was given before is done: the fault is this command's, every time. */
        enum status status = inject->real->stream_sync(inject->device, stream, &unused);
        (void)status;
        begin_hold(inject, stream);
    }
    if (!inject_hold_has(inject, stream))
        return false;
    return keep(inject, &(struct inject_held){ INJECT_HELD_COMMAND, stream, *command, NULL });
}

bool inject_hold_mark(struct inject *inject, enum inject_held_kind kind, void *stream, void *mark)
{
    if (kind == INJECT_HELD_RECORD && inject->lose_wanted &&
        pthread_equal(inject->thread, pthread_self())) {
        inject->lose_wanted = false;
        inject->lost_mark = mark;
        inject->lost_stream = stream;
        return true;
    }
    /* Whoever waits for what does not come stands still from here on. */
    if (kind == INJECT_HELD_WAIT && inject_hold_pending(inject, mark))
        begin_hold(inject, stream);
    if (!inject_hold_has(inject, stream))
        return false;
    return keep(inject, &(struct inject_held){ .kind = kind, .stream = stream, .mark = mark });
}

void inject_hold_flush(struct inject *inject)
{
    struct device *device = inject->device;
    struct error unused;
    inject->hold_wanted = false;
    for (size_t i = 0; i < inject->held_count; i++) {
        struct inject_held *item = &inject->held[i];
        void *stream = item->stream;
        enum status status = STATUS_OK;
        switch (item->kind) {
        case INJECT_HELD_COMMAND:
            status = inject->real->submit(device, stream, &item->command, &unused);
            break;
        case INJECT_HELD_RECORD:
            status = inject->real->mark_record(device, stream, item->mark, &unused);
            break;
        case INJECT_HELD_WAIT:
            status = inject->real->mark_wait(device, stream, item->mark, &unused);
            break;
        }
        (void)status; /* a lost device says so at the next call */
    }
    inject->held_count = 0;
    inject->held_stream_count = 0;
}

/* ---- Waiting -------------------------------------------------------------------------------- */

void inject_hold_release(struct inject *inject)
{
    struct error unused;
    if (!inject->lost_mark)
        return;
    void *mark = inject->lost_mark;
    inject->lost_mark = NULL;
    enum status status = inject->real->mark_record(inject->device, inject->lost_stream, mark,
                                                   &unused);
    (void)status;
    inject_hold_flush(inject);
    pthread_cond_broadcast(&inject->released);
}

static void hang(struct inject *inject)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    uint64_t ns = (uint64_t)until.tv_nsec + (uint64_t)inject->spec.limit_ms * 1000000u;
    until.tv_sec += (time_t)(ns / 1000000000u);
    until.tv_nsec = (long)(ns % 1000000000u);
    while (inject->lost_mark) {
        int code = 0;
        if (inject->spec.limit_ms)
            code = pthread_cond_timedwait(&inject->released, &inject->lock, &until);
        else
            pthread_cond_wait(&inject->released, &inject->lock);
        if (code == ETIMEDOUT)
            inject_hold_release(inject);
    }
}

static bool is_held(const struct inject *inject, const void *mark)
{
    for (size_t i = 0; i < inject->held_count; i++)
        if (inject->held[i].kind == INJECT_HELD_RECORD && inject->held[i].mark == mark)
            return true;
    return false;
}

bool inject_hold_pending(const struct inject *inject, const void *mark)
{
    return (inject->lost_mark && inject->lost_mark == mark) || is_held(inject, mark);
}

void inject_hold_wait(struct inject *inject, void *stream, void *mark)
{
    bool waits_for_held = stream ? inject_hold_has(inject, stream) : is_held(inject, mark);
    if (inject->lost_mark && (mark == inject->lost_mark || waits_for_held))
        hang(inject);
    else if (waits_for_held)
        inject_hold_flush(inject);
}
