/* fake_cupti.c - see fake_trace.h: the two functions of CUPTI that greta trace needs. */
#include "fake_trace.h"

#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int cuptiSubscribe(void **subscriber, fake_callback callback, void *context);
EXPORT int cuptiEnableCallback(uint32_t on, void *subscriber, int32_t domain, uint32_t id);

int cuptiSubscribe(void **subscriber, fake_callback callback, void *context)
{
    static int used;
    if (getenv("FAKE_CUPTI_TAKEN"))
        return 39; /* multiple subscribers are not supported */
    *subscriber = &used;
    fake_driver_subscribe(callback, context);
    return 0;
}

int cuptiEnableCallback(uint32_t on, void *subscriber, int32_t domain, uint32_t id)
{
    (void)subscriber;
    if (domain != 1)
        return 1;
    fake_driver_enable(id, on != 0);
    return 0;
}
