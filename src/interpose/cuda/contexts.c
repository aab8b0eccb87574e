/* contexts.c - contexts, and the calls that free all of their memory.
 *
 * Allocations are recorded with the context they were made in, and default streams belong to one. A
 * context is destroyed by its handle, the primary context of a device by the device's number: both
 * are stored for each context that is used. A handle may be given out again, a number is not. */
#include "interpose/cuda/cuda.h"

#include <pthread.h>

/* Programs have one context for each device; contexts beyond the limit are not recorded. */
#define CONTEXT_LIMIT 64u

/* Under the lock. */
static struct {
    pthread_mutex_t lock;
    struct context {
        const void *handle;
        uint32_t number;
        int32_t device; /* -1: not known */
    } list[CONTEXT_LIMIT];
    size_t count;
    uint32_t last_number;
} contexts = { .lock = PTHREAD_MUTEX_INITIALIZER };
/* How many were destroyed: what a thread remembers of contexts is void after each. */
static uint32_t epoch;

/* By CUPTI's number, or if that is 0 by the handle; under the lock. 0: not known. */
static uint32_t number_of(uint32_t uid, const void *handle)
{
    for (size_t i = 0; i < contexts.count; i++)
        if (uid ? contexts.list[i].number == uid : contexts.list[i].handle == handle)
            return contexts.list[i].number;
    return 0;
}

static uint32_t look_up(uint32_t uid, const void *handle)
{
    pthread_mutex_lock(&contexts.lock);
    uint32_t number = number_of(uid, handle);
    pthread_mutex_unlock(&contexts.lock);
    if (number)
        return number;
    int32_t device;
    if (!cuda_driver.ctx_get_device || cuda_driver.ctx_get_device(&device))
        device = -1;
    pthread_mutex_lock(&contexts.lock);
    number = number_of(uid, handle);
    if (!number && contexts.count < CONTEXT_LIMIT) {
        number = uid ? uid : ++contexts.last_number;
        contexts.list[contexts.count++] = (struct context){ handle, number, device };
    }
    pthread_mutex_unlock(&contexts.lock);
    return number;
}

uint64_t cuda_context(const struct cuda_call *call)
{
    static _Thread_local struct {
        const void *handle;
        uint32_t uid, number, epoch;
    } last;
    const void *handle = call->context;
    if (!call->context_uid &&
        (!cuda_driver.ctx_get_current || cuda_driver.ctx_get_current(&handle) || !handle))
        return 0; /* the call fails as well */
    uint32_t now = __atomic_load_n(&epoch, __ATOMIC_ACQUIRE);
    if (last.number && last.handle == handle && last.uid == call->context_uid && last.epoch == now)
        return last.number;
    last.number = look_up(call->context_uid, handle);
    last.handle = handle;
    last.uid = call->context_uid;
    last.epoch = now;
    return last.number;
}

/* The context with the handle, or those of the device, one after the other; 0: no more. */
static uint64_t take(const void *handle, int32_t device)
{
    uint32_t number = 0;
    pthread_mutex_lock(&contexts.lock);
    for (size_t i = 0; i < contexts.count; i++)
        if (handle ? contexts.list[i].handle == handle : contexts.list[i].device == device) {
            number = contexts.list[i].number;
            contexts.list[i] = contexts.list[--contexts.count];
            break;
        }
    pthread_mutex_unlock(&contexts.lock);
    __atomic_add_fetch(&epoch, 1, __ATOMIC_RELEASE);
    return number;
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
    const void *handle = *(const void *const *)call->arguments;
    end(call, handle != NULL, handle, 0);
}

void cuda_end_device_reset(struct cuda_call *call)
{
    end(call, true, NULL, *(const int32_t *)call->arguments);
}

/* The last one to release it destroys it. */
void cuda_end_device_release(struct cuda_call *call)
{
    int32_t device = *(const int32_t *)call->arguments, active = 1;
    uint32_t flags;
    if (call->code == 0 && cuda_driver.primary_ctx_get_state &&
        cuda_driver.primary_ctx_get_state(device, &flags, &active))
        active = 1;
    end(call, !active, NULL, device);
}
