/* fake_hsa.c - a libhsa-runtime64.so.1 for tests: takes one handler of events, and tells it of a
 * fault when a test says so, on a thread of its own as the real one does. */
#include "device/hip/hip_fault.h"

#include <pthread.h>

#define EXPORT __attribute__((visibility("default")))

typedef int (*handler_type)(const struct hsa_event *event, void *data);

static handler_type handler;
static void *handler_data;

EXPORT int hsa_amd_register_system_event_handler(handler_type given, void *data);
EXPORT int fake_hsa_raise(int type, uint64_t address, uint32_t reasons);

int hsa_amd_register_system_event_handler(handler_type given, void *data)
{
    if (handler)
        return 0x1000; /* HSA_STATUS_ERROR: there is one */
    handler = given;
    handler_data = data;
    return 0;
}

static void *tell(void *argument)
{
    return (void *)(intptr_t)handler(argument, handler_data);
}

/* What the handler returned; -1 without one. */
int fake_hsa_raise(int type, uint64_t address, uint32_t reasons)
{
    struct hsa_event event = { .type = type, .data.fault = { 42, address, reasons } };
    pthread_t thread;
    void *result;
    if (!handler || pthread_create(&thread, NULL, tell, &event))
        return -1;
    pthread_join(thread, &result);
    return (int)(intptr_t)result;
}
