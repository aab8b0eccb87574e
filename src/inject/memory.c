/* memory.c - the memory a device has: known, so that a fault can free it without its owner's
 * knowledge. */
#include "inject/inject_impl.h"

void inject_memory_note(struct inject *inject, const struct device_memory *memory)
{
    pthread_mutex_lock(&inject->lock);
    if (inject->memory_count < INJECT_MEMORY_LIMIT)
        inject->memories[inject->memory_count++] = (struct inject_memory){ *memory, false };
    pthread_mutex_unlock(&inject->lock);
}

struct inject_memory *inject_find_memory(struct inject *inject, uint64_t address)
{
    for (size_t i = 0; i < inject->memory_count; i++) {
        struct inject_memory *memory = &inject->memories[i];
        if (!memory->gone && address >= memory->memory.address &&
            address - memory->memory.address < memory->memory.bytes)
            return memory;
    }
    return NULL;
}

/* The entry of a memory; the newest, since addresses come back. NULL if it was not noted. */
static struct inject_memory *find_entry(struct inject *inject, const struct device_memory *memory)
{
    for (size_t i = inject->memory_count; i > 0; i--)
        if (inject->memories[i - 1].memory.impl == memory->impl &&
            inject->memories[i - 1].memory.address == memory->address)
            return &inject->memories[i - 1];
    return NULL;
}

bool inject_memory_is_gone(struct inject *inject, const struct device_memory *memory)
{
    pthread_mutex_lock(&inject->lock);
    const struct inject_memory *entry = find_entry(inject, memory);
    bool gone = entry && entry->gone;
    pthread_mutex_unlock(&inject->lock);
    return gone;
}

bool inject_memory_forget(struct inject *inject, const struct device_memory *memory)
{
    pthread_mutex_lock(&inject->lock);
    struct inject_memory *entry = find_entry(inject, memory);
    bool gone = entry && entry->gone;
    if (entry)
        *entry = inject->memories[--inject->memory_count];
    pthread_mutex_unlock(&inject->lock);
    return gone;
}

enum status inject_memory_vanish(struct inject *inject, void *stream, struct inject_memory *memory,
                                 struct error *err)
{
    /* What was queued before may still use it; the defect to plant is that this launch does. */
    TRY(inject->real->stream_sync(inject->device, stream, err));
    pthread_mutex_lock(&inject->lock);
    memory->gone = true;
    struct device_memory copy = memory->memory;
    pthread_mutex_unlock(&inject->lock);
    inject->real->memory_destroy(inject->device, &copy);
    return STATUS_OK;
}
