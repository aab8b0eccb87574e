/* gpu_block.c - many buffers out of one allocation.
 *
 * A runtime takes about a tenth of a millisecond for an allocation and holds a lock that copies
 * need as well. For the tensors of a model that adds up to a third of the time that their bytes
 * take on the link. So memory for buffers that are known to follow is allocated and cleared at
 * once, and they are cut from it one after the other. Freed parts are not reused; the block is
 * freed with its last buffer. The device's lock guards blocks. */
#include "device/gpu/gpu_impl.h"

#include <stdlib.h>

struct gpu_block {
    uint64_t base, bytes, used;
    uint64_t part_count; /* alive */
};

static void destroy(struct gpu_device *gpu, struct gpu_block *block)
{
    gpu->runtime.memory_destroy(gpu->runtime.self, block->base);
    free(block);
}

/* With the lock held: nothing more is cut from the block at hand. */
static void close_block(struct gpu_device *gpu)
{
    if (gpu->block && gpu->block->part_count == 0)
        destroy(gpu, gpu->block);
    gpu->block = NULL;
}

void gpu_memory_reserve(struct device *device, uint64_t bytes)
{
    struct gpu_device *gpu = gpu_of(device);
    const struct gpu_runtime *runtime = &gpu->runtime;
    const struct device_options *options = &device->options;
    /* An audited buffer needs an allocation of its own, with guards, that goes when it is freed. */
    if (bytes == 0 || options->guards || options->poison || options->quarantine_bytes)
        return;
    struct gpu_block *block = calloc(1, sizeof(*block));
    if (!block)
        return;
    gpu_enter(gpu);
    pthread_mutex_lock(&gpu->lock);
    close_block(gpu);
    /* A failure shows when the buffers are created; this is only for speed. */
    block->bytes = bytes;
    if (runtime->memory_create(runtime->self, bytes, &block->base)) {
        free(block);
    } else if (runtime->fill(runtime->self, block->base, 0, bytes, gpu->internal_stream) ||
               runtime->stream_sync(runtime->self, gpu->internal_stream)) {
        destroy(gpu, block);
    } else {
        gpu->block = block;
    }
    pthread_mutex_unlock(&gpu->lock);
}

bool gpu_block_take(struct gpu_device *gpu, uint64_t bytes, struct gpu_memory *memory)
{
    pthread_mutex_lock(&gpu->lock);
    struct gpu_block *block = gpu->block;
    bool fits = block && bytes <= block->bytes - block->used;
    if (fits) {
        *memory = (struct gpu_memory){ .kind = GPU_MEMORY_PART,
                                       .base = block->base + block->used,
                                       .base_bytes = bytes,
                                       .block = block };
        uint64_t room = (bytes + GPU_ALIGNMENT - 1) / GPU_ALIGNMENT * GPU_ALIGNMENT;
        block->used = room < block->bytes - block->used ? block->used + room : block->bytes;
        block->part_count++;
    }
    pthread_mutex_unlock(&gpu->lock);
    return fits;
}

void gpu_block_give_back(struct gpu_device *gpu, const struct gpu_memory *memory)
{
    struct gpu_block *block = memory->block;
    pthread_mutex_lock(&gpu->lock);
    if (--block->part_count == 0) {
        if (gpu->block == block)
            gpu->block = NULL;
        destroy(gpu, block);
    }
    pthread_mutex_unlock(&gpu->lock);
}

void gpu_block_release(struct gpu_device *gpu)
{
    pthread_mutex_lock(&gpu->lock);
    close_block(gpu);
    pthread_mutex_unlock(&gpu->lock);
}
