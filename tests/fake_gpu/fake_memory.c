/* fake_memory.c - memory of the fake driver: mapped memory between unmapped pages, and what
 * the driver knows of addresses. */
#define _GNU_SOURCE
#include "fake.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096u
#define GRANULARITY 65536u

/* ---- What is where -------------------------------------------------------------------------- */

/* As measured on an H200: what is freed below this size stays mapped, so that nothing faults. */
#define FREED_STAYS_BYTES ((size_t)2 << 20)

/* What the driver knows of addresses: allocations, and ranges that are reserved, mapped or not. */
struct range {
    uintptr_t start, end;         /* the allocation, or the reserved range; 0: no entry */
    uintptr_t mapped, mapped_end; /* the part with memory in it */
    int device;
};
#define RANGE_LIMIT 32768
static struct range ranges[RANGE_LIMIT];
static size_t range_count;
static pthread_mutex_t range_lock = PTHREAD_MUTEX_INITIALIZER; /* guards these */

/* With range_lock held. */
static struct range *find_range(uintptr_t address)
{
    for (size_t i = 0; i < range_count; i++)
        if (address >= ranges[i].start && address < ranges[i].end)
            return &ranges[i];
    return NULL;
}

static void add_range(uintptr_t start, size_t bytes, bool mapped)
{
    pthread_mutex_lock(&range_lock);
    size_t place = 0;
    while (place < range_count && ranges[place].end)
        place++;
    if (place < RANGE_LIMIT) {
        uintptr_t end = start + bytes;
        ranges[place] = (struct range){ start, end, mapped ? start : 0, mapped ? end : 0,
                                        fake_current() };
        range_count = place == range_count ? range_count + 1 : range_count;
    }
    pthread_mutex_unlock(&range_lock);
}

/* Returns its size; 0: the current device has none. */
static size_t drop_range(uintptr_t start)
{
    pthread_mutex_lock(&range_lock);
    struct range *range = find_range(start);
    range = range && range->device == fake_current() ? range : NULL;
    size_t bytes = range ? range->end - range->start : 0;
    if (range)
        *range = (struct range){ 0 };
    pthread_mutex_unlock(&range_lock);
    return bytes;
}

static void map_range(uintptr_t address, size_t bytes)
{
    pthread_mutex_lock(&range_lock);
    struct range *range = find_range(address);
    if (range) {
        range->mapped = bytes ? address : 0;
        range->mapped_end = address + bytes;
    }
    pthread_mutex_unlock(&range_lock);
}

bool fake_is_memory(CUdeviceptr address, size_t bytes)
{
    pthread_mutex_lock(&range_lock);
    const struct range *range = find_range((uintptr_t)address);
    bool known = range && range->device == fake_current() && range->mapped &&
                 address >= range->mapped && bytes <= range->mapped_end - address;
    pthread_mutex_unlock(&range_lock);
    return known;
}

CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes, void **data,
                                CUdeviceptr address)
{
    pthread_mutex_lock(&range_lock);
    const struct range *found = find_range((uintptr_t)address);
    struct range range = found ? *found : (struct range){ 0 };
    pthread_mutex_unlock(&range_lock);
    bool mapped = range.mapped && address >= range.mapped && address < range.mapped_end;
    for (unsigned int i = 0; i < count; i++) {
        switch (attributes[i]) {
        case CUDA_POINTER_TYPE:
            *(unsigned int *)data[i] = mapped ? CUDA_TYPE_DEVICE : 0;
            break;
        case CUDA_POINTER_DEVICE:
            *(int *)data[i] = found ? range.device : -2;
            break;
        case CUDA_POINTER_START:
            *(CUdeviceptr *)data[i] = range.start;
            break;
        case CUDA_POINTER_BYTES:
            *(size_t *)data[i] = range.end - range.start;
            break;
        case CUDA_POINTER_MAPPED:
            *(unsigned int *)data[i] = mapped;
            break;
        default:
            return FAKE_INVALID_VALUE;
        }
    }
    return fake_state();
}

/* ---- Memory --------------------------------------------------------------------------------- */

/* A mapping with an unmapped page on both sides; its size is kept in front. Aligned to 256. */
static void *make_memory(size_t bytes)
{
    size_t room = (bytes + PAGE - 1) / PAGE * PAGE;
    uint8_t *map = mmap(NULL, room + 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return NULL;
    mprotect(map, PAGE, PROT_READ | PROT_WRITE);
    mprotect(map + 2 * PAGE, room, PROT_READ | PROT_WRITE);
    *(size_t *)(void *)map = room + 3 * PAGE;
    /* As far right as 256 bytes of alignment allow, and full of what was there before. */
    uint8_t *memory = map + 2 * PAGE + (room - (bytes + 255) / 256 * 256);
    memset(map + 2 * PAGE, 0x5A, room);
    return memory;
}

static void drop_memory(void *memory)
{
    uint8_t *map = (uint8_t *)((uintptr_t)memory / PAGE * PAGE) - 2 * PAGE;
    munmap(map, *(size_t *)(void *)map);
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    if (fake_state())
        return fake_state();
    if (!fake_use_bytes(fake_current(), bytes))
        return FAKE_NO_MEMORY;
    void *memory = make_memory(bytes);
    if (!memory)
        return FAKE_NO_MEMORY;
    *address = (CUdeviceptr)(uintptr_t)memory;
    add_range((uintptr_t)memory, bytes, true);
    fake_count(THING_MEMORY, 1);
    return 0;
}

/* Waits for all work, as cuMemFreeHost does; cuMemUnmap does not. */
CUresult cuMemFree_v2(CUdeviceptr address)
{
    if (fake_current() < 0)
        return FAKE_INVALID_CONTEXT;
    late_do_all(fake_current());
    size_t bytes = drop_range((uintptr_t)address);
    if (bytes >= FREED_STAYS_BYTES)
        drop_memory((void *)(uintptr_t)address);
    fake_unuse_bytes(fake_current(), bytes);
    if (bytes)
        fake_count(THING_MEMORY, -1);
    return bytes ? fake_state() : FAKE_INVALID_VALUE;
}

CUresult cuMemHostAlloc(void **memory, size_t bytes, unsigned int flags)
{
    (void)flags;
    *memory = make_memory(bytes);
    if (*memory)
        fake_count(THING_PINNED, 1);
    return *memory ? 0 : FAKE_NO_MEMORY;
}

CUresult cuMemFreeHost(void *memory)
{
    if (fake_current() < 0)
        return FAKE_INVALID_CONTEXT;
    late_do_all(fake_current());
    drop_memory(memory);
    fake_count(THING_PINNED, -1);
    return fake_state();
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *memory, unsigned int flags)
{
    *address = (CUdeviceptr)(uintptr_t)memory;
    return flags;
}

CUresult cuMemHostRegister_v2(void *memory, size_t bytes, unsigned int flags)
{
    (void)flags;
    return memory && bytes ? 0 : FAKE_INVALID_VALUE;
}

CUresult cuMemHostUnregister(void *memory)
{
    return memory ? 0 : FAKE_INVALID_VALUE;
}

static bool has_ranges(void)
{
    return getenv("FAKE_GPU_NO_RANGES") == NULL;
}

CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *properties,
                                       CUmemAllocationGranularity_flags option)
{
    (void)properties;
    *bytes = GRANULARITY;
    return has_ranges() ? option : FAKE_NOT_SUPPORTED;
}

CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment,
                             CUdeviceptr wanted, unsigned long long flags)
{
    (void)alignment;
    (void)wanted;
    (void)flags;
    if (!has_ranges())
        return FAKE_NOT_SUPPORTED;
    if (bytes % GRANULARITY)
        return FAKE_INVALID_VALUE;
    void *map = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *address = (CUdeviceptr)(uintptr_t)map;
    if (map != MAP_FAILED) {
        add_range((uintptr_t)map, bytes, false);
        fake_count(THING_RANGE, 1);
    }
    return map == MAP_FAILED ? FAKE_NO_MEMORY : 0;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes)
{
    if (drop_range((uintptr_t)address))
        fake_count(THING_RANGE, -1);
    return munmap((void *)(uintptr_t)address, bytes) ? FAKE_INVALID_VALUE : 0;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *memory, size_t bytes,
                     const CUmemAllocationProp *properties, unsigned long long flags)
{
    (void)flags;
    *memory = bytes;
    if (!has_ranges())
        return FAKE_NOT_SUPPORTED;
    if (properties->type != CUDA_MEMORY_PINNED || bytes % GRANULARITY)
        return FAKE_INVALID_VALUE;
    int device = properties->location.id;
    if (device < 0 || device >= FAKE_DEVICE_LIMIT)
        return FAKE_INVALID_DEVICE;
    if (!fake_use_bytes(device, bytes))
        return FAKE_NO_MEMORY;
    fake_count(THING_MEMORY, 1);
    return 0;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle memory)
{
    if (!memory)
        return FAKE_INVALID_VALUE;
    fake_unuse_bytes(fake_current(), (size_t)memory);
    fake_count(THING_MEMORY, -1);
    return 0;
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle memory, unsigned long long flags)
{
    return address && bytes == memory && !offset && !flags ? 0 : FAKE_INVALID_VALUE;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
    void *map = (void *)(uintptr_t)address;
    map_range((uintptr_t)address, 0);
    return mmap(map, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == map
               ? fake_state()
               : FAKE_INVALID_VALUE;
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access,
                        size_t count)
{
    if (count != 1 || access->location.id != fake_current() ||
        access->flags != CUDA_ACCESS_READ_WRITE)
        return FAKE_INVALID_VALUE;
    map_range((uintptr_t)address, bytes);
    return mprotect((void *)(uintptr_t)address, bytes, PROT_READ | PROT_WRITE) ? FAKE_INVALID_VALUE
                                                                               : 0;
}
