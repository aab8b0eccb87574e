/* staging_view.c - what callers see of staging when there are guards: memory of its own for each
 * slot, closed but between a ticket's redeeming and its release. An access at another time is
 * caught, reported, and let through to whatever was there before. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "device/staging.h"

#include "base/fault.h"

#include <string.h>
#include <sys/mman.h>

static bool on_access(void *context, uint64_t address)
{
    struct staging_slot *slot = context;
    struct device *device = slot->device;
    uint64_t bytes = device->options.staging_slot_bytes;
    bool landing = slot->state == STAGING_LANDING;
    struct event event = {
        .kind = EVENT_HOST_ACCESS,
        .cause_id = slot->event_id,
        .stream_index = EVENT_NO_STREAM,
        .scope = { -1, -1, "" },
        .operand = EVENT_NO_OPERAND,
        .check = landing ? EVENT_CHECK_NONE : EVENT_CHECK_TICKET,
        .host_access = { .address = address,
                         .copy_address = (uint64_t)(uintptr_t)slot->view,
                         .copy_bytes = slot->bytes },
    };
    if (mprotect(slot->view, (size_t)bytes, PROT_READ | PROT_WRITE))
        return false;
    device_tell(device, &event);
    return true;
}

void staging_view_create(struct device *device, struct staging_slot *slot)
{
    size_t bytes = (size_t)device->options.staging_slot_bytes;
    void *view = MAP_FAILED;
    if (device->options.guards)
        view = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    slot->device = device;
    slot->view = view == MAP_FAILED ? NULL : view;
    slot->view_guard = slot->view ? fault_guard(view, bytes, on_access, slot) : 0;
}

void staging_view_destroy(struct device *device, struct staging_slot *slot)
{
    fault_unguard(slot->view_guard);
    if (slot->view)
        munmap(slot->view, (size_t)device->options.staging_slot_bytes);
    slot->view = NULL;
}

void staging_view_close(struct device *device, struct staging_slot *slot)
{
    if (slot->view)
        mprotect(slot->view, (size_t)device->options.staging_slot_bytes, PROT_NONE);
}

const void *staging_show(struct device *device, struct staging_slot *slot)
{
    size_t bytes = (size_t)device->options.staging_slot_bytes;
    if (!slot->view || mprotect(slot->view, bytes, PROT_READ | PROT_WRITE))
        return slot->memory;
    memcpy(slot->view, slot->memory, (size_t)slot->bytes);
    return slot->view;
}
