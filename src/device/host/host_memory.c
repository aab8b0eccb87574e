/* host_memory.c - memory of the host device: mappings of its own, never the caller's.
 *
 * With guards there is an unmapped page before and after a buffer, so that the first byte past
 * either end faults. The bytes that alignment leaves between the buffer's end and that page hold a
 * canary, as does the rest of the first page. Freed memory goes to quarantine: its addresses become
 * inaccessible and are not reused, so that a late access faults and names the buffer. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, madvise */
#include "device/host/host_impl.h"

#include "base/size.h"
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A cache line: what the widest kernels like. */
#define ALIGNMENT 64u
#define CANARY 0xC7u
/* A page that covers what 512 plain ones do; a mapping that can hold one begins at one. */
#define HUGE_BYTES ((size_t)2 << 20)

struct host_quarantine_entry {
    struct host_quarantine_entry *next;
    uint8_t *map;
    size_t map_bytes;
};

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* ---- Making --------------------------------------------------------------------------------- */

/* Sizes of a mapping for bytes; false if they do not fit. */
static bool size_areas(uint64_t bytes, bool guards, struct host_memory *memory)
{
    uint64_t page = page_bytes(), pages, map;
    if (!size_align_up(bytes, page, &pages) || !size_add(pages, guards ? 2 * page : 0, &map) ||
        map > SIZE_MAX / 2)
        return false;
    memory->pages_bytes = (size_t)pages;
    memory->map_bytes = (size_t)map;
    return true;
}

/* Address space with `lead` bytes before a multiple of `alignment`; MAP_FAILED if there is none. */
static uint8_t *reserve(size_t bytes, size_t lead, size_t alignment, int protection)
{
    uint8_t *found = mmap(NULL, bytes + alignment, protection,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found == MAP_FAILED)
        return found;
    size_t past = ((uintptr_t)found + lead) % alignment;
    size_t before = past ? alignment - past : 0, behind = alignment - before;
    if (before)
        munmap(found, before);
    if (behind)
        munmap(found + before + bytes, behind);
    return found + before;
}

static enum status map_memory(struct host_memory *memory, uint64_t bytes, bool guards,
                              struct error *err)
{
    char words[TEXT_BYTES_CAPACITY];
    if (!size_areas(bytes, guards, memory))
        return error_set(err, STATUS_NO_MEMORY, "expected a size that fits memory, found %" PRIu64,
                         bytes);
    size_t guard = guards ? page_bytes() : 0;
    uint8_t *map = reserve(memory->map_bytes, guard,
                           memory->pages_bytes >= HUGE_BYTES ? HUGE_BYTES : page_bytes(),
                           guards ? PROT_NONE : PROT_READ | PROT_WRITE);
    if (map == MAP_FAILED)
        return error_set_os(err, errno, "cannot map %s", text_bytes(bytes, words));
    memory->map = map;
    memory->pages = map + guard;
    if (guards && mprotect(memory->pages, memory->pages_bytes, PROT_READ | PROT_WRITE) != 0) {
        int code = errno;
        munmap(map, memory->map_bytes);
        return error_set_os(err, code, "cannot make %s usable", text_bytes(bytes, words));
    }
#ifdef MADV_HUGEPAGE
    if (memory->pages_bytes >= HUGE_BYTES)
        madvise(memory->pages, memory->pages_bytes, MADV_HUGEPAGE);
#endif
    return STATUS_OK;
}

enum status host_memory_create(struct device *device, uint64_t bytes,
                               struct device_memory *ret_memory, struct error *err)
{
    const struct device_options *options = &device->options;
    struct host_memory *memory = calloc(1, sizeof(*memory));
    if (!memory)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a buffer");
    enum status status = map_memory(memory, bytes, options->guards, err);
    if (status) {
        free(memory);
        return status;
    }
    uint8_t *data = memory->pages;
    ASSERT(data);
    if (options->guards) {
        uint64_t room = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        data = memory->pages + memory->pages_bytes - room;
        memset(memory->pages, CANARY, (size_t)(data - memory->pages));
        memset(data + bytes, CANARY, (size_t)(room - bytes));
    }
    if (options->poison)
        memset(data, DEVICE_POISON, (size_t)bytes);
    *ret_memory = (struct device_memory){
        .address = (uint64_t)(uintptr_t)data, .bytes = bytes, .impl = memory, .canary = CANARY
    };
    if (options->guards) {
        uint8_t *end = memory->pages + memory->pages_bytes;
        ret_memory->slack_before = (uint64_t)(data - memory->pages);
        ret_memory->slack_after = (uint64_t)(end - data) - bytes;
    }
    return STATUS_OK;
}

/* ---- Canaries ------------------------------------------------------------------------------- */

/* Counts bytes of [from, to) that are not the canary; *first: the first of them. */
static uint64_t count_damage(const uint8_t *from, const uint8_t *to, const uint8_t **first)
{
    uint64_t damaged = 0;
    for (const uint8_t *at = from; at < to; at++) {
        if (*at == CANARY)
            continue;
        if (!*first)
            *first = at;
        damaged++;
    }
    return damaged;
}

uint64_t host_memory_damage(struct device *device, const struct device_memory *memory,
                            int64_t *ret_offset)
{
    const struct host_memory *host = memory->impl;
    if (!device->options.guards || host->imported)
        return 0;
    const uint8_t *data = (const uint8_t *)(uintptr_t)memory->address;
    const uint8_t *first = NULL;
    uint64_t damaged = count_damage(host->pages, data, &first);
    damaged += count_damage(data + memory->bytes, host->pages + host->pages_bytes, &first);
    if (damaged)
        *ret_offset = first - data;
    return damaged;
}

/* ---- Giving back ---------------------------------------------------------------------------- */

void host_quarantine_init(struct host_quarantine *quarantine, uint64_t limit_bytes)
{
    *quarantine = (struct host_quarantine){ .limit_bytes = limit_bytes };
    pthread_mutex_init(&quarantine->lock, NULL);
}

/* With the lock held: drops the oldest until at most limit_bytes are kept. */
static void shrink(struct host_quarantine *quarantine, uint64_t limit_bytes)
{
    while (quarantine->head && quarantine->bytes > limit_bytes) {
        struct host_quarantine_entry *oldest = quarantine->head;
        quarantine->head = oldest->next;
        if (!quarantine->head)
            quarantine->tail = NULL;
        quarantine->bytes -= oldest->map_bytes;
        munmap(oldest->map, oldest->map_bytes);
        free(oldest);
    }
}

void host_quarantine_release(struct host_quarantine *quarantine)
{
    pthread_mutex_lock(&quarantine->lock);
    shrink(quarantine, 0);
    pthread_mutex_unlock(&quarantine->lock);
    pthread_mutex_destroy(&quarantine->lock);
}

/* False if it cannot be kept; the caller unmaps then. */
static bool quarantine_add(struct host_quarantine *quarantine, struct host_memory *memory)
{
    struct host_quarantine_entry *entry = malloc(sizeof(*entry));
    if (!entry)
        return false;
    *entry = (struct host_quarantine_entry){ NULL, memory->map, memory->map_bytes };
    pthread_mutex_lock(&quarantine->lock);
    if (quarantine->tail)
        quarantine->tail->next = entry;
    else
        quarantine->head = entry;
    quarantine->tail = entry;
    quarantine->bytes += entry->map_bytes;
    shrink(quarantine, quarantine->limit_bytes);
    pthread_mutex_unlock(&quarantine->lock);
    return true;
}

void host_memory_destroy(struct device *device, struct device_memory *memory)
{
    struct host_memory *host = memory->impl;
    const struct device_options *options = &device->options;
    if (!host->imported) {
        bool kept = false;
        if (host->map_bytes <= options->quarantine_bytes) {
            /* Guards: any access faults. Poison alone: it goes on, with bytes that show. */
            if (options->guards)
                mprotect(host->map, host->map_bytes, PROT_NONE);
            else if (options->poison)
                memset(host->pages, DEVICE_POISON, host->pages_bytes);
            kept = quarantine_add(&host_of(device)->quarantine, host);
        }
        if (!kept)
            munmap(host->map, host->map_bytes);
    } else if (host->chunk) {
        host_import_release(host_of(device), host->chunk);
    }
    free(host);
    memory->impl = NULL;
}
