/* tamper.c - where bugs of a caller are planted: around a call, before it is checked. */
#include "device/device_core.h"

bool tamper_before(struct device *device, struct device_tampered *call)
{
    call->op = call->launch ? call->launch->contract->name : event_kind_name(call->kind);
    call->scope = device_scope(device, call->stream);
    return device->tamper.before(device->tamper.context, call);
}

void tamper_after(struct device *device, struct device_tampered *call, enum status status,
                  uint64_t event_id)
{
    call->status = status;
    call->event_id = event_id;
    device->tamper.after(device->tamper.context, call);
}
