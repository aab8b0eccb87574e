/* contexts.c - contexts, and the calls that free all of their memory.
 *
 * Allocations are recorded with the context they were made in. A context is destroyed by its
 * handle, the primary context of a device by the device's number: both are stored for each context
 * in which memory is allocated. */
#include "interpose/cuda/cuda.h"

#include <pthread.h>

/* Programs have one context for each device; contexts beyond the limit are not recorded. */
#define CONTEXT_LIMIT 64u

/* Under the lock. */
static struct {
    pthread_mutex_t lock;
    struct {
        const void *handle;
        uint32_t uid;
        int32_t device; /* -1: not known */
    } list[CONTEXT_LIMIT];
    size_t count;
} contexts = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool is_known(uint32_t uid)
{
    for (size_t i = 0; i < contexts.count; i++)
        if (contexts.list[i].uid == uid)
            return true;
    return false;
}

uint64_t cuda_context(const struct cuda_call *call)
{
    uint32_t uid = call->data->context_uid;
    pthread_mutex_lock(&contexts.lock);
    bool known = is_known(uid);
    pthread_mutex_unlock(&contexts.lock);
    if (known)
        return uid;
    int32_t device;
    if (!cuda_driver.ctx_get_device || cuda_driver.ctx_get_device(&device))
        device = -1;
    pthread_mutex_lock(&contexts.lock);
    known = is_known(uid);
    if (!known && contexts.count < CONTEXT_LIMIT) {
        contexts.list[contexts.count].handle = call->data->context;
        contexts.list[contexts.count].uid = uid;
        contexts.list[contexts.count++].device = device;
        known = true;
    }
    pthread_mutex_unlock(&contexts.lock);
    return known ? uid : 0;
}

/* The context with the handle, or those of the device, one after the other; 0: no more. */
static uint64_t take(const void *handle, int32_t device)
{
    uint32_t uid = 0;
    pthread_mutex_lock(&contexts.lock);
    for (size_t i = 0; i < contexts.count; i++)
        if (handle ? contexts.list[i].handle == handle : contexts.list[i].device == device) {
            uid = contexts.list[i].uid;
            contexts.list[i] = contexts.list[--contexts.count];
            break;
        }
    pthread_mutex_unlock(&contexts.lock);
    return uid;
}

void cuda_begin_reset(struct cuda_call *call)
{
    interpose_reset_begin(call->trace, &call->call, call->entry->name);
}

static void end(struct cuda_call *call, bool gone, const void *handle, int32_t device)
{
    uint64_t context;
    while (call->code == 0 && gone && (context = take(handle, device)) != 0)
        interpose_context_gone(call->trace, &call->call, context);
    cuda_end_plain(call);
}

void cuda_end_context_destroy(struct cuda_call *call)
{
    const void *handle = *(const void *const *)call->data->parameters;
    end(call, handle != NULL, handle, 0);
}

void cuda_end_device_reset(struct cuda_call *call)
{
    end(call, true, NULL, *(const int32_t *)call->data->parameters);
}

/* The last one to release it destroys it. */
void cuda_end_device_release(struct cuda_call *call)
{
    int32_t device = *(const int32_t *)call->data->parameters, active = 1;
    uint32_t flags;
    if (call->code == 0 && cuda_driver.primary_ctx_get_state &&
        cuda_driver.primary_ctx_get_state(device, &flags, &active))
        active = 1;
    end(call, !active, NULL, device);
}
