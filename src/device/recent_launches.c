/* recent_launches.c - the op, scope and stream of a launch whose id is all that a trap has: the
 * last launches are remembered, and the recorded commands of graphs are searched. */
#include "device/device_core.h"

#include <stdlib.h>

struct recent_launch {
    uint64_t event_id;
    const char *op; /* name of the contract; static */
    uint32_t stream_index;
    struct event_scope scope;
};

enum status inspect_create(struct device *device, struct error *err)
{
    pthread_mutex_init(&device->inspect_lock, NULL);
    if (!device_is_observed(device))
        return STATUS_OK;
    device->recent = calloc(RECENT_LAUNCHES, sizeof(*device->recent));
    return device->recent ? STATUS_OK
                          : error_set(err, STATUS_NO_MEMORY, "no memory to remember launches");
}

void inspect_destroy(struct device *device)
{
    transfer_check_drop_all(device);
    free(device->recent);
    device->recent = NULL;
    pthread_mutex_destroy(&device->inspect_lock);
}

void inspect_note_launch(const struct call *call, const char *op)
{
    struct device *device = call->device;
    if (!device->recent)
        return;
    pthread_mutex_lock(&device->inspect_lock);
    device->recent[call->event.id % RECENT_LAUNCHES] =
        (struct recent_launch){ call->event.id, op, call->event.stream_index, call->event.scope };
    pthread_mutex_unlock(&device->inspect_lock);
}

static bool find_recorded(const struct device *device, uint64_t event_id, struct event *event)
{
    for (uint32_t i = 1; i < device->graphs.used; i++) {
        const struct graph_slot *slot = slot_at(&device->graphs, i);
        const struct device_command *command = slot_is_alive(&device->graphs, i) && slot->recorded
                                                   ? graph_find_command(slot->recorded, event_id)
                                                   : NULL;
        if (!command || !command->contract)
            continue;
        event_set_text(event->op, sizeof(event->op), command->contract->name);
        event->scope = command->scope;
        return true;
    }
    return false;
}

bool inspect_find_launch(struct device *device, uint64_t event_id, struct event *event)
{
    if (!device->recent)
        return false;
    pthread_mutex_lock(&device->inspect_lock);
    struct recent_launch launch = device->recent[event_id % RECENT_LAUNCHES];
    pthread_mutex_unlock(&device->inspect_lock);
    if (launch.event_id != event_id)
        return find_recorded(device, event_id, event);
    event_set_text(event->op, sizeof(event->op), launch.op);
    event->scope = launch.scope;
    event->stream_index = launch.stream_index;
    return true;
}
