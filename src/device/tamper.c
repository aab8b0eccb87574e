/* tamper.c - where bugs of a caller are planted: around a call, before it is checked. */
#include "device/device_core.h"

static struct event_scope scope_of(struct device *device, struct device_stream stream)
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

bool tamper_before(struct device *device, struct device_tampered *call)
{
    call->op = call->launch ? call->launch->contract->name : event_kind_name(call->kind);
    call->scope = scope_of(device, call->stream);
    return device->tamper.before(device->tamper.context, call);
}

void tamper_after(struct device *device, struct device_tampered *call, enum status status,
                  uint64_t event_id)
{
    call->status = status;
    call->event_id = event_id;
    device->tamper.after(device->tamper.context, call);
}
