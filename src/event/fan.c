/* fan.c - see fan.h. */
#include "event/fan.h"

#include "base/status.h"

void event_fan_add(struct event_fan *fan, struct event_observer observer)
{
    if (!observer.notify)
        return;
    ASSERT(fan->count < EVENT_FAN_LIMIT);
    fan->observers[fan->count++] = observer;
}

static void notify_all(void *context, const struct event *event)
{
    const struct event_fan *fan = context;
    for (size_t i = 0; i < fan->count; i++)
        fan->observers[i].notify(fan->observers[i].context, event);
}

struct event_observer event_fan_observer(struct event_fan *fan)
{
    if (fan->count == 0)
        return (struct event_observer){ 0 };
    if (fan->count == 1)
        return fan->observers[0];
    return (struct event_observer){ notify_all, fan };
}
