/* fan.h - several observers where a device takes one. */
#ifndef GRETA_EVENT_FAN_H
#define GRETA_EVENT_FAN_H

#include "event/event.h"

#define EVENT_FAN_LIMIT 4

/* Tells each of its observers, in the order they were added. Filled before the device is opened,
 * unchanged and in place until it is closed. */
struct event_fan {
    struct event_observer observers[EVENT_FAN_LIMIT];
    size_t count;
};

/* One that has no notify is left out; at most EVENT_FAN_LIMIT others. */
void event_fan_add(struct event_fan *fan, struct event_observer observer);

/* The observer to give to the device: none (notify NULL), the only one added, or the fan. Borrows
 * the fan. */
struct event_observer event_fan_observer(struct event_fan *fan);

#endif
