/* gpu_memory.c - buffers of the GPU and what surrounds them.
 *
 * With guards a buffer ends (up to alignment) right before an address range that is not mapped, so
 * that the first access past it faults. The bytes between its end and that range, and a zone before
 * it, hold a canary. If the runtime cannot map memory into ranges, there are canaries on both sides
 * instead.
 *
 * Fills and copies in this file run on the device's internal stream and are waited for. */
#include "device/gpu/gpu_impl.h"

#include "base/size.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define CANARY 0xC7u
#define ZONE_BYTES 4096u

static uint64_t align_up(uint64_t value, uint64_t alignment)
{
    return (value + alignment - 1) / alignment * alignment;
}

/* ---- Making --------------------------------------------------------------------------------- */

void gpu_memory_probe(struct gpu_device *gpu)
{
    const struct gpu_runtime *runtime = &gpu->runtime;
    uint64_t granularity = 0, range, memory;
    if (runtime->granularity(runtime->self, &granularity) || granularity == 0 ||
        granularity % GPU_ALIGNMENT || runtime->range_create(runtime->self, granularity, &range))
        return;
    if (runtime->range_map(runtime->self, range, granularity, &memory) == 0 &&
        runtime->range_unmap(runtime->self, range, granularity, memory) == 0)
        gpu->granularity = granularity;
    runtime->range_destroy(runtime->self, range, granularity);
}

static int make_mapped(struct gpu_device *gpu, uint64_t bytes, struct gpu_memory *memory,
                       uint64_t *ret_address)
{
    const struct gpu_runtime *runtime = &gpu->runtime;
    uint64_t granularity = gpu->granularity;
    uint64_t room = align_up(bytes, GPU_ALIGNMENT);
    memory->kind = GPU_MEMORY_MAPPED;
    memory->base_bytes = align_up(room, granularity);
    memory->range_bytes = memory->base_bytes + 2 * granularity;
    int code = runtime->range_create(runtime->self, memory->range_bytes, &memory->range);
    if (code)
        return code;
    memory->base = memory->range + granularity;
    code = runtime->range_map(runtime->self, memory->base, memory->base_bytes, &memory->handle);
    if (code) {
        runtime->range_destroy(runtime->self, memory->range, memory->range_bytes);
        return code;
    }
    *ret_address = memory->base + memory->base_bytes - room;
    uint64_t before = *ret_address - memory->base;
    memory->front_bytes = min_u64(before, ZONE_BYTES);
    memory->back_bytes = room - bytes;
    return 0;
}

static int make_plain(struct gpu_device *gpu, uint64_t bytes, bool zones, struct gpu_memory *memory,
                      uint64_t *ret_address)
{
    const struct gpu_runtime *runtime = &gpu->runtime;
    memory->kind = zones ? GPU_MEMORY_ZONED : GPU_MEMORY_PLAIN;
    memory->front_bytes = zones ? ZONE_BYTES : 0;
    memory->back_bytes = zones ? align_up(bytes, GPU_ALIGNMENT) - bytes + ZONE_BYTES : 0;
    memory->base_bytes = memory->front_bytes + bytes + memory->back_bytes;
    int code = runtime->memory_create(runtime->self, memory->base_bytes, &memory->base);
    *ret_address = memory->base + memory->front_bytes;
    return code;
}

void gpu_memory_give_back(struct gpu_device *gpu, const struct gpu_memory *memory)
{
    const struct gpu_runtime *runtime = &gpu->runtime;
    if (memory->kind == GPU_MEMORY_PART) {
        gpu_block_give_back(gpu, memory);
    } else if (memory->kind == GPU_MEMORY_MAPPED) {
        if (memory->handle)
            runtime->range_unmap(runtime->self, memory->base, memory->base_bytes, memory->handle);
        runtime->range_destroy(runtime->self, memory->range, memory->range_bytes);
    } else {
        runtime->memory_destroy(runtime->self, memory->base);
    }
}

/* Writes the first contents: canaries around the buffer and, if `contents`, zeros or poison in it.
 */
static int fill_fresh(struct gpu_device *gpu, const struct gpu_memory *memory, uint64_t address,
                      uint64_t bytes, bool contents)
{
    const struct gpu_runtime *runtime = &gpu->runtime;
    void *stream = gpu->internal_stream;
    int code = 0;
    pthread_mutex_lock(&gpu->lock);
    if (memory->front_bytes)
        code = runtime->fill(runtime->self, address - memory->front_bytes, CANARY,
                             memory->front_bytes, stream);
    if (!code && memory->back_bytes)
        code = runtime->fill(runtime->self, address + bytes, CANARY, memory->back_bytes, stream);
    if (!code && contents)
        code = runtime->fill(runtime->self, address, gpu->device.options.poison ? DEVICE_POISON : 0,
                             bytes, stream);
    if (!code)
        code = runtime->stream_sync(runtime->self, stream);
    pthread_mutex_unlock(&gpu->lock);
    return code;
}

enum status gpu_no_room(struct gpu_device *gpu, int code, uint64_t bytes, struct error *err)
{
    char words[TEXT_BYTES_CAPACITY], all[TEXT_BYTES_CAPACITY], used[TEXT_BYTES_CAPACITY];
    if (!gpu->runtime.is_no_memory(code))
        return gpu_failed(gpu, code, "buffer creation", err);
    error_set_at(err, STATUS_NO_MEMORY, __FILE__, __LINE__,
                 "expected %s of free memory on the device, found less (it has %s, of which this "
                 "process uses %s)",
                 text_bytes(bytes, words), text_bytes(gpu->facts.memory_bytes, all),
                 text_bytes(device_used_bytes(&gpu->device), used));
    err->runtime_code = code;
    return STATUS_NO_MEMORY;
}

static enum status create(struct gpu_device *gpu, uint64_t bytes, bool contents,
                          struct device_memory *ret_memory, struct error *err)
{
    if (bytes > UINT64_MAX / 4)
        return error_set(err, STATUS_NO_MEMORY, "expected a size that fits memory, found %" PRIu64,
                         bytes);
    struct gpu_memory *memory = calloc(1, sizeof(*memory));
    if (!memory)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a buffer");
    gpu_enter(gpu);
    bool guards = gpu->device.options.guards;
    uint64_t address = 0;
    int code = 0;
    bool part = gpu_block_take(gpu, bytes, memory); /* never with guards */
    if (part)
        address = memory->base;
    else
        code = guards && gpu->granularity ? make_mapped(gpu, bytes, memory, &address)
                                          : make_plain(gpu, bytes, guards, memory, &address);
    if (code) {
        free(memory);
        return gpu_no_room(gpu, code, bytes, err);
    }
    code = part ? 0 : fill_fresh(gpu, memory, address, bytes, contents);
    if (code) {
        gpu_memory_give_back(gpu, memory);
        free(memory);
        return gpu_failed(gpu, code, "buffer creation", err);
    }
    *ret_memory = (struct device_memory){ .address = address,
                                          .bytes = bytes,
                                          .impl = memory,
                                          .slack_before = memory->front_bytes,
                                          .slack_after = memory->back_bytes,
                                          .canary = CANARY };
    gpu_pointers_probe(gpu, ret_memory);
    return STATUS_OK;
}

enum status gpu_memory_create(struct device *device, uint64_t bytes,
                              struct device_memory *ret_memory, struct error *err)
{
    return create(gpu_of(device), bytes, true, ret_memory, err);
}

/* The runtime's own way of copying from memory that is not pinned: synchronous, and slower than a
 * copy in. */
static enum status upload(struct gpu_device *gpu, uint64_t target, const void *source,
                          uint64_t bytes, struct error *err)
{
    const struct gpu_runtime *runtime = &gpu->runtime;
    pthread_mutex_lock(&gpu->lock);
    int code = runtime->copy_in(runtime->self, target, source, bytes, gpu->internal_stream);
    if (!code)
        code = runtime->stream_sync(runtime->self, gpu->internal_stream);
    pthread_mutex_unlock(&gpu->lock);
    return code ? gpu_failed(gpu, code, "upload", err) : STATUS_OK;
}

enum status gpu_memory_import(struct device *device, const void *bytes, uint64_t count,
                              struct device_memory *ret_memory, struct error *err)
{
    struct gpu_device *gpu = gpu_of(device);
    struct device_memory memory = { .address = 0 };
    TRY(create(gpu, count, false, &memory, err));
    enum status status = upload(gpu, memory.address, bytes, count, err);
    if (status) {
        gpu_memory_destroy(device, &memory);
        return status;
    }
    memory.read_only = true;
    memory.copied = true;
    *ret_memory = memory;
    return STATUS_OK;
}

/* ---- Canaries ------------------------------------------------------------------------------- */

/* Counts the damaged bytes in [address, address + bytes). Sets *first to the first of them if it is
 * still 0. */
static uint64_t count_damage(struct gpu_device *gpu, uint64_t address, uint64_t bytes,
                             uint64_t *first)
{
    const struct gpu_runtime *runtime = &gpu->runtime;
    uint8_t zone[ZONE_BYTES + GPU_ALIGNMENT];
    ASSERT(bytes <= sizeof(zone));
    if (bytes == 0)
        return 0;
    pthread_mutex_lock(&gpu->lock);
    int code = runtime->copy_out(runtime->self, zone, address, bytes, gpu->internal_stream);
    if (!code)
        code = runtime->stream_sync(runtime->self, gpu->internal_stream);
    pthread_mutex_unlock(&gpu->lock);
    if (code)
        return 0; /* a lost device cannot be read */
    uint64_t damaged = 0;
    for (uint64_t i = 0; i < bytes; i++) {
        if (zone[i] == CANARY)
            continue;
        if (!*first)
            *first = address + i;
        damaged++;
    }
    return damaged;
}

uint64_t gpu_memory_damage(struct device *device, const struct device_memory *memory,
                           int64_t *ret_offset)
{
    struct gpu_device *gpu = gpu_of(device);
    const struct gpu_memory *mine = memory->impl;
    if (device_is_lost(device))
        return 0;
    gpu_enter(gpu);
    uint64_t first = 0;
    uint64_t damaged = count_damage(gpu, memory->address - mine->front_bytes, mine->front_bytes,
                                    &first);
    damaged += count_damage(gpu, memory->address + memory->bytes, mine->back_bytes, &first);
    if (damaged)
        *ret_offset = (int64_t)(first - memory->address);
    return damaged;
}

/* ---- Giving back ---------------------------------------------------------------------------- */

void gpu_memory_destroy(struct device *device, struct device_memory *memory)
{
    struct gpu_device *gpu = gpu_of(device);
    struct gpu_memory *mine = memory->impl;
    ASSERT(mine);
    gpu_enter(gpu);
    bool kept = mine->base_bytes <= device->options.quarantine_bytes && !device_is_lost(device) &&
                gpu_quarantine_keep(gpu, mine);
    if (!kept)
        gpu_memory_give_back(gpu, mine);
    free(mine);
    memory->impl = NULL;
}
