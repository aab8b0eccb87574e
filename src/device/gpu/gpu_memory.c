/* gpu_memory.c - memory of the GPU.
 *
 * With guards a buffer ends (but for what alignment leaves over) at an address range that nothing
 * is mapped to, so that the first access behind it faults; what lies between its end and that
 * range, and a zone before it, hold a canary. Where the runtime cannot map memory into ranges, a
 * canary stands on both sides. Freed memory goes to quarantine: unmapped, its addresses not used
 * again, so that a late access faults; or, without guards, filled with poison.
 *
 * A fill or copy of this file runs on the device's internal stream and is waited for. */
#include "device/gpu/gpu_impl.h"

#include "base/size.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define CANARY 0xC7u
#define ZONE_BYTES 4096u

struct gpu_quarantine_entry {
    struct gpu_quarantine_entry *next;
    struct gpu_memory memory;
};

static uint64_t align_up(uint64_t value, uint64_t alignment)
{
    return (value + alignment - 1) / alignment * alignment;
}

/* ---- What the runtime says ------------------------------------------------------------------ */

/* Of [address, address + bytes): how many bytes the runtime says are memory of this device (all, as
 * far as its range goes, or none), and what is wrong with the rest. An error is no answer: a fault
 * that is pending belongs to whoever made it. */
static bool ask(struct gpu_device *gpu, uint64_t address, uint64_t bytes, uint64_t *ret_bytes,
                const char **ret_words)
{
    const struct gpu_runtime *runtime = &gpu->runtime;
    struct gpu_pointer first = { 0 }, last = { 0 };
    if (runtime->pointer_ask(runtime->self, address, &first) ||
        runtime->pointer_ask(runtime->self, address + bytes - 1, &last))
        return false;
    uint64_t left = first.range_bytes - (address - first.range_start);
    *ret_words = first.words;
    *ret_bytes = bytes;
    if (!first.is_memory) {
        *ret_bytes = 0;
    } else if (first.range_bytes && left < bytes) {
        *ret_bytes = left;
        *ret_words = "its allocation ends before";
    } else if (!last.is_memory || last.range_start != first.range_start) {
        *ret_bytes = bytes - 1;
        *ret_words = last.is_memory ? "another allocation at its end" : last.words;
    }
    return true;
}

/* A runtime that does not know what it made itself cannot be asked about anything. */
static void probe_pointers(struct gpu_device *gpu, const struct device_memory *memory)
{
    const char *unused;
    uint64_t bytes;
    if (!gpu->pointers_known && gpu->device.options.ask_pointers)
        gpu->pointers_known = ask(gpu, memory->address, memory->bytes, &bytes, &unused) &&
                              bytes == memory->bytes;
}

void gpu_memory_ask(struct device *device, uint64_t address, uint64_t bytes,
                    struct device_pointer_facts *ret_facts)
{
    struct gpu_device *gpu = gpu_of(device);
    const char *words = "";
    *ret_facts = (struct device_pointer_facts){ .asked = gpu->pointers_known };
    if (!ret_facts->asked)
        return;
    gpu_enter(gpu);
    ret_facts->asked = ask(gpu, address, bytes, &ret_facts->bytes, &words);
    snprintf(ret_facts->words, sizeof(ret_facts->words), "%s",
             ret_facts->bytes < bytes && words ? words : "");
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
    memory->front_bytes = before < ZONE_BYTES ? before : ZONE_BYTES;
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

static void give_back(struct gpu_device *gpu, const struct gpu_memory *memory)
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

/* First contents: canaries beside, zeros or poison inside (unless the caller fills it). */
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
        give_back(gpu, memory);
        free(memory);
        return gpu_failed(gpu, code, "buffer creation", err);
    }
    *ret_memory = (struct device_memory){ .address = address,
                                          .bytes = bytes,
                                          .impl = memory,
                                          .slack_before = memory->front_bytes,
                                          .slack_after = memory->back_bytes,
                                          .canary = CANARY };
    probe_pointers(gpu, ret_memory);
    return STATUS_OK;
}

enum status gpu_memory_create(struct device *device, uint64_t bytes,
                              struct device_memory *ret_memory, struct error *err)
{
    return create(gpu_of(device), bytes, true, ret_memory, err);
}

/* By the runtime's own way for memory that is not pinned: waited for, and slower than a copy in. */
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

/* Counts bytes of [address, address + bytes) that are not the canary; *first: the first of them, if
 * none was found before. */
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
        return 0; /* a lost device cannot be asked */
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

/* With the lock held: gives back the oldest until at most limit_bytes are kept. */
static void shrink(struct gpu_device *gpu, uint64_t limit_bytes)
{
    while (gpu->oldest && gpu->quarantine_bytes > limit_bytes) {
        struct gpu_quarantine_entry *entry = gpu->oldest;
        gpu->oldest = entry->next;
        if (!gpu->oldest)
            gpu->newest = NULL;
        gpu->quarantine_bytes -= entry->memory.base_bytes;
        give_back(gpu, &entry->memory);
        free(entry);
    }
}

void gpu_quarantine_release(struct gpu_device *gpu)
{
    pthread_mutex_lock(&gpu->lock);
    shrink(gpu, 0);
    pthread_mutex_unlock(&gpu->lock);
}

static bool keep(struct gpu_device *gpu, const struct gpu_memory *memory)
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

void gpu_memory_destroy(struct device *device, struct device_memory *memory)
{
    struct gpu_device *gpu = gpu_of(device);
    struct gpu_memory *mine = memory->impl;
    ASSERT(mine);
    gpu_enter(gpu);
    bool kept = mine->base_bytes <= device->options.quarantine_bytes && !device_is_lost(device) &&
                keep(gpu, mine);
    if (!kept)
        give_back(gpu, mine);
    free(mine);
    memory->impl = NULL;
}
