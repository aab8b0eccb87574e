/* stream.c - streams, and the marks that order them. */
#include "device/device_core.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- Finding and locking -------------------------------------------------------------------- */

enum status call_lock_stream(struct call *call, struct device_stream stream, const char *what,
                             struct stream_slot **ret_stream, struct error *err)
{
    struct device *device = call->device;
    TRY(call_check_lost(call, what, err));
    pthread_mutex_lock(&device->lock);
    struct stream_slot *slot = slot_find(&device->streams, stream.index, stream.generation);
    uint32_t now = slot_generation(&device->streams, stream.index);
    pthread_mutex_unlock(&device->lock);
    if (!slot)
        return call_refuse(call, now ? EVENT_CHECK_GENERATION : EVENT_CHECK_HANDLE,
                           EVENT_NO_OPERAND, stream.generation, now, err, STATUS_NOT_FOUND,
                           "%s: expected a live stream, found handle %" PRIu32 ".%" PRIu32, what,
                           stream.index, stream.generation);
    pthread_mutex_lock(&slot->lock);
    call_scope(call, slot, stream.index);
    *ret_stream = slot;
    return STATUS_OK;
}

void call_unlock_stream(struct stream_slot *stream)
{
    pthread_mutex_unlock(&stream->lock);
}

enum status call_refuse_capture(struct call *call, const struct stream_slot *stream,
                                const char *what, struct error *err)
{
    if (!stream->builder)
        return STATUS_OK;
    return call_refuse(call, EVENT_CHECK_CAPTURE, EVENT_NO_OPERAND, 0, 1, err, STATUS_REFUSED,
                       "%s: expected no graph to be recorded on the stream, found one", what);
}

/* ---- Streams -------------------------------------------------------------------------------- */

enum status device_stream_create(struct device *device, struct device_site site,
                                 struct device_stream *ret_stream, struct error *err)
{
    struct call call;
    call_init(&call, device, EVENT_STREAM_CREATE, site);
    TRY(call_check_lost(&call, "stream creation", err));
    pthread_mutex_lock(&device->lock);
    uint32_t index = slot_take(&device->streams);
    pthread_mutex_unlock(&device->lock);
    if (!index)
        return call_refuse(&call, EVENT_CHECK_HANDLE, EVENT_NO_OPERAND, CRUMB_STREAM_LIMIT - 1,
                           CRUMB_STREAM_LIMIT, err, STATUS_LIMIT,
                           "expected at most %u streams at a time", CRUMB_STREAM_LIMIT - 1);
    call.event.stream_index = index;
    call_begin(&call);
    struct stream_slot *slot = slot_at(&device->streams, index);
    slot->scope = (struct event_scope){ -1, -1, "" };
    slot->builder = NULL;
    enum status status = device->methods->stream_create(device, index, &slot->impl, err);
    pthread_mutex_lock(&device->lock);
    if (status)
        slot_release(&device->streams, index);
    else
        *ret_stream = (struct device_stream){ index, slot->head.generation };
    pthread_mutex_unlock(&device->lock);
    return call_end(&call, status, err);
}

static enum status destroy(struct device *device, struct device_stream stream,
                           struct device_site site, struct error *err)
{
    struct call call;
    call_init(&call, device, EVENT_STREAM_DESTROY, site);
    pthread_mutex_lock(&device->lock);
    struct stream_slot *slot = slot_find(&device->streams, stream.index, stream.generation);
    pthread_mutex_unlock(&device->lock);
    if (!slot)
        return call_refuse(&call, EVENT_CHECK_HANDLE, EVENT_NO_OPERAND, stream.generation,
                           slot_generation_locking(device, &device->streams, stream.index), err,
                           STATUS_NOT_FOUND,
                           "stream: expected a live one, found handle %" PRIu32 ".%" PRIu32,
                           stream.index, stream.generation);
    call.event.stream_index = stream.index;
    call_begin(&call);
    pthread_mutex_lock(&slot->lock);
    device->methods->stream_destroy(device, slot->impl);
    graph_builder_destroy(slot->builder);
    slot->builder = NULL;
    pthread_mutex_unlock(&slot->lock);
    pthread_mutex_lock(&device->lock);
    slot_release(&device->streams, stream.index);
    pthread_mutex_unlock(&device->lock);
    return call_end(&call, STATUS_OK, err);
}

void device_stream_destroy(struct device *device, struct device_stream stream,
                           struct device_site site)
{
    struct error err;
    if (destroy(device, stream, site, &err))
        device_keep_refusal(device, &err);
}

/* A wait is where a fault is noticed, and where traps are collected. */
static enum status after_wait(struct call *call, enum status status, const char *what,
                              struct error *err)
{
    device_tell_traps(call->device);
    if (!status)
        status = call_fail_if_lost(call, what, err);
    return call_end(call, status, err);
}

enum status device_stream_sync(struct device *device, struct device_stream stream,
                               struct device_site site, struct error *err)
{
    struct call call;
    struct stream_slot *slot;
    call_init(&call, device, EVENT_STREAM_SYNC, site);
    TRY(call_lock_stream(&call, stream, "stream sync", &slot, err));
    enum status status = call_refuse_capture(&call, slot, "stream sync", err);
    if (!status)
        call_begin(&call);
    /* Waiting with the lock held would keep other threads from giving the stream work. */
    void *impl = slot->impl;
    call_unlock_stream(slot);
    TRY(status);
    status = device->methods->stream_sync(device, impl, err);
    return after_wait(&call, status, "stream sync", err);
}

void device_scope_set(struct device *device, struct device_stream stream,
                      const struct event_scope *scope)
{
    static const struct event_scope none = { -1, -1, "" };
    pthread_mutex_lock(&device->lock);
    struct stream_slot *slot = slot_find(&device->streams, stream.index, stream.generation);
    pthread_mutex_unlock(&device->lock);
    if (!slot)
        return;
    pthread_mutex_lock(&slot->lock);
    slot->scope = scope ? *scope : none;
    pthread_mutex_unlock(&slot->lock);
}

struct event_scope device_scope(struct device *device, struct device_stream stream)
{
    struct event_scope scope = { -1, -1, "" };
    pthread_mutex_lock(&device->lock);
    struct stream_slot *slot = slot_find(&device->streams, stream.index, stream.generation);
    pthread_mutex_unlock(&device->lock);
    if (!slot)
        return scope;
    pthread_mutex_lock(&slot->lock);
    scope = slot->scope;
    pthread_mutex_unlock(&slot->lock);
    return scope;
}

/* ---- Marks ---------------------------------------------------------------------------------- */

enum status device_mark_create(struct device *device, struct device_mark *ret_mark,
                               struct error *err)
{
    pthread_mutex_lock(&device->lock);
    uint32_t index = slot_take(&device->marks);
    pthread_mutex_unlock(&device->lock);
    if (!index)
        return error_set(err, STATUS_LIMIT, "expected fewer than %" PRIu32 " marks at a time",
                         device->marks.capacity);
    struct mark_slot *slot = slot_at(&device->marks, index);
    enum status status = device->methods->mark_create(device, &slot->impl, err);
    pthread_mutex_lock(&device->lock);
    if (status)
        slot_release(&device->marks, index);
    else
        *ret_mark = (struct device_mark){ index, slot->head.generation };
    pthread_mutex_unlock(&device->lock);
    return status;
}

static void *find_mark(struct device *device, struct device_mark mark)
{
    pthread_mutex_lock(&device->lock);
    struct mark_slot *slot = slot_find(&device->marks, mark.index, mark.generation);
    void *impl = slot ? slot->impl : NULL;
    pthread_mutex_unlock(&device->lock);
    return impl;
}

void device_mark_destroy(struct device *device, struct device_mark mark)
{
    struct error err;
    void *impl = find_mark(device, mark);
    if (!impl && mark.index) { /* a zero handle was never a mark: nothing to do */
        error_set_at(&err, STATUS_NOT_FOUND, __FILE__, __LINE__,
                     "mark: expected a live one, found handle %" PRIu32 ".%" PRIu32, mark.index,
                     mark.generation);
        device_keep_refusal(device, &err);
    }
    if (!impl)
        return;
    device->methods->mark_destroy(device, impl);
    pthread_mutex_lock(&device->lock);
    slot_release(&device->marks, mark.index);
    pthread_mutex_unlock(&device->lock);
}

static enum status refuse_mark(struct call *call, struct device_mark mark, struct error *err)
{
    return call_refuse(call, EVENT_CHECK_HANDLE, EVENT_NO_OPERAND, mark.generation,
                       slot_generation_locking(call->device, &call->device->marks, mark.index), err,
                       STATUS_NOT_FOUND,
                       "mark: expected a live one, found handle %" PRIu32 ".%" PRIu32, mark.index,
                       mark.generation);
}

/* Record and wait differ only in the method. */
static enum status give_order(struct device *device, enum event_kind kind,
                              struct device_stream stream, struct device_mark mark,
                              struct device_site site, uint64_t *ret_event_id, struct error *err)
{
    const char *what = kind == EVENT_MARK_RECORD ? "mark record" : "mark wait";
    struct call call;
    struct stream_slot *slot;
    call_init(&call, device, kind, site);
    TRY(call_lock_stream(&call, stream, what, &slot, err));
    void *impl = find_mark(device, mark);
    enum status status = call_refuse_capture(&call, slot, what, err);
    if (!status && !impl)
        status = refuse_mark(&call, mark, err);
    if (!status) {
        call.event.mark.mark = mark.index;
        call_begin(&call);
        status = kind == EVENT_MARK_RECORD
                     ? device->methods->mark_record(device, slot->impl, impl, err)
                     : device->methods->mark_wait(device, slot->impl, impl, err);
        call_end(&call, status, err);
    }
    call_unlock_stream(slot);
    *ret_event_id = call.event.id;
    return status;
}

static enum status order(struct device *device, enum event_kind kind, struct device_stream stream,
                         struct device_mark mark, struct device_site site, struct error *err)
{
    uint64_t event_id = 0;
    if (!device_is_tampered(device))
        return give_order(device, kind, stream, mark, site, &event_id, err);
    struct device_tampered call = { .kind = kind, .stream = stream, .mark = mark };
    if (!tamper_before(device, &call))
        return STATUS_OK;
    enum status status = give_order(device, kind, call.stream, mark, site, &event_id, err);
    tamper_after(device, &call, status, event_id);
    return status;
}

enum status device_mark_record(struct device *device, struct device_stream stream,
                               struct device_mark mark, struct device_site site, struct error *err)
{
    return order(device, EVENT_MARK_RECORD, stream, mark, site, err);
}

enum status device_mark_wait(struct device *device, struct device_stream stream,
                             struct device_mark mark, struct device_site site, struct error *err)
{
    return order(device, EVENT_MARK_WAIT, stream, mark, site, err);
}

enum status device_mark_sync(struct device *device, struct device_mark mark,
                             struct device_site site, struct error *err)
{
    struct call call;
    call_init(&call, device, EVENT_MARK_SYNC, site);
    TRY(call_check_lost(&call, "mark sync", err));
    void *impl = find_mark(device, mark);
    if (!impl)
        return refuse_mark(&call, mark, err);
    call.event.mark.mark = mark.index;
    call_begin(&call);
    enum status status = device->methods->mark_sync(device, impl, err);
    return after_wait(&call, status, "mark sync", err);
}
