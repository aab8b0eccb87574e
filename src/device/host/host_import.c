/* host_import.c - memory of the caller's that buffers read from, in place or copied.
 *
 * A file mapping has pages of 4 KiB. Reading weights through them costs a good part of a core's
 * time in TLB misses, most of all when other processes push page tables out of the caches; a copy
 * in huge pages avoids that. Copies lie one after the other in chunks, so that small tensors share
 * huge pages as well. A chunk is freed with its last buffer; its unwritten part takes no memory. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, madvise */
#include "device/host/host_impl.h"

#include "base/parallel.h"
#include "base/size.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ALIGNMENT 64u
#define HUGE_BYTES ((size_t)2 << 20)
#define CHUNK_BYTES ((size_t)256 << 20)
/* Smaller imports are too few bytes to matter. */
#define COPY_FROM_BYTES ((uint64_t)256 << 10)
/* A part of a copy that one thread does at a time. */
#define PART_BYTES HUGE_BYTES

struct host_chunk {
    uint8_t *map;
    size_t map_bytes;
    uint8_t *begin; /* at a huge page */
    size_t used, capacity;
    uint32_t users; /* buffers; guarded by the device's import_lock */
};

/* ---- Whether --------------------------------------------------------------------------------- */

#define AVAILABLE "MemAvailable:"

/* What the system could give without swapping; 0 if it does not say. */
static uint64_t available_bytes(void)
{
    char line[128];
    uint64_t kilobytes = 0;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && fgets(line, sizeof(line), file))
        if (strncmp(line, AVAILABLE, strlen(AVAILABLE)) == 0) {
            kilobytes = strtoull(line + strlen(AVAILABLE), NULL, 10);
            break;
        }
    if (file)
        fclose(file);
    return kilobytes * 1024;
}

/* A quarter of the machine's memory stays for others. */
static bool is_worth_copying(const struct device *device, uint64_t bytes)
{
    switch (device->options.imports) {
    case DEVICE_IMPORTS_COPIED:
        return true;
    case DEVICE_IMPORTS_IN_PLACE:
        return false;
    default:
        return bytes >= COPY_FROM_BYTES &&
               available_bytes() / 2 > bytes + device->info.memory_bytes / 8;
    }
}

/* ---- Chunks --------------------------------------------------------------------------------- */

static size_t round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

static struct host_chunk *new_chunk(uint64_t bytes)
{
    struct host_chunk *chunk = calloc(1, sizeof(*chunk));
    if (!chunk || bytes > SIZE_MAX / 2) {
        free(chunk);
        return NULL;
    }
    chunk->capacity = bytes > CHUNK_BYTES ? round_up((size_t)bytes, HUGE_BYTES) : CHUNK_BYTES;
    chunk->map_bytes = chunk->capacity + HUGE_BYTES;
    void *map = mmap(NULL, chunk->map_bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) {
        free(chunk);
        return NULL;
    }
    chunk->map = map;
    chunk->begin = (uint8_t *)round_up((uintptr_t)map, HUGE_BYTES);
#ifdef MADV_HUGEPAGE
    madvise(chunk->begin, chunk->capacity, MADV_HUGEPAGE);
#endif
    return chunk;
}

static void free_chunk(struct host_chunk *chunk)
{
    munmap(chunk->map, chunk->map_bytes);
    free(chunk);
}

/* Room for bytes in the device's chunk or a new one, which counts a user; NULL if there is none. */
static uint8_t *take_room(struct host_device *host, uint64_t bytes, struct host_chunk **ret_chunk)
{
    uint8_t *room = NULL;
    pthread_mutex_lock(&host->import_lock);
    struct host_chunk *chunk = host->chunk;
    if (!chunk || bytes > chunk->capacity - chunk->used) {
        /* The old one stays with its buffers. */
        if (chunk && chunk->users == 0)
            free_chunk(chunk);
        chunk = host->chunk = new_chunk(bytes);
    }
    if (chunk) {
        room = chunk->begin + chunk->used;
        size_t used = chunk->used + round_up((size_t)bytes, ALIGNMENT);
        chunk->used = min_u64(used, chunk->capacity);
        chunk->users++;
    }
    pthread_mutex_unlock(&host->import_lock);
    *ret_chunk = chunk;
    return room;
}

void host_import_release(struct host_device *host, struct host_chunk *chunk)
{
    pthread_mutex_lock(&host->import_lock);
    if (--chunk->users == 0) {
        if (host->chunk == chunk)
            host->chunk = NULL;
        free_chunk(chunk);
    }
    pthread_mutex_unlock(&host->import_lock);
}

/* ---- Copying -------------------------------------------------------------------------------- */

struct copying {
    uint8_t *target;
    const uint8_t *source;
    uint64_t bytes;
    uint32_t failed; /* atomic */
};

/* A file that became shorter faults when it is read. */
static void copy_part(void *context, uint64_t index)
{
    struct copying *copying = context;
    uint64_t first = index * PART_BYTES, left = copying->bytes - first;
    if (!fault_copy(copying->target + first, copying->source + first,
                    (size_t)min_u64(left, PART_BYTES)))
        __atomic_store_n(&copying->failed, 1, __ATOMIC_RELAXED);
}

static enum status import_copy(struct device *device, const void *bytes, uint64_t count,
                               struct host_memory *memory, uint8_t **ret_data, struct error *err)
{
    struct copying copying = { .source = bytes, .bytes = count };
    copying.target = take_room(host_of(device), count, &memory->chunk);
    if (!copying.target)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a copy of %" PRIu64 " bytes", count);
    uint64_t parts = count / PART_BYTES + (count % PART_BYTES != 0);
    parallel_run(parts, parts < 2 ? 1 : 0, copy_part, &copying);
    *ret_data = copying.target;
    if (!copying.failed)
        return STATUS_OK;
    host_import_release(host_of(device), memory->chunk);
    return error_set(err, STATUS_IO,
                     "%" PRIu64 " bytes could not be read: is the file still whole?", count);
}

enum status host_memory_import(struct device *device, const void *bytes, uint64_t count,
                               struct device_memory *ret_memory, struct error *err)
{
    if (device->options.guards) {
        TRY(host_memory_create(device, count, ret_memory, err));
        memcpy((void *)(uintptr_t)ret_memory->address, bytes, (size_t)count);
        ret_memory->read_only = ret_memory->copied = true;
        return STATUS_OK;
    }
    struct host_memory *memory = calloc(1, sizeof(*memory));
    if (!memory)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a buffer");
    memory->imported = true;
    *ret_memory = (struct device_memory){
        .address = (uint64_t)(uintptr_t)bytes, .bytes = count, .read_only = true, .impl = memory
    };
    if (is_worth_copying(device, count)) {
        uint8_t *data;
        enum status status = import_copy(device, bytes, count, memory, &data, err);
        if (status) {
            free(memory);
            return status;
        }
        ret_memory->address = (uint64_t)(uintptr_t)data;
        ret_memory->copied = true;
    }
    return STATUS_OK;
}
