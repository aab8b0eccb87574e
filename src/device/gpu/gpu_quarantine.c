/* gpu_quarantine.c - freed memory that is kept for a while, so that a late access shows: with
 * guards it is unmapped and its addresses are not reused, so that the access faults; without guards
 * it is filled with poison. */
#include "device/gpu/gpu_impl.h"

#include <stdlib.h>

struct gpu_quarantine_entry {
    struct gpu_quarantine_entry *next;
    struct gpu_memory memory;
};

/* With the lock held. Gives back the oldest entries until at most limit_bytes are kept. */
static void shrink(struct gpu_device *gpu, uint64_t limit_bytes)
{
    while (gpu->oldest && gpu->quarantine_bytes > limit_bytes) {
        struct gpu_quarantine_entry *entry = gpu->oldest;
        gpu->oldest = entry->next;
        if (!gpu->oldest)
            gpu->newest = NULL;
        gpu->quarantine_bytes -= entry->memory.base_bytes;
        gpu_memory_give_back(gpu, &entry->memory);
        free(entry);
    }
}

void gpu_quarantine_release(struct gpu_device *gpu)
{
    pthread_mutex_lock(&gpu->lock);
    shrink(gpu, 0);
    pthread_mutex_unlock(&gpu->lock);
}

bool gpu_quarantine_keep(struct gpu_device *gpu, const struct gpu_memory *memory)
{
    const struct gpu_runtime *runtime = &gpu->runtime;
    const struct device_options *options = &gpu->device.options;
    struct gpu_quarantine_entry *entry = malloc(sizeof(*entry));
    if (!entry)
        return false;
    *entry = (struct gpu_quarantine_entry){ NULL, *memory };
    pthread_mutex_lock(&gpu->lock);
    if (memory->kind == GPU_MEMORY_MAPPED) {
        runtime->range_unmap(runtime->self, memory->base, memory->base_bytes, memory->handle);
        entry->memory.handle = 0;
    } else if (options->poison && !runtime->fill(runtime->self, memory->base, DEVICE_POISON,
                                                 memory->base_bytes, gpu->internal_stream)) {
        runtime->stream_sync(runtime->self, gpu->internal_stream);
    }
    if (gpu->newest)
        gpu->newest->next = entry;
    else
        gpu->oldest = entry;
    gpu->newest = entry;
    gpu->quarantine_bytes += entry->memory.base_bytes;
    shrink(gpu, options->quarantine_bytes);
    pthread_mutex_unlock(&gpu->lock);
    return true;
}
