/* buffer.c - device memory: made, imported, given back. */
#include "device/device_core.h"

#include <inttypes.h>
#include <string.h>

/* Gives memory the place that was taken for it. */
static void fill_place(struct call *call, uint32_t index, const struct device_memory *memory,
                       const char *name, struct device_buffer *ret_buffer)
{
    struct device *device = call->device;
    pthread_mutex_lock(&device->lock);
    struct buffer_slot *slot = slot_at(&device->buffers, index);
    slot->memory = *memory;
    event_set_text(slot->name, sizeof(slot->name), name);
    *ret_buffer = (struct device_buffer){ index, slot->head.generation };
    device->used_bytes += memory->bytes;
    if (device->used_bytes > device->peak_bytes)
        __atomic_store_n(&device->peak_bytes, device->used_bytes, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&device->lock);
    call->event.accesses[0] = (struct event_access){ .address = memory->address,
                                                     .bytes = memory->bytes,
                                                     .buffer_index = index,
                                                     .generation = (uint16_t)ret_buffer->generation,
                                                     .mode = EVENT_UPDATE };
    call->event.access_count = 1;
    call->event.buffer.buffer_index = index;
}

/* Memory for a place, which is given back where there is none. */
static enum status make_memory(struct device *device, uint32_t index, const void *imported,
                               uint64_t bytes, struct device_memory *ret_memory, struct error *err)
{
    if (!index)
        return error_set(err, STATUS_LIMIT, "expected fewer than %" PRIu32 " buffers at a time",
                         device->buffers.capacity);
    enum status status = imported ? device->methods->memory_import(device, imported, bytes,
                                                                   ret_memory, err)
                                  : device->methods->memory_create(device, bytes, ret_memory, err);
    if (status) {
        pthread_mutex_lock(&device->lock);
        slot_release(&device->buffers, index);
        pthread_mutex_unlock(&device->lock);
    }
    return status;
}

static enum status create(struct device *device, const void *imported, uint64_t bytes,
                          const char *name, struct device_site site,
                          struct device_buffer *ret_buffer, struct error *err)
{
    struct call call;
    call_init(&call, device, EVENT_BUFFER_CREATE, site);
    event_set_text(call.event.scope.tensor, sizeof(call.event.scope.tensor), name);
    call.event.buffer.bytes = bytes;
    call.event.buffer.imported_address = (uint64_t)(uintptr_t)imported;
    TRY(call_check_lost(&call, "buffer creation", err));
    if (bytes == 0)
        return call_refuse(&call, EVENT_CHECK_BYTES, EVENT_NO_OPERAND, 1, 0, err, STATUS_REFUSED,
                           "buffer %s: expected at least 1 byte, found 0", name);
    /* The slot is taken first, so that the event follows all events of the slot's last buffer. */
    pthread_mutex_lock(&device->lock);
    uint32_t index = slot_take(&device->buffers);
    pthread_mutex_unlock(&device->lock);
    call_begin(&call);
    struct device_memory memory;
    enum status status = make_memory(device, index, imported, bytes, &memory, err);
    if (!status)
        fill_place(&call, index, &memory, name, ret_buffer);
    if (status)
        error_wrap(err, "buffer %s", name);
    else
        call.event.buffer.fill_byte = !imported && device->options.poison ? DEVICE_POISON : 0;
    call_end(&call, status, err);
    struct device_tampered made = { .kind = EVENT_BUFFER_CREATE, .name = name };
    if (!status)
        made.buffer = *ret_buffer;
    if (device_is_tampered(device))
        tamper_after(device, &made, status, call.event.id);
    return status;
}

void device_reserve(struct device *device, uint64_t bytes)
{
    /* Memory that is freed, or ends, must be seen to be gone, or to end. */
    if (!device_is_observed(device) && !device->decorator && !device_is_tampered(device) &&
        !device_is_lost(device))
        device->methods->memory_reserve(device, bytes);
}

enum status device_buffer_create(struct device *device, uint64_t bytes, const char *name,
                                 struct device_site site, struct device_buffer *ret_buffer,
                                 struct error *err)
{
    return create(device, NULL, bytes, name, site, ret_buffer, err);
}

enum status device_buffer_import(struct device *device, const void *bytes, uint64_t count,
                                 const char *name, struct device_site site,
                                 struct device_buffer *ret_buffer, struct error *err)
{
    ASSERT(bytes);
    return create(device, bytes, count, name, site, ret_buffer, err);
}

bool device_buffer_is_copy(struct device *device, struct device_buffer buffer)
{
    pthread_mutex_lock(&device->lock);
    const struct buffer_slot *slot = slot_find(&device->buffers, buffer.index, buffer.generation);
    bool copied = slot && slot->memory.copied;
    pthread_mutex_unlock(&device->lock);
    return copied;
}

enum status device_buffer_seal(struct device *device, struct device_buffer buffer,
                               struct error *err)
{
    pthread_mutex_lock(&device->lock);
    struct buffer_slot *slot = slot_find(&device->buffers, buffer.index, buffer.generation);
    if (slot)
        slot->memory.read_only = true;
    pthread_mutex_unlock(&device->lock);
    return slot
               ? STATUS_OK
               : error_set(err, STATUS_REFUSED, "seal: expected a living buffer, found a dead one");
}

/* Reports damaged bytes around a buffer as an event of its own, whose cause is not known. */
static void tell_damage(struct device *device, const struct buffer_slot *slot,
                        struct device_buffer buffer, struct device_site site)
{
    int64_t offset = 0;
    uint64_t damaged = device->methods->memory_damage(device, &slot->memory, &offset);
    if (!damaged)
        return;
    struct call call;
    struct error unused;
    call_init(&call, device, EVENT_CANARY, site);
    event_set_text(call.event.scope.tensor, sizeof(call.event.scope.tensor), slot->name);
    call.event.canary = (struct event_canary){ .address = slot->memory.address + (uint64_t)offset,
                                               .offset = offset,
                                               .damaged_bytes = damaged,
                                               .buffer_bytes = slot->memory.bytes };
    call.event.accesses[0] = (struct event_access){ .address = slot->memory.address,
                                                    .bytes = slot->memory.bytes,
                                                    .buffer_index = buffer.index,
                                                    .generation = (uint16_t)buffer.generation,
                                                    .mode = EVENT_UPDATE };
    call.event.access_count = 1;
    call_end(&call, STATUS_OK, &unused);
}

static enum status destroy(struct device *device, struct device_buffer buffer,
                           struct device_site site, struct error *err)
{
    struct call call;
    call_init(&call, device, EVENT_BUFFER_DESTROY, site);
    struct device_view whole = { .buffer = buffer,
                                 .dtype = DTYPE_I8,
                                 .shape = shape_make(0, NULL) };
    struct resolved resolved;
    /* Also on a lost device: its memory of the host side can be given back. */
    TRY(call_resolve(&call, &whole, 0, "buffer", EVENT_READ, &resolved, err));
    struct buffer_slot slot;
    pthread_mutex_lock(&device->lock);
    struct buffer_slot *found = slot_find(&device->buffers, buffer.index, buffer.generation);
    bool mine = found != NULL; /* else another thread was faster */
    if (mine) {
        slot = *found;
        call.event.accesses[0].bytes = slot.memory.bytes;
        call.event.accesses[0].mode = EVENT_UPDATE;
        call.event.buffer.buffer_index = buffer.index;
        call.event.buffer.bytes = slot.memory.bytes;
        event_set_text(call.event.scope.tensor, sizeof(call.event.scope.tensor), slot.name);
        /* Before its place can be another's: events name places in the order they changed hands. */
        call_begin(&call);
        found->memory.slack_before = found->memory.slack_after =
            0; /* no canary to check any more */
        slot_release(&device->buffers, buffer.index);
        device->used_bytes -= slot.memory.bytes;
    }
    pthread_mutex_unlock(&device->lock);
    if (!mine)
        return call_refuse(&call, EVENT_CHECK_GENERATION, 0, buffer.generation, 0, err,
                           STATUS_NOT_FOUND, "buffer: expected a live one, found it destroyed");
    tell_damage(device, &slot, buffer, site);
    device->methods->memory_destroy(device, &slot.memory);
    return call_end(&call, STATUS_OK, err);
}

void device_buffer_destroy(struct device *device, struct device_buffer buffer,
                           struct device_site site)
{
    struct error err;
    struct device_tampered call = { .kind = EVENT_BUFFER_DESTROY, .buffer = buffer };
    if (device_is_tampered(device) && !tamper_before(device, &call))
        return;
    device_begin_alone(device); /* its canaries may be looked at */
    enum status status = destroy(device, buffer, site, &err);
    device_end_alone(device);
    if (status)
        device_keep_refusal(device, &err);
}

uint64_t device_buffer_bytes(const struct device *device, struct device_buffer buffer)
{
    struct device *unlocked = (struct device *)(uintptr_t)device; /* its lock is not its state */
    pthread_mutex_lock(&unlocked->lock);
    const struct buffer_slot *slot = slot_find(&device->buffers, buffer.index, buffer.generation);
    uint64_t bytes = slot ? slot->memory.bytes : 0;
    pthread_mutex_unlock(&unlocked->lock);
    return bytes;
}
